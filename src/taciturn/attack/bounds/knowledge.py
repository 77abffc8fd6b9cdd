"""Attackers who contributed to cells themselves, and what they learn from that."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.system import LinearSystem
from taciturn.errors import ParameterError, TableError
from taciturn.schema import cell_label, table_dims

__all__ = ["contributions_of", "held_at_least", "nothing_left"]


def contributions_of(
    knowledge: Mapping[Any, Any], system: LinearSystem
) -> dict[int, npt.NDArray[np.int64]]:
    """What the attackers contributed, in steps, by the flat position of the cell."""
    table = system.published
    found = {}
    for key, given in knowledge.items():
        labels = key if isinstance(key, tuple) else (key,)
        variables = table_dims(table)
        if len(labels) != len(variables):
            raise ParameterError(
                f"knowledge must name a cell by a category of each of {variables}, got {key!r}"
            )
        for dim, label in zip(variables, labels, strict=True):
            if label not in table.indexes[dim]:
                raise ParameterError(
                    f"knowledge: {dim!r} has no category {label!r}, in the cell {key!r}"
                )
        position = [
            int(table.indexes[dim].get_loc(label))
            for dim, label in zip(variables, labels, strict=True)
        ]
        amounts = np.atleast_1d(np.asarray(given))
        if amounts.ndim != 1 or amounts.size == 0 or not np.issubdtype(amounts.dtype, np.number):
            raise ParameterError(f"knowledge of {key!r} must be a number or several, got {given!r}")
        steps = amounts.astype(float) * 10.0**system.decimals
        if not ((steps > 0) & (steps <= 2**53)).all() or not np.allclose(
            steps, np.rint(steps), rtol=1e-12, atol=0
        ):
            raise ParameterError(
                f"knowledge of {key!r} must be contributions above 0 with at most {system.decimals}"
                f" decimals, got {given!r}"
            )
        found[int(np.ravel_multi_index(position, table.shape))] = np.rint(steps).astype(np.int64)
    return found


def held_at_least(
    system: LinearSystem, contributions: Mapping[int, npt.NDArray[np.int64]]
) -> LinearSystem:
    """The system in which these cells hold the attackers' contributions and a larger
    one.
    """
    lower = system.lower.copy()
    place = {int(cell): column for column, cell in enumerate(system.unknown)}
    most = system.most_of_cells()
    for cell, known in contributions.items():
        if cell in place:
            column = place[cell]
            lower[column] = max(lower[column], known.sum() + known.max() + 1)
            if lower[column] > most[column]:
                raise TableError(nothing_left(system.published, cell))
    return replace(system, lower=lower)


def nothing_left(table: xr.DataArray, cell: int) -> str:
    """Message for a cell without room for a contribution larger than the known ones."""
    where = cell_label(table, tuple(int(i) for i in np.unravel_index(cell, table.shape)))
    return (
        f"knowledge: the release leaves nothing at {where} for a contribution above the largest"
        " known one; the largest respondent must not be among the attackers"
    )
