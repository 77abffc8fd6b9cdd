"""Fits as they are kept: their parts, writing and reading them, and making them again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn._files import check_writable, whole_file
from taciturn.errors import FileFormatError, TableError, TaciturnError
from taciturn.estimators import Estimator, LinearPool, estimator_from_spec, member_draws
from taciturn.estimators.base import Parameters, SamplerSettings
from taciturn.estimators.problem import make_problem
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, disclosure_risk
from taciturn.risk.uniques import unique_risk
from taciturn.schema import SCHEMA_VERSION, check_population, split_draws, table_dims
from taciturn.tables import check_table
from taciturn.validate import whole_number

__all__ = [
    "Maker",
    "fit_makers",
    "fit_parts",
    "fit_risk",
    "known_margins",
    "read_fit",
    "recorded_estimator",
    "repeat_fit",
    "save_fit",
    "stack_weights",
]

_NEEDED: Final = (
    ("posterior_predictive", "population"),
    ("observed_data", "sample"),
    ("constant_data", "population_size"),
)


def fit_parts(fit: xr.DataTree) -> tuple[xr.DataArray, xr.DataArray, int, xr.DataArray | None]:
    """Population draws, sample, population size and structural zeros (None without any) of a fit."""
    if not isinstance(fit, xr.DataTree):
        raise TableError(f"a fit is an xarray.DataTree, got {type(fit).__name__}")
    for group, name in _NEEDED:
        if group not in fit.children or name not in fit[group].data_vars:
            raise TableError(f"the fit has no {name!r} in the group {group!r}")
    sample = check_table(fit["observed_data"].to_dataset()["sample"], name="the sample of the fit")
    population = fit["posterior_predictive"].to_dataset()["population"]
    dims = ("chain", "draw", *table_dims(sample))
    missing = [dim for dim in dims if dim not in population.dims]
    if missing:
        raise TableError(f"the population draws of the fit have no dimension {missing}: they have {population.dims}")
    if population.ndim > len(dims):
        raise TableError(f"the population draws of the fit must be over {dims}, they are over {population.dims}")
    if population.size == 0:
        raise TableError(f"the fit has no draws: the sizes of its population are {dict(population.sizes)}")
    given = fit["constant_data"].to_dataset()["population_size"]
    if given.ndim:
        raise TableError(f"the population_size of the fit must be one number, it has the dimensions {given.dims}")
    size = whole_number(given.item(), "population_size", least=1)
    return population.transpose(*dims), sample, size, _zeros(fit, sample)


def _zeros(fit: xr.DataTree, sample: xr.DataArray) -> xr.DataArray | None:
    """Structural zeros of a fit; None where it has none."""
    zeros = fit["constant_data"].to_dataset().get("structural_zeros")
    if zeros is None:
        return None
    if zeros.dtype.kind not in "bui" or set(zeros.dims) != set(sample.dims):
        raise TableError(
            f"the structural_zeros of the fit must be bool over {sample.dims}, they are {zeros.dtype} over {zeros.dims}"
        )
    return zeros.astype(bool) if bool(zeros.any()) else None


def recorded_estimator(fit: xr.DataTree) -> Estimator | None:
    """What made a fit; None for another package's or a user's own."""
    try:
        return estimator_from_spec(fit.attrs["estimator"])
    except (KeyError, FileFormatError):
        return None


def fit_risk(fit: xr.DataTree, *, weights: Sequence[float] | None = None) -> xr.Dataset:
    """R1, R2 and their terms, τ1 and τ2 of every draw of a fit: as assessed, or with `weights` where these are given.

    A fit that was not assessed gets the default weights. The draws are held to the population contract first.
    """
    if weights is None and "risk" in fit.children and {"R1", "R2", "tau1", "tau2"} <= set(fit["risk"].data_vars):
        return fit["risk"].to_dataset().compute()
    population, sample, size, zeros = fit_parts(fit)
    margins = known_margins(fit)
    where = None if zeros is None else ~zeros
    given = DEFAULT_WEIGHTS if weights is None else weights
    parts: list[xr.Dataset] = []
    for part in split_draws(population):
        check_population(part, sample, population_size=size, structural_zeros=zeros, known_margins=margins)
        risk = disclosure_risk(part, sample, weights=given, where=where)
        parts.append(risk.merge(unique_risk(part, sample), combine_attrs="override"))
    each = len(parts) // population.sizes["chain"]
    if len(parts) == 1:
        return parts[0]
    chains = [xr.concat(parts[start : start + each], "draw") for start in range(0, len(parts), each)]
    return xr.concat(chains, "chain", combine_attrs="override")


def known_margins(fit: xr.DataTree) -> xr.DataArray | None:
    """The population's margins that a fit was given; None without any."""
    constants = fit["constant_data"].to_dataset()
    return constants.get("known_margins")


