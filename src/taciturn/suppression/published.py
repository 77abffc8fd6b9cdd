"""The cells that a release may publish or suppress: those of a table and of its totals,
over the cells of the table.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers
from taciturn.schema import cell_label
from taciturn.tables.margins import (
    determines,
    level_codes,
    margin_of,
    without_implied,
)

__all__ = ["PublishedCells"]


@dataclass(frozen=True, eq=False, repr=False)
class PublishedCells:
    """Cells of released margins, numbered in the order of the margins; a table itself
    is the margin of all variables.

    Attributes
    ----------
    table : DataArray of int64
        The true table in steps.
    margins : tuple of tuple of str
        The released margins.
    decimals : int
        Decimal places of the table's values.
    costs : array of float64, shape (cells,)
        What it costs to suppress each; infinite where it must be published.
    """

    table: xr.DataArray
    margins: tuple[tuple[str, ...], ...]
    decimals: int
    costs: Floats

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.costs):,} cells in {len(self.margins):,} margins)"

    @cached_property
    def _parts(self) -> list[tuple[xr.DataArray, Integers]]:
        return [margin_of(self.table, names) for names in self.margins]

    @cached_property
    def first(self) -> list[int]:
        """Number of the first cell of each margin, and of all cells at the end."""
        return [0, *np.cumsum([labels.size for labels, _ in self._parts]).tolist()]

    @cached_property
    def values(self) -> Integers:
        """True values of the cells."""
        return np.concatenate([labels.values.ravel() for labels, _ in self._parts]).astype(np.int64)

    @cached_property
    def matrix(self) -> csr_array:
        """Which cells of the table make up each cell, shape (cells, cells of the
        table).
        """
        n = self.table.size
        rows = np.concatenate(
            [group + start for (_, group), start in zip(self._parts, self.first, strict=False)]
        )
        columns = np.tile(np.arange(n), len(self.margins))
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.first[-1], n))

    @cached_property
    def column(self) -> Integers:
        """The cell of the table that each published cell is, -1 if it is a total."""
        found = np.full(self.first[-1], -1)
        for number, names in enumerate(self.margins):
            if set(names) == set(self.table.dims):
                found[self.first[number] + self._parts[number][1]] = np.arange(self.table.size)
        return found

    @cached_property
    def inner(self) -> Integers:
        """The published cell that each cell of the table is, in its order; empty where
        the table is not released.
        """
        released = np.flatnonzero(self.column >= 0)
        return released[np.argsort(self.column[released])]

    @cached_property
    def equations(self) -> csr_array:
        """Sums that hold between published cells: a total and its parts, shape
        (equations, cells).
        """
        finer = [
            [
                other
                for other, fine in enumerate(self.margins)
                if determines(fine, names, self.table) and not determines(names, fine, self.table)
            ]
            for names in self.margins
        ]
        rows, columns, done = [], [], 0
        for number, (labels, group) in enumerate(self._parts):
            for other in finer[number]:
                if any(
                    between in finer[number] and other in finer[between]
                    for between in range(len(self.margins))
                ):
                    continue
                # One cell of the table stands for each part.
                _, at = np.unique(self._parts[other][1], return_index=True)
                parts = self._parts[other][1][at]
                rows += [done + group[at], done + np.arange(labels.size)]
                columns += [self.first[other] + parts, self.first[number] + np.arange(labels.size)]
                done += labels.size
        if not rows:
            return csr_array((0, self.first[-1]))
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(row)), (row, column)), shape=(done, self.first[-1]))

    @cached_property
    def categories(self) -> csr_array:
        """Which categories each cell has, shape (cells, categories of all
        variables).
        """
        names = sorted({name for margin in self.margins for name in margin})
        sizes = [len(level_codes(self.table, name)[0]) for name in names]
        start = dict(zip(names, np.cumsum([0, *sizes]).tolist(), strict=False))
        rows, columns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for number, (labels, _) in enumerate(self._parts):
            for axis, name in enumerate(self.margins[number]):
                along = np.arange(labels.shape[axis]).reshape(
                    [-1 if i == axis else 1 for i in range(labels.ndim)]
                )
                columns.append(start[name] + np.broadcast_to(along, labels.shape).ravel())
                rows.append(self.first[number] + np.arange(labels.size))
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(row)), (row, column)), shape=(self.first[-1], sum(sizes)))

    def ceilings(self, asked: int) -> Floats:
        """More than each cell rises in a table that differs from the true one no more
        than `asked` needs.

        A cell of the table that is in no published sum need rise by no more than
        `asked`. What others rise by falls elsewhere in a published sum. All that falls
        is at most the grand total `N`, and each part of it lets one cell rise for each
        margin; in a suppressed total for each other margin. So no cell rises by more
        than `N`, and no total by more than `N` for each cell that it holds, or for each
        margin but its own.
        """
        held = np.diff(self.matrix.indptr)
        return (
            np.minimum(held, max(len(self.margins) - 1, 1)) * float(self.table.values.sum())
            + asked
            + 1
        )

    def new_categories(self, pattern: Booleans) -> Integers:
        """How many categories of each cell no cell of a pattern has."""
        unused = self.categories.T @ pattern == 0
        return np.asarray(self.categories @ unused, dtype=np.int64)

    def nested(self, cell: int) -> Booleans:
        """The cells that are a part of this one, or it of them; itself, too."""
        sizes = np.diff(self.matrix.indptr)
        shared = (self.matrix @ self.matrix[[cell]].T).toarray().ravel()
        return np.asarray((shared == sizes) | (shared == sizes[cell]))

    def finest(self) -> list[tuple[str, ...]]:
        """Margins that no other determines."""
        return without_implied(self.margins, self.table)

    def part(self, number: int) -> slice:
        """The numbers of one margin's cells."""
        return slice(self.first[number], self.first[number + 1])

    def labels(self, number: int) -> xr.DataArray:
        """One margin's true values, in steps."""
        return self._parts[number][0]

    def flags(self, number: int, cells: Booleans) -> xr.DataArray:
        """The flags of one margin's cells, with its labels."""
        labels, _ = self._parts[number]
        return labels.copy(data=cells[self.part(number)].reshape(labels.shape))

    def label(self, cell: int) -> str:
        """Which cell this is, in words."""
        number = int(np.searchsorted(self.first, cell, side="right")) - 1
        labels, _ = self._parts[number]
        at = np.unravel_index(cell - self.first[number], labels.shape)
        return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"
