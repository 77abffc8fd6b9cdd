"""Compiled loops over cells and draws: counts of a Poisson distribution whose mean is
multiplied by a random factor, and that factor given the count.

The factor has mean 1 and variance ``1 / r``: gamma, or inverse Gaussian.
"""

import math

import numpy as np
from numba import njit

from taciturn.estimators.special import log_rising_over_power

__all__ = [
    "LARGE",
    "LEAST_MEAN",
    "LOG_SHAPES",
    "NARROWEST",
    "add_gamma_mixed",
    "add_inverse_gaussian_mixed",
    "add_to_groups",
    "bessel_by_orders",
    "compiled",
    "counted_gamma",
    "counted_inverse_gaussian",
    "draw_fillable",
    "draw_inverse_gaussian_factors",
    "draw_mixture_factors",
    "less_highest",
    "log_bessel_ratio",
    "log_empty",
    "log_sums",
    "means_and_shapes",
    "one_factor",
    "one_gamma_mixed",
    "one_inverse_gaussian_mixed",
    "scale_to",
    "solve_back",
    "solve_back_at",
    "solve_factored",
    "solve_forward",
    "sum_levels",
]

compiled = njit(cache=True, nogil=True, error_model="numpy")
"""As NumPy: what is divided by 0 is infinite or no number, and no error."""
NARROWEST = 1e-10  # shape: below it rounding would take over, and all are empty
_WIDEST = 1e17  # shape: beyond, squares would overflow, and factors are 1
LEAST_MEAN = -460.0  # logarithm, of which products can be taken,
LOG_SHAPES = (-230.0, 40.0)  # and the same of shapes: least and most
LARGE = 40  # order of a Bessel function, from which its expansion is exact enough
_HIGH = 1e150  # of a product before its logarithm is taken: factors are below 1e155


