"""Multipliers of a linear program's rows as fractions that prove what it says, exactly,
where cells and rows may have no limit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from taciturn.attack.bounds.certificates import Rows, exact_dot
from taciturn.attack.system import UNLIMITED, Booleans, Floats, Integers

__all__ = ["DENOMINATORS", "System", "is_open"]

DENOMINATORS: Final = (1, 2, 6, 60, 720_720, 2**46)
"""Of multipliers, those tried first that are easiest to read."""
_SAFE: Final = 2.0**62  # sums below it are exact in int64


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """Rows and bounds of some cells.

    Attributes
    ----------
    rows : Rows
        The rows, whose coefficients are 0 or 1.
    lower, upper : array of int64, shape (n,)
        Bounds of the cells.
    """

    rows: Rows
    lower: Integers
    upper: Integers

    @cached_property
    def _limiting(self) -> Integers:
        """A row that limits each cell from above; -1 where there is none."""
        found = np.full(len(self.upper), -1)
        if not is_open(self.lower).any():
            entries = self.rows.matrix.tocoo()
            limited = ~is_open(self.rows.most)[entries.row]
            found[entries.col[limited]] = entries.row[limited]
        return found

    def proof(
        self, costs: Integers, lower: Integers, upper: Integers, multipliers: Floats, most: int
    ) -> tuple[Integers, int] | None:
        """Multipliers near the given ones, and their common denominator, that prove
        that ``costs @ x`` is at most a whole number in every table within these bounds;
        None where those that are tried do not.
        """
        for denominator in DENOMINATORS:
            rounded = np.rint(multipliers * denominator)
            if not np.abs(rounded).sum() + denominator * np.abs(costs).max(initial=0) < _SAFE:
                return None
            weights = self._allowed(rounded.astype(np.int64), denominator * costs, upper)
            rest = denominator * costs - self.rows.matrix.T @ weights
            if (is_open(upper) & (rest > 0)).any() or (is_open(lower) & (rest < 0)).any():
                continue
            total = exact_dot(weights, np.where(weights > 0, self.rows.most, self.rows.least))
            total += exact_dot(rest, np.where(rest > 0, upper, lower))
            if total // denominator <= most:
                return weights, denominator
        return None

    def _allowed(self, weights: Integers, costs: Integers, upper: Integers) -> Integers:
        """Multipliers that use no limit of a row that it does not have, nor, where rows
        limit it, that of a cell.
        """
        open_ = np.where(weights > 0, is_open(self.rows.most), is_open(self.rows.least))
        weights = np.where(open_, 0, weights)
        rest = costs - self.rows.matrix.T @ weights
        for cell in np.flatnonzero(is_open(upper) & (rest > 0)):
            row = self._limiting[cell]
            if row >= 0 and rest[cell] > 0:
                weights[row] += rest[cell]
                # Each cell of the row has the coefficient 1.
                start, end = self.rows.matrix.indptr[row : row + 2]
                rest[self.rows.matrix.indices[start:end]] -= rest[cell]
        return weights

    def is_ray(self, moves: Integers) -> bool:
        """Whether moves can be added to any table, again and again."""
        sums = self.rows.matrix @ moves
        beyond = (sums > 0) & ~is_open(self.rows.most) | (sums < 0) & ~is_open(self.rows.least)
        out = (moves > 0) & ~is_open(self.upper) | (moves < 0) & ~is_open(self.lower)
        return not (beyond.any() or out.any())


def is_open(bounds: Integers) -> Booleans:
    """Where there is no bound."""
    return np.abs(bounds) >= UNLIMITED // 2
