"""What attackers know before they see a release: ranges of values, or what they
contributed themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array, vstack

from taciturn.attack.system import (
    UNLIMITED,
    Booleans,
    Integers,
    LinearSystem,
    Total,
    has_negative,
)
from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables.margins import margin_names, margin_of
from taciturn.tables.steps import checked_range
from taciturn.validate import quoted

__all__ = [
    "Knowledge",
    "are_ranges",
    "contributions_of",
    "known_of_cells",
    "limited",
    "nothing_left",
    "ranges_of",
    "refuse_signed",
    "with_knowledge",
]

type Knowledge = xr.Dataset | Mapping[Any, xr.Dataset] | Mapping[Any, float | Sequence[float]]
"""Ranges of cells, of cells of several margins, or contributions to cells."""


def are_ranges(knowledge: Any) -> bool:
    """Whether knowledge is given as ranges; otherwise it is given as contributions."""
    given = [knowledge] if not isinstance(knowledge, Mapping) else knowledge.values()
    return isinstance(knowledge, xr.Dataset) or any(isinstance(x, xr.Dataset) for x in given)


def ranges_of(
    knowledge: Any, table: xr.DataArray, decimals: int, *, signed: bool = False
) -> list[Total]:
    """The ranges of cells or totals that attackers know, as intervals in steps; what is
    not a mapping is for the cells of the table. If it is signed, they may be below 0.
    """
    if isinstance(knowledge, xr.Dataset):
        knowledge = {tuple(map(str, table.dims)): knowledge}
    found: dict[frozenset[str], Total] = {}
    for key, given in knowledge.items():
        names = margin_names(key, table, name="knowledge")
        if frozenset(names) in found:
            raise ParameterError(f"knowledge must have each margin once, got {list(knowledge)}")
        labels, group = margin_of(table, names)
        low, high = (
            np.clip(x.ravel() * 10.0**decimals, -2.0 * MAX_COUNT, 2.0 * MAX_COUNT)
            for x in checked_range(given, labels, name="knowledge")
        )
        least, most = np.ceil(low - 1e-6), np.floor(high + 1e-6)
        bad = (least > np.minimum(most, MAX_COUNT)) | (most < -MAX_COUNT)
        bad |= (least < 0) & (not signed)
        if bad.any():
            least_of_all = "" if signed else " from 0 on"
            raise ParameterError(
                f"knowledge must have lower{least_of_all}, and upper from lower on or infinite:"
                f" not so at {_where(labels, int(np.argmax(bad)))}"
            )
        most[most > MAX_COUNT], least[least < -MAX_COUNT] = UNLIMITED, -UNLIMITED
        found[frozenset(names)] = _interval(labels, group, least, most)
    return list(found.values())


def contributions_of(
    knowledge: Any, table: xr.DataArray, decimals: int
) -> dict[int, npt.NDArray[np.int64]]:
    """What the attackers contributed, in steps, by the flat position of the cell."""
    if not isinstance(knowledge, Mapping):
        raise ParameterError(
            "knowledge must be a Dataset of lower and upper, or a mapping of cells to contributions"
            f" or of margins to such Datasets, got {quoted(knowledge)}"
        )
    found = {}
    for key, given in knowledge.items():
        labels = key if isinstance(key, tuple) else (key,)
        variables = table_dims(table)
        if len(labels) != len(variables):
            raise ParameterError(
                f"knowledge must name a cell by a category of each of {variables}, got"
                f" {quoted(key)}"
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
            raise ParameterError(
                f"knowledge of {key!r} must be a number or several, got {quoted(given)}"
            )
        steps = amounts.astype(float) * 10.0**decimals
        if not ((steps > 0) & (steps <= 2**53)).all() or not np.allclose(
            steps, np.rint(steps), rtol=1e-12, atol=0
        ):
            raise ParameterError(
                f"knowledge of {key!r} must be contributions above 0 with at most {decimals}"
                f" decimals, got {quoted(given)}"
            )
        found[int(np.ravel_multi_index(position, table.shape))] = np.rint(steps).astype(np.int64)
    return found


def known_of_cells(
    contributions: Mapping[int, npt.NDArray[np.int64]], table: xr.DataArray
) -> Total:
    """The cells hold the attackers' contributions and a larger one."""
    least = np.zeros(table.size)
    for cell, known in contributions.items():
        least[cell] = known.sum() + known.max() + 1
    return _interval(table, np.arange(table.size), least, np.full(table.size, UNLIMITED))


def with_knowledge(
    system: LinearSystem, knowledge: Knowledge | None
) -> tuple[LinearSystem, dict[int, npt.NDArray[np.int64]]]:
    """What is left of a system for who knows something, and the contributions in it."""
    table, decimals = system.published, system.decimals
    signed = bool((system.lower < 0).any()) or has_negative(table)
    if knowledge is None:
        return system, {}
    if are_ranges(knowledge):
        return limited(system, ranges_of(knowledge, table, decimals, signed=signed)), {}
    refuse_signed(signed)
    contributions = contributions_of(knowledge, table, decimals)
    return _held_at_least(system, contributions), contributions


