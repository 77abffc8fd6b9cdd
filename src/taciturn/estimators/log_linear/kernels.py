"""Compiled loops over the cells of many draws: of how many observations of the margins
the individuals of a cell count, as tables of a Chinese restaurant with weight `a`.
"""

import numpy as np
from numba import njit

from taciturn.estimators.special import sums_of_shares

__all__ = ["expected_tables", "table_information"]


@njit(cache=True, nogil=True)
def expected_tables(a, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """``sum over j < f of a / (a + j)``, for each row of weights."""
    out = np.empty(a.shape)
    for row in range(a.shape[0]):
        for i in range(counts.size):
            out[row, i] = sums_of_shares(counts[i], a[row, i])[0]
    return out


@njit(cache=True, nogil=True)
def table_information(a, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """``sum over j < f of a² / (a + j)²``, for each row of weights."""
    out = np.empty(a.shape)
    for row in range(a.shape[0]):
        for i in range(counts.size):
            out[row, i] = sums_of_shares(counts[i], a[row, i])[1]
    return out
