"""Proposals of the intensities of strata of one or two sampled people, or of more where
a prior has departures so strong that they hardly matter.

Where departures are strong the density of the logarithm of such an intensity rises like
the number of people, and falls like the sum of the shapes of the cells, which may be
near 0: over a wide range it is nearly flat. Student's t misses some of that in each
stratum, and in many strata nearly all. The logarithm of the odds of a beta variate has
such tails, and is the density itself where shapes are in proportion to cells. Inverse
Gaussian factors have it rise by a half for each cell with people, to a peak.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaln
from scipy.stats import t as student

from taciturn.estimators.mixed_poisson.modes import log_scale
from taciturn.estimators.mixed_poisson.points import Bends, Points
from taciturn.estimators.mixed_poisson.target import Target
from taciturn.estimators.sampling.draws import draw_log_gammas

__all__ = ["ThinStrata", "heights"]

_PEOPLE: Final = 2  # at most; with more Student's t is near enough
_FILLED: Final = 2  # cells with people, at most
_STRONG: Final = 0.05  # probability of stronger departures
_LEAST: Final = 0.2  # sum of shapes with these, below which Student's t is not
_LEAST_OF_FILLED: Final = 0.5  # the same of the shapes of cells with people
_FLATTEST: Final = 0.02  # slope, so that intensities are from exp(-700) to exp(700)
_OF_PEAK: Final = 0.7  # share of proposals, where there is one
_DEGREES: Final = 4.0  # of freedom of these

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ThinStrata:
    """How the densities of some intensities fall to both sides of their modes.

    Attributes
    ----------
    strata : array of int, shape (thin,)
        Their numbers.
    left, right : array, shape (points, thin)
        Slopes of the logarithm far off.
    width : array, shape (points, thin), optional
        Of the peak at the mode, if there is one.
    """

    strata: npt.NDArray[np.int64]
    left: Floats
    right: Floats
    width: Floats | None

    @staticmethod
    def numbers(target: Target) -> npt.NDArray[np.int64]:
        """Which strata are thin, of several; a single one where all other cells than
        one or two may be impossible; none with inverse Gaussian factors alone, whose
        density falls more steeply than any power.
        """
        if target.pure and "share" not in target.axes:
            return np.empty(0, dtype=np.int64)
        if len(target.strata.kept) == 1:
            flat = _strong(target) * target.occupied < _LEAST_OF_FILLED
            few = target.occupied <= _FILLED
            return np.flatnonzero(few & flat & ("inflation" in target.axes))
        return np.flatnonzero((target.people <= _PEOPLE) | (_least(target) < _LEAST))

    @staticmethod
    def miss(target: Target) -> bool:
        """Whether a prior has departures so strong that no proposal has the tails of a
        stratum of more people, of several.
        """
        if len(target.strata.kept) == 1:
            return False
        numbers = ThinStrata.numbers(target)
        some = target.people[numbers] > _PEOPLE
        return bool((_least(target)[numbers][some] < _FLATTEST).any())

    @classmethod
    def at_modes(
        cls, target: Target, strata: npt.NDArray[np.int64], points: Points, information: Floats
    ) -> "ThinStrata":
        """Those with these numbers at some points, with the information about all
        intensities.
        """
        peaked = "share" in target.axes
        known = information[:, strata]
        people = target.people[strata]
        rise = target.occupied[strata] / 2 if peaked else people
        # Empty cells that may be impossible say nothing of large intensities.
        fall = target.shapes(points, occupied="inflation" in target.axes)
        right = np.maximum(fall[:, strata], _FLATTEST)
        left = np.broadcast_to(rise, right.shape)
        if peaked:
            return cls(strata, left, right, 1 / np.sqrt(known))
        # As wide as at the mode, where shapes are not in proportion to cells.
        wider = np.minimum(known * (1 / left + 1 / right), 1.0)
        left, right = (np.maximum(wider * slope, _FLATTEST) for slope in (left, right))
        return cls(strata, left, right, None)

    @property
    def log_peak(self) -> Floats:
        """Logarithm of the density at the modes of all strata, shape (points,)."""
        rows = np.arange(len(self.left))
        return self._log_density(np.zeros(self.left.shape), rows)

    def draw(self, rows: npt.NDArray[np.int64], rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Of these points how far off the modes to go, (rows, thin), and the logarithm
        of the density of all strata, (rows,).
        """
        left, right = self.left[rows], self.right[rows]
        off = draw_log_gammas(left, rng) - draw_log_gammas(right, rng) - np.log(left / right)
        if self.width is not None:
            near = self.width[rows] * rng.standard_t(_DEGREES, size=off.shape)
            off = np.where(rng.random(off.shape) < _OF_PEAK, near, off)
        return off, self._log_density(off, rows)

    def _log_density(self, off: Floats, rows: npt.NDArray[np.int64]) -> Floats:
        left, right = self.left[rows], self.right[rows]
        odds = off + np.log(left / right)
        density = left * odds - (left + right) * np.logaddexp(0.0, odds) - betaln(left, right)
        if self.width is not None:
            near = student.logpdf(off, _DEGREES, scale=self.width[rows])
            density = np.logaddexp(np.log(_OF_PEAK) + near, np.log1p(-_OF_PEAK) + density)
        return np.asarray(density.sum(axis=1))


def _least(target: Target) -> Floats:
    """Sums of the shapes of each stratum where departures are strong."""
    cells = target.strata.sums(np.ones(target.strata.of_cell.shape))
    return np.asarray(_strong(target) * cells)


def _strong(target: Target) -> float:
    """Shape that departures have where they are strong."""
    return target.priors["nu"].quantile(_STRONG)


def heights(
    target: Target, modes: Points, bends: Bends, roots: Floats
) -> tuple[Floats, ThinStrata | None]:
    """Logarithms of what the posterior has around each mode, as if it were as wide as
    it bends there, but for the intensities of thin strata, which are returned.
    """
    height = target.log_density(modes) - log_scale(bends, roots)
    strata = ThinStrata.numbers(target)
    if not len(strata):
        return height, None
    thin = ThinStrata.at_modes(target, strata, modes, bends.intensities)
    height += 0.5 * np.log(bends.intensities[:, strata]).sum(axis=1) - thin.log_peak
    return height, thin
