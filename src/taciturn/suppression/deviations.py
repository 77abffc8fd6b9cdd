"""Patterns for large tables: for each primary cell the cheapest way to let it deviate,
then publication of what is not needed.

A pattern protects a cell if there are tables that agree with everything published and
in which the cell is as far from its true value as required. Each step looks for such a
table, a witness, that differs from the true one where that costs least; the cells in
which it differs are suppressed. The result is therefore sound, but not necessarily the
cheapest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from taciturn.attack.solver import Floats, OutOfTimeError, Program
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.hypercubes import Hypercubes
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import ImpossibleError, Required, Task

__all__ = ["Completed", "DeviationSearch"]

_ROUNDS: Final = 3  # of linear programs for one witness
_SPREAD: Final = 1e-3
"""What a category that is new to a pattern adds to a cost: by Propositions 1 to 3 few
categories are better."""
_MANY: Final = 1e6  # typical costs or deviations, beyond which more makes no difference


@dataclass(frozen=True, eq=False, repr=False)
class Completed:
    """A pattern, the witnesses that prove which primary cells it protects, and whether
    there was time for everything.
    """

    pattern: Booleans
    reach: Reach
    complete: bool


class DeviationSearch:
    """Completes sets of suppressed cells so that all primary cells are protected."""

    def __init__(self, task: Task) -> None:
        self._task, self._cells, self._required = task, task.cells, task.required
        self._ways = [
            _ways(task.required, position, int(task.down[cell]), int(task.up[cell]))
            for position, cell in enumerate(task.required.cells)
        ]
        finite = np.isfinite(task.costs)
        typical = np.median(task.costs[finite]) if finite.any() else 1.0
        self._price = np.minimum(task.costs / typical, _MANY)
        self._cubes = Hypercubes(task)
        self._table = _Deviations(task, totals=False)
        self._wide = _Deviations(task, totals=True)
        self._patience = self._deadline = np.inf
        self.latest: Completed | None = None
        """What the last search had found when it ended or was interrupted."""

    def complete(
        self,
        suppressed: Booleans,
        order: Integers,
        *,
        deadline: float,
        on_cell: Callable[[], object],
    ) -> Completed:
        """A pattern that contains `suppressed` and protects the primary cells, which
        are taken in this order.

        After half of the time hypercubes, the quickest witnesses to find, are enough.
        Primary cells for which there was no time, or for which the solver failed, are
        not protected by the witnesses found.

        Raises
        ------
        ImpossibleError
            No pattern protects.
        """
        pattern = suppressed.copy()
        reach = Reach(self._required)
        self.latest = Completed(pattern, reach, False)
        self._patience, self._deadline = (monotonic() + deadline) / 2, deadline
        for position in order:
            if not reach.enough(position):
                try:
                    witnesses = self._protecting(int(position), pattern, reach)
                except OutOfTimeError:
                    return self.latest
                except ImpossibleError:
                    raise
                except AttackError:
                    continue
                for witness in witnesses:
                    pattern |= self._differs(witness)
                    reach.add(witness, self._at_primaries(witness), self._differs(witness))
            on_cell()
        hurried = monotonic() > self._patience
        if reach.all_enough():
            pattern, reach, whole = self._without_spare(pattern, reach)
            self.latest = Completed(pattern, reach, whole and not hurried)
        return self.latest

    def _protecting(self, position: int, pattern: Booleans, reach: Reach) -> list[Integers]:
        """The cheapest witnesses for a primary cell, of those that deviate above, below
        or on both sides.
        """
        cell = int(self._required.cells[position])
        for whole in (False, True):
            found = []
            for way in self._ways[position]:
                found.append(self._along(position, way, pattern, reach, whole=whole))
                if found[-1][1] == 0:
                    break  # protected already by what is suppressed
            witnesses, cost = min(found, key=lambda each: each[1])
            if cost < np.inf:
                return witnesses
            if not whole:
                down, up = self._task.reachable(position, deadline=self._deadline)
                up = min(up, int(self._task.up[cell]))
                # Between these two there may be values that no table of whole steps
                # attains.
                self._ways[position] = [*_ways(self._required, position, down, up), (up, down)]
        raise AttackError(
            f"no table of whole steps was found that protects {self._cells.label(cell)}"
        )

    def _along(
        self,
        position: int,
        way: tuple[int, int],
        pattern: Booleans,
        reach: Reach,
        *,
        whole: bool,
    ) -> tuple[list[Integers], float]:
        """Witnesses on both sides of a primary cell, and the cost of the cells that
        they add; infinite where there are none.
        """
        witnesses, widened = [], pattern
        for deviation in (way[0], -way[1]):
            if deviation and not reach.beyond(position, deviation):
                witness = self._cheapest(
                    int(self._required.cells[position]), deviation, widened, whole=whole
                )
                if witness is None:
                    return [], np.inf
                widened = widened | self._differs(witness)
                witnesses.append(witness)
        return witnesses, float(self._task.costs[widened & ~pattern].sum())

    def _without_spare(self, pattern: Booleans, reach: Reach) -> tuple[Booleans, Reach, bool]:
        """Publish what turns out not to be needed, the most expensive first, while
        there is time.
        """
        spare = np.setdiff1d(np.flatnonzero(pattern), self._required.cells)
        for cell in spare[np.argsort(-self._task.costs[spare], kind="stable")]:
            fewer = pattern.copy()
            fewer[cell] = False
            without = reach.without(int(cell))
            try:
                if self._still(fewer, without):
                    pattern, reach = fewer, without
            except OutOfTimeError:
                return pattern, reach, False
        return pattern, reach, True

    def _still(self, pattern: Booleans, reach: Reach) -> bool:
        """Whether a pattern protects; adds the witnesses that prove it."""
        for position in range(len(self._required.cells)):
            if reach.enough(position):
                continue
            for way in self._ways[position]:
                witnesses = self._within(position, way, pattern, reach)
                if witnesses is not None:
                    break
            else:
                return False
            for witness in witnesses:
                reach.add(witness, self._at_primaries(witness), self._differs(witness))
        return True

    def _within(
        self, position: int, way: tuple[int, int], pattern: Booleans, reach: Reach
    ) -> list[Integers] | None:
        """Witnesses that differ in suppressed cells only; None where linear programs
        find none in whole numbers.
        """
        cell = int(self._required.cells[position])
        none = np.zeros(len(pattern))
        witnesses = []
        for deviation in (way[0], -way[1]):
            if deviation and not reach.beyond(position, deviation):
                seconds = self._left()
                witness = self._cubes.cheapest(cell, deviation, pattern, none)
                if witness is None:
                    found = self._table.least(cell, deviation, pattern, none, seconds=seconds)
                    witness = (
                        None if found is None else self._exact(found, cell, deviation, pattern)
                    )
                if witness is None:
                    return None
                witnesses.append(witness)
        return witnesses

    def _left(self) -> float:
        """Seconds that are left; raises `OutOfTimeError` if there are none."""
        left = self._deadline - monotonic()
        if left < 0:
            raise OutOfTimeError("the time was up before a pattern was found")
        return left

    def _cheapest(
        self, cell: int, deviation: int, pattern: Booleans, *, whole: bool
    ) -> Integers | None:
        """A witness that adds little cost to a pattern; `whole` after linear programs
        found none.
        """
        free = np.isfinite(self._task.costs) | pattern
        price = np.where(free & ~pattern, self._price, 0.0) * self._newness(pattern)
        costs = price
        self._left()
        best = self._cubes.cheapest(cell, deviation, free, price)
        least = np.inf if best is None else float(price[self._differs(best)].sum())
        if least == 0 or (best is not None and monotonic() > self._patience):
            return best
        # Totals are expensive, and programs that may suppress them take several times
        # as long.
        table = self._cells.column >= 0
        program, open_ = self._table, np.where(table, free, pattern)
        for number in range(_ROUNDS):
            found = program.least(cell, deviation, open_, costs, seconds=self._left())
            if found is None and number == 0:
                program, open_ = self._wide, free
                found = program.least(cell, deviation, open_, costs, seconds=self._left())
            if found is None:
                break
            witness = self._exact(found, cell, deviation, free)
            if (
                witness is not None
                and (spent := float(price[self._differs(witness)].sum())) < least
            ):
                best, least = witness, spent
            if least == 0:
                break
            # A cell is suppressed however little it deviates, so what deviates much is
            # made cheap.
            moved = np.abs(self._cells.matrix @ found)
            costs = price / (moved / abs(deviation) + 0.01)
        if best is None and whole:
            found = self._wide.least(cell, deviation, free, price, whole=True, seconds=self._left())
            best = None if found is None else self._exact(found, cell, deviation, free)
        return best

    def _exact(self, found: Floats, cell: int, deviation: int, free: Booleans) -> Integers | None:
        """Deviations rounded to whole numbers, if they are then an exact witness in the
        free cells.
        """
        witness = np.rint(found).astype(np.int64)
        moved = self._cells.matrix @ witness
        task = self._task
        inside = (-task.inner_down <= witness).all() and (witness <= task.inner_up).all()
        allowed = np.where(free, (-task.down <= moved) & (moved <= task.up), moved == 0).all()
        return witness if moved[cell] == deviation and inside and allowed else None

    def _differs(self, witness: Integers) -> Booleans:
        return np.asarray(self._cells.matrix @ witness != 0)

    def _at_primaries(self, witness: Integers) -> Integers:
        return (self._cells.matrix[self._required.cells] @ witness).astype(np.int64)

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


def _ways(required: Required, position: int, most_down: int, most_up: int) -> list[tuple[int, int]]:
    """How far up and down a primary cell may deviate to meet what is required: upwards
    only, downwards only, or half of the width each way.
    """
    up, down, width = (int(part[position]) for part in (required.up, required.down, required.width))
    least, most = max(down, width - most_up), max(down, min(most_down, width - up))
    downs = dict.fromkeys([least, most, min(max(width // 2, least), most)])
    return [(max(up, width - below), below) for below in downs]
