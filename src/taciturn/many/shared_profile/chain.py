"""The Markov chain over what areas share, given the counts of all of them.

Its state are the standardised effects of the profile and those on the size of
departures, the scales of all effects, the size and power of the departures, the effects
of each area, and which of its cells are outliers. The departures themselves are
integrated out, and so are the outliers where the effects of an area, their probability
or their size move. Scales are moved twice, with the effects held, or their differences
where nothing else knows their level, and with them
following as the data let them, so that neither many nor few counts keep them in place
(Yu & Meng 2011, Journal of Computational and Graphical Statistics 20).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp, log
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.priors import Prior
from taciturn.many.shared_profile.cells import LARGEST_SHAPE, log_probability, step_effects
from taciturn.many.shared_profile.hints import Hints, all_hints
from taciturn.many.shared_profile.kernels import (
    add_effects,
    draw_outliers,
    fill_usual,
    find_modes,
    log_with_outliers,
)
from taciturn.many.shared_profile.layout import Layout
from taciturn.many.shared_profile.moves import step_areas
from taciturn.many.shared_profile.slices import step_along_line, step_on_ellipse

__all__ = ["Chain"]

_ROUNDS: Final = 4  # of areas and their scales in a sweep, as these move most slowly
_STEPS: Final = 2  # of areas in each
_WIDTH: Final = 0.5  # of the first intervals
_REFITTED: Final = 10  # sweeps between new modes of areas while warming up
_HUGE: Final = 30.0  # logarithm of a parameter

Floats = npt.NDArray[np.float64]


class Chain:
    """State of the chain, and how it moves."""

    def __init__(
        self, counts: Floats, layout: Layout, priors: Mapping[str, Prior], rng: np.random.Generator
    ) -> None:
        self.counts, self.layout, self.priors, self.rng = counts, layout, priors, rng
        self.parameters = dict.fromkeys(priors, 0.5)
        self.parameters |= {"nu": 5.0, "outliers": 0.1 / layout.cells, "outlier_size": 1.0}
        self.parameters["power"] = priors["power"].quantile(0.5)
        size = 1 + len(layout.variable_of)
        self.effects = np.zeros((len(counts), size))
        self.effects[:, 0] = np.log(counts.sum(axis=1) / layout.cells)
        self.modes = self.effects.copy()
        self.roots = np.zeros((len(counts), size, size))
        self.spreads = np.zeros(len(layout.variable_of))
        self.shared = np.zeros(max(where.stop for where in layout.effects.values()))
        # By cell, as loops over the areas of a cell are many.
        self.of_cells = np.ascontiguousarray(counts.T)
        self.outliers = np.zeros(self.of_cells.shape, dtype=bool)
        self.usual, self.inverse = np.empty_like(counts), np.empty_like(counts)
        self.sums, self.means = np.empty_like(self.of_cells), np.empty_like(self.of_cells)
        self.hints = all_hints(counts, layout)
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
        """Of the gamma factors: ``log ν + β x_i + Σ s_{v,v(i)}``."""
        log_shapes = self._free_log_shapes(profile, nu=nu, power=power)
        return np.minimum(np.maximum(log_shapes, -LARGEST_SHAPE), LARGEST_SHAPE)

    def _free_log_shapes(
        self, profile: Floats, *, nu: float | None = None, power: float | None = None
    ) -> Floats:
        size = self.parameters["nu"] if nu is None else nu
        by = self.parameters["power"] if power is None else power
        own = self.layout.members @ (self.layout.spreads(self.parameters) * self.spreads)
        return log(size) + by * profile + own

    def sweep(self) -> None:
        """Move everything once."""
        refit = self.warming and (self.sweeps < _REFITTED or self.sweeps % _REFITTED == 0)
        for number in range(_ROUNDS):
            self._move_areas(refit=refit and number == 0)
            self._move_tilts()
        self._move_departures()
        self._move_profile()
        self._move_spreads()
        self._move_between()
        self.sweeps += 1

    def end_warm_up(self) -> None:
        """Keep from now on what moves are made with."""
        self._move_areas(refit=True)
        self.warming = False

    def _move_areas(self, *, refit: bool) -> None:
        profile, scales = self.profile, self.layout.tilts(self.parameters)
        outliers = self.layout.outliers(self.parameters)
        shared = (profile, self.log_shapes(profile), self.layout.levels, scales, outliers)
        if refit:
            self.modes[:] = self.effects
            find_modes(self.counts, shared, self.modes, self.roots)
            self.level = float(profile.mean())
        # Where the profile has moved as a whole, intensities have moved the other way.
        modes = self.modes.copy()
        modes[:, 0] += self.level - profile.mean()
        step_areas(self.counts, shared, self.effects, modes, self.roots, _STEPS, self.rng)
        self._move_outliers(shared)
        shared = (*shared[:4], self.layout.outliers(self.parameters))
        draw_outliers(self.counts, shared, self.effects, self.rng, self.outliers)
        # Without people and with means of 0 they have no part in what is usual.
        self.of_cells = np.where(self.outliers, 0.0, self.counts.T)
        self._add_effects()

    def _move_outliers(self, shared: tuple[npt.NDArray[Any], ...]) -> None:
        """Move their probability and their size, whichever cells they are: given these,
        a probability would hardly move where there are few or none.
        """
        fill_usual(self.counts, shared, self.effects, self.usual, self.inverse)

        def likelihood(name: str) -> Callable[[float], float]:
            def given(y: float) -> float:
                moved = self.layout.outliers(self.parameters | {name: exp(y)})
                return float(
                    log_with_outliers(self.counts, self.usual, self.inverse, self.effects, moved)
                )

            return given

        chance = likelihood("outliers")
        self._move_line("outliers", lambda y: chance(y) if y < 0 else -np.inf)
        self._move_line("outlier_size", likelihood("outlier_size"))

    def _add_effects(self) -> None:
        scales, levels = self.layout.tilts(self.parameters), self.layout.levels
        add_effects(self.effects, scales, levels, self.sums, self.means)
        self.means[self.outliers] = 0.0

    def _log_probability(self, profile: Floats, shapes: Floats) -> float:
        return float(log_probability(self.of_cells, self.sums, self.means, profile, shapes))

    def _move_tilts(self) -> None:
        """Move the scale of the areas' effects of each variable."""
        profile = self.profile
        shapes = self.log_shapes(profile)

        def likelihood() -> float:
            self._add_effects()
            return self._log_probability(profile, shapes)

        heard = self._heard(profile, shapes)
        for variable in self.layout.tilted:
            name, where = f"tilt_{variable}", self.layout.of_variable[variable]
            hints = self.hints[name]
            hints = replace(hints, known=hints.known * heard[:, where])
            own = self.effects[:, 1:][:, where]
            self._move_scale(name, own)
            self._move_scale_and_effects(name, own, likelihood, hints)

    def _heard(self, profile: Floats, log_shapes: Floats) -> Floats:
        """The part of what counts would say of the effects of each area, (areas,
        effects), that is left by the departures of cells.
        """
        shares = np.exp(profile - profile.max())
        means = np.outer(self.counts.sum(axis=1), shares / shares.sum())
        left: Floats = (means / (1 + means * np.exp(-log_shapes))) @ self.layout.members
        return left / np.maximum(means @ self.layout.members, np.finfo(float).tiny)

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
            prior = self._log_prior("nu", moved) + self.priors["power"].log_at(y)
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
        profile, layout, power = self.profile, self.layout, self.parameters["power"]
        logs = (profile, self._free_log_shapes(profile))
        for name, where in layout.effects.items():
            scale = self.parameters[name]
            self._move_effects(name, self.shared[where], logs, (scale, power * scale))
        self._exchange()
        self._level()
        for name, where in layout.effects.items():
            own = self.shared[where]
            if name == "interactions":  # those of main effects move in `_level`
                self._move_scale(name, own)
            self._move_scale_and_effects(name, own, self._likelihood, self.hints[name])

    def _move_spreads(self) -> None:
        """Move by how much more the cells of each category depart, what this is on
        average instead of in `nu`, and then its scale.
        """
        profile = self.profile
        for variable in self.layout.tilted:
            name, where = f"spread_{variable}", self.layout.of_variable[variable]
            own, scale = self.spreads[where], self.parameters[name]
            logs = (profile, self._free_log_shapes(profile))
            self._move_effects(f"main_{variable}", own, logs, (0.0, scale))
            self._shift(own, scale, {"nu": -1.0})
            self._move_scale_and_level(name, own, {"nu": -1.0})
            self._move_scale_and_effects(name, own, self._likelihood, self.hints[name])

    def _move_effects(
        self, name: str, effects: Floats, logs: tuple[Floats, Floats], slopes: tuple[float, float]
    ) -> None:
        cells, starts = self.layout.cells_of[name]
        step_effects(
            self.of_cells, self.sums, self.means, *logs, cells, starts, slopes, effects, self.rng
        )

    def _shift(self, standard: Floats, scale: float, following: Mapping[str, float]) -> float:
        """Move the level of effects, and with it the logarithms of parameters, so many
        times as much, such that nothing else changes.
        """
        before = {name: log(self.parameters[name]) for name in following}

        def height(level: float) -> float:
            density = -0.5 * float(((standard + level / scale) ** 2).sum())
            for name, times in following.items():
                density += self._log_prior(name, before[name] + times * level)
            return density

        level = step_along_line(0.0, height, scale, self.rng)
        standard += level / scale
        for name, times in following.items():
            self.parameters[name] = exp(before[name] + times * level)
        return level

    def _likelihood(self) -> float:
        profile = self.profile
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
        """Move the level of each variable's main effects, by itself and as their scale
        moves, and with it the size of the departures, that of outliers and the
        intensities, which leaves all means and shapes as they are.
        """
        following = {"nu": -self.parameters["power"], "outlier_size": 1.0}
        for variable, where in self.layout.of_variable.items():
            scale = self.parameters[f"main_{variable}"]
            own = self.shared[where]
            self.effects[:, 0] -= self._shift(own, scale, following)
            self.effects[:, 0] -= self._move_scale_and_level(f"main_{variable}", own, following)
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
        means, nothing = np.where(self.outliers, 0.0, np.exp(sums)), np.zeros_like(profile)

        def log_ratio(standard: Floats) -> float:
            shapes = self.log_shapes(profile + members @ (middle + spread * standard))
            return float(log_probability(self.of_cells, sums, means, nothing, shapes))

        standard = step_on_ellipse(-middle / spread, log_ratio, self.rng)
        move = middle + spread * standard
        main += move / mains
        tilts -= move / scales
        self._add_effects()

    def _move_scale(self, name: str, standard: Floats) -> None:
        """Move a scale with its effects held, which changes the standardised effects in
        place.
        """
        square = float((standard**2).sum()) * self.parameters[name] ** 2
        number, before = standard.size, self.parameters[name]
        self._move_line(name, lambda y: -number * y - 0.5 * square * exp(-2 * y))
        standard *= before / self.parameters[name]

    def _move_scale_and_level(
        self, name: str, standard: Floats, following: Mapping[str, float]
    ) -> float:
        """Move a scale with the differences of its effects held: their level moves with
        it, as nothing else knows it, and the logarithms of parameters follow as in
        `_shift`. Returns by how much the level moves.
        """
        before, middle = self.parameters[name], float(standard.mean())
        square = float(((standard - middle) ** 2).sum()) * before**2
        logs = {other: log(self.parameters[other]) for other in following}

        def height(y: float) -> float:
            density = -(len(standard) - 1) * y - 0.5 * square * exp(-2 * y)
            for other, times in following.items():
                moved = logs[other] + times * middle * (exp(y) - before)
                density += self._log_prior(other, moved)
            return density

        self._move_line(name, height)
        standard[:] = middle + (standard - middle) * before / self.parameters[name]
        level = middle * (self.parameters[name] - before)
        for other, times in following.items():
            self.parameters[other] = exp(logs[other] + times * level)
        return level

    def _move_scale_and_effects(
        self, name: str, standard: Floats, likelihood: Callable[[], float], hints: Hints
    ) -> None:
        """Move a scale with its effects following it as the data let them."""
        before = self.parameters[name]
        middle, spread = hints.given(before)
        rest = (before * standard - middle) / spread

        def follow(y: float) -> float:
            self.parameters[name] = exp(y)
            middle, spread = hints.given(exp(y))
            standard[:] = (middle + spread * rest) / exp(y)
            jacobian = -0.5 * float(np.log1p(exp(2 * y) * hints.known).sum())
            return likelihood() - 0.5 * float((standard**2).sum()) + jacobian

        self._move_line(name, follow)
        follow(log(self.parameters[name]))

    def _move_line(self, name: str, log_likelihood: Callable[[float], float]) -> None:
        """Move the logarithm of a parameter."""

        def height(y: float) -> float:
            prior = self._log_prior(name, y)
            return prior + log_likelihood(y) if prior > -np.inf else prior

        self.parameters[name] = exp(self._step(name, log(self.parameters[name]), height))

    def _log_prior(self, name: str, y: float) -> float:
        """Log density of the logarithm of a parameter."""
        return self.priors[name].log_at(exp(y)) + y if -_HUGE < y < _HUGE else -np.inf

    def _step(self, name: str, value: float, height: Callable[[float], float]) -> float:
        new = step_along_line(value, height, self.widths[name], self.rng)
        if self.warming:  # intervals of about three times a usual step
            self.widths[name] = max(0.95 * self.widths[name] + 0.15 * abs(new - value), 1e-3)
        return new
