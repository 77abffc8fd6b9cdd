"""1,000 random roundings of a 10,000-cell table with R2 and the Hellinger distance; and
a table of a million cells.

Run as ``python benchmarks/perturbation.py`` from the root of the repository. The
straightforward NumPy version works on the same roundings, and its results are compared
before times are printed. The million cells are rounded and assessed in a separate
process, whose peak memory shows that no array of cells times cells was formed.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np
import xarray as xr
from risk_kernels import numpy_risk

import taciturn as tc

REPLICATES, ROUNDS = 1_000, 5


def table(rows: int, columns: int) -> xr.DataArray:
    """Geometric counts with mean 4."""
    counts = np.random.default_rng(1).geometric(0.2, (rows, columns)) - 1
    return xr.DataArray(
        counts,
        dims=("row", "column"),
        coords={"row": np.arange(rows), "column": np.arange(columns)},
    )


def assess(
    original: xr.DataArray, replicates: int
) -> tuple[xr.DataArray, xr.Dataset, xr.DataArray]:
    """Roundings, their R2 and their Hellinger distance."""
    rounded = tc.random_round(original, rounding_base=3, replicates=replicates, random_seed=1)
    return (
        rounded,
        tc.disclosure_risk(original, rounded),
        tc.information.hellinger_distance(original, rounded),
    )


def slowly(original: xr.DataArray, rounded: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """R2 and the Hellinger distance, one rounding after the other, straight from the
    formulas."""
    F = original.values.reshape(1, -1)
    R2, distance = [], []
    for G in rounded.values.reshape(len(rounded), -1):
        R2.append(float(numpy_risk(F, G)[1][0]))
        distance.append(np.sqrt(((np.sqrt(F[0]) - np.sqrt(G)) ** 2).sum() / 2))
    return np.array(R2), np.array(distance)


def main() -> None:
    """Time and print."""
    # First, because a process inherits its parent's peak memory.
    command = [sys.executable, __file__, "--million"]
    found = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )  # our own script
    original = table(100, 100)
    rounded, risk, distance = assess(original, REPLICATES)  # warm-up
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        assess(original, REPLICATES)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    R2, hellinger = slowly(original, rounded)
    slow = time.perf_counter() - start
    np.testing.assert_allclose(risk["R2"], R2, rtol=1e-9)
    np.testing.assert_allclose(distance, hellinger, rtol=1e-9)
    print(
        f"{REPLICATES:,} roundings of {original.size:,} cells with R2 and Hellinger:"
        f" {min(times):.2f} s after warm-up"
    )
    print(
        f"one after the other in NumPy, without the rounding: {slow:.2f} s, ratio"
        f" {slow / min(times):.1f}"
    )
    print(
        f"1,000 x 1,000 cells, 3 roundings: {found['seconds']:.1f} s with compiling, peak"
        f" {found['memory']:.2f} GB, of which {found['before']:.2f} GB before"
    )


def million() -> None:
    """Print the time and memory that a table of a million cells takes."""
    original = table(1_000, 1_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    assess(original, 3)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "before": before / 1024**2, "memory": memory / 1024**2}))


if __name__ == "__main__":
    million() if "--million" in sys.argv else main()
