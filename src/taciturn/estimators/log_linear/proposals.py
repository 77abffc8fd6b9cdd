"""Compiled: proposals for the posterior of the Dirichlet-multinomial log-linear model
with main effects, and their weights.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.densities import log_density
from taciturn.estimators.log_linear.posterior import (
    fill_cells,
    fill_strata,
    log_likelihood,
    log_prior,
    share_of,
)
from taciturn.estimators.sampling.choosing import choose_places
from taciturn.estimators.special import sums_of_shares

__all__ = ["HIGHEST_KAPPA", "LOWEST_KAPPA", "find_proposals", "propose"]

_GRID = 120
_FIXED_POINT_STEPS = 8
_WIDE = 0.05  # share of proposals from the prior of the margins, which bounds the weights
_EVERYWHERE = 0.02  # share of proposals that is the same for all κ of the grid
_NEGLIGIBLE = 12.0  # the grid ends where the height is exp(-12) of the top, as the prior does
_WIDENINGS = 8
LOWEST_KAPPA = 1e-12
HIGHEST_KAPPA = 1e15


@njit(cache=True, nogil=True, error_model="numpy")
def find_proposals(known, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    """Nodes of log κ, their probabilities and the Dirichlet shapes of their margins."""
    low, high, highest = prior.low, prior.high, -math.inf
    log_kappa, heights = np.empty(_GRID), np.empty(_GRID)
    shapes = np.empty((_GRID, known.starts[-1]))
    for _ in range(_WIDENINGS):
        highest = -math.inf
        for k in range(_GRID):
            log_kappa[k] = low + k * ((high - low) / (_GRID - 1))
            heights[k] = _shape(math.exp(log_kappa[k]), known, prior, shapes[k])
            highest = max(highest, heights[k])
        # A large sample may know κ to be where its prior hardly reaches.
        step = (high - low) / 2.0
        lower = max(low - step, math.log(LOWEST_KAPPA))
        higher = min(high + step, math.log(HIGHEST_KAPPA))
        down = heights[0] > highest - _NEGLIGIBLE and _is_reached(lower, prior)
        up = heights[-1] > highest - _NEGLIGIBLE and _is_reached(higher, prior)
        if not (down or up) or (lower == low and higher == high):
            break
        low, high = lower if down else low, higher if up else high
    total = 0.0
    for k in range(_GRID):
        heights[k] = math.exp(heights[k] - highest)
        total += heights[k]
    for k in range(_GRID):
        heights[k] = (1.0 - _EVERYWHERE) * heights[k] / total + _EVERYWHERE / _GRID
    return log_kappa, heights, shapes


@njit(cache=True, nogil=True, error_model="numpy")
def _is_reached(log_kappa, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    found = log_density(prior.kind, prior.first, prior.second, math.exp(log_kappa))
    return math.isfinite(found)


@njit(cache=True, nogil=True, error_model="numpy")
def _shape(kappa, known, prior, shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the Dirichlet shapes of the margins given κ; return the logarithm of its
    marginal height.
    """
    counts, sizes, levels, starts = known.counts, known.sizes, known.levels, known.starts
    cells, strata = np.empty(counts.size), np.empty(sizes.size)
    margins, hidden, log_margins = np.empty(shape.size), np.zeros(shape.size), np.empty(shape.size)
    some_zeros, share, whole = known.fillable.shape[1] > 0, kappa * math.exp(known.constant), 1.0
    _observe(known, counts, sizes, hidden, shape)
    for _ in range(_FIXED_POINT_STEPS):
        _normalise(starts, shape, margins)
        if some_zeros or sizes.size:
            whole = fill_strata(kappa, margins, known, strata)
        fill_cells(share / whole, margins, levels, cells)
        if some_zeros:
            _hide(known, margins, whole, hidden)
        for i in range(cells.size):
            cells[i] = sums_of_shares(counts[i], cells[i])[0]
        for s in range(strata.size):
            strata[s] = sums_of_shares(sizes[s], strata[s])[0]
        _observe(known, cells, strata, hidden, shape)
    _normalise(starts, shape, margins)
    if some_zeros or sizes.size:
        whole = fill_strata(kappa, margins, known, strata)
    fill_cells(share / whole, margins, levels, cells)
    for j in range(margins.size):
        log_margins[j] = math.log(margins[j])
    own = (prior.kind, prior.first, prior.second)
    height = log_likelihood(kappa, counts, known.sampled, sizes, cells, strata)
    height += log_prior(kappa, log_margins, starts, known.prior, own)
    return height - _temper(known, log_margins, cells, strata, shape)


