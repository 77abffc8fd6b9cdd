"""Frequency tables as `xarray.DataArray`: read, tabulate, check, take margins, draw a sample.

A table holds whole numbers, one dimension per classifying variable, coordinates = categories, name ``count``.
A category that nobody has stays in the table: it is a zero cell and counts in `K`.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn._frames import LongTable, from_frame, read_long
from taciturn._longform import parse_counts, place_rows
from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT, DRAW_DIMS, MAX_COUNT, RESERVED_NAMES, cell_label, draw_dims, table_dims
from taciturn.validate import generator, number_between, whole_number

__all__ = ["check_table", "draw_sample", "margin", "read_records", "read_table", "same_categories", "tabulate"]

_MAX_SAMPLED_POPULATION: Final = 10**9  # NumPy's hypergeometric generator ends there


def read_table(
    source: str | PathLike[str] | xr.DataArray | Any,
    *,
    count: str = COUNT,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Read a frequency table in long form: one row a cell, one column a variable, one column of counts.

    Parameters
    ----------
    source : path, pandas or polars DataFrame, or DataArray
        A CSV (UTF-8, comma, header) or Parquet file by its ending; Parquet needs ``taciturn[parquet]``. Labels in a
        CSV are text, so ``"01"`` stays ``"01"``. Every column but `count` is a classifying variable, in this order.
        Cells without a row are zero. A DataArray is checked and returned as int64.
    count : str
        Name of the column of counts.
    categories : mapping of str to sequence, optional
        Declared categories by variable, in their order. A label outside is an error, a category without a row is
        kept. Without it the order is that of a pandas categorical or polars Enum where there is one, else of first
        appearance.

    Returns
    -------
    DataArray
        int64, named ``count``, dims = variables.

    Raises
    ------
    TableError
        Negative, fractional, missing or infinite counts, counts beyond 2**53, a cell given twice, a missing label, no
        rows.
    FileFormatError
        The file is missing, unreadable, truncated or of another format.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> rows = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "m", "f"], "count": [3, 1, 4]})
    >>> tc.read_table(rows).values.tolist()
    [[3, 1], [4, 0]]
    """
    if isinstance(source, xr.DataArray):
        if categories is not None:
            raise ParameterError("categories are declared for long tables; a DataArray brings its own: use reindex")
        return check_table(source)
    long = read_long(source) if isinstance(source, str | PathLike) else from_frame(source)
    if count not in long.columns:
        raise TableError(f"no column {count!r} of counts in {long.origin}: the columns are {long.names()}")
    dims = [name for name in long.columns if name != count]
    counts = parse_counts(long, count)
    return place_rows(long, dims, categories, counts)


