"""Compiled loops over many tables at once, on plain arrays with the cells last.

One pass over a pair of tables gives every sum that R1, R2 and the conditional entropy
need. It is fast because logarithms of small counts come from a lookup table; because
what depends on one table alone is kept while that table stays the same; and because
where many draws with one total meet a single release, the usual case, a cell's
contribution depends only on its count, so that each count's terms are computed once.
The rows are shared among threads; the numbers do not depend on how many there are.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from taciturn.information.cell_terms import (
    NEARLY_ALL,
    cell_term,
    entropy_of_shares,
    log_of_share,
    log_shares,
    moving_term,
)
from taciturn.parallel import in_threads, threads_for
from taciturn.schema import MAX_COUNT

__all__ = ["PAIR_SUMS", "TABLE_SUMS", "CountsOutOfRangeError", "pair_sums", "table_sums"]

TABLE_SUMS: Final = ("total", "cells", "zeros", "entropy")
"""The sums of a table; entropy in nats."""

PAIR_SUMS: Final = (
    "total",
    "released_total",
    "cells",
    "zeros",
    "zeros_both",
    "zeros_either",
    "entropy",
    "conditional_entropy",
)
"""The sums of a table and its release; entropies in nats."""

_LOOKUP_LIMIT: Final = 2**20
_NO_LOOKUP: Final = np.zeros(1)
_LOOKED_AT: Final = 256
_FINE, _OUT_OF_RANGE, _OTHER_TOTAL = 0, 1, 2
_TERMS_LIMIT: Final = 2**22  # 100 MB

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class CountsOutOfRangeError(Exception):
    """A count is negative or beyond 2**53."""


def table_sums(table: npt.NDArray[Any], mask: npt.NDArray[np.bool_], *, core: int) -> Floats:
    """Sums of each table.

    Parameters
    ----------
    table : array, shape (..., *cells)
        Counts; the last `core` axes are the cells.
    mask : array of bool, broadcastable to `table`
        False leaves a cell out.
    core : int
        Number of cell axes.

    Returns
    -------
    array, shape (..., 4)
        `TABLE_SUMS`.
    """
    lead = table.shape[:-core]
    rows, _ = _indexed(table, lead, core)
    masks, mask_of = _indexed(mask, lead, core)
    out = np.empty((len(rows), len(TABLE_SUMS)))
    logs = _logs(rows, _scan(rows, masks[0])[0])
    _share(
        len(rows),
        rows.size,
        lambda part: _table_kernel(rows[part], masks, mask_of[part], logs, out[part]),
    )
    return out.reshape(*lead, -1)


def pair_sums(
    table: npt.NDArray[Any], released: npt.NDArray[Any], mask: npt.NDArray[np.bool_], *, core: int
) -> Floats:
    """Sums of each pair of a table and a release; leading axes broadcast without being
    copied.

    Returns
    -------
    array, shape (..., 8)
        `PAIR_SUMS`.
    """
    lead = np.broadcast_shapes(table.shape[:-core], released.shape[:-core])
    first, first_of = _indexed(table, lead, core)
    second, second_of = _indexed(released, lead, core)
    masks, mask_of = _indexed(mask, lead, core)
    out = np.empty((len(first_of), len(PAIR_SUMS)))
    released_largest, released_total = _scan(second, masks[0])
    if (
        len(second) == len(masks) == 1
        and released_total > 0
        and _tabulated(first, second[0], masks[0], out)
    ):
        return out.reshape(*lead, -1)
    largest, _ = _scan(first, masks[0])
    cells = first.shape[1]
    logs, released_logs = _logs(first, largest), _logs(second, released_largest)

    def work(part: slice) -> None:
        which = first_of[part], second_of[part], mask_of[part]
        _pair_kernel(first, second, masks, *which, logs, released_logs, out[part])

    _share(len(out), len(out) * cells, work)
    return out.reshape(*lead, -1)


def _tabulated(rows: Counts, release: Counts, mask: npt.NDArray[np.bool_], out: Floats) -> bool:
    """Fill `out` by looking up what each cell adds for each count; return False if that
    would not pay off or totals differ.
    """
    if not rows.size:
        return False
    total = int(rows[0][mask].sum())
    counts = 2 * int(rows[:_LOOKED_AT].max()) + 1  # larger ones are computed as they occur
    if total <= 0 or not 0 < 4 * counts < len(rows) or counts * rows.shape[1] > _TERMS_LIMIT:
        return False
    terms = _cell_terms(counts, total, release, mask)
    found: list[int] = []

    def look_up(part: slice) -> None:
        found.append(_tabulated_kernel(rows[part], release, mask, total, terms, out[part]))

    _share(len(rows), rows.size, look_up)
    if _OUT_OF_RANGE in found:
        raise CountsOutOfRangeError
    return _OTHER_TOTAL not in found


def _scan(rows: Counts, mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Largest count, and the total that all rows share (0 if they differ); refuses
    invalid counts.
    """
    if rows.size == 0:
        return 0, 0
    total = int(rows[0][mask].sum())
    found: list[tuple[int, int, bool]] = []
    _share(len(rows), rows.size, lambda part: found.append(_scan_kernel(rows[part], mask, total)))
    smallest, largest = min(x[0] for x in found), max(x[1] for x in found)
    if smallest < 0 or largest > MAX_COUNT:
        raise CountsOutOfRangeError
    return largest, total if all(x[2] for x in found) else 0


