"""Unbiased random rounding, as an attacker knows it."""

from dataclasses import dataclass

import numpy as np

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.schema import MAX_COUNT
from taciturn.validate import whole_number

__all__ = ["RandomRounding"]


@dataclass(frozen=True)
class RandomRounding(Mechanism):
    r"""Unbiased random rounding to a base, as `random_round` does it.

    .. math:: P(y \mid x) = 1 - \frac{|x - y|}{b}, \qquad |x - y| < b

    for multiples `y` of the base `b`: a count with remainder `r` goes up with
    probability ``r / b``.

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
    Antal, Shlomo & Elliot (2014), Section 4.

    Examples
    --------
    >>> import numpy as np, taciturn as tc
    >>> rounding = tc.attack.RandomRounding(3)
    >>> rounding.support(6)
    (4, 8)
    >>> np.exp(rounding.log_probability(6, np.arange(4, 9))).round(3).tolist()
    [0.333, 0.667, 1.0, 0.667, 0.333]
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
        """Less than a base from the released count."""
        if released < 0 or released % self.base:
            return None
        return max(released - self.base + 1, 0), released + self.base - 1

    def log_probability(self, released: int, true: Integers) -> Floats:
        """``log(1 - |x - y| / b)``."""
        if released % self.base:
            return np.full(true.shape, -np.inf)
        near = np.maximum(self.base - np.abs(true - released), 0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(near / self.base), dtype=np.float64)
