"""What no table can go beyond, in exact arithmetic: a bound from the multipliers of a
linear program, which holds whatever they are.

For rows `l <= A x <= h`, bounds `u <= x <= v` and any multipliers `y` of the rows

    c x  =  y (A x) + (c - y A) x  <=  sum max(y l, y h) + sum max(r u, r v),

with `r = c - y A`. Multipliers near the program's dual solution give a bound near its
optimum; rounded to fractions of one denominator, they give it in whole numbers. A
multiplier that is slightly off makes the bound wider, not wrong.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.free_columns import lattice_of
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers

__all__ = ["Rows", "exact_dot"]

_DENOMINATORS: Final = (720_720, 2**46)
"""Of multipliers: a multiple of the whole numbers up to 16, and one for any others."""
_SAFE: Final = 2.0**62  # sums below it are exact in int64


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a linear system over some cells.

    Attributes
    ----------
    matrix : csr_array of int64, shape (rows, n)
        Coefficients.
    least, most : array of int64, shape (rows,)
        Bounds of the rows.
    """

    matrix: csr_array
    least: Integers
    most: Integers

    @cached_property
    def free(self) -> Booleans:
        """The columns that determine all others: in each solution in which these are
        whole numbers, so are the others.
        """
        return lattice_of(csr_array(self.matrix[self.least == self.most])).free

    def hold(self, table: Integers, lower: Integers, upper: Integers) -> bool:
        """Whether a table is within all bounds, exactly."""
        if (table < lower).any() or (table > upper).any():
            return False
        sums = self.matrix @ table
        return bool((sums >= self.least).all() and (sums <= self.most).all())

    def ceiling(
        self, costs: Integers, lower: Integers, upper: Integers, multipliers: Floats, *, goal: int
    ) -> int | None:
        """A whole number that `costs @ x` exceeds in no table within bounds, the least
        that is found, no further once it is down to a goal; None if the multipliers are
        too large for exact sums.
        """
        best = None
        for denominator in _DENOMINATORS:
            found = self._ceiling(costs, lower, upper, multipliers, denominator)
            if found is not None and (best is None or found < best):
                best = found
            if best is not None and best <= goal:
                break
        return best

    def rule_out(self, lower: Integers, upper: Integers, multipliers: Floats | None) -> bool:
        """Whether these multipliers, in one direction or the other, prove that there is
        no table within bounds.
        """
        if multipliers is None:
            return False
        none = np.zeros(len(lower), dtype=np.int64)
        ceilings = (
            self.ceiling(none, lower, upper, each, goal=-1) for each in (multipliers, -multipliers)
        )
        return any(ceiling is not None and ceiling < 0 for ceiling in ceilings)

    def _ceiling(
        self,
        costs: Integers,
        lower: Integers,
        upper: Integers,
        multipliers: Floats,
        denominator: int,
    ) -> int | None:
        rounded = np.rint(multipliers * denominator)
        # A sum over rows that each have coefficients of 1.
        if not np.abs(rounded).sum() + denominator * np.abs(costs).max(initial=0) < _SAFE:
            return None
        weights = rounded.astype(np.int64)
        rest = denominator * costs - self.matrix.T @ weights
        of_rows = exact_dot(weights, np.where(weights > 0, self.most, self.least))
        return (of_rows + exact_dot(rest, np.where(rest > 0, upper, lower))) // denominator


def exact_dot(left: Integers, right: Integers) -> int:
    """An exact sum of products."""
    used = np.flatnonzero(left)
    left, right = left[used], right[used]
    if np.abs(left.astype(float)) @ np.abs(right.astype(float)) < _SAFE:
        return int(left @ right)
    return sum(a * b for a, b in zip(left.tolist(), right.tolist(), strict=True))