def stack_weights(fit: xr.DataTree) -> dict[str, float]:
    """Weights of the members of a stack, by name in their order; empty for any other fit.

    Raises
    ------
    FileFormatError
        The fit says that it is a stack, but not of what.
    """
    if "stack" not in fit.attrs:
        return {}
    try:
        weights = {str(name): float(weight) for name, weight in json.loads(fit.attrs["stack"])["weights"].items()}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(f"the weights of the stack cannot be read: {fit.attrs['stack']!r}") from error
    missing = sorted(set(weights) - (set(fit["members"].children) if "members" in fit.children else set()))
    if missing:
        raise FileFormatError(f"the stack has weights for {missing}, but the group 'members' does not have them")
    return weights


@dataclass(frozen=True)
class Maker:
    """What made draws of a fit: its estimator, or one member of a pool or of a stack.

    Attributes
    ----------
    estimator : Estimator or None
        None for another package's or a user's own.
    posterior : Dataset or None
        Its parameters at every draw, under their own names.
    made : array of bool, shape (chains, draws)
        Which draws of the population and of the sample it made.
    """

    estimator: Estimator | None
    posterior: xr.Dataset | None
    made: npt.NDArray[np.bool_]


def fit_makers(fit: xr.DataTree) -> dict[str, Maker]:
    """What made the draws of a fit, by the names of members; a fit that is no mixture has one, without a name."""
    population = fit_parts(fit)[0]
    return _makers(fit, np.ones((population.sizes["chain"], population.sizes["draw"]), dtype=bool))


def _makers(fit: xr.DataTree, made: npt.NDArray[np.bool_]) -> dict[str, Maker]:
    posterior = fit["posterior"].to_dataset().compute() if "posterior" in fit.children else None
    if posterior is not None:  # that of a member of a stack may have more draws than the stack
        posterior = posterior.isel(chain=slice(made.shape[0]), draw=slice(made.shape[1]))
    if weights := stack_weights(fit):
        assert posterior is not None
        member = posterior["member"].transpose("chain", "draw").values
        parts = {
            name: _makers(fit["members"].children[name], made & (member == number))
            for number, name in enumerate(weights)
        }
        return {f"{name} {inner}".strip(): maker for name, own in parts.items() for inner, maker in own.items()}
    estimator = recorded_estimator(fit)
    if isinstance(estimator, LinearPool) and posterior is not None:
        return {
            name: Maker(estimator.members[name], own if own.data_vars else None, made & turn)
            for name, (own, turn) in member_draws(estimator, posterior).items()
        }
    return {"": Maker(estimator, posterior, made)}


def save_fit(fit: xr.DataTree, path: str | PathLike[str]) -> None:
    """Write a fit as netCDF, which ArviZ and xarray read; the file appears complete or not at all.

    Tables that are drawn as they are read are not written where `read_fit` can draw the same again from parameters and
    seed. Those of some of the draws, of a stack and of an estimator of one's own are written in full.

    Parameters
    ----------
    fit : DataTree
        A fit, assessed or not.
    path : path
        Where to; an existing file is replaced.

    Raises
    ------
    FileFormatError
        The place cannot be written to.
    """
    fit_parts(fit)
    path = Path(path)
    check_writable(path)
    if "streamed" in fit.attrs:
        fit = fit.drop_nodes("posterior_predictive") if _can_be_drawn_again(fit) else _stored(fit)
    packed = {"zlib": True, "complevel": 4, "shuffle": True}
    encoding = {
        node.path: {variable: packed for variable, array in node.data_vars.items() if array.ndim}
        for node in fit.subtree
    }
    with whole_file(path) as temporary:
        try:
            fit.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
        except (ValueError, TypeError) as error:  # labels that netCDF cannot hold
            raise FileFormatError(f"{path}: cannot be written: {error}") from error


def _can_be_drawn_again(fit: xr.DataTree) -> bool:
    """Whether all draws of a fit are there as its estimator, one of this package, made them."""
    if recorded_estimator(fit) is None:
        return False
    settings, population = _settings(fit), fit_parts(fit)[0]
    return all(
        np.array_equal(population[dim] if dim in population.coords else [], np.arange(number))
        for dim, number in (("chain", settings.chains), ("draw", settings.draws))
    )


