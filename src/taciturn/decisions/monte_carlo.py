"""Monte Carlo errors of means over draws of a population and replicates of a release.

Every draw meets every replicate, so the variance of the mean is about that of the means
of the draws divided by their effective number, and that of the means of the replicates
divided by theirs. A single draw or replicate is taken for all there is: a population
that is known, a method without randomness.
"""

import warnings
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import array_stats

__all__ = ["error_of_difference", "error_of_draws", "error_of_mean"]

Floats = npt.NDArray[np.float64]


def error_of_mean(values: Floats, chains: int) -> float:
    """Standard error of the mean of an array (draws, replicates)."""
    return sqrt(error_of_draws(values.mean(axis=1), chains) ** 2 + _variance(values.mean(axis=0)))


def error_of_difference(first: Floats, second: Floats, chains: int) -> float:
    """Standard error of the mean of the first less that of the second.

    As many replicates of both are compared one to one: that is right for independent
    ones, and for those of the same seed, too.
    """
    draws = error_of_draws(first.mean(axis=1) - second.mean(axis=1), chains)
    ours, theirs = first.mean(axis=0), second.mean(axis=0)
    if len(ours) == len(theirs):
        return sqrt(draws**2 + _variance(ours - theirs))
    return sqrt(draws**2 + _variance(ours) + _variance(theirs))


def error_of_draws(values: Floats, chains: int) -> float:
    """Standard error of the mean over draws, which may be those of a Markov chain."""
    if np.ptp(values) == 0:
        return 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        by_chain = values.reshape(chains, -1)
        error = float(array_stats().mcse(by_chain, chain_axis=0, draw_axis=1, method="mean"))
    # NaN: too few draws to see how they depend on each other
    return error if isfinite(error) else sqrt(_variance(values))


def _variance(values: Floats) -> float:
    """Of the mean of independent values."""
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
