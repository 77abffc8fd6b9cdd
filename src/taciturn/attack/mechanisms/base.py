"""What every mechanism says: which true counts a released one may stand for, and how
likely each of them gives it.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Integers", "Mechanism"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Mechanism(ABC):
    r"""How a protection method changes one count: :math:`P(y \mid x)`.

    A mechanism of another kind derives from this class and defines `support`,
    `log_probability` and `gives`; `Perturbed` then takes it. It must change each count
    for itself, given the true one: methods that choose the values of a table together,
    such as controlled rounding and record swapping, have no such probabilities.
    """

    keyed: ClassVar[bool] = False
    """Whether the noise follows from keys of the records, so that the same records have
    the same noise wherever they are counted."""

    @property
    @abstractmethod
    def gives(self) -> str:
        """What it may release, in words, for messages."""

    @abstractmethod
    def support(self, released: int) -> tuple[int, float] | None:
        """The least and the most that a true count may be, given the released one;
        infinite where nothing limits it, None where no count gives it.
        """

    @abstractmethod
    def log_probability(self, released: int, true: Integers) -> Floats:
        """Natural logarithm of the probability that each of these true counts, all at
        least 0, gives the released one; minus infinity where it cannot.
        """

    @property
    def reach(self) -> float:
        r"""How far above the released count a true one practically goes, where the
        support has no end: from there on :math:`P(y \mid x)` is less than ``exp(-40)``
        of its largest value, and it falls ever faster or at a constant rate.
        """
        return inf
