"""Attained bounds of the cells of a linear system: by propagation, then linear
programs, then integer programs.
"""

from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import connected_components

from taciturn.attack.bounds.contradiction import contradiction
from taciturn.attack.bounds.propagation import ContradictionError, propagate
from taciturn.attack.bounds.recession import unlimited_sides
from taciturn.attack.solver import ANY_SOLUTION, Floats, OutOfTimeError, Program
from taciturn.attack.system import UNLIMITED, Booleans, Integers, LinearSystem, open_ended
from taciturn.errors import AttackError, TableError

__all__ = ["attained_bounds"]

_TOLERANCE: Final = 1e-6  # of HiGHS, for whole numbers; of relative size for large ones
_KNOWN: Final = 50  # tables that are kept to start from
_TRIES: Final = 6  # of linear programs for a table of whole numbers, before an integer one


def attained_bounds(
    system: LinearSystem,
    asked: Booleans,
    *,
    on_cell: Callable[[], object],
    known: Integers | None = None,
    deadline: float = np.inf,
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

    Returns
    -------
    lower, upper : array of int64, shape (n,)
        `UNLIMITED` above, and ``-UNLIMITED`` below, where nothing limits a cell. Where
        a cell is not asked for they are valid, but need not be attained.

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
            part = _Component(system, rows, columns, lower, upper, deadline)
            if known is not None:
                part.start(known[columns])
            try:
                part.solve(asked[columns], on_cell)
            except AttackError:
                if known is None:
                    raise
                part.settle_for_attained()
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


class _Component:
    """Programs over one connected part of a system. `lower` and `upper` of the whole
    system are narrowed in place.
    """

    def __init__(
        self,
        system: LinearSystem,
        rows: Integers,
        columns: Integers,
        lower: Integers,
        upper: Integers,
        deadline: float,
    ) -> None:
        self._columns, self._deadline, self._signed = columns, deadline, system.signed
        self._all_lower, self._all_upper = lower, upper
        self._lower, self._upper = lower[columns], upper[columns]
        taken = csr_array(system.matrix[rows])
        fixed = lower == upper
        shown = taken @ np.where(fixed, lower, 0)
        self._matrix = csr_array(taken[:, columns])
        self._least, self._most = system.least[rows] - shown, system.most[rows] - shown
        # The best that any table found so far attains.
        self._low_found = np.full(len(columns), UNLIMITED)
        self._high_found = np.full(len(columns), -UNLIMITED)
        self._tables: deque[Integers] = deque(maxlen=_KNOWN)
        self._programs: dict[bool, Program] = {}
        self._distance: Program | None = None
        self._generator = np.random.default_rng(
            0
        )  # of costs that do not matter: bounds are exact for any

    def start(self, known: Integers) -> None:
        """Begin with a table that is known to be compatible."""
        self._keep(known.astype(float))

    def settle_for_attained(self) -> None:
        """Take the bounds that tables found so far attain, which may be too narrow."""
        self._all_lower[self._columns] = self._low_found
        self._all_upper[self._columns] = self._high_found

    def solve(self, asked: Booleans, on_cell: Callable[[], object]) -> None:
        if self._matrix.shape[0] > 1:
            # One total gives all bounds of its cells by itself, and they are attained.
            if self._signed:
                self._leave_unlimited(asked)
            self._many(asked)
            for cell in np.flatnonzero(asked):
                self._extreme(int(cell), -1)
                self._extreme(int(cell), 1)
                on_cell()
        else:
            for _ in range(int(asked.sum())):
                on_cell()
        self._all_lower[self._columns], self._all_upper[self._columns] = self._lower, self._upper

    def _leave_unlimited(self, asked: Booleans) -> None:
        """Take sides on which a cell has no bound for settled."""
        below, above = unlimited_sides(
            self._matrix,
            (self._least, self._most),
            (self._lower, self._upper),
            asked,
            deadline=self._deadline,
        )
        self._low_found[below], self._high_found[above] = -UNLIMITED, UNLIMITED

    def _many(self, asked: Booleans) -> None:
        """Find tables with many cells at their bounds at once, while that settles more
        than one program each would.
        """
        settled = 2
        while settled > 1:
            open_low = asked & (self._low_found > self._lower)
            open_high = asked & (self._high_found < self._upper)
            before = int(open_low.sum() + open_high.sum())
            # A cell open on both sides would pull in neither direction.
            for costs in (open_low.astype(float), -open_high.astype(float)):
                if costs.any():
                    self._keep(self._program(costs, whole=False))
            after = int((asked & (self._low_found > self._lower)).sum())
            settled = before - after - int((asked & (self._high_found < self._upper)).sum())

    def _extreme(self, cell: int, sign: int) -> None:
        """Narrow the lower (-1) or upper (1) bound of a cell to what is attained."""
        if self._attained(cell, sign):
            return
        costs = np.zeros(len(self._columns))
        costs[cell] = -sign
        found = self._program(costs, whole=False)
        self._narrow(cell, sign, found)
        if self._attained(cell, sign) or self._reached(cell, sign):
            return
        found = self._program(costs, whole=True)
        self._narrow(cell, sign, found)
        if self._attained(cell, sign):
            return
        raise AttackError(
            f"the solver's {'lower' if sign < 0 else 'upper'} bound of a cell is attained by no"
            " table of whole numbers of steps; fewer decimals give smaller numbers"
        )

    def _narrow(self, cell: int, sign: int, found: Floats) -> None:
        value = found[cell]
        slack = _TOLERANCE * max(1.0, 1e-6 * abs(value))
        if sign < 0:
            self._lower[cell] = max(self._lower[cell], int(np.ceil(value - slack)))
        else:
            self._upper[cell] = min(self._upper[cell], int(np.floor(value + slack)))
        self._keep(found)

    def _reached(self, cell: int, sign: int) -> bool:
        """Look for any table with the cell at its bound: mostly there is one, and the
        first is found much sooner.

        Linear programs often end in whole numbers: some with costs that pull cells that
        are still open to their bounds, so that the table settles some of them as well,
        and one for a table that differs little from a known one. Integer programs over
        the cells near those that differ come next, and one over all cells last.
        """
        lower, upper = self._lower.copy(), self._upper.copy()
        lower[cell] = upper[cell] = self._lower[cell] if sign < 0 else self._upper[cell]
        # A cell that is not known to have a bound must not pull: it may have none.
        costs = ((self._low_found > self._lower) & (self._lower > -UNLIMITED)).astype(float) - (
            (self._high_found < self._upper) & (self._upper < UNLIMITED)
        )
        for _ in range(_TRIES):
            # Sizes of costs are arbitrary, and each choice ends in another table.
            solved = self._solve(
                costs * self._generator.random(len(costs)), lower, upper, whole=False, gap=0.0
            )
            if solved is None:
                return False
            self._keep(solved)
            if self._attained(cell, sign):
                return True
        for near_lower, near_upper in self._neighbourhoods(cell, sign, lower, upper):
            solved = self._solve(costs, near_lower, near_upper, whole=True, gap=ANY_SOLUTION)
            if solved is not None:
                self._keep(solved)
            if self._attained(cell, sign):
                return True
        solved = self._solve(costs, lower, upper, whole=True, gap=ANY_SOLUTION)
        if solved is not None:
            self._keep(solved)
        return self._attained(cell, sign)

    def _neighbourhoods(
        self, cell: int, sign: int, lower: Integers, upper: Integers
    ) -> Iterator[tuple[Integers, Integers]]:
        """Bounds that leave open what is near a path from a known table to one with the
        cell at its bound.
        """
        if not self._tables:
            return
        known = max(self._tables, key=lambda table: sign * table[cell])
        moved = self._nearest(known, lower, upper)
        if moved is None:
            return
        self._keep(known + moved)
        path = (np.abs(moved) > _TOLERANCE).astype(float)
        shared = self._matrix.T @ (self._matrix @ path > 0).astype(float)
        for least in (2, 1):
            fixed = (shared < least) & (path == 0)
            fixed[cell] = False
            yield np.where(fixed, known, lower), np.where(fixed, known, upper)

    def _nearest(self, known: Integers, lower: Integers, upper: Integers) -> Floats | None:
        """How a table within bounds differs, as little as can be, from a known one; not
        always in whole numbers.
        """
        up, down = np.maximum(upper - known, 0), np.maximum(known - lower, 0)
        least_up, least_down = np.maximum(lower - known, 0), np.maximum(known - upper, 0)
        shown = self._matrix @ known
        high = open_ended(np.concatenate([up, down]))
        low = np.concatenate([least_up, least_down])
        least, most = open_ended(self._least - shown), open_ended(self._most - shown)
        if self._distance is None:
            self._distance = Program(
                csr_array(hstack([self._matrix, -self._matrix])), least, most, low, high
            )
        weights = 1 + self._generator.random(len(high))
        solved = self._distance.solve(weights, lower=low, upper=high, least=least, most=most)
        return None if solved is None else solved.values[: len(known)] - solved.values[len(known) :]

    def _attained(self, cell: int, sign: int) -> bool:
        if sign < 0:
            return bool(self._low_found[cell] <= self._lower[cell])
        return bool(self._high_found[cell] >= self._upper[cell])

    def _keep(self, found: Floats) -> None:
        """Remember what a solution attains, if it is a table of whole numbers that
        holds exactly.
        """
        table = np.rint(found).astype(np.int64)
        sums = self._matrix @ table
        inside = (table >= self._lower).all() and (table <= self._upper).all()
        if inside and (sums >= self._least).all() and (sums <= self._most).all():
            self._tables.append(table)
            np.minimum(self._low_found, table, out=self._low_found)
            np.maximum(self._high_found, table, out=self._high_found)

    def _program(self, costs: Floats, *, whole: bool) -> Floats:
        found = self._solve(costs, self._lower, self._upper, whole=whole, gap=0.0, sure=True)
        if found is None and self._tables:
            raise AttackError("the solver finds no table, although one is known")
        if found is None:
            raise ContradictionError
        return found

    def _solve(
        self,
        costs: Floats,
        lower: Integers,
        upper: Integers,
        *,
        whole: bool,
        gap: float,
        sure: bool = False,
    ) -> Floats | None:
        """A solution of least cost, up to the gap; None where there is none."""
        seconds = self._deadline - monotonic()
        if seconds < 0:
            raise OutOfTimeError("the time was up before all bounds were known")
        if whole not in self._programs:
            columns = np.full(len(self._columns), whole)
            self._programs[whole] = Program(
                self._matrix,
                open_ended(self._least),
                open_ended(self._most),
                open_ended(lower),
                open_ended(upper),
                whole=columns,
            )
        solved = self._programs[whole].solve(
            costs,
            lower=open_ended(lower),
            upper=open_ended(upper),
            gap=gap,
            seconds=seconds,
            sure=sure,
        )
        return None if solved is None else solved.values