@compiled
def add_gamma_mixed(counts, occupied, log_mean, log_shape, shape, excess, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``f! p(f)``, negative binomial, for each row: `out` has that of
    empty cells, to which what counts add is added.

    `excess` is the logarithm of one more than the ratio of the mean to the shape.
    """
    for a in range(log_mean.shape[0]):
        for i in occupied:
            given = log_mean[a, i], log_shape[a, i], shape[a, i], excess[a, i]
            out[a, i] += counted_gamma(counts[i], *given)


@compiled
def add_inverse_gaussian_mixed(counts, occupied, log_mean, log_shape, root, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, Poisson-inverse Gaussian; `root` is ``s`` of
    `one_inverse_gaussian_mixed`.
    """
    for a in range(log_mean.shape[0]):
        for i in occupied:
            given = log_mean[a, i], math.exp(log_shape[a, i]), root[a, i]
            out[a, i] += counted_inverse_gaussian(counts[i], *given)


@compiled
def one_gamma_mixed(f, log_mean, log_shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``f! p(f)`` of one count, negative binomial."""
    r, excess = math.exp(log_shape), math.log1p(math.exp(log_mean - log_shape))
    if f == 0:
        return -r * excess
    return counted_gamma(f, log_mean, log_shape, r, excess) - r * excess


@compiled
def counted_gamma(f, log_mean, log_shape, r, excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """What a count adds to the logarithm of that of an empty cell."""
    return log_rising_over_power(f, r, log_shape) + f * (log_mean - excess)


@compiled
def one_inverse_gaussian_mixed(f, log_mean, log_shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, Poisson-inverse Gaussian. With ``s² = 1 + 2 m / r`` and ``w = r s``,
    ``f! p(f) = (m / s)^f exp(r (1 - s)) K_{f - 1/2}(w) / K_{1/2}(w)``.
    """
    m, r = math.exp(log_mean), math.exp(log_shape)
    s = math.sqrt(1.0 + 2.0 * m / r)
    value = -2.0 * m / (1.0 + s)  # r (1 - s) without cancellation
    if f > 0:
        value += counted_inverse_gaussian(f, log_mean, r, s)
    return value


@compiled
def counted_inverse_gaussian(f, log_mean, r, s):  # type: ignore[no-untyped-def] # pragma: no cover
    """What a count adds to the logarithm of that of an empty cell."""
    return f * (log_mean - math.log(s)) + log_bessel_ratio(f, r * s)


@compiled
def log_empty(m, r, share):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the probability that a cell is empty, whose factor is inverse
    Gaussian with probability `share`, and gamma otherwise.
    """
    of_gamma, of_other = -r * math.log1p(m / r), -2.0 * m / (1.0 + math.sqrt(1.0 + 2.0 * m / r))
    if share <= 0.0:
        return of_gamma
    if share >= 1.0:
        return of_other
    highest = max(of_gamma, of_other)
    either = (1.0 - share) * math.exp(of_gamma - highest) + share * math.exp(of_other - highest)
    return highest + math.log(either)


@compiled
def log_bessel_ratio(f, w):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``K_{f - 1/2}(w) / K_{1/2}(w)``: by orders, or by the uniform
    expansion for large ones (DLMF 10.41.4).
    """
    if f > LARGE:
        order = f - 0.5
        z = w / order
        root = math.sqrt(1.0 + z * z)
        p = 1.0 / root
        q = p * p
        u1 = p * (3.0 - 5.0 * q) / 24.0
        u2 = q * (81.0 - 462.0 * q + 385.0 * q * q) / 1152.0
        u3 = p * q * (30375.0 + q * (-369603.0 + q * (765765.0 - 425425.0 * q))) / 414720.0
        series = 1.0 - u1 / order + u2 / order**2 - u3 / order**3
        beyond = order / (z + root) + order * math.log(z / (1.0 + root))  # without cancellation
        return -beyond + 0.5 * math.log(z / root) + math.log(series)
    return bessel_by_orders(f, w)[0] if f > 1 else 0.0


@compiled
def bessel_by_orders(f, w):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, upwards from order to order, and the ratio of the last two, 1 if there
    is one.
    """
    total, product, ratio = 0.0, 1.0, 1.0
    for n in range(1, int(f)):
        ratio = 1.0 / ratio + (2.0 * n - 1.0) / w
        product *= ratio
        if product > _HIGH:
            total += math.log(product)
            product = 1.0
    return total + math.log(product), ratio


@compiled
def draw_inverse_gaussian_factors(counts, mean, shape, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Factors given the counts, inverse Gaussian before the count is known."""
    for a in range(mean.shape[0]):
        for i in range(counts.size):
            out[a, i] = _inverse_gaussian_factor(counts[i], mean[a, i], shape[a, i], rng)


@compiled
def draw_mixture_factors(counts, mean, shape, log_odds, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Factors given the counts, each of one of two kinds: inverse Gaussian with odds
    given for each row, before the count is known, and gamma otherwise.
    """
    for a in range(mean.shape[0]):
        for i in range(counts.size):
            f, m, r = counts[i], mean[a, i], min(max(shape[a, i], 1e-100), _WIDEST)
            excess, root = math.log1p(m / r), math.sqrt(1.0 + 2.0 * m / r)
            odds = log_odds[a] + r * excess - 2.0 * m / (1.0 + root)
            if f > 0:
                x = math.log(m)
                odds += counted_inverse_gaussian(f, x, r, root)
                odds -= counted_gamma(f, x, math.log(r), r, excess)
            if rng.random() * (1.0 + math.exp(-odds)) >= 1.0:
                out[a, i] = rng.standard_gamma(shape[a, i] + f) / (shape[a, i] + m)
            else:
                out[a, i] = _inverse_gaussian_factor(f, m, shape[a, i], rng)


@compiled
def draw_fillable(log_inflation, of_cell, cells, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether each cell can be filled, for each row: with the logarithm of the
    probability that it can not, given that some cell of each stratum can, of which each
    has so many.
    """
    first, number = np.empty(cells.size, dtype=np.int64), np.empty(cells.size, dtype=np.int64)
    for a in range(log_inflation.size):
        no, number[:] = log_inflation[a], 0
        for j in range(cells.size):
            # The first that can, of cells in a row.
            missed = math.log1p(rng.random() * math.expm1(no * cells[j])) / no
            first[j] = min(int(missed), cells[j] - 1)
        for i in range(of_cell.size):
            j = of_cell[i]
            later = number[j] > first[j] and math.log(rng.random()) >= no
            out[a, i] = number[j] == first[j] or later
            number[j] += 1


@compiled
def _inverse_gaussian_factor(f, m, shape, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """One of them: generalised inverse Gaussian, and without a count inverse Gaussian,
    by the method of Michael, Schucany and Haas (1976), The American Statistician 30,
    with the smaller root without cancellation.
    """
    r = min(max(shape, NARROWEST), _WIDEST)
    if f > 0:
        return one_factor(f - 0.5, r, r + 2.0 * m, rng)
    mean, normal = 1.0 / math.sqrt(1.0 + 2.0 * m / r), rng.standard_normal()
    away = mean * normal * normal / (2.0 * r)
    smaller = mean / (1.0 + away + math.sqrt(away * (away + 2.0)))
    if rng.random() * (mean + smaller) <= mean:
        return smaller
    return mean * (mean / smaller)


@compiled
def one_factor(order, chi, psi, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """A generalised inverse Gaussian variate, density proportional to ``x^(order - 1)
    exp(-(chi / x + psi x) / 2)``, for orders above 0: by rejection in ``log x``, where
    it is log-concave (Devroye 2014, Statistics and Computing 24).
    """
    omega = math.sqrt(chi * psi)
    root = math.sqrt(omega * omega + order * order)
    alpha = omega * omega / (root + order)
    right = _drop(1.0, alpha, order)
    left = _drop(-1.0, alpha, order)
    t, s = 1.0, 1.0
    if right > 2.0:
        t = math.sqrt(2.0 / (alpha + order))
    elif right < 0.5:
        t = math.log(4.0 / (alpha + 2.0 * order))
    if left > 2.0:
        s = math.sqrt(4.0 / (alpha * math.cosh(1.0) + order))
    elif left < 0.5:
        s = min(1.0 / order, math.log(1.0 + 1.0 / alpha + math.sqrt(1.0 / alpha**2 + 2.0 / alpha)))
    high, low = _drop(t, alpha, order), _drop(-s, alpha, order)
    slope_high = alpha * math.sinh(t) + order * math.expm1(t)
    slope_low = alpha * math.sinh(s) - order * math.expm1(-s)
    from_high, from_low = t - high / slope_high, s - low / slope_low
    flat = from_high + from_low
    while True:
        u = rng.random() * (flat + 1.0 / slope_high + 1.0 / slope_low)
        v, tested = 1.0 - rng.random(), math.log(1.0 - rng.random())
        if u < flat:
            x = -from_low + flat * v
        elif u < flat + 1.0 / slope_high:
            x = from_high - math.log(v) / slope_high
            tested -= high + slope_high * (x - t)
        else:
            x = -from_low + math.log(v) / slope_low
            tested -= low - slope_low * (x + s)
        if tested <= -_drop(x, alpha, order):
            return math.sqrt(chi / psi) * (order + root) / omega * math.exp(x)


@compiled
def _drop(x, alpha, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """By how much the logarithm of the density is below its mode."""
    return alpha * (math.cosh(x) - 1.0) + order * (math.exp(x) - x - 1.0)


@compiled
def add_to_groups(values, columns, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the value of each cell to its groups."""
    for a in range(values.shape[0]):
        for i in range(columns.shape[0]):
            for j in range(columns.shape[1]):
                out[a, columns[i, j]] += values[a, i]


@compiled
def sum_levels(levels, columns, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """For each row of `levels` and each cell, the sum over some columns."""
    for a in range(levels.shape[0]):
        for i in range(columns.shape[0]):
            total = 0.0
            for k in range(columns.shape[1]):
                total += levels[a, columns[i, k]]
            out[a, i] = total


@compiled
def log_sums(logs, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The logarithm of the sum of the exponentials of each row."""
    for a in range(logs.shape[0]):
        highest, total = logs[a].max(), 0.0
        for i in range(logs.shape[1]):
            total += math.exp(logs[a, i] - highest)
        out[a] = highest + math.log(total)


@compiled
def solve_factored(roots, right, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Solve for each of several matrices, given by the lower triangular ``L`` of ``L
    L'``, one system of equations.
    """
    for a in range(right.shape[0]):
        out[a] = right[a]
        solve_forward(roots[a], out[a])
        solve_back(roots[a], out[a])


@compiled
def solve_forward(root, values):  # type: ignore[no-untyped-def] # pragma: no cover
    """Solve for a lower triangular factor, in place."""
    for j in range(values.size):
        for k in range(j):
            values[j] -= root[j, k] * values[k]
        values[j] /= root[j, j]


@compiled
def solve_back(root, values):  # type: ignore[no-untyped-def] # pragma: no cover
    """Solve for its transpose, in place."""
    for j in range(values.size - 1, -1, -1):
        values[j] /= root[j, j]
        for k in range(j):
            values[k] -= root[j, k] * values[j]


@compiled
def solve_back_at(roots, number, values):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same for each row of values, with the factor of that number."""
    for a in range(number.size):
        solve_back(roots[number[a]], values[a])


@compiled
def means_and_shapes(log_shares, of_cells, log_intensity, log_nu, power, log_cells, mean, shape):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithms of the mean and of the shape of each cell, for each row, with the
    stratum and the logarithm of the sampling rate of each.
    """
    of_cell, log_rates = of_cells
    for a in range(log_shares.shape[0]):
        for i in range(of_cell.size):
            share = log_shares[a, i]
            mean[a, i] = log_intensity[a, of_cell[i]] + share + log_rates[i]
            shape[a, i] = log_nu[a] + power[a] * (log_cells + share)


@compiled
def less_highest(of_cell, strata, logs):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shift each row of `logs` so that the highest of each stratum is 0."""
    for a in range(logs.shape[0]):
        highest = np.full(strata, -np.inf)
        for i in range(of_cell.size):
            highest[of_cell[i]] = max(highest[of_cell[i]], logs[a, i])
        for i in range(of_cell.size):
            logs[a, i] -= highest[of_cell[i]]


@compiled
def scale_to(log_sizes, of_cell, values, logs):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shift each row of `logs` so that its exponentials, which are `values` now, add up
    to the sizes of the strata that the cells are of.
    """
    for a in range(logs.shape[0]):
        sums = np.zeros(log_sizes.size)
        for i in range(of_cell.size):
            sums[of_cell[i]] += values[a, i]
        shift = log_sizes - np.log(sums)
        for i in range(of_cell.size):
            logs[a, i] += shift[of_cell[i]]
