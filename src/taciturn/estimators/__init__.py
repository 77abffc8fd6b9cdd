"""Population estimators: from a sample table to draws of the population table."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from taciturn.diagnostics import (
    Diagnostics,
    ImportanceDiagnostics,
    PooledDiagnostics,
    check_convergence,
    mixture_diagnostics,
)
from taciturn.errors import FileFormatError, ParameterError, PriorError
from taciturn.estimators.base import Estimator
from taciturn.estimators.latent_class.estimator import LatentClass
from taciturn.estimators.log_linear.dirichlet import DirichletLogLinear
from taciturn.estimators.log_linear.plug_in import LogLinear
from taciturn.estimators.pool import LinearPool, member_draws, pooled_diagnostics
from taciturn.estimators.priors import Prior
from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.estimators.urn.polya import PolyaUrn

__all__ = [
    "ESTIMATORS",
    "ChineseRestaurant",
    "Diagnostics",
    "DirichletLogLinear",
    "Estimator",
    "ImportanceDiagnostics",
    "LatentClass",
    "LinearPool",
    "LogLinear",
    "PolyaUrn",
    "PooledDiagnostics",
    "Prior",
    "check_convergence",
    "estimator_from_spec",
    "member_draws",
    "mixture_diagnostics",
    "pooled_diagnostics",
]

ESTIMATORS: Final[dict[str, type[Estimator]]] = {
    cls.__name__: cls
    for cls in (LinearPool, DirichletLogLinear, ChineseRestaurant, LatentClass, LogLinear, PolyaUrn)
}
"""Estimators by name; a saved fit can name these and nothing else."""


def estimator_from_spec(spec: str | Mapping[str, Any]) -> Estimator:
    """Estimator from the specification that a fit records, as JSON or plain values.

    Raises
    ------
    FileFormatError
        An unknown estimator or field, or a value it cannot have: the specification is
        data and may come from somebody else's file.
    """
    try:
        values = dict(json.loads(spec) if isinstance(spec, str) else spec)
    except (ValueError, TypeError) as error:
        raise FileFormatError(f"not an estimator's specification: {spec!r}") from error
    name = values.pop("estimator", None)
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise FileFormatError(f"no estimator {name!r}: there are {', '.join(ESTIMATORS)}")
    cls = ESTIMATORS[name]
    unknown = sorted(set(values) - {field.name for field in fields(cls)})  # type: ignore[arg-type]
    if unknown:
        raise FileFormatError(f"{name} has no field {unknown}")
    if not isinstance(values.get("formula"), str | None):
        raise FileFormatError(f"{name}: formula must be text, got {values['formula']!r}")
    try:
        if "priors" in values:
            values["priors"] = {
                key: Prior.from_dict(prior) for key, prior in values["priors"].items()
            }
        if "members" in values:
            values["members"] = {key: _member(member) for key, member in values["members"].items()}
        return cls(**values)
    except (AttributeError, OverflowError, TypeError, ParameterError, PriorError) as error:
        raise FileFormatError(f"the specification of {name} cannot be used: {error}") from error


def _member(spec: Any) -> Estimator:
    """A member of a pool, which is no pool: a file cannot nest them without end."""
    if not isinstance(spec, Mapping) or spec.get("estimator") == LinearPool.__name__:
        raise ParameterError(
            f"a member must be the specification of another estimator than a pool, got {spec!r}"
        )
    return estimator_from_spec(spec)
