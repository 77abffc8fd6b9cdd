"""Nodes over the posterior of what departures from the model are like, with the rates,
the coordinates of interactions and the intensities of largest density at each.

The grid of the parameters of the departures, two and those of a mixture and of zeros,
is narrowed, and widened, to where the posterior is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import map_coordinates
from scipy.optimize import minimize

from taciturn.estimators.mixed_poisson.hyperparameters import MARGIN, NEGLIGIBLE, AlongGrid
from taciturn.estimators.mixed_poisson.modes import (
    NEAR,
    ROUGH,
    log_scale,
    roots_of,
    step_of,
    usual_exponents,
)
from taciturn.estimators.mixed_poisson.points import Bends, Points
from taciturn.estimators.mixed_poisson.target import Target
from taciturn.estimators.mixed_poisson.thin_strata import ThinStrata, heights
from taciturn.estimators.priors import Prior

__all__ = ["FINER", "Fitted", "Nodes"]

FINER: Final = 4
"""Parts between nodes, along each axis."""
# Nodes along each axis, to find the posterior, there, and closely.
_COARSE: Final = {2: (8, 6), 3: (6, 5, 4), 4: (6, 4, 4, 4)}
_GRID: Final = {2: (16, 8), 3: (10, 5, 4), 4: (8, 4, 4, 4)}
_CLOSE: Final = {2: (16, 8), 3: (10, 5, 8), 4: (8, 4, 4, 8)}
_FITTINGS: Final = 24  # of the grid to where the posterior is
_LEARNED: Final = 3  # of these, in which concentrations and scales are learned
_NARROWED: Final = 3  # and in which a finer grid is narrowed
_CLOSELY: Final = 0.75  # of ends, and the new ones are no more work
_FOLLOWED: Final = ("log_nu", "inflation")  # by concentrations and scales
_COUNTING: Final = 7.5  # an end where it is exp(-7.5) of the top cuts something off
_NEAREST: Final = 1e-3  # that an end is to the top of a narrow posterior
_SEARCHES: Final = 10  # for the top of a narrow posterior
_PRECISE: Final = {"xtol": 1e-4, "ftol": 1e-12}  # of a density whose logarithm has ten digits
_TAIL: Final = 1e-7
_LIMITS: Final = {
    "log_nu": (-28.0, 35.0),
    "power": (-20.0, 20.0),
    "share": (0.0, 1.0),
    "inflation": (0.0, 1.0),
}
_DEEPEST: Final = 30.0  # below the top, that heights between nodes still follow
_INSIDE: Final = 0.3  # a power is above 0 up to 1 / 0.3 standard deviations off
_EXPONENTS: Final = (0.02, 0.4)  # of rates and intensities: least and most, of either sign

Floats = npt.NDArray[np.float64]
type Grid = tuple[int, ...]
type Ends = list[tuple[float, float]]


@dataclass(frozen=True)
class Nodes:
    """A grid of log ν, the power and, if they have priors, the share and the inflation,
    with the rates and the intensities of largest density at each node, and the
    logarithm of the posterior's height.

    Attributes
    ----------
    best : Points
        At the nodes.
    axes : list of array
        The values along each axis.
    exponents : array, shape (nodes, strata + effects)
        Of the powers of intensities, rates and exponentials of coordinates that are
        proposed.
    bends : Bends
        At the nodes.
    roots : array, shape (nodes, effects, effects)
        Lower triangular: the information about the effects is its product with its own
        transpose, once the intensities are integrated out.
    height : array, shape (nodes,)
        The logarithm.
    thin : ThinStrata, optional
        Whose intensities are proposed otherwise than as powers.
    """

    best: Points
    axes: Sequence[Floats]
    exponents: Floats
    bends: Bends
    roots: Floats
    height: Floats
    thin: ThinStrata | None = None

    @property
    def widths(self) -> list[float]:
        """Between nodes, along each axis."""
        return [float(axis[1] - axis[0]) for axis in self.axes]

    @cached_property
    def chances(self) -> Floats:
        """Of proposals in equal parts between nodes, `FINER` along each axis."""
        grid = tuple(map(len, self.axes))
        along = ((np.arange(FINER * size) + 0.5) / FINER - 0.5 for size in grid)
        height = np.maximum(self.height - self.height.max(), -_DEEPEST).reshape(grid)
        places = np.meshgrid(*along, indexing="ij")
        found = np.exp(map_coordinates(height, places, order=3, mode="nearest").ravel())
        return np.asarray(0.95 * found / found.sum() + 0.05 / len(found))

    def between(self, *places: Floats) -> dict[str, Floats]:
        """Intensities and effects of largest density, and shapes of sums of rates,
        between nodes.
        """
        inside = [
            np.clip(own, axis[0], axis[-1]) for own, axis in zip(places, self.axes, strict=True)
        ]
        grid = tuple(map(len, self.axes))
        return {
            name: RegularGridInterpolator(self.axes, values.reshape(*grid, -1))(
                np.transpose(inside)
            )
            for name, values in (("logs", self.best.logs), ("sums", self.best.sums))
        }


@dataclass(frozen=True)
class Fitted:
    """The grid over what is not negligible, concentrations and scales near its top, and
    whether it holds all of that.
    """

    nodes: Nodes
    others: AlongGrid
    whole: bool

    @classmethod
    def to(cls, target: Target, *, closely: bool = False) -> "Fitted":
        """Fit the grid; closely where uneven margins with small departures are as
        likely as even ones with large departures, so that concentrations differ between
        parts of it. That takes a few times as long.
        """
        room, grid = _Room.of(target), (_CLOSE if closely else _GRID)[len(target.axes)]
        ends, nodes, others = _found_ends(target, room)
        axes = tuple(name for name in _FOLLOWED if name in target.axes)
        for _ in range(2 if closely else 1):  # heights follow the concentrations there
            if closely or target.effects.basis is not None:
                along = axes if closely else axes[:1]
                others = AlongGrid.spread(target, nodes.best, nodes.height, along)
            ends, nodes, whole = _settled(target, room, grid, (ends, nodes, others), closely)
        nodes = _sharpened(target, nodes)
        return cls(nodes, others.near(target, nodes.best, nodes.height), whole)


@dataclass(frozen=True)
class _Room:
    """Where the grid may be.

    Attributes
    ----------
    axes : tuple of str
        As in `Target`.
    along : list of Prior
        Of each axis.
    first : list
        Ends between which the priors have nearly all of their probability.
    outer : list
        Where the priors have no density any more, if there is such a place.
    """

    axes: tuple[str, ...]
    along: Sequence[Prior]
    first: Ends
    outer: Ends

    @classmethod
    def of(cls, target: Target) -> "_Room":
        """That of the priors."""
        nu, power = target.priors["nu"], target.priors["power"]
        with np.errstate(divide="ignore"):  # the quantile of a heavy tail may be infinite
            low, high = max(nu.quantile(_TAIL), 1e-12), min(nu.quantile(1 - _TAIL), 1e15)
            ends = [(log(low), log(min(max(high, 10 * low), nu.quantile(1.0))))]
            low, high = power.quantile(_TAIL), power.quantile(1 - _TAIL)
            ends.append((low, min(high, max(2.0, 2 * low))))  # without most of a long tail
        along = [nu, power]
        for prior in map(target.priors.__getitem__, target.axes[2:]):
            along.append(prior)
            ends.append((prior.quantile(_TAIL), prior.quantile(1 - _TAIL)))
        outer = [ends[0], *((prior.quantile(0.0), prior.quantile(1.0)) for prior in along[1:])]
        return cls(target.axes, along, ends, outer)

    def fitted(self, height: Floats, grid: Grid, ends: Ends) -> tuple[Ends, bool]:
        """Ends around what is not negligible of heights between the old ones, and
        whether these hold all that counts.
        """
        kept, counting = (_reach(height, grid, below) for below in (NEGLIGIBLE, _COUNTING))
        fitted = [
            _ends(axis, old, reached, size, prior, outer)
            for axis, old, reached, size, prior, outer in zip(
                self.axes, ends, kept, grid, self.along, self.outer, strict=True
            )
        ]
        whole = not any(
            (at[0] == 0 and new[0] < old[0]) or (at[1] == size - 1 and new[1] > old[1])
            for at, new, old, size in zip(counting, fitted, ends, grid, strict=True)
        )
        return fitted, whole


def _found_ends(target: Target, room: _Room) -> tuple[Ends, Nodes, AlongGrid]:
    """Ends of a grid over what is not negligible, wherever the data put it within what
    the priors allow, a coarse grid near it, and concentrations and scales there.
    """
    ends = room.first
    grid = _COARSE[len(ends)]
    nodes: Nodes | None = None
    others: AlongGrid | None = None
    for number in range(_FITTINGS):
        nodes = _nodes(target, ends, grid, nodes, others)
        if number == 0 and all(a == b for a, b in _reach(nodes.height, grid, _DEEPEST)[:2]):
            ends, nodes = _located(target, nodes, room.along), None
            continue
        if number < _LEARNED:  # then they stay, so that the grid comes to rest
            found = nodes.best, nodes.height
            others = (
                AlongGrid.top(target, *found) if others is None else others.near(target, *found)
            )
        fitted, whole = room.fitted(nodes.height, grid, ends)
        if whole and _shrunk(fitted, ends) > _CLOSELY:
            break
        ends = fitted
    assert nodes is not None
    assert others is not None
    return ends, nodes, others


def _settled(
    target: Target, room: _Room, grid: Grid, found: tuple[Ends, Nodes, AlongGrid], closely: bool
) -> tuple[Ends, Nodes, bool]:
    """Ends of a finer grid that hold what counts, from those found with a coarse one
    before concentrations were learned, closely or with some room; and whether they do.
    """
    ends, nodes, others = found
    narrowed = 0 if closely else _NARROWED
    for _ in range(_FITTINGS):
        nodes = _nodes(target, ends, grid, nodes, others)
        fitted, whole = room.fitted(nodes.height, grid, ends)
        if whole and (narrowed == _NARROWED or _shrunk(fitted, ends) > _CLOSELY):
            break
        narrowed += whole
        wider = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(ends, fitted, strict=True)]
        ends = fitted if whole else wider
    return ends, nodes, whole


def _shrunk(new: Ends, old: Ends) -> float:
    """By how much ends moved closer, along the axis where they did most."""
    return min((b - a) / (d - c) for (a, b), (c, d) in zip(new, old, strict=True))


def _located(target: Target, nodes: Nodes, along: Sequence[Prior]) -> Ends:
    """Ends of a grid around the top of the posterior of a large sample, which falls
    between the nodes of one over all that the priors allow: the highest of these may be
    far from it, as the parameters depend on each other.
    """
    best = nodes.best.at(np.array([nodes.height.argmax()]))
    axes = target.axes
    top, deepest = np.array([float(getattr(best, name)[0]) for name in axes]), np.inf
    limits = [_LIMITS["log_nu"]]
    for axis, prior in zip(axes[1:], along[1:], strict=True):
        low, high = _LIMITS[axis]
        limits.append((max(low, prior.quantile(0.0)), min(high, prior.quantile(1.0))))

    def depth(place: Floats) -> float:
        nonlocal best, top, deepest
        if not all(low < x < high for x, (low, high) in zip(place, limits, strict=True)):
            return np.inf
        named = {name: np.array([value]) for name, value in zip(axes, place, strict=True)}
        start = replace(best, **named)
        tried, bends, roots = target.modes(start, usual_exponents(target, start), ROUGH)
        deep = float((log_scale(bends, roots) - target.log_density(tried))[0])
        if not np.isfinite(deep):  # where the prior has no density
            return np.inf
        if deep < deepest:  # Newton's method starts there, and may fail far from it
            best, top, deepest = tried, place.copy(), deep
        return deep

    for _ in range(_SEARCHES):  # one may come to rest too early, on a ridge
        before = deepest
        minimize(depth, top, method="Powell", bounds=limits, options=_PRECISE)  # type: ignore[call-overload]
        if deepest > before - 1.0:
            break
    ends = []
    for direction, (low, high) in zip(np.eye(len(axes)), limits, strict=True):
        own, reached = float(direction @ top), []
        for sign in (-1.0, 1.0):
            step = _NEAREST
            while low < own + sign * step < high:
                if depth(top + 2 * sign * step * direction) > deepest + _COUNTING:
                    break
                step *= 2
            reached.append(min(max(own + sign * step, low), high))
        ends.append((reached[0], reached[1]))
    return ends


def _reach(height: Floats, grid: Grid, below: float) -> list[npt.NDArray[np.int64]]:
    """First and last nodes along each axis that are at most so far below the top."""
    used = (height > height.max() - below).reshape(grid)
    axes = range(len(grid))
    return [
        np.flatnonzero(used.any(axis=tuple(other for other in axes if other != axis)))[[0, -1]]
        for axis in axes
    ]


def _ends(
    axis: str,
    old: tuple[float, float],
    kept: npt.NDArray[np.int64],
    size: int,
    prior: Prior,
    outer: tuple[float, float],
) -> tuple[float, float]:
    """Ends with some room around the nodes that count, but none where the prior has no
    density: then the outer ones, if the old ones are inside.
    """
    width = (old[1] - old[0]) / size
    least, most = _LIMITS[axis]
    low = max(old[0] + (kept[0] - MARGIN) * width, least)
    high = min(old[0] + (kept[1] + 1 + MARGIN) * width, most)
    ends = np.array([low, high])
    reached = np.isfinite(prior.logpdf(np.exp(ends) if axis == "log_nu" else ends))
    return (
        low if low > old[0] or reached[0] else min(old[0], outer[0]),
        high if high < old[1] or reached[1] else max(old[1], outer[1]),
    )


def _nodes(
    target: Target,
    ends: Ends,
    grid: Grid,
    start: Nodes | None,
    others: AlongGrid | None,
) -> Nodes:
    """The nodes of a grid between ends, roughly, by Newton's method from those of an
    earlier one, with concentrations and scales at their means.
    """
    axes = [
        low + (high - low) / size * (np.arange(size, dtype=float) + 0.5)
        for (low, high), size in zip(ends, grid, strict=True)
    ]
    places = [part.ravel() for part in np.meshgrid(*axes, indexing="ij")]
    usual = target.effects.log_a
    named = dict(zip(target.axes, places, strict=True))
    start_at = np.tile(usual, (len(places[0]), 1))
    log_a = start_at if others is None else others.means(usual, named)
    best = target.start(named, log_a)
    if start is not None:
        best = replace(best, **start.between(*places))
    exponents = usual_exponents(target, best)
    exponents[:, ThinStrata.numbers(target)] = 0.0
    best, bends, roots = target.modes(best, exponents, ROUGH)
    height, _ = heights(target, best, bends, roots)
    height = np.where(np.isnan(height), -np.inf, height)
    return Nodes(best, axes, exponents, bends, roots, height)


def _sharpened(target: Target, nodes: Nodes) -> Nodes:
    """The nodes with exponents of their own, and intensities near their means instead
    of where the density is largest together with that of the rates.
    """
    skews = target.skews(nodes.best, nodes.bends) / 3
    most = np.full(skews.shape, _EXPONENTS[1])
    # The tail of an intensity falls with this power, and must not be the heavier one.
    most[:, : nodes.bends.intensities.shape[1]] = np.minimum(
        _EXPONENTS[1], target.shapes(nodes.best)
    )
    spreads = np.sqrt(1 / (nodes.roots**2).sum(axis=2))
    most[:, nodes.bends.intensities.shape[1] :] = np.minimum(_EXPONENTS[1], _INSIDE / spreads)
    sizes = np.clip(np.abs(skews), _EXPONENTS[0], most)
    exponents = np.where(skews < 0, -sizes, sizes)
    exponents[:, ThinStrata.numbers(target)] = 0.0
    best, bends, roots = target.modes(nodes.best, exponents, NEAR)
    height, thin = heights(target, best, bends, roots)
    half, pulls = np.linalg.inv(roots), np.zeros_like(best.logs)
    pulls[:, : bends.intensities.shape[1]] = target.pulls(best, half.transpose(0, 2, 1) @ half)
    best = replace(best, logs=best.logs + step_of(bends, roots, pulls))
    bends = target.bends(best)
    return Nodes(best, nodes.axes, exponents, bends, roots_of(bends), height, thin)
