"""Departures from latent classes: probabilities against numerical integrals, the chain
against sums over a grid, factors against their distributions, and the whole against
simulated tables."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

import taciturn as tc
from taciturn.estimators.latent_class.departures import Departures
from taciturn.estimators.latent_class.kernels import log_of_departures, multiply_by_factors
from taciturn.estimators.problem import make_problem

PRIORS = {
    "nu": tc.Prior("LogNormal", mu=0.5, sigma=1.0),
    "power": tc.Prior("Uniform", lower=0.0, upper=1.0),
}
SHARES = np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.03, 0.02, 0.01, 0.005, 0.004, 0.001])


def problem_of(counts, size=500):
    table = xr.DataArray(np.reshape(counts, (3, 4)), dims=("a", "b"))
    return make_problem(table, size)


def exact(count: int, mean: float, shape: float) -> float:
    """f! p(f), the factor integrated out over its logarithm."""
    factor = stats.invgauss(mu=1 / shape, scale=shape)

    def density(x: float) -> float:
        g = exp(x)
        return factor.pdf(g) * exp(count * log(mean * g) - mean * g) * g

    return integrate.quad(density, -40, 12, points=[-3, -1, 0, 1, 2, 3], limit=500)[0]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize(("nu", "power", "intensity"), [(0.4, 0.0, 20.0), (3.0, 0.7, 45.0)])
def test_probabilities_are_integrals(count, nu, power, intensity) -> None:
    shares, cells = np.array([0.2, 0.01, 1e-3]), 12
    shapes = nu * (1 + cells * shares) ** power
    expected = [log(exact(count, intensity * s, r)) for s, r in zip(shares, shapes, strict=True)]
    tried, found = np.array([[log(nu), power, log(intensity)]]), []
    for share in shares:
        out = np.zeros(1)
        log_of_departures(np.array([float(count)]), np.ones(1), np.log([share]), cells, tried, out)
        found.append(out[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_factors_have_their_distributions() -> None:
    """Kolmogorov-Smirnov tests of 20,000 factors in four cells, of which right ones
    fail once in 25,000."""
    nu, power, intensity, cells = 0.7, 0.4, 30.0, 12
    shares, counts = np.array([0.3, 0.05, 0.2, 0.01]), np.array([0.0, 0.0, 6.0, 1.0])
    shapes, means = nu * (1 + cells * shares) ** power, intensity * shares
    rng = np.random.default_rng(1)

    def drawn(counts, intensity):
        weights = np.tile(shares, (20_000, 1))
        own = (np.full(20_000, x) for x in (nu, power, intensity))
        multiply_by_factors(weights, counts, cells, *own, rng)
        return (weights / shares).T

    for counted, size, factors in (
        (counts, means, drawn(counts, intensity)),
        (0 * counts, 0 * means, drawn(0 * counts, 0.0)),
    ):
        for f, m, r, own in zip(counted, size, shapes, factors, strict=True):
            chi, psi = r, r + 2 * m
            law = stats.geninvgauss(f - 0.5, (chi * psi) ** 0.5, scale=(chi / psi) ** 0.5)
            assert stats.kstest(own, law.cdf).pvalue > 1e-5


def test_empty_cells_on_a_grid_are_as_good_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    shares = rng.lognormal(0, 4, 2_000)
    shares /= shares.sum()
    counts = np.where(shares > 0.002, 3, 0) + (rng.random(2_000) < 0.02)
    table = xr.DataArray(counts.reshape(40, 50), dims=("a", "b"))
    chain = Departures(make_problem(table, 10_000), PRIORS, rng)
    tried = np.array(
        [
            [log(nu), power, log(counts.sum()) + off]
            for nu, power, off in product((0.2, 5), (0.1, 0.9), (-0.1, 0.2))
        ]
    )
    grouped, alone = np.zeros(len(tried)), np.zeros(len(tried))
    log_of_departures(*chain._grouped(shares), 2_000, tried, grouped)
    log_of_departures(counts.astype(float), np.ones(2_000), np.log(shares), 2_000, tried, alone)
    assert len(chain._grouped(shares)[0]) < 1_500
    np.testing.assert_allclose(grouped, alone, atol=0.01)


def chain_draws(counts, draws, seed) -> np.ndarray:
    """log ν, the power and the logarithm of the intensity, (draws, 3), given shares."""
    chain = Departures(problem_of(counts), PRIORS, np.random.default_rng(seed))
    for _ in range(60):
        chain.step(SHARES, adapt=True)
    found = []
    for _ in range(draws):
        chain.step(SHARES, adapt=False)
        found.append(chain._now)
    return np.array(found)


COUNTS = [9, 8, 0, 6, 1, 5, 1, 0, 2, 0, 0, 0]


def on_a_grid(shares, powers) -> tuple[np.ndarray, np.ndarray]:
    """Points, (log ν, power, log intensity), and their posterior probabilities."""
    axes = [np.linspace(-5, 7, 121), powers, np.linspace(0.5, 6.5, 121)]
    points = np.array(list(product(*axes)))
    logs = stats.norm(0.5, 1).logpdf(points[:, 0])
    log_of_departures(np.array(COUNTS, float), np.ones(12), np.log(shares), 12, points, logs)
    weights = np.exp(logs - logs.max())
    return points, weights / weights.sum()


def test_the_chain_is_that_of_sums_over_a_grid() -> None:
    """4,000 draws; batches of 80 give the Monte Carlo error, 4.5 of which a right
    sampler exceeds once in 20,000."""
    points, weights = on_a_grid(SHARES, np.linspace(0.0025, 0.9975, 40))
    drawn = chain_draws(COUNTS, 4_000, 3)
    for told in (lambda x: x, np.square):
        means = told(drawn).reshape(50, 80, 3).mean(axis=1)
        error = means.std(axis=0, ddof=1) / 50**0.5
        assert (error < [0.06, 0.02, 0.2]).all()
        np.testing.assert_array_less(
            np.abs(means.mean(axis=0) - weights @ told(points)), 4.5 * error
        )


def test_shares_of_the_draw_before_are_forgotten() -> None:
    """Of two shares in turn, each has the departures of its own: means against sums
    over a grid, 4.5 Monte Carlo errors, of 3,000 draws each."""
    other = np.full(12, 1 / 12)
    chain = Departures(problem_of(COUNTS), PRIORS, np.random.default_rng(4))
    found = {0: [], 1: []}
    for number in range(6_100):
        chain.step((SHARES, other)[number % 2], adapt=number < 100)
        if number >= 100:
            found[number % 2].append(chain._now)
    for which, shares in enumerate((SHARES, other)):
        points, weights = on_a_grid(shares, np.linspace(0.0125, 0.9875, 40))
        means = np.array(found[which]).reshape(50, 60, 3).mean(axis=1)
        error = means.std(axis=0, ddof=1) / 50**0.5
        np.testing.assert_array_less(np.abs(means.mean(axis=0) - weights @ points), 4.5 * error)


@pytest.mark.parametrize(
    "priors",
    [
        {"power": tc.Prior("Uniform", lower=0, upper=1e-4)},
        {"power": tc.Prior("Uniform", lower=0, upper=99)},
        {"power": tc.Prior("HalfCauchy", beta=1)},
        {"power": tc.Prior("LogNormal", mu=5, sigma=0.01)},
        {"nu": tc.Prior("Uniform", lower=3, upper=3.0003)},
        {"nu": tc.Prior("Gamma", alpha=0.01, beta=0.01)},
        {"nu": tc.Prior("InverseGamma", alpha=0.01, beta=0.01)},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_priors_that_say_next_to_nothing_or_all(priors) -> None:
    sample = xr.DataArray([[40, 0, 1], [0, 3, 1]], dims=("a", "b"))
    arguments = {"draws": 20, "tune": 20, "chains": 2, "random_seed": 1, "progressbar": False}
    fit = tc.LatentClass(priors).fit(sample, population_size=900, **arguments)
    posterior = fit["posterior"].to_dataset()
    assert np.isfinite(posterior[["nu", "power", "intensity", "expected_tau1"]].to_array()).all()
    assert (fit["posterior_predictive"]["population"].sum(["a", "b"]) == 900).all()


def test_a_prior_outside_of_what_can_be_computed() -> None:
    priors = {"nu": tc.Prior("Uniform", lower=1e13, upper=1e14)}
    sample = xr.DataArray([[40, 0, 1], [0, 3, 1]], dims=("a", "b"))
    with pytest.raises(tc.errors.PriorError, match="next to nothing where these can be"):
        tc.LatentClass(priors).fit(sample, population_size=900, progressbar=False)


@pytest.mark.parametrize("power", [0.0, 150.0])
def test_shapes_beyond_all_bounds_are_drawn_from(power) -> None:
    shares, counts = np.array([[0.5, 0.4, 0.1, 0.0]]), np.array([7.0, 1.0, 0.0, 0.0])
    for nu in (0.0, 1.0, np.inf):
        weights = shares.copy()
        values = (np.array([nu]), np.array([power]), np.array([8.0]))
        multiply_by_factors(weights, counts, 1000, *values, np.random.default_rng(1))
        assert np.isfinite(weights).all()
        assert (weights[0] > 0).tolist() == [True, True, True, False]


@pytest.mark.statistical
def test_departures_are_calibrated_given_the_shares() -> None:
    """400 tables from the prior: ranks of log ν and of the power among 60 draws are
    uniform. Chi-square tests of 10 bins, of which right ranks fail once in 10,000."""
    rng = np.random.default_rng(5)
    ranks = []
    for number in range(400):
        nu, power = (prior.draw(rng, 1) for prior in PRIORS.values())
        shares = SHARES[None].copy()
        multiply_by_factors(shares, np.zeros(12), 12, nu, power, np.zeros(1), rng)
        counts = rng.multinomial(60, shares[0] / shares.sum())
        drawn = chain_draws(counts, 240, number)[::4]
        true = [log(nu[0]), power[0]]
        ranks.append([(drawn[:, k] < true[k]).mean() for k in (0, 1)])
    for own in np.array(ranks).T:
        observed, _ = np.histogram(own, bins=10, range=(0, 1 + 1e-9))
        assert stats.chisquare(observed).pvalue > 1e-4


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_departures_that_are_next_to_nothing_change_nothing() -> None:
    """R2 with factors of 1 as good as, and without any: 400 draws each, whose means
    differ by the Monte Carlo error of both."""
    rng = np.random.default_rng(6)
    table = rng.poisson(8 * rng.lognormal(-1.1, 1.5, (6, 6, 6)))
    population = xr.DataArray(table, dims=("a", "b", "c"))
    sample = tc.draw_sample(population, fraction=0.2, random_seed=1)
    risks = []
    for model in (
        tc.LatentClass({"nu": tc.Prior("LogNormal", mu=15, sigma=0.01)}),
        tc.LatentClass(departures=False),
    ):
        fit = model.fit(
            sample,
            population_size=int(table.sum()),
            draws=200,
            tune=300,
            chains=2,
            random_seed=2,
            progressbar=False,
        )
        risks.append(tc.assess(fit)["risk"]["R2"].values)
    assert abs(risks[0].mean() - risks[1].mean()) < 0.01
    assert abs(risks[0].std() / risks[1].std() - 1) < 0.4


def test_departures_must_be_true_or_false() -> None:
    with pytest.raises(
        tc.errors.ParameterError, match="departures must be True or False, got 'no'"
    ):
        tc.LatentClass(departures="no")
