"""The compiled loops of `kernels`."""

from typing import Final

import numpy as np
from numba import njit

from taciturn.schema import MAX_COUNT

__all__ = ["cell_terms", "pair_kernel", "scan_kernel", "table_kernel", "tabulated_kernel"]

_FINE, _OUT_OF_RANGE, _OTHER_TOTAL = 0, 1, 2
_NO_LOOKUP: Final = np.zeros(1)


@njit(nogil=True, cache=True)
def scan_kernel(rows, mask, total):  # type: ignore[no-untyped-def] # pragma: no cover
    """Smallest and largest count, and whether all rows have one total."""
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
def _log_shares(counts, mask, logs, share, log_share):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill shares and their logarithms (0 for an empty cell); return the sum, the cells
    and the zeros.
    """
    total = 0.0  # a float: the sum of many large counts does not fit in an integer
    cells = 0
    zeros = 0
    for i in range(counts.size):
        if mask[i]:
            cells += 1
            total += counts[i]
            if counts[i] == 0:
                zeros += 1
    log_total = np.log(total) if total > 0 else 0.0
    lookup = logs.size > 1
    for i in range(counts.size):
        count = counts[i]
        if mask[i] and count > 0:
            share[i] = count / total
            log_share[i] = (logs[count] if lookup else np.log(count)) - log_total
        else:
            share[i] = 0.0
            log_share[i] = 0.0
    return total, cells, zeros


@njit(nogil=True, cache=True)
def _entropy(share, log_share, cells, zeros):  # type: ignore[no-untyped-def] # pragma: no cover
    if cells - zeros <= 1:
        return 0.0
    total = 0.0
    for i in range(share.size):
        total -= share[i] * log_share[i]
    return max(total, 0.0)


@njit(nogil=True, cache=True)
def _cell_term(p, q, log_p, log_q):  # type: ignore[no-untyped-def] # pragma: no cover
    """What a cell adds to H(X|Y) = -sum m log(m/q) - sum r log(r/t) - sum s log(s/q),
    without t, and its r.
    """
    if p == q or p == 0.0:
        return 0.0, 0.0
    if q == 0.0:
        return -p * log_p, p
    if p > q:
        excess = p - q
        return -excess * np.log(excess), excess
    missing = q - p
    return -p * (log_p - log_q) - missing * (np.log(missing) - log_q), 0.0


@njit(nogil=True, cache=True)
def table_kernel(tables, masks, mask_of, logs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """`TABLE_SUMS` of each table."""
    size = tables.shape[1]
    share = np.empty(size)
    log_share = np.empty(size)
    for a in range(tables.shape[0]):
        total, cells, zeros = _log_shares(tables[a], masks[mask_of[a]], logs, share, log_share)
        out[a, 0] = total
        out[a, 1] = cells
        out[a, 2] = zeros
        out[a, 3] = _entropy(share, log_share, cells, zeros)


@njit(nogil=True, cache=True)
def pair_kernel(  # type: ignore[no-untyped-def] # pragma: no cover
    tables, releases, masks, table_of, release_of, mask_of, logs, release_logs, out
):
    """`PAIR_SUMS` of each pair of a table and a release."""
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
            total, cells, zeros = _log_shares(tables[table_of[a]], mask, logs, p, log_p)
            entropy = _entropy(p, log_p, cells, zeros)
            last_table = table_of[a]
        if new_mask or release_of[a] != last_release:
            released_total, _, _ = _log_shares(
                releases[release_of[a]], mask, release_logs, q, log_q
            )
            last_release = release_of[a]
        last_mask = mask_of[a]
        both = 0
        either = 0
        moved = 0.0
        conditional = 0.0
        for i in range(size):
            if mask[i]:
                both += p[i] == 0.0 and q[i] == 0.0
                either += p[i] == 0.0 or q[i] == 0.0
                left, gone = _cell_term(p[i], q[i], log_p[i], log_q[i])
                conditional += left
                moved += gone
        if moved > 0.0:
            conditional += moved * np.log(moved)
        if released_total == 0:
            conditional = entropy  # nothing released tells nothing
        out[a, 0] = total
        out[a, 1] = released_total
        out[a, 2] = cells
        out[a, 3] = zeros
        out[a, 4] = both
        out[a, 5] = either
        out[a, 6] = entropy
        out[a, 7] = min(max(conditional, 0.0), entropy)


@njit(nogil=True, cache=True)
def cell_terms(counts, total, release, mask):  # type: ignore[no-untyped-def] # pragma: no cover
    """For each cell and count: -p log p, what it adds to H(X|Y) and what moves out of
    it.
    """
    size = release.size
    q = np.empty(size)
    log_q = np.empty(size)
    _log_shares(release, mask, _NO_LOOKUP, q, log_q)
    terms = np.zeros((size, counts, 3))
    log_total = np.log(total)
    for count in range(counts):
        p = count / total
        log_p = np.log(count) - log_total if count > 0 else 0.0
        for i in range(size):
            if mask[i]:
                terms[i, count, 0] = -p * log_p
                terms[i, count, 1], terms[i, count, 2] = _cell_term(p, q[i], log_p, log_q[i])
    return terms


@njit(nogil=True, cache=True)
def tabulated_kernel(tables, release, mask, total, terms, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """One pass over the tables: check the counts, look up their terms, sum; returns
    what it met.
    """
    rows, size = tables.shape
    known = terms.shape[1]
    q = np.empty(size)
    log_q = np.empty(size)
    released_total, cells, released_zeros = _log_shares(release, mask, _NO_LOOKUP, q, log_q)
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
                log_p = np.log(count) - log_total
                left, gone = _cell_term(p, q[i], log_p, log_q[i])
                entropy -= p * log_p
                conditional += left
                moved += gone
            summed += count if mask[i] else 0
        if summed != total:
            return _OTHER_TOTAL
        if cells - zeros <= 1:
            entropy = 0.0
        if moved > 0.0:
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
