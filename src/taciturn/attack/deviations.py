"""Patterns for large tables: for each primary cell the cheapest way to let it deviate, then publish what is spare.

A pattern protects a cell if there are tables that agree with everything published and in which the cell is as far from
its value as asked. Each step looks for such a table, a witness, that differs from the true one where it costs least;
the cells in which it differs are suppressed. What is found is therefore sound, but need not be the cheapest.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from taciturn.attack.hypercubes import Hypercubes
from taciturn.attack.published import PublishedCells, Required
from taciturn.attack.solver import Floats, OutOfTimeError, Program
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError

__all__ = ["DeviationSearch"]

_TOLERANCE: Final = 1e-6
_ROUNDS: Final = 3  # of linear programs for one witness
_SPREAD: Final = 1e-3  # what a category that is new to a pattern adds to a cost: propositions 1 to 3 want few of them


class DeviationSearch:
    """Completes sets of suppressed cells so that all primary cells are protected.

    Parameters
    ----------
    cells : PublishedCells
        What may be suppressed, and its costs.
    required : Required
        What must be left open.
    reachable : callable
        How far a primary cell, by its position, can deviate down and up when all that may be is suppressed; it raises
        if that is not enough. It is called only for cells that no witness was found for without.

    Attributes
    ----------
    ceiling : int
        More than any cell of the table has to hold in a witness.
    """

    def __init__(
        self,
        cells: PublishedCells,
        required: Required,
        reachable: Callable[[int], tuple[int, int]],
    ) -> None:
        self._cells, self._required, self._reachable = cells, required, reachable
        asked = np.maximum(required.width, np.maximum(required.up, required.down)).max(initial=0)
        self.ceiling = int(cells.table.values.sum() + asked + 1)
        self._ways = [
            _ways(required, position, int(cells.values[cell]), self.ceiling)
            for position, cell in enumerate(required.cells)
        ]
        self._cubes = Hypercubes(cells)
        self._table = _Deviations(cells, self.ceiling, totals=False)
        self._wide = _Deviations(cells, self.ceiling, totals=True)

    def complete(
        self, suppressed: Booleans, order: Integers, *, deadline: float, on_cell: Callable[[], object]
    ) -> tuple[Booleans, bool]:
        """A pattern that holds `suppressed` and protects the primary cells, taken in this order.

        After half of the time hypercubes will do, the quickest witnesses. Also says whether there was time for all.

        Raises
        ------
        OutOfTimeError
            The deadline is over before there is one.
        """
        pattern = suppressed.copy()
        reach = _Reach(self._required)
        patience = (monotonic() + deadline) / 2
        for position in order:
            if not reach.enough(position):
                _check_time(deadline)
                for witness in self._protecting(int(position), pattern, reach, patience, deadline):
                    pattern |= self._differs(witness)
                    reach.add(self._at_primaries(witness), self._differs(witness))
            on_cell()
        hurried = monotonic() > patience
        pattern, whole = self._without_spare(pattern, reach, deadline)
        return pattern, whole and not hurried

    def _protecting(
        self, position: int, pattern: Booleans, reach: "_Reach", patience: float, deadline: float
    ) -> list[Integers]:
        """The witnesses for a primary cell that cost least, of those that deviate above, below or on both sides."""
        found = [self._along(position, way, pattern, reach, patience) for way in self._ways[position]]
        best = min(found, key=lambda witnesses: witnesses[1])
        if best[1] < np.inf:
            return best[0]
        down, up = self._reachable(position)
        self._ways[position] = _ways(self._required, position, down, up)
        found = [self._along(position, way, pattern, reach, patience, deadline) for way in self._ways[position]]
        best = min(found, key=lambda witnesses: witnesses[1])
        if best[1] == np.inf:
            cell = self._cells.label(int(self._required.cells[position]))
            raise AttackError(f"no table of whole steps was found that protects {cell}")
        return best[0]

    def _along(
        self,
        position: int,
        way: tuple[int, int],
        pattern: Booleans,
        reach: "_Reach",
        patience: float,
        deadline: float | None = None,
    ) -> tuple[list[Integers], float]:
        """Witnesses of both sides of a primary cell, and what the cells that they add cost; infinite without any.

        With a deadline integer programs look for witnesses that linear ones do not find.
        """
        witnesses, widened = [], pattern
        for deviation in (way[0], -way[1]):
            if deviation and not reach.beyond(position, deviation):
                witness = self._cheapest(int(self._required.cells[position]), deviation, widened, patience, deadline)
                if witness is None:
                    return [], np.inf
                widened = widened | self._differs(witness)
                witnesses.append(witness)
        return witnesses, float(self._cells.costs[widened & ~pattern].sum())

    def _without_spare(self, pattern: Booleans, reach: "_Reach", deadline: float) -> tuple[Booleans, bool]:
        """Publish again, the dearest first, what is not needed, as long as there is time."""
        spare = np.setdiff1d(np.flatnonzero(pattern), self._required.cells)
        for cell in spare[np.argsort(-self._cells.costs[spare], kind="stable")]:
            if monotonic() > deadline:
                return pattern, False
            fewer = pattern.copy()
            fewer[cell] = False
            without = reach.without(int(cell))
            if self._still(fewer, without, deadline):
                pattern, reach = fewer, without
        return pattern, True

    def _still(self, pattern: Booleans, reach: "_Reach", deadline: float) -> bool:
        """Whether a pattern protects; adds the witnesses that show it."""
        for position in range(len(self._required.cells)):
            if reach.enough(position):
                continue
            for way in self._ways[position]:
                if monotonic() > deadline:
                    return False
                witnesses = self._within(position, way, pattern, reach)
                if witnesses is not None:
                    break
            else:
                return False
            for witness in witnesses:
                reach.add(self._at_primaries(witness), self._differs(witness))
        return True

    def _within(self, position: int, way: tuple[int, int], pattern: Booleans, reach: "_Reach") -> list[Integers] | None:
        """Witnesses that differ in suppressed cells only; None where linear programs find none in whole numbers."""
        cell = int(self._required.cells[position])
        none = np.zeros(len(pattern))
        witnesses = []
        for deviation in (way[0], -way[1]):
            if deviation and not reach.beyond(position, deviation):
                witness = self._cubes.cheapest(cell, deviation, pattern, none)
                if witness is None:
                    found = self._table.least(cell, deviation, pattern, none)
                    witness = None if found is None else self._exact(found, cell, deviation)
                if witness is None:
                    return None
                witnesses.append(witness)
        return witnesses

    def _cheapest(
        self, cell: int, deviation: int, pattern: Booleans, patience: float, deadline: float | None
    ) -> Integers | None:
        """A witness whose cells that are not suppressed yet cost little."""
        free = np.isfinite(self._cells.costs) | pattern
        price = np.where(free & ~pattern, self._cells.costs, 0.0) * self._newness(pattern)
        costs = price
        best = self._cubes.cheapest(cell, deviation, free, price)
        if best is not None and monotonic() > patience:
            return best
        least = np.inf if best is None else float(price[self._differs(best)].sum())
        # Totals are dear, and programs that may suppress them take several times as long.
        table = self._cells.column >= 0
        narrow = self._table.least(cell, deviation, np.where(table, free, pattern), costs)
        for number in range(_ROUNDS):
            if narrow is None:
                found = self._wide.least(cell, deviation, free, costs)
            elif number:
                found = self._table.least(cell, deviation, np.where(table, free, pattern), costs)
            else:
                found = narrow
            if found is None:
                return best
            witness = self._exact(found, cell, deviation)
            if witness is not None and (spent := float(price[self._differs(witness)].sum())) < least:
                best, least = witness, spent
            if least == 0:
                break
            # A cell is suppressed whole however little it deviates, so what deviates much is made cheap.
            moved = np.abs(self._cells.matrix @ found)
            costs = price / (moved / abs(deviation) + 0.01)
        if best is None and deadline is not None:
            found = self._wide.least(cell, deviation, free, price, whole=True, seconds=deadline - monotonic())
            best = None if found is None else self._exact(found, cell, deviation)
        return best

    def _exact(self, found: Floats, cell: int, deviation: int) -> Integers | None:
        """The deviations as whole numbers, if they are; their totals then hold exactly."""
        whole = np.rint(found).astype(np.int64)
        if np.abs(found - whole).max(initial=0) > _TOLERANCE:
            return None
        moved = self._cells.matrix[[cell]] @ whole
        return whole if moved[0] == deviation and (self._cells.table.values.ravel() + whole >= 0).all() else None

    def _differs(self, witness: Integers) -> Booleans:
        return np.asarray(self._cells.matrix @ witness != 0)

    def _at_primaries(self, witness: Integers) -> Integers:
        return (self._cells.matrix[self._required.cells] @ witness).astype(np.int64)

    def _newness(self, pattern: Booleans) -> Floats:
        """A little more than 1 for cells with categories that no suppressed cell has."""
        return np.asarray(1 + _SPREAD * self._cells.new_categories(pattern), dtype=np.float64)


class _Deviations:
    """Programs for the deviations of a table from its true values that cost least.

    Columns are deviations up and down of the table's cells and, with `totals`, of the released totals. Without, the
    totals that are suppressed may deviate at no cost, and the others not at all.
    """

    def __init__(self, cells: PublishedCells, ceiling: int, *, totals: bool) -> None:
        self._cells, self._ceiling, self._totals = cells, ceiling, totals
        inner = cells.column >= 0
        self._released = bool(inner.any())
        self._outer = np.flatnonzero(~inner)
        self._size, m = cells.table.size, len(self._outer)
        self._cell_of = np.full(self._size, -1)
        self._cell_of[cells.column[inner]] = np.flatnonzero(inner)
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
        """Deviations of the table's cells, with one published cell's fixed; None if the free cells have none."""
        values, size = self._cells.values, float(abs(deviation))
        up, down = np.where(free, float(self._ceiling), 0.0), np.where(free, values, 0).astype(float)
        low_up, low_down = np.zeros(len(values)), np.zeros(len(values))
        up[cell], low_up[cell] = (size, size) if deviation > 0 else (0.0, 0.0)
        down[cell], low_down[cell] = (size, size) if deviation < 0 else (0.0, 0.0)
        table = self._cells.table.values.ravel()
        upper = [self._inner(up, self._ceiling), self._inner(down, table)]
        lower = [self._inner(low_up, 0), self._inner(low_down, 0)]
        price = [self._inner(costs, 0), self._inner(costs, 0)]
        outer = self._outer
        if self._totals:
            upper, lower = [*upper, up[outer], down[outer]], [*lower, low_up[outer], low_down[outer]]
            price += [costs[outer], costs[outer]]
            least = most = np.zeros(len(outer))
        else:
            least, most = (low_up - down)[outer], (up - low_down)[outer]
        high, low = np.concatenate(upper), np.concatenate(lower)
        if whole not in self._programs:
            self._programs[whole] = Program(self._matrix, least, most, low, high, whole=np.full(len(high), whole))
        solved = self._programs[whole].solve(
            np.concatenate(price) + 1e-6,  # so that no cell deviates up and down at once, or for nothing
            lower=low,
            upper=high,
            least=least,
            most=most,
            gap=0.1,
            seconds=seconds,
        )
        return None if solved is None else solved.values[: self._size] - solved.values[self._size : 2 * self._size]

    def _inner(self, cells: Floats, otherwise: object) -> Floats:
        """Values of the table's own cells; `otherwise` where the table is not released."""
        if not self._released:
            return np.broadcast_to(np.asarray(otherwise, dtype=float), (self._size,)).copy()
        return np.asarray(cells[self._cell_of], dtype=np.float64)


