"""Whether the numbers of a saved fit agree with each other."""

from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.errors import TableError
from taciturn.estimators import LinearPool
from taciturn.fits.mixtures import is_stack, turns_of_members
from taciturn.fits.parts import PARAMETER_GROUPS, FitParts
from taciturn.fits.recorded import recorded_estimator
from taciturn.fits.risk import RISK_BY, risks
from taciturn.schema import cell_label, split_draws
from taciturn.validate import check_weights, quoted

__all__ = ["check_groups", "check_stored"]

_OF_EACH_DRAW: Final = (
    *PARAMETER_GROUPS,
    "sample_stats",
    "log_prior",
    "log_likelihood",
    "cell_log_likelihood",
)
"""Groups of numbers, one or more of every draw."""

_ROUNDING: Final = 1e-9
"""Relative difference that machines may make."""


def check_stored(fit: xr.DataTree, parts: FitParts) -> None:
    """Check a fit that was read from a file.

    Whether the draws are those of the model cannot be seen without fitting again.

    Raises
    ------
    TableError
        Tables that break the population contract, a risk that is not that of the
        tables, or other groups that are no numbers of the same draws.
    ParameterError
        A risk with weights that cannot be.
    """
    check_groups(fit, parts.population)
    _check_parameters(fit)
    assessed = [name for name in fit.children if name == "risk" or name.startswith(RISK_BY)]
    if assessed:
        _check_risk({name: fit[name].to_dataset() for name in assessed}, parts)
    else:
        # Tables that are drawn again keep the contract; one shows that they can be.
        draws = parts.population
        for part in split_draws(draws[:1, :1] if "streamed" in fit.attrs else draws):
            parts.check_counts(part)


def check_groups(fit: xr.DataTree, population: xr.DataArray) -> None:
    """Raise `TableError` unless parameters, likelihoods and what says of a draw that it
    diverged are numbers of the draws of the population.
    """
    for group in _OF_EACH_DRAW:
        if group in fit.children:
            _check_draws(group, fit[group].to_dataset(), population)


def _check_draws(group: str, found: xr.Dataset, population: xr.DataArray) -> None:
    for name, values in found.data_vars.items():
        # Samplers put messages beside the numbers.
        message = group == "sample_stats" and name != "diverging"
        if values.dtype.kind not in "biuf" and not message:
            raise TableError(f"{name!r} of the group {group!r} holds {values.dtype}, no numbers")
        for dim in ("chain", "draw"):
            size, expected = values.sizes.get(dim), population.sizes[dim]
            if size != expected and (dim in values.dims or group in PARAMETER_GROUPS):
                raise TableError(
                    f"{name!r} of the group {group!r} has {size or 'no'} values over {dim!r}, the"
                    f" population has {expected}"
                )


def _check_parameters(fit: xr.DataTree) -> None:
    """Raise unless a mixture says which member made each draw, and the parameters of
    our own estimators are numbers; those of a user's may be undefined.
    """
    estimator = recorded_estimator(fit)
    if is_stack(fit) or isinstance(estimator, LinearPool):
        turns_of_members(fit)
    if estimator is None:
        return
    for group in PARAMETER_GROUPS:
        own = fit[group].to_dataset().data_vars if group in fit.children else {}
        for name, values in own.items():
            missing = np.argwhere(values.isnull().values)
            if len(missing):
                at = cell_label(values, tuple(map(int, missing[0])))
                raise TableError(f"{name!r} of the group {group!r} is NaN at {at}")


def _check_risk(stored: dict[str, xr.Dataset], parts: FitParts) -> None:
    """Compare what a file says of the risk with the risk of its tables."""
    weights = check_weights(next(iter(stored.values())).attrs.get("weights", ()))
    variables = [None if name == "risk" else name.removeprefix(RISK_BY) for name in stored]
    unknown = [name for name in variables if name not in (None, *parts.variables)]
    if unknown:
        raise TableError(
            f"a risk by {unknown[0]!r:.80}, but the variables are {', '.join(parts.variables)}"
        )
    for name, again in zip(stored, risks(parts, weights, variables), strict=True):
        said = stored[name]
        if set(said.data_vars) != set(again.data_vars):
            odd = sorted(map(str, set(said.data_vars) ^ set(again.data_vars)))
            raise TableError(
                f"the group {name!r} must have {', '.join(map(str, again.data_vars))}: {odd}"
            )
        for each, values in again.variables.items():
            _check_alike(f"{each} of the group {name!r}", said.get(each), values)
        for each, value in again.attrs.items():
            expected = xr.DataArray(value).variable
            _check_alike(f"{each} of the group {name!r}", said.attrs.get(each), expected)


def _check_alike(what: str, said: Any, again: xr.Variable) -> None:
    """Raise `TableError` at the first value that is another than computed again."""
    if isinstance(said, xr.DataArray) and set(said.dims) == set(again.dims):
        said = said.transpose(*again.dims)
    found, expected = np.asarray(said), again.values
    if found.shape != expected.shape:
        raise TableError(f"{what} has the shape {found.shape}, its tables give {expected.shape}")
    numbers = found.dtype.kind in "iuf" and expected.dtype.kind in "iuf"
    alike = (
        np.isclose(found, expected, rtol=_ROUNDING, atol=1e-12, equal_nan=True)
        if numbers
        else found == expected
    )
    if np.all(alike):
        return
    position = tuple(int(i) for i in np.argwhere(~np.atleast_1d(alike))[0])[: again.ndim]
    at = f" at {cell_label(said, position)}" if isinstance(said, xr.DataArray) and position else ""
    raise TableError(
        f"{what} is {quoted(found[position].item())}{at}, its tables give"
        f" {quoted(expected[position].item())}"
    )
