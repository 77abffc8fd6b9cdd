"""Importance sampling: from weighted proposals to draws, and how far to trust them."""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import ImportanceDiagnostics, array_stats

__all__ = ["proposals_for", "resample"]

_ENOUGH: Final = 0.5  # of the proposals must be possible

_EACH: Final = 2  # proposals of a draw,
_FEWEST: Final = 1000  # but so many, for the tail of their weights to be known,
_MOST: Final = 4000  # and no more, but that each draw has one

Floats = npt.NDArray[np.float64]


def proposals_for(draws: int) -> int:
    """Number of proposals from which to choose so many draws."""
    return max(_FEWEST, min(_EACH * draws, _MOST), draws)


def resample(
    log_weights: Floats, number: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], ImportanceDiagnostics]:
    """Choose proposals in proportion to their Pareto-smoothed weights.

    Parameters
    ----------
    log_weights : array, shape (proposals,)
        Logarithm of target over proposal, up to a constant; ``-inf`` for a proposal
        that the target rules out.
    number : int
        Number of draws; a proposal may be chosen more than once.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array, shape (number,)
        Indices of proposals, in random order.
    ImportanceDiagnostics

    References
    ----------
    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling,
    JMLR 25.
    """
    counting = np.isfinite(log_weights)
    smoothed, k_hat = np.where(counting, log_weights, -1e300), np.inf
    if counting.mean() > _ENOUGH:
        try:
            with np.errstate(over="ignore"):  # of a tail that no draws can be trusted with
                smoothed, k_hat = array_stats().psislw(
                    log_weights.max() - log_weights
                )  # psislw takes log-likelihoods, that is, negative log-weights
        except ValueError:  # the largest weights are all the same: there is no tail to smooth
            k_hat = 0.0
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    # Systematic resampling adds less noise than independent choices.
    points = (np.arange(number) + rng.random()) / number
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)
    diagnostics = ImportanceDiagnostics(k_hat=float(k_hat), ess=float(1 / np.sum(weights**2)))
    return rng.permutation(chosen), diagnostics
