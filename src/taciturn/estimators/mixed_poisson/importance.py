"""The posterior of the mixed Poisson log-linear model with main effects, without a
Markov chain.

Importance sampling. On a grid of the two parameters of the departures, Newton's method
finds the rates and the intensities of largest posterior density, and how it bends
there. Around each node powers of rates and intensities are proposed as normal, with
exponents that make the third derivatives vanish: cube roots for gamma variates (Wilson
& Hilferty 1931, PNAS 17). The grid is narrowed, and widened, to where the posterior is.
Where the distribution of the factors is averaged over, each has proposals of its own,
and their weights are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RegularGridInterpolator
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.mixed_poisson.kernels import solve_back_at, solve_factored
from taciturn.estimators.mixed_poisson.mixing import Mixing
from taciturn.estimators.mixed_poisson.target import Bends, Points, Target
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.importance import resample

__all__ = ["sample_main_effects"]

_COARSE: Final = (8, 6)  # nodes along log ν and the power, to find where the posterior is,
_GRID: Final = (16, 8)  # and there
_FITTINGS: Final = 12  # of the grid to where the posterior is
_MARGIN: Final = 1.5  # nodes on each side, beyond those that count
_STEPS: Final = 30  # of Newton's method, at most
_NEAR: Final = 1e-3  # a step that ends it,
_ROUGH: Final = 0.03  # and one that ends it while the grid is not known
_NEGLIGIBLE: Final = 9.0  # the grid ends where the height is exp(-9) of the top
_TAIL: Final = 1e-7
_LIMITS: Final = ((-28.0, 35.0), (-20.0, 20.0))  # of log ν and the power
_PROPOSALS: Final = (4_000, 40_000)  # the second where few of the first count
_NARROW: Final = (0.5, 0.85)  # share of narrower proposals, and their scale
_LEAST: Final = 0.2  # information in any direction
_EXPONENT: Final = 0.2  # of rates and intensities, before it is known better,
_EXPONENTS: Final = (0.02, 0.4)  # and the least and the most, of either sign

Floats = npt.NDArray[np.float64]
type Grid = tuple[int, int]
type Ends = list[tuple[float, float]]


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
    fitted: list[_Fitted] = []
    with threadpool_limits(limits=1, user_api="blas"):  # of many small matrices: threads would wait
        for mixing in mixings:
            target, other = Target(problem, dims, priors, mixing), fitted[-1] if fitted else None
            fitted.append(_Fitted.to(target, priors, other))
    highest = max(own.evidence for own in fitted)
    counting = [k for k, own in enumerate(fitted) if own.evidence > highest - _NEGLIGIBLE]
    for number in _PROPOSALS:
        each = max(draws, number) // len(counting)
        found = [fitted[k].weigh(each, rng) for k in counting]
        log_weights = np.concatenate([weights for weights, _ in found])
        chosen, diagnostics = resample(log_weights, draws, rng)
        if diagnostics.converged:
            break
    if not all(fitted[k].whole for k in counting):  # what is left out, weights cannot show
        diagnostics = replace(diagnostics, k_hat=float("inf"))
    kept = Points.joined([points for _, points in found]).at(chosen)
    target = fitted[0].target
    single = {
        "nu": np.exp(kept.log_nu),
        "power": kept.power,
        "intensity": np.exp(kept.logs[:, : len(target.strata.kept)]),
        "mixing": np.repeat(counting, [len(weights) for weights, _ in found])[chosen],
    }
    return single, [np.exp(margin) for margin in target.log_margins(kept)], diagnostics


@dataclass(frozen=True)
class _Nodes:
    """A grid of log ν and the power, with the rates and the intensities of largest
    density at each node, and the logarithm of the posterior's height.

    Attributes
    ----------
    best : Points
        At the nodes.
    widths : tuple of float
        Between nodes.
    exponents : array, shape (nodes, strata + categories)
        Of the powers of intensities and rates that are proposed.
    bends : Bends
        At the nodes.
    roots : array, shape (nodes, categories, categories)
        Lower triangular: the information about the rates is its product with its own
        transpose, once the intensities are integrated out.
    height : array, shape (nodes,)
        The logarithm.
    """

    best: Points
    widths: tuple[float, float]
    exponents: Floats
    bends: Bends
    roots: Floats
    height: Floats

    def between(self, log_nu: Floats, power: Floats) -> dict[str, Floats]:
        """Rates and intensities of largest density, and shapes of sums of rates,
        between nodes.
        """
        axes = np.unique(self.best.log_nu), np.unique(self.best.power)
        places = [
            np.clip(own, axis[0], axis[-1]) for own, axis in zip((log_nu, power), axes, strict=True)
        ]
        grid = tuple(map(len, axes))
        return {
            name: RegularGridInterpolator(axes, values.reshape(*grid, -1))(np.transpose(places))
            for name, values in (("logs", self.best.logs), ("sums", self.best.sums))
        }


@dataclass(frozen=True)
class _Fitted:
    """A target with the grid over what is not negligible, its ends, and whether it
    holds all of that.
    """

    target: Target
    ends: Ends
    nodes: _Nodes
    whole: bool

    @classmethod
    def to(cls, target: Target, priors: Mapping[str, Prior], other: "_Fitted | None") -> "_Fitted":
        """Fit the grid, from that of another target on."""
        ends, start, whole = _found_ends(target, priors, other)
        return cls(target, ends, _sharpened(target, _nodes(target, ends, _GRID, start)), whole)

    @property
    def log_area(self) -> float:
        """Of a node: what it has of the grid."""
        return float(np.log(self.nodes.widths).sum())

    @property
    def evidence(self) -> float:
        """Logarithm of the probability of the sample, roughly and up to a constant."""
        return float(logsumexp(self.nodes.height)) + self.log_area

    def weigh(self, number: int, rng: np.random.Generator) -> tuple[Floats, Points]:
        """Proposals with the logarithms of their weights, whose mean is the probability
        of the sample up to a constant.
        """
        log_weights, points = _weigh(self.target, self.nodes, number, rng)
        return log_weights + self.log_area, points


def _found_ends(
    target: Target, priors: Mapping[str, Prior], other: _Fitted | None
) -> tuple[Ends, _Nodes, bool]:
    """Ends of a grid over what is not negligible, wherever the data put it within what
    the priors allow, a coarse grid near it, and whether it holds all of that.
    """
    nu, power = priors["nu"], priors["power"]
    with np.errstate(divide="ignore"):  # the quantile of a heavy tail may be infinite
        low, high = max(nu.quantile(_TAIL), 1e-12), min(nu.quantile(1 - _TAIL), 1e15)
        ends = [
            (log(low), log(max(high, 10 * low))),
            (power.quantile(_TAIL), min(power.quantile(1 - _TAIL), 2.0)),
        ]
    nodes: _Nodes | None = None
    if other is not None:
        ends, nodes = other.ends, other.nodes
    for _ in range(_FITTINGS):
        nodes = _nodes(target, ends, _COARSE, nodes)
        used = (nodes.height > nodes.height.max() - _NEGLIGIBLE).reshape(_COARSE)
        kept = [np.flatnonzero(used.any(axis=1 - axis))[[0, -1]] for axis in (0, 1)]
        fitted = [_ends(ends[axis], kept[axis], axis, (nu, power)[axis]) for axis in (0, 1)]
        whole = not any(
            (at[0] == 0 and new[0] < old[0]) or (at[1] == size - 1 and new[1] > old[1])
            for at, new, old, size in zip(kept, fitted, ends, _COARSE, strict=True)
        )
        shrunk = [(b - a) / (d - c) for (a, b), (c, d) in zip(fitted, ends, strict=True)]
        if whole and min(shrunk) > 0.75:
            break
        ends = fitted
    assert nodes is not None
    return ends, nodes, whole


def _ends(
    old: tuple[float, float], kept: npt.NDArray[np.int64], axis: int, prior: Prior
) -> tuple[float, float]:
    """Ends with some room around the nodes that count, but none where the prior has no
    density.
    """
    width, limits = (old[1] - old[0]) / _COARSE[axis], _LIMITS[axis]
    low = max(old[0] + (kept[0] - _MARGIN) * width, limits[0])
    high = min(old[0] + (kept[1] + 1 + _MARGIN) * width, limits[1])
    ends = np.array([low, high])
    reached = np.isfinite(prior.logpdf(np.exp(ends) if axis == 0 else ends))
    return (
        low if low > old[0] or reached[0] else old[0],
        high if high < old[1] or reached[1] else old[1],
    )


def _nodes(target: Target, ends: Ends, grid: Grid, start: _Nodes | None) -> _Nodes:
    """The nodes of a grid between ends, roughly, by Newton's method from those of an
    earlier one.
    """
    widths = [(high - low) / size for (low, high), size in zip(ends, grid, strict=True)]
    middles = [
        low + width * (np.arange(size) + 0.5)
        for (low, _), width, size in zip(ends, widths, grid, strict=True)
    ]
    log_nu, power = (part.ravel() for part in np.meshgrid(*middles, indexing="ij"))
    best = target.start(log_nu, power)
    if start is not None:
        best = replace(best, **start.between(log_nu, power))
    exponents = np.full(best.logs.shape, _EXPONENT)
    best, bends, roots = _modes(target, best, exponents, _ROUGH)
    height = target.log_density(best) - _log_scale(bends, roots)
    return _Nodes(best, (widths[0], widths[1]), exponents, bends, roots, height)


def _sharpened(target: Target, nodes: _Nodes) -> _Nodes:
    """The nodes with exponents of their own, and intensities near their means instead
    of where the density is largest together with that of the rates.
    """
    skews = target.skews(nodes.best, nodes.bends) / 3
    sizes = np.clip(np.abs(skews), *_EXPONENTS)
    exponents = np.where(skews < 0, -sizes, sizes)
    best, bends, roots = _modes(target, nodes.best, exponents, _NEAR)
    height = target.log_density(best) - _log_scale(bends, roots)
    half, pulls = np.linalg.inv(roots), np.zeros_like(best.logs)
    pulls[:, : bends.intensities.shape[1]] = target.pulls(best, half.transpose(0, 2, 1) @ half)
    best = replace(best, logs=best.logs + _step(bends, roots, pulls))
    bends = target.bends(best)
    return _Nodes(best, nodes.widths, exponents, bends, _roots(bends), height)


def _log_scale(bends: Bends, roots: Floats) -> Floats:
    """Logarithm of the square root of the determinant of the information."""
    own = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(own + 0.5 * np.log(bends.intensities).sum(axis=1))


def _modes(
    target: Target, best: Points, exponents: Floats, near: float
) -> tuple[Points, Bends, Floats]:
    """Where powers of rates and intensities have the largest density, how it bends, and
    roots of the information about the rates.
    """
    moving = np.arange(len(best.logs))
    best = best.at(moving)
    for _ in range(_STEPS):
        own = best.at(moving)
        bends = target.bends(own)
        roots = _roots(bends)
        step = _step(bends, roots, bends.slopes - exponents[moving])
        best.logs[moving] += step
        best.sums[moving] = bends.sums
        moving = moving[np.abs(step).max(axis=1) > near]
        if len(moving) == 0:
            break
    bends = target.bends(best)
    return best, bends, _roots(bends)


def _roots(bends: Bends) -> Floats:
    """Cholesky factors of the information about the rates, whatever the intensities."""
    carried = bends.between / bends.intensities[:, :, None]
    information = bends.rates - np.einsum("rsj,rsk->rjk", carried, bends.between)
    try:
        return np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(values, _LEAST)
        return np.linalg.cholesky((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))


def _step(bends: Bends, roots: Floats, slopes: Floats) -> Floats:
    """A step of Newton's method."""
    strata = bends.intensities.shape[1]
    ratio = slopes[:, :strata] / bends.intensities
    rest = slopes[:, strata:] - np.einsum("rs,rsj->rj", ratio, bends.between)
    rates = np.empty_like(rest)
    solve_factored(roots, rest, rates)
    np.clip(rates, -1, 1, out=rates)
    carried = np.einsum("rsj,rj->rs", bends.between, rates) / bends.intensities
    return np.concatenate([np.clip(ratio - carried, -1, 1), rates], axis=1)


