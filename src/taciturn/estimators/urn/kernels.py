"""Compiled: the posterior of the Ewens-Pitman urn's concentration and discount, by
quadrature.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from taciturn.estimators.densities import log_density
from taciturn.estimators.sampling.choosing import choose_places
from taciturn.estimators.sampling.weights import choose
from taciturn.estimators.special import log_rising, log_steps

__all__ = ["Known", "UrnPrior", "known_of", "log_probabilities", "sample_parameters"]

_ZOOMS = 15
_NODES = 64
_NEGLIGIBLE = 16.0  # the posterior is cut off at exp(-16) of its maximum
_SHARE_EVERYWHERE = 0.02
_OF_NEIGHBOURS = math.exp(-2.3)  # about a tenth
_CLOSEST_TO_ONE = 1e-12
_LEAST_WEIGHT = 700.0  # below the largest, as a logarithm


class Known(NamedTuple):
    """What is known of a sample.

    Attributes
    ----------
    values, times : array
        Distinct counts above 1, and how many cells have each.
    seen, size, cells : int
        Cells with somebody, individuals, and all cells.
    steps, log_chance : array
        Possible closing times, and the logarithms of their probabilities.
    """

    values: Any
    times: Any
    seen: int
    size: int
    cells: int
    steps: Any
    log_chance: Any


class UrnPrior(NamedTuple):
    """The density of θ, by kind and two parameters; the discount if it is given, NaN
    otherwise; the bounds of its prior, and the parameters of a Beta between them.
    """

    kind: float
    first: float
    second: float
    discount: float
    lower: float
    upper: float
    alpha: float
    beta: float


@njit(cache=True, nogil=True, error_model="numpy")
def known_of(counts, cells, steps, log_chance):  # type: ignore[no-untyped-def] # pragma: no cover
    """What is known of a sample, from the possible closing times."""
    values, times = _distinct(counts)
    seen, size = 0, 0
    for count in counts:
        seen += count > 0
        size += count
    return Known(values, times, seen, size, cells, steps, log_chance)


@njit(cache=True, nogil=True, error_model="numpy")
def _distinct(counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """The distinct counts above 1 in order, and how many cells have each."""
    ordered = np.sort(counts)
    values, times, found = np.empty(counts.size), np.empty(counts.size), 0
    for i in range(ordered.size):
        if ordered[i] < 2:
            continue
        if found == 0 or ordered[i] != values[found - 1]:
            values[found], times[found] = ordered[i], 0.0
            found += 1
        times[found - 1] += 1.0
    return values[:found], times[:found]


@njit(cache=True, nogil=True, error_model="numpy")
def log_probabilities(theta, sigma, known, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out` with the logarithm of the probability of a sample's partition."""
    for k in range(out.size):
        out[k] = _log_probability(theta[k], sigma[k], known)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_probability(theta, sigma, known):  # type: ignore[no-untyped-def] # pragma: no cover
    before, after = np.empty(known.steps.size), np.empty(known.steps.size)
    _log_before(theta, known, before)
    _log_after(sigma, known, after)
    waited = _log_sum(before, after)
    return log_steps(theta, sigma, known.seen - 1) + _log_joined(sigma, known) + waited


