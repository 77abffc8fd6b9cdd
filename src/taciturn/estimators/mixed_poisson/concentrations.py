"""How even each margin is: the posterior of the concentrations that have a prior, one
after the other, and what margins do as they change, from modes near one point.

A concentration is represented by its level, the probability with which its prior
exceeds it: near 0 for an even margin. A priori levels are uniform between 0 and 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from taciturn.estimators.mixed_poisson.modes import EXPONENT, log_scale, modes
from taciturn.estimators.mixed_poisson.target import Points, Target
from taciturn.estimators.priors import Prior

__all__ = ["Concentrations"]

_NEAR: Final = 1e-6  # a step that ends the search: rates of even margins hardly vary
_NODES: Final = 16  # along the level of each
_NEGLIGIBLE: Final = 9.0  # a grid ends where the height is exp(-9) of the top,
_MARGIN: Final = 1.5  # and so many nodes further
_LEAST: Final = 0.2  # a sum, as a share of the shape of its distribution
_MOST: Final = 1e9  # concentration, with which a margin is even
_FLAT: Final = 0.1  # share of proposals that follow the grid and not the heights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Along:
    """One concentration, the others as they are.

    Attributes
    ----------
    variable : int
        The number of its margin.
    prior : Prior
        Of the concentration.
    nodes : array, shape (nodes,)
        Levels, equally far apart.
    height : array, shape (nodes,)
        Logarithm of the posterior density.
    shifts : array, shape (nodes, strata + categories)
        How far intensities and rates of largest density are from those of the point.
    """

    variable: int
    prior: Prior
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
        kept = self.nodes[self.height > self.height.max() - _NEGLIGIBLE]
        room = _MARGIN * self.width
        return max(kept[0] - room, 0.0), min(kept[-1] + room, 1.0)

    def between(self, values: Floats, level: Floats) -> Floats:
        """What `values` at the nodes are elsewhere."""
        place = np.clip((level - self.nodes[0]) / self.width, 0, len(self.nodes) - 1)
        left = np.minimum(place.astype(int), len(self.nodes) - 2)
        part = (place - left)[:, None]
        return np.asarray((1 - part) * values[left] + part * values[left + 1])


@dataclass(frozen=True)
class Concentrations:
    """The posterior of all concentrations that have a prior, as if they were
    independent.

    Attributes
    ----------
    point : Points
        The one near which they are.
    margins : list of slice
        Where the rates of each variable are among intensities and rates.
    counted : array, shape (strata + categories,)
        The information about each rate, less what is from its prior.
    each : list of _Along
    """

    point: Points
    margins: Sequence[slice]
    counted: Floats
    each: Sequence[_Along]

    @classmethod
    def near(
        cls, target: Target, point: Points, before: "Concentrations | None"
    ) -> "Concentrations":
        """From modes near a point, on narrower grids than those `before`."""
        fitted = [(v, prior) for v, prior in enumerate(target.concentrations) if prior is not None]
        ends = [(0.0, 1.0)] * len(fitted) if before is None else [old.ends for old in before.each]
        grids = [_middles(*own) for own in ends]
        rows = point.at(np.zeros(1 + _NODES * len(fitted), dtype=np.int64))
        for number, ((v, prior), grid) in enumerate(zip(fitted, grids, strict=True)):
            rows.log_a[1 + number * _NODES :][:_NODES, v] = _log_a(prior, grid)
        best, bends, roots = modes(target, rows, np.full(rows.logs.shape, EXPONENT), _NEAR)
        height = target.log_density(best) - log_scale(bends, roots)
        along = []
        for number, ((v, prior), grid) in enumerate(zip(fitted, grids, strict=True)):
            own = slice(1 + number * _NODES, 1 + (number + 1) * _NODES)
            along.append(_Along(v, prior, grid, height[own], best.logs[own] - best.logs[0]))
        strata = len(target.strata.kept)
        margins = [slice(strata + own.start, strata + own.stop) for own in target.margins]
        counted = np.zeros(best.logs.shape[1])
        counted[strata:] = (roots[0] ** 2).sum(axis=1)
        for margin, log_a in zip(margins, best.log_a[0], strict=True):
            counted[margin] = np.maximum(counted[margin] - np.exp(log_a), 0)
        return cls(best.at(np.zeros(1, dtype=np.int64)), margins, counted, along)

    def means(self, log_a: Floats) -> Floats:
        """Logarithms at the mean levels, in their places among all."""
        found = log_a.copy()
        for own in self.each:
            found[own.variable] = _log_a(own.prior, own.nodes @ own.probabilities)
        return found

    def propose(self, near: Points, rng: np.random.Generator) -> tuple[Points, Floats, Floats]:
        """Move points along the concentrations; logarithms of how much wider the rates
        spread there, shape (points, strata + categories); and of the density of the
        levels.
        """
        number, density = len(near.logs), np.zeros(len(near.logs))
        logs, sums, log_a = near.logs.copy(), near.sums.copy(), near.log_a.copy()
        log_wider = np.zeros_like(logs)
        shifts = []
        for own in self.each:
            chances, margin = own.chances, self.margins[own.variable]
            node = rng.choice(len(chances), size=number, p=chances)
            drawn = own.nodes[node] + own.width * (rng.random(number) - 0.5)
            density += np.log(chances[node] / own.width)
            log_a[:, own.variable] = _log_a(own.prior, drawn)
            shift = own.between(own.shifts, drawn)
            shifts.append(shift[:, margin].copy())
            shift[:, margin] = 0
            logs += shift
        for own, shift in zip(self.each, shifts, strict=True):
            v, margin = own.variable, self.margins[own.variable]
            more = np.exp(log_a[:, v]) - np.exp(near.log_a[:, v])
            own_counts = self.counted[margin] + np.exp(near.log_a[:, v, None])
            ratio = 1 / (1 + more[:, None] / own_counts)
            log_wider[:, margin] = 0.5 * np.log(ratio)
            # What else is off the point is less so where margins are more alike.
            off = log_softmax(logs[:, margin], axis=1) - log_softmax(self.point.logs[:, margin])
            logs[:, margin] += shift - off * (1 - np.minimum(ratio, 1))
            sums[:, v] += more * own_counts.shape[1]
        for v, margin in enumerate(self.margins):  # sums stay where their distributions are
            below = near.sums[:, v] - np.exp(logsumexp(near.logs[:, margin], axis=1))
            total = np.maximum(sums[:, v] - below, _LEAST * sums[:, v])
            logs[:, margin] += (np.log(total) - logsumexp(logs[:, margin], axis=1))[:, None]
        return replace(near, logs=logs, sums=sums, log_a=log_a), log_wider, density


def _log_a(prior: Prior, level: Floats) -> Floats:
    """Logarithm of the concentration of a level."""
    return np.asarray(np.log(np.minimum(prior.exceeded(level), _MOST)))


def _middles(low: float, high: float) -> Floats:
    """Of equal parts."""
    return low + (high - low) / _NODES * (np.arange(_NODES, dtype=float) + 0.5)
