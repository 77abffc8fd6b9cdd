"""Columns of a data frame as arrays for DuckDB: labels as codes, numbers as numbers or
as text.
"""

from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["coded", "numbers"]

_FLOATS: Final = {"float32", "float64"}  # that DuckDB has, too


def coded(frame: Any, name: str) -> tuple[Any, list[Any]]:
    """Codes of a column, null where it is missing, and what they stand for, as the
    column's own Python values.
    """
    import pyarrow as pa

    values = _column(frame, name)
    codes, labels = _codes(values)
    blank = [
        code for code, label in enumerate(labels) if isinstance(label, str) and not label.strip()
    ]
    return pa.array(codes, mask=(codes < 0) | np.isin(codes, blank)), labels


def _codes(values: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "factorize") and dtype != np.dtype(object):  # pandas
        codes, labels = values.factorize()
        return codes.astype(np.int64), labels.tolist()
    found: dict[Any, int] = {}
    column = _python(values)
    codes = np.fromiter(
        (-1 if _is_missing(x) else found.setdefault(_key(x), len(found)) for x in column),
        dtype=np.int64,
        count=len(column),
    )
    return codes, [key[1] if isinstance(key, tuple) else key for key in found]


def _key(value: Any) -> Any:
    """What tells values apart: text and whole numbers themselves, others with their
    type, as True equals 1.
    """
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool | np.bool_):
        return value
    try:
        hash(value)
    except TypeError:  # a list, or what holds one, is what it shows
        value = str(value)
    return type(value), value


def numbers(frame: Any, name: str) -> Any:
    """A column of numbers as such where all are of one plain type, else each as plain
    decimal text.
    """
    import pyarrow as pa

    values = _column(frame, name)
    dtype = getattr(values, "dtype", None)
    if (
        isinstance(dtype, np.dtype)
        and dtype.isnative
        and (dtype.kind in "iu" or dtype.name in _FLOATS)
    ):
        return np.asarray(values)
    if (
        type(values).__module__.startswith("polars")
        and values.dtype.is_numeric()
        and not values.dtype.is_decimal()
    ):
        return values.to_arrow()
    return pa.array([_plain(value) for value in _python(values)], type=pa.string())


def _plain(value: Any) -> str | None:
    """A number as decimal text without exponent, so that it is read exactly."""
    if _is_missing(value):
        return None
    if isinstance(value, float | np.floating | Decimal):
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        return f"{number:f}"
    return str(value)


def _column(frame: Any, name: str) -> Any:
    """A column of a pandas or polars data frame or an Arrow table, or a named level of
    the index of one of pandas.
    """
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return frame[name] if name in names else frame.index.get_level_values(name)


def _python(values: Any) -> list[Any]:
    """A column as Python values."""
    listed: list[Any] = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
    return listed


def _is_missing(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling one cannot be compared
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (not isinstance(value, str) and bool(value != value))
    )
