"""Compatible tables one after the other: a first one by a linear program and branching,
the others by a walk along the directions in which nothing that is published changes.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.sparse import csr_array, hstack

from taciturn.attack.bounds.branching import whole_table
from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.bounds.propagation import ContradictionError
from taciturn.attack.posterior.lattice import kernel_basis
from taciturn.attack.posterior.walk import walk
from taciturn.attack.solver import ANY_SOLUTION, Floats, Program
from taciturn.attack.system import UNLIMITED, Booleans, open_ended
from taciturn.errors import AttackError
from taciturn.release_log.codebook import Integers
from taciturn.schema import MAX_COUNT

__all__ = ["Walk"]

_PASSES: Final = 5  # along the basis, from a table to the next
_SCALINGS: Final = 200  # of cells to their totals
_LEAST: Final = 1e-12  # of what is divided by
_ROOMS: Final = (1.0, 4.0, 1e6)  # times the centre, above and below it


class Walk:
    """A walk among the tables of whole numbers within bounds of cells and rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    lower, upper : array of int64, shape (n,)
        Bounds of the cells.
    generator : numpy.random.Generator
        Random numbers.
    """

    def __init__(
        self, rows: Rows, lower: Integers, upper: Integers, generator: np.random.Generator
    ) -> None:
        self._rows, self._generator = rows, generator
        self._lower, self._upper = lower, upper

    def tables(self, number: int) -> Iterator[Integers]:
        """So many tables.

        Raises
        ------
        ContradictionError
            There is none.
        AttackError
            The solver finds none.
        """
        first = self._first()
        yield first
        ranges = self._rows.least < self._rows.most
        own = csr_array(
            (np.full(int(ranges.sum()), -1), (np.flatnonzero(ranges), np.arange(ranges.sum()))),
            shape=(len(ranges), int(ranges.sum())),
        )
        basis = kernel_basis(csr_array(hstack([self._rows.matrix, own])))
        if not basis.shape[0]:
            return
        state = np.concatenate([first, (self._rows.matrix @ first)[ranges]])
        lower = np.concatenate([self._lower, self._rows.least[ranges]])
        upper = np.concatenate([self._upper, self._rows.most[ranges]])
        held = csr_array(basis.T)
        none, no_numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        all_alike = (no_numbers, none, no_numbers)
        for _ in range(number - 1):
            out = np.empty((1, len(first)), dtype=np.int64)
            walk(
                state,
                lower,
                upper,
                *(part.astype(np.int64) for part in (basis.indptr, basis.indices, basis.data)),
                basis.shape[0],
                *(part.astype(np.int64) for part in (held.indptr, held.indices)),
                all_alike,
                _PASSES,
                none,
                none,
                no_numbers,
                out,
                self._generator,
            )
            yield out[0]

    def _first(self) -> Integers:
        """Some table, if possible far from the bounds: where many cells are at theirs,
        few steps are open.
        """
        centre = self._centre()
        for room in _ROOMS:
            lower = np.maximum(self._lower, np.floor(centre / (1 + room)).astype(np.int64))
            most = np.minimum(np.ceil(centre * (1 + room) + room), UNLIMITED).astype(np.int64)
            found, _ = whole_table(
                self._program(lower, np.minimum(self._upper, most)),
                self._rows,
                lower,
                np.minimum(self._upper, most),
                self._generator.normal(size=len(lower)),
                generator=self._generator,
                thorough=False,
                deadline=np.inf,
            )
            if found is not None:
                return found
        program = self._program(self._lower, self._upper, whole=self._rows.free)
        solved = program.solve(np.zeros(len(self._lower)), gap=ANY_SOLUTION, sure=True)
        if solved is None:
            raise ContradictionError
        table = np.rint(solved.values).astype(np.int64)
        if self._rows.hold(table, self._lower, self._upper):
            return table
        raise AttackError("the solver finds no table that is compatible with what is published")

    def _centre(self) -> Floats:
        """A table in parts whose totals are nearly right: cells are scaled to their
        totals again and again.
        """
        matrix = self._rows.matrix.astype(np.float64)
        transposed = csr_array(matrix.T)
        times = max(1.0, float(matrix.sum(axis=0).max()))
        cells = np.clip(1.0, self._lower, np.minimum(self._upper, MAX_COUNT)).astype(float)
        for _ in range(_SCALINGS):
            sums = np.maximum(matrix @ cells, _LEAST)
            wanted = np.clip(sums, self._rows.least, self._rows.most)
            cells *= np.exp(transposed @ np.log(np.maximum(wanted / sums, _LEAST)) / times)
        return np.asarray(np.clip(cells, self._lower, self._upper), dtype=np.float64)

    def _program(
        self, lower: Integers, upper: Integers, *, whole: Booleans | None = None
    ) -> Program:
        return Program(
            self._rows.matrix,
            open_ended(self._rows.least),
            open_ended(self._rows.most),
            open_ended(lower),
            open_ended(upper),
            whole=whole,
        )
