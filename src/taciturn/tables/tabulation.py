"""From records of individuals to a frequency table."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import xarray as xr

from taciturn.errors import TableError
from taciturn.tables.long import (
    LongTable,
    from_frame,
    read_long,
)
from taciturn.tables.placing import place_rows

__all__ = ["read_records", "tabulate"]


def tabulate(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Count records by some of their variables.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row an individual.
    variables : sequence of str
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
        An unknown variable, a missing label, a label outside the declared categories,
        no records.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "f", "m"]})
    >>> tc.tabulate(people, ["area", "sex"]).values.tolist()
    [[2, 0], [0, 1]]
    """
    variables = [variables] if isinstance(variables, str) else list(variables)
    long = read_records(records, variables)
    return place_rows(long, variables, categories, None)


def read_records(records: str | PathLike[str] | Any, variables: Sequence[str]) -> LongTable:
    """Read microdata that must have the named variables, each named once."""
    long = read_long(records) if isinstance(records, str | PathLike) else from_frame(records)
    unknown = [dim for dim in variables if dim not in long.columns]
    if unknown or not variables:
        raise TableError(f"no variable {unknown} in {long.origin}: the columns are {long.names()}")
    if len(set(variables)) < len(variables):
        raise TableError(f"a variable stands twice in {list(variables)}")
    return long
