"""Small cell adjustment, as an attacker knows it."""

from dataclasses import dataclass

import numpy as np

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.schema import MAX_COUNT
from taciturn.validate import whole_number

__all__ = ["SmallCellAdjustment"]


@dataclass(frozen=True)
class SmallCellAdjustment(Mechanism):
    r"""Unbiased rounding of small counts only, as `adjust_small_cells` does it.

    .. math:: P(m \mid x) = x / m, \qquad P(0 \mid x) = 1 - x / m \qquad (x \le m)

    Larger counts are released as they are.

    Parameters
    ----------
    minimum : int
        The smallest positive count that is kept, `m`, from 2 to 2**53.

    Raises
    ------
    ParameterError
        A `minimum` that is not such a number.

    References
    ----------
    Shlomo (2007), Statistical disclosure control methods for census frequency tables,
    International Statistical Review 75, 199-217.

    Examples
    --------
    >>> import numpy as np, taciturn as tc
    >>> adjusted = tc.attack.SmallCellAdjustment(3)
    >>> adjusted.support(3)
    (1, 3)
    >>> np.exp(adjusted.log_probability(3, np.arange(5))).round(3).tolist()
    [0.0, 0.333, 0.667, 1.0, 0.0]
    """

    minimum: int

    def __post_init__(self) -> None:
        minimum = whole_number(self.minimum, "minimum", least=2, most=MAX_COUNT)
        object.__setattr__(self, "minimum", minimum)

    @property
    def gives(self) -> str:
        """Zero, the minimum and above."""
        return f"0, or {self.minimum} and above"

    def support(self, released: int) -> tuple[int, float] | None:
        """Small counts for 0 and for the minimum, the count itself above it."""
        if released == 0:
            return 0, self.minimum - 1
        if released == self.minimum:
            return 1, self.minimum
        return (released, released) if released > self.minimum else None

    def log_probability(self, released: int, true: Integers) -> Floats:
        """Logarithms of ``1 - x / m``, of ``x / m``, or of 1."""
        up = np.minimum(true / self.minimum, 1.0)
        if released == 0:
            probability = 1 - up
        elif released == self.minimum:
            probability = np.where(true <= released, up, 0.0)
        else:
            probability = np.where((true == released) & (released > self.minimum), 1.0, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(probability)
