"""Compiled: the posterior of the Dirichlet-multinomial log-linear model with main
effects, and proposals for it.

Margins of all variables stand side by side in one array; levels are places there.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from taciturn.estimators.densities import log_density
from taciturn.estimators.special import log_rising_over_power, row_log_rising, sums_of_shares

__all__ = ["KappaPrior", "Known", "find_proposals", "log_posteriors", "weigh"]

_GRID = 120
_FIXED_POINT_STEPS = 8
_WIDE = 0.05  # share of proposals from the prior of the margins, which bounds the weights
_NEGLIGIBLE = 12.0  # the grid ends where the height is exp(-12) of the top, as the prior does
_WIDENINGS = 8
_LOWEST_KAPPA = 1e-12
_HIGHEST_KAPPA = 1e15
_SMALLEST = 1e-300  # weight of a cell, or share of a stratum


class Known(NamedTuple):
    """What is known of a sample.

    Attributes
    ----------
    counts : array, shape (occupied cells,)
    levels : array, shape (variables, occupied cells)
        Categories of the cells.
    starts : array, shape (variables + 1,)
        Where the categories of each variable start.
    prior : array, shape (variables,)
        Concentration of each margin.
    constant : float
        Logarithm of the share of a cell within its categories: of variables without a
        margin.
    fillable : array, shape (variables, cells)
        Categories of all cells that can be filled; no cells if all can be.
    strata : array, shape (variables, strata)
        Categories of the strata of known margins, -1 of variables that these do not
        have; no strata if no margins are known.
    of_stratum : float
        Logarithm of the share of a stratum within its categories.
    members : array, shape (cells,)
        Stratum of each cell that can be filled.
    sampled, sizes : array, shape (strata,)
        Individuals of each stratum in the sample and in the population.
    """

    counts: Any
    levels: Any
    starts: Any
    prior: Any
    constant: float
    fillable: Any
    strata: Any
    of_stratum: float
    members: Any
    sampled: Any
    sizes: Any


class KappaPrior(NamedTuple):
    """Density of κ, by kind and two parameters, and the logarithms of the ends of what
    it reaches.
    """

    kind: float
    first: float
    second: float
    low: float
    high: float


@njit(cache=True, nogil=True, error_model="numpy")
def _share(margins, levels, cell):  # type: ignore[no-untyped-def] # pragma: no cover
    product = 1.0
    for v in range(len(levels)):
        if levels[v, cell] >= 0:
            product *= margins[levels[v, cell]]
    return product


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_cells(share, margins, levels, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κπ of the occupied cells, from κ times the share of a cell within its
    categories.
    """
    out[:] = share
    for v in range(len(levels)):
        for i in range(out.size):
            out[i] *= margins[levels[v, i]]
    for i in range(out.size):
        out[i] = max(out[i], _SMALLEST)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_strata(kappa, margins, known, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κπ of the strata; return the share of all cells that can be filled."""
    if known.fillable.shape[1] == 0:
        share = kappa * math.exp(known.of_stratum)
        for s in range(out.size):
            out[s] = max(share * _share(margins, known.strata, s), _SMALLEST)
        return 1.0
    fillable, members, own = known.fillable, known.members, math.exp(known.constant)
    whole, total = 0.0, 0.0
    out[:] = 0.0
    for i in range(fillable.shape[1]):
        share = own * _share(margins, fillable, i)
        whole += share
        if out.size:
            out[members[i]] += share
    for s in range(out.size):
        out[s] = max(out[s], _SMALLEST)
        total += out[s]
    for s in range(out.size):
        out[s] = max(kappa * out[s] / total, _SMALLEST)
    return whole


@njit(cache=True, nogil=True, error_model="numpy")
def _log_rising(a, n):  # type: ignore[no-untyped-def] # pragma: no cover
    log_a = math.log(a)
    return log_rising_over_power(n, a, log_a) + n * log_a


@njit(cache=True, nogil=True, error_model="numpy")
def _log_dirichlet(shape, logs):  # type: ignore[no-untyped-def] # pragma: no cover
    total, found = 0.0, 0.0
    for j in range(shape.size):
        total += shape[j]
        found += (shape[j] - 1.0) * logs[j] - math.lgamma(shape[j])
    return found + math.lgamma(total)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_prior(kappa, log_margins, starts, concentration, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    found = log_density(int(prior[0]), prior[1], prior[2], kappa) + math.log(kappa)
    for v in range(concentration.size):
        if concentration[v] != 1.0:
            total = 0.0
            for j in range(starts[v], starts[v + 1]):
                total += log_margins[j]
            found += (concentration[v] - 1.0) * total
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _log_likelihood(kappa, counts, sampled, sizes, of_cells, of_strata):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the sample and the known margins, up to a constant, from κπ."""
    sample_size, others = 0.0, 0.0
    for i in range(counts.size):
        sample_size += counts[i]
    found = row_log_rising(of_cells, counts) - _log_rising(kappa, sample_size)
    for s in range(of_strata.size):
        rest = sizes[s] - sampled[s]
        if rest > 0.0:
            found += _log_rising(of_strata[s] + sampled[s], rest)
            others += rest
    return found - _log_rising(kappa + sample_size, others) if others > 0.0 else found


@njit(cache=True, nogil=True, error_model="numpy")
def log_posteriors(kappa, log_margins, known, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    """Density of log κ and of the margins, up to a constant, for each row."""
    counts, sampled, sizes = known.counts, known.sampled, known.sizes
    of_cells, of_strata = np.empty(counts.size), np.empty(sizes.size)
    starts, concentration, own = known.starts, known.prior, (prior.kind, prior.first, prior.second)
    levels, share, whole = known.levels, math.exp(known.constant), 1.0
    special = known.fillable.shape[1] > 0 or sizes.size > 0
    margins, out = np.empty(log_margins.shape[1]), np.empty(kappa.size)
    for k in range(kappa.size):
        for j in range(margins.size):
            margins[j] = math.exp(log_margins[k, j])
        if special:
            whole = _fill_strata(kappa[k], margins, known, of_strata)
        _fill_cells(kappa[k] * share / whole, margins, levels, of_cells)
        out[k] = _log_likelihood(kappa[k], counts, sampled, sizes, of_cells, of_strata)
        out[k] += _log_prior(kappa[k], log_margins[k], starts, concentration, own)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def find_proposals(known, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    """Nodes of log κ, their probabilities and the Dirichlet shapes of their margins."""
    low, high = prior.low, prior.high
    log_kappa, heights = np.empty(_GRID), np.empty(_GRID)
    shapes = np.empty((_GRID, known.starts[-1]))
    for _ in range(_WIDENINGS):
        log_kappa = np.linspace(low, high, _GRID)
        for k in range(_GRID):
            heights[k] = _propose(math.exp(log_kappa[k]), known, prior, shapes[k])
        # A large sample may know κ to be where its prior hardly reaches.
        step = (high - low) / 2.0
        lower = max(low - step, math.log(_LOWEST_KAPPA))
        higher = min(high + step, math.log(_HIGHEST_KAPPA))
        least = heights.max() - _NEGLIGIBLE
        down = heights[0] > least and _is_reached(lower, prior)
        up = heights[-1] > least and _is_reached(higher, prior)
        if not (down or up) or (lower == low and higher == high):
            break
        low, high = lower if down else low, higher if up else high
    chance = np.exp(heights - heights.max())
    return log_kappa, 0.98 * chance / chance.sum() + 0.02 / _GRID, shapes


@njit(cache=True, nogil=True, error_model="numpy")
def _is_reached(log_kappa, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    found = log_density(int(prior.kind), prior.first, prior.second, math.exp(log_kappa))
    return math.isfinite(found)


@njit(cache=True, nogil=True, error_model="numpy")
def _propose(kappa, known, prior, shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the Dirichlet shapes of the margins given κ; return the logarithm of its
    marginal height.
    """
    counts, sizes, levels, starts = known.counts, known.sizes, known.levels, known.starts
    cells, strata = np.empty(counts.size), np.empty(sizes.size)
    margins, hidden = np.empty(shape.size), np.zeros(shape.size)
    some_zeros, share, whole = known.fillable.shape[1] > 0, kappa * math.exp(known.constant), 1.0
    _observe(known, counts, sizes, hidden, shape)
    for _ in range(_FIXED_POINT_STEPS):
        _normalise(starts, shape, margins)
        if some_zeros or sizes.size:
            whole = _fill_strata(kappa, margins, known, strata)
        _fill_cells(share / whole, margins, levels, cells)
        if some_zeros:
            _hide(known, margins, whole, hidden)
        for i in range(cells.size):
            cells[i] = sums_of_shares(counts[i], cells[i])[0]
        for s in range(strata.size):
            strata[s] = sums_of_shares(sizes[s], strata[s])[0]
        _observe(known, cells, strata, hidden, shape)
    _normalise(starts, shape, margins)
    if some_zeros or sizes.size:
        whole = _fill_strata(kappa, margins, known, strata)
    _fill_cells(share / whole, margins, levels, cells)
    log_margins, own = np.log(margins), (prior.kind, prior.first, prior.second)
    height = _log_likelihood(kappa, counts, known.sampled, sizes, cells, strata)
    height += _log_prior(kappa, log_margins, starts, known.prior, own)
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
        shape[start:stop] *= min(own / shape[start:stop].sum(), 1.0)
        density += _log_dirichlet(shape[start:stop], log_margins[start:stop])
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
        informed = strata.size > 0 and of_strata[v, 0] >= 0
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
    hidden[:] = margins
    for i in range(known.fillable.shape[1]):
        share = own * _share(margins, known.fillable, i)
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
def weigh(known, prior, proposals, number, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Draw so many proposals of κ and the logarithms of the margins; return the
    logarithms of their weights, and them.
    """
    log_kappa, heights, shapes = proposals
    upto = np.cumsum(heights) / heights.sum()
    node = _in_order(np.searchsorted(upto, rng.random(number), side="right"), heights.size)
    width = log_kappa[1] - log_kappa[0]
    kappa = np.exp(log_kappa[node] + width * (rng.random(number) - 0.5))
    wide, zeros = rng.random(number) < _WIDE, np.zeros(shapes.shape[1])
    log_margins, constants = np.empty((number, shapes.shape[1])), np.empty(heights.size)
    main, defence = np.zeros(number), np.zeros(number)
    for v in range(known.prior.size):
        start, stop, even = known.starts[v], known.starts[v + 1], known.prior[v]
        _draw_margins(shapes, node, wide, even, start, stop, rng, log_margins)
        for m in range(heights.size):
            constants[m] = _log_dirichlet(shapes[m, start:stop], zeros[start:stop])
        constant = _log_dirichlet(np.full(stop - start, even), zeros[start:stop])
        for k in range(number):
            main[k] += constants[node[k]]
            defence[k] += constant
            for c in range(start, stop):
                main[k] += (shapes[node[k], c] - 1.0) * log_margins[k, c]
                defence[k] += (even - 1.0) * log_margins[k, c]
    log_weights = log_posteriors(kappa, log_margins, known, prior)
    for k in range(number):
        one, two = math.log(1.0 - _WIDE) + main[k], math.log(_WIDE) + defence[k]
        highest = max(one, two)
        both = highest + math.log(math.exp(one - highest) + math.exp(two - highest))
        log_weights[k] -= math.log(heights[node[k]]) + both
    return log_weights, kappa, log_margins


@njit(cache=True, nogil=True, error_model="numpy")
def _in_order(values, upto):  # type: ignore[no-untyped-def] # pragma: no cover
    """Sorted whole numbers below a limit."""
    times, out, k = np.zeros(upto, np.int64), np.empty(values.size, np.int64), 0
    for value in values:
        times[min(value, upto - 1)] += 1
    for value in range(upto):
        out[k : k + times[value]] = value
        k += times[value]
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
