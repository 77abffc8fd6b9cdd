"""What a fit records of how it was made, from its attributes: these are data, and may
come from anybody's file.
"""

import json
from typing import Any

import xarray as xr

from taciturn.errors import FileFormatError, ParameterError
from taciturn.estimators import Estimator, estimator_from_spec
from taciturn.estimators.settings import SamplerSettings, check_method
from taciturn.validate import MOST_SEED, whole_number

__all__ = ["recorded_estimator", "recorded_mapping", "recorded_settings"]


def recorded_mapping(fit: xr.DataTree, name: str) -> dict[str, Any]:
    """An attribute that holds names and values in JSON.

    Raises
    ------
    FileFormatError
        The fit has no such attribute, or it holds something else.
    """
    try:
        found = json.loads(fit.attrs[name])
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        said = fit.attrs.get(name, "nothing")
        raise FileFormatError(f"the fit records no {name}: it has {said!r:.80}") from error
    if not isinstance(found, dict):
        raise FileFormatError(f"the {name} of the fit must be names and values, got {found!r:.80}")
    return found


def recorded_estimator(fit: xr.DataTree) -> Estimator | None:
    """The estimator that made a fit; None for a user's own and another package's."""
    try:
        return estimator_from_spec(fit.attrs["estimator"])
    except (KeyError, FileFormatError):
        return None


def recorded_settings(fit: xr.DataTree) -> SamplerSettings:
    """The settings that a fit records."""
    try:
        found = recorded_mapping(fit, "settings")
        draws, tune, chains = (
            whole_number(found[name], name, least=1) for name in ("draws", "tune", "chains")
        )
        seed = whole_number(found["random_seed"], "random_seed", least=0, most=MOST_SEED)
        method = found.get("method", "nuts")
        check_method(method)
    except (KeyError, FileFormatError, ParameterError) as error:
        raise FileFormatError(
            "the fit does not record its estimator and settings, so it cannot be repeated"
        ) from error
    return SamplerSettings(draws, tune, chains, seed, False, method)
