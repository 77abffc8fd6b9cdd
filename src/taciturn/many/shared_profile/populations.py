"""Compiled loops that draw populations of areas, given everything that areas share."""

import math

import numpy as np
from numba import njit

from taciturn.estimators.sampling.kernels import split_sparse
from taciturn.many.shared_profile.kernels import (
    HIGHEST,
    outliers_of,
    sum_effects,
    usual_and_outlier,
)
from taciturn.many.shared_profile.moves import (
    known_of_area,
    step_far,
    step_level,
    step_near,
)

__all__ = ["draw_populations"]

_SETTLING = 5  # draws of the shared parameters before those that are kept


@njit(cache=True, nogil=True)
def draw_populations(counts, rests, shared, levels, start, steps, rngs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out`, (areas, draws, cells), with populations: the sample of an area and
    `rests` more individuals, given each draw of what areas share.

    `shared` are the profile, the logarithms of shapes, the scales of effects and the
    outliers at each draw; `start` are the modes of the areas' effects, and the roots of
    the information. Between draws there are two numbers of `steps`, near and far ones,
    and one of the intensity alone.
    `rngs` has a generator for each area, and may have more.
    """
    modes, roots = start
    for a in range(out.shape[0]):
        own = (modes[a], roots[a])
        _draw_population(counts[a], rests[a], shared, levels, own, steps, rngs[a], out[a])


@njit(cache=True, nogil=True)
def _draw_population(counts, rest, shared, levels, start, steps, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with a population of one area: the sample and `rest` more
    individuals.
    """
    profiles, log_shapes, scales, outliers = shared
    mode, root = start
    draws, cells = profiles.shape
    effects = mode.copy()
    drawn, left = np.empty((1, cells)), np.full(1, rest)
    for r in range(-_SETTLING, draws):
        d = max(r, 0)
        own = (profiles[d], log_shapes[d], levels, scales[d], outliers[d])
        given = known_of_area(counts, own, np.exp(profiles[d]), np.exp(log_shapes[d]))
        step_near(given, effects, mode, root, steps[0], rng)
        step_far(given, effects, steps[1], rng)
        step_level(given, effects, rng)
        if r < 0:
            continue
        exceptional = outliers_of(effects[0], outliers[d])
        for i in range(cells):
            log_mean = min(profiles[d, i] + sum_effects(effects, scales[d], levels, i), HIGHEST)
            log_shape = log_shapes[d, i]
            usual, other = usual_and_outlier(counts[i], log_mean, log_shape, exceptional)
            if rng.random() * (1.0 + math.exp(usual - other)) < 1.0:
                log_mean, log_shape = exceptional[2], 0.0
            mean, shape = math.exp(log_mean), math.exp(log_shape)
            factor = rng.standard_gamma(shape + counts[i]) / (shape + mean)
            drawn[0, i] = max(mean * factor, 1e-300)
        split_sparse(left, drawn, rng, out[r : r + 1])
        for i in range(cells):
            out[r, i] += np.int64(counts[i])
