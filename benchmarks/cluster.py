"""Many tables on a Dask cluster beside two bare processes, and whether all ways give
the same numbers.

Run as ``python benchmarks/cluster.py``; ``--areas`` for another number, ``--shared``
for areas that share a profile, which was learned before, in place of the urn,
``--plain`` for processes that keep no memory but what they would by themselves. Areas
of 90 cells, 200 draws each. Two processes that each take half of the tables, with
everything loaded, are the yardstick; the ways take turns, and the median of the rounds
counts, each relative to the yardstick of its round. Then the same call is made with
other chunks, a worker is killed in the middle, and the whole run is killed and made
again."""

import argparse
import hashlib
import multiprocessing as mp
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from dask.distributed import Client, LocalCluster

import taciturn as tc
from taciturn.many.collection import collected
from taciturn.many.shared_profile.estimator import LearnedProfile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))
from areas import sampled
from generated_areas import area_populations

VARIABLES = ["age", "status", "origin"]
LEARNED = "LEARNED_PROFILE"
CHUNKS = (1, 10, 100, 1000)
ROUNDS = 5
KEPT = {"MALLOC_TRIM_THRESHOLD_": str(2**27), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""What all processes but this one are started with: memory that arrays leave is kept
for the next. Dask has workers give it back."""

warnings.simplefilter("ignore", tc.ConvergenceWarning)  # of the rough profile


def tables(areas: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Samples of areas and the sizes of their populations."""
    population = area_populations("margins", areas, 1)
    return sampled(population, 0.05, 1), population.sum(VARIABLES)


class Known(tc.SharedProfile):
    """A profile that was learned before, from a few areas and roughly."""

    def learn(self, counts, layout, **how):
        """What is in the file that the environment names."""
        with np.load(os.environ[LEARNED]) as arrays:
            return LearnedProfile.of_arrays(arrays, layout)


def learn(path: Path) -> None:
    """Learn a profile and keep it for all processes."""
    stack = collected(*tables(100), "area", None).tables
    quick = tc.SharedProfile(draws=100, tune=50)
    found = quick.learn(stack.counts, stack.layout, seed=1, workers=2, progressbar=False)
    np.savez(path, **{str(name): array.values for name, array in found.posterior.items()})
    os.environ[LEARNED] = str(path)


def assess(sample: xr.DataArray, sizes: xr.DataArray, **how) -> xr.Dataset:
    """The call that all ways make."""
    return tc.assess_many(
        sample,
        over="area",
        population_size=sizes,
        estimator=Known() if LEARNED in os.environ else tc.ChineseRestaurant(),
        draws=200,
        random_seed=1,
        progressbar=False,
        **how,
    )


def digest(risk: xr.Dataset) -> str:
    """The same for the same numbers of the same areas, whatever their order."""
    risk = risk.sortby("area")
    parts = [risk[name].values.tobytes() for name in ("R1", "R2", "tau1", "R2_mean")]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def bare(connection: mp.connection.Connection, sample: xr.DataArray, sizes: xr.DataArray) -> None:
    """A process that assesses its share whenever it is told to."""
    assess(sample[:20], sizes[:20], workers=1)
    connection.send("ready")
    while connection.recv():
        assess(sample, sizes, workers=1)
        connection.send("done")


def two_processes(
    sample: xr.DataArray, sizes: xr.DataArray
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Two processes, each with half of the tables: how to run and how to end them."""
    context, pipes = mp.get_context("spawn"), []
    for part in (slice(None, None, 2), slice(1, None, 2)):
        here, there = context.Pipe()
        context.Process(target=bare, args=(there, sample[part], sizes[part]), daemon=True).start()
        pipes.append(here)
    for pipe in pipes:
        pipe.recv()

    def run() -> None:
        for pipe in pipes:
            pipe.send(True)
        for pipe in pipes:
            pipe.recv()

    def end() -> None:
        for pipe in pipes:
            pipe.send(False)

    return run, end


def timed(run: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def throughput(sample: xr.DataArray, sizes: xr.DataArray, client: Client) -> dict[str, str]:
    """Seconds and throughput of each way, in turns; the hashes of their numbers."""
    run, end = two_processes(sample, sizes)
    hashes: dict[str, str] = {}

    def on_client() -> None:
        hashes["the client as workers"] = digest(assess(sample, sizes, workers=client))

    def lazily(chunk: int) -> Callable[[], None]:
        def compute() -> None:
            risk = assess(sample.chunk(area=chunk), sizes).compute()
            hashes[f"chunks of {chunk:,}"] = digest(risk)

        return compute

    ways: dict[str, Callable[[], object]] = {
        "two bare processes": run,
        "the client as workers": on_client,
    }
    ways |= {f"chunks of {chunk:,}": lazily(chunk) for chunk in CHUNKS}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            seconds[name].append(timed(way))
    end()
    print("| way | tables a second | throughput |")
    print("|---|---:|---:|")
    for name, taken in seconds.items():
        rate = len(sample) / statistics.median(taken)
        rounds = zip(taken, seconds["two bare processes"], strict=True)
        share = statistics.median(yardstick / one for one, yardstick in rounds)
        print(f"| {name} | {rate:.0f} | {share:.2f} |")
    return hashes


def with_a_lost_worker(sample: xr.DataArray, sizes: xr.DataArray, client: Client) -> str:
    """A worker is killed while tables are assessed."""
    pids = list(client.run(os.getpid).values())
    timer = threading.Timer(2.0, os.kill, (pids[0], signal.SIGKILL))
    timer.start()
    risk = assess(sample, sizes, workers=client)
    timer.join()
    return digest(risk)


def killed_and_resumed(areas: int) -> str:
    """The whole run is killed and made again with the same store."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "run")
        again = [sys.executable, __file__, "--areas", str(areas), "--store", store]
        first = subprocess.Popen(again, start_new_session=True)
        log, done = Path(store) / "log.jsonl", 3 if LEARNED in os.environ else 6
        while not log.exists() or log.read_bytes().count(b"\n") < done:
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGKILL)
        return subprocess.run(again, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=4000)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.plain:
        os.environ.update(KEPT)
    sample, sizes = tables(given.areas)
    if given.store:
        print(digest(assess(sample, sizes, workers=2, store=given.store)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if given.shared:
            learn(Path(folder) / "learned.npz")
        compare(sample, sizes)


def compare(sample: xr.DataArray, sizes: xr.DataArray) -> None:
    """All ways with the same tables."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: assess(*(x[:20] for x in tables(20)), workers=1))
        hashes = throughput(sample, sizes, client)
        hashes["a worker killed"] = with_a_lost_worker(sample, sizes, client)
    hashes["one process"] = digest(assess(sample, sizes, workers=1))
    order = np.random.default_rng(1).permutation(len(sample))
    hashes["two, in another order"] = digest(assess(sample[order], sizes[order], workers=2))
    hashes["killed and resumed"] = killed_and_resumed(len(sample))
    print("\n| | hash |\n|---|---|")
    for name, value in hashes.items():
        print(f"| {name} | {value} |")
    if len(set(hashes.values())) > 1:
        sys.exit("the ways give different numbers")


if __name__ == "__main__":
    main()
