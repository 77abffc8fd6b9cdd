"""The Markov chain over what areas share, given the counts of all of them.

Its state are the standardised effects of the profile, the scales of all effects, the
size and power of the departures, and the effects of each area; the departures
themselves are integrated out. Scales are moved twice, with the effects and with the
standardised effects held, so that neither many nor few counts keep them in place (Yu &
Meng 2011, Journal of Computational and Graphical Statistics 20).
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import exp, log
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.priors import Prior
from taciturn.many.shared_profile.kernels import (
    add_effects,
    find_modes,
    log_probability,
    step_areas,
    step_profile,
)
from taciturn.many.shared_profile.layout import Layout
from taciturn.many.shared_profile.slices import step_along_line, step_on_ellipse

__all__ = ["Chain"]

_ROUNDS: Final = 2  # of areas and their scales in a sweep, as these move most slowly
_STEPS: Final = 2  # of areas in each
_SELDOM: Final = 3  # sweeps between moves of a scale that change the profile
_WIDTH: Final = 0.5  # of the first intervals
_REFITTED: Final = 10  # sweeps between new modes of areas while warming up
_LARGEST_SHAPE: Final = 30.0  # logarithm of a shape, of either sign
_HUGE: Final = 30.0  # logarithm of a parameter

Floats = npt.NDArray[np.float64]


class Chain:
    """State of the chain, and how it moves."""

    def __init__(
        self, counts: Floats, layout: Layout, priors: Mapping[str, Prior], rng: np.random.Generator
    ) -> None:
        self.counts, self.layout, self.priors, self.rng = counts, layout, priors, rng
        self.parameters = dict.fromkeys(priors, 0.5) | {"nu": 5.0}
        self.parameters["power"] = priors["power"].quantile(0.5)
        size = 1 + len(layout.variable_of)
        self.effects = np.zeros((len(counts), size))
        self.effects[:, 0] = np.log(counts.sum(axis=1) / layout.cells)
        self.modes = self.effects.copy()
        self.roots = np.zeros((len(counts), size, size))
        self.shared = np.zeros(max(where.stop for where in layout.effects.values()))
        # By cell, as loops over the areas of a cell are many.
        self.of_cells = np.ascontiguousarray(counts.T)
        self.sums, self.means = np.empty_like(self.of_cells), np.empty_like(self.of_cells)
        self.known, self.hints = _hints(counts, layout)
        self.widths = dict.fromkeys(priors, _WIDTH)
        self.level = 0.0
        self.warming = True
        self.sweeps = 0

    @property
    def profile(self) -> Floats:
        """Logarithms of the shares of cells, up to a constant."""
        return self.layout.profile(self.shared, self.parameters)

    def log_shapes(
        self, profile: Floats, *, nu: float | None = None, power: float | None = None
    ) -> Floats:
        """Of the gamma factors: ``log ν + β x``."""
        size = self.parameters["nu"] if nu is None else nu
        by = self.parameters["power"] if power is None else power
        return np.clip(log(size) + by * profile, -_LARGEST_SHAPE, _LARGEST_SHAPE)

    def sweep(self) -> None:
        """Move everything once."""
        refit = self.warming and (self.sweeps < _REFITTED or self.sweeps % _REFITTED == 0)
        for number in range(_ROUNDS):
            self._move_areas(refit=refit and number == 0)
            self._move_tilts()
            self._move_departures()
        self._move_profile()
        self._move_between()
        self.sweeps += 1

    def end_warm_up(self) -> None:
        """Keep from now on what moves are made with."""
        self._move_areas(refit=True)
        self.warming = False

    def _move_areas(self, *, refit: bool) -> None:
        profile, scales = self.profile, self.layout.tilts(self.parameters)
        shared = (profile, self.log_shapes(profile), self.layout.levels, scales)
        if refit:
            self.modes[:] = self.effects
            find_modes(self.counts, *shared, self.modes, self.roots)
            self.level = float(profile.mean())
        # Where the profile has moved as a whole, intensities have moved the other way.
        modes = self.modes.copy()
        modes[:, 0] += self.level - profile.mean()
        step_areas(self.counts, *shared, self.effects, modes, self.roots, _STEPS, self.rng)
        self._add_effects()

    def _add_effects(self) -> None:
        scales, levels = self.layout.tilts(self.parameters), self.layout.levels
        add_effects(self.effects, scales, levels, self.sums, self.means)

    def _log_probability(self, profile: Floats, shapes: Floats) -> float:
        return float(log_probability(self.of_cells, self.sums, self.means, profile, shapes))

    def _move_tilts(self) -> None:
        """Move the scale of the areas' effects of each variable, with the effects held,
        and then with them following it as the data of each area let them.
        """
        profile = self.profile
        shapes = self.log_shapes(profile)
        for variable in self.layout.tilted:
            name, where = f"tilt_{variable}", self.layout.of_variable[variable]
            standard, known = self.effects[:, 1:][:, where], self.known[:, where]
            self._move_scale(name, standard, None)
            before = self.parameters[name]
            middle, spread = _given_data(before, known, self.hints[:, where])
            rest = (before * standard - middle) / spread

            def likelihood(
                y: float,
                standard: Floats = standard,
                known: Floats = known,
                rest: Floats = rest,
                where: slice = where,
                name: str = name,
            ) -> float:
                self.parameters[name] = exp(y)
                middle, spread = _given_data(exp(y), known, self.hints[:, where])
                standard[:] = (middle + spread * rest) / exp(y)
                self._add_effects()
                jacobian = -0.5 * float(np.log1p(exp(2 * y) * known).sum())
                prior = -0.5 * float((standard**2).sum())
                return self._log_probability(profile, shapes) + prior + jacobian

            self._move_line(name, likelihood)
            likelihood(log(self.parameters[name]))

    def _move_departures(self) -> None:
        """Move their size; then their power, with the size that keeps them as they are
        in cells of average size.
        """
        profile = self.profile
        self._move_line(
            "nu", lambda y: self._log_probability(profile, self.log_shapes(profile, nu=exp(y)))
        )
        middle = float(np.average(profile, weights=self.counts.sum(axis=0)))
        power, log_nu = self.parameters["power"], log(self.parameters["nu"])

        def height(y: float) -> float:
            moved = log_nu - (y - power) * middle
            prior = self._log_prior("nu", moved) + self._density("power", y)
            if prior == -np.inf:
                return prior
            return prior + self._log_probability(
                profile, self.log_shapes(profile, nu=exp(moved), power=y)
            )

        self.parameters["power"] = self._step("power", power, height)
        self.parameters["nu"] = exp(log_nu - (self.parameters["power"] - power) * middle)

    def _move_profile(self) -> None:
        """Move main effects and interactions, what is in one instead of the other, and
        then their scales.
        """
        profile, layout = self.profile, self.layout
        for name, where in layout.effects.items():
            cells, starts = layout.cells_of[name]
            step_profile(
                self.of_cells, self.sums, self.means, profile, cells, starts, self.parameters[name],
                log(self.parameters["nu"]), self.parameters["power"], self.shared[where], self.rng,
            )  # fmt: skip
        self._exchange()
        self._level()
        often = self.sweeps % _SELDOM == 0
        for name, where in layout.effects.items():
            likelihood = partial(self._given_scale, name) if often else None
            self._move_scale(name, self.shared[where], likelihood)

    def _given_scale(self, name: str, scale: float) -> float:
        before, self.parameters[name] = self.parameters[name], scale
        profile = self.profile
        self.parameters[name] = before
        return self._log_probability(profile, self.log_shapes(profile))

    def _exchange(self) -> None:
        """Move what the interactions of a category have in common to its main effect,
        or back, which leaves the profile as it is.
        """
        if "interactions" not in self.parameters:
            return
        scale = self.parameters["interactions"]
        interactions = self.shared[self.layout.effects["interactions"]]
        for variable, where in self.layout.of_variable.items():
            members, of_main = self.layout.members[:, where], self.parameters[f"main_{variable}"]
            precision = of_main**-2 + members.sum(axis=0) * scale**-2
            middle = members.T @ interactions / scale - self.shared[where] / of_main
            move = middle / precision + self.rng.standard_normal(len(middle)) / np.sqrt(precision)
            self.shared[where] += move / of_main
            interactions -= members @ move / scale

    def _level(self) -> None:
        """Move the level of each variable's main effects, and with it the size of the
        departures and the intensities, which leaves all means and shapes as they are.
        """
        power = self.parameters["power"]
        for variable, where in self.layout.of_variable.items():
            scale, main = self.parameters[f"main_{variable}"], self.shared[where]
            log_nu = log(self.parameters["nu"])

            def height(
                level: float, main: Floats = main, scale: float = scale, log_nu: float = log_nu
            ) -> float:
                density = self._log_prior("nu", log_nu - power * level)
                return density - 0.5 * float(((main + level / scale) ** 2).sum())

            level = step_along_line(0.0, height, scale, self.rng)
            main += level / scale
            self.effects[:, 0] -= level
            self.parameters["nu"] = exp(log_nu - power * level)
        self._add_effects()

    def _move_between(self) -> None:
        """Move what the areas' effects of each category have in common to the profile,
        or back: the means of cells stay as they are, only shapes change.
        """
        if not self.layout.tilted:
            return
        tilts = self.effects[:, 1:]
        main = self.shared[: tilts.shape[1]]
        scales = self.layout.tilts(self.parameters)
        mains = self.layout.mains(self.parameters)
        precision = mains**-2 + len(tilts) * scales**-2
        middle = (tilts.sum(axis=0) / scales - main / mains) / precision
        spread = 1 / np.sqrt(precision)
        profile, members = self.profile, self.layout.members
        sums = self.sums + profile[:, None]
        means, nothing = np.exp(sums), np.zeros_like(profile)

        def log_ratio(standard: Floats) -> float:
            shapes = self.log_shapes(profile + members @ (middle + spread * standard))
            return float(log_probability(self.of_cells, sums, means, nothing, shapes))

        standard = step_on_ellipse(-middle / spread, log_ratio, self.rng)
        move = middle + spread * standard
        main += move / mains
        tilts -= move / scales
        self._add_effects()

    def _move_scale(
        self, name: str, standard: Floats, likelihood: Callable[[float], float] | None
    ) -> None:
        """Move a scale with its effects held, which changes the standardised effects in
        place, and then with these held, where the likelihood is given.
        """
        square = float((standard**2).sum()) * self.parameters[name] ** 2
        number, before = standard.size, self.parameters[name]
        self._move_line(name, lambda y: -number * y - 0.5 * square * exp(-2 * y))
        standard *= before / self.parameters[name]
        if likelihood is not None:
            self._move_line(name, lambda y: likelihood(exp(y)))

    def _move_line(self, name: str, log_likelihood: Callable[[float], float]) -> None:
        """Move the logarithm of a parameter."""

        def height(y: float) -> float:
            prior = self._log_prior(name, y)
            return prior + log_likelihood(y) if prior > -np.inf else prior

        self.parameters[name] = exp(self._step(name, log(self.parameters[name]), height))

    def _log_prior(self, name: str, y: float) -> float:
        """Log density of the logarithm of a parameter."""
        return self._density(name, exp(y)) + y if -_HUGE < y < _HUGE else -np.inf

    def _density(self, name: str, value: float) -> float:
        return self.priors[name].log_at(value)

    def _step(self, name: str, value: float, height: Callable[[float], float]) -> float:
        new = step_along_line(value, height, self.widths[name], self.rng)
        if self.warming:  # intervals of about three times a usual step
            self.widths[name] = max(0.95 * self.widths[name] + 0.15 * abs(new - value), 1e-3)
        return new


def _hints(counts: Floats, layout: Layout) -> tuple[Floats, Floats]:
    """How many of each area's sample have each category, and roughly how far that is
    from what all areas have, as a logarithm.
    """
    known = counts @ layout.members
    expected = counts.sum(axis=1)[:, None] * known.sum(axis=0) / counts.sum()
    return known, np.log((known + 0.5) / (expected + 0.5))


def _given_data(scale: float, known: Floats, hints: Floats) -> tuple[Floats, Floats]:
    """Means and standard deviations of effects with this scale, given the hints as if
    they were normal with the information `known`.
    """
    reliability = scale**2 * known / (1 + scale**2 * known)
    return reliability * hints, scale / np.sqrt(1 + scale**2 * known)
