"""Columns handed to DuckDB: numbers as numbers or as decimal text, names as they are or
as codes.
"""

from decimal import Decimal
from typing import Any, Final

import numpy as np

from taciturn.tables.labels import Codes, factorize
from taciturn.tables.values import is_missing, python_values, without_exponent
from taciturn.validate import is_real

__all__ = ["identities", "numbers"]

_FLOATS: Final = {"float32", "float64"}  # DuckDB has no others


def numbers(column: Any) -> Any:
    """A column of numbers as such where all are of one plain type, otherwise each as
    decimal text.
    """
    import pyarrow as pa

    if isinstance(column, list):  # of text
        return _decimal_texts(pa.array(column, type=pa.string()))
    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and (
        dtype.isnative and (dtype.kind in "iu" or dtype.name in _FLOATS)
    ):
        return np.asarray(column)
    if _room(column) == "polars" and dtype.is_numeric() and not dtype.is_decimal():
        column = column.to_arrow()
    if _room(column) == "pyarrow":
        column = _plain_arrow(column)
        if any(known(column.type) for known in _known_texts()):
            return _decimal_texts(column)
        if any(known(column.type) for known in _known_numbers()):
            return column
    texts = [_decimal_text(value) for value in python_values(column)]
    return _decimal_texts(pa.array(texts, type=pa.string()))


def _decimal_texts(column: Any) -> Any:
    """Numbers in texts, without spaces around them and without exponents."""
    import pyarrow as pa
    from pyarrow import compute

    column = compute.ascii_trim(column, characters=" ")
    if not any(compute.any(compute.match_substring(column, mark)).as_py() for mark in "eE"):
        return column
    written = [None if text is None else without_exponent(text) for text in column.to_pylist()]
    return pa.array(written, type=pa.string())


def _known_texts() -> list[Any]:
    from pyarrow import types

    return [types.is_string, types.is_large_string]


def _known_numbers() -> list[Any]:
    """Types of Arrow whose numbers DuckDB reads exactly."""
    from pyarrow import types

    return [types.is_integer, types.is_floating, types.is_decimal128]


def _known_identities() -> list[Any]:
    """Types of Arrow that name something, and that DuckDB tells apart as they are."""
    from pyarrow import types

    others = [types.is_boolean, types.is_date, types.is_time, types.is_timestamp]
    return [*_known_texts(), *_known_numbers(), *others]


def identities(column: Any) -> tuple[Any, Codes | None, list[Any]]:
    """A column of contributors, holdings or requests, null where one is missing. Where
    they are codes, these, too, and what they stand for.
    """
    import pyarrow as pa

    if isinstance(column, list):  # of text
        return pa.array(column, type=pa.string()), None, []
    if _room(column) == "pyarrow":
        column = _plain_arrow(column)
        if any(known(column.type) for known in _known_identities()):
            return column, None, []
    codes, meanings = factorize(column)
    blank = [code for code, value in enumerate(meanings) if is_missing(value)]
    return pa.array(codes, mask=(codes < 0) | np.isin(codes, blank)), codes, meanings


def _plain_arrow(column: Any) -> Any:
    """An Arrow column without a dictionary, of types that DuckDB has."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_float16(column.type):
        return column.cast(pa.float32())
    other_decimal = types.is_decimal(column.type) and not types.is_decimal128(column.type)
    if other_decimal or types.is_string_view(column.type):
        return column.cast(pa.string())
    return column


def _decimal_text(value: Any) -> str | None:
    """A number as decimal text without exponent, so that it is read exactly."""
    if is_missing(value):
        return None
    if isinstance(value, float | np.floating | Decimal):
        number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        return f"{number:f}"
    # As text a year's pandas.Period is a number.
    return str(value) if isinstance(value, str) or is_real(value) else repr(value)


def _room(column: Any) -> str:
    return type(column).__module__.partition(".")[0]
