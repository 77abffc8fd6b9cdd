"""The estimators of this package by name, imported when one is asked for.

A new estimator is one line here. The command line takes its names from this table
without loading what the estimators need.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taciturn.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from taciturn.estimators.base import Estimator

__all__ = ["COMMANDS", "ESTIMATORS", "Entry", "estimator_from_spec"]


class Entry(NamedTuple):
    """Where an estimator is.

    Attributes
    ----------
    module : str
        In `taciturn.estimators`.
    name : str
        Of the class.
    takes_formula : bool
        As `Estimator.takes_formula` of the class.
    """

    module: str
    name: str
    takes_formula: bool


COMMANDS: Final[Mapping[str, Entry]] = {
    "linear-pool": Entry("pool", "LinearPool", True),
    "dirichlet-log-linear": Entry("log_linear.dirichlet", "DirichletLogLinear", True),
    "chinese-restaurant": Entry("urn.chinese_restaurant", "ChineseRestaurant", False),
    "mixed-poisson": Entry("mixed_poisson.estimator", "MixedPoisson", True),
    "latent-class": Entry("latent_class.estimator", "LatentClass", False),
    "log-linear": Entry("log_linear.plug_in", "LogLinear", True),
    "polya-urn": Entry("urn.polya", "PolyaUrn", True),
}
"""By the name on the command line, `Estimator.command_name` of the class."""


class LoadedOnUse(Mapping[str, "type[Estimator]"]):
    """Classes by name, each imported when it is asked for."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        self._modules = {entry.name: entry.module for entry in entries}

    def __getitem__(self, name: str) -> "type[Estimator]":
        """Import the class of that name."""
        module = import_module(f"taciturn.estimators.{self._modules[name]}")
        cls: type[Estimator] = getattr(module, name)
        return cls

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


ESTIMATORS: Final[Mapping[str, "type[Estimator]"]] = LoadedOnUse(iter(COMMANDS.values()))
"""By the name of the class: a saved fit can name these and nothing else."""


def estimator_from_spec(spec: str | Mapping[str, Any]) -> "Estimator":
    """Return the estimator that a recorded specification, JSON or plain values, says.

    Raises
    ------
    FileFormatError
        An unknown estimator or field, or a value it cannot have: the specification is
        data and may come from anybody's file.
    """
    try:
        values = dict(json.loads(spec) if isinstance(spec, str) else spec)
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"not an estimator's specification: {spec!r:.200}") from error
    name = values.pop("estimator", None)
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise FileFormatError(f"no estimator {name!r:.80}: there are {', '.join(ESTIMATORS)}")
    cls = ESTIMATORS[name]
    unknown = sorted(set(map(str, values)) - {field.name for field in fields(cls)})  # type: ignore[arg-type]
    if unknown:
        raise FileFormatError(f"{name} has no field {unknown}")
    if not isinstance(values.get("formula"), str | None):
        raise FileFormatError(f"{name}: formula must be text, got {values['formula']!r}")
    try:
        if "priors" in values:
            values["priors"] = _priors(values["priors"])
        if "members" in values:
            values["members"] = {key: _member(member) for key, member in values["members"].items()}
        return cls(**values)
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError(f"the specification of {name} cannot be used: {error}") from error


def _priors(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from taciturn.estimators.priors import Prior

    return {key: Prior.from_dict(prior) for key, prior in values.items()}


def _member(spec: Any) -> "Estimator":
    """A member of a pool, which may not be a pool itself: a file cannot nest them
    without end.
    """
    if not isinstance(spec, Mapping) or spec.get("estimator") == "LinearPool":
        raise ParameterError(
            f"a member must be the specification of an estimator that is not a pool, got {spec!r}"
        )
    return estimator_from_spec(spec)
