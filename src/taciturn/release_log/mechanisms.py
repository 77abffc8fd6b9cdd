"""Mechanisms as data: how counts were perturbed, as a log stores it."""

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.errors import ParameterError
from taciturn.release_log.swapping import RecordSwapping
from taciturn.validate import quoted

__all__ = ["MECHANISMS", "Stored", "canonical", "mechanism_data", "mechanism_of"]

type Stored = Mechanism | RecordSwapping
"""What a log can hold: how each count was perturbed, or all of a table together."""

_ONE_NUMBER: Final[Mapping[str, tuple[type[Mechanism], str]]] = {
    "random-rounding": (RandomRounding, "base"),
    "conventional-rounding": (ConventionalRounding, "base"),
    "small-cell-adjustment": (SmallCellAdjustment, "minimum"),
    "geometric-noise": (GeometricNoise, "epsilon"),
}
"""Mechanisms with one parameter, and what it is called."""
_CELL_KEYS: Final = "cell-keys"
_SWAPPING: Final = "record-swapping"
_MOST_ENTRIES: Final = 100_000  # of a perturbation table

MECHANISMS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (parameter,) for name, (_, parameter) in _ONE_NUMBER.items()},
    _CELL_KEYS: ("perturbed", "probabilities"),
    _SWAPPING: ("geography", "categories", "sizes", "moves"),
}
"""The mechanisms that a log can hold, and the parameters of each."""


def mechanism_data(mechanism: Any) -> dict[str, Any]:
    """The name and the parameters of a mechanism, in plain types.

    Raises
    ------
    ParameterError
        Something else than one of the mechanisms of the package: what a class of one's
        own does cannot be stored as data.
    """
    for name, (kind, parameter) in _ONE_NUMBER.items():
        if type(mechanism) is kind:
            return {"name": name, parameter: getattr(mechanism, parameter)}
    if type(mechanism) is CellKeys:
        table = mechanism.perturbation.transpose("original", "perturbed")
        return {
            "name": _CELL_KEYS,
            "perturbed": table["perturbed"].values.tolist(),
            "probabilities": table.values.astype(np.float64).tolist(),
        }
    if type(mechanism) is RecordSwapping:
        return {"name": _SWAPPING, **mechanism.as_json()}
    raise ParameterError(
        "a log stores mechanisms as data: mechanism must be RandomRounding,"
        " ConventionalRounding, SmallCellAdjustment, GeometricNoise or CellKeys of"
        f" taciturn.attack, or RecordSwapping of taciturn.release_log, got {quoted(mechanism)}"
    )


def mechanism_of(data: Any) -> Stored:
    """The mechanism of this name and these parameters.

    Raises
    ------
    ParameterError
        Another name, other parameters, or values that the mechanism refuses.
    """
    if not isinstance(data, Mapping) or data.get("name") not in [*MECHANISMS]:
        raise ParameterError(
            f"mechanism must have one of the names {', '.join(MECHANISMS)}, got {quoted(data)}"
        )
    name, given = data["name"], {key: data[key] for key in data if key != "name"}
    if set(given) != set(MECHANISMS[name]):
        raise ParameterError(
            f"mechanism {name!r} has the parameters {', '.join(MECHANISMS[name])}, got"
            f" {quoted(sorted(map(str, given)))}"
        )
    if name == _CELL_KEYS:
        return _cell_keys(**given)
    if name == _SWAPPING:
        return RecordSwapping.from_json(**given)
    kind, parameter = _ONE_NUMBER[name]
    return kind(**{parameter: given[parameter]})


def _cell_keys(perturbed: Any, probabilities: Any) -> CellKeys:
    """Cell keys with this perturbation table, whose rows are the counts 0, 1, ..."""
    if not isinstance(perturbed, list) or any(type(each) is not int for each in perturbed):
        raise ParameterError(f"perturbed must be a list of whole numbers, got {quoted(perturbed)}")
    if not isinstance(probabilities, list) or not all(
        isinstance(row, list)
        and len(row) == len(perturbed)
        and all(type(each) in (int, float) for each in row)
        for row in probabilities
    ):
        raise ParameterError(
            f"probabilities must be a list of rows of {len(perturbed)} numbers, one for each of"
            f" perturbed, got {quoted(probabilities)}"
        )
    if len(perturbed) * len(probabilities) > _MOST_ENTRIES:
        raise ParameterError(f"a perturbation table may have {_MOST_ENTRIES:,} entries")
    try:
        table = xr.DataArray(
            np.array(probabilities, dtype=np.float64).reshape(-1, len(perturbed)),
            dims=("original", "perturbed"),
            coords={
                "original": np.arange(len(probabilities)),
                "perturbed": np.array(perturbed, dtype=np.int64),
            },
        )
    except (OverflowError, ValueError):
        raise ParameterError("a perturbation table must hold numbers of 64 bits") from None
    return CellKeys(table)


def canonical(mechanism: Stored) -> str:
    """The same text for the same mechanism."""
    return json.dumps(mechanism_data(mechanism), sort_keys=True)
