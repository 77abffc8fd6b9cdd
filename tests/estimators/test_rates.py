"""Mean weights, smoothed over a table."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from taciturn.estimators.rates import smoothed_weights

STEPS = 2_000


def drawn(seed, shape, size, main, own, person):
    """Counts, sums of weights and what these would be on average: logarithms with
    standard deviations by categories, by cells and by person."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(size, rng.dirichlet(np.full(int(np.prod(shape)), 0.5))).reshape(shape)
    logs = np.log(12) + own * rng.normal(size=shape)
    for axis, length in enumerate(shape):
        one = [length if axis == other else 1 for other in range(len(shape))]
        logs = logs + main * rng.normal(size=one)
    totals = np.zeros(shape)
    for cell in zip(*np.nonzero(counts), strict=True):
        noise = person * rng.normal(size=counts[cell]) - person**2 / 2
        totals[cell] = np.exp(logs[cell] + noise).sum()
    return counts, totals, np.exp(logs)


def by_all_effects(counts, totals):
    """The same with an effect for each cell in the equations, none integrated out."""
    occupied = np.nonzero(counts)
    number, mean = counts[occupied], totals[occupied] / counts[occupied]
    size = len(number)
    blocks = [np.ones((size, 1))]
    for axis, place in enumerate(occupied):
        blocks.append(np.eye(counts.shape[axis])[place])
    blocks.append(np.eye(size))
    design = np.concatenate(blocks, axis=1)
    stops = np.cumsum([block.shape[1] for block in blocks])
    of = [slice(stop - block.shape[1], stop) for stop, block in zip(stops, blocks, strict=True)]
    variances, noise = [0.1] * counts.ndim + [0.05], 0.1
    logs = np.full(size, np.log(totals.sum() / counts.sum()))
    for _ in range(STEPS):
        before, expected = logs, np.exp(logs)
        response = logs + np.clip((mean - expected) / expected, -1, 2)
        precision = number / noise
        penalty = np.zeros(design.shape[1])
        for own, variance in zip(of[1:], variances, strict=True):
            penalty[own] = 1 / variance
        data = design.T @ (precision[:, None] * design)
        covariance = np.linalg.inv(data + np.diag(penalty))
        effects = covariance @ (design.T @ (precision * response))
        logs = design @ effects
        found = []
        for own, variance in zip(of[1:], variances, strict=True):
            free = (own.stop - own.start) - np.trace(covariance[own, own]) / variance
            found.append(max((effects[own] ** 2).sum() / max(free, 1e-10), 1e-10))
        left = size - np.trace(covariance @ data)
        if left > 0.5:
            noise = max((number * (response - logs) ** 2).sum() / left, 1e-10)
        variances = found
        if np.abs(logs - before).max() < 1e-6:
            break
    every = np.full(counts.shape, effects[0])
    for axis, own in enumerate(of[1:-1]):
        every = every + effects[own].reshape([-1 if a == axis else 1 for a in range(counts.ndim)])
    every[occupied] = logs
    return np.exp(every)


@pytest.mark.parametrize("spreads", [(0.5, 0.0, 0.5), (0.4, 0.4, 0.5), (0.0, 0.5, 0.2)])
@pytest.mark.parametrize("shape", [(7,), (6, 5), (4, 3, 3)])
def test_it_is_the_fit_with_an_effect_for_each_cell(shape, spreads):
    counts, totals, _ = drawn(3, shape, 80, *spreads)
    np.testing.assert_allclose(
        smoothed_weights(counts, totals), by_all_effects(counts, totals), rtol=1e-4
    )


def test_weights_that_differ_by_category_alone_are_kept():
    counts, totals, true = drawn(1, (6, 5, 4), 400, 0.8, 0.0, 0.0)
    found = smoothed_weights(counts, totals)
    seen = [counts.sum(axis=tuple(a for a in range(3) if a != axis)) > 0 for axis in range(3)]
    known = seen[0][:, None, None] & seen[1][:, None] & seen[2]  # no category without a sample
    assert (counts[known] == 0).any()
    np.testing.assert_allclose(found[known], true[known], rtol=1e-2)


def test_weights_that_differ_by_person_alone_are_the_same_everywhere():
    counts, totals, _ = drawn(2, (10, 8), 200, 0.0, 0.0, 0.5)
    alone = totals[counts > 0] / counts[counts > 0]
    assert np.log(smoothed_weights(counts, totals)).std() < 0.3 * np.log(alone).std()


def test_smoothed_weights_are_nearer_to_the_truth():
    """By a fifth at least, in ten tables whose weights differ in every way."""
    for seed in range(10):
        counts, totals, true = drawn(seed, (10, 6, 3), 300, 0.4, 0.2, 0.6)
        own = counts > 0
        found = np.log(smoothed_weights(counts, totals) / true)[own]
        alone = np.log(totals[own] / counts[own] / true[own])
        assert np.sqrt((found**2).mean()) < 0.8 * np.sqrt((alone**2).mean())


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(1, 1000)), min_size=6, max_size=6).filter(
        lambda cells: any(count for count, _ in cells)
    ),
    st.floats(0.01, 1000),
)
def test_they_are_weights_of_any_scale(cells, scale):
    counts = np.array([count for count, _ in cells]).reshape(2, 3)
    totals = counts * np.array([weight for _, weight in cells]).reshape(2, 3)
    found = smoothed_weights(counts, totals)
    means = totals[counts > 0] / counts[counts > 0]
    assert np.isfinite(found).all()
    most, least = means.max(), means.min()
    assert (found > 0.2 * least**2 / most).all()
    assert (found < 5 * most**2 / least).all()
    own = found[counts > 0]  # an empty cell has the product of what categories have
    assert (own > 0.2 * least).all()
    assert (own < 5 * most).all()
    np.testing.assert_allclose(smoothed_weights(counts, scale * totals), scale * found, rtol=1e-3)
    np.testing.assert_allclose(smoothed_weights(counts.T, totals.T), found.T, rtol=1e-3)
