"""Compiled: the Ewens-Pitman urn of a block of samples."""

import numpy as np
from numba import njit

from taciturn.estimators.sampling.urns import complete_sample
from taciturn.estimators.urn.kernels import known_of, sample_parameters

__all__ = ["complete_block", "learn_block"]


@njit(cache=True, nogil=True)
def learn_block(counts, urn, number, rngs, theta, sigma):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill θ and σ of many samples, (tables, draws); return k-hat and the effective
    number of proposals of each. Samples that fill all cells are left out.
    """
    prior, ends = urn
    k_hat, ess = np.full(len(counts), np.inf), np.zeros(len(counts))
    for t in range(len(counts)):
        if counts[t].all():
            continue
        never = np.full(1, float(counts[t].sum()))
        known = known_of(counts[t], counts.shape[1], never, np.zeros(1))
        _, k_hat[t], ess[t] = sample_parameters(
            known, prior, ends, number, rngs[t], theta[t], sigma[t]
        )
    return k_hat, ess


@njit(cache=True, nogil=True)
def complete_block(samples, missing, urns, turns, limits, rngs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill those draws of populations, (tables, draws, cells), whose turn it is."""
    counts, fillable = samples
    theta, sigma = urns
    equal = np.empty(0)
    for t in range(len(counts)):
        rows = np.flatnonzero(turns[t])
        urn = (theta[t][rows], sigma[t][rows], equal)
        sample, empty = counts[t : t + 1], (counts[t : t + 1] == 0) & fillable
        drawn = np.empty((rows.size, counts.shape[1]), np.int64)
        complete_sample(sample, empty, missing[t : t + 1], urn, limits, rngs[t], drawn)
        out[t][rows] = drawn
