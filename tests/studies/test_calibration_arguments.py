"""What a calibration takes and refuses; whether estimators are calibrated is in
`test_calibration.py`."""

import json

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import EstimationError, ParameterError, TableError
from toys import Coins

TWO_CELLS = xr.DataArray([0, 0], dims="cell")
SETTINGS = {"sample_size": 20, "population_size": 200, "random_seed": 1, "progressbar": False}


def test_same_ranks_whatever_the_workers():
    arguments = {"simulations": 6, "draws": 9, "thin": 2} | SETTINGS
    one, two = (
        tc.calibrate(Coins(), TWO_CELLS, workers=workers, **arguments) for workers in (1, 2)
    )
    assert one.identical(two)


def test_what_cannot_be_calibrated():
    with pytest.raises(ParameterError, match="LogLinear has no prior"):
        tc.calibrate(tc.LogLinear(), TWO_CELLS, **SETTINGS)
    with pytest.raises(ParameterError, match="bins must be a whole number of at least 2"):
        tc.calibrate(Coins(), TWO_CELLS, bins=1, **SETTINGS)
    with pytest.raises(ParameterError, match="method must be 'fast' or 'nuts', got 'mcmc'"):
        tc.calibrate(Coins(), TWO_CELLS, method="mcmc", **SETTINGS)
    with pytest.raises(ParameterError, match="population_size"):
        tc.calibrate(Coins(), TWO_CELLS, **SETTINGS | {"population_size": 10})

    with pytest.raises(TableError, match="template must be"):
        tc.calibrate(Coins(), TWO_CELLS.values, **SETTINGS)
    for zeros in (np.array([[True, False]]), (TWO_CELLS > 0).expand_dims("row")):
        with pytest.raises(TableError, match="structural_zeros"):
            tc.calibrate(Coins(), TWO_CELLS, structural_zeros=zeros, **SETTINGS)

    class Misnamed(Coins):
        def draw_prior(self, problem, draws, rng):
            _, samples, populations = super().draw_prior(problem, draws, rng)
            return {"q": np.zeros(draws)}, samples, populations

    with pytest.raises(EstimationError, match=r"draws \['q'\], its posterior has none"):
        tc.calibrate(Misnamed(), TWO_CELLS, simulations=2, draws=5, workers=1, **SETTINGS)


def test_structural_zeros_are_found_by_their_labels():
    template = tc.load_dataset("area_by_sex")
    zeros = xr.zeros_like(template, dtype=bool)
    zeros[0, 0] = True
    given = {"sample_size": 30, "population_size": 200, "simulations": 2, "draws": 10, "thin": 2}
    quiet = {"random_seed": 1, "progressbar": False, "workers": 1}
    as_it_is, turned = (
        tc.calibrate(tc.ChineseRestaurant(), template, structural_zeros=each, **given, **quiet)
        for each in (zeros, zeros[::-1].transpose())
    )
    assert as_it_is["rank"].equals(turned["rank"])


def test_settings_say_of_which_table_it_is():
    template = xr.DataArray(np.zeros((2, 3), int), dims=("a", "b"))
    zeros = template.copy(data=[[False, True, False], [False] * 3])
    how = {"sample_size": 8, "population_size": 60, "simulations": 1, "draws": 5, "workers": 1}
    found = [
        json.loads(
            tc.calibrate(
                tc.ChineseRestaurant(), template, structural_zeros=own, random_seed=1, **how
            ).attrs["settings"]
        )
        for own in (zeros, None)
    ]
    assert [own["structural_zeros"] for own in found] == [[1], []]
    assert found[0]["categories"] == {"a": 2, "b": 3}