def _stored(fit: xr.DataTree) -> xr.DataTree:
    """The fit with its tables in memory."""
    stored = fit.copy()
    stored["posterior_predictive"] = xr.DataTree(fit["posterior_predictive"].to_dataset().compute())
    del stored.attrs["streamed"]
    return stored


def read_fit(path: str | PathLike[str]) -> xr.DataTree:
    """Read a fit that `save_fit` or ArviZ wrote as netCDF.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    DataTree
        Wholly in memory; the file is closed.

    Raises
    ------
    FileFormatError
        The file is missing, truncated, no netCDF, holds no fit, or was written by a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            fit = tree.load()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise FileFormatError(f"{path}: not a readable netCDF file: {error}") from error
    written = fit.attrs.get("schema_version", 0)
    if not isinstance(written, int | np.integer) or written > SCHEMA_VERSION:
        raise FileFormatError(f"{path}: written by a newer version (layout {written}, this one reads {SCHEMA_VERSION})")
    try:
        if "streamed" in fit.attrs and "posterior_predictive" not in fit.children:
            fit["posterior_predictive"] = xr.DataTree(_streamed_tables(fit))
        fit_parts(fit)
    except (TaciturnError, KeyError) as error:
        raise FileFormatError(f"{path}: holds no fit: {error}") from error
    return fit


def _streamed_tables(fit: xr.DataTree) -> xr.Dataset:
    """Population and sample of a fit that was saved without them."""
    try:
        estimator, settings = estimator_from_spec(fit.attrs["estimator"]), _settings(fit)
    except (KeyError, FileFormatError) as error:
        raise FileFormatError(f"it holds no tables, and they cannot be drawn again: {error}") from error
    constants = fit["constant_data"].to_dataset()
    sample = check_table(fit["observed_data"].to_dataset()["sample"], name="the sample of the fit")
    size = whole_number(constants["population_size"].item(), "population_size", least=1)
    problem = make_problem(sample, size, _zeros(fit, sample), known_margins(fit))
    posterior = fit["posterior"].to_dataset() if "posterior" in fit.children else None
    drawn = (settings.chains, settings.draws)
    if posterior is not None and (posterior.sizes["chain"], posterior.sizes["draw"]) != drawn:
        raise FileFormatError(f"it holds no tables, and not the {drawn[0]} x {drawn[1]} draws to draw them again from")
    plugged_in = {str(name): value if value.ndim else value.item() for name, value in constants.items()}
    return estimator.draw_tables(problem, settings, Parameters(posterior, constants=plugged_in))


def _settings(fit: xr.DataTree) -> SamplerSettings:
    """The settings that a fit records."""
    try:
        settings = json.loads(fit.attrs["settings"])
        known = {name: int(settings[name]) for name in ("draws", "tune", "chains", "random_seed")}
        method = settings.get("method", "nuts")
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError("the fit does not record its estimator and settings, so it cannot be repeated") from error
    return SamplerSettings(known["draws"], known["tune"], known["chains"], known["random_seed"], False, method)


def repeat_fit(fit: xr.DataTree, *, progressbar: bool = True) -> xr.DataTree:
    """Fit again from what a fit records: the same estimator, sample, settings and seed.

    Parameters
    ----------
    fit : DataTree
        A fit, as returned by an estimator or read from a file.
    progressbar : bool
        Show the sampler's progress.

    Returns
    -------
    DataTree
        A new fit. With the same versions on the same kind of machine its numbers are the same.

    Raises
    ------
    FileFormatError
        The fit does not say how it was made, or is a stack of others.
    """
    _, sample, population_size, zeros = fit_parts(fit)
    if members := stack_weights(fit):
        raise FileFormatError(
            f"the fit is a stack of {', '.join(map(repr, members))} and no estimator made it: repeat these and stack "
            "them again"
        )
    margins = known_margins(fit)
    try:
        estimator = estimator_from_spec(fit.attrs["estimator"])
    except KeyError as error:
        raise FileFormatError("the fit does not record its estimator and settings, so it cannot be repeated") from error
    settings = _settings(fit)
    return estimator.fit(
        sample,
        population_size=population_size,
        structural_zeros=zeros,
        known_margins=margins,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        random_seed=settings.seed,
        progressbar=progressbar,
        method=settings.method,
    )
