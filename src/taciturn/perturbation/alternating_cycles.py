"""Compiled loop of unbiased controlled rounding in two dimensions."""

from typing import Final

import numpy as np
from numba import njit

__all__ = ["round_remainders"]

_NONE: Final = -1


@njit(cache=True)
def round_remainders(rest, base, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move all remainders of an array to 0 or the base, in place, without changing the
    sums of rows and columns.

    Entries of `rest` are from 0 to `base`, and every row and column sums to a multiple
    of the base. A row or column with an open entry, one strictly between, therefore has
    a second one, so a walk from open entry to open entry, alternately along rows and
    columns, returns to a place where it has been. On the cycle that it closes there,
    entries are alternately raised and lowered, by as much as closes one of them. Which
    are raised is drawn with the probabilities that leave each expected value unchanged.
    """
    rows, columns = rest.shape
    first = np.zeros(rows + columns, dtype=np.int64)
    second = np.zeros(rows + columns, dtype=np.int64)
    position = np.full(rows + columns, _NONE)  # of a row or column on the walk
    walk = np.empty(rows + columns, dtype=np.int64)  # rows, then columns, in one numbering
    for start in range(rows):
        walk[0], position[start], end = start, 0, 0
        while True:
            came_from = walk[end - 1] if end > 0 else _NONE
            following = _next_open(rest, base, walk[end], came_from, first, second)
            if following == _NONE:
                break
            if position[following] == _NONE:
                end += 1
                walk[end], position[following] = following, end
                continue
            begin = position[following]
            _close(rest, base, walk[begin : end + 1], rng)
            for k in range(begin + 1, end + 1):
                position[walk[k]] = _NONE
            end = begin
        position[start] = _NONE


@njit(cache=True)
def _next_open(rest, base, node, came_from, first, second):  # type: ignore[no-untyped-def] # pragma: no cover
    """The first row or column that shares an open entry with this one, other than the
    one that the walk came from.
    """
    rows, columns = rest.shape
    is_row = node < rows
    size, shift = (columns, rows) if is_row else (rows, 0)
    k = first[node]  # entries never open again, so both searches continue
    while k < size and not _open(rest, base, node, k, is_row):
        k += 1
    first[node] = k
    if k < size and k + shift != came_from:
        return k + shift
    k = max(second[node], k + 1)
    while k < size and not _open(rest, base, node, k, is_row):
        k += 1
    second[node] = k
    return k + shift if k < size else _NONE


@njit(cache=True)
def _open(rest, base, node, k, is_row):  # type: ignore[no-untyped-def] # pragma: no cover
    value = rest[node, k] if is_row else rest[k, node - rest.shape[0]]
    return 0 < value < base


@njit(cache=True)
def _close(rest, base, cycle, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Alternately raise and lower the entries of a cycle until one is 0 or the base."""
    rows, length = rest.shape[0], len(cycle)
    up = down = base  # how far even entries can rise while odd ones fall, and vice versa
    for k in range(length):
        a, b = cycle[k], cycle[(k + 1) % length]
        value = rest[min(a, b), max(a, b) - rows]
        room = base - value
        up = min(up, room if k % 2 == 0 else value)
        down = min(down, value if k % 2 == 0 else room)
    step = up if rng.random() * (up + down) < down else -down
    for k in range(length):
        a, b = cycle[k], cycle[(k + 1) % length]
        rest[min(a, b), max(a, b) - rows] += step if k % 2 == 0 else -step
