"""Which cells have no bound: those that can move for ever, if others move along."""

from time import monotonic
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.solver import Program
from taciturn.attack.system import UNLIMITED, Booleans, Floats, Integers

__all__ = ["unlimited_sides"]

_MOVES: Final = 1e-6  # of the largest movement: less is the solver's rounding


def unlimited_sides(
    matrix: csr_array,
    rows: tuple[Integers, Integers],
    columns: tuple[Integers, Integers],
    asked: Booleans,
    *,
    deadline: float,
) -> tuple[Booleans, Booleans]:
    r"""Whether each asked cell has no lower bound, and whether it has no upper one.

    That is so if some movement `d` moves it that way and can be repeated for ever:

    .. math:: A d = 0, \qquad d_j \ge 0 \text{ if } x_j \text{ has a lower bound}, \quad
        d_j \le 0 \text{ if it has an upper one}

    with :math:`\ge` or :math:`\le` for a total that is limited on one side only. The
    numbers in it are those of the matrix alone, however large the table's are.

    Parameters
    ----------
    matrix : csr_array
        `A`.
    rows, columns : pair of arrays of int64
        Lower and upper bounds of totals and cells, ``UNLIMITED`` where there is none.
    asked : array of bool, shape (cells,)
        The cells that are of interest; of others nothing is said.
    deadline : float
        When to stop, by the monotonic clock.

    Returns
    -------
    below, above : array of bool, shape (cells,)

    Raises
    ------
    AttackError
        The solver fails, or there is no time.
    """
    low, high = (np.where(_open(side), 1.0, 0.0) for side in columns)
    least, most = (np.where(_open(side), np.inf, 0.0) for side in rows)
    below, above = np.zeros_like(asked), np.zeros_like(asked)
    open_low, open_high = asked & (low > 0), asked & (high > 0)
    if not (open_low | open_high).any():
        return below, above
    program = Program(matrix, -least, most, -low, high)
    generator = np.random.default_rng(0)  # of directions: any will do

    def move(costs: Floats) -> bool:
        """Take note of what moves that way; whether that is anything new."""
        solved = program.solve(costs, seconds=deadline - monotonic())
        moved = np.zeros(len(asked)) if solved is None else solved.values
        before = below.sum() + above.sum()
        np.logical_or(below, open_low & (moved < -_MOVES), out=below)
        np.logical_or(above, open_high & (moved > _MOVES), out=above)
        return bool(below.sum() + above.sum() > before)

    while move(generator.normal(size=len(asked)) * (open_low | open_high)):
        pass
    for cell in np.flatnonzero(asked):
        for sign, side, found in ((1, open_low, below), (-1, open_high, above)):
            if side[cell] and not found[cell]:
                costs = np.zeros(len(asked))
                costs[cell] = sign
                move(costs)
    return below, above


def _open(bounds: Integers) -> Booleans:
    return np.abs(bounds) >= UNLIMITED // 2