def _weigh(
    target: Target, nodes: _Nodes, number: int, rng: np.random.Generator
) -> tuple[Floats, Points]:
    """Proposals with the logarithms of their weights."""
    chances = np.exp(nodes.height - nodes.height.max())
    chances = 0.95 * chances / chances.sum() + 0.05 / len(chances)
    node = np.sort(rng.choice(len(chances), size=number, p=chances))
    near = _moved(target, nodes, node, rng.random((2, number)) - 0.5)
    scale = np.where(rng.random(number) < _NARROW[0], _NARROW[1], 1.0)
    normal = scale[:, None] * rng.standard_normal(near.logs.shape)
    norm = (normal**2).sum(axis=1)
    density = np.logaddexp(
        log(1 - _NARROW[0]) - 0.5 * norm,
        log(_NARROW[0]) - 0.5 * norm / _NARROW[1] ** 2 - normal.shape[1] * log(_NARROW[1]),
    )
    exponents = nodes.exponents[node]
    powers = 1.0 + exponents * _placed(nodes, node, normal)
    inside = (powers > 0).all(axis=1)
    log_powers = np.log(np.where(inside[:, None], powers, 1.0))
    proposed = replace(near, logs=near.logs + log_powers / exponents)
    density += (
        np.log(chances[node]) + _log_scale(nodes.bends, nodes.roots)[node] + log_powers.sum(axis=1)
    )
    log_weights = target.log_density(proposed) - density
    return np.where(inside, log_weights, -np.inf), proposed


