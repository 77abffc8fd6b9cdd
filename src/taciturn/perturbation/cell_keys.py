"""The cell-key method: the same records get the same noise in every table."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.perturbation.perturbation_tables import check_perturbation_table
from taciturn.perturbation.replicates import Counts, labelled, replicated
from taciturn.schema import COUNT
from taciturn.tables.checks import check_table
from taciturn.tables.records import read_records
from taciturn.validate import generator, names_of, whole_number

__all__ = ["cell_key", "cell_key_records", "record_keys"]

Floats = npt.NDArray[np.float64]

_KEY_STEPS: Final = 2**53  # NumPy's uniform numbers are multiples of 2**-53
_MOST_RECORDS: Final = 10**9


def record_keys(n: int, *, random_seed: int | np.random.Generator | None = None) -> Floats:
    """Record keys of the cell-key method: independent uniform numbers.

    Drawn once and kept with the microdata, they make all tables of these consistent.

    Parameters
    ----------
    n : int
        Number of records.
    random_seed : int or Generator, optional
        The same seed gives the same keys.

    Returns
    -------
    ndarray
        float64 in ``[0, 1)``, shape ``(n,)``.

    Raises
    ------
    ParameterError
        Fewer than one record, or more than 10**9.

    References
    ----------
    Fraser & Wooton (2005), A proposed method for confidentialising tabular output to
    protect against differencing.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.perturbation.record_keys(3, random_seed=1).round(3).tolist()
    [0.512, 0.95, 0.144]
    """
    return generator(random_seed).random(whole_number(n, "n", least=1, most=_MOST_RECORDS))


def cell_key(
    table: xr.DataArray,
    *,
    perturbation: xr.DataArray,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    r"""Perturb one table by the cell-key method; each replicate has new record keys.

    The key of a cell is the sum of its records' keys modulo 1, and the perturbation
    table says which count this key gives:

    .. math::

        G_i = \min\{j : \textstyle\sum_{l \le j} p(l \mid F_i) > u_i\},
        \qquad u_i = \sum_{r \in i} k_r \bmod 1

    The sum of independent uniform record keys is uniform modulo 1, and no record is in
    two cells of a table. So cell keys are drawn directly, which gives the same
    distribution. Kept: zeros, and the expected value of each cell if the perturbation
    table is unbiased. Not kept: totals. A cell that occurs in two tables does not get
    the same noise in both; for that the records are needed, see `cell_key_records`.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    perturbation : DataArray
        Transition probabilities as `perturbation_table` returns them, dims ``(original,
        perturbed)``. Counts above the last row get the noise of that row.
    replicates : int
        Number of independent sets of record keys, along a leading dimension
        ``replicate``.
    random_seed : int or Generator, optional
        The same seed gives the same tables.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        A perturbation table with rows that do not sum to 1, probabilities outside ``[0,
        1]``, negative results or zeros that are changed; fewer than one replicate.
    TableError
        Whatever `check_table` refuses.

    References
    ----------
    Fraser & Wooton (2005), A proposed method for confidentialising tabular output to
    protect against differencing, UNECE/Eurostat work session on statistical data
    confidentiality; Marley & Leaver (2011), A method for confidentialising user-defined
    tables: statistical properties and a risk-utility analysis, 58th World Statistical
    Congress.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> noise = tc.perturbation.perturbation_table(3, 1)
    >>> table = xr.DataArray([0, 1, 5, 40], dims="x")
    >>> released = tc.cell_key(table, perturbation=noise, replicates=2, random_seed=1)
    >>> released.values.tolist()
    [[0, 3, 4, 42], [0, 1, 6, 40]]
    """
    table = check_table(table)
    replicates = whole_number(replicates, "replicates", least=1)
    cumulated, perturbed = check_perturbation_table(perturbation)
    rng = generator(random_seed)
    counts = table.values
    return replicated(
        table, replicates, lambda shape: _noisy(counts, rng.random(shape), cumulated, perturbed)
    )


def cell_key_records(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    perturbation: xr.DataArray,
    keys: str | Sequence[float] | Floats | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Tabulate microdata and perturb the table by the cell-key method.

    As `cell_key`, but with keys of the records. With the same `keys` and perturbation
    table, a set of records gets the same noise in every table, margins included, in
    which it forms a cell, whatever the order of the records. Tables and their margins
    are perturbed separately and do not add up.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row per individual.
    variables : sequence of str
        The classifying variables.
    perturbation : DataArray
        As in `cell_key`.
    keys : str or array of float, optional
        Record keys in ``[0, 1)``, as `record_keys` returns them: the name of a column,
        or one value per row. Without them every replicate has new ones.
    categories : mapping of str to sequence, optional
        As in `read_table`.
    replicates : int
        Number of independent sets of record keys; must be 1 if `keys` are given, as
        nothing is drawn then.
    random_seed : int or Generator, optional
        The same seed gives the same tables, in the first replicate those of
        ``keys=record_keys(n, random_seed=...)``.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        Keys that are missing, outside ``[0, 1)`` or not one per record; more than one
        replicate with given keys; a perturbation table that `cell_key` refuses.
    TableError
        Whatever `tabulate` refuses, or an unknown column of keys.

    References
    ----------
    Fraser & Wooton (2005); Marley & Leaver (2011), both as in `cell_key`.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AAAABBBB"), "sex": list("fffffmfm")})
    >>> keyed = {
    ...     "keys": tc.perturbation.record_keys(8, random_seed=3),
    ...     "perturbation": tc.perturbation.perturbation_table(3, 1),
    ... }
    >>> areas = tc.perturbation.cell_key_records(people, ["area"], **keyed)
    >>> both = tc.perturbation.cell_key_records(people, ["area", "sex"], **keyed)
    >>> same = both.sel(area="A", sex="f") == areas.sel(area="A")  # four people
    >>> bool(same.all())
    True
    """
    variables = names_of(variables, "variables")
    replicates = whole_number(replicates, "replicates", least=1)
    cumulated, perturbed = check_perturbation_table(perturbation)
    read = read_records(
        records,
        variables,
        categories,
        others={keys: "record keys"} if isinstance(keys, str) else None,
    )
    index, coords = read.cells(variables), read.categories
    shape = tuple(len(labels) for labels in coords.values())
    counts = np.bincount(index, minlength=int(np.prod(shape)))
    if isinstance(keys, str):
        keys = read.others[keys]
    if keys is not None:
        if replicates != 1:
            raise ParameterError(f"replicates must be 1 if record keys are given, got {replicates}")
        keys = _checked_keys(keys, read.rows)
    rng = generator(random_seed)
    out = np.empty((replicates, counts.size), dtype=np.int64)
    for row in out:
        of_records = rng.random(read.rows) if keys is None else keys
        row[:] = _noisy(counts, _cell_keys(index, of_records, counts.size), cumulated, perturbed)
    table = xr.DataArray(counts.reshape(shape), dims=variables, coords=coords, name=COUNT)
    return labelled(table, out.reshape(replicates, *shape))


