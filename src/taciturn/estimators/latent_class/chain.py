"""The collapsed Gibbs sampler of the latent class model."""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil, log
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import EstimationError, PriorError
from taciturn.estimators.halves import halves
from taciturn.estimators.latent_class.kernels import (
    assign_classes,
    class_shares,
    count_classes,
    draw_class_of,
    log_of_concentration,
    log_of_profile,
    split_or_merge,
)
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

__all__ = ["Chain", "Draw", "Layout", "implied", "sticks"]

_HIGHEST: Final = 1e12
_LOWEST: Final = 1e-100
_GRID: Final = 4001
_TAIL: Final = 1e-10
_UNSEEN: Final = 1e-4
"""Share of the population, in classes without a sampled individual, that is small
enough to leave to the last of them."""
_SPARE: Final = 64
"""Number of classes that can open in one sweep."""
_PROPOSALS: Final = 10
"""Proposals to split or merge classes, per sweep,"""
_LARGE: Final = 10_000
"""and the size of a sample beyond which there are fewer, as each looks at everybody."""
_MOST_UNSEEN: Final = 100
_START: Final = 3
"""Number of classes a chain starts with; if there were many, the sampler would take
long to merge them again."""
_TRIES: Final = 100
_MOST_MISSES: Final = 1_000_000
"""Most individuals at structural zeros that the sampler adds to the sample."""
Floats = npt.NDArray[np.float64]
Draw = tuple[dict[str, float], Floats, Floats]
"""Scalars by name, the weights of the classes, and the shares of the categories of all
variables within each class."""


