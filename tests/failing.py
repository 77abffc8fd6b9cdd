"""A solver that fails when it is told to."""

from types import SimpleNamespace

import highspy
import numpy as np

from taciturn.attack import solver

__all__ = ["FAILURES", "fail"]

_STATUS = highspy.HighsModelStatus
FAILURES = [
    *[status for status in _STATUS.__members__.values() if status != _STATUS.kOptimal],
    "off",  # optimal, but not feasible
    "wrong",  # optimal, but another solution
]


class _Failing:
    """HiGHS, of which some runs fail."""

    def __init__(self, highs, failure, when):
        self._highs, self._failure, self._when = highs, failure, when
        self._fails = False

    def __getattr__(self, name):
        return getattr(self._highs, name)

    def run(self):
        self._highs.run()
        self._fails = self._when()

    def getModelStatus(self):
        if not self._fails or self._failure == "wrong":
            return self._highs.getModelStatus()
        return _STATUS.kOptimal if self._failure == "off" else self._failure

    def getInfo(self):
        info = self._highs.getInfo()
        if not self._fails or self._failure == "wrong":
            return info
        return SimpleNamespace(
            primal_solution_status=highspy.SolutionStatus.kSolutionStatusInfeasible,
            max_primal_infeasibility=1.6e-7,
            objective_function_value=info.objective_function_value,
            mip_dual_bound=info.mip_dual_bound,
        )

    def getSolution(self):
        solution = self._highs.getSolution()
        if not self._fails:
            return solution
        values = np.array(solution.col_value)
        return SimpleNamespace(col_value=values + 1, row_dual=-np.array(solution.row_dual))


def fail(monkeypatch, failure, when):
    """Let HiGHS fail in this way in the runs for which `when`, without arguments, is
    true."""
    make = solver._solver
    monkeypatch.setattr(solver, "_solver", lambda model: _Failing(make(model), failure, when))
