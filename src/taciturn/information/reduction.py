"""What the measures of this package share: which dimensions are summed, which cells
count, how kernels are applied to xarray objects.
"""

from collections.abc import Callable, Sequence
from math import log
from typing import Any

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.information.kernels import (
    PAIR_SUMS,
    TABLE_SUMS,
    CountsOutOfRangeError,
    pair_sums,
    table_sums,
)
from taciturn.schema import DRAW_DIMS, cell_label, table_dims
from taciturn.tables.checks import (
    aligned,
    check_counts,
    check_table,
    refuse_suppressed,
    reordered,
    same_categories,
)
from taciturn.validate import is_real, names_of, quoted

__all__ = [
    "cell_mask",
    "check_labels",
    "checked_pair",
    "log_base",
    "reduced_dims",
    "refuse_outside",
    "sums_of_pair",
    "sums_of_table",
]


_SUMS = "\0sums"  # a name that no variable read from a file can have


def reduced_dims(table: xr.DataArray, dim: str | Sequence[str] | None) -> list[str]:
    """Dimensions a measure sums over: all classifying variables unless fewer are
    named.
    """
    variables = table_dims(table)
    if dim is None:
        return list(variables)
    asked = names_of(dim, "dim")
    unknown = [dim for dim in asked if dim not in variables]
    if unknown or not asked or len(set(asked)) < len(asked):
        raise ParameterError(
            f"dims must name variables of the table, {variables}, each once; got {asked}"
        )
    return asked


def cell_mask(
    table: xr.DataArray, where: xr.DataArray | None, *, name: str = "where"
) -> xr.DataArray:
    """Check a mask of the cells that can be filled (True) against a table."""
    variables = table_dims(table)
    if where is None:
        shape = [table.sizes[dim] for dim in variables]
        return xr.DataArray(
            np.ones(shape, dtype=bool), dims=variables, coords={d: table[d] for d in variables}
        )
    if not hasattr(where, "dims") or getattr(where, "dtype", None) != np.bool_:
        raise TableError(f"{name} must be a DataArray of bool, True where a cell can be filled")
    if set(where.dims) != set(variables):
        raise TableError(f"{name} has the dimensions {where.dims}, the table has {variables}")
    where = check_labels(where, table, name=name)
    if table.chunks is None:
        filled = (table.transpose(..., *variables) > 0) & ~where.transpose(*variables)
        bad = np.argwhere(filled.values)
        if len(bad):
            at = cell_label(filled, tuple(int(i) for i in bad[0]))
            raise TableError(f"{name} leaves out a cell with a positive count: {at}")
    return where


def refuse_outside(counts: Any, mask: Any) -> None:
    """Raise `TableError` for people outside a mask in a chunk of a lazy table."""
    if ((counts > 0) & ~mask).any():
        raise TableError(
            "where leaves out a cell with a positive count in the chunk being computed"
        )


def check_labels(where: xr.DataArray, table: xr.DataArray, *, name: str) -> xr.DataArray:
    """Give a mask the labels of a table, in its order; raise if it has other ones."""
    for dim in where.dims:
        if where.sizes[dim] != table.sizes[dim]:
            raise TableError(
                f"{name} has {where.sizes[dim]} categories of {dim!r}, the table has"
                f" {table.sizes[dim]}"
            )
    return aligned(where, table, names=(name, "the table"))


def checked_pair(
    table: xr.DataArray, released: xr.DataArray, *, values: bool = True
) -> tuple[xr.DataArray, xr.DataArray]:
    """Check a table and its release against each other, and give both the order of the
    table; with ``values=False`` the counts are left to `sums_of_pair`.
    """
    given = table, released
    table = check_table(table, draws=True, values=values, like=given)
    refuse_suppressed(table, "table")
    released = check_table(released, name="released", draws=True, values=values, like=given)
    released = reordered(released, table)
    same_categories(table, released, names=("table", "released"))
    for dim in set(DRAW_DIMS) & set(table.dims) & set(released.dims):
        if table.sizes[dim] != released.sizes[dim]:
            raise TableError(
                f"both tables have the dimension {dim!r}, which pairs them one to one, but with"
                f" {table.sizes[dim]} and {released.sizes[dim]} of them"
            )
        ours, theirs = table.indexes.get(dim), released.indexes.get(dim)
        if ours is not None and theirs is not None and not ours.equals(theirs):
            raise TableError(
                f"both tables have the dimension {dim!r}, which pairs them one to one, but with"
                " other labels or in another order"
            )
    return table, released


