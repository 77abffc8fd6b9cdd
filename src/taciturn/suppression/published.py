"""The cells that a release publishes or suppresses: those of a table and its totals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.solver import Floats
from taciturn.attack.system import (
    Booleans,
    Integers,
    LinearSystem,
    Total,
    build_system,
)
from taciturn.schema import cell_label
from taciturn.tables.margins import finer_margins, level_codes, margin_of, without_implied

__all__ = ["PublishedCells"]


@dataclass(frozen=True, eq=False, repr=False)
class PublishedCells:
    """Cells of released margins, numbered in the order of the margins; the table itself
    is the margin over all variables.

    Attributes
    ----------
    table : DataArray of int64
        The true table in steps.
    margins : tuple of tuple of str
        The released margins: linked tables, or the table itself, first, and the totals
        from which all others follow.
    linked : bool
        Whether cells of all margins may be suppressed; otherwise those of the first.
    decimals : int
        Decimal places of the table's values.
    signed : bool
        Whether values may be negative, so that none is known to be at least 0.
    """

    table: xr.DataArray
    margins: tuple[tuple[str, ...], ...]
    linked: bool
    decimals: int
    signed: bool

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.first[-1]:,} cells in {len(self.margins):,} margins)"

    @property
    def boxes(self) -> bool:
        """Whether what is added at one corner of a box and subtracted at the next, and
        so on, leaves all totals as they are.
        """
        return True

    @property
    def suppressible(self) -> tuple[tuple[str, ...], ...]:
        """The margins whose cells may be suppressed, the first of all."""
        return self.margins if self.linked else self.margins[:1]

    @cached_property
    def totals(self) -> list[Total]:
        """True values of each margin, and the cells of the table that make them up."""
        return [Total.exact(*margin_of(self.table, names)) for names in self.margins]

    def system(
        self, pattern: Booleans, margins: Sequence[tuple[str, ...]] | None = None
    ) -> LinearSystem:
        """The linear system that is left when the cells of a pattern are suppressed, of
        linked tables also with some margins only.
        """
        known = np.zeros(self.table.size, dtype=np.bool_)
        if self.linked:
            totals = [
                total.without(pattern[self.part(number)])
                for number, (names, total) in enumerate(zip(self.margins, self.totals, strict=True))
                if margins is None or names in margins
            ]
        else:
            known = ~pattern[self.part(0)]
            totals = self._lasting
        return build_system(self.table, known, totals, decimals=self.decimals)

    @cached_property
    def _lasting(self) -> list[Total]:
        """Totals of a released table, without those that follow from finer ones."""
        finest = set(without_implied(self.margins[1:], self.table))
        return [
            total for names, total in zip(self.margins, self.totals, strict=True) if names in finest
        ]

    @cached_property
    def first(self) -> list[int]:
        """Number of the first cell of each margin, and of all cells at the end."""
        return [0, *np.cumsum([total.labels.size for total in self.totals]).tolist()]

    @cached_property
    def values(self) -> Integers:
        """True values of the cells."""
        return np.concatenate([total.least for total in self.totals]).astype(np.int64)

    @cached_property
    def matrix(self) -> csr_array:
        """Which cells of the table make up each cell, shape (cells, cells of the
        table).
        """
        n = self.table.size
        rows = np.concatenate(
            [total.group + start for total, start in zip(self.totals, self.first, strict=False)]
        )
        columns = np.tile(np.arange(n), len(self.margins))
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.first[-1], n))

    @cached_property
    def column(self) -> Integers:
        """The cell of the table that each published cell is, -1 if it is a total."""
        found = np.full(self.first[-1], -1)
        for number, names in enumerate(self.margins):
            if set(names) == set(self.table.dims):
                found[self.first[number] + self.totals[number].group] = np.arange(self.table.size)
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
        """Which cells are in each sum that is 0: 1 for the parts of a total, and -1 for
        the total; shape (sums, cells). Margins with the same cells follow each other.
        """
        finer = finer_margins(self.margins, self.table)
        rows, columns, signs, done = [], [], [], 0
        for number, total in enumerate(self.totals):
            size = total.labels.size
            for other in sorted(finer[number]):
                if any(other in finer[between] for between in finer[number]):
                    continue
                # One cell of the table stands for each part.
                parts, at = np.unique(self.totals[other].group, return_index=True)
                rows += [done + total.group[at], done + np.arange(size)]
                columns += [self.first[other] + parts, self.first[number] + np.arange(size)]
                signs += [np.ones(len(parts)), -np.ones(size)]
                done += size
        if not rows:
            return csr_array((0, self.first[-1]))
        row, column, sign = (np.concatenate(part) for part in (rows, columns, signs))
        return csr_array((sign, (row, column)), shape=(done, self.first[-1]))

    @cached_property
    def categories(self) -> csr_array:
        """Which categories each cell has, shape (cells, categories of all
        variables).
        """
        names = sorted({name for margin in self.margins for name in margin})
        sizes = [len(level_codes(self.table, name)[0]) for name in names]
        start = dict(zip(names, np.cumsum([0, *sizes]).tolist(), strict=False))
        rows, columns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for number, total in enumerate(self.totals):
            along = np.indices(total.labels.shape)
            for name, category in zip(self.margins[number], along, strict=True):
                columns.append(start[name] + category.ravel())
                rows.append(self.first[number] + np.arange(total.labels.size))
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(row)), (row, column)), shape=(self.first[-1], sum(sizes)))

    def ceilings(self, asked: int) -> Floats:
        """More than any cell rises, or falls, in a table that differs from the true one
        no more than `asked` requires.

        A cell of the table that is in no published sum need not rise by more than
        `asked`. Where others rise, something in the same published sum falls. All that
        falls is at most the grand total `N`, and each unit of it lets one cell rise for
        each margin; in a suppressed total, for each other margin. So no cell rises by
        more than `N`, and no total by more than `N` for each cell that it holds, or for
        each margin but its own.

        Where values may be negative nothing limits what falls, and `N` is taken to be
        the sum of their sizes and what is asked for.
        """
        held = np.diff(self.matrix.indptr)
        return np.minimum(held, max(len(self.margins) - 1, 1)) * self._scope(asked) + asked + 1

    def inner_ceiling(self, asked: int) -> float:
        """The same for the table's cells, released or not."""
        return self._scope(asked) + asked + 1

    def _scope(self, asked: int) -> float:
        return float(np.abs(self.table.values).sum() + (asked if self.signed else 0))

    def new_categories(self, pattern: Booleans) -> Integers:
        """How many categories of each cell no cell of a pattern has."""
        unused = self.categories.T @ pattern == 0
        return np.asarray(self.categories @ unused, dtype=np.int64)

    def nested(self, cell: int) -> Booleans:
        """The cells that are part of this one or contain it, and the cell itself."""
        sizes = np.diff(self.matrix.indptr)
        shared = (self.matrix @ self.matrix[[cell]].T).toarray().ravel()
        return np.asarray((shared == sizes) | (shared == sizes[cell]))

    @cached_property
    def finest(self) -> list[tuple[str, ...]]:
        """Margins that follow from no other."""
        return without_implied(self.margins, self.table)

    def part(self, number: int) -> slice:
        """The numbers of one margin's cells."""
        return slice(self.first[number], self.first[number + 1])

    def labels(self, number: int) -> xr.DataArray:
        """One margin's true values, in steps."""
        return self.totals[number].labels

    def flags(self, number: int, cells: Booleans) -> xr.DataArray:
        """The flags of one margin's cells, with its labels."""
        labels = self.labels(number)
        return labels.copy(data=cells[self.part(number)].reshape(labels.shape))

    def inner_label(self, cell: int) -> str:
        """Which cell of the table this is, in words."""
        at = np.unravel_index(cell, self.table.shape)
        return cell_label(self.table, tuple(int(i) for i in at))

    def label(self, cell: int) -> str:
        """Which published cell this is, in words."""
        number = int(np.searchsorted(self.first, cell, side="right")) - 1
        labels = self.labels(number)
        at = np.unravel_index(cell - self.first[number], labels.shape)
        return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"
