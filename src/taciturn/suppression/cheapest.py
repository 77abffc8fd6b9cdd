"""The cheapest pattern for small tables: an integer program whose rows are found by
attacking its solutions.

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
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError
from taciturn.suppression.attacks import Attacks
from taciturn.suppression.reach import Reach
from taciturn.suppression.task import Task

__all__ = ["PatternProgram"]

_VIOLATED: Final = 1e-4  # of an inequality's right-hand side
_SLACK: Final = 1e-7  # left in each inequality for the rounding of its coefficients
_COST: Final = 1e3  # of the first pattern, in the programs' units
_MANY: Final = 1e6  # deviations as asked, beyond which a cell is as good as free


class PatternProgram:
    """Search for the cheapest protecting pattern.

    Parameters
    ----------
    task : Task
        What is to be suppressed.
    known : float
        What some protecting pattern costs.
    """

    def __init__(self, task: Task, known: float) -> None:
        self._task, self._cells = task, task.cells
        self._attack, self._attacks = _Attack(task), Attacks(task)
        # A cell that costs more than a whole pattern is in none of the cheapest.
        # Tolerances of HiGHS are absolute.
        self._unit = known / _COST if known > 0 else 1.0
        useful = task.costs <= known
        self._costs = np.where(useful & ~task.primaries, task.costs, 0.0) / self._unit
        self._lower = task.primaries.astype(float)
        self._upper = np.maximum(useful, self._lower)
        self._rows: list[Floats] = []
        self._least: list[float] = []
        self._relaxed, self._whole = self._program(whole=False), self._program(whole=True)
        self._bound = 0.0

    @property
    def bound(self) -> float:
        """Lower bound of the cost of all protecting patterns."""
        return self._bound * self._unit

    def relax(self, *, deadline: float) -> Floats:
        """Raise the bound by fractional patterns, for as long as that helps, and return
        the last of them.
        """
        idle, fractions = 0, self._lower
        while idle < 5 and monotonic() < deadline:
            try:
                solved = self._relaxed.solve(self._costs, seconds=deadline - monotonic())
            except AttackError:
                break
            if solved is None:
                break
            fractions = np.clip(solved.values, 0.0, 1.0)
            idle = 0 if solved.objective > self._bound * 1.001 + 1e-9 else idle + 1
            self._bound = max(self._bound, solved.objective)
            if not self._forbid(fractions, deadline):
                break
        return fractions

    def next_pattern(self, *, deadline: float) -> tuple[Booleans, Reach | None] | None:
        """The cheapest pattern not yet ruled out, and the proof that it protects, if it
        does; None if the time is up or the solver fails.

        If it protects, no pattern is cheaper. If not, it is ruled out from then on.
        """
        try:
            solved = self._whole.solve(self._costs, seconds=deadline - monotonic())
        except AttackError:
            return None
        if solved is None:
            return None
        self._bound = max(self._bound, solved.bound)
        if monotonic() > deadline or solved.objective > solved.bound + _VIOLATED * max(
            1.0, abs(solved.bound)
        ):
            return None  # stopped before it was proved to be the cheapest
        pattern = solved.values > 0.5
        if self._forbid(pattern.astype(float), deadline):
            return pattern, None
        try:
            proof = self._attacks.proof(pattern, deadline=deadline)
        except AttackError:
            return None  # whether it protects is not known, so it cannot be ruled out
        if proof is None:
            self._add((~pattern).astype(float), 1.0)  # a part of this pattern protects no better
        return pattern, proof

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
        rows = [
            hstack(
                [
                    csr_array(np.array(self._rows).reshape(-1, size)),
                    csr_array((len(self._rows), used)),
                ]
            )
        ]
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
                ruled_out, proof = self._forbid(pattern.astype(float), deadline), None
                if not ruled_out:
                    proof = self._attacks.proof(pattern, deadline=deadline)
            except AttackError:
                return
            if not ruled_out:
                if proof is not None:
                    yield pattern, proof
                # Costs are above 0, so no pattern contains another of the same cost.
                self._add((~pattern).astype(float), 1.0)
            for row, asked in zip(self._rows[known:], self._least[known:], strict=True):
                program.add_row(asked, np.inf, np.concatenate([row, np.zeros(used)]))

    def _program(self, *, whole: bool) -> Program:
        size = len(self._costs)
        none = np.zeros(0)
        columns = np.full(size, whole)
        return Program(csr_array((0, size)), none, none, self._lower, self._upper, whole=columns)

    def _forbid(self, pattern: Floats, deadline: float) -> bool:
        """Add the inequalities that a pattern violates; False if it violates none."""
        before = len(self._rows)
        self._forbid_single(pattern)
        try:
            left = self._attacks.left(pattern, deadline=deadline)
        except OutOfTimeError:
            left = np.zeros(0, dtype=np.int64)
        for position in left:
            if monotonic() > deadline:
                break
            for row, asked in self._attack.limits(int(position), pattern, deadline):
                row = np.minimum(row / asked, 1.0)  # a cell is suppressed once
                if row @ pattern < 1 - _VIOLATED:
                    self._add(row, 1.0)
        return len(self._rows) > before

    def _forbid_single(self, pattern: Floats) -> None:
        """Rule out sums with a single suppressed cell, which protects nothing."""
        sums = self._cells.equations
        alone = sums.multiply(pattern[None]).tocsr()
        short = np.asarray(sums @ pattern)
        for equation in range(sums.shape[0]):
            part = slice(alone.indptr[equation], alone.indptr[equation + 1])
            for cell, value in zip(alone.indices[part], alone.data[part], strict=True):
                if 2 * value > short[equation] + _VIOLATED:
                    row = sums[[equation]].toarray().ravel()
                    row[cell] = -1.0
                    self._add(row, 0.0)

    def _add(self, row: Floats, least: float) -> None:
        least -= _SLACK * abs(least)
        self._rows.append(row)
        self._least.append(least)
        self._relaxed.add_row(least, np.inf, row)
        self._whole.add_row(least, np.inf, row)


class _Attack:
    """How far primary cells can deviate under a pattern, whole numbers or not, and what
    limits them.
    """

    def __init__(self, task: Task) -> None:
        cells, required = task.cells, task.required
        self._cells, self._required = cells, required
        column = cells.column
        self._inner = np.flatnonzero(column >= 0)
        self._outer = np.flatnonzero(column < 0)
        self._of = column[self._inner]
        self._totals = csr_array(cells.matrix[self._outer])
        self._most_up, self._most_down = task.up, task.down
        self._low, self._high = -task.inner_down, task.inner_up
        self._unit = max(1.0, float(required.most))
        zeros = np.zeros(len(self._outer))
        self._program = Program(self._totals, zeros, zeros, self._low, self._high)

    def limits(
        self, position: int, pattern: Floats, deadline: float
    ) -> Iterator[tuple[Floats, float]]:
        """Inequalities, as coefficients and least value, that all patterns satisfy
        which protect this primary cell.
        """
        required = self._required
        up, down, width = (float(x[position]) for x in (required.up, required.down, required.width))
        cell = int(required.cells[position])
        above, above_open = self._limit(cell, 1, pattern, deadline)
        below, below_open = self._limit(cell, -1, pattern, deadline)
        both = above + below, above_open + below_open
        for (row, open_), asked in (
            ((above, above_open), up),
            ((below, below_open), down),
            (both, width),
        ):
            # A difference of large numbers may be due to rounding.
            if asked - open_ > _VIOLATED * max(1.0, asked):
                yield row, asked - open_

    def _limit(
        self, cell: int, sign: int, pattern: Floats, deadline: float
    ) -> tuple[Floats, float]:
        """How much each suppressed cell adds to the deviation of a cell, and how far it
        can deviate under any pattern.
        """
        low, high = self._low.copy(), self._high.copy()
        low[self._of] = -self._most_down[self._inner] * pattern[self._inner]
        high[self._of] = self._most_up[self._inner] * pattern[self._inner]
        outer = pattern[self._outer]
        direction = sign * self._cells.matrix[[cell]].toarray().ravel()
        # In units of what is required; beyond many of these, more only burdens the
        # solver.
        bounds = (
            low,
            high,
            -self._most_down[self._outer] * outer,
            self._most_up[self._outer] * outer,
        )
        low, high, least, most = (np.clip(bound / self._unit, -_MANY, _MANY) for bound in bounds)
        try:
            solved = self._program.solve(
                -direction,
                lower=low,
                upper=high,
                least=least,
                most=most,
                seconds=deadline - monotonic(),
            )
        except AttackError:
            solved = None
        # Whatever the multipliers of the totals are, those of the cells follow, and the
        # bound holds.
        total_multipliers = np.zeros(len(self._outer)) if solved is None else -solved.duals
        multipliers = direction - self._totals.T @ total_multipliers
        row = np.zeros(len(pattern))
        row[self._outer] = _product(
            total_multipliers, self._most_up[self._outer], self._most_down[self._outer]
        )
        by_cell = _product(multipliers, self._high, -self._low)
        row[self._inner] = by_cell[self._of]
        return row, 0.0 if len(self._of) else float(by_cell.sum())


def _product(multipliers: Floats, up: Floats, down: Floats) -> Floats:
    return np.where(multipliers > 0, multipliers * up, -multipliers * down)
