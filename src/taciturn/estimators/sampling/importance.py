"""Importance sampling: from weighted proposals to draws, and how far to trust them."""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.sampling.weights import choose

__all__ = ["all_converged", "proposals_for", "resample"]

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
    chosen = np.empty(number, dtype=np.int64)
    k_hat, ess = choose(log_weights, rng, chosen)
    return chosen, ImportanceDiagnostics(k_hat=float(k_hat), ess=float(ess))


def all_converged(k_hat: Floats, ess: Floats) -> npt.NDArray[np.bool_]:
    """Which of many samples of proposals cover their posterior, by k-hat and by the
    effective number.
    """
    found = zip(k_hat.tolist(), ess.tolist(), strict=True)
    return np.array([ImportanceDiagnostics(*own).converged for own in found], dtype=bool)
