"""The whole-number deviations that leave all published sums as they are: a lattice, and
the few cells whose deviations determine those of all others.

Where a sum is published, one of its open cells follows from the others. Taking such
cells away one by one, each with coefficient 1 or -1, leaves cells that may deviate by
any whole numbers; all others then deviate by whole numbers, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.system import Booleans, Integers

__all__ = ["Lattice", "lattice_of"]

_LARGEST: Final = 2**31  # coefficient of a basis

type Pivot = tuple[int, Mapping[int, int]]
"""A column, and the coefficients of others: their sum is what it lacks to 0."""


@dataclass(frozen=True, eq=False, repr=False)
class Lattice:
    """What is free in a system of sums that are 0.

    Attributes
    ----------
    free : array of bool, shape (columns,)
        The columns that determine all others: where these are whole numbers and the
        sums hold, so are the others.
    """

    free: Booleans
    _pivots: Sequence[Pivot]
    _ties: bool

    @cached_property
    def basis(self) -> Integers | None:
        """The columns for each unit vector of the free ones, shape (columns, free
        columns): each whole-number solution is a sum of these, and each such sum is
        one. None where some sum still ties the free columns, or numbers are large.
        """
        if self._ties:
            return None
        position = np.cumsum(self.free) - 1
        basis = np.zeros((len(self.free), int(self.free.sum())), dtype=np.int64)
        basis[self.free, position[self.free]] = 1
        for column, others in reversed(self._pivots):
            for other, coefficient in others.items():
                basis[column] -= coefficient * basis[other]
            if np.abs(basis[column]).max(initial=0) > _LARGEST:
                return None
        return basis


def lattice_of(sums: csr_array) -> Lattice:
    """Eliminate columns of sums, whose coefficients are whole numbers."""
    pivots, ties = _Elimination(sums).run()
    free = np.ones(sums.shape[1], dtype=np.bool_)
    free[[column for column, _ in pivots]] = False
    return Lattice(free, pivots, ties)


class _Elimination:
    """Gaussian elimination with pivots 1 and -1 alone, short rows first."""

    def __init__(self, sums: csr_array) -> None:
        ends = zip(sums.indptr[:-1], sums.indptr[1:], strict=True)
        self._rows = [
            dict(zip(sums.indices[a:b].tolist(), map(int, sums.data[a:b]), strict=True))
            for a, b in ends
        ]
        self._held: list[set[int]] = [set() for _ in range(sums.shape[1])]
        for number, row in enumerate(self._rows):
            for column in row:
                self._held[column].add(number)

    def run(self) -> tuple[list[Pivot], bool]:
        """The pivots, and whether some sum still ties the other columns."""
        pivots: list[Pivot] = []
        queue = [(len(row), number) for number, row in enumerate(self._rows) if row]
        heapify(queue)
        while queue:
            length, number = heappop(queue)
            row = self._rows[number]
            if length != len(row) or not row:
                continue  # an entry from before the row changed
            units = [column for column, value in row.items() if abs(value) == 1]
            if not units:
                continue  # unless another pivot changes it
            pivot = min(units, key=lambda column: len(self._held[column]))
            for changed in self._eliminate(number, pivot):
                if self._rows[changed]:
                    heappush(queue, (len(self._rows[changed]), changed))
            sign = row.pop(pivot)
            pivots.append((pivot, {column: sign * value for column, value in row.items()}))
            for column in row:
                self._held[column].discard(number)
            self._rows[number] = {}
        return pivots, any(self._rows)

    def _eliminate(self, number: int, pivot: int) -> list[int]:
        """Take a column out of all other rows, and return these."""
        row = self._rows[number]
        changed = [other for other in self._held[pivot] if other != number]
        for other in changed:
            target = self._rows[other]
            factor = target[pivot] * row[pivot]
            for column, value in row.items():
                left = target.get(column, 0) - factor * value
                if left:
                    target[column] = left
                    self._held[column].add(other)
                else:
                    target.pop(column, None)
                    self._held[column].discard(other)
        self._held[pivot] = set()
        return changed
