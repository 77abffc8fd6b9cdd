"""The posterior of the Dirichlet-multinomial log-linear model with main effects, without a Markov chain.

Importance sampling. Under independence the margins' posterior would be far too narrow: where the table departs from
the model (κ ≪ n) many individuals of a cell count as one observation of the margins. Given κ and the margins, the
number of such observations in a cell has expectation ``t = a (ψ(a + f) - ψ(a))`` with ``a = κπ`` (the tables of a
Chinese restaurant), so the proposal is a Dirichlet on the expected tables, tempered by what their own uncertainty
``a² (ψ'(a) - ψ'(a + f))`` leaves. κ comes from a grid whose heights are the marginal likelihood that this proposal
implies at its own mode.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, gammaln, polygamma

from taciturn.errors import PriorError
from taciturn.estimators.importance import ImportanceDiagnostics, resample
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

__all__ = ["log_rising", "sample_main_effects"]

_GRID: Final = 120
_FIXED_POINT_STEPS: Final = 8
_FEWEST_PROPOSALS: Final = 4000
_MOST_PROPOSALS: Final = 40_000  # tried where few proposals count: large samples far from independence
_WIDE: Final = 0.05  # share of proposals from the prior of the margins, which bounds the weights
_TAIL: Final = 1e-7
_LARGE: Final = 1e6
_LOWEST_KAPPA: Final = 1e-12
_HIGHEST_KAPPA: Final = 1e15
_BLOCK: Final = 2**22

Floats = npt.NDArray[np.float64]


def log_rising(a: Any, n: Any) -> Any:
    """Logarithm of ``Γ(a + n) / Γ(a)`` for n > 0, without cancellation when `a` is large."""
    return gammaln(n) - betaln(a, n)


def sample_main_effects(
    problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior], draws: int, rng: np.random.Generator
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
    log_kappa, width = _kappa_grid(priors["kappa"])
    weights, shapes = _proposals(target, np.exp(log_kappa))
    heights = np.exp(weights - weights.max())
    heights = 0.98 * heights / heights.sum() + 0.02 / len(heights)
    for number in (max(draws, _FEWEST_PROPOSALS), max(draws, _MOST_PROPOSALS)):
        log_weights, kappa, log_margins = _weigh(target, log_kappa, width, heights, shapes, number, rng)
        chosen, diagnostics = resample(log_weights, draws, rng)
        if diagnostics.converged:
            break
    return kappa[chosen], [np.exp(margin[chosen]) for margin in log_margins], diagnostics


def _weigh(
    target: "_Target",
    log_kappa: Floats,
    width: float,
    heights: Floats,
    shapes: list[Floats],
    number: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, list[Floats]]:
    """Proposals of κ and the logarithms of margins, with the logarithms of their weights."""
    node = np.sort(rng.choice(len(heights), size=number, p=heights))
    kappa = np.exp(log_kappa[node] + width * (rng.random(number) - 0.5))
    wide = rng.random(number) < _WIDE
    log_margins: list[Floats] = []
    main, defence = np.zeros(number), np.zeros(number)
    for shape, prior in zip(shapes, target.prior, strict=True):
        main_shape, wide_shape = shape[node], np.full((number, shape.shape[1]), prior)
        log_margin = _draw_log_dirichlet(np.where(wide[:, None], wide_shape, main_shape), rng)
        log_margins.append(log_margin)
        main += _log_dirichlet(main_shape, log_margin)
        defence += _log_dirichlet(wide_shape, log_margin)
    log_proposal = np.log(heights[node]) + np.logaddexp(log(1 - _WIDE) + main, log(_WIDE) + defence)
    return target.log_posterior(kappa, log_margins) - log_proposal, kappa, log_margins


class _Target:
    """The unnormalised posterior of log κ and the margins, from occupied cells only."""

    def __init__(self, problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior]) -> None:
        self.counts = problem.counts[problem.counts > 0].astype(float)
        self.size = problem.sample_size
        self.kappa = priors["kappa"]
        self.prior = [priors[f"margin_{dim}"].parameters["a"] for dim in dims]
        index = np.indices(problem.sample.shape).reshape(problem.sample.ndim, -1)
        axes = [problem.variables.index(dim) for dim in dims]
        occupied = problem.counts > 0
        self.levels = [index[axis][occupied] for axis in axes]
        self.categories = [problem.sample.sizes[dim] for dim in dims]
        uniform = [problem.sample.sizes[d] for d in problem.variables if d not in dims]
        self.constant = -float(np.log(uniform).sum())
        fillable = problem.fillable.ravel()
        self.fillable = None if fillable.all() else [index[axis][fillable] for axis in axes]

    def log_pi(self, log_margins: list[Floats]) -> Floats:
        """Log-linear probabilities of the occupied cells, shape (draws, occupied)."""
        total = np.full((len(log_margins[0]) if log_margins else 1, len(self.counts)), self.constant)
        for margin, level in zip(log_margins, self.levels, strict=True):
            total += margin[:, level]
        if self.fillable is not None:
            whole = np.full((len(total), len(self.fillable[0])), self.constant)
            for margin, level in zip(log_margins, self.fillable, strict=True):
                whole += margin[:, level]
            total -= np.log(np.exp(whole).sum(axis=1, keepdims=True))
        return total

    def log_posterior(self, kappa: Floats, log_margins: list[Floats]) -> Floats:
        """Density of log κ and of the margins, up to a constant."""
        out = np.empty(len(kappa))
        step = max(1, _BLOCK // len(self.counts))
        for start in range(0, len(kappa), step):
            rows = slice(start, start + step)
            some = kappa[rows, None]
            a = np.maximum(some * np.exp(self.log_pi([margin[rows] for margin in log_margins])), 1e-300)
            out[rows] = log_rising(a, self.counts).sum(axis=1) - log_rising(some[:, 0], self.size)
        out += self.kappa.logpdf(kappa) + np.log(kappa)
        for margin, prior in zip(log_margins, self.prior, strict=True):
            out += _log_dirichlet(np.full((1, margin.shape[1]), prior), margin)
        return out


def _kappa_grid(prior: Prior) -> tuple[Floats, float]:
    """Nodes of log κ over all the prior reaches, and their distance."""
    low, high = prior.quantile(_TAIL), prior.quantile(1 - _TAIL)
    if not 0 <= low < _HIGHEST_KAPPA or not high > _LOWEST_KAPPA:
        raise PriorError(
            f"the prior of 'kappa' must reach between {_LOWEST_KAPPA:g} and {_HIGHEST_KAPPA:g}, got {prior!r}"
        )
    grid = np.linspace(log(max(low, _LOWEST_KAPPA)), log(min(high, _HIGHEST_KAPPA)), _GRID)
    return grid, float(grid[1] - grid[0])


def _proposals(target: _Target, kappa: Floats) -> tuple[Floats, list[Floats]]:
    """Logarithm of the marginal height of each node of κ, and the Dirichlet shapes of its margins."""
    onehot = [np.eye(size)[level] for size, level in zip(target.categories, target.levels, strict=True)]

    def normalised(tables: Floats) -> list[Floats]:
        margins = [tables @ hot + a for hot, a in zip(onehot, target.prior, strict=True)]
        return [margin / margin.sum(axis=1, keepdims=True) for margin in margins]

    def weights(margins: list[Floats]) -> Floats:
        log_pi = target.log_pi([np.log(margin) for margin in margins])
        return np.maximum(kappa[:, None] * np.exp(log_pi), 1e-300)

    margins = normalised(np.broadcast_to(target.counts, (len(kappa), len(target.counts))))
    tables = np.empty(0)
    for _ in range(_FIXED_POINT_STEPS):
        a = weights(margins)
        tables = _expected_tables(a, target.counts)
        margins = normalised(tables)
    a = weights(margins)
    spread = _table_information(a, target.counts).sum(axis=1)
    total = tables.sum(axis=1)
    shapes = []
    for hot, prior, size in zip(onehot, target.prior, target.categories, strict=True):
        temper = np.minimum((spread + prior * size) / (total + prior * size), 1.0)
        shapes.append((tables @ hot + prior) * temper[:, None])
    log_margins = [np.log(margin) for margin in margins]
    height = target.log_posterior(kappa, log_margins)
    for shape, log_margin in zip(shapes, log_margins, strict=True):
        height -= _log_dirichlet(shape, log_margin)
    return height, shapes


def _expected_tables(a: Floats, counts: Floats) -> Floats:
    """``sum over j < f of a / (a + j)``."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = a * (digamma(a + counts) - digamma(a))
    return np.where(a > _LARGE, counts * a / (a + (counts - 1) / 2), exact)


def _table_information(a: Floats, counts: Floats) -> Floats:
    """``sum over j < f of a² / (a + j)²``."""
    safe = np.maximum(a, 1e-100)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = safe**2 * (polygamma(1, safe) - polygamma(1, safe + counts))
    return np.where(a > _LARGE, counts * (a / (a + (counts - 1) / 2)) ** 2, exact)


def _draw_log_dirichlet(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithm of Dirichlet draws, which tiny shapes do not underflow."""
    logs = np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(shape.shape) / shape
    highest = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - highest - np.log(np.exp(logs - highest).sum(axis=1, keepdims=True)))


def _log_dirichlet(shape: Floats, logs: Floats) -> Floats:
    density = gammaln(shape.sum(axis=1)) - gammaln(shape).sum(axis=1) + ((shape - 1) * logs).sum(axis=1)
    return np.asarray(density)
