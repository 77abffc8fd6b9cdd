"""Compiled loops over points: the logarithm of the likelihood of a sample, how it and
the priors bend, and where their product is highest.

What all of them are given: `sample`, ``(counts, columns, of_cell, log_sizes,
log_cells)``, the counts of the cells, the levels that each is made of, its stratum, and
logarithms of the sizes of the strata and of the number of cells; `model`, ``(basis,
places, normal)``, what levels are made of, without columns where they are the effects,
the first effect of each group and the one after its last, and which groups are
coordinates of an interaction; and `points`, ``(logs, sums, strength, log_nu, power,
share, inflation)`` as in `Points`, with concentrations and precisions instead of their
logarithms.
"""

import math

import numpy as np

from taciturn.estimators.mixed_poisson.kernels import (
    LEAST_MEAN,
    LOG_SHAPES,
    compiled,
    counted_gamma,
    counted_inverse_gaussian,
    log_empty,
    solve_back,
    solve_forward,
)
from taciturn.estimators.mixed_poisson.slopes import gamma, inflated, inverse_gaussian, mixture

__all__ = ["LEAST", "bend", "climb", "factor_information", "sum_likelihood"]

LEAST = 0.2
"""Information about an intensity, and in any direction."""
_HIGH = 1e250  # of a product, or its inverse, before its logarithm is taken


