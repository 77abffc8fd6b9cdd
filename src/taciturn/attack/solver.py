"""Linear and integer programs over one matrix, solved again and again by HiGHS, which
starts each time from where it ended.

HiGHS may fail with large numbers: it calls a solution optimal and then not feasible, or
says that there is none. The program is then solved again from scratch, in other ways.
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import highspy
import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from taciturn.errors import AttackError

__all__ = ["ANY_SOLUTION", "Floats", "OutOfTimeError", "Program", "Solved"]

Floats = npt.NDArray[np.float64]

ANY_SOLUTION: Final = 1e9
"""A relative gap with which the first solution found will do."""

_NONE: Final = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
_TOLERANCE: Final = 1e-7  # of a row or a column, as of HiGHS; of relative size for large ones
_NO_TIME: Final = "the solver found no solution within the time it had; a longer time_limit may do"
_MODERATE: Final = 1e4  # numbers up to this size need no other unit
_AGAIN: Final[tuple[tuple[dict[str, str | int], bool], ...]] = (
    ({"simplex_scale_strategy": 0, "presolve": "off"}, False),
    ({"simplex_scale_strategy": 0}, True),
    ({"solver": "ipm", "run_crossover": "on"}, True),
)
"""Options for solving a linear program again, and whether in other units."""
_AGAIN_WHOLE: Final[tuple[tuple[dict[str, str | int], bool], ...]] = (
    ({"presolve": "off"}, False),
    ({"random_seed": 1}, False),
)
"""The same for integer programs, which are neither scaled nor solved by interior
points: whole numbers would be lost."""


class OutOfTimeError(AttackError):
    """The time was up before there was a solution."""


class _NoAnswerError(AttackError):
    """One way of solving a program came to no answer."""


@dataclass(frozen=True, eq=False, repr=False)
class Solved:
    """A solution, and a proof of how good it is.

    Attributes
    ----------
    values : array of float64, shape (columns,)
        The best found.
    objective, bound : float
        What it costs, and a lower bound of the cost of every solution.
    duals : array of float64, shape (rows,)
        How much the objective rises with each row's bound; for linear programs only.
    """

    values: Floats
    objective: float
    bound: float
    duals: Floats


class Program:
    """Minimise ``costs @ x`` with ``least <= matrix @ x <= most`` and ``lower <= x <=
    upper``.

    Parameters
    ----------
    matrix : sparse array, shape (rows, columns)
        Coefficients.
    least, most : array, shape (rows,)
        Bounds of the rows.
    lower, upper : array, shape (columns,)
        Bounds of the columns; those of a linear program must be finite or its costs
        keep it bounded.
    whole : array of bool, shape (columns,), optional
        Columns that must be whole numbers. Without any the program is linear, and is
        solved for other costs or bounds from the last basis.
    """

    def __init__(
        self,
        matrix: csr_array | csc_array,
        least: npt.NDArray[Any],
        most: npt.NDArray[Any],
        lower: npt.NDArray[Any],
        upper: npt.NDArray[Any],
        *,
        whole: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        rows, columns = matrix.shape
        by_column = csc_array(matrix)
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = rows, columns
        model.col_cost_ = np.zeros(columns)
        model.col_lower_, model.col_upper_ = lower.astype(float), upper.astype(float)
        model.row_lower_, model.row_upper_ = least.astype(float), most.astype(float)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = by_column.indptr
        model.a_matrix_.index_ = by_column.indices
        model.a_matrix_.value_ = by_column.data.astype(float)
        self._highs = _solver(model)
        self._every = np.arange(columns, dtype=np.int32)
        self._linear = whole is None or not whole.any()
        if whole is not None:
            self._highs.changeColsIntegrality(columns, self._every, whole.astype(np.uint8))

    def add_row(
        self, least: float, most: float, columns: npt.NDArray[np.int64], coefficients: Floats
    ) -> None:
        """Add a row by its columns and their coefficients."""
        self._highs.addRow(least, most, len(columns), columns.astype(np.int32), coefficients)

    def solve(
        self,
        costs: npt.NDArray[Any],
        *,
        lower: npt.NDArray[Any] | None = None,
        upper: npt.NDArray[Any] | None = None,
        least: npt.NDArray[Any] | None = None,
        most: npt.NDArray[Any] | None = None,
        gap: float = 0.0,
        seconds: float = np.inf,
        sure: bool = False,
    ) -> Solved | None:
        """The cheapest solution, up to a relative gap; None where there is none: this
        is believed at once or, if `sure`, when every way of solving says so.

        Raises
        ------
        OutOfTimeError
            No solution within the time.
        AttackError
            The solver stopped without an answer, whichever way the program was solved.
        """
        deadline = monotonic() + seconds
        size = len(self._every)
        self._highs.changeColsCost(size, self._every, costs.astype(float))
        if lower is not None and upper is not None:
            self._highs.changeColsBounds(
                size, self._every, lower.astype(float), upper.astype(float)
            )
        if least is not None and most is not None:
            rows = np.arange(len(least), dtype=np.int32)
            self._highs.changeRowsBounds(len(rows), rows, least.astype(float), most.astype(float))
        self._highs.setOptionValue("mip_rel_gap", gap)
        try:
            solved = self._answer(self._highs, deadline)
            if solved is not None or not sure:
                return solved
        except _NoAnswerError:
            self._highs.clearSolver()
        return self._again(gap, deadline)

    def _again(self, gap: float, deadline: float) -> Solved | None:
        """Solve from scratch, in one way after another."""
        reason = AttackError("the solver stopped without an answer")
        none = False
        for options, in_units in _AGAIN if self._linear else _AGAIN_WHOLE:
            model = self._highs.getLp()
            unit = max(1.0, _largest(model) / _MODERATE) if in_units else 1.0
            for name in ("col_lower_", "col_upper_", "row_lower_", "row_upper_"):
                setattr(model, name, np.array(getattr(model, name)) / unit)
            fresh = _solver(model)
            for option, value in options.items():
                fresh.setOptionValue(option, value)
            fresh.setOptionValue("mip_rel_gap", gap)
            try:
                solved = self._answer(fresh, deadline, unit)
            except _NoAnswerError as error:
                reason = error
                continue
            if solved is not None:
                return solved
            none = True
        if none:
            return None
        raise AttackError(str(reason)) from reason

    def _answer(self, highs: highspy.Highs, deadline: float, unit: float = 1.0) -> Solved | None:
        """Run the solver, and take its answer if it holds to within tolerances."""
        seconds = deadline - monotonic()
        if seconds < 0:
            raise OutOfTimeError(_NO_TIME)
        # The clock of linear programs runs on from one to the next.
        passed = highs.getRunTime() if self._linear else 0.0
        highs.setOptionValue("time_limit", passed + seconds)
        highs.run()
        status = highs.getModelStatus()
        if status in _NONE:
            return None
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        timed_out = status == highspy.HighsModelStatus.kTimeLimit
        if timed_out and (self._linear or not found):
            raise OutOfTimeError(_NO_TIME)
        if status == highspy.HighsModelStatus.kOptimal and not found:
            beyond = info.max_primal_infeasibility * unit
            found = beyond <= _TOLERANCE * max(1.0, 1e-6 * _largest(highs.getLp()) * unit)
        if not found or not (timed_out or status == highspy.HighsModelStatus.kOptimal):
            reason = highs.modelStatusToString(status).lower()
            if status == highspy.HighsModelStatus.kOptimal:
                reason += f", but its solution is off by {info.max_primal_infeasibility * unit:.2g}"
            raise _NoAnswerError(f"the solver stopped without an answer: {reason}")
        solution = highs.getSolution()
        objective = info.objective_function_value * unit
        return Solved(
            values=np.array(solution.col_value) * unit,
            objective=objective,
            bound=objective if self._linear else info.mip_dual_bound,
            duals=np.array(solution.row_dual),
        )


def _solver(model: highspy.HighsLp) -> highspy.Highs:
    """HiGHS with a model of its own."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)  # the same numbers on any machine
    highs.passModel(model)
    return highs


def _largest(model: highspy.HighsLp) -> float:
    """The largest finite bound of a row or a column."""
    bounds = np.abs(
        np.concatenate([model.col_lower_, model.col_upper_, model.row_lower_, model.row_upper_])
    )
    return float(bounds[np.isfinite(bounds)].max(initial=0.0))
