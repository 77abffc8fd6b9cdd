"""The density of a prior at one number, and SciPy's."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import lognorm, uniform

import taciturn as tc
from taciturn.estimators.densities import log_density
from taciturn.estimators.priors import Prior

PRIORS = [
    tc.Prior("HalfNormal", sigma=0.7),
    tc.Prior("LogNormal", mu=-1.5, sigma=2.5),
    tc.Prior("Uniform", lower=0.25, upper=3.0),
    tc.Prior("Gamma", alpha=2.0, beta=0.5),
    tc.Prior("Beta", alpha=2.0, beta=3.0),
]


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@given(value=st.floats(-2.0, 20.0, allow_subnormal=False))  # whose products SciPy loses
def test_one_number(prior: tc.Prior, value: float) -> None:
    exact, found = float(prior.logpdf(np.array([value]))[0]), prior.log_at(value)
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-9) or exact == found == -math.inf


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_ends(prior: tc.Prior) -> None:
    for value in (0.0, 0.25, 1.0, 3.0):
        exact = float(prior.logpdf(np.array([value]))[0])
        assert prior.log_at(value) == pytest.approx(exact, abs=1e-9)


EVERY = [
    *PRIORS,
    tc.Prior("HalfCauchy", beta=2.0),
    tc.Prior("HalfStudentT", nu=3.0, sigma=1.5),
    tc.Prior("InverseGamma", alpha=2.0, beta=0.5),
    tc.Prior("Exponential", lam=0.5),
    tc.Prior("Pareto", alpha=0.5, m=2.0),
]


@pytest.mark.parametrize("prior", EVERY, ids=repr)
def test_exceeded_are_quantiles_from_above(prior: tc.Prior) -> None:
    probabilities = np.array([0.9, 0.5, 0.01])
    by_one = [prior.quantile(1 - probability) for probability in probabilities]
    np.testing.assert_allclose(prior.exceeded(probabilities), by_one, rtol=1e-12)
    rng = np.random.default_rng(1)  # the share of 40,000 draws has a standard error of 0.0025
    drawn = prior.draw(rng, 40_000)
    assert (drawn > by_one[1]).mean() == pytest.approx(0.5, abs=0.01)


@given(
    lower=st.floats(0, 5, allow_subnormal=False),
    width=st.floats(0.1, 50),
    value=st.floats(-2, 60, allow_subnormal=False),
)
def test_uniform(lower: float, width: float, value: float) -> None:
    prior, exact = tc.Prior("Uniform", lower=lower, upper=lower + width), uniform(lower, width)
    values = np.array([value, lower, lower + width, lower - 1e-9, lower + width + 1e-9])
    np.testing.assert_allclose(prior.logpdf(values)[:2], exact.logpdf(values)[:2], atol=1e-12)
    expected = [-math.log(width), -np.inf, -np.inf]
    np.testing.assert_allclose(prior.logpdf(values)[2:], expected, rtol=1e-12, atol=1e-12)


@given(  # of subnormal numbers SciPy has seven digits
    mu=st.floats(-20, 20),
    sigma=st.floats(0.1, 5),
    value=st.floats(-2, 1e6, allow_subnormal=False),
)
def test_log_normal(mu: float, sigma: float, value: float) -> None:
    prior, exact = tc.Prior("LogNormal", mu=mu, sigma=sigma), lognorm(s=sigma, scale=math.exp(mu))
    found = prior.logpdf(np.array([value]))
    np.testing.assert_allclose(found, exact.logpdf([value]), rtol=1e-9, atol=1e-9)
    for probability in (0.0, 1e-7, 0.4, 1.0):
        assert prior.quantile(probability) == pytest.approx(exact.ppf(probability), rel=1e-9)


@pytest.mark.parametrize(
    "prior",
    [
        Prior("Beta", alpha=0.4, beta=3.0),
        Prior("Exponential", lam=0.3),
        Prior("Gamma", alpha=0.7, beta=0.2),
        Prior("HalfCauchy", beta=3.0),
        Prior("HalfNormal", sigma=2.0),
        Prior("HalfStudentT", nu=3.5, sigma=2.0),
        Prior("InverseGamma", alpha=1.5, beta=4.0),
        Prior("LogNormal", mu=-1.0, sigma=2.5),
        Prior("Pareto", alpha=1.2, m=0.3),
        Prior("Uniform", lower=0.1, upper=5.0),
    ],
    ids=lambda prior: prior.distribution,
)
def test_densities_in_compiled_code(prior):
    """Those of SciPy, also outside of what a distribution reaches."""
    values = np.concatenate([np.geomspace(1e-9, 1e9, 300), [-1.0, 0.0, 0.2999, 0.3, 1.0, 5.001]])
    found = [log_density(*prior.coded, value) for value in values]
    np.testing.assert_allclose(found, prior.logpdf(values), rtol=1e-10, atol=1e-10)
