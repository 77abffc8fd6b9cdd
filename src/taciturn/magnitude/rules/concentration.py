"""Rules about who holds how much of a cell.

In all of them `x_1, x_2, …` are the sizes of the contributions to a cell, the largest
first, `X` is their sum and `N` their number. Amounts are whole steps and parameters are
taken as the decimal numbers they are written as, so that a cell on the boundary is
never moved across it by rounding.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

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
    not_below_zero,
    one_step,
    percent,
    written,
)
from taciturn.validate import real_number, whole_number

__all__ = ["PQ", "Dominance", "PPercent", "Request"]


@dataclass(frozen=True)
class Dominance(SingleRule):
    r"""The (n, k)-dominance rule: the `n` largest contributors hold more than the share
    `k`.

    .. math:: x_1 + \dots + x_n > k X

    A share of exactly `k` is not sensitive. Where there are fewer than `n` contributors
    all of them are taken, so that the cell is sensitive for every `k` below 1 unless
    `X` is 0. Upper protection level:
    :math:`(x_1 + \dots + x_n) / k - X`.

    Parameters
    ----------
    n : int
        From 1 on.
    k : float
        Share above 0 and at most 1. Percent are written as a share: 75 % is 0.75.

    Raises
    ------
    ParameterError
        `n` or `k` out of range.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 4.2.1, eq. (4.1), and Section 4.2.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.Dominance(1, 0.75) | tc.magnitude.MinimumFrequency(3))
    Dominance(1, 0.75) | MinimumFrequency(3)
    """

    n: int
    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number(self.n, "n", least=1))
        real_number(self.k, "k", above=0, most=1)
        object.__setattr__(self, "k", written(self.k))

    def __str__(self) -> str:
        return f"Dominance({self.n}, {self.k})"

    def holds(self, cells: Cells) -> Mask:
        """Whether the `n` largest hold more than `k`."""
        k = exact(self.k)
        return np.asarray(self._top(cells) * k.denominator > cells.total * k.numerator)

    def level(self, cells: Cells) -> Levels:
        """``(x_1 + … + x_n) / k - X``."""
        return not_below_zero(self._top(cells) / exact(self.k) - cells.total)

    def reasons(self, cells: Cells) -> list[str]:
        """The share that the largest hold."""
        hold = "hold" if self.n > 1 else "holds"
        open_ = "" if cells.unwaived is None else ", at least one without a waiver,"
        return [
            f"largest {min(self.n, number):,.15g} of {counted(number)}{open_} {hold} "
            f"{percent(Fraction(100 * top, total), 100 * exact(self.k))} % of"
            f" {cells.amount(total)} ({self})"
            for top, total, number in zip(
                self._top(cells), cells.total, cells.contributors, strict=True
            )
        ]

    def _top(self, cells: Cells) -> Levels:
        return cells.ranked(self.n, str(self)).sum(axis=1)


@dataclass(frozen=True)
class PQ(SingleRule):
    r"""The pq or prior-posterior rule: who knew others to within `q` % comes to know
    the largest to within `p` %.

    .. math:: \frac{q}{100} (X - x_1 - x_2) < \frac{p}{100} x_1

    The attacker is the second largest contributor, who subtracts what he contributed
    himself and estimates all others to within `q` % of their sum. An estimate exactly
    `p` % off is not sensitive. Upper protection level:
    :math:`p x_1 / q - (X - x_1 - x_2)`.

    Parameters
    ----------
    p : float
        Percent, above 0 and at most `q`.
    q : float
        Percent, at most 100.

    Raises
    ------
    ParameterError
        `p` or `q` out of range.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Sections 4.2.1 and 4.2.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.magnitude.PQ(10, 50))
    PQ(10, 50)
    """

    p: float
    q: float

    def __post_init__(self) -> None:
        real_number(self.q, "q", above=0, most=100)
        real_number(self.p, "p", above=0, most=self.q)
        object.__setattr__(self, "p", written(self.p))
        object.__setattr__(self, "q", written(self.q))

    def __str__(self) -> str:
        return f"PQ({self.p}, {self.q})"

    def holds(self, cells: Cells) -> Mask:
        """Whether the rest, to within `q` %, is less than `p` % of the largest."""
        ratio = self._ratio()
        return np.asarray(
            self._rest(cells) * ratio.denominator < self._first(cells) * ratio.numerator
        )

    def level(self, cells: Cells) -> Levels:
        """``p x_1 / q - (X - x_1 - x_2)``."""
        return not_below_zero(self._first(cells) * self._ratio() - self._rest(cells))

    def reasons(self, cells: Cells) -> list[str]:
        """How well the second largest can estimate the largest."""
        q, open_ = exact(self.q), cells.unwaived is not None
        who, what = ("another", " without a waiver") if open_ else ("the second largest", "")
        return [
            f"{f'{who} of {number:,.15g}' if number > 1 else 'any reader'} estimates"
            f" the largest contribution{what}, {cells.amount(first)}, to within"
            f" {percent(q * rest / first, exact(self.p))} % ({self})"
            for first, rest, number in zip(
                self._first(cells), self._rest(cells), cells.contributors, strict=True
            )
        ]

    def _first(self, cells: Cells) -> Levels:
        first: Levels = cells.ranked(1, str(self)).sum(axis=1)  # of no rank where no cell is left
        return first

    def _rest(self, cells: Cells) -> Levels:
        rest: Levels = cells.total - cells.ranked(2, str(self)).sum(axis=1)
        return rest

    def _ratio(self) -> Fraction:
        return exact(self.p) / exact(self.q)


@dataclass(frozen=True)
class PPercent(SingleRule):
    r"""The p%-rule: the second largest contributor comes to know the largest
    contribution to within `p` %.

    .. math:: X - x_1 - x_2 < \frac{p}{100} x_1

    It is `PQ` with `q` = 100. An estimate exactly `p` % off is not sensitive. Upper
    protection level:
    :math:`p x_1 / 100 - (X - x_1 - x_2)`.

    Parameters
    ----------
    p : float
        Percent, above 0 and at most 100.

    Raises
    ------
    ParameterError
        `p` out of range.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 4.2.1, eq. (4.2), and Section 4.2.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.PPercent(10))
    PPercent(10)
    """

    p: float

    def __post_init__(self) -> None:
        real_number(self.p, "p", above=0, most=100)
        object.__setattr__(self, "p", written(self.p))

    def __str__(self) -> str:
        return f"PPercent({self.p})"

    def holds(self, cells: Cells) -> Mask:
        """Whether the rest is less than `p` % of the largest."""
        return self._pq().holds(cells)

    def level(self, cells: Cells) -> Levels:
        """``p x_1 / 100 - (X - x_1 - x_2)``."""
        return self._pq().level(cells)

    def reasons(self, cells: Cells) -> list[str]:
        """How well the second largest can estimate the largest."""
        return self._pq().reasons(cells)

    def _pq(self) -> PQ:
        return _KnowingNothing(self.p, 100)


class _KnowingNothing(PQ):
    """The pq rule that a p%-rule is, by the name of that."""

    def __str__(self) -> str:
        return str(PPercent(self.p))


@dataclass(frozen=True)
class Request(SingleRule):
    r"""The request rule: the largest contributor asked for protection and holds more
    than the share `k`.

    .. math:: x_1 > k X, \qquad \text{and one who contributes } x_1 \text{ asked}

    With `frequency` a cell is sensitive, too, if anybody asked and there are fewer
    contributors than that: a large one who did not ask could work out a small one who
    did. In a table with waivers :math:`x_1` is the largest contribution without one;
    who asked has waived nothing. The table has to be made with ``request=``. Upper
    protection level: :math:`x_1 / k - X`, and one step by `frequency`.

    Parameters
    ----------
    k : float
        Share above 0 and at most 1.
    frequency : int, optional
        From 2 on.

    Raises
    ------
    ParameterError
        `k` or `frequency` out of range.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Section 4.2.1,
    "Foreign trade rules".

    Examples
    --------
    >>> import taciturn as tc
    >>> print(tc.magnitude.Request(0.7))
    Request(0.7)
    """

    k: float
    frequency: int | None = None

    def __post_init__(self) -> None:
        real_number(self.k, "k", above=0, most=1)
        object.__setattr__(self, "k", written(self.k))
        if self.frequency is not None:
            number = whole_number(self.frequency, "frequency", least=2)
            object.__setattr__(self, "frequency", number)

    def __str__(self) -> str:
        return (
            f"Request({self.k})"
            if self.frequency is None
            else f"Request({self.k}, frequency={self.frequency})"
        )

    def holds(self, cells: Cells) -> Mask:
        """Whether the largest, of those who waived nothing, asked and dominates, or
        anybody asked among too few.
        """
        return self._dominates(cells) | self._few(cells)

    def level(self, cells: Cells) -> Levels:
        """``x_1 / k - X`` or one step."""
        dominance = np.where(self._dominates(cells), Dominance(1, self.k).level(cells), 0)
        levels: Levels = np.maximum(dominance, one_step(self._few(cells)))
        return levels

    def reasons(self, cells: Cells) -> list[str]:
        """Who asked."""
        dominance, dominates = Dominance(1, self.k), self._dominates(cells)
        told = iter(dominance.reasons(cells.where(dominates)))  # others may have a total of 0
        return [
            (
                f"{next(told).removesuffix(f' ({dominance})')} and asked for protection ({self})"
                if largest
                else f"{asked:,.15g} of {counted(number)} asked for protection ({self})"
            )
            for largest, asked, number in zip(
                dominates, self._asked(cells)[0], cells.contributors, strict=True
            )
        ]

    def _dominates(self, cells: Cells) -> Mask:
        asked, requested = self._asked(cells)
        first = cells.ranked(1, str(self)).sum(axis=1)  # of no rank where no cell is left
        largest_asked: Mask = (requested == first) & (asked > 0)
        return Dominance(1, self.k).holds(cells) & largest_asked

    def _few(self, cells: Cells) -> Mask:
        return np.asarray(
            (self._asked(cells)[0] > 0) & (cells.contributors < (self.frequency or 0))
        )

    def _asked(self, cells: Cells) -> tuple[npt.NDArray[Any], npt.NDArray[np.object_]]:
        if cells.requests is None or cells.requested is None:
            raise TableError(
                f"{self} needs to know who asked for protection: make the table with request="
            )
        return cells.requests, cells.requested
