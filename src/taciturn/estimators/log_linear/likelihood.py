"""The likelihood of the Dirichlet-multinomial log-linear model, for many draws."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.problem import Problem
from taciturn.estimators.special import log_rising

__all__ = ["log_likelihood", "log_margin_likelihood"]

_MOST_FACTORS: Final = 12  # of a product: more could overflow

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
    return np.asarray(
        _sum_log_rising(np.maximum(weights, 1e-300), counts) - log_rising(kappa, counts.sum())
    )


def _sum_log_rising(a: Floats, counts: npt.NDArray[np.floating[Any] | np.integer[Any]]) -> Floats:
    """``log_rising(a, counts).sum(axis=1)``, from the product itself where it is short,
    which is quicker.
    """
    long = (counts > _MOST_FACTORS) | (counts % 1 > 0)
    short = np.flatnonzero(~long)
    short = short[np.argsort(-counts[short])]
    factors = a[:, short]
    product = factors.copy()
    for j in range(1, _MOST_FACTORS):
        longer = np.count_nonzero(counts[short] > j)
        product[:, :longer] *= factors[:, :longer] + j
    return np.asarray(
        np.log(product).sum(axis=1) + log_rising(a[:, long], counts[long]).sum(axis=1)
    )


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
    a = np.maximum(weights[:, open_] + sampled[open_], 1e-300)
    whole = log_rising(kappa + problem.sample_size, problem.population_size - problem.sample_size)
    return np.asarray(log_rising(a, rest[open_]).sum(axis=1) - whole)
