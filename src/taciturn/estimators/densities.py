"""Compiled: densities of the distributions of one positive number that priors have."""

import math
from typing import Final

from numba import njit

__all__ = ["KINDS", "log_density"]

KINDS: Final = (
    "Beta",
    "Exponential",
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "HalfStudentT",
    "InverseGamma",
    "LogNormal",
    "Pareto",
    "Uniform",
)
"""By the numbers that compiled code has for them."""

_HALF_PI = math.log(0.5 * math.pi)
_TWO_PI = math.log(2.0 * math.pi)


@njit(cache=True, nogil=True, error_model="numpy")
def log_density(kind, a, b, x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the density of a distribution at `x`; `a` and `b` are its parameters
    in PyMC's order.
    """
    if x < 0.0 or (kind == 0 and x > 1.0) or (x == 0.0 and (kind == 6 or kind == 7)):
        return -math.inf
    log_x = math.log(x) if x > 0.0 else -math.inf
    if kind == 0:
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        log_rest = math.log1p(-x) if x < 1.0 else -math.inf
        return constant + _times(a - 1.0, log_x) + _times(b - 1.0, log_rest)
    if kind == 1:
        return math.log(a) - a * x
    if kind == 2:
        return a * math.log(b) - math.lgamma(a) + _times(a - 1.0, log_x) - b * x
    if kind == 3:
        return -_HALF_PI - math.log(a) - math.log1p((x / a) ** 2)
    if kind == 4:
        return -0.5 * _HALF_PI - math.log(a) - 0.5 * (x / a) ** 2
    if kind == 5:
        half = 0.5 * (a + 1.0)
        constant = math.lgamma(half) - math.lgamma(0.5 * a) - 0.5 * math.log(a * math.pi)
        return math.log(2.0 / b) + constant - half * math.log1p((x / b) ** 2 / a)
    if kind == 6:
        return a * math.log(b) - math.lgamma(a) - (a + 1.0) * log_x - b / x
    if kind == 7:
        away = (log_x - a) / b
        return -0.5 * _TWO_PI - math.log(b) - log_x - 0.5 * away * away
    if kind == 8:
        return math.log(a) + a * math.log(b) - (a + 1.0) * log_x if x >= b else -math.inf
    return -math.log(b - a) if a <= x <= b else -math.inf


@njit(cache=True, nogil=True)
def _times(factor, log_x):  # type: ignore[no-untyped-def] # pragma: no cover
    return factor * log_x if factor != 0.0 else 0.0
