"""The posterior of the Dirichlet-multinomial log-linear model with main effects,
without a Markov chain.

Importance sampling. Under independence the margins' posterior would be far too narrow:
where the table departs from the model (κ ≪ n) many individuals of a cell count as one
observation of the margins. Given κ and the margins, the number of such observations in
a cell has expectation ``t = a (ψ(a + f) - ψ(a))`` with ``a = κπ`` (the tables of a
Chinese restaurant), so the proposal is a Dirichlet on the expected tables, tempered by
what their own uncertainty ``a² (ψ'(a) - ψ'(a + f))`` leaves. κ comes from a grid whose
heights are the marginal likelihood that this proposal implies at its own mode. Where
too few of these proposals count others are learned from them.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import gammaln

from taciturn.diagnostics import ImportanceDiagnostics, highest_k_hat
from taciturn.errors import PriorError
from taciturn.estimators.log_linear.kernels import expected_tables, table_information
from taciturn.estimators.log_linear.likelihood import log_likelihood, log_margin_likelihood
from taciturn.estimators.log_linear.ratios import Ratios
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.adaptive import adapted
from taciturn.estimators.sampling.draws import draw_log_gammas
from taciturn.estimators.sampling.importance import proposals_for, resample

__all__ = ["sample_main_effects"]

_GRID: Final = 120
_FIXED_POINT_STEPS: Final = 8
_MOST_PROPOSALS: Final = (
    40_000  # tried where few proposals count: large samples far from independence
)
_MOST_LEARNED: Final = 60  # shares, of whose covariances few proposals tell little
_WIDE: Final = 0.05  # share of proposals from the prior of the margins, which bounds the weights
_TAIL: Final = 1e-7
_NEGLIGIBLE: Final = (
    12.0  # the grid ends where the height is exp(-12) of the top, as the prior does
)
_WIDENINGS: Final = 8
_LOWEST_KAPPA: Final = 1e-12
_HIGHEST_KAPPA: Final = 1e15
_BLOCK: Final = 2**22

Floats = npt.NDArray[np.float64]


def sample_main_effects(
    problem: Problem,
    dims: Sequence[str],
    priors: Mapping[str, Prior],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, list[Floats], ImportanceDiagnostics]:
    """Draws of κ and of the margin of each of `dims`; the other variables are uniform.

    Returns
    -------
    array, shape (draws,)
        κ.
    list of array, shape (draws, categories)
        The margins.
    ImportanceDiagnostics
    """
    target = _Target(problem, dims, priors)
    low, high = _kappa_range(priors["kappa"])
    for _ in range(_WIDENINGS):
        log_kappa = np.linspace(low, high, _GRID)
        weights, shapes = _proposals(target, np.exp(log_kappa))
        # A large sample may know κ to be where its prior hardly reaches.
        step = (high - low) / 2
        lower, higher = max(low - step, log(_LOWEST_KAPPA)), min(high + step, log(_HIGHEST_KAPPA))
        reached = np.isfinite(priors["kappa"].logpdf(np.exp([lower, higher])))
        needed = weights[[0, -1]] > weights.max() - _NEGLIGIBLE
        if not (reached & needed).any() or (lower, higher) == (low, high):
            break
        low, high = (
            (lower if reached[0] and needed[0] else low),
            (higher if reached[1] and needed[1] else high),
        )
    width = float(log_kappa[1] - log_kappa[0])
    heights = np.exp(weights - weights.max())
    heights = 0.98 * heights / heights.sum() + 0.02 / len(heights)
    for number in (proposals_for(draws), max(draws, _MOST_PROPOSALS)):
        log_weights, kappa, log_margins = _weigh(
            target, log_kappa, width, heights, shapes, number, rng
        )
        chosen, diagnostics = resample(log_weights, draws, rng)
        if diagnostics.converged and diagnostics.k_hat <= highest_k_hat(number):
            break
    else:
        # Near known margins shares are the narrower the larger κ: proposals miss them.
        if problem.known_margins is None and 0 < target.free <= _MOST_LEARNED:
            learned = _learned(target, log_weights, kappa, log_margins, draws, rng)
            if learned is not None:
                return learned
    return kappa[chosen], [np.exp(margin[chosen]) for margin in log_margins], diagnostics


def _learned(
    target: "_Target",
    log_weights: Floats,
    kappa: Floats,
    log_margins: list[Floats],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, list[Floats], ImportanceDiagnostics] | None:
    """Draws from proposals that are learned from others, if they can be."""
    ratios = Ratios.to_likeliest(log_margins)
    found = adapted(
        lambda points: ratios.log_density(target.log_posterior, points),
        ratios.points(kappa, log_margins),
        log_weights,
        draws,
        rng,
    )
    if found is None:
        return None
    points, diagnostics = found
    log_kappa, log_margins = ratios.parameters(points)
    return np.exp(log_kappa), [np.exp(margin) for margin in log_margins], diagnostics


def _weigh(
    target: "_Target",
    log_kappa: Floats,
    width: float,
    heights: Floats,
    shapes: list[Floats],
    number: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, list[Floats]]:
    """Proposals of κ and the logarithms of margins, with the logarithms of their
    weights.
    """
    node = np.sort(rng.choice(len(heights), size=number, p=heights))
    kappa = np.exp(log_kappa[node] + width * (rng.random(number) - 0.5))
    wide = rng.random(number) < _WIDE
    log_margins: list[Floats] = []
    main, defence = np.zeros(number), np.zeros(number)
    for shape, prior in zip(shapes, target.prior, strict=True):
        own = shape[node]
        log_margin = _draw_log_dirichlet(np.where(wide[:, None], prior, own), rng)
        log_margins.append(log_margin)
        main += _log_constant(shape)[node] + ((own - 1) * log_margin).sum(axis=1)
        defence += _log_dirichlet(np.full((1, shape.shape[1]), prior), log_margin)
    log_proposal = np.log(heights[node]) + np.logaddexp(log(1 - _WIDE) + main, log(_WIDE) + defence)
    return target.log_posterior(kappa, log_margins) - log_proposal, kappa, log_margins


class _Target:
    """The unnormalised posterior of log κ and the margins, from occupied cells only."""

    def __init__(self, problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior]) -> None:
        self.counts = problem.counts[problem.counts > 0].astype(float)
        self.kappa = priors["kappa"]
        self.prior = [priors[f"margin_{dim}"].parameters["a"] for dim in dims]
        index = np.indices(problem.sample.shape).reshape(problem.sample.ndim, -1)
        axes = self.axes = [problem.variables.index(dim) for dim in dims]
        occupied = problem.counts > 0
        self.levels = [index[axis][occupied] for axis in axes]
        self.categories = [problem.sample.sizes[dim] for dim in dims]
        self.free = sum(size - 1 for size in self.categories)
        uniform = [problem.sample.sizes[d] for d in problem.variables if d not in dims]
        self.constant = -float(np.log(uniform).sum())
        fillable = problem.fillable.ravel()
        self.fillable = None if fillable.all() else [index[axis][fillable] for axis in axes]
        self.problem = problem
        if problem.known_margins is not None:
            self._learn_strata(
                problem.known_margins,
                dims,
                np.eye(problem.known_margins.size)[problem.strata[fillable]],
            )

    def _learn_strata(self, known: xr.DataArray, dims: Sequence[str], members: Floats) -> None:
        levels = dict(zip(known.dims, np.indices(known.shape).reshape(known.ndim, -1), strict=True))
        self.stratum_levels = [levels.get(dim) for dim in dims]
        self.stratum_constant = -float(
            sum(log(known.sizes[dim]) for dim in known.dims if dim not in dims)
        )
        self.stratum_members = members

    def log_stratum(self, log_margins: list[Floats]) -> Floats:
        """Log-linear probabilities of the strata of the known margins, shape (draws,
        strata).
        """
        draws = len(log_margins[0]) if log_margins else 1
        if self.fillable is not None:
            whole = np.exp(self.log_fillable(log_margins))
            shares = np.maximum(
                whole @ self.stratum_members, 1e-300
            )  # a stratum that cannot be filled has none
            return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)))
        total = np.full((draws, self.stratum_members.shape[1]), self.stratum_constant)
        for margin, level in zip(log_margins, self.stratum_levels, strict=True):
            if level is not None:
                total += margin[:, level]
        return total

    def log_fillable(self, log_margins: list[Floats]) -> Floats:
        """Log-linear values of all cells that can be filled, not normalised."""
        assert self.fillable is not None
        whole = np.full(
            (len(log_margins[0]) if log_margins else 1, self.problem.cells), self.constant
        )
        for margin, level in zip(log_margins, self.fillable, strict=True):
            whole += margin[:, level]
        return whole

    def log_pi(self, log_margins: list[Floats]) -> Floats:
        """Log-linear probabilities of the occupied cells, shape (draws, occupied)."""
        total = np.full(
            (len(log_margins[0]) if log_margins else 1, len(self.counts)), self.constant
        )
        for margin, level in zip(log_margins, self.levels, strict=True):
            total += margin[:, level]
        if self.fillable is not None:
            total -= np.log(np.exp(self.log_fillable(log_margins)).sum(axis=1, keepdims=True))
        return total

    def log_posterior(self, kappa: Floats, log_margins: list[Floats]) -> Floats:
        """Density of log κ and of the margins, up to a constant."""
        out = np.empty(len(kappa))
        step = max(1, _BLOCK // len(self.counts))
        for start in range(0, len(kappa), step):
            rows = slice(start, start + step)
            some = kappa[rows, None]
            margins = [margin[rows] for margin in log_margins]
            out[rows] = log_likelihood(some[:, 0], some * np.exp(self.log_pi(margins)), self.counts)
            if self.problem.known_margins is not None:
                strata = some * np.exp(self.log_stratum(margins))
                out[rows] += log_margin_likelihood(some[:, 0], strata, self.problem)
        out += self.kappa.logpdf(kappa) + np.log(kappa)
        for margin, prior in zip(log_margins, self.prior, strict=True):
            out += _log_dirichlet(np.full((1, margin.shape[1]), prior), margin)
        return out


def _kappa_range(prior: Prior) -> tuple[float, float]:
    """Logarithms of the ends of what the prior of κ reaches, but for its outermost
    tails.
    """
    low, high = prior.quantile(_TAIL), prior.quantile(1 - _TAIL)
    if not 0 <= low < _HIGHEST_KAPPA or not high > _LOWEST_KAPPA:
        raise PriorError(
            f"the prior of 'kappa' must reach between {_LOWEST_KAPPA:g} and {_HIGHEST_KAPPA:g}, got"
            f" {prior!r}"
        )
    return log(max(low, _LOWEST_KAPPA)), log(min(high, _HIGHEST_KAPPA))


def _proposals(target: _Target, kappa: Floats) -> tuple[Floats, list[Floats]]:
    """Logarithm of the marginal height of each node of κ, and the Dirichlet shapes of
    its margins.
    """
    evidence = _Evidence(target, kappa)
    tables = [
        np.broadcast_to(counts, (len(kappa), len(counts)))
        for counts in (target.counts, evidence.sizes)
    ]
    whole = evidence.shapes(tables, [0.0] * len(target.prior))
    for _ in range(_FIXED_POINT_STEPS):
        margins = _normalised(whole)
        a = evidence.weights(margins)
        tables = [expected_tables(a[0], target.counts), expected_tables(a[1], evidence.sizes)]
        whole = evidence.shapes(tables, evidence.misses(margins, tables))
    margins = _normalised(whole)
    a = evidence.weights(margins)
    spread = [table_information(a[0], target.counts), table_information(a[1], evidence.sizes)]
    shapes = []
    for shape, source, prior in zip(whole, evidence.source, target.prior, strict=True):
        informed = spread[source].sum(axis=1) + prior * shape.shape[1]
        temper = np.minimum(informed / shape.sum(axis=1), 1.0)
        shapes.append(shape * temper[:, None])
    log_margins = [np.log(margin) for margin in margins]
    height = target.log_posterior(kappa, log_margins)
    for shape, log_margin in zip(shapes, log_margins, strict=True):
        height -= _log_dirichlet(shape, log_margin)
    return height, shapes


class _Evidence:
    """What informs each margin: the occupied cells of the sample (source 0), or the
    known strata (source 1).
    """

    def __init__(self, target: _Target, kappa: Floats) -> None:
        self.target, self.kappa = target, kappa
        known = target.problem.known_margins is not None
        strata = target.stratum_levels if known else [None] * len(target.levels)
        self.sizes = target.problem.stratum_sizes.astype(float) if known else np.ones(0)
        self.source = [0 if level is None else 1 for level in strata]
        levels = [
            cells if level is None else level
            for cells, level in zip(target.levels, strata, strict=True)
        ]
        self.onehot = [
            np.eye(size)[level] for size, level in zip(target.categories, levels, strict=True)
        ]

    def misses(self, margins: list[Floats], tables: list[Floats]) -> list[Floats]:
        """How many tables the categories of each margin would have at structural zeros,
        beside those that there are; these say nothing of a margin, but what they leave
        is only in proportion to it together with them.
        """
        if self.target.fillable is None or not margins:
            return [np.zeros(margin.shape) for margin in margins]
        sample, axes = self.target.problem.sample, self.target.axes
        inside = np.zeros((len(margins[0]), sample.size))
        inside[:, self.target.problem.fillable.ravel()] = np.exp(
            self.target.log_fillable([np.log(margin) for margin in margins])
        )
        inside = inside.reshape(-1, *sample.shape)
        whole, found = inside.sum(axis=tuple(range(1, inside.ndim)))[:, None], []
        for margin, axis, source in zip(margins, axes, self.source, strict=True):
            others = tuple(other + 1 for other in range(sample.ndim) if other != axis)
            hidden = np.maximum(margin - inside.sum(axis=others), 0.0)
            found.append(hidden / whole * tables[source].sum(axis=1, keepdims=True))
        return found

    def shapes(self, tables: list[Floats], misses: Sequence[Floats | float]) -> list[Floats]:
        """Of Dirichlet margins, if all tables of their categories, and those missed,
        were observations.
        """
        return [
            tables[source] @ hot + prior + missed
            for hot, source, prior, missed in zip(
                self.onehot, self.source, self.target.prior, misses, strict=True
            )
        ]

    def weights(self, margins: list[Floats]) -> list[Floats]:
        """κπ of the occupied cells and of the strata."""
        log_margins = [np.log(margin) for margin in margins]
        log_pi = [self.target.log_pi(log_margins)]
        known = self.target.problem.known_margins is not None
        log_pi.append(
            self.target.log_stratum(log_margins) if known else np.zeros((len(self.kappa), 0))
        )
        return [np.maximum(self.kappa[:, None] * np.exp(x), 1e-300) for x in log_pi]


def _normalised(shapes: list[Floats]) -> list[Floats]:
    return [shape / shape.sum(axis=1, keepdims=True) for shape in shapes]


def _draw_log_dirichlet(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithm of Dirichlet draws, which tiny shapes do not underflow."""
    logs = draw_log_gammas(shape, rng)
    highest = logs.max(axis=1, keepdims=True)
    logs -= highest + np.log(np.exp(logs - highest).sum(axis=1, keepdims=True))
    return logs


def _log_dirichlet(shape: Floats, logs: Floats) -> Floats:
    return np.asarray(_log_constant(shape) + ((shape - 1) * logs).sum(axis=1))


def _log_constant(shape: Floats) -> Floats:
    """Logarithm of what scales the density of each Dirichlet to 1."""
    return np.asarray(gammaln(shape.sum(axis=1)) - gammaln(shape).sum(axis=1))
