"""Values of the parameters of the mixed Poisson model as arrays, a row for each point,
and how a density bends there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Bends", "Points"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Values of all parameters, the first axis that of the points.

    Attributes
    ----------
    log_nu, power : array, shape (points,)
        Of the departures.
    logs : array, shape (points, strata + effects)
        Logarithms of the intensities of the strata that have a sample, and of the rates
        of the categories of all variables, one variable after the other; then the
        coordinates of all interactions.
    sums : array, shape (points, variables)
        Shapes of the distributions of the sums of rates.
    log_a : array, shape (points, groups)
        Logarithms of the concentrations of the margins, and of the precisions of the
        coordinates of interactions.
    share : array, shape (points,)
        The probability that a factor is inverse Gaussian.
    inflation : array, shape (points,)
        The probability that a cell is one where nobody can be.
    """

    log_nu: Floats
    power: Floats
    logs: Floats
    sums: Floats
    log_a: Floats
    share: Floats
    inflation: Floats

    @property
    def departures(self) -> tuple[Floats, Floats, Floats, Floats]:
        """What departures are like: log ν, the power, the share and the inflation."""
        return self.log_nu, self.power, self.share, self.inflation

    def at(self, which: npt.NDArray[np.int64] | slice) -> "Points":
        """Some of the points."""
        return Points(*(part[which] for part in vars(self).values()))

    @classmethod
    def joined(cls, several: Sequence["Points"]) -> "Points":
        """Those of several, one after the other."""
        parts = zip(*(vars(points).values() for points in several), strict=True)
        return cls(*(np.concatenate(each) for each in parts))


@dataclass(frozen=True)
class Bends:
    """How a density bends at some points.

    Attributes
    ----------
    slopes : array, shape (points, strata + effects)
        By intensities, and by rates and coordinates.
    effects, between, intensities : array
        Second derivatives, with the sign changed: of pairs of rates and coordinates,
        shape (points, effects, effects), of intensities and these, (points, strata,
        effects), and of intensities, (points, strata); two of these do not interact.
    sums : array, shape (points, variables)
        The information about rates, added up by variable.
    """

    slopes: Floats
    effects: Floats
    between: Floats
    intensities: Floats
    sums: Floats

    @classmethod
    def joined(cls, several: Sequence["Bends"]) -> "Bends":
        """Those of several, one after the other."""
        parts = zip(*(vars(bends).values() for bends in several), strict=True)
        return cls(*map(np.concatenate, parts))
