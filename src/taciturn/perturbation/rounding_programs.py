"""Linear and integer programs that say which cells are rounded up, shared by methods of
rounding that control totals.
"""

from collections.abc import Sequence
from time import monotonic
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from taciturn.errors import PerturbationError
from taciturn.perturbation.replicates import Counts

__all__ = ["cells_up", "totals_over"]

_SOLVED: Final = 0
_TIME_OVER: Final = 1
_INFEASIBLE: Final = 2  # what SciPy's milp reports
_TOLERANCE: Final = 1e-6  # of HiGHS, for whole numbers
_GAP: Final = 1.0  # any solution will do: the objective only makes the choice random
_FEW: Final = 0.05
"""Share of cells that the linear program may leave between two multiples; more can
seldom be settled without the others."""

Floats = npt.NDArray[np.float64]


def totals_over(groups: Sequence[Counts]) -> csr_array:
    """The matrix that adds cells up to totals; of each margin the group that each cell
    is in.
    """
    lines = []
    for group in groups:
        found, line = np.unique(group, return_inverse=True)
        at = (line, np.arange(len(line)))
        lines.append(csr_array((np.ones(len(line)), at), shape=(len(found), len(line))))
    return vstack(lines, format="csr")


def cells_up(
    costs: Floats, totals: csr_array, least: Floats, most: Floats, seconds: float
) -> Counts | None:
    """Cells that are rounded up (1) or down (0) at little cost; empty if there is no
    solution, None when the time limit is reached.
    """
    deadline = monotonic() + seconds
    share, status = _program(costs, totals, least, most, seconds, whole=False)
    if status == _TIME_OVER:
        return None
    if status == _INFEASIBLE:
        return np.empty(0, dtype=np.int64)
    between = (share > _TOLERANCE) & (share < 1 - _TOLERANCE)
    up = np.rint(share)
    status = _SOLVED if not between.any() else _INFEASIBLE
    if 0 < between.mean() < _FEW:
        up[between] = 0
        done, rest = totals @ up, totals[:, np.flatnonzero(between)]
        settled, status = _program(
            costs[between], rest, least - done, most - done, deadline - monotonic(), whole=True
        )
        if status == _SOLVED:
            up[between] = np.rint(settled)
    if status == _INFEASIBLE:
        up, status = _program(costs, totals, least, most, deadline - monotonic(), whole=True)
    if status == _TIME_OVER:
        return None
    return np.rint(up).astype(np.int64)


def _program(
    costs: Floats, totals: csr_array, least: Floats, most: Floats, seconds: float, *, whole: bool
) -> tuple[Floats, int]:
    """Solution of a linear or integer program over cells from 0 to 1, empty if there is
    none, and its status.
    """
    if seconds <= 0:
        return np.empty(0), _TIME_OVER
    solved = milp(
        costs,
        integrality=np.full(len(costs), int(whole)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(totals, least, most),
        options={"time_limit": seconds, "mip_rel_gap": _GAP},
    )
    if solved.status not in (_SOLVED, _TIME_OVER, _INFEASIBLE):
        raise PerturbationError(f"the program of rounding was not solved: {solved.message}")
    return np.empty(0) if solved.x is None else solved.x, solved.status
