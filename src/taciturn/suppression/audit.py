"""From what a search found to a result: the bounds that are left to an attacker, and
which primary cells are not proved to be protected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.of_system import bounds_table
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.suppression import Suppression
from taciturn.attack.system import Booleans, Integers, LinearSystem
from taciturn.errors import AttackError
from taciturn.schema import PRIMARY, SAFE, SECONDARY, STATUS
from taciturn.suppression.known import Known
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.search import Found
from taciturn.suppression.task import Task
from taciturn.tables.margins import Margin

__all__ = ["Make", "audited", "pattern_of", "patterns_of", "unaudited"]


type Make[T] = Callable[[Task, Found, Integers, Integers], T]
"""What makes a result of what was found, and of bounds of the cells."""


def audited[T](task: Task, found: Found, make: Make[T], *, deadline: float) -> T:
    """The result with bounds as of `attacker_bounds`, or, where there is no time for
    them, as wide as is proved.

    Raises
    ------
    AttackError
        A primary cell is not protected. The pattern is the error's.
    """
    system = task.cells.system(found.pattern)
    lower, upper = task.bounds(system, task.primaries, deadline=deadline, attained=True)
    ended = monotonic() > deadline
    low, high = _proved(task, found, system)
    chosen = task.required.cells
    lower[chosen] = np.minimum(lower[chosen], low[chosen])
    upper[chosen] = np.maximum(upper[chosen], high[chosen])
    result = make(task, replace(found, complete=found.complete and not ended), lower, upper)
    if not task.required.met(found.low, found.high).all():
        return result  # as the search knew
    for position in np.flatnonzero(_short(task, lower, upper)):
        asked = np.zeros_like(task.primaries)
        asked[chosen[position]] = True
        try:
            exact = task.deviations(system, asked, deadline=deadline)
        except AttackError:
            continue  # not known
        if not task.required.met(*exact)[position]:
            error = AttackError(f"the pattern found does not protect {task.label(int(position))}")
            error.pattern = result
            raise error
    return result


def unaudited[T](task: Task, found: Found, make: Make[T]) -> T:
    """The result of a search that failed or was interrupted, with bounds as wide as is
    proved.
    """
    lower, upper = _proved(task, found, task.cells.system(found.pattern))
    return make(task, replace(found, complete=False), lower, upper)


def pattern_of(
    table: xr.DataArray,
    task: Task,
    found: Found,
    lower: Integers,
    upper: Integers,
) -> SuppressionPattern:
    """The result for a single table."""
    every = np.arange(len(found.pattern))
    audit = _audit(task, found, lower, upper)
    return audit.of(task.cells, every, table, task.known)


def patterns_of(
    tables: Mapping[str, tuple[xr.DataArray, PublishedCells, Integers, Known]],
    task: Task,
    found: Found,
    lower: Integers,
    upper: Integers,
) -> dict[str, SuppressionPattern]:
    """The result for several tables: for each its cells, their numbers among all, and
    what is known of them.
    """
    audit = _audit(task, found, lower, upper)
    return {
        name: audit.of(cells, numbers, table, known)
        for name, (table, cells, numbers, known) in tables.items()
    }


def _release(
    cells: PublishedCells, pattern: Booleans, table: xr.DataArray
) -> Suppression | LinkedTables:
    suppressed: dict[Margin, xr.DataArray] = {
        names: cells.flags(number, pattern) for number, names in enumerate(cells.suppressible)
    }
    if cells.linked:
        return LinkedTables(
            table,
            cells.margins,
            suppressed=suppressed,
            decimals=cells.decimals,
            signed=cells.signed,
        )
    return Suppression(table, suppressed[cells.margins[0]], decimals=cells.decimals)


def _proved(task: Task, found: Found, system: LinearSystem) -> tuple[Integers, Integers]:
    """Bounds of primary cells that are proved to be possible; of others the true
    values.
    """
    low, high = task.witnessed(system, found.witnesses)
    lower, upper = task.cells.values.copy(), task.cells.values.copy()
    lower[task.required.cells] += low
    upper[task.required.cells] += high
    return lower, upper


def _short(task: Task, lower: Integers, upper: Integers) -> Booleans:
    """Which primary cells these bounds leave less uncertain than required."""
    chosen = task.required.cells
    true = task.cells.values[chosen]
    return ~task.required.met(lower[chosen] - true, upper[chosen] - true)


@dataclass(frozen=True, eq=False, repr=False)
class _Audit:
    """What was found, cell by cell, and what holds for all cells together."""

    hidden: Booleans
    primary: Booleans
    open_: Booleans
    lower: Integers
    upper: Integers
    together: Mapping[str, Any]

    def of(
        self, cells: PublishedCells, numbers: Integers, table: xr.DataArray, known: Known
    ) -> SuppressionPattern:
        """The pattern of one table, whose cells have these numbers."""
        hidden, primary, open_ = (x[numbers] for x in (self.hidden, self.primary, self.open_))
        status, audit, unproved = {}, {}, {}
        for number, names in enumerate(cells.suppressible):
            part, is_hidden = cells.part(number), cells.flags(number, hidden)
            kind = np.where(
                cells.flags(number, primary), PRIMARY, np.where(is_hidden, SECONDARY, SAFE)
            )
            status[names] = is_hidden.copy(data=kind).rename(STATUS)
            if open_[part].any():
                unproved[names] = cells.flags(number, open_)
            if primary[part].any():
                audit[names] = bounds_table(
                    cells.labels(number),
                    self.lower[numbers[part]],
                    self.upper[numbers[part]],
                    asked=primary[part],
                    published=~hidden[part],
                    decimals=cells.decimals,
                )
        return SuppressionPattern(
            release=_release(cells, hidden, table),
            status=status,
            audit=audit,
            unproved=unproved,
            knowledge=known.ranges(),
            **self.together,
        )


def _audit(task: Task, found: Found, lower: Integers, upper: Integers) -> _Audit:
    open_ = np.zeros_like(found.pattern)
    open_[task.required.cells] = _short(task, lower, upper) | found.from_singletons
    cost = task.cost(found.pattern)
    together = {
        "cost": cost,
        "bound": min(found.bound, cost),
        "rank_decrease": task.rank_decrease(found.pattern)[0],
        "compared": found.compared,
        "complete": found.complete and not open_.any(),
        "unproved_in_all": int(open_.sum()),
    }
    return _Audit(found.pattern, task.primaries, open_, lower, upper, together)
