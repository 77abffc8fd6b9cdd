"""The short forms of rules, for the command line."""

from collections.abc import Callable
from typing import Final

from taciturn.errors import ParameterError
from taciturn.magnitude.rules.base import Rule
from taciturn.magnitude.rules.concentration import PQ, Dominance, PPercent, Request
from taciturn.magnitude.rules.frequency import EntropyRule, MinimumFrequency, UnsafeZeros
from taciturn.tables.values import is_number

__all__ = ["rule_from_text"]

_TEXTS: Final[dict[str, tuple[Callable[..., Rule], tuple[type, ...], int, str]]] = {
    "nk": (Dominance, (int, float), 2, "nk:n,k such as nk:1,0.75"),
    "p%": (PPercent, (float,), 1, "p%:p such as p%:10"),
    "pq": (PQ, (float, float), 2, "pq:p,q such as pq:10,50"),
    "freq": (MinimumFrequency, (int, float), 1, "freq:k or freq:k,range such as freq:3,20"),
    "zero": (UnsafeZeros, (float,), 1, "zero:amount such as zero:100"),
    "entropy": (EntropyRule, (float,), 1, "entropy:t such as entropy:0.5"),
    "request": (Request, (float, int), 1, "request:k or request:k,frequency such as request:0.7,3"),
}


def rule_from_text(text: str) -> Rule:
    """Make a rule from its short form on the command line, such as ``nk:1,0.75``.

    Parameters
    ----------
    text : str
        ``nk:n,k``, ``p%:p``, ``pq:p,q``, ``freq:k``, ``freq:k,safety_range``,
        ``zero:amount``, ``entropy:t``, ``request:k`` or ``request:k,frequency``.

    Returns
    -------
    Rule

    Raises
    ------
    ParameterError
        An unknown name, too few or too many numbers, or one that is out of range.

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
            f"the rule {text!r} holds something that is not a number: accepted is {form}"
        ) from error


def _number(word: str, kind: type) -> int | float:
    """A number as written, whole where it can be."""
    if not is_number(word):  # Python reads more: 1_0, and digits of other scripts
        raise ValueError(word)
    try:
        return int(word)
    except ValueError:
        if kind is int:
            raise
        return float(word)
