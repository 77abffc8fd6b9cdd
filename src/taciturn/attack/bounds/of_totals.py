"""Attained bounds of totals that need not be released, by adding a column for each to
the linear system.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr
from scipy.sparse import block_array, csr_array, eye_array

from taciturn.attack.bounds.contradiction import contradiction
from taciturn.attack.bounds.of_cells import attained_bounds
from taciturn.attack.bounds.projections import over_projections
from taciturn.attack.system import UNLIMITED, Booleans, Floats, Integers, LinearSystem, Total
from taciturn.errors import AttackError, TableError
from taciturn.schema import MAX_COUNT

__all__ = ["signed_total_bounds", "total_bounds"]


def total_bounds(
    system: LinearSystem,
    labels: xr.DataArray,
    group: Integers,
    asked: Booleans,
    *,
    on_total: Callable[[], object],
    known: Integers | None = None,
    deadline: float = np.inf,
) -> tuple[Integers, Integers]:
    r"""The least and the most that each asked total can be, in steps, attained by whole
    tables.

    With `M` an upper bound of the total of the cells `g`, one more column and row hold
    what remains up to it,

    .. math:: w_g + \sum_{j \in g} x_j = M_g, \qquad w_g \ge 0

    so that the matrix still consists of zeros and ones, and the least value of the
    total is `M` less the largest of `w`. Cells are not negative.

    Parameters
    ----------
    system : LinearSystem
        The release.
    labels : DataArray
        A table with a cell for each total, whose categories name them.
    group : array of int64, shape (cells,)
        The total that each cell of the table belongs to.
    asked : array of bool, shape (totals,)
        The totals whose bounds are wanted.
    on_total : callable
        Called when the bounds of an asked total with an unknown cell are known.
    known : array of int64, shape (cells,), optional
        A compatible table, and
    deadline : float
        when to stop, as `attained_bounds` takes them.

    Returns
    -------
    lower, upper : array of int64, shape (totals,)
        `UNLIMITED` above where no released total limits one of its cells. Meaningless
        where a total is not asked for.

    Raises
    ------
    TableError
        No table is compatible; the message quotes a minimal set of released totals that
        contradict each other.
    AttackError
        The solver finds no solution in whole numbers, or a total may reach 2**53 steps.
    """
    released = system
    system, known = over_projections(released, group, known)
    system, unlimited = system.capped()
    lower = np.zeros(len(asked), dtype=np.int64)
    np.add.at(lower, group, system.published.values.ravel())
    inside = np.where(system.unknown < 0, -1, group[system.unknown])  # -1: no cell
    most = system.most_of_cells()
    limited = most < UNLIMITED
    # A cell that no released total limits is at its lower bound, and at any value,
    # whatever the others hold.
    np.add.at(lower, inside[~limited], system.lower[~limited])
    upper = lower.copy()
    floor, ceiling = _limits(system, inside, limited, most, len(asked))
    if ceiling[asked].max(initial=0) > MAX_COUNT:
        raise AttackError(
            f"a total may reach {ceiling[asked].max():g} steps, bounds are computed up to 2**53"
        )
    lower[asked] += floor[asked].astype(np.int64)
    upper[asked] += ceiling[asked].astype(np.int64)
    kept = np.flatnonzero(asked & (floor != ceiling))
    held = limited & np.isin(inside, kept)
    members = _members(inside, held, kept)
    most, most_left = (part[kept].astype(np.int64) for part in (ceiling, ceiling - floor))
    added = np.arange(len(inside) + len(kept)) >= len(inside)
    widened = _widened(system, members, most, most_left, kept, labels, group)
    if known is not None:
        known = np.concatenate([known, most - members @ known])
    try:
        low, high = attained_bounds(
            widened, added, on_cell=on_total, known=known, deadline=deadline
        )
    except TableError:
        # Say it by released totals alone, which contradict each other without the added
        # rows.
        raise TableError(contradiction(released.capped()[0])) from None
    lower[kept] += most_left - high[added]
    upper[kept] -= low[added]
    upper[inside[~limited | unlimited]] = UNLIMITED
    return lower, upper


def signed_total_bounds(
    system: LinearSystem,
    labels: xr.DataArray,
    group: Integers,
    asked: Booleans,
    *,
    on_total: Callable[[], object],
    known: Integers | None,
    deadline: float,
) -> tuple[Integers, Integers]:
    """`total_bounds` where terms may be negative: the column is the total itself, and
    is subtracted.
    """
    shown = np.zeros(len(asked), dtype=np.int64)
    np.add.at(shown, group, system.published.values.ravel())
    inside = group[system.unknown]
    kept = np.flatnonzero(asked & (np.bincount(inside, minlength=len(asked)) > 0))
    members = _members(inside, np.isin(inside, kept), kept)
    none = np.zeros(len(kept), dtype=np.int64)
    widened = _widened(system, csr_array(-members), none, none + UNLIMITED, kept, labels, group)
    widened = replace(widened, lower=np.concatenate([system.lower, none - UNLIMITED]))
    if known is not None:
        cells = known[system.unknown]
        known = np.concatenate([cells, members @ cells])
    added = np.arange(len(inside) + len(kept)) >= len(inside)
    low, high = attained_bounds(widened, added, on_cell=on_total, known=known, deadline=deadline)
    lower, upper = shown.copy(), shown.copy()
    for sides, found in ((lower, low[added]), (upper, high[added])):
        sides[kept] = np.where(np.abs(found) >= UNLIMITED, found, shown[kept] + found)
    return lower, upper


def _members(inside: Integers, held: Booleans, kept: Integers) -> csr_array:
    """Which of the held cells are in each kept total; `kept` is sorted."""
    place = (np.searchsorted(kept, inside[held]), np.flatnonzero(held))
    ones = np.ones(len(place[0]), dtype=np.int64)
    return csr_array((ones, place), shape=(len(kept), len(inside)))


def _limits(
    system: LinearSystem, inside: Integers, limited: Booleans, most: Integers, groups: int
) -> tuple[Floats, Floats]:
    """Bounds below and above each total of the limited cells, which settle totals that
    are sums of released ones.

    Cells are shared out among the rows. A row gives no more than it holds, and all of
    it where its cells all are in it. Of several ways to share out, one for each
    released grouping, the tightest counts. Sums are exact below 2**53.
    """
    rows, columns = system.matrix.shape
    counted = inside >= 0
    inside = inside[counted]
    coo = system.matrix.tocoo()
    length = np.append(np.diff(system.matrix.indptr), 0)
    row_least, row_most = (
        np.append(system.least, 0).astype(float),
        np.append(system.most, 0).astype(float),
    )
    cell_least, cell_most = (
        np.where(limited, system.lower, 0)[counted].astype(float),
        np.where(limited, most, 0)[counted].astype(float),
    )
    floor, ceiling = np.zeros(groups), np.full(groups, np.inf)
    for number in np.union1d(system.row_total, 0):
        # Rows of this grouping first; cells that are in none of them go to any other
        # row.
        order = np.argsort(system.row_total[coo.row] != number, kind="stable")
        held, first = np.unique(coo.col[order], return_index=True)
        row = np.full(columns, rows)  # one past the last is none
        row[held] = coo.row[order][first]
        row = row[counted]
        share, place, size = np.unique(
            inside * (rows + 1) + row, return_inverse=True, return_counts=True
        )
        of_group, of_row = np.divmod(share, rows + 1)
        low, high = np.bincount(place, weights=cell_least), np.bincount(place, weights=cell_most)
        low = np.where(size == length[of_row], np.maximum(low, row_least[of_row]), low)
        high = np.where(of_row < rows, np.minimum(high, row_most[of_row]), high)
        floor = np.maximum(floor, np.bincount(of_group, weights=low, minlength=groups))
        ceiling = np.minimum(ceiling, np.bincount(of_group, weights=high, minlength=groups))
    return floor, ceiling


def _widened(
    system: LinearSystem,
    members: csr_array,
    ceiling: Integers,
    most_left: Integers,
    kept: Integers,
    labels: xr.DataArray,
    group: Integers,
) -> LinearSystem:
    """The system with a row for each total, and a column, of no cell, for what its
    cells leave of the ceiling.
    """
    added = len(ceiling)
    matrix = block_array(
        [[system.matrix, None], [members, eye_array(added, dtype=np.int64)]], format="csr"
    )
    shown = np.zeros(labels.size, dtype=np.int64)
    total = Total(labels, group, shown, shown, shown > 0)
    return replace(
        system,
        unknown=np.concatenate([system.unknown, np.full(added, -1)]),
        matrix=csr_array(matrix),
        least=np.concatenate([system.least, ceiling]),
        most=np.concatenate([system.most, ceiling]),
        lower=np.concatenate([system.lower, np.zeros(added, dtype=np.int64)]),
        upper=np.concatenate([system.upper, most_left]),
        totals=(*system.totals, total),
        row_total=np.concatenate([system.row_total, np.full(added, len(system.totals))]),
        row_group=np.concatenate([system.row_group, kept]),
    )
