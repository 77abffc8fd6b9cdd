"""How well the intervals of the default hold on tables of one variable, beside the pool
of two families.

Run as ``python docs/studies/one_variable.py``, half an hour on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/one_variable.csv`` and
``docs/explanation/_one_variable.md``. Seeds are fixed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from candidates import SHOWN, Table, studied
from default_estimator import CENSUS, FRACTIONS, joined, publish, study_parser
from fresh_tables import counted

import taciturn as tc

SIZES = {15: 1_000, 60: 5_000}
"""People of tables with so many categories."""
SHAPES = ("flat", "steps", "zipf", "geometric", "lognormal", "uneven")


def main() -> None:
    """Run or continue the study of every table, and write the results."""
    given = study_parser(__doc__, samples=100, draws=500, seed=2034).parse_args()
    frame = studied(given, "one_variable", tables(given.seed), estimators, FRACTIONS)
    text = markdown(frame, given.samples)
    publish(given, "one_variable", frame.to_csv(index=False, float_format="%.5g"), text)


def estimators(table: Table) -> dict[str, tc.estimators.Estimator]:
    """The default and the pool of two families."""
    return {"default": tc.default_estimator(table.population), "families": tc.LinearPool()}


def tables(seed: int) -> Iterator[tuple[str, Table]]:
    """Margins of the census tables, and categories of a few kinds."""
    for name in CENSUS:
        yield name.removeprefix("area_by_"), Table(tc.load_dataset(name).sum("area"))
    yield "area", Table(tc.load_dataset(CENSUS[0]).sum("religion"))
    for number, (categories, people) in enumerate(SIZES.items()):
        for kind, shape in enumerate(SHAPES):
            rng = np.random.default_rng([seed, number, kind])
            shares = _shares(shape, categories, rng)
            yield f"{shape}_{categories}", Table(counted(shares, people, rng))


def _shares(shape: str, categories: int, rng: np.random.Generator) -> np.ndarray:
    """Shares of categories, up to a constant: all alike; three in ten of them thirty
    times as large; one over the rank; falling by the same factor, to 1/400; log-normal,
    with a standard deviation of 1 and of 2.
    """
    rank = np.arange(categories)
    match shape:
        case "flat":
            return np.ones(categories)
        case "steps":
            return np.where(rank < 0.3 * categories, 30.0, 1.0)
        case "zipf":
            return 1 / (1.0 + rank)
        case "geometric":
            return np.exp(-6 * rank / categories)
    return np.exp((1.0 if shape == "lognormal" else 2.0) * rng.standard_normal(categories))


def markdown(frame: pd.DataFrame, samples: int) -> str:
    """A row for each table and fraction, with the default's numbers and how often the
    families cover R2.
    """
    head = ["table", "categories", "n/N", "R2", "covers R2", "bias", "RMSE", "width"]
    head += ["interval score", "covers R1", "covers τ1", "families: cover R2", "width"]
    lines = [joined(head), joined(["---", *["---:"] * 12])]
    keys = ["table", "cells", "fraction"]
    for (table, cells, fraction), own in frame.groupby(keys, sort=False):
        by = own.set_index(["estimator", "measure"])
        r2 = by.loc[("default", "R2")]
        row = [str(table), str(cells), f"{fraction:g}", f"{r2['truth']:.3f}"]
        row += [format(r2[column], form) for column, form in SHOWN.items()]
        row += [f"{by.loc[('default', name), 'coverage']:.2f}" for name in ("R1", "tau1")]
        families = by.loc[("families", "R2")]
        row += [f"{families['coverage']:.2f}", f"{families['width']:.3f}"]
        lines.append(joined(row))
    return f"{samples} samples a row.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
