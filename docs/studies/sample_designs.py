"""How well intervals hold where samples are not simple random ones: in strata, with
unequal probabilities, and in two stages; and where totals of the population are known.

Run as ``python docs/studies/sample_designs.py``, an hour on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/sample_designs.csv`` and
``docs/explanation/_sample_designs.md``. Seeds are fixed, and each sample has its own,
whatever the number of workers."""

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from candidates import Table
from default_estimator import joined, publish, study_parser
from fresh_tables import KINDS
from kept import rows_of

import taciturn as tc
from taciturn.estimators.problem import make_problem
from taciturn.fits.unlabelled import measure
from taciturn.risk.table_risk import DEFAULT_WEIGHTS

Floats = npt.NDArray[np.float64]
FRACTIONS = (0.1, 0.05)
CLUSTER = 10  # people, of whom half are sampled
FRESH = ("household", "labour")  # of three and of four variables
MEASURES = ("R2", "R1", "tau1")


class Sample(NamedTuple):
    """A sample, and what each way to fit it is told of how it was drawn."""

    table: xr.DataArray
    told: dict[str, dict[str, Any]]


class Job(NamedTuple):
    """One sample of a population."""

    table: str
    design: str
    fraction: float
    number: int


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=60, draws=500, seed=2028).parse_args()
    every = dict(populations())
    jobs = [
        Job(name, design, fraction, number)
        for name in every
        if not given.tables or any(part in name for part in given.tables)
        for number in range(given.samples)
        for fraction in FRACTIONS
        for design in DESIGNS
    ]
    found = rows_of(given, "sample_designs.jsonl", one, jobs, every)
    table = summed(found)
    text = markdown(table, given.samples, int(found["by_nuts"].sum()), len(found) // len(MEASURES))
    publish(given, "sample_designs", table.round(6).to_csv(index=False), text)


def populations() -> Iterator[tuple[str, Table]]:
    """Two census tables of ten areas, and two of the fresh tables."""
    for name in ("religion", "mode_of_travel"):
        yield name, Table(tc.load_dataset(f"area_by_{name}"))
    for name in FRESH:
        yield name, KINDS[name](np.random.default_rng([2029, list(KINDS).index(name)]))


def estimators(sample: xr.DataArray, told: dict[str, Any]) -> dict[str, tc.estimators.Estimator]:
    """The default, and a Dirichlet model where it learns from what is known."""
    found = {"default": tc.default_estimator(sample, **told)}
    if "strata" in told or "known_margins" in told:
        found["DirichletLogLinear"] = tc.DirichletLogLinear()
    return found


def one(table: Table, job: Job, seed: int, draws: int) -> list[dict[str, Any]]:
    """Draw a sample, fit it in each way, and compare the risk with the true one."""
    population, zeros = table
    which = list(DESIGNS).index(job.design)
    rng = np.random.default_rng([seed, job.number, which, round(1000 * job.fraction)])
    sample = DESIGNS[job.design](population, job.fraction, rng)
    size = int(population.sum())
    problem = make_problem(sample.table, size, zeros)
    r1, r2, tau1 = measure(population.values.reshape(1, -1), problem, DEFAULT_WEIGHTS)[:, 0]
    truth = {"R2": float(r2), "R1": float(r1), "tau1": float(tau1)}
    rows = []
    for told, arguments in sample.told.items():
        for name, estimator in estimators(sample.table, arguments).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tc.ConvergenceWarning)
                fit = estimator.fit(
                    sample.table,
                    population_size=size,
                    structural_zeros=zeros,
                    draws=draws,
                    chains=1,
                    random_seed=job.number,
                    progressbar=False,
                    **arguments,
                )
            risk = tc.assess(fit)["risk"]
            effective = arguments.get("effective_size", problem.sample_size)
            by_nuts = any(name in fit.attrs["sampler"] for name in ("nutpie", "PyMC NUTS"))
            for name_of, true in truth.items():
                values = risk[name_of].values.ravel()
                how = "inverted_cdf" if name_of == "tau1" else "linear"
                low, high = np.quantile(values, [0.025, 0.975], method=how).tolist()
                found = {"told": told, "estimator": name, "measure": name_of, "truth": true}
                found |= {"covers": low <= true <= high, "bias": float(values.mean() - true)}
                rows.append(
                    found | {"width": high - low, "effective": effective, "by_nuts": by_nuts}
                )
    return rows


