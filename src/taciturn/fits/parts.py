"""The parts of a fit: its draws, its sample and what is known of the population."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import MAX_COUNT, check_population_counts, check_population_labels, table_dims
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = [
    "PARAMETER_GROUPS",
    "FitParts",
    "Known",
    "fit_parts",
    "fitted_parameters",
    "known_parts",
]

PARAMETER_GROUPS: Final = ("posterior", "latent_classes")
"""Groups that hold draws of parameters."""


_NEEDED: Final = (
    ("posterior_predictive", "population"),
    ("observed_data", "count"),
    ("constant_data", "population_size"),
)


@dataclass(frozen=True)
class Known:
    """What an estimator was given, checked.

    Attributes
    ----------
    sample : DataArray
        The sample table.
    population_size : int
        Number of individuals in the population, `N`.
    structural_zeros : DataArray of bool or None
        True where a cell cannot be filled, in the sample's order; None without any.
    known_margins : DataArray or None
        The population's table over some of the variables.
    """

    sample: xr.DataArray
    population_size: int
    structural_zeros: xr.DataArray | None
    known_margins: xr.DataArray | None

    @property
    def variables(self) -> tuple[str, ...]:
        """The classifying variables."""
        return table_dims(self.sample)

    @property
    def fillable(self) -> npt.NDArray[np.bool_]:
        """True where a cell can be filled, in the shape of the sample."""
        if self.structural_zeros is None:
            return np.ones(self.sample.shape, dtype=bool)
        return ~self.structural_zeros.values

    @property
    def cells(self) -> int:
        """Number of cells that can be filled, `K`."""
        return int(self.fillable.sum())


@dataclass(frozen=True)
class FitParts(Known):
    """What all work with a fit starts from, checked once but for the counts of the
    draws.

    Attributes
    ----------
    population : DataArray
        Draws of the population table, (chain, draw, *variables of the sample); those
        that are drawn as they are read stay so.
    """

    population: xr.DataArray

    def check_counts(self, draws: xr.DataArray) -> None:
        """Raise `TableError` unless some of the draws keep the population contract."""
        check_population_counts(
            draws,
            self.sample,
            self.population_size,
            self.structural_zeros,
            self.known_margins,
        )


def fit_parts(fit: xr.DataTree) -> FitParts:
    """Check a fit and take it apart.

    All of the population contract is checked that needs no draw to be read: the counts
    are checked where they are read, in `assess`.

    Raises
    ------
    TableError
        A group or a variable that is missing or is not what it should be.
    """
    if not isinstance(fit, xr.DataTree):
        raise TableError(f"a fit is an xarray.DataTree, got {type(fit).__name__}")
    for group, name in _NEEDED:
        if group not in fit.children or name not in fit[group].data_vars:
            raise TableError(f"the fit has no {name!r} in the group {group!r}")
    known = known_parts(fit)
    population = fit["posterior_predictive"].to_dataset()["population"]
    dims = ("chain", "draw", *known.variables)
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
    check_population_labels(population, known.sample, known.structural_zeros, known.known_margins)
    return FitParts(**vars(known), population=population.transpose(*dims))


def known_parts(fit: xr.DataTree) -> Known:
    """What the estimator of a fit was given, of a fit that has the groups
    ``observed_data`` and ``constant_data``.
    """
    sample = check_table(fit["observed_data"].to_dataset()["count"], name="the sample of the fit")
    constants = fit["constant_data"].to_dataset()
    size = constants["population_size"]
    if size.ndim:
        raise TableError(
            f"the population_size of the fit must be one number, it has the dimensions {size.dims}"
        )
    population_size = whole_number(size.item(), "population_size", least=1, most=MAX_COUNT)
    zeros = constants.get("structural_zeros")
    if zeros is not None and (zeros.dtype.kind not in "bui" or set(zeros.dims) != set(sample.dims)):
        raise TableError(
            f"the structural_zeros of the fit must be bool over {sample.dims}, they are"
            f" {zeros.dtype} over {zeros.dims}"
        )
    return Known(
        sample,
        population_size,
        zeros.astype(bool).transpose(*sample.dims) if zeros is not None and zeros.any() else None,
        constants.get("known_margins"),
    )


def fitted_parameters(fit: xr.DataTree) -> xr.Dataset | None:
    """Draws of all parameters, those of single latent classes among them; None without
    any.
    """
    found = [fit[group].to_dataset() for group in PARAMETER_GROUPS if group in fit.children]
    return xr.merge(found, join="exact", compat="equals") if found else None
