"""How likely a whole release is, given each value of a cell or total."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.attack.system import UNLIMITED, LinearSystem

__all__ = ["Likelihood", "supports"]


@dataclass(frozen=True, eq=False, repr=False)
class Likelihood:
    """The product of the probabilities of all that is released, each with noise of its
    own.

    Attributes
    ----------
    mechanism : Mechanism
        What changed each count.
    cells : array of int64, shape (repetitions, cells)
        What is released of each cell of the table.
    totals : sequence of array of int64, shape (repetitions, groups)
        What is released of each of the system's totals; no repetition where these are
        exact.
    """

    mechanism: Mechanism
    cells: Integers
    totals: Sequence[Integers]

    def of_cell(self, cell: int, true: Integers) -> Floats:
        """Its logarithm for each of these values of a cell."""
        return self._of(self.cells[:, cell], true)

    def of_total(self, number: int, group: int, true: Integers) -> Floats:
        """Its logarithm for each of these values of a total."""
        return self._of(self.totals[number][:, group], true)

    def _of(self, released: Integers, true: Integers) -> Floats:
        found = np.zeros(true.shape)
        for value, times in zip(*np.unique(released, return_counts=True), strict=True):
            found += times * self.mechanism.log_probability(int(value), true)
        return found

    def largest_released(self, system: LinearSystem) -> Integers:
        """The largest of what is released of each unknown cell and of its totals.

        Beyond it every probability falls.
        """
        largest = self.cells.max(axis=0)
        for total, released in zip(system.totals, self.totals, strict=True):
            if len(released):
                largest = np.maximum(largest, released.max(axis=0)[total.group])
        return largest[system.unknown]


def supports(mechanism: Mechanism, released: Integers) -> tuple[Integers, Integers]:
    """The least and the most of each true count given all repetitions, shape
    (repetitions, counts); a least above the most where there is none.
    """
    values, place = np.unique(released, return_inverse=True)
    least, most = np.empty_like(values), np.empty_like(values)
    for number, value in enumerate(values.tolist()):
        low, high = mechanism.support(value) or (UNLIMITED, -UNLIMITED)
        least[number], most[number] = low, int(min(high, UNLIMITED))
    place = place.reshape(released.shape)
    return least[place].max(axis=0), most[place].min(axis=0)
