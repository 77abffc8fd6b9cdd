"""Compiled loops over areas and cells: the effects of an area given everything that
areas share, their modes, and which cells are outliers.

A count is negative binomial: Poisson, with a gamma factor that is integrated out. An
area has the logarithm of its intensity and standard normal effects, one of each
category; their scales, the profile and the shapes of the factors are shared.
Functions of single areas take `shared`: the logarithms of the profile and of shapes,
the levels of cells, the scales of effects, and what `Layout.outliers` returns.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.mixed_poisson.kernels import one_gamma_mixed, solve_back, solve_forward

__all__ = [
    "HIGHEST",
    "LARGEST_MEAN",
    "add_effects",
    "draw_outliers",
    "fill_usual",
    "find_modes",
    "log_with_outliers",
    "outliers_of",
    "sum_effects",
    "usual_and_outlier",
]

_STEPS = 25  # of Newton's method, at most
_NEAR = 1e-4  # a step that ends it
_FURTHEST = 2.0  # step of an effect
HIGHEST = 60.0  # logarithm of a mean
LARGEST_MEAN = math.exp(HIGHEST)
_LEAST = 1e-3  # information about an intensity
_UNLIKELY = 200.0  # logarithm of one over a probability
_MANY = 1e100  # product of which the logarithm is taken before it has more factors


@njit(cache=True, nogil=True)
def add_effects(effects, scales, levels, sums, means):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithms of the means of the cells of each area, but for the profile, and these
    means, both (cells, areas); means are products of what effects multiply them by.
    """
    areas, variables = effects.shape[0], levels.shape[0]
    logs = np.empty((scales.size, areas))
    for j in range(scales.size):
        for a in range(areas):
            logs[j, a] = scales[j] * effects[a, 1 + j]
    factors, intensities = np.exp(logs), np.exp(effects[:, 0])
    for i in range(levels.shape[1]):
        for a in range(areas):
            total, mean = effects[a, 0], intensities[a]
            for v in range(variables):
                total += logs[levels[v, i], a]
                mean *= factors[levels[v, i], a]
            sums[i, a] = min(total, HIGHEST)
            means[i, a] = min(mean, LARGEST_MEAN)


@njit(cache=True, nogil=True)
def sum_effects(effects, scales, levels, i):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the mean of a cell of one area, but for the profile."""
    total = effects[0]
    for v in range(levels.shape[0]):
        j = levels[v, i]
        total += scales[j] * effects[1 + j]
    return total


@njit(cache=True, nogil=True)
def outliers_of(intensity, outliers):  # type: ignore[no-untyped-def] # pragma: no cover
    """Outliers of one area: logarithms of the probabilities of one and of none, of its
    mean, and of the probability that it is empty.
    """
    log_mean = min(intensity + outliers[2], HIGHEST)
    return outliers[0], outliers[1], log_mean, -math.log1p(math.exp(log_mean))


@njit(cache=True, nogil=True)
def usual_and_outlier(f, log_mean, log_shape, outliers):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithms of the probability of a count together with its being none or one."""
    usual = outliers[1] + one_gamma_mixed(f, log_mean, log_shape)
    return usual, _outlier(f, outliers)


@njit(cache=True, nogil=True)
def _outlier(f, outliers):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the probability of a count together with its being an outlier."""
    other = outliers[3] if f == 0 else one_gamma_mixed(f, outliers[2], 0.0)
    return outliers[0] + other


@njit(cache=True, nogil=True)
def fill_usual(counts, shared, effects, out, inverse):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out` with the logarithm of the probability of each count that is no
    outlier's, (areas, cells), and `inverse` with one over that probability, or 0 where
    it is too small.
    """
    profile, log_shapes, levels, scales, _ = shared
    for a in range(counts.shape[0]):
        for i in range(profile.size):
            f = counts[a, i]
            log_mean = min(profile[i] + sum_effects(effects[a], scales, levels, i), HIGHEST)
            out[a, i] = one_gamma_mixed(f, log_mean, log_shapes[i])
            less = math.lgamma(f + 1.0) - out[a, i]
            inverse[a, i] = math.exp(less) if less < _UNLIKELY else 0.0


