"""The posterior of the mixed Poisson log-linear model with main effects, without a
Markov chain.

Importance sampling. On a grid of the two parameters of the departures, Newton's method
finds the margins and the intensities of largest posterior density. Around each node the
margins are proposed as gamma variates that are divided by their sum: each has the
node's value as its mean, and a shape that is the information about it. The grid is
narrowed, and widened, to where the posterior is. Where the distribution of the factors
is averaged over, each has proposals of its own, and their weights are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, log_softmax, logsumexp
from scipy.stats import t as student_t

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.mixed_poisson.mixing import Mixing
from taciturn.estimators.mixed_poisson.shares import Strata
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_log_gammas
from taciturn.estimators.sampling.importance import resample

__all__ = ["sample_main_effects"]

_GRID: Final = (16, 8)  # nodes along log ν and the power
_FITTINGS: Final = 12  # of the grid to where the posterior is
_MARGIN: Final = 2  # nodes on each side, beyond those that count
_STEPS: Final = 16  # of Newton's method
_STEP: Final = 1e-3  # of numeric derivatives along a logarithm
_NEGLIGIBLE: Final = 9.0  # the grid ends where the height is exp(-9) of the top
_TAIL: Final = 1e-7
_LIMITS: Final = ((-28.0, 35.0), (-20.0, 20.0))  # of log ν and the power
_PROPOSALS: Final = (4_000, 40_000)  # the second where few of the first count
_WIDE: Final = (0.15, 0.4)  # share of wider proposals, and their information
_FREEDOM: Final = 6  # of the t distribution that proposes the intensity
_SPREAD: Final = 0.3  # and its scale beyond the standard error, divided by their number
_BLOCK: Final = 2**21

Floats = npt.NDArray[np.float64]


def sample_main_effects(
    problem: Problem,
    dims: Sequence[str],
    priors: Mapping[str, Prior],
    mixings: Sequence[Mixing],
    draws: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Floats], list[Floats], ImportanceDiagnostics]:
    """Draws of ``nu`` and ``power``, shape (draws,), of ``intensity``, (draws, strata
    with a sample), of ``mixing``, the number of the distribution, and of the margin of
    each of `dims`, (draws, categories); the other variables are uniform.
    """
    fitted = [_Fitted.to(_Target(problem, dims, priors, mixing), priors) for mixing in mixings]
    highest = max(own.evidence for own in fitted)
    counting = [k for k, own in enumerate(fitted) if own.evidence > highest - _NEGLIGIBLE]
    for number in _PROPOSALS:
        found = [fitted[k].weigh(max(draws, number), rng) for k in counting]
        log_weights = np.concatenate([weights for weights, _ in found])
        chosen, diagnostics = resample(log_weights, draws, rng)
        if diagnostics.converged:
            break
    if not all(fitted[k].whole for k in counting):  # what is left out, weights cannot show
        diagnostics = replace(diagnostics, k_hat=float("inf"))
    kept = _Points.joined([points for _, points in found]).at(chosen)
    single = {
        "nu": np.exp(kept.log_nu),
        "power": kept.power,
        "intensity": np.exp(kept.log_intensity),
        "mixing": np.repeat(counting, [len(weights) for weights, _ in found])[chosen],
    }
    return single, [np.exp(margin) for margin in kept.log_margins], diagnostics


@dataclass(frozen=True)
class _Points:
    """Values of all parameters, the first axis that of the points; the second of the
    intensities is that of the strata.
    """

    log_nu: Floats
    power: Floats
    log_intensity: Floats
    log_margins: list[Floats]

    def at(self, which: "npt.NDArray[np.int64] | slice") -> "_Points":
        return _Points(
            self.log_nu[which],
            self.power[which],
            self.log_intensity[which],
            [margin[which] for margin in self.log_margins],
        )

    @classmethod
    def joined(cls, several: Sequence["_Points"]) -> "_Points":
        """Those of several, one after the other."""
        return cls(
            np.concatenate([own.log_nu for own in several]),
            np.concatenate([own.power for own in several]),
            np.concatenate([own.log_intensity for own in several]),
            [
                np.concatenate(parts)
                for parts in zip(*(own.log_margins for own in several), strict=True)
            ],
        )


class _Target:
    """The unnormalised posterior of log ν, the power, the logarithms of the intensities
    and the margins, from the cells of the strata that have a sample.
    """

    def __init__(
        self, problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior], mixing: Mixing
    ) -> None:
        self.strata = Strata(problem, sampled=True)
        seen = self.strata.seen
        self.counts, self.cells = problem.learned_from[seen], problem.cells
        self._mixing, self._priors = mixing, priors
        index = np.indices(problem.sample.shape).reshape(problem.sample.ndim, -1)[:, seen]
        self.levels = [index[problem.variables.index(dim)] for dim in dims]
        self.categories = [problem.sample.sizes[dim] for dim in dims]
        self.prior = [priors[f"margin_{dim}"].parameters["a"] for dim in dims]
        self.members = [np.eye(s)[own] for s, own in zip(self.categories, self.levels, strict=True)]

    def log_shares(self, log_margins: list[Floats], rows: int) -> Floats:
        """Logarithms of π of the cells that can be filled, shape (rows, cells)."""
        total = np.zeros((rows, len(self.counts)))
        for margin, level in zip(log_margins, self.levels, strict=True):
            total += margin[:, level]
        return self.strata.log_shares(total)

    def log_mean(self, points: _Points, log_shares: Floats) -> Floats:
        return np.asarray(points.log_intensity[:, self.strata.of_cell] + log_shares)

    def log_shape(self, points: _Points, log_shares: Floats) -> Floats:
        relative = log(self.cells) + log_shares
        return np.asarray(points.log_nu[:, None] + points.power[:, None] * relative)

    def log_pmf(self, log_mean: Floats, log_shape: Floats) -> Floats:
        return self._mixing.log_pmf(self.counts, log_mean, log_shape)

    def log_posterior(self, points: _Points) -> Floats:
        """Density of the logarithms of ν and the intensity, of the power and of the
        margins, up to a constant.
        """
        out = np.empty(len(points.log_nu))
        step = max(1, _BLOCK // len(self.counts))
        for start in range(0, len(out), step):
            rows = slice(start, start + step)
            some = points.at(rows)
            shares = self.log_shares(some.log_margins, len(some.log_nu))
            mean = self.log_mean(some, shares)
            out[rows] = self.log_pmf(mean, self.log_shape(some, shares)).sum(axis=1)
        nu = np.exp(points.log_nu)
        out += self._priors["nu"].logpdf(nu) + points.log_nu
        out += self._priors["power"].logpdf(points.power)
        for margin, prior in zip(points.log_margins, self.prior, strict=True):
            out += (prior - 1) * margin.sum(axis=1)
        return out


@dataclass(frozen=True)
class _Nodes:
    """A grid of log ν and the power, with the margins and the intensities of largest
    density at each node, the information about them, and the logarithm of the
    posterior's height.
    """

    best: _Points
    widths: tuple[float, float]
    shapes: list[Floats]
    information: Floats
    height: Floats


@dataclass(frozen=True)
class _Fitted:
    """A target with the grid over what is not negligible, and whether it holds all of
    that.
    """

    target: _Target
    nodes: _Nodes
    whole: bool

    @classmethod
    def to(cls, target: _Target, priors: Mapping[str, Prior]) -> "_Fitted":
        """Fit the grid."""
        return cls(target, *_fitted(target, priors))

    @property
    def log_area(self) -> float:
        """Of a node: what it has of the grid."""
        return float(np.log(self.nodes.widths).sum())

    @property
    def evidence(self) -> float:
        """Logarithm of the probability of the sample, roughly and up to a constant."""
        return float(logsumexp(self.nodes.height)) + self.log_area

    def weigh(self, number: int, rng: np.random.Generator) -> tuple[Floats, _Points]:
        """Proposals with the logarithms of their weights, whose mean is the probability
        of the sample up to a constant.
        """
        log_weights, points = _weigh(self.target, self.nodes, number, rng)
        return log_weights + self.log_area, points


def _fitted(target: _Target, priors: Mapping[str, Prior]) -> tuple[_Nodes, bool]:
    """The grid over what is not negligible, wherever the data put it within what the
    priors allow, and whether it holds all of that.
    """
    nu, power = priors["nu"], priors["power"]
    with np.errstate(divide="ignore"):  # the quantile of a heavy tail may be infinite
        low, high = max(nu.quantile(_TAIL), 1e-12), min(nu.quantile(1 - _TAIL), 1e15)
        ends = [
            (log(low), log(max(high, 10 * low))),
            (power.quantile(_TAIL), min(power.quantile(1 - _TAIL), 2.0)),
        ]
    start: _Points | None = None
    for _ in range(_FITTINGS):
        nodes = _nodes(target, ends, start)
        start = nodes.best.at(np.array([int(np.argmax(nodes.height))]))
        used = (nodes.height > nodes.height.max() - _NEGLIGIBLE).reshape(_GRID)
        kept = [np.flatnonzero(used.any(axis=1 - axis))[[0, -1]] for axis in (0, 1)]
        fitted = [_ends(ends[axis], kept[axis], axis, (nu, power)[axis]) for axis in (0, 1)]
        whole = not any(
            (at[0] == 0 and new[0] < old[0]) or (at[1] == size - 1 and new[1] > old[1])
            for at, new, old, size in zip(kept, fitted, ends, _GRID, strict=True)
        )
        shrunk = [(b - a) / (d - c) for (a, b), (c, d) in zip(fitted, ends, strict=True)]
        if whole and min(shrunk) > 0.75:
            break
        ends = fitted
    return nodes, whole


def _ends(
    old: tuple[float, float], kept: npt.NDArray[np.int64], axis: int, prior: Prior
) -> tuple[float, float]:
    """Ends with some room around the nodes that count, but none where the prior has no
    density.
    """
    width, limits = (old[1] - old[0]) / _GRID[axis], _LIMITS[axis]
    low = max(old[0] + (kept[0] - _MARGIN) * width, limits[0])
    high = min(old[0] + (kept[1] + 1 + _MARGIN) * width, limits[1])
    ends = np.array([low, high])
    reached = np.isfinite(prior.logpdf(np.exp(ends) if axis == 0 else ends))
    return (
        low if low > old[0] or reached[0] else old[0],
        high if high < old[1] or reached[1] else old[1],
    )


def _nodes(target: _Target, ends: list[tuple[float, float]], start: _Points | None) -> _Nodes:
    """The nodes of a grid between ends, by Newton's method from the best node of an
    earlier one.
    """
    widths = [(high - low) / size for (low, high), size in zip(ends, _GRID, strict=True)]
    middles = [
        low + width * (np.arange(size) + 0.5)
        for (low, _), width, size in zip(ends, widths, _GRID, strict=True)
    ]
    log_nu, power = (part.ravel() for part in np.meshgrid(*middles, indexing="ij"))
    rows = len(log_nu)
    if start is None:
        sums = [target.counts @ member for member in target.members]
        margins = [
            np.log((own + prior) / (own + prior).sum())
            for own, prior in zip(sums, target.prior, strict=True)
        ]
        start = _Points(
            log_nu[:1], power[:1], target.strata.log_start[None], [m[None] for m in margins]
        )
    best = _Points(
        log_nu,
        power,
        np.repeat(start.log_intensity, rows, axis=0),
        [np.repeat(margin, rows, axis=0) for margin in start.log_margins],
    )
    for _ in range(_STEPS):
        best, shapes, information = _newton(target, best)
    height = target.log_posterior(best) - 0.5 * np.log(information).sum(axis=1)
    for shape, margin in zip(shapes, best.log_margins, strict=True):
        height -= _log_scaled_dirichlet(shape, margin, margin)
    return _Nodes(best, (widths[0], widths[1]), shapes, information, height)


def _newton(target: _Target, at: _Points) -> tuple[_Points, list[Floats], Floats]:
    """A step towards the largest density, with the information about the margins and
    the intensities where it started.
    """
    shares = target.log_shares(at.log_margins, len(at.log_nu))
    mean, shape = target.log_mean(at, shares), target.log_shape(at, shares)
    middle, power = target.log_pmf(mean, shape), at.power[:, None]
    up = target.log_pmf(mean + _STEP, shape + power * _STEP)
    down = target.log_pmf(mean - _STEP, shape - power * _STEP)
    slope, bend = (up - down) / (2 * _STEP), (2 * middle - up - down) / _STEP**2
    margins, shapes = [], []
    for margin, member, prior in zip(at.log_margins, target.members, target.prior, strict=True):
        own = np.exp(margin)
        information = np.maximum(bend @ member, 0.0) + prior
        gradient = slope @ member + prior
        gradient -= own * gradient.sum(axis=1, keepdims=True)
        moved = margin + np.clip(gradient / information, -1, 1)
        margins.append(np.asarray(log_softmax(moved, axis=1)))
        shapes.append(information)
    up, down = target.log_pmf(mean + _STEP, shape), target.log_pmf(mean - _STEP, shape)
    by_stratum = target.strata.sums
    of_intensity = np.maximum(by_stratum(2 * middle - up - down) / _STEP**2, 1.0)
    step = np.clip(by_stratum(up - down) / (2 * _STEP) / of_intensity, -1, 1)
    moved_points = _Points(at.log_nu, at.power, at.log_intensity + step, margins)
    return moved_points, shapes, of_intensity


def _weigh(
    target: _Target, nodes: _Nodes, number: int, rng: np.random.Generator
) -> tuple[Floats, _Points]:
    """Proposals with the logarithms of their weights."""
    chances = np.exp(nodes.height - nodes.height.max())
    chances = 0.95 * chances / chances.sum() + 0.05 / len(chances)
    node = np.sort(rng.choice(len(chances), size=number, p=chances))
    near = nodes.best.at(node)
    jitter = rng.random((2, number)) - 0.5
    wide = rng.random(number) < _WIDE[0]
    margins, narrow_density, wide_density = [], np.zeros(number), np.zeros(number)
    for shape, centre in zip(nodes.shapes, near.log_margins, strict=True):
        own = shape[node]
        less = np.maximum(own * _WIDE[1], np.minimum(own, 1.0))
        drawn = _draw_scaled_dirichlet(np.where(wide[:, None], less, own), centre, rng)
        narrow_density += _log_scaled_dirichlet(own, centre, drawn)
        wide_density += _log_scaled_dirichlet(less, centre, drawn)
        margins.append(drawn)
    information = nodes.information[node]
    scale = (1 + _SPREAD / information.shape[1]) / np.sqrt(information)
    off = rng.standard_t(_FREEDOM, scale.shape)
    proposed = _Points(
        near.log_nu + nodes.widths[0] * jitter[0],
        near.power + nodes.widths[1] * jitter[1],
        near.log_intensity + scale * off,
        margins,
    )
    density = np.log(chances[node])
    density += (student_t.logpdf(off, _FREEDOM) - np.log(scale)).sum(axis=1)
    density += np.logaddexp(log(1 - _WIDE[0]) + narrow_density, log(_WIDE[0]) + wide_density)
    return target.log_posterior(proposed) - density, proposed


def _draw_scaled_dirichlet(shape: Floats, centre: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of gamma variates with means in proportion to exp(centre), divided by
    their sum; small shapes do not underflow.
    """
    logs = draw_log_gammas(shape, rng) + centre - np.log(shape)
    return np.asarray(log_softmax(logs, axis=1))


def _log_scaled_dirichlet(shape: Floats, centre: Floats, logs: Floats) -> Floats:
    """Logarithm of the density of `_draw_scaled_dirichlet` (Aitchison 1986, p. 305)."""
    log_rate, total = np.log(shape) - centre, shape.sum(axis=1)
    log_sum = logsumexp(logs + log_rate, axis=1)
    constant = gammaln(total) - gammaln(shape).sum(axis=1)
    return np.asarray(
        constant + (shape * log_rate + (shape - 1) * logs).sum(axis=1) - total * log_sum
    )
