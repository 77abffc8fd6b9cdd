"""How names and labels may be written: what they hold is seen, and no two look alike.

Labels are kept as they are written. A label with a character that is not seen, such as
a control character or a zero-width space, is refused, and so are two labels that differ
only by white space around or between their words, by the normal form of an accented
letter (NFC), by a mark that joins letters or chooses their shape, or, as numbers or
times, by their type. The cells of what looks like one category are thus never told
apart, or put together, in silence.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, Final
from unicodedata import category, name, normalize

import numpy as np
import pandas as pd

from taciturn.errors import TableError

__all__ = [
    "HIDDEN",
    "MOST_LETTERS",
    "check_spelling",
    "check_types",
    "is_plain",
    "legible",
    "numbered",
    "seen",
    "spelled",
]

MOST_LETTERS: Final = 1_000
"""Longest name or label: a longer one is a mistake, such as a quote never closed."""

_PLAIN: Final = re.compile(r"[!-~]+(?: [!-~]+)*")
"""Words of ASCII with a space between them: they look alike only if they are equal."""

_UNSEEN_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_LOST: Final = "\ufffd"  # stands for text that could not be read, whichever it was

_JOINERS: Final = frozenset("\u200c\u200d\u180b\u180c\u180d\u180f") | frozenset(
    chr(point) for point in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)
"""What joins or shapes letters, in Persian, Sinhala, Mongolian or Japanese for
instance, and is not seen itself."""

_WITHOUT_JOINERS: Final = dict.fromkeys(map(ord, _JOINERS))

HIDDEN: Final = frozenset({_LOST}) | _FILLERS | _JOINERS
"""Characters that do not show what a text holds although their category is that of
letters, marks or symbols."""


def is_plain(text: str) -> bool:
    """Whether a text shows what it holds and looks like no other."""
    return _PLAIN.fullmatch(text) is not None


def seen(text: str) -> str:
    """What a reader sees of a text: the same for all that look alike."""
    return " ".join(normalize("NFC", text.translate(_WITHOUT_JOINERS)).split())


def spelled(text: str) -> str:
    """A text with all but ASCII written out, cut where it is long."""
    return f"{str(text[:80])!a:.80}"


def legible(text: str) -> str:
    """A text for a message: as it is where all of it is seen, or else spelled."""
    return text if len(text) <= 80 and text.isprintable() else spelled(text)


def numbered(texts: Iterable[str]) -> list[str]:
    """Texts as they are shown, with a number where they are cut alike."""
    shown = list(texts)
    times, met = Counter(shown), Counter[str]()
    for place, text in enumerate(shown):
        if times[text] > 1:
            met[text] += 1
            shown[place] = f"{text} ({met[text]})"
    return shown


def check_spelling(texts: Sequence[str], place: Callable[[int], str]) -> None:
    """Raise `TableError` unless each of some different texts shows what it holds, and
    no two look alike; `place` says where one stands.
    """
    longest = max(texts, key=len, default="")
    if len(longest) > MOST_LETTERS:
        raise TableError(
            f"{place(texts.index(longest))} is longer than {MOST_LETTERS:,} letters:"
            f" {spelled(longest)}"
        )
    if all(map(is_plain, texts)):
        return
    first: dict[str, int] = {}
    for at, text in enumerate(texts):
        if not is_plain(text):
            _refuse_unseen(text, place(at))
        other = first.setdefault(seen(text), at)
        if other != at:
            raise TableError(
                f"{place(other)} and {place(at)} look alike, {spelled(texts[other])} and"
                f" {spelled(text)}: write one as the other if they are one, or so that they differ"
            )


def check_types(values: Sequence[Any], place: Callable[[int], str]) -> None:
    """Raise `TableError` where two of some values that differ are the same number or
    time, of another type, such as 1, 1.0 and True; `place` says where one stands.
    """
    if set(map(type, values)) <= {str}:
        return
    first: dict[Any, int] = {}
    for at, value in enumerate(values):
        other = first.setdefault(_without_type(value), at)
        if other != at:
            raise TableError(
                f"{place(other)} and {place(at)} are equal, {values[other]!r:.80} and"
                f" {value!r:.80}: write one as the other if they are one, or both as text"
            )


def _without_type(value: Any) -> Any:
    """What is equal, and has the same hash, for all types of a number or a time."""
    if isinstance(value, date | np.datetime64):
        try:
            time = pd.Timestamp(value)
        except pd.errors.OutOfBoundsDatetime:
            return value
        finer = isinstance(value, np.datetime64) and time.to_datetime64() != value
        return value if finer else time
    return value.item() if isinstance(value, np.generic) else value


def _refuse_unseen(text: str, where: str) -> None:
    for mark in text:
        if mark == _LOST:
            raise TableError(
                f"{where} holds U+FFFD, which stands for a character that was lost:"
                f" {spelled(text)}; export it again in UTF-8"
            )
        unseen = mark in _FILLERS or category(mark) in _UNSEEN_CATEGORIES
        if unseen and mark not in _JOINERS:
            named = f"U+{ord(mark):04X} {name(mark, '')}".strip()
            raise TableError(
                f"{where} holds {named}, which is not seen: {spelled(text)}; remove it"
            )
    if not seen(text):
        raise TableError(f"{where} holds nothing that is seen: {spelled(text)}")
