"""Counts over all pairs of a replicate of one protection and a replicate of another,
draw by draw, without making the pairs.

Arrays are (draws, replicates); both have the same draws.
"""

from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["both_less", "less_and_same", "quantile_of_differences"]

Floats = npt.NDArray[np.float64]

_HALVINGS: Final = 30  # of the range of the differences, until few of them are left
_ROUNDING: Final = 1e-9  # in the number of pairs that a probability stands for


def less_and_same(first: Floats, second: Floats) -> tuple[float, float]:
    """Shares of the pairs in which the first is less, and in which both are the
    same.
    """
    ordered = np.sort(second, axis=1)
    pairs = first.size * second.shape[1]
    at_least = above = 0
    for ours, theirs in zip(first, ordered, strict=True):
        at_least += theirs.size * ours.size - int(np.searchsorted(theirs, ours).sum())
        above += theirs.size * ours.size - int(np.searchsorted(theirs, ours, side="right").sum())
    return above / pairs, (at_least - above) / pairs


def both_less(risks: tuple[Floats, Floats], losses: tuple[Floats, Floats]) -> float:
    """Share of the pairs in which the first is less in risk, (draws, replicates), and
    in loss, (replicates,).
    """
    first, second = risks
    ours, theirs = np.argsort(losses[0]), np.argsort(losses[1])
    smaller = np.searchsorted(losses[0][ours], losses[1][theirs])  # before each of theirs
    ordered = np.sort(first, axis=1)
    count = _both_less(first[:, ours], second[:, theirs], ordered, smaller)
    return int(count) / int(first.size * second.shape[1])


def quantile_of_differences(first: Floats, second: Floats, probability: float) -> float:
    """The smallest difference, first less second, that this share of the pairs does not
    exceed.
    """
    wanted = max(ceil(probability * first.size * second.shape[1] - _ROUNDING), 1)
    return float(_smallest(np.sort(first, axis=1), np.sort(second, axis=1), wanted))


@njit(cache=True)
def _both_less(first, second, ordered, smaller):  # type: ignore[no-untyped-def] # pragma: no cover
    """Number of pairs; columns are in the order of the losses, and the first `smaller`
    ones of the first have a smaller loss than one of the second.

    A binary indexed tree counts the risks of those, by their ranks.
    """
    ranks = first.shape[1]
    tree = np.zeros(ranks + 1, dtype=np.int64)
    total = 0
    for d in range(first.shape[0]):
        tree[:] = 0
        entered = 0
        for j in range(second.shape[1]):
            while entered < smaller[j]:
                at = np.searchsorted(ordered[d], first[d, entered]) + 1
                while at <= ranks:
                    tree[at] += 1
                    at += at & -at
                entered += 1
            at = np.searchsorted(ordered[d], second[d, j])
            while at > 0:
                total += tree[at]
                at -= at & -at
    return total


@njit(cache=True)
def _smallest(first, second, wanted):  # type: ignore[no-untyped-def] # pragma: no cover
    """The difference with this number among all of sorted rows, by halving the range
    and, at the end, going from one difference to the next.
    """
    low, high = first[0, 0] - second[0, -1], first[0, -1] - second[0, 0]
    for d in range(len(first)):
        low = min(low, first[d, 0] - second[d, -1])
        high = max(high, first[d, -1] - second[d, 0])
    if _at_most(first, second, low)[0] >= wanted:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(first, second, middle)[0] >= wanted:
            high = middle
        else:
            low = middle
    count, following = _at_most(first, second, low)
    while count < wanted:
        low = following
        count, following = _at_most(first, second, low)
    return low


@njit(cache=True)
def _at_most(first, second, bound):  # type: ignore[no-untyped-def] # pragma: no cover
    """How many differences of sorted rows are at most a bound, and the next above."""
    count, following = 0, np.inf
    for d in range(len(first)):
        j = 0
        for i in range(first.shape[1]):
            while j < second.shape[1] and first[d, i] - second[d, j] > bound:
                j += 1
            count += second.shape[1] - j
            if j > 0:
                following = min(following, first[d, i] - second[d, j - 1])
    return count, following
