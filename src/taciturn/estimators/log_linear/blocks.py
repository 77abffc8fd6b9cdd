"""Compiled: the Dirichlet-multinomial log-linear model with main effects of a block of
samples.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.log_linear.main_effects import (
    KappaPrior,
    Known,
    find_proposals,
    weigh,
)
from taciturn.estimators.sampling.kernels import dirichlet_multinomial
from taciturn.estimators.sampling.weights import choose

__all__ = ["complete_block", "learn_block"]


@njit(cache=True, nogil=True)
def _known_of(counts, design):  # type: ignore[no-untyped-def] # pragma: no cover
    """What is known of a sample without known margins, from its cells that can be
    filled. A design is what samples of one shape have in common: levels of these cells,
    starts, prior and constant, and whether other cells are structural zeros.
    """
    levels, starts, prior, constant, some_zeros = design
    occupied = np.flatnonzero(counts)
    none, nobody, nothing = levels[:, :0].copy(), np.empty(0, np.int64), np.empty(0)
    own = np.empty((len(levels), occupied.size), np.int64)
    for v in range(len(levels)):
        own[v] = levels[v][occupied]
    found = counts[occupied].astype(np.float64)
    fillable = levels if some_zeros else none
    return Known(found, own, starts, prior, constant, fillable, none, 0.0, nobody, nothing, nothing)


@njit(cache=True, nogil=True)
def learn_block(counts, design, priors, number, rngs, kappa, margins):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κ and the margins of many samples, (tables, draws) and (tables, draws,
    categories); return k-hat and the effective number of proposals of each.
    """
    k_hat, ess = np.full(len(counts), np.inf), np.zeros(len(counts))
    chosen = np.empty(kappa.shape[1], np.int64)
    for t in range(len(counts)):
        own = priors[t]
        prior = KappaPrior(own[0], own[1], own[2], own[3], own[4])
        known = _known_of(counts[t], design)
        proposals = find_proposals(known, prior)
        log_weights, found, log_margins = weigh(known, prior, proposals, number, rngs[t])
        k_hat[t], ess[t] = choose(log_weights, rngs[t], chosen)
        for d in range(chosen.size):
            kappa[t, d] = found[chosen[d]]
            margins[t, d] = np.exp(log_margins[chosen[d]])
    return k_hat, ess


@njit(cache=True, nogil=True)
def complete_block(counts, missing, cells, parameters, turns, limits, rngs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill those draws of populations, (tables, draws, cells), whose turn it is."""
    levels, fillable = cells
    kappa, margins = parameters
    for t in range(len(counts)):
        rows = np.flatnonzero(turns[t])
        weights = np.empty((rows.size, counts.shape[1]))
        for k in range(rows.size):
            own = (kappa[t, rows[k]], np.log(margins[t, rows[k]]))
            _fill_weights(own, levels, fillable, counts[t], weights[k])
        drawn = np.empty(weights.shape, np.int64)
        totals = np.full(rows.size, missing[t])
        dirichlet_multinomial(totals, weights, limits, rngs[t], drawn)
        for k in range(rows.size):
            out[t, rows[k]] = counts[t] + drawn[k]


@njit(cache=True, nogil=True)
def _fill_weights(parameters, levels, fillable, counts, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of all cells κπ and the sample; none at structural zeros."""
    kappa, log_margins = parameters
    for i in range(out.size):
        out[i] = 0.0 if fillable[i] else -np.inf
        for v in range(len(levels)):
            out[i] += log_margins[levels[v, i]]
    highest, total = out.max(), 0.0
    for i in range(out.size):
        out[i] = math.exp(out[i] - highest)
        total += out[i]
    for i in range(out.size):
        out[i] = out[i] * (kappa / total) + counts[i]
