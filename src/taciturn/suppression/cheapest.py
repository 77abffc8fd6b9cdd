"""The cheapest pattern: an integer program whose rows are found by attacking its
solutions, and its linear relaxation.

The program chooses the cells to suppress. Each solution is attacked: where a primary
cell cannot deviate as far as required, the dual solution of the attack shows which
cells limit it, and an inequality that every protecting pattern satisfies rules out this
and similar patterns (Fischetti & Salazar 2001, Management Science 47(7)). An attack by
linear programs ignores that values are whole numbers; patterns that survive it are
checked against exact bounds.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from taciturn.attack.solver import Floats, OutOfTimeError, Program
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import AttackError
from taciturn.suppression.attacks import Attacks
from taciturn.suppression.insiders import Insiders
from taciturn.suppression.limits import Limits
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import Task

__all__ = ["PatternProgram"]

_VIOLATED: Final = 1e-4  # of an inequality's right-hand side
_SLACK: Final = 1e-7  # left in each inequality for the rounding of its coefficients
_SPARE: Final = 1e-6  # of a cost, for the rounding of reduced costs
_LITTLE: Final = 1e-3  # of the bound: what raises it by less hardly helps
_IDLE: Final = 5  # relaxations in a row that hardly help
_PART: Final = 1e-6  # of a cell: less is the solver's rounding
_MORE: Final = 20  # cells, beyond twice those of a fractional pattern
_ROUNDS: Final = 20  # of the search among some cells
_NEAR_ENOUGH: Final = 1e-3  # to the cheapest of some cells

type Row = tuple[Integers, Floats]
"""The cells of an inequality, and their coefficients."""


class PatternProgram:
    """Search for the cheapest protecting pattern, also from insiders."""

    def __init__(self, task: Task, insiders: Insiders, rng: np.random.Generator) -> None:
        self._task, self._cells = task, task.cells
        self._insiders = insiders
        self._limits, self._attacks = Limits(task), Attacks(task, rng)
        free = np.isfinite(task.costs) & ~task.primaries
        # Tolerances of HiGHS are absolute.
        self._unit = float(np.median(task.costs[free])) if free.any() else 1.0
        self._costs = np.where(free, task.costs, 0.0) / self._unit
        self._lower = task.primaries.astype(float)
        self._upper = np.maximum(free, self._lower)
        self._rows: list[Row] = []
        self._least: list[float] = []
        self._relaxed, self._whole = self._program(whole=False), self._program(whole=True)
        # The bound, and that of the relaxation with the multipliers of its rows.
        self._bound = self._least_relaxed = 0.0
        self._multipliers = np.zeros(0)
        self._sums = abs(self._cells.equations)
        self._ask_for_room()

    @property
    def bound(self) -> float:
        """Lower bound of the cost of all protecting patterns."""
        return self._bound * self._unit

    @property
    def candidates(self) -> int:
        """How many cells may be secondary."""
        return int((self._upper > self._lower).sum())

    def relax(self, *, deadline: float) -> Floats:
        """Raise the bound by fractional patterns, for as long as that helps, and return
        the last of them.
        """
        idle, fractions = 0, self._lower
        while idle < _IDLE and monotonic() < deadline:
            try:
                solved = self._relaxed.solve(
                    self._costs,
                    lower=self._lower,
                    upper=self._upper,
                    seconds=deadline - monotonic(),
                )
            except AttackError:
                break
            if solved is None:
                break
            fractions = np.clip(solved.values, 0.0, 1.0)
            idle = 0 if solved.objective > self._bound * (1 + _LITTLE) + 1e-9 else idle + 1
            self._bound = max(self._bound, solved.objective)
            if solved.objective >= self._least_relaxed:
                self._least_relaxed = solved.objective
                self._multipliers = solved.duals
            if not self._forbid(fractions, deadline):
                break
        return fractions

    def leave_out(self, cost: float) -> None:
        """Leave out the cells that no pattern has which costs this much or less: their
        reduced costs alone exceed what is between the relaxation and that cost.
        """
        most = cost / self._unit * (1 + _SPARE)
        useful = (self._excess() <= most - self._least_relaxed) & (self._costs <= most)
        self._upper = np.where(useful, self._upper, self._lower)

    def _excess(self) -> Floats:
        """The reduced costs of the cells in the relaxation."""
        rows = self._matrix()[: len(self._multipliers)]
        return np.asarray(self._costs - rows.T @ self._multipliers)

    def few(self, fractions: Floats) -> Booleans:
        """The cells of a fractional pattern, and about as many that would raise its
        cost least.
        """
        return self._wider(fractions > _PART)

    def _wider(self, few: Booleans) -> Booleans:
        """About twice as many cells, the others by their reduced costs."""
        found = few.copy()
        excess = np.where(found | (self._upper == self._lower), np.inf, self._excess())
        more = int(found.sum()) - int(self._lower.sum()) + _MORE
        found[np.argsort(excess, kind="stable")[:more]] = True
        return np.asarray(found & (self._upper > 0))

    def among(self, few: Booleans, *, deadline: float) -> tuple[Booleans, bool] | None:
        """The cheapest pattern of some cells that protects in real numbers, and True;
        or the cheapest not ruled out in a few rounds, or when the time was up, and
        False. Where there is none, it is one of more cells. None if none of all cells
        is found, or the solver fails.
        """
        pattern: Booleans | None = None
        rounds = 0
        while rounds < _ROUNDS:
            try:
                solved = self._whole.solve(
                    self._costs,
                    lower=self._lower,
                    upper=np.maximum(self._lower, self._upper * few),
                    gap=_NEAR_ENOUGH,
                    seconds=deadline - monotonic(),
                )
            except AttackError:
                break
            if solved is None:
                wider = self._wider(few)
                if np.array_equal(wider, few):
                    break
                few = wider
                continue
            pattern = solved.values > 0.5
            rounds += 1
            if not self._forbid(pattern.astype(float), deadline):
                return pattern, monotonic() < deadline
        return None if pattern is None else (pattern, False)

    def next_pattern(self, *, deadline: float) -> Booleans | None:
        """The cheapest pattern not yet ruled out, which raises the bound; None if the
        time is up or the solver fails.
        """
        try:
            solved = self._whole.solve(
                self._costs, lower=self._lower, upper=self._upper, seconds=deadline - monotonic()
            )
        except AttackError:
            return None
        if solved is None:
            return None
        self._bound = max(self._bound, solved.bound)
        if monotonic() > deadline or solved.objective > solved.bound + _VIOLATED * max(
            1.0, abs(solved.bound)
        ):
            return None  # stopped before it was proved to be the cheapest
        return np.asarray(solved.values > 0.5)

    def proof(self, pattern: Booleans, *, deadline: float) -> Reach | None:
        """The proof that a pattern protects; None if it does not, and it is ruled out
        from then on. Raises `AttackError` if that is not known.
        """
        if self._forbid(pattern.astype(float), deadline):
            return None
        proof = self._attacks.proof(pattern, deadline=deadline)
        if proof is None:
            self._rule_out(pattern)
        return proof

    def of_cost(self, most: float, *, deadline: float) -> Iterator[tuple[Booleans, Reach]]:
        """Protecting patterns that cost no more than `most`, with their proofs, those
        that use few categories first.
        """
        size, categories = len(self._costs), self._cells.categories
        used = categories.shape[1]
        coo = categories.tocoo()
        each = np.arange(coo.nnz)
        holds = csr_array((np.ones(coo.nnz), (each, coo.col)), shape=(coo.nnz, used))
        held = csr_array((np.ones(coo.nnz), (each, coo.row)), shape=(coo.nnz, size))
        rows = [hstack([self._matrix(), csr_array((len(self._rows), used))])]
        rows += [
            hstack([csr_array(-self._costs[None]), csr_array((1, used))]),
            hstack([-held, holds]),
        ]
        least = np.concatenate(
            [self._least, [-most / self._unit * (1 + _SLACK)], np.zeros(coo.nnz)]
        )
        program = Program(
            csr_array(vstack(rows)),
            least,
            np.full(len(least), np.inf),
            np.concatenate([self._lower, np.zeros(used)]),
            np.concatenate([self._upper, np.ones(used)]),
            whole=np.arange(size + used) < size,
        )
        few = np.concatenate([np.zeros(size), np.ones(used)])
        while monotonic() < deadline:
            known = len(self._rows)
            try:
                solved = program.solve(few, seconds=deadline - monotonic())
                if solved is None:
                    return
                pattern = solved.values[:size] > 0.5
                proof = self.proof(pattern, deadline=deadline)
            except AttackError:
                return
            if proof is not None:
                yield pattern, proof
                # Costs are above 0, so no pattern contains another of the same cost.
                self._rule_out(pattern)
            for (cells, row), asked in zip(self._rows[known:], self._least[known:], strict=True):
                program.add_row(asked, np.inf, cells, row)

    def _program(self, *, whole: bool) -> Program:
        size = len(self._costs)
        none = np.zeros(0)
        columns = np.full(size, whole)
        return Program(csr_array((0, size)), none, none, self._lower, self._upper, whole=columns)

    def _ask_for_room(self) -> None:
        """Ask that in each sum with a primary cell the others can make up for it."""
        required, sums = self._task.required, self._cells.equations
        of_cell = sums.T.tocsr()
        asked = np.column_stack([required.up, required.down, required.width])
        for cell, least in zip(required.cells.tolist(), asked.tolist(), strict=True):
            for equation in of_cell.indices[of_cell.indptr[cell] : of_cell.indptr[cell + 1]]:
                part = slice(sums.indptr[equation], sums.indptr[equation + 1])
                cells = sums.indices[part].astype(np.int64)
                others, rooms = self._rooms(cell, cells, sums.data[part])
                for room, most in zip(rooms, least, strict=True):
                    if most > 0:
                        self._add(others, np.minimum(room / most, 1.0), 1.0)

    def _rooms(self, cell: int, cells: Integers, signs: Floats) -> tuple[Integers, list[Floats]]:
        """The others of a sum, and how far they let a cell rise, fall and both."""
        others = cells[cells != cell]
        up, down = self._task.up[others], self._task.down[others]
        # A total rises with its parts; a part rises with its total, or as others fall.
        along = signs[cells != cell] != signs[cells == cell]
        rise, fall = np.where(along, up, down), np.where(along, down, up)
        return others, [rise, fall, rise + fall]

    def _forbid(self, pattern: Floats, deadline: float) -> bool:
        """Add inequalities that a pattern violates, the simple ones first; False if it
        violates none.
        """
        before = len(self._rows)
        self._forbid_single(pattern)
        if len(self._rows) > before:
            return True
        try:
            left = self._attacks.left(pattern, deadline=deadline)
        except OutOfTimeError:
            left = np.zeros(0, dtype=np.int64)
        for position in left:
            if monotonic() > deadline:
                break
            cell, asked = self._asked(int(position))
            for row, least in self._limits.of(cell, asked, pattern, deadline):
                self._add_violated(row / least, pattern)
        if len(self._rows) == before:
            self._forbid_to_insiders(pattern, deadline)
        return len(self._rows) > before

    def _forbid_to_insiders(self, pattern: Floats, deadline: float) -> None:
        """Add inequalities for primary cells that a single contributor can work out."""
        suppressed = pattern > _PART
        for insider in self._insiders.of(suppressed):
            seen = np.where(insider.own, 0.0, suppressed)
            for cell in self._insiders.tied(insider, suppressed):
                if monotonic() > deadline:
                    return
                row = self._limits.of_any(int(cell), seen, deadline)
                if row is not None:
                    # What they know hides nothing.
                    self._add_violated(np.where(insider.own, 0.0, row), pattern)

    def _asked(self, position: int) -> tuple[int, tuple[int, int, int]]:
        """A primary cell, and how far it must be possible above, below and both."""
        required = self._task.required
        sides = (required.up, required.down, required.width)
        up, down, width = (int(side[position]) for side in sides)
        return int(required.cells[position]), (up, down, width)

    def _add_violated(self, row: Floats, pattern: Floats) -> None:
        """Add an inequality with a least value of 1, if a pattern violates it."""
        row = np.minimum(row, 1.0)  # a cell is suppressed once
        if row @ pattern < 1 - _VIOLATED:
            held = np.flatnonzero(row)
            self._add(held, row[held], 1.0)

    def _forbid_single(self, pattern: Floats) -> None:
        """Rule out sums with a single suppressed cell, which protects nothing."""
        sums = self._sums
        alone = sums.multiply(pattern[None]).tocsr()
        short = np.asarray(sums @ pattern)
        for equation in range(sums.shape[0]):
            part = slice(alone.indptr[equation], alone.indptr[equation + 1])
            ends = sums.indptr[equation], sums.indptr[equation + 1]
            held = sums.indices[slice(*ends)].astype(np.int64)
            for cell, value in zip(alone.indices[part], alone.data[part], strict=True):
                if 2 * value > short[equation] + _VIOLATED:
                    self._add(held, np.where(held == cell, -1.0, 1.0), 0.0)

    def _rule_out(self, pattern: Booleans) -> None:
        """Rule out a pattern, and with it all its parts, which protect no better."""
        others = np.flatnonzero(~pattern)
        self._add(others, np.ones(len(others)), 1.0)

    def _add(self, held: Integers, row: Floats, least: float) -> None:
        least -= _SLACK * abs(least)
        self._rows.append((held, row))
        self._least.append(least)
        self._relaxed.add_row(least, np.inf, held, row)
        self._whole.add_row(least, np.inf, held, row)

    def _matrix(self) -> csr_array:
        """All inequalities, shape (inequalities, cells)."""
        ends = np.cumsum([0, *(len(held) for held, _ in self._rows)])
        none = np.zeros(0)
        held = np.concatenate([none.astype(np.int64), *(held for held, _ in self._rows)])
        row = np.concatenate([none, *(row for _, row in self._rows)])
        return csr_array((row, held, ends), shape=(len(self._rows), len(self._costs)))
