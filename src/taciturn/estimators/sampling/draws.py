"""Draws of tables, many at a time, on arrays of shape (draws, cells)."""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.sampling.kernels import (
    open_cells,
    place_one_by_one,
    split,
    split_sparse,
)

__all__ = [
    "draw_dirichlet_multinomial",
    "draw_log_gammas",
    "draw_multinomial",
    "draw_urn",
    "draw_urn_from_nothing",
]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


_SMALL_WEIGHT: Final = 0.05  # below it a gamma variate may underflow: 1e-308 ** 0.05 is 4e-16
_FEW: Final = 6
"""Expected count of a cell up to which placing individuals one by one costs less than a
gamma and a binomial variate."""
_LARGE: Final = 1024
"""Cells from which most are taken to expect a few individuals."""
_MOST: Final = 64
"""Individuals per cell up to which they are placed one by one, should more come than
expected."""
_MOST_IN_NEW_CELLS: Final = 256
"""Individuals left for new cells up to which they are placed one by one."""


def draw_multinomial(total: int | Counts, shares: Floats, rng: np.random.Generator) -> Counts:
    """One multinomial table for each row of shares, which need not sum to 1.

    Drawn cell by cell, as in `numpy.random.Generator.multinomial`, but each cell's
    share of the remainder comes from sums accumulated from the last cell backwards. It
    is exactly 1 at the last cell with a positive share, so that rounding never puts
    anybody into a cell whose share is 0, however large the total.

    Parameters
    ----------
    total : int or array, shape (draws,)
        Individuals to place.
    shares : array, shape (draws, cells)
        At least 0, with a positive sum. A single row serves all draws.
    rng : Generator
        Source of randomness.
    """
    draws = max(len(shares), np.size(total))
    totals = np.array(np.broadcast_to(np.asarray(total, dtype=np.int64), draws))
    out = np.empty((draws, shares.shape[1]), dtype=np.int64)
    way = split if shares.shape[1] < _LARGE else split_sparse
    way(totals, np.ascontiguousarray(shares), rng, out)
    return out