@njit(cache=True, nogil=True, error_model="numpy")
def _temper(known, log_margins, cells, strata, shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Widen the shapes by what the numbers of tables leave open; return the logarithm
    of their density.
    """
    informed, by_strata, density = 0.0, 0.0, 0.0
    for i in range(cells.size):
        informed += sums_of_shares(known.counts[i], cells[i])[1]
    for s in range(strata.size):
        by_strata += sums_of_shares(known.sizes[s], strata[s])[1]
    for v in range(known.prior.size):
        start, stop = known.starts[v], known.starts[v + 1]
        own = by_strata if _is_known(known, v) else informed
        own += known.prior[v] * (stop - start)
        total = 0.0
        for j in range(start, stop):
            total += shape[j]
        for j in range(start, stop):
            shape[j] *= min(own / total, 1.0)
        density += _log_dirichlet(shape, log_margins, start, stop)
    return density


@njit(cache=True, nogil=True, error_model="numpy")
def _is_known(known, v):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether the strata inform a margin, and not the cells of the sample."""
    return known.strata.shape[1] > 0 and known.strata[v, 0] >= 0


@njit(cache=True, nogil=True, error_model="numpy")
def _observe(known, cells, strata, hidden, shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Dirichlet shapes of the margins, if all tables of their categories, and those at
    structural zeros, were observations.
    """
    starts, prior, levels, of_strata = known.starts, known.prior, known.levels, known.strata
    by_cells = by_strata = 0.0
    for i in range(cells.size):
        by_cells += cells[i]
    for s in range(strata.size):
        by_strata += strata[s]
    for v in range(prior.size):
        informed = _is_known(known, v)
        total = by_strata if informed else by_cells
        for j in range(starts[v], starts[v + 1]):
            shape[j] = prior[v] + hidden[j] * total
        if informed:
            for s in range(strata.size):
                shape[of_strata[v, s]] += strata[s]
        else:
            for i in range(cells.size):
                shape[levels[v, i]] += cells[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _hide(known, margins, whole, hidden):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the share of each category at structural zeros, relative to all others. What
    would be there says nothing of a margin, but what is left is only in proportion to
    it together with that.
    """
    own = math.exp(known.constant)
    for j in range(hidden.size):
        hidden[j] = margins[j]
    for i in range(known.fillable.shape[1]):
        share = own * share_of(margins, known.fillable, i)
        for v in range(known.prior.size):
            hidden[known.fillable[v, i]] -= share
    for j in range(hidden.size):
        hidden[j] = max(hidden[j], 0.0) / whole


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(starts, shape, margins):  # type: ignore[no-untyped-def] # pragma: no cover
    for v in range(starts.size - 1):
        total = 0.0
        for j in range(starts[v], starts[v + 1]):
            total += shape[j]
        for j in range(starts[v], starts[v + 1]):
            margins[j] = shape[j] / total


@njit(cache=True, nogil=True, error_model="numpy")
def propose(known, proposals, number, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Draw so many proposals of κ and the logarithms of the margins; return them and
    the logarithms of their density, over log κ.
    """
    log_kappa, heights, shapes = proposals
    node = _in_order(choose_places(heights, number, rng), heights.size)
    width, categories = log_kappa[1] - log_kappa[0], shapes.shape[1]
    kappa, wide = np.empty(number), np.empty(number, np.bool_)
    for k in range(number):
        kappa[k] = math.exp(log_kappa[node[k]] + width * (rng.random() - 0.5))
    for k in range(number):
        wide[k] = rng.random() < _WIDE
    log_margins, constants = np.empty((number, categories)), np.empty(heights.size)
    main, defence = np.zeros(number), np.zeros(number)
    zeros, evens = np.zeros(categories), np.empty(categories)
    for v in range(known.prior.size):
        start, stop, even = known.starts[v], known.starts[v + 1], known.prior[v]
        for c in range(start, stop):
            evens[c] = even
        _draw_margins(shapes, node, wide, even, start, stop, rng, log_margins)
        for m in range(heights.size):
            constants[m] = _log_dirichlet(shapes[m], zeros, start, stop)
        constant = _log_dirichlet(evens, zeros, start, stop)
        for k in range(number):
            main[k] += constants[node[k]]
            defence[k] += constant
            for c in range(start, stop):
                main[k] += (shapes[node[k], c] - 1.0) * log_margins[k, c]
                defence[k] += (even - 1.0) * log_margins[k, c]
    for k in range(number):
        one, two = math.log(1.0 - _WIDE) + main[k], math.log(_WIDE) + defence[k]
        highest = max(one, two)
        both = highest + math.log(math.exp(one - highest) + math.exp(two - highest))
        main[k] = math.log(heights[node[k]]) + both
    return kappa, log_margins, main


@njit(cache=True, nogil=True, error_model="numpy")
def _in_order(values, upto):  # type: ignore[no-untyped-def] # pragma: no cover
    """Sorted whole numbers below a limit."""
    times, out, k = np.zeros(upto, np.int64), np.empty(values.size, np.int64), 0
    for value in values:
        times[value] += 1
    for value in range(upto):
        for _ in range(times[value]):
            out[k] = value
            k += 1
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_margins(shapes, node, wide, even, start, stop, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the logarithms of the shares of some categories, which tiny shapes do not
    underflow.
    """
    for k in range(node.size):
        for c in range(start, stop):
            shape = even if wide[k] else shapes[node[k], c]
            out[k, c] = math.log(rng.standard_gamma(shape + 1.0))
    for k in range(node.size):
        highest, total = -math.inf, 0.0
        for c in range(start, stop):
            shape = even if wide[k] else shapes[node[k], c]
            out[k, c] -= rng.standard_exponential() / shape
            highest = max(highest, out[k, c])
        for c in range(start, stop):
            total += math.exp(out[k, c] - highest)
        highest += math.log(total)
        for c in range(start, stop):
            out[k, c] -= highest


@njit(cache=True, nogil=True, error_model="numpy")
def _log_dirichlet(shape, logs, start, stop):  # type: ignore[no-untyped-def] # pragma: no cover
    """Density of a margin, from the logarithms of its shares."""
    total, found = 0.0, 0.0
    for j in range(start, stop):
        total += shape[j]
        found += (shape[j] - 1.0) * logs[j] - math.lgamma(shape[j])
    return found + math.lgamma(total)
