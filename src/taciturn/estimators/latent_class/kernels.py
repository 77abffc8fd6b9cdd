"""Compiled steps of the collapsed Gibbs sampler of `latent_class`, on plain arrays.

Individuals are rows of `levels`, the number of their category in each variable; `first`
says where the categories of a variable begin when those of all variables are numbered
through. `by_level` counts individuals by category and class, `by_class` by class; of
its columns the first `used` are classes with somebody in them.
"""

from math import exp, lgamma, log

import numpy as np
from numba import njit

__all__ = [
    "assign_classes",
    "class_shares",
    "count_classes",
    "draw_class_of",
    "log_of_concentration",
    "log_of_profile",
    "split_or_merge",
]

_SCANS = 4  # restricted to two classes, before they are proposed
_EMPTY = 0.5  # a class with fewer individuals has none


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
    are summed out.

    Returns the number of classes used after it, at most the columns there are.
    """
    n, variables = levels.shape
    most = by_class.size
    sizes = np.empty(variables)
    alone = alpha  # weight of a class of one's own: its shares are uniform on average
    for j in range(variables):
        sizes[j] = first[j + 1] - first[j]
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
        if by_class[h] < _EMPTY:  # the last class takes its place
            used -= 1
            if h != used:
                by_class[h], weight[h] = by_class[used], weight[used]
                by_level[:, h] = by_level[:, used]
                for k in range(n):
                    if classes[k] == used:
                        classes[k] = h
        else:
            whole = 1.0
            for j in range(variables):
                whole *= by_class[h] + profile[j]
            weight[h] = by_class[h] / whole
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
        whole = 1.0
        for j in range(variables):
            by_level[first[j] + levels[i, j], h] += 1.0
            whole *= by_class[h] + profile[j]
        weight[h] = by_class[h] / whole
    for j in range(variables):
        by_level[first[j] : first[j + 1]] -= profile[j] / sizes[j]
    return used


@njit(cache=True, nogil=True)
def split_or_merge(levels, first, classes, by_level, by_class, used, alpha, profile, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Propose to split a class in two or to merge two, by restricted Gibbs scans (Jain
    & Neal 2004).

    Returns the number of classes used after it.
    """
    n, variables = levels.shape
    if n < 2:
        return used
    i = int(rng.random() * n)
    splits = rng.random() < 0.5
    whole = by_class[classes[i]]
    if (splits and (used == by_class.size or whole < 2.0)) or (not splits and used == 1):
        return used
    # Somebody else of the same class, or of another one.
    nth = int(rng.random() * (whole - 1.0 if splits else n - whole))
    j = -1
    while nth >= 0:
        j += 1
        if j != i and (classes[j] == classes[i]) == splits:
            nth -= 1
    a, b = classes[i], classes[j]
    others = np.empty(n, dtype=np.int64)
    m = 0
    for k in range(n):
        if (classes[k] == a or classes[k] == b) and k != i and k != j:
            others[m] = k
            m += 1
    each = np.empty(variables)
    for v in range(variables):
        each[v] = profile[v] / (first[v + 1] - first[v])
    counts, sizes, weight = np.zeros((2, by_level.shape[0])), np.ones(2), np.ones(2)
    for v in range(variables):
        counts[0, first[v] + levels[i, v]] += 1.0
        counts[1, first[v] + levels[j, v]] += 1.0
        weight /= 1.0 + profile[v]
    side = np.empty(m, dtype=np.int64)
    log_chance = 0.0
    for scan in range(_SCANS + 1):
        for at in range(m):
            k = others[at]
            if scan > 0:
                own = side[at]
                sizes[own] -= 1.0
                whole = 1.0
                for v in range(variables):
                    counts[own, first[v] + levels[k, v]] -= 1.0
                    whole *= sizes[own] + profile[v]
                weight[own] = sizes[own] / whole
            zero, one = weight[0], weight[1]
            for v in range(variables):
                x = first[v] + levels[k, v]
                zero *= counts[0, x] + each[v]
                one *= counts[1, x] + each[v]
            joins = (
                one / (zero + one) if zero + one > 0.0 else 0.5
            )  # both vanish with tiny profile weights
            own = 1 if rng.random() < joins else 0
            if scan == _SCANS and a != b:
                own = 1 if classes[k] == b else 0
            if scan == _SCANS:
                log_chance += log(max(joins if own == 1 else 1.0 - joins, 1e-300))
            side[at] = own
            sizes[own] += 1.0
            whole = 1.0
            for v in range(variables):
                counts[own, first[v] + levels[k, v]] += 1.0
                whole *= sizes[own] + profile[v]
            weight[own] = sizes[own] / whole
    # Chances to have chosen these two for a split, and for a merger.
    together = 2.0 / (sizes[0] + sizes[1] - 1.0)
    apart = 1.0 / (n - sizes[0]) + 1.0 / (n - sizes[1])
    log_chance += log(together) - log(apart)
    gain = (
        log(alpha) + lgamma(sizes[0]) + lgamma(sizes[1]) - lgamma(sizes[0] + sizes[1])
    )  # of two over one
    for v in range(variables):
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
    threshold = log(rng.random())
    if a == b and threshold < gain - log_chance:
        by_level[:, used], by_class[used] = counts[1], sizes[1]
        by_level[:, a], by_class[a] = counts[0], sizes[0]
        classes[j] = used
        for at in range(m):
            if side[at] == 1:
                classes[others[at]] = used
        return used + 1
    if a != b and threshold < log_chance - gain:
        by_level[:, a] += by_level[:, b]
        by_class[a] += by_class[b]
        last = used - 1
        by_level[:, b], by_class[b] = by_level[:, last], by_class[last]
        for k in range(n):
            if classes[k] == b:
                classes[k] = a
        if b != last:
            for k in range(n):
                if classes[k] == last:
                    classes[k] = b
        return last
    return used


@njit(cache=True, nogil=True)
def log_of_concentration(used, n, x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the chance of a division into so many classes, at the logarithm of
    the concentration.
    """
    return used * x + lgamma(exp(x)) - lgamma(exp(x) + n)


@njit(cache=True, nogil=True)
def log_of_profile(by_level, by_class, used, x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the chance of a variable's categories given the classes, at the
    logarithm of its profile weight.
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
    """Share of the population in each cell of `levels`: its classes' weights times
    their shares, summed.
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
    """Class of each individual given weights and shares."""
    out = np.empty(levels.shape[0], dtype=np.int64)
    ends = np.empty(weight.size)
    for i in range(levels.shape[0]):
        ends[:] = weight
        for j in range(levels.shape[1]):
            ends *= share[first[j] + levels[i, j]]
        ends = np.cumsum(ends)
        out[i] = min(np.searchsorted(ends, rng.random() * ends[-1], side="right"), weight.size - 1)
    return out
