"""How far single cells depart from the shares that the latent classes give them.

The classes are learned as if no cell departed; how widely cells do is then learned
given the shares of each draw.
"""

from collections.abc import Mapping
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import PriorError
from taciturn.estimators.latent_class.chain import implied
from taciturn.estimators.latent_class.kernels import (
    group_cells,
    log_of_departures,
    multiply_by_factors,
)
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

__all__ = ["NAMES", "Departures"]

NAMES: Final = ("nu", "power", "intensity")
"""Parameters of the departures."""

_FURTHEST: Final = 200.0  # log ν: beyond, a cell is empty or does not depart
_KNOTS: Final = 64  # on one unit of the logarithm of an empty cell's share
_LEAST: Final = 1e-10  # sampled individuals expected in a cell that does not matter
_CANDIDATES: Final = 8  # of which a step takes one,
_STEPS: Final = 4  # so many times, until the shares of the draw before are forgotten
_FREEDOM: Final = 5  # degrees of freedom of the candidates' distribution,
_WIDER: Final = 1.3  # so much wider than the posterior
_ROUNDS: Final = 10  # in which that is found, of
_TRIED: Final = 200  # candidates each,
_COUNTING: Final = 25  # of which so many count
_REMEMBERED: Final = 10  # draws of the warm-up at least, before the distribution follows them

Floats = npt.NDArray[np.float64]


