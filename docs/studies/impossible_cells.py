"""What becomes of the intervals where nobody can be in some cells and nobody says so:
the default, told of structural zeros and not told.

Run as ``python docs/studies/impossible_cells.py``, half an hour on two cores.
It can be interrupted: what is done is kept in ``--store`` (a folder) and the same
command continues. The results are ``docs/studies/impossible_cells.csv`` and
``docs/explanation/_impossible_cells.md``. Seeds are fixed, and each population has its
own, whatever the number of workers."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, joined, publish, study_parser
from fresh_tables import counted
from kept import Sample, rows_of, samples_of
from new_populations import KEYS, intervals, summed

import taciturn as tc

SEED = 2035
TOLD, UNTOLD, FAMILIES = "told", "not told", "families, not told"


class Kind(NamedTuple):
    """Of populations: margins with log-normal categories, independent where somebody
    can be.
    """

    shape: tuple[int, ...]
    size: int
    impossible: float


KINDS = {
    "a_third_of_12": Kind((12,), 2_000, 1 / 3),
    "half_of_12": Kind((12,), 2_000, 1 / 2),
    "a_tenth_of_4x5": Kind((4, 5), 4_000, 1 / 10),
    "a_quarter_of_4x5": Kind((4, 5), 4_000, 1 / 4),
    "a_fifth_of_8x10": Kind((8, 10), 10_000, 1 / 5),
    "a_third_of_6x5x4": Kind((6, 5, 4), 10_000, 1 / 3),
}
"""Populations by name: their cells, their people, and the part of the cells in which
nobody can be."""


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=40, draws=500, seed=SEED).parse_args()
    jobs = samples_of(given, KINDS, FRACTIONS)
    found = rows_of(given, "impossible_cells.jsonl", one, jobs, KINDS)
    text = markdown(found, given.samples)
    table = summed(found, [*KEYS, "estimator", "measure"])
    publish(given, "impossible_cells", table.round(6).to_csv(index=False), text)


def one(kind: Kind, job: Sample, seed: int, draws: int) -> list[dict[str, Any]]:
    """Make a population, draw a sample, and compare the intervals with the truth."""
    population, sample, zeros = drawn(kind, job, seed)
    model = tc.default_estimator(sample)
    every = [(UNTOLD, model, None), (TOLD, model, zeros), (FAMILIES, tc.LinearPool(), None)]
    return [
        {"estimator": name, **row}
        for name, model, given in every
        for row in intervals(model, population, sample, job.number, draws, given)
    ]


def drawn(kind: Kind, job: Sample, seed: int) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """A population, a sample of it, and where nobody can be."""
    rng = np.random.default_rng([seed, list(KINDS).index(job.table), job.number])
    shares, cells = np.ones(kind.shape), int(np.prod(kind.shape))
    for axis, size in enumerate(kind.shape):
        own = [size if other == axis else 1 for other in range(len(kind.shape))]
        shares = shares * np.exp(0.7 * rng.standard_normal(size)).reshape(own)
    impossible = rng.permutation(cells).reshape(kind.shape) < round(kind.impossible * cells)
    population = counted(np.where(impossible, 0.0, shares), kind.size, rng)
    sample = tc.draw_sample(population, fraction=job.fraction, random_seed=rng)
    return population, sample, population.copy(data=impossible)


def markdown(found: pd.DataFrame, samples: int) -> str:
    """A row for each kind and fraction."""
    cells = summed(found, [*KEYS, "estimator", "measure"]).set_index(
        ["estimator", "measure", *KEYS]
    )
    head = ["impossible", "n/N", "R2", "not told: covers R2", "bias", "width", "covers R1"]
    head += ["families: cover R2", "bias", "told: R2", "covers R2", "bias"]
    lines = [joined(head), joined(["---", *["---:"] * 11])]
    for key in found.groupby(KEYS, sort=False).groups:
        own = cells.loc[(UNTOLD, "R2", *key)]
        families, told = cells.loc[(FAMILIES, "R2", *key)], cells.loc[(TOLD, "R2", *key)]
        numbers = [f"{own.truth:.3f}", f"{own.covers:.3f}", f"{own.bias:+.3f}", f"{own.width:.3f}"]
        numbers += [f"{cells.loc[(UNTOLD, 'R1', *key), 'covers']:.3f}"]
        numbers += [f"{families.covers:.3f}", f"{families.bias:+.3f}"]
        numbers += [f"{told.truth:.3f}", f"{told.covers:.3f}", f"{told.bias:+.3f}"]
        lines.append(joined([key[0].replace("_", " "), f"{key[1]:g}", *numbers]))
    return f"{samples} populations, with a sample each, a row.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
