"""Simulation-based calibration: a known model passes, a wrong one fails, and so do the
package's estimators.

Each test has level 1e-6 / m for its m quantities, at a fixed seed. Resolution: with 300
simulations in 10 bins a quantity whose 95 % intervals hold it in 85 % of simulations
fails with near certainty."""

import json

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from exact import ALPHA
from taciturn.errors import ParameterError
from taciturn.studies.calibration import rank_with_ties, uniformity
from toys import Coins

pytestmark = pytest.mark.statistical

TWO_CELLS = xr.DataArray([0, 0], dims="cell")
SETTINGS = {"sample_size": 20, "population_size": 200, "random_seed": 1, "progressbar": False}
MANY = {"simulations": 300, "bins": 10, "random_seed": 2015, "progressbar": False}


def smallest_p(result: xr.Dataset) -> float:
    return float(min(result.p_value.min(), result.p_value_ks.min())) * result.sizes["quantity"] * 2


def test_ranks_of_counts_are_uniform():
    """Ties broken at random: ranks of a coin among coins are uniform, exactly."""
    rng = np.random.default_rng(1)
    ranks = [
        rank_with_ties(float(rng.integers(2)), rng.integers(2, size=19).astype(float), rng)
        for _ in range(20_000)
    ]
    assert min(uniformity(np.array(ranks), 20)[1:]) > ALPHA
    assert rank_with_ties(5.0, np.arange(4.0), rng) > 4 / 5
    assert rank_with_ties(-1.0, np.arange(4.0), rng) < 1 / 5


def test_a_posterior_in_closed_form_is_calibrated():
    result = tc.calibrate(
        Coins(), TWO_CELLS, simulations=2000, draws=99, thin=1, workers=1, **SETTINGS
    )
    assert result.quantity.values.tolist() == ["p", "R1", "R2", "tau1"]
    assert int(result.failures) == 0
    assert ((result["rank"] >= 0) & (result["rank"] <= 1)).all()
    assert smallest_p(result) > ALPHA


def test_a_wrong_posterior_is_found_out():
    result = tc.calibrate(
        Coins(posterior_weight=6.0),
        TWO_CELLS,
        simulations=2000,
        draws=99,
        thin=1,
        workers=1,
        **SETTINGS,
    )
    p_values = result.p_value.sel(quantity=["p", "R1", "R2"])
    assert (p_values < ALPHA).all(), p_values


@pytest.mark.parametrize(
    "estimator",
    [
        tc.DirichletLogLinear(),
        tc.MixedPoisson(),
        tc.MixedPoisson(mixing="gamma"),
        tc.MixedPoisson("a * b", mixing="gamma"),
        tc.MixedPoisson(zero_inflated=True),
        tc.ChineseRestaurant(),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    ("sample_size", "population_size"), [(24, 500), pytest.param(200, 2000, marks=pytest.mark.slow)]
)
def test_estimators_are_calibrated(estimator, sample_size, population_size):
    """300 simulations of a 4 x 3 table; parameters, R1, R2 and tau1."""
    template = xr.DataArray(np.zeros((4, 3), dtype=np.int64), dims=("a", "b"))
    result = tc.calibrate(
        estimator,
        template,
        sample_size=sample_size,
        population_size=population_size,
        draws=99,
        thin=10,
        **MANY,
    )
    assert int(result.failures) <= 3
    assert smallest_p(result) > ALPHA, result.to_dataframe().groupby("quantity").first()


def test_one_variable_is_calibrated():
    """300 simulations of eight cells that are alike; parameters, R1, R2 and tau1."""
    template = xr.DataArray(np.zeros(8, dtype=np.int64), dims="a")
    result = tc.calibrate(
        tc.default_estimator(template).members["mixture"],
        template,
        sample_size=24,
        population_size=500,
        draws=99,
        thin=10,
        **MANY,
    )
    assert int(result.failures) == 0
    assert smallest_p(result) > ALPHA, result.to_dataframe().groupby("quantity").first()


def test_latent_classes_are_calibrated():
    """300 simulations of a 3 x 2 x 2 table; parameters, R1, R2 and tau1. Departures are
    learned in a second step, whose calibration given the first has a test of its own.
    """
    template = xr.DataArray(np.zeros((3, 2, 2), dtype=np.int64), dims=("a", "b", "c"))
    result = tc.calibrate(
        tc.LatentClass(departures=False),
        template,
        sample_size=24,
        population_size=500,
        draws=50,
        thin=2,
        **MANY,
    )
    assert int(result.failures) == 0
    assert smallest_p(result) > ALPHA, result.to_dataframe().groupby("quantity").first()


def test_known_margins_are_calibrated():
    """Each simulated population has margins of its own. Ignoring them would be
    calibrated too; draws that keep them, but with another law, would not."""
    template = xr.DataArray(np.zeros((4, 3), dtype=np.int64), dims=("a", "b"))
    result = tc.calibrate(
        tc.DirichletLogLinear(),
        template,
        sample_size=24,
        population_size=500,
        known_margins="a",
        draws=99,
        thin=10,
        **MANY,
        workers=1,
    )
    assert int(result.failures) <= 3
    assert smallest_p(result) > ALPHA, result.to_dataframe().groupby("quantity").first()
    assert json.loads(result.attrs["settings"])["known_margins"] == ["a"]


def test_margins_that_a_model_takes_as_they_are_cannot_be_calibrated():
    table = xr.DataArray(np.zeros((2, 3), dtype=int), dims=("a", "b"))
    with pytest.raises(ParameterError, match=r"takes known margins as they are.*concentration_a"):
        tc.calibrate(tc.MixedPoisson(), table, known_margins=["a"], simulations=2, **SETTINGS)
