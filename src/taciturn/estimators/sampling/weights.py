"""Compiled: Pareto-smoothed importance weights, and a choice of proposals by them
(Vehtari, Simpson, Gelman, Yao & Gabry 2024, JMLR 25).
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.sampling.shuffling import shuffle

__all__ = ["choose", "smooth_tail"]

_ENOUGH = 0.5  # of the proposals must be possible
_IMPOSSIBLE = -1e300  # the logarithm of the weight of others
_FEWEST_IN_TAIL = 5
_EPSILON = 2.220446049250313e-16
_TINY = 2.2250738585072014e-308


@njit(cache=True, nogil=True)
def choose(log_weights, rng, chosen):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `chosen` with proposals in proportion to their smoothed weights, in random
    order; return k-hat and the effective number of proposals.
    """
    size, number = log_weights.size, chosen.size
    smoothed, possible = np.empty(size), 0
    for i in range(size):
        counts = math.isfinite(log_weights[i])
        smoothed[i] = log_weights[i] if counts else _IMPOSSIBLE
        possible += counts
    k_hat = smooth_tail(smoothed) if possible > _ENOUGH * size else np.inf
    highest, total, squares = smoothed.max(), 0.0, 0.0
    for i in range(size):
        smoothed[i] = math.exp(smoothed[i] - highest)
        total += smoothed[i]
    for i in range(size):
        squares += (smoothed[i] / total) ** 2
    # Systematic resampling adds less noise than independent choices.
    start, upto, proposal = rng.random(), smoothed[0] / total, 0
    for k in range(number):
        point = (k + start) / number
        while upto < point and proposal < size - 1:
            proposal += 1
            upto += smoothed[proposal] / total
        chosen[k] = proposal
    shuffle(chosen, rng)
    return k_hat, 1.0 / squares


@njit(cache=True, nogil=True)
def smooth_tail(log_weights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Replace the largest weights by quantiles of a generalised Pareto distribution and
    shift all, the largest to 0; return the shape of that distribution.
    """
    size = log_weights.size
    log_weights -= log_weights.max()
    in_tail = int(3.0 * math.sqrt(size)) if size > 225 else size // 5
    if in_tail < _FEWEST_IN_TAIL:
        return 0.0
    order = np.argsort(log_weights)
    tail, before = order[size - in_tail :], order[size - in_tail - 1]
    if log_weights[tail[-1]] - log_weights[tail[0]] < _TINY:  # there is none to smooth
        return 0.0
    cutoff = math.exp(log_weights[before])
    k_hat, scale = _fit_pareto(np.exp(log_weights[tail]) - cutoff)
    if not math.isfinite(k_hat) or not scale > 0.0:
        return np.inf
    for j in range(in_tail):
        beyond = -math.log1p(-(j + 0.5) / in_tail)
        if k_hat != 0.0:
            beyond = math.expm1(k_hat * beyond) / k_hat
        log_weights[tail[j]] = min(math.log(max(cutoff + scale * beyond, _TINY)), 0.0)
    return k_hat


@njit(cache=True, nogil=True)
def _fit_pareto(excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shape and scale of a generalised Pareto distribution, from sorted numbers: the
    posterior mean of Zhang & Stephens (2009), Technometrics 51, on a grid of
    ``-shape / scale``; the shape drawn a little to a half.
    """
    size = excess.size
    quartile = excess[int(size / 4.0 + 0.5) - 1]
    if quartile <= excess[0]:  # far from such a distribution
        return np.inf, np.nan
    nodes = 30 + int(math.sqrt(size))
    ratios, heights = np.empty(nodes), np.empty(nodes)
    for m in range(nodes):
        ratio = (1.0 - math.sqrt(nodes / (m + 0.5))) / (3.0 * quartile) + 1.0 / excess[-1]
        shape = _shape(ratio, excess)
        ratios[m] = ratio
        heights[m] = size * (np.log(-ratio / shape) - shape - 1.0)
    heights = np.exp(heights - heights.max())
    heights /= heights.sum()
    heights[heights < 10.0 * _EPSILON] = 0.0
    ratio = (ratios * heights).sum() / heights.sum()
    shape = _shape(ratio, excess)
    return (size * shape + 5.0) / (size + 10.0), -shape / ratio


@njit(cache=True, nogil=True)
def _shape(ratio, excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """That of greatest likelihood, given the ratio."""
    total = 0.0
    for i in range(excess.size):
        total += np.log1p(-ratio * excess[i])
    return total / excess.size
