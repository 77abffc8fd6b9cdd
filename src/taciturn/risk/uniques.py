"""Risk of sample uniques: individuals alone in their cell of the sample, and perhaps of
the population.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.information.reduction import checked_pair
from taciturn.schema import cell_label, table_dims
from taciturn.tables.checks import check_counts

__all__ = ["cell_uniques", "unique_risk", "uniques_of_counts"]


def unique_risk(population: xr.DataArray, sample: xr.DataArray) -> xr.Dataset:
    r"""Count population uniques among sample uniques, and the expected number of
    correct matches.

    .. math::

        \tau_1 = |\{i : f_i = 1, F_i = 1\}|, \qquad \tau_2 = \sum_{i : f_i = 1} 1 / F_i

    Parameters
    ----------
    population : DataArray
        Population table `F` or draws of it, nowhere below the sample.
    sample : DataArray
        Sample table `f`.

    Returns
    -------
    Dataset
        ``tau1`` (integer) and ``tau2`` (at least ``tau1``), both from 0 to the number
        of sample uniques; `chain`, `draw` and `replicate` are kept, and dask-backed
        input stays lazy.

    Raises
    ------
    TableError
        A population below the sample in some cell, or mismatched categories.

    References
    ----------
    Skinner & Shlomo (2008), Assessing identification risk in survey microdata using
    log-linear models, JASA 103.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> F = xr.DataArray([1, 4, 7], dims="cell")
    >>> f = xr.DataArray([1, 1, 2], dims="cell")
    >>> risk = tc.risk.unique_risk(F, f)
    >>> int(risk.tau1), float(risk.tau2)
    (1, 1.25)
    """
    population, sample, lazy = _checked(population, sample)
    cells = list(table_dims(population))

    def kernel(F: Any, f: Any) -> tuple[Any, Any]:
        if lazy:
            _check_chunk(F, f)
        return uniques_of_counts(F, f, core=len(cells))

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


def uniques_of_counts(
    population: npt.NDArray[Any], sample: npt.NDArray[Any], *, core: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """τ1 and τ2 of checked tables as plain arrays, whose last `core` axes are the cells
    and whose leading axes broadcast.
    """
    F, f = (table.reshape(*table.shape[: table.ndim - core], -1) for table in (population, sample))
    # Most cells have nobody alone in any sample.
    somewhere = (f == 1).any(axis=tuple(range(f.ndim - 1)))
    F, alone = F[..., somewhere], f[..., somewhere] == 1
    return (alone & (F == 1)).sum(axis=-1), (alone / np.where(alone, F, 1)).sum(axis=-1)


def cell_uniques(population: xr.DataArray, sample: xr.DataArray) -> xr.Dataset:
    r"""Probability that somebody is alone in a cell, and of a correct match there, cell
    by cell.

    .. math:: P(F_i = 1 \mid f), \qquad E(1 / F_i \mid f)

    Parameters
    ----------
    population : DataArray
        Draws of the population table `F`, nowhere below the sample, or one table.
    sample : DataArray
        Sample table `f`.

    Returns
    -------
    Dataset
        ``p_unique`` and ``p_match``, both in ``[0, 1]``: means over `chain` and `draw`,
        on the table's dimensions; `replicate` is kept, and dask-backed input stays
        lazy.

    Raises
    ------
    TableError
        A population below the sample in some cell, or mismatched categories.

    Notes
    -----
    Cells that are empty in the sample: ``p_match`` is 0, as nobody in the sample can be
    matched with anybody there; ``p_unique`` is what it says, the probability that the
    population has one individual there. Summed over the sample uniques they are the
    posterior means of `tau1` and `tau2` of `unique_risk`.

    References
    ----------
    Skinner & Shlomo (2008), Assessing identification risk in survey microdata using
    log-linear models, JASA 103.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> F = xr.DataArray([[1, 4, 7], [2, 4, 6]], dims=("draw", "cell"))
    >>> risk = tc.risk.cell_uniques(F, xr.DataArray([1, 1, 0], dims="cell"))
    >>> risk.p_unique.values.tolist(), risk.p_match.values.tolist()
    ([0.5, 0.0, 0.0], [0.75, 0.25, 0.0])
    """
    population, sample, lazy = _checked(population, sample)

    def kernel(F: Any, f: Any) -> tuple[Any, Any]:
        if lazy:
            _check_chunk(F, f)
        sampled = np.broadcast_to(f > 0, np.broadcast_shapes(F.shape, f.shape))
        return np.broadcast_to(F == 1, sampled.shape).astype(float), sampled / np.where(
            sampled, F, 1
        )

    alone, match = xr.apply_ufunc(
        kernel,
        population,
        sample,
        output_core_dims=[[], []],
        join="exact",
        dask="parallelized",
        output_dtypes=[np.float64, np.float64],
    )
    drawn = [dim for dim in ("chain", "draw") if dim in match.dims]
    order = [dim for dim in ("replicate", *table_dims(sample)) if dim in match.dims]
    means = {"p_unique": alone.mean(drawn), "p_match": match.mean(drawn)}
    return xr.Dataset({name: mean.transpose(*order) for name, mean in means.items()})


def _checked(
    population: xr.DataArray, sample: xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray, bool]:
    """Population and sample, the one nowhere below the other; whether they are lazy,
    and left to `_check_chunk`.
    """
    population, sample = checked_pair(population, sample)
    lazy = population.chunks is not None or sample.chunks is not None
    if not lazy:
        below = population < sample
        if bool(below.any()):
            position = tuple(int(i) for i in np.argwhere(below.values)[0])
            raise TableError(f"the population is below the sample at {cell_label(below, position)}")
    return population, sample, lazy


def _check_chunk(population: Any, sample: Any) -> None:
    check_counts(population, name="population")
    check_counts(sample, name="sample")
    if np.less(population, sample).any():
        raise TableError("the population is below the sample in a cell of the chunk being computed")
