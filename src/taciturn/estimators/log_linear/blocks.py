"""Compiled: the Dirichlet-multinomial log-linear model with main effects of a block of
samples.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.log_linear.posterior import KappaPrior, Known, log_posteriors
from taciturn.estimators.log_linear.proposals import find_proposals, propose
from taciturn.estimators.sampling.choosing import in_turn
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
    occupied = 0
    for count in counts:
        occupied += count > 0
    found, own, at = np.empty(occupied), np.empty((len(levels), occupied), np.int64), 0
    for i in range(counts.size):
        if counts[i] > 0:
            found[at] = counts[i]
            for v in range(len(levels)):
                own[v, at] = levels[v, i]
            at += 1
    none, nobody, nothing = np.empty((len(levels), 0), np.int64), np.empty(0, np.int64), np.empty(0)
    fillable = levels if some_zeros else none
    return Known(found, own, starts, prior, constant, fillable, none, 0.0, nobody, nothing, nothing)


@njit(cache=True, nogil=True)
def learn_block(counts, design, priors, number, rngs, kappa, margins):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κ and the margins of many samples, (tables, draws) and (tables, draws,
    categories); return k-hat and the effective number of proposals of each.
    """
    k_hat, ess = np.empty(len(counts)), np.empty(len(counts))
    chosen = np.empty(kappa.shape[1], np.int64)
    for t in range(len(counts)):
        own = priors[t]
        prior = KappaPrior(own[0], own[1], own[2], own[3], own[4])
        known = _known_of(counts[t], design)
        proposals = find_proposals(known, prior)
        found, log_margins, log_proposal = propose(known, proposals, number, rngs[t])
        log_weights = log_posteriors(found, log_margins, known, prior)
        for k in range(number):
            log_weights[k] -= log_proposal[k]
        k_hat[t], ess[t] = choose(log_weights, rngs[t], chosen)
        for d in range(chosen.size):
            kappa[t, d] = found[chosen[d]]
            for c in range(margins.shape[2]):
                margins[t, d, c] = math.exp(log_margins[chosen[d], c])
    return k_hat, ess


@njit(cache=True, nogil=True)
def complete_block(counts, missing, cells, parameters, turns, limits, rngs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill those draws of populations, (tables, draws, cells), whose turn it is."""
    levels, fillable = cells
    kappa, margins = parameters
    tables, draws, size = out.shape
    rows = np.empty(draws, np.int64)
    for t in range(tables):
        number = in_turn(turns[t], rows)
        weights, totals = np.empty((number, size)), np.empty(number, np.int64)
        for k in range(number):
            totals[k], own = missing[t], (kappa[t, rows[k]], margins[t, rows[k]])
            _fill_weights(own, levels, fillable, counts[t], weights[k])
        drawn = np.empty((number, size), np.int64)
        dirichlet_multinomial(totals, weights, limits, rngs[t], drawn)
        for k in range(number):
            for i in range(size):
                out[t, rows[k], i] = counts[t, i] + drawn[k, i]


@njit(cache=True, nogil=True)
def _fill_weights(parameters, levels, fillable, counts, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of all cells κπ and the sample; none at structural zeros."""
    (kappa, margins), highest, total = parameters, -math.inf, 0.0
    logs = np.empty(margins.size)
    for c in range(margins.size):
        logs[c] = math.log(margins[c]) if margins[c] > 0.0 else -math.inf
    for i in range(out.size):
        out[i] = 0.0 if fillable[i] else -math.inf
        for v in range(len(levels)):
            out[i] += logs[levels[v, i]]
        highest = max(highest, out[i])
    for i in range(out.size):
        out[i] = math.exp(out[i] - highest)
        total += out[i]
    for i in range(out.size):
        out[i] = out[i] * (kappa / total) + counts[i]
