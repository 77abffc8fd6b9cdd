"""Checks: an array is a frequency table, two tables have the same cells."""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import COUNT, MAX_COUNT, SUPPRESSED, cell_label, draw_dims, table_dims
from taciturn.tables.labels import check_variables, labels_of, other_kind
from taciturn.tables.spelling import check_spelling, legible
from taciturn.tables.values import is_label
from taciturn.validate import quoted

__all__ = [
    "aligned",
    "check_counts",
    "check_table",
    "has_suppressed",
    "no_counts",
    "refuse_large_total",
    "refuse_suppressed",
    "reordered",
    "require_array",
    "same_categories",
    "suppressed_cells",
]


def check_table(
    table: xr.DataArray,
    *,
    name: str = "table",
    draws: bool = False,
    values: bool = True,
    like: Sequence[object] = (),
) -> xr.DataArray:
    """Check that an array is a frequency table and return it as int64 with a label on
    every category.

    Parameters
    ----------
    table : DataArray
        The candidate. One lazy (dask) table is computed; lazy draws are checked when
        they are computed, by whoever computes them.
    name : str
        What to call it in a message.
    draws : bool
        Whether the dimensions `chain`, `draw` and `replicate` may be present.
    values : bool
        Whether to check the counts, too; integers may be left to whoever reads them
        next.
    like : sequence
        What is given with it. Along a dimension without labels it has those of what
        has as many: as xarray pairs arrays, by position. Without any they are 0, 1, 2
        and so on.

    Returns
    -------
    DataArray

    Raises
    ------
    TableError
        Not a DataArray, no cells, a reserved or unnamed dimension, duplicated
        categories, or counts that are negative, fractional, missing, infinite or beyond
        2**53. One table with cells that `suppress_small_cells` suppressed, which hold 1
        for their counts.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.tables.check_table(tc.load_dataset("area_by_sex")).sizes
    Frozen({'area': 10, 'sex': 2})
    """
    require_array(table, name=name)
    variables = table_dims(table)
    if not variables:
        raise TableError(f"{name} has no classifying variable: its dimensions are {table.dims}")
    if not draws and draw_dims(table):
        raise TableError(f"{name} must be one table, but has the dimensions {draw_dims(table)}")
    if table.size == 0:
        raise TableError(f"{name} is empty: its sizes are {dict(table.sizes)}")
    for dim in table.dims:
        if not isinstance(dim, str):
            raise TableError(f"{name}: a variable must be named by text, got {quoted(dim)}")
    check_variables(variables, name=name)
    table = _labelled_like_all(table, like, name)
    missing = {dim: np.arange(table.sizes[dim]) for dim in variables if dim not in table.coords}
    table = table.assign_coords(missing)
    for dim in variables:
        _check_categories(table, dim, name)
    if not draws:
        refuse_suppressed(table, name)
        table = table.compute()
    if table.chunks is None and (values or table.dtype != np.int64):
        check_counts(table.values, table, name=name)
        table = table.astype(np.int64, copy=False)
        refuse_large_total(table.values, name, axes=table.get_axis_num(variables))
    return table.rename(COUNT)


def suppressed_cells(table: xr.DataArray) -> xr.DataArray | None:
    """The cells that `suppress_small_cells` marked, whatever xarray has made of the
    marks since, by reindexing or concatenation; None where a table has no such marks.
    """
    marks = table.coords.get(SUPPRESSED)
    if marks is None or SUPPRESSED in table.dims:
        return None
    if marks.ndim < 2 and set(marks.dims) != set(table.dims):  # another coordinate of this name
        return None
    cells: xr.DataArray = marks.astype(object) == True  # noqa: E712
    return cells.astype(np.bool_)


def has_suppressed(table: xr.DataArray) -> bool:
    """Whether a table has 1 for small counts that `suppress_small_cells` suppressed."""
    cells = suppressed_cells(table)
    return cells is not None and bool(cells.any())


def refuse_suppressed(table: xr.DataArray, name: str) -> None:
    """Raise `TableError` for a table with marks in place of counts."""
    if has_suppressed(table):
        raise TableError(
            f"{name} has 1 for counts that its coordinate {SUPPRESSED!r} marks as suppressed: give"
            " the table before they were suppressed; what became of it is"
            " tc.Suppression(table, cells)"
        )


def _check_categories(table: xr.DataArray, dim: Hashable, name: str) -> None:
    """Raise `TableError` unless the categories of a variable are told apart."""
    labels = table.indexes[dim]
    if labels.nlevels > 1:
        raise TableError(
            f"{name}: {dim!r} has a MultiIndex; give each variable its own dimension with unstack"
        )
    if labels.hasnans:
        raise TableError(
            f"{name}: a label of {dim!r} is missing, at position {int(np.argmax(labels.isna()))}"
        )
    if not labels.is_unique:
        raise TableError(
            f"{name}: category {labels[labels.duplicated()][0]!r:.80} of {dim!r} stands twice"
        )
    _check_labels(labels, f"{name}: a label of {dim!r}")
    for level, coord in table.coords.items():
        if coord.dims == (dim,) and level != dim:
            above = [each for each in coord.to_index().unique() if isinstance(each, str)]
            check_spelling(above, partial(_place_above, name, level))


def require_array(table: object, *, name: str) -> None:
    """Raise `TableError` unless it is an array, and say what makes one of rows."""
    if isinstance(table, xr.DataArray):
        return
    rows = any(hasattr(table, held) for held in ("columns", "to_frame"))
    remedy = (
        ": tc.tabulate(records, variables) makes a table of records, a row an individual, and"
        " tc.read_table(rows) of rows with a column of counts"
    )
    raise TableError(
        f"{name} must be an xarray.DataArray, got {type(table).__name__}"
        f"{remedy if rows or isinstance(table, str | PathLike) else ''}"
    )


