"""Values as they are read: which are missing, which can be labels, and which number a
text stands for.

A number in a text is written with the digits 0 to 9, a point before its decimals, and
perhaps a sign or an exponent, as in ``1e+05``; spaces around it do not matter. Anything
else, such as ``1,000``, ``1_000``, ``0x10`` or digits of other scripts, is no number.
Nor is ``1.000`` in a text, where fewer than three decimals are expected: in much of
Europe it is a thousand.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite, ulp
from typing import Any, Final

import numpy as np
import pandas as pd

from taciturn.errors import TableError, TaciturnError
from taciturn.schema import MAX_COUNT
from taciturn.validate import is_real

__all__ = [
    "convertible",
    "exact_times",
    "is_integer",
    "is_label",
    "is_missing",
    "is_number",
    "is_perhaps_thousands",
    "json_value",
    "number_hint",
    "python_values",
    "real_value",
    "signed_steps",
    "text_of",
    "whole_steps",
    "without_exponent",
]

_INCONVERTIBLE: Final = (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError)
_OFF: Final = 1e-2  # steps
_QUICK: Final = 16  # digits that need no further look
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_COMMA: Final = re.compile(r"[+-]?[0-9.' \u00a0\u202f]*,[0-9]*")
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or blank text."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return value != value
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling NaN cannot be compared
    if isinstance(value, np.inexact | np.datetime64 | np.timedelta64 | complex):
        return bool(value != value)
    return value is None or value is pd.NA or value is pd.NaT


def is_label(value: Any) -> bool:
    """Whether a value can name a category or a contributor: text, a number, true or
    false, a date or time without a time zone, or an interval of these.
    """
    if isinstance(value, datetime | time):
        return value.tzinfo is None
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufUM"
    return isinstance(value, str | int | float | Decimal | date | pd.Period | pd.Interval)


def is_number(text: str) -> bool:
    """Whether a text is a number, without spaces."""
    return _NUMBER.fullmatch(text) is not None


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and 3.0 are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def whole_steps(raw: Any, decimals: int = 0) -> int | None:
    """The number that text or a number stands for, exactly, in steps of
    ``10**-decimals``; None unless it is a whole number of steps from 0 to 2**53. A
    float with decimals may be off by a few units in its last place, as sums are.
    """
    if type(raw) is str and len(raw) < _QUICK and raw.isascii() and raw.isdigit():
        return whole_steps(int(raw), decimals)
    if is_integer(raw):
        steps = int(raw) * 10**decimals
        return steps if 0 <= steps <= MAX_COUNT else None
    if isinstance(raw, str) and _NUMBER.fullmatch(raw.strip(" ")):
        if is_perhaps_thousands(raw, decimals):
            return None
        number = Decimal(raw.strip(" "))
    elif isinstance(raw, float | np.floating) and isfinite(raw):
        raw = float(raw)
        near = round(raw, decimals) if decimals else raw
        off = min(8 * ulp(raw), _OFF / 10**decimals)
        number = Decimal(repr(near if abs(raw - near) <= off else raw))
    elif isinstance(raw, Decimal) and raw.is_finite():
        number = raw
    else:
        return None
    if number == 0:
        return 0
    # Before 1e999999999 is written out.
    if number < 0 or not -decimals <= number.adjusted() <= len(str(MAX_COUNT)):
        return None
    numerator, denominator = number.as_integer_ratio()
    steps, rest = divmod(numerator * 10**decimals, denominator)
    return steps if rest == 0 and steps <= MAX_COUNT else None


def signed_steps(raw: Any, decimals: int = 0) -> int | None:
    """`whole_steps` of a number that may be negative, down to -2**53."""
    if isinstance(raw, str):
        text = raw.strip(" ")
        if _NUMBER.fullmatch(text) is None:
            return None
        steps = whole_steps(text.removeprefix("-"), decimals)
        return -steps if steps is not None and text.startswith("-") else steps
    if is_integer(raw) or isinstance(raw, float | np.floating | Decimal):
        steps = whole_steps(abs(raw), decimals)
        return -steps if steps is not None and raw < 0 else steps
    return None


def real_value(raw: Any) -> float | None:
    """The number that text or a number stands for; None where there is none."""
    if isinstance(raw, str):
        return float(raw) if is_number(raw.strip(" ")) else None
    return float(raw) if is_real(raw) or (isinstance(raw, Decimal) and raw.is_finite()) else None


def is_perhaps_thousands(raw: Any, decimals: int) -> bool:
    """Whether a text such as ``1.000`` has three decimals where fewer are expected."""
    return decimals < 3 and isinstance(raw, str) and bool(_THOUSANDS.fullmatch(raw.strip(" ")))


def number_hint(raw: Any, decimals: int) -> str:
    """What to do about a text that is a number in much of Europe, for a message."""
    if is_perhaps_thousands(raw, decimals):
        return "; if the point separates thousands, leave it out, or else the zeros after it"
    if isinstance(raw, str) and _COMMA.fullmatch(raw.strip()):
        return "; write a point before decimals, and nothing between thousands"
    return ""


def without_exponent(text: str) -> str:
    """A number with an exponent as one without, unless it is beyond all that is read;
    any other text as it is.
    """
    if _NUMBER.fullmatch(text) is None:
        return text
    number = Decimal(text)
    if not number:
        return "0"
    return f"{number:f}" if abs(number.adjusted()) <= len(str(MAX_COUNT)) else text


def text_of(label: Any) -> str:
    """A label as Python writes it; zero has no sign."""
    text = str(label)
    signed = text.startswith("-") and not isinstance(label, str)
    return text[1:] if signed and label == 0 else text


def python_values(column: Any) -> list[Any]:
    """A column as a list of Python values."""
    if isinstance(column, list):
        return column
    column = exact_times(column)
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values


def exact_times(column: Any) -> Any:
    """A column whose dates and times become values of Python without losing
    nanoseconds, of which polars and times of Arrow would leave nothing.

    Raises
    ------
    ArrowInvalid
        Times of day with nanoseconds, which Python has no value for.
    """
    room = type(column).__module__.partition(".")[0]
    if room == "polars" and column.dtype.is_temporal():
        column, room = column.to_arrow(), "pyarrow"
    if room == "pyarrow" and str(column.type) == "time64[ns]":
        return column.cast("time64[us]")
    return column


def json_value(value: Any) -> Any:
    """A value, or values in mappings and lists, as JSON can hold it: numbers of Python,
    and None for those that are missing or not finite.
    """
    if isinstance(value, Mapping):
        return {str(name): json_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not isfinite(value)):
        return None
    return value


@contextmanager
def convertible(name: str, origin: str) -> Iterator[None]:
    """What fails while a column's values are made out becomes a `TableError`."""
    try:
        yield
    except TaciturnError:
        raise
    except _INCONVERTIBLE as error:
        raise TableError(f"{name!r} of {origin} cannot be read: {error!s:.200}") from error
