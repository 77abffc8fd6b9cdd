"""Slice sampling: steps without tuning that leave any density as it is."""

from collections.abc import Callable
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

__all__ = ["step_along_line", "step_on_ellipse"]

Floats = npt.NDArray[np.float64]

_MOST_WIDENINGS = 50
_SMALLEST = 1e-12  # interval: where rounding keeps a step from ending


def step_along_line(
    value: float, log_density: Callable[[float], float], width: float, rng: np.random.Generator
) -> float:
    """A new value of one number, from an interval that is widened by `width` until its
    ends are outside the slice (Neal 2003, Annals of Statistics 31, Fig. 3 and 5).
    """
    least = log_density(value) - rng.standard_exponential()
    low = value - width * rng.random()
    high = low + width
    for _ in range(_MOST_WIDENINGS):
        if log_density(low) < least:
            break
        low -= width
    for _ in range(_MOST_WIDENINGS):
        if log_density(high) < least:
            break
        high += width
    while True:
        tried = rng.uniform(low, high)
        if log_density(tried) >= least or high - low < _SMALLEST:
            return float(tried)
        if tried < value:
            low = tried
        else:
            high = tried


def step_on_ellipse(
    point: Floats, log_ratio: Callable[[Floats], float], rng: np.random.Generator
) -> Floats:
    """A new point, for a density that is `log_ratio`'s times a standard normal one
    (Murray, Adams & MacKay 2010, AISTATS).
    """
    least = log_ratio(point) - rng.standard_exponential()
    other = rng.standard_normal(len(point))
    angle = high = rng.uniform(0, 2 * pi)
    low = high - 2 * pi
    while True:
        tried = np.asarray(point * cos(angle) + other * sin(angle))
        if log_ratio(tried) >= least or high - low < _SMALLEST:
            return tried
        if angle < 0:
            low = angle
        else:
            high = angle
        angle = rng.uniform(low, high)
