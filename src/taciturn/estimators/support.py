"""The cells that a table with given margins can fill."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, vstack

__all__ = ["find_support"]

_MOST_CELLS: Final = 10_000
"""Cells of the largest program tried: two seconds, or four with known margins."""

_INFEASIBLE: Final = 2  # status of SciPy's solver

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def find_support(
    margins: Sequence[Floats], fillable: Booleans, sample: npt.NDArray[np.int64]
) -> Booleans | None:
    r"""Find the cells that are positive in some non-negative table with the margins of
    a sample.

    The mean of such tables has the margins too, so one table fills all of these cells
    at once. Every other cell is 0 in all tables with the margins.

    Parameters
    ----------
    margins : sequence of array
        Of the sample, whose axes that are summed over have length 1.
    fillable : array of bool
        False at structural zeros.
    sample : array of int64, shape of `fillable`
        Counts.

    Returns
    -------
    array of bool, shape of `fillable`, or None
        None where more than 5,000 cells have no margin of 0, too many for the program,
        or where the solver gave up.

    Notes
    -----
    With `A` the matrix that sums cells to the margins `m`, the program is

    .. math::
        \max \sum_i y_i \quad \text{subject to} \quad A (y + z) = s m, \;
        0 \le y \le 1, \; s \ge 1,

    where `z` is at least 0 but in the cells of the sample: any multiple of it may be
    added. As `s` is free, each cell that can be positive can reach 1: the solution is 0
    or 1 in every cell, and a half tells them apart whatever the solver's tolerance.

    References
    ----------
    Fienberg & Rinaldo (2012), Maximum likelihood estimation in log-linear models,
    Annals of Statistics 40: the support is the facial set of the margins.
    """
    possible = fillable.copy()
    for margin in margins:
        possible &= margin > 0
    cells = np.flatnonzero(possible)
    if len(cells) > _MOST_CELLS:
        return None
    sums = vstack([_summing(margin, fillable.shape, cells) for margin in margins])
    values = np.concatenate([margin.ravel() for margin in margins])
    rows = hstack([sums, sums, csr_array(-values[:, np.newaxis])])
    reach, rest = np.ones(len(cells)), np.full(len(cells), np.inf)
    least = np.where(sample.ravel()[cells] > 0, -np.inf, 0)
    found = milp(  # without whole numbers: a linear program
        np.concatenate([-reach, 0 * reach, [0]]),
        bounds=Bounds(
            np.concatenate([0 * reach, least, [1]]), np.concatenate([reach, rest, [np.inf]])
        ),
        constraints=LinearConstraint(rows, 0, 0),
    )
    if found.x is None:
        return None
    support = np.zeros_like(fillable)
    support.flat[cells[found.x[: len(cells)] > 0.5]] = True
    return support


def _summing(margin: Floats, shape: tuple[int, ...], cells: npt.NDArray[np.int64]) -> csr_array:
    """Matrix that sums the given cells to a margin, all of its values kept."""
    number = np.broadcast_to(np.arange(margin.size).reshape(margin.shape), shape)
    group = number.ravel()[cells]
    return csr_array(
        (np.ones(len(cells)), (group, np.arange(len(cells)))), shape=(margin.size, len(cells))
    )
