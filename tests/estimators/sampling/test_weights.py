"""Smoothed weights against ArviZ, and what is chosen against NumPy."""

import numpy as np
import pytest

from taciturn.diagnostics import array_stats
from taciturn.estimators.sampling.choosing import choose_places, shuffle
from taciturn.estimators.sampling.importance import resample
from taciturn.estimators.sampling.weights import smooth_tail


def log_weights(seed: int) -> np.ndarray:
    """Of 25 to 3,000 proposals, with tails from nearly none to one weight for all."""
    rng = np.random.default_rng(seed)
    size, scale = int(rng.integers(25, 3000)), rng.choice([1e-3, 0.1, 1.0, 3.0, 30.0])
    found = scale * (rng.normal(size=size) if seed % 2 else -rng.standard_exponential(size))
    found[rng.random(size) < 0.3 * (seed % 3)] = -np.inf if seed % 4 else found.min()
    return found + rng.choice([0.0, 700.0, -1e5])


@pytest.mark.parametrize("seed", range(60))
def test_weights_are_smoothed_as_in_arviz(seed):
    given = log_weights(seed)
    given = given[np.isfinite(given)]
    expected, k_hat = array_stats().psislw(-given)
    found = given.copy()
    assert smooth_tail(found) == pytest.approx(float(k_hat), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found - found.max(), expected - expected.max(), atol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_proposals_are_chosen_by_their_weights(seed):
    """Systematic resampling written down, with the same random numbers."""
    given, number = log_weights(seed), 1 + 17 * seed
    chosen, diagnostics = resample(given, number, np.random.default_rng(seed))
    smoothed = np.where(np.isfinite(given), given, -1e300)
    if np.isfinite(given).mean() > 0.5:
        smooth_tail(smoothed)
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    rng = np.random.default_rng(seed)
    points = (np.arange(number) + rng.random()) / number
    expected = np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)
    assert np.array_equal(chosen, rng.permutation(expected))
    assert diagnostics.ess == pytest.approx(1 / np.sum(weights**2))


def test_few_or_equal_weights_have_no_tail():
    for given in (np.zeros(300), np.array([0.0, -1.0, -2.0]), np.zeros(1)):
        found = given.copy()
        assert smooth_tail(found) == 0.0
        assert np.array_equal(found, given)


def test_one_weight_for_all_is_not_trusted():
    given = np.full(1000, -1e5)
    given[7] = 0.0
    chosen, diagnostics = resample(given, 50, np.random.default_rng(1))
    assert set(chosen.tolist()) == {7}
    assert not diagnostics.converged


def test_weights_that_are_no_numbers_are_not_trusted():
    given = np.random.default_rng(1).normal(size=1000)
    given[5] = np.nan
    chosen, diagnostics = resample(given, 3000, np.random.default_rng(1))
    assert diagnostics.k_hat == np.inf
    assert 5 not in chosen


@pytest.mark.parametrize("size", [0, 1, 2, 3, 64, 65, 70_000])
def test_a_shuffle_is_that_of_numpy(size):
    one, two = np.random.default_rng(size), np.random.default_rng(size)
    for _ in range(3):  # an odd number of 32 random bits are left between them
        found, expected = np.arange(size), np.arange(size)
        shuffle(found, one)
        two.shuffle(expected)
        assert np.array_equal(found, expected)
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.parametrize("places", [1, 2, 7, 4096])
def test_places_are_those_of_numpy(places):
    chance = np.random.default_rng(places).dirichlet(np.full(places, 0.2))
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    found = choose_places(3.0 * chance, 5000, one)  # up to a factor
    assert np.array_equal(found, two.choice(places, size=5000, p=chance))
    assert one.bit_generator.state == two.bit_generator.state
