"""The cells of several tables at once, as those of one: a cell that several tables have
is a single cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.sparse import csr_array, eye_array, hstack, vstack

from taciturn.attack.system import UNLIMITED, Booleans, Integers, LinearSystem, Total
from taciturn.suppression.published import PublishedCells
from taciturn.tables.labels import labels_of

__all__ = ["SharedCells"]


@dataclass(frozen=True, eq=False, repr=False)
class SharedCells(PublishedCells):
    """Cells of several tables, numbered as those of a table with one variable. Sums of
    them that are 0 are published as well: what makes up a total, less the total.

    Attributes
    ----------
    parts : mapping of str to PublishedCells
        The tables by name.
    numbers : mapping of str to array of int64
        For each table, the numbers of its published cells.
    sums : csr_array of int64, shape (sums, cells)
        The sums: 1 where a cell is added, -1 where it is subtracted.
    """

    parts: Mapping[str, PublishedCells]
    numbers: Mapping[str, Integers]
    sums: csr_array

    @property
    def boxes(self) -> bool:
        """No: cells of several tables have no common variables."""
        return False

    @cached_property
    def totals(self) -> list[Total]:
        """The cells, and the sums."""
        sums = np.zeros(self.sums.shape[0], dtype=np.int64)
        labels = xr.DataArray(sums, dims="sum", coords={"sum": np.arange(len(sums))})
        every = np.arange(self.table.size)
        return [Total.exact(self.table, every), Total.exact(labels, np.zeros_like(every))]

    @cached_property
    def matrix(self) -> csr_array:
        """What makes up each cell, which is itself, and each sum."""
        return csr_array(vstack([eye_array(self.table.size, dtype=np.int64), self.sums]))

    @cached_property
    def equations(self) -> csr_array:
        """The sums, in which their own values, 0, are not."""
        of_sums = csr_array((self.sums.shape[0], self.sums.shape[0]))
        return csr_array(hstack([self.sums, of_sums])).astype(float)

    @cached_property
    def categories(self) -> csr_array:
        """Which categories of all variables each cell has."""
        rows, columns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        place: dict[tuple[str, str], int] = {}
        for name, part in self.parts.items():
            for number, names in enumerate(part.margins):
                along = np.indices(part.labels(number).shape)
                for axis, variable in enumerate(names):
                    written = map(str, labels_of(part.labels(number)[variable]))
                    at = [place.setdefault((variable, label), len(place)) for label in written]
                    columns.append(np.array(at)[along[axis].ravel()])
                    rows.append(self.numbers[name][part.part(number)])
        row, column = np.concatenate(rows), np.concatenate(columns)
        found = csr_array(
            (np.ones(len(row)), (row, column)), shape=(self.first[-1], max(len(place), 1))
        )
        return csr_array(found > 0).astype(float)

    def system(
        self, pattern: Booleans, margins: Sequence[tuple[str, ...]] | None = None
    ) -> LinearSystem:
        """The linear system of the suppressed cells that is left by all sums."""
        unknown = np.flatnonzero(pattern[: self.table.size])
        published = np.where(pattern[: self.table.size], 0, self.table.values)
        matrix = csr_array(self.sums[:, unknown])
        kept = np.flatnonzero(np.diff(matrix.indptr))
        value = -(self.sums @ published)[kept]
        return LinearSystem(
            published=self.table.copy(data=published),
            unknown=unknown,
            matrix=csr_array(matrix[kept]),
            least=value,
            most=value,
            lower=np.full(len(unknown), -UNLIMITED if self.signed else 0),
            upper=np.full(len(unknown), UNLIMITED),
            totals=(self.totals[1],),
            row_total=np.zeros(len(kept), dtype=np.int64),
            row_group=kept,
            decimals=self.decimals,
        )

    def nested(self, cell: int) -> Booleans:
        """The cells that are part of this one or contain it in some table, and the cell
        itself.
        """
        found = np.zeros(self.first[-1], dtype=np.bool_)
        for name, part in self.parts.items():
            for own in np.flatnonzero(self.numbers[name] == cell):
                found[self.numbers[name][part.nested(int(own))]] = True
        return found

    def label(self, cell: int) -> str:
        """Which cell this is, in words, and of which table."""
        for name, part in self.parts.items():
            for own in np.flatnonzero(self.numbers[name] == cell):
                return f"{part.label(int(own))} of {name!r}"
        return f"the sum {cell - self.table.size}"

    def inner_label(self, cell: int) -> str:
        """The same: each cell is published or suppressed."""
        return self.label(cell)
