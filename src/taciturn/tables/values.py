"""Values as they are read: which are missing, which are whole, and which number a text
stands for.
"""

import re
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import numpy as np

from taciturn.schema import MAX_COUNT

__all__ = ["is_integer", "is_missing", "python_values", "whole_steps"]

_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or blank text."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return value != value
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling NaN cannot be compared
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (getattr(value, "ndim", 0) == 0 and bool(value != value))
    )


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and 3.0 are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def whole_steps(raw: Any, decimals: int = 0) -> int | None:
    """The number that text or a number stands for, exactly, in steps of
    ``10**-decimals``; None unless it is a whole number of steps from 0 to 2**53.
    """
    if is_integer(raw):
        number = Decimal(int(raw))
    elif isinstance(raw, str) and _NUMBER.fullmatch(raw.strip()):
        number = Decimal(raw.strip())
    elif isinstance(raw, float | np.floating) and isfinite(raw):
        number = Decimal(repr(float(raw)))
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


def python_values(column: Any) -> list[Any]:
    """A column as a list of Python values."""
    if isinstance(column, list):
        return column
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values
