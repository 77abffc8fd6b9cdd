"""Compiled steps of the collapsed Gibbs sampler of `latent_class`, and of departures
from its classes, on plain arrays.

Individuals are rows of `levels`, which hold the number of their category in each
variable; `first` says where the categories of each variable begin when those of all
variables are numbered consecutively. `by_level` counts individuals by category and
class, `by_class` by class; the first `used` columns are classes with somebody in them.
"""

from math import exp, lgamma, log, log1p, sqrt

import numpy as np
from numba import njit

from taciturn.estimators.mixed_poisson.kernels import one_factor, one_inverse_gaussian_mixed

__all__ = [
    "assign_classes",
    "class_shares",
    "count_classes",
    "draw_class_of",
    "group_cells",
    "log_of_concentration",
    "log_of_departures",
    "log_of_profile",
    "multiply_by_factors",
    "split_or_merge",
]

_SCANS = 4  # restricted Gibbs scans of two classes, before the one that is proposed
_SHAPES = (-23.0, 40.0)  # logarithms: beyond, rounding would take over
_EMPTY = 0.5  # a class with a smaller (floating-point) count is empty


@njit(cache=True, nogil=True)
def count_classes(levels, first, classes, by_level, by_class):  # type: ignore[no-untyped-def] # pragma: no cover
    """Count individuals by category and class, and by class."""
    by_level[:] = 0.0
    by_class[:] = 0.0
    for i in range(levels.shape[0]):
        by_class[classes[i]] += 1.0
        for j in range(levels.shape[1]):
            by_level[first[j] + levels[i, j], classes[i]] += 1.0


