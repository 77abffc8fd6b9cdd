"""Monte Carlo errors of means over draws of a population and replicates of a release.

Every draw meets every replicate, so the variance of the mean is about that of the means
of the draws divided by their effective number, and that of the means of the replicates
divided by theirs. A single draw or replicate is taken for all there is: a population
that is known, a method without randomness.
"""

import warnings
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Self

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import array_stats

__all__ = ["Means", "error_of_draws"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Means:
    """Of values that every draw has with every replicate.

    Attributes
    ----------
    by_draw, by_replicate : array
        Means of each draw and of each replicate.
    chains : int
        As in `Outcome`.
    """

    by_draw: Floats
    by_replicate: Floats
    chains: int

    @classmethod
    def of(cls, values: Floats, chains: int) -> Self:
        """Those of an array (draws, replicates); what does not depend on the population
        has one draw.
        """
        return cls(values.mean(axis=1), values.mean(axis=0), chains if len(values) > 1 else 1)

    @property
    def mean(self) -> float:
        """Over all draws and replicates."""
        return float(self.by_draw.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        draws = error_of_draws(self.by_draw, self.chains)
        return sqrt(draws**2 + _variance(self.by_replicate))

    def error_beside(self, other: "Means") -> float:
        """Standard error of the difference of two means.

        As many replicates of both are compared one to one: that is right for
        independent ones, and for those of the same seed, too.
        """
        draws = error_of_draws(self.by_draw - other.by_draw, self.chains)
        ours, theirs = self.by_replicate, other.by_replicate
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
