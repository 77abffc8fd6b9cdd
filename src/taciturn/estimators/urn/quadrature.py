"""The posterior of the Ewens-Pitman urn by quadrature over concentration and discount,
without a Markov chain.

A grid over log θ and logit σ, a scale on which the density of any Beta prior is
bounded, closes in on the posterior; draws are uniform within the cells of the last grid
and corrected by importance weights. A node of the grid costs a few gamma functions.
"""

from collections.abc import Mapping
from math import log, nan
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import comb

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.priors import Prior
from taciturn.estimators.sampling.importance import proposals_for
from taciturn.estimators.urn.kernels import UrnPrior, known_of, log_probabilities, sample_parameters

__all__ = ["UrnLikelihood", "closing_times", "prior_of", "sample_urn_parameters"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_EXACT_CLOSING: Final = 512
_ORDERS: Final = 512
_TAIL: Final = 40.0
_SMALLEST, _LARGEST = 1e-12, 1e15


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
        steps, chance = closing_times(counts, cells)
        self.known = known_of(counts, cells, steps.astype(float), np.log(chance))

    def __call__(self, theta: Floats, sigma: Floats) -> Floats:
        """Logarithm of the probability for arrays that broadcast, such as a column and
        a row.
        """
        one, two = np.broadcast_arrays(theta, sigma)
        out = np.empty(one.size)
        log_probabilities(one.ravel(), two.ravel(), self.known, out)
        return out.reshape(one.shape)


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
    theta, sigma = np.empty(draws), np.empty(draws)
    prior, ends = prior_of(priors, discount)
    number = proposals_for(draws)
    found, k_hat, ess = sample_parameters(likelihood.known, prior, ends, number, rng, theta, sigma)
    return (theta, sigma, ImportanceDiagnostics(k_hat, ess)) if found else None


def prior_of(
    priors: Mapping[str, Prior], discount: float | None
) -> tuple[UrnPrior, tuple[float, float, float, float]]:
    """The prior as compiled code takes it, and the ends of the first grid: all of the
    prior's range for θ, and all but the tails for the logit of σ relative to the bounds
    of its prior.
    """
    theta = priors["theta"]
    values = priors["discount"].parameters if discount is None else {}
    alpha, beta = values.get("alpha", 1.0), values.get("beta", 1.0)
    bounds = (values.get("lower", 0.0), values.get("upper", 1.0))
    low = max(theta.quantile(0.0), _SMALLEST)
    high = min(theta.quantile(1.0), _LARGEST)
    given = nan if discount is None else discount
    return (
        UrnPrior(*theta.coded, given, *bounds, alpha, beta),
        (log(low), log(max(low, high)), -min(_TAIL / alpha, 700.0), min(_TAIL / beta, 700.0)),
    )
