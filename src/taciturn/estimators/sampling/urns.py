"""Compiled: tables from an urn with black balls, which continues a sample or starts
from nothing.
"""

import numpy as np
from numba import njit

from taciturn.estimators.sampling.kernels import binomial, dirichlet_multinomial
from taciturn.estimators.sampling.shuffling import shuffle

__all__ = ["complete_sample", "start_from_nothing"]


@njit(cache=True, nogil=True)
def complete_sample(sample, empty, missing, urn, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with the sample and `missing` more individuals.

    The sample and the cells that can open have one row, or one for each draw. An urn is
    θ and σ of each draw and the weights of the cells that open, none if these are
    equal.
    """
    theta, sigma, base = urn
    draws = theta.size
    seen, black, opens = np.empty(draws), np.empty(draws), np.empty(draws, np.bool_)
    left = np.empty(draws, np.int64)
    for a in range(draws):
        own, can_open = sample[min(a, len(sample) - 1)], empty[min(a, len(empty) - 1)]
        filled = (own > 0).sum()
        sampled = own.sum()
        left[a] = missing[min(a, len(missing) - 1)]
        seen[a] = sampled - filled * sigma[a]
        black[a] = theta[a] + filled * sigma[a]
        opens[a] = black[a] > 0 and can_open.any()
    share, new = np.zeros(draws), np.zeros(draws, np.int64)
    for a in range(draws):
        if opens[a]:
            share[a] = rng.beta(black[a], seen[a])
    if opens.any():
        for a in range(draws):
            new[a] = rng.binomial(left[a], share[a])
    order = _order(empty, base, draws, rng)
    joined = np.zeros(draws, np.int64)
    weight = seen + left - new
    out[:] = 0
    _open_cells(new, order, empty, (black, weight, sigma), limits, rng, joined, out)
    _join_cells(sample, left - new + joined, sigma, limits, rng, out)


@njit(cache=True, nogil=True)
def start_from_nothing(fillable, size, urn, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with a table of so many individuals."""
    theta, sigma, base = urn
    draws = theta.size
    order, joined = _order(fillable, base, draws, rng), np.zeros(draws, np.int64)
    new, nobody = np.full(draws, size), np.zeros(draws)
    out[:] = 0
    _open_cells(new, order, fillable, (theta, nobody, sigma), limits, rng, joined, out)


@njit(cache=True, nogil=True)
def _join_cells(sample, joined, sigma, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the sample, and those who join its cells."""
    draws, seen = out.shape[0], np.zeros(out.shape[1], np.bool_)
    for row in sample:
        seen |= row > 0
    cells = np.flatnonzero(seen)
    weights, more = np.empty((draws, cells.size)), np.empty((draws, cells.size), np.int64)
    for a in range(draws):
        own = sample[min(a, len(sample) - 1)]
        for j in range(cells.size):
            count = own[cells[j]]
            weights[a, j] = count - sigma[a] if count > 0 else 0.0
    dirichlet_multinomial(joined, weights, limits, rng, more)
    for a in range(draws):
        own = sample[min(a, len(sample) - 1)]
        for j in range(cells.size):
            out[a, cells[j]] += own[cells[j]] + more[a, j]


@njit(cache=True, nogil=True)
def _order(can_open, base, draws, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Order in which the cells that can open would do so, drawn one after the other
    without replacement.

    Exponential times have the weights as rates: the next to arrive is any of those left
    with probability proportional to its weight (Efraimidis & Spirakis 2006). Cells that
    cannot open come last, in as many columns as any row needs.
    """
    some = np.zeros(can_open.shape[1], np.bool_)
    for row in can_open:
        some |= row
    columns = np.flatnonzero(some)
    order = np.empty((draws, columns.size), np.int64)
    if len(can_open) == 1 and base.size == 0:
        for a in range(draws):
            order[a] = columns
            shuffle(order[a], rng)
        return order
    times = np.empty(columns.size)
    for a in range(draws):
        own = can_open[min(a, len(can_open) - 1)]
        for j in range(columns.size):
            times[j] = rng.standard_exponential()
            if base.size:
                times[j] /= base[columns[j]]
            if not own[columns[j]]:
                times[j] = np.inf
        order[a] = columns[np.argsort(times)]
    return order


@njit(cache=True, nogil=True)
def _open_cells(new, order, can_open, weights, limits, rng, joined, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Place the `new` individuals, who open cells with an initial weight of black
    balls; and count those who join the seen cells.

    Once all cells are open, those who are left join any cell; the seen cells, with
    their total weight, then act as one cell.
    """
    black, seen, sigma = weights
    rest, limit = new.copy(), np.empty(new.size, np.int64)
    for a in range(new.size):
        limit[a] = can_open[min(a, len(can_open) - 1)].sum()
    _open_one_by_one(rest, limit, order, black, sigma, limits.in_new_cells, rng, out)
    full = np.flatnonzero(rest > 0)
    if full.size == 0:
        return
    opened = np.zeros(out.shape[1], np.bool_)
    for row in full:
        opened |= out[row] > 0
    cells = np.flatnonzero(opened)
    shares = np.empty((full.size, cells.size + 1))
    for b in range(full.size):
        a = full[b]
        shares[b, 0] = seen[a]
        for j in range(cells.size):
            count = out[a, cells[j]]
            shares[b, j + 1] = count - sigma[a] if count > 0 else 0.0
    added = np.empty(shares.shape, np.int64)
    dirichlet_multinomial(rest[full], shares, limits, rng, added)
    for b in range(full.size):
        joined[full[b]] = added[b, 0]
        for j in range(cells.size):
            out[full[b], cells[j]] += added[b, j + 1]


@njit(cache=True, nogil=True)
def _open_one_by_one(rest, limit, order, black, sigma, most, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
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
            block = 1 + binomial(rest[a] - 1, share, rng)
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
