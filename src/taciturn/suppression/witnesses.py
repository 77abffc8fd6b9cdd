"""The cheapest way to let a primary cell deviate: a table that differs from the true
one where that costs least.
"""

from collections.abc import Iterator
from copy import copy
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from taciturn.attack.solver import Floats, OutOfTimeError, Program
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError
from taciturn.suppression.hypercubes import Hypercubes
from taciturn.suppression.task import Task

__all__ = ["Witnesses"]

_ROUNDS: Final = 3  # of linear programs for one witness
_SPREAD: Final = 1e-3
"""What a category that is new to a pattern adds to a cost: by Propositions 1 to 3 few
categories are better."""
_MANY: Final = 1e6  # typical costs or deviations, beyond which more makes no difference
_NEAR: Final = 1e-7  # of a deviation: less is the solver's rounding


class Witnesses:
    """Tables in which a primary cell deviates as far as it has to, and which add little
    cost to a pattern. In real numbers where `whole` numbers are not asked for.
    """

    def __init__(self, task: Task) -> None:
        self._cells = task.cells
        self._aim(task)
        self._table = _Deviations(task, totals=False)
        self._wide = _Deviations(task, totals=True)

    def _aim(self, task: Task) -> None:
        self._task, self._cubes = task, Hypercubes(task)
        finite = np.isfinite(task.costs)
        typical = np.median(task.costs[finite]) if finite.any() else 1.0
        self._price = np.minimum(task.costs / typical, _MANY)

    def aimed(self, task: Task) -> "Witnesses":
        """The same for other costs, by programs which start from where these ended."""
        other = copy(self)
        other._aim(task)
        return other

    def cheapest(
        self,
        cell: int,
        deviation: int,
        pattern: Booleans,
        *,
        deadline: float,
        patience: float = np.inf,
        whole: bool = False,
    ) -> Floats | None:
        """The cheapest witness found, None if there is none. After some time the first
        will do.

        Raises
        ------
        OutOfTimeError
        """
        if monotonic() > deadline:
            raise OutOfTimeError("the time was up before a pattern was found")
        free = np.isfinite(self._task.costs) | pattern
        price = np.where(free & ~pattern, self._price, 0.0)
        price *= self._newness(pattern)
        cube = self._cubes.cheapest(cell, deviation, free, price)
        best = None if cube is None else cube.astype(float)
        least = np.inf if best is None else self._spent(best, deviation, price)
        if least == 0 or (best is not None and monotonic() > patience):
            return best
        for found in self._by_programs(cell, deviation, pattern, free, price, deadline):
            witness = self._exact(found, cell, deviation, free) if whole else found
            if witness is not None and (spent := self._spent(witness, deviation, price)) < least:
                best, least = witness, spent
            if least == 0:
                return best
        if best is None and whole:
            found_whole = self._wide.least(
                cell, deviation, free, price, whole=True, seconds=deadline - monotonic()
            )
            if found_whole is not None:
                best = self._exact(found_whole, cell, deviation, free)
        return best

    def differs(self, witness: Floats, deviation: float) -> Booleans:
        """The published cells in which a witness differs from the true table: of one in
        real numbers, by more than the solver's rounding.
        """
        whole = np.array_equal(witness, np.rint(witness))
        rounding = 0.5 if whole else _NEAR * abs(deviation)
        return np.asarray(np.abs(self._cells.matrix @ witness) > rounding)

    def _by_programs(
        self,
        cell: int,
        deviation: int,
        pattern: Booleans,
        free: Booleans,
        price: Floats,
        deadline: float,
    ) -> Iterator[Floats]:
        """Deviations by a few linear programs, each with costs that follow from the
        last one's: a cell is suppressed however little it deviates, so what deviates
        much is made cheap.
        """
        # Totals are expensive, and programs that may suppress them take several times
        # as long.
        program, open_ = self._table, np.where(self._cells.column >= 0, free, pattern)
        costs = price
        for number in range(_ROUNDS):
            found = program.least(cell, deviation, open_, costs, seconds=deadline - monotonic())
            if found is None and number == 0:
                program, open_ = self._wide, free
                found = program.least(cell, deviation, open_, costs, seconds=deadline - monotonic())
            if found is None:
                return
            yield found
            moved = np.abs(self._cells.matrix @ found)
            costs = price / (moved / abs(deviation) + 0.01)

    def _spent(self, witness: Floats, deviation: int, price: Floats) -> float:
        return float(price[self.differs(witness, deviation)].sum())

    def _exact(self, found: Floats, cell: int, deviation: int, free: Booleans) -> Floats | None:
        """Deviations rounded to whole numbers, if they are then an exact witness in the
        free cells.
        """
        witness = np.rint(found)
        reached = (self._cells.matrix[[cell]] @ witness)[0] == deviation
        return witness if reached and self._task.allows(witness.astype(np.int64), free) else None

    def _newness(self, pattern: Booleans) -> Floats:
        """A little more than 1 for cells with categories that no suppressed cell
        has.
        """
        return np.asarray(1 + _SPREAD * self._cells.new_categories(pattern), dtype=np.float64)


