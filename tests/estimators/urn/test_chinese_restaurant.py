"""The Chinese restaurant: special cases, the urn that closes, the fast path, and input
it has to bear."""

from collections import Counter
from itertools import permutations
from math import comb, exp, factorial, fsum, log, log1p, prod

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy.stats import chi2_contingency

import taciturn as tc
from exact import (
    assert_same_distribution,
    dirichlet_multinomial_pmf,
    tables,
    urn_distribution,
    urn_from_nothing,
)
from interpreted import INTERPRETED, interpreted
from taciturn.errors import ParameterError, PriorError
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import make_problem
from taciturn.estimators.sampling.draws import draw_urn, draw_urn_from_nothing
from taciturn.estimators.settings import SamplerSettings
from taciturn.estimators.urn import chinese_restaurant
from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.estimators.urn.quadrature import UrnLikelihood, closing_times, sample_urn_parameters

DRAWS = 100_000
BASE = (4.0, 1.0, 2.0, 0.5)
DEFAULT = {
    "theta": Prior("LogNormal", mu=log(90), sigma=1.5),
    "discount": Prior("Beta", alpha=1, beta=2),
}


def table(values) -> xr.DataArray:
    array = np.asarray(values)
    coords = {d: [f"{d}{i}" for i in range(s)] for d, s in zip("ab", array.shape, strict=True)}
    return xr.DataArray(array, dims=("a", "b"), coords=coords)


def partition_probability(x, cells: int, theta: float, sigma: float) -> float:
    """Probability of a table by the fast path's likelihood: times the orders, and the
    labels when all are alike."""
    counts = np.array(x)
    value = UrnLikelihood(counts, cells)(np.array(theta), np.array(sigma))
    k = int((counts > 0).sum())
    orders = factorial(sum(x)) / prod(map(factorial, x))
    return float(np.exp(value)) * orders * factorial(cells - k) / factorial(cells)


def posterior_draws(counts, cells: int, priors=DEFAULT, discount=None, draws: int = 20_000):
    found = sample_urn_parameters(
        UrnLikelihood(np.asarray(counts), cells), priors, discount, draws, np.random.default_rng(1)
    )
    assert found is not None
    assert found[2].converged, found[2]
    return found


# ---- likelihood, closing included


@pytest.mark.parametrize("counts", [(1, 1), (3, 1), (2, 2, 1), (4, 2, 1), (1, 1, 1, 1)])
def test_closing_times_against_every_order(counts) -> None:
    people = [cell for cell, count in enumerate(counts) for _ in range(count)]
    seen = Counter(
        max(order.index(cell) for cell in set(people)) + 1 for order in permutations(people)
    )
    times, chance = closing_times(np.array(counts), len(counts))
    assert dict(zip(times.tolist(), chance.tolist(), strict=True)) == pytest.approx(
        {s: number / seen.total() for s, number in seen.items()}
    )


def test_closing_times_of_a_large_sample() -> None:
    """Random orders: q_s = 1 - C(n - f, s)/C(n, s) for the rare colour; 512 draws, so 5
    standard errors are 0.11."""
    f, n = 3, 2000
    times, chance = closing_times(np.array([f, n - f]), 2)
    for s in (100, 500, 1000, 1500):
        exact = 1 - comb(n - f, s) / comb(n, s)  # the frequent colour is there with certainty
        assert abs(chance[times <= s].sum() - exact) < 5 * 0.5 / 512**0.5
    again = closing_times(np.array([f, n - f]), 2)
    assert (again[0] == times).all()
    open_ones = closing_times(np.array([f, n - f, 0]), 3)
    assert open_ones[0].tolist() == [n]
    assert open_ones[1].tolist() == [1.0]


@pytest.mark.parametrize(("theta", "sigma"), [(0.3, 0.0), (2.5, 0.0), (0.7, 0.6), (40.0, 0.3)])
@pytest.mark.parametrize(("cells", "size"), [(2, 6), (3, 6), (4, 4), (5, 3)])
def test_likelihood_of_every_table(cells, size, theta, sigma) -> None:
    """The urn ball by ball, tables that fill all cells among them; over all tables the
    likelihood sums to 1."""
    exact = urn_from_nothing(cells, size, theta, sigma)
    for x, chance in exact.items():
        assert partition_probability(x, cells, theta, sigma) == pytest.approx(chance, rel=1e-9)
    assert sum(partition_probability(x, cells, theta, sigma) for x in exact) == pytest.approx(1)


