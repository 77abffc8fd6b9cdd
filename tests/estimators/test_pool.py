"""The pool is its members' draws in fixed shares, and says of each how it was
fitted."""

import json
import threading
from dataclasses import replace
from typing import ClassVar

import arviz as az
import numpy as np
import pytest
import threadpoolctl
import xarray as xr
from scipy.special import logsumexp

import taciturn as tc
from taciturn.diagnostics import Diagnostics, ImportanceDiagnostics, PooledDiagnostics
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.members import learn_members
from taciturn.estimators.mixture import mixture_terms
from taciturn.estimators.pointwise import by_individual
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import make_settings

SIZE = {"population_size": 2449, "progressbar": False}


@pytest.fixture(scope="module")
def pooled(religion_sample):
    return tc.LinearPool(shares={"dirichlet": 0.75, "restaurant": 0.25}).fit(
        religion_sample, random_seed=3, **SIZE
    )


def test_each_member_has_its_share_of_every_chain(pooled) -> None:
    member = pooled["posterior"]["member"]
    assert ((member == 1).sum("draw") == 250).all()
    # In random order: no chain is like another, nor like the turns sorted.
    assert len({tuple(row) for row in member.values}) == 4
    assert abs(float(member[:, :500].mean()) - 0.25) < 0.05


def test_draws_are_those_of_the_members(pooled, religion_sample) -> None:
    """Mean and spread of R2 by member against fits of the members alone; five standard
    errors of both."""
    r2 = tc.assess(pooled)["risk"]["R2"].values
    member = pooled["posterior"]["member"].values
    for number, estimator in enumerate((tc.DirichletLogLinear(), tc.ChineseRestaurant())):
        own = r2[member == number]
        alone = tc.assess(estimator.fit(religion_sample, random_seed=5, **SIZE))["risk"][
            "R2"
        ].values
        error = np.hypot(own.std() / np.sqrt(len(own)), alone.std() / np.sqrt(alone.size))
        assert abs(own.mean() - alone.mean()) < 5 * error
        assert abs(np.log(own.std() / alone.std())) < 5 * np.sqrt(1 / len(own) + 1 / alone.size)


def test_a_draw_is_made_from_the_parameters_beside_it(religion_sample) -> None:
    """A restaurant that opens cells in some draws and none in others: population and
    posterior must tell the same."""
    prior = {"theta": tc.Prior("LogNormal", mu=0, sigma=6)}
    small = religion_sample.isel(area=slice(3), religion=slice(4))
    pool = tc.LinearPool(
        {"dirichlet": tc.DirichletLogLinear(), "ewens": tc.ChineseRestaurant(0.0, priors=prior)}
    )
    fit = pool.fit(small, population_size=100_000, random_seed=1, progressbar=False)
    own = fit["posterior"]["member"].values == 1
    theta = fit["posterior"]["ewens_theta"].values[own]
    opened = (fit["posterior_predictive"]["population"] > 0).sum(("area", "religion")).values[own]
    rank = np.argsort(np.argsort(theta))
    assert np.corrcoef(rank, opened)[0, 1] > 0.2


def test_cell_terms_stand_for_each_member_alone(pooled, religion_sample) -> None:
    terms = pooled["cell_log_likelihood"].to_dataset()
    assert list(terms.data_vars) == ["dirichlet", "restaurant"]
    assert terms["restaurant"].sizes == {"chain": 4, "draw": 1000, "occupied_cell": 36}
    n = int(religion_sample.sum())
    theta, sigma = (pooled["posterior"][f"restaurant_{name}"] for name in ("theta", "discount"))
    first = int(religion_sample.values.ravel()[0])
    expected = np.log((first - 1 - sigma) / (n - 1 + theta))
    np.testing.assert_allclose(terms["restaurant"][..., 0], expected, rtol=1e-12)


def test_terms_for_arviz_have_the_means_of_the_mixture(pooled) -> None:
    """Harmonic means over draws: of each member on its own, then in shares; arithmetic
    means likewise. Both from densities, not from their logarithms."""
    term = pooled["log_likelihood"].to_dataset()
    assert list(term.data_vars) == ["count"]
    assert term["count"].dims == ("chain", "draw", "individual")
    own = np.exp(by_individual(pooled["cell_log_likelihood"].to_dataset()))
    found, draws = np.exp(term["count"]), ("chain", "draw")
    shares = {"dirichlet": 0.75, "restaurant": 0.25}
    left_out = sum(share / (1 / own[name]).mean(draws) for name, share in shares.items())
    with_all = sum(share * own[name].mean(draws) for name, share in shares.items())
    np.testing.assert_allclose(1 / (1 / found).mean(draws), left_out, rtol=1e-9)
    np.testing.assert_allclose(found.mean(draws), with_all, rtol=1e-9)


