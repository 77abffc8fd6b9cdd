"""Shares of a table and what each adds to an entropy, compiled.

Where nearly everybody is in one cell, entropies are as small as the shares of the
others, and the difference of two numbers that agree in most of their digits would have
none left of them: what a share near 1 lacks is computed from the others.
"""

from typing import Final

import numpy as np
from numba import njit

__all__ = [
    "NEARLY_ALL",
    "cell_term",
    "entropy_of_shares",
    "log_of_share",
    "log_shares",
    "moving_term",
]

NEARLY_ALL: Final = 0.99
"""Largest share of which few digits are lost: from a half on it would cost time that
ordinary tables need not spend."""


@njit(nogil=True, cache=True, inline="always")  # calls would take a fifth longer
def log_of_share(share, count, total, log_count, log_total):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of share = count / total."""
    if share > NEARLY_ALL:
        return np.log1p((count - total) / total)
    return log_count - log_total


@njit(nogil=True, cache=True)
def log_shares(counts, mask, logs, share, log_share):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill shares and their logarithms (0 for an empty cell); return the total and the
    numbers of cells and of zeros.
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
            log_count = logs[count] if lookup else np.log(count)
            log_share[i] = log_of_share(share[i], count, total, log_count, log_total)
        else:
            share[i] = 0.0
            log_share[i] = 0.0
    return total, cells, zeros


@njit(nogil=True, cache=True)
def entropy_of_shares(share, log_share, cells, zeros):  # type: ignore[no-untyped-def] # pragma: no cover
    """Entropy in nats; exactly 0 where one cell is filled."""
    if cells - zeros <= 1:
        return 0.0
    total = 0.0
    for i in range(share.size):
        total -= share[i] * log_share[i]
    return max(total, 0.0)


@njit(nogil=True, cache=True)
def cell_term(p, q, log_p, log_q):  # type: ignore[no-untyped-def] # pragma: no cover
    """What a cell adds to H(X|Y) = -sum m log(m/q) - sum r log(r/t) - sum s log(s/q),
    leaving out t; and its r.
    """
    excess = p - q
    if p > NEARLY_ALL and q > NEARLY_ALL:
        excess = np.expm1(log_p) - np.expm1(log_q)
    if excess == 0.0 or p == 0.0:
        return 0.0, 0.0
    if q == 0.0:
        return -p * log_p, p
    if excess > 0.0:
        return -excess * np.log(excess), excess
    missing = -excess
    log_missing = np.log1p(-p / q) if missing > NEARLY_ALL * q else np.log(missing) - log_q
    return -p * (log_p - log_q) - missing * log_missing, 0.0


@njit(nogil=True, cache=True)
def moving_term(moved, most):  # type: ignore[no-untyped-def] # pragma: no cover
    """What t adds to H(X|Y), and all that `most` adds, the r of a share near 1; the sum
    of the others, `moved`, may be tiny.
    """
    total = moved + most
    if moved == total:
        return moved * np.log(moved) if moved > 0.0 else 0.0
    return moved * np.log(total) - most * np.log1p(-moved / total)
