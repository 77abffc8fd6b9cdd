"""What an estimator was asked to be, as plain values that a file can hold."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from taciturn.errors import ParameterError
from taciturn.estimators.priors import Prior
from taciturn.validate import quoted

__all__ = ["Specified"]


class Specified:
    """A frozen dataclass whose fields are its whole specification."""

    def spec(self) -> dict[str, Any]:
        """Return the specification as plain values: the class's name and its fields."""
        return {
            "estimator": type(self).__name__,
            **{f.name: _plain(getattr(self, f.name)) for f in fields(self)},  # type: ignore[arg-type]
        }

    def saved_spec(self) -> str:
        """Return the specification as a saved fit keeps it, in JSON.

        Raises
        ------
        ParameterError
            An argument that JSON would give back as another value.
        """
        spec = self.spec()
        for name, value in spec.items():
            try:
                survives = json.loads(json.dumps(value)) == value
            except (TypeError, ValueError):
                survives = False
            if not survives:
                raise ParameterError(
                    f"{type(self).__name__}: the argument {name} would not survive saving:"
                    f" {quoted(value)}"
                )
        return json.dumps(spec)

    def __repr__(self) -> str:
        """As it would be typed: only the arguments that differ from their defaults."""
        given = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != _default(f)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _default(argument: Field[Any]) -> Any:
    return argument.default if argument.default_factory is MISSING else argument.default_factory()


def _plain(value: Any) -> Any:
    if isinstance(value, Prior):
        return value.to_dict()
    if isinstance(value, Specified):
        return value.spec()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return value
