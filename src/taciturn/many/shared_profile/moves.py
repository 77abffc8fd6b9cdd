"""Compiled steps of the effects of areas that leave their distribution as it is, given
everything that areas share: near, around a mode; far, as the prior has it; and along
the intensity alone.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.mixed_poisson.kernels import solve_back
from taciturn.estimators.special import log_rising_over_power
from taciturn.many.shared_profile.kernels import (
    HIGHEST,
    LARGEST_MEAN,
    outliers_of,
    sum_effects,
)

__all__ = ["known_of_area", "step_areas", "step_far", "step_level", "step_near"]

_WIDTH = 2.0  # of the first interval of a logarithm
_MOST_OUT = 80  # of these


@njit(cache=True, nogil=True)
def step_areas(counts, shared, effects, modes, roots, steps, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move the effects of all areas by steps that leave their distribution as it is."""
    shares, shapes = np.exp(shared[0]), np.exp(shared[1])
    for a in range(counts.shape[0]):
        given = known_of_area(counts[a], shared, shares, shapes)
        step_near(given, effects[a], modes[a], roots[a], steps, rng)


@njit(cache=True, nogil=True)
def known_of_area(counts, shared, shares, shapes):  # type: ignore[no-untyped-def] # pragma: no cover
    """What the density of an area's effects is given: its counts, what areas share, of
    which `shares` and `shapes` are exponentials, constants, and room for factors.
    """
    constants = _constants(counts, shared[1], shapes)
    return counts, shared, shares, shapes, constants, np.empty(shared[3].size)


@njit(cache=True, nogil=True)
def step_near(given, effects, mode, root, steps, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Elliptical slice sampling relative to the normal distribution at a mode
    (Nishihara, Murray & Adams 2014, JMLR 15): proposals lie on an ellipse through the
    current point, drawn closer until one is accepted.
    """
    size = effects.size
    now, other, tried, placed = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for j in range(size):
        now[j] = 0.0
        for k in range(j, size):
            now[j] += root[k, j] * (effects[k] - mode[k])
    height = _log_density(given, effects)
    height += 0.5 * np.dot(now, now)
    for _ in range(steps):
        for j in range(size):
            other[j] = rng.standard_normal()
        least = height + math.log(1.0 - rng.random())
        high = rng.random() * 2.0 * math.pi
        angle, low = high, high - 2.0 * math.pi
        while True:
            tried[:] = now * math.cos(angle) + other * math.sin(angle)
            placed[:] = tried
            solve_back(root, placed)
            placed += mode
            height = _log_density(given, placed)
            height += 0.5 * np.dot(tried, tried)
            if height > least or high - low < 1e-12:
                break
            angle, low, high = _closer(angle, low, high, rng)
        now[:], effects[:] = tried, placed


@njit(cache=True, nogil=True)
def _closer(angle, low, high, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """An angle nearer to where the ellipse began, at 0, and the ends it is between."""
    if angle < 0.0:
        low = angle
    else:
        high = angle
    return low + (high - low) * rng.random(), low, high


@njit(cache=True, nogil=True)
def step_far(given, effects, steps, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same relative to the prior of the effects, with the mean of all cells
    together as it is: from one mode to another, such as from a cell that is large as an
    outlier to one that is so by its categories.
    """
    _, shared, shares, _, _, factors = given
    size = effects.size
    other, tried = np.empty(size), np.empty(size)
    height = _log_density(given, effects) + 0.5 * np.dot(effects[1:], effects[1:])
    for _ in range(steps):
        mean = effects[0] + _log_total(shared, shares, effects, factors)
        for j in range(1, size):
            other[j] = rng.standard_normal()
        least = height + math.log(1.0 - rng.random())
        high = rng.random() * 2.0 * math.pi
        angle, low = high, high - 2.0 * math.pi
        while True:
            tried[1:] = effects[1:] * math.cos(angle) + other[1:] * math.sin(angle)
            tried[0] = mean - _log_total(shared, shares, tried, factors)
            height = _log_density(given, tried) + 0.5 * np.dot(tried[1:], tried[1:])
            if height > least or high - low < 1e-12:
                break
            angle, low, high = _closer(angle, low, high, rng)
        effects[:] = tried


@njit(cache=True, nogil=True)
def step_level(given, effects, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move an area's intensity alone, by a slice sampler that steps out (Neal 2003): of
    few people it may have a tail that is long beside the mode.
    """
    before = effects[0]
    least = _log_density(given, effects) + math.log(1.0 - rng.random())
    low = before - _WIDTH * rng.random()
    high = low + _WIDTH
    lower = int(_MOST_OUT * rng.random())
    for _ in range(lower):
        effects[0] = low
        if _log_density(given, effects) < least:
            break
        low -= _WIDTH
    for _ in range(_MOST_OUT - 1 - lower):
        effects[0] = high
        if _log_density(given, effects) < least:
            break
        high += _WIDTH
    while True:
        effects[0] = low + (high - low) * rng.random()
        if _log_density(given, effects) > least or high - low < 1e-12:
            break
        if effects[0] < before:
            low = effects[0]
        else:
            high = effects[0]


@njit(cache=True, nogil=True)
def _log_total(shared, shares, effects, factors):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of what an area's shares add up to, tilted by its effects."""
    levels, scales = shared[2], shared[3]
    for j in range(scales.size):
        factors[j] = math.exp(scales[j] * effects[1 + j])
    total = 0.0
    for i in range(shares.size):
        share = shares[i]
        for v in range(levels.shape[0]):
            share *= factors[levels[v, i]]
        total += share
    return math.log(total)


@njit(cache=True, nogil=True)
def _constants(counts, log_shapes, shapes):  # type: ignore[no-untyped-def] # pragma: no cover
    """What the logarithms of the probabilities of positive counts have that does not
    depend on means: as a usual cell's, and as an outlier's.
    """
    out = np.zeros((2, counts.size))
    for i in range(counts.size):
        if counts[i] > 0.0:
            out[0, i] = log_rising_over_power(counts[i], shapes[i], log_shapes[i])
            out[1, i] = log_rising_over_power(counts[i], 1.0, 0.0)
    return out


@njit(cache=True, nogil=True)
def _log_density(given, effects):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the effects of an area. Means are products of shares and factors of effects,
    so that a cell takes no exponential.
    """
    counts, shared, shares, shapes, constants, factors = given
    profile, _, levels, scales, outliers = shared
    log_one, log_none, log_mean, log_empty = outliers_of(effects[0], outliers)
    for j in range(scales.size):
        factors[j] = math.exp(scales[j] * effects[1 + j])
    intensity, total, product = math.exp(effects[0]), 0.0, 1.0
    for i in range(profile.size):
        mean = intensity * shares[i]
        for v in range(levels.shape[0]):
            mean *= factors[levels[v, i]]
        excess = math.log1p(min(mean, LARGEST_MEAN) / shapes[i])
        usual, other = log_none - shapes[i] * excess, log_one + log_empty
        if counts[i] > 0.0:
            own = min(profile[i] + sum_effects(effects, scales, levels, i), HIGHEST)
            usual += constants[0, i] + counts[i] * (own - excess)
            other += constants[1, i] + counts[i] * (log_mean + log_empty)
        total += max(usual, other)
        product *= 1.0 + math.exp(-abs(usual - other))
        if product > 1e200:
            total += math.log(product)
            product = 1.0
    total += math.log(product)
    for j in range(1, effects.size):
        total -= 0.5 * effects[j] * effects[j]
    return total
