"""Patterns for large tables: for each primary cell the cheapest way to let it deviate,
then publication of what is not needed.

A pattern protects a cell if there are tables that agree with everything published and
in which the cell is as far from its true value as required. Where there is none yet,
the cells of the cheapest such table, a witness, are suppressed. All this is done in
real numbers; of the pattern that comes out, witnesses in whole numbers prove which
cells it protects, and where these need more cells, they are suppressed as well. The
result is sound, but not necessarily the cheapest.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import Final

import numpy as np

from taciturn.attack.solver import Floats, OutOfTimeError
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.attacks import Attacks
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import ImpossibleError, Required, Task
from taciturn.suppression.witnesses import Witnesses

__all__ = ["Completed", "DeviationSearch"]

_REAL: Final = 0.8  # of the time, before whole numbers are looked for


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

    def __init__(self, task: Task, rng: np.random.Generator) -> None:
        self._aim(task)
        self._attacks, self._witnesses = Attacks(task, rng), Witnesses(task)
        self._added_for = np.full(len(task.costs), -1)  # which primary cell
        self._known: Reach | None = None
        self._kept = np.zeros(len(task.costs), dtype=np.bool_)
        self._patience = self._deadline = np.inf
        self.latest: Completed | None = None
        """What the last search had found when it ended or was interrupted."""

    def _aim(self, task: Task) -> None:
        self._task, self._required = task, task.required
        self._ways = [
            _ways(task.required, position, int(task.down[cell]), int(task.up[cell]))
            for position, cell in enumerate(task.required.cells)
        ]

    def aimed(self, task: Task) -> "DeviationSearch":
        """The same for other costs and primary cells of which no more is required."""
        other = copy(self)
        other._aim(task)
        other._attacks = self._attacks.aimed(task.required)
        other._witnesses = self._witnesses.aimed(task)
        return other

    def complete(
        self,
        suppressed: Booleans,
        order: Integers,
        *,
        deadline: float,
        on_cell: Callable[[], object] = lambda: None,
        below: float = np.inf,
        known: Reach | None = None,
        keep: bool = False,
    ) -> Completed:
        """A pattern that contains `suppressed` and protects the primary cells, which
        are taken in this order. Given cells that turn out not to be needed are
        published again, unless they are to be kept. A pattern that does not cost less
        than `below` is not proved. Some is `known` to be possible whatever is
        suppressed.

        After two fifths of the time hypercubes, the quickest witnesses to find, are
        enough. Primary cells for which there was no time, or for which the solver
        failed, are not protected by the witnesses found.

        Raises
        ------
        ImpossibleError
            No pattern protects.
        """
        start = monotonic()
        self._added_for = np.full(len(suppressed), -1)
        self._deadline = start + _REAL * (deadline - start)
        self._patience = (start + self._deadline) / 2
        self._known, self._kept = known, suppressed & keep
        self.latest = Completed(suppressed, Reach(self._required, known), False)
        reach = Reach(self._required, known)
        pattern, reach, whole = self._protected(suppressed.copy(), reach, order, on_cell)
        if self._task.cost(pattern) >= below:
            return self.latest
        self._deadline = self._patience = deadline
        self.latest = self._in_whole_numbers(pattern, reach, order, complete=whole)
        return self.latest

    def _protected(
        self, pattern: Booleans, reach: Reach, order: Integers, on_cell: Callable[[], object]
    ) -> tuple[Booleans, Reach, bool]:
        """One that protects in real numbers, and whether there was time for it."""
        try:
            self._attacks.settle(pattern, reach, deadline=self._deadline)
            for position in order:
                if not reach.enough(position):
                    pattern = self._with_protected(int(position), pattern, reach, whole=False)
                on_cell()
            hurried = monotonic() > self._patience
            if reach.all_enough():
                pattern, reach = self._without_spare(pattern, reach)
        except OutOfTimeError:
            return pattern, reach, False
        return pattern, reach, not hurried

    def _in_whole_numbers(
        self, pattern: Booleans, found: Reach, order: Integers, *, complete: bool
    ) -> Completed:
        """What this pattern protects in whole numbers, with further cells where that is
        needed.
        """
        reach = self._attacks.whole(pattern, found, Reach(self._required, self._known))
        self.latest = Completed(pattern, reach, False)
        try:
            self._attacks.settle(pattern, reach, deadline=self._deadline, whole=True)
            for position in order:
                if not reach.enough(position):
                    pattern = self._with_protected(int(position), pattern, reach, whole=True)
                    self.latest = Completed(pattern, reach, False)
        except OutOfTimeError:
            return self.latest
        return Completed(pattern, reach, complete and reach.all_enough())

    def _with_protected(
        self, position: int, pattern: Booleans, reach: Reach, *, whole: bool
    ) -> Booleans:
        """The pattern with what protects a primary cell; as it is where the solver
        fails.
        """
        try:
            if self._attacks.protects(
                position, pattern, reach, deadline=self._deadline, whole=whole
            ):
                return pattern
            witnesses = self._protecting(position, pattern, reach, whole=whole)
        except (OutOfTimeError, ImpossibleError):
            raise
        except AttackError:
            return pattern
        for witness, deviation in witnesses:
            needs = self._witnesses.differs(witness, deviation)
            self._added_for[needs & ~pattern] = position
            pattern = pattern | needs
            at_primaries = self._task.cells.matrix[self._required.cells] @ witness
            reach.add(witness, at_primaries, needs)
        return pattern

    def _protecting(
        self, position: int, pattern: Booleans, reach: Reach, *, whole: bool
    ) -> list[tuple[Floats, int]]:
        """The cheapest witnesses for a primary cell, with its deviations, of those that
        deviate above, below or on both sides.
        """
        cell = int(self._required.cells[position])
        for widest in (False, True):
            found = []
            for way in self._ways[position]:
                found.append(self._along(position, way, pattern, reach, whole=whole))
                if found[-1][1] == 0:
                    break  # protected already by what is suppressed
            witnesses, cost = min(found, key=lambda each: each[1])
            if cost < np.inf:
                return witnesses
            if not widest:
                down, up = self._task.reachable(position, deadline=self._deadline)
                up = min(up, int(self._task.up[cell]))
                # Between these two there may be values that no table of whole steps
                # attains.
                self._ways[position] = [*_ways(self._required, position, down, up), (up, down)]
        raise AttackError(f"no table was found that protects {self._task.cells.label(cell)}")

    def _along(
        self,
        position: int,
        way: tuple[int, int],
        pattern: Booleans,
        reach: Reach,
        *,
        whole: bool,
    ) -> tuple[list[tuple[Floats, int]], float]:
        """Witnesses on both sides of a primary cell, and the cost of the cells that
        they add; infinite where there are none.
        """
        witnesses, widened = [], pattern
        for deviation in (way[0], -way[1]):
            if deviation and not reach.beyond(position, deviation):
                witness = self._witnesses.cheapest(
                    int(self._required.cells[position]),
                    deviation,
                    widened,
                    deadline=self._deadline,
                    patience=self._patience,
                    whole=whole,
                )
                if witness is None:
                    return [], np.inf
                widened = widened | self._witnesses.differs(witness, deviation)
                witnesses.append((witness, deviation))
        return witnesses, float(self._task.costs[widened & ~pattern].sum())

    def _without_spare(self, pattern: Booleans, reach: Reach) -> tuple[Booleans, Reach]:
        """Publish what turns out not to be needed, the most expensive first."""
        spare = np.setdiff1d(np.flatnonzero(pattern & ~self._kept), self._required.cells)
        for cell in spare[np.argsort(-self._task.costs[spare], kind="stable")]:
            fewer = pattern.copy()
            fewer[cell] = False
            without, added_for = reach.without(int(cell)), self._added_for[cell]
            # The primary cell that it was suppressed for mostly still needs it.
            likely = [added_for] if added_for >= 0 else []
            if self._still(fewer, without, likely) and self._still(fewer, without):
                pattern, reach = fewer, without
        return pattern, reach

    def _still(
        self, pattern: Booleans, reach: Reach, positions: Sequence[int] | None = None
    ) -> bool:
        """Whether a pattern protects all primary cells, or some; adds the witnesses
        that prove it.
        """
        if positions is None:
            self._attacks.settle(pattern, reach, deadline=self._deadline)
            positions = np.flatnonzero(~reach.met()).tolist()
        try:
            return all(
                self._attacks.protects(position, pattern, reach, deadline=self._deadline)
                for position in positions
            )
        except OutOfTimeError:
            raise
        except AttackError:
            return False


def _ways(required: Required, position: int, most_down: int, most_up: int) -> list[tuple[int, int]]:
    """How far up and down a primary cell may deviate to meet what is required: upwards
    only, downwards only, or half of the width each way.
    """
    up, down, width = (int(part[position]) for part in (required.up, required.down, required.width))
    least, most = max(down, width - most_up), max(down, min(most_down, width - up))
    downs = dict.fromkeys([least, most, min(max(width // 2, least), most)])
    return [(max(up, width - below), below) for below in downs]
