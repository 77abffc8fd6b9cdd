"""The posterior of the Ewens-Pitman urn by quadrature over concentration and discount,
without a Markov chain.

A grid over log θ and logit σ, a scale on which the density of any Beta prior is
bounded, closes in on the posterior; draws are uniform within the cells of the last grid
and corrected by importance weights. A node of the grid costs a few gamma functions.
"""

from collections.abc import Mapping
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter
from scipy.special import comb, expit, gammaln, log_expit, logsumexp

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.priors import Prior
from taciturn.estimators.sampling.importance import proposals_for, resample
from taciturn.estimators.special import log_rising, log_steps

__all__ = ["UrnLikelihood", "closing_times", "sample_urn_parameters"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_EXACT_CLOSING: Final = 512
_ORDERS: Final = 512
_NODES: Final = (64, 64)
_ZOOMS: Final = 15
_NEGLIGIBLE: Final = 16.0  # the posterior is cut off at exp(-16) of its maximum
_TAIL: Final = 40.0
_SMALLEST, _LARGEST = 1e-12, 1e15
_SHARE_EVERYWHERE: Final = 0.02
_SHARE_OF_NEIGHBOURS: Final = -2.3  # a tenth, as a logarithm
_CLOSEST_TO_ONE: Final = 1e-12


def closing_times(counts: Counts, cells: int) -> tuple[Counts, Floats]:
    """Distribution of the time at which the last cell opened, over all orders in which
    the individuals may have come.

    The first `s` of `n` individuals in random order include all `K` colours with
    probability ``q_s = [x^s] Π((1 + x)^f_j - 1) / C(n, s)``, so the `s`-th individual
    brings the last colour with probability ``q_s - q_{s-1}``. Up to 512 individuals
    this is computed exactly; beyond, it is estimated from 512 random orders with a
    fixed seed.

    Parameters
    ----------
    counts : array
        The sample.
    cells : int
        `K`.

    Returns
    -------
    array
        Times `s`; only `n`, which then means never, if a cell is empty.
    array
        Their probabilities.
    """
    filled = counts[counts > 0]
    n = int(filled.sum())
    if len(filled) < cells:
        return np.array([n]), np.ones(1)
    if n > _EXACT_CLOSING:
        times = _random_closing_times(filled, np.random.default_rng(0))
        values, number = np.unique(times, return_counts=True)
        return values, number / len(times)
    subsets = np.ones(1)
    for count in filled:
        ways = comb(count, np.arange(count + 1))
        ways[0] = 0.0
        subsets = np.convolve(subsets, ways)
    covered = subsets / comb(n, np.arange(n + 1))
    chance = np.maximum(np.diff(covered), 0.0)
    times = np.flatnonzero(chance) + 1
    return times, chance[times - 1]


def _random_closing_times(filled: Counts, rng: np.random.Generator) -> Counts:
    """Closing times when individuals arrive at independent uniform times: a colour
    first appears at the earliest of its times.
    """
    first = -np.expm1(-rng.standard_exponential((_ORDERS, len(filled))) / filled)
    last = first.max(axis=1, keepdims=True)
    share = np.where(first < last, (last - first) / np.maximum(1 - first, 1e-300), 0.0)
    earlier = rng.binomial(filled - 1, np.clip(share, 0.0, 1.0))
    return np.asarray(len(filled) + earlier.sum(axis=1))


class UrnLikelihood:
    r"""Probability of a sample's partition under the urn that closes when its last cell
    opens.

    .. math::

        \prod_{j=1}^{k-1} (\theta + j\sigma) \prod_{j=1}^{k} (1 - \sigma)_{f_j - 1}
        \sum_s \frac{P(s)}{(\theta + 1)_{s-1} (s - K\sigma)_{n-s}}

    with the closing times `s` from `closing_times`. If a cell is empty, ``s = n`` and
    this is Pitman's formula.
    """

    def __init__(self, counts: Counts, cells: int) -> None:
        values, self.times_seen = np.unique(counts[counts > 1], return_counts=True)
        self.values = values.astype(float)
        self.seen = int((counts > 0).sum())
        self.size = int(counts.sum())
        self.cells = cells
        steps, chance = closing_times(counts, cells)
        self.steps = steps.astype(float)
        self.log_chance = np.log(chance)

    def log_joined(self, sigma: Floats) -> Floats:
        """``Σ log (1 - σ)_{f_j - 1}`` for each element of an array of σ."""
        if not len(self.values):
            return np.zeros_like(sigma)
        low = gammaln(1 - sigma)[..., None]
        return np.asarray(
            ((gammaln(self.values - sigma[..., None]) - low) * self.times_seen).sum(axis=-1)
        )

    def log_opened(self, theta: Floats, sigma: Floats) -> Floats:
        """``Σ log (θ + jσ)`` over the openings, for arrays that broadcast."""
        if self.seen == 1:
            return np.zeros(np.broadcast_shapes(theta.shape, sigma.shape))
        both = np.broadcast_arrays(theta, sigma)
        out = np.empty(both[0].size)
        log_steps(*(np.ravel(x) for x in both), self.seen - 1, out)
        return out.reshape(both[0].shape)

    def log_before(self, theta: Floats) -> Floats:
        """``-log (θ + 1)_{s-1}`` for each closing time, along a new last axis."""
        s = self.steps
        return np.where(s > 1, -log_rising(theta[..., None] + 1, np.maximum(s - 1, 1)), 0.0)

    def log_after(self, sigma: Floats) -> Floats:
        """``log P(s) - log (s - Kσ)_{n-s}`` for each closing time, on a new axis."""
        if self.seen < self.cells:
            return np.broadcast_to(self.log_chance, (*sigma.shape, 1))
        taken = self.cells * sigma[..., None]
        return np.asarray(
            self.log_chance - gammaln(self.size - taken) + gammaln(self.steps - taken)
        )

    def __call__(self, theta: Floats, sigma: Floats) -> Floats:
        """Logarithm of the probability for arrays that broadcast, such as a column and
        a row.
        """
        terms = self.log_before(theta) + self.log_after(sigma)
        waited = logsumexp(terms, axis=-1) if terms.shape[-1] > 1 else terms[..., 0]
        return np.asarray(self.log_opened(theta, sigma) + self.log_joined(sigma) + waited)


def sample_urn_parameters(
    likelihood: UrnLikelihood,
    priors: Mapping[str, Prior],
    discount: float | None,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, ImportanceDiagnostics] | None:
    """Draws of θ and of σ, which is `discount` if that is given; None if the posterior
    cannot be computed.

    Returns
    -------
    theta, sigma : array, shape (draws,)
    ImportanceDiagnostics
    """
    target = _Target(likelihood, priors, discount)
    found = _close_in(target)
    if found is None:
        return None
    (x, z), heights = found
    around = maximum_filter(heights, size=3, mode="nearest")
    # Where the posterior is steep, a cell is higher towards the mode than at its
    # centre: add a tenth of its highest neighbour.
    flat = np.exp(np.logaddexp(heights, around + _SHARE_OF_NEIGHBOURS) - heights.max()).ravel()
    chance = (1 - _SHARE_EVERYWHERE) * flat / flat.sum() + _SHARE_EVERYWHERE / flat.size
    number = proposals_for(draws)
    cell = rng.choice(flat.size, size=number, p=chance)
    row, column = np.unravel_index(cell, heights.shape)
    log_theta = x.centres[row] + x.width * (rng.random(number) - 0.5)
    logit = z.centres[column] + z.width * (rng.random(number) - 0.5)
    log_weights = target(log_theta, logit) - np.log(chance[cell])
    if not np.isfinite(log_weights).any():
        return None
    chosen, diagnostics = resample(np.maximum(log_weights, log_weights.max() - 700), draws, rng)
    return np.exp(log_theta[chosen]), target.sigma(logit[chosen]), diagnostics


class _Target:
    """The unnormalised posterior of log θ and of the logit of σ, taken relative to the
    bounds of its prior.
    """

    def __init__(
        self, likelihood: UrnLikelihood, priors: Mapping[str, Prior], discount: float | None
    ) -> None:
        self.likelihood = likelihood
        self.theta = priors["theta"]
        self.discount = discount
        values = priors["discount"].parameters if discount is None else {}
        self.low, self.high = values.get("lower", 0.0), values.get("upper", 1.0)
        self.alpha, self.beta = values.get("alpha", 1.0), values.get("beta", 1.0)

    def ends(self) -> list[tuple[float, float]]:
        """Range of the first grid: all of the prior's for θ, all but the tails for the
        logit.
        """
        low, high = (
            max(self.theta.quantile(0.0), _SMALLEST),
            min(self.theta.quantile(1.0), _LARGEST),
        )
        return [
            (log(low), log(max(low, high))),
            (-min(_TAIL / self.alpha, 700.0), min(_TAIL / self.beta, 700.0)),
        ]

    def sigma(self, logit: Floats) -> Floats:
        """The discount."""
        if self.discount is not None:
            return np.full_like(logit, self.discount)
        sigma = self.low + (self.high - self.low) * expit(logit)
        return np.asarray(np.clip(sigma, 0.0, 1 - _CLOSEST_TO_ONE))

    def __call__(self, log_theta: Floats, logit: Floats) -> Floats:
        theta = np.exp(log_theta)
        prior = self.theta.logpdf(theta) + log_theta
        if self.discount is None:
            prior = prior + self.alpha * log_expit(logit) + self.beta * log_expit(-logit)
        value = self.likelihood(theta, self.sigma(logit)) + prior
        return np.where(np.isnan(value), -np.inf, value)


class _Axis:
    """Cells of equal width between two ends."""

    def __init__(self, low: float, high: float, cells: int) -> None:
        self.low, self.high = low, high
        self.width = (high - low) / cells
        self.centres: Floats = np.asarray(
            low + self.width * (np.arange(cells) + 0.5), dtype=np.float64
        )

    def around(self, used: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Ends of the range of used cells, widened by one cell on each side."""
        index = np.flatnonzero(used)
        first, last = index[0] - 1, index[-1] + 2
        return max(self.low, self.low + first * self.width), min(
            self.high, self.low + last * self.width
        )


def _close_in(target: _Target) -> tuple[tuple[_Axis, _Axis], Floats] | None:
    """Grid over the region that the posterior occupies, and its logarithm at the cells'
    centres.
    """
    ends = target.ends()
    if not ends[0][0] < ends[0][1]:
        return None
    shape = (_NODES[0], 1 if target.discount is not None else _NODES[1])
    for _ in range(_ZOOMS):
        axes = (_Axis(*ends[0], shape[0]), _Axis(*ends[1], shape[1]))
        heights = target(axes[0].centres[:, None], axes[1].centres[None, :])
        if not np.isfinite(heights).any():
            return None
        used = heights > heights.max() - _NEGLIGIBLE - 2 * _steepness(heights)
        narrower = [axis.around(used.any(axis=1 - i)) for i, axis in enumerate(axes)]
        if all(
            new[1] - new[0] > 0.7 * (old[1] - old[0])
            for new, old in zip(narrower, ends, strict=True)
        ):
            return axes, heights
        ends = narrower
    return None


def _steepness(heights: Floats) -> float:
    """How far the highest node lies above its neighbours: the maximum between nodes may
    be higher by as much.
    """
    i, j = np.unravel_index(int(np.argmax(heights)), heights.shape)
    around = [heights[i + a, j] for a in (-1, 1) if 0 <= i + a < heights.shape[0]]
    around += [heights[i, j + b] for b in (-1, 1) if 0 <= j + b < heights.shape[1]]
    finite = [float(heights[i, j] - value) for value in around if np.isfinite(value)]
    return max(finite, default=0.0)
