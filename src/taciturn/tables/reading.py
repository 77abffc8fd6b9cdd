"""Frequency tables from files and data frames in long form."""

from collections.abc import Mapping, Sequence
from math import prod
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT, PUBLISHED, STATUS, SUPPRESSED, WEIGHTED_COUNT
from taciturn.tables.checks import check_table, refuse_large_total
from taciturn.tables.records import Records, code_records
from taciturn.tables.sources import open_source, refuse_dialect
from taciturn.tables.totals import refuse_totals
from taciturn.tables.values import is_missing, number_hint, whole_steps

__all__ = ["read_steps", "read_table"]

_MISSING: Final = {"nan", "na", "<na>", "none"}  # what files write for a missing count


def read_table(
    source: str | PathLike[str] | xr.DataArray | Any,
    *,
    count: str = COUNT,
    categories: Mapping[str, Sequence[Any]] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> xr.DataArray:
    """Read a frequency table in long form: one row a cell, one column a variable, one
    column of counts.

    Parameters
    ----------
    source : path, pandas or polars DataFrame, relation of DuckDB, or DataArray
        A CSV file with a header, or a Parquet file, by its ending; Parquet needs
        ``taciturn[parquet]``. Labels in a CSV are text, so ``"01"`` stays ``"01"``.
        Every column except `count` is a classifying variable, in the order of the
        columns. Cells without a row are zero. The column ``status`` of a release is
        left out where all cells are ``published``. A DataArray is checked and returned
        as int64.
    count : str
        Name of the column of counts.
    categories : mapping of str to sequence, optional
        Declared categories by variable, in their order. A label outside them is an
        error; a category without a row is kept. By default the order is that of a
        pandas categorical, a polars Enum or a Parquet dictionary where there is one,
        otherwise that of first appearance.
    sep : str, optional
        What separates the fields of a CSV. By default the one of comma, semicolon, tab
        and ``|`` that stands in its header.
    encoding : str, optional
        Encoding of a CSV, such as ``"latin-1"`` or ``"cp1252"``; UTF-8 by default.

    Returns
    -------
    DataArray
        int64, named ``count``, or ``weighted_count`` if that is the name of its column,
        which no estimator takes for a sample; dims = variables.

    Raises
    ------
    TableError
        Negative, fractional, missing or infinite counts, counts that add up to more
        than 2**53, a cell given twice, a missing label, two labels that look alike, one
        with a character that is not seen, no rows, a table beyond 2 GiB, a release with
        suppressed cells. A category called ``Total``, or so in another language, of
        which a count is the sum of the other categories.
    FileFormatError
        The file is missing, unreadable, truncated, of another format or encoding, or
        its header does not show the separator.
    ParameterError
        A separator or an encoding that is none, or for what is no CSV file.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> rows = pd.DataFrame(
    ...     {"area": ["A", "A", "B"], "sex": ["f", "m", "f"], "count": [3, 1, 4]}
    ... )
    >>> tc.read_table(rows).values.tolist()
    [[3, 1], [4, 0]]
    """
    if isinstance(source, xr.DataArray):
        if categories is not None:
            raise ParameterError(
                "categories are declared for long tables; a DataArray brings its own: use reindex"
            )
        refuse_dialect(source, sep, encoding)
        table = check_table(source)
        refuse_totals(table, "table")
        return table
    return read_steps(source, count, categories=categories, sep=sep, encoding=encoding)


def read_steps(
    source: str | PathLike[str] | Any,
    value: str,
    *,
    what: str = "counts",
    decimals: int = 0,
    categories: Mapping[str, Sequence[Any]] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> xr.DataArray:
    """Read a table in long form of counts or, with `decimals`, of magnitudes: int64, in
    steps of ``10**-decimals``. `what` it holds is said in messages.
    """
    opened = open_source(source, sep=sep, encoding=encoding)
    opened.require([value], of=what)
    variables = [name for name in opened.names if name != value]
    if not variables:
        raise TableError(f"{opened.origin} has no classifying variable beside {value!r}")
    rows = code_records(opened, variables, categories, others=[value], in_order=True)
    variables = _without_status(variables, rows, opened.origin)
    shape = [len(rows.categories[dim]) for dim in variables]
    cells = rows.cells(variables)
    flat = np.zeros(prod(shape), dtype=np.int64)
    flat[cells] = steps = _steps(rows, variables, value, what, decimals)
    refuse_large_total(steps, opened.origin)
    order = np.argsort(cells, kind="stable")
    repeated = np.flatnonzero(np.diff(cells[order]) == 0)
    if len(repeated):
        cell = rows.label(variables, int(order[repeated[0] + 1]))
        raise TableError(
            f"{opened.origin}: {cell} stands in more than one row, and can be given once"
        )
    coords = {name: rows.categories[name] for name in variables}
    name = value if value == WEIGHTED_COUNT else COUNT  # no sample, as fits know by its name
    table = xr.DataArray(flat.reshape(shape), dims=variables, coords=coords, name=name)
    refuse_totals(table, opened.origin)
    return table


def _without_status(variables: list[str], rows: Records, origin: str) -> list[str]:
    """The variables of a table that may be a release with the status of its cells."""
    found = set(map(str, rows.categories.get(STATUS, ())))
    if not found or not found <= {PUBLISHED, SUPPRESSED} or variables == [STATUS]:
        return variables
    if SUPPRESSED in found:
        raise TableError(
            f"{origin}: is a release with suppressed cells, whose counts are not known; a table"
            " needs the counts of all cells"
        )
    return [name for name in variables if name != STATUS]


def _steps(
    rows: Records, variables: Sequence[str], value: str, what: str, decimals: int
) -> npt.NDArray[np.int64]:
    """Whole steps from a column of text or numbers."""
    steps = np.zeros(rows.rows, dtype=np.int64)
    for row, raw in enumerate(rows.others[value]):
        number = whole_steps(raw, decimals)
        if number is None:
            rule = (
                f"numbers from 0 to 2**53 steps with at most {decimals} decimals"
                if decimals
                else "whole numbers from 0 to 2**53"
            )
            shown = f"{raw!r:.60}" if isinstance(raw, str) else f"{raw!s:.60}"
            missing = is_missing(raw) or str(raw).strip().lower() in _MISSING
            found = "is missing" if missing else f"holds {shown}{number_hint(raw, decimals)}"
            raise TableError(
                f"{rows.origin}: {what} must be {rule}: {rows.label(variables, row)} {found}"
            )
        steps[row] = number
    return steps
