"""The cell-key method: the same records get the same noise in every table."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.perturbation.replicates import Counts, labelled, replicated, seed_mark
from taciturn.perturbation.summed_keys import given_keys, summed_keys
from taciturn.schema import COUNT
from taciturn.tables.checks import check_table
from taciturn.tables.records import read_records
from taciturn.tables.transitions import check_perturbation_table, perturbed_counts
from taciturn.validate import generator, names_of, whole_number

__all__ = ["cell_key", "cell_key_records"]

Floats = npt.NDArray[np.float64]


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
        For tables that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.

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
    counts = table.values

    def release(rng: np.random.Generator, shape: tuple[int, ...]) -> Counts:
        return perturbed_counts(counts, rng.random(shape), cumulated, perturbed)

    return replicated(table, replicates, random_seed, release)


def cell_key_records(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    perturbation: xr.DataArray,
    keys: str | Sequence[float] | Floats | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
    sep: str | None = None,
    encoding: str | None = None,
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
        Record keys in ``[0, 1)``, as `record_keys` or `derive_record_keys` returns
        them: the name of a column, or one value per row. Without them every replicate
        has new ones, and a second table of the same records gets other noise.
    categories : mapping of str to sequence, optional
        As in `read_table`.
    replicates : int
        Number of independent sets of record keys; must be 1 if `keys` are given, as
        nothing is drawn then.
    random_seed : int or Generator, optional
        As in `cell_key`; must be None if `keys` are given.
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        Keys that are missing, outside ``[0, 1)`` or not one per record, or evidently
        not random: few different values, even steps, or a part of ``[0, 1)`` only; more
        than one replicate or a seed with given keys; a perturbation table that
        `cell_key` refuses.
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
    ...     "keys": tc.perturbation.record_keys(8),
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
        sep=sep,
        encoding=encoding,
    )
    index, coords = read.cells(variables), read.categories
    shape = tuple(len(labels) for labels in coords.values())
    counts = np.bincount(index, minlength=int(np.prod(shape)))
    of_records = given_keys(keys, read, replicates=replicates, random_seed=random_seed)
    rng = generator(random_seed)
    out = np.empty((replicates, counts.size), dtype=np.int64)
    for row in out:
        drawn = rng.random(read.rows) if of_records is None else of_records
        row[:] = perturbed_counts(
            counts, summed_keys(index, drawn, counts.size), cumulated, perturbed
        )
    table = xr.DataArray(counts.reshape(shape), dims=variables, coords=coords, name=COUNT)
    return labelled(table, out.reshape(replicates, *shape), seed_mark(random_seed))
