"""Shares that the sample moves: the evidence against closed forms, and a pool that uses
it everywhere alike."""

import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st
from scipy.stats import beta

import taciturn as tc
from taciturn.errors import FileFormatError, ParameterError
from taciturn.estimators.members import evidence_near, shares_by_evidence
from taciturn.estimators.pointwise import by_individual
from taciturn.estimators.problem import make_problem
from taciturn.fits.unlabelled import draw_populations

UNIFORM = tc.Prior("Uniform", lower=0, upper=1)
NESTED = {"wald": {"share": 1.0}, "gamma": {"share": 0.0}}
QUIET = {"progressbar": False, "random_seed": 1}


def pool(**arguments) -> tc.LinearPool:
    members = {
        "mixture": tc.MixedPoisson(),
        "wald": tc.MixedPoisson(mixing="inverse Gaussian"),
        "gamma": tc.MixedPoisson(mixing="gamma"),
    }
    shares = {"mixture": 0.5, "wald": 0.3, "gamma": 0.2}
    return tc.LinearPool(members, **({"shares": shares, "nested": NESTED} | arguments))


@pytest.fixture(scope="module")
def heavy() -> tuple[xr.DataArray, int]:
    """A sample whose departures have the tails of inverse Gaussian factors."""
    rng = np.random.default_rng(4)
    factors = rng.wald(1.0, 0.3, size=(12, 10))
    population = xr.DataArray(rng.poisson(200 * factors), dims=("a", "b"))
    return tc.draw_sample(population, fraction=0.05, random_seed=1), int(population.sum())


@pytest.fixture(scope="module")
def moved(heavy) -> xr.DataTree:
    sample, size = heavy
    return pool().fit(sample, population_size=size, draws=500, **QUIET)


def quantiles_of(law, number: int = 200_000) -> np.ndarray:
    """As good as draws without their error."""
    return law.ppf((np.arange(number) + 0.5) / number)


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 30.0])
@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.0, 0.0, 0.15), (1.0, 0.85, 1.0), (0.5, 0.35, 0.65)]
)
def test_evidence_of_one_parameter(a, value, low, high) -> None:
    """The posterior is a Beta: the probability near the value over the prior's."""
    law = beta(a, 2.0)
    found = evidence_near({"x": value}, {"x": quantiles_of(law)}, {"x": UNIFORM})
    expected = (law.cdf(high) - law.cdf(low)) / (high - low)
    assert found == pytest.approx(max(expected, 0.01), rel=1e-3)


def test_near_is_by_the_prior() -> None:
    """A posterior that is the prior has evidence 1 for any value of any prior."""
    for prior in (tc.Prior("Beta", alpha=0.5, beta=3), tc.Prior("LogNormal", mu=2, sigma=3)):
        levels = (np.arange(100_000) + 0.5) / 100_000
        draws = np.array([prior.quantile(level) for level in levels[::50]])
        for value in (prior.quantile(0.001), prior.quantile(0.4), prior.quantile(0.999)):
            assert evidence_near({"x": value}, {"x": draws}, {"x": prior}) == pytest.approx(
                1, rel=0.01
            )


def test_evidence_of_two_parameters() -> None:
    """Both must be near; of draws of any shape."""
    x = np.array([[0.9, 0.9, 0.2, 0.5]]), np.array([[0.1, 0.5, 0.1, 0.5]])
    found = evidence_near(
        {"power": 1, "share": 0},
        {"power": x[0], "share": x[1]},
        dict.fromkeys(("power", "share"), UNIFORM),
    )
    assert found == pytest.approx(0.25 / 0.15**2)


def test_no_draw_near_is_not_no_evidence() -> None:
    assert evidence_near({"x": 1}, {"x": np.full(10, 0.3)}, {"x": UNIFORM}) == 0.01


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.lists(st.floats(0.01, 1e3), min_size=5, max_size=5),
)
def test_shares_are_moved_by_the_square_root(weights, evidence) -> None:
    shares = {f"m{i}": w / sum(weights) for i, w in enumerate(weights)}
    given_ = dict(zip(list(shares)[1:], evidence, strict=False))
    found = shares_by_evidence(shares, given_)
    assert sum(found.values()) == pytest.approx(1)
    for name, own in given_.items():
        before, after = shares[name] / shares["m0"], found[name] / found["m0"]
        assert after == pytest.approx(before * own**0.5)


