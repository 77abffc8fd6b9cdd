"""Attained bounds of the cells of one connected part of a system: by linear programs,
and by tables of whole numbers that attain what these allow.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

import numpy as np

from taciturn.attack.bounds.branching import whole_table
from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.bounds.propagation import ContradictionError
from taciturn.attack.bounds.recession import unlimited_sides
from taciturn.attack.solver import ANY_SOLUTION, Floats, OutOfTimeError, Program, Solved
from taciturn.attack.system import UNLIMITED, Booleans, Integers, open_ended
from taciturn.errors import AttackError

__all__ = ["Component"]

_TOLERANCE: Final = 1e-6  # of HiGHS, for whole numbers; of relative size for large ones
_TRIES: Final = 12  # of branching for a table of whole numbers, before an integer program
_HASTY: Final = 10  # of these, the first, which round many cells at once
_IDLE: Final = 2  # looks in a row that settle next to nothing
_SHARE: Final = 0.25  # of the time left, for an integer program: HiGHS may overrun long ones


class Component:
    """The tables of some cells: whole numbers within bounds of cells and rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    lower, upper : array of int64, shape (n,)
        Bounds of the cells.
    deadline : float
        When to stop, by the monotonic clock.
    signed : bool
        Whether cells or terms of rows may be negative, so that rows alone do not limit
        them.

    Attributes
    ----------
    lower, upper : array of int64, shape (n,)
        What no table goes beyond, as far as is known.
    low_found, high_found : array of int64, shape (n,)
        The least and the most of each cell in the tables found so far.
    """

    def __init__(
        self, rows: Rows, lower: Integers, upper: Integers, deadline: float, *, signed: bool
    ) -> None:
        self._rows, self._deadline, self._signed = rows, deadline, signed
        self.lower, self.upper = lower, upper
        self.low_found = np.full(len(lower), UNLIMITED)
        self.high_found = np.full(len(lower), -UNLIMITED)
        self._some = False  # table has been found
        self._programs: dict[str, Program] = {}
        # Of costs that do not matter: bounds are exact for any.
        self._generator = np.random.default_rng(0)

    def keep(self, table: Integers) -> None:
        """Remember what a table attains, if it holds exactly."""
        if self._rows.hold(table, self.lower, self.upper):
            self._some = True
            np.minimum(self.low_found, table, out=self.low_found)
            np.maximum(self.high_found, table, out=self.high_found)

    def solve(
        self, asked: Booleans, on_cell: Callable[[], object], *, apart: int = UNLIMITED
    ) -> None:
        """Narrow the bounds of the asked cells to what is attained; of those that no
        two tables set so far apart.
        """
        cells = np.flatnonzero(asked).tolist()
        if self._rows.matrix.shape[0] > 1:
            # One total gives all bounds of its cells by itself, and they are attained.
            if self._signed:
                self._leave_unlimited(asked)
            self._many(asked & ~self._are_apart(apart))
            for cell in cells:
                for sign in (-1, 1):
                    if not (self._attained(cell, sign) or self._are_apart(apart)[cell]):
                        self._narrow(cell, sign)
            self._many(asked & ~self._are_apart(apart))
        for cell in cells:
            if self._rows.matrix.shape[0] > 1:
                for sign in (-1, 1):
                    if not self._are_apart(apart)[cell]:
                        self._attain(cell, sign)
            on_cell()

    def _are_apart(self, apart: int) -> Booleans:
        """Which cells two of the tables found set so far apart."""
        if apart >= UNLIMITED:  # nor is a cell without a bound on one side
            return np.zeros(len(self.lower), dtype=np.bool_)
        return self.high_found >= self.low_found + apart

    def _leave_unlimited(self, asked: Booleans) -> None:
        """Take sides on which a cell has no bound for settled."""
        below, above = unlimited_sides(
            self._rows.matrix,
            (self._rows.least, self._rows.most),
            (self.lower, self.upper),
            asked,
            deadline=self._deadline,
        )
        self.low_found[below], self.high_found[above] = -UNLIMITED, UNLIMITED

    def _many(self, asked: Booleans) -> None:
        """Find tables with many cells at their bounds at once, while that settles more
        than one program each would.
        """
        idle = 0
        while idle < _IDLE:
            open_low = asked & (self.low_found > self.lower)
            open_high = asked & (self.high_found < self.upper)
            before = int(open_low.sum() + open_high.sum())
            if before == 0:
                return
            # A cell open on both sides is pulled in one direction.
            upwards = open_high & ~(open_low & (self._generator.random(len(asked)) < 0.5))
            costs = np.where(upwards, -1.0, np.where(open_low, 1.0, 0.0))
            costs *= self._generator.random(len(costs))
            lower, upper = self.lower.copy(), self.upper.copy()
            solved = self._solve("near", costs, lower, upper)
            if solved is None:
                return
            self.keep(np.rint(solved.values).astype(np.int64))
            low = open_low & (costs > 0) & (solved.values < self.lower + _TOLERANCE)
            high = upwards & (solved.values > self.upper - _TOLERANCE)
            upper[low], lower[high] = lower[low], upper[high]
            self._look(costs, lower, upper)
            after = int((asked & (self.low_found > self.lower)).sum())
            after += int((asked & (self.high_found < self.upper)).sum())
            idle = idle + 1 if before - after < 2 else 0

    def _narrow(self, cell: int, sign: int) -> None:
        """Narrow the lower (-1) or upper (1) bound of a cell to what a linear program
        allows, as far as its multipliers prove it.
        """
        costs = np.zeros(len(self.lower), dtype=np.int64)
        costs[cell] = sign
        found = self._bounding(-costs)
        value = sign * found.values[cell]
        goal = int(np.floor(value + _TOLERANCE * max(1.0, 1e-6 * abs(value))))
        ceiling = self._rows.ceiling(costs, self.lower, self.upper, -found.duals, goal=goal)
        if ceiling is not None:
            self._cut(cell, sign, sign * ceiling)
        self.keep(np.rint(found.values).astype(np.int64))

    def _cut(self, cell: int, sign: int, bound: int) -> None:
        if sign < 0:
            self.lower[cell] = max(self.lower[cell], bound)
        else:
            self.upper[cell] = min(self.upper[cell], bound)

    def _attain(self, cell: int, sign: int) -> None:
        """Find a table with a cell at its bound, or narrow the bound to one that there
        is.
        """
        if self._attained(cell, sign):
            return
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[cell] = upper[cell] = self.lower[cell] if sign < 0 else self.upper[cell]
        # A cell that is not known to have a bound must not pull: it may have none.
        down = (self.low_found > self.lower) & (self.lower > -UNLIMITED)
        up = (self.high_found < self.upper) & (self.upper < UNLIMITED)
        costs = down.astype(float) - up
        for number in range(_TRIES):
            # Sizes of costs are arbitrary, and each choice ends in another table.
            weighted = costs * self._generator.random(len(costs))
            none = self._look(weighted, lower, upper, thorough=number >= _HASTY)
            if self._attained(cell, sign):
                return
            if none:
                break
        else:
            found = self._solve("whole", np.zeros(len(lower)), lower, upper, gap=ANY_SOLUTION)
            if found is not None:
                self.keep(np.rint(found.values).astype(np.int64))
        if not self._attained(cell, sign):
            self._by_integer_program(cell, sign)

    def _by_integer_program(self, cell: int, sign: int) -> None:
        """Take an integer program's word for how far a cell goes, unless branching
        finds a table that goes further; mostly it proves that there is none.
        """
        costs = np.zeros(len(self.lower))
        costs[cell] = -sign
        found = self._solve("whole", costs, self.lower, self.upper, sure=True)
        if found is None:
            raise self._none()
        self.keep(np.rint(found.values).astype(np.int64))
        value = round(found.values[cell])
        lower, upper = self.lower.copy(), self.upper.copy()
        (upper if sign < 0 else lower)[cell] = value + sign
        if lower[cell] <= upper[cell]:
            self._look(costs, lower, upper, thorough=True)
        best = int(self.low_found[cell] if sign < 0 else self.high_found[cell])
        if sign * best < sign * value:
            raise AttackError(
                f"the solver's {'lower' if sign < 0 else 'upper'} bound of a cell is attained by no"
                " table of whole numbers of steps; fewer decimals give smaller numbers"
            )
        self._cut(cell, sign, best)

    def _look(
        self, costs: Floats, lower: Integers, upper: Integers, *, thorough: bool = False
    ) -> bool:
        """Look for a table within bounds by branching; whether it is proved that there
        is none.
        """
        self._check_time()
        table, none = whole_table(
            self._program("near"),
            self._rows,
            lower,
            upper,
            costs,
            generator=self._generator,
            thorough=thorough,
            deadline=self._deadline,
        )
        if table is not None:
            self.keep(table)
        return none

    def _attained(self, cell: int, sign: int) -> bool:
        if sign < 0:
            return bool(self.low_found[cell] <= self.lower[cell])
        return bool(self.high_found[cell] >= self.upper[cell])

    def _bounding(self, costs: Integers) -> Solved:
        """The solution of a linear program over all tables."""
        found = self._solve("bounds", costs, self.lower, self.upper, onwards=True)
        if found is not None:
            return found
        if not self._rows.rule_out(self.lower, self.upper, self._programs["bounds"].ray()):
            found = self._solve("bounds", costs, self.lower, self.upper, sure=True)
        if found is None:
            raise self._none()
        return found

    def _none(self) -> Exception:
        if self._some:
            return AttackError("the solver finds no table, although one is known")
        return ContradictionError()

    def _program(self, use: str) -> Program:
        if use not in self._programs:
            whole = self._rows.free if use == "whole" else None
            self._programs[use] = Program(
                self._rows.matrix,
                open_ended(self._rows.least),
                open_ended(self._rows.most),
                open_ended(self.lower),
                open_ended(self.upper),
                whole=whole,
            )
        return self._programs[use]

    def _check_time(self) -> float:
        seconds = self._deadline - monotonic()
        if seconds < 0:
            raise OutOfTimeError("the time was up before all bounds were known")
        return seconds

    def _solve(
        self,
        use: str,
        costs: Floats | Integers,
        lower: Integers,
        upper: Integers,
        *,
        gap: float = 0.0,
        sure: bool = False,
        onwards: bool = False,
    ) -> Solved | None:
        """A solution of least cost, up to the gap; None where there is none."""
        seconds = self._check_time() * (_SHARE if use == "whole" else 1.0)
        return self._program(use).solve(
            costs,
            lower=open_ended(lower),
            upper=open_ended(upper),
            gap=gap,
            seconds=seconds,
            sure=sure,
            onwards=onwards,
        )
