"""Programs over the columns that are open, of a table of which most are published."""

from time import monotonic

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.free_columns import lattice_of
from taciturn.attack.solver import Floats, Program
from taciturn.attack.system import Booleans

__all__ = ["OpenPrograms"]


class OpenPrograms:
    """Programs over the columns that are open in this pattern or an earlier one: mostly
    they are few.
    """

    def __init__(self, sums: csr_array) -> None:
        self._sums, self._open = sums, np.zeros(sums.shape[1], dtype=np.bool_)
        self._real: Program | None = None
        self._whole: tuple[Program, Booleans, Booleans] | None = None
        self._widen(np.arange(sums.shape[1]) < 1)

    def run(
        self,
        costs: Floats,
        bounds: list[Floats],
        *,
        deadline: float,
        whole: bool = False,
        gap: float = 0.0,
    ) -> Floats | None:
        """The cheapest values within bounds of columns and rows; None if there are
        none. Whole numbers are within rounding.
        """
        low, high, least, most = bounds
        if ((low < high) & ~self._open).any():
            self._widen(low < high)
        program = self._in_whole_numbers(bounds) if whole else self._in_real_numbers(bounds)
        rows, columns = self._rows, self._columns
        solved = program.solve(
            costs[columns],
            lower=low[columns],
            upper=high[columns],
            least=least[rows],
            most=most[rows],
            gap=gap,
            seconds=deadline - monotonic(),
        )
        if solved is None:
            return None
        found = np.zeros(len(low))
        found[columns] = solved.values
        return found

    def _in_real_numbers(self, bounds: list[Floats]) -> Program:
        if self._real is None:
            self._real = self._program(bounds, np.zeros(len(self._columns), dtype=np.bool_))
        return self._real

    def _in_whole_numbers(self, bounds: list[Floats]) -> Program:
        """A program in which only as many columns are called whole as determine the
        others: the fewer, the faster it is solved.
        """
        low, high, least, most = bounds
        open_, tied = np.asarray(low < high)[self._columns], np.asarray(least == most)[self._rows]
        if self._whole is not None:
            program, were_open, were_tied = self._whole
            if not ((open_ & ~were_open).any() or (were_tied & ~tied).any()):
                return program
        whole = np.zeros(len(open_), dtype=np.bool_)
        whole[open_] = lattice_of(csr_array(self._matrix[tied][:, np.flatnonzero(open_)])).free
        program = self._program(bounds, whole)
        self._whole = program, open_, tied
        return program

    def _program(self, bounds: list[Floats], whole: Booleans) -> Program:
        low, high, least, most = bounds
        rows, columns = self._rows, self._columns
        return Program(
            self._matrix, least[rows], most[rows], low[columns], high[columns], whole=whole
        )

    def _widen(self, open_: Booleans) -> None:
        self._open |= open_
        self._columns = np.flatnonzero(self._open)
        inside = csr_array(self._sums[:, self._columns])
        self._rows = np.flatnonzero(np.diff(inside.indptr))
        self._matrix = csr_array(inside[self._rows])
        self._real = self._whole = None
