"""Time and memory of fits of eight-variable tables: latent classes, and all
interactions of two variables by NUTS.

Run as ``python benchmarks/large_tables.py``, which takes about half an hour on two
cores; ``--quick`` runs short chains, to see that everything works, and ``--shapes`` and
``--estimators`` only some of them. Each fit has its own
process, whose peak memory includes everything: import, compilation, sampling, and the
risk of every draw."""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

SHAPES = {"38,400 cells": (2, 8, 5, 6, 4, 5, 2, 2), "96,000 cells": (2, 10, 5, 8, 5, 6, 2, 2)}
SAMPLE_SIZES = {"LatentClass": (1_000, 5_000, 10_000), "DirichletLogLinear": (10_000,)}


def main() -> None:
    """Print a line for each table and estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument(
        "--estimators", nargs="+", choices=list(SAMPLE_SIZES), default=list(SAMPLE_SIZES)
    )
    parser.add_argument(
        "--one", nargs=3, metavar=("SHAPE", "ESTIMATOR", "N"), help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    if given.one:
        shape, estimator, size = given.one
        print(json.dumps(one(shape, estimator, int(size), quick=given.quick)))
        return
    print(
        "| table | n | estimator | draws | fit, s | risk of every draw, s | peak memory, GB |"
        " r-hat | effective draws |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for shape, estimator in product(given.shapes, given.estimators):
        for size in SAMPLE_SIZES[estimator]:
            command = [sys.executable, __file__, "--one", shape, estimator, str(size)]
            command += ["--quick"] if given.quick else []
            done = subprocess.run(
                command, check=True, capture_output=True, text=True
            )  # our own script
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"| {shape} | {size:,} | {found['estimator']} | {found['draws']:,} |"
                f" {found['fit']:.0f} | {found['risk']:.0f} | {found['memory']:.2f} |"
                f" {found['r_hat']:.3f} | {found['ess']:,.0f} |",
                flush=True,
            )


def one(name: str, estimator: str, size: int, *, quick: bool) -> dict[str, str | float]:
    """One fit: seconds, peak memory in GB, and whether its chains agree."""
    from generated_large import POPULATION_SIZE

    import taciturn as tc

    warnings.simplefilter("ignore", tc.ConvergenceWarning)
    sample = sample_of(SHAPES[name], size)
    settings = {"LatentClass": (1000, 1000, 4), "DirichletLogLinear": (500, 500, 2)}[estimator]
    draws, tune, chains = (20, 20, 2) if quick else settings
    dims = " + ".join(map(str, sample.dims))
    model = (
        tc.LatentClass() if estimator == "LatentClass" else tc.DirichletLogLinear(f"~ ({dims})^2")
    )
    started = time.perf_counter()
    fit = model.fit(
        sample,
        population_size=POPULATION_SIZE,
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=1,
        progressbar=False,
    )
    fitted = time.perf_counter()
    fit = tc.assess(fit)
    assessed = time.perf_counter()
    diagnostics = tc.summary(fit).diagnostics
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {
        "estimator": (
            repr(model)
            if estimator == "LatentClass"
            else "DirichletLogLinear, all interactions of two"
        ),
        "draws": chains * draws,
        "fit": fitted - started,
        "risk": assessed - fitted,
        "memory": memory,
        "r_hat": diagnostics.r_hat,
        "ess": diagnostics.ess_bulk,
    }


def sample_of(shape: tuple[int, ...], size: int) -> xr.DataArray:
    """So many individuals in 25 classes, each concentrated on a few categories of every
    variable."""
    rng = np.random.default_rng(1)
    shares = np.zeros(shape)
    for weight in rng.dirichlet(np.full(25, 0.7)):
        own = np.array(weight)
        for categories in shape:
            own = np.multiply.outer(own, rng.dirichlet(np.full(categories, 0.22)))
        shares += own
    counts = rng.multinomial(size, shares.ravel() / shares.sum()).reshape(shape)
    dims = [f"v{number}" for number in range(len(shape))]
    coords = {dim: [f"c{i}" for i in range(size)] for dim, size in zip(dims, shape, strict=True)}
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


if __name__ == "__main__":
    main()
