"""Factors that are integrated out: sums, moments, numerical integration, and the
distribution of a factor given a count."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma, geninvgauss, invgauss, nbinom, poisson

from interpreted import INTERPRETED, interpreted
from taciturn.estimators.mixed_poisson.mixing import MIXING, Mixing, log_not_all, mixing_with

COUNTS = np.arange(400.0)
DENSITY = {
    "gamma": lambda r: gamma(r, scale=1 / r).pdf,
    "inverse Gaussian": lambda r: invgauss(1 / r, scale=r).pdf,
}
SHARE = 0.3  # of inverse Gaussian factors in a mixture
ZEROS = "mixture with zeros"
INFLATION = 0.2  # probability of a zero
each = pytest.mark.parametrize("name", [*MIXING, "mixture", ZEROS])
of_moments = pytest.mark.parametrize(("mean", "shape"), [(3.0, 0.5), (0.1, 2.0), (20.0, 5.0)])


def mixing_of(name: str, draws: int = 1) -> Mixing:
    if name in MIXING:
        return MIXING[name]
    zeros = np.full(draws, INFLATION) if name == ZEROS else 0.0
    return mixing_with(np.full(draws, SHARE), zeros)


def filled(name: str) -> float:
    """The probability that a factor is not 0."""
    return 1 - INFLATION if name == ZEROS else 1.0


def density_of(name: str, shape: float):
    if name in DENSITY:
        return DENSITY[name](shape)
    first, second = (density(shape) for density in DENSITY.values())
    return lambda g: filled(name) * ((1 - SHARE) * first(g) + SHARE * second(g))


def log_pmf(name: str, counts, mean: float, shape: float):
    counts = np.asarray(counts, dtype=float)
    one = np.ones((1, len(counts)))
    found = mixing_of(name).log_pmf(counts, one * np.log(mean), one * np.log(shape))[0]
    return found - gammaln(counts + 1)


@each
@of_moments
def test_counts_sum_to_one_with_the_moments_of_a_mixture(name, mean, shape):
    p = np.exp(log_pmf(name, COUNTS, mean, shape))
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert p @ COUNTS == pytest.approx(filled(name) * mean, rel=1e-8)
    square = mean + mean**2 / shape + mean**2
    assert p @ COUNTS**2 == pytest.approx(filled(name) * square, rel=1e-6)


@each
@pytest.mark.parametrize("count", [0, 1, 7, 41, 90])
@pytest.mark.parametrize(("mean", "shape"), [(2.0, 0.3), (60.0, 4.0)])
def test_counts_are_what_integration_gives(name, count, mean, shape):
    def integrand(y: float) -> float:
        g = np.exp(y)
        return float(poisson(mean * g).pmf(count) * density_of(name, shape)(g) * g)

    middle = np.log((count + 0.5) / mean)
    direct, _ = quad(integrand, -200, 12, points=[-40, -10, -2, 0, 2, middle], limit=800)
    direct += (1 - filled(name)) * (count == 0)
    if direct > 1e-280:
        assert np.exp(log_pmf(name, [count], mean, shape)[0]) == pytest.approx(direct, rel=1e-6)


def test_gamma_factors_give_the_negative_binomial():
    exact = nbinom(0.7, 0.7 / (0.7 + 4)).logpmf(COUNTS)
    np.testing.assert_allclose(log_pmf("gamma", COUNTS, 4.0, 0.7), exact, rtol=1e-9, atol=1e-9)


@each
@pytest.mark.parametrize("shape", [1e-7, 1e-3, 1e7])
def test_extreme_shapes(name, shape):
    """With hardly any spread a Poisson; with much, nearly everything is empty."""
    found = log_pmf(name, [0, 1, 2, 50, 3000], 2.0, shape)
    assert np.isfinite(found).all()
    if shape > 1:
        expected = filled(name) * poisson(2).pmf([0, 1, 2])
        expected[0] += 1 - filled(name)
        np.testing.assert_allclose(found[:3], np.log(expected), atol=1e-5)
    else:
        assert found[0] > -0.1


@each
def test_large_counts_follow_on_from_small_ones(name):
    """Where the series for large orders takes over, ratios of neighbours go on."""
    steps = np.diff(log_pmf(name, np.arange(20.0, 60.0), 25.0, 1.3))
    assert np.abs(np.diff(steps, n=2)).max() < 2e-4


@pytest.mark.parametrize("name", MIXING)
def test_factors_given_counts(name):
    """Means of 200,000 draws against exact ones, within 5 standard errors."""
    mean, shape, rng = 1.7, 0.6, np.random.default_rng(5)
    counts = np.array([0.0, 1.0, 2.0, 30.0])
    one = np.ones((200_000, len(counts)))
    drawn = MIXING[name].draw(counts, mean * one, shape * one, rng)
    if name == "gamma":
        exact = [gamma(shape + f, scale=1 / (shape + mean)) for f in counts]
    else:
        psi = shape + 2 * mean
        omega, unit = np.sqrt(shape * psi), np.sqrt(shape / psi)
        exact = [geninvgauss(f - 0.5, omega, scale=unit) for f in counts]
    for values, law in zip(drawn.T, exact, strict=True):
        assert abs(values.mean() - law.mean()) < 5 * law.std() / len(values) ** 0.5
        assert abs((values < law.mean()).mean() - law.cdf(law.mean())) < 5 * 0.5 / 447


@pytest.mark.parametrize("name", ["mixture", ZEROS])
def test_factors_of_a_mixture_given_counts(name):
    """Means of powers of 200,000 draws against integrals, within 5 standard errors."""
    mean, shape, rng = 1.7, 0.6, np.random.default_rng(5)
    counts = np.array([0.0, 1.0, 2.0, 30.0])
    one = np.ones((200_000, len(counts)))
    drawn = mixing_of(name, 200_000).draw(counts, mean * one, shape * one, rng)
    assert ((drawn == 0).any(axis=0) == ((counts == 0) & (name == ZEROS))).all()
    density = density_of(name, shape)

    def integral(count, power):
        def integrand(y):
            g = np.exp(y)
            return poisson(mean * g).pmf(count) * density(g) * g * g**power

        return quad(integrand, -60, 6, points=[-20, -6, -1, 0, 1, 3], limit=800)[0]

    for count, values in zip(counts, drawn.T, strict=True):
        for power in (0.5, 1.0):
            moments = [integral(count, own) for own in (0, power, 2 * power)]
            moments[0] += (1 - filled(name)) * (count == 0)
            expected, square = (moment / moments[0] for moment in moments[1:])
            error = ((square - expected**2) / len(values)) ** 0.5
            assert abs((values**power).mean() - expected) < 5 * error, (count, power)


@pytest.mark.parametrize(("share", "name"), [(0.0, "gamma"), (1.0, "inverse Gaussian")])
def test_a_mixture_of_one_is_that_one(share, name):
    assert mixing_with(np.full(3, share)) is MIXING[name]
    assert mixing_with(share) is MIXING[name]
    assert mixing_with(share, np.zeros(3)) is MIXING[name]


def test_cells_that_can_be_filled_follow_their_distribution():
    """Of three and of two cells, each stratum with at least one: the shares of all
    patterns of 200,000 draws, within 5 standard errors."""
    rows, of_cell = 200_000, np.array([0, 1, 0, 1, 0])
    for inflation in (INFLATION, 0.97):
        mixing = mixing_with(0.0, np.full(rows, inflation))
        drawn = mixing.draw_log_prior(np.full((rows, 5), 2.0), of_cell, np.random.default_rng(7))
        there = np.isfinite(drawn)
        for pattern in np.ndindex(2, 2, 2, 2, 2):
            known = np.array(pattern)
            if not (known[of_cell == 0].any() and known[of_cell == 1].any()):
                expected = 0.0
            else:
                chance = np.where(known, 1 - inflation, inflation).prod()
                expected = chance / (1 - inflation**3) / (1 - inflation**2)
            error = (expected * (1 - expected) / rows) ** 0.5
            assert abs((there == known).all(axis=1).mean() - expected) <= 5 * error, pattern


@pytest.mark.parametrize("inflation", [0.0, 1e-17, 1 - 1e-16, 1.0])
def test_inflations_that_round_to_the_ends(inflation):
    """All cells, or one of each stratum."""
    of_cell = np.array([0, 1, 0, 1, 0])
    mixing = mixing_with(0.0, np.array([inflation, 0.5]))  # the latter so that it is mixed
    drawn = mixing.draw_log_prior(np.full((2, 5), 2.0), of_cell, np.random.default_rng(7))
    assert np.isfinite(drawn[0]).sum() == (5 if inflation < 0.5 else 2)
    found = mixing.log_pmf(np.array([0.0, 1.0]), np.zeros((2, 2)), np.zeros((2, 2)))
    assert np.isfinite(found).all()
    assert np.isfinite(log_not_all(np.array([inflation]), np.array([3, 2]))).all()


@each
def test_factors_without_counts_have_mean_one(name):
    rng = np.random.default_rng(6)
    mixing = mixing_of(name, 400_000)
    one = np.zeros(1, dtype=np.int64)  # a cell that can be filled, as there is no other
    drawn = np.exp(mixing.draw_log_prior(np.full((400_000, 1), 2.0), one, rng))
    assert abs(drawn.mean() - 1) < 5 * (0.5 / 400_000) ** 0.5
    assert drawn.var() == pytest.approx(0.5, rel=0.05)
    mixing = mixing_of(name, 1000)
    assert np.isfinite(mixing.draw_log_prior(np.full((1000, 1), 1e-5), one, rng)).all()


@each
@interpreted
def test_the_pymc_model_has_the_same_probabilities(name):
    counts = np.array([0, 1, 5, 30, 31, 400])
    mean, shape = np.array([0.1, 1.0, 3.0, 9.0, 40.0, 70.0]), np.array([3, 0.2, 1, 2, 0.7, 1.5])
    with pm.Model() as model:
        zeros = pt.constant(INFLATION) if name == ZEROS else 0.0
        mixing = MIXING[name] if name in MIXING else mixing_with(pt.constant(SHARE), zeros)
        variable = mixing.observe("counts", mean, shape, counts)
    found = float(pytensor.function([], model.logp(), mode=INTERPRETED)())
    one = np.ones((1, 6))
    exact = mixing_of(name).log_pmf(counts.astype(float), one * np.log(mean), one * np.log(shape))
    assert found == pytest.approx((exact - gammaln(counts + 1)).sum(), abs=1e-8)
    assert pm.draw(variable, random_seed=1, mode=INTERPRETED).shape == (6,)
