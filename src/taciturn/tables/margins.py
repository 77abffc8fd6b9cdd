"""Margins of a table: totals over some of its variables, or over levels above them."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import SUPPRESSED, table_dims
from taciturn.tables.checks import require_array, suppressed_cells
from taciturn.validate import names_of, quoted

__all__ = [
    "Margin",
    "coarser_levels",
    "every_margin",
    "finer_margins",
    "finest_totals",
    "following",
    "hierarchies",
    "labels_along",
    "level_codes",
    "margin",
    "margin_names",
    "margin_of",
    "named_margins",
    "without_implied",
    "without_suppressed",
]

Integers = npt.NDArray[np.int64]
type Margin = str | Sequence[str]
"""A margin, named by its variables or levels above them; no variable is the grand
total."""


def margin(table: xr.DataArray, variables: str | Sequence[str]) -> xr.DataArray:
    """Sum a table over all variables but `variables`; draws and replicates are kept.

    Parameters
    ----------
    table : DataArray
        A frequency table or draws of one.
    variables : str or sequence of str
        The variables to keep; an empty sequence gives the total.

    Returns
    -------
    DataArray
        Missing where a cell is missing that belongs to it, as in a table with
        suppressed cells, or is marked as suppressed by `suppress_small_cells`.

    Raises
    ------
    TableError
        Cells that are no numbers.
    ParameterError
        A variable that the table does not have.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.margin(tc.load_dataset("area_by_sex"), "sex").values.tolist()
    [1308, 1141]
    """
    keep = names_of(variables, "variables")
    require_array(table, name="table")
    if table.dtype.kind not in "biuf":
        raise TableError(f"the cells of the table must be numbers, got {table.dtype}")
    unknown = [dim for dim in keep if dim not in table_dims(table)]
    if unknown:
        raise ParameterError(f"no variable {unknown} in the table: it has {table_dims(table)}")
    table = without_suppressed(table)
    if table.dtype.kind == "f":
        table = table.astype(np.float64)  # sums of shorter ones would be rounded
    return table.sum([dim for dim in table_dims(table) if dim not in keep], skipna=False)


def without_suppressed(table: xr.DataArray) -> xr.DataArray:
    """A table with the cells missing that `suppress_small_cells` marked."""
    cells = suppressed_cells(table)
    if cells is None:
        return table
    bare, cells = table.drop_vars(SUPPRESSED), cells.drop_vars(SUPPRESSED)
    return bare.where(~cells) if cells.any() else bare


def hierarchies(table: xr.DataArray) -> dict[str, tuple[str, ...]]:
    """The levels above each variable: further coordinates along it, such as the regions
    of countries.
    """
    along = {name: variable.dims for name, variable in table.coords.variables.items()}
    return {
        str(dim): tuple(str(name) for name, dims in along.items() if dims == (dim,) and name != dim)
        for dim in table.dims
    }


def margin_names(margin: Any, table: xr.DataArray, *, name: str) -> tuple[str, ...]:
    """Check a margin, one name or a sequence of names, and return its variables or
    levels above them, at most one for each variable.
    """
    if isinstance(margin, str):
        names: tuple[Any, ...] = (margin,)
    elif isinstance(margin, Sequence):
        names = tuple(margin)
    else:
        raise ParameterError(
            f"{name} must name a margin by its variables, such as ('a', 'b'), got {quoted(margin)}"
        )
    above = hierarchies(table)
    variables = tuple(above)
    of = {level: dim for dim in variables for level in (dim, *above[dim])}
    if (
        not set(map(type, names)) <= {str}
        or not set(names) <= set(of)
        or len(set(names)) < len(names)
    ):
        levels = tuple(level for dim in variables for level in above[dim])
        or_levels = f", or levels above them, {levels}" if levels else ""
        raise ParameterError(
            f"{name} must name variables of the table, {variables}{or_levels}, each once; got"
            f" {quoted(margin)}"
        )
    along = [of[each] for each in names]
    if len(set(along)) < len(along):
        twice = next(dim for dim in along if along.count(dim) > 1)
        both = [each for each in names if of[each] == twice]
        raise ParameterError(
            f"{name} must name one level of each variable; {both} are all of {twice!r}, in"
            f" {quoted(margin)}"
        )
    return names


def level_codes(table: xr.DataArray, name: str) -> tuple[npt.NDArray[Any], Integers]:
    """Categories of a variable, or of a level above one in order of first appearance,
    and that of each position.
    """
    labels = table[name].values
    if name in table.dims:
        return labels, np.arange(len(labels))
    codes, categories = pd.factorize(labels)
    if (codes < 0).any():
        dim = table[name].dims[0]
        missing = table[dim].values[np.flatnonzero(codes < 0)[0]]
        raise TableError(
            f"a label of {name!r} is missing, at {dim}={missing}: each category belongs to one of"
            f" {name!r}"
        )
    return np.asarray(categories), codes.astype(np.int64)


def labels_along(table: xr.DataArray, name: str) -> list[Any]:
    """Categories of a variable, or of a level above one, as Python's values."""
    labels: list[Any] = pd.Index(level_codes(table, name)[0]).tolist()
    return labels


