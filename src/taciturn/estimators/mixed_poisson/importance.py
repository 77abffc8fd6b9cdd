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
from taciturn.estimators.log_linear.model import concentration_name
from taciturn.estimators.mixed_poisson.concentrations import Concentrations
from taciturn.estimators.mixed_poisson.kernels import solve_back_at
from taciturn.estimators.mixed_poisson.mixing import Mixing
from taciturn.estimators.mixed_poisson.modes import (
    EXPONENT,
    NEAR,
    ROUGH,
    log_scale,
    modes,
    roots_of,
    step_of,
)
from taciturn.estimators.mixed_poisson.target import Bends, Points, Target
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.importance import resample

__all__ = ["sample_main_effects"]

_COARSE: Final = (8, 6)  # nodes along log ν and the power, to find where the posterior is,
_GRID: Final = (16, 8)  # and there
_FITTINGS: Final = 24  # of the grid to where the posterior is
_LEARNED: Final = 3  # of these, in which concentrations are learned
_MARGIN: Final = 1.5  # nodes on each side, beyond those that count
_NEGLIGIBLE: Final = 9.0  # the grid ends where the height is exp(-9) of the top
_COUNTING: Final = 7.5  # an end where it is exp(-7.5) of the top cuts something off
_TAIL: Final = 1e-7
_LIMITS: Final = ((-28.0, 35.0), (-20.0, 20.0))  # of log ν and the power
_PROPOSALS: Final = (4_000, 40_000)  # the second where few of the first count
_NARROW: Final = (0.5, 0.85)  # share of narrower proposals, and their scale
_INSIDE: Final = 0.3  # a power is above 0 up to 1 / 0.3 standard deviations off
_EXPONENTS: Final = (0.02, 0.4)  # of rates and intensities: least and most, of either sign

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
    for dim, log_a, prior in zip(dims, kept.log_a.T, target.concentrations, strict=True):
        if prior is not None:
            single[concentration_name(dim)] = np.exp(log_a)
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

    @property
    def top(self) -> Points:
        """The highest."""
        return self.best.at(np.array([self.height.argmax()]))

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
    concentrations: Concentrations
    whole: bool

    @classmethod
    def to(cls, target: Target, priors: Mapping[str, Prior], other: "_Fitted | None") -> "_Fitted":
        """Fit the grid, from that of another target on."""
        ends, start, concentrations, whole = _found_ends(target, priors, other)
        nodes = _sharpened(target, _nodes(target, ends, _GRID, start, concentrations))
        concentrations = Concentrations.near(target, nodes.top, concentrations)
        return cls(target, ends, nodes, concentrations, whole)

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
        log_weights, points = _weigh(self.target, self.nodes, self.concentrations, number, rng)
        return log_weights + self.log_area, points


def _found_ends(
    target: Target, priors: Mapping[str, Prior], other: _Fitted | None
) -> tuple[Ends, _Nodes, Concentrations, bool]:
    """Ends of a grid over what is not negligible, wherever the data put it within what
    the priors allow, a coarse grid near it, the concentrations there, and whether it
    holds all of that.
    """
    nu, power = priors["nu"], priors["power"]
    with np.errstate(divide="ignore"):  # the quantile of a heavy tail may be infinite
        low, high = max(nu.quantile(_TAIL), 1e-12), min(nu.quantile(1 - _TAIL), 1e15)
        ends = [
            (log(low), log(max(high, 10 * low))),
            (power.quantile(_TAIL), min(power.quantile(1 - _TAIL), 2.0)),
        ]
    nodes: _Nodes | None = None
    concentrations: Concentrations | None = None
    if other is not None:
        ends, nodes, concentrations = other.ends, other.nodes, other.concentrations
    for number in range(_FITTINGS):
        nodes = _nodes(target, ends, _COARSE, nodes, concentrations)
        if number < _LEARNED:  # then they stay, so that the grid comes to rest
            concentrations = Concentrations.near(target, nodes.top, concentrations)
        kept, counting = (_reach(nodes.height, below) for below in (_NEGLIGIBLE, _COUNTING))
        fitted = [_ends(ends[axis], kept[axis], axis, (nu, power)[axis]) for axis in (0, 1)]
        whole = not any(
            (at[0] == 0 and new[0] < old[0]) or (at[1] == size - 1 and new[1] > old[1])
            for at, new, old, size in zip(counting, fitted, ends, _COARSE, strict=True)
        )
        shrunk = [(b - a) / (d - c) for (a, b), (c, d) in zip(fitted, ends, strict=True)]
        if whole and min(shrunk) > 0.75:
            break
        ends = fitted
    assert nodes is not None
    assert concentrations is not None
    return ends, nodes, concentrations, whole


def _reach(height: Floats, below: float) -> list[npt.NDArray[np.int64]]:
    """First and last nodes along both parameters that are at most so far below the
    top.
    """
    used = (height > height.max() - below).reshape(_COARSE)
    return [np.flatnonzero(used.any(axis=1 - axis))[[0, -1]] for axis in (0, 1)]


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