def summed(found: pd.DataFrame) -> pd.DataFrame:
    """Over the samples of each table and fraction."""
    keys = ["table", "fraction", "design", "told", "estimator", "measure"]
    return (
        found.groupby(keys, sort=False)
        .agg(
            truth=("truth", "mean"),
            coverage=("covers", "mean"),
            bias=("bias", "mean"),
            rmse=("bias", lambda bias: float(np.sqrt((bias**2).mean()))),
            width=("width", "mean"),
            effective=("effective", "mean"),
        )
        .reset_index()
    )


def simple(population: xr.DataArray, fraction: float, rng: np.random.Generator) -> Sample:
    """A simple random sample, of which the totals by the first variable are known."""
    table = tc.draw_sample(population, fraction=fraction, random_seed=rng)
    margins = population.sum(population.dims[1:])
    return Sample(table, {"nothing": {}, "totals": {"known_margins": margins}})


def stratified(population: xr.DataArray, fraction: float, rng: np.random.Generator) -> Sample:
    """Categories of the first variable are strata: in every other one five times as
    many are sampled.
    """
    dim = population.dims[0]
    rates = fraction * np.where(np.arange(population.sizes[dim]) % 2, 5 / 3, 1 / 3)
    parts = []
    for number, rate in enumerate(rates):
        people = population.isel({dim: [number]})
        size = min(max(1, round(rate * int(people.sum()))), int(people.sum()))
        drawn = rng.multivariate_hypergeometric(people.values.ravel(), size)
        parts.append(people.copy(data=drawn.reshape(people.shape)))
    table = xr.concat(parts, dim)
    strata = population.sum(population.dims[1:])
    weights = (table * (strata / table.sum(population.dims[1:]))).fillna(0.0)
    told = {"strata": {"strata": strata}, "weights": {"sampling_weights": weights}}
    return Sample(table, {"nothing": {}, **told})


def unequal(population: xr.DataArray, fraction: float, rng: np.random.Generator) -> Sample:
    """Systematic sampling with probabilities that vary by the second variable and from
    person to person, each log-normal with standard deviation 0.5.
    """
    cell = people(population)
    size = round(fraction * len(cell))
    column = np.unravel_index(cell, population.shape)[1]
    log_chance = 0.5 * rng.normal(size=population.shape[1])[column]
    chance = np.exp(log_chance + 0.5 * rng.normal(size=len(cell)))
    inclusion = np.ones(len(cell))
    certain = np.zeros(len(cell), dtype=bool)
    while True:  # those who would be sampled more than once are sampled with certainty
        left = size - certain.sum()
        inclusion[~certain] = left * chance[~certain] / chance[~certain].sum()
        if not (more := (inclusion > 1)).any():
            break
        certain |= more
        inclusion[certain] = 1.0
    order = rng.permutation(len(cell))
    steps = np.floor(np.cumsum(inclusion[order]) + rng.random() - 1e-9).astype(int)
    chosen = order[np.flatnonzero(np.diff(steps, prepend=0))]
    weight = 1 / inclusion[chosen]
    table, weights = (
        population.copy(
            data=np.bincount(cell[chosen], w, population.size).reshape(population.shape)
        )
        for w in (None, weight)
    )
    told = {"weights": {"sampling_weights": weights}}
    return Sample(table.astype(int), {"nothing": {}, **told})


