"""What limits how far a cell can deviate under a pattern: inequalities from the dual
solutions of attacks (Fischetti & Salazar 2001, Management Science 47(7)).
"""

from collections.abc import Iterator
from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.solver import Floats, Program
from taciturn.errors import AttackError
from taciturn.suppression.task import Task

__all__ = ["Limits"]

_LEAST: Final = 1e-4  # of what is asked: less may be due to rounding
_MANY: Final = 1e6  # deviations as asked, beyond which a cell is as good as free


class Limits:
    """How far cells can deviate under a pattern, whole numbers or not, and what limits
    them.
    """

    def __init__(self, task: Task) -> None:
        cells, required = task.cells, task.required
        self._cells = cells
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

    def of(
        self, cell: int, required: tuple[int, int, int], pattern: Floats, deadline: float
    ) -> Iterator[tuple[Floats, float]]:
        """Inequalities, as coefficients and least value, that all patterns satisfy
        which let a cell deviate as far as required, above, below and both.
        """
        up, down, width = required
        above, above_open = self._row(*self._multipliers(cell, 1, pattern, deadline))
        below, below_open = self._row(*self._multipliers(cell, -1, pattern, deadline))
        both = above + below, above_open + below_open
        for (row, open_), asked in (
            ((above, above_open), up),
            ((below, below_open), down),
            (both, width),
        ):
            if asked - open_ > _LEAST * max(1.0, asked):
                yield row, asked - open_

    def of_any(self, cell: int, pattern: Floats, deadline: float) -> Floats | None:
        """The coefficients of an inequality, at least 1, that all patterns satisfy
        which let a cell deviate at all; None if it may in any case.
        """
        totals, cells = self._multipliers(cell, 1, pattern, deadline)
        # The same multipliers limit how far it falls.
        above, above_open = self._row(totals, cells)
        below, below_open = self._row(-totals, -cells)
        least = 1 - above_open - below_open
        return (above + below) / least if least > _LEAST else None

    def _multipliers(
        self, cell: int, sign: int, pattern: Floats, deadline: float
    ) -> tuple[Floats, Floats]:
        """Of the totals and of the table's cells, in the bound of how far a cell rises
        or falls under a pattern.
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
        totals = np.zeros(len(self._outer)) if solved is None else -solved.duals
        return totals, np.asarray(direction - self._totals.T @ totals)

    def _row(self, totals: Floats, cells: Floats) -> tuple[Floats, float]:
        """How much each suppressed cell adds to the deviation of a cell, and how far it
        can deviate under any pattern.
        """
        row = np.zeros(len(self._most_up))
        row[self._outer] = _product(
            totals, self._most_up[self._outer], self._most_down[self._outer]
        )
        by_cell = _product(cells, self._high, -self._low)
        row[self._inner] = by_cell[self._of]
        return row, 0.0 if len(self._of) else float(by_cell.sum())


def _product(multipliers: Floats, up: Floats, down: Floats) -> Floats:
    return np.where(multipliers > 0, multipliers * up, -multipliers * down)