def margin_of(table: xr.DataArray, names: tuple[str, ...]) -> tuple[xr.DataArray, Integers]:
    """The totals of a table over some of its variables or levels, and the flat position
    of the total that each cell belongs to.
    """
    group = np.zeros(table.shape, dtype=np.int64)
    coords = {}
    for name in names:
        coords[name], codes = level_codes(table, name)
        axis = table.get_axis_num(table[name].dims[0])
        group = group * len(coords[name]) + codes.reshape(
            [-1 if i == axis else 1 for i in range(table.ndim)]
        )
    shape = [len(labels) for labels in coords.values()]
    totals = np.zeros(int(np.prod(shape)), dtype=np.int64)
    np.add.at(totals, group.ravel(), table.values.ravel())
    above = {
        level: table[level]
        for dim, levels in hierarchies(table).items()
        if dim in names
        for level in levels
    }
    return (
        xr.DataArray(totals.reshape(shape), dims=names, coords=coords).assign_coords(above),
        group.ravel(),
    )


def without_implied(
    margins: Sequence[tuple[str, ...]], table: xr.DataArray
) -> list[tuple[str, ...]]:
    """The margins that do not follow from another whose grouping of the cells is finer;
    of equal ones the first.
    """
    finer = finer_margins(margins, table)
    return [names for names, others in zip(margins, finer, strict=True) if not others]


def finer_margins(margins: Sequence[tuple[str, ...]], table: xr.DataArray) -> list[set[int]]:
    """The numbers of the margins from which each follows: those whose grouping of the
    cells is finer, and of equal ones the earlier.
    """
    follows = following(table)
    return [
        {
            place
            for place, other in enumerate(margins)
            if follows(other, names) and (place < number or not follows(names, other))
        }
        for number, names in enumerate(margins)
    ]


def following(table: xr.DataArray) -> Callable[[tuple[str, ...], tuple[str, ...]], bool]:
    """Tells of a finer and a coarser margin whether cells that share a group of the
    first always share one of the second. Labels are compared once for all margins.
    """
    above = hierarchies(table)
    of = {level: dim for dim in above for level in (dim, *above[dim])}

    @cache
    def level_follows(fine: str | None, coarse: str) -> bool:
        """From a level of the same variable, or from none at all."""
        if fine in (coarse, of[coarse]):
            return True
        codes = level_codes(table, coarse)[1].tolist()
        finer = [0] * len(codes) if fine is None else level_codes(table, fine)[1].tolist()
        return len(set(zip(finer, codes, strict=True))) <= len(set(finer))

    def follows(finer: tuple[str, ...], coarser: tuple[str, ...]) -> bool:
        own = {of[name]: name for name in finer}
        return all(level_follows(own.get(of[name]), name) for name in coarser)

    return follows


def coarser_levels(table: xr.DataArray, dim: str) -> tuple[str, ...]:
    """The levels above a variable that combine some of its categories; a level that
    only renames them is not one.
    """
    return tuple(
        name
        for name in hierarchies(table)[dim]
        if len(level_codes(table, name)[0]) < table.sizes[dim]
    )


def finest_totals(table: xr.DataArray) -> list[tuple[str, ...]]:
    """The margins from which all others follow: one variable is summed over or raised
    to a level above it.
    """
    variables = tuple(map(str, table.dims))
    margins = []
    for dim in reversed(variables):
        for level in (*coarser_levels(table, dim), None):
            names = (level if name == dim else name for name in variables)
            margins.append(tuple(name for name in names if name is not None))
    return margins


def every_margin(table: xr.DataArray) -> list[tuple[str, ...]]:
    """All margins: each variable is summed over, raised to a level above it or kept,
    but not all are kept.
    """
    variables = tuple(map(str, table.dims))
    choices = product(*((None, *coarser_levels(table, dim), dim) for dim in variables))
    named = (tuple(name for name in names if name is not None) for names in choices)
    return [names for names in named if names != variables]


def named_margins(margins: Any, table: xr.DataArray, *, name: str) -> list[tuple[str, ...]]:
    """Check a sequence of margins and return each by the names of its variables or
    levels.
    """
    if isinstance(margins, str) or not isinstance(margins, Sequence):
        raise ParameterError(
            f"{name} must be a sequence of margins, such as [('a', 'b'), 'c'], got"
            f" {quoted(margins)}"
        )
    named = [margin_names(margin, table, name=name) for margin in margins]
    if len({frozenset(names) for names in named}) < len(named):
        raise ParameterError(f"{name} must name each margin once, got {list(margins)!r}")
    return named