@pytest.mark.parametrize("x", [(3, 2, 1), (1, 1, 4), (6, 0, 0), (1, 5, 0)])
@interpreted
def test_model_likelihood_agrees(x) -> None:
    """The PyMC model of a table, which holds that table's closing times; for others
    that fill all cells it is NaN."""
    model = ChineseRestaurant().build(table([x]), 10)
    value = pt.lvector()
    logp = pm.logp(model["sample_counts"], value)
    compiled = pytensor.function([model["theta"], model["discount"], value], logp, mode=INTERPRETED)
    for theta_, sigma in ((0.4, 0.2), (9.0, 0.7)):
        exact = urn_from_nothing(3, 6, theta_, sigma)
        assert float(compiled(theta_, sigma, x)) == pytest.approx(log(exact[x]), rel=1e-9)
        assert float(compiled(theta_, sigma, (0, 2, 4))) == pytest.approx(
            log(exact[(0, 2, 4)]), rel=1e-9
        )
        if x != (2, 2, 2):
            assert np.isnan(compiled(theta_, sigma, (2, 2, 2)))
    # An enormous θ: Π (θ + jσ)/(θ + j) is taken term by term here.
    huge = 1e15
    k = sum(map(bool, x))
    if k < 3:
        got = float(compiled(huge, 0.5, x)) - log(factorial(6) / prod(map(factorial, x)))
        got -= log(factorial(3 - k) / factorial(3))
        joined = fsum(log(0.5 + j) for count in x for j in range(count - 1))
        assert got == pytest.approx(joined - (6 - k) * log(huge), abs=1e-6)


