"""Compiled samplers of tables, row by row: multinomials and Dirichlet multinomials.

NumPy's binomial is slowest for expected counts of ten to thirty, as in the cells of a
small population, and cells with an expected count of a few cost less when individuals
are placed one by one.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit

__all__ = ["LIMITS", "Limits", "binomial", "dirichlet_multinomial", "multinomial", "split_sparse"]


class Limits(NamedTuple):
    """From where on what costs less.

    Attributes
    ----------
    large : int
        Cells from which most are taken to expect a few individuals.
    crowded : int
        Individuals per cell up to which they are placed one by one, should more come
        than expected.
    block : int
        Values to work on at a time, so that they stay in the processor's cache.
    in_new_cells : int
        Individuals left for new cells of an urn up to which they are placed one by one.
    """

    large: int
    crowded: int
    block: int
    in_new_cells: int


LIMITS: Final = Limits(1024, 64, 2**16, 256)

_SMALL_WEIGHT = 0.05  # below it a gamma variate may underflow: 1e-308 ** 0.05 is 4e-16
_SMALLEST = 1e-290  # weight of the largest cell; of less one cell takes everything
_EXPECTED = 6.0  # in a cell, up to which a gamma and a binomial variate cost more
_REJECTION_FROM = 10.0  # the smallest mean for which transformed rejection is valid
_FEW = 4.0  # expected count up to which placing individuals costs less than a binomial
_BEYOND = 110  # a binomial with a smaller mean exceeds this with probability < 1e-70


@njit(cache=True, nogil=True)
def multinomial(totals, shares, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with a multinomial table; one row of shares serves all."""
    if shares.shape[1] < limits.large:
        split(totals, shares, rng, out)
    else:
        split_sparse(totals, shares, rng, out)


