"""Totals that a user gives of a table, checked against it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.tables.margins import level_codes, margin_names
from taciturn.tables.steps import in_steps
from taciturn.validate import quoted, true_or_false

__all__ = ["check_totals", "total_in_steps"]


def check_totals(totals: Any, exact_totals: Any) -> None:
    """Raise `ParameterError` unless these are several tables, and whether they are
    exact; one table alone would be taken for as many grand totals as it has cells.
    """
    if not isinstance(totals, Sequence) or isinstance(totals, str):
        raise ParameterError(
            f"totals must be a sequence of DataArrays, such as [total], got {quoted(totals)}"
        )
    true_or_false(exact_totals, "exact_totals")


def total_in_steps(total: Any, table: xr.DataArray, decimals: int) -> xr.DataArray:
    """A table of totals over variables or levels of another, in steps and in the order
    of its categories; raise `TableError` where these are others.
    """
    if not isinstance(total, xr.DataArray):
        raise TableError(f"totals must be DataArrays, got {type(total).__name__}")
    names = margin_names(total.dims, table, name="totals")
    # A grand total has no dimension, which a table must have.
    steps = in_steps(total if names else total.expand_dims("total"), decimals, name="totals")
    for dim in names:
        labels = level_codes(table, dim)[0]
        if np.array_equal(steps[dim], labels):
            continue
        at = pd.Index(steps[dim].values).get_indexer(labels)
        if dim not in total.coords or len(at) != steps.sizes[dim] or (at < 0).any():
            raise TableError(f"the categories of {dim!r} differ between totals and the table")
        steps = steps.isel({dim: at})
    return steps if names else steps.isel(total=0, drop=True)
