"""Attacks on a pattern by linear programs: how far the primary cells can deviate, many
at once, and one by one where that is not enough.

One table in which many primary cells deviate as far as they have to protects them all,
and a few such tables mostly settle the question. An attack by linear programs ignores
that values are whole numbers; what is found is then looked for among these.
"""

from copy import copy
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.solver import ANY_SOLUTION, Floats, OutOfTimeError
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.open_programs import OpenPrograms
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import Required, Task

__all__ = ["Attacks"]

_MANY: Final = 1e6  # deviations as asked, beyond which more makes no difference
_IDLE: Final = 2  # programs in a row that settle next to nothing
_NEAR: Final = 1e-7  # of what is asked: smaller deviations are the solver's rounding
_SECONDS: Final = 2.0  # at least, for a table of whole numbers in which many cells deviate,
_SHARE: Final = 0.1  # or this share of the time left


class Attacks:
    """How far primary cells can deviate when some cells are suppressed, wholly or, for
    `left`, in part.
    """

    def __init__(self, task: Task, rng: np.random.Generator) -> None:
        self._task, self._cells = task, task.cells
        column = self._cells.column
        self._outer, self._inner = np.flatnonzero(column < 0), np.flatnonzero(column >= 0)
        self._of = column[self._inner]
        self._programs = OpenPrograms(csr_array(self._cells.matrix[self._outer]))
        self._aim(task.required)
        self._rng = rng  # of directions: any will do

    def _aim(self, required: Required) -> None:
        self._required = required
        self._at_primaries = csr_array(self._cells.matrix[required.cells])
        self._unit = max(1.0, float(required.most))

    def aimed(self, required: Required) -> "Attacks":
        """The same attacks, which start from where these ended, on other cells."""
        other = copy(self)
        other._aim(required)
        return other

    def settle(
        self, pattern: Booleans, reach: Reach, *, deadline: float, whole: bool = False
    ) -> None:
        """Add tables to `reach`, many cells at once, for as long as that settles more
        than a program for each would; raises `OutOfTimeError`.
        """
        idle = 0
        while idle < _IDLE and not reach.all_enough():
            before = reach.open_sides
            up, down = self._directions(reach)
            found = self._farthest(pattern.astype(float), up, down, deadline)
            if found is not None and whole:
                found = self._in_whole_numbers(found, up, down, pattern, deadline)
            if found is not None:
                self._add(found, pattern, reach)
            idle = idle + 1 if before - reach.open_sides < 2 + before // 100 else 0

    def whole(self, pattern: Booleans, found: Reach, reach: Reach) -> Reach:
        """`reach` with those tables found that are of whole numbers, up to rounding."""
        for deviations in found.tables(self._cells.table.size):
            if self._holds(exact := np.rint(deviations), pattern):
                self._add(exact, pattern, reach)
        return reach

    def proof(
        self, pattern: Booleans, *, deadline: float, known: Reach | None = None
    ) -> Reach | None:
        """Tables of whole numbers that prove that a pattern protects all primary cells,
        some of which may be known; None if it does not.

        Raises
        ------
        AttackError
            That is not known by the deadline.
        """
        reach = Reach(self._required) if known is None else known
        self.settle(pattern, reach, deadline=deadline, whole=True)
        for position in np.flatnonzero(~reach.met()):
            if not self.protects(int(position), pattern, reach, deadline=deadline, whole=True):
                return None
        return reach

    def left(self, pattern: Floats, *, deadline: float) -> Integers:
        """The primary cells that many at once do not show to be protected by a pattern,
        which may suppress cells in part.
        """
        reach, idle = Reach(self._required), 0
        while idle < _IDLE and not reach.all_enough():
            before = reach.open_sides
            found = self._farthest(pattern, *self._directions(reach), deadline)
            if found is None:
                break
            reach.widen(self._at_primaries @ found)
            idle = idle + 1 if before - reach.open_sides < 2 + before // 100 else 0
        return np.flatnonzero(~reach.met())

    def protects(
        self,
        position: int,
        pattern: Booleans,
        reach: Reach,
        *,
        deadline: float,
        whole: bool = False,
    ) -> bool:
        """Whether a pattern protects a primary cell; adds the tables that prove it to
        `reach`. Raises `AttackError` if that is not known.
        """
        for above in (True, False):
            goals = reach.goals()
            goal = float(goals[0 if above else 1][position])
            if goal > 0:
                up, down = np.zeros(len(goals[0])), np.zeros(len(goals[0]))
                (up if above else down)[position] = goal
                found = self._farthest(pattern.astype(float), up, down, deadline)
                if found is None:
                    raise AttackError("the solver stopped without an answer")
                if whole:
                    found = self._farthest_whole(found, up, down, pattern, deadline)
                self._add(found, pattern, reach)
        return reach.enough(position)

    def _directions(self, reach: Reach) -> tuple[Floats, Floats]:
        """How far each open primary cell is to deviate, up or down: where both are
        needed, one at random.
        """
        up, down = reach.goals()
        both = (up > 0) & (down > 0)
        upwards = self._rng.random(len(up)) < 0.5
        return np.where(both & ~upwards, 0.0, up), np.where(both & upwards, 0.0, down)

    def _farthest(
        self, pattern: Floats, up: Floats, down: Floats, deadline: float
    ) -> Floats | None:
        """Deviations of the table's cells, in which the primary cells with a goal are
        as far as can be, each by the share of its goal; None if the solver fails.
        """
        bounds = [side / self._unit for side in self._bounds(pattern, up, down)]
        try:
            found = self._programs.run(self._towards(up, down), bounds, deadline=deadline)
        except OutOfTimeError:
            raise
        except AttackError:
            return None
        return None if found is None else found * self._unit

    def _farthest_whole(
        self, found: Floats, up: Floats, down: Floats, pattern: Booleans, deadline: float
    ) -> Floats:
        """The same in whole numbers, for a single goal."""
        exact = np.rint(found)
        if self._holds(exact, pattern):
            return exact
        there = self._there(found, up, down)
        if there.any():
            table = self._reaching(there, up, down, pattern, deadline)
            if table is not None:
                return table
        bounds = self._bounds(pattern.astype(float), up, down)
        solved = self._programs.run(self._towards(up, down), bounds, deadline=deadline, whole=True)
        exact = np.rint(np.zeros_like(found) if solved is None else solved)
        if not self._holds(exact, pattern):
            raise AttackError("the solver's table of whole numbers does not add up")
        return exact

    def _in_whole_numbers(
        self, found: Floats, up: Floats, down: Floats, pattern: Booleans, deadline: float
    ) -> Floats | None:
        """A table of whole numbers in which the primary cells that reach their goals in
        this one do so, or half of them, and so on; None if there is no time for it.
        """
        exact = np.rint(found)
        if self._holds(exact, pattern):
            return exact
        kept = self._rng.permutation(np.flatnonzero(self._there(found, up, down)))
        while len(kept):
            of_kept = np.zeros(len(up), dtype=np.bool_)
            of_kept[kept] = True
            table = self._reaching(of_kept, up, down, pattern, deadline)
            if table is not None:
                return table
            if monotonic() > deadline:
                break
            kept = kept[: len(kept) // 2]
        return None

    def _there(self, found: Floats, up: Floats, down: Floats) -> Booleans:
        """Which primary cells reach their goals in a table."""
        at = self._at_primaries @ found
        above, below = (up > 0) & (at >= up - _NEAR * up), (down > 0) & (-at >= down - _NEAR * down)
        return np.asarray(above | below)

    def _reaching(
        self, kept: Booleans, up: Floats, down: Floats, pattern: Booleans, deadline: float
    ) -> Floats | None:
        """A table of whole numbers in which some primary cells reach their goals or go
        further; None if none is found quickly.
        """
        none = np.zeros(len(up))
        bounds = self._bounds(
            pattern.astype(float), none, none, np.where(kept, up, 0.0), np.where(kept, down, 0.0)
        )
        now = monotonic()
        try:
            solved = self._programs.run(
                np.zeros(len(bounds[0])),
                bounds,
                deadline=min(deadline, now + max(_SECONDS, _SHARE * (deadline - now))),
                whole=True,
                gap=ANY_SOLUTION,
            )
        except AttackError:
            return None
        exact = None if solved is None else np.rint(solved)
        return exact if exact is not None and self._holds(exact, pattern) else None

    def _towards(self, up: Floats, down: Floats) -> Floats:
        """Costs that pull primary cells towards their goals."""
        shares = np.zeros(len(up))
        shares[up > 0] = -self._unit / up[up > 0]
        shares[down > 0] = self._unit / down[down > 0]
        return np.asarray(self._at_primaries.T @ shares, dtype=np.float64)

    def _bounds(
        self,
        pattern: Floats,
        up: Floats,
        down: Floats,
        least_up: Floats | None = None,
        least_down: Floats | None = None,
    ) -> list[Floats]:
        """Bounds of the deviations of the table's cells and of the totals: no primary
        cell goes further than its goal, and some at least as far as these.
        """
        chosen, most = self._required.cells, _MANY * self._unit
        high = np.minimum(self._task.up, most) * pattern
        low = -np.minimum(self._task.down, most) * pattern
        high[chosen] = np.where(up > 0, np.minimum(high[chosen], up), high[chosen])
        low[chosen] = np.where(down > 0, np.maximum(low[chosen], -down), low[chosen])
        if least_up is not None and least_down is not None:
            low[chosen] = np.where(least_up > 0, least_up, low[chosen])
            high[chosen] = np.where(least_down > 0, -least_down, high[chosen])
        inner_low = -np.minimum(self._task.inner_down, most)
        inner_high = np.minimum(self._task.inner_up, most)
        inner_low[self._of], inner_high[self._of] = low[self._inner], high[self._inner]
        return [inner_low, inner_high, low[self._outer], high[self._outer]]

    def _holds(self, deviations: Floats, pattern: Booleans) -> bool:
        """Whether these whole numbers are a compatible table, exactly."""
        return self._task.allows(deviations.astype(np.int64), pattern)

    def _add(self, deviations: Floats, pattern: Booleans, reach: Reach) -> None:
        moved = self._cells.matrix @ deviations
        whole = np.array_equal(deviations, np.rint(deviations))
        needs = pattern & (np.abs(moved) > (0.5 if whole else _NEAR * self._unit))
        reach.add(deviations, moved[self._required.cells], np.asarray(needs))
