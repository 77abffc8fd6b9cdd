"""All tables and all patterns of suppressed cells, where they are few."""

import itertools

import numpy as np
import pytest

__all__ = [
    "all_tables",
    "by_cost",
    "cheapest",
    "margin",
    "published_values",
    "seeds",
    "tables_with_totals",
]


def seeds(few: int, all_of_them: int) -> list:
    """Some in the ordinary tests, the others in the slow ones."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, all_of_them)]
    return [*range(few), *slow]


def margin(table, names):
    return table.sum([dim for dim in table.dims if dim not in names]).transpose(*names)


def all_tables(total, cells):
    """Every table of so many cells with this grand total."""
    rows = []
    for bars in itertools.combinations(range(total + cells - 1), cells - 1):
        ends = (-1, *bars, total + cells - 1)
        rows.append([after - before - 1 for before, after in itertools.pairwise(ends)])
    return np.array(rows)


def tables_with_totals(rows, columns):
    """Every table of two variables with these totals."""
    if len(rows) == 1:
        return [[columns]] if sum(columns) == rows[0] else []
    first = (
        row
        for row in itertools.product(*(range(min(rows[0], most) + 1) for most in columns))
        if sum(row) == rows[0]
    )
    return [
        [row, *rest]
        for row in first
        for rest in tables_with_totals(
            rows[1:], tuple(most - held for most, held in zip(columns, row, strict=True))
        )
    ]


def published_values(every, dims, margins):
    """The cells of all margins, one after another, of each of many tables."""
    axes = [tuple(i + 1 for i, dim in enumerate(dims) if dim not in names) for names in margins]
    return np.concatenate([every.sum(axis=a).reshape(len(every), -1) for a in axes], axis=1)


def by_cost(costs, primary):
    """The cost of each pattern, which is a sum of whole numbers, and the pattern, the
    cheapest first."""
    choices = np.flatnonzero(np.isfinite(costs) & ~primary)
    every = np.array(list(itertools.product((False, True), repeat=len(choices))), dtype=bool)
    total = every @ costs[choices]
    for number in np.argsort(total, kind="stable"):
        pattern = primary.copy()
        pattern[choices] = every[number]
        yield total[number], pattern


def cheapest(table, margins, costs, primary, width, lower=0, upper=np.inf):
    """Least cost and number of the patterns that protect, by trying all of them on all
    tables with these ranges of published cells."""
    every = all_tables(int(table.sum()), table.size).reshape(-1, *table.shape)
    values = published_values(every, table.dims, margins)
    values = values[((values >= lower) & (values <= upper)).all(axis=1)]
    true = published_values(table.values[None], table.dims, margins)[0]
    best, found = np.inf, 0
    for cost, pattern in by_cost(costs, primary):
        if cost > best:
            break
        fits = (values[:, ~pattern] == true[~pattern]).all(axis=1)
        if (np.ptp(values[fits][:, primary], axis=0) >= width).all():
            best, found = cost, found + 1
    return best, found
