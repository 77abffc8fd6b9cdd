"""Population uniques among sample uniques, and expected correct matches."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import taciturn as tc
from strategies import populations_with_samples
from taciturn.errors import TableError


def test_by_hand():
    F = xr.DataArray([[1, 4], [2, 7]], dims=("area", "sex"))
    f = xr.DataArray([[1, 1], [1, 3]], dims=("area", "sex"))
    risk = tc.unique_risk(F, f)
    assert int(risk.tau1) == 1
    assert float(risk.tau2) == 1 + 1 / 4 + 1 / 2


def test_nobody_is_alone_in_the_sample():
    risk = tc.unique_risk(xr.DataArray([1, 4], dims="x"), xr.DataArray([0, 2], dims="x"))
    assert (int(risk.tau1), float(risk.tau2)) == (0, 0.0)


def test_draws_and_replicates_give_all_pairs():
    F = xr.DataArray([[1, 3], [2, 2]], dims=("draw", "x"))
    f = xr.DataArray([[1, 0], [1, 1], [0, 2]], dims=("replicate", "x"))
    risk = tc.unique_risk(F, f).transpose("draw", "replicate")
    assert risk.tau1.values.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert risk.tau2.values.tolist() == pytest.approx(np.array([[1, 1 + 1 / 3, 0], [1 / 2, 1 / 2 + 1 / 2, 0]]))


@given(populations_with_samples())
def test_twin_and_bounds(pair):
    population, sample = pair
    cells = list(zip(population.values.ravel().tolist(), sample.values.ravel().tolist(), strict=True))
    risk = tc.unique_risk(population, sample)
    assert int(risk.tau1) == sum(F == f == 1 for F, f in cells)
    assert float(risk.tau2) == pytest.approx(sum(1 / F for F, f in cells if f == 1))
    assert int(risk.tau1) <= float(risk.tau2) <= sum(f == 1 for _, f in cells)
    assert risk.tau1.dtype == np.int64


@given(populations_with_samples(draw_dims=("draw",)))
def test_lazy_draws_stay_lazy_and_agree(pair):
    population, sample = pair
    eager, lazy = tc.unique_risk(population, sample), tc.unique_risk(population.chunk(draw=1), sample)
    assert lazy.tau2.chunks is not None
    xr.testing.assert_allclose(lazy.compute(scheduler="synchronous"), eager)


def test_a_population_below_the_sample():
    F = xr.DataArray([[1, 3], [2, 2]], dims=("draw", "x"), coords={"x": ["a", "b"]})
    f = xr.DataArray([1, 3], coords={"x": ["a", "b"]})
    with pytest.raises(TableError, match="below the sample at draw=1, x=b"):
        tc.unique_risk(F, f)
    with pytest.raises(TableError, match="below the sample"):
        tc.unique_risk(F.chunk(draw=1), f).compute(scheduler="synchronous")


def test_tables_that_do_not_match():
    with pytest.raises(TableError, match="categories of 'x' differ"):
        tc.unique_risk(xr.DataArray([1, 2], dims="x"), xr.DataArray([1, 1, 0], dims="x"))
    with pytest.raises(TableError, match="x=1 holds -1"):
        tc.unique_risk(xr.DataArray([1, 2], dims="x"), xr.DataArray([1, -1], dims="x"))
