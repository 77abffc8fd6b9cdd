"""Odd but possible input, found by trying: each gives an answer or a message of ours,
never a NaN or a raw error."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.validate import generator, real_number, seed_number, whole_number

QUICK = {"population_size": 50, "random_seed": 1, "progressbar": False}


def table(*dims: str) -> xr.DataArray:
    return xr.DataArray([[3, 1, 0], [2, 0, 1]], dims=dims)


@pytest.mark.parametrize("name", ["kappa", "margin_x", "counts", "kappa_mu", "sample_counts"])
@pytest.mark.parametrize("method", ["fast", "nuts"])
def test_a_variable_named_like_a_parameter_is_to_be_renamed(name, method):
    with pytest.raises(tc.TaciturnError, match=f"'{name}' has the name of a parameter"):
        tc.DirichletLogLinear().fit(table("x", name), method=method, **QUICK)


def test_a_variable_named_like_a_result_is_to_be_renamed():
    t = table("R1", "x") + 1
    assert float(tc.disclosure_risk(t).R1) > 0
    with pytest.raises(tc.TaciturnError, match="'R1' has the name of a result"):
        tc.disclosure_risk(t, dim="x")


def test_no_name_in_a_file_meets_an_internal_one():
    assert float(tc.disclosure_risk(table("_sum", "x")).R1) == float(
        tc.disclosure_risk(table("a", "x")).R1
    )


@pytest.mark.parametrize(("draws", "chains"), [(1, 1), (1, 4), (3, 1), (3, 2)])
@pytest.mark.parametrize("estimator", [tc.LogLinear(), tc.DirichletLogLinear()], ids=repr)
def test_few_draws_give_no_nan(estimator, draws, chains):
    fit = estimator.fit(table("a", "b"), draws=draws, chains=chains, **QUICK)
    result = tc.summary(fit, threshold=0.4)
    assert np.isfinite(result.table.values).all()
    assert "nan" not in str(result).lower()


def test_a_lazy_fit_can_be_summarised():
    fit = tc.LogLinear().fit(table("a", "b"), draws=50, **QUICK)
    lazy = fit.copy()
    lazy["posterior_predictive"] = xr.DataTree(
        fit["posterior_predictive"].to_dataset().chunk({"draw": 10})
    )
    assert str(tc.summary(lazy)) == str(tc.summary(fit))


def test_structural_zeros_of_another_size():
    sample, zeros = xr.DataArray([3, 1, 0], dims="x"), xr.DataArray([False] * 4, dims="x")
    with pytest.raises(tc.TaciturnError, match="structural_zeros has the sizes"):
        tc.LogLinear().fit(sample, structural_zeros=zeros, **QUICK)


def test_labels_that_a_file_cannot_hold(tmp_path):
    sample = xr.DataArray([3, 1, 0], dims="x", coords={"x": np.array([1, "a", 2.5], dtype=object)})
    fit = tc.LogLinear().fit(sample, draws=10, **QUICK)
    with pytest.raises(tc.TaciturnError, match="cannot be written"):
        tc.save_fit(fit, tmp_path / "fit.nc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", [3, None, xr.Dataset()])
def test_what_is_no_fit(what, tmp_path):
    for function in (
        tc.summary,
        tc.assess,
        tc.plot_risk,
        tc.plot_checks,
        lambda x: tc.save_fit(x, tmp_path / "x.nc"),
    ):
        with pytest.raises(tc.TaciturnError):
            function(what)


def test_a_fit_without_a_dimension():
    fit = tc.LogLinear().fit(table("a", "b"), draws=10, **QUICK)
    with pytest.raises(tc.TaciturnError, match=r"no dimension \['chain'\]"):
        tc.assess(fit.isel(chain=0))


def test_a_fit_of_a_users_own_estimator_is_summarised():
    fit = tc.LogLinear().fit(table("a", "b"), draws=10, **QUICK)
    fit.attrs["estimator"] = '{"estimator": "Mine"}'
    assert "Mine" in str(tc.summary(fit))
    del fit.attrs["estimator"]
    assert "not recorded" in str(tc.summary(fit))


@pytest.mark.parametrize("mu", [1000.0, -1000.0, 300.0])
def test_a_prior_out_of_reach(mu):
    model = tc.DirichletLogLinear(priors={"kappa": tc.Prior("LogNormal", mu=mu, sigma=1)})
    with pytest.raises(tc.TaciturnError, match="the prior of 'kappa' must reach"):
        model.fit(table("a", "b"), **QUICK)


@pytest.mark.parametrize(
    "options",
    [
        {"fraction": 0.1, "random_seed": -1},
        {"fraction": 0.1, "random_seed": "a"},
        {"size": float("inf")},
        {"size": float("nan")},
        {"size": "a"},
        {"fraction": "a"},
        {"fraction": 0},
        {"size": 2, "replicates": 1.5},
        {"size": 2, "replicates": "a"},
    ],
    ids=repr,
)
def test_samples_that_cannot_be_drawn(options):
    with pytest.raises(tc.TaciturnError):
        tc.draw_sample(table("a", "b"), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"random_seed": -1},
        {"rounding_base": "a"},
        {"rounding_base": float("nan")},
        {"replicates": 1.5},
    ],
)
def test_roundings_that_cannot_be_made(options):
    with pytest.raises(tc.TaciturnError):
        tc.random_round(table("a", "b"), **options)


@pytest.mark.parametrize("base", ["a", None, True, float("inf"), [2]])
def test_bases_of_logarithms(base):
    if base is None:
        assert float(tc.information.entropy(table("a", "b"), base=base)) > 0
        return
    with pytest.raises(tc.TaciturnError, match="base must be above 1 and finite"):
        tc.information.entropy(table("a", "b"), base=base)


def test_shared_checks():
    assert whole_number(3.0, "x", least=1) == 3
    assert type(whole_number(np.int8(3), "x", least=1)) is int
    assert real_number(np.float32(0.5), "x", least=0, most=1) == 0.5
    assert type(real_number(np.float32(0.5), "x", above=0)) is float
    assert seed_number(7) == seed_number(np.uint8(7)) == 7
    assert generator(7).integers(10**9) == np.random.default_rng(7).integers(10**9)
    for value in (True, np.True_, 0, 2.5, float("nan"), "3", None, np.timedelta64(3, "D"), [3]):
        with pytest.raises(tc.TaciturnError, match="x must be a whole number of at least 1, got"):
            whole_number(value, "x", least=1)
    for value in (True, np.True_, 0, -1, float("inf"), float("nan"), 10**400, "3", None):
        with pytest.raises(tc.TaciturnError, match="x must be a finite number above 0, got"):
            real_number(value, "x", above=0)
    with pytest.raises(tc.TaciturnError, match=r"x must be a number above 0 and at most 1, got 2"):
        real_number(2, "x", above=0, most=1)
    for value in (True, -1, 1.0, "3", 2**128, 10**400, -(10**5000), np.timedelta64(3, "D")):
        with pytest.raises(tc.TaciturnError, match="random_seed must be a non-negative whole"):
            seed_number(value)
    assert seed_number(2**128 - 1) == 2**128 - 1


def test_whole_numbers_end_somewhere():
    for value in (10**6 + 1, 2**63, 2**64, 10**30, 1e18, 1e300, 10**400, 10**5000):
        for most, rule in ((None, "of at most 1,000,000"), (5, "from 1 to 5")):
            message = f"x must be a whole number {rule}, got"
            with pytest.raises(tc.TaciturnError, match=message) as error:
                whole_number(value, "x", least=1, most=most)
            assert len(str(error.value)) < 150


@pytest.mark.parametrize("name", ["draws", "tune", "chains"])
def test_a_fit_ends_somewhere(name):
    with pytest.raises(tc.TaciturnError, match=f"{name} must be a whole number of at most"):
        tc.LogLinear().fit(table("a", "b"), **{name: 2**63}, **QUICK)
    with pytest.raises(tc.TaciturnError, match="population_size must be"):
        tc.LogLinear().fit(table("a", "b"), **QUICK | {"population_size": 10**5000})
