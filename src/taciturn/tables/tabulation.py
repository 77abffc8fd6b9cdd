"""From records of individuals to a frequency table."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.schema import COUNT
from taciturn.tables.labels import (
    Labels,
    check_variables,
    declared_categories,
    refuse_large_table,
)
from taciturn.tables.records import encoded_parts, open_records
from taciturn.validate import names_of

__all__ = ["tabulate"]


def tabulate(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
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
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

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
    given: Any = variables
    several = isinstance(given, Iterable) and not isinstance(given, str)
    names = names_of(list(given) if several else given, "variables")
    source = open_records(records, names, sep=sep, encoding=encoding)
    check_variables(names)
    declared = declared_categories(categories, names)
    labels = {dim: Labels(dim, source.origin) for dim in names}
    found = np.zeros([0] * len(names), dtype=np.int64)
    for codes, _ in encoded_parts(source, labels):
        found = _enlarged(found, [len(each) for each in labels.values()])
        np.add.at(found.reshape(-1), np.ravel_multi_index(codes, found.shape), 1)
    coords, positions = {}, []
    for dim, each in labels.items():
        coords[dim], of_codes = each.categories(declared.get(dim, source.declared.get(dim)))
        positions.append(of_codes)
    shape = [len(categories) for categories in coords.values()]
    refuse_large_table(shape)
    counts = np.zeros(shape, dtype=np.int64)
    counts[np.ix_(*positions)] = found
    return xr.DataArray(counts, dims=names, coords=coords, name=COUNT)


def _enlarged(counts: npt.NDArray[np.int64], sizes: list[int]) -> npt.NDArray[np.int64]:
    """The same counts in a table with further labels at the ends of its variables."""
    if counts.shape == tuple(sizes):
        return counts
    refuse_large_table(sizes)
    return np.pad(counts, [(0, new - old) for old, new in zip(counts.shape, sizes, strict=True)])
