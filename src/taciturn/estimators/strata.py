"""Placing individuals stratum by stratum when the population's table over some of the
variables is known.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import EstimationError
from taciturn.estimators.problem import Problem
from taciturn.schema import cell_label

__all__ = ["draw_replicates", "draw_rest", "log_stratum_chance"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Draw = Callable[[Any, Floats, np.random.Generator], Counts]


def draw_rest(
    problem: Problem, draws: int, weights: Floats, draw: Draw, rng: np.random.Generator
) -> Counts:
    """Draw the unsampled individuals, as many in each stratum as the known margins
    leave.

    Given the margins, the strata are independent of each other, in a multinomial as in
    a Dirichlet-multinomial table.

    Parameters
    ----------
    problem : Problem
        The sample and what is known about its population.
    draws : int
        Number of tables.
    weights : array, shape (draws, cells) or (1, cells)
        Weights of the cells, as `draw` takes them.
    draw : callable
        Places individuals into cells: ``draw(total of each table, weights, rng)``.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array, shape (draws, cells)

    Raises
    ------
    EstimationError
        A stratum has individuals left to place, but none of its cells has a positive
        weight.
    """
    left = problem.stratum_sizes - _by_stratum(problem, problem.counts)
    return _place(problem, np.broadcast_to(left, (draws, len(left))), weights, draw, rng)


def draw_replicates(
    problem: Problem, draws: int, weights: Floats, draw: Draw, rng: np.random.Generator
) -> Counts:
    """Draw samples of the same size: strata as in a simple random sample, or with as
    many as were sampled in each, and within them individuals placed as in `draw_rest`.
    """
    sizes = np.full((draws, 1), problem.sample_size)
    if problem.stratified:
        sizes = np.broadcast_to(
            _by_stratum(problem, problem.counts), (draws, problem.stratum_sizes.size)
        )
    elif problem.known_margins is not None:
        sizes = rng.multivariate_hypergeometric(
            problem.stratum_sizes, problem.sample_size, size=draws, method="marginals"
        )
    return _place(problem, sizes, weights, draw, rng)


def log_stratum_chance(problem: Problem) -> Floats:
    """Logarithm of the probability that an individual, once left out, is in their
    stratum; for each occupied cell.

    Each of the places that the others leave in the strata is equally likely. All zeros
    without known margins, and where the strata are those of the sample.
    """
    if problem.stratified:
        return np.zeros(len(problem.occupied))
    left = problem.stratum_sizes - _by_stratum(problem, problem.counts) + 1
    share = left[problem.strata[problem.occupied]] / (
        problem.population_size - problem.sample_size + 1
    )
    return np.asarray(np.log(share))


def _place(
    problem: Problem, totals: Counts, weights: Floats, draw: Draw, rng: np.random.Generator
) -> Counts:
    if totals.shape[1] == 1:
        return draw(totals[:, 0], weights, rng)
    strata = problem.strata
    out = np.zeros((len(totals), problem.sample.size), dtype=np.int64)
    for stratum in np.flatnonzero(totals.any(axis=0)):
        cells = np.flatnonzero(strata == stratum)
        if not weights[:, cells].any():
            raise EstimationError(_no_weight(problem, int(stratum)))
        out[:, cells] = draw(totals[:, stratum], weights[:, cells], rng)
    return out


def _by_stratum(problem: Problem, values: Counts) -> Counts:
    sums = np.bincount(problem.strata, weights=values, minlength=len(problem.stratum_sizes))
    return np.asarray(sums, dtype=np.int64)


def _no_weight(problem: Problem, stratum: int) -> str:
    margins = problem.known_margins
    assert margins is not None
    at = cell_label(margins, tuple(int(i) for i in np.unravel_index(stratum, margins.shape)))
    return (
        f"the known margin of {at} is {int(problem.stratum_sizes[stratum])}, but the model gives"
        " all of its cells probability zero, as nobody in the sample shows how the margin is spread"
        " over them; use a Bayesian estimator or fewer terms"
    )