def tabulate(
    microdata: str | PathLike[str] | Any,
    dims: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Count records by some of their variables.

    Parameters
    ----------
    microdata : path, pandas or polars DataFrame
        One row an individual.
    dims : sequence of str
        The classifying variables.
    categories : mapping of str to sequence, optional
        As in `read_table`.

    Returns
    -------
    DataArray
        int64, named ``count``, dims as asked.

    Raises
    ------
    TableError
        An unknown variable, a missing label, a label outside the declared categories, no records.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "f", "m"]})
    >>> tc.tabulate(people, ["area", "sex"]).values.tolist()
    [[2, 0], [0, 1]]
    """
    dims = [dims] if isinstance(dims, str) else list(dims)
    long = read_records(microdata, dims)
    return place_rows(long, dims, categories, None)


def read_records(microdata: str | PathLike[str] | Any, dims: Sequence[str]) -> LongTable:
    """Read microdata that must have the named variables, each named once."""
    long = read_long(microdata) if isinstance(microdata, str | PathLike) else from_frame(microdata)
    unknown = [dim for dim in dims if dim not in long.columns]
    if unknown or not dims:
        raise TableError(f"no variable {unknown} in {long.origin}: the columns are {long.names()}")
    if len(set(dims)) < len(dims):
        raise TableError(f"a variable stands twice in {list(dims)}")
    return long


def check_table(table: xr.DataArray, *, name: str = "table", draws: bool = False, values: bool = True) -> xr.DataArray:
    """Check that an array is a frequency table and return it as int64 with a label on every category.

    Parameters
    ----------
    table : DataArray
        The candidate. One lazy (dask) table is computed; lazy draws are checked when they are computed, by whoever
        computes them.
    name : str
        What to call it in a message.
    draws : bool
        Whether the dimensions `chain`, `draw` and `replicate` may be present.
    values : bool
        Whether to look at the counts, too; whole numbers may be left to whoever goes through them next.

    Returns
    -------
    DataArray

    Raises
    ------
    TableError
        Not a DataArray, no cells, a reserved or unnamed dimension, duplicated categories, or counts that are
        negative, fractional, missing, infinite or beyond 2**53.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.check_table(tc.load_dataset("area_by_sex")).sizes
    Frozen({'area': 10, 'sex': 2})
    """
    if not isinstance(table, xr.DataArray):
        raise TableError(f"{name} must be an xarray.DataArray, got {type(table).__name__}")
    variables = table_dims(table)
    if not variables:
        raise TableError(f"{name} has no classifying variable: its dimensions are {table.dims}")
    if not draws and draw_dims(table):
        raise TableError(f"{name} must be one table, but has the dimensions {draw_dims(table)}")
    if table.size == 0:
        raise TableError(f"{name} is empty: its sizes are {dict(table.sizes)}")
    for dim in table.dims:
        if not isinstance(dim, str) or (dim in RESERVED_NAMES and dim not in DRAW_DIMS):
            raise TableError(f"{name}: {dim!r} cannot name a variable; {sorted(RESERVED_NAMES)} are reserved")
    missing = {dim: np.arange(table.sizes[dim]) for dim in variables if dim not in table.coords}
    table = table.assign_coords(missing)
    for dim in variables:
        labels = table.indexes[dim]
        if labels.nlevels > 1:
            raise TableError(f"{name}: {dim!r} has a MultiIndex; give each variable its own dimension with unstack")
        if labels.hasnans:
            raise TableError(f"{name}: a label of {dim!r} is missing, at position {int(np.argmax(labels.isna()))}")
        if not labels.is_unique:
            raise TableError(f"{name}: category {labels[labels.duplicated()][0]!r} of {dim!r} stands twice")
    if not draws:
        table = table.compute()
    if table.chunks is None and (values or table.dtype != np.int64):
        check_counts(table.values, table, name=name)
        table = table.astype(np.int64, copy=False)
    return table.rename(COUNT)


def check_counts(values: npt.NDArray[Any], table: xr.DataArray | None = None, *, name: str = "table") -> None:
    """Raise `TableError` unless all values are whole numbers from 0 to 2**53; `table` labels the first bad one."""
    if not (np.issubdtype(values.dtype, np.integer) or np.issubdtype(values.dtype, np.floating)):
        raise TableError(f"{name} must hold whole numbers, got the type {values.dtype}")
    if values.size == 0:
        return
    if np.issubdtype(values.dtype, np.integer) and values.min() >= 0 and values.max() <= MAX_COUNT:
        return
    problems: dict[str, npt.NDArray[np.bool_]] = {
        "not be missing": np.isnan(values),
        "be finite": np.isinf(values),
        "not be negative": values < 0,
        "be whole numbers": values != np.floor(values),
        "be at most 2**53": values > MAX_COUNT,
    }
    for rule, bad in problems.items():
        if bad.any():
            position = tuple(int(i) for i in np.argwhere(bad)[0])
            where = cell_label(table, position) if table is not None else f"position {position}"
            raise TableError(f"{name}: counts must {rule}: {where} holds {values[position]}")


def same_categories(first: xr.DataArray, second: xr.DataArray, *, names: tuple[str, str]) -> None:
    """Raise `TableError` unless two tables have the same variables and categories, in the same order."""
    if set(table_dims(first)) != set(table_dims(second)):
        raise TableError(f"{names[0]} has the variables {table_dims(first)}, {names[1]} has {table_dims(second)}")
    for dim in table_dims(first):
        ours, theirs = first[dim].values, second[dim].values
        if not np.array_equal(ours, theirs):
            unmatched = sorted(repr(x) for x in set(ours.tolist()) ^ set(theirs.tolist()))  # tells 1 from '1'
            found = f"only one has {', '.join(unmatched[:5])}" if unmatched else "the order is another"
            raise TableError(f"the categories of {dim!r} differ between {names[0]} and {names[1]}: {found}")


def margin(table: xr.DataArray, dims: str | Sequence[str]) -> xr.DataArray:
    """Sum a table over all variables but `dims`; draws and replicates are kept.

    Parameters
    ----------
    table : DataArray
        A frequency table or draws of one.
    dims : str or sequence of str
        The variables to keep; an empty sequence gives the total.

    Returns
    -------
    DataArray

    Raises
    ------
    ParameterError
        A variable that the table does not have.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.margin(tc.load_dataset("area_by_sex"), "sex").values.tolist()
    [1308, 1141]
    """
    keep = [dims] if isinstance(dims, str) else list(dims)
    unknown = [dim for dim in keep if dim not in table_dims(table)]
    if unknown:
        raise ParameterError(f"no variable {unknown} in the table: it has {table_dims(table)}")
    return table.sum([dim for dim in table_dims(table) if dim not in keep])


def draw_sample(
    table: xr.DataArray,
    *,
    fraction: float | None = None,
    size: int | None = None,
    replicates: int | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Draw simple random samples without replacement from a population table.

    The sample is multivariate hypergeometric: every set of `n` individuals is equally likely.

    Parameters
    ----------
    table : DataArray
        The population table, `N` individuals.
    fraction : float, optional
        Sampling fraction in (0, 1]; the size is ``round(fraction * N)``. Give either this or `size`.
    size : int, optional
        Sample size `n` from 1 to `N`.
    replicates : int, optional
        Number of independent samples, along a leading dimension ``replicate``; without it one table is returned.
    random_seed : int or Generator, optional
        The same seed gives the same samples.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)`` or ``dims``.

    Raises
    ------
    ParameterError
        Neither or both of `fraction` and `size`, or one outside its range; fewer than one replicate.
    TableError
        The table is not a frequency table, or has 10**9 or more individuals.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> int(sample.sum())
    245
    """
    table = check_table(table)
    total = int(table.sum())
    if float(table.values.sum(dtype=float)) >= _MAX_SAMPLED_POPULATION:
        raise TableError(f"samples can be drawn from fewer than 10**9 individuals, the table has {total}")
    if (fraction is None) == (size is None):
        raise ParameterError("give either fraction or size")
    if fraction is not None:
        if number_between(fraction, "fraction", 0, 1) == 0:
            raise ParameterError(f"fraction must be above 0 and at most 1, got {fraction}")
        size = round(fraction * total)
    size = whole_number(size, "the sample size", least=1, most=total)
    if replicates is not None:
        replicates = whole_number(replicates, "replicates", least=1)
    rng = generator(random_seed)
    flat = table.values.ravel()
    drawn = rng.multivariate_hypergeometric(flat, size, size=replicates, method="marginals")
    if replicates is None:
        return table.copy(data=drawn.reshape(table.shape))
    dims = ("replicate", *table.dims)
    coords = {"replicate": np.arange(replicates), **{dim: table[dim] for dim in table.dims}}
    return xr.DataArray(drawn.reshape(-1, *table.shape), dims=dims, coords=coords, name=COUNT)
