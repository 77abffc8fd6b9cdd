"""How proposals of rates and intensities spread around a node of the grid, in units of
their standard deviations there: each by itself, with tails that weights can bear.
"""

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Final, Self

import numpy as np
import numpy.typing as npt

__all__ = ["Spread"]

_DEGREES: Final = 8.0  # of freedom of Student's t: as few as cost little
_SCALE: Final = 0.9  # of it, so that its middle is as wide as a normal density
_DOUBTED: Final = 30.0  # effective proposals that say as much as nothing learned

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Independent Student t variates.

    Attributes
    ----------
    middle, width : array, shape (strata + effects,), or float
        Of each.
    """

    middle: Floats | float = 0.0
    width: Floats | float = 1.0

    @classmethod
    def learned(cls, log_weights: Floats, variates: Floats) -> Self:
        """From variates with weights, as far as so few tell anything."""
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        trusted = 1 / (1 + _DOUBTED * np.sum(weights**2))
        mean = weights @ variates
        variance = weights @ (variates - mean) ** 2
        return cls(trusted * mean, np.sqrt(trusted * variance + 1 - trusted))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Variates, shape (number, strata + effects)."""
        return self.middle + self.width * _SCALE * rng.standard_t(_DEGREES, size=shape)

    def log_density(self, variates: Floats, kept: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Logarithm of their density, or that of those that are kept, shape
        (number,).
        """
        width = self.width * np.full(variates.shape[1], _SCALE)
        constant = lgamma((_DEGREES + 1) / 2) - lgamma(_DEGREES / 2) - 0.5 * log(_DEGREES * pi)
        standard = (variates - self.middle) / width
        if kept is not None:
            standard, width = standard[:, kept], width[kept]
        tails = np.log1p(standard**2 / _DEGREES).sum(axis=1)
        constants = len(width) * constant - np.log(width).sum()
        return np.asarray(constants - 0.5 * (_DEGREES + 1) * tails)