def _moved(target: Target, nodes: _Nodes, node: npt.NDArray[np.int64], off: Floats) -> Points:
    """Points off nodes, by so many widths, with intensities and margins that follow the
    best ones of neighbouring nodes.
    """
    strata, best = len(target.strata.kept), nodes.best
    margins = np.concatenate([best.logs[:, :strata], *target.log_margins(best)], axis=1)
    slopes = np.gradient(margins.reshape(*_GRID, -1), axis=(0, 1))
    logs = best.logs[node]
    for along, slope in zip(off, slopes, strict=True):
        logs += along[:, None] * slope.reshape(margins.shape)[node]
    log_nu, power = (
        centre[node] + width * along
        for centre, width, along in zip((best.log_nu, best.power), nodes.widths, off, strict=True)
    )
    return Points(log_nu, power, logs, best.sums[node])


def _placed(nodes: _Nodes, node: npt.NDArray[np.int64], normal: Floats) -> Floats:
    """Normal variates with the information of their nodes from standard ones: of the
    rates, and of the intensities given these.
    """
    information = nodes.bends.intensities[node]
    strata = information.shape[1]
    found = np.concatenate([normal[:, :strata] / np.sqrt(information), normal[:, strata:]], axis=1)
    solve_back_at(nodes.roots, node, found[:, strata:])
    first = np.searchsorted(node, np.arange(len(nodes.height) + 1))
    for k in np.unique(node):
        own = found[first[k] : first[k + 1]]
        own[:, :strata] -= own[:, strata:] @ nodes.bends.between[k].T / nodes.bends.intensities[k]
    return found