def draw_dirichlet_multinomial(
    total: int | Counts, weights: Floats, rng: np.random.Generator, *, block: int = 2**16
) -> Counts:
    """One Dirichlet-multinomial table for each row of weights.

    Cells with small expected counts are drawn as one cell at first, whose individuals
    are then placed one by one.

    Parameters
    ----------
    total : int or array, shape (draws,)
        Individuals to place.
    weights : array, shape (draws, cells)
        Concentrations, at least 0, with a positive sum.
    rng : Generator
        Source of randomness.
    block : int
        How many values to work on at a time, so that they stay in the processor's
        cache.
    """
    draws, cells = weights.shape
    totals = np.broadcast_to(np.asarray(total, dtype=np.int64), draws)
    out = np.empty((draws, cells), dtype=np.int64)
    step = max(1, block // cells)
    for start in range(0, draws, step):
        rows = slice(start, start + step)
        out[rows] = _draw_block(totals[rows], weights[rows], rng)
    return out


def _draw_block(totals: Counts, weights: Floats, rng: np.random.Generator) -> Counts:
    expected = totals @ (weights / weights.sum(axis=1, keepdims=True)) / len(totals)
    few, many = np.flatnonzero(expected <= _FEW), np.flatnonzero(expected > _FEW)
    if len(few) < 2:
        return draw_multinomial(totals, _gammas(weights, rng), rng)
    light = weights.take(few, axis=1)
    table = draw_multinomial(
        totals, _gammas(np.column_stack([weights[:, many], light.sum(axis=1)]), rng), rng
    )
    rest = table[:, -1]
    crowded = rest > _MOST * len(few)
    placed = np.zeros(light.shape, dtype=np.int64)
    placed[crowded] = draw_multinomial(rest[crowded], _gammas(light[crowded], rng), rng)
    place_one_by_one(np.where(crowded, 0, rest), light, rng, placed)
    out = np.empty(weights.shape, dtype=np.int64)
    out[:, many], out[:, few] = table[:, :-1], placed
    return out


def draw_log_gammas(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of gamma variates, which do not underflow for small shapes: log
    Gamma(a) is log Gamma(a + 1) + log(U) / a.
    """
    logs = np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(shape.shape) / shape
    return np.asarray(logs)


def _gammas(weights: Floats, rng: np.random.Generator) -> Floats:
    """Gamma variates, Dirichlet once normalised; each row is known up to a factor only,
    so that none is all zeros.
    """
    gammas = rng.standard_gamma(weights)
    small = np.flatnonzero(weights.max(axis=1) < _SMALL_WEIGHT)
    if len(small):
        some = weights[small]
        # Below 1e-290 one cell takes everything, with probability proportional to its
        # weight, whatever the scale.
        some = some * np.maximum(1.0, 1e-290 / some.max(axis=1, keepdims=True))
        with np.errstate(divide="ignore", over="ignore"):
            logs = draw_log_gammas(some, rng)
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
    """Complete the population from a sample by an urn with black balls.

    Each new individual joins a seen cell `i` with weight ``F_i - σ`` or opens a new one
    with weight ``θ + kσ``, where `k` cells are open; the new cell is one of the empty
    cells, with probability proportional to `base`. Once the last empty cell has opened,
    the black balls are removed. The number of individuals in new cells is
    beta-binomial; it is cut into blocks in order of appearance until few are left, who
    are placed one by one. The others are Dirichlet-multinomial over the seen cells, so
    the cost grows with the number of cells opened, not with the population.

    Parameters
    ----------
    counts : array, shape (cells,) or (draws, cells)
        The sample, or one for each draw; none may be empty.
    empty : array of bool, of the shape of `counts`
        Cells a new colour can take: not in the sample and not structural zeros.
    population_size : int
        `N`.
    theta : array, shape (draws,)
        Number of black balls, at least 0; ``Kα`` where σ is ``-α``.
    rng : Generator
        Source of randomness.
    discount : array, shape (draws,), or float
        `σ` below 1.
    base : array, shape (cells,), optional
        Positive weights of the cells; equal by default.

    Returns
    -------
    array, shape (draws, cells)
    """
    draws = len(theta)
    sigma = np.full(draws, discount, dtype=float)
    sample = np.broadcast_to(counts, (draws, counts.shape[-1]))
    filled = (sample > 0).sum(axis=1)
    missing = population_size - sample.sum(axis=1)
    seen = sample.sum(axis=1) - filled * sigma
    black = theta + filled * sigma
    new = np.zeros(draws, dtype=np.int64)
    opens = (black > 0) & empty.any(axis=-1)
    if opens.any():
        share = np.zeros(draws)
        share[opens] = rng.beta(black[opens], seen[opens])
        new = rng.binomial(missing, share)
    opened, joined = _open_cells(
        new, _order(empty, base, draws, rng), empty, black, seen + missing - new, sigma, rng
    )
    cells = np.flatnonzero(counts if counts.ndim == 1 else counts.any(axis=0))
    weights = np.where(sample[:, cells] > 0, sample[:, cells] - sigma[:, None], 0.0)
    population = sample + opened
    population[:, cells] += draw_dirichlet_multinomial(missing - new + joined, weights, rng)
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
    """Tables of `size` individuals from the urn of `draw_urn`, started without a
    sample; one for each `theta`.
    """
    draws = len(theta)
    sigma = np.full(draws, discount, dtype=float)
    order, black = _order(fillable, base, draws, rng), np.array(theta, dtype=float)
    return _open_cells(np.full(draws, size), order, fillable, black, np.zeros(draws), sigma, rng)[0]


def _order(
    can_open: npt.NDArray[np.bool_], base: Floats | None, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Order in which the cells that can open would do so, drawn one after the other
    without replacement.

    Exponential times have the weights as rates: the next to arrive is any of those left
    with probability proportional to its weight (Efraimidis & Spirakis 2006). Cells that
    cannot open come last, in as many columns as any row needs.
    """
    columns = np.flatnonzero(can_open if can_open.ndim == 1 else can_open.any(axis=0))
    if can_open.ndim == 1 and base is None:
        return rng.permuted(np.tile(columns, (draws, 1)), axis=1)
    times = rng.standard_exponential((draws, len(columns)))
    if base is not None:
        times /= base[columns]
    times[~np.broadcast_to(can_open, (draws, can_open.shape[-1]))[:, columns]] = np.inf
    return np.asarray(columns[np.argsort(times, axis=1)])


def _open_cells(
    new: Counts,
    order: npt.NDArray[np.int64],
    can_open: npt.NDArray[np.bool_],
    black: Floats,
    seen: Floats,
    sigma: Floats,
    rng: np.random.Generator,
) -> tuple[Counts, Counts]:
    """Tables of the `new` individuals, who open cells with an initial weight of
    `black`; and how many of them join the seen cells.

    Once all cells are open, those who are left join any cell; the seen cells, whose
    total weight is `seen`, then act as one cell.
    """
    rest = new.copy()
    opened = np.zeros((len(rest), can_open.shape[-1]), dtype=np.int64)
    limit = np.full(len(rest), can_open.sum(axis=-1))
    open_cells(rest, limit, order, black, sigma, _MOST_IN_NEW_CELLS, rng, opened)
    joined = np.zeros_like(rest)
    full = np.flatnonzero(rest > 0)
    if len(full):
        cells = np.flatnonzero(opened[full].any(axis=0))
        filled = opened[np.ix_(full, cells)]
        weights = np.where(filled > 0, filled - sigma[full, None], 0.0)
        added = draw_dirichlet_multinomial(rest[full], np.column_stack([seen[full], weights]), rng)
        joined[full] = added[:, 0]
        opened[np.ix_(full, cells)] += added[:, 1:]
    return opened, joined
