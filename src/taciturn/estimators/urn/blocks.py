"""Compiled: the Ewens-Pitman urn of a block of samples."""

import numpy as np
from numba import njit

from taciturn.estimators.sampling.choosing import in_turn
from taciturn.estimators.sampling.urns import complete_sample
from taciturn.estimators.urn.kernels import known_of, sample_parameters

__all__ = ["complete_block", "learn_block"]


@njit(cache=True, nogil=True)
def learn_block(counts, urn, number, rngs, theta, sigma):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill θ and σ of many samples, (tables, draws); return k-hat and the effective
    number of proposals of each. Samples that fill all cells are left out.
    """
    prior, ends = urn
    k_hat, ess = np.empty(len(counts)), np.zeros(len(counts))
    never, certain = np.empty(1), np.zeros(1)
    for t in range(len(counts)):
        k_hat[t], never[0], all_filled = np.inf, 0.0, True
        for count in counts[t]:
            never[0] += count
            all_filled &= count > 0
        if not all_filled:
            known = known_of(counts[t], counts.shape[1], never, certain)
            given = (known, prior, ends, number, rngs[t])
            _, k_hat[t], ess[t] = sample_parameters(*given, theta[t], sigma[t])
    return k_hat, ess


@njit(cache=True, nogil=True)
def complete_block(samples, missing, urns, turns, limits, rngs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill those draws of populations, (tables, draws, cells), whose turn it is."""
    counts, fillable = samples
    theta, sigma = urns
    tables, draws, size = out.shape
    rows, equal, empty = np.empty(draws, np.int64), np.empty(0), np.empty((1, size), np.bool_)
    for t in range(tables):
        number = in_turn(turns[t], rows)
        own_theta, own_sigma = np.empty(number), np.empty(number)
        for k in range(number):
            own_theta[k], own_sigma[k] = theta[t, rows[k]], sigma[t, rows[k]]
        for i in range(size):
            empty[0, i] = fillable[i] and counts[t, i] == 0
        drawn, urn = np.empty((number, size), np.int64), (own_theta, own_sigma, equal)
        own = (counts[t : t + 1], empty, missing[t : t + 1], urn, limits, rngs[t])
        complete_sample(*own, drawn)
        for k in range(number):
            for i in range(size):
                out[t, rows[k], i] = drawn[k, i]