def test_the_sample_moves_the_shares(moved, heavy) -> None:
    """From the posterior of the mixture, whose shares are near 1 here."""
    shares = moved["constant_data"]["member_share"]
    assert shares.sum() == pytest.approx(1)
    assert shares["member_name"].values.tolist() == ["mixture", "wald", "gamma"]
    share = moved["posterior"]["mixture_share"].values
    ratio = {"wald": (share >= 0.85).mean() / 0.15, "gamma": (share <= 0.15).mean() / 0.15}
    assert ratio["wald"] > 2
    assert ratio["gamma"] < 0.5
    weights = np.array([0.5, 0.3 * ratio["wald"] ** 0.5, 0.2 * max(ratio["gamma"], 0.01) ** 0.5])
    np.testing.assert_allclose(shares, weights / weights.sum(), rtol=1e-12)
    member = moved["posterior"]["member"]
    for number, expected in enumerate(shares.values):
        assert abs((member == number).mean("draw") - expected).max() <= 0.002


def test_a_study_and_a_census_draw_the_same(heavy) -> None:
    """Without labels, and with."""
    sample, size = heavy
    drawn, _ = draw_populations(pool(), make_problem(sample, size), 200, 1)
    fit = pool().fit(sample, population_size=size, draws=200, chains=1, **QUIET)
    kept = fit["posterior_predictive"]["population"].values
    assert np.array_equal(np.sort(drawn, axis=0), np.sort(kept.reshape(drawn.shape), axis=0))


def test_leaving_out_is_with_these_shares(moved) -> None:
    term = moved["log_likelihood"]["count"]
    shares = moved["constant_data"]["member_share"].to_series().to_dict()
    own, draws = np.exp(by_individual(moved["cell_log_likelihood"].to_dataset())), ["chain", "draw"]
    left_out = sum(share / (1 / own[name]).mean(draws) for name, share in shares.items())
    np.testing.assert_allclose(1 / (1 / np.exp(term)).mean(draws), left_out, rtol=1e-9)
    assert {n: m.share for n, m in tc.fits.mixtures.members_of(moved).items()} == shares


def test_saved_read_and_repeated(moved, tmp_path) -> None:
    tc.save_fit(moved, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    shares = moved["constant_data"]["member_share"].values
    shown = ", ".join(
        f"{share:.2f} {name}"
        for share, name in zip(shares, ("mixture", "wald", "gamma"), strict=True)
    )
    assert f"in shares of {shown}" in str(tc.summary(read))
    again = tc.fits.repeat_fit(read, progressbar=False)
    for group in ("posterior", "posterior_predictive", "log_likelihood", "constant_data"):
        xr.testing.assert_equal(again[group].to_dataset(), moved[group].to_dataset())


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (None, "must have the shares of"),
        ([0.5, 0.5, 0.5], "must sum to 1"),
        ([1.5, -0.5, 0.0], "must have the shares of"),
        (["a", "b", "c"], "must have the shares of"),
        ([np.nan, 0.5, 0.5], "must have the shares of"),
    ],
)
def test_a_file_with_other_shares(moved, shares, message) -> None:
    broken = moved.copy()
    data = broken["constant_data"].to_dataset()
    if shares is None:
        data = data.drop_vars("member_share")
    else:
        data["member_share"] = ("member_name", np.array(shares))
    broken["constant_data"] = xr.DataTree(data)
    with pytest.raises(FileFormatError, match=message):
        tc.loo(broken)


def test_the_specification_is_kept() -> None:
    spec = json.loads(json.dumps(pool().spec()))
    assert spec["nested"] == NESTED
    assert "nested={'wald': {'share': 1.0}, 'gamma': {'share': 0.0}}" in repr(pool())


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ([1], "nested must name some of the members"),
        ({"other": {"share": 1}}, "nested must name some of the members"),
        ({**NESTED, "mixture": {"share": 0.5}}, "nested must name some of the members"),
        ({"wald": {"share": 1}}, r"but leaves out \['mixture', 'gamma'\]"),
        ({**NESTED, "wald": {}}, "values of parameters for 'wald'"),
        ({**NESTED, "wald": 1}, "values of parameters for 'wald'"),
        ({**NESTED, "wald": {"share": "1"}}, "'share' of 'wald'"),
        ({**NESTED, "wald": {"share": float("nan")}}, "'share' of 'wald'"),
    ],
)
def test_bad_nested(nested, message) -> None:
    with pytest.raises(ParameterError, match=message):
        pool(nested=nested)


def test_a_parameter_that_is_not_fitted(heavy) -> None:
    sample, size = heavy
    with pytest.raises(ParameterError, match="a value of 'tail', but parameters are"):
        pool(nested={**NESTED, "wald": {"tail": 1.0}}).fit(sample, population_size=size, **QUIET)
