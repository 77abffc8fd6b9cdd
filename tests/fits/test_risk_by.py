"""Risk of each category of a variable: each is a table of its own."""

from math import log, sqrt

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
import twins
from taciturn.errors import ParameterError, TableError
from taciturn.fits.risk import MEASURES

SAMPLE = xr.DataArray(
    [[2, 0, 1], [0, 1, 1], [0, 0, 0]],
    dims=("a", "b"),
    coords={"a": ["x", "y", "z"], "b": ["u", "v", "w"]},
)
WEIGHTS = (0.2, 0.5, 0.3)


def made_by_hand(structural_zeros: xr.DataArray | None = None) -> xr.DataTree:
    """Two chains of two draws; in the first and the last nobody is in category z."""
    rest = [
        [[3, 1, 0], [1, 0, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 2, 0], [1, 0, 1]],
        [[0, 0, 1], [0, 0, 0], [0, 4, 0]],
        [[0, 0, 5], [0, 0, 0], [0, 0, 0]],
    ]
    drawn = np.array(rest).reshape(2, 2, 3, 3)
    population = xr.DataArray(drawn, dims=("chain", "draw", "a", "b")) + SAMPLE
    constants: dict[str, object] = {"population_size": 10}
    if structural_zeros is not None:
        constants["structural_zeros"] = structural_zeros
    return xr.DataTree.from_dict(
        {
            "posterior_predictive": xr.Dataset({"population": population}),
            "observed_data": xr.Dataset({"count": SAMPLE}),
            "constant_data": xr.Dataset(constants),
        }
    )


@pytest.mark.parametrize("variable", ["a", "b"])
def test_each_category_is_a_table_of_its_own(variable) -> None:
    fit = tc.assess(made_by_hand(), weights=WEIGHTS, by=variable)
    found = fit[f"risk_by_{variable}"].to_dataset()
    population = fit["posterior_predictive"]["population"]
    for category in SAMPLE[variable].values:
        own, sample = population.sel({variable: category}), SAMPLE.sel({variable: category})
        for chain, draw in np.ndindex(2, 2):
            table = own[chain, draw]
            at = found.sel({variable: category}).isel(chain=chain, draw=draw)
            if not table.any():
                assert [float(at[name]) for name in MEASURES] == [0] * len(MEASURES)
                continue
            expected = tc.disclosure_risk(table, sample, weights=WEIGHTS)
            expected = expected.merge(tc.risk.unique_risk(table, sample), compat="override")
            for name, value in expected.data_vars.items():
                assert float(at[name]) == pytest.approx(float(value), abs=1e-14)


def test_rows_are_those_of_disclosure_risk_with_dim(religion_sample) -> None:
    fit = tc.LogLinear().fit(religion_sample, population_size=2449, draws=50, random_seed=1)
    found = tc.assess(fit, by=["area", "religion"])
    population = fit["posterior_predictive"]["population"]
    expected = tc.disclosure_risk(population, religion_sample, dim="religion")
    for name, values in expected.data_vars.items():
        np.testing.assert_allclose(
            found["risk_by_area"][name], values.transpose("chain", "draw", "area"), rtol=1e-12
        )
    assert found["risk_by_religion"]["R2"].sizes == {"chain": 4, "draw": 50, "religion": 9}


