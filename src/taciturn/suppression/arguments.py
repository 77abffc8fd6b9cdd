"""The arguments of `suppress`, checked once and numbered by published cell."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import (
    are_ranges,
    contributions_of,
    known_of_cells,
    ranges_of,
    refuse_signed,
)
from taciturn.attack.bounds.of_system import check_names
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers, Total, has_negative
from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, STATUS
from taciturn.suppression.known import Known
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.task import Required
from taciturn.tables.margins import Margin, finest_totals, margin_names, named_margins
from taciturn.tables.steps import checked_mask, checked_range, checked_values, in_steps
from taciturn.validate import is_real, quoted, real_number

__all__ = [
    "checked_cells",
    "checked_costs",
    "checked_flags",
    "checked_gap",
    "checked_knowledge",
    "checked_required",
    "refuse_none",
]


def checked_cells(table: Any, linked: Sequence[Margin] | None, decimals: int) -> PublishedCells:
    """Check a table and number the cells of all that is released: of linked tables, or
    of the table with all its totals.
    """
    steps = in_steps(table, decimals, signed=True)
    check_names(steps)
    if taken := {"value", STATUS} & {*map(str, steps.dims), *map(str, steps.coords)}:
        raise TableError(
            f"{min(taken)!r} cannot name a variable or level: a protected table has it of each cell"
        )
    if linked is None:
        margins = [tuple(map(str, steps.dims)), *finest_totals(steps)]
    else:
        margins = named_margins(linked, steps, name="linked")
        if not margins:
            raise ParameterError(
                "linked must name at least one margin; without it the table is released with all"
                " totals"
            )
    return PublishedCells(
        steps, tuple(margins), linked is not None, decimals, signed=has_negative(steps)
    )


def checked_flags(given: Any, cells: PublishedCells, *, name: str) -> Booleans:
    """A flag for each cell, from masks of margins; False where none is given."""
    flags = np.zeros(len(cells.values), dtype=np.bool_)

    def keep(mask: Any, labels: xr.DataArray, part: slice) -> None:
        flags[part] = checked_mask(mask, labels, name=name).ravel()

    _each_margin(given, cells, keep, name=name)
    return flags


def refuse_none(given: Any, name: str) -> None:
    """Raise `ParameterError` for no mask at all: nothing would be protected."""
    if given is None or (isinstance(given, Mapping) and not given):
        raise ParameterError(f"{name} must be a mask of cells, or masks of margins, got {given!r}")


def checked_costs(given: Any, cells: PublishedCells) -> Floats:
    """What it costs to suppress each cell: by default 1 and the size of its value, in
    the table's units; infinite where it may not be suppressed.
    """
    costs = 1 + np.abs(cells.values) / 10.0**cells.decimals
    if not cells.linked:
        costs[cells.first[1] :] = np.inf

    def keep(values: Any, labels: xr.DataArray, part: slice) -> None:
        costs[part] = checked_values(values, labels, name="costs").ravel()
        if not (costs[part] > 0).all():
            where = cells.label(part.start + int(np.argmin(costs[part] > 0)))
            raise ParameterError(
                f"costs must be above 0, or infinite for cells to publish: not so at {where}"
            )

    _each_margin(given, cells, keep, name="costs")
    return costs


def checked_gap(gap: Any) -> float:
    """A relative distance to the least cost, from 0 to below 1."""
    if real_number(gap, "gap", least=0, most=1) == 1:
        raise ParameterError(f"gap must be from 0 to below 1, got {quoted(gap)}")
    return float(gap)


def checked_required(flags: Booleans, protection: Any, cells: PublishedCells) -> Required:
    """The uncertainty that must remain at primary cells, from a risk or intervals."""
    chosen = np.flatnonzero(flags)
    if isinstance(protection, xr.Dataset | Mapping):
        down, up = _intervals(protection, cells, flags)
        # An interval of a single value would allow the cell to be worked out.
        return Required(chosen, up[chosen], down[chosen], np.maximum(up + down, 1)[chosen])
    if not is_real(protection) or not 0 < protection <= 1:
        raise ParameterError(
            "protection must be a risk above 0 and up to 1, or a Dataset of lower and upper, got"
            f" {quoted(protection)}"
        )
    # Rounding must not ask for one value more than 2**(1/risk).
    values = 2.0 ** min(1 / float(protection), 53.0)
    width = np.full(len(chosen), int(np.ceil(values * (1 - 1e-12))) - 1)
    return Required(chosen, np.zeros_like(width), np.zeros_like(width), width)


def checked_knowledge(
    given: Any, cells: PublishedCells, required: Required, costs: Floats
) -> Known:
    """What an attacker knows beforehand: the range of all primary cells, ranges of any
    cells, or contributions.
    """
    table, decimals = cells.table, cells.decimals
    if given is None:
        return Known(cells, ())
    if isinstance(given, tuple | list):
        totals = _range_of_primaries(given, cells, required, costs)
    elif are_ranges(given):
        totals = ranges_of(given, table, decimals, signed=cells.signed)
    else:
        refuse_signed(cells.signed)
        totals = [known_of_cells(contributions_of(given, table, decimals), table)]
    accepted = [set(names) for names in (*cells.suppressible, tuple(table.dims))]
    for total in totals:
        if set(total.labels.dims) not in accepted:
            raise ParameterError(
                "knowledge must be of the table's cells or of margins whose cells may be"
                f" suppressed, {list(cells.suppressible)}, got {total.labels.dims}"
            )
    known = Known(cells, tuple(totals))
    for labels, values, lower, upper in (
        (cells.label, cells.values, known.lower, known.upper),
        (cells.inner_label, table.values.ravel(), known.inner_lower, known.inner_upper),
    ):
        outside = (values < lower) | (values > upper)
        if outside.any():
            raise ParameterError(
                "knowledge must hold for the true value: not so at"
                f" {labels(int(np.argmax(outside)))}"
            )
    return known


def _range_of_primaries(
    given: Any, cells: PublishedCells, required: Required, costs: Floats
) -> list[Total]:
    """The range of every primary cell, of who knows the rule; where smaller values are
    never suppressed, that is known of the others, too.
    """
    ends = zip(given, (-np.inf, np.inf), strict=False)
    if len(given) != 2 or not all(is_real(end) or end == infinite for end, infinite in ends):
        raise ParameterError(
            "knowledge of the primary cells must be the least and the most that they can hold,"
            f" such as (1, 2), got {quoted(given)}"
        )
    least, most = map(float, given)
    values = cells.values / 10.0**cells.decimals
    primary = np.zeros(len(values), dtype=np.bool_)
    primary[required.cells] = True
    open_ = np.isfinite(costs) | primary
    # What may not be suppressed is published, and known as it is.
    ruled = primary | (open_ & (values[open_] >= least).all())
    lower = np.where(ruled, least, -np.inf if cells.signed else 0.0)
    upper = np.where(primary, most, np.inf)
    ranges = {
        names: xr.Dataset(
            {
                side: cells.labels(number).copy(
                    data=values[cells.part(number)].reshape(cells.labels(number).shape)
                )
                for side, values in (("lower", lower), ("upper", upper))
            }
        )
        for number, names in enumerate(cells.suppressible)
    }
    return ranges_of(ranges, cells.table, cells.decimals, signed=cells.signed)


def _intervals(given: Any, cells: PublishedCells, primary: Booleans) -> tuple[Integers, Integers]:
    """How far down and up each primary cell must be able to deviate, in steps."""
    down, up = np.zeros(len(cells.values)), np.zeros(len(cells.values))
    step = 10.0**cells.decimals

    def keep(interval: Any, labels: xr.DataArray, part: slice) -> None:
        low, high = (x.ravel() for x in checked_range(interval, labels, name="protection"))
        down[part] = np.ceil(cells.values[part] - low * step - 1e-6)
        up[part] = np.ceil(high * step - cells.values[part] - 1e-6)

    _each_margin(given, cells, keep, name="protection")
    inside = (down >= 0) & (down < MAX_COUNT) & (up >= 0) & (up < MAX_COUNT)
    inside &= (down <= cells.values) | cells.signed
    if (primary & ~inside).any():
        raise ParameterError(
            f"protection must have lower{'' if cells.signed else ' from 0'} to the true value and"
            f" upper from it on: not so at {cells.label(int(np.argmax(primary & ~inside)))}"
        )
    return np.where(primary, down, 0).astype(np.int64), np.where(primary, up, 0).astype(np.int64)


def _each_margin(
    given: Any,
    cells: PublishedCells,
    keep: Callable[[Any, xr.DataArray, slice], None],
    *,
    name: str,
) -> None:
    """Hand on what is given for each margin, with the margin's labels and the numbers
    of its cells; what is not a mapping is for the table itself.
    """
    if given is None:
        return
    if not isinstance(given, Mapping) or isinstance(given, xr.Dataset):
        given = {tuple(cells.table.dims): given}
    number_of = {frozenset(names): number for number, names in enumerate(cells.suppressible)}
    seen = set()
    for key, value in given.items():
        names = frozenset(margin_names(key, cells.table, name=name))
        if names not in number_of:
            raise ParameterError(
                f"{name} must be of margins whose cells may be suppressed,"
                f" {list(cells.suppressible)}, got {quoted(key)}"
            )
        if names in seen:
            raise ParameterError(f"{name} must have each margin once, got {list(given)}")
        seen.add(names)
        number = number_of[names]
        keep(value, cells.labels(number), cells.part(number))
