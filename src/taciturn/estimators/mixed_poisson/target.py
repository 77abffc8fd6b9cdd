"""The posterior density of the parameters of the mixed Poisson model, and how it bends.

Each margin is proportional to rates, one for each category: their sum says nothing of
the table, and is given a gamma distribution, so that without departures the rates are
independent gamma variates. The prior of a margin is a Dirichlet distribution with the
same concentration for all categories, which is fixed or has a prior of its own. An
interaction has normal coordinates on an orthonormal basis, whose scale has a prior.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from taciturn.estimators.formula import Terms
from taciturn.estimators.mixed_poisson.blocks import in_blocks
from taciturn.estimators.mixed_poisson.density import LEAST, bend, climb, sum_likelihood
from taciturn.estimators.mixed_poisson.effects import Effects, log_totals
from taciturn.estimators.mixed_poisson.kernels import add_to_groups, sum_levels
from taciturn.estimators.mixed_poisson.mixing import log_not_all, mixing_with
from taciturn.estimators.mixed_poisson.points import Bends, Points
from taciturn.estimators.mixed_poisson.shares import Strata
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.parallel import in_threads

__all__ = ["OPTIONAL", "Target"]

OPTIONAL: Final = ("share", "inflation")
"""Parameters of departures that need not have a prior."""

_BLOCK: Final = 2**18  # numbers in an array at once, or what takes as long:
_SUM: Final = 8  # a cell of a density, and
_BENDS: Final = 256  # of its derivatives, a few times
_STEP: Final = 0.1  # along a logarithm, of third derivatives
_HIGHEST: Final = 700.0  # logarithm whose exponential is a number
_STEPS: Final = 30  # of Newton's method, at most

Floats = npt.NDArray[np.float64]


class Target:
    """The posterior of a sample with factors of which some share is inverse Gaussian,
    in cells of which some may be such that nobody can be there.

    Parameters
    ----------
    problem : Problem
        The sample and what is known of its population.
    terms : Terms
        Those with something to estimate; other variables are uniform.
    priors : mapping of str to Prior
        Of all parameters.
    pure : float
        The share, if it has no prior.

    Attributes
    ----------
    strata : Strata
        Those that have a sample.
    effects : Effects
        What cells are made of.
    axes : tuple of str
        The parameters of departures that have a prior, as named in `Points`.
    people, occupied : array, shape (strata,)
        Sampled people of each stratum, and cells with any.
    """

    def __init__(
        self, problem: Problem, terms: Terms, priors: Mapping[str, Prior], pure: float
    ) -> None:
        self.strata = Strata(problem, sampled=True)
        self._counts = problem.learned_from[self.strata.seen]
        self.priors, self.pure = priors, pure
        self.axes = ("log_nu", "power", *(name for name in OPTIONAL if name in priors))
        self.effects = effects = Effects(problem, terms, priors, self.strata.seen)
        self._sizes = np.array([own.stop - own.start for own in effects.margins], dtype=np.int64)
        self._size, columns = effects.levels, effects.columns
        self._levels = _Groups(columns, self._size)
        first, second = np.triu_indices(len(terms), k=1)
        self._pairs = _Groups(columns[:, first] * self._size + columns[:, second], self._size**2)
        strata, places = self.strata, [group.own for group in effects.groups]
        self.people, self.occupied = strata.sums(np.stack([self._counts, self._counts > 0]))
        of_strata = strata.of_cell, strata.log_sizes, strata.log_cells, strata.log_rates
        self._sample = self._counts, columns, *of_strata
        self._model = (
            np.empty((self._size, 0)) if effects.basis is None else effects.basis,
            np.array([(own.start, own.stop) for own in places], dtype=np.int64).reshape(-1, 2),
            np.array([group.normal for group in effects.groups], dtype=bool),
        )
        by_stratum = self.strata.of_cell[:, None] * self._size + columns
        self._by_stratum = _Groups(by_stratum, self._size * len(self.strata.kept))

    def start(self, departures: Mapping[str, Floats], log_a: Floats) -> Points:
        """Points with rates and intensities as the sample has them and no interactions,
        with departures by name and such strengths of the priors, (points, groups).
        """
        every = {"share": np.full(len(log_a), self.pure), "inflation": np.zeros(len(log_a))}
        a, strata = np.exp(log_a[:, : len(self._sizes)]), len(self.strata.kept)
        of_rates = self._levels.sums(self._counts[None])[0, : self.effects.categories]
        logs = np.zeros((len(log_a), strata + self.effects.number))
        logs[:, :strata] = self.strata.log_start
        logs[:, strata:][:, : len(of_rates)] = np.log(of_rates + np.repeat(a, self._sizes, axis=1))
        sums = self._counts.sum() + self._sizes * a
        return Points(logs=logs, sums=sums, log_a=log_a, **(every | dict(departures)))

    def log_margins(self, points: Points) -> list[Floats]:
        """Logarithms of the margins."""
        return self.effects.log_margins(points.logs[:, len(self.strata.kept) :])

    def coordinates(self, points: Points) -> Floats:
        """Coordinates of all interactions."""
        return points.logs[:, len(self.strata.kept) + self.effects.categories :]

    def named(self, points: Points) -> dict[str, Floats]:
        """Margins and effects of interactions, by name."""
        return self.effects.named(points.logs[:, len(self.strata.kept) :])

    def log_density(self, points: Points) -> Floats:
        """Logarithm of the density of log ν, the power, the share and the inflation if
        they have priors, the logarithms of intensities and rates, coordinates, and the
        levels of groups, up to a constant.
        """
        out = np.concatenate(self._in_blocks(self._log_likelihood, points, arrays=_SUM))
        out += self.priors["nu"].logpdf(np.exp(points.log_nu)) + points.log_nu
        out += self.priors["power"].logpdf(points.power)
        for name in self.axes[2:]:
            out += self.priors[name].logpdf(getattr(points, name))
        if "inflation" in self.axes:
            out -= log_not_all(points.inflation, self.strata.cells)
        every = points.logs[:, len(self.strata.kept) :]
        for number, (group, log_a) in enumerate(
            zip(self.effects.groups, points.log_a.T, strict=True)
        ):
            own, size, a = every[:, group.own], group.size, np.exp(log_a)
            if group.normal:
                out += 0.5 * (size * log_a - a * (own**2).sum(axis=1))
                continue
            shape = points.sums[:, number]
            total = np.minimum(log_totals(own), _HIGHEST)
            out += a * own.sum(axis=1) + gammaln(size * a) - size * gammaln(a)
            out += (shape - size * a) * total - np.exp(total) - gammaln(shape)
        return out

    def bends(self, points: Points) -> Bends:
        """How the density bends."""

        def work(some: Points) -> Bends:
            found = self._empty_bends(len(some.log_nu))
            bend(*self._given(some), tuple(vars(found).values()))
            return found

        return Bends.joined(self._in_blocks(work, points, arrays=_BENDS))

    def modes(self, points: Points, exponents: Floats, near: float) -> tuple[Points, Bends, Floats]:
        """Where powers of rates and intensities have the largest density, by Newton's
        method from some points; and, less than a last step from there, how it bends and
        roots of the information about the effects.
        """

        def work(some: Points, exponents: Floats) -> tuple[Points, Bends, Floats]:
            found, size = self._empty_bends(len(some.log_nu)), self.effects.number
            roots = np.empty((len(some.log_nu), size, size))
            given = self._given(some)
            climb(*given, exponents, near, _STEPS, tuple(vars(found).values()), roots)
            return replace(some, logs=given[2][0], sums=given[2][1]), found, roots

        parts = self._in_blocks(work, points, exponents, arrays=_BENDS)
        moved, found, roots = zip(*parts, strict=True)
        return Points.joined(moved), Bends.joined(found), np.concatenate(roots)

    def skews(self, points: Points, bends: Bends) -> Floats:
        """Ratios of third to second derivatives of the logarithm of the density by each
        intensity and each rate, roughly: 1 for a gamma variate, 0 if symmetric, as
        coordinates are taken to be; shape (points, strata + effects).
        """
        thirds = np.concatenate(self._in_blocks(self._thirds, points, arrays=5))
        diagonal = np.diagonal(bends.effects, axis1=1, axis2=2)
        seconds = np.concatenate([bends.intensities, np.maximum(diagonal, LEAST)], axis=1)
        return np.asarray(thirds / seconds)

    def shapes(self, points: Points, *, occupied: bool = False) -> Floats:
        """Sums of the shapes of the cells of each stratum, or of those with people,
        shape (points, strata).
        """
        _, _, log_shape = self._cells(points)
        shapes = np.exp(log_shape)
        return self.strata.sums(np.where(self._counts > 0, shapes, 0.0) if occupied else shapes)

    def pulls(self, points: Points, inverse: Floats) -> Floats:
        """By how much the slopes by the intensities change where effects are integrated
        out: from a Laplace approximation, with the inverse of the information about
        them; shape (points, strata).
        """
        arrays = 5 + self._size**2 // len(self._counts)
        return np.concatenate(self._in_blocks(self._pulls, points, inverse, arrays=arrays))

    def _log_likelihood(self, points: Points) -> Floats:
        out = np.empty(len(points.log_nu))
        sum_likelihood(*self._given(points), out)
        return out

    def _pulls(self, points: Points, inverse: Floats) -> Floats:
        rows, of_cell, sums = len(points.log_nu), self.strata.of_cell, self.strata.sums
        if self.effects.basis is not None:
            inverse = self.effects.basis @ inverse @ self.effects.basis.T
        log_shares, log_mean, log_shape = self._cells(points)
        mixing = mixing_with(points.share, points.inflation)
        up, down = (
            mixing.slopes(self._counts, log_mean + step, log_shape, points.power)
            for step in (_STEP, -_STEP)
        )
        shares = np.exp(log_shares)
        within = shares / sums(shares)[:, of_cell]
        changes = (up[4] - down[4] + sums(up[1] - down[1])[:, of_cell] * within) / (2 * _STEP)
        expected = self._over_strata(within)
        along = np.einsum("rsj,rjk->rsk", expected, inverse)
        own = np.einsum("rsj,rsj->rs", along, expected)[:, of_cell]
        own += 2 * self._pairs.each(inverse.reshape(rows, -1))
        own += self._levels.each(np.diagonal(inverse, axis1=1, axis2=2))
        own -= 2 * self._by_stratum.each(along.reshape(rows, -1))
        return -0.5 * sums(changes * own)

    def _thirds(self, points: Points) -> Floats:
        """Third derivatives with the sign changed, by each intensity and each rate; of
        the latter without what it takes from other cells. None by coordinates.
        """
        _, log_mean, log_shape = self._cells(points)
        mixing = mixing_with(points.share, points.inflation)
        moved, found = _STEP * points.power[:, None], []
        for sign in (1, -1):
            mean, shape = log_mean + sign * _STEP, log_shape + sign * moved
            by_mean = mixing.slopes(self._counts, mean, log_shape, points.power)[2]
            along = mixing.slopes(self._counts, mean, shape, points.power)[4]
            found.append((self.strata.sums(by_mean), self._levels.sums(along)))
        (of_means, of_levels), (less_means, less_levels) = found
        strata, categories = len(self.strata.kept), self.effects.categories
        thirds = np.zeros_like(points.logs)
        thirds[:, :strata] = (of_means - less_means) / (2 * _STEP)
        of_rates = (of_levels - less_levels)[:, :categories] / (2 * _STEP)
        of_rates += np.exp(points.logs[:, strata : strata + categories])
        thirds[:, strata : strata + categories] = of_rates
        return thirds

    def _over_strata(self, values: Floats) -> Floats:
        """Sums over the cells of each category in each stratum."""
        return self._by_stratum.sums(values).reshape(len(values), len(self.strata.kept), self._size)

    def _given(self, points: Points) -> tuple[Any, ...]:
        """What compiled loops need to know, with logs and sums that they may change."""
        logs, sums = (np.array(part, order="C") for part in (points.logs, points.sums))
        strength = np.exp(points.log_a)
        return self._sample, self._model, (logs, sums, strength, *points.departures)

    def _empty_bends(self, number: int) -> Bends:
        """To be filled."""
        strata, size = len(self.strata.kept), self.effects.number
        shapes = [(strata + size,), (size, size), (strata, size), (strata,), self._sizes.shape]
        return Bends(*(np.empty((number, *shape)) for shape in shapes))

    def _levels_of(self, points: Points) -> Floats:
        """The levels of the terms, (points, levels)."""
        effects, basis = points.logs[:, len(self.strata.kept) :], self.effects.basis
        return np.ascontiguousarray(effects) if basis is None else effects @ basis.T

    def _cells(self, points: Points) -> tuple[Floats, Floats, Floats]:
        """Logarithms of the share, the mean and the shape of each cell."""
        effects = np.empty((len(points.log_nu), len(self._counts)))
        sum_levels(self._levels_of(points), self.effects.columns, effects)
        shares, intensity = self.strata.log_shares(effects), points.logs[:, : len(self.strata.kept)]
        return shares, *self.strata.means_and_shapes(shares, intensity, points.log_nu, points.power)

    def _in_blocks[R](
        self, work: Callable[..., R], points: Points, *more: Floats, arrays: int
    ) -> list[R]:
        """Results for points, and what more there is of each, in blocks of as many as
        are worked on at once, if each needs so many arrays of cells.
        """
        number, each = len(points.log_nu), arrays * len(self._counts)

        def at(rows: slice) -> R:
            return work(points.at(rows), *(part[rows] for part in more))

        return in_threads(at, list(in_blocks(number, each, most=_BLOCK)), numbers=number * each)


class _Groups:
    """Groups of cells, of which each cell is in equally many."""

    def __init__(self, columns: npt.NDArray[np.int64], size: int) -> None:
        self._columns, self._size = np.ascontiguousarray(columns), size

    def sums(self, values: Floats) -> Floats:
        """Sums over the cells of each group, from shape (rows, cells)."""
        found = np.zeros((len(values), self._size))
        add_to_groups(values, self._columns, found)
        return found

    def each(self, values: Floats) -> Floats:
        """What the groups of each cell add up to, from shape (rows, groups)."""
        found = np.empty((len(values), len(self._columns)))
        sum_levels(values, self._columns, found)
        return found