class _Deviations:
    """Programs for the cheapest deviations of a table from its true values.

    Columns are deviations up and down of the table's cells and, with `totals`, of the
    released totals. Without, suppressed totals may deviate at no cost, and the others
    not at all.
    """

    def __init__(self, task: Task, *, totals: bool) -> None:
        cells = task.cells
        self._cells, self._totals = cells, totals
        self._down, self._up = task.down, task.up
        self._inner_down, self._inner_up = task.inner_down, task.inner_up
        self._outer = np.flatnonzero(cells.column < 0)
        self._size, m = cells.table.size, len(self._outer)
        sums = cells.matrix[self._outer]
        parts = [sums, -sums, -eye_array(m), eye_array(m)] if totals else [sums, -sums]
        self._matrix = csr_array(hstack(parts))
        self._programs: dict[bool, Program] = {}

    def least(
        self,
        cell: int,
        deviation: int,
        free: Booleans,
        costs: Floats,
        *,
        whole: bool = False,
        seconds: float = np.inf,
    ) -> Floats | None:
        """Deviations of the table's cells, with one published cell's fixed; None if the
        free cells have none, or the solver fails.
        """
        size = float(abs(deviation))
        up, down = np.where(free, self._up, 0.0), np.where(free, self._down, 0.0)
        low_up, low_down = np.zeros_like(up), np.zeros_like(up)
        up[cell], low_up[cell] = (size, size) if deviation > 0 else (0.0, 0.0)
        down[cell], low_down[cell] = (size, size) if deviation < 0 else (0.0, 0.0)
        upper = [self._inner(up, self._inner_up), self._inner(down, self._inner_down)]
        lower = [self._inner(low_up, 0), self._inner(low_down, 0)]
        price = [self._inner(costs, 0), self._inner(costs, 0)]
        outer = self._outer
        if self._totals:
            upper += [up[outer], down[outer]]
            lower += [low_up[outer], low_down[outer]]
            price += [costs[outer], costs[outer]]
            least = most = np.zeros(len(outer))
        else:
            least, most = (low_up - down)[outer], (up - low_down)[outer]
        # Solvers want numbers of moderate size, so linear programs count in units of
        # the deviation.
        unit = 1.0 if whole else size
        most_units = np.inf if whole else _MANY
        bounds = (np.concatenate(upper), np.concatenate(lower), least, most)
        high, low, least, most = (
            np.clip(bound / unit, -most_units, most_units) for bound in bounds
        )
        program = self._program(least, most, low, high, whole=whole)
        # So that no cell deviates up and down at once, or for nothing.
        prices = np.concatenate(price) + 1e-6
        try:
            solved = program.solve(
                prices, lower=low, upper=high, least=least, most=most, gap=0.1, seconds=seconds
            )
        except OutOfTimeError:
            raise
        except AttackError:
            return None
        if solved is None:
            return None
        return unit * (solved.values[: self._size] - solved.values[self._size : 2 * self._size])

    def _program(
        self, least: Floats, most: Floats, low: Floats, high: Floats, *, whole: bool
    ) -> Program:
        """The linear or the integer program, set up once."""
        if whole not in self._programs:
            self._programs[whole] = Program(
                self._matrix, least, most, low, high, whole=np.full(len(high), whole)
            )
        return self._programs[whole]

    def _inner(self, cells: Floats, otherwise: object) -> Floats:
        """Values of the table's own cells; `otherwise` where the table is not
        released.
        """
        if not len(self._cells.inner):
            return np.broadcast_to(np.asarray(otherwise, dtype=float), (self._size,)).copy()
        return np.asarray(cells[self._cells.inner], dtype=np.float64)