def check_counts(
    values: npt.NDArray[Any], table: xr.DataArray | None = None, *, name: str = "table"
) -> None:
    """Raise `TableError` unless all values are whole numbers from 0 to 2**53; `table`
    labels the first bad one.
    """
    if values.dtype.kind not in "iuf":
        raise TableError(f"{name} must hold whole numbers, got the type {values.dtype}")
    if values.size == 0:
        return
    if np.issubdtype(values.dtype, np.integer) and values.min() >= 0 and values.max() <= MAX_COUNT:
        return
    for rule, bad in no_counts(values).items():
        if bad.any():
            position = tuple(int(i) for i in np.argwhere(bad)[0])
            where = cell_label(table, position) if table is not None else f"position {position}"
            raise TableError(f"{name}: counts must {rule}: {where} holds {values[position]}")


def no_counts(values: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.bool_]]:
    """Where numbers break each rule of counts, in words."""
    return {
        "not be missing": np.isnan(values),
        "be finite": np.isinf(values),
        "not be negative": values < 0,
        "be whole numbers": values != np.floor(values),
        "be at most 2**53": values > MAX_COUNT,
    }


def refuse_large_total(
    counts: npt.NDArray[np.int64], name: str, *, axes: tuple[int, ...] | None = None
) -> None:
    """Raise `TableError` where the counts of a table, or of draws of one over its axes,
    add up to more than double precision holds exactly.
    """
    total = float(counts.sum(axis=axes, dtype=np.float64).max(initial=0))
    if total > MAX_COUNT:
        raise TableError(f"{name}: the grand total must be at most 2**53, got {total:.6g}")


def _check_labels(labels: pd.Index, place: str) -> None:
    """Raise `TableError` unless what is seen of categories tells them apart."""
    if pd.api.types.is_any_real_numeric_dtype(labels):
        return
    values = labels.tolist()
    for at, label in enumerate(values):
        if not is_label(label):
            raise TableError(f"{place}, at position {at}, {other_kind(label)}")
    written = list(map(str, values))
    if len(set(written)) < len(written):
        twice = next(label for label, times in Counter(written).items() if times > 1)
        raise TableError(f"{place} is written as another: {legible(twice)}")
    check_spelling(written, lambda at: f"{place}, at position {at},")


def _place_above(name: str, level: Hashable, at: int) -> str:
    return f"{name}: category {at + 1} of {level!r}"


def _labelled_like(given: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """An array with the labels of another along dimensions of the same size where it
    has none; none that are no labels, which is said where the other is checked.
    """
    return given.assign_coords(
        {
            dim: other[dim].variable
            for dim, size in given.sizes.items()
            if dim not in given.coords
            if (labels := other.indexes.get(dim)) is not None
            if len(labels) == size and labels.is_unique and labels.nlevels == 1
        }
    )


def _labelled_like_all(table: xr.DataArray, others: Sequence[object], name: str) -> xr.DataArray:
    """The same of several, or `TableError` where these differ in their labels."""
    found = table
    for other in others:
        if not isinstance(other, xr.DataArray):
            continue
        own = _labelled_like(table, other)
        for dim in set(own.coords) & set(found.coords) - set(table.coords):
            if not own.indexes[dim].equals(found.indexes[dim]):
                raise TableError(
                    f"{name} has no labels of {dim!r}, and what is given with it has different"
                    f" ones, or in another order: {labels_of(found[dim])[:5]} and"
                    f" {labels_of(own[dim])[:5]}; give it the labels"
                )
        found = _labelled_like(found, other)
    return found


def aligned(given: xr.DataArray, table: xr.DataArray, *, names: tuple[str, str]) -> xr.DataArray:
    """An array with its categories in the order of a table's, which it has where it has
    no labels; raise `TableError` where the two have other variables or categories.
    """
    ordered = reordered(given, table)
    same_categories(ordered, table, names=names)
    return ordered


def reordered(given: xr.DataArray, table: xr.DataArray) -> xr.DataArray:
    """An array with its categories in the order of a table's, along each dimension of
    both where they are the same, or where it has no labels.
    """
    given = _labelled_like(given, table)
    order: dict[Hashable, list[int]] = {}
    for dim in set(table_dims(table)) & set(table_dims(given)):
        ours, wanted = labels_of(given[dim]), labels_of(table[dim])
        at = {label: position for position, label in enumerate(ours)}
        if ours != wanted and len(at) == len(wanted) == len(ours) and at.keys() == set(wanted):
            order[dim] = [at[label] for label in wanted]
    return given.isel(order) if order else given


def same_categories(first: xr.DataArray, second: xr.DataArray, *, names: tuple[str, str]) -> None:
    """Raise `TableError` unless two tables have the same variables and categories, in
    the same order.
    """
    if set(table_dims(first)) != set(table_dims(second)):
        raise TableError(
            f"{names[0]} has the variables {table_dims(first)}, {names[1]} has {table_dims(second)}"
        )
    for dim in table_dims(first):
        ours, theirs = first[dim].values, second[dim].values
        if not np.array_equal(ours, theirs):
            unmatched = sorted(
                repr(x) for x in set(ours.tolist()) ^ set(theirs.tolist())
            )  # repr, as 1 and '1' differ
            found = (
                f"only one has {', '.join(unmatched[:5])}" if unmatched else "the order is another"
            )
            raise TableError(
                f"the categories of {dim!r} differ between {names[0]} and {names[1]}: {found}"
            )
