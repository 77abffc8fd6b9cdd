"""Several tables that share cells, and an attacker who sees what is published of them
all."""

from collections import defaultdict
from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

__all__ = ["CHAIN", "CYCLE", "SIZES", "Attacker", "margins_of", "projections"]

SIZES = {"a": 3, "b": 3, "c": 2, "d": 3}
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]
CYCLE = [("a", "b"), ("b", "c"), ("a", "c")]


def projections(table, margins):
    return {
        "".join(names): table.sum([dim for dim in table.dims if dim not in names])
        for names in margins
    }


class Attacker:
    """Finds tables of whole numbers that agree with what is published of all tables. A
    cell is a set of pairs of variable and label, the same in all tables."""

    def __init__(self, published, variables, most, least=0):
        self.place = {}
        values = []
        for tables in published.values():
            for names, table in tables.items():
                for labels, value in table["value"].to_series().items() if names else [((), None)]:
                    key = self.cell(names, labels)
                    held = float(table["value"]) if not names else value
                    if key not in self.place:
                        self.place[key] = len(values)
                        values.append(held)
                    assert np.array_equal(values[self.place[key]], held, equal_nan=True), key
        self.lower = np.array([least if np.isnan(x) else x for x in values])
        self.upper = np.array([most if np.isnan(x) else x for x in values])
        parts = defaultdict(list)
        for name, tables in published.items():
            inner = variables[name]
            for names in tables:
                for labels in product(*(range(SIZES[each]) for each in inner)):
                    total = self.cell(names, [labels[inner.index(each)] for each in names])
                    parts[name, total].append(self.place[self.cell(inner, labels)])
        self.sums = np.zeros((len(parts), len(values)))
        for row, ((_, total), inside) in zip(self.sums, parts.items(), strict=True):
            np.add.at(row, inside, 1)
            row[self.place[total]] -= 1

    @staticmethod
    def cell(names, labels):
        labels = labels if isinstance(labels, tuple | list) else (labels,)
        return frozenset(zip(names, labels, strict=True))

    def ends(self, cell, known=None):
        """The least and the most that a cell can hold, for who knows some others."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for other, value in (known or {}).items():
            lower[self.place[other]] = upper[self.place[other]] = value
        costs = np.zeros(len(lower))
        costs[self.place[cell]] = 1
        found = []
        for sign in (1, -1):
            solved = milp(
                sign * costs,
                integrality=np.ones(len(lower)),
                bounds=Bounds(lower, upper),
                constraints=LinearConstraint(self.sums, 0, 0),
            )
            assert solved.status == 0
            found.append(round(sign * solved.fun))
        return found


def margins_of(table):
    found = {}
    for keep in product((True, False), repeat=table.ndim):
        names = tuple(dim for dim, kept in zip(table.dims, keep, strict=True) if kept)
        found[names] = table.sum([dim for dim in table.dims if dim not in names])
    return found
