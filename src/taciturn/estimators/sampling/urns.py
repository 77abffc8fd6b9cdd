"""Compiled: tables from an urn with black balls, which continues a sample or starts
from nothing.
"""

import numpy as np
from numba import njit

from taciturn.estimators.sampling.choosing import shuffle
from taciturn.estimators.sampling.kernels import binomial, dirichlet_multinomial

__all__ = ["complete_sample"]


@njit(cache=True, nogil=True)
def complete_sample(sample, empty, missing, urn, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill each row of `out` with the sample and `missing` more individuals.

    The sample and the cells that can open have one row, or one for each draw; a sample
    may have nobody. An urn is θ and σ of each draw and the weights of the cells that
    open, none if these are equal and the same cells can open in each draw.
    """
    theta, sigma, base = urn
    draws, cells = out.shape
    seen, black, left = np.zeros(draws), np.empty(draws), np.empty(draws, np.int64)
    limit, new = np.zeros(draws, np.int64), np.zeros(draws, np.int64)
    for a in range(draws):
        own, can_open, filled = min(a, len(sample) - 1), min(a, len(empty) - 1), 0
        for i in range(cells):
            seen[a] += sample[own, i]
            filled += sample[own, i] > 0
            limit[a] += empty[can_open, i]
        seen[a] -= filled * sigma[a]
        black[a] = theta[a] + filled * sigma[a]
        left[a] = missing[min(a, len(missing) - 1)]
    _share_out(black, seen, limit, left, rng, new)
    order = _order(empty, base, draws, rng)
    for a in range(draws):
        left[a] -= new[a]
        seen[a] += left[a]
    for a in range(draws):
        for i in range(cells):
            out[a, i] = 0
    _open_cells(new, limit, order, (black, seen, sigma), limits, rng, left, out)
    _join_cells(sample, left, sigma, limits, rng, out)


@njit(cache=True, nogil=True)
def _share_out(black, seen, limit, left, rng, new):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill how many of those left are in new cells: a beta-binomial number, nobody
    where no cell can open, and all where nobody is seen.
    """
    share, some = np.zeros(new.size), False
    for a in range(new.size):
        if seen[a] > 0.0 and black[a] > 0.0 and limit[a] > 0:
            share[a], some = rng.beta(black[a], seen[a]), True
    for a in range(new.size):
        if some:
            new[a] = rng.binomial(left[a], share[a])
        if seen[a] <= 0.0:
            new[a] = left[a]


@njit(cache=True, nogil=True)
def _join_cells(sample, joined, sigma, limits, rng, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the sample, and those who join its cells."""
    cells = np.empty(out.shape[1], np.int64)
    draws, found = out.shape[0], _columns(sample, cells)
    if found == 0:
        return
    weights, more = np.zeros((draws, found)), np.empty((draws, found), np.int64)
    for a in range(draws):
        own = min(a, len(sample) - 1)
        for j in range(found):
            if sample[own, cells[j]] > 0:
                weights[a, j] = sample[own, cells[j]] - sigma[a]
    dirichlet_multinomial(joined, weights, limits, rng, more)
    for a in range(draws):
        own = min(a, len(sample) - 1)
        for j in range(found):
            out[a, cells[j]] += sample[own, cells[j]] + more[a, j]


@njit(cache=True, nogil=True)
def _columns(rows, columns):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the columns in which any row is above 0; return how many these are."""
    found = 0
    for i in range(rows.shape[1]):
        for a in range(len(rows)):
            if rows[a, i] > 0:
                columns[found] = i
                found += 1
                break
    return found


@njit(cache=True, nogil=True)
def _order(can_open, base, draws, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Order in which the cells that can open would do so, drawn one after the other
    without replacement.

    Exponential times have the weights as rates: the next to arrive is any of those left
    with probability proportional to its weight (Efraimidis & Spirakis 2006). Cells that
    cannot open come last, in as many columns as any row needs.
    """
    columns = np.empty(can_open.shape[1], np.int64)
    found = _columns(can_open, columns)
    order, times = np.empty((draws, found), np.int64), np.empty(found)
    for a in range(draws):
        for j in range(found):
            order[a, j] = columns[j]
        if base.size == 0:
            shuffle(order[a], rng)
            continue
        own = min(a, len(can_open) - 1)
        for j in range(found):
            times[j] = rng.standard_exponential() / base[columns[j]]
            if not can_open[own, columns[j]]:
                times[j] = np.inf
        by_time = np.argsort(times)
        for j in range(found):
            order[a, j] = columns[by_time[j]]
    return order


@njit(cache=True, nogil=True)
def _open_cells(new, limit, order, weights, limits, rng, joined, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Place the `new` individuals, who open cells with an initial weight of black
    balls; and add those who join the seen cells.

    Once all cells are open, those who are left join any cell; the seen cells, with
    their total weight, then act as one cell.
    """
    black, seen, sigma = weights
    _open_one_by_one(new, limit, order, black, sigma, limits.in_new_cells, rng, out)
    full, rows = np.empty(new.size, np.int64), 0
    for a in range(new.size):
        if new[a] > 0:
            full[rows] = a
            rows += 1
    if rows == 0:
        return
    cells, found = np.empty(out.shape[1], np.int64), 0
    for i in range(out.shape[1]):
        for b in range(rows):
            if out[full[b], i] > 0:
                cells[found] = i
                found += 1
                break
    shares, rest = np.zeros((rows, found + 1)), np.empty(rows, np.int64)
    for b in range(rows):
        a = full[b]
        rest[b], shares[b, 0] = new[a], seen[a]
        for j in range(found):
            if out[a, cells[j]] > 0:
                shares[b, j + 1] = out[a, cells[j]] - sigma[a]
    added = np.empty(shares.shape, np.int64)
    dirichlet_multinomial(rest, shares, limits, rng, added)
    for b in range(rows):
        joined[full[b]] += added[b, 0]
        for j in range(found):
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
