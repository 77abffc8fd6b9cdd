"""ArviZ takes every fit as it is: without an error or a warning, and with the same
answers, or with an error of its own where it has no answer. Its plots are slow."""

import warnings
from collections.abc import Iterator

import arviz as az
import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

import taciturn as tc

BAYESIAN = (
    "LinearPool",
    "DirichletLogLinear",
    "MixedPoisson",
    "ChineseRestaurant",
    "LatentClass",
)
COMPARABLE = (*(name for name in BAYESIAN if name != "LatentClass"), "classes alone")
PLUG_IN = ("LogLinear", "PolyaUrn")
WITH_PARAMETERS = (*BAYESIAN, "stack")
EVERY = (*BAYESIAN, *PLUG_IN, "stack")
FAST = {"population_size": 2449, "draws": 500, "random_seed": 1, "progressbar": False}
MARKOV_CHAIN = {"LatentClass": {"tune": 300, "chains": 2}}


@pytest.fixture(scope="module")
def fits(religion_sample) -> dict[str, xr.DataTree]:
    """An assessed fit of every estimator, and a stack of three."""
    made = {
        name: estimator().fit(religion_sample, **(FAST | MARKOV_CHAIN.get(name, {})))
        for name, estimator in tc.estimators.ESTIMATORS.items()
    }
    alone = tc.LatentClass(departures=False)
    made["classes alone"] = alone.fit(religion_sample, **FAST, tune=300, chains=2)
    members = {name: made[name] for name in ("DirichletLogLinear", "ChineseRestaurant", "PolyaUrn")}
    made["stack"] = tc.fits.stack(members, random_seed=1)
    return {name: tc.assess(fit, by="area") for name, fit in made.items()}


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Every warning is an error; figures are closed."""
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "Agg"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def test_every_estimator_is_here() -> None:
    assert set(tc.estimators.ESTIMATORS) == {*BAYESIAN, *PLUG_IN}


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_summary_of_the_parameters(fits, name) -> None:
    table = az.summary(fits[name])
    assert np.isfinite(table.to_numpy(dtype=float)).all()
    assert "member" not in table.index


@pytest.mark.parametrize("name", EVERY)
def test_summary_of_the_risk_is_ours(fits, name) -> None:
    table = az.summary(fits[name], group="risk", round_to="none")
    ours = tc.summary(fits[name]).table
    assert list(table.index) == ["R1", "R2", "zero_term", "entropy_term", "tau1", "tau2"]
    np.testing.assert_allclose(
        table[["mean", "sd"]].to_numpy(), ours.loc[table.index, ["mean", "sd"]], rtol=1e-12
    )


@pytest.mark.parametrize("name", EVERY)
def test_summary_of_the_risk_of_rows(fits, name) -> None:
    table = az.summary(fits[name], group="risk_by_area", var_names=["R2"])
    assert list(table.index) == [f"R2[{area}]" for area in range(1, 11)]
    assert np.isfinite(table["mean"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PARAMETERS)
@pytest.mark.parametrize("plot", [az.plot_forest, az.plot_trace_dist])
def test_plots_of_the_parameters(fits, name, plot) -> None:
    plot(fits[name])


@pytest.mark.slow
@pytest.mark.parametrize("plot", [az.plot_forest, az.plot_trace_dist])
def test_plots_of_the_risk(fits, plot) -> None:
    for name in ("LinearPool", "LogLinear", "stack"):
        plot(fits[name], group="risk")


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_predictive_plots(fits, name) -> None:
    """Of counts by cumulative distributions; ArviZ draws a density, too, but warns that
    counts are discrete."""
    fit = fits[name]
    az.plot_ppc_dist(fit, kind="ecdf")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        az.plot_ppc_dist(fit)
    assert caught
    assert all("look discrete" in str(warning.message) for warning in caught)


@pytest.mark.slow
def test_predictive_plots_of_tables_that_are_drawn_as_they_are_read(
    religion_sample, monkeypatch
) -> None:
    monkeypatch.setattr("taciturn.estimators.settings.STORED_LIMIT", 0)
    fit = tc.estimators.LatentClass().fit(religion_sample, **FAST)
    assert "streamed" in fit.attrs
    az.plot_ppc_dist(fit, kind="ecdf", num_samples=5)


@pytest.mark.parametrize("name", COMPARABLE)
def test_loo_is_ours(fits, name) -> None:
    """To rounding for one model. The terms of a pool are smoothed by ArviZ as those of
    a mixture and by us as those of each member: 0.05, of a standard error of 13."""
    ours, theirs = tc.loo(fits[name]), az.loo(fits[name])
    tolerance = 0.05 if name == "LinearPool" else 1e-9
    for value in ("elpd", "se", "p"):
        assert getattr(theirs, value) == pytest.approx(getattr(ours, value), abs=tolerance)
    assert not theirs.warning


def test_comparison_is_ours(fits) -> None:
    chosen = {name: fits[name] for name in COMPARABLE}
    ours, theirs = tc.compare(chosen), az.compare(chosen, round_to="none")
    assert list(ours.index) == list(theirs.index)
    for column in ("elpd", "elpd_diff", "se", "dse"):
        np.testing.assert_allclose(
            theirs[column].astype(float), ours[column].astype(float), atol=0.05
        )
    np.testing.assert_allclose(theirs["weight"], ours["weight"], atol=0.01)


def on_the_scale_of_the_priors(fit: xr.DataTree) -> xr.DataTree:
    """A copy whose parameters with an unbounded prior are their logarithms."""
    posterior = fit["posterior"].to_dataset()
    bounded = [str(name) for name in posterior if str(name).endswith("discount")]
    logs = {
        name: draws if name in bounded else np.log(draws)
        for name, draws in posterior.data_vars.items()
        if draws.ndim == 2 and name in fit["log_prior"].data_vars
    }
    return fit.assign(posterior=xr.DataTree(xr.Dataset(logs)))


@pytest.mark.parametrize("name", ["DirichletLogLinear", "ChineseRestaurant", "classes alone"])
def test_sensitivity_to_the_prior_is_ours_on_the_same_scale(fits, name) -> None:
    ours = tc.prior_sensitivity(fits[name])
    theirs = az.psense_summary(on_the_scale_of_the_priors(fits[name]), round_to=6)
    np.testing.assert_allclose(theirs["prior"], ours.loc[theirs.index, "prior"], atol=1e-6)
    own_scale = az.psense_summary(fits[name], var_names=list(theirs.index), round_to=6)
    for parameter in theirs.index:
        if parameter == "discount":  # bounded: on its own scale in both
            assert own_scale.loc[parameter, "prior"] == pytest.approx(
                ours.loc[parameter, "prior"], abs=1e-6
            )


def test_sensitivity_to_the_prior_of_a_pool(fits) -> None:
    """ArviZ scales the priors of all members together, over all draws; we scale those
    of each member, over the draws that it made."""
    fit = fits["LinearPool"]
    ours = tc.prior_sensitivity(fit)
    theirs = az.psense_summary(on_the_scale_of_the_priors(fit), round_to=6)
    assert list(theirs.index) == ["dirichlet_kappa", "restaurant_theta", "restaurant_discount"]
    for name, row in theirs.iterrows():
        assert row["prior"] == pytest.approx(ours.loc[tuple(name.split("_")), "prior"], abs=0.05)


@pytest.mark.parametrize("name", COMPARABLE)
def test_sensitivity_runs(fits, name) -> None:
    table = az.psense_summary(fits[name])
    assert np.isfinite(table[["prior", "likelihood"]].to_numpy()).all()


@pytest.mark.parametrize("name", PLUG_IN)
def test_arviz_says_that_a_plug_in_estimator_has_no_posterior(fits, name) -> None:
    """Nor draws to leave anybody out of: `tc.loo` and `tc.compare` are exact there."""
    for summarise in (az.summary, az.psense_summary):
        with pytest.raises(ValueError, match="Can not extract posterior"):
            summarise(fits[name])
    for plot in (az.plot_forest, az.plot_trace_dist):
        with pytest.raises(KeyError, match="posterior"):
            plot(fits[name])
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(fits[name])
    assert tc.loo(fits[name]).n_samples == 0


def test_arviz_says_that_a_stack_leaves_nobody_out(fits) -> None:
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(fits["stack"])
    with pytest.raises(TypeError, match="log prior not found"):
        az.psense_summary(fits["stack"])
    with pytest.raises(tc.TaciturnError, match="compare the fits it is made of"):
        tc.loo(fits["stack"])
