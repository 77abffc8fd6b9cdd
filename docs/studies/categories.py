"""How well the intervals of single categories hold: R2, R1 and tau1 of each row and
column of a table, from a fit of the whole.

Run as ``python docs/studies/categories.py``, a quarter of an hour on two cores. It can
be interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/categories.csv`` and
``docs/explanation/_categories.md``. Seeds are fixed, and each sample has its own,
whatever the number of workers."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from candidates import Table
from default_estimator import FRACTIONS, joined, populations, publish, study_parser
from fresh_tables import KINDS
from kept import Sample, rows_of, samples_of

import taciturn as tc
from taciturn.fits.risk import measures
from taciturn.risk.table_risk import DEFAULT_WEIGHTS

GENERATED = ("_50000",)  # of the design's generated tables
FRESH = ("household", "rates")
MEASURES = ("R2", "R1", "tau1")
SAMPLED = {"nobody": 0, "1 to 4": 4, "5 to 19": 19, "20 and more": 10**9}
"""People of a category in the sample: the most of each group."""


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=40, draws=500, seed=2032).parse_args()
    every = dict(tables())
    jobs = samples_of(given, every, FRACTIONS)
    found = rows_of(given, "categories.jsonl", one, jobs, every)
    text = markdown(found, given.samples)
    table = summed(found, ["table", "fraction", "variable", "category", "measure"])
    publish(given, "categories", table.round(6).to_csv(index=False), text)


def tables() -> Iterator[tuple[str, Table]]:
    """The census tables and the generated ones of 50,000 of the design, and two of the
    fresh tables, one of three variables and one of thirty areas.
    """
    for part in ("census", "generated"):
        for name, population in populations(part, 2027):
            if part == "census" or name.endswith(GENERATED):
                yield name, Table(population)
    for name in FRESH:
        yield name, KINDS[name](np.random.default_rng([2029, list(KINDS).index(name)]))


def one(table: Table, job: Sample, seed: int, draws: int) -> list[dict[str, Any]]:
    """Draw a sample, fit the default to it, and compare the risk of each category with
    the true one.
    """
    population = table.population
    rng = np.random.default_rng([seed, job.number, round(1000 * job.fraction)])
    sample = tc.draw_sample(population, fraction=job.fraction, random_seed=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        fit = tc.default_estimator(sample).fit(
            sample,
            population_size=int(population.sum()),
            draws=draws,
            chains=1,
            random_seed=job.number,
            progressbar=False,
        )
    dims = list(map(str, population.dims))
    fit = tc.assess(fit, by=dims)
    fillable, rows = np.ones(population.shape, dtype=bool), []
    for axis, dim in enumerate(dims):
        own = measures(population.values[None], sample.values, fillable, axis, DEFAULT_WEIGHTS)
        others = [other for other in dims if other != dim]
        size = {"sampled": sample.sum(others).values, "people": population.sum(others).values}
        for name in MEASURES:
            values = fit[f"risk_by_{dim}"][name].transpose("chain", "draw", dim).values[0]
            how = "inverted_cdf" if name == "tau1" else "linear"
            low, high = np.quantile(values, [0.025, 0.975], axis=0, method=how)
            found = {"truth": own[name][0], "low": low, "high": high, "mean": values.mean(axis=0)}
            for k in range(population.sizes[dim]):
                one = {key: float(each[k]) for key, each in (found | size).items()}
                rows.append({"variable": dim, "category": k + 1, "measure": name, **one})
    return rows


def summed(found: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Over the samples, and over what else is no key."""
    error = found["mean"] - found["truth"]
    more = found.assign(
        covers=(found["low"] <= found["truth"]) & (found["truth"] <= found["high"]),
        above=found["truth"] > found["high"],
        bias=error,
        square=error**2,
        width=found["high"] - found["low"],
    )
    means = ["truth", "covers", "above", "bias", "square", "width", "sampled", "people"]
    table = more.groupby(keys, sort=False)[means].mean().reset_index()
    table["rmse"] = np.sqrt(table.pop("square"))
    return table


def markdown(found: pd.DataFrame, samples: int) -> str:
    """For each table, fraction and variable how many categories were covered, and the
    same by the people of a category in the sample.
    """
    head = ["table", "n/N", "variable", "categories", "R2", "covers R2", "lowest"]
    head += ["below 0.90", "above the interval", "bias", "RMSE", "width", "covers R1", "covers τ1"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * 11])]
    keys = ["table", "fraction", "variable"]
    each = summed(found, [*keys, "category", "measure"])
    for key, own in summed(found, [*keys, "measure"]).groupby(keys, sort=False):
        by = own.set_index("measure")
        single = each[(each[keys] == list(key)).all(axis=1) & (each["measure"] == "R2")]["covers"]
        r2 = by.loc["R2"]
        numbers = [str(len(single)), f"{r2.truth:.3f}", f"{r2.covers:.2f}", f"{single.min():.2f}"]
        numbers += [str((single < 0.9).sum()), f"{r2.above:.2f}", f"{r2.bias:+.3f}"]
        numbers += [f"{r2.rmse:.3f}", f"{r2.width:.3f}"]
        numbers += [f"{by.loc[name, 'covers']:.2f}" for name in ("R1", "tau1")]
        lines.append(joined([key[0], f"{key[1]:g}", key[2], *numbers]))
    short = ["people in the sample", "intervals", "R2", "covers R2", "above the interval", "bias"]
    rows = [joined([*short, "RMSE", "width"]), joined(["---", *["---:"] * 7])]
    least = -1
    r2 = found[found["measure"] == "R2"]
    for name, most in SAMPLED.items():
        part = r2[(r2["sampled"] > least) & (r2["sampled"] <= most)]
        own = summed(part, ["measure"]).iloc[0]
        numbers = [f"{len(part):,}", f"{own.truth:.3f}", f"{own.covers:.3f}", f"{own.above:.3f}"]
        numbers += [f"{own.bias:+.3f}", f"{own.rmse:.3f}", f"{own.width:.3f}"]
        rows.append(joined([name, *numbers]))
        least = most
    note = f"{samples} samples of each table at each sampling fraction.\n"
    return "\n".join([note, *rows, "", *lines]) + "\n"


if __name__ == "__main__":
    main()
