"""Requests are bounded in number and in time, and a worker that ends takes nothing with
it."""

import asyncio
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import taciturn as tc
from service.asking import asked_of, by_sex, desk_of, emptied, new_log
from taciturn.errors import FileFormatError
from taciturn.service.answers import Answer
from taciturn.service.bounds import Bounds
from taciturn.service.desk import Desk
from taciturn.service.worker import Worker


class Slow:
    """A desk of workers that take their time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def ask(self, kind: str, asked: Any) -> Answer:
        time.sleep(self.seconds)
        return Answer(200, {"kind": kind})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("service") / "project.duckdb"
    new_log(found)
    return found


def with_slow_workers(desk: Any, seconds: float) -> None:
    while not desk._idle.empty():
        desk._idle.get()
    for _ in range(desk._bounds.workers):
        desk._idle.put(Slow(seconds))


def statuses(client: Any, number: int) -> list[int]:
    with ThreadPoolExecutor(number) as pool:
        answers = list(pool.map(lambda _: client.get("/releases"), range(number)))
    for each in answers:
        assert ("retry-after" in each.headers) is (each.status_code == 503)
    return sorted(each.status_code for each in answers)


def test_more_than_can_wait_are_refused_at_once(path: Path) -> None:
    bounds = Bounds(workers=1, waiting=2)
    with desk_of(path, bounds) as desk, asked_of(desk, bounds) as client:
        with_slow_workers(desk, 1.0)
        assert statuses(client, 8) == [*[200] * 3, *[503] * 5]
        assert statuses(client, 3) == [200] * 3
        assert client.get("/health").status_code == 200


def test_who_waits_too_long_is_told_so(path: Path) -> None:
    bounds = Bounds(workers=1, patience=0.5)
    with desk_of(path, bounds) as desk, asked_of(desk, bounds) as client:
        with_slow_workers(desk, 1.2)
        assert statuses(client, 3) == [200, 503, 503]
        assert statuses(client, 1) == [200]


def test_a_check_that_takes_too_long_is_ended(path: Path) -> None:
    bounds = Bounds(workers=1, seconds=0.001)
    with desk_of(path, bounds) as desk, asked_of(desk, bounds) as client:
        answered = client.post("/release", json=by_sex(51, 48, name="all"))
        assert answered.status_code == 504
        assert "not worked out within 0.001 seconds" in answered.json()["error"]
        desk._workers[0]._seconds = 30.0
        assert client.post("/release", json=by_sex(51, 48, name="all")).status_code < 300
    assert list(tc.ReleaseLog(path).releases["name"]) == ["all"]
    emptied(path)


def test_a_worker_that_is_killed_is_replaced(path: Path) -> None:
    bounds = Bounds(workers=1)
    with desk_of(path, bounds) as desk, asked_of(desk, bounds) as client:
        worker = desk._workers[0]
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.join()
        assert client.get("/releases").status_code == 200
        os.kill(worker._process.pid, signal.SIGSTOP)  # in the middle of an answer
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(client.get, "/releases")
            time.sleep(0.5)
            os.kill(worker._process.pid, signal.SIGKILL)
            assert answered.result().status_code == 503
        assert client.get("/releases").status_code == 200


@pytest.mark.parametrize("is_log", [True, False])
def test_a_worker_that_nobody_listens_to_ends_without_a_word(
    path: Path, tmp_path: Path, is_log: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the second of two does, when the first has found that the file is no log."""
    other = tmp_path / "other.duckdb"
    other.write_text("a,b\n")
    worker = Worker(path if is_log else other, 30.0)
    worker._pipe.close()
    worker._process.join()
    assert capfd.readouterr() == ("", "")


def test_a_log_that_is_gone_is_said_without_its_path(tmp_path: Path) -> None:
    log, bounds = tmp_path / "secret.duckdb", Bounds(workers=1)
    new_log(log)
    with desk_of(log, bounds) as desk, asked_of(desk, bounds) as client:
        log.unlink()
        for answered in (client.get("/releases"), client.post("/check", json=by_sex(1, 2))):
            assert answered.status_code == 503
            assert answered.json() == {
                "error": "the release log cannot be read or written at present"
            }


def test_a_log_that_takes_the_place_of_another_is_not_answered_for(tmp_path: Path) -> None:
    log, bounds = tmp_path / "project.duckdb", Bounds(workers=1)
    first = new_log(log).id
    with desk_of(log, bounds) as desk, asked_of(desk, bounds) as client:
        assert client.get("/releases").json() == {"log": first, "releases": []}
        assert new_log(log).id != first
        for answered in (client.get("/releases"), client.post("/check", json=by_sex(51, 48))):
            assert answered.status_code == 503


def test_as_many_as_there_are_workers_are_worked_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few cores the machine has."""
    workers = (os.cpu_count() or 1) + 20
    together = Barrier(workers)

    class Waiting:
        def __init__(self, path: Path, seconds: float) -> None:
            pass

        def wait(self) -> None:
            pass

        close = wait

        def ask(self, kind: str, asked: Any) -> Answer:
            together.wait(timeout=10)
            return Answer(200, {})

    async def all_of(desk: Desk) -> list[Answer]:
        return await asyncio.gather(*(desk.ask("releases", {}) for _ in range(workers)))

    monkeypatch.setattr("taciturn.service.desk.Worker", Waiting)
    with desk_of(tmp_path / "none", Bounds(workers=workers)) as desk:
        assert {each.status for each in asyncio.run(all_of(desk))} == {200}


def test_an_error_of_the_program_is_not_told(path: Path, monkeypatch: Any, capfd: Any) -> None:
    """Neither to who asks nor, with what it says, to the log of the server."""
    from taciturn.service import worker

    said: list[Any] = []

    class Pipe:
        def __init__(self) -> None:
            self.asked = [("check", {"table": None}), ("nonsense", {"x": 7654321})]

        def recv(self) -> Any:
            if not self.asked:
                raise EOFError
            return self.asked.pop()

        def send(self, answer: Any) -> None:
            said.append(answer)

    monkeypatch.setattr(worker, "belong_to", lambda parent: None)
    worker._work(Pipe(), path, 0)
    assert said == ["ready", *[(500, {"error": "internal error"})] * 2]
    written = capfd.readouterr().err
    assert "TypeError at" in written
    assert "KeyError at" in written
    assert "7654321" not in written


def test_what_is_no_log_is_refused_at_the_start(tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    other.write_text("a,b\n")
    with pytest.raises(FileFormatError, match=r"other\.duckdb"), desk_of(other, Bounds()):
        pass


def test_a_body_that_does_not_come_is_not_waited_for(path: Path) -> None:
    bounds = Bounds(workers=1, patience=0.3)
    with desk_of(path, bounds) as desk, asked_of(desk, bounds) as client:
        place = (client.base_url.host, client.base_url.port)
        with socket.create_connection(place, timeout=10) as slow:
            head = "POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            slow.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
            assert client.get("/health").status_code == 200
