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


PRIORS = [
    tc.Prior("Beta", alpha=0.5, beta=3),
    tc.Prior("Exponential", lam=2),
    tc.Prior("Gamma", alpha=2, beta=3),
    tc.Prior("HalfNormal", sigma=2),
    tc.Prior("HalfStudentT", nu=3, sigma=2),
    tc.Prior("InverseGamma", alpha=3, beta=1),
    tc.Prior("LogNormal", mu=2, sigma=3),
    tc.Prior("Pareto", alpha=0.25, m=0.5),
    tc.Prior("Uniform", lower=0.2, upper=0.9),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.distribution)
def test_near_is_by_the_prior(prior) -> None:
    """A posterior that is the prior has evidence 1 for any value of any prior."""
    draws = np.array([prior.quantile(level) for level in (np.arange(2000) + 0.5) / 2000])
    np.testing.assert_allclose(prior.level(draws), (np.arange(2000) + 0.5) / 2000, atol=1e-9)
    assert prior.level(np.array(-1.0)) == 0
    for value in (prior.quantile(0.0), prior.quantile(0.4), prior.quantile(0.999)):
        assert evidence_near({"x": value}, {"x": draws}, {"x": prior}) == pytest.approx(1, rel=0.01)


def test_evidence_of_two_parameters() -> None:
    """Both must be near; of draws of any shape."""
    x = np.tile([[0.9, 0.9, 0.2, 0.5]], (2, 200)), np.tile([[0.1, 0.5, 0.1, 0.5]], (2, 200))
    found = evidence_near(
        {"power": 1, "share": 0},
        {"power": x[0], "share": x[1]},
        dict.fromkeys(("power", "share"), UNIFORM),
    )
    assert found == pytest.approx(0.25 / 0.15**2)


def test_no_draw_near_is_not_no_evidence() -> None:
    assert evidence_near({"x": 1}, {"x": np.full(100, 0.3)}, {"x": UNIFORM}) == 0.01


@pytest.mark.parametrize(("draws", "said"), [(66, False), (67, True)])
def test_too_few_draws_say_nothing(draws, said) -> None:
    """Of 66 draws of the prior 9.9 would be near, of 67 ten."""
    found = evidence_near({"x": 1}, {"x": np.full(draws, 0.3)}, {"x": UNIFORM})
    assert found == (0.01 if said else 1.0)


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
    shares = json.loads(moved.attrs["shares"])
    assert list(shares) == ["mixture", "wald", "gamma"]
    share = moved["posterior"]["mixture_share"].values
    ratio = {"wald": (share >= 0.85).mean() / 0.15, "gamma": (share <= 0.15).mean() / 0.15}
    assert ratio["wald"] > 2
    assert ratio["gamma"] < 0.5
    weights = np.array([0.5, 0.3 * ratio["wald"] ** 0.5, 0.2 * max(ratio["gamma"], 0.01) ** 0.5])
    np.testing.assert_allclose(list(shares.values()), weights / weights.sum(), rtol=1e-12)
    member = moved["posterior"]["member"]
    for number, expected in enumerate(shares.values()):
        assert abs((member == number).mean("draw") - expected).max() <= 0.002


def test_a_study_and_a_census_draw_the_same(heavy) -> None:
    """Without labels, and with."""
    sample, size = heavy
    problem = make_problem(sample, size)
    drawn, _ = draw_populations(pool(), problem, 200, 1)
    fit = pool().fit(sample, population_size=size, draws=200, chains=1, **QUIET)
    kept = fit["posterior_predictive"]["population"].values
    assert np.array_equal(drawn, kept.reshape(drawn.shape))
    assert pool().draw_unlabelled(problem, 200, 1, np.random.default_rng(1)) is not None


def test_leaving_out_is_with_these_shares(moved) -> None:
    term = moved["log_likelihood"]["count"]
    shares = json.loads(moved.attrs["shares"])
    own, draws = np.exp(by_individual(moved["cell_log_likelihood"].to_dataset())), ["chain", "draw"]
    left_out = sum(share / (1 / own[name]).mean(draws) for name, share in shares.items())
    np.testing.assert_allclose(1 / (1 / np.exp(term)).mean(draws), left_out, rtol=1e-9)
    assert {n: m.share for n, m in tc.fits.mixtures.members_of(moved).items()} == shares


def test_saved_read_and_repeated(moved, tmp_path) -> None:
    tc.save_fit(moved, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    shares = json.loads(moved.attrs["shares"])
    shown = ", ".join(f"{share:.2f} {name}" for name, share in shares.items())
    assert f"in shares of {shown}" in str(tc.summary(read))
    again = tc.fits.repeat_fit(read, progressbar=False)
    for group in ("posterior", "posterior_predictive", "log_likelihood"):
        xr.testing.assert_equal(again[group].to_dataset(), moved[group].to_dataset())
    assert again.attrs == moved.attrs


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (None, "the fit records no shares: it has 'nothing'"),
        ("{", "the fit records no shares"),
        ([0.5, 0.3, 0.2], "the shares of the fit must be names and values"),
        ({"mixture": 0.5, "wald": 0.5}, "must have the members.*'gamma'.*got"),
        ({"mixture": 0.5, "wald": 0.3, "gamma": 0.2, "q": 7}, "must have the members.*'q': 7"),
        ({"mixture": 0.5, "wald": 0.5, "gamma": 0.5}, "sum to 1, got"),
        ({"mixture": 1.5, "wald": -0.5, "gamma": 0.0}, "the share of 'wald'.*-0.5"),
        ({"mixture": 1.0, "wald": 0.0, "gamma": 0.0}, "must be positive"),
        ({"mixture": "1", "wald": 0.3, "gamma": 0.2}, "the share of 'mixture'.*'1'"),
        ({"mixture": float("nan"), "wald": 0.3, "gamma": 0.2}, "the share of 'mixture'.*nan"),
    ],
)
def test_a_file_with_other_shares(moved, shares, message) -> None:
    broken = moved.copy()
    if shares is None:
        del broken.attrs["shares"]
    else:
        broken.attrs["shares"] = shares if isinstance(shares, str) else json.dumps(shares)
    for read in (tc.loo, tc.summary):
        with pytest.raises(FileFormatError, match=message):
            read(broken)


