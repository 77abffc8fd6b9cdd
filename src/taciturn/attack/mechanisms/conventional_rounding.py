"""Conventional rounding, as an attacker knows it."""

from dataclasses import dataclass

import numpy as np

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.schema import MAX_COUNT
from taciturn.validate import whole_number

__all__ = ["ConventionalRounding"]


@dataclass(frozen=True)
class ConventionalRounding(Mechanism):
    r"""Rounding to the nearest multiple of a base, as `conventional_round` does it.

    .. math:: P(y \mid x) = 1, \qquad y - b/2 \le x < y + b/2

    for multiples `y` of the base `b`. Nothing is left to chance, so that the posterior
    is that of `Rounding`, and the same answer to a second query adds nothing.

    Parameters
    ----------
    base : int
        The base `b`, from 2 to 2**53.

    Raises
    ------
    ParameterError
        A `base` that is not such a number.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.attack.ConventionalRounding(5).support(10)
    (8, 12)
    """

    base: int

    def __post_init__(self) -> None:
        base = whole_number(self.base, "base", least=2, most=MAX_COUNT)
        object.__setattr__(self, "base", base)

    @property
    def gives(self) -> str:
        """Multiples of the base."""
        return f"multiples of {self.base}"

    def support(self, released: int) -> tuple[int, float] | None:
        """Half a base to either side of the released count."""
        if released < 0 or released % self.base:
            return None
        return max(released - self.base // 2, 0), released + (self.base - 1) // 2

    def log_probability(self, released: int, true: Integers) -> Floats:
        """0 within the support."""
        support = self.support(released)
        inside = np.zeros(true.shape, dtype=np.bool_)
        if support is not None:
            inside = (support[0] <= true) & (true <= support[1])
        return np.where(inside, 0.0, -np.inf)