@compiled
def sum_likelihood(sample, model, points, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out` with the sum over the cells of ``log f! p(f)`` for each point."""
    counts, number = sample[0], sample[0].size
    logs, _, _, log_nu, power, shares, inflations = points
    levels, cells = np.empty(model[0].shape[0]), _cells(sample)
    log_mean, mean, log_shape, _ = cells
    for a in range(log_nu.size):
        _fill_cells(sample, model, logs[a], log_nu[a], power[a], levels, cells)
        share, inflation = shares[a], inflations[a]
        log_filled = math.log1p(-inflation)
        first = math.log1p(-share) if share < 1.0 else -np.inf
        second = math.log(share) if share > 0.0 else -np.inf
        total, either = 0.0, 1.0  # of logarithms, and what a logarithm is still to be taken of
        for i in range(number):
            f, x, y, m = counts[i], log_mean[i], log_shape[i], mean[i]
            r = math.exp(y)
            if inflation > 0.0:
                if f == 0:
                    empty = math.exp(log_filled + log_empty(m, r, share))
                    either *= inflation + empty
                    if either < 1.0 / _HIGH:
                        total += math.log(either)
                        either = 1.0
                    continue
                total += log_filled
            of_gamma, of_other = -np.inf, -np.inf
            if share < 1.0:
                excess = math.log1p(m / r)
                of_gamma = first - r * excess
                if f > 0:
                    of_gamma += counted_gamma(f, x, y, r, excess)
            if share > 0.0:
                s = math.sqrt(1.0 + 2.0 * m / r)
                of_other = second - 2.0 * m / (1.0 + s)
                if f > 0:
                    of_other += counted_inverse_gaussian(f, x, r, s)
            total += max(of_gamma, of_other)
            if 0.0 < share < 1.0:
                either *= 1.0 + math.exp(-abs(of_gamma - of_other))
                if either > _HIGH:
                    total += math.log(either)
                    either = 1.0
        out[a] = total + math.log(either)


@compiled
def bend(sample, model, points, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the arrays of `Bends` at all points."""
    work = _work(sample, model)
    for a in range(points[3].size):
        _bend(a, sample, model, points, work, out)


@compiled
def climb(sample, model, points, exponents, near, most, out, roots):  # type: ignore[no-untyped-def] # pragma: no cover
    """Move each point by Newton's method to where powers of rates and intensities have
    the largest density, until a step is at most `near`, or for `most` steps; fill the
    arrays of `Bends`, and roots of the information, where the last step began. Where
    there is no step, logs are no numbers.
    """
    work, (logs, sums) = _work(sample, model), points[:2]
    slopes, _, between, of_means, own_sums = out
    strata = of_means.shape[1]
    step, rest = np.empty(logs.shape[1]), np.empty(logs.shape[1] - strata)
    for a in range(logs.shape[0]):
        for _ in range(most):
            _bend(a, sample, model, points, work, out)
            _root(a, out, roots)
            for c in range(rest.size):
                rest[c] = slopes[a, strata + c] - exponents[a, strata + c]
                for j in range(strata):
                    ratio = (slopes[a, j] - exponents[a, j]) / of_means[a, j]
                    rest[c] -= ratio * between[a, j, c]
            solve_forward(roots[a], rest)
            solve_back(roots[a], rest)
            total = 0.0
            for c in range(rest.size):
                total += rest[c]
            if not math.isfinite(total):
                _fill(logs[a], math.nan)
                break
            for c in range(rest.size):
                step[strata + c] = min(max(rest[c], -1.0), 1.0)
            for j in range(strata):
                along = slopes[a, j] - exponents[a, j]
                for c in range(rest.size):
                    along -= between[a, j, c] * step[strata + c]
                step[j] = min(max(along / of_means[a, j], -1.0), 1.0)
            longest = 0.0
            for c in range(step.size):
                logs[a, c] += step[c]
                longest = max(longest, abs(step[c]))
            for v in range(sums.shape[1]):  # the step was for the sums as they were
                longest = max(longest, abs(own_sums[a, v] - sums[a, v]) / sums[a, v])
                sums[a, v] = own_sums[a, v]
            if longest <= near:
                break


@compiled
def factor_information(out, roots):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `roots` with Cholesky factors of the information about effects, whatever the
    intensities, from the arrays of `Bends`.
    """
    for a in range(roots.shape[0]):
        _root(a, out, roots)


@compiled
def _root(a, out, roots):  # type: ignore[no-untyped-def] # pragma: no cover
    """That of one point; with the least information in directions that have less, where
    some has none.
    """
    _, bends, between, of_means, _ = out
    root, size = roots[a], bends.shape[1]
    information = np.empty((size, size))
    _copy(bends[a], information)
    for j in range(of_means.shape[1]):
        for c in range(size):
            carried = between[a, j, c] / of_means[a, j]
            for d in range(size):
                information[c, d] -= carried * between[a, j, d]
    if _factor(information, root):
        return
    for value in information.flat:
        if not math.isfinite(value):
            _fill(root, math.nan)
            return
    values, vectors = np.linalg.eigh(information)
    if not _factor((vectors * np.maximum(values, LEAST)) @ vectors.T, root):
        _fill(root, math.nan)  # rounding is more than the least


@compiled
def _factor(matrix, root):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `root` with the Cholesky factor; whether there is one."""
    _fill(root, 0.0)
    for c in range(matrix.shape[0]):
        for d in range(c + 1):
            rest = matrix[c, d]
            for k in range(d):
                rest -= root[c, k] * root[d, k]
            if c > d:
                root[c, d] = rest / root[d, d]
            elif rest > 0.0:
                root[c, c] = math.sqrt(rest)
            else:
                return False
    return True


@compiled
def _bend(a, sample, model, points, work, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the arrays of `Bends` at one point."""
    basis = model[0]
    logs, _, _, log_nu, power, shares, inflations = points
    slopes, bends, between, of_means, sums = out
    levels, cells, by_level, pairs, with_means, own = work
    strata = of_means.shape[1]
    _fill_cells(sample, model, logs[a], log_nu[a], power[a], levels, cells)
    for values in (slopes[a], of_means[a], by_level, own):
        _fill(values, 0.0)
    for values in (pairs, with_means):
        _fill(values, 0.0)
    here = slopes[a, :strata], of_means[a], by_level, pairs, with_means, own
    _bend_likelihood(sample, cells, power[a], shares[a], inflations[a], here)
    if basis.shape[1] > 0:
        _copy(by_level @ basis, slopes[a, strata:])
        _copy(basis.T @ (pairs @ basis), bends[a])
        _copy(with_means @ basis, between[a])
    else:
        _copy(by_level, slopes[a, strata:])
        _copy(pairs, bends[a])
        _copy(with_means, between[a])
    for j in range(strata):
        of_means[a, j] = max(of_means[a, j], LEAST)
    _bend_priors(a, model, points, slopes[a, strata:], bends[a])
    for margin in range(sums.shape[1]):
        start, stop = model[1][margin]
        sums[a, margin] = (stop - start) * points[2][a, margin]
        for c in range(start, stop):
            sums[a, margin] += max(own[c], 0.0)


@compiled
def _bend_likelihood(sample, cells, power, share, inflation, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add derivatives of the likelihood of one point by intensities and levels, second
    ones with the sign changed: by intensities, once and twice, by levels, by pairs of
    these, by both, and twice by levels without what each takes from other cells.
    """
    counts, columns, of_cell, _, _, _ = sample
    log_mean, mean, log_shape, within = cells
    by_means, of_means, by_level, pairs, with_means, own = out
    strata, size, terms = of_means.size, by_level.size, columns.shape[1]
    weight, expected = np.empty(counts.size), np.zeros((strata, size))
    slope_of, both_of = np.zeros(strata), np.zeros(strata)
    log_odds = math.log(share) - math.log1p(-share) if 0.0 < share < 1.0 else 0.0
    log_filled = math.log1p(-inflation) - math.log(inflation) if inflation > 0.0 else 0.0
    for i in range(counts.size):
        f, m, r = counts[i], mean[i], math.exp(log_shape[i])
        ratio = m / r
        if share <= 0.0:
            found = gamma(f, r, ratio, math.log1p(ratio))
        else:
            s = math.sqrt(1.0 + 2.0 * ratio)
            if share >= 1.0:
                found = inverse_gaussian(f, r, m, ratio, s)
            else:
                given = log_mean[i], log_shape[i], m, r, ratio, math.log1p(ratio), s
                found = mixture(f, *given, log_odds)
        if f == 0 and inflation > 0.0:
            found = inflated(found, log_empty(m, r, share), log_filled)
        by_mean, by_shape, bend_mean, bend_both, bend_shape = found
        j = of_cell[i]
        slope, both = by_mean + power * by_shape, bend_mean + power * bend_both
        weight[i] = both + power * (bend_both + power * bend_shape)
        by_means[j] += by_mean
        of_means[j] += bend_mean
        slope_of[j] += slope
        both_of[j] += both
        for k in range(terms):
            c = columns[i, k]
            by_level[c] += slope
            with_means[j, c] += both
            expected[j, c] += within[i]
            own[c] += weight[i]
    of_strata = slope_of, both_of, expected
    _take_from_others(sample, within, weight, of_strata, by_level, pairs, with_means)


@compiled
def _take_from_others(sample, within, weight, of_strata, by_level, pairs, with_means):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add second derivatives by pairs of levels from those of the cells, `weight`, and
    take from all derivatives what a level takes from the other cells of a stratum.
    """
    _, columns, of_cell, _, _, _ = sample
    slope_of, both_of, expected = of_strata
    strata, size = expected.shape
    held, weight_of = np.zeros((strata, size)), np.zeros(strata)
    for i in range(of_cell.size):
        j = of_cell[i]
        w = weight[i] + slope_of[j] * within[i]
        weight_of[j] += w
        for k in range(columns.shape[1]):
            c = columns[i, k]
            held[j, c] += w
            pairs[c, c] += w
            for other in range(k):
                pairs[c, columns[i, other]] += w
                pairs[columns[i, other], c] += w
    for j in range(strata):
        for c in range(size):
            by_level[c] -= slope_of[j] * expected[j, c]
            with_means[j, c] -= both_of[j] * expected[j, c]
            held[j, c] -= 0.5 * weight_of[j] * expected[j, c]
        for c in range(size):
            for d in range(size):
                pairs[c, d] -= expected[j, c] * held[j, d] + held[j, c] * expected[j, d]


@compiled
def _bend_priors(a, model, points, slopes, bends):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add what the priors of margins and coordinates, and the distribution of the sums
    of rates, do at one point.
    """
    _, places, normal = model
    effects = points[0][a, points[0].shape[1] - slopes.size :]
    for group in range(normal.size):
        start, stop = places[group]
        strength = points[2][a, group]
        if normal[group]:
            for c in range(start, stop):
                slopes[c] -= strength * effects[c]
                bends[c, c] += strength
            continue
        margin, total = np.empty(stop - start), 0.0
        for c in range(margin.size):
            margin[c] = math.exp(effects[start + c])
            total += margin[c]
        more = points[1][a, group] - (stop - start) * strength
        for c in range(start, stop):
            share = more * margin[c - start] / total
            slopes[c] += strength + share - margin[c - start]
            bends[c, c] += margin[c - start] - share
            for d in range(start, stop):
                bends[c, d] += share * margin[d - start] / total


@compiled
def _fill(values, value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Set all values; by a loop, as Numba takes a second to compile what arrays do."""
    for k in range(values.size):
        values.flat[k] = value


@compiled
def _copy(source, target):  # type: ignore[no-untyped-def] # pragma: no cover
    """Copy all values of an array to another of its shape."""
    for k in range(source.size):
        target.flat[k] = source.flat[k]


@compiled
def _work(sample, model):  # type: ignore[no-untyped-def] # pragma: no cover
    """Arrays for one point after the other."""
    size, strata = model[0].shape[0], sample[3].size
    cells, with_means = _cells(sample), np.empty((strata, size))
    own = np.empty(size), np.empty((size, size)), with_means, np.empty(size)
    return np.empty(size), cells, *own


@compiled
def _cells(sample):  # type: ignore[no-untyped-def] # pragma: no cover
    """Arrays for the mean, its logarithm, that of the shape, and the share of its
    stratum of each cell.
    """
    number = sample[0].size
    return np.empty(number), np.empty(number), np.empty(number), np.empty(number)


@compiled
def _fill_cells(sample, model, logs, log_nu, power, levels, cells):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the arrays of `_cells` and the levels for one point, means and shapes within
    what their products can hold.
    """
    _, columns, of_cell, log_sizes, log_cells, log_rates = sample
    log_mean, mean, log_shape, within = cells
    strata = log_sizes.size
    if model[0].shape[1] > 0:
        _copy(model[0] @ logs[strata:], levels)
    else:
        _copy(logs[strata:], levels)
    highest, sums = np.empty(strata), np.zeros(strata)
    shift, scale = np.empty(strata), np.empty(strata)
    _fill(highest, -math.inf)
    for i in range(of_cell.size):
        total = 0.0
        for k in range(columns.shape[1]):
            total += levels[columns[i, k]]
        log_mean[i] = total
        highest[of_cell[i]] = max(highest[of_cell[i]], total)
    for i in range(of_cell.size):
        log_mean[i] -= highest[of_cell[i]]
        within[i] = math.exp(log_mean[i])
        sums[of_cell[i]] += within[i]
    for j in range(strata):
        shift[j] = log_sizes[j] - math.log(sums[j])
        scale[j] = math.exp(logs[j] + shift[j])
    for i in range(of_cell.size):
        j = of_cell[i]
        log_share = log_mean[i] + shift[j]
        log_shape[i] = log_nu + power * (log_cells + log_share)
        log_shape[i] = min(max(log_shape[i], LOG_SHAPES[0]), LOG_SHAPES[1])
        log_mean[i] = max(logs[j] + log_share + log_rates[i], LEAST_MEAN)
        mean[i] = scale[j] * within[i]
        if log_rates[i] != 0.0:
            mean[i] *= math.exp(log_rates[i])
        mean[i] = max(mean[i], math.exp(LEAST_MEAN))
        within[i] /= sums[j]