class _Reach:
    """How far witnesses let each primary cell deviate, and which cells each witness needs."""

    def __init__(self, required: Required) -> None:
        self._required = required
        self._found: list[tuple[Integers, Booleans]] = []
        self._high = np.zeros(len(required.cells), dtype=np.int64)
        self._low = np.zeros(len(required.cells), dtype=np.int64)

    def enough(self, position: int) -> bool:
        """Whether a primary cell is protected."""
        low, high = int(self._low[position]), int(self._high[position])
        required = self._required
        enough = high >= required.up[position] and -low >= required.down[position]
        return bool(enough and high - low >= required.width[position])

    def beyond(self, position: int, deviation: int) -> bool:
        """Whether a primary cell can deviate so far."""
        return bool(self._high[position] >= deviation if deviation > 0 else self._low[position] <= deviation)

    def add(self, at_primaries: Integers, needs: Booleans) -> None:
        self._found.append((at_primaries, needs))
        np.maximum(self._high, at_primaries, out=self._high)
        np.minimum(self._low, at_primaries, out=self._low)

    def without(self, cell: int) -> "_Reach":
        """What is left when a cell is published."""
        left = _Reach(self._required)
        for at_primaries, needs in self._found:
            if not needs[cell]:
                left.add(at_primaries, needs)
        return left


def _check_time(deadline: float) -> None:
    if monotonic() > deadline:
        raise OutOfTimeError("no pattern was found within time_limit; a longer one, or a weaker protection, may do")


def _ways(required: Required, position: int, most_down: int, most_up: int) -> list[tuple[int, int]]:
    """How far to deviate up and down for what is asked: above only, below only, or half of the width each."""
    up, down, width = (int(part[position]) for part in (required.up, required.down, required.width))
    least, most = max(down, width - most_up), max(down, min(most_down, width - up))
    downs = dict.fromkeys([least, most, min(max(width // 2, least), most)])
    return [(max(up, width - below), below) for below in downs]
