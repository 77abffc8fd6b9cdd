"""Whether several tables write the same variables and categories alike: what is written
in two ways would be two, one hidden and the other published.
"""

import re
from decimal import Context, Decimal
from typing import Any, Final
from unicodedata import normalize

from taciturn.errors import TableError
from taciturn.tables.spelling import check_spelling, check_types, spelled

__all__ = ["check_categories", "check_names"]

type Labels = tuple[str, list[Any]]
"""The name of a table, and what it has."""

_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
_ZEROS: Final = re.compile(r"(?<![\d.])0+(?=\d)")
_DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")


def check_names(one: Labels, two: Labels) -> None:
    """Raise `TableError` where two tables may write one variable in two ways."""
    _check_alike("variables and levels", one, two)


def check_categories(name: str, first: Labels, second: Labels) -> None:
    """Raise `TableError` where two tables may have one category of a variable in two
    types, such as 1 and 1.0, or in two spellings, as with another blank.
    """
    one, two = ({str(label): label for label in labels} for _, labels in (first, second))
    every = one | two
    texts = list(every)

    def place(at: int) -> str:
        return f"a category of {name!r} in {(first if texts[at] in one else second)[0]!r}"

    check_types(list(every.values()), place)
    check_spelling(texts, place)
    _check_alike(f"categories of {name!r}", (first[0], list(one)), (second[0], list(two)))
    are_text = [all(isinstance(label, str) for label in labels.values()) for labels in (one, two)]
    if are_text[0] != are_text[1] and not one.keys() & two.keys():
        raise TableError(
            f"{name!r} has no category in common in {first[0]!r} and {second[0]!r}, and is"
            f" text in one only: {spelled(next(iter(one)))} and {spelled(next(iter(two)))}; write"
            " its categories alike, or give it another name in one of them"
        )


def _check_alike(what: str, one: tuple[str, list[str]], two: tuple[str, list[str]]) -> None:
    """Raise `TableError` where each of two tables has a text that the other has not,
    and only case, blanks, dashes or zeros of numbers tell them apart.
    """
    both = set(one[1]) & set(two[1])
    others = {_simplified(text): text for text in one[1] if text not in both}
    for text in two[1]:
        other = others.get(_simplified(text))
        if other is not None and text not in both:
            raise TableError(
                f"{what} must be written alike in all tables: {spelled(other)} in {one[0]!r} may be"
                f" {spelled(text)} in {two[0]!r}; if they differ, let more than case, blanks,"
                " dashes and zeros tell them apart, or give the variable another name in one table"
            )


def _simplified(text: str) -> str:
    """The same for texts that may be one category: numbers by their value."""
    plain = normalize("NFKC", text).translate(_DASHES).casefold().removesuffix(" 00:00:00")
    plain = "".join(plain.split())
    if not _NUMBER.fullmatch(plain):
        return _ZEROS.sub("", plain)
    return str(Decimal(plain).normalize(Context(prec=len(plain))))