def refuse_signed(signed: bool) -> None:
    """Raise `ParameterError` at contributions to a table with negative values."""
    if signed:
        raise ParameterError(
            "knowledge of contributions is for tables without negative values, in which a cell"
            " holds at least what is known of it; give ranges"
        )


def _held_at_least(
    system: LinearSystem, contributions: Mapping[int, npt.NDArray[np.int64]]
) -> LinearSystem:
    """The system in which these cells hold the attackers' contributions and a larger
    one.
    """
    known = known_of_cells(contributions, system.published).least[system.unknown]
    lower = np.maximum(system.lower, known)
    short = (known > 0) & (lower > system.most_of_cells())
    if short.any():
        raise TableError(nothing_left(system.published, int(system.unknown[np.argmax(short)])))
    return replace(system, lower=lower)


def nothing_left(table: xr.DataArray, cell: int) -> str:
    """Message for a cell without room for a contribution larger than the known ones."""
    return (
        f"knowledge: the release leaves nothing at {_where(table, cell)} for a contribution above"
        " the largest known one; the largest respondent must not be among the attackers"
    )


def limited(system: LinearSystem, known: Sequence[Total]) -> LinearSystem:
    """The system in which cells and totals are known to be in intervals.

    Those over all variables of the table bound its cells; each other one adds a row,
    unless it is released itself or the bounds of its cells limit it as much.

    Raises
    ------
    TableError
        A published value, or all that its bounds leave of a cell, is outside.
    """
    lower, upper = system.lower, system.upper
    others = []
    for total in known:
        if set(total.labels.dims) != set(system.published.dims):
            others.append(total)
            continue
        least, most = total.least[total.group], total.most[total.group]
        is_known = np.ones(system.published.size, dtype=np.bool_)
        is_known[system.unknown] = False
        _refuse(system.published, is_known, system.published.values.ravel(), least, most)
        lower = np.maximum(lower, least[system.unknown])
        upper = np.minimum(upper, most[system.unknown])
    system = replace(system, lower=lower, upper=upper)
    left = np.minimum(upper, system.most_of_cells())
    if (lower > left).any():
        raise TableError(_outside(system.published, int(system.unknown[np.argmax(lower > left)])))
    for total in others:
        system = _with_rows(system, total)
    return system


def _with_rows(system: LinearSystem, known: Total) -> LinearSystem:
    """The system with a row for each known total that says more than the release and
    the bounds of its cells.
    """
    groups = known.labels.size
    released, value = np.zeros(groups, dtype=np.bool_), np.zeros(groups, dtype=np.int64)
    for total in system.totals:
        if set(total.labels.dims) == set(known.labels.dims):
            exact = total.released & (total.least == total.most)
            released[known.group] |= exact[total.group]
            value[known.group] = np.where(exact, total.least, 0)[total.group]
    _refuse(known.labels, released, value, known.least, known.most)
    shown = np.zeros(groups, dtype=np.int64)
    np.add.at(shown, known.group, system.published.values.ravel())
    group = known.group[system.unknown]
    floor = shown + np.bincount(group, weights=system.lower, minlength=groups)
    ceiling = shown + np.bincount(group, weights=system.most_of_cells(), minlength=groups)
    says = (known.least > floor) | (known.most < ceiling)
    says &= (known.least > -UNLIMITED) | (known.most < UNLIMITED)
    kept = np.flatnonzero(~released & says)
    row_of = np.full(groups, -1)
    row_of[kept] = np.arange(len(kept))
    inside = np.flatnonzero(row_of[group] >= 0)
    entries = np.ones(len(inside), dtype=np.int64)
    rows = csr_array(
        (entries, (row_of[group[inside]], inside)), shape=(len(kept), len(system.unknown))
    )
    most = np.where(known.most >= UNLIMITED, UNLIMITED, known.most - shown)
    return replace(
        system,
        matrix=csr_array(vstack([system.matrix, rows])),
        least=np.concatenate([system.least, (known.least - shown)[kept]]),
        most=np.concatenate([system.most, most[kept]]),
        totals=(*system.totals, known),
        row_total=np.concatenate([system.row_total, np.full(len(kept), len(system.totals))]),
        row_group=np.concatenate([system.row_group, kept]),
    )


def _interval(labels: xr.DataArray, group: Integers, least: Any, most: Any) -> Total:
    """Totals that are not released, but known to be in an interval."""
    return Total(
        xr.zeros_like(labels),
        group,
        least.astype(np.int64),
        most.astype(np.int64),
        np.zeros(labels.size, dtype=np.bool_),
    )


def _refuse(
    labels: xr.DataArray, published: Booleans, value: Integers, least: Integers, most: Integers
) -> None:
    """Raise `TableError` where a published value is not what is known."""
    bad = published & ((value < least) | (value > most))
    if bad.any():
        raise TableError(_outside(labels, int(np.argmax(bad))))


def _outside(labels: xr.DataArray, cell: int) -> str:
    return f"knowledge: the release leaves no value in the known range at {_where(labels, cell)}"


def _where(labels: xr.DataArray, cell: int) -> str:
    at = np.unravel_index(cell, labels.shape)
    return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"
