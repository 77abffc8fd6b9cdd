"""How well the intervals of R2, R1 and tau1 hold on tables that were made after the
estimators: two to five variables, with interactions, structural zeros and even margins.

Run as ``python docs/studies/fresh_tables.py``, half an hour on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/fresh_tables.csv`` and
``docs/explanation/_fresh_tables.md``. Seeds are fixed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from candidates import CANDIDATES, POOLED, SHOWN, Table, studied
from default_estimator import joined, publish, study_parser

import taciturn as tc

Floats = npt.NDArray[np.float64]
FRACTIONS = (0.1, 0.02)


def main() -> None:
    """Run or continue the study of every table, and write the results."""
    given = study_parser(__doc__, samples=100, draws=500, seed=2029).parse_args()
    frame = studied(given, "fresh", tables(given.seed), estimators, FRACTIONS)
    text = markdown(frame, given.samples)
    publish(given, "fresh_tables", frame.to_csv(index=False, float_format="%.5g"), text)


def estimators(table: Table) -> dict[str, tc.estimators.Estimator]:
    """The candidates, of which the pool is the default for so many variables, and
    latent classes.
    """
    default = {POOLED: tc.default_estimator(table.population)}
    return {**CANDIDATES, **default, "LatentClass": tc.LatentClass()}


def tables(seed: int) -> Iterator[tuple[str, Table]]:
    """Populations by name, in the order in which they are shown."""
    for number, (name, make) in enumerate(KINDS.items()):
        yield name, make(np.random.default_rng([seed, number]))


def counted(shares: Floats, size: int, rng: np.random.Generator) -> xr.DataArray:
    """A population of that size with variables a, b, c ..."""
    counts = rng.multinomial(size, shares.ravel() / shares.sum()).reshape(shares.shape)
    dims = tuple("abcde"[: shares.ndim])
    coords = {
        dim: [f"{dim}{i + 1}" for i in range(size)]
        for dim, size in zip(dims, shares.shape, strict=True)
    }
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


def _sex(rng: np.random.Generator) -> Table:
    return Table(tc.load_dataset("area_by_sex"))


def _even(rng: np.random.Generator) -> Table:
    """Nearly even: twelve areas by five ages."""
    return Table(counted(np.exp(0.05 * rng.normal(size=(12, 5))), 6_000, rng))


def _rates(rng: np.random.Generator) -> Table:
    """Thirty areas whose profiles change slowly from one to the next."""
    profile = np.array([0.0, -1.0, -2.0, -3.0, -4.0, -5.0])
    walk = np.cumsum(0.35 * rng.normal(size=(30, 6)), axis=0)
    return Table(counted(np.exp(profile + walk) * rng.gamma(3, size=(30, 1)), 20_000, rng))


def _stages(rng: np.random.Generator) -> Table:
    """Twelve ages by nine stages that are reached one after the other, some not yet."""
    age, stage = np.arange(12)[:, None], np.arange(9)
    shares = np.exp(-((age - 1.3 * stage) ** 2) / 18 - 0.3 * stage) * rng.gamma(2, size=(12, 9))
    zeros = stage > age + 1
    population = counted(np.where(zeros, 0, shares), 5_000, rng)
    return Table(population, population.copy(data=zeros))


def _household(rng: np.random.Generator) -> Table:
    """Three variables with all interactions of two."""
    logs = np.zeros((10, 5, 4))
    for shape in ((10, 1, 1), (1, 5, 1), (1, 1, 4), (10, 5, 1), (10, 1, 4), (1, 5, 4)):
        logs = logs + rng.normal(scale=0.9 if shape.count(1) == 2 else 0.5, size=shape)
    return Table(counted(np.exp(logs), 10_000, rng))


def _labour(rng: np.random.Generator) -> Table:
    """Four variables, each of which follows from the one before, and cells that cannot
    be filled."""
    shares = rng.dirichlet(np.full(8, 2.0))
    for size in (6, 4, 3):
        given = rng.dirichlet(np.full(size, 0.6), size=shares.shape[-1])
        shares = shares[..., None] * given
    zeros = np.zeros(shares.shape, dtype=bool)
    zeros[:2, :, 2:] = True
    population = counted(np.where(zeros, 0, shares), 20_000, rng)
    return Table(population, population.copy(data=zeros))


def _survey(rng: np.random.Generator) -> Table:
    """Five variables: six kinds of people, and every cell with a deviation of its
    own."""
    shares = np.zeros((6, 5, 4, 4, 3))
    for weight in rng.dirichlet(np.full(6, 2.0)):
        one = np.array(weight)
        for size in shares.shape:
            one = np.multiply.outer(one, rng.dirichlet(np.full(size, 0.8)))
        shares += one
    return Table(counted(shares * rng.weibull(0.9, size=shares.shape), 50_000, rng))


KINDS = {
    "area_by_sex": _sex,
    "even": _even,
    "rates": _rates,
    "stages": _stages,
    "household": _household,
    "labour": _labour,
    "survey": _survey,
}


def markdown(frame: pd.DataFrame, samples: int) -> str:
    """A row for each table, fraction and estimator."""
    head = ["table", "cells", "n/N", "estimator", "R2", "covers R2", "bias", "RMSE", "width"]
    head += ["interval score", "covers R1", "covers τ1"]
    lines = [joined(head), joined(["---", "---:", "---:", "---", *["---:"] * 8])]
    keys = ["table", "cells", "fraction", "estimator"]
    for (table, shape, fraction, estimator), own in frame.groupby(keys, sort=False):
        by = own.set_index("measure")
        cells = [str(table), str(shape), f"{fraction:g}", f"`{estimator}`"]
        for column, form in {"truth": ".3f", **SHOWN}.items():
            cells.append(format(by.loc["R2", column], form))
        cells += [f"{by.loc[measure, 'coverage']:.2f}" for measure in ("R1", "tau1")]
        lines.append(joined(cells))
    return f"{samples} samples a row.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
