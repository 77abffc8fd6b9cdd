"""Figures as they are printed: rounded, but never to the other side of a limit."""

from math import copysign
from typing import Final

__all__ = ["beside"]

_MOST: Final = 17  # decimals, with which numbers up to 1 are what they are


def beside(value: float, *limits: float, decimals: int) -> str:
    """A number with so many decimals, or with as many more as it takes to print it on
    its side of all limits: 0.24098 beside 0.24 is 0.241, not 0.24.
    """
    for number in range(decimals, _MOST):
        text = f"{value:.{number}f}"
        if all(_side(float(text), limit) == _side(value, limit) for limit in limits):
            return text
    return repr(float(value))


def _side(value: float, limit: float) -> float:
    """-1 below a limit, 0 at it, 1 above."""
    return 0.0 if value == limit else copysign(1.0, value - limit)
