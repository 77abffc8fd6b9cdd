"""Columns of a data frame as arrays for DuckDB: labels as codes, numbers as numbers or as text."""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["coded", "numbers"]


def coded(frame: Any, name: str) -> tuple[Any, list[Any]]:
    """Codes of a column, null where it is missing, and what they stand for, as the column's own Python values."""
    import pyarrow as pa

    values = _column(frame, name)
    codes, labels = _codes(values)
    blank = [code for code, label in enumerate(labels) if isinstance(label, str) and not label.strip()]
    return pa.array(codes, mask=(codes < 0) | np.isin(codes, blank)), labels


def _codes(values: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "factorize") and dtype != np.dtype(object):  # pandas
        codes, labels = values.factorize()
        return codes.astype(np.int64), labels.tolist()
    found: dict[Any, int] = {}
    column = values.to_list() if hasattr(values, "to_list") else list(values)
    codes = np.fromiter(
        (-1 if _is_missing(x) else found.setdefault(_key(x), len(found)) for x in column),
        dtype=np.int64,
        count=len(column),
    )
    return codes, [key[1] if isinstance(key, tuple) else key for key in found]


def _key(value: Any) -> Any:
    """What tells values apart: text and whole numbers themselves, others with their type, as True equals 1."""
    plain = isinstance(value, str | int | np.integer) and not isinstance(value, bool | np.bool_)
    return value if plain else (type(value), value)


def numbers(frame: Any, name: str) -> Any:
    """A column of numbers as such where all are of one plain type, else each as plain decimal text."""
    import pyarrow as pa

    values = _column(frame, name)
    if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind in "iuf":
        return np.asarray(values)
    if type(values).__module__.startswith("polars") and values.dtype.is_numeric() and not values.dtype.is_decimal():
        return values.to_arrow()
    return pa.array([_plain(value) for value in values.to_list()], type=pa.string())


def _plain(value: Any) -> str | None:
    """A number as decimal text without exponent, so that it is read exactly."""
    if _is_missing(value):
        return None
    if isinstance(value, float | np.floating | Decimal):
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        return f"{number:f}"
    return str(value)


def _column(frame: Any, name: str) -> Any:
    """A column of a pandas or polars data frame, or a named level of the index of one of pandas."""
    return frame[name] if name in frame.columns else frame.index.get_level_values(name)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or (not isinstance(value, str) and bool(value != value))
