"""Compiled loops over cells and draws: counts of a Poisson distribution whose mean is
multiplied by a random factor, and that factor given the count.

The factor has mean 1 and variance ``1 / r``: gamma, or inverse Gaussian.
"""

import math

from numba import njit

__all__ = ["draw_factors", "log_gamma_mixed", "log_inverse_gaussian_mixed"]

_LARGE = 40  # order of a Bessel function, from which its expansion is exact enough


@njit(cache=True)
def log_gamma_mixed(counts, log_mean, log_shape, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``f! p(f)``, negative binomial, for each row."""
    for a in range(log_mean.shape[0]):
        for i in range(counts.size):
            r, f = math.exp(log_shape[a, i]), counts[i]
            ratio = math.exp(log_mean[a, i] - log_shape[a, i])
            value = -r * math.log1p(ratio)
            if f > 0:
                value += math.lgamma(r + f) - math.lgamma(r)
                value += f * (log_mean[a, i] - log_shape[a, i] - math.log1p(ratio))
            out[a, i] = value


@njit(cache=True)
def log_inverse_gaussian_mixed(counts, log_mean, log_shape, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, Poisson-inverse Gaussian: with ``s² = 1 + 2 m / r`` and ``w = r s``.

    ``f! p(f) = (m / s)^f exp(r (1 - s)) K_{f - 1/2}(w) / K_{1/2}(w)``.
    """
    for a in range(log_mean.shape[0]):
        for i in range(counts.size):
            m, r, f = math.exp(log_mean[a, i]), math.exp(log_shape[a, i]), counts[i]
            s = math.sqrt(1.0 + 2.0 * m / r)
            value = -2.0 * m / (1.0 + s)  # r (1 - s) without cancellation
            if f > 0:
                value += f * (log_mean[a, i] - math.log(s)) + _log_bessel_ratio(f, r * s)
            out[a, i] = value


@njit(cache=True)
def _log_bessel_ratio(f, w):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``K_{f - 1/2}(w) / K_{1/2}(w)``: upwards from order to order, or by
    the uniform expansion for large orders (DLMF 10.41.4).
    """
    if f > _LARGE:
        order = f - 0.5
        z = w / order
        root = math.sqrt(1.0 + z * z)
        p = 1.0 / root
        q = p * p
        u1 = p * (3.0 - 5.0 * q) / 24.0
        u2 = q * (81.0 - 462.0 * q + 385.0 * q * q) / 1152.0
        u3 = p * q * (30375.0 + q * (-369603.0 + q * (765765.0 - 425425.0 * q))) / 414720.0
        series = 1.0 - u1 / order + u2 / order**2 - u3 / order**3
        eta = root + math.log(z / (1.0 + root))
        return -order * eta + 0.5 * math.log(z / root) + math.log(series) + w
    total, ratio = 0.0, 1.0
    for n in range(1, int(f)):
        ratio = 1.0 / ratio + (2.0 * n - 1.0) / w
        total += math.log(ratio)
    return total


@njit(cache=True)
def draw_factors(order, chi, psi, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Generalised inverse Gaussian variates, density proportional to ``x^(order - 1)
    exp(-(chi / x + psi x) / 2)``, for orders above 0: by rejection in ``log x``, where
    it is log-concave (Devroye 2014, Statistics and Computing 24).
    """
    for a in range(chi.shape[0]):
        for i in range(order.size):
            out[a, i] = _one_factor(order[i], chi[a, i], psi[a, i], rng)


@njit(cache=True)
def _one_factor(order, chi, psi, rng):  # type: ignore[no-untyped-def] # pragma: no cover
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


@njit(cache=True)
def _drop(x, alpha, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """By how much the logarithm of the density is below its mode."""
    return alpha * (math.cosh(x) - 1.0) + order * (math.exp(x) - x - 1.0)
