"""The search for a pattern: a first one, cheaper ones, and what single contributors
know. What is found is kept, whatever ends the search.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import Final

import numpy as np

from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.cheapest import PatternProgram
from taciturn.suppression.deviations import Completed, DeviationSearch
from taciturn.suppression.insiders import Insiders
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import ImpossibleError, Task, Witness

__all__ = ["Found", "PatternSearch"]

_SMALL: Final = 2_000  # cells that may be suppressed: up to these the cheapest is sought
_TIES: Final = 50  # patterns of the same cost, compared by their rank
_RELAX: Final = 0.4  # of the time, for the relaxation
_AMONG: Final = 0.2  # of the time, for the cheapest pattern of few cells


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """A pattern, and what is known of it.

    Attributes
    ----------
    pattern : array of bool, shape (cells,)
        The suppressed cells.
    low, high : array of int64, shape (primary cells,)
        How far below and above its true value each primary cell is possible.
    witnesses : list of Witness
        The tables that prove this.
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
    witnesses: list[Witness]
    bound: float
    compared: int
    complete: bool
    from_singletons: Booleans


class PatternSearch:
    """Search for the cheapest pattern until a deadline. `found` is the best so far."""

    def __init__(
        self, task: Task, rng: np.random.Generator, singletons: Booleans, *, deadline: float
    ) -> None:
        self._insiders = Insiders(task, singletons)
        self.task, self._rng, self._deadline = task, rng, deadline
        self._start = monotonic()
        self._required = task.required
        self._deviations = DeviationSearch(task, rng)
        self._program = PatternProgram(task, self._insiders, rng)
        self._few = task.primaries
        none = np.zeros(len(self._required.cells), dtype=np.int64)
        # Until `hide_from_singletons` has seen to them, no cell is safe from these.
        exposed = np.full(len(none), singletons.any())
        self.found = Found(task.primaries, none, none, [], 0.0, 1, False, exposed)

    @property
    def _cost(self) -> float:
        return self.task.cost(self.found.pattern)

    @property
    def proved(self) -> bool:
        """Whether all primary cells are protected by what is found."""
        return bool(self._required.met(self.found.low, self.found.high).all())

    def first(self, on_cell: Callable[[], object]) -> None:
        """The cheapest pattern of the cells that the linear relaxation suppresses in
        part, and some others, with what else is needed.
        """
        ended = self._until(_RELAX)
        self._few = self._program.few(self._program.relax(deadline=ended))
        complete = monotonic() < ended
        among = self._program.among(self._few, deadline=self._until(_AMONG))
        start, keep = (self._few, False) if among is None else among
        try:
            done = self._deviations.complete(
                start,
                self._required.by_need(),
                deadline=self._deadline,
                on_cell=on_cell,
                keep=keep,
            )
        except BaseException:
            if self._deviations.latest is not None:
                self._take(self._deviations.latest)
            raise
        self._take(done)
        self.found = replace(
            self.found, bound=self._bound, complete=complete and done.complete and self.proved
        )

    def cheapest(self, gap: float) -> None:
        """The cheapest pattern, if it is one of few cells; of those that cost the same,
        the one with the largest rank decrease.
        """
        if not self.proved:
            return
        deadline, program = self._deadline, self._program
        complete = self.found.complete
        self.found = replace(self.found, complete=False)
        self._among_few()
        while not self._good_enough(gap):
            program.leave_out(self._cost)
            if program.candidates > _SMALL:
                self.found = replace(self.found, complete=complete and monotonic() < deadline)
                return
            pattern = program.next_pattern(deadline=deadline)
            self.found = replace(self.found, bound=self._bound)
            if pattern is None:
                return
            if self._good_enough(gap):
                break
            try:
                proof = program.proof(pattern, deadline=deadline)
            except AttackError:
                return  # whether it protects is not known, so it cannot be ruled out
            if proof is None:
                program.relax(deadline=deadline)
                self._complete(pattern, False)
            elif self.task.cost(pattern) < self._cost:
                self._take(Completed(pattern, proof, True))
        ended = False
        if self._good_enough(0.0):
            self.found = replace(self.found, bound=self._cost)
            program.leave_out(self._cost)
            ended = self._compare_ties()
        self.found = replace(self.found, complete=complete and not ended)

    def _among_few(self) -> None:
        """Try the cheapest pattern of the cells that were of use so far."""
        self._few = self._few | self.found.pattern
        among = self._program.among(self._few, deadline=self._until(_AMONG))
        if among is not None:
            self._complete(*among)

    def _complete(self, pattern: Booleans, protects: bool) -> None:
        """Take a pattern with what else it needs, if that is cheaper than what was
        found. Where it `protects` in real numbers, all its cells are kept.
        """
        if self.task.cost(pattern) >= self._cost:
            return
        done = self._deviations.complete(
            pattern,
            self._required.by_need(),
            deadline=self._deadline,
            below=self._cost,
            keep=protects,
        )
        if done.reach.all_enough() and self.task.cost(done.pattern) < self._cost:
            self._take(done)

    def _until(self, share: float) -> float:
        """When a share of the time will have passed from now on."""
        return min(self._deadline, monotonic() + share * (self._deadline - self._start))

    @property
    def _bound(self) -> float:
        """Lower bound of the cost: patterns that cost more than the one found are of no
        interest to the program.
        """
        return min(self._program.bound, self._cost) if self.proved else self._program.bound

    def _good_enough(self, gap: float) -> bool:
        """Whether no pattern is cheaper by more than a share of the cost."""
        return self._cost <= self.found.bound + max(gap, 1e-6) * self._cost

    def _compare_ties(self) -> bool:
        """Take the pattern of this cost with the largest rank decrease; whether the
        time ended the comparison.
        """
        rank, first = self.task.rank_decrease(self.found.pattern), self.found.pattern
        for pattern, proof in self._program.of_cost(self._cost, deadline=self._deadline):
            if np.array_equal(pattern, first):
                continue
            decrease = self.task.rank_decrease(pattern)
            if decrease > rank:
                self._take(Completed(pattern, proof, True))
                rank = decrease
            self.found = replace(self.found, compared=self.found.compared + 1)
            if self.found.compared >= _TIES:
                break
        return monotonic() > self._deadline

    @cached_property
    def _for_anyone(self) -> DeviationSearch:
        """Searches of what nobody must work out, set up once for all insiders."""
        nobody = np.zeros_like(self.task.primaries)
        return DeviationSearch(self.task.known_to(nobody), self._rng)

    def hide_from_singletons(self, deadline: float) -> None:
        """Suppress further cells, so that no single contributor of a suppressed cell
        can work out a primary one.
        """
        task, met = self.task, set[int]()
        exposed = np.zeros_like(self.found.from_singletons)
        while (insider := next(self._insiders.of(self.found.pattern, met), None)) is not None:
            if monotonic() > deadline:
                self.found = replace(self.found, complete=False)
                return
            met.add(insider.number)
            inside, seen = task.known_to(insider.own), self.found.pattern & ~insider.own
            reach = Reach(inside.required)
            hidden = self._insiders.hidden(insider, self.found.pattern)
            reach.widen(hidden[~insider.own[self._required.cells]].astype(float))
            if reach.all_enough():
                continue
            try:
                done = self._for_anyone.aimed(inside).complete(
                    seen,
                    inside.required.by_need(),
                    deadline=deadline,
                    known=reach,
                    keep=True,
                )
            except ImpossibleError as error:
                cell = task.cells.label(int(np.argmax(insider.own)))
                raise ImpossibleError(f"for the single contributor of {cell} {error}") from error
            # Suppressing more leaves every attacker at least as uncertain.
            pattern = self.found.pattern | done.pattern
            unsafe = inside.required.cells[~done.reach.met()]
            self.found = replace(
                self.found,
                pattern=pattern,
                complete=self.found.complete and not len(unsafe),
            )
            exposed |= np.isin(self._required.cells, unsafe)
        self.found = replace(self.found, from_singletons=exposed)

    def _take(self, done: Completed) -> None:
        low, high = done.reach.deviations
        self.found = replace(
            self.found,
            pattern=done.pattern.copy(),
            low=low,
            high=high,
            witnesses=done.reach.witnesses,
        )