def _nodes(
    target: Target,
    ends: Ends,
    grid: Grid,
    start: _Nodes | None,
    concentrations: Concentrations | None,
) -> _Nodes:
    """The nodes of a grid between ends, roughly, by Newton's method from those of an
    earlier one, with the concentrations at their means.
    """
    widths = [(high - low) / size for (low, high), size in zip(ends, grid, strict=True)]
    middles = [
        low + width * (np.arange(size) + 0.5)
        for (low, _), width, size in zip(ends, widths, grid, strict=True)
    ]
    log_nu, power = (part.ravel() for part in np.meshgrid(*middles, indexing="ij"))
    log_a = target.log_a if concentrations is None else concentrations.means(target.log_a)
    best = target.start(log_nu, power, log_a)
    if start is not None:
        best = replace(best, **start.between(log_nu, power))
    exponents = np.full(best.logs.shape, EXPONENT)
    best, bends, roots = modes(target, best, exponents, ROUGH)
    height = target.log_density(best) - log_scale(bends, roots)
    return _Nodes(best, (widths[0], widths[1]), exponents, bends, roots, height)


def _sharpened(target: Target, nodes: _Nodes) -> _Nodes:
    """The nodes with exponents of their own, and intensities near their means instead
    of where the density is largest together with that of the rates.
    """
    skews = target.skews(nodes.best, nodes.bends) / 3
    most = np.full(skews.shape, _EXPONENTS[1])
    spreads = np.sqrt(1 / (nodes.roots**2).sum(axis=2))
    most[:, nodes.bends.intensities.shape[1] :] = np.minimum(_EXPONENTS[1], _INSIDE / spreads)
    sizes = np.clip(np.abs(skews), _EXPONENTS[0], most)
    exponents = np.where(skews < 0, -sizes, sizes)
    best, bends, roots = modes(target, nodes.best, exponents, NEAR)
    height = target.log_density(best) - log_scale(bends, roots)
    half, pulls = np.linalg.inv(roots), np.zeros_like(best.logs)
    pulls[:, : bends.intensities.shape[1]] = target.pulls(best, half.transpose(0, 2, 1) @ half)
    best = replace(best, logs=best.logs + step_of(bends, roots, pulls))
    bends = target.bends(best)
    return _Nodes(best, nodes.widths, exponents, bends, roots_of(bends), height)


def _weigh(
    target: Target,
    nodes: _Nodes,
    concentrations: Concentrations,
    number: int,
    rng: np.random.Generator,
) -> tuple[Floats, Points]:
    """Proposals with the logarithms of their weights."""
    chances = np.exp(nodes.height - nodes.height.max())
    chances = 0.95 * chances / chances.sum() + 0.05 / len(chances)
    node = np.sort(rng.choice(len(chances), size=number, p=chances))
    near = _moved(target, nodes, node, rng.random((2, number)) - 0.5)
    near, log_wider, own_density = concentrations.propose(near, rng)
    scale = np.where(rng.random(number) < _NARROW[0], _NARROW[1], 1.0)
    normal = scale[:, None] * rng.standard_normal(near.logs.shape)
    norm = (normal**2).sum(axis=1)
    density = np.logaddexp(
        log(1 - _NARROW[0]) - 0.5 * norm,
        log(_NARROW[0]) - 0.5 * norm / _NARROW[1] ** 2 - normal.shape[1] * log(_NARROW[1]),
    )
    wider = np.exp(log_wider)
    exponents = nodes.exponents[node]
    exponents /= np.maximum(wider, 1.0)
    powers = 1.0 + exponents * _placed(nodes, node, normal, wider)
    inside = (powers > 0).all(axis=1)
    log_powers = np.log(np.where(inside[:, None], powers, 1.0))
    proposed = replace(near, logs=near.logs + log_powers / exponents)
    density += own_density - np.sum(log_wider, axis=-1)
    density += (
        np.log(chances[node]) + log_scale(nodes.bends, nodes.roots)[node] + log_powers.sum(axis=1)
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
    return Points(log_nu, power, logs, best.sums[node], best.log_a[node])


def _placed(nodes: _Nodes, node: npt.NDArray[np.int64], normal: Floats, wider: Floats) -> Floats:
    """Normal variates with the information of their nodes from standard ones: of the
    rates, that much wider, and of the intensities given these.
    """
    information = nodes.bends.intensities[node]
    strata = information.shape[1]
    found = np.concatenate([normal[:, :strata] / np.sqrt(information), normal[:, strata:]], axis=1)
    solve_back_at(nodes.roots, node, found[:, strata:])
    found[:, strata:] *= wider[:, strata:]
    first = np.searchsorted(node, np.arange(len(nodes.height) + 1))
    for k in np.unique(node):
        own = found[first[k] : first[k + 1]]
        own[:, :strata] -= own[:, strata:] @ nodes.bends.between[k].T / nodes.bends.intensities[k]
    return found
