"""Rules about how many contribute and how evenly, and the short forms of all rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError
from taciturn.magnitude.cells import Cells
from taciturn.magnitude.concentration import PQ, Dominance, PPercent, Request
from taciturn.magnitude.rule import Levels, Mask, Rule, SingleRule, counted, one_step
from taciturn.validate import real_number, whole_number

__all__ = ["EntropyRule", "MinimumFrequency", "rule_from_text"]

_NEAR: Final = 1e-9  # a ratio of entropies this close to the threshold is on it


@dataclass(frozen=True)
class MinimumFrequency(SingleRule):
    """The threshold rule: fewer than `k` contributors, ``N < k``.

    Contributions of zero count. With weights `N` is the sum of the weights. There is no
    amount in it, so that its upper protection level is the least that there is: one
    step.

    Parameters
    ----------
    k : int
        The smallest number that is not sensitive, from 2 on.

    Raises
    ------
    ParameterError
        `k` out of range.

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

    def __post_init__(self) -> None:
        whole_number(self.k, "k", least=2)

    def __str__(self) -> str:
        return f"MinimumFrequency({self.k})"

    def holds(self, cells: Cells) -> Mask:
        """Whether there are fewer than `k`."""
        return np.asarray(cells.contributors < self.k)

    def level(self, cells: Cells) -> Levels:
        """One step."""
        return one_step(self.holds(cells))

    def reasons(self, cells: Cells) -> list[str]:
        """How many there are."""
        return [f"{counted(number)} ({self})" for number in cells.contributors]


@dataclass(frozen=True)
class EntropyRule(SingleRule):
    r"""The entropy rule: contributions are too uneven.

    .. math:: \frac{H}{\log_2 N} < t, \qquad H = -\sum_{i=1}^N \frac{x_i}{X} \log_2 \frac{x_i}{X}

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
        most = np.log2(np.where(several, cells.contributors, 2).astype(np.float64))
        return np.where(several, cells.entropy / most, 0.0)


_TEXTS: Final[dict[str, tuple[Callable[..., Rule], tuple[type, ...], int, str]]] = {
    "nk": (Dominance, (int, float), 2, "nk:n,k such as nk:1,0.75"),
    "p%": (PPercent, (float,), 1, "p%:p such as p%:10"),
    "pq": (PQ, (float, float), 2, "pq:p,q such as pq:10,50"),
    "freq": (MinimumFrequency, (int,), 1, "freq:k such as freq:3"),
    "entropy": (EntropyRule, (float,), 1, "entropy:t such as entropy:0.5"),
    "request": (Request, (float, int), 1, "request:k or request:k,frequency such as request:0.7,3"),
}


def rule_from_text(text: str) -> Rule:
    """A rule from its short form, such as ``nk:1,0.75``; the command line's way in.

    Parameters
    ----------
    text : str
        ``nk:n,k``, ``p%:p``, ``pq:p,q``, ``freq:k``, ``entropy:t``, ``request:k`` or
        ``request:k,frequency``.

    Returns
    -------
    Rule

    Raises
    ------
    ParameterError
        Another name, a number too few or too many, or one that is out of range.

    Examples
    --------
    >>> print(rule_from_text("pq:10,50"))
    PQ(10, 50)
    """
    name, _, listed = str(text).partition(":")
    known = _TEXTS.get(name.strip().lower())
    if known is None:
        raise ParameterError(
            f"no rule {text!r}: accepted are " + "; ".join(form for *_, form in _TEXTS.values())
        )
    make, kinds, least, form = known
    words = [word.strip() for word in listed.split(",")]
    if not least <= len(words) <= len(kinds):
        raise ParameterError(f"the rule {text!r} has {len(words)} numbers: accepted is {form}")
    try:
        numbers = [_number(word, kind) for word, kind in zip(words, kinds, strict=False)]
        return make(*numbers)
    except ParameterError as error:
        raise ParameterError(f"the rule {text!r}: {error}") from error
    except ValueError as error:
        raise ParameterError(
            f"the rule {text!r} holds something that is no number: accepted is {form}"
        ) from error


def _number(word: str, kind: type) -> int | float:
    """A number as written, whole where it can be."""
    try:
        return int(word)
    except ValueError:
        if kind is int:
            raise
        return float(word)
