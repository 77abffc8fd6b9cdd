"""An attacker from outside, who has the published files, knows the rule by which cells
are primary, and sets up an integer program of their own.

Nothing of the package is imported here: what the attacker finds depends on the files
alone."""

import csv
import itertools
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.csgraph import connected_components

__all__ = ["Cell", "Outsider", "read_file"]

TOTAL = "Total"


@dataclass(frozen=True)
class Cell:
    """A row of a file: the categories that are not totals, the value, and what the file
    says about it."""

    labels: frozenset
    value: float | None
    status: str


def read_file(path):
    """The cells in a file: CSV, Parquet or Excel in long form, or JSON-stat."""
    if path.suffix == ".json":
        return _from_json_stat(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix in (".parquet", ".xlsx"):
        frame = (
            pd.read_parquet(path)
            if path.suffix == ".parquet"
            else pd.read_excel(path, dtype=object, keep_default_na=False, na_values=[""])
        )
        rows = frame.astype(object).where(frame.notna(), "").to_dict("records")
    else:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    *variables, value, status = rows[0]
    return [
        _cell(((name, row[name]) for name in variables), row[value], row[status]) for row in rows
    ]


def _from_json_stat(data):
    categories = [
        [(name, label) for label in data["dimension"][name]["category"]["index"]]
        for name in data["id"]
    ]
    keys = list(itertools.product(*categories))
    if isinstance(data["value"], dict):  # by place in the cube
        named = [
            (keys[int(place)], data["value"][place], status)
            for place, status in data["status"].items()
        ]
    else:
        named = list(zip(keys, data["value"], data["status"], strict=True))
    return [
        _cell(labels, "" if value is None else value, status) for labels, value, status in named
    ]


def _cell(labels, value, status):
    kept = frozenset((name, str(label)) for name, label in labels if label != TOTAL)
    return Cell(kept, None if value == "" else float(value), status)


class Outsider:
    """All that published cells say of the table of which they are sums.

    `above` gives for a level the variable below it and the category of the level for
    each of its categories, such as ``{"region": ("area", {"1": "North"})}``. All values
    are in steps of ``10**-decimals``."""

    def __init__(self, cells, *, above=None, decimals=0):
        self._cells, self._above = cells, above or {}
        inner = self._inner()
        self._sums = csr_array(
            [[float(self._holds(labels, cell)) for labels in inner] for cell in cells]
        )
        values = [np.nan if cell.value is None else cell.value * 10**decimals for cell in cells]
        self._values = np.round(values)
        self.hidden = np.flatnonzero(np.isnan(self._values))
        # What nothing limits gets there, and no sum of published values does.
        self._endless = 10 * (1 + float(np.nansum(self._values)))

    def ranges(self, rule=None, told=frozenset()):
        """The least and the most of each suppressed cell, by its labels.

        A `rule` is the range of primary cells: of those that are `told`, where the
        attacker can tell them. Elsewhere some cell in each set of suppressed cells that
        belong together must be in it, or none of them would have been suppressed."""
        if not len(self.hidden):
            return {}
        shown = ~np.isnan(self._values)
        low, high = (np.where(shown, self._values, end) for end in (0.0, np.inf))
        extra = 0
        constraints = []
        if rule is not None and told:
            chosen = [cell.labels in told for cell in self._cells]
            low[chosen], high[chosen] = rule
        elif rule is not None:
            extra = len(self.hidden)
            constraints = self._some_are_primary(rule)
        constraints.append(LinearConstraint(self._widened(self._sums, extra), low, high))
        size = self._sums.shape[1]
        most = np.append(np.full(size, self._endless), np.ones(extra))
        return {
            self._cells[cell].labels: self._range(cell, extra, most, constraints)
            for cell in self.hidden
        }

    def _range(self, cell, extra, most, constraints):
        costs = np.append(self._sums[[cell]].toarray(), np.zeros(extra))
        ends = []
        for sign in (1, -1):
            solved = milp(
                sign * costs, integrality=1, bounds=Bounds(0, most), constraints=constraints
            )
            assert solved.status == 0, solved.message
            ends.append(sign * round(solved.fun))
        return ends[0], np.inf if ends[1] >= self._endless else ends[1]

    def _some_are_primary(self, rule):
        """A column for each suppressed cell is 1 only where the cell is in the range,
        and in each set of cells that belong together one of them is."""
        least, most = rule
        number = len(self.hidden)
        sums, one = csr_array(self._sums[self.hidden]), eye_array(number)
        far = self._endless * self._sums.shape[1]
        together = self._together()
        sets = csr_array([together == part for part in np.unique(together)], dtype=float)
        none = csr_array((sets.shape[0], self._sums.shape[1]))
        return [
            LinearConstraint(hstack([sums, -least * one]), lb=0),
            LinearConstraint(hstack([sums, far * one]), ub=most + far),
            LinearConstraint(hstack([none, sets]), lb=1),
        ]

    def _together(self):
        """A number for each suppressed cell, the same for those that sums connect."""
        single = np.asarray(self._sums.sum(axis=1)).ravel() == 1
        shown = single & ~np.isnan(self._values)
        open_ = np.asarray(self._sums[shown].sum(axis=0)).ravel() == 0
        sums = csr_array(self._sums[:, open_])
        _, part = connected_components(sums.T @ sums, directed=False)
        first = [part[sums[[cell]].indices[0]] for cell in self.hidden]
        return np.array(first)

    def _inner(self):
        """The cells of the table, as the category of each variable."""
        categories = {}
        for cell in self._cells:
            for name, label in cell.labels:
                if name not in self._above:
                    categories.setdefault(name, {})[label] = None
        for variable, parents in self._above.values():
            categories.setdefault(variable, {}).update(dict.fromkeys(parents))
        return [
            dict(zip(categories, labels, strict=True))
            for labels in itertools.product(*categories.values())
        ]

    def _holds(self, labels, cell):
        """Whether a published cell holds a cell of the table."""
        return all(
            self._above[name][1][labels[self._above[name][0]]] == label
            if name in self._above
            else labels[name] == label
            for name, label in cell.labels
        )

    @staticmethod
    def _widened(matrix, extra):
        return hstack([matrix, csr_array((matrix.shape[0], extra))]) if extra else matrix
