"""How well intervals hold of a model in which nobody can be in some cells: on the
populations of ``impossible_cells.py``, where that is so, and on those of
``new_populations.py``, where it is not.

Run as ``python docs/studies/zero_inflated.py``, an hour on two cores, after these two.
It can be interrupted: what is done is kept in ``--store`` (a folder) and the
same command continues. The results are ``docs/studies/zero_inflated.csv`` and
``docs/explanation/_zero_inflated.md``, with the default's from the files of the others.
Seeds are fixed: populations and samples are those of the others."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

import impossible_cells
import new_populations
from default_estimator import FRACTIONS, HERE, joined, publish, study_parser
from kept import Sample, rows_of, samples_of
from new_populations import KEYS, intervals, summed

import taciturn as tc

NAMES = DEFAULT, ZEROS = "default", "with zeros"


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=40, draws=500, seed=0).parse_args()
    every = {**impossible_cells.KINDS, **new_populations.EVERY}
    jobs = samples_of(given, every, FRACTIONS)
    found = rows_of(given, "zero_inflated.jsonl", one, jobs, every)
    table = summed(found, [*KEYS, "estimator", "measure"]).round(6)
    publish(given, "zero_inflated", table.to_csv(index=False), markdown(table, given.samples))


def one(
    kind: impossible_cells.Kind | new_populations.Kind, job: Sample, seed: int, draws: int
) -> list[dict[str, Any]]:
    """Make a population, draw a sample, and compare the intervals with the truth."""
    if isinstance(kind, impossible_cells.Kind):
        population, sample, _ = impossible_cells.drawn(kind, job, impossible_cells.SEED + seed)
    else:
        population, sample = new_populations.drawn(kind, job, new_populations.SEED + seed)
    rows = intervals(model_of(sample), population, sample, job.number, draws)
    return [{"estimator": ZEROS, **row} for row in rows]


def model_of(sample: xr.DataArray) -> tc.MixedPoisson:
    """The model, otherwise as the default has it."""
    own = tc.default_estimator(sample).members["mixture"]
    return replace(own, mixing="gamma", zero_inflated=True)


def markdown(table: pd.DataFrame, samples: int) -> str:
    """All together, where nobody can be in some cells and where not, and each."""
    columns = list(table.columns)
    files = {"impossible_cells": "not told", "new_populations": DEFAULT}
    others = [
        pd.read_csv(HERE / f"{name}.csv").query("estimator == @own") for name, own in files.items()
    ]
    every = pd.concat([table, *(own.assign(estimator=DEFAULT)[columns] for own in others)])
    cells = every.set_index(["measure", "estimator", *KEYS]).sort_index()
    head = ["populations", "measure", "estimator", "covers, mean", "lowest", "cells below 0.90"]
    head += ["bias, mean", "RMSE, relative", "width, relative", "interval score, relative"]
    lines = [joined(head), joined(["---"] * 3 + ["---:"] * 7)]
    apart = {"some cells impossible": impossible_cells.KINDS, "none": new_populations.EVERY}
    for title, kinds in apart.items():
        for measure in new_populations.MEASURES:
            base, zeros = (cells.loc[(measure, name)].loc[sorted(kinds)] for name in NAMES)
            for name, own in zip(NAMES, (base, zeros), strict=True):
                ratios = (own / base)[["rmse", "width", "score"]].median()
                numbers = [f"{own.covers.mean():.3f}", f"{own.covers.min():.3f}"]
                numbers += [f"{(own.covers < 0.9).sum()} of {len(own)}", f"{own.bias.mean():+.3f}"]
                lines.append(
                    joined([title, measure, name, *numbers, *map("{:.2f}".format, ratios)])
                )
    head = ["table", "n/N", "R2"]
    for name in NAMES:
        head += [f"{name}: covers R2", "bias", "RMSE", "width"]
    rows = [joined(head), joined(["---", *["---:"] * (len(head) - 1)])]
    for key in table.groupby(KEYS, sort=False).groups:
        found = [f"{cells.loc[('R2', DEFAULT, *key), 'truth']:.3f}"]
        for name in NAMES:
            own = cells.loc[("R2", name, *key)]
            found += [
                f"{own.covers:.3f}",
                f"{own.bias:+.3f}",
                f"{own.rmse:.3f}",
                f"{own.width:.3f}",
            ]
        rows.append(joined([key[0].replace("_", " "), f"{key[1]:g}", *found]))
    note = f"{samples} populations, with a sample each, at each sampling fraction.\n"
    return "\n".join([note, *lines, "", *rows]) + "\n"


if __name__ == "__main__":
    main()