@njit(cache=True, nogil=True)
def split(totals, shares, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with a multinomial table, cell by cell; a single row of
    shares serves all.
    """
    cells = shares.shape[1]
    tails = np.empty(cells)
    for a in range(totals.size):
        share = shares[min(a, len(shares) - 1)]
        if a < len(shares):
            tail = 0.0
            for i in range(cells - 1, -1, -1):
                tail += share[i]
                tails[i] = tail
        left = totals[a]
        for i in range(cells):
            out[a, i] = binomial(left, share[i] / tails[i], rng) if share[i] > 0.0 else 0
            left -= out[a, i]


@njit(cache=True, nogil=True)
def split_sparse(totals, shares, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same, quicker where most cells expect a few individuals: these cells are
    drawn as one cell at first, whose individuals are then placed one by one, by
    inversion from a table of where to begin.
    """
    cells = shares.shape[1]
    tails, sums = np.empty(cells), np.empty(cells)
    large, small = np.empty(cells, np.int64), np.empty(cells, np.int64)
    guide = np.empty(cells, np.int64)
    for a in range(totals.size):
        share = shares[min(a, len(shares) - 1)]
        if a < len(shares) or totals[a] != totals[a - 1]:
            scale = totals[a] / share.sum()
            few, many, whole, tail = 0, 0, 0.0, 0.0
            for i in range(cells):
                if share[i] * scale >= _FEW:
                    large[many] = i
                    many += 1
                elif share[i] > 0.0:
                    whole += share[i]
                    sums[few], small[few] = whole, i
                    few += 1
            for j in range(many - 1, -1, -1):
                tail += share[large[j]]
                tails[j] = tail
            j = 0
            for b in range(few):  # the first cell whose sum is beyond b / few of the whole
                while sums[j] <= whole * (b / few) and j < few - 1:
                    j += 1
                guide[b] = j
        out[a, :] = 0
        left = totals[a]
        if few:
            one_by_one = binomial(left, whole / (whole + tail), rng)
            left -= one_by_one
            for _ in range(one_by_one):
                u = rng.random()
                j = guide[int(u * few)]
                while sums[j] <= u * whole and j < few - 1:
                    j += 1
                out[a, small[j]] += 1
        for j in range(many):
            placed = binomial(left, share[large[j]] / tails[j], rng)
            out[a, large[j]] = placed
            left -= placed


@njit(cache=True, nogil=True)
def binomial(n, p, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Binomial variate."""
    if p > 0.5:
        return n - _binomial_of_half(n, 1.0 - p, rng)
    return _binomial_of_half(n, p, rng)


@njit(cache=True, nogil=True)
def _binomial_of_half(n, p, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Binomial variate for p up to a half: by inversion, or by the algorithm BTRS of
    Hörmann (1993), J. Stat. Comput. Simul. 46.
    """
    q = 1.0 - p
    mean = n * p
    if mean < _REJECTION_FROM:
        nobody = np.exp(n * np.log1p(-p))
        while True:
            u = rng.random()
            chance = nobody
            k = 0
            while u > chance and k < min(n, _BEYOND):
                u -= chance
                k += 1
                chance *= (n - k + 1) * p / (k * q)
            if u <= chance:  # otherwise rounding left the sum below 1: try again
                return k
    spread = np.sqrt(mean * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    while True:
        u = rng.random() - 0.5
        v = rng.random()
        near = max(0.5 - abs(u), 1e-20)
        x = np.floor((2.0 * a / near + b) * u + mean + 0.5)
        if near >= 0.07 and v <= 0.92 - 4.2 / b:
            return int(x)
        if 0.0 <= x <= n:
            v *= (2.83 + 5.1 / b) * spread / (a / (near * near) + b)
            if np.log(v) <= _log_of_mode(n, p, q, int(x)):
                return int(x)


@njit(cache=True, nogil=True)
def _log_of_mode(n, p, q, k):  # type: ignore[no-untyped-def] # pragma: no cover
    """Logarithm of the probability of `k` relative to that of the mode, by Stirling's
    series, without cancellation for large n.
    """
    mode = int((n + 1) * p)
    ahead = k - mode
    return (
        (k + 0.5) * np.log1p(-ahead / (k + 1))
        + (n - k + 0.5) * np.log1p(ahead / (n - k + 1))
        - ahead * np.log((mode + 1) * q / ((n - mode + 1) * p))
        + (_series(mode + 1.0) - _series(k + 1.0))
        + (_series(n - mode + 1.0) - _series(n - k + 1.0))
    )


@njit(cache=True, nogil=True)
def _series(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """``log Γ(x) - (x - 1/2) log x + x - log(2π)/2``."""
    return (1 / 12 - (1 / 360 - 1 / 1260 / (x * x)) / (x * x)) / x


@njit(cache=True, nogil=True)
def place_one_by_one(totals, weights, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add `totals[a]` individuals to each row of `out` by Pólya's urn: each chooses a
    cell by its weight, or copies an earlier individual.
    """
    cells = weights.shape[1]
    most = 0
    for total in totals:
        most = max(most, total)
    taken = np.empty(most, dtype=np.int64)
    upto = np.empty(cells)
    first = np.empty(cells, dtype=np.int64)
    for a in range(totals.size):
        if totals[a] == 0:
            continue
        weight = 0.0
        for i in range(cells):
            weight += weights[a, i]
            upto[i] = weight
        # Where the search begins in each of `cells` equal parts of the weight, so that
        # it ends after a step or two.
        parts = cells / max(weight, 1e-290)
        part = 0
        for i in range(cells):
            while part < upto[i] * parts and part < cells:
                first[part] = i
                part += 1
        for m in range(totals[a]):
            x = rng.random() * (weight + m)
            if x < weight:
                cell = first[min(int(x * parts), cells - 1)]
                while upto[cell] <= x:  # this also skips cells without weight
                    cell += 1
            else:
                cell = taken[min(int(x - weight), m - 1)]
            taken[m] = cell
            out[a, cell] += 1


@njit(cache=True, nogil=True)
def dirichlet_multinomial(totals, weights, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with a Dirichlet-multinomial table.

    Cells with small expected counts are drawn as one cell at first, whose individuals
    are then placed one by one.
    """
    draws, cells = weights.shape
    step = max(1, limits.block // cells)
    for start in range(0, draws, step):
        stop = min(start + step, draws)
        _draw_rows(totals[start:stop], weights[start:stop], limits, rng, out[start:stop])


@njit(cache=True, nogil=True)
def _draw_rows(totals, weights, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    draws, cells = weights.shape
    place = np.empty(cells, np.int64)
    few = _place_few_last(totals, weights, place)
    many = cells - few
    light, shares = np.empty((draws, few)), np.zeros((draws, many + (few > 0)))
    for a in range(draws):
        for i in range(cells):
            if place[i] < many:
                shares[a, place[i]] = weights[a, i]
            else:
                light[a, place[i] - many] = weights[a, i]
                shares[a, many] += weights[a, i]
    table, placed = np.empty(shares.shape, np.int64), np.zeros(light.shape, np.int64)
    _gammas(shares, rng)
    multinomial(totals, shares, limits, rng, table)
    if few:
        rest = np.empty(draws, np.int64)
        for a in range(draws):
            rest[a] = table[a, many]
        _place_the_rest(rest, light, limits, rng, placed)
    for a in range(draws):
        for i in range(cells):
            own = place[i]
            out[a, i] = table[a, own] if own < many else placed[a, own - many]


@njit(cache=True, nogil=True)
def _place_few_last(totals, weights, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the place of each cell, those that expect a few individuals last; return how
    many these are, none if there is only one.
    """
    draws, cells = weights.shape
    expected, few, many = np.zeros(cells), 0, 0
    for a in range(draws):
        whole = 0.0
        for i in range(cells):
            whole += weights[a, i]
        if totals[a] > 0 and whole > 0.0:
            for i in range(cells):
                expected[i] += weights[a, i] * (totals[a] / whole)
    for i in range(cells):
        few += expected[i] <= _EXPECTED * draws
    few *= few > 1
    last = cells - few
    for i in range(cells):
        if few and expected[i] <= _EXPECTED * draws:
            place[i] = last
            last += 1
        else:
            place[i] = many
            many += 1
    return few


@njit(cache=True, nogil=True)
def _place_the_rest(rest, weights, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Place individuals in cells one by one, or like others where they are many."""
    crowded, cells = 0, weights.shape[1]
    for a in range(rest.size):
        crowded += rest[a] > limits.crowded * cells
    if crowded:
        totals, shares = np.empty(crowded, np.int64), np.empty((crowded, cells))
        table, b = np.empty((crowded, cells), np.int64), 0
        for a in range(rest.size):
            if rest[a] > limits.crowded * cells:
                totals[b] = rest[a]
                for i in range(cells):
                    shares[b, i] = weights[a, i]
                b += 1
        _gammas(shares, rng)
        multinomial(totals, shares, limits, rng, table)
        b = 0
        for a in range(rest.size):
            if rest[a] > limits.crowded * cells:
                rest[a] = 0
                for i in range(cells):
                    out[a, i] = table[b, i]
                b += 1
    place_one_by_one(rest, weights, rng, out)


@njit(cache=True, nogil=True)
def _gammas(weights, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Replace weights by gamma variates, Dirichlet once normalised; each row is known
    up to a factor only, so that none is all zeros.
    """
    draws, cells = weights.shape
    small, heaviest, kept = np.empty(draws, np.int64), np.zeros(draws), 0
    for a in range(draws):
        for i in range(cells):
            heaviest[a] = max(heaviest[a], weights[a, i])
        if 0.0 < heaviest[a] < _SMALL_WEIGHT:
            small[kept] = a
            kept += 1
    scaled = np.empty((kept, cells))
    for b in range(kept):
        scale = max(1.0, _SMALLEST / heaviest[small[b]])
        for i in range(cells):
            scaled[b, i] = weights[small[b], i] * scale
    for a in range(draws):
        for i in range(cells):
            weights[a, i] = rng.standard_gamma(weights[a, i])
    if kept:
        _gammas_of_small(scaled, rng)
    for b in range(kept):
        for i in range(cells):
            weights[small[b], i] = scaled[b, i]


@njit(cache=True, nogil=True)
def _gammas_of_small(weights, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same by logarithms: the variate of w is that of w + 1, times U^(1/w)."""
    rows, cells = weights.shape
    logs = np.empty((rows, cells))
    for b in range(rows):
        for i in range(cells):
            logs[b, i] = math.log(rng.standard_gamma(weights[b, i] + 1.0))
    for b in range(rows):
        highest = -math.inf
        for i in range(cells):
            wait = rng.standard_exponential()
            if weights[b, i] > 0.0:
                logs[b, i] -= wait / weights[b, i]
                highest = max(highest, logs[b, i])
        for i in range(cells):
            weights[b, i] = math.exp(logs[b, i] - highest) if weights[b, i] > 0.0 else 0.0