def two_stages(population: xr.DataArray, fraction: float, rng: np.random.Generator) -> Sample:
    """Groups of ten neighbours, who are alike: some of the groups, and half of each."""
    cell = people(population)
    row, column, *_ = np.unravel_index(cell, population.shape)
    likeness = rng.permutation(population.shape[1])[column] + 3 * rng.normal(size=len(cell))
    order = np.lexsort((likeness, row))
    groups = [order[start : start + CLUSTER] for start in range(0, len(order), CLUSTER)]
    number = round(fraction * len(cell) / (CLUSTER / 2))
    chosen = [
        rng.choice(groups[group], size=(len(groups[group]) + 1) // 2, replace=False)
        for group in rng.choice(len(groups), size=number, replace=False)
    ]
    table = population.copy(
        data=np.bincount(cell[np.concatenate(chosen)], minlength=population.size).reshape(
            population.shape
        )
    )
    size = int(table.sum())
    effective = max(size / design_effect([cell[group] for group in chosen], population.size), 1.0)
    weights = table * (len(cell) / size)
    told = {"sampling_weights": weights, "effective_size": min(effective, float(size))}
    return Sample(table, {"nothing": {}, "effective size": told})


DESIGNS: dict[str, Callable[[xr.DataArray, float, np.random.Generator], Sample]] = {
    "simple random": simple,
    "strata": stratified,
    "unequal": unequal,
    "two stages": two_stages,
}


def people(population: xr.DataArray) -> npt.NDArray[np.int64]:
    """The cell of each individual."""
    return np.repeat(np.arange(population.size), population.values.ravel())


def design_effect(groups: list[npt.NDArray[np.int64]], cells: int) -> float:
    """``1 + (m - 1) rho`` for groups of m people on average, with the correlation rho
    of the cells within groups from the analysis of variance.
    """
    counts = np.array([np.bincount(group, minlength=cells) for group in groups], dtype=float)
    sizes = counts.sum(axis=1, keepdims=True)
    total, number = sizes.sum(), len(groups)
    shares = counts.sum(axis=0) / total
    between = (sizes * (counts / sizes - shares) ** 2).sum() / (number - 1)
    within = (counts * (1 - counts / sizes)).sum() / (total - number)
    size = (total - (sizes**2).sum() / total) / (number - 1)
    correlation = (between - within) / (between + (size - 1) * within)
    return float(1 + (total / number - 1) * max(correlation, 0.0))


def markdown(table: pd.DataFrame, samples: int, by_nuts: int, fits: int) -> str:
    """For each design and way to fit the means over tables and fractions, and the
    lowest coverage; and a row for each.
    """
    short = ["design", "told", "estimator", "covers R2", "lowest", "bias", "RMSE", "width"]
    short += ["covers R1", "lowest", "covers τ1", "lowest"]
    lines = [joined(short), joined(["---"] * 3 + ["---:"] * 9)]
    ways = ["design", "told", "estimator"]
    by = {measure: own.set_index(ways) for measure, own in table.groupby("measure", sort=False)}
    for way in dict.fromkeys(by["R2"].index):
        r2, r1, tau = (by[measure].loc[[way]] for measure in MEASURES)
        shown = [f"{r2['coverage'].mean():.2f}", f"{r2['coverage'].min():.2f}"]
        shown += [f"{r2['bias'].mean():+.3f}"] + [f"{r2[x].mean():.3f}" for x in ("rmse", "width")]
        for other in (r1, tau):
            shown += [f"{other['coverage'].mean():.2f}", f"{other['coverage'].min():.2f}"]
        lines.append(joined([*way, *shown]))
    head = ["table", "n/N", "design", "told", "estimator", "n or effective size", "R2"]
    head += ["covers R2", "bias", "RMSE", "width", "covers R1", "covers τ1"]
    rows = [joined(head), joined(["---", "---:", "---", "---", "---", *["---:"] * 8])]
    keys = ["table", "fraction", *ways]
    for (name, fraction, *way), cell in table.groupby(keys, sort=False):
        r2, r1, tau = (cell[cell["measure"] == m].iloc[0] for m in MEASURES)
        numbers = [f"{r2.effective:.0f}", f"{r2.truth:.3f}", f"{r2.coverage:.2f}"]
        numbers += [f"{r2.bias:+.3f}", f"{r2.rmse:.3f}", f"{r2.width:.3f}"]
        numbers += [f"{r1.coverage:.2f}", f"{tau.coverage:.2f}"]
        rows.append(joined([name, f"{fraction:g}", *way, *numbers]))
    cells = len(table[["table", "fraction"]].drop_duplicates())
    note = (
        f"{samples} samples of each table at each sampling fraction: means over the {cells}, and"
        f" the lowest coverage; {by_nuts // len(MEASURES)} of {fits} fits needed NUTS.\n"
    )
    return "\n".join([note, *lines, "", *rows]) + "\n"


if __name__ == "__main__":
    main()
