"""Compiled loops over the cells of many draws: of how many observations of the margins
the individuals of a cell count, as tables of a Chinese restaurant with weight `a`.
"""

import math

import numpy as np
from numba import njit

__all__ = ["expected_tables", "table_information"]

_FEW = 40  # individuals whose terms are added one by one
_LARGE = 1e6  # weight from which a midpoint is exact enough
_SERIES = 12.0  # argument from which digamma and trigamma functions are their series
_SMALLEST = 1e-100  # weight whose square does not vanish


@njit(cache=True, nogil=True)
def expected_tables(a, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """``sum over j < f of a / (a + j)``, for each row of weights."""
    out = np.empty(a.shape)
    for row in range(a.shape[0]):
        for i in range(counts.size):
            f, x = counts[i], a[row, i]
            if x > _LARGE:
                out[row, i] = f * x / (x + (f - 1.0) / 2.0)
            elif f <= _FEW and f == math.floor(f):
                total = 0.0
                for j in range(int(f)):
                    total += x / (x + j)
                out[row, i] = total
            else:
                out[row, i] = x * (_digamma(x + f) - _digamma(x))
    return out


@njit(cache=True, nogil=True)
def table_information(a, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """``sum over j < f of a² / (a + j)²``, for each row of weights."""
    out = np.empty(a.shape)
    for row in range(a.shape[0]):
        for i in range(counts.size):
            f, x = counts[i], max(a[row, i], _SMALLEST)
            if x > _LARGE:
                out[row, i] = f * (x / (x + (f - 1.0) / 2.0)) ** 2
            elif f <= _FEW and f == math.floor(f):
                total = 0.0
                for j in range(int(f)):
                    total += (x / (x + j)) ** 2
                out[row, i] = total
            else:
                out[row, i] = x * x * (_trigamma(x) - _trigamma(x + f))
    return out


@njit(cache=True, nogil=True)
def _digamma(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """By its recurrence, and its asymptotic series (DLMF 5.11.2)."""
    before = 0.0
    while x < _SERIES:
        before += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return math.log(x) - 0.5 / x - series - before


@njit(cache=True, nogil=True)
def _trigamma(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """By its recurrence, and its asymptotic series (DLMF 5.15.8)."""
    before = 0.0
    while x < _SERIES:
        before += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66)))))
    return before + (1.0 + 0.5 / x + series) / x
