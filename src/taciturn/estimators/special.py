"""Special functions that keep their precision for large arguments."""

import math

from numba import njit

__all__ = [
    "log_rising",
    "log_rising_over_power",
    "log_steps",
    "row_log_rising",
    "sums_of_shares",
]

_FACTORS = 40  # of a product, up to which it is quicker than gamma functions
_LARGE = 100.0  # argument from which three terms of Stirling's series are exact enough
_SERIES = 12.0  # argument from which digamma and trigamma functions are their series
_SMALLEST = 1e-100  # argument whose square does not vanish
# Of a product before its logarithm is taken: factors are from 1e-300 to 1e16.
_MOST, _LEAST = 1e250, 1e-5
_HIGH = 1e5  # the same for factors up to 1e302


@njit(cache=True, nogil=True, error_model="numpy")
def log_rising(a, n):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the rising factorial ``Γ(a + n) / Γ(a)``, n > 0, without
    cancellation where `a` is large.
    """
    log_a = math.log(a)
    return log_rising_over_power(n, a, log_a) + n * log_a


@njit(cache=True, nogil=True, error_model="numpy")
def log_rising_over_power(n, a, log_a):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of ``Γ(a + n) / (Γ(a) a^n)``, which is near 0 where `a` is large."""
    if n <= _FACTORS and n == math.floor(n):
        if n < 2:
            return 0.0
        total, more = 0.0, 0.0  # one more is the product, which may be near 1
        for k in range(1, int(n)):
            more += (1.0 + more) * (k / a)
            if more > _HIGH:
                total += math.log1p(more)
                more = 0.0
        return total + math.log1p(more)
    if a > _LARGE:
        top = a + n
        rest = (1.0 / top - 1.0 / a) / 12.0 - (1.0 / top**3 - 1.0 / a**3) / 360.0
        return (top - 0.5) * math.log1p(n / a) - n + rest
    return math.lgamma(a + n) - math.lgamma(a) - n * log_a


@njit(cache=True, nogil=True, error_model="numpy")
def sums_of_shares(n, a):  # type: ignore[no-untyped-def] # pragma: no cover
    """``a (ψ(a + n) - ψ(a))`` and ``a² (ψ'(a) - ψ'(a + n))``, without cancellation
    where `a` is large: for a whole number n the sums over j < n of ``a / (a + j)`` and
    of its square.
    """
    a, first, second = max(a, _SMALLEST), 0.0, 0.0
    if n <= _FACTORS and n == math.floor(n):
        if n < 1.0:
            return 0.0, 0.0
        first = second = 1.0
        for j in range(1, int(n)):
            share = a / (a + j)
            first += share
            second += share * share
        return first, second
    top = a + n
    if a > _SERIES:
        first = a * (math.log1p(n / a) + _digamma_rest(a) - _digamma_rest(top)) + n / (2.0 * top)
        second = n * (a / top) + n * ((a + top) / top) / (2.0 * top)
        return first, second + a * (_trigamma_rest(a) - _trigamma_rest(top) * (a / top))
    return a * (_digamma(top) - _digamma(a)), a * a * (_trigamma(a) - _trigamma(top))


@njit(cache=True, nogil=True, error_model="numpy")
def _digamma(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """By its recurrence, and its asymptotic series (DLMF 5.11.2)."""
    before = 0.0
    while x < _SERIES:
        before += 1.0 / x
        x += 1.0
    return math.log(x) - 0.5 / x - _digamma_rest(x) - before


@njit(cache=True, nogil=True, error_model="numpy")
def _digamma_rest(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """``log x - 1 / (2 x) - ψ(x)``, from `_SERIES` on."""
    y = 1.0 / (x * x)
    return y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))


@njit(cache=True, nogil=True, error_model="numpy")
def _trigamma(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """By its recurrence, and its asymptotic series (DLMF 5.15.8)."""
    before = 0.0
    while x < _SERIES:
        before += 1.0 / (x * x)
        x += 1.0
    return before + (1.0 + 0.5 / x + _trigamma_rest(x)) / x


@njit(cache=True, nogil=True, error_model="numpy")
def _trigamma_rest(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """``x ψ'(x) - 1 - 1 / (2 x)``, from `_SERIES` on."""
    y = 1.0 / (x * x)
    return y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66)))))


@njit(cache=True, nogil=True, error_model="numpy")
def row_log_rising(a, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """The sum over the cells of ``log_rising(a, counts)``, `a` above 0. Products are
    taken as they are where they are short.
    """
    total, product = 0.0, 1.0
    for i in range(counts.size):
        n, x = counts[i], a[i]
        if n <= _FACTORS and n == math.floor(n):
            for k in range(int(n)):
                product *= x + k
                if product > _MOST or product < _LEAST:
                    total += math.log(product)
                    product = 1.0
        else:
            log_x = math.log(x)
            total += log_rising_over_power(n, x, log_x) + n * log_x
    return total + math.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def log_steps(start, step, number):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the product of ``start + j step`` over j from 1 to `number`; above 0
    and at least 0.
    """
    total, product = 0.0, 1.0
    if number > _FACTORS and step * number > 1e-14 * start:
        first = 1.0 + start / step
        log_first = math.log(first)
        total = number * (math.log(step) + log_first)
        return total + log_rising_over_power(float(number), first, log_first)
    if number > _FACTORS:
        return number * math.log(start)
    for j in range(1, number + 1):
        product *= start + j * step
        if product > _MOST or product < _LEAST:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
