"""How even each margin and how large each interaction is: the posterior of the
concentrations that have a prior and of the scales, one after the other, and what
effects do as they change, from modes near one point.

Each is represented by its level, the probability with which its prior exceeds it: near
0 for an even margin, near 1 where there is no interaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from taciturn.estimators.mixed_poisson.effects import Group, log_shares, log_totals
from taciturn.estimators.mixed_poisson.modes import NEAR, log_scale, usual_exponents
from taciturn.estimators.mixed_poisson.points import Points
from taciturn.estimators.mixed_poisson.target import Target

__all__ = ["MARGIN", "NEGLIGIBLE", "AlongNu", "Hyperparameters"]

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
class AlongNu:
    """The same at one ν, or at several: what interactions do not say of the cells their
    factors have to, so that scales follow ν.

    Attributes
    ----------
    log_nu : array, shape (places,)
    each : sequence of Hyperparameters
        Near each place.
    """

    log_nu: Floats
    each: Sequence[Hyperparameters]

    @classmethod
    def near(cls, target: Target, points: Points, height: Floats, before: "Self | None") -> Self:
        """Near the highest of some points, or the highest near each place of those
        `before`.
        """
        if before is None:
            top = points.at(height.argmax(keepdims=True))
            return cls(top.log_nu, [Hyperparameters.near(target, top, None)])
        place, each = before._nearest(points.log_nu), []
        for number, old in enumerate(before.each):
            own = np.where(place == number, height, -np.inf)
            each.append(Hyperparameters.near(target, points.at(own.argmax(keepdims=True)), old))
        return cls(before.log_nu, each)

    @classmethod
    def spread(cls, target: Target, points: Points, height: Floats) -> Self:
        """At every ν that points which are not negligible have."""
        log_nu = np.unique(points.log_nu[height > height.max() - NEGLIGIBLE])
        each = []
        for one in log_nu:
            own = np.where(points.log_nu == one, height, -np.inf)
            each.append(Hyperparameters.near(target, points.at(own.argmax(keepdims=True)), None))
        return cls.near(target, points, height, cls(log_nu, each))

    def means(self, log_a: Floats, log_nu: Floats) -> Floats:
        """Logarithms at the mean levels, in their places among all, at each ν."""
        return np.array([own.means(log_a) for own in self.each])[self._nearest(log_nu)]

    def propose(self, near: Points, rng: np.random.Generator) -> tuple[Points, Floats, Floats]:
        """Move points by what is found at the place nearest to each, in their order."""
        place = self._nearest(near.log_nu)
        order = np.argsort(place, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(place, minlength=len(self.each)))[:-1])
        moved = [
            own.propose(near.at(part), rng) for own, part in zip(self.each, parts, strict=True)
        ]
        points, log_wider, density = zip(*moved, strict=True)
        back = np.argsort(order, kind="stable")
        together = Points.joined(points).at(back)
        return together, np.concatenate(log_wider)[back], np.concatenate(density)[back]

    def _nearest(self, log_nu: Floats) -> npt.NDArray[np.int64]:
        """The number of the place that is nearest to each ν."""
        return np.abs(log_nu[:, None] - self.log_nu).argmin(axis=1)


def _middles(low: float, high: float) -> Floats:
    """Of equal parts."""
    return low + (high - low) / _NODES * (np.arange(_NODES, dtype=float) + 0.5)
