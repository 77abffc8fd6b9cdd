"""Linear and integer programs over one matrix, solved again and again by HiGHS, which
starts each time from where it ended.
"""

from dataclasses import dataclass
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

_FOUND: Final = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
_NONE: Final = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)


class OutOfTimeError(AttackError):
    """The time was up before there was a solution."""


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
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)  # the same numbers on any machine
        self._highs.passModel(model)
        self._every = np.arange(columns, dtype=np.int32)
        self._linear = whole is None or not whole.any()
        if whole is not None:
            self._highs.changeColsIntegrality(columns, self._every, whole.astype(np.uint8))

    def add_row(self, least: float, most: float, coefficients: Floats) -> None:
        """Add a row."""
        held = np.flatnonzero(coefficients).astype(np.int32)
        self._highs.addRow(least, most, len(held), held, coefficients[held])

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
    ) -> Solved | None:
        """The cheapest solution, up to a relative gap; None where there is none.

        Raises
        ------
        OutOfTimeError
            No solution within the time.
        AttackError
            The solver stopped without an answer.
        """
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
        self._highs.setOptionValue(
            "time_limit", self._highs.getRunTime() + max(seconds, 0.0)
        )  # the clock runs on
        self._highs.run()
        status = self._highs.getModelStatus()
        if status in _NONE:
            return None
        info = self._highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if status == highspy.HighsModelStatus.kTimeLimit and not found:
            raise OutOfTimeError(
                "the solver found no solution within the time it had; a longer time_limit may do"
            )
        if status not in _FOUND or not found:
            reason = self._highs.modelStatusToString(status)
            raise AttackError(f"the solver stopped without an answer: {reason.lower()}")
        solution = self._highs.getSolution()
        objective = info.objective_function_value
        return Solved(
            values=np.array(solution.col_value),
            objective=objective,
            bound=objective if self._linear else info.mip_dual_bound,
            duals=np.array(solution.row_dual),
        )
