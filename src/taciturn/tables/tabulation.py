"""From records of individuals to a frequency table."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT, WEIGHTED_COUNT
from taciturn.tables.labels import (
    DROP,
    REFUSE,
    Labels,
    check_missing,
    check_variables,
    declared_categories,
    refuse_large_table,
)
from taciturn.tables.records import encoded_groups, open_records
from taciturn.tables.sources import Source
from taciturn.tables.values import convertible, is_missing, python_values, real_value
from taciturn.validate import names_of, quoted

__all__ = ["tabulate"]

_STEPS: Final = 10**6  # of a weight
_MOST_WEIGHT: Final = 10**6  # as of magnitudes
_MOST_STEPS: Final = 9 * 10**18  # of a sum of weights, which fits in 64 bits


def tabulate(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
    missing: str | int = REFUSE,
    sampling_weights: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> xr.DataArray:
    """Count the records of microdata by some of their variables.

    Parameters
    ----------
    records : path, data frame, relation of DuckDB or table of Ibis
        One row an individual. A CSV or Parquet file, by its ending, is read a part at a
        time. A relation, as ``connection.table("people")`` of DuckDB returns it, and a
        table of Ibis are counted by their engine, where the records are. A row in a
        message is then one of the distinct rows.
    variables : sequence of str
        The classifying variables.
    categories : mapping of str to sequence, optional
        Declared categories by variable, as in `read_table`. Without them, and where the
        data declare none, categories are sorted: numbers by size, also in text, and
        other labels by their letters.
    missing : str or int
        What is done about a missing label (None, NaN, blank text): ``"refuse"`` it;
        ``"drop"`` the record, whose other labels stay categories; or give it this
        label, such as ``"not stated"``, a category after the others. Where text has
        that label already, or whole numbers that number, both are counted as one.
    sampling_weights : str, optional
        Column of sampling weights, from 1 to 10**6, read to six decimals. What is
        returned is then an estimate of the population, which estimators take beside the
        frequency table of the same records: see Notes.
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

    Returns
    -------
    DataArray
        int64, named ``count``, dims as asked. With ``missing="drop"`` its attribute
        ``dropped`` is the number of records that were left out. With
        `sampling_weights`, sums of weights: float64, named ``weighted_count``.

    Raises
    ------
    TableError
        An unknown variable, a missing label, a label outside the declared categories, a
        weight that is missing or out of range, no records; a column ``count`` or
        ``weighted_count``, as tables have, whose rows are no individuals.
    ParameterError
        `missing` is no label, or the column of weights is a variable, too.

    Notes
    -----
    Weighted counts have fractions, and are no sample: an estimator is given the sample
    as it was counted, and its weights as ``sampling_weights``. A weighted table also
    serves to look at the population, or, rounded, as its ``known_margins``, if it is
    calibrated to these.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "f", "m"]})
    >>> tc.tabulate(people, ["area", "sex"]).values.tolist()
    [[2, 0], [0, 1]]
    """
    names = names_of(_listed(variables), "variables")
    weighted = [] if sampling_weights is None else [sampling_weights]
    source = open_records(records, names, weighted, sep=sep, encoding=encoding)
    check_variables(names)
    declared = declared_categories(categories, names)
    check_missing(missing)
    if sampling_weights in names:
        raise ParameterError(f"the column {sampling_weights!r} is given in two roles")
    source.require(weighted, of="sampling weights")
    labels = {dim: Labels(dim, source.origin, missing=missing) for dim in names}
    found, rows, kept_rows = np.zeros([0] * len(names), dtype=np.int64), 0, 0
    total = 0.0
    for codes, columns, number in encoded_groups(source, labels, weighted):
        found = _enlarged(found, [len(each) for each in labels.values()])
        kept = np.all([each >= 0 for each in codes], axis=0)
        own, steps = number[kept], np.ones(int(kept.sum()), dtype=np.int64)
        if weighted:
            steps = _weights(columns[0], weighted[0], source, rows)[kept]
            total += float(steps.astype(np.float64) @ own)
            if total >= _MOST_STEPS:
                raise TableError(
                    f"{source.origin}: the sampling weights add up to more than"
                    f" {_MOST_STEPS / _STEPS:,.0f}"
                )
        cells = np.ravel_multi_index([each[kept] for each in codes], found.shape)
        np.add.at(found.reshape(-1), cells, steps * own)
        rows, kept_rows = rows + int(number.sum()), kept_rows + int(own.sum())
    if kept_rows == 0:
        raise TableError(f"{source.origin}: each of the {rows} records lacks a label")
    coords, positions = {}, []
    for dim, each in labels.items():
        coords[dim], of_codes = each.categories(declared.get(dim, source.declared.get(dim)))
        positions.append(of_codes)
    shape = [len(categories) for categories in coords.values()]
    refuse_large_table(shape)
    counts = np.zeros(shape, dtype=np.int64)
    counts[np.ix_(*positions)] = found
    attrs = {"dropped": rows - kept_rows} if missing == DROP else {}
    table = xr.DataArray(counts, dims=names, coords=coords, name=COUNT, attrs=attrs)
    return table.rename(WEIGHTED_COUNT) / _STEPS if weighted else table


def _listed(given: Any) -> Any:
    """Names that may come from any iterable as a list."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else given


def _weights(column: Any, name: str, source: Source, start: int) -> npt.NDArray[np.int64]:
    """Sampling weights in steps of ``10**-6``, whose sums are the same in any order."""
    with convertible(name, source.origin):
        values = python_values(column)
    numbers = [real_value(value) for value in values]
    for row, number in enumerate(numbers):
        if number is None or not 1 <= number <= _MOST_WEIGHT:
            found = "is missing" if is_missing(values[row]) else f"holds {quoted(values[row])}"
            raise TableError(
                f"{name!r} must be sampling weights, numbers from 1 to {_MOST_WEIGHT:,}: row"
                f" {start + row + 1} of {source.origin} {found}"
            )
    return np.rint(np.asarray(numbers, dtype=np.float64) * _STEPS).astype(np.int64)


def _enlarged(counts: npt.NDArray[np.int64], sizes: list[int]) -> npt.NDArray[np.int64]:
    """The same counts in a table with further labels at the ends of its variables."""
    if counts.shape == tuple(sizes):
        return counts
    refuse_large_table(sizes)
    return np.pad(counts, [(0, new - old) for old, new in zip(counts.shape, sizes, strict=True)])