def _share(rows: int, cells: int, work: Callable[[slice], None]) -> None:
    """Do the work on all rows; if there is much of it, in a slice for each thread."""
    threads = max(1, min(threads_for(cells), rows))
    edges = [rows * i // threads for i in range(threads + 1)]
    in_threads(work, list(map(slice, edges[:-1], edges[1:])), numbers=cells)


def _indexed(
    array: npt.NDArray[Any], lead: tuple[int, ...], core: int
) -> tuple[Any, npt.NDArray[np.int64]]:
    """Tables as rows, and the number of the row that each output uses."""
    own = array.shape[: array.ndim - core]
    number = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
    cells = int(np.prod(array.shape[array.ndim - core :]))
    dtype = np.bool_ if array.dtype == np.bool_ else np.int64
    rows: npt.NDArray[Any] = np.ascontiguousarray(array.reshape(-1, cells), dtype=dtype)
    return rows, np.ascontiguousarray(np.broadcast_to(number, lead).ravel())


def _logs(rows: Counts, largest: int) -> Floats:
    """Logarithms of 0 (as 0), 1, 2, ... up to the largest count, if that pays off."""
    if largest >= min(_LOOKUP_LIMIT, rows.size):
        return _NO_LOOKUP
    logs = np.zeros(largest + 1)
    _fill_logs(logs)
    return logs


@njit(nogil=True, cache=True)
def _fill_logs(out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithms of 1, 2, ... to the last digit as the kernels take them: NumPy's
    differ in a few, and numbers would depend on whether looking up pays off.
    """
    for count in range(1, out.size):
        out[count] = np.log(count)


@njit(nogil=True, cache=True)
def _scan_kernel(rows, mask, total):  # type: ignore[no-untyped-def] # pragma: no cover
    smallest = rows[0, 0]
    largest = rows[0, 0]
    same = True
    for a in range(rows.shape[0]):
        summed = 0
        for i in range(rows.shape[1]):
            count = rows[a, i]
            smallest = min(smallest, count)
            largest = max(largest, count)
            summed += count if mask[i] else 0
        same = same and summed == total
    return smallest, largest, same


@njit(nogil=True, cache=True)
def _table_kernel(tables, masks, mask_of, logs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    size = tables.shape[1]
    share = np.empty(size)
    log_share = np.empty(size)
    for a in range(tables.shape[0]):
        total, cells, zeros = log_shares(tables[a], masks[mask_of[a]], logs, share, log_share)
        out[a, 0] = total
        out[a, 1] = cells
        out[a, 2] = zeros
        out[a, 3] = entropy_of_shares(share, log_share, cells, zeros)


@njit(nogil=True, cache=True)
def _pair_kernel(  # type: ignore[no-untyped-def] # pragma: no cover
    tables, releases, masks, table_of, release_of, mask_of, logs, release_logs, out
):
    size = tables.shape[1]
    p = np.empty(size)
    log_p = np.empty(size)
    q = np.empty(size)
    log_q = np.empty(size)
    last_table = -1
    last_release = -1
    last_mask = -1
    total = released_total = entropy = 0.0
    cells = zeros = 0
    for a in range(table_of.size):
        mask = masks[mask_of[a]]
        new_mask = mask_of[a] != last_mask
        if new_mask or table_of[a] != last_table:
            total, cells, zeros = log_shares(tables[table_of[a]], mask, logs, p, log_p)
            entropy = entropy_of_shares(p, log_p, cells, zeros)
            last_table = table_of[a]
        if new_mask or release_of[a] != last_release:
            released_total, _, _ = log_shares(releases[release_of[a]], mask, release_logs, q, log_q)
            last_release = release_of[a]
        last_mask = mask_of[a]
        both = 0
        either = 0
        moved = 0.0
        most = 0.0
        conditional = 0.0
        for i in range(size):
            if mask[i]:
                both += p[i] == 0.0 and q[i] == 0.0
                either += p[i] == 0.0 or q[i] == 0.0
                left, gone = cell_term(p[i], q[i], log_p[i], log_q[i])
                if p[i] > NEARLY_ALL and gone > 0.0:
                    most = gone
                else:
                    conditional += left
                    moved += gone
        conditional += moving_term(moved, most)
        if released_total == 0:
            conditional = entropy  # an empty release carries no information
        out[a, 0] = total
        out[a, 1] = released_total
        out[a, 2] = cells
        out[a, 3] = zeros
        out[a, 4] = both
        out[a, 5] = either
        out[a, 6] = entropy
        out[a, 7] = min(max(conditional, 0.0), entropy)


@njit(nogil=True, cache=True)
def _cell_terms(counts, total, release, mask):  # type: ignore[no-untyped-def] # pragma: no cover
    """For each cell and count: -p log p, what the cell adds to H(X|Y), and what moves
    out of it.
    """
    size = release.size
    q = np.empty(size)
    log_q = np.empty(size)
    log_shares(release, mask, _NO_LOOKUP, q, log_q)
    terms = np.zeros((size, counts, 3))
    log_total = np.log(total)
    for count in range(counts):
        p = count / total
        log_p = log_of_share(p, count, total, np.log(count), log_total) if count > 0 else 0.0
        for i in range(size):
            if mask[i]:
                terms[i, count, 0] = -p * log_p
                terms[i, count, 1], terms[i, count, 2] = cell_term(p, q[i], log_p, log_q[i])
    return terms


@njit(nogil=True, cache=True)
def _tabulated_kernel(tables, release, mask, total, terms, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """One pass over the tables: check the counts, look up their terms and sum; return a
    status.
    """
    rows, size = tables.shape
    known = terms.shape[1]
    q = np.empty(size)
    log_q = np.empty(size)
    released_total, cells, released_zeros = log_shares(release, mask, _NO_LOOKUP, q, log_q)
    log_total = np.log(total)
    for a in range(rows):
        summed = 0
        zeros = 0
        both = 0
        entropy = 0.0
        conditional = 0.0
        moved = 0.0
        for i in range(size):
            count = tables[a, i]
            if 0 <= count < known:
                entropy += terms[i, count, 0]
                conditional += terms[i, count, 1]
                moved += terms[i, count, 2]
                if count == 0:
                    zeros += mask[i]
                    both += mask[i] and release[i] == 0
            elif count < 0 or count > MAX_COUNT:
                return _OUT_OF_RANGE
            elif mask[i]:
                p = count / total
                log_p = log_of_share(p, count, total, np.log(count), log_total)
                left, gone = cell_term(p, q[i], log_p, log_q[i])
                entropy -= p * log_p
                conditional += left
                moved += gone
            summed += count if mask[i] else 0
        if summed != total:
            return _OTHER_TOTAL
        if cells - zeros <= 1:
            entropy = 0.0
        if moved > 0.0:  # of so many tables of so few people no `moving_term` is needed
            conditional += moved * np.log(moved)
        out[a, 0] = total
        out[a, 1] = released_total
        out[a, 2] = cells
        out[a, 3] = zeros
        out[a, 4] = both
        out[a, 5] = released_zeros + zeros - both
        out[a, 6] = entropy
        out[a, 7] = min(max(conditional, 0.0), entropy)
    return _FINE
