"""The two-sided geometric mechanism: its exact distribution, what it biases and what it
refuses."""

from math import exp, log

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from perturbed import assert_follows
from taciturn.errors import ParameterError
from taciturn.schema import MAX_COUNT

REACH = 60


def noisy_pmf(count: int, a: float) -> dict[tuple[int], float]:
    """Two-sided geometric around a count; all that lies below zero is at zero."""
    pmf = {(value,): (1 - a) / (1 + a) * a ** abs(value - count) for value in range(count + REACH)}
    pmf[(0,)] = a**count / (1 + a)
    return pmf


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("epsilon", [1, log(2), 3.0])
def test_noise_follows_its_exact_distribution(count, epsilon):
    noisy = tc.add_noise(
        xr.DataArray([count], dims="x"), epsilon=epsilon, replicates=20_000, random_seed=1
    )
    assert_follows(noisy, noisy_pmf(count, exp(-epsilon)))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_the_bias_is_the_documented_one(count):
    a = 0.5
    mean = sum(value * p for (value,), p in noisy_pmf(count, a).items())
    assert mean == pytest.approx(count + a ** (count + 1) / (1 - a**2), abs=1e-12)


@pytest.mark.parametrize("count", [0, 3])
def test_one_person_changes_no_chance_by_more_than_epsilon(count):
    a = exp(-0.7)
    one, other = noisy_pmf(count, a), noisy_pmf(count + 1, a)
    assert max(abs(log(one[value] / other[value])) for value in one) <= 0.7 + 1e-12


def test_cells_get_noise_of_their_own():
    noisy = tc.add_noise(
        xr.DataArray([50, 50], dims="x"), epsilon=0.5, replicates=5000, random_seed=2
    )
    assert abs(float(xr.corr(noisy[:, 0], noisy[:, 1]))) < 0.1
    # Variance 2 a / (1 - a)^2 with a = exp(-1/2).
    assert float(noisy.var("replicate").mean()) == pytest.approx(
        2 * exp(-0.5) / (1 - exp(-0.5)) ** 2, rel=0.1
    )


@pytest.mark.parametrize("epsilon", [1e-320, 1e-15])
def test_hardly_any_epsilon_leaves_nothing_of_a_count(epsilon):
    noisy = tc.add_noise(
        xr.DataArray([MAX_COUNT - 5, 5], dims="x"), epsilon=epsilon, replicates=200, random_seed=1
    )
    assert int(noisy.min()) == 0
    assert int(noisy.max()) == MAX_COUNT
    assert not bool((noisy.isel(x=1) == 5).any())


def test_a_large_epsilon_leaves_the_table():
    table = tc.load_dataset("area_by_sex")
    assert bool((tc.add_noise(table, epsilon=1e6) == table).all())


def test_a_million_cells():
    table = xr.DataArray(np.random.default_rng(1).poisson(2, (1000, 1000)), dims=("a", "b"))
    noisy = tc.add_noise(table, epsilon=1, random_seed=1)
    assert noisy.sizes == {"replicate": 1, "a": 1000, "b": 1000}
    assert int(noisy.sum()) > int(table.sum())


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan"), True, "1", None])
def test_bad_epsilon(epsilon):
    with pytest.raises(
        ParameterError, match=f"epsilon must be a finite number above 0, got {epsilon!r}"
    ):
        tc.add_noise(xr.DataArray([1, 2], dims="x"), epsilon=epsilon)


def test_bad_replicates():
    with pytest.raises(ParameterError, match="at least 1, got 0"):
        tc.add_noise(xr.DataArray([1, 2], dims="x"), epsilon=1, replicates=0)
