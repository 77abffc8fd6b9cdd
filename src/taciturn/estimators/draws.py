"""Draws of tables, many at a time, on arrays of shape (draws, cells)."""

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["draw_dirichlet_multinomial", "draw_multinomial", "draw_urn", "draw_urn_from_nothing"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


_SMALL_WEIGHT: Final = 0.05  # below it a gamma variate may underflow: 1e-308 ** 0.05 is 4e-16


def draw_multinomial(total: int | Counts, shares: Floats, rng: np.random.Generator) -> Counts:
    """One multinomial table for each row of shares, which need not sum to 1.

    Cell by cell, as `numpy.random.Generator.multinomial` does, but each cell's share of what is left comes from sums
    taken from the last cell backwards. It is exactly 1 at the last cell with a positive share, so that rounding
    never puts anybody into a cell without one, however large the total.

    Parameters
    ----------
    total : int or array, shape (draws,)
        Individuals to place.
    shares : array, shape (draws, cells)
        At least 0, with a positive sum. One row serves all draws.
    rng : Generator
        Source of randomness.
    """
    cells = shares.shape[1]
    draws = max(len(shares), np.size(total))
    left = np.array(np.broadcast_to(np.asarray(total, dtype=np.int64), draws))
    columns = np.ascontiguousarray(shares.T)
    tails = np.cumsum(columns[::-1], axis=0)[::-1]
    chance = np.divide(columns, tails, out=np.zeros_like(columns), where=tails > 0)
    out = np.empty((cells, draws), dtype=np.int64)
    for cell in range(cells):
        out[cell] = rng.binomial(left, chance[cell])
        left -= out[cell]
    return np.ascontiguousarray(out.T)


def draw_dirichlet_multinomial(
    total: int | Counts, weights: Floats, rng: np.random.Generator, *, block: int = 2**22
) -> Counts:
    """One Dirichlet-multinomial table for each row of weights.

    Parameters
    ----------
    total : int or array, shape (draws,)
        Individuals to place.
    weights : array, shape (draws, cells)
        Concentrations, at least 0, with a positive sum.
    rng : Generator
        Source of randomness.
    block : int
        How many values to work on at a time, so that memory stays bounded.
    """
    draws, cells = weights.shape
    totals = np.broadcast_to(np.asarray(total, dtype=np.int64), draws)
    out = np.empty((draws, cells), dtype=np.int64)
    step = max(1, block // cells)
    for start in range(0, draws, step):
        rows = slice(start, start + step)
        out[rows] = draw_multinomial(totals[rows], _gammas(weights[rows], rng), rng)
    return out


def _gammas(weights: Floats, rng: np.random.Generator) -> Floats:
    """Gamma variates, whose shares are Dirichlet; each row's known up to a factor, so that none is all zeros."""
    gammas = rng.standard_gamma(weights)
    small = np.flatnonzero(weights.max(axis=1) < _SMALL_WEIGHT)
    if len(small):
        # log Gamma(a) is log Gamma(a + 1) + log(U) / a, which does not underflow.
        some = weights[small]
        # Below 1e-290 one cell takes all with chances in proportion to the weights, whatever their scale.
        some = some * np.maximum(1.0, 1e-290 / some.max(axis=1, keepdims=True))
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(rng.standard_gamma(some + 1)) - rng.standard_exponential(some.shape) / some
        gammas[small] = np.exp(logs - logs.max(axis=1, keepdims=True))
    return gammas


def draw_urn(
    counts: Counts,
    empty: npt.NDArray[np.bool_],
    population_size: int,
    theta: Floats,
    rng: np.random.Generator,
    *,
    discount: Floats | float = 0.0,
) -> Counts:
    """Fill the population up from a sample by an urn with black balls.

    Each new individual joins a seen cell `i` with weight ``F_i - σ`` or opens a new one with weight ``θ + kσ`` for
    `k` open cells; a new one takes an empty cell at random. When the last empty cell opens, the black balls leave the
    urn. The individuals are never drawn one by one: the mass that goes to new cells is beta-binomial, it is cut into
    blocks in order of appearance, and the rest is Dirichlet-multinomial over the seen cells, so the cost grows with
    the number of cells opened and not with the population.

    Parameters
    ----------
    counts : array, shape (cells,)
        The sample.
    empty : array of bool, shape (cells,)
        Cells a new colour can take: not in the sample, not a structural zero.
    population_size : int
        `N`.
    theta : array, shape (draws,)
        Number of black balls, at least 0.
    rng : Generator
        Source of randomness.
    discount : array, shape (draws,), or float
        `σ` in [0, 1).

    Returns
    -------
    array, shape (draws, cells)
    """
    draws = len(theta)
    sigma = np.broadcast_to(np.asarray(discount, dtype=float), draws)
    seen = np.flatnonzero(counts)
    free = np.flatnonzero(empty)
    missing = population_size - int(counts.sum())
    population = np.broadcast_to(counts, (draws, len(counts))).copy()
    black = theta + len(seen) * sigma
    new = np.zeros(draws, dtype=np.int64)
    if len(free):
        opens = black > 0
        share = np.zeros(draws)
        share[opens] = rng.beta(black[opens], counts.sum() - len(seen) * sigma[opens])
        new = rng.binomial(missing, share)
    weights = counts[seen] - sigma[:, None]
    population[:, seen] += draw_dirichlet_multinomial(missing - new, weights, rng)

    order = rng.permuted(np.broadcast_to(free, (draws, len(free))), axis=1)
    opened = 0
    rest = new
    while opened < len(free) and (rest > 0).any():
        active = np.flatnonzero(rest > 0)
        share = rng.beta(1 - sigma[active], black[active] + (opened + 1) * sigma[active])
        block = 1 + rng.binomial(rest[active] - 1, share)
        population[active, order[active, opened]] = block
        rest[active] -= block
        opened += 1
    full = np.flatnonzero(rest > 0)
    if len(full):
        cells = np.flatnonzero(empty | (counts > 0))
        weights = population[np.ix_(full, cells)] - sigma[full, None]
        population[np.ix_(full, cells)] += draw_dirichlet_multinomial(rest[full], weights, rng)
    return population


def draw_urn_from_nothing(
    fillable: npt.NDArray[np.bool_],
    size: int,
    theta: Floats,
    rng: np.random.Generator,
    *,
    discount: Floats | float = 0.0,
) -> Counts:
    """Tables of `size` individuals from the urn of `draw_urn` before anything was seen, one for each `theta`."""
    sigma = np.broadcast_to(np.asarray(discount, dtype=float), len(theta))
    out = np.empty((len(theta), len(fillable)), dtype=np.int64)
    first = rng.choice(np.flatnonzero(fillable), size=len(theta))
    for cell in np.unique(first):
        rows = np.flatnonzero(first == cell)
        start = np.zeros(len(fillable), dtype=np.int64)
        start[cell] = 1
        out[rows] = draw_urn(start, fillable & (start == 0), size, theta[rows], rng, discount=sigma[rows])
    return out
