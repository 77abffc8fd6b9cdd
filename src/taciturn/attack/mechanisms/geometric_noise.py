"""Two-sided geometric noise, as an attacker knows it."""

from dataclasses import dataclass, field
from math import exp, inf, log, log1p, tanh

import numpy as np

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.schema import MAX_COUNT
from taciturn.validate import real_number

__all__ = ["GeometricNoise"]

_NEGLIGIBLE = 40.0  # natural logarithm of a ratio of probabilities


@dataclass(frozen=True)
class GeometricNoise(Mechanism):
    r"""Two-sided geometric noise, as `add_noise` adds it.

    .. math::

        P(y \mid x) = \frac{1 - a}{1 + a}\, a^{|y - x|} \quad (y > 0), \qquad
        P(0 \mid x) = \frac{a^x}{1 + a}, \qquad a = e^{-\varepsilon}

    as negative results become zero. Any count may give any other, so that the noise
    alone limits no cell. In a posterior a cell goes up to ``40 / epsilon`` above the
    largest of what is released of it and of its totals, and of its expected count: what
    is further out has a probability of less than ``exp(-40)``.

    Parameters
    ----------
    epsilon : float
        The parameter `ε` of the noise, above 0.

    Raises
    ------
    ParameterError
        An `epsilon` that is not a finite number above 0.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2012), Universally utility-maximizing privacy
    mechanisms, SIAM Journal on Computing 41, 1673-1693.

    Examples
    --------
    >>> import numpy as np, taciturn as tc
    >>> noise = tc.attack.GeometricNoise(epsilon=1)
    >>> noise.support(2)
    (0, inf)
    >>> np.exp(noise.log_probability(2, np.arange(5))).round(3).tolist()
    [0.063, 0.17, 0.462, 0.17, 0.063]
    """

    epsilon: float = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real_number(self.epsilon, "epsilon", above=0))

    @property
    def gives(self) -> str:
        """All counts."""
        return "whole numbers from 0 on"

    @property
    def reach(self) -> float:
        """``40 / epsilon``."""
        return _NEGLIGIBLE / self.epsilon

    def support(self, released: int) -> tuple[int, float] | None:
        """All counts."""
        return (0, inf) if released >= 0 else None

    def log_probability(self, released: int, true: Integers) -> Floats:
        """Linear in the distance; 0 and 2**53 take all noise that would go beyond."""
        if not 0 <= released <= MAX_COUNT:
            return np.full(true.shape, -np.inf)
        beyond = released in (0, MAX_COUNT)
        largest = -log1p(exp(-self.epsilon)) if beyond else log(tanh(self.epsilon / 2))
        return largest - self.epsilon * np.abs(true - released)
