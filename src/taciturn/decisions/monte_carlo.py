"""Monte Carlo errors of means over draws of a population and replicates of a release.

Every draw meets every replicate, so the variance of the mean is about that of the means
of the draws divided by their effective number, and that of the means of the replicates
divided by theirs. A single draw or replicate is taken for all there is: a population
that is known, a method without randomness.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import error_of_mean
from taciturn.risk.outcomes import Dependence

__all__ = ["ROUNDING", "Means", "Share", "least_by_draw"]

Floats = npt.NDArray[np.float64]

ROUNDING: Final = 1e-12
"""What rounding may leave of measures, of shares, and of losses in proportion."""

_ERRORS: Final = 2  # on either side, what is said to be in doubt


@dataclass(frozen=True, repr=False)
class Means:
    """Of values that every draw has with every replicate.

    Attributes
    ----------
    values : array of shape (draws, replicates)
        What does not depend on the population has one draw.
    dependence : Dependence
        As in `Outcome`; none for a single draw.
    """

    values: Floats
    dependence: Dependence

    @classmethod
    def of(cls, values: Floats, dependence: Dependence) -> Self:
        """Those of an array (draws, replicates)."""
        return cls(values, dependence if len(values) > 1 else Dependence())

    @cached_property
    def by_draw(self) -> Floats:
        """Means of each draw."""
        return np.asarray(self.values.mean(axis=1))

    @cached_property
    def by_replicate(self) -> Floats:
        """Means of each replicate."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def mean(self) -> float:
        """Over all draws and replicates."""
        return float(self.by_draw.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        draws = _error_of_draws(self.by_draw, self.dependence)
        return sqrt(draws**2 + _variance(self.by_replicate))

    def error_beside(self, other: "Means") -> float:
        """Standard error of the difference of two means; 0 where rounding is all of it.

        As many replicates of both are compared one to one: that is right for
        independent ones, and for those of the same seed, too.
        """
        draws = _error_of_draws(self.by_draw - other.by_draw, self.dependence)
        error = sqrt(draws**2 + _variance_of_sum([self.by_replicate, -other.by_replicate]))
        return 0.0 if error <= ROUNDING * max(abs(self.mean), abs(other.mean)) else error

    @property
    def number(self) -> float:
        """The effective number of draws or that of replicates, whichever is smaller;
        infinite where there is one of each.
        """
        draws, replicates = self.values.shape
        effective = inf
        if draws > 1:
            error = _error_of_draws(self.by_draw, self.dependence)
            known = float(self.by_draw.var(ddof=1)) / error**2 if error > 0 else draws
            effective = min(known, draws)
        return min(effective, replicates if replicates > 1 else inf)


@dataclass(frozen=True)
class Share:
    r"""Of the pairs of a draw and a replicate in which something holds.

    With Monte Carlo variance `V`, and `n` draws or replicates, whichever are fewer, the
    interval is

    .. math:: \frac{\hat p + 2/n \pm 2 \sqrt{V + 1/n^2}}{1 + 4/n}

    that of Wilson (1927) with two standard errors if :math:`V = \hat p (1 - \hat p)/n`.
    It has a width at 0 and 1, too, where `V` is 0.

    Attributes
    ----------
    mean : float
        The share.
    centre : float
        Of the interval.
    error : float
        A quarter of the width of the interval; 0 where nothing was drawn.
    """

    mean: float
    centre: float
    error: float

    @classmethod
    def of(cls, holds: npt.NDArray[np.bool_], measured: Means) -> Self:
        """That of an array (draws, replicates), from what was measured."""
        share, each = Means.of(holds.astype(float), measured.dependence), 1 / measured.number
        whole = 1 + _ERRORS**2 * each
        centre = (share.mean + _ERRORS**2 / 2 * each) / whole
        spread = share.error**2 + (_ERRORS / 2 * each) ** 2
        return cls(share.mean, centre, sqrt(spread) / whole)

    def at_least(self, asked: float) -> bool:
        """Whether it is as much as is asked for, but for rounding."""
        return self.mean >= asked - ROUNDING

    def in_doubt(self, asked: float) -> bool:
        """Whether the interval holds what is asked for."""
        return self.error > 0 and abs(self.centre - asked) <= _ERRORS * self.error + ROUNDING


def least_by_draw(means: Sequence[Means]) -> tuple[float, float]:
    """How much the mean of the first is above the mean of the least in each draw, and
    the standard error of that.

    That of replicates is by the delta method: which one is the least in a draw is taken
    as it is found.
    """
    by_draw = np.stack([each.by_draw for each in means])
    least = by_draw.argmin(axis=0)
    saved = by_draw[0] - by_draw.min(axis=0)
    shifts = [
        ((at == 0) - (least == at).astype(float)) @ each.values / len(saved)
        for at, each in enumerate(means)
    ]
    draws = _error_of_draws(saved, means[0].dependence)
    return float(saved.mean()), sqrt(draws**2 + _variance_of_sum(shifts))


def _error_of_draws(values: Floats, dependence: Dependence) -> float:
    """Standard error of the mean over draws, which may be those of a Markov chain, or
    from fewer proposals.
    """
    if np.ptp(values) == 0:
        return 0.0
    error = error_of_mean(values.reshape(dependence.chains, -1))
    if dependence.worth >= len(values):
        return error
    return max(error, float(values.std(ddof=1)) / sqrt(dependence.worth))


def _variance_of_sum(by_replicate: Sequence[Floats]) -> float:
    """Of the sum of the means of several protections; as many replicates are taken one
    to one, others for independent.
    """
    sums: dict[int, Floats] = {}
    for values in by_replicate:
        sums[len(values)] = sums.get(len(values), np.zeros(len(values))) + values
    return sum(map(_variance, sums.values()))


def _variance(values: Floats) -> float:
    """Of the mean of independent values."""
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
