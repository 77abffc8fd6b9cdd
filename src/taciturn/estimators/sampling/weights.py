"""Compiled: Pareto-smoothed importance weights, and a choice of proposals by them
(Vehtari, Simpson, Gelman, Yao & Gabry 2024, JMLR 25).
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.sampling.choosing import shuffle

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
    weights, possible, unknown = np.empty(size), 0, False
    for i in range(size):
        unknown |= math.isnan(log_weights[i])
        counts = math.isfinite(log_weights[i])
        weights[i] = log_weights[i] if counts else _IMPOSSIBLE
        possible += counts
    trusted = possible > _ENOUGH * size and not unknown
    k_hat = smooth_tail(weights) if trusted else math.inf
    highest, total, squares = -math.inf, 0.0, 0.0
    for i in range(size):
        highest = max(highest, weights[i])
    for i in range(size):
        weights[i] = math.exp(weights[i] - highest)
        total += weights[i]
    for i in range(size):
        weights[i] /= total
        squares += weights[i] ** 2
    # Systematic resampling adds less noise than independent choices.
    start, upto, proposal = rng.random(), weights[0], 0
    for k in range(number):
        point = (k + start) / number
        while upto < point and proposal < size - 1:
            proposal += 1
            upto += weights[proposal]
        chosen[k] = proposal
    shuffle(chosen, rng)
    return k_hat, 1.0 / squares


@njit(cache=True, nogil=True)
def smooth_tail(log_weights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shift all weights so that the largest is 0, and replace the largest by quantiles
    of a generalised Pareto distribution; return its shape, infinite where none fits.
    """
    size, highest = log_weights.size, -math.inf
    for i in range(size):
        highest = max(highest, log_weights[i])
    for i in range(size):
        log_weights[i] -= highest
    in_tail = int(3.0 * math.sqrt(size)) if size > 225 else size // 5
    if in_tail < _FEWEST_IN_TAIL:
        return 0.0
    order = np.argsort(log_weights)
    first = size - in_tail
    if log_weights[order[-1]] - log_weights[order[first]] < _TINY:  # there is none to smooth
        return 0.0
    excess, cutoff = np.empty(in_tail), math.exp(log_weights[order[first - 1]])
    for j in range(in_tail):
        excess[j] = math.exp(log_weights[order[first + j]]) - cutoff
    k_hat, scale = _fit_pareto(excess)
    if not math.isfinite(k_hat) or not scale > 0.0:
        return math.inf
    for j in range(in_tail):
        beyond = -math.log1p(-(j + 0.5) / in_tail)
        if k_hat != 0.0:
            beyond = math.expm1(k_hat * beyond) / k_hat
        value = math.log(max(cutoff + scale * beyond, _TINY))
        log_weights[order[first + j]] = min(value, 0.0)
    return k_hat


@njit(cache=True, nogil=True, error_model="numpy")
def _fit_pareto(excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shape and scale of a generalised Pareto distribution, from sorted numbers: the
    posterior mean of Zhang & Stephens (2009), Technometrics 51, on a grid of
    ``-shape / scale``; the shape drawn a little to a half.
    """
    size = excess.size
    quartile = excess[int(size / 4.0 + 0.5) - 1]
    if quartile <= excess[0]:  # far from such a distribution
        return math.inf, math.nan
    nodes, highest = 30 + int(math.sqrt(size)), -math.inf
    ratios, heights = np.empty(nodes), np.empty(nodes)
    for m in range(nodes):
        ratio = (1.0 - math.sqrt(nodes / (m + 0.5))) / (3.0 * quartile) + 1.0 / excess[-1]
        shape = _shape(ratio, excess)
        ratios[m] = ratio
        heights[m] = size * (math.log(-ratio / shape) - shape - 1.0)
        highest = max(highest, heights[m])
    total, whole, ratio = 0.0, 0.0, 0.0
    for m in range(nodes):
        heights[m] = math.exp(heights[m] - highest)
        total += heights[m]
    for m in range(nodes):
        if heights[m] >= 10.0 * _EPSILON * total:
            whole += heights[m]
            ratio += ratios[m] * heights[m]
    ratio /= whole
    shape = _shape(ratio, excess)
    return (size * shape + 5.0) / (size + 10.0), -shape / ratio


@njit(cache=True, nogil=True)
def _shape(ratio, excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """That of greatest likelihood, given the ratio."""
    total = 0.0
    for i in range(excess.size):
        total += math.log1p(-ratio * excess[i])
    return total / excess.size
