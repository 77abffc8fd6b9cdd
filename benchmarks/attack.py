"""Bounds and posterior of the cells of large three-way tables with their margins, and
the rank of 100,000 linked cells.

Run as ``python benchmarks/attack.py`` from the root of the repository. Suppressed cells
are chosen at random, or close together, which leaves fewer of them to be worked out by
subtraction. Wall time depends on what else the machine is doing; processor time is in
brackets."""

import resource
import time

import numpy as np
import xarray as xr

import taciturn as tc

SIZES, SUPPRESSED = (20, 16, 15), 500
LINKED = {"a": 40, "b": 50, "c": 50}


def at_random(rng: np.random.Generator) -> np.ndarray:
    """A mask of cells chosen at random."""
    mask = np.zeros(np.prod(SIZES), dtype=bool)
    mask[rng.choice(mask.size, SUPPRESSED, replace=False)] = True
    return mask.reshape(SIZES)


def close_together(rng: np.random.Generator) -> np.ndarray:
    """A mask of half of the cells in a block of 10 x 10 x 10."""
    mask = np.zeros(SIZES, dtype=bool)
    block = np.zeros(1000, dtype=bool)
    block[rng.choice(1000, SUPPRESSED, replace=False)] = True
    mask[:10, :10, :10] = block.reshape(10, 10, 10)
    return mask


def main() -> None:
    """Time everything and print the results."""
    rng = np.random.default_rng(1)
    table = xr.DataArray(rng.poisson(rng.gamma(0.5, 20, SIZES)), dims=("area", "age", "work"))
    for choose in (at_random, close_together):
        release = tc.Suppression(table, table.copy(data=choose(rng)))
        wall, processor = time.perf_counter(), time.process_time()
        bounds = tc.attacker_bounds(release, progressbar=False)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        found = int((bounds["disclosed"] & ~bounds["published"]).sum())
        print(
            f"{table.size:,} cells, {SUPPRESSED} suppressed {choose.__name__}: {wall:.1f} s"
            f" [{processor:.1f} s]"
        )
        print(f"  {found} disclosed, median of the others' m", end=" ")
        print(float(bounds["n_values"].where(~bounds["disclosed"]).median()))
    expected = (
        sum(table.sum([other for other in table.dims if other != dim]) for dim in table.dims) / 1000
        + 1
    )
    for name, prior in {
        "uniform": "uniform",
        "expected counts": expected.transpose(*table.dims),
    }.items():
        posterior(release, name, prior)
    start = time.perf_counter()
    rank = tc.attack.constraint_rank([("a", "b"), ("a", "c"), ("b", "c")], sizes=LINKED)
    print(
        f"rank of 100,000 linked cells: {rank.rank} of {rank.rows},"
        f" {time.perf_counter() - start:.1f} s"
    )


def posterior(release: tc.Suppression, name: str, prior: xr.DataArray | str) -> None:
    """Time the posterior, bounds included, and its effective draws per second."""
    few = release.true_table.isel(area=slice(2), age=slice(2), work=slice(2))
    tc.attacker_posterior(
        tc.GlobalRecoding(few, {"work": {"all": [0, 1]}}), random_seed=1, progressbar=False
    )  # compile
    wall, processor = time.perf_counter(), time.process_time()
    found = tc.attacker_posterior(release, prior=prior, random_seed=1, progressbar=False)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    walked = ~found["exact"]
    ess = found["ess_bulk"].where(walked)
    print(
        f"posterior, prior {name}, {int(walked.sum())} cells by a walk, 4 x 1,000 draws: ", end=""
    )
    print(f"{wall:.1f} s [{processor:.1f} s], bounds included")
    print(
        f"  effective draws: least {float(ess.min()):.0f}, median {float(ess.median()):.0f}",
        end="; ",
    )
    print(f"a second: {float(ess.min()) / wall:.1f}, {float(ess.median()) / wall:.1f}", end="; ")
    print(f"largest r-hat {float(found['r_hat'].max()):.3f}")
    print(
        "  risk over 1 / log2(m): median"
        f" {float((found['risk'] / found['risk_uniform']).median()):.2f}, ",
        end="",
    )
    print(f"largest error of an entropy {float(found['entropy_mcse'].max()):.3f} bits, ", end="")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
