"""Simple random samples from a population table."""

from typing import Final

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import (
    generator,
    real_number,
    whole_number,
)

__all__ = ["MAX_SAMPLED_POPULATION", "draw_sample"]

MAX_SAMPLED_POPULATION: Final = 10**9
"""Where NumPy's hypergeometric generator ends."""


def draw_sample(
    population: xr.DataArray,
    *,
    fraction: float | None = None,
    size: int | None = None,
    replicates: int | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    """Draw simple random samples without replacement from a population table.

    The sample is multivariate hypergeometric: every set of `n` individuals is equally
    likely.

    Parameters
    ----------
    population : DataArray
        The population table, `N` individuals.
    fraction : float, optional
        Sampling fraction in (0, 1]; the size is ``round(fraction * N)``. Give either
        this or `size`.
    size : int, optional
        Sample size `n` from 1 to `N`.
    replicates : int, optional
        Number of independent samples, along a leading dimension ``replicate``; without
        it one table is returned.
    random_seed : int or Generator, optional
        The same seed gives the same samples.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)`` or ``dims``.

    Raises
    ------
    ParameterError
        Neither or both of `fraction` and `size`, or one outside its range; fewer than
        one replicate.
    TableError
        The table is not a frequency table, or has 10**9 or more individuals.

    Examples
    --------
    >>> import taciturn as tc
    >>> population = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(population, fraction=0.1, random_seed=1)
    >>> int(sample.sum())
    245
    """
    population = check_table(population)
    total = int(population.sum())
    if float(population.values.sum(dtype=float)) >= MAX_SAMPLED_POPULATION:
        raise TableError(
            f"samples can be drawn from fewer than 10**9 individuals, the table has {total}"
        )
    if (fraction is None) == (size is None):
        raise ParameterError("give either fraction or size")
    if fraction is not None:
        size = round(real_number(fraction, "fraction", above=0, most=1) * total)
    size = whole_number(size, "the sample size", least=1, most=total)
    if replicates is not None:
        replicates = whole_number(replicates, "replicates", least=1)
    rng = generator(random_seed)
    flat = population.values.ravel()
    drawn = rng.multivariate_hypergeometric(flat, size, size=replicates, method="marginals")
    if replicates is None:
        return population.copy(data=drawn.reshape(population.shape))
    dims = ("replicate", *population.dims)
    coords = {**population.coords, "replicate": np.arange(replicates)}
    drawn = drawn.reshape(-1, *population.shape)
    return xr.DataArray(drawn, dims=dims, coords=coords, name=COUNT, attrs=population.attrs)