def test_the_share_of_draws_without_people_is_recorded(tmp_path) -> None:
    fit = tc.assess(made_by_hand(), by="a")
    assert fit["risk_by_a"]["empty"].values.tolist() == [0, 0, 2 / 4]
    tc.save_fit(fit, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_equal(read["risk_by_a"].to_dataset(), fit["risk_by_a"].to_dataset())


def test_a_category_that_draws_leave_empty_by_hand() -> None:
    """Nobody in the sample is in category z, nor in two of four draws; the third has
    four people in one of its three cells, the second one each in two."""
    z = tc.assess(made_by_hand(), weights=WEIGHTS, by="a")["risk_by_a"].to_dataset().sel(a="z")
    size = [0, (1 + log(sqrt(2))) / sqrt(2), (1 + log(2)) / 2, 0]
    before = [0, 1 - log(2) / log(3), 1, 0]
    zeros = [0, 1 / 3, 2 / 3, 0]
    expected = {
        "R1": [twins.weighted(terms, WEIGHTS) for terms in zip(zeros, before, size, strict=True)],
        "zero_term": [0, (1 / 3) ** (3 / 1), (2 / 3) ** (3 / 2), 0],
        "entropy_term": [0] * 4,  # nothing is released of it
        "size_term": size,
        "tau1": [0] * 4,
        "tau2": [0] * 4,
    }
    expected["R2"] = [
        0.2 * zero + 0.3 * s for zero, s in zip(expected["zero_term"], size, strict=True)
    ]
    for name, values in expected.items():
        np.testing.assert_allclose(z[name].values.ravel(), values, atol=1e-15)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_small_sample_of_a_census_has_the_risk_of_the_slow_twin(seed) -> None:
    table = tc.load_dataset("area_by_country_of_birth")
    size = int(table.sum())
    sample = tc.draw_sample(table, fraction=0.01, random_seed=seed)
    fit = tc.LinearPool().fit(sample, population_size=size, draws=50, chains=2, random_seed=1)
    assessed = tc.assess(fit, weights=WEIGHTS, by=list(sample.dims))
    for variable in sample.dims:
        found = assessed[f"risk_by_{variable}"].to_dataset()
        assert (found["empty"] > 0).any()
        assert not (found["empty"] > 0)[sample.sum(set(sample.dims) - {variable}) > 0].any()
        assert not np.isnan(np.quantile(found.to_dataarray(), 0.5))
        for category in sample[variable].values:
            tables = fit["posterior_predictive"]["population"].sel({variable: category})
            released = sample.sel({variable: category}).values.tolist()
            own = found.sel({variable: category})
            drawn = tables.stack(row=("chain", "draw")).T.values.tolist()
            assert float(own["empty"]) == sum(not any(F) for F in drawn) / len(drawn)
            R2 = [twins.weighted(twins.terms_after(F, released, "2015"), WEIGHTS) for F in drawn]
            np.testing.assert_allclose(own["R2"].values.ravel(), R2, atol=1e-12)


def test_the_whole_table_is_as_without() -> None:
    alone, together = tc.assess(made_by_hand()), tc.assess(made_by_hand(), by=("a", "b"))
    xr.testing.assert_identical(alone["risk"].to_dataset(), together["risk"].to_dataset())
    assert set(together.children) - set(alone.children) == {"risk_by_a", "risk_by_b"}
    again = tc.assess(together, weights=WEIGHTS)
    assert not [name for name in again.children if name.startswith("risk_by_")]


def test_structural_zeros_of_a_category_are_not_counted() -> None:
    zeros = SAMPLE.copy(data=[[False] * 3, [False] * 3, [True, True, True]])
    fit = made_by_hand(zeros)
    with pytest.raises(TableError, match="fills a structural zero at chain=0, draw=1, a=z, b=u"):
        tc.assess(fit)
    kept = fit.isel(chain=[0], draw=[0])
    assert np.isfinite(tc.assess(kept)["risk"]["R2"]).all()
    with pytest.raises(TableError, match="at least 2 cells: a=z has 0"):
        tc.assess(kept, by="a")


@pytest.mark.parametrize("by", ["c", ["a", "a"], ["a", "c"], "chain"])
def test_by_names_variables_of_the_table(by) -> None:
    with pytest.raises(ParameterError, match=r"by must name variables of the table, \('a', 'b'\)"):
        tc.assess(made_by_hand(), by=by)


def test_a_table_of_one_variable_has_no_categories_that_are_tables() -> None:
    groups = {
        name: made_by_hand()[name].to_dataset()
        for name in ("posterior_predictive", "observed_data", "constant_data")
    }
    for name in ("posterior_predictive", "observed_data"):
        groups[name] = groups[name].sum("b")
    with pytest.raises(TableError, match="at least 2 cells: each of 'a' has 1"):
        tc.assess(xr.DataTree.from_dict(groups), by="a")