@njit(cache=True, nogil=True, fastmath=True)
def assign_classes(levels, first, classes, by_level, by_class, used, alpha, profile, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Draw the class of each individual given those of all others; weights and shares
    are integrated out.

    Returns the number of classes then in use, at most the number of columns.
    """
    n, variables = levels.shape
    most = by_class.size
    sizes = np.diff(first).astype(np.float64)
    alone = alpha  # weight of a new class, whose shares are uniform on average
    for j in range(variables):
        alone /= sizes[j]
        by_level[first[j] : first[j + 1]] += profile[j] / sizes[j]
    weight = np.empty(most)
    for h in range(used):
        weight[h] = by_class[h]
        for j in range(variables):
            weight[h] /= by_class[h] + profile[j]
    ends = np.empty(most)
    for i in range(n):
        h = classes[i]
        by_class[h] -= 1.0
        for j in range(variables):
            by_level[first[j] + levels[i, j], h] -= 1.0
        if by_class[h] < _EMPTY:
            used -= 1
            _fill_gap(h, used, classes, by_level, by_class, weight)
        else:
            weight[h] = _weight_of(by_class[h], profile)
        for k in range(used):
            ends[k] = weight[k]
        for j in range(variables):
            row = by_level[first[j] + levels[i, j]]
            for k in range(used):
                ends[k] *= row[k]
        for k in range(1, used):
            ends[k] += ends[k - 1]
        total = ends[used - 1] if used > 0 else 0.0
        x = rng.random() * (total + (alone if used < most else 0.0))
        if x >= total and used < most:
            h = used
            used += 1
            by_class[h] = 0.0
            for j in range(variables):
                by_level[first[j] : first[j + 1], h] = profile[j] / sizes[j]
        else:
            h = min(np.searchsorted(ends[:used], x, side="right"), used - 1)
        classes[i] = h
        by_class[h] += 1.0
        for j in range(variables):
            by_level[first[j] + levels[i, j], h] += 1.0
        weight[h] = _weight_of(by_class[h], profile)
    for j in range(variables):
        by_level[first[j] : first[j + 1]] -= profile[j] / sizes[j]
    return used


@njit(cache=True, nogil=True)
def _weight_of(size, profile):  # type: ignore[no-untyped-def] # pragma: no cover
    """Weight of a class of that size, apart from the categories of its members."""
    whole = 1.0
    for j in range(profile.size):
        whole *= size + profile[j]
    return size / whole


@njit(cache=True, nogil=True, fastmath=True)
def _fill_gap(h, last, classes, by_level, by_class, weight):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move the last class to the place of one that has become empty."""
    if h == last:
        return
    by_class[h], weight[h] = by_class[last], weight[last]
    by_level[:, h] = by_level[:, last]
    for k in range(classes.size):
        if classes[k] == last:
            classes[k] = h


@njit(cache=True, nogil=True)
def split_or_merge(levels, first, classes, by_level, by_class, used, alpha, profile, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Propose to split a class in two or to merge two, by restricted Gibbs scans (Jain
    & Neal 2004).

    Returns the number of classes then in use.
    """
    n = levels.shape[0]
    if n < 2:
        return used
    i = int(rng.random() * n)
    splits = rng.random() < 0.5
    whole = by_class[classes[i]]
    if (splits and (used == by_class.size or whole < 2.0)) or (not splits and used == 1):
        return used
    # Another individual: of the same class for a split, of another one for a merger.
    nth = int(rng.random() * (whole - 1.0 if splits else n - whole))
    j = -1
    while nth >= 0:
        j += 1
        if j != i and (classes[j] == classes[i]) == splits:
            nth -= 1
    a, b = classes[i], classes[j]
    both = (classes == a) | (classes == b)
    both[i] = both[j] = False
    others = np.flatnonzero(both)
    each = np.empty(profile.size)
    counts, sizes = np.zeros((2, by_level.shape[0])), np.ones(2)
    for v in range(profile.size):
        each[v] = profile[v] / (first[v + 1] - first[v])
        counts[0, first[v] + levels[i, v]] += 1.0
        counts[1, first[v] + levels[j, v]] += 1.0
    side = np.where(classes[others] == b, 1, 0)
    log_chance = _scan_two(levels, first, others, counts, sizes, side, a != b, profile, each, rng)
    # Probabilities of choosing these two for a split, and for a merger.
    together = 2.0 / (sizes[0] + sizes[1] - 1.0)
    apart = 1.0 / (n - sizes[0]) + 1.0 / (n - sizes[1])
    log_chance += log(together) - log(apart)
    gain = _gain_of_two(first, counts, sizes, alpha, profile, each)
    threshold = log(rng.random())
    if a == b and threshold < gain - log_chance:
        by_level[:, used], by_class[used] = counts[1], sizes[1]
        by_level[:, a], by_class[a] = counts[0], sizes[0]
        classes[j] = used
        classes[others[side == 1]] = used
        return used + 1
    if a != b and threshold < log_chance - gain:
        return _merge(a, b, used - 1, classes, by_level, by_class)
    return used


@njit(cache=True, nogil=True)
def _scan_two(levels, first, others, counts, sizes, side, merges, profile, each, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Divide individuals between two classes by Gibbs scans, the last of which is the
    proposal; for a merger, that scan ends at their present division, given by `side`.

    Fills `counts`, `sizes` and `side`. Returns the log-probability of the last scan.
    """
    weight = np.ones(2)
    for v in range(profile.size):
        weight /= 1.0 + profile[v]
    now = side.copy()
    log_chance = 0.0
    for scan in range(_SCANS + 1):
        for at in range(others.size):
            k = others[at]
            if scan > 0:
                own = now[at]
                sizes[own] -= 1.0
                for v in range(profile.size):
                    counts[own, first[v] + levels[k, v]] -= 1.0
                weight[own] = _weight_of(sizes[own], profile)
            zero, one = weight[0], weight[1]
            for v in range(profile.size):
                x = first[v] + levels[k, v]
                zero *= counts[0, x] + each[v]
                one *= counts[1, x] + each[v]
            joins = one / (zero + one) if zero + one > 0.0 else 0.5  # both vanish in tiny profiles
            own = 1 if rng.random() < joins else 0
            if scan == _SCANS:
                own = side[at] if merges else own
                log_chance += log(max(joins if own == 1 else 1.0 - joins, 1e-300))
            now[at] = own
            sizes[own] += 1.0
            for v in range(profile.size):
                counts[own, first[v] + levels[k, v]] += 1.0
            weight[own] = _weight_of(sizes[own], profile)
    side[:] = now
    return log_chance


@njit(cache=True, nogil=True)
def _gain_of_two(first, counts, sizes, alpha, profile, each):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the posterior odds of two classes over one."""
    gain = log(alpha) + lgamma(sizes[0]) + lgamma(sizes[1]) - lgamma(sizes[0] + sizes[1])
    for v in range(profile.size):
        gain += lgamma(profile[v]) - lgamma(profile[v] + sizes[0]) - lgamma(profile[v] + sizes[1])
        gain += lgamma(profile[v] + sizes[0] + sizes[1])
        for x in range(first[v], first[v + 1]):
            zero, one = counts[0, x], counts[1, x]
            if zero > 0.0 and one > 0.0:
                gain += (
                    lgamma(each[v] + zero)
                    + lgamma(each[v] + one)
                    - lgamma(each[v])
                    - lgamma(each[v] + zero + one)
                )
    return gain


@njit(cache=True, nogil=True)
def _merge(a, b, last, classes, by_level, by_class):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move everybody in class `b` to `a`, and the last class to the place of `b`.

    Returns the number of classes then in use.
    """
    by_level[:, a] += by_level[:, b]
    by_class[a] += by_class[b]
    by_level[:, b], by_class[b] = by_level[:, last], by_class[last]
    for k in range(classes.size):
        if classes[k] == b:
            classes[k] = a
    if b != last:
        for k in range(classes.size):
            if classes[k] == last:
                classes[k] = b
    return last


@njit(cache=True, nogil=True)
def log_of_concentration(used, n, x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Log-probability, up to a constant, of a partition into so many classes, given the
    logarithm of the concentration.
    """
    return used * x + lgamma(exp(x)) - lgamma(exp(x) + n)


@njit(cache=True, nogil=True)
def log_of_profile(by_level, by_class, used, x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Log-probability of a variable's categories given the classes and the logarithm of
    its profile weight.
    """
    total, each = exp(x), exp(x) / by_level.shape[0]
    whole, part = lgamma(total), lgamma(each)
    value = 0.0
    for h in range(used):
        value += whole - lgamma(total + by_class[h])
        for s in range(by_level.shape[0]):
            if by_level[s, h] > 0.0:
                value += lgamma(each + by_level[s, h]) - part
    return value


@njit(cache=True, nogil=True, fastmath=True)
def class_shares(levels, first, weight, share):  # type: ignore[no-untyped-def] # pragma: no cover
    """Share of the population in each cell of `levels`: the sum over classes of their
    weight times their share.
    """
    out = np.empty(levels.shape[0])
    joint = np.empty(weight.size)
    for i in range(levels.shape[0]):
        joint[:] = weight
        for j in range(levels.shape[1]):
            row = share[first[j] + levels[i, j]]
            for h in range(weight.size):
                joint[h] *= row[h]
        out[i] = joint.sum()
    return out


@njit(cache=True, nogil=True)
def draw_class_of(levels, first, weight, share, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Draw the class of each individual given weights and shares."""
    out = np.empty(levels.shape[0], dtype=np.int64)
    ends = np.empty(weight.size)
    for i in range(levels.shape[0]):
        ends[:] = weight
        for j in range(levels.shape[1]):
            ends *= share[first[j] + levels[i, j]]
        ends = np.cumsum(ends)
        out[i] = min(np.searchsorted(ends, rng.random() * ends[-1], side="right"), weight.size - 1)
    return out


@njit(cache=True, nogil=True)
def group_cells(shares, cells, lowest, knots, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Count cells on a grid of the logarithms of their shares: each at the two knots
    next to it, in proportion to how near they are.
    """
    for i in cells:
        place = (log(max(shares[i], 1e-300)) - lowest) * knots
        below = int(max(place, 0.0))
        part = max(place, 0.0) - below
        out[below] += 1.0 - part
        out[below + 1] += part


@njit(cache=True, nogil=True)
def log_of_departures(counts, times, log_shares, cells, tried, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Log-probability of counts, each of so many cells, for rows of log ν, the power
    and the logarithm of the intensity; but for the factorials of the counts.
    """
    for i in range(counts.size):
        size = log1p(cells * exp(log_shares[i]))
        for a in range(tried.shape[0]):
            shape = _log_shape(tried[a, 0], tried[a, 1], size)
            mean = max(tried[a, 2] + log_shares[i], -460.0)
            out[a] += times[i] * one_inverse_gaussian_mixed(counts[i], mean, shape)


@njit(cache=True, nogil=True)
def _log_shape(log_nu, power, size):  # type: ignore[no-untyped-def] # pragma: no cover
    return min(max(log_nu + power * size, _SHAPES[0]), _SHAPES[1])


@njit(cache=True, nogil=True)
def multiply_by_factors(shares, counts, cells, nu, power, intensity, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Multiply each row of shares by inverse Gaussian factors given the counts; with
    counts and an intensity of 0, by factors that no sample informs.
    """
    for a in range(shares.shape[0]):
        log_nu = log(max(nu[a], 1e-300))
        for i in range(shares.shape[1]):
            if shares[a, i] > 0.0:
                r = exp(_log_shape(log_nu, power[a], log1p(cells * shares[a, i])))
                m = intensity[a] * shares[a, i]
                if counts[i] > 0:
                    shares[a, i] *= one_factor(counts[i] - 0.5, r, r + 2.0 * m, rng)
                else:
                    # Michael, Schucany & Haas 1976, without cancellation.
                    middle = 1.0 / sqrt(1.0 + 2.0 * m / r)
                    x = middle * rng.standard_normal() ** 2 / (2.0 * r)
                    drawn = middle / (1.0 + x + sqrt(x * x + 2.0 * x))
                    if rng.random() * (middle + drawn) > middle:
                        drawn = middle * middle / drawn
                    shares[a, i] *= drawn