@pytest.mark.parametrize("theta", [1e-12, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("sigma", [0.0, 1e-12, 0.5, 1 - 1e-12])
def test_likelihood_at_extreme_parameters(theta, sigma) -> None:
    """Term by term; (θ + jσ)/(θ + j) where θ is large in a form that does not
    cancel."""
    counts = np.array([1] * 30 + [0] * 10)
    if theta > 1e6:
        expected = fsum(log1p(-j * (1 - sigma) / (theta + j)) for j in range(1, 30))
    else:
        expected = fsum(log(theta + j * sigma) - log(theta + j) for j in range(1, 30))
    got = float(UrnLikelihood(counts, 40)(np.array(theta), np.array(sigma)))
    assert got == pytest.approx(expected, abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("discount", [0.0, 0.35])
@pytest.mark.parametrize("counts", [(5, 3, 1, 1, 1, *[0] * 5), (1,) * 12 + (0,) * 12])
def test_quadrature_of_a_given_discount(counts, discount) -> None:
    """Mean and spread of log theta against a dense sum of θ^(k) over θ^(n) (a gap of
    the tests that a change of the tail's search showed). 20,000 draws are known to
    0.007 of the spread; tolerance 0.06."""
    thetas, discounts, _ = posterior_draws(counts, len(counts), discount=discount)
    assert (discounts == discount).all()
    x, seen = np.linspace(-12, 18, 4000), np.count_nonzero(counts)
    height = sum(np.log(np.exp(x) + j * discount) for j in range(1, seen))
    height = height - sum(np.log(np.exp(x) + m) for m in range(1, sum(counts)))
    height -= (x - log(90)) ** 2 / (2 * 1.5**2)
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    mean = weight @ x
    spread = (weight @ (x - mean) ** 2) ** 0.5
    assert abs(np.log(thetas).mean() - mean) < 0.06 * spread
    assert np.log(thetas).std() == pytest.approx(spread, rel=0.06)


# ---- special cases


def test_ewens_sampling_formula() -> None:
    """σ = 0: n!/(θ)_n Π θ^a_j / (j^a_j a_j!), a_j parts of size j, for every partition
    of 6 (Ewens 1972)."""
    theta, n, cells = 1.7, 6, 7
    totals: dict[tuple[int, ...], float] = {}
    for x in tables(n, cells):
        parts = tuple(sorted(filter(None, x)))
        totals[parts] = totals.get(parts, 0.0) + partition_probability(x, cells, theta, 0.0)
    assert len(totals) == 11  # partitions of 6
    for parts, chance in totals.items():
        number = Counter(parts)
        formula = factorial(n) / prod(theta + i for i in range(n))
        formula *= prod(theta**a / (j**a * factorial(a)) for j, a in number.items())
        assert chance == pytest.approx(formula)


def test_discount_zero_is_the_urn_of_the_papers() -> None:
    sample, theta = np.array([3, 1, 0, 0]), np.full(DRAWS, 2.2)
    drawn = draw_urn(sample, sample == 0, 7, theta, np.random.default_rng(4), discount=0.0)
    assert_same_distribution(drawn, urn_distribution((3, 1, 0, 0), sample == 0, 7, 2.2))


@pytest.mark.parametrize("alpha", [0.4, 3.0])
@pytest.mark.parametrize("f", [(2, 0, 1, 0), (1, 2, 1, 1), (0, 1, 0, 0)])
def test_a_negative_discount_is_the_symmetric_dirichlet(f, alpha) -> None:
    fit = ChineseRestaurant(discount=-alpha).fit(
        table(np.reshape(f, (2, 2))),
        population_size=sum(f) + 4,
        draws=DRAWS // 4,
        chains=4,
        random_seed=3,
    )
    assert "posterior" not in fit.children
    drawn = fit["posterior_predictive"]["population"].values.reshape(DRAWS, 4) - np.array(f)
    weights = [alpha + count for count in f]
    assert_same_distribution(
        drawn, {x: dirichlet_multinomial_pmf(x, weights) for x in tables(4, 4)}
    )
    replicates = fit["posterior_predictive"]["count"].values.reshape(DRAWS, 4)
    assert_same_distribution(
        replicates, {x: dirichlet_multinomial_pmf(x, [alpha] * 4) for x in tables(sum(f), 4)}
    )
    terms = fit["log_likelihood"]["count"].values[0, 0]
    conditional = [
        log((count - 1 + alpha) / (sum(f) - 1 + 4 * alpha)) for count in f for _ in range(count)
    ]
    assert terms == pytest.approx(conditional)


@interpreted
def test_the_model_of_a_negative_discount() -> None:
    model = ChineseRestaurant(discount=-0.8).build(table([[1, 2, 0]]), 9)
    assert not model.free_RVs
    value = pt.lvector()
    logp = pytensor.function([value], pm.logp(model["sample_counts"], value), mode=INTERPRETED)
    for x in [(1, 2, 0), (3, 0, 0), (1, 0, 2)]:
        assert float(logp(x)) == pytest.approx(log(dirichlet_multinomial_pmf(x, [0.8] * 3)))
    with pytest.raises(PriorError, match=r"\['theta'\], but a negative discount leaves none"):
        ChineseRestaurant(discount=-1, priors={"theta": Prior("HalfNormal", sigma=1)}).build(
            table([[1, 2, 0]]), 9
        )


def test_pitman_yor_predictive() -> None:
    """One more individual: (f_i - σ)/(n + θ) for a seen cell, (θ + kσ)/(n + θ) over the
    empty ones."""
    f, theta, sigma = (4, 1, 0, 0, 0), 1.3, 0.35
    counts = np.array(f)
    drawn = draw_urn(
        counts, counts == 0, 6, np.full(DRAWS, theta), np.random.default_rng(5), discount=sigma
    )
    chance = [
        (4 - sigma) / (5 + theta),
        (1 - sigma) / (5 + theta),
        *[(theta + 2 * sigma) / (5 + theta) / 3] * 3,
    ]
    expected = {tuple(int(i == j) for i in range(5)): p for j, p in enumerate(chance)}
    assert_same_distribution(drawn - counts, expected)


# ---- which empty cell


@pytest.mark.parametrize(
    ("start", "empty", "size", "theta", "sigma"),
    [
        ((2, 0, 0, 0), (False, True, True, True), 7, 3.0, 0.2),
        ((1, 0, 0, 1), (False, True, True, False), 6, 0.5, 0.5),
        ((0, 0, 3, 0), (True, True, False, False), 7, 4.0, 0.0),
    ],
)
def test_a_base_against_every_sequence(start, empty, size, theta, sigma) -> None:
    drawn = draw_urn(
        np.array(start),
        np.array(empty),
        size,
        np.full(DRAWS, theta),
        np.random.default_rng(6),
        discount=sigma,
        base=np.array(BASE),
    )
    assert_same_distribution(drawn, urn_distribution(start, empty, size, theta, sigma, BASE))


def test_a_base_from_nothing_against_every_sequence() -> None:
    drawn = draw_urn_from_nothing(
        np.ones(4, bool),
        5,
        np.full(DRAWS, 1.4),
        np.random.default_rng(7),
        discount=0.3,
        base=np.array(BASE),
    )
    assert_same_distribution(drawn, urn_from_nothing(4, 5, 1.4, 0.3, BASE))


def test_the_log_linear_base_is_the_product_of_margins() -> None:
    """Rows 3 and 1, columns 2, 1, 1: with 1 added to each, empty cells weigh (4·2, 2·3,
    2·2)."""
    sample = table([[2, 0, 1], [0, 1, 0]])
    estimator = ChineseRestaurant(discount=0.4, base="log-linear", priors={"theta": _held(1.5)})
    fit = estimator.fit(sample, population_size=7, draws=DRAWS // 4, chains=4, random_seed=8)
    drawn = fit["posterior_predictive"]["population"].values.reshape(DRAWS, 6)
    base = (4 * 3, 4 * 2, 4 * 2, 2 * 3, 2 * 2, 2 * 2)
    empty = sample.values.ravel() == 0
    assert_same_distribution(drawn, urn_distribution((2, 0, 1, 0, 1, 0), empty, 7, 1.5, 0.4, base))
    # The lone individual of row 1 left out: rows 3 and 0, columns 2, 0, 1; the cell
    # beside those empty anyway.
    terms = fit["log_likelihood"]["count"].values[0, 0]
    weights = {1: 4 * 1, 3: 1 * 3, 4: 1 * 1, 5: 1 * 2}
    new = (1.5 + 2 * 0.4) / (3 + 1.5)
    assert exp(terms[3]) == pytest.approx(new * weights[4] / sum(weights.values()), rel=1e-4)


def _held(value: float) -> Prior:
    return Prior("Uniform", lower=value - 1e-7, upper=value + 1e-7)


# ---- sample and population together


@pytest.mark.parametrize("discount", [0.4, 0.0])
def test_joint_distribution_of_sample_and_population(discount) -> None:
    """`draw_prior`: f the first 3 and F the first 5 of the urn over 3 cells, which
    often closes in between."""
    estimator = ChineseRestaurant(discount=discount, priors={"theta": _held(1.5)})
    problem = make_problem(table([[1, 1, 1]]), 5)
    parameters, f, F = estimator.draw_prior(problem, DRAWS, np.random.default_rng(9))
    assert set(parameters) == {"theta"}
    exact = {
        (*first, *then): chance * more
        for first, chance in urn_from_nothing(3, 3, 1.5, discount).items()
        for then, more in urn_distribution(first, [c == 0 for c in first], 5, 1.5, discount).items()
    }
    assert_same_distribution(np.hstack([f, F]), exact)


@pytest.mark.parametrize("base", ["uniform", "log-linear"])
def test_posterior_population_against_the_prior_given_the_sample(base) -> None:
    """Prior draws that happen to give the sample are exact posterior draws; a sample
    that closed the urn, too."""
    problem = make_problem(table([[2, 1, 0]]), 7)
    estimator = ChineseRestaurant(base=base, priors={"theta": Prior("LogNormal", mu=0, sigma=1.5)})
    parameters, f, F = estimator.draw_prior(problem, 400_000, np.random.default_rng(10))
    assert set(parameters) == {"theta", "discount"}
    for counts in [(2, 1, 0), (1, 1, 1)]:
        hit = (f == counts).all(axis=1)
        assert hit.sum() > 5000
        fit = ChineseRestaurant(priors={"theta": Prior("LogNormal", mu=0, sigma=1.5)}).fit(
            table([counts]), population_size=7, draws=10_000, chains=4, random_seed=2
        )
        drawn = fit["posterior_predictive"]["population"].values.reshape(-1, 3)
        both = [Counter(map(tuple, rows.tolist())) for rows in (F[hit], drawn)]
        keys = [key for key in both[0] | both[1] if both[0][key] + both[1][key] > 30]
        counts_of = [[both[0][key] for key in keys], [both[1][key] for key in keys]]
        assert chi2_contingency(counts_of).pvalue > 1e-6


# ---- the fast path


@pytest.mark.parametrize(
    ("counts", "cells"),
    [
        ((5, 3, 1, 1, 1, 0, 0, 0, 0, 0), 10),
        ((1, 0, 0), 3),  # n = 1
        ((9, 0, 0), 3),  # one occupied cell
        ((4, 2, 1), 3),  # all cells seen
        ((1,) * 12, 12),  # all counts 1, all cells seen
        ((1,) * 12 + (0,) * 12, 24),
    ],
)
def test_quadrature_against_a_dense_sum(counts, cells) -> None:
    """Moments of log θ and σ by a sum over 400 x 200 nodes; 20,000 draws: standard
    error 0.007 sd, asked for 0.06."""
    theta, sigma, _ = posterior_draws(counts, cells)
    n, k = sum(counts), sum(map(bool, counts))
    x = np.linspace(-12, 18, 400)[:, None, None]
    s = ((np.arange(200) + 0.5) / 200)[None, :, None]
    steps, chance = closing_times(np.array(counts), cells)
    m = np.arange(1, n)
    # One factor an individual, the urn open before step s and closed after.
    before = np.cumsum(
        np.concatenate([np.zeros((400, 1, 1)), np.log(np.exp(x) + m)], axis=2), axis=2
    )
    closed = np.log(np.maximum(m - cells * s, 1e-300)) if k == cells else np.zeros((1, 200, n - 1))
    after = np.concatenate(
        [np.cumsum(closed[..., ::-1], axis=2)[..., ::-1], np.zeros((1, 200, 1))], axis=2
    )
    mixed = sum(
        p * np.exp(-before[..., t - 1] - after[..., t - 1])
        for t, p in zip(steps, chance, strict=True)
    )
    height = np.log(mixed) + np.log(np.exp(x) + np.arange(1, k) * s).sum(axis=2)
    height += sum(np.log(j - s[..., 0]) for f in counts for j in range(1, f))
    height += -((x[..., 0] - log(90)) ** 2) / (2 * 1.5**2) + np.log(1 - s[..., 0])
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    for drawn, values in ((np.log(theta), x[..., 0]), (sigma, s[..., 0])):
        mean = (weight * values).sum()
        sd = ((weight * (values - mean) ** 2).sum()) ** 0.5
        assert abs(drawn.mean() - mean) < 0.06 * sd
        assert abs(drawn.std() / sd - 1) < 0.06


@pytest.mark.slow
def test_fast_and_nuts_agree(restaurant_by_nuts, religion_sample) -> None:
    """Means and spreads of both parameters and of the number of empty cells, within 4.5
    Monte Carlo errors."""
    import arviz as az

    fast = ChineseRestaurant().fit(religion_sample, population_size=2449, draws=4000, random_seed=5)
    assert "importance" in fast.attrs

    def quantities(fit):
        posterior = fit["posterior"]
        empty = (fit["posterior_predictive"]["population"] == 0).sum(["area", "religion"])
        values = {
            "theta": np.log(posterior["theta"]),
            "discount": posterior["discount"],
            "empty": empty,
        }
        return {name: np.asarray(value.values, dtype=float) for name, value in values.items()}

    slow, quick = quantities(restaurant_by_nuts), quantities(fast)
    for name in slow:
        sd, ess = slow[name].std(), min(float(az.ess(slow[name])), 3000)
        assert abs(slow[name].mean() - quick[name].mean()) < 4.5 * sd * (1 / ess + 1 / 3000) ** 0.5
        assert abs(quick[name].std() / sd - 1) < 4.5 * 1.5 * (1 / (2 * ess) + 1 / 6000) ** 0.5


def test_a_large_sample_finds_its_parameters() -> None:
    """n = 10^6 from θ = 500, σ = 0.5 over 10^5 cells: a ridge thousands of times
    narrower than the prior."""
    counts = draw_urn_from_nothing(
        np.ones(10**5, bool), 10**6, np.array([500.0]), np.random.default_rng(0), discount=0.5
    )
    theta, sigma, _ = posterior_draws(counts[0], 10**5, draws=4000)
    assert abs(np.log(theta).mean() - log(500)) < 4 * np.log(theta).std()
    assert abs(sigma.mean() - 0.5) < 4 * sigma.std()
    assert sigma.std() < 0.005


@pytest.mark.parametrize(
    "priors",
    [
        {
            "theta": Prior("LogNormal", mu=5, sigma=1e-6),
            "discount": Prior("Uniform", lower=0.2, upper=0.20001),
        },
        {
            "theta": Prior("Uniform", lower=1e14, upper=1e15),
            "discount": Prior("Beta", alpha=0.5, beta=0.5),
        },
        {"theta": Prior("HalfCauchy", beta=1e10), "discount": Prior("Beta", alpha=0.1, beta=0.1)},
        {
            "theta": Prior("InverseGamma", alpha=0.5, beta=0.01),
            "discount": Prior("Beta", alpha=20, beta=1),
        },
    ],
)
def test_extreme_priors(priors, religion_sample) -> None:
    theta, sigma, _ = posterior_draws(religion_sample.values.ravel(), 90, priors)
    assert np.isfinite(theta).all()
    assert ((sigma >= 0) & (sigma < 1)).all()
    fit = ChineseRestaurant(priors=priors).fit(
        religion_sample, population_size=2449, draws=50, random_seed=1
    )
    tc.fits.check_population(
        fit["posterior_predictive"]["population"], religion_sample, population_size=2449
    )
    if (
        priors["theta"].distribution == "Uniform"
    ):  # an urn that opens all it can: 51 more cells before anything else
        assert (fit["posterior_predictive"]["population"] > 0).all()


def test_nuts_where_quadrature_cannot(religion_sample, monkeypatch) -> None:
    called = []
    monkeypatch.setattr(chinese_restaurant, "sample_urn_parameters", lambda *_: None)
    estimator = ChineseRestaurant()
    monkeypatch.setattr(ChineseRestaurant, "learn_nuts", lambda *args: called.append(args) or args)
    estimator.learn(make_problem(religion_sample, 2449), SamplerSettings(10, 10, 2, 1, False), 1)
    assert len(called) == 1


# ---- bad input


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([[7, 0], [0, 0]], 100),  # one occupied cell
        ([[1, 0], [0, 0]], 100),  # n = 1
        ([[1, 0], [0, 0]], 1),  # n = N = 1
        ([[3, 1], [0, 2]], 6),  # n = N
        ([[1, 1], [1, 1]], 50),  # all counts 1
        ([[1, 1], [0, 1]], 50),
        ([[2, 0, 1]], 50),  # one category in a variable
        ([[10**6, 10**6, 1]], 67_000_000),
    ],
)
@pytest.mark.parametrize("base", ["uniform", "log-linear"])
def test_poor_samples_give_a_proper_posterior(values, size, base) -> None:
    sample = table(values)
    fit = ChineseRestaurant(base=base).fit(
        sample, population_size=size, draws=500, chains=2, random_seed=1
    )
    tc.fits.check_population(
        fit["posterior_predictive"]["population"], sample, population_size=size
    )
    assert np.isfinite(np.log(fit["posterior"]["theta"])).all()
    assert "importance" in fit.attrs
    if "log_likelihood" in fit.children:
        assert np.isfinite(fit["log_likelihood"]["count"]).all()


@pytest.mark.parametrize(
    "discount", [1.0, 1.5, float("nan"), float("inf"), -float("inf"), "0.5", True]
)
def test_discount_refused(discount) -> None:
    with pytest.raises(ParameterError, match="discount must be a finite number below 1, or None"):
        ChineseRestaurant(discount=discount)


def test_base_refused() -> None:
    with pytest.raises(
        ParameterError, match="base must be 'uniform' or 'log-linear', got 'margins'"
    ):
        ChineseRestaurant(base="margins")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prior",
    [
        Prior("HalfNormal", sigma=1),
        Prior("Uniform", lower=0, upper=2),
        Prior("LogNormal", mu=0, sigma=1),
    ],
)
def test_a_prior_of_the_discount_beyond_one(prior) -> None:
    with pytest.raises(
        PriorError,
        match=r"'discount' lies in \[0, 1\): its prior must be a Beta or a Uniform there",
    ):
        ChineseRestaurant(priors={"discount": prior}).fit(
            table([[2, 0], [1, 1]]), population_size=10
        )


# ---- the PyMC model as a generator


def test_draws_of_the_model_have_the_size_asked_for(fit_restaurant, religion_sample) -> None:
    small = ChineseRestaurant(base="log-linear").build(table([[2, 0], [1, 1]]), 10)
    drawn = pm.draw(small["sample_counts"], draws=7, mode=INTERPRETED, random_seed=1)
    assert drawn.shape == (7, 4)
    assert (drawn.sum(axis=1) == 4).all()
    posterior = fit_restaurant.isel(draw=slice(0, 20))
    with ChineseRestaurant().build(religion_sample, 2449):
        predicted = pm.sample_posterior_predictive(
            posterior, progressbar=False, random_seed=1, compile_kwargs={"mode": INTERPRETED}
        )
    values = predicted["posterior_predictive"]["sample_counts"].values
    assert values.shape == (2, 20, 90)
    assert (values.sum(axis=-1) == 245).all()
    assert len({tuple(row) for row in values.reshape(40, 90)}) == 40