@pytest.mark.parametrize("name", ["fit_pool", pytest.param("pool_by_nuts", marks=pytest.mark.slow)])
def test_arviz_leaves_out_as_loo_does(name, request) -> None:
    """They differ only in the smoothing of the largest weights, far less than the
    standard error of 14. Without the two constants elpd would be 2.7 higher and p half
    as large."""
    fit = request.getfixturevalue(name)
    own, arviz = tc.loo(fit), az.loo(fit)
    assert arviz.elpd == pytest.approx(own.elpd, abs=0.05)
    assert arviz.se == pytest.approx(own.se, abs=0.02)
    assert arviz.p == pytest.approx(own.p, abs=0.05)
    np.testing.assert_allclose(arviz.elpd_i, own.elpd_i, atol=0.02)
    assert not arviz.warning


def test_members_that_agree_need_no_constants() -> None:
    """A mixture of a member with itself is that member; draws that are all alike stay
    as they are."""
    rng = np.random.default_rng(1)
    dims, shape = ("chain", "draw", "occupied_cell"), (2, 50, 3)
    one = xr.DataArray(np.log(rng.uniform(0.01, 0.2, shape)), dims=dims)
    one[..., 1] = -2.0
    shares = {"a": 0.3, "b": 0.7}
    mixed = mixture_terms(xr.Dataset({"a": one, "b": one}), shares)
    np.testing.assert_allclose(mixed, one, rtol=1e-9)
    alone = mixture_terms(xr.Dataset({"a": one, "b": one.roll(draw=1)})[["a", "b"]], shares)
    np.testing.assert_allclose(alone[..., 1], -2.0, rtol=1e-12)


def test_a_member_that_rules_an_individual_out() -> None:
    """At some draws or at all: the other member is left, in its share. Means by SciPy's
    own sums of exponentials, which know of infinite logarithms."""
    rng = np.random.default_rng(2)
    dims, shape = ("chain", "draw", "occupied_cell"), (2, 40, 3)
    one, other = (xr.DataArray(np.log(rng.uniform(1e-9, 0.2, shape)), dims=dims) for _ in range(2))
    other[..., 0] = -np.inf
    other[:, ::3, 1] = -np.inf
    shares = {"a": 0.3, "b": 0.7}
    found = mixture_terms(xr.Dataset({"a": one, "b": other}), shares)
    assert np.isfinite(found).all()
    logs = np.log(list(shares.values()))[:, None]
    each = np.stack([one.values, other.values])
    with_all = logsumexp(logs[..., None, None] + each, axis=(0, 1, 2))
    left_out = logsumexp(logs - logsumexp(-each, axis=(1, 2)), axis=0)
    np.testing.assert_allclose(logsumexp(found, axis=(0, 1)), with_all, rtol=1e-9)
    np.testing.assert_allclose(-logsumexp(-found, axis=(0, 1)), left_out, rtol=1e-9)


def test_chains_too_short_for_the_shares_of_members_are_not_relied_on() -> None:
    """Each has them as closely as it can: with one draw a single member makes all."""
    sample = tc.draw_sample(tc.load_dataset("area_by_sex"), size=60, random_seed=1)
    for chains, draws, good in ((400, 1, False), (134, 3, False), (8, 50, True), (4, 100, True)):
        fit = tc.LinearPool().fit(
            sample, population_size=500, chains=chains, draws=draws, random_seed=1
        )
        found = tc.summary(fit)
        assert found.converged == good
        assert ("made 100.0% of the draws, its share is 50.0%" in " ".join(found.problems)) == (
            draws == 1
        )


def test_summary_shows_every_member(pooled) -> None:
    result = tc.summary(pooled)
    assert isinstance(result.diagnostics, PooledDiagnostics)
    assert set(result.diagnostics.members) == {"dirichlet", "restaurant"}
    assert all(
        isinstance(own, ImportanceDiagnostics) for own in result.diagnostics.members.values()
    )
    assert result.converged
    assert "dirichlet: no Markov chain" in result.text
    assert "restaurant: no Markov chain" in result.text
    found = result.diagnostics.members
    worth = 1 / (
        0.75 / min(4000, found["dirichlet"].ess) + 0.25 / min(4000, found["restaurant"].ess)
    )
    assert result.diagnostics.ess == pytest.approx(worth)
    assert result.table.loc["R2", "mcse"] == pytest.approx(
        result.table.loc["R2", "sd"] / np.sqrt(worth)
    )


