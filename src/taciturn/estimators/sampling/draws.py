"""Draws of tables, many at a time, on arrays of shape (draws, cells)."""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.sampling.kernels import LIMITS, dirichlet_multinomial, multinomial
from taciturn.estimators.sampling.urns import complete_sample

__all__ = [
    "draw_dirichlet_multinomial",
    "draw_log_gammas",
    "draw_multinomial",
    "draw_urn",
    "draw_urn_from_nothing",
]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCKS: Final = 64
"""Of values to work on, between which the work can be interrupted."""


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
    multinomial(totals, np.ascontiguousarray(shares), LIMITS, rng, out)
    return out


def draw_dirichlet_multinomial(
    total: int | Counts, weights: Floats, rng: np.random.Generator
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
    """
    totals = np.array(np.broadcast_to(np.asarray(total, dtype=np.int64), len(weights)))
    out = np.empty(weights.shape, dtype=np.int64)
    weights = np.ascontiguousarray(weights)
    step = _BLOCKS * max(1, LIMITS.block // weights.shape[1])
    for start in range(0, len(weights), step):
        rows = slice(start, start + step)
        dirichlet_multinomial(totals[rows], weights[rows], LIMITS, rng, out[rows])
    return out


def draw_log_gammas(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of gamma variates, which do not underflow for small shapes: log
    Gamma(a) is log Gamma(a + 1) + log(U) / a.
    """
    logs = np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(shape.shape) / shape
    return np.asarray(logs)


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
    sample, can_open = np.atleast_2d(counts), np.atleast_2d(empty)
    if base is None and empty.ndim == 2:  # which cells can open may differ
        base = np.ones(empty.shape[1])
    out = np.empty((len(theta), sample.shape[1]), dtype=np.int64)
    missing = population_size - sample.sum(axis=1)
    complete_sample(sample, can_open, missing, _urn(theta, discount, base), LIMITS, rng, out)
    return out


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
    out = np.empty((len(theta), len(fillable)), dtype=np.int64)
    nobody, missing = np.zeros((1, len(fillable)), dtype=np.int64), np.array([size])
    urn = _urn(theta, discount, base)
    complete_sample(nobody, fillable[None], missing, urn, LIMITS, rng, out)
    return out


def _urn(
    theta: Floats, discount: Floats | float, base: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Both parameters of each draw, and the weights of cells that open if they
    differ.
    """
    sigma = np.full(len(theta), discount, dtype=float)
    return np.array(theta, dtype=float), sigma, np.zeros(0) if base is None else base
