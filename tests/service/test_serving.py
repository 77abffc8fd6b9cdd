"""``taciturn serve``, a process: started, ended, killed and started again."""

import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import taciturn as tc
from service.asking import by_sex, new_log
from service.running import Running
from taciturn.service.answers import NO_LOG
from taciturn.service.worker import Worker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_log(tmp_path / "project.duckdb").path


def said_by(*words: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "taciturn", "serve", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_it_answers_until_it_is_told_to_end(path: Path) -> None:
    service = Running(path, "--port", "0", "--workers", "1")
    address = f"http://127.0.0.1:{service.port}"
    assert service.said == f"answering at {address}, until Ctrl-C\n"
    answered = httpx.post(f"{address}/release", json=by_sex(51, 48, name="all"), timeout=60)
    assert answered.status_code == 201
    assert "taciturn: ended by SIGTERM; no file is left half written" in service.end(signal.SIGTERM)
    assert service.process.returncode == 128 + signal.SIGTERM
    assert list(tc.ReleaseLog(path).releases["name"]) == ["all"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_only_this_machine_is_answered(path: Path, host: str) -> None:
    status, said = said_by(path, "--host", host)
    assert status == 2
    assert "'127.0.0.1', '::1'" in said


def test_a_port_that_is_taken_and_a_file_that_is_no_log(path: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = said_by(path, "--port", port)
    assert status == 1
    assert f"port {port} of 127.0.0.1 cannot be used: " in said
    other = tmp_path / "other.duckdb"
    other.write_text("a,b\n")
    status, said = said_by(other, "--port", 0)
    assert status == 1
    assert said.count("\n") == 1
    assert "other.duckdb" in said


def test_a_process_that_is_started_again_and_cannot_have_the_log_says_so(path: Path) -> None:
    """Not that an answer was being worked on when it ended."""
    worker = Worker(path, 30.0)
    worker.wait()
    assert worker.ask("releases", {}).status == 200
    worker.end()
    path.unlink()
    found = worker.ask("releases", {})
    assert (found.status, found.content) == (503, NO_LOG.content)
    worker.end()


class Client:
    """Asks for one release after the other, each until it is answered."""

    def __init__(self, port: int, until: float) -> None:
        self.address, self.until = f"http://127.0.0.1:{port}", until

    def __call__(self, client: int) -> list[tuple[str, int]]:
        found = []
        with httpx.Client(base_url=self.address, timeout=60, trust_env=False) as asking:
            while time.monotonic() < self.until:
                name = f"{client}-{len(found)}"
                found.append((name, self.number(asking, by_sex(50 + client, 48, name=name))))
        return found

    def number(self, asking: httpx.Client, body: dict[str, Any]) -> int:
        area = {"area": ["N1", "N2", "S1", "S2"][body["table"]["counts"][0] - 50]}
        while True:
            try:
                answered = asking.post("/release", json=body | {"where": area})
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answered.status_code in (200, 201):
                return int(answered.json()["number"])
            assert answered.status_code == 503, answered.text
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_release_is_lost_or_doubled_when_it_is_killed(path: Path, seed: int) -> None:
    """Four clients; the service is killed three times while they ask, and started
    again."""
    service = Running(path, "--port", "0")
    port = service.port
    with ThreadPoolExecutor(4) as pool:
        asking = Client(port, time.monotonic() + 25)
        answers = [pool.submit(asking, client) for client in range(4)]
        for number in range(3):
            time.sleep(2 + (seed * 7 + number * 3) % 10 / 10)
            service.end(signal.SIGKILL)
            service = Running(path, "--port", str(port))
        acknowledged = dict(pair for each in answers for pair in each.result())
    service.end(signal.SIGTERM)
    releases = tc.ReleaseLog(path).releases
    assert len(acknowledged) > 12
    assert dict(zip(releases["name"], releases.index.tolist(), strict=True)) == acknowledged
    assert releases["name"].is_unique
