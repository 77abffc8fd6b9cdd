"""How even each margin and how large each interaction is: the posterior of the
concentrations that have a prior and of the scales, one after the other, and what
effects do as they change, from modes near one point.

Each is represented by its level, the probability with which its prior exceeds it: near
0 for an even margin, near 1 where there is no interaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from taciturn.estimators.mixed_poisson.effects import Group, log_shares, log_totals
from taciturn.estimators.mixed_poisson.modes import NEAR, log_scale, usual_exponents
from taciturn.estimators.mixed_poisson.points import Points
from taciturn.estimators.mixed_poisson.target import Target

__all__ = ["MARGIN", "NEGLIGIBLE", "AlongGrid", "Hyperparameters"]

NEGLIGIBLE: Final = 9.0
"""A grid ends where the height is exp(-9) of the top,"""
MARGIN: Final = 1.5
"""and so many nodes further."""

_NODES: Final = 16  # along the level of each
_LEAST: Final = 0.2  # a sum, as a share of the shape of its distribution
_FLAT: Final = 0.1  # share of proposals that follow the grid and not the heights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Along:
    """One parameter, the others as they are.

    Attributes
    ----------
    number : int
        Of its group.
    group : Group
        The effects that it is about.
    nodes : array, shape (nodes,)
        Levels, equally far apart.
    height : array, shape (nodes,)
        Logarithm of the posterior density.
    shifts : array, shape (nodes, strata + effects)
        How far intensities and effects of largest density are from those of the point.
    """

    number: int
    group: Group
    nodes: Floats
    height: Floats
    shifts: Floats

    @property
    def width(self) -> float:
        """Between nodes."""
        return float(self.nodes[1] - self.nodes[0])

    @property
    def probabilities(self) -> Floats:
        """That the level is near each node."""
        own = np.exp(self.height - self.height.max())
        return np.asarray(own / own.sum())

    @property
    def chances(self) -> Floats:
        """That a proposal is near each node."""
        return (1 - _FLAT) * self.probabilities + _FLAT / len(self.nodes)

    @property
    def ends(self) -> tuple[float, float]:
        """Of a grid over what is not negligible."""
        kept = self.nodes[self.height > self.height.max() - NEGLIGIBLE]
        room = MARGIN * self.width
        return max(kept[0] - room, 0.0), min(kept[-1] + room, 1.0)

    def between(self, values: Floats, level: Floats) -> Floats:
        """What `values` at the nodes are elsewhere."""
        place = np.clip((level - self.nodes[0]) / self.width, 0, len(self.nodes) - 1)
        left = np.minimum(place.astype(int), len(self.nodes) - 2)
        part = (place - left)[:, None]
        return np.asarray((1 - part) * values[left] + part * values[left + 1])


@dataclass(frozen=True)
class Hyperparameters:
    """The posterior of all concentrations and scales that have a prior, as if they were
    independent.

    Attributes
    ----------
    point : Points
        The one near which they are.
    strata : int
        Number of intensities, before the effects.
    margins : list of slice
        Where the rates of each variable are among all effects.
    counted : array, shape (effects,)
        The information about each effect, less what is from its prior.
    each : list of _Along
    """

    point: Points
    strata: int
    margins: Sequence[slice]
    counted: Floats
    each: Sequence[_Along]

    @classmethod
    def near(cls, target: Target, point: Points, before: "Self | None") -> Self:
        """From modes near a point, on narrower grids than those `before`."""
        groups = target.effects.groups
        fitted = [(v, group) for v, group in enumerate(groups) if group.prior is not None]
        ends = [(0.0, 1.0)] * len(fitted) if before is None else [old.ends for old in before.each]
        grids = [_middles(*own) for own in ends]
        rows = point.at(np.zeros(1 + _NODES * len(fitted), dtype=np.int64))
        for number, ((v, group), grid) in enumerate(zip(fitted, grids, strict=True)):
            rows.log_a[1 + number * _NODES :][:_NODES, v] = group.log_a(grid)
        best, bends, roots = target.modes(rows, usual_exponents(target, rows), NEAR)
        height = target.log_density(best) - log_scale(bends, roots)
        along = []
        for number, ((v, group), grid) in enumerate(zip(fitted, grids, strict=True)):
            own = slice(1 + number * _NODES, 1 + (number + 1) * _NODES)
            along.append(_Along(v, group, grid, height[own], best.logs[own] - best.logs[0]))
        counted = (roots[0] ** 2).sum(axis=1)
        for group, log_a in zip(groups, best.log_a[0], strict=True):
            counted[group.own] = np.maximum(counted[group.own] - np.exp(log_a), 0)
        first = best.at(np.zeros(1, dtype=np.int64))
        return cls(first, len(target.strata.kept), target.effects.margins, counted, along)

    def means(self, log_a: Floats) -> Floats:
        """Logarithms at the mean levels, in their places among all."""
        found = log_a.copy()
        for own in self.each:
            found[own.number] = own.group.log_a(own.nodes @ own.probabilities)
        return found

    def propose(self, near: Points, rng: np.random.Generator) -> tuple[Points, Floats, Floats]:
        """Move points along the parameters; logarithms of how much wider the effects
        spread there, shape (points, strata + effects); and of the density of the
        levels.
        """
        number, density = len(near.logs), np.zeros(len(near.logs))
        logs, sums, log_a = near.logs.copy(), near.sums.copy(), near.log_a.copy()
        effects, middle = logs[:, self.strata :], self.point.logs[:, self.strata :]
        log_wider, shifts = np.zeros_like(logs), []
        for own in self.each:
            chances, place = own.chances, own.group.own
            node = rng.choice(len(chances), size=number, p=chances)
            drawn = own.nodes[node] + own.width * (rng.random(number) - 0.5)
            density += np.log(chances[node] / own.width)
            log_a[:, own.number] = own.group.log_a(drawn)
            shift = own.between(own.shifts, drawn)
            shifts.append(shift[:, self.strata :][:, place].copy())
            shift[:, self.strata :][:, place] = 0
            logs += shift
        for own, shift in zip(self.each, shifts, strict=True):
            v, place = own.number, own.group.own
            more = np.exp(log_a[:, v]) - np.exp(near.log_a[:, v])
            information = self.counted[place] + np.exp(near.log_a[:, v, None])
            ratio = 1 / (1 + more[:, None] / information)
            log_wider[:, self.strata :][:, place] = 0.5 * np.log(ratio)
            # What else is off the point is less so where a prior says more.
            if own.group.normal:
                off = effects[:, place] - middle[:, place]
            else:
                off = log_shares(effects[:, place]) - log_shares(middle[:, place])
                sums[:, v] += more * own.group.size
            effects[:, place] += shift - off * (1 - np.minimum(ratio, 1))
        for v, place in enumerate(self.margins):  # sums stay where their distributions are
            total = np.exp(log_totals(near.logs[:, self.strata :][:, place]))
            total = np.maximum(sums[:, v] - (near.sums[:, v] - total), _LEAST * sums[:, v])
            effects[:, place] += (np.log(total) - log_totals(effects[:, place]))[:, None]
        return replace(near, logs=logs, sums=sums, log_a=log_a), log_wider, density


@dataclass(frozen=True)
class AlongGrid:
    """The same at one place of the grid of departures, or at several: what effects do
    not say of the cells their factors have to, so that concentrations and scales follow
    ν and how many cells nobody can be in.

    Attributes
    ----------
    axes : tuple of str
        Along which there are places, as named in `Points`.
    places : array, shape (places, axes)
    apart : array, shape (axes,)
        By how much places differ.
    each : sequence of Hyperparameters
        Near each place.
    """

    axes: tuple[str, ...]
    places: Floats
    apart: Floats
    each: Sequence[Hyperparameters]

    @classmethod
    def top(cls, target: Target, points: Points, height: Floats) -> Self:
        """Near the highest of some points."""
        highest = points.at(height.argmax(keepdims=True))
        return cls((), np.empty((1, 0)), np.empty(0), [Hyperparameters.near(target, highest, None)])

    @classmethod
    def spread(cls, target: Target, points: Points, height: Floats, axes: tuple[str, ...]) -> Self:
        """Wherever points which are not negligible are along some axes of a grid."""
        along = _along(axes, vars(points))
        places, place = np.unique(along, axis=0, return_inverse=True)
        used = np.unique(place[height > height.max() - NEGLIGIBLE])
        apart = np.array([np.diff(np.unique(values)).min(initial=np.inf) for values in along.T])
        each = []
        for number in used:
            own = np.where(place == number, height, -np.inf)
            each.append(Hyperparameters.near(target, points.at(own.argmax(keepdims=True)), None))
        return cls(axes, places[used], apart, each).near(target, points, height)

    def near(self, target: Target, points: Points, height: Floats) -> Self:
        """Near the highest of some points near each place, if there are any."""
        place, each = self._nearest(_along(self.axes, vars(points))), []
        for number, old in enumerate(self.each):
            own = np.where(place == number, height, -np.inf)
            highest = points.at(own.argmax(keepdims=True))
            some = np.isfinite(own).any()
            each.append(Hyperparameters.near(target, highest, old) if some else old)
        return replace(self, each=each)

    def means(self, log_a: Floats, departures: Mapping[str, Floats]) -> Floats:
        """Logarithms at the mean levels, in their places among all, where departures by
        name are.
        """
        place = self._nearest(_along(self.axes, departures))
        return np.array([own.means(log_a) for own in self.each])[place]

    def propose(self, near: Points, rng: np.random.Generator) -> tuple[Points, Floats, Floats]:
        """Move points by what is found at the place nearest to each, in their order."""
        place = self._nearest(_along(self.axes, vars(near)))
        order = np.argsort(place, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(place, minlength=len(self.each)))[:-1])
        moved = [
            own.propose(near.at(part), rng) for own, part in zip(self.each, parts, strict=True)
        ]
        points, log_wider, density = zip(*moved, strict=True)
        back = np.argsort(order, kind="stable")
        together = Points.joined(points).at(back)
        return together, np.concatenate(log_wider)[back], np.concatenate(density)[back]

    def _nearest(self, along: Floats) -> npt.NDArray[np.int64]:
        """The number of the place that is nearest to each, (number, axes)."""
        off = np.abs(along[:, None] - self.places) / self.apart
        return np.asarray(off.sum(axis=2).argmin(axis=1))


def _along(axes: tuple[str, ...], departures: Mapping[str, Floats]) -> Floats:
    """Where departures by name are along some axes, shape (number, axes)."""
    along = np.empty((len(departures["log_nu"]), len(axes)))
    for number, axis in enumerate(axes):
        along[:, number] = departures[axis]
    return along


def _middles(low: float, high: float) -> Floats:
    """Of equal parts."""
    return low + (high - low) / _NODES * (np.arange(_NODES, dtype=float) + 0.5)
