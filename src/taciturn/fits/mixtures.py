"""Mixtures of fits: pools and stacks, their members and who made each draw."""

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import FileFormatError
from taciturn.estimators import Estimator, LinearPool
from taciturn.estimators.mixture import member_draws
from taciturn.fits.parts import fit_parts, recorded_estimator

__all__ = ["Maker", "fit_makers", "stack_weights"]


def stack_weights(fit: xr.DataTree) -> dict[str, float]:
    """Weights of the members of a stack, by name in their order; empty for any other
    fit.

    Raises
    ------
    FileFormatError
        The fit says that it is a stack, but not of what.
    """
    if "stack" not in fit.attrs:
        return {}
    try:
        weights = {
            str(name): float(weight)
            for name, weight in json.loads(fit.attrs["stack"])["weights"].items()
        }
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(
            f"the weights of the stack cannot be read: {fit.attrs['stack']!r}"
        ) from error
    missing = sorted(
        set(weights) - (set(fit["members"].children) if "members" in fit.children else set())
    )
    if missing:
        raise FileFormatError(
            f"the stack has weights for {missing}, but the group 'members' does not have them"
        )
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
    """What made the draws of a fit, by the names of members; a fit that is no mixture
    has one, without a name.
    """
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
        return {
            f"{name} {inner}".strip(): maker
            for name, own in parts.items()
            for inner, maker in own.items()
        }
    estimator = recorded_estimator(fit)
    if isinstance(estimator, LinearPool) and posterior is not None:
        return {
            name: Maker(estimator.members[name], own if own.data_vars else None, made & turn)
            for name, (own, turn) in member_draws(estimator.members, posterior).items()
        }
    return {"": Maker(estimator, posterior, made)}