@pytest.mark.slow
def test_by_nuts_every_member_has_its_own_diagnostics(pool_by_nuts) -> None:
    result = tc.summary(pool_by_nuts)
    assert all(isinstance(own, Diagnostics) for own in result.diagnostics.members.values())
    assert result.converged, result.text
    broken = pool_by_nuts.copy(deep=True)
    broken["sample_stats"]["restaurant_diverging"][0, 0] = True
    assert tc.summary(broken).diagnostics.problems == (
        "restaurant: 1 transitions diverged, none is accepted",
    )
    assert "NOT CONVERGED" in tc.summary(broken).text


def test_a_member_without_parameters(religion_sample) -> None:
    pool = tc.LinearPool(
        {"symmetric": tc.ChineseRestaurant(discount=-0.5), "ewens": tc.ChineseRestaurant(0.0)}
    )
    fit = pool.fit(religion_sample, draws=500, random_seed=1, **SIZE)
    assert sorted(fit["posterior"].data_vars) == ["ewens_theta"]
    assert tc.summary(fit).diagnostics.members["symmetric"] is None
    assert "symmetric: no parameters" in tc.summary(fit).text


def test_linear_algebra_has_its_threads_again(monkeypatch, religion_sample) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = threadpoolctl.threadpool_info()
    for _ in range(2):
        tc.default_estimator(religion_sample).fit(religion_sample, draws=50, random_seed=1, **SIZE)
        assert threadpoolctl.threadpool_info() == before


