"""What an attacker knows of the cells before they are published or suppressed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import limited
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem, Total
from taciturn.suppression.published import PublishedCells

__all__ = ["Known"]


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """Ranges that an attacker knows, whatever is suppressed; they contain the true
    values.

    Attributes
    ----------
    cells : PublishedCells
        What is released.
    totals : tuple of Total
        The ranges, as intervals in steps of released margins or of the table's cells;
        empty where nothing is known.
    """

    cells: PublishedCells
    totals: tuple[Total, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.totals)} margins)"

    def limit(self, system: LinearSystem) -> LinearSystem:
        """What is left of a system for who knows this."""
        return limited(system, self.totals) if self.totals else system

    @property
    def _least(self) -> int:
        return -UNLIMITED if self.cells.signed else 0

    @cached_property
    def lower(self) -> Integers:
        """The least that each published cell is known to hold; ``-UNLIMITED`` where
        values may be negative and nothing is known.
        """
        return self._of_published([total.least for total in self.totals], self._least)

    @cached_property
    def upper(self) -> Integers:
        """The most; `UNLIMITED` where nothing is known above."""
        return self._of_published([total.most for total in self.totals], UNLIMITED)

    @cached_property
    def inner_lower(self) -> Integers:
        """The least that each cell of the table is known to hold, released or not."""
        return self._of_table([total.least for total in self.totals], self._least)

    @cached_property
    def inner_upper(self) -> Integers:
        """The most; `UNLIMITED` where nothing is known above."""
        return self._of_table([total.most for total in self.totals], UNLIMITED)

    def ranges(self) -> Mapping[tuple[str, ...], xr.Dataset]:
        """The ranges in the table's units, as `attacker_bounds` takes them."""
        found, step = {}, 10.0**self.cells.decimals
        for total in self.totals:
            labels = total.labels
            lower = np.where(total.least <= -UNLIMITED, -np.inf, total.least / step)
            upper = np.where(total.most >= UNLIMITED, np.inf, total.most / step)
            found[tuple(map(str, labels.dims))] = xr.Dataset(
                {
                    "lower": labels.copy(data=lower.reshape(labels.shape)),
                    "upper": labels.copy(data=upper.reshape(labels.shape)),
                }
            )
        return found

    def _of_published(self, values: list[Integers], otherwise: int) -> Integers:
        cells = self.cells
        found = np.full(len(cells.values), otherwise, dtype=np.int64)
        for number, names in enumerate(cells.margins):
            for total, known in zip(self.totals, values, strict=True):
                if set(total.labels.dims) == set(names):
                    found[cells.first[number] + cells.totals[number].group] = known[total.group]
        return found

    def _of_table(self, values: list[Integers], otherwise: int) -> Integers:
        table = self.cells.table
        for total, known in zip(self.totals, values, strict=True):
            if set(total.labels.dims) == set(table.dims):
                return known[total.group]
        return np.full(table.size, otherwise, dtype=np.int64)
