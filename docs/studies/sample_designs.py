"""How well intervals hold where samples are not simple random ones: in strata, with
unequal probabilities, and in two stages.

Run as ``python docs/studies/sample_designs.py``, some minutes on two cores. The
results are ``docs/studies/sample_designs.csv`` and
``docs/explanation/_sample_designs.md``. Seeds are fixed, and each sample has its own,
whatever the number of workers."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import HERE, joined, write

import taciturn as tc

Floats = npt.NDArray[np.float64]
FRACTIONS = (0.1, 0.05)
ESTIMATORS = {"MixedPoisson": tc.MixedPoisson(), "DirichletLogLinear": tc.DirichletLogLinear()}
CLUSTER = 10  # people, of whom half are sampled


class Sample(NamedTuple):
    """A sample, and what each way to fit it is told of how it was drawn."""

    table: xr.DataArray
    told: dict[str, dict[str, Any]]


def main() -> None:
    """Run the study and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--seed", type=int, default=2028)
    given = parser.parse_args()
    jobs = [
        joblib.delayed(one)(name, population, design, fraction, (given.seed, number), given.draws)
        for name, population in populations()
        for fraction in FRACTIONS
        for design in DESIGNS
        for number in range(given.samples)
    ]
    found = joblib.Parallel(n_jobs=given.workers, verbose=1)(jobs)
    rows = pd.DataFrame([row for some in found for row in some])
    keys = ["table", "fraction", "design", "told", "estimator", "measure"]
    table = rows.groupby(keys, sort=False).agg(
        truth=("truth", "mean"),
        coverage=("covers", "mean"),
        bias=("bias", "mean"),
        width=("width", "mean"),
        effective=("effective", "mean"),
        by_nuts=("by_nuts", "sum"),
    )
    table = table.reset_index()
    write(HERE / "sample_designs.csv", table.round(6).to_csv(index=False))
    text = markdown(table, given.samples)
    write(HERE.parent / "explanation" / "_sample_designs.md", text)
    print(text)


def populations() -> Iterator[tuple[str, xr.DataArray]]:
    """Two census tables of ten areas."""
    for name in ("religion", "mode_of_travel"):
        yield name, tc.load_dataset(f"area_by_{name}")


def one(
    name: str,
    population: xr.DataArray,
    design: str,
    fraction: float,
    seed: tuple[int, int],
    draws: int,
) -> list[dict[str, Any]]:
    """Draw a sample, fit it in each way, and compare the risk with the true one."""
    rng = np.random.default_rng([*seed, list(DESIGNS).index(design), round(1000 * fraction)])
    sample = DESIGNS[design](population, fraction, rng)
    size = int(population.sum())
    truth = {
        "R2": float(tc.risk.disclosure_risk(population, sample.table)["R2"]),
        "tau1": float(tc.risk.unique_risk(population, sample.table)["tau1"]),
    }
    rows = []
    for (told, arguments), (which, estimator) in product(sample.told.items(), ESTIMATORS.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tc.ConvergenceWarning)
            fit = estimator.fit(
                sample.table,
                population_size=size,
                draws=draws,
                chains=1,
                random_seed=seed[1],
                progressbar=False,
                **arguments,
            )
        risk = tc.assess(fit)["risk"]
        for measure, true in truth.items():
            values = risk[measure].values.ravel()
            low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
            rows.append(
                {
                    "table": name,
                    "fraction": fraction,
                    "design": design,
                    "told": told,
                    "estimator": which,
                    "measure": measure,
                    "truth": true,
                    "covers": low <= true <= high,
                    "bias": values.mean() - true,
                    "width": high - low,
                    "effective": arguments.get("effective_size", sample.table.sum().item()),
                    "by_nuts": fit.attrs["sampler"] != "importance sampling",
                }
            )
    return rows


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
    strata = population.sum(population.dims[1])
    weights = table * (strata / table.sum(population.dims[1]))
    return Sample(
        table,
        {
            "nothing": {},
            "strata": {"strata": strata},
            "weights": {
                "sampling_weights": weights,
                "effective_size": float(weights.sum() ** 2 / (weights**2 / table).sum()),
            },
        },
    )


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
    told = {"sampling_weights": weights, "effective_size": kish(weight)}
    return Sample(table.astype(int), {"nothing": {}, "weights": told})


def two_stages(population: xr.DataArray, fraction: float, rng: np.random.Generator) -> Sample:
    """Groups of ten neighbours, who are alike: some of the groups, and half of each."""
    cell = people(population)
    row, column = np.unravel_index(cell, population.shape)
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
    weights = table * (len(cell) / size)
    effective = max(size / design_effect([cell[group] for group in chosen], population.size), 1.0)
    return Sample(
        table,
        {
            "nothing": {},
            "weights": {"sampling_weights": weights},
            "weights and effective size": {
                "sampling_weights": weights,
                "effective_size": min(effective, float(size)),
            },
        },
    )


DESIGNS: dict[str, Callable[[xr.DataArray, float, np.random.Generator], Sample]] = {
    "strata": stratified,
    "unequal": unequal,
    "two stages": two_stages,
}


def people(population: xr.DataArray) -> npt.NDArray[np.int64]:
    """The cell of each individual."""
    return np.repeat(np.arange(population.size), population.values.ravel())


def kish(weight: Floats) -> float:
    """Size of a simple random sample whose totals are as precise (Kish 1965)."""
    return float(weight.sum() ** 2 / (weight**2).sum())


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


def markdown(table: pd.DataFrame, samples: int) -> str:
    """For each design and way to fit the means over tables and fractions, and the
    lowest coverage; and a row for each.
    """
    short = ["design", "told", "estimator", "covers R2", "lowest", "bias", "width", "covers τ1"]
    lines = [joined(short), joined(["---"] * 3 + ["---:"] * 5)]
    of_r2, of_tau = (table[table["measure"] == measure] for measure in ("R2", "tau1"))
    ways = ["design", "told", "estimator"]
    for way, cells in of_r2.groupby(ways, sort=False):
        tau = of_tau.set_index(ways).loc[way, "coverage"].mean()
        numbers = (cells["coverage"].mean(), cells["coverage"].min())
        shown = [*(f"{x:.2f}" for x in numbers), f"{cells['bias'].mean():+.3f}"]
        lines.append(joined([*way, *shown, f"{cells['width'].mean():.3f}", f"{tau:.2f}"]))
    head = ["table", "n/N", "design", "told", "estimator", "n or effective size", "R2"]
    head += ["covers R2", "bias", "width", "covers τ1"]
    rows = [joined(head), joined(["---", "---:", "---", "---", "---", *["---:"] * 6])]
    keys = ["table", "fraction", *ways]
    for (name, fraction, *way), cell in table.groupby(keys, sort=False):
        r2, tau = (cell[cell["measure"] == m].iloc[0] for m in ("R2", "tau1"))
        numbers = [f"{r2.effective:.0f}", f"{r2.truth:.3f}", f"{r2.coverage:.2f}"]
        numbers += [f"{r2.bias:+.3f}", f"{r2.width:.3f}", f"{tau.coverage:.2f}"]
        rows.append(joined([name, f"{fraction:g}", *way, *numbers]))
    fits = of_r2["by_nuts"].sum()
    note = (
        f"{samples} samples of each of two tables at two sampling fractions: means over the four,"
        f" and the lowest coverage; {int(fits)} of {len(of_r2) * samples} fits needed NUTS.\n"
    )
    return "\n".join([note, *lines, "", *rows]) + "\n"


if __name__ == "__main__":
    main()
