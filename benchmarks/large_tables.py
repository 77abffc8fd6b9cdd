"""Time and memory of fits of eight-variable tables: latent classes, and all
interactions of two variables by NUTS.

Run as ``python benchmarks/large_tables.py``, which takes about half an hour on two
cores; ``--quick`` runs short chains, to see that everything works. Each fit has its own
process, whose peak memory includes everything: import, compilation, sampling, and the
risk of every draw."""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

SAMPLE_SIZE = 10_000
SHAPES = {"38,400 cells": (2, 8, 5, 6, 4, 5, 2, 2), "96,000 cells": (2, 10, 5, 8, 5, 6, 2, 2)}
ESTIMATORS = ("LatentClass", "DirichletLogLinear")


def main() -> None:
    """Print a line for each table and estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "ESTIMATOR"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one, quick=given.quick)))
        return
    print(
        f"| table, n = {SAMPLE_SIZE:,} | estimator | draws | fit, s | risk of every draw, s | peak"
        " memory, GB |"
    )
    print("|---|---|---:|---:|---:|---:|")
    for shape in SHAPES:
        for estimator in ESTIMATORS:
            command = [
                sys.executable,
                __file__,
                "--one",
                shape,
                estimator,
                *(["--quick"] if given.quick else []),
            ]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True
            )  # our own script
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"| {shape} | {found['estimator']} | {found['draws']:,} | {found['fit']:.0f} |"
                f" {found['risk']:.0f} | {found['memory']:.2f} |",
                flush=True,
            )


def one(name: str, estimator: str, *, quick: bool) -> dict[str, str | float]:
    """One fit: seconds, and peak memory in GB."""
    from generated_large import POPULATION_SIZE

    import taciturn as tc

    warnings.simplefilter("ignore", tc.ConvergenceWarning)
    sample = sample_of(SHAPES[name])
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
    tc.assess(fit)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {
        "estimator": (
            repr(model)
            if estimator == "LatentClass"
            else "DirichletLogLinear, all interactions of two"
        ),
        "draws": chains * draws,
        "fit": fitted - started,
        "risk": time.perf_counter() - fitted,
        "memory": memory,
    }


def sample_of(shape: tuple[int, ...]) -> xr.DataArray:
    """10,000 individuals in 25 classes, each concentrated on a few categories of every
    variable."""
    rng = np.random.default_rng(1)
    shares = np.zeros(shape)
    for weight in rng.dirichlet(np.full(25, 0.7)):
        own = np.array(weight)
        for size in shape:
            own = np.multiply.outer(own, rng.dirichlet(np.full(size, 0.22)))
        shares += own
    counts = rng.multinomial(SAMPLE_SIZE, shares.ravel() / shares.sum()).reshape(shape)
    dims = [f"v{number}" for number in range(len(shape))]
    coords = {dim: [f"c{i}" for i in range(size)] for dim, size in zip(dims, shape, strict=True)}
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


if __name__ == "__main__":
    main()
