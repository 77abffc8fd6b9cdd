"""Compiled steps over the tables that are compatible with a release: list them all, or
walk among them.

Cells stand first in a state, followed by the totals that are intervals, each with its
bounds. A direction is a whole-number vector that leaves all other totals as they are.
A `weighting` is `log_mean`, `weight_at` and `log_weights`. Where the first two are
empty all tables are equally likely. With `log_mean` a cell is Poisson with that log
mean, and totals have no weight of their own. With `weight_at` each cell and each total
has a log weight for each of its values, of which the first stands there in
`log_weights`.
"""

from math import exp, log

import numpy as np
from numba import njit

__all__ = ["list_tables", "walk"]

_COMBINED = 0.5  # probability that the random step of a pass is along a combination, not one move
_FURTHER = 0.5  # probability of one more vector in a combination, each time
_NEAR = 0.5  # probability that it is one that takes a cell out of the combination
_NEGLIGIBLE = 1e-18  # weight, relative to the largest, at which the two tails of a line are cut


@njit(cache=True, nogil=True)
def list_tables(starts, rows, least, most, lower, upper, limit, visits, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Number of tables, and the tables in `out` as far as it has room; -1 for more than
    `limit`, or too long a search.

    Depth first, a cell at a time, over the values that its totals allow with all later
    cells at their bounds. `starts` and `rows` say which totals hold a cell.
    """
    n = lower.size
    low, high = np.zeros(least.size, np.int64), np.zeros(least.size, np.int64)
    for j in range(n):
        for k in range(starts[j], starts[j + 1]):
            low[rows[k]] += lower[j]
            high[rows[k]] += upper[j]
    value, last = np.empty(n, np.int64), np.empty(n, np.int64)
    found, depth, forward = 0, 0, True
    while depth >= 0:
        visits -= 1
        if visits < 0:
            return -1
        if depth == n:
            if found == limit:
                return -1
            if found < out.shape[0]:
                out[found] = value
            found += 1
            depth -= 1
            forward = False
            continue
        if forward:
            first, end = lower[depth], upper[depth]
            for k in range(starts[depth], starts[depth + 1]):
                r = rows[k]
                first = max(first, least[r] - high[r] + upper[depth])
                end = min(end, most[r] - low[r] + lower[depth])
            value[depth], last[depth] = first, end
            usable = first <= end
            change_low, change_high = first - lower[depth], first - upper[depth]
        else:
            usable = value[depth] < last[depth]
            change_low = change_high = np.int64(1)
            if usable:
                value[depth] += 1
            else:
                change_low, change_high = lower[depth] - value[depth], upper[depth] - value[depth]
        if usable or not forward:
            for k in range(starts[depth], starts[depth + 1]):
                low[rows[k]] += change_low
                high[rows[k]] += change_high
        forward = usable
        depth += 1 if usable else -1
    return found


@njit(cache=True, nogil=True)
def walk(  # type: ignore[no-untyped-def] # pragma: no cover
    state,
    lower,
    upper,
    move_starts,
    move_at,
    move_by,
    basis,
    held_starts,
    held_by,
    weighting,
    passes,
    hist_at,
    width,
    hist,
    out,
    rng,
):
    """Draw `out.shape[0]` tables, and add the distribution of every step to `hist`
    where that is not empty.

    Each pass goes along every vector of the basis, the first `basis` of the moves, and
    after each along a random direction: a move, or a sum of moves that can be any
    vector of the lattice. `held_starts` and `held_by` say which moves change a cell.
    `hist_at` is where the values of a cell begin in `hist`, a place for each `width` of
    them, and one more; differences of neighbouring places are kept there.
    """
    n, moves = state.size, move_starts.size - 1
    cells = out.shape[1]
    dense = np.zeros(n, np.int64)
    at, by = np.empty(n, np.int64), np.empty(n, np.int64)
    weighted = weighting[0].size > 0 or weighting[1].size > 0
    weights = np.empty((upper - lower).max() + 1 if weighted else 1)
    for draw in range(out.shape[0]):
        for step in range(2 * basis * passes):
            if step % 2 == 0:
                size = _one_move((step // 2) % basis, move_starts, move_at, move_by, at, by)
            elif rng.random() < _COMBINED:
                size = _combination(
                    moves, move_starts, move_at, move_by, held_starts, held_by, dense, at, by, rng
                )
            else:
                size = _one_move(int(rng.random() * moves), move_starts, move_at, move_by, at, by)
            if size > 0:
                _along(
                    state,
                    lower,
                    upper,
                    at[:size],
                    by[:size],
                    weighting,
                    weights,
                    cells,
                    hist_at,
                    width,
                    hist,
                    rng,
                )
        out[draw] = state[:cells]


@njit(cache=True, nogil=True)
def _one_move(move, move_starts, move_at, move_by, at, by):  # type: ignore[no-untyped-def] # pragma: no cover
    size = move_starts[move + 1] - move_starts[move]
    for k in range(size):
        at[k] = move_at[move_starts[move] + k]
        by[k] = move_by[move_starts[move] + k]
    return size


@njit(cache=True, nogil=True)
def _combination(moves, move_starts, move_at, move_by, held_starts, held_by, dense, at, by, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """A sum of two or more moves, divided by the common divisor of its entries; 0
    entries where they cancel.
    """
    size = _one_move(int(rng.random() * moves), move_starts, move_at, move_by, at, by)
    for k in range(size):
        dense[at[k]] = by[k]
    more = True
    while more:
        if size > 0 and rng.random() < _NEAR:
            cell = at[int(rng.random() * size)]
            move = held_by[
                held_starts[cell] + int(rng.random() * (held_starts[cell + 1] - held_starts[cell]))
            ]
            sign = -1
            for k in range(move_starts[move], move_starts[move + 1]):
                if move_at[k] == cell and (move_by[k] > 0) != (dense[cell] > 0):
                    sign = 1
        else:
            move = int(rng.random() * moves)
            sign = 1 if rng.random() < 0.5 else -1
        # Entries that have become zero stay in `at` until the end of this step, so that
        # none stands twice.
        for k in range(move_starts[move], move_starts[move + 1]):
            j = move_at[k]
            if dense[j] == 0:
                known = False
                for i in range(size):
                    known = known or at[i] == j
                if not known:
                    at[size] = j
                    size += 1
            dense[j] += sign * move_by[k]
        kept = 0
        for k in range(size):
            if dense[at[k]] != 0:
                at[kept] = at[k]
                kept += 1
        size = kept
        more = rng.random() < _FURTHER
    divisor = np.int64(0)
    for k in range(size):
        rest = abs(dense[at[k]])
        while rest:
            divisor, rest = rest, divisor % rest
    for k in range(size):
        by[k] = dense[at[k]] // divisor
        dense[at[k]] = 0
    return size


@njit(cache=True, nogil=True)
def _along(state, lower, upper, at, by, weighting, weights, cells, hist_at, width, hist, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Draw the next table from those on the line through the state, whose distribution
    is exact.
    """
    log_mean, weight_at, log_weights = weighting
    first, last = np.int64(-(2**62)), np.int64(2**62)
    for k in range(at.size):
        j, d = at[k], by[k]
        down, up = lower[j] - state[j], upper[j] - state[j]
        if d < 0:
            d, down, up = -d, -up, -down
        first, last = max(first, -((-down) // d)), min(last, up // d)
    if log_mean.size == 0 and weight_at.size == 0:
        length = last - first + 1
        if hist.size > 0:
            for k in range(at.size):
                if at[k] < cells:
                    j, d = at[k], abs(by[k])
                    begin = state[j] - lower[j] + (by[k] * first if by[k] > 0 else by[k] * last)
                    _spread(hist, hist_at[j], begin, d, length, width[j])
        t = first + int(rng.random() * length)
    else:
        if weight_at.size == 0:
            first, length, total = _line_weights(state, at, by, log_mean, first, last, weights)
        else:
            length = last - first + 1
            total = _tabled_weights(
                state, lower, at, by, weight_at, log_weights, first, weights[:length]
            )
        if hist.size > 0:
            for k in range(at.size):
                if at[k] < cells:
                    j = at[k]
                    value = hist_at[j] + state[j] - lower[j] + by[k] * first
                    for i in range(length):
                        _put(hist, value + i * by[k], weights[i] / total)
        t = first + _drawn(weights[:length], rng.random() * total)
    if t != 0:
        for k in range(at.size):
            state[at[k]] += t * by[k]


@njit(cache=True, nogil=True)
def _drawn(weights, rest):  # type: ignore[no-untyped-def] # pragma: no cover
    """The place at which cumulated weights exceed `rest`, of those that have any."""
    i = 0
    while i < weights.size - 1 and rest >= weights[i]:
        rest -= weights[i]
        i += 1
    while weights[i] == 0:
        i -= 1
    return i


@njit(cache=True, nogil=True)
def _put(hist, place, weight):  # type: ignore[no-untyped-def] # pragma: no cover
    hist[place] += weight
    hist[place + 1] -= weight


@njit(cache=True, nogil=True)
def _spread(hist, start, begin, by, length, width):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a uniform distribution over `length` values, `by` apart, from `begin` on."""
    if width == 1:
        if by == 1:
            hist[start + begin] += 1.0 / length
            hist[start + begin + length] -= 1.0 / length
        else:
            for i in range(length):
                _put(hist, start + begin + i * by, 1.0 / length)
        return
    # Places hold several values each: the values count as spread evenly from the first
    # to the last.
    stop = begin + (length - 1) * by + 1
    one, other = begin // width, (stop - 1) // width
    share = 1.0 / (stop - begin)
    if one == other:
        _put(hist, start + one, 1.0)
        return
    _put(hist, start + one, share * ((one + 1) * width - begin))
    _put(hist, start + other, share * (stop - other * width))
    hist[start + one + 1] += share * width
    hist[start + other] -= share * width


@njit(cache=True, nogil=True)
def _line_weights(state, at, by, log_mean, first, last, weights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Relative weights of the tables on a line: where they begin, how many there are,
    their sum.

    The logarithm is concave, so that the largest is found by bisection, and tails are
    cut on both sides of it.
    """
    one, other = first, last
    while one < other:
        middle = (one + other) // 2
        if _log_ratio(state, at, by, log_mean, middle) > 0:
            one = middle + 1
        else:
            other = middle
    mode = one
    begin, value = mode, 0.0
    while begin > first:
        value -= _log_ratio(state, at, by, log_mean, begin - 1)
        if exp(value) < _NEGLIGIBLE:
            break
        begin -= 1
        weights[mode - begin] = exp(value)
    below = mode - begin
    for i in range(1, below // 2 + 1):
        weights[i], weights[below + 1 - i] = weights[below + 1 - i], weights[i]
    for i in range(below):
        weights[i] = weights[i + 1]
    weights[below] = 1.0
    end, value = mode, 0.0
    while end < last:
        value += _log_ratio(state, at, by, log_mean, end)
        if exp(value) < _NEGLIGIBLE:
            break
        end += 1
        weights[end - begin] = exp(value)
    length = end - begin + 1
    total = 0.0
    for i in range(length):
        total += weights[i]
    return begin, length, total


@njit(cache=True, nogil=True)
def _tabled_weights(state, lower, at, by, weight_at, log_weights, first, weights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill in the relative weights of all tables on a line, the largest of which is 1;
    their sum.
    """
    weights[:] = 0
    for k in range(at.size):
        j = at[k]
        place = weight_at[j] + state[j] - lower[j] + first * by[k]
        for i in range(weights.size):
            weights[i] += log_weights[place + i * by[k]]
    largest, total = weights.max(), 0.0
    for i in range(weights.size):
        weights[i] = exp(weights[i] - largest)
        total += weights[i]
    return total


@njit(cache=True, nogil=True)
def _log_ratio(state, at, by, log_mean, t):  # type: ignore[no-untyped-def] # pragma: no cover
    """Log of the weight at ``t + 1`` over that at `t`."""
    found = 0.0
    for k in range(at.size):
        j, d = at[k], by[k]
        if j >= log_mean.size:
            continue
        value = state[j] + t * d
        found += d * log_mean[j]
        for i in range(1, d + 1):
            found -= log(value + i)
        for i in range(-d):
            found += log(value - i)
    return found
