"""A table of whole numbers within bounds, by linear programs and branching."""

from time import monotonic
from typing import Final

import numpy as np

from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.solver import Floats, OutOfTimeError, Program
from taciturn.attack.system import Integers, open_ended
from taciturn.errors import AttackError

__all__ = ["whole_table"]

_PROGRAMS: Final = 100  # to solve at most
_SHARE: Final = 12  # of the cells in parts, one of so many is rounded at once
_NEAR: Final = 1e-6  # of a whole number, and of relative size for large ones


def whole_table(
    program: Program,
    rows: Rows,
    lower: Integers,
    upper: Integers,
    costs: Floats,
    *,
    generator: np.random.Generator,
    thorough: bool,
    deadline: float,
) -> tuple[Integers | None, bool]:
    """Look for a table, the cheaper ones first, and say whether it is proved that there
    is none.

    Of the cells that determine all others, one that a solution has in parts is chosen
    at random, and is at most the whole number below, or at least the one above, the
    nearer first. Unless it is to be
    `thorough`, several cells are rounded at once for as long as many are in parts: that
    mostly ends in a table soon, and another try is better than to go back.

    Parameters
    ----------
    program : Program
        A linear program over the rows.
    rows : Rows
        The rows, exactly.
    lower, upper : array of int64, shape (n,)
        Bounds of the cells.
    costs : array of float64, shape (n,)
        Of each cell; they only say where to look.
    generator : numpy.random.Generator
        For the choice of cells.
    thorough : bool
        Whether to leave nothing out, so that it may be proved that there is no table.
    deadline : float
        When to stop, by the monotonic clock.
    """
    branches, proved = [(lower, upper)], thorough
    for _ in range(_PROGRAMS):
        if not branches:
            return None, proved
        low, high = branches.pop()
        least, most, left = open_ended(low), open_ended(high), deadline - monotonic()
        try:
            solved = program.solve(costs, lower=least, upper=most, seconds=left)
        except OutOfTimeError:
            raise
        except AttackError:
            proved = False
            continue
        if solved is None:
            proved = proved and rows.rule_out(low, high, program.ray())
            continue
        values = solved.values
        table = np.rint(values).astype(np.int64)
        if rows.hold(table, low, high):
            return table, False
        near = _NEAR * np.maximum(1.0, 1e-6 * np.abs(values))
        parts = np.flatnonzero(rows.free & (np.abs(values - table) > near))
        if len(parts) == 0:
            proved = False  # numbers are too large for the solver
            continue
        some = len(parts) // _SHARE
        if some > 1 and not thorough:
            low, high = low.copy(), high.copy()
            cells = generator.choice(parts, some, replace=False)
            low[cells] = high[cells] = table[cells]
            branches.append((low, high))
            continue
        cell = generator.choice(parts)
        below, above = high.copy(), low.copy()
        below[cell] = np.floor(values[cell])
        above[cell] = below[cell] + 1
        both = [(above, high), (low, below)]
        branches += both if table[cell] < values[cell] else both[::-1]
    return None, False