def _checked_keys(keys: Any, records: int) -> Floats:
    """Record keys as float64, or raise `ParameterError`."""
    try:
        values = np.asarray(keys).astype(float)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"record keys must be numbers in [0, 1): {error}") from error
    if values.shape != (records,):
        raise ParameterError(
            f"there must be one record key for each of {records} records, got shape {values.shape}"
        )
    bad = np.flatnonzero(~((values >= 0) & (values < 1)))
    if len(bad):
        found = "is missing" if np.isnan(values[bad[0]]) else f"holds {values[bad[0]]:g}"
        raise ParameterError(f"record keys must be numbers in [0, 1): row {bad[0] + 1} {found}")
    return values


def _cell_keys(index: Counts, keys: Floats, cells: int) -> Floats:
    """Sum of the record keys in each cell, modulo 1.

    Whole multiples of 2**-53 add up exactly modulo 2**64, in any order of the records.
    """
    sums = np.zeros(cells, dtype=np.uint64)
    np.add.at(sums, index, (keys * _KEY_STEPS).astype(np.uint64))
    return (sums % np.uint64(_KEY_STEPS)).astype(float) / _KEY_STEPS


def _noisy(counts: Counts, keys: Floats, cumulated: Floats, perturbed: Counts) -> Counts:
    """Perturbed counts at the given cell keys; `keys` may have leading axes."""
    last = len(cumulated) - 1
    rows = np.minimum(counts, last)
    out = np.empty(keys.shape, dtype=np.int64)
    for row in np.unique(rows):
        at = rows == row
        found = perturbed[np.searchsorted(cumulated[row], keys[..., at], side="right")]
        out[..., at] = counts[at] + (found - row)
    return out
