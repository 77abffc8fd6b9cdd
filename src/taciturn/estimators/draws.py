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
    base: Floats | None = None,
) -> Counts:
    """Fill the population up from a sample by an urn with black balls.

    Each new individual joins a seen cell `i` with weight ``F_i - σ`` or opens a new one with weight ``θ + kσ`` for
    `k` open cells; a new one takes one of the empty cells with chances in proportion to `base`. When the last empty
    cell opens, the black balls leave the urn. The individuals are never drawn one by one: the mass that goes to new
    cells is beta-binomial, it is cut into blocks in order of appearance, and the rest is Dirichlet-multinomial over
    the seen cells, so the cost grows with the number of cells opened and not with the population.

    Parameters
    ----------
    counts : array, shape (cells,) or (draws, cells)
        The sample, or one for each draw; somebody is in each.
    empty : array of bool, of the shape of `counts`
        Cells a new colour can take: not in the sample, not a structural zero.
    population_size : int
        `N`.
    theta : array, shape (draws,)
        Number of black balls, at least 0; ``Kα`` where σ is ``-α``.
    rng : Generator
        Source of randomness.
    discount : array, shape (draws,), or float
        `σ` below 1.
    base : array, shape (cells,), optional
        Positive weights of the cells; without them all are alike.

    Returns
    -------
    array, shape (draws, cells)
    """
    draws = len(theta)
    sigma = np.broadcast_to(np.asarray(discount, dtype=float), draws)
    population = np.broadcast_to(counts, (draws, counts.shape[-1])).copy()
    can_open = np.broadcast_to(empty, population.shape)
    open_cells = (population > 0).sum(axis=1)
    size = population.sum(axis=1)
    missing = population_size - size
    black = theta + open_cells * sigma
    new = np.zeros(draws, dtype=np.int64)
    opens = (black > 0) & can_open.any(axis=1)
    if opens.any():
        share = np.zeros(draws)
        share[opens] = rng.beta(black[opens], (size - open_cells * sigma)[opens])
        new = rng.binomial(missing, share)
    seen = np.flatnonzero(counts if counts.ndim == 1 else counts.any(axis=0))
    weights = np.where(population[:, seen] > 0, population[:, seen] - sigma[:, None], 0.0)
    population[:, seen] += draw_dirichlet_multinomial(missing - new, weights, rng)
    if counts.ndim == 1 and base is None:
        free = np.flatnonzero(empty)
        order = rng.permuted(np.broadcast_to(free, (draws, len(free))), axis=1)
    else:
        order = _race(can_open, base, rng)
    _open_cells(population, new, order, open_cells, can_open, theta, sigma, rng)
    return population


def draw_urn_from_nothing(
    fillable: npt.NDArray[np.bool_],
    size: int,
    theta: Floats,
    rng: np.random.Generator,
    *,
    discount: Floats | float = 0.0,
    base: Floats | None = None,
) -> Counts:
    """Tables of `size` individuals from the urn of `draw_urn` before anything was seen, one for each `theta`."""
    draws = len(theta)
    sigma = np.broadcast_to(np.asarray(discount, dtype=float), draws)
    out = np.zeros((draws, len(fillable)), dtype=np.int64)
    can_open = np.broadcast_to(fillable, out.shape)
    rest = np.full(draws, size, dtype=np.int64)
    nobody = np.zeros(draws, dtype=np.int64)
    _open_cells(out, rest, _race(can_open, base, rng), nobody, can_open, theta, sigma, rng)
    return out


def _race(can_open: npt.NDArray[np.bool_], base: Floats | None, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Order in which the cells that can open would do so, chosen one after the other without replacement.

    Exponential times with the weights as rates: the next to arrive is each of those left with a chance in proportion
    to its weight (Efraimidis & Spirakis 2006). Cells that cannot open come last, in as many columns as any row needs.
    """
    columns = np.flatnonzero(can_open.any(axis=0))
    times = rng.standard_exponential((len(can_open), len(columns)))
    if base is not None:
        times /= base[columns]
    times[~can_open[:, columns]] = np.inf
    return np.asarray(columns[np.argsort(times, axis=1)])


def _open_cells(
    population: Counts,
    rest: Counts,
    order: npt.NDArray[np.int64],
    open_cells: Counts,
    can_open: npt.NDArray[np.bool_],
    theta: Floats,
    sigma: Floats,
    rng: np.random.Generator,
) -> None:
    """Cut the mass that goes to new cells into blocks and place them; what is left once all are open joins them."""
    limit = can_open.sum(axis=1)
    opened = 0
    while (active := np.flatnonzero((rest > 0) & (opened < limit))).size:
        left = theta[active] + (open_cells[active] + opened + 1) * sigma[active]
        share = np.ones(len(active))
        some = left > 0  # else no further cell opens
        share[some] = rng.beta(1 - sigma[active[some]], left[some])
        block = 1 + rng.binomial(rest[active] - 1, share)
        population[active, order[active, opened]] = block
        rest[active] -= block
        opened += 1
    full = np.flatnonzero(rest > 0)
    if len(full):
        cells = np.flatnonzero((population[full] > 0).any(axis=0))
        filled = population[np.ix_(full, cells)]
        weights = np.where(filled > 0, filled - sigma[full, None], 0.0)
        population[np.ix_(full, cells)] += draw_dirichlet_multinomial(rest[full], weights, rng)
