"""The cells of a table one by one, in whatever form it is held."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from taciturn.attack.system import UNLIMITED
from taciturn.errors import ParameterError, TableError
from taciturn.release_log.codebook import Codebook, label_text
from taciturn.schema import (
    COUNT,
    PRIMARY,
    PUBLISHED,
    REPLICATE,
    SAFE,
    SECONDARY,
    SIDES,
    STATUS,
    SUPPRESSED,
)
from taciturn.tables.checks import has_suppressed
from taciturn.tables.labels import labels_of
from taciturn.tables.values import is_missing, whole_steps
from taciturn.validate import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Rows", "rows_of"]

_SHOWN: Final = (PUBLISHED, SAFE)
_STATUSES: Final = (*_SHOWN, SUPPRESSED, PRIMARY, SECONDARY)


@dataclass(frozen=True)
class Rows:
    """Cells one by one.

    Attributes
    ----------
    names : tuple of str
        Variables, or levels above them.
    cells : list of tuple
        For each cell the category of each; None where it is summed over.
    values : list
        The count of each; None where it is not published.
    intervals : list of tuple of int
        The least and the most that each can be by what is published of it.
    """

    names: tuple[str, ...]
    cells: list[tuple[Any, ...]]
    values: list[int | None]
    intervals: list[tuple[int, int]]

    @classmethod
    def of(
        cls, names: tuple[str, ...], cells: list[tuple[Any, ...]], values: list[int | None]
    ) -> "Rows":
        """Cells of which a count is published or nothing."""
        ends = [(0, UNLIMITED) if value is None else (value, value) for value in values]
        return cls(names, cells, values, ends)


def rows_of(given: Any, codebook: Codebook, total: str, *, perturbed: bool = False) -> Rows:
    """The cells of whatever holds a table; `total` is the label of sums over a
    variable. Only of tables that are said to be `perturbed` an array may be.
    """
    if not isinstance(total, str):
        raise ParameterError(f"total must be the label of totals, got {quoted(total)}")
    if isinstance(given, xr.DataArray):
        rows = _of_array(given, perturbed=perturbed)
    elif type(given).__module__.startswith("pandas"):
        rows = _of_pandas(given, codebook, total)
    else:
        raise TableError(
            "a table must be a DataArray, a data frame such as pandas.crosstab gives, a release or"
            f" a protected table, got {type(given).__name__}"
        )
    if not rows.cells:
        raise TableError("the table has no cell")
    return rows


def _of_array(table: xr.DataArray, *, perturbed: bool) -> Rows:
    if has_suppressed(table):
        raise TableError(
            f"the table has 1 for small counts that are not published, which are {SUPPRESSED!r}:"
            " everybody knows that each is from 1 to below the minimum; give its rows, in which"
            f" these have no count and this interval, in the columns {' and '.join(SIDES)}"
        )
    if REPLICATE in table.coords and not perturbed:
        raise TableError(
            "the table is perturbed: its counts are not the true ones. Give the mechanism, or"
            " tc.Rounding for a rounded table"
        )
    if REPLICATE in table.dims:
        raise TableError(
            "the table holds replicates: take one, or give attack.Perturbed for several answers"
        )
    unnamed = [dim for dim in table.dims if dim not in table.coords]
    if unnamed:
        raise TableError(f"the table has no categories along {unnamed[0]!r}: give it coordinates")
    names = tuple(map(str, table.dims))
    cells = list(product(*(labels_of(table[dim]) for dim in table.dims)))
    values = [
        _count(value, names, cell)
        for value, cell in zip(table.values.ravel().tolist(), cells, strict=True)
    ]
    return Rows.of(names, cells, values)


def _of_pandas(given: "pd.DataFrame | pd.Series[Any]", codebook: Codebook, total: str) -> Rows:
    """The cells of a cross-tabulation, sizes of groups, or a table in long form."""
    import pandas as pd

    series: Any = given
    if isinstance(given, pd.DataFrame):
        # The columns of a cross-tabulation have the name of its variable.
        crossed = any(name in codebook for name in given.columns.names)
        if not crossed and (COUNT in given.columns or {*SIDES} <= {*given.columns}):
            no_counts = {COUNT: [None] * len(given)}
            return _of_columns(no_counts | _columns_of(given), codebook, total)
        series = given.stack(list(range(given.columns.nlevels)), future_stack=True)
    names = list(series.index.names)
    if any(name is None for name in names):
        raise TableError(
            "each level of the index and of the columns must be named after a variable, got"
            f" {names}"
        )
    cells = [key if isinstance(key, tuple) else (key,) for key in series.index.tolist()]
    # With several levels pandas writes a total as ("All", "").
    cells = [_replaced(key, "", total) if total in key else key for key in cells]
    return _rows(tuple(map(str, names)), cells, series.tolist(), codebook, total)


def _columns_of(frame: "pd.DataFrame") -> dict[str, list[Any]]:
    """The columns of a table in long form, and the levels of its index that are
    named.
    """
    levels = {at: str(name) for at, name in enumerate(frame.index.names) if name is not None}
    names = [*levels.values(), *map(str, frame.columns)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise TableError(f"two columns are called {twice[0]!r}")
    values = [frame.index.get_level_values(at).tolist() for at in levels]
    values += [frame.iloc[:, at].tolist() for at in range(frame.shape[1])]
    return dict(zip(names, values, strict=True))


def _replaced(key: tuple[Any, ...], old: str, new: str) -> tuple[Any, ...]:
    return tuple(new if isinstance(label, str) and label == old else label for label in key)


def _of_columns(columns: Mapping[str, list[Any]], codebook: Codebook, total: str) -> Rows:
    """The cells of a table in long form, a column a variable."""
    names = tuple(name for name in columns if name != COUNT)
    intervals = {*SIDES} <= {*names} and not any(name in codebook for name in SIDES)
    if intervals:
        names = tuple(name for name in names if name not in SIDES)
    values = columns[COUNT]
    shown = [False] * len(values)  # certainly
    if STATUS in names and STATUS not in codebook:
        names = tuple(name for name in names if name != STATUS)
        shown = [_is_shown(status) for status in columns[STATUS]]
        values = [value if own else None for value, own in zip(values, shown, strict=True)]
    cells = list(zip(*(columns[name] for name in names), strict=True)) or [()] * len(values)
    rows = _rows(names, cells, values, codebook, total)
    if not intervals:
        for value, own, cell in zip(rows.values, shown, cells, strict=True):
            if own and value is None:
                raise TableError(
                    f"{_named(names, cell) or 'the table'} is published, as its status says, and"
                    " has no count"
                )
        return rows
    columns_of_ends = zip(*(columns[side] for side in SIDES), strict=True)
    ends = [
        _interval(value, pair, names, cell)
        for value, pair, cell in zip(rows.values, columns_of_ends, cells, strict=True)
    ]
    return replace(rows, intervals=ends)


def _interval(
    value: int | None, pair: tuple[Any, Any], names: Sequence[str], cell: tuple[Any, ...]
) -> tuple[int, int]:
    """What is published of a count: itself, or the ends of an interval, which may be
    open; a count beside a wider one is not the true count.
    """
    without_end = not is_missing(pair[1]) and pair[1] in (inf, "inf")
    lower = _count(pair[0], names, cell)
    upper = None if without_end else _count(pair[1], names, cell)
    low, high = lower or 0, UNLIMITED if upper is None else upper
    if low > high or (value is not None and {lower, upper} - {None, value}):
        named = _named(names, cell)
        shown = (
            "" if value is None else f" and a count of {value}: give tc.Rounding if it is rounded"
        )
        raise TableError(f"{named or 'the table'} has an interval of {pair[0]} to {pair[1]}{shown}")
    return (low, high) if value is None else (value, value)


def _is_shown(status: Any) -> bool:
    """Whether a cell of this status is published."""
    if status not in _STATUSES:
        raise TableError(f"{STATUS} must be one of {', '.join(_STATUSES)}, got {quoted(status)}")
    return status in _SHOWN


def _rows(
    names: tuple[str, ...],
    cells: Sequence[tuple[Any, ...]],
    values: Sequence[Any],
    codebook: Codebook,
    total: str,
) -> Rows:
    missing = [cell for cell in cells if any(map(is_missing, cell))]
    if missing:
        raise TableError(f"a cell has no category: {dict(zip(names, missing[0], strict=True))}")
    _check_total_label(names, cells, codebook, total)
    return Rows.of(
        names,
        [tuple(None if label == total else label for label in cell) for cell in cells],
        [_count(value, names, cell) for value, cell in zip(values, cells, strict=True)],
    )


def _check_total_label(
    names: Sequence[str], cells: Collection[tuple[Any, ...]], codebook: Codebook, total: str
) -> None:
    """Raise where a label could be a category as well as a sum over all."""
    for place, name in enumerate(names):
        own = codebook.labels_of(name) if name in codebook else ()
        if total in own and any(label_text(cell[place]) == total for cell in cells):
            raise TableError(
                f"{total!r} is a category of {name!r} and the label of totals: give totals another"
                " label, and say which",
                in_python=" with total=",
                at_shell=" with --total",
            )


def _named(names: Sequence[str], cell: tuple[Any, ...]) -> str:
    """Which cell it is, for messages."""
    return ", ".join(f"{name}={label}" for name, label in zip(names, cell, strict=True))


def _count(value: Any, names: Sequence[str], cell: tuple[Any, ...]) -> int | None:
    """A count, or None where there is none."""
    if is_missing(value):
        return None
    count = whole_steps(value)
    if count is None:
        named = _named(names, cell)
        raise TableError(
            f"counts must be whole numbers of at least 0, or missing where they are not published:"
            f" {named or 'the grand total'} holds {value!r}"
        )
    return count
