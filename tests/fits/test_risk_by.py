"""Risk of each category of a variable: each is a table of its own."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError

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
                assert np.isnan([at[name] for name in ("R1", "R2", "size_term")]).all()
                assert float(at["tau1"]) == float(at["tau2"]) == 0
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
    assert np.isfinite(fit["risk_by_a"]["R2"].sel(a=["x", "y"])).all()
    tc.save_fit(fit, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_equal(read["risk_by_a"].to_dataset(), fit["risk_by_a"].to_dataset())


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
        tc.assess(fit, by="a")
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