def log_base(base: float | None) -> float:
    """Natural logarithm of the requested base: 1 for None, which means nats."""
    if base is None:
        return 1.0
    if not is_real(base) or not base > 1:
        raise ParameterError(
            f"base must be above 1 and finite (2 gives bits, None nats), got {quoted(base)}"
        )
    return log(base)


def sums_of_table(
    table: xr.DataArray,
    where: xr.DataArray,
    dims: list[str],
    *,
    smallest_cells: int = 1,
    smallest_total: int = 1,
) -> dict[str, xr.DataArray]:
    """Apply `table_sums` over `dims`; refuse tables with fewer cells or individuals."""

    def kernel(counts: Any, mask: Any) -> Any:
        return table_sums(_whole(counts), mask, core=len(dims))

    least = (smallest_cells, smallest_total)
    return _apply(kernel, [table, where], dims, TABLE_SUMS, least)


def sums_of_pair(
    table: xr.DataArray,
    released: xr.DataArray,
    where: xr.DataArray,
    dims: list[str],
    *,
    smallest_cells: int = 1,
    smallest_total: int = 1,
) -> dict[str, xr.DataArray]:
    """Apply `pair_sums` over `dims`; refuse tables with fewer cells or individuals."""

    def kernel(counts: Any, other: Any, mask: Any) -> Any:
        return pair_sums(_whole(counts), _whole(other), mask, core=len(dims))

    least = (smallest_cells, smallest_total)
    return _apply(kernel, [table, released, where], dims, PAIR_SUMS, least)


def _whole(counts: Any) -> Any:
    """Refuse fractions; kernels check the range of whole numbers themselves."""
    if counts.dtype != np.int64:
        check_counts(counts)
    return counts


def _apply(
    kernel: Callable[..., Any],
    arrays: list[xr.DataArray],
    dims: list[str],
    names: tuple[str, ...],
    least: tuple[int, int],
) -> dict[str, xr.DataArray]:
    lazy = any(array.chunks is not None for array in arrays)
    rules = (("cells", least[0], "cells"), ("total", least[1], "individuals"))

    def stacked_kernel(*values: Any) -> Any:
        *tables, mask = values
        if lazy:
            for table in tables:
                refuse_outside(table, mask)
        try:
            sums = kernel(*values)
        except CountsOutOfRangeError:
            for name, array, held in zip(("table", "released"), arrays, values, strict=False):
                if held.dtype != np.bool_:
                    check_counts(*((held,) if lazy else (array.values, array)), name=name)
            raise
        for name, smallest, what in rules:
            if lazy and (sums[..., names.index(name)] < smallest).any():
                raise TableError(
                    f"a table needs at least {smallest} {what}; one of the chunk being computed has"
                    " fewer"
                )
        return sums

    stacked = xr.apply_ufunc(
        stacked_kernel,
        *arrays,
        input_core_dims=[dims] * len(arrays),
        output_core_dims=[[_SUMS]],
        join="exact",
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"output_sizes": {_SUMS: len(names)}, "allow_rechunk": True},
    )
    sums = {name: stacked.isel({_SUMS: i}, drop=True) for i, name in enumerate(names)}
    for name, smallest, what in () if lazy else rules:
        bad = np.argwhere(sums[name].values < smallest)
        if len(bad):
            position = tuple(int(i) for i in bad[0])
            at = cell_label(sums[name], position) or "the table"
            found = int(sums[name].values[position])
            raise TableError(f"a table needs at least {smallest} {what}: {at} has {found}")
    return sums
