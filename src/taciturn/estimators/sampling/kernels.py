"""Compiled samplers of tables, row by row: multinomials and urns.

NumPy's binomial is slowest for expected counts of ten to thirty, as in the cells of a
small population, and cells with an expected count of a few cost less when individuals
are placed one by one. Gamma variates are left to NumPy, which draws them as quickly.
"""

import numpy as np
from numba import njit

__all__ = ["open_cells", "place_one_by_one", "split", "split_sparse"]

_REJECTION_FROM = 10.0  # the smallest mean for which transformed rejection is valid
_FEW = 4.0  # expected count up to which placing individuals costs less than a binomial
_BEYOND = 110  # a binomial with a smaller mean exceeds this with probability < 1e-70


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
            out[a, i] = _binomial(left, share[i] / tails[i], rng) if share[i] > 0.0 else 0
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
            one_by_one = _binomial(left, whole / (whole + tail), rng)
            left -= one_by_one
            for _ in range(one_by_one):
                u = rng.random()
                j = guide[int(u * few)]
                while sums[j] <= u * whole and j < few - 1:
                    j += 1
                out[a, small[j]] += 1
        for j in range(many):
            placed = _binomial(left, share[large[j]] / tails[j], rng)
            out[a, large[j]] = placed
            left -= placed


@njit(cache=True, nogil=True)
def _binomial(n, p, rng):  # type: ignore[no-untyped-def] # pragma: no cover
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
    taken = np.empty(totals.max(), dtype=np.int64)
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
def open_cells(rest, limit, order, black, sigma, most, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Place the individuals in `rest` in cells that they open, by the Ewens-Pitman urn;
    some may be left over.

    With `k` cells open, the next individual opens one with weight ``black + kσ``, or
    joins one with weight ``F - σ``. Cells are cut off as blocks while more than `most`
    individuals are left, so that the cost does not grow with their number; the others
    are placed one by one. Those who would open a cell beyond the limit, and those who
    would follow them there, remain in `rest`.
    """
    followed = np.empty(most, dtype=np.int64)
    for a in range(rest.size):
        k = 0
        while rest[a] > most and k < limit[a]:
            later = black[a] + (k + 1) * sigma[a]
            # σ is below 1, so the two parameters are never both tiny, for which Numba's
            # beta would not terminate.
            share = rng.beta(1.0 - sigma[a], later) if later > 0.0 else 1.0
            block = 1 + _binomial(rest[a] - 1, share, rng)
            out[a, order[a, k]] = block
            rest[a] -= block
            k += 1
        if k == limit[a]:
            continue
        start = k
        followers = left = 0
        for m in range(rest[a]):
            x = rng.random() * (black[a] + start * sigma[a] + m)
            leaders = (k - start) * (
                1.0 - sigma[a]
            )  # the weight of those who opened a cell; all others weigh 1
            if x >= leaders + followers:
                if k == limit[a]:
                    left += 1
                    continue
                cell = order[a, k]
                k += 1
            else:
                if x < leaders:
                    cell = order[a, min(start + int(x / (1.0 - sigma[a])), k - 1)]
                else:
                    cell = followed[min(int(x - leaders), followers - 1)]
                followed[followers] = cell
                followers += 1
            out[a, cell] += 1
        rest[a] = left
