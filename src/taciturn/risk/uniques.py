"""Risk of sample uniques: who is alone in the sample, and alone in the population too."""

from typing import Any

import numpy as np
import xarray as xr

from taciturn.errors import TableError
from taciturn.information._wrap import checked_pair
from taciturn.schema import cell_label, table_dims
from taciturn.tables import check_counts

__all__ = ["unique_risk"]


def unique_risk(population: xr.DataArray, sample: xr.DataArray) -> xr.Dataset:
    r"""Count population uniques among sample uniques, and the expected number of correct matches.

    .. math:: \tau_1 = |\{i : f_i = 1, F_i = 1\}|, \qquad \tau_2 = \sum_{i : f_i = 1} 1 / F_i

    Parameters
    ----------
    population : DataArray
        Population table `F` or draws of it, nowhere below the sample.
    sample : DataArray
        Sample table `f`.

    Returns
    -------
    Dataset
        ``tau1`` (integer) and ``tau2`` (at least ``tau1``), both from 0 to the number of sample uniques; `chain`,
        `draw` and `replicate` are kept, and dask-backed input stays lazy.

    Raises
    ------
    TableError
        A population below the sample in some cell, or mismatched categories.

    References
    ----------
    Skinner & Shlomo (2008), Assessing identification risk in survey microdata using log-linear models, JASA 103.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> F, f = xr.DataArray([1, 4, 7], dims="cell"), xr.DataArray([1, 1, 2], dims="cell")
    >>> risk = tc.unique_risk(F, f)
    >>> int(risk.tau1), float(risk.tau2)
    (1, 1.25)
    """
    population, sample = checked_pair(population, sample)
    cells = list(table_dims(population))
    if population.chunks is None and sample.chunks is None:
        below = population < sample
        if bool(below.any()):
            position = tuple(int(i) for i in np.argwhere(below.values)[0])
            raise TableError(f"the population is below the sample at {cell_label(below, position)}")

    def kernel(F: Any, f: Any) -> tuple[Any, Any]:
        check_counts(F, name="population")
        check_counts(f, name="sample")
        if np.less(F, f).any():
            raise TableError("the population is below the sample in a cell of the chunk being computed")
        axes = tuple(range(-len(cells), 0))
        alone = f == 1
        return (alone & (F == 1)).sum(axis=axes), (alone / np.where(alone, F, 1)).sum(axis=axes)

    tau1, tau2 = xr.apply_ufunc(
        kernel,
        population,
        sample,
        input_core_dims=[cells, cells],
        output_core_dims=[[], []],
        join="exact",
        dask="parallelized",
        output_dtypes=[np.int64, np.float64],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    return xr.Dataset({"tau1": tau1, "tau2": tau2})
