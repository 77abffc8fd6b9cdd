"""Posteriors of samples of a few people, against draws of the prior, weighted by the
probability of the sample."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import logsumexp

import taciturn as tc
from taciturn.estimators.problem import make_problem
from taciturn.fits.unlabelled import measure
from taciturn.risk.table_risk import DEFAULT_WEIGHTS

DRAWS, KEPT = 500_000, 40_000
WALD = "inverse Gaussian"


def table(counts) -> xr.DataArray:
    counts = np.asarray(counts)
    coords = {d: [f"{d}{i}" for i in range(s)] for d, s in zip("ab", counts.shape, strict=False)}
    return xr.DataArray(counts, dims=tuple("ab"[: counts.ndim]), coords=coords)


def by_prior(counts, size: int, mixing: str, most: float = 1.0, alike: bool = False):
    """Logarithms of ν and of each concentration, the power, which is uniform up to
    `most`, and R2 in draws of the posterior; of a model without effects if cells are
    `alike`, with the prior of ν that the default has for one variable.
    """
    rng, counts = np.random.default_rng(1), np.asarray(counts)
    n, cells = counts.sum(), counts.size
    log_nu = 1 + np.log(n / cells) + 1.5 * rng.normal(size=DRAWS)
    if alike:
        log_nu = 2 * rng.normal(size=DRAWS)
    power, share = most * rng.random(DRAWS), rng.random((DRAWS, 1))
    log_pi, logs = np.zeros((DRAWS, 1)), [log_nu]
    if alike:
        log_pi = np.full((DRAWS, cells), -np.log(cells))
    for length in () if alike else counts.shape:
        a = 0.5 * rng.random(DRAWS) ** -4.0  # Pareto with shape 1/4
        log_g = np.log(rng.gamma(np.repeat((a + 1)[:, None], length, axis=1)))
        log_g += np.log(rng.random((DRAWS, length))) / a[:, None]
        margin = log_g - logsumexp(log_g, axis=1, keepdims=True)
        log_pi = (log_pi[:, :, None] + margin[:, None]).reshape(DRAWS, -1)
        logs.append(np.log(a))
    shape = np.exp(log_nu[:, None] + power[:, None] * (np.log(cells) + log_pi))
    log_factors = np.log(rng.gamma(shape + 1)) + np.log(rng.random(shape.shape)) / shape
    log_factors -= np.log(shape)
    if mixing != "gamma":
        wald = np.log(rng.wald(1.0, np.maximum(shape, 1e-12)))
        among = share if mixing == "mixture" else 1.0
        log_factors = np.where(rng.random(shape.shape) < among, wald, log_factors)
    log_p = log_pi + log_factors
    log_p -= logsumexp(log_p, axis=1, keepdims=True)
    occupied = np.flatnonzero(counts)
    log_weights = log_p[:, occupied] @ counts.ravel()[occupied]
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    kept = rng.choice(DRAWS, size=KEPT, p=weights)
    p = np.exp(log_p[kept])
    population = counts.ravel() + rng.multinomial(size - n, p / p.sum(axis=1, keepdims=True))
    r2 = measure(population, make_problem(table(counts), size), DEFAULT_WEIGHTS)[1]
    return [own[kept] for own in (*logs, power)], r2, 1 / (weights**2).sum()


@pytest.mark.parametrize(
    ("counts", "size", "mixing"),
    [
        ([[3, 1], [0, 2]], 100, "mixture"),  # both areas have three: an even margin
        ([[2, 1], [1, 2]], 100, "mixture"),
        ([[1, 0]] * 3 + [[0, 1]] * 3, 60, "gamma"),
        ([0, 0, 4, 0, 0, 0], 100, "gamma"),  # a heavy tail of the intensity
        ([[3, 0, 0], [0, 0, 0], [0, 0, 0]], 50, "gamma"),
    ],
)
def test_posteriors_of_a_few_people(counts, size, mixing):
    """Means within four standard errors of both, and 0.02 standard deviations."""
    logs, r2, effective = by_prior(counts, size, mixing)
    assert effective > 5_000
    fit = tc.assess(
        tc.MixedPoisson(mixing=mixing).fit(
            table(counts), population_size=size, draws=10_000, random_seed=1, progressbar=False
        )
    )
    assert fit.attrs["sampler"] == "importance sampling"
    drawn = tc.summary(fit).diagnostics.ess
    posterior = fit["posterior"]
    names = ["nu", *(f"concentration_{dim}" for dim in "ab"[: np.ndim(counts)])]
    found = [np.log(posterior[name].values.ravel()) for name in names]
    found += [posterior["power"].values.ravel(), fit["risk"]["R2"].values.ravel()]
    for name, own, exact in zip([*names, "power", "R2"], found, [*logs, r2], strict=True):
        error = np.sqrt(own.var() / drawn + exact.var() / min(effective, KEPT))
        assert abs(own.mean() - exact.mean()) < 4 * error + 0.02 * exact.std(), name


@pytest.mark.parametrize(
    ("counts", "member"),
    [
        ([6, 1, 0, 0, 2, 0], "mixture"),
        ([3, 3, 2, 4], "mixture"),  # even
        ([4, 0, 0, 0, 0, 0], "wald"),
    ],
)
def test_posteriors_of_one_variable(counts, member):
    """Of the default, with the tolerance above."""
    logs, r2, effective = by_prior(
        counts, 100, "mixture" if member == "mixture" else WALD, alike=True
    )
    assert effective > 5_000
    estimator = tc.default_estimator(table(counts)).members[member]
    fit = tc.assess(
        estimator.fit(
            table(counts), population_size=100, draws=10_000, random_seed=1, progressbar=False
        )
    )
    assert fit.attrs["sampler"] == "importance sampling"
    drawn = tc.summary(fit).diagnostics.ess
    found = {"nu": np.log(fit["posterior"]["nu"].values), "R2": fit["risk"]["R2"].values}
    for (name, own), exact in zip(found.items(), [logs[0], r2], strict=True):
        error = np.sqrt(own.var() / drawn + exact.var() / min(effective, KEPT))
        assert abs(own.mean() - exact.mean()) < 4 * error + 0.02 * exact.std(), name


@pytest.mark.parametrize("most", [2.5, 4.0])
def test_a_power_whose_prior_ends_far_out(most):
    """The grid grows up to where the prior ends."""
    counts = [[3, 1], [0, 2], [1, 1]]
    logs, _, effective = by_prior(counts, 60, "mixture", most)
    priors = {"power": tc.Prior("Uniform", lower=0, upper=most)}
    problem = make_problem(table(counts), 60)
    found = tc.MixedPoisson(priors=priors).learn_unlabelled(
        problem, 10_000, np.random.default_rng(1)
    )
    own, exact = found.draws["power"], logs[-1]
    assert own.max() > 0.98 * most
    error = np.sqrt(own.var() / found.importance.ess + exact.var() / min(effective, KEPT))
    assert abs(own.mean() - exact.mean()) < 4 * error + 0.02 * exact.std()
