"""Fully synthetic tables: the posterior predictive distribution of further people in
closed form, listed on a 2 x 2 table."""

from math import factorial, prod

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from exact import assert_same_distribution, dirichlet_multinomial_pmf, tables
from taciturn.errors import ParameterError, TableError
from taciturn.synthesis import synthetic_tables

SAMPLE = xr.DataArray([[2, 1], [0, 3]], dims=("a", "b"), name="count")
DRAWS = 20_000


def toy_fit(populations, population_size):
    """A fit with these populations, (draws, cells), in two chains."""
    draws = xr.DataArray(
        np.reshape(populations, (2, -1, 2, 2)), dims=("chain", "draw", "a", "b")
    ).assign_coords(a=[0, 1], b=[0, 1])
    sample = SAMPLE.assign_coords(a=[0, 1], b=[0, 1])
    return xr.DataTree.from_dict(
        {
            "posterior_predictive": xr.Dataset({"population": draws}),
            "observed_data": xr.Dataset({"count": sample}),
            "constant_data": xr.Dataset({"population_size": population_size}),
        }
    )


@pytest.mark.parametrize("size", [1, 4, 10])
def test_further_people_of_a_dirichlet_multinomial(size):
    """Cells with prior weights 1/2: given the sample the next people are
    Dirichlet-multinomial with weights 1/2 + f, however many follow."""
    rng = np.random.default_rng(7)
    weights = 0.5 + SAMPLE.values.ravel()
    added = rng.multinomial(10, rng.dirichlet(weights, size=DRAWS))
    fit = toy_fit(added + SAMPLE.values.ravel(), 16)
    made = synthetic_tables(fit, size=size, replicates=DRAWS, random_seed=1)
    expected = {x: dirichlet_multinomial_pmf(x, weights) for x in tables(size, 4)}
    assert_same_distribution(made.values.reshape(DRAWS, -1), expected)


def test_further_people_of_the_log_linear_model():
    """Independence with plugged-in margins: multinomial with n_i n_j / n^2."""
    fit = tc.LogLinear().fit(SAMPLE, population_size=40, draws=DRAWS // 4, random_seed=1)
    made = synthetic_tables(fit, size=5, replicates=DRAWS, random_seed=2)
    p = np.outer(SAMPLE.sum("b"), SAMPLE.sum("a")).ravel() / 36
    expected = {
        x: factorial(5) * prod(q**k / factorial(k) for q, k in zip(p, x, strict=True))
        for x in tables(5, 4)
    }
    assert_same_distribution(made.values.reshape(DRAWS, -1), expected)


def test_each_is_from_a_draw_of_its_own():
    rng = np.random.default_rng(7)
    populations = rng.multinomial(10**6, np.full(4, 0.25), size=40) + SAMPLE.values.ravel()
    fit = toy_fit(populations, 10**6 + 6)
    made = synthetic_tables(fit, size=10**6, replicates=40, random_seed=1)
    found = (made + SAMPLE).values.reshape(40, 4)
    assert sorted(found.tolist()) == sorted(populations.tolist())


def test_as_many_as_in_the_sample_and_marked():
    fit = toy_fit(np.full((4, 4), 5), 20)
    made = synthetic_tables(fit, replicates=9, random_seed=1)
    assert (made.sum(["a", "b"]) == 6).all()
    assert made.dtype == np.int64
    assert "not_for_release" in made.attrs
    assert synthetic_tables(fit).attrs == {}
    xr.testing.assert_identical(made, synthetic_tables(fit, replicates=9, random_seed=1))


@pytest.mark.parametrize(("random_seed", "marked"), [(1, True), (None, False), (2**40, False)])
def test_a_fit_with_a_seed_that_can_be_guessed_marks_what_is_made_of_it(random_seed, marked):
    """Whoever guesses the sample, too, draws the populations again, of which people who
    are not in the sample were published.
    """
    fit = tc.LogLinear().fit(SAMPLE, population_size=12, draws=3, random_seed=random_seed)
    assert ("not_for_release" in synthetic_tables(fit).attrs) == marked


def test_all_further_people_beside_known_margins_are_not_for_release():
    """Of these the margins of the sample follow."""
    sizes = xr.DataArray([7, 8], dims="a", name="known")
    given = {"population_size": 15, "known_margins": sizes, "draws": 3}
    fit = tc.DirichletLogLinear().fit(SAMPLE, **given)
    made = synthetic_tables(fit, size=9)
    assert (sizes - made.sum("b") == SAMPLE.sum("b")).all()
    assert "known margins less these" in made.attrs["not_for_release"]
    assert synthetic_tables(fit, size=8).attrs == {}
    fit = tc.DirichletLogLinear().fit(SAMPLE, population_size=15, draws=3)
    assert synthetic_tables(fit, size=9).attrs == {}


def test_they_are_judged_like_other_protections():
    table = tc.load_dataset("area_by_religion")
    sample = tc.draw_sample(table, fraction=0.1, random_seed=1)
    fit = tc.LogLinear().fit(sample, population_size=2449, draws=50, random_seed=1)
    made = synthetic_tables(fit, replicates=20, random_seed=1)
    found = tc.risk_utility(
        {"as it is": sample, "synthetic": made},
        table=sample,
        population=fit["posterior_predictive"]["population"],
    )["R2"]
    assert found.sel(protection="synthetic", statistic="mean") < found.sel(
        protection="as it is", statistic="mean"
    )


def test_what_is_refused():
    fit = toy_fit(np.full((4, 4), 5), 20)
    with pytest.raises(ParameterError, match="size must be a whole number from 1 to 14, got 15"):
        synthetic_tables(fit, size=15)
    with pytest.raises(ParameterError, match="replicates"):
        synthetic_tables(fit, replicates=0)
    few = toy_fit(SAMPLE.values.ravel() + np.full((2, 4), 1), 10)
    with pytest.raises(ParameterError, match="adds 4 people to 6 sampled ones, too few"):
        synthetic_tables(few)
    with pytest.raises(TableError, match="below the sample"):
        synthetic_tables(toy_fit([[0, 6, 7, 7]] * 4, 20))
    with pytest.raises(TableError, match="a fit is an"):
        synthetic_tables("fit")
    large = toy_fit(SAMPLE.values.ravel() + np.full((2, 4), 10**9), 4 * 10**9 + 6)
    with pytest.raises(ParameterError, match="fewer than"):
        synthetic_tables(large)


def test_of_a_sample_that_is_everybody_nothing_can_be_made():
    table = xr.DataArray([[3, 1], [2, 4]], dims=("a", "b"))
    fit = tc.LogLinear().fit(table, population_size=10, draws=20, random_seed=1)
    for size in ({}, {"size": 1}):
        with pytest.raises(ParameterError, match="the sample is all of the 10 people"):
            synthetic_tables(fit, **size, random_seed=1)
