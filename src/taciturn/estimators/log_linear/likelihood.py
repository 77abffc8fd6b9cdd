"""The likelihood of the Dirichlet-multinomial log-linear model, for many draws."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.problem import Problem
from taciturn.estimators.special import log_rising, sum_log_rising

__all__ = ["log_likelihood", "log_margin_likelihood"]

_SMALLEST: Final = 1e-300  # weight

Floats = npt.NDArray[np.float64]


def log_likelihood(
    kappa: Floats, weights: Floats, counts: npt.NDArray[np.floating[Any] | np.integer[Any]]
) -> Floats:
    """Dirichlet-multinomial log-probability of a sample, up to a constant of the
    sample.

    Parameters
    ----------
    kappa : array, shape (draws,)
        Sum of the weights of all cells.
    weights : array, shape (draws, cells)
        κπ of the occupied cells; an empty cell adds nothing.
    counts : array, shape (cells,)
        The sample, positive; with weights not whole numbers.
    """
    return _sum_log_rising(weights, counts) - np.asarray(log_rising(kappa, counts.sum()))


def log_margin_likelihood(kappa: Floats, weights: Floats, problem: Problem) -> Floats:
    """Logarithm of p(known margins | sample, parameters), up to a constant.

    The individuals not sampled are Dirichlet-multinomial over the strata, with the
    weights κπ of a stratum and its sampled individuals.

    Parameters
    ----------
    kappa : array, shape (draws,)
        Sum of the weights of all strata.
    weights : array, shape (draws, strata)
        κπ of the strata.
    problem : Problem
        With known margins.
    """
    sampled = np.bincount(problem.strata, weights=problem.counts, minlength=weights.shape[1])
    rest = problem.stratum_sizes - sampled
    open_ = rest > 0
    if not open_.any():
        return np.zeros(len(kappa))
    a = weights[:, open_] + sampled[open_]
    whole = log_rising(kappa + problem.sample_size, problem.population_size - problem.sample_size)
    return _sum_log_rising(a, rest[open_]) - np.asarray(whole)


def _sum_log_rising(a: Floats, counts: npt.NDArray[np.floating[Any] | np.integer[Any]]) -> Floats:
    out = np.empty(len(a))
    sum_log_rising(np.maximum(a, _SMALLEST), counts.astype(float), out)
    return out
