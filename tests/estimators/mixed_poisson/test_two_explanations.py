"""Tables of which uneven margins with small departures say as much as even margins with
large ones: a grid whose concentrations are those of the likelier half proposes too
little of the other."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.estimators.mixed_poisson import importance
from taciturn.estimators.problem import make_problem

MIXTURE, WALD = {}, {"mixing": "inverse Gaussian"}
ZEROS = {"mixing": "gamma", "zero_inflated": True}
TABLES = {
    "four categories": (MIXTURE, [3, 48, 354, 17], 1408),
    "twelve categories": (WALD, [13, 17, 4, 4, 42, 1, 559, 3, 1, 36, 0, 10], 2300),
    "nearly one column": (MIXTURE, [[20, 0, 0, 2], [29, 0, 0, 0], [224, 6, 4, 0]], 951),
    "nearly one cell": (WALD, [[41, 10], [14, 1049]], 11_149),
    "nearly one row": (
        ZEROS,
        [[18, 1, 3, 241, 161, 16, 1, 8], [0, 0, 0, 0, 1, 0, 0, 0]],
        1501,
    ),
}
NUTS = {
    "four categories": (5.625, 1.516, 0.430),
    "twelve categories": (4.555, 1.980, 0.482),
    "nearly one column": (3.045, 1.810, 0.480),
    "nearly one cell": (0.483, 1.523, 0.567),
    "nearly one row": (4.237, 1.646, 0.469),
}
"""Mean and standard deviation of log ν and mean of R2 in four chains of 4,000 draws."""
each = pytest.mark.parametrize("name", TABLES)


def problem_of(name):
    _, counts, size = TABLES[name]
    counts = np.array(counts)
    dims = ("a", "b")[: counts.ndim]
    coords = {
        dim: [f"{dim}{k}" for k in range(n)] for dim, n in zip(dims, counts.shape, strict=True)
    }
    sample = xr.DataArray(counts, dims=dims, coords=coords, name="count")
    return sample, size


@each
def test_both_are_proposed(name, monkeypatch):
    """Where the first grid is not enough a closer one is, with what NUTS found: of
    these and of its own draws the Monte Carlo errors are below a third of what is
    allowed."""
    tried, fit_grid = [], importance.Fitted.to

    def to(target, *, closely):
        tried.append(closely)
        return fit_grid(target, closely=closely)

    monkeypatch.setattr(importance.Fitted, "to", to)
    sample, size = problem_of(name)
    model = tc.MixedPoisson(**TABLES[name][0])
    problem = make_problem(sample, size)
    found = model.learn_unlabelled(problem, 4_000, np.random.default_rng(1))
    assert found is not None
    assert found.importance is not None
    assert found.importance.converged
    assert tried == [False, True]
    mean, spread, _ = NUTS[name]
    log_nu = np.log(found.draws["nu"])
    assert log_nu.mean() == pytest.approx(mean, abs=0.25)
    assert log_nu.std() == pytest.approx(spread, rel=0.12)


@each
@pytest.mark.slow
def test_it_agrees_with_nuts(name):
    sample, size = problem_of(name)
    model, r2 = tc.MixedPoisson(**TABLES[name][0]), []
    for method in ("fast", "nuts"):
        fit = model.fit(
            sample,
            population_size=size,
            draws=5_000,
            tune=2_000,
            random_seed=2,
            method=method,
            progressbar=False,
        )
        r2.append(tc.assess(fit)["risk"]["R2"].values)
    assert fit.attrs["sampler"] != "importance sampling"
    assert r2[0].mean() == pytest.approx(r2[1].mean(), abs=0.005)
    assert r2[0].mean() == pytest.approx(NUTS[name][2], abs=0.005)
    ends = [np.quantile(values, [0.025, 0.975]) for values in r2]
    np.testing.assert_allclose(*ends, atol=0.015)


@pytest.mark.parametrize("people", [1, 3, 6])
def test_strong_departures_of_a_few_people_in_one_cell_are_proposed(people):
    """With everybody in one cell of three, draws from the prior, weighted."""
    rng = np.random.default_rng(people)
    size, draws, cells = (400_000,), (400_000, 3), 6

    def log_gammas(shape):
        return np.log(rng.gamma(shape + 1)) + np.log(rng.random(shape.shape)) / shape

    log_nu = 1 + np.log(people / cells) + 1.5 * rng.standard_normal(size)
    power, inflation = rng.random((2, *size))
    concentration = np.minimum(0.5 * rng.random(size) ** -4, 1e8)
    margin = log_gammas(np.broadcast_to(concentration[:, None], draws))
    shares = np.exp(margin - margin.max(axis=1, keepdims=True))
    shares *= 20 / 45 / shares.sum(axis=1, keepdims=True)
    shape = np.exp(log_nu)[:, None] * (cells * shares) ** power[:, None]
    logs = np.log(shares) + log_gammas(shape) - np.log(shape)
    logs[rng.random(draws) < inflation[:, None]] = -np.inf
    some = np.isfinite(logs.max(axis=1))
    rates = np.exp(logs - np.where(some, logs.max(axis=1), 0)[:, None])
    chance = rates[:, 1] / np.where(some, rates.sum(axis=1), 1)
    weights = np.where(some, chance**people, 0) / (1 - inflation**3)
    order = np.argsort(log_nu)
    tenth = log_nu[order][np.searchsorted(np.cumsum(weights[order]), 0.1 * weights.sum())]

    labels = {"a": list("xy"), "b": list("pqr")}
    sample = xr.DataArray([[0, people, 0], [0, 0, 0]], dims=("a", "b"), coords=labels)
    strata = xr.DataArray([20, 25], dims="a", coords={"a": labels["a"]})
    fit = tc.MixedPoisson(**ZEROS).fit(
        sample, population_size=45, strata=strata, draws=4000, random_seed=1
    )
    below = np.log(fit["posterior"]["nu"].values) < tenth
    # Monte Carlo errors are 0.004; without these tails it was 0.03 to 0.08.
    assert abs(below.mean() - 0.1) < 0.018
