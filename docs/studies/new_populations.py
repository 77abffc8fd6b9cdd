"""How well the default's intervals hold where each sample is of a population of its
own: kinds of the generated tables of the design, with new seeds, but for the largest,
which take too long.

Run as ``python docs/studies/new_populations.py``, an hour on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/new_populations.csv`` and
``docs/explanation/_new_populations.md``. Seeds are fixed, and each population has its
own, whatever the number of workers."""

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, SIZES, joined, publish, study_parser
from generated import KINDS, generated_population
from kept import Sample, rows_of, samples_of

import taciturn as tc

SEED = 40_000
MEASURES = ("R2", "R1", "tau1")
KEYS = ["table", "fraction"]


class Kind(NamedTuple):
    """Of populations."""

    name: str
    size: int


EVERY = {f"{name}_{size}": Kind(name, size) for name in KINDS for size in SIZES[:2]}
"""Kinds by name."""


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=40, draws=500, seed=SEED).parse_args()
    jobs = samples_of(given, EVERY, FRACTIONS)
    found = rows_of(given, "new_populations.jsonl", one, jobs, EVERY)
    text = markdown(found, given.samples)
    table = summed(found, [*KEYS, "estimator", "measure"])
    publish(given, "new_populations", table.round(6).to_csv(index=False), text)


def one(kind: Kind, job: Sample, seed: int, draws: int) -> list[dict[str, Any]]:
    """Make a population, draw a sample, and compare the intervals of the default and of
    the families with the truth.
    """
    population, sample = drawn(kind, job, seed)
    models = {"default": tc.default_estimator(sample), "families": tc.LinearPool()}
    return [
        {"estimator": name, **row}
        for name, model in models.items()
        for row in intervals(model, population, sample, job.number, draws)
    ]


def drawn(kind: Kind, job: Sample, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
    """A population and a sample of it."""
    population = generated_population(kind.name, kind.size, seed + job.number)
    return population, tc.draw_sample(population, fraction=job.fraction, random_seed=job.number)


def intervals(
    model: tc.estimators.Estimator,
    population: xr.DataArray,
    sample: xr.DataArray,
    seed: int,
    draws: int,
    structural_zeros: xr.DataArray | None = None,
) -> list[dict[str, Any]]:
    """The truth of each measure, and what a fit says of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        fit = model.fit(
            sample,
            population_size=int(population.sum()),
            structural_zeros=structural_zeros,
            draws=draws,
            random_seed=seed,
            progressbar=False,
        )
    fillable = None if structural_zeros is None else ~structural_zeros
    true = tc.disclosure_risk(population, sample, where=fillable)
    truth = {name: float(true[name]) for name in ("R1", "R2")}
    truth["tau1"] = float(((population == 1) & (sample == 1)).sum())
    fit, rows = tc.assess(fit), []
    for name in MEASURES:
        values = fit["risk"][name].values.ravel()
        how = "inverted_cdf" if name == "tau1" else "linear"
        low, high = np.quantile(values, [0.025, 0.975], method=how)
        own = {"truth": truth[name], "mean": float(values.mean())}
        rows.append({"measure": name, **own, "low": float(low), "high": float(high)})
    return rows


def summed(found: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Over the populations, and over what else is no key."""
    error = found["mean"] - found["truth"]
    missed = (found["low"] - found["truth"]).clip(lower=0)
    missed += (found["truth"] - found["high"]).clip(lower=0)
    width = found["high"] - found["low"]
    more = found.assign(
        covers=missed == 0, bias=error, square=error**2, width=width, score=width + 40 * missed
    )
    means = ["truth", "covers", "bias", "square", "width", "score"]
    table = more.groupby(keys, sort=False)[means].mean().reset_index()
    table["rmse"] = np.sqrt(table.pop("square"))
    return table


def markdown(found: pd.DataFrame, samples: int) -> str:
    """All cells together, and each of them."""
    by = ["measure", "estimator", *KEYS]
    cells = summed(found, by).set_index(by).sort_index()
    head = ["measure", "estimator", "covers, mean", "lowest", "cells below 0.90", "above 0.99"]
    head += ["RMSE, relative", "width, relative", "interval score, relative"]
    rows = [joined(head), joined(["---", "---", *["---:"] * 7])]
    for name in MEASURES:
        for estimator in ("families", "default"):
            own, base = cells.loc[(name, estimator)], cells.loc[(name, "families")]
            ratios = (own / base)[["rmse", "width", "score"]].median()
            numbers = [f"{own.covers.mean():.3f}", f"{own.covers.min():.3f}"]
            numbers += [f"{(own.covers < 0.9).sum()}", f"{(own.covers > 0.99).sum()}"]
            rows.append(joined([name, estimator, *numbers, *map("{:.2f}".format, ratios)]))
    head = ["table", "n/N", "R2", "covers R2", "bias", "RMSE", "width", "covers R1", "covers τ1"]
    lines = [joined([*head, "families: cover R2", "RMSE", "width"])]
    lines.append(joined(["---", *["---:"] * 11]))
    for key in found.groupby(KEYS, sort=False).groups:
        own, families = (cells.loc[("R2", name, *key)] for name in ("default", "families"))
        numbers = [f"{own.truth:.3f}", f"{own.covers:.3f}", f"{own.bias:+.3f}", f"{own.rmse:.3f}"]
        numbers += [f"{own.width:.3f}"]
        for name in ("R1", "tau1"):
            numbers.append(f"{cells.loc[(name, 'default', *key), 'covers']:.3f}")
        numbers += [f"{families.covers:.3f}", f"{families.rmse:.3f}", f"{families.width:.3f}"]
        lines.append(joined([str(key[0]), f"{key[1]:g}", *numbers]))
    note = f"{samples} populations, with a sample each, at each sampling fraction.\n"
    return "\n".join([note, *rows, "", *lines]) + "\n"


if __name__ == "__main__":
    main()