@njit(cache=True, nogil=True, error_model="numpy")
def _log_joined(sigma, known):  # type: ignore[no-untyped-def] # pragma: no cover
    """``Σ log (1 - σ)_{f_j - 1}``."""
    values, times = known.values, known.times
    if values.size == 0:
        return 0.0
    total, low = 0.0, math.lgamma(1.0 - sigma)
    for i in range(values.size):
        total += times[i] * (math.lgamma(values[i] - sigma) - low)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _log_before(theta, known, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """``-log (θ + 1)_{s-1}`` for each closing time."""
    above, steps = theta + 1.0, known.steps
    for i in range(out.size):
        n = steps[i] - 1.0
        out[i] = -log_rising(above, n) if n > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _log_after(sigma, known, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """``log P(s) - log (s - Kσ)_{n-s}`` for each closing time."""
    steps, log_chance, size, cells = known.steps, known.log_chance, known.size, known.cells
    for i in range(out.size):
        out[i] = log_chance[i]
        if known.seen == cells:
            taken = cells * sigma
            out[i] += math.lgamma(steps[i] - taken) - math.lgamma(size - taken)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_sum(one, two):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the sum of products, from logarithms of both factors."""
    if one.size == 1:
        return one[0] + two[0]
    highest, total = -math.inf, 0.0
    for i in range(one.size):
        highest = max(highest, one[i] + two[i])
    if not math.isfinite(highest):
        return highest
    for i in range(one.size):
        total += math.exp(one[i] + two[i] - highest)
    return highest + math.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_expit(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return -math.log1p(math.exp(-x)) if x >= 0.0 else x - math.log1p(math.exp(x))


@njit(cache=True, nogil=True, error_model="numpy")
def _sigma(logit, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    """The discount, from its logit relative to the bounds of its prior."""
    if not math.isnan(prior.discount):
        return prior.discount
    sigma = prior.lower + (prior.upper - prior.lower) * math.exp(_log_expit(logit))
    return min(max(sigma, 0.0), 1.0 - _CLOSEST_TO_ONE)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior_of_theta(log_theta, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    return log_density(prior.kind, prior.first, prior.second, math.exp(log_theta)) + log_theta


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior_of_sigma(logit, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    if not math.isnan(prior.discount):
        return 0.0
    return prior.alpha * _log_expit(logit) + prior.beta * _log_expit(-logit)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(log_thetas, logits, known, prior, heights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the posterior at each node, not normalised."""
    times, nodes = known.steps.size, logits.size
    sigmas, rest = np.empty(nodes), np.empty(nodes)
    before, after = np.empty(times), np.empty((nodes, times))
    for j in range(nodes):
        sigmas[j] = _sigma(logits[j], prior)
        rest[j] = _log_joined(sigmas[j], known) + _log_prior_of_sigma(logits[j], prior)
        _log_after(sigmas[j], known, after[j])
    for i in range(log_thetas.size):
        theta, own = math.exp(log_thetas[i]), _log_prior_of_theta(log_thetas[i], prior)
        _log_before(theta, known, before)
        for j in range(nodes):
            opened = log_steps(theta, sigmas[j], known.seen - 1)
            value = own + rest[j] + opened + _log_sum(before, after[j])
            heights[i, j] = -math.inf if math.isnan(value) else value


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_centres(low, high, centres):  # type: ignore[no-untyped-def] # pragma: no cover
    for k in range(centres.size):
        centres[k] = low + (high - low) / centres.size * (k + 0.5)


@njit(cache=True, nogil=True, error_model="numpy")
def _narrower(used, low, high):  # type: ignore[no-untyped-def] # pragma: no cover
    """Ends of the range of used nodes, widened by one on each side."""
    width, first, last = (high - low) / used.size, -1, -1
    for k in range(used.size):
        if used[k]:
            first, last = k if first < 0 else first, k
    return max(low, low + (first - 1) * width), min(high, low + (last + 2) * width)


@njit(cache=True, nogil=True, error_model="numpy")
def _steepness(heights):  # type: ignore[no-untyped-def] # pragma: no cover
    """How far the highest node lies above its neighbours: the maximum between nodes may
    be higher by as much.
    """
    i, j, found = 0, 0, -math.inf
    for a in range(heights.shape[0]):
        for b in range(heights.shape[1]):
            if heights[a, b] > heights[i, j]:
                i, j = a, b
    for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
        inside = 0 <= a < heights.shape[0] and 0 <= b < heights.shape[1]
        if inside and math.isfinite(heights[a, b]):
            found = max(found, heights[i, j] - heights[a, b])
    return found if found > -math.inf else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _close_in(known, prior, ends, heights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the heights of a grid over the region that the posterior occupies; return
    whether there is one, and its ends.
    """
    low, high, lower, upper = ends
    rows, columns = heights.shape
    log_thetas, logits = np.empty(rows), np.empty(columns)
    if not low < high:
        return False, ends
    for _ in range(_ZOOMS):
        _fill_centres(low, high, log_thetas)
        _fill_centres(lower, upper, logits)
        _fill(log_thetas, logits, known, prior, heights)
        highest = _highest(heights)
        if not math.isfinite(highest):
            return False, ends
        least = highest - _NEGLIGIBLE - 2.0 * _steepness(heights)
        in_row, in_column = np.zeros(rows, np.bool_), np.zeros(columns, np.bool_)
        for i in range(rows):
            for j in range(columns):
                if heights[i, j] > least:
                    in_row[i] = in_column[j] = True
        one, two = _narrower(in_row, low, high), _narrower(in_column, lower, upper)
        narrow = one[1] - one[0] > 0.7 * (high - low)
        if narrow and two[1] - two[0] > 0.7 * (upper - lower):
            return True, (low, high, lower, upper)
        low, high, lower, upper = one[0], one[1], two[0], two[1]
    return False, ends


@njit(cache=True, nogil=True, error_model="numpy")
def _highest(values):  # type: ignore[no-untyped-def] # pragma: no cover
    found = -math.inf
    for value in values.flat:
        found = max(found, value)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _chances(heights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Probabilities of the cells around the nodes. Where the posterior is steep, a cell
    is higher towards the mode than at its centre: a tenth of its highest neighbour is
    added.
    """
    rows, columns = heights.shape
    highest, total, flat = _highest(heights), 0.0, np.empty(rows * columns)
    for i in range(rows):
        for j in range(columns):
            around = -math.inf
            for a in range(max(i - 1, 0), min(i + 2, rows)):
                for b in range(max(j - 1, 0), min(j + 2, columns)):
                    around = max(around, heights[a, b])
            own = math.exp(heights[i, j] - highest)
            flat[i * columns + j] = own + _OF_NEIGHBOURS * math.exp(around - highest)
            total += flat[i * columns + j]
    for k in range(flat.size):
        flat[k] = (1.0 - _SHARE_EVERYWHERE) * flat[k] / total + _SHARE_EVERYWHERE / flat.size
    return flat


@njit(cache=True, nogil=True, error_model="numpy")
def sample_parameters(known, prior, ends, number, rng, theta, sigma):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill θ and σ with draws from so many proposals; return whether the posterior can
    be computed, k-hat and the effective number of proposals.

    `ends` are those of the first grid, over log θ and the logit of σ.
    """
    columns = _NODES if math.isnan(prior.discount) else 1
    heights = np.empty((_NODES, columns))
    possible, (low, high, lower, upper) = _close_in(known, prior, ends, heights)
    if not possible:
        return False, math.inf, 0.0
    chance = _chances(heights)
    cell = choose_places(chance, number, rng)
    log_theta, logit, log_weights = np.empty(number), np.empty(number), np.empty(number)
    for k in range(number):
        log_theta[k] = low + (high - low) / _NODES * (cell[k] // columns + rng.random())
    for k in range(number):
        logit[k] = lower + (upper - lower) / columns * (cell[k] % columns + rng.random())
    for k in range(number):
        own = _log_prior_of_theta(log_theta[k], prior) + _log_prior_of_sigma(logit[k], prior)
        own += _log_probability(math.exp(log_theta[k]), _sigma(logit[k], prior), known)
        log_weights[k] = -math.inf if math.isnan(own) else own - math.log(chance[cell[k]])
    highest = _highest(log_weights)
    if not math.isfinite(highest):
        return False, math.inf, 0.0
    for k in range(number):
        log_weights[k] = max(log_weights[k], highest - _LEAST_WEIGHT)
    chosen = np.empty(theta.size, np.int64)
    k_hat, ess = choose(log_weights, rng, chosen)
    for k in range(theta.size):
        theta[k] = math.exp(log_theta[chosen[k]])
        sigma[k] = _sigma(logit[chosen[k]], prior)
    return True, k_hat, ess