class Departures:
    """One chain of ν, the power and the intensity given the shares of the classes.

    Candidates are drawn from a t distribution, and one of them or the present values
    are taken with probabilities in proportion to posterior density over density of the
    candidate (Tjelmeland 2004, preprint Statistics 4/2004, NTNU), which keeps the
    posterior given the shares.

    Parameters
    ----------
    problem : Problem
        The sample.
    priors : mapping of str to Prior
        Of ``nu`` and ``power``.
    rng : Generator
        The only source of randomness.
    """

    def __init__(
        self, problem: Problem, priors: Mapping[str, Prior], rng: np.random.Generator
    ) -> None:
        self.rng = rng
        self._priors, self._cells = priors, problem.cells
        self._counts = problem.counts.astype(float)
        self._alone = problem.counts[problem.occupied] == 1
        self._rest = problem.population_size - problem.sample_size
        self._occupied = problem.occupied
        self._empty = np.flatnonzero(problem.fillable.ravel() & (problem.counts == 0))
        self._n = problem.sample_size
        self._lowest = log(_LEAST / self._n)
        self._now: Floats | None = None
        self._best = np.empty(3)
        self._middle, self._root, self._narrowest = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
        self._seen: list[Floats] = []

    def step(self, shares: Floats, *, adapt: bool) -> None:
        """Draw the parameters given shares that add up to 1; in the warm-up the
        distribution of the candidates follows what is drawn.
        """
        counts, times, log_shares = self._grouped(shares)
        if self._now is None:
            self._search(counts, times, log_shares)
        for _ in range(_STEPS):
            tried = self._candidates(_CANDIDATES)
            if self._now is not None:
                tried[0] = self._now
            density = self._log_density(tried, counts, times, log_shares)
            weights = density - self._log_proposal(tried)
            feasible = np.isfinite(weights).any()
            self._now = tried[_chosen(weights, self.rng)] if feasible else self._best
        assert self._now is not None
        if adapt:
            self._seen.append(self._now)
            if len(self._seen) >= _REMEMBERED:
                equal = np.full(len(self._seen), 1 / len(self._seen))
                self._aim(np.array(self._seen), equal, self._narrowest)

    def draw(self, shares: Floats) -> dict[str, float]:
        """The parameters, and what the cells' shares with a draw of the factors imply
        for the risk.
        """
        assert self._now is not None
        nu, power, intensity = np.exp(self._now[:1]), self._now[1:2], np.exp(self._now[2:])
        weights = np.array(shares[None])
        multiply_by_factors(weights, self._counts, self._cells, nu, power, intensity, self.rng)
        own = weights[0] / weights.sum()
        occupied, none_empty = own[self._occupied], len(self._empty) == 0
        return {
            "nu": float(nu[0]),
            "power": float(power[0]),
            "intensity": float(intensity[0]),
            **implied(occupied, self._alone, self._rest, all_cells=none_empty),
        }

    def _grouped(self, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Counts, how many cells there are of each, and logarithms of their shares:
        each occupied cell, and the empty ones on a grid, between whose knots the
        logarithm of the probability is as good as linear.
        """
        number = np.zeros(int(-self._lowest * _KNOTS) + 3)
        group_cells(shares, self._empty, self._lowest, _KNOTS, number)
        used = np.flatnonzero(number)
        occupied = self._counts[self._occupied]
        own = np.log(np.maximum(shares[self._occupied], 1e-300))
        return (
            np.concatenate([occupied, np.zeros(len(used))]),
            np.concatenate([np.ones(len(occupied)), number[used]]),
            np.concatenate([own, self._lowest + used / _KNOTS]),
        )

    def _log_density(
        self, tried: Floats, counts: Floats, times: Floats, log_shares: Floats
    ) -> Floats:
        """Of log ν, the power and the logarithm of the intensity."""
        log_nu = np.clip(tried[:, 0], -_FURTHEST, _FURTHEST)
        out = self._priors["nu"].logpdf(np.exp(log_nu)) + log_nu
        out += self._priors["power"].logpdf(tried[:, 1])
        out[np.abs(tried[:, [0, 2]]).max(axis=1) > _FURTHEST] = -np.inf
        inside = np.flatnonzero(np.isfinite(out))
        found = np.zeros(len(inside))
        log_of_departures(counts, times, log_shares, self._cells, tried[inside], found)
        out[inside] += found
        return np.asarray(out)

    def _candidates(self, number: int) -> Floats:
        normal = self.rng.standard_normal((number, 3)) @ self._root.T
        scale = np.sqrt(_FREEDOM / self.rng.chisquare(_FREEDOM, number))
        return np.asarray(self._middle + normal * scale[:, None])

    def _log_proposal(self, tried: Floats) -> Floats:
        off = np.linalg.solve(self._root, (tried - self._middle).T)
        return np.asarray(-0.5 * (_FREEDOM + 3) * np.log1p((off**2).sum(axis=0) / _FREEDOM))

    def _search(self, counts: Floats, times: Floats, log_shares: Floats) -> None:
        """Find where the posterior is, from the prior."""
        nu, power = self._priors["nu"], self._priors["power"]
        low, middle, high = (log(min(max(nu.quantile(p), 1e-12), 1e12)) for p in (0.16, 0.5, 0.84))
        spread = [max(high - low, 0.02) / 2, power.quantile(0.84) - power.quantile(0.16), 0.5]
        self._middle = np.array([middle, power.quantile(0.5), log(self._n)])
        self._root = np.diag(spread)
        point = np.diag(np.minimum([1e-6, 1e-6, 1e-8], (2e-3 * np.array(spread)) ** 2))
        highest = -np.inf
        for _ in range(_ROUNDS):
            tried = self._candidates(_TRIED)
            density = self._log_density(tried, counts, times, log_shares)
            if density.max() > highest:
                highest, self._best = density.max(), tried[density.argmax()]
            if np.isfinite(density).sum() > _COUNTING:
                self._aim(tried, _tempered(density - self._log_proposal(tried)), point)
        if highest == -np.inf:
            raise PriorError(
                "the priors of the departures have next to nothing where these can be computed:"
                f" 'nu' {nu!r}, 'power' {power!r}"
            )
        self._narrowest = self._root @ self._root.T / (2 * _WIDER) ** 2

    def _aim(self, tried: Floats, weights: Floats, least: Floats) -> None:
        """Give the candidates the mean and, a little wider, the spread of values with
        weights; more than the least, as values that are all alike say nothing.
        """
        self._middle = weights @ tried
        off = tried - self._middle
        self._root = _WIDER * np.linalg.cholesky((off * weights[:, None]).T @ off + least)


def _chosen(log_weights: Floats, rng: np.random.Generator) -> int:
    weights = np.exp(log_weights - log_weights.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _tempered(logs: Floats) -> Floats:
    """Weights to the largest power, of 1, 1/2, 1/4 ..., at which enough of them
    count.
    """
    power = 1.0
    while True:
        weights = np.exp(power * (logs - logs.max()))
        weights /= weights.sum()
        if 1 / (weights**2).sum() >= _COUNTING:
            return np.asarray(weights)
        power /= 2
