"""The service under load: so many requests a second, at given moments whatever the
answers do, while it is killed in the middle and started again.

Run as ``python benchmarks/service.py``; ``--rate``, ``--seconds`` and ``--workers`` for
others. Of twenty requests one is a release, nine are checks, five ask for the list of
releases and five for its health. A request that gets no answer, or is told to ask
again, is sent again after a tenth of a second. Latencies are from the moment at which a
request is due to its final answer; those of requests that met the restart are apart.
In the end the log is read, and held against the answers."""

import argparse
import asyncio
import collections
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import xarray as xr

import taciturn as tc

VARIABLES = {
    "age": ["0-15", "16-29", "30-44", "45-59", "60-74", "75+"],
    "sex": ["f", "m"],
    "area": [f"area {i}" for i in range(8)],
    "work": ["yes", "no", "unknown"],
}
CYCLE = [
    *("/check", "/releases", "/health", "/check"),
    *("/health", "/check", "/releases", "/check", "/health"),
    *("/release", "/check", "/releases", "/check", "/health", "/check"),
    *("/releases", "/check", "/health", "/check", "/releases"),
]
PAUSE = 0.1
QUANTILES = (0.5, 0.95, 0.99)
AGAIN = (502, 503, 504)


@dataclass
class Seen:
    """What the requests met."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    of_restart: list[float] = field(default_factory=list)
    busy: int = 0
    broken: int = 0
    statuses: collections.Counter = field(default_factory=collections.Counter)
    acknowledged: dict[str, int] = field(default_factory=dict)


class Tables:
    """Random tables of a made-up project, with what is below 10 not published."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)
        sizes = [len(labels) for labels in VARIABLES.values()]
        counts = self.random.poisson(60, size=sizes)
        self.base = xr.DataArray(counts, coords=VARIABLES, dims=list(VARIABLES))

    def body(self) -> dict:
        """A table over one or two variables, of all or of those in one category."""
        number = self.random.integers(1, 3)
        dims = sorted(self.random.choice(list(VARIABLES), number, replace=False).tolist())
        rest = [name for name in VARIABLES if name not in dims]
        where = {n: self.random.choice(VARIABLES[n]) for n in rest if self.random.random() < 0.3}
        table = self.base.sel(where).sum([n for n in rest if n not in where]).transpose(*dims)
        counts = [int(count) if count >= 10 else None for count in table.values.ravel()]
        categories = {name: VARIABLES[name] for name in dims}
        given = {"dims": dims, "categories": categories, "counts": counts}
        return {"table": given, "where": {n: str(label) for n, label in where.items()}}


class Service:
    """The process that is asked."""

    def __init__(self, path: Path, workers: int) -> None:
        self.path, self.workers, self.port = path, workers, 0
        self.start()

    def start(self) -> float:
        """Start it on the port that it had; the seconds until it answers."""
        begin = time.perf_counter()
        words = [str(self.path), "--port", str(self.port), "--workers", str(self.workers)]
        command = [sys.executable, "-m", "taciturn", "serve", *words]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+),", self.process.stderr.readline())[1])
        return time.perf_counter() - begin

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it."""
        self.process.send_signal(number)
        self.process.wait()
        self.process.stderr.close()


async def ask(client: httpx.AsyncClient, path: str, body: dict | None, due: float, seen: Seen):
    """One request, until it is answered."""
    met_restart = False
    while True:
        try:
            method = "GET" if body is None else "POST"
            answered = await client.request(method, path, json=body)
        except httpx.TransportError:
            met_restart = True
            seen.broken += 1
            await asyncio.sleep(PAUSE)
            continue
        if answered.status_code not in AGAIN:
            break
        seen.busy += 1
        await asyncio.sleep(PAUSE)
    seconds = time.perf_counter() - due
    seen.statuses[path, answered.status_code] += 1
    if answered.status_code in (200, 201) and path == "/release":
        seen.acknowledged[body["name"]] = answered.json()["number"]
    if met_restart:
        seen.of_restart.append(seconds)
    else:
        seen.latencies[path].append(seconds)


async def load(service: Service, rate: float, seconds: float) -> tuple[Seen, float]:
    """The requests, each at its moment, and a restart in the middle."""
    seen, tables, tasks = Seen(), Tables(), []
    address = f"http://127.0.0.1:{service.port}"
    limits = httpx.Limits(max_connections=100)

    async def restart() -> float:
        await asyncio.sleep(seconds / 2)
        service.kill()
        return await asyncio.to_thread(service.start)

    async with httpx.AsyncClient(
        base_url=address, timeout=60, limits=limits, trust_env=False
    ) as client:
        begin = time.perf_counter()
        restarted = asyncio.create_task(restart())
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            path = CYCLE[number % len(CYCLE)]
            body = tables.body() if path in ("/check", "/release") else None
            if path == "/release":
                body["name"] = f"table {number}"
            tasks.append(asyncio.create_task(ask(client, path, body, due, seen)))
        await asyncio.gather(*tasks)
        return seen, await restarted


def milliseconds(taken: list[float]) -> str:
    """Their quantiles, as cells of a table."""
    return " | ".join(f"{1000 * each:,.0f}" for each in np.quantile(taken, QUANTILES))


def main() -> None:
    """Measure, hold the log against the answers, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "project.duckdb"
        tc.ReleaseLog(path, variables=VARIABLES)
        service = Service(path, given.workers)
        seen, restarted = asyncio.run(load(service, given.rate, given.seconds))
        service.kill(signal.SIGTERM)
        logged = tc.ReleaseLog(path).releases
    print("| request | number | median, ms | 95 %, ms | 99 %, ms |")
    print("|---|---:|---:|---:|---:|")
    for name, taken in sorted(seen.latencies.items()):
        print(f"| `{name}` | {len(taken):,} | {milliseconds(taken)} |")
    if seen.of_restart:
        print(f"| met the restart | {len(seen.of_restart)} | {milliseconds(seen.of_restart)} |")
    names = collections.Counter(logged["name"])
    numbers = dict(zip(logged["name"], logged.index, strict=True))
    lost = [name for name, number in seen.acknowledged.items() if numbers.get(name) != number]
    facts = {
        "seconds from start to answers, after the kill": f"{restarted:.1f}",
        "connections that broke or were refused": seen.broken,
        "answers that it is busy": seen.busy,
        "releases acknowledged": len(seen.acknowledged),
        "of these lost": len(lost),
        "releases in the log that nobody was told of": len(set(names) - set(seen.acknowledged)),
        "doubled": sum(number > 1 for number in names.values()),
        "refused, as they would give something away": seen.statuses["/release", 409],
    }
    print("\n| | |\n|---|---:|")
    for name, value in facts.items():
        print(f"| {name} | {value} |")
    wrong = {each for each in seen.statuses if each[1] not in (200, 201, 409)}
    if wrong or lost or max(names.values()) > 1:
        sys.exit(f"not as it should be: {wrong}, lost {lost}")


if __name__ == "__main__":
    main()
