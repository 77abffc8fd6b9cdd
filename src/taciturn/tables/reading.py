"""Frequency tables from files and data frames in long form."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT
from taciturn.tables.checks import check_table
from taciturn.tables.long import from_frame, read_long
from taciturn.tables.placing import parse_counts, place_rows

__all__ = ["read_table"]


def read_table(
    source: str | PathLike[str] | xr.DataArray | Any,
    *,
    count: str = COUNT,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Read a frequency table in long form: one row a cell, one column a variable, one
    column of counts.

    Parameters
    ----------
    source : path, pandas or polars DataFrame, or DataArray
        A CSV (UTF-8, comma, header) or Parquet file by its ending; Parquet needs
        ``taciturn[parquet]``. Labels in a CSV are text, so ``"01"`` stays ``"01"``.
        Every column but `count` is a classifying variable, in this order. Cells without
        a row are zero. A DataArray is checked and returned as int64.
    count : str
        Name of the column of counts.
    categories : mapping of str to sequence, optional
        Declared categories by variable, in their order. A label outside is an error, a
        category without a row is kept. Without it the order is that of a pandas
        categorical or polars Enum where there is one, else of first appearance.

    Returns
    -------
    DataArray
        int64, named ``count``, dims = variables.

    Raises
    ------
    TableError
        Negative, fractional, missing or infinite counts, counts beyond 2**53, a cell
        given twice, a missing label, no rows.
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
            raise ParameterError(
                "categories are declared for long tables; a DataArray brings its own: use reindex"
            )
        return check_table(source)
    long = read_long(source) if isinstance(source, str | PathLike) else from_frame(source)
    if count not in long.columns:
        raise TableError(
            f"no column {count!r} of counts in {long.origin}: the columns are {long.names()}"
        )
    dims = [name for name in long.columns if name != count]
    counts = parse_counts(long, count)
    return place_rows(long, dims, categories, counts)
