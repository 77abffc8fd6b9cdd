"""Tables of counts or magnitudes in whole steps, and masks of their cells."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import MAX_COUNT, cell_label
from taciturn.tables.checks import aligned, check_table
from taciturn.validate import whole_number

__all__ = ["checked_mask", "checked_range", "checked_values", "in_steps", "is_between_steps"]

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
_MOST_DECIMALS: Final = 12  # doubles have 15 digits, and some must be left before the point


def in_steps(
    table: Any, decimals: int, *, name: str = "table", signed: bool = False
) -> xr.DataArray:
    """Check a table of counts or magnitudes and return it in whole steps.

    Parameters
    ----------
    table : DataArray
        The candidate.
    decimals : int
        Decimal places of its values, from 0 to 12; a step is ``10**-decimals``.
    name : str
        What to call it in a message.
    signed : bool
        Whether values may be negative.

    Returns
    -------
    DataArray of int64
        With a label on every category; the sizes of its values add up to at most 2**53.

    Raises
    ------
    TableError
        As `check_table`; values with more decimals, or that add up to more than 2**53
        steps.
    ParameterError
        `decimals` outside 0 to 12.
    """
    decimals = whole_number(decimals, "decimals", least=0, most=_MOST_DECIMALS)
    if signed and isinstance(table, xr.DataArray) and table.dtype.kind in "if":
        below = (table < 0).values
        if below.any():
            sizes = in_steps(abs(table), decimals, name=name)
            return sizes.where(~below, -sizes)
    if decimals > 0 and isinstance(table, xr.DataArray):
        table = table.copy(data=_whole_steps(table, decimals, name))
    steps = check_table(table, name=name)
    total = steps.values.sum(dtype=float)
    if total > MAX_COUNT:
        raise TableError(f"{name}: the grand total must be at most 2**53 steps, got {total:g}")
    return steps


def _whole_steps(table: xr.DataArray, decimals: int, name: str) -> Integers:
    """The values of a table of magnitudes in steps."""
    values = table.values
    if not (np.issubdtype(values.dtype, np.integer) or np.issubdtype(values.dtype, np.floating)):
        raise TableError(f"{name} must hold numbers, got the type {values.dtype}")
    values = values.astype(np.float64)
    problems = {
        "not be missing": np.isnan(values),
        "be finite": np.isinf(values),
        "not be negative": values < 0,
        f"have at most {decimals} decimals": is_between_steps(values, decimals),
        "be at most 2**53 steps": values * 10.0**decimals > MAX_COUNT,
    }
    for rule, bad in problems.items():
        if bad.any():
            position = tuple(int(i) for i in np.argwhere(bad)[0])
            raise TableError(
                f"{name}: values must {rule}: {cell_label(table, position)} holds"
                f" {values[position]}"
            )
    return np.rint(values * 10.0**decimals).astype(np.int64)


def is_between_steps(values: Floats, decimals: int) -> Booleans:
    """Which values have more decimals; a sum of decimals is off by a few units in the
    last place of a double, which is no further decimal.
    """
    with np.errstate(invalid="ignore"):
        off = np.abs(values - np.round(values, decimals)) > 8 * np.spacing(np.abs(values))
    return np.asarray(off)


def checked_mask(mask: Any, table: xr.DataArray, *, name: str) -> Booleans:
    """A mask of a table's cells as a plain array in the table's order."""
    if not isinstance(mask, xr.DataArray) or mask.dtype != np.bool_:
        found = (
            f"a DataArray of {mask.dtype}"
            if isinstance(mask, xr.DataArray)
            else type(mask).__name__
        )
        raise TableError(
            f"{name} must be a DataArray of bool with the dimensions {table.dims}, got {found}"
        )
    return np.asarray(_same_cells(mask, table, name=name).values, dtype=np.bool_)


def _same_cells(given: xr.DataArray, table: xr.DataArray, *, name: str) -> xr.DataArray:
    """An array in the order of a table's dimensions and categories."""
    if set(given.dims) != set(table.dims) or any(
        given.sizes[dim] != table.sizes[dim] for dim in table.dims
    ):
        raise TableError(f"{name} must have the sizes {dict(table.sizes)}, got {dict(given.sizes)}")
    return aligned(given, table, names=(name, "the table")).transpose(*table.dims)


def checked_values(given: Any, table: xr.DataArray, *, name: str) -> Floats:
    """A number for each of a table's cells as a plain array in the table's order of
    dimensions.
    """
    if not isinstance(given, xr.DataArray) or not np.issubdtype(given.dtype, np.number):
        raise TableError(f"{name} must be a DataArray of numbers with the dimensions {table.dims}")
    values = np.asarray(_same_cells(given, table, name=name).values, dtype=np.float64)
    if np.isnan(values).any():
        at = np.unravel_index(int(np.argmax(np.isnan(values))), table.shape)
        raise TableError(
            f"{name} must not be missing: {cell_label(table, tuple(int(i) for i in at))}"
        )
    return values


def checked_range(given: Any, table: xr.DataArray, *, name: str) -> tuple[Floats, Floats]:
    """A lower and an upper value for each of a table's cells."""
    if not isinstance(given, xr.Dataset) or not {"lower", "upper"} <= set(given.data_vars):
        raise TableError(
            f"{name} must be a Dataset with the variables 'lower' and 'upper', got"
            f" {type(given).__name__}"
        )
    lower, upper = (
        checked_values(given[side], table, name=f"{name}[{side!r}]") for side in ("lower", "upper")
    )
    return lower, upper
