"""The parts of a fit: its draws, its sample and what is known of the population."""

from typing import Final

import xarray as xr

from taciturn.errors import FileFormatError, TableError
from taciturn.estimators import Estimator, estimator_from_spec
from taciturn.schema import table_dims
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = ["fit_parts", "known_margins", "recorded_estimator", "zeros_of"]

_NEEDED: Final = (
    ("posterior_predictive", "population"),
    ("observed_data", "count"),
    ("constant_data", "population_size"),
)


def fit_parts(fit: xr.DataTree) -> tuple[xr.DataArray, xr.DataArray, int, xr.DataArray | None]:
    """Population draws, sample, population size and structural zeros (None without any)
    of a fit.
    """
    if not isinstance(fit, xr.DataTree):
        raise TableError(f"a fit is an xarray.DataTree, got {type(fit).__name__}")
    for group, name in _NEEDED:
        if group not in fit.children or name not in fit[group].data_vars:
            raise TableError(f"the fit has no {name!r} in the group {group!r}")
    sample = check_table(fit["observed_data"].to_dataset()["count"], name="the sample of the fit")
    population = fit["posterior_predictive"].to_dataset()["population"]
    dims = ("chain", "draw", *table_dims(sample))
    missing = [dim for dim in dims if dim not in population.dims]
    if missing:
        raise TableError(
            f"the population draws of the fit have no dimension {missing}: they have"
            f" {population.dims}"
        )
    if population.ndim > len(dims):
        raise TableError(
            f"the population draws of the fit must be over {dims}, they are over {population.dims}"
        )
    if population.size == 0:
        raise TableError(
            f"the fit has no draws: the sizes of its population are {dict(population.sizes)}"
        )
    given = fit["constant_data"].to_dataset()["population_size"]
    if given.ndim:
        raise TableError(
            f"the population_size of the fit must be one number, it has the dimensions {given.dims}"
        )
    size = whole_number(given.item(), "population_size", least=1)
    return population.transpose(*dims), sample, size, zeros_of(fit, sample)


def zeros_of(fit: xr.DataTree, sample: xr.DataArray) -> xr.DataArray | None:
    """Structural zeros of a fit; None where it has none."""
    zeros = fit["constant_data"].to_dataset().get("structural_zeros")
    if zeros is None:
        return None
    if zeros.dtype.kind not in "bui" or set(zeros.dims) != set(sample.dims):
        raise TableError(
            f"the structural_zeros of the fit must be bool over {sample.dims}, they are"
            f" {zeros.dtype} over {zeros.dims}"
        )
    return zeros.astype(bool) if bool(zeros.any()) else None


def recorded_estimator(fit: xr.DataTree) -> Estimator | None:
    """What made a fit; None for another package's or a user's own."""
    try:
        return estimator_from_spec(fit.attrs["estimator"])
    except (KeyError, FileFormatError):
        return None


def known_margins(fit: xr.DataTree) -> xr.DataArray | None:
    """The population's margins that a fit was given; None without any."""
    constants = fit["constant_data"].to_dataset()
    return constants.get("known_margins")
