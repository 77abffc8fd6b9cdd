"""From records of individuals to a frequency table."""

from collections.abc import Mapping, Sequence
from math import prod
from os import PathLike
from typing import Any

import numpy as np
import xarray as xr

from taciturn.schema import COUNT
from taciturn.tables.records import read_records

__all__ = ["tabulate"]


def tabulate(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Count the records of microdata by some of their variables.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row an individual.
    variables : sequence of str
        The classifying variables.
    categories : mapping of str to sequence, optional
        Declared categories by variable, as in `read_table`.

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
    read = read_records(records, variables, categories)
    shape = [len(read.categories[dim]) for dim in variables]
    counts = np.bincount(read.cells(variables), minlength=prod(shape)).astype(np.int64)
    return xr.DataArray(counts.reshape(shape), dims=variables, coords=read.categories, name=COUNT)
