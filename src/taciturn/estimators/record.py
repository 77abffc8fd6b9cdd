"""What a fit records of how it was made, so that it can be repeated."""

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters, SamplerSettings, is_streamed
from taciturn.schema import SCHEMA_VERSION

__all__ = ["recorded"]

_PACKAGES: Final = ("taciturn", "pymc", "arviz", "nutpie", "numba", "numpy", "xarray")


def recorded(
    spec: str, problem: Problem, settings: SamplerSettings, parameters: Parameters
) -> dict[str, Any]:
    """Attributes of a fit: specification, settings, sampler, versions."""
    return {
        "schema_version": SCHEMA_VERSION,
        "estimator": spec,
        "settings": json.dumps(settings.recorded),
        "sampler": parameters.sampler,
        **({"importance": parameters.importance.to_json()} if parameters.importance else {}),
        "versions": json.dumps({name: _version(name) for name in _PACKAGES}),
        **({"streamed": 1} if is_streamed(problem, settings) else {}),
    }


@cache  # reading a package's metadata takes half a millisecond
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
