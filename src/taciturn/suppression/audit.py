"""From what a search found to a result: the bounds that are left to an attacker, and
which primary cells are not proved to be protected.
"""

from time import monotonic

import numpy as np
import xarray as xr

from taciturn.attack.bounds.of_system import bounds_table
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.suppression import Suppression
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.schema import PRIMARY, SAFE, SECONDARY, STATUS
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.search import Found
from taciturn.suppression.task import Task
from taciturn.tables.margins import Margin

__all__ = ["audited", "unaudited"]


def audited(
    task: Task, found: Found, table: xr.DataArray, *, deadline: float
) -> SuppressionPattern:
    """The result with bounds as of `attacker_bounds`, or, where there is no time for
    them, as wide as is proved.

    Raises
    ------
    AttackError
        A primary cell is not protected. The pattern is the error's.
    """
    release = _release(task, found.pattern, table)
    lower, upper = task.bounds(release.system, task.primaries, deadline=deadline, attained=True)
    ended = monotonic() > deadline
    low, high = _proved(task, found, release)
    chosen = task.required.cells
    lower[chosen] = np.minimum(lower[chosen], low[chosen])
    upper[chosen] = np.maximum(upper[chosen], high[chosen])
    result = _result(task, found, release, lower, upper, complete=found.complete and not ended)
    if not task.required.met(found.low, found.high).all():
        return result  # as the search knew
    for position in np.flatnonzero(_short(task, lower, upper)):
        asked = np.zeros_like(task.primaries)
        asked[chosen[position]] = True
        try:
            exact = task.deviations(release.system, asked, deadline=deadline)
        except AttackError:
            continue  # not known
        if not task.required.met(*exact)[position]:
            error = AttackError(f"the pattern found does not protect {task.label(int(position))}")
            error.pattern = result
            raise error
    return result


def unaudited(task: Task, found: Found, table: xr.DataArray) -> SuppressionPattern:
    """The result of a search that failed or was interrupted, with bounds as wide as is
    proved.
    """
    release = _release(task, found.pattern, table)
    lower, upper = _proved(task, found, release)
    return _result(task, found, release, lower, upper, complete=False)


def _release(task: Task, pattern: Booleans, table: xr.DataArray) -> Suppression | LinkedTables:
    cells = task.cells
    suppressed: dict[Margin, xr.DataArray] = {
        names: cells.flags(number, pattern) for number, names in enumerate(cells.suppressible)
    }
    if cells.linked:
        return LinkedTables(table, cells.margins, suppressed=suppressed, decimals=cells.decimals)
    return Suppression(table, suppressed[cells.margins[0]], decimals=cells.decimals)


def _proved(
    task: Task, found: Found, release: Suppression | LinkedTables
) -> tuple[Integers, Integers]:
    """Bounds of primary cells that are proved to be possible; of others the true
    values.
    """
    low, high = task.witnessed(release.system, found.witnesses)
    lower, upper = task.cells.values.copy(), task.cells.values.copy()
    lower[task.required.cells] += low
    upper[task.required.cells] += high
    return lower, upper


def _short(task: Task, lower: Integers, upper: Integers) -> Booleans:
    """Which primary cells these bounds leave less uncertain than required."""
    chosen = task.required.cells
    true = task.cells.values[chosen]
    return ~task.required.met(lower[chosen] - true, upper[chosen] - true)


def _result(
    task: Task,
    found: Found,
    release: Suppression | LinkedTables,
    lower: Integers,
    upper: Integers,
    *,
    complete: bool,
) -> SuppressionPattern:
    cells, pattern = task.cells, found.pattern
    open_ = np.zeros_like(pattern)
    open_[task.required.cells] = _short(task, lower, upper) | found.from_singletons
    status, audit, unproved = {}, {}, {}
    for number, names in enumerate(cells.suppressible):
        part, primary = cells.part(number), cells.flags(number, task.primaries)
        hidden = cells.flags(number, pattern)
        kind = np.where(primary, PRIMARY, np.where(hidden, SECONDARY, SAFE))
        status[names] = hidden.copy(data=kind).rename(STATUS)
        if open_[part].any():
            unproved[names] = cells.flags(number, open_)
        if primary.any():
            audit[names] = bounds_table(
                cells.labels(number),
                lower[part],
                upper[part],
                asked=task.primaries[part],
                published=~pattern[part],
                decimals=cells.decimals,
            )
    cost = task.cost(pattern)
    return SuppressionPattern(
        release=release,
        status=status,
        audit=audit,
        cost=cost,
        bound=min(found.bound, cost),
        rank_decrease=task.rank_decrease(pattern)[0],
        compared=found.compared,
        complete=complete and not open_.any(),
        unproved=unproved,
        knowledge=task.known.ranges(),
    )