@pytest.mark.slow
def test_many_cells_are_fitted_alike_by_any_number_of_threads(monkeypatch) -> None:
    """With matrices that linear algebra multiplies in threads of its own."""
    counts = np.random.default_rng(5).negative_binomial(0.5, 0.17, size=(50, 50))
    sample = xr.DataArray(counts, {"a": range(50), "b": range(50)}, ("a", "b"))
    fits = []
    for threads in ("1", "2", "3", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        pool = tc.default_estimator(sample)
        fits.append(
            pool.fit(
                sample,
                population_size=60_000,
                draws=500,
                chains=1,
                random_seed=1,
                progressbar=False,
            )
        )
    assert "NUTS" not in fits[0].attrs["sampler"]
    for fit in fits[1:]:
        for group in ("posterior", "posterior_predictive", "cell_log_likelihood"):
            xr.testing.assert_identical(fit[group].to_dataset(), fits[0][group].to_dataset())


def test_members_are_fitted_at_the_same_time_and_alike(monkeypatch, religion_sample) -> None:
    fits = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        pool = tc.default_estimator(religion_sample)
        fits.append(pool.fit(religion_sample, draws=1000, random_seed=1, **SIZE))
    for group in ("posterior", "posterior_predictive", "cell_log_likelihood", "log_likelihood"):
        xr.testing.assert_identical(*(fit[group].to_dataset() for fit in fits))
    assert fits[0].attrs == fits[1].attrs


class _LeftToChains(tc.ChineseRestaurant):
    """Notes which ways of learning are tried; its chains are a fast fit."""

    tried: ClassVar[list[str]] = []

    def learn_unlabelled(self, problem, draws, rng) -> None:
        self.tried.append("fast")

    def learn_nuts(self, problem, settings, seed):
        self.tried.append("nuts")
        return tc.ChineseRestaurant().learn(problem, replace(settings, method="fast"), seed)


class _NotOnPlainArrays(tc.ChineseRestaurant):
    """Learns in the thread that asks, as others do after what threads can do."""

    def learn_fast(self, problem, settings, rng):
        assert threading.current_thread() is threading.main_thread()
        return super().learn_fast(problem, settings, rng)


class _WithItsOwnWay(tc.ChineseRestaurant):
    def learn(self, problem, settings, seed):
        own = replace(settings, method="fast")
        return tc.ChineseRestaurant(0.0).learn(problem, own, seed)


def test_a_member_that_needs_chains_is_left_to_them_once(religion_sample) -> None:
    members = {"left": _LeftToChains(), "plain": tc.ChineseRestaurant(), "own": _WithItsOwnWay()}
    members |= {f"fast{number}": _NotOnPlainArrays() for number in range(4)}
    problem = make_problem(religion_sample, 2449)
    settings = make_settings(50, 10, 2, 1, False, "fast")
    learned = learn_members(members, problem, settings, dict.fromkeys(members, 1))
    assert list(learned) == list(members)  # in their order
    assert _LeftToChains.tried == ["fast", "nuts"]
    alone = tc.ChineseRestaurant().learn(problem, settings, 1).posterior
    for name in ("left", "plain", "fast0", "fast1", "fast2", "fast3"):
        xr.testing.assert_identical(learned[name].posterior, alone)
    assert list(learned["own"].posterior.data_vars) == ["theta"]
    _LeftToChains.tried.clear()
    only = {"left": members["left"], "own": members["own"]}
    learn_members(only, problem, replace(settings, method="nuts", draws=2), {"left": 1, "own": 1})
    assert _LeftToChains.tried == ["nuts"]


def test_saved_read_and_repeated(tmp_path, pooled) -> None:
    tc.save_fit(pooled, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    assert str(tc.summary(read)) == str(tc.summary(pooled))
    again = tc.fits.repeat_fit(read, progressbar=False)
    for group in ("posterior", "posterior_predictive", "log_likelihood"):
        xr.testing.assert_equal(again[group].to_dataset(), pooled[group].to_dataset())
    assert again.attrs == pooled.attrs


def test_fewer_draws_than_members(religion_sample) -> None:
    fit = tc.LinearPool().fit(religion_sample, draws=1, chains=1, random_seed=1, **SIZE)
    tc.fits.check_population(
        fit["posterior_predictive"]["population"], religion_sample, population_size=2449
    )
    assert fit["posterior"]["member"].size == 1


def test_written_as_it_would_be_typed() -> None:
    assert repr(tc.LinearPool()) == "LinearPool()"
    assert (
        repr(tc.LinearPool(shares={"dirichlet": 0.5, "restaurant": 0.5}))
        == "LinearPool(shares={'dirichlet': 0.5, 'restaurant': 0.5})"
    )
    assert repr(tc.DirichletLogLinear("~ a")) == "DirichletLogLinear(formula='~ a')"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": {"a": tc.ChineseRestaurant()}}, "at least two names"),
        ({"members": [tc.ChineseRestaurant(), tc.DirichletLogLinear()]}, "must be a mapping"),
        (
            {"members": {"a": tc.ChineseRestaurant(), "b": tc.LogLinear()}},
            r"'b' must be a Bayesian.*LogLinear\(\)",
        ),
        (
            {"members": {"a": tc.ChineseRestaurant(), "b": tc.LinearPool()}},
            "'b' must be a Bayesian",
        ),
        (
            {"members": {"a": tc.ChineseRestaurant(), "b_c": tc.ChineseRestaurant(0.0)}},
            "letters and digits, got 'b_c'",
        ),
        (
            {"members": {"a": tc.ChineseRestaurant(), 1: tc.ChineseRestaurant(0.0)}},
            "letters and digits, got 1",
        ),
        ({"shares": {"dirichlet": 0.5}}, "must have the members"),
        ({"shares": [0.5, 0.5]}, "must have the members"),
        ({"shares": {"dirichlet": 0.5, "restaurant": 0.6}}, "sum to 1"),
        ({"shares": {"dirichlet": 1.0, "restaurant": 0.0}}, "positive"),
        ({"shares": {"dirichlet": float("nan"), "restaurant": 0.5}}, "the share of 'dirichlet'"),
    ],
)
def test_bad_members_and_shares(arguments, message) -> None:
    with pytest.raises(ParameterError, match=message):
        tc.LinearPool(**arguments)


def test_a_variable_with_the_name_of_a_parameter() -> None:
    sample = xr.DataArray([[3, 1], [0, 2]], dims=("restaurant_theta", "b"))
    with pytest.raises(TableError, match="'restaurant_theta' has the name of a parameter"):
        tc.LinearPool().fit(sample, population_size=60, random_seed=1)


def test_calibration_is_of_the_members(religion) -> None:
    with pytest.raises(ParameterError, match="LinearPool has no prior"):
        tc.calibrate(
            tc.LinearPool(),
            religion,
            sample_size=10,
            population_size=100,
            simulations=1,
            progressbar=False,
        )


def test_the_specification_nests_its_members() -> None:
    spec = json.loads(json.dumps(tc.LinearPool().spec()))
    assert spec["members"]["restaurant"] == tc.ChineseRestaurant().spec()