class Layout:
    """The categories of all variables of a table, numbered consecutively."""

    def __init__(self, problem: Problem) -> None:
        self.shape = problem.sample.shape
        self.sizes = np.array(self.shape, dtype=np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.fillable = problem.fillable.ravel()
        self.in_first_half = len(halves(dict(zip(problem.variables, self.shape, strict=True)))[0])

    def levels(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of the category of each variable, for cells numbered in row-major
        order.
        """
        return np.stack(np.unravel_index(cells, self.shape), axis=1).astype(np.int64)

    def profiles(self, weights: Floats, rng: np.random.Generator) -> Floats:
        """Dirichlet shares of the categories of each variable, (category, class), from
        their weights.
        """
        # A gamma variate with a small shape can underflow; its logarithm does not.
        logs = (
            np.log(rng.standard_gamma(weights + 1))
            - rng.standard_exponential(weights.shape) / weights
        )
        logs -= np.repeat(np.maximum.reduceat(logs, self.first[:-1]), self.sizes, axis=0)
        share = np.exp(logs)
        whole: Floats = np.repeat(np.add.reduceat(share, self.first[:-1]), self.sizes, axis=0)
        return share / whole

    def all_cells(self, weight: Floats, share: Floats) -> Floats:
        """Share of the population in every cell: one product of two matrices, each over
        about half of the variables.
        """
        parts = [share[a:b] for a, b in zip(self.first, self.first[1:], strict=False)]
        at = self.in_first_half
        out: Floats = (_together(parts[:at], len(weight)) * weight) @ _together(
            parts[at:], len(weight)
        ).T
        return out.ravel()

    def shares(self, weight: Floats, share: Floats) -> Floats:
        """The same of the cells that can be filled, adding up to 1."""
        out = self.all_cells(weight, share)
        out[~self.fillable] = 0.0
        return out / out.sum()


def implied(
    shares: Floats, alone: npt.NDArray[np.bool_], rest: int, *, all_cells: bool
) -> dict[str, float]:
    """What the shares of the occupied cells imply for the risk, if `rest` individuals
    were not sampled: τ1, as expected from the cells with one, and the share of the
    population in all of them, 1 where no others are.
    """
    single = np.minimum(shares[alone], 1 - 1e-16)
    return {
        "expected_tau1": float(np.exp(rest * np.log1p(-single)).sum()),
        "sample_coverage": 1.0 if all_cells else float(shares.sum()),
    }


def _together(parts: list[Floats], classes: int) -> Floats:
    """Shares of the combinations of some variables' categories, (combination,
    class).
    """
    out = np.ones((1, classes))
    for part in parts:
        out = (out[:, None] * part).reshape(-1, classes)
    return out


class Chain:
    """State of one chain of the sampler: the class of each individual, the
    concentration and the profiles' weights.
    """

    used: int
    by_level: Floats
    by_class: Floats

    def __init__(
        self, problem: Problem, priors: Mapping[str, Prior], rng: np.random.Generator
    ) -> None:
        self.rng = rng
        self.table = Layout(problem)
        self.variables = problem.variables
        counts = problem.counts
        # In random order, so that the first classes are not blocks of adjacent cells.
        self.sample = rng.permutation(self.table.levels(np.repeat(np.arange(counts.size), counts)))
        self.occupied, self.cells = self.table.levels(problem.occupied), problem.cells
        self.alone = counts[problem.occupied] == 1
        self.zeros = self.table.levels(np.flatnonzero(~self.table.fillable))
        self.rest = problem.population_size - problem.sample_size
        started = {name: _on_logarithm(name, prior) for name, prior in priors.items()}
        self.logs = {name: start for name, (start, _) in started.items()}
        self.log_priors = {name: log_prior for name, (_, log_prior) in started.items()}
        started_in = rng.integers(_START, size=len(self.sample))
        # Numbered without gaps: among few individuals a class may have none.
        self.classes = np.unique(started_in, return_inverse=True)[1].astype(np.int64)
        self.levels = self.sample
        self._recount(_START + _SPARE)

    def sweep(self) -> None:
        """One pass over all parameters and the classes of all individuals."""
        used = self.used
        self._slice("concentration", partial(log_of_concentration, used, len(self.levels)))
        for j, dim in enumerate(self.variables):
            block = self.by_level[self.table.first[j] : self.table.first[j + 1]]
            self._slice(f"profile_{dim}", partial(log_of_profile, block, self.by_class, used))
        if len(self.zeros):
            self._add_misses()
        alpha, profile = float(np.exp(self.logs["concentration"])), self._profile_weights
        for _ in range(ceil(_PROPOSALS * _LARGE / max(len(self.sample), _LARGE))):
            self._step(split_or_merge, alpha, profile)
        self._step(assign_classes, alpha, profile)
        self._recount(self.used + _SPARE)

    def draw(self) -> Draw:
        """All parameters; weights and shares are drawn given classes."""
        weight, share = self._weights_and_shares()
        order = np.argsort(-weight, kind="stable")
        numbers = {name: float(np.exp(x)) for name, x in self.logs.items()}
        numbers["classes"] = len(np.unique(self.classes[: len(self.sample)]))
        return numbers, weight[order], share[:, order]

    def implied(self, weight: Floats, share: Floats) -> dict[str, float]:
        """What the classes imply for the risk, without shares of empty cells."""
        shares = self._shares(self.occupied, weight, share)
        shares /= 1 - self._shares(self.zeros, weight, share).sum()
        return implied(shares, self.alone, self.rest, all_cells=len(shares) == self.cells)

    @property
    def _profile_weights(self) -> Floats:
        return np.exp([self.logs[f"profile_{dim}"] for dim in self.variables])

    def _recount(self, columns: int) -> None:
        """Recount into so many columns; this also stops rounding from accumulating."""
        self.used = int(self.classes.max()) + 1
        self.by_level, self.by_class = np.empty((self.table.first[-1], columns)), np.empty(columns)
        count_classes(self.levels, self.table.first, self.classes, self.by_level, self.by_class)

    def _step(self, step: Callable[..., int], alpha: float, profile: Floats) -> None:
        state = (
            self.levels,
            self.table.first,
            self.classes,
            self.by_level,
            self.by_class,
            self.used,
        )
        self.used = step(*state, alpha, profile, self.rng)

    def _slice(self, name: str, log_likelihood: Callable[[float], float]) -> None:
        prior = self.log_priors[name]
        self.logs[name] = _slice_sample(
            self.logs[name], lambda x: prior(x) + log_likelihood(x), self.rng
        )

    def _shares(self, levels: npt.NDArray[np.int64], weight: Floats, share: Floats) -> Floats:
        return np.asarray(
            class_shares(levels, self.table.first, weight, np.ascontiguousarray(share))
        )

    def _weights_and_shares(self) -> tuple[Floats, Floats]:
        """Weights and shares of the classes in use and of further, empty ones, given
        the classes of all individuals.
        """
        concentration = float(np.exp(self.logs["concentration"]))
        gammas = self.rng.standard_gamma(np.append(self.by_class[: self.used], concentration))
        gammas /= gammas.sum()
        unseen = sticks(gammas[-1], concentration, _UNSEEN, _MOST_UNSEEN, self.rng)
        each = np.repeat(self._profile_weights / self.table.sizes, self.table.sizes)
        weights = np.repeat(each[:, None], self.used + len(unseen), axis=1)
        weights[:, : self.used] += self.by_level[:, : self.used]
        return np.append(gammas[:-1], unseen), self.table.profiles(weights, self.rng)

    def _add_misses(self) -> None:
        """Draw the individuals that the model would have put at structural zeros, and
        their classes.

        Shares that would put more there than can be drawn are redrawn, which truncates
        the prior.
        """
        n = len(self.sample)
        for _ in range(_TRIES):
            weight, share = self._weights_and_shares()
            chances = self._shares(self.zeros, weight, share)
            inside = float(chances.sum())
            if n * inside <= _MOST_MISSES * (1 - inside):
                break
        else:
            raise EstimationError(
                f"the structural zeros hold {inside:.2%} of what the latent classes fit to the {n}"
                " sampled, too much to draw who is missing: use DirichletLogLinear"
            )
        misses = self.rng.negative_binomial(n, 1 - inside) if inside > 0 else 0
        cells = np.repeat(
            np.arange(len(chances)), self.rng.multinomial(misses, chances / inside) if misses else 0
        )
        added = self.zeros[cells]
        classes = draw_class_of(
            added, self.table.first, weight, np.ascontiguousarray(share), self.rng
        )
        self.levels = np.concatenate([self.sample, added])
        kept = np.concatenate([self.classes[:n], classes])
        self.classes = np.unique(kept, return_inverse=True)[1].astype(np.int64)
        self._recount(int(self.classes.max()) + 1 + _SPARE)


def sticks(
    whole: float, concentration: float, smallest: float, most: int, rng: np.random.Generator
) -> Floats:
    """Break `whole` into pieces until less than `smallest` is left or there are `most`
    pieces; the last piece takes the rest.
    """
    pieces: list[float] = []
    left = whole
    while left > smallest and len(pieces) < most - 1:
        pieces.append(left * rng.beta(1.0, concentration))
        left -= pieces[-1]
    return np.array([*pieces, max(left, 0.0)])


def _on_logarithm(name: str, prior: Prior) -> tuple[float, Callable[[float], float]]:
    """Starting value of the logarithm of a parameter, and its log prior density,
    interpolated on a fine grid.

    The grid ends where the prior has next to no mass left, and at 1e-100 and 1e12 for
    priors that reach further: beyond, a parameter is effectively 0 or infinite.
    """
    with np.errstate(all="ignore"):  # far out in the tails
        ends = [prior.quantile(_TAIL), prior.quantile(1 - _TAIL)]
    low, high = (log(min(max(end, _LOWEST), _HIGHEST)) for end in ends)
    grid = np.linspace(low, high, _GRID)
    with np.errstate(all="ignore"):
        density = prior.logpdf(np.exp(grid)) + grid
    if not low < high or np.isnan(density).any() or not np.isfinite(density).any():
        raise PriorError(
            f"the prior of {name!r} has next to nothing between 1e-100 and 1e12: {prior!r}"
        )
    density[~np.isfinite(density)] = -np.inf
    step = (high - low) / (_GRID - 1)

    def log_density(x: float) -> float:
        at = (x - low) / step
        left = int(at // 1)
        if not 0 <= left < _GRID - 1 or min(density[left], density[left + 1]) == -np.inf:
            return -np.inf
        return float(density[left] + (at - left) * (density[left + 1] - density[left]))

    middle = log(min(max(prior.quantile(0.5), _LOWEST), _HIGHEST))
    return (
        middle if np.isfinite(log_density(middle)) else float(grid[np.argmax(density)])
    ), log_density


def _slice_sample(
    x: float, log_density: Callable[[float], float], rng: np.random.Generator
) -> float:
    """One step of slice sampling with stepping out (Neal 2003), of width 1."""
    level = log_density(x) - rng.standard_exponential()
    low = x - rng.random()
    high = low + 1.0
    while log_density(low) > level:
        low -= 1.0
    while log_density(high) > level:
        high += 1.0
    while True:
        proposed = low + (high - low) * rng.random()
        if log_density(proposed) >= level:
            return proposed
        low, high = (proposed, high) if proposed < x else (low, proposed)