def test_a_stack_of_it_can_be_read(moved, heavy, tmp_path) -> None:
    sample, size = heavy
    other = tc.ChineseRestaurant().fit(sample, population_size=size, draws=500, **QUIET)
    stack = tc.fits.stack({"pool": moved, "urn": other}, random_seed=1)
    tc.save_fit(stack, tmp_path / "stack.nc")
    read = tc.read_fit(tmp_path / "stack.nc")
    own = tc.fits.mixtures.members_of(tc.fits.mixtures.members_of(read)["pool"].fit)
    assert {name: one.share for name, one in own.items()} == json.loads(moved.attrs["shares"])
    assert "wald" in str(tc.summary(read))
    assert not tc.prior_sensitivity(read).empty


def test_a_single_draw_leaves_the_shares(heavy) -> None:
    sample, size = heavy
    fit = pool().fit(sample, population_size=size, draws=1, chains=1, **QUIET)
    assert json.loads(fit.attrs["shares"]) == pytest.approx(
        {"mixture": 0.5, "wald": 0.3, "gamma": 0.2}
    )


@pytest.mark.parametrize("name", ["member_share", "shares", "member_name"])
def test_a_variable_with_any_name(heavy, name) -> None:
    sample, size = heavy
    fit = pool().fit(sample.rename(a=name), population_size=size, draws=50, chains=1, **QUIET)
    assert name in tc.assess(fit)["posterior_predictive"].dims
    assert np.isfinite(tc.summary(fit).table.loc["R2", "mean"])


def test_many_tables_use_it(heavy) -> None:
    """The reasons of an estimator that cannot be used are beside each table."""
    sample, size = heavy
    found = tc.assess_many(
        {"x": sample},
        population_size={"x": size},
        estimator=pool(),
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    assert found["reason"].values.tolist() == [""]
    wrong = pool(nested={**NESTED, "wald": {"tail": 1.0}})
    found = tc.assess_many(
        {"x": sample},
        population_size={"x": size},
        estimator=wrong,
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    assert "a value of 'tail' for 'wald'" in str(found["reason"].values[0])


def test_the_specification_is_kept() -> None:
    spec = json.loads(json.dumps(pool().spec()))
    assert spec["nested"] == NESTED
    assert "nested={'wald': {'share': 1.0}, 'gamma': {'share': 0.0}}" in repr(pool())


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ([1], r"all members but one, of \['mixture', 'wald', 'gamma'\], got \[1\]"),
        ({"other": {"share": 1}}, "all members but one, of .*'other'"),
        ({**NESTED, "mixture": {"share": 0.5}}, "all members but one, of .*'mixture': "),
        ({"wald": {"share": 1}}, r"but leaves out \['mixture', 'gamma'\]"),
        ({**NESTED, "wald": {}}, "names of parameters with values for 'wald', got {}"),
        ({**NESTED, "wald": 1}, "names of parameters with values for 'wald', got 1"),
        ({**NESTED, "wald": {1: 1.0}}, "names of parameters with values for 'wald', got {1: 1.0}"),
        ({**NESTED, "wald": {"share": "1"}}, "nested: 'share' of 'wald' .* got '1'"),
        ({**NESTED, "wald": {"share": float("nan")}}, "nested: 'share' of 'wald' .* got nan"),
        ({**NESTED, "wald": {"share": -1}}, "nested: 'share' of 'wald' .* got -1"),
    ],
)
def test_bad_nested(nested, message) -> None:
    with pytest.raises(ParameterError, match=message):
        pool(nested=nested)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tail": 1.0}, "a value of 'tail' for 'wald', but the parameters of 'mixture' that are"),
        ({"share": 7.0}, "share = 7 for 'wald', but its prior in 'mixture', .* is from 0 to 1"),
        ({"share": 1.0, "margin_a": 0.5}, "a value of 'margin_a' for 'wald'"),
    ],
)
def test_values_that_the_model_cannot_have(heavy, monkeypatch, values, message) -> None:
    """Found before anything is learned."""
    monkeypatch.setattr(tc.MixedPoisson, "learn", None)
    monkeypatch.setattr(tc.MixedPoisson, "learn_unlabelled", None)
    sample, size = heavy
    even = tc.MixedPoisson(priors={"margin_a": tc.Prior("Dirichlet", a=1.0)})
    wrong = tc.LinearPool({**pool().members, "mixture": even}, nested={**NESTED, "wald": values})
    with pytest.raises(ParameterError, match=message):
        wrong.fit(sample, population_size=size, **QUIET)


@pytest.mark.slow
def test_by_nuts_it_moves_alike(religion_sample) -> None:
    """Shares from chains of the urn with a discount, and without any, in which Ewens'
    urn is one without; the root of the evidence has an error of some hundredths."""
    members = {"pitman": tc.ChineseRestaurant(), "ewens": tc.ChineseRestaurant(0.0)}
    urns = tc.LinearPool(members, nested={"ewens": {"discount": 0.0}})
    found = {}
    for method in ("fast", "nuts"):
        fit = urns.fit(religion_sample, population_size=2449, method=method, **QUIET)
        found[method] = json.loads(fit.attrs["shares"])
    assert found["fast"]["ewens"] > 0.52
    assert found["nuts"] == pytest.approx(found["fast"], abs=0.03)
