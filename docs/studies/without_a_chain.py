"""How often a fit of a small table needs a Markov chain: tables made by formula, from
even to uneven ones, with and without structural zeros.

Run as ``python docs/studies/without_a_chain.py``, minutes on two cores. The results are
``docs/studies/without_a_chain.csv`` and ``docs/explanation/_without_a_chain.md``. Seeds
are fixed."""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import joined, publish, study_parser

import taciturn as tc
from taciturn.estimators.problem import make_problem
from taciturn.estimators.unlabelled import UnlabelledEstimator
from taciturn.parallel import run_all

SHAPES = [(2, 2), (3, 4), (4, 5), (2, 8), (10, 2), (3, 3, 2), (6, 6), (12,), (4,), (2, 2, 2, 2)]
MODELS: dict[str, UnlabelledEstimator] = {
    "mixed Poisson, mixture": tc.MixedPoisson(),
    "mixed Poisson, inverse Gaussian": tc.MixedPoisson(mixing="inverse Gaussian"),
    "mixed Poisson, gamma with zeros": tc.MixedPoisson(mixing="gamma", zero_inflated=True),
    "Dirichlet log-linear": tc.DirichletLogLinear(),
}
TOLD = "structural zeros named"


def main() -> None:
    """Fit all tables, and write the results."""
    given = study_parser(__doc__, samples=600, draws=1_000, seed=77).parse_args()
    jobs = [(number, given.seed, given.draws) for number in range(given.samples)]
    parts = run_all(fitted, jobs, title="tables", workers=given.workers, progressbar=True)
    frame = pd.DataFrame([row for part in parts for row in part])
    by = frame.groupby(["model", TOLD], sort=False)
    table = by.agg(
        fits=("chain", "size"), chains=("chain", "sum"), median=("k_hat", "median")
    ).reset_index()
    seconds = by["seconds"].agg(["median", "max"]).round(2).reset_index(drop=True)
    print(joined(["median and most seconds", *map(str, seconds.values.tolist())]))
    publish(given, "without_a_chain", table.round(3).to_csv(index=False), markdown(table))


def fitted(job: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Whether the fits of one table need a chain."""
    number, seed, draws = job
    rng = np.random.default_rng([seed, number])
    population, rows = made(SHAPES[number % len(SHAPES)], rng), []
    zeros = population.copy(data=rng.random(population.shape) < 0.2)
    size = max(5, int(rng.choice([0.02, 0.1, 0.3]) * population.sum()))
    for told in (False, True):
        if told:
            population = population.where(~zeros, 0)
            size = min(size, int(population.sum()) - 1)
            if (~zeros).sum() < 2 or size < 1:
                continue
        sample = tc.draw_sample(population, size=size, random_seed=number)
        problem = make_problem(
            sample, int(population.sum()), structural_zeros=zeros if told else None
        )
        for name, model in MODELS.items():
            if name.endswith("zeros") and told:
                continue
            start = time.perf_counter()
            found = model.learn_unlabelled(problem, draws, np.random.default_rng(number))
            assert found is not None
            assert found.importance is not None
            row = {"model": name, TOLD: told, "seconds": time.perf_counter() - start}
            row |= {"chain": not found.importance.converged, "k_hat": found.importance.k_hat}
            rows.append(row)
    return rows


def made(shape: tuple[int, ...], rng: np.random.Generator) -> xr.DataArray:
    """A population of 200 to 20,000 people: effects of categories that are even or
    uneven, and departures of cells that are small or large.
    """
    effects, departures = rng.choice([0.3, 1.0, 2.0]), rng.choice([0.1, 0.5, 1.5])
    logs = departures * rng.standard_normal(shape)
    for axis, size in enumerate(shape):
        own = [size if other == axis else 1 for other in range(len(shape))]
        logs = logs + effects * rng.standard_normal(size).reshape(own)
    shares = np.exp(logs) / np.exp(logs).sum()
    size = int(np.exp(rng.uniform(np.log(200), np.log(20_000))))
    counts = rng.multinomial(size, shares.ravel()).reshape(shape)
    dims = [f"v{axis + 1}" for axis in range(len(shape))]
    coords = {dim: [str(k + 1) for k in range(n)] for dim, n in zip(dims, shape, strict=True)}
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


def markdown(table: pd.DataFrame) -> str:
    """A line for each model, without and with structural zeros."""
    lines = [joined(["model", TOLD, "fits", "left to NUTS", "k-hat, median"])]
    lines.append(joined(["---", "---", "---:", "---:", "---:"]))
    for row in table.itertuples(index=False):
        told = "yes" if row[1] else "no"
        lines.append(
            joined([row.model, told, f"{row.fits:,}", f"{row.chains}", f"{row.median:.2f}"])
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
