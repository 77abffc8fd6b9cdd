"""Columns handed to DuckDB: numbers as numbers or as decimal text, names as they are or
as codes.
"""

from decimal import Decimal
from typing import Any, Final

import numpy as np

from taciturn.tables.labels import factorize
from taciturn.tables.values import is_missing, python_values

__all__ = ["identities", "numbers"]

_FLOATS: Final = {"float32", "float64"}  # DuckDB has no others


def numbers(column: Any) -> Any:
    """A column of numbers as such where all are of one plain type, otherwise each as
    decimal text.
    """
    import pyarrow as pa

    if isinstance(column, list):  # of text
        return pa.array(column, type=pa.string())
    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and (
        dtype.isnative and (dtype.kind in "iu" or dtype.name in _FLOATS)
    ):
        return np.asarray(column)
    if _room(column) == "polars" and dtype.is_numeric() and not dtype.is_decimal():
        column = column.to_arrow()
    if _room(column) == "pyarrow":
        column = _plain_arrow(column)
        if any(known(column.type) for known in _known_numbers()):
            return column
    return pa.array([_decimal_text(value) for value in python_values(column)], type=pa.string())


def _known_numbers() -> list[Any]:
    """Types of Arrow whose numbers DuckDB reads exactly, text among them."""
    from pyarrow import types

    return [
        types.is_integer,
        types.is_floating,
        types.is_decimal128,
        types.is_string,
        types.is_large_string,
    ]


def identities(column: Any) -> tuple[Any, list[Any] | None]:
    """A column of contributors, holdings or requests, null where one is missing, and
    what its values stand for where they are codes.
    """
    import pyarrow as pa

    if isinstance(column, list):  # of text
        return pa.array(column, type=pa.string()), None
    if _room(column) == "pyarrow":
        return _plain_arrow(column), None
    codes, meanings = factorize(column)
    blank = [code for code, value in enumerate(meanings) if is_missing(value)]
    return pa.array(codes, mask=(codes < 0) | np.isin(codes, blank)), meanings


def _plain_arrow(column: Any) -> Any:
    """An Arrow column without a dictionary, of types that DuckDB has."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _decimal_text(value: Any) -> str | None:
    """A number as decimal text without exponent, so that it is read exactly."""
    if is_missing(value):
        return None
    if isinstance(value, float | np.floating | Decimal):
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        return f"{number:f}"
    return str(value)


def _room(column: Any) -> str:
    return type(column).__module__.partition(".")[0]
