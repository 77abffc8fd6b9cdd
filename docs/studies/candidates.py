"""Estimators that could be the default for tables of two variables, on the same
samples: those of ``default_estimator.py``, and of area by sex.

Run as ``python docs/studies/candidates.py``, with ``--tables`` for some of them. It can
be interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues; a larger number after ``--samples`` adds to the samples already there. The
results are ``docs/studies/candidates.csv`` and, in ``docs/explanation``,
``_candidates.md`` and ``_candidates_cells.md``. Seeds are fixed."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, HERE, joined, populations, study_parser, write

import taciturn as tc

FAMILIES, POOLED, EVEN = "families", "pooled", "area_by_sex"
CANDIDATES: dict[str, tc.estimators.Estimator] = {
    FAMILIES: tc.LinearPool(
        {"dirichlet": tc.DirichletLogLinear(), "restaurant": tc.ChineseRestaurant()}
    ),
    POOLED: tc.default_estimator(tc.load_dataset(EVEN)),
}


# What is shown of R2, and how.
SHOWN = {"coverage": ".2f", "bias": "+.3f", "rmse": ".3f", "width": ".3f", "score": ".3f"}


class Table(NamedTuple):
    """A population, and where nobody can be."""

    population: xr.DataArray
    structural_zeros: xr.DataArray | None = None


def main() -> None:
    """Run or continue the study of every table, and write the results."""
    given = study_parser(__doc__, samples=200, draws=500, seed=2031).parse_args()
    rows = studied(given, "candidates", tables(), lambda _: CANDIDATES, FRACTIONS)
    if given.tables:
        sys.exit(f"not written, as not all tables were asked for:\n{cells(rows)}")
    write(HERE / "candidates.csv", rows.to_csv(index=False, float_format="%.6g"))
    pages, caption = HERE.parent / "explanation", f"{given.samples} samples a cell.\n\n"
    write(pages / "_candidates.md", caption + summary(rows))
    write(pages / "_candidates_cells.md", caption + cells(rows))
    print(summary(rows), cells(rows), sep="\n")


def studied(
    given: Namespace,
    prefix: str,
    tables: Iterable[tuple[str, Table]],
    estimators: Callable[[Table], Mapping[str, tc.estimators.Estimator]],
    fractions: Sequence[float],
) -> pd.DataFrame:
    """What the study of each table that was asked for found, run or continued, with the
    estimators for it.
    """
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, table in tables:
        if given.tables and not any(some in name for some in given.tables):
            continue
        print(name, file=sys.stderr, flush=True)
        result = tc.study(
            table.population,
            estimators(table),
            fractions=fractions,
            samples=given.samples,
            draws=given.draws,
            structural_zeros=table.structural_zeros,
            random_seed=given.seed,
            workers=given.workers,
            store=given.store / f"{prefix}_{name}.jsonl",
            progressbar=False,
        )
        shape = " x ".join(map(str, table.population.shape))
        frames.append(tc.studies.study_table(result).assign(table=name, cells=shape))
    if not frames:
        sys.exit(f"no table name contains any of {given.tables}")
    return pd.concat(frames)


def tables() -> Iterator[tuple[str, Table]]:
    """Populations by name: those of the default's study, generated with its seed."""
    yield EVEN, Table(tc.load_dataset(EVEN))
    for part in ("census", "generated"):
        for name, population in populations(part, 2027):
            yield name, Table(population)


def summary(rows: pd.DataFrame) -> str:
    """One line for each measure and candidate, over the cells of the design; what is
    relative is the median ratio to what the families have."""
    head = ["measure", "candidate", "covers, mean", "lowest", "cells below 0.90"]
    head += ["above 0.99", "RMSE, relative", "width, relative", "interval score, relative"]
    head += ["3.92 RMSE, relative to the width", "score at most that of families", "unconverged"]
    lines = [joined(head), joined(["---", "---", *["---:"] * 10])]
    design = rows[rows["table"] != EVEN]
    for measure in ("R2", "R1", "tau1"):
        by = design[design["measure"] == measure].pivot(
            index=["table", "fraction"],
            columns="estimator",
            values=["coverage", "rmse", "width", "score", "unconverged"],
        )
        for name in CANDIDATES:
            held, score = by["coverage"][name], by["score"][name]
            numbers = [f"{held.mean():.3f}", f"{held.min():.2f}", f"{(held < 0.9).sum()}"]
            numbers.append(f"{(held > 0.99).sum()}")
            for what in ("rmse", "width", "score"):
                numbers.append(f"{(by[what][name] / by[what][FAMILIES]).median():.2f}")
            needed = 2 * 1.96 * by["rmse"][name] / by["width"][FAMILIES]
            numbers.append(f"{needed.median():.2f}")
            numbers.append(f"{(score <= by['score'][FAMILIES]).mean():.0%}")
            numbers.append(f"{by['unconverged'][name].sum():.0f}")
            lines.append(joined([measure.replace("tau", "τ"), name, *numbers]))
    return "\n".join(lines) + "\n"


def cells(rows: pd.DataFrame) -> str:
    """One line for each table and fraction: what each candidate says of R2."""
    head = ["table", "n/N", "R2"]
    for what in ("covers R2", "bias", "RMSE", "width", "interval score", "covers R1"):
        head.append(f"{what}: {', '.join(CANDIDATES)}")
    lines = [joined(head), joined(["---", *["---:"] * (len(head) - 1)])]
    by = rows.set_index(["table", "fraction", "measure", "estimator"]).sort_index()
    for table, fraction in dict.fromkeys(zip(rows["table"], rows["fraction"], strict=True)):
        r2, r1 = by.loc[(table, fraction, "R2")], by.loc[(table, fraction, "R1")]
        line = [table, f"{fraction:g}", f"{r2['truth'].iloc[0]:.3f}"]
        for what, form in SHOWN.items():
            line.append(", ".join(format(r2.loc[name, what], form) for name in CANDIDATES))
        line.append(", ".join(f"{r1.loc[name, 'coverage']:.2f}" for name in CANDIDATES))
        lines.append(joined(line))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
