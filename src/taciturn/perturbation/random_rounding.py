"""Unbiased random rounding to a base."""

import numpy as np
import xarray as xr

from taciturn.schema import COUNT
from taciturn.tables import check_table
from taciturn.validate import generator, whole_number

__all__ = ["random_round"]


def random_round(
    table: xr.DataArray,
    *,
    base: int = 3,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Round every cell to a neighbouring multiple of a base, unbiased.

    A count with remainder `r` goes up with probability `r / base` and down otherwise, each cell on its own. Kept: the
    expected value of each cell, multiples of the base, non-negative whole numbers. Not kept: totals.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    base : int
        At least 2; 3 is that of the 2014 paper.
    replicates : int
        Number of independent roundings, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        The same seed gives the same roundings.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        `base` below 2 or not whole; fewer than one replicate.
    TableError
        What `check_table` refuses.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 4.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> tc.random_round(xr.DataArray([3, 6], dims="x"), base=3, random_seed=1).values.tolist()
    [[3, 6]]
    """
    table = check_table(table)
    base = whole_number(base, "base", least=2)
    replicates = whole_number(replicates, "replicates", least=1)
    rng = generator(random_seed)
    down, remainder = np.divmod(table.values, base)
    up = rng.random((replicates, *table.shape)) * base < remainder
    coords = {"replicate": np.arange(replicates), **{dim: table[dim] for dim in table.dims}}
    return xr.DataArray((down + up) * base, dims=("replicate", *table.dims), coords=coords, name=COUNT)
