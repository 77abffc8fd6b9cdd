"""From long rows to a table: whole numbers, codes of categories, one place for each
cell.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT, MAX_COUNT, RESERVED_NAMES
from taciturn.tables.long import LongTable

__all__ = ["code_rows", "parse_counts", "place_rows"]

MAX_CELLS: Final = 2**31
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def parse_counts(long: LongTable, count: str) -> npt.NDArray[np.int64]:
    """Whole numbers from a column of text or numbers; messages name the row by its
    labels.
    """
    dims = [name for name in long.columns if name != count]
    values = np.zeros(long.rows, dtype=np.int64)
    for row, raw in enumerate(long.columns[count]):
        value = _whole_number(raw)
        if value is None or not 0 <= value <= MAX_COUNT:
            where = ", ".join(f"{dim}={long.columns[dim][row]}" for dim in dims) or f"row {row + 1}"
            shown = f"{raw!r:.60}" if isinstance(raw, str) else f"{raw!s:.60}"
            found = "is missing" if _is_missing(raw) else f"holds {shown}"
            raise TableError(f"counts must be whole numbers from 0 to 2**53: {where} {found}")
        values[row] = value
    return values


def _whole_number(raw: Any) -> int | None:
    """The whole number that text or a number stands for, exactly, or None."""
    if isinstance(raw, int | np.integer) and not isinstance(raw, bool | np.timedelta64):
        return int(raw)
    if isinstance(raw, str) and _NUMBER.fullmatch(raw.strip()):
        number = Decimal(raw.strip())
    elif isinstance(raw, float | np.floating | Decimal) and isfinite(raw):
        number = Decimal(float(raw) if isinstance(raw, np.floating) else raw)
    else:
        return None
    if not -MAX_COUNT <= number <= MAX_COUNT:  # before 1e999999999 is written out
        return MAX_COUNT + 1
    return int(number) if number == int(number) else None


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or says so in text."""
    if isinstance(value, str):
        return value.strip().lower() in {"", "nan", "na", "<na>", "none"}
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (np.ndim(value) == 0 and bool(value != value))
    )


def place_rows(
    long: LongTable,
    dims: list[str],
    categories: Mapping[str, Sequence[Any]] | None,
    counts: npt.NDArray[np.int64] | None,
) -> xr.DataArray:
    """Place long rows in an array; `counts` None counts records."""
    index, coords = code_rows(long, dims, categories)
    shape = tuple(len(labels) for labels in coords.values())
    cells = int(np.prod(shape))
    if counts is None:
        flat = np.bincount(index, minlength=cells).astype(np.int64)
    else:
        order = np.argsort(index, kind="stable")
        repeated = np.flatnonzero(np.diff(index[order]) == 0)
        if len(repeated):
            row = int(order[repeated[0] + 1])
            cell = ", ".join(f"{dim}={long.columns[dim][row]}" for dim in dims)
            raise TableError(f"a cell can be given once: {cell} stands in more than one row")
        flat = np.zeros(cells, dtype=np.int64)
        flat[index] = counts
    return xr.DataArray(flat.reshape(shape), dims=dims, coords=coords, name=COUNT)


def code_rows(
    long: LongTable, dims: list[str], categories: Mapping[str, Sequence[Any]] | None
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Number of each row's cell, the last variable running fastest, and the categories
    of each variable.
    """
    declared = dict(categories or {})
    unknown = sorted(set(declared) - set(dims))
    if unknown:
        raise ParameterError(f"categories are declared for {unknown}, the variables are {dims}")
    spelled = sorted(dim for dim, labels in declared.items() if isinstance(labels, str))
    if spelled:
        raise ParameterError(
            f"the categories of {spelled} must be a sequence of labels, got one text"
        )
    if not dims:
        raise TableError(f"{long.origin} has no classifying variable beside the counts")
    reserved = sorted(RESERVED_NAMES & set(dims))
    if reserved:
        raise TableError(
            f"{reserved} cannot name a variable: {sorted(RESERVED_NAMES)} are reserved"
        )
    if long.rows == 0:
        raise TableError(f"{long.origin} is empty: it has no rows")
    codes, labels = [], []
    for dim in dims:
        column_codes, column_labels = _encode(long, dim, declared.get(dim))
        codes.append(column_codes)
        labels.append(column_labels)
    shape = tuple(len(x) for x in labels)
    cells = int(np.prod([float(s) for s in shape]))
    if cells > MAX_CELLS:
        raise TableError(
            f"the table would have {cells} cells, at most {MAX_CELLS} are accepted: sizes {shape}"
        )
    index = np.ravel_multi_index(codes, shape).astype(np.int64, copy=False)
    return index, dict(zip(dims, labels, strict=True))


def _encode(
    long: LongTable, dim: str, declared: Sequence[Any] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Codes of one column and its categories in their order."""
    column = long.columns[dim]
    order: Iterable[Any] | None = declared if declared is not None else long.categories.get(dim)
    text = not (all(_is_whole(x) for x in column) and all(_is_whole(x) for x in order or ()))
    normal = [
        _label(x, text=text, where=f"{dim!r} in row {row + 1}") for row, x in enumerate(column)
    ]
    if order is None:
        names = list(dict.fromkeys(normal))
    else:
        names = [_label(x, text=text, where=f"the categories of {dim!r}") for x in order]
        if len(set(names)) < len(names):
            raise TableError(f"the declared categories of {dim!r} hold one twice: {names}")
    position = {name: i for i, name in enumerate(names)}
    try:
        codes = np.fromiter((position[x] for x in normal), dtype=np.int64, count=len(normal))
    except KeyError as error:
        label = error.args[0]
        raise TableError(
            f"{dim}={label} in row {normal.index(label) + 1} is none of the categories {names}"
        ) from None
    return codes, np.asarray(names)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _label(value: Any, *, text: bool, where: str) -> Any:
    if not value.strip() if isinstance(value, str) else _is_missing(value):
        raise TableError(f"a label is missing: {where}")
    return str(value) if text else int(value)
