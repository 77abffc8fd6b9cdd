"""The parts of a fit: its draws, its sample and what is known of the population."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.estimators.design import check_weighting
from taciturn.figures import beside
from taciturn.schema import MAX_COUNT, check_population_counts, check_population_labels, table_dims
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = [
    "PARAMETER_GROUPS",
    "FitParts",
    "Known",
    "fit_parts",
    "fitted_parameters",
    "fraction_in_words",
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
    stratified : bool
        Whether these are the strata of the sample.
    sampling_weights : DataArray or None
        Sum of the weights of the sampled individuals of each cell.
    effective_size : float or None
        With weights, the number of people who, sampled one by one, say as much.
    """

    sample: xr.DataArray
    population_size: int
    structural_zeros: xr.DataArray | None
    known_margins: xr.DataArray | None
    stratified: bool
    sampling_weights: xr.DataArray | None
    effective_size: float | None

    @property
    def variables(self) -> tuple[str, ...]:
        """The classifying variables."""
        return table_dims(self.sample)

    @property
    def is_census(self) -> bool:
        """Whether everybody was sampled: then the model has no part in what is said."""
        return int(self.sample.sum()) == self.population_size

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of `Estimator.fit` besides the sample that describe the problem."""
        return {
            "population_size": self.population_size,
            "structural_zeros": self.structural_zeros,
            "strata" if self.stratified else "known_margins": self.known_margins,
            "sampling_weights": self.sampling_weights,
            "effective_size": self.effective_size,
        }

    @property
    def arguments(self) -> list[str]:
        """What is given, as a call has it, tables by name."""
        given = {name: value for name, value in self.given.items() if value is not None}
        if not self.together:
            given.pop("effective_size", None)
        return [
            f"{name}={name if isinstance(value, xr.DataArray) else repr(value)}"
            for name, value in given.items()
        ]

    @property
    def assumed(self) -> str:
        """How the sample is taken to have been drawn."""
        if self.together:
            return f"a weighted sample that {self._as_much}"
        if self.sampling_weights is not None:
            return "a sample with unequal chances, as its weights say"
        if self.stratified and self.known_margins is not None:
            by = " x ".join(map(str, self.known_margins.dims))
            return f"a simple random sample without replacement in each stratum, by {by}"
        return "a simple random sample without replacement"

    @property
    def design(self) -> str:
        """How the sample was drawn, if not as a simple random one, for a summary."""
        if self.sampling_weights is not None:
            return "; weighted" + (f", {self._as_much}" if self.together else "")
        if not self.stratified or self.known_margins is None:
            return ""
        dims = self.known_margins.dims
        drawn = self.sample.sum([dim for dim in self.variables if dim not in dims])
        fractions = (drawn / self.known_margins.where(self.known_margins > 0)).values
        low, high = map(fraction_in_words, (np.nanmin(fractions), np.nanmax(fractions)))
        return f"; by {' x '.join(map(str, dims))}, fractions from {low} to {high}"

    @property
    def together(self) -> bool:
        """Whether people were sampled together, and say less than one by one."""
        return self.effective_size is not None and self.effective_size < int(self.sample.sum())

    @property
    def _as_much(self) -> str:
        """How much the sample says, if people were sampled together."""
        return f"says as much as {self.effective_size:.4g} people sampled one by one"

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


def fraction_in_words(fraction: float) -> str:
    """A sampling fraction with four digits, or more where it would look like all."""
    return beside(fraction, 1, decimals=4) if 0.9999 < fraction < 1 else f"{fraction:.4g}"


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
    for name in ("stratified", "effective_size"):
        if name in constants and constants[name].ndim:
            raise TableError(f"the {name} of the fit must be one value, not an array")
    stratified = "stratified" in constants and bool(constants["stratified"])
    if stratified and "known_margins" not in constants:
        raise TableError("the fit is of a stratified sample, and has no sizes of its strata")
    weights = constants.get("sampling_weights")
    effective_size = constants["effective_size"].item() if "effective_size" in constants else None
    if (weights is None) != (effective_size is None):
        raise TableError("the fit has sampling_weights or an effective_size, and needs both")
    check_weighting(sample, weights, effective_size)
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
        stratified,
        weights,
        effective_size,
    )


def fitted_parameters(fit: xr.DataTree) -> xr.Dataset | None:
    """Draws of all parameters, those of single latent classes among them; None without
    any.
    """
    found = [fit[group].to_dataset() for group in PARAMETER_GROUPS if group in fit.children]
    return xr.merge(found, join="exact", compat="equals") if found else None
