"""Attained bounds of the cells of a linear system: by propagation, and then for each
part of it that shares no cell with the others.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.bounds.component import Component
from taciturn.attack.bounds.contradiction import contradiction
from taciturn.attack.bounds.propagation import ContradictionError, propagate
from taciturn.attack.system import UNLIMITED, Booleans, Integers, LinearSystem
from taciturn.errors import AttackError, TableError

__all__ = ["attained_bounds"]


def attained_bounds(
    system: LinearSystem,
    asked: Booleans,
    *,
    on_cell: Callable[[], object],
    known: Integers | None = None,
    deadline: float = np.inf,
    apart: int = UNLIMITED,
) -> tuple[Integers, Integers]:
    """The least and the most that each asked cell can hold, in steps, attained by whole
    tables.

    Parameters
    ----------
    system : LinearSystem
        The release.
    asked : array of bool, shape (n,)
        The unknown cells whose bounds are wanted.
    on_cell : callable
        Called when the bounds of an asked cell are known.
    known : array of int64, shape (n,), optional
        The cells of a compatible table. Where the solver fails, or the time is up, the
        bounds are then those that tables found so far attain, and no error.
    deadline : float
        When to stop, by the monotonic clock.
    apart : int
        A cell that two tables set so far apart is not looked at any more.

    Returns
    -------
    lower, upper : array of int64, shape (n,)
        `UNLIMITED` above, and ``-UNLIMITED`` below, where nothing limits a cell. Where
        a cell is not asked for, or can be so far `apart`, they are valid, but need not
        be attained.

    Raises
    ------
    TableError
        No table is compatible; the message quotes a minimal set of totals that
        contradict each other.
    AttackError
        The solver finds no solution in whole numbers, or none in time.
    """
    system, unlimited = system.capped()
    lower, upper = system.lower.copy(), system.upper.copy()
    if known is not None and not system.holds(known):
        known = None  # a cell has no upper bound, and this table is above the cap
    try:
        propagate(system.matrix, system.least, system.most, lower, upper)
        for rows, columns in components(system.matrix, lower, upper, asked):
            part = _component(system, rows, columns, lower, upper, deadline)
            if known is not None:
                part.keep(known[columns])
            try:
                part.solve(asked[columns], on_cell, apart=apart)
                lower[columns], upper[columns] = part.lower, part.upper
            except AttackError:
                if known is None:
                    raise
                # What tables found so far attain, which may be too narrow.
                lower[columns], upper[columns] = part.low_found, part.high_found
    except ContradictionError:
        raise TableError(contradiction(system)) from None
    upper[unlimited] = UNLIMITED
    return lower, upper


def components(
    matrix: csr_array, lower: Integers, upper: Integers, asked: Booleans
) -> Iterator[tuple[Integers, Integers]]:
    """Rows and columns of the connected parts of a system, which share no open cell;
    only parts with an asked cell.
    """
    open_ = np.flatnonzero(lower < upper)
    part = csr_array(matrix[:, open_])
    rows, columns = part.shape
    row, column = part.nonzero()
    graph = csr_array(
        (np.ones(len(row)), (row, rows + column)), shape=(rows + columns, rows + columns)
    )
    _, label = connected_components(graph, directed=False)
    by_label = np.argsort(label, kind="stable")
    for members in np.split(by_label, np.flatnonzero(np.diff(label[by_label])) + 1):
        inside = open_[members[members >= rows] - rows]
        if asked[inside].any():
            yield members[members < rows], inside


def _component(
    system: LinearSystem,
    rows: Integers,
    columns: Integers,
    lower: Integers,
    upper: Integers,
    deadline: float,
) -> Component:
    """A part of a system, from whose rows the cells that are determined are
    subtracted.
    """
    taken = csr_array(system.matrix[rows])
    shown = taken @ np.where(lower == upper, lower, 0)
    inside = Rows(
        csr_array(taken[:, columns]), system.least[rows] - shown, system.most[rows] - shown
    )
    return Component(inside, lower[columns], upper[columns], deadline, signed=system.signed)
