"""The search for a pattern: a first one, cheaper ones, and what single contributors
know. What is found is kept, whatever ends the search.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

import numpy as np

from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.cheapest import PatternProgram, Proof
from taciturn.suppression.deviations import Completed, DeviationSearch
from taciturn.suppression.task import ImpossibleError, Task, Witness

__all__ = ["Found", "PatternSearch"]

_SMALL: Final = 2_000  # cells that may be suppressed: up to these the cheapest is sought
_ORDERS: Final = 3  # of the primary cells, tried for a first pattern
_TIES: Final = 50  # patterns of the same cost, compared by their rank


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """A pattern, and what is known of it.

    Attributes
    ----------
    pattern : array of bool, shape (cells,)
        The suppressed cells.
    low, high : array of int64, shape (primary cells,)
        How far below and above its true value each primary cell is possible.
    witnesses : list of Witness or None
        The tables that prove this; None where exact bounds do.
    bound : float
        A lower bound of the cost of all patterns.
    compared : int
        The number of equally cheap ones it was chosen from.
    complete : bool
        Whether there was time for everything.
    from_singletons : array of bool, shape (primary cells,)
        Which primary cells are not proved to be protected from single contributors.
    """

    pattern: Booleans
    low: Integers
    high: Integers
    witnesses: list[Witness] | None
    bound: float
    compared: int
    complete: bool
    from_singletons: Booleans


class PatternSearch:
    """Search for the cheapest pattern until a deadline. `found` is the best so far."""

    def __init__(self, task: Task, rng: np.random.Generator, *, deadline: float) -> None:
        self.task, self._rng, self._deadline = task, rng, deadline
        self._required = task.required
        self._deviations = DeviationSearch(task)
        none = np.zeros(len(self._required.cells), dtype=np.int64)
        self.found = Found(task.primaries, none, none, [], 0.0, 1, False, none > 0)

    @property
    def proved(self) -> bool:
        """Whether all primary cells are protected by what is found."""
        return bool(self._required.met(self.found.low, self.found.high).all())

    @property
    def orders(self) -> int:
        """How often a primary cell is taken for the first pattern."""
        return _ORDERS * len(self._required.cells)

    def first(self, on_cell: Callable[[], object]) -> None:
        """The cheapest of a few patterns found by deviations."""
        required = self._required
        by_need = np.argsort(
            -np.maximum(required.width, required.up + required.down), kind="stable"
        )
        complete = True
        for number in range(_ORDERS):
            order = by_need if number == 0 else self._rng.permutation(len(required.cells))
            try:
                done = self._deviations.complete(
                    self.task.primaries, order, deadline=self._deadline, on_cell=on_cell
                )
            except BaseException:
                if number == 0 and self._deviations.latest is not None:
                    self._take_completed(self._deviations.latest)
                raise
            complete = complete and done.complete
            cheaper = self.task.cost(done.pattern) < self.task.cost(self.found.pattern)
            if number == 0 or (done.reach.all_enough() and (cheaper or not self.proved)):
                self._take_completed(done)
        self.found = replace(self.found, complete=complete and self.proved)

    def cheapest(self, gap: float) -> None:
        """The cheapest pattern, if the table is small; of those that cost the same, the
        one with the largest rank decrease.
        """
        if np.isfinite(self.task.costs).sum() > _SMALL or not self.found.complete:
            return
        task, deadline = self.task, self._deadline
        self.found = replace(self.found, complete=False)
        cost = task.cost(self.found.pattern)
        program = PatternProgram(task, cost)
        program.relax(deadline=deadline)
        order = np.arange(len(self._required.cells))
        while cost > program.bound + max(gap * cost, 1e-6 * cost):
            self.found = replace(self.found, bound=program.bound)
            found = program.next_pattern(deadline=deadline)
            self.found = replace(self.found, bound=program.bound)
            if found is None:
                return
            pattern, proof = found
            if proof is not None:
                if self.task.cost(pattern) < cost:
                    self._take(pattern, proof, None)
            else:
                program.relax(deadline=deadline)
                done = self._deviations.complete(
                    pattern, order, deadline=deadline, on_cell=lambda: None
                )
                if done.reach.all_enough() and task.cost(done.pattern) < cost:
                    self._take_completed(done)
            cost = task.cost(self.found.pattern)
        bound = cost if cost <= program.bound + 1e-6 * cost else program.bound
        self.found = replace(self.found, bound=bound)
        ended = self._compare_ties(program, cost) if bound == cost else False
        self.found = replace(self.found, complete=not ended)

    def _compare_ties(self, program: PatternProgram, cost: float) -> bool:
        """Take the pattern of this cost with the largest rank decrease; whether the
        time ended the comparison.
        """
        rank, first = self.task.rank_decrease(self.found.pattern), self.found.pattern
        for pattern, proof in program.of_cost(cost, deadline=self._deadline):
            if np.array_equal(pattern, first):
                continue
            decrease = self.task.rank_decrease(pattern)
            if decrease > rank:
                self._take(pattern, proof, None)
                rank = decrease
            self.found = replace(self.found, compared=self.found.compared + 1)
            if self.found.compared >= _TIES:
                break
        return monotonic() > self._deadline

    def hide_from(self, singletons: Booleans, deadline: float) -> None:
        """Suppress further cells, so that no single contributor of a suppressed cell
        can work out a primary one.

        If two cells have a single contributor and one is part of the other, it is the
        same contributor, who knows both.
        """
        task, met = self.task, np.zeros_like(singletons)
        while len(left := np.flatnonzero(self.found.pattern & singletons & ~met)):
            cell = int(left[0])
            own = task.cells.nested(cell) & singletons
            met |= own
            insider, seen = task.known_to(own), self.found.pattern & ~own
            try:
                if insider.proof(seen, deadline=deadline) is not None:
                    continue
            except AttackError:
                pass  # not known: suppress what is known to be enough
            try:
                done = self._completed(insider, seen, deadline)
            except ImpossibleError as error:
                raise ImpossibleError(
                    f"for the single contributor of {task.cells.label(cell)} {error}"
                ) from error
            # Suppressing more leaves every attacker at least as uncertain.
            hidden = self.found.pattern | done.pattern
            proved = insider.witnessed(task.cells.system(hidden & ~own), done.reach.witnesses)
            unsafe = insider.required.cells[~insider.required.met(*proved)]
            self.found = replace(
                self.found,
                pattern=hidden,
                from_singletons=self.found.from_singletons | np.isin(self._required.cells, unsafe),
                complete=self.found.complete and not len(unsafe),
            )

    def _completed(self, insider: Task, seen: Booleans, deadline: float) -> Completed:
        """A pattern that protects from an insider, as far as there is time."""
        order = np.arange(len(insider.required.cells))
        return DeviationSearch(insider).complete(
            seen, order, deadline=deadline, on_cell=lambda: None
        )

    def _take_completed(self, done: Completed) -> None:
        self._take(done.pattern, done.reach.deviations, done.reach.witnesses)

    def _take(self, pattern: Booleans, proof: Proof, witnesses: list[Witness] | None) -> None:
        low, high = (side.copy() for side in proof)
        self.found = replace(
            self.found, pattern=pattern.copy(), low=low, high=high, witnesses=witnesses
        )