@njit(cache=True, nogil=True)
def log_with_outliers(counts, usual, inverse, effects, outliers):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the probability of all counts, whichever cells are outliers, from
    what `fill_usual` finds: relative to that without any.
    """
    total, product = 0.0, 1.0
    one, none = math.exp(outliers[0]), math.exp(outliers[1])
    for a in range(counts.shape[0]):
        own = outliers_of(effects[a, 0], outliers)
        empty, more = math.exp(own[3]), math.exp(own[2] + own[3])
        for i in range(counts.shape[1]):
            if inverse[a, i] > 0.0:
                chance = empty  # of the count as an outlier's, which is geometric
                if counts[a, i] > 0.0:
                    chance *= more if counts[a, i] == 1.0 else more ** counts[a, i]
                product *= none + one * chance * inverse[a, i]
            else:
                odds = _outlier(counts[a, i], own) - own[1] - usual[a, i]
                total += own[1] + max(odds, 0.0)
                product *= 1.0 + math.exp(-abs(odds))
            if product > _MANY or product < 1.0 / _MANY:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


@njit(cache=True, nogil=True)
def draw_outliers(counts, shared, effects, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out`, (cells, areas), with which cells are outliers."""
    profile, log_shapes, levels, scales, outliers = shared
    for a in range(counts.shape[0]):
        own = outliers_of(effects[a, 0], outliers)
        for i in range(profile.size):
            log_mean = min(profile[i] + sum_effects(effects[a], scales, levels, i), HIGHEST)
            usual, other = usual_and_outlier(counts[a, i], log_mean, log_shapes[i], own)
            out[i, a] = rng.random() * (1.0 + math.exp(usual - other)) < 1.0


@njit(cache=True, nogil=True)
def find_modes(counts, shared, effects, roots):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move the effects of each area to where they have the largest density; fill
    `roots` with lower triangular factors of the information there.
    """
    for a in range(counts.shape[0]):
        _find_mode(counts[a], shared, effects[a], roots[a])


@njit(cache=True, nogil=True)
def _find_mode(counts, shared, effects, root):  # type: ignore[no-untyped-def] # pragma: no cover
    slopes = np.empty(effects.size)
    for step in range(_STEPS + 1):
        _inform(counts, shared, effects, slopes, root)
        _factor(root)
        if step == _STEPS:
            return
        solve_forward(root, slopes)
        solve_back(root, slopes)
        longest = np.abs(slopes).max()
        effects += slopes * min(1.0, _FURTHEST / max(longest, _NEAR))
        if longest < _NEAR:
            return


@njit(cache=True, nogil=True)
def _inform(counts, shared, effects, slopes, information):  # type: ignore[no-untyped-def] # pragma: no cover
    """Slopes of the log density of the effects, and the information about them."""
    profile, log_shapes, levels, scales, outliers = shared
    own, variables = outliers_of(effects[0], outliers), levels.shape[0]
    columns, values = np.zeros(variables + 1, np.int64), np.ones(variables + 1)
    slopes[0], slopes[1:] = 0.0, -effects[1:]
    information[:] = 0.0
    information[0, 0] = _LEAST
    for j in range(1, effects.size):
        information[j, j] = 1.0
    for i in range(profile.size):
        log_mean = min(profile[i] + sum_effects(effects, scales, levels, i), HIGHEST)
        usual, other = usual_and_outlier(counts[i], log_mean, log_shapes[i], own)
        chance = 1.0 / (1.0 + math.exp(other - usual))
        slope, bend = _slope_and_bend(counts[i], own[2], 0.0, 1.0 - chance)
        slopes[0] += slope
        information[0, 0] += bend
        slope, bend = _slope_and_bend(counts[i], log_mean, log_shapes[i], chance)
        for v in range(variables):
            columns[v + 1], values[v + 1] = 1 + levels[v, i], scales[levels[v, i]]
        for a in range(variables + 1):
            slopes[columns[a]] += values[a] * slope
            for b in range(variables + 1):
                information[columns[a], columns[b]] += values[a] * values[b] * bend


@njit(cache=True, nogil=True)
def _slope_and_bend(f, log_mean, log_shape, weight):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the log probability of a count along the logarithm of its mean."""
    ratio = math.exp(log_mean - log_shape)
    share = ratio / (1.0 + ratio)
    whole = weight * (math.exp(log_shape) + f)
    return weight * f - whole * share, whole * share * (1.0 - share)


@njit(cache=True, nogil=True)
def _factor(matrix):  # type: ignore[no-untyped-def] # pragma: no cover
    """Replace the lower triangle by its Cholesky factor."""
    for j in range(matrix.shape[0]):
        for k in range(j + 1):
            total = matrix[j, k]
            for m in range(k):
                total -= matrix[j, m] * matrix[k, m]
            matrix[j, k] = math.sqrt(max(total, 1e-12)) if j == k else total / matrix[k, k]
