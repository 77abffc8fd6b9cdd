"""Rules about how many contribute, and how evenly."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import TableError
from taciturn.magnitude.cells import Cells
from taciturn.magnitude.rules.base import (
    Levels,
    Mask,
    SingleRule,
    counted,
    exact,
    one_step,
    written,
)
from taciturn.validate import real_number, whole_number

__all__ = ["EntropyRule", "MinimumFrequency", "UnsafeZeros"]

_NEAR: Final = 1e-9  # a ratio of entropies this close to the threshold is on it


@dataclass(frozen=True)
class MinimumFrequency(SingleRule):
    """The threshold rule: fewer than `k` contributors, ``N < k``.

    Contributions of zero count. With weights `N` is the sum of the weights. There is no
    amount in it, so that its upper protection level is the least that there is, one
    step, unless `safety_range` asks for more.

    Parameters
    ----------
    k : int
        The smallest number that is not sensitive, from 2 on.
    safety_range : float
        How much protection a sensitive cell needs, in percent of its total.

    Raises
    ------
    ParameterError
        `k` or `safety_range` out of range.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 4.2.1.

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.magnitude.MinimumFrequency(3))
    MinimumFrequency(3)
    """

    k: int
    safety_range: float = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "k", least=2))
        real_number(self.safety_range, "safety_range", least=0)
        object.__setattr__(self, "safety_range", written(self.safety_range))

    def __str__(self) -> str:
        more = f", safety_range={self.safety_range}" if self.safety_range else ""
        return f"MinimumFrequency({self.k}{more})"

    def holds(self, cells: Cells) -> Mask:
        """Whether there are fewer than `k`."""
        return np.asarray(cells.contributors < self.k)

    def level(self, cells: Cells) -> Levels:
        """One step, or the safety range."""
        holds = self.holds(cells)
        ranges = np.where(holds, cells.total * exact(self.safety_range) / 100, 0)
        return np.maximum(one_step(holds), ranges)

    def reasons(self, cells: Cells) -> list[str]:
        """How many there are."""
        return [f"{counted(number)} ({self})" for number in cells.contributors]


@dataclass(frozen=True)
class UnsafeZeros(SingleRule):
    """Zeros are unsafe: all contributors to a cell contribute nothing, so that a total
    of 0 tells what each of them has.

    Cells without a contributor are empty, and no such zeros.

    Parameters
    ----------
    amount : float
        How much protection such a cell needs, in the units of the table.

    Raises
    ------
    ParameterError
        `amount` that is not above 0.

    References
    ----------
    τ-ARGUS Version 4.1, User's Manual, zero unsafe.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": ["A", "A", "B"], "turnover": [0, 0, 50]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover")
    >>> rule = tc.magnitude.UnsafeZeros(10)
    >>> tc.sensitive_cells(table, rule)["sensitive"].values.tolist()
    [True, False]
    >>> tc.magnitude.protection_levels(table, rule).values.tolist()
    [10.0, 0.0]
    """

    amount: float

    def __post_init__(self) -> None:
        real_number(self.amount, "amount", above=0)
        object.__setattr__(self, "amount", written(self.amount))

    def __str__(self) -> str:
        return f"UnsafeZeros({self.amount})"

    def holds(self, cells: Cells) -> Mask:
        """Whether nobody contributes anything."""
        return np.asarray(cells.total == 0, dtype=np.bool_)

    def level(self, cells: Cells) -> Levels:
        """The amount."""
        level: Levels = one_step(self.holds(cells)) * (exact(self.amount) / cells.step)
        return level

    def reasons(self, cells: Cells) -> list[str]:
        """How many contribute nothing."""
        return [f"{counted(number)}, and all of nothing ({self})" for number in cells.contributors]


@dataclass(frozen=True)
class EntropyRule(SingleRule):
    r"""The entropy rule: contributions are too uneven.

    .. math::

        \frac{H}{\log_2 N} < t, \qquad
        H = -\sum_{i=1}^N \frac{x_i}{X} \log_2 \frac{x_i}{X}

    Contributions of zero count in `N`. The ratio of a single contributor is taken as 0,
    and that of contributors of nothing but zeros, so that both are sensitive for every
    `t` above 1e-9. It is computed in double precision; within 1e-9 of `t` it is taken
    as `t`, which is not sensitive. There is no amount in it: the upper protection level
    is one step.

    Parameters
    ----------
    t : float
        From 0, never sensitive, to 1, sensitive unless all contribute alike.

    Raises
    ------
    ParameterError
        `t` out of range.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2, eq. (1).

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.magnitude.EntropyRule(0.5))
    EntropyRule(0.5)
    """

    t: float

    def __post_init__(self) -> None:
        real_number(self.t, "t", least=0, most=1)
        object.__setattr__(self, "t", written(self.t))

    def __str__(self) -> str:
        return f"EntropyRule({self.t})"

    def holds(self, cells: Cells) -> Mask:
        """Whether the ratio is below `t`."""
        return self._ratio(cells) < self.t - _NEAR

    def level(self, cells: Cells) -> Levels:
        """One step."""
        return one_step(self.holds(cells))

    def reasons(self, cells: Cells) -> list[str]:
        """The ratio."""
        return [
            (
                f"entropy is {ratio:.3f} of that of {number:,.15g} equal contributions ({self})"
                if number > 1
                else f"{counted(number)} has no entropy ({self})"
            )
            for ratio, number in zip(self._ratio(cells), cells.contributors, strict=True)
        ]

    def _ratio(self, cells: Cells) -> npt.NDArray[np.float64]:
        several = cells.contributors > 1
        if np.isnan(cells.entropy[several]).any():
            raise TableError(
                f"{self} needs the entropy of all contributions, which a table that was read"
                " aggregated does not have: tabulate the records, or choose another rule"
            )
        most = np.log2(np.where(several, cells.contributors, 2).astype(np.float64))
        return np.where(several, cells.entropy / most, 0.0)
