"""Compiled loops over cells and draws: how the logarithm of the probability of a count
changes, whose Poisson mean is multiplied by a gamma or an inverse Gaussian factor, or
by either with some probability.
"""

import math

from taciturn.estimators.mixed_poisson.kernels import (
    LARGE,
    bessel_by_orders,
    compiled,
    counted_gamma,
    log_bessel_ratio,
)
from taciturn.estimators.special import sums_of_shares

__all__ = [
    "gamma",
    "gamma_slopes",
    "inflated",
    "inverse_gaussian",
    "inverse_gaussian_slopes",
    "mixture",
    "mixture_slopes",
]

_HIGH = 1e150  # of a term, beyond which a sum is scaled
_FROM_ORDERS = 16.0  # argument up to which little cancels between neighbouring orders


@compiled
def gamma_slopes(counts, shape, ratio, excess, power, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Slopes and curvatures of the logarithm of ``f! p(f)``, negative binomial: `out`
    is filled with the derivative by the logarithm of the mean, that along the logarithm
    of the share, which moves the shape by `power` times as much, and, with the sign
    changed, the second derivatives by the mean, by both, and along the share.

    `ratio` is that of the mean to the shape, `excess` the logarithm of one more.
    """
    for a in range(shape.shape[0]):
        for i in range(counts.size):
            given = shape[a, i], ratio[a, i], excess[a, i]
            _fill(gamma(counts[i], *given), power[a], out, a, i)


@compiled
def inverse_gaussian_slopes(counts, log_shape, mean, ratio, power, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, Poisson-inverse Gaussian."""
    for a in range(mean.shape[0]):
        for i in range(counts.size):
            shape = math.exp(log_shape[a, i]) if counts[i] > 0 else 0.0  # of no use
            given = shape, mean[a, i], ratio[a, i], math.sqrt(1.0 + 2.0 * ratio[a, i])
            _fill(inverse_gaussian(counts[i], *given), power[a], out, a, i)


@compiled
def mixture_slopes(  # type: ignore[no-untyped-def] # pragma: no cover
    counts, log_mean, log_shape, mean, shape, ratio, excess, log_odds, power, out
):
    """The same of factors that are inverse Gaussian with odds given for each row, and
    gamma otherwise.
    """
    for a in range(log_mean.shape[0]):
        for i in range(counts.size):
            own = mean[a, i], shape[a, i], ratio[a, i], excess[a, i]
            root = math.sqrt(1.0 + 2.0 * ratio[a, i])
            given = log_mean[a, i], log_shape[a, i], *own, root, log_odds[a]
            _fill(mixture(counts[i], *given), power[a], out, a, i)


@compiled
def _fill(slopes, power, out, a, i):  # type: ignore[no-untyped-def] # pragma: no cover
    """Those of one cell, from derivatives by the mean and the shape: first ones, and,
    with the sign changed, second ones by the mean, by both and by the shape.
    """
    mean, shape, bend_mean, bend_both, bend_shape = slopes
    out[0, a, i] = mean
    out[1, a, i] = mean + power * shape
    out[2, a, i] = bend_mean
    out[3, a, i] = bend_mean + power * bend_both
    out[4, a, i] = bend_mean + power * (2.0 * bend_both + power * bend_shape)


@compiled
def gamma(f, r, ratio, excess):  # type: ignore[no-untyped-def] # pragma: no cover
    """Derivatives by the mean and the shape, of one cell: first ones, and, with the
    sign changed, second ones by the mean, by both and by the shape.
    """
    q = ratio / (1.0 + ratio)
    first, second = sums_of_shares(f, r)
    rest = first - r * excess
    by_shape = rest + (1.0 - q) * (r * ratio - f)
    bend_mean = (r + f) * q * (1.0 - q)
    bend_shape = second - rest - r * q - q * (1.0 - q) * (r * ratio - f)
    return f - (r + f) * q, by_shape, bend_mean, r * q - bend_mean, bend_shape


@compiled
def inverse_gaussian(f, r, m, ratio, s):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same; `s` is that of `one_inverse_gaussian_mixed`, and `r` is not needed
    without a count.
    """
    slope, bend = _bessel_slopes(f, r * s) if f > 0 else (0.0, 0.0)
    return _with_bessel(f, m, ratio, s, slope, bend)


@compiled
def _with_bessel(f, m, ratio, s, slope, bend):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, from derivatives of the logarithm of the Bessel functions."""
    k, c = m / s, ratio / (s * s)
    by_mean, by_shape = -k, k - 2.0 * m / (1.0 + s)
    bend_mean, bend_both, bend_shape = k * (1.0 - c), k * c, -by_shape - k * c
    if f > 0:  # f (log m - log s) and the Bessel functions of w = r s; d log s = c
        turn = (f - slope) * c * (1.0 - 2.0 * c)
        by_mean += f * (1.0 - c) + slope * c
        by_shape += f * c + slope * (1.0 - c)
        bend_mean += turn - bend * c * c
        bend_both -= turn + bend * c * (1.0 - c)
        bend_shape += turn - bend * (1.0 - c) ** 2
    return by_mean, by_shape, bend_mean, bend_both, bend_shape


@compiled
def mixture(f, x, y, m, r, ratio, excess, s, log_odds):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same of either kind; `x` and `y` are the logarithms of `m` and `r`."""
    odds, slope, bend = log_odds + r * excess - 2.0 * m / (1.0 + s), 0.0, 0.0
    if f > 0:
        w = r * s
        if f <= LARGE and w <= _FROM_ORDERS:
            log_ratio, slope, bend = _between_orders(f, w)
        else:
            log_ratio, (slope, bend) = log_bessel_ratio(f, w), _bessel_slopes(f, w)
        odds += f * (x - math.log(s)) + log_ratio - counted_gamma(f, x, y, r, excess)
    first, second = gamma(f, r, ratio, excess), _with_bessel(f, m, ratio, s, slope, bend)
    chance = 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
    # Which of the two it is varies, and bends the logarithm upwards.
    either = chance * (1.0 - chance)
    by_mean, by_shape = first[0] - second[0], first[1] - second[1]
    return (
        first[0] - chance * by_mean,
        first[1] - chance * by_shape,
        first[2] + chance * (second[2] - first[2]) - either * by_mean * by_mean,
        first[3] + chance * (second[3] - first[3]) - either * by_mean * by_shape,
        first[4] + chance * (second[4] - first[4]) - either * by_shape * by_shape,
    )


@compiled
def inflated(found, log_empty, log_odds):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same of an empty cell that can be filled with such odds, from those of one
    that can, and the logarithm of the probability that it is then empty.
    """
    odds = log_odds + log_empty
    chance = 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
    either = chance * (1.0 - chance)
    by_mean, by_shape, bend_mean, bend_both, bend_shape = found
    return (
        chance * by_mean,
        chance * by_shape,
        chance * bend_mean - either * by_mean * by_mean,
        chance * bend_both - either * by_mean * by_shape,
        chance * bend_shape - either * by_shape * by_shape,
    )


@compiled
def _between_orders(f, w):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``K_{f - 1/2}(w) / K_{1/2}(w)``, with its first and second
    derivative by the logarithm of `w`, from the last two orders and from Bessel's
    equation (DLMF 10.29.2 and 10.25.1).
    """
    log_ratio, ratio = bessel_by_orders(f, w)
    order = f - 0.5
    away = w / ratio + order
    second = (w - away) * (w + away) + order * order + w
    return log_ratio, w + 0.5 - away, second


@compiled
def _bessel_slopes(f, w):  # type: ignore[no-untyped-def] # pragma: no cover
    """First and second derivative of ``log K_{f - 1/2}(w) / K_{1/2}(w)``, f a whole
    number, by the logarithm of `w`: minus the mean, and the variance, of the power k in
    the sum of ``(f - 1 + k)! / (k! (f - 1 - k)!) (2 w)^-k`` that the ratio is; or those
    of the uniform expansion for large orders (DLMF 10.41.4).
    """
    if f <= LARGE and w <= _FROM_ORDERS:
        return _between_orders(f, w)[1:]
    if f > LARGE:
        order = f - 0.5
        root = math.sqrt(order * order + w * w)
        p = order / root
        q = p * p
        rest = 1.0 - q
        # The series, and its first and second derivative times the order, term by term.
        u1 = p * (3.0 - 5.0 * q) / 24.0
        u2 = q * (81.0 - q * (462.0 - q * 385.0)) / (1152.0 * order)
        u3 = 30375.0 - q * (369603.0 - q * (765765.0 - q * 425425.0))
        fraction = p / (414720.0 * order * order)
        series = 1.0 + (u2 - u1 - u3 * fraction) / order
        first = p * (3.0 - 15.0 * q) / 24.0
        first -= q * (81.0 - q * (924.0 - q * 1155.0)) / (576.0 * order)
        first += (30375.0 - q * (1108809.0 - q * (3828825.0 - q * 2977975.0))) * fraction
        second = -p * (3.0 - q * (54.0 - q * 75.0)) / 24.0
        second += q * (81.0 - q * (2010.0 - q * (6237.0 - q * 4620.0))) / (288.0 * order)
        fourth = 24688170.0 - q * (47647600.0 - q * 26801775.0)
        second -= (30375.0 - q * (3417552.0 - q * fourth)) * fraction
        first, second = first * rest, second * rest
        first, second = first / (order * series), second / (order * series)
        whole = order * (order / (root + w))  # root - w without cancellation
        return first + q / 2.0 - whole, second - first * first - q * rest + whole * (w / root)
    term, total, first, second = 1.0, 1.0, 0.0, 0.0
    for k in range(1, int(f)):
        term *= (f - 1.0 + k) * (f - k) / (k * 2.0 * w)
        total += term
        first += k * term
        second += k * k * term
        if term > _HIGH:
            term, total = term / _HIGH, total / _HIGH
            first, second = first / _HIGH, second / _HIGH
    mean = first / total
    return -mean, second / total - mean * mean
