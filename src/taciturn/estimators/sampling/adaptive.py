"""Importance sampling that learns where the posterior is, where the proposals that a
model knows of miss most of it: population Monte Carlo (Cappé, Douc, Guillin, Marin &
Robert 2008, Statistics and Computing 18) with one Student t distribution.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.sampling.importance import resample

__all__ = ["adapted"]

_ROUNDS: Final = 12
_PROPOSALS: Final = 4_000  # of a round,
_LAST: Final = 8_000  # and of one after which nothing is tempered, more each time,
_MOST: Final = 100_000  # but no more than that
_SURE: Final = 0.6  # k-hat of a round that others may follow: some are low by chance
_EACH: Final = 4  # effective proposals that a coordinate needs to be learned
_LOWEST: Final = 1e-3  # power of weights
_COOLING: Final = 0.7
_DEGREES: Final = 5.0  # of freedom: tails that weights can bear
_WIDER: Final = 2.0  # variance of the proposals, of what is learned
_RIDGE: Final = 1e-9

Floats = npt.NDArray[np.float64]


def adapted(
    log_density: Callable[[Floats], Floats],
    points: Floats,
    log_weights: Floats,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, ImportanceDiagnostics] | None:
    """Draws of a density on all of space, from proposals with the mean and the
    covariance of earlier ones; None where no round is good enough.

    Where few of these count their weights are tempered, by the largest power below 1
    with which enough do.

    Parameters
    ----------
    log_density : callable
        Its logarithm at each of some points, (number, coordinates), up to a constant;
        no number where it is not defined.
    points, log_weights : array, shape (number, coordinates) and (number,)
        The first proposals.
    draws : int
        Number of draws.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array, shape (draws, coordinates)
    ImportanceDiagnostics
        Of the last round.
    """
    size, last = points.shape[1], _LAST
    log_weights = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    for _ in range(_ROUNDS):
        if not np.isfinite(log_weights).any():  # nothing to learn from
            return None
        weights, power = _tempered(log_weights, _EACH * size)
        middle = weights @ points
        off = points - middle
        covariance = (off.T * weights) @ off
        ridge = _RIDGE * (1 + np.diag(covariance))
        root = np.linalg.cholesky(covariance + np.diag(ridge))
        number = max(_PROPOSALS, 2 * _EACH * size)
        if power == 1.0:
            number, last = max(draws, last), min(_MOST, 5 * last)
        variates = rng.standard_normal((number, size))
        variates /= np.sqrt(rng.chisquare(_DEGREES, (number, 1)) / _DEGREES)
        points = middle + variates @ (root.T * np.sqrt(_WIDER * (_DEGREES - 2) / _DEGREES))
        with np.errstate(all="ignore"):
            log_weights = log_density(points)
        log_weights += (_DEGREES + size) / 2 * np.log1p((variates**2).sum(axis=1) / _DEGREES)
        log_weights[~np.isfinite(log_weights)] = -np.inf
        if power == 1.0:
            chosen, diagnostics = resample(log_weights, draws, rng)
            if diagnostics.converged and diagnostics.k_hat <= _SURE:
                return points[chosen], diagnostics
    return None


def _tempered(log_weights: Floats, enough: float) -> tuple[Floats, float]:
    """Weights, to a power with which so many count, and that power."""
    power = 1.0
    while True:
        weights = np.exp(power * (log_weights - log_weights.max()))
        weights /= weights.sum()
        if power < _LOWEST or 1 / np.sum(weights**2) >= enough:
            return weights, power
        power *= _COOLING
