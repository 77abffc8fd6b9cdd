"""Compiled loops over cells and areas: how likely the counts of all areas are that are
no outliers, and the effects of the profile and of shapes that areas share.
"""

import math

from numba import njit

from taciturn.estimators.mixed_poisson.kernels import one_gamma_mixed

__all__ = ["LARGEST_SHAPE", "log_probability", "step_effects"]

LARGEST_SHAPE = 30.0  # logarithm of a shape, of either sign
_MOST_TOGETHER = 1e6  # shape
_SMALL = 3.0  # count whose logarithm is taken together with those of others
_HIGH = 1e100  # product of which the logarithm is taken before it has more factors
_WIDTH = 1.0  # of the first interval of an effect


@njit(cache=True, nogil=True)
def log_probability(counts, sums, means, profile, log_shapes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the probability of the counts of all areas, up to a constant."""
    total = 0.0
    for i in range(profile.size):
        total += _log_cell(counts[i], sums[i], means[i], profile[i], log_shapes[i])
    return total


@njit(cache=True, nogil=True)
def _log_cell(counts, sums, means, log_share, log_shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the counts of one cell in all areas. Logarithms of many factors, and of those
    of small counts, are taken together where that loses nothing.
    """
    shape, share = math.exp(log_shape), math.exp(log_share - log_shape)
    together = shape < _MOST_TOGETHER
    total, excess, product = 0.0, 0.0, 1.0
    joined, several, three = 1.0, 0, 0
    for a in range(counts.size):
        f, one = counts[a], 1.0 + share * means[a]
        if together and f <= _SMALL:
            product *= one
            if f > 0.0:
                joined *= one
                total += f * (log_share + sums[a])
                if f > 1.0:
                    joined *= one
                    several += 1
                    if f > 2.0:
                        joined *= one
                        three += 1
            if product > _HIGH or joined > _HIGH:
                excess += math.log(product)
                total -= math.log(joined)
                product, joined = 1.0, 1.0
        elif f > 0.0:
            total += one_gamma_mixed(f, log_share + sums[a], log_shape)
        else:
            excess += math.log1p(share * means[a])
    if several:
        total += several * math.log1p(1.0 / shape)
        if three:
            total += three * math.log1p(2.0 / shape)
    return total - math.log(joined) - shape * (excess + math.log(product))


@njit(cache=True, nogil=True)
def step_effects(counts, sums, means, profile, log_shapes, cells, starts, slopes, effects, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move shared effects by slice sampling, each with the others held, and with them
    the profile and the logarithms of shapes, which `slopes` times as much are added to.
    Effect `j` is that of `cells` from ``starts[j]`` to ``starts[j + 1]``.
    """
    for j in range(effects.size):
        own, now = cells[starts[j] : starts[j + 1]], effects[j]
        given = (counts, sums, means, profile, log_shapes, own, slopes, now)
        least = _log_effect(*given, now) + math.log(1.0 - rng.random())
        low = now - _WIDTH * rng.random()
        high = low + _WIDTH
        while _log_effect(*given, low) > least:
            low -= _WIDTH
        while _log_effect(*given, high) > least:
            high += _WIDTH
        while True:
            tried = low + (high - low) * rng.random()
            height = _log_effect(*given, tried)
            if height > least or high - low < 1e-12:
                break
            if tried < now:
                low = tried
            else:
                high = tried
        effects[j] = tried
        for i in own:
            profile[i] += slopes[0] * (tried - now)
            log_shapes[i] += slopes[1] * (tried - now)


@njit(cache=True, nogil=True)
def _log_effect(counts, sums, means, profile, log_shapes, own, slopes, now, tried):  # type: ignore[no-untyped-def] # pragma: no cover
    """Of the density of an effect: all areas' counts of its cells, and its prior, which
    ends every line.
    """
    total = -0.5 * tried * tried
    for i in own:
        log_share = profile[i] + slopes[0] * (tried - now)
        log_shape = log_shapes[i] + slopes[1] * (tried - now)
        log_shape = min(max(log_shape, -LARGEST_SHAPE), LARGEST_SHAPE)
        total += _log_cell(counts[i], sums[i], means[i], log_share, log_shape)
    return total
