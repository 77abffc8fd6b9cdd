"""Compiled: the posterior of the Dirichlet-multinomial log-linear model with main
effects.

Margins of all variables stand side by side in one array; levels are places there.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from taciturn.estimators.densities import log_density
from taciturn.estimators.special import log_rising, row_log_rising

__all__ = [
    "KappaPrior",
    "Known",
    "fill_cells",
    "fill_strata",
    "log_likelihood",
    "log_likelihoods",
    "log_posteriors",
    "log_prior",
    "share_of",
]

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
def share_of(margins, levels, cell):  # type: ignore[no-untyped-def] # pragma: no cover
    """The share of a cell within its variables, from margins."""
    product = 1.0
    for v in range(len(levels)):
        if levels[v, cell] >= 0:
            product *= margins[levels[v, cell]]
    return product


@njit(cache=True, nogil=True, error_model="numpy")
def fill_cells(share, margins, levels, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κπ of the occupied cells, from κ times the share of a cell within its
    categories.
    """
    for i in range(out.size):
        out[i] = share
    for v in range(len(levels)):
        for i in range(out.size):
            out[i] *= margins[levels[v, i]]
    for i in range(out.size):
        out[i] = max(out[i], _SMALLEST)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_strata(kappa, margins, known, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill κπ of the strata; return the share of all cells that can be filled."""
    if known.fillable.shape[1] == 0:
        share = kappa * math.exp(known.of_stratum)
        for s in range(out.size):
            out[s] = max(share * share_of(margins, known.strata, s), _SMALLEST)
        return 1.0
    fillable, members, own = known.fillable, known.members, math.exp(known.constant)
    whole, total = 0.0, 0.0
    for s in range(out.size):
        out[s] = 0.0
    for i in range(fillable.shape[1]):
        share = own * share_of(margins, fillable, i)
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
def log_prior(kappa, log_margins, starts, concentration, prior):  # type: ignore[no-untyped-def] # pragma: no cover
    """Density of log κ and of the margins, up to a constant."""
    found = log_density(prior[0], prior[1], prior[2], kappa) + math.log(kappa)
    for v in range(concentration.size):
        if concentration[v] != 1.0:
            total = 0.0
            for j in range(starts[v], starts[v + 1]):
                total += log_margins[j]
            found += (concentration[v] - 1.0) * total
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(kappa, counts, sampled, sizes, of_cells, of_strata):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the sample and the known margins, up to a constant, from κπ."""
    sample_size, others = 0.0, 0.0
    for i in range(counts.size):
        sample_size += counts[i]
    found = row_log_rising(of_cells, counts) - log_rising(kappa, sample_size)
    for s in range(of_strata.size):
        rest = sizes[s] - sampled[s]
        if rest > 0.0:
            found += log_rising(of_strata[s] + sampled[s], rest)
            others += rest
    return found - log_rising(kappa + sample_size, others) if others > 0.0 else found


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
            whole = fill_strata(kappa[k], margins, known, of_strata)
        fill_cells(kappa[k] * share / whole, margins, levels, of_cells)
        out[k] = log_likelihood(kappa[k], counts, sampled, sizes, of_cells, of_strata)
        out[k] += log_prior(kappa[k], log_margins[k], starts, concentration, own)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihoods(kappa, of_cells, of_strata, known):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the sample and the known margins, up to a constant, from κ and the rows of κπ
    of the occupied cells and of the strata.
    """
    counts, sampled, sizes, out = known.counts, known.sampled, known.sizes, np.empty(kappa.size)
    cells, strata = np.empty(counts.size), np.empty(sizes.size)
    for k in range(kappa.size):
        for i in range(cells.size):
            cells[i] = max(of_cells[k, i], _SMALLEST)
        for s in range(strata.size):
            strata[s] = max(of_strata[k, s], _SMALLEST)
        out[k] = log_likelihood(kappa[k], counts, sampled, sizes, cells, strata)
    return out
