"""Bounds of the sensitive cells of suppressed tables, by `attacker_bounds` and by a
plain program: processor seconds of both, and their ratio.

Run as ``python benchmarks/bounds.py`` from the root of the repository, a quarter of an
hour; the result is ``docs/explanation/_bounds.md``, and ``--tables`` runs some. The
tables are those of ``suppression.py``. Patterns are searched for ``--limit`` seconds,
so that other machines may have others.

The plain program has a variable for each suppressed cell on any level, the equations
between totals and their parts, and minimises and maximises each sensitive cell with
HiGHS, from the last basis. It takes what a linear program gives if that is a whole
number, which may be too wide, and solves an integer program otherwise."""

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csc_array, csr_array

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

from default_estimator import joined, write
from suppression_surveys import SURVEYS, Survey

import taciturn as tc
from suppression import machine, protected, tabulated
from taciturn.suppression.published import PublishedCells

TABLES = {
    "8 x 8 x 6": SURVEYS["8 x 8 x 6"],
    "12 x 12 x 10": SURVEYS["12 x 12 x 10"],
    "15 x 15 x 10": Survey((15, 15, 10)),
    "100 x 40": SURVEYS["100 x 40"],
    "60 x 30, levels of 12, 4": SURVEYS["60 x 30, levels of 12, 4"],
    "100 x 40, levels of 20, 5 and of 8": SURVEYS["100 x 40, levels of 20, 5 and of 8"],
    "20 x 10 and 20 x 8, linked": SURVEYS["20 x 10 and 20 x 8, linked"],
    "100 x 20 and 100 x 15, linked": SURVEYS["100 x 20 and 100 x 15, linked"],
}
FRAGMENT = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "_bounds.md"


def main() -> None:
    """Time both on each table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=30, help="seconds for each pattern")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--fragment", type=Path, default=FRAGMENT)
    given = parser.parse_args()
    head = ["table", "suppressed", "sensitive", "attacker_bounds, s", "plain, s", "ratio"]
    head += ["ends too wide"]
    lines = [f"{machine()}.", "", joined(head), joined(["---", *["---:"] * 6])]
    for name in given.tables:
        lines.append(joined([name, *compared(TABLES[name], given.limit)]))
        print(lines[-1], flush=True)
    write(given.fragment, "\n".join(lines) + "\n")


def compared(survey: Survey, limit: float) -> list[str]:
    """The numbers of a row."""
    records = survey.records()
    table, _ = tabulated(survey, records)
    cells = PublishedCells(
        table.astype(np.int64), tuple(survey.margins), linked=True, decimals=0, signed=False
    )
    hidden, asked = pattern_of(survey, records, cells, limit)
    seconds, found = [np.inf, np.inf], [np.empty(0), np.empty(0)]
    for _ in range(2):
        for way, bounds in enumerate((by_package, by_plain_program)):
            fresh = replace(cells)  # nothing is worked out beforehand
            start = time.process_time()
            found[way] = bounds(fresh, hidden, asked)
            seconds[way] = min(seconds[way], time.process_time() - start)
    (low, high), (plain_low, plain_high) = found
    if (plain_low > low).any() or (plain_high < high).any():
        raise SystemExit("the plain program finds narrower bounds, which are attained")
    wide = int((plain_low < low).sum() + (plain_high > high).sum())
    shown = [f"{hidden.sum():,}", f"{asked.sum():,}", f"{seconds[0]:.2f}", f"{seconds[1]:.2f}"]
    return [*shown, f"{seconds[0] / seconds[1]:.2f}", f"{wide}"]


def pattern_of(
    survey: Survey, records: Any, cells: PublishedCells, limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the published cells are suppressed, and which of these are sensitive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.errors.UnprovedWarning)
        try:
            patterns, _ = protected(survey, records, limit, alone=False)
        except tc.errors.AttackError as error:
            patterns = [*error.pattern.values()] if survey.linked else [error.pattern]
    statuses = {names: status for each in patterns for names, status in each.status.items()}
    hidden, asked = np.zeros((2, cells.first[-1]), dtype=bool)
    for number, names in enumerate(cells.margins):
        status = statuses[names].values.ravel()
        hidden[cells.part(number)] = status != "safe"
        asked[cells.part(number)] = status == "primary"
    return hidden, asked


def by_package(
    cells: PublishedCells, hidden: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the sensitive cells by `attacker_bounds`, margin by margin."""
    numbers = range(len(cells.margins))
    flags = {cells.margins[number]: cells.flags(number, hidden) for number in numbers}
    release = tc.LinkedTables(cells.table, cells.margins, suppressed=flags)
    low, high = [], []
    for number in numbers:
        wanted = cells.flags(number, asked)
        if wanted.any():
            bounds = tc.attacker_bounds(
                release, margin=cells.margins[number], cells=wanted, progressbar=False
            )
            low.append(bounds["lower"].values[wanted.values])
            high.append(bounds["upper"].values[wanted.values])
    return np.concatenate(low), np.concatenate(high)


def by_plain_program(
    cells: PublishedCells, hidden: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same by two linear programs for each cell, over all suppressed cells."""
    matrix, right = equations(cells, hidden)
    linear, whole = solver(matrix, right), solver(matrix, right)
    size = matrix.shape[1]
    every, ones = np.arange(size, dtype=np.int32), np.ones(size, dtype=np.uint8)
    whole.changeColsIntegrality(size, every, ones)
    whole.setOptionValue("mip_rel_gap", 0.0)
    ends: list[list[int]] = [[], []]
    for column in np.flatnonzero(asked[hidden]):
        for side, sign in enumerate((1.0, -1.0)):
            value = optimum(linear, int(column), sign)
            if abs(value - round(value)) > 1e-6:
                value = optimum(whole, int(column), sign)
            ends[side].append(round(value))
    return np.array(ends[0]), np.array(ends[1])


def equations(cells: PublishedCells, hidden: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """Each total less its parts is 0, with what is published on the right."""
    sums, sizes = csr_array(cells.equations), np.diff(cells.matrix.indptr)
    for start, end in zip(sums.indptr[:-1], sums.indptr[1:], strict=True):
        sums.data[start + np.argmax(sizes[sums.indices[start:end]])] = -1.0
    right = -(sums @ np.where(hidden, 0, cells.values))
    matrix = csr_array(sums[:, np.flatnonzero(hidden)])
    used = np.diff(matrix.indptr) > 0
    return csr_array(matrix[used]), right[used]


def solver(matrix: csr_array, right: np.ndarray) -> highspy.Highs:
    """HiGHS with equations of variables from 0 on."""
    by_column, model = csc_array(matrix), highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = model.col_lower_ = np.zeros(matrix.shape[1])
    model.col_upper_ = np.full(matrix.shape[1], np.inf)
    model.row_lower_ = model.row_upper_ = right
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = by_column.indptr, by_column.indices
    model.a_matrix_.value_ = by_column.data
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(model)
    return highs


def optimum(highs: highspy.Highs, column: int, sign: float) -> float:
    """The least (1) or the most (-1) that a variable can be."""
    highs.changeColCost(column, sign)
    highs.run()
    found = float(highs.getSolution().col_value[column])
    highs.changeColCost(column, 0.0)
    return found


if __name__ == "__main__":
    main()
