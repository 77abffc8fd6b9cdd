"""How cost grows, beside what people would use instead and what the machine can do.

Run by ``python benchmarks/speed.py``, which makes the page on speed of the results. A
group is a table of that page; in each the first case is what the others are compared
with."""

import contextlib
import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.many.collection import collected
from taciturn.many.tasks import Kept, Task, run_task

sys.path += [
    str(Path(__file__).resolve().parents[1]),
    str(Path(__file__).parents[2] / "docs/studies"),
]
from areas import sampled
from generated_areas import area_populations
from risk_kernels import numpy_risk

VARIABLES = ["age", "status", "origin"]
ESTIMATORS = {
    "urn": tc.ChineseRestaurant(),
    "Dirichlet log-linear": tc.DirichletLogLinear(),
    "pool of two families": tc.LinearPool(),
    "mixed Poisson": tc.MixedPoisson(),
    "log-linear, plug-in": tc.LogLinear(),
}


def timed(
    benchmark, group: str, case: str, work: Callable[[], object], units: float = 1, rounds: int = 5
) -> None:
    """Measure a case of a group; `units` is what the work is divided by."""
    benchmark.group, benchmark.name = group, case
    benchmark.extra_info["units"] = units
    benchmark.pedantic(work, rounds=rounds, warmup_rounds=1)


