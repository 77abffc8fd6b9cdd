"""Bounds of cells that follow from one total after the other."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from taciturn.attack.system import UNLIMITED, Integers

__all__ = ["ContradictionError", "propagate"]

_ROUNDS: Final = 200  # whose last ones gain little; programs do the rest


class ContradictionError(Exception):
    """No table is compatible with the system."""


def propagate(
    matrix: csr_array, least: Integers, most: Integers, lower: Integers, upper: Integers
) -> None:
    """Tighten bounds, in place, to what each total leaves when its other terms are at
    their bounds. Entries of the matrix are 1 or -1.
    """
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    column, added = matrix.indices, matrix.data > 0
    for _ in range(_ROUNDS):
        if (lower > upper).any():
            raise ContradictionError
        before = lower.copy(), upper.copy()
        low = np.where(added, lower[column], -upper[column])
        high = np.where(added, upper[column], -lower[column])
        # A term is at most what its total leaves when the others are at their least.
        term_high = _less(most[row], _of_others(low, row, matrix), UNLIMITED)
        term_low = _less(least[row], _of_others(high, row, matrix), -UNLIMITED)
        if (term_high < low).any() or (term_low > high).any():
            raise ContradictionError
        np.minimum.at(upper, column, np.where(added, term_high, -term_low))
        np.maximum.at(lower, column, np.where(added, term_low, -term_high))
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            return


def _of_others(terms: Integers, row: Integers, matrix: csr_array) -> Integers:
    """The sum of the other terms of its total, for each; `UNLIMITED` where one of them
    has no limit.
    """
    open_ = np.abs(terms) >= UNLIMITED
    finite = np.where(open_, 0, terms)
    rest = _sums(finite, matrix)[row] - finite
    others_open = _sums(open_.astype(np.int64), matrix)[row] > open_
    # Sums beyond what is exact say nothing.
    large = _sums(np.abs(finite).astype(float), matrix)[row] >= UNLIMITED
    return np.where(others_open | large, UNLIMITED, rest)


def _less(total: Integers, rest: Integers, otherwise: int) -> Integers:
    """What a total leaves for a term; without a limit where the total or the rest has
    none.
    """
    open_ = (np.abs(total) >= UNLIMITED // 2) | (rest == UNLIMITED)
    left = np.where(open_, otherwise, total - rest)
    return np.clip(left, -UNLIMITED, UNLIMITED)


def _sums(terms: npt.NDArray[Any], matrix: csr_array) -> npt.NDArray[Any]:
    """Sums of terms, one for each entry of the matrix, in each row."""
    placed = csr_array((terms, matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.asarray(placed @ np.ones(matrix.shape[1], dtype=terms.dtype))