def populations(cells: int, draws: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Tables of two variables with ten people a cell, and a sample of one in ten."""
    rng = np.random.default_rng(1)
    shape = (cells // 9, 9)
    F = rng.negative_binomial(0.5, 0.05, (draws, *shape))
    F[:, 0, 0] += 20  # nobody's table is empty
    sample = rng.binomial(F[0], 0.1)
    return xr.DataArray(F, dims=("draw", "a", "b")), xr.DataArray(sample, dims=("a", "b"))


@pytest.mark.parametrize("cells", [90, 9, 900, 9_000, 90_000])
def test_risk_by_cells(benchmark, cells):
    draws = 900_000 // cells
    F, f = populations(cells, draws)
    work = lambda: tc.disclosure_risk(F, f, dim=["a", "b"])  # noqa: E731
    timed(benchmark, "risk by cells", f"{cells:,} cells, {draws:,} draws", work, cells * draws)


@pytest.mark.parametrize("draws", [1_000, 10_000, 100_000])
def test_risk_by_draws(benchmark, draws):
    F, f = populations(90, draws)
    work = lambda: tc.disclosure_risk(F, f, dim=["a", "b"])  # noqa: E731
    timed(benchmark, "risk by draws", f"{draws:,} draws of 90 cells", work, draws)


@pytest.mark.parametrize("way", ["disclosure_risk", "NumPy, in blocks", "NumPy, at once"])
def test_risk_beside_numpy(benchmark, way):
    F, f = populations(90, 50_000)
    bare, sample = F.values.reshape(len(F), -1), f.values.ravel()
    ways = {
        "disclosure_risk": lambda: tc.disclosure_risk(F, f, dim=["a", "b"]),
        "NumPy, at once": lambda: numpy_risk(bare, sample),
        "NumPy, in blocks": lambda: [
            numpy_risk(bare[i : i + 2000], sample) for i in range(0, len(bare), 2000)
        ],
    }
    timed(benchmark, "risk beside NumPy", way, ways[way], len(F))


@cache
def area(sample_size: int, times: int = 20) -> tuple[xr.DataArray, int]:
    """A sample of about so many people in 90 cells, and the size of its population."""
    population = area_populations("margins", 40, 1).sum("area")
    population = population * (sample_size * times) // population.sum()
    sample = tc.draw_sample(population, size=sample_size, random_seed=1)
    return sample, int(population.sum())


def assessed(
    sample: xr.DataArray, size: int, estimator: object, draws: int
) -> Callable[[], object]:
    """Fit and risk of one table, with as few labels as need be."""
    given = {"estimator": estimator, "draws": draws, "random_seed": 1}
    quiet = {"workers": 1, "progressbar": False}
    return lambda: tc.assess_many([sample], population_size=size, **given, **quiet)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_table(benchmark, name):
    sample, size = area(50)
    timed(benchmark, "one table", name, assessed(sample, size, ESTIMATORS[name], 1000))


@pytest.mark.parametrize("draws", [1_000, 200, 4_000, 20_000])
def test_draws(benchmark, draws):
    sample, size = area(50)
    work = assessed(sample, size, ESTIMATORS["pool of two families"], draws)
    timed(benchmark, "draws", f"{draws:,} draws", work)


@pytest.mark.parametrize("sample_size", [50, 500, 5_000])
def test_sample_size(benchmark, sample_size):
    sample, size = area(sample_size)
    work = assessed(sample, size, ESTIMATORS["pool of two families"], 1000)
    timed(benchmark, "sample size", f"n = {sample_size:,}, N = {size:,}", work)


@pytest.mark.parametrize("times", [20, 200, 2_000])
def test_population_size(benchmark, times):
    sample, size = area(50, times)
    work = assessed(sample, size, ESTIMATORS["pool of two families"], 1000)
    timed(benchmark, "population size", f"N = {size:,}, n = 50", work)


@pytest.mark.parametrize("cells", [90, 900, 9_000])
def test_cells(benchmark, cells):
    F, f = populations(cells, 1)
    work = assessed(f, int(F.sum()), ESTIMATORS["urn"], 1000)
    timed(benchmark, "cells", f"{cells:,} cells, n = {int(f.sum()):,}", work)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("tables", [100, 1_000])
def test_many_tables(benchmark, tables, workers):
    population = area_populations("margins", tables, 1)
    sample, sizes = sampled(population, 0.05, 1), population.sum(VARIABLES)
    work = lambda: tc.assess_many(  # noqa: E731
        sample,
        over="area",
        population_size=sizes,
        estimator=ESTIMATORS["pool of two families"],
        draws=200,
        random_seed=1,
        workers=workers,
        progressbar=False,
    )
    name = f"{tables:,} tables, {workers} worker{'s' * (workers > 1)}"
    timed(benchmark, "many tables", name, work, tables, rounds=2)


@cache
def of_areas(group: str) -> Task:
    """1,000 areas, given what they share or to be fitted by themselves."""
    population = area_populations("margins", 1_000, 1)
    tables = collected(sampled(population, 0.05, 1), population.sum(VARIABLES), "area", None)
    kept = Kept(200, (0.025, 0.5, 0.975), (0.1, 0.8, 0.1), {}, False)
    if group == "areas by themselves":
        return Task(0, tables, ESTIMATORS["pool of two families"], kept, 1)
    stack = tables.tables
    profile = tc.SharedProfile(draws=50, tune=50)
    learned = profile.learn(stack.counts[:100], stack.layout, seed=1, workers=2, progressbar=False)
    return Task(0, tables, learned.populations(200), kept, 1)


@pytest.mark.parametrize("group", ["areas by themselves", "areas that share a profile"])
@pytest.mark.parametrize("way", ["in blocks", "in blocks, two threads", "blocks of one"])
def test_areas(benchmark, way, group):
    task = of_areas(group)
    step = 1 if way == "blocks of one" else 100
    parts = [replace(task, tables=task.tables.part(k, k + step)) for k in range(0, 1_000, step)]

    def work() -> None:
        with ThreadPoolExecutor(2 if way.endswith("threads") else 1) as pool:
            list(pool.map(run_task, parts))

    timed(benchmark, group, way, work, 1_000, rounds=2)


@pytest.mark.parametrize("method", ["fast", "nuts"])
def test_beside_nuts(benchmark, method):
    sample, size = area(500)
    quiet = contextlib.redirect_stderr(io.StringIO())

    def work() -> None:
        with quiet:
            tc.DirichletLogLinear().fit(
                sample, population_size=size, random_seed=1, method=method, progressbar=False
            )

    name = {"fast": "without a Markov chain", "nuts": "NUTS, compiled before"}[method]
    timed(benchmark, "beside NUTS", name, work)


@pytest.mark.parametrize("way", ["tabulate", "pandas"])
def test_tabulation(benchmark, way):
    rng = np.random.default_rng(1)
    columns = {"area": rng.integers(0, 100, 10**6).astype(str)}
    columns |= {name: rng.integers(0, 9, 10**6).astype(str) for name in ("age", "sex")}
    people = pd.DataFrame(columns)
    names = list(columns)
    ways = {
        "tabulate": lambda: tc.tabulate(people, names),
        "pandas": lambda: people.groupby(names).size().to_xarray().fillna(0).astype(int),
    }
    timed(benchmark, "a million records", way, ways[way])


def variates(what: str) -> tuple[str, Callable[[], object], float]:
    """Something that the machine does as fast as it can, in millions."""
    rng, values = np.random.default_rng(1), np.zeros(10**6)
    many, counts = np.ones(25 * 10**6), rng.integers(5, 50, 10**6)
    found = {
        "uniform": ("random numbers", lambda: rng.random(out=values), 1.0),
        "gamma": ("gamma variates", lambda: rng.standard_gamma(3.0, out=values), 1.0),
        "binomial": ("binomial variates", lambda: rng.binomial(counts, 0.3), 1.0),
        "logarithm": ("logarithms", lambda: np.log(values + 1.5), 1.0),
        "copy": ("numbers copied in memory", lambda: many.copy(), 25.0),
    }
    return found[what]


@pytest.mark.parametrize("what", ["uniform", "gamma", "binomial", "logarithm", "copy"])
def test_the_machine(benchmark, what):
    name, work, millions = variates(what)
    timed(benchmark, "the machine", name, work, millions)


def test_populations_a_second(benchmark):
    """Dirichlet-multinomial draws, beside what random numbers cost."""
    sample, size = area(500)
    from taciturn.estimators.sampling.draws import draw_dirichlet_multinomial

    rng, counts = np.random.default_rng(1), sample.values.ravel()
    weights = np.tile(counts + 0.5, (10_000, 1))
    work = lambda: draw_dirichlet_multinomial(size - int(counts.sum()), weights, rng)  # noqa: E731
    timed(benchmark, "the machine", "cells of populations drawn", work, weights.size / 1e6)
