"""The posterior without a Markov chain: its pieces, brute-force integration of tiny
tables, and NUTS."""

import json
from functools import cache
from math import exp, fsum, lgamma, log

import numpy as np
import pytest
import xarray as xr
from scipy.special import digamma, expit, gammaln, logit, polygamma

import taciturn as tc
from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.sampling.importance import resample
from taciturn.estimators.special import log_rising, log_steps, row_log_rising, sums_of_shares

TIGHT = {"draws": 5000, "chains": 4, "random_seed": 11, "method": "fast"}


@pytest.mark.parametrize("a", [1e-12, 0.3, 7.0, 1e5, 1e9, 1e14])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_rising_factorial_is_a_sum_of_logarithms(a, n):
    assert log_rising(a, n) == pytest.approx(sum(log(a + j) for j in range(n)), rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("a", [1e-6, 0.3, 7.0, 1e4, 2e6, 1e12])
@pytest.mark.parametrize("n", [0, 1, 5, 40, 41, 200])
def test_expected_tables_and_their_information_are_sums(n, a):
    found = sums_of_shares(float(n), a)
    shares = [a / (a + j) for j in range(n)]
    assert found == pytest.approx((sum(shares), sum(x**2 for x in shares)), rel=1e-7)


@pytest.mark.parametrize("a", [1e-12, 0.3, 7.0, 1e5])
@pytest.mark.parametrize("n", [0.4, 12.5, 300.7])
def test_expected_tables_of_counts_that_are_not_whole(n, a):
    tables, information = sums_of_shares(n, a)
    assert tables == pytest.approx(a * (digamma(a + n) - digamma(a)), rel=1e-7)
    exact = a**2 * (polygamma(1, a) - polygamma(1, a + n))
    assert information == pytest.approx(exact, rel=1e-5)


def test_sums_of_rising_factorials():
    rng = np.random.default_rng(1)
    weights = 10.0 ** rng.uniform(-300, 15, (200, 7))
    counts = np.array([1, 3, 40, 41, 2.5, 5000, 0.0])
    found = [row_log_rising(row, counts) for row in weights]
    whole = [j for j in range(len(counts)) if counts[j] % 1 == 0]
    exact = [fsum(log(row[j] + k) for j in whole for k in range(int(counts[j]))) for row in weights]
    rest = [log_rising(weight, counts[4]) for weight in weights[:, 4]]
    np.testing.assert_allclose(found, np.array(exact) + rest, rtol=1e-11)


@pytest.mark.parametrize("number", [0, 1, 7, 40, 41, 3000])
def test_products_of_openings(number):
    start = np.array([1e-12, 1e-12, 0.5, 3.0, 1e8, 1e15, 2.0])
    step = np.array([1e-300, 0.9, 0.0, 0.5, 1e-9, 0.99, 1e-13])
    found = [log_steps(x, s, number) for x, s in zip(start, step, strict=True)]
    exact = [
        fsum(log(x + j * s) for j in range(1, number + 1)) for x, s in zip(start, step, strict=True)
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-11)


def test_resampling_follows_the_weights_and_knows_its_worth():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000) * 1.3
    log_weights = -0.5 * (x - 0.5) ** 2 + 0.5 * (x / 1.3) ** 2
    chosen, diagnostics = resample(log_weights, 20_000, rng)
    # The error of the mean is about 1 / sqrt(ess) = 0.01.
    assert abs(x[chosen].mean() - 0.5) < 5 / diagnostics.ess**0.5
    assert abs(x[chosen].std() - 1.0) < 5 / diagnostics.ess**0.5
    assert diagnostics.converged
    _, narrow = resample(-0.5 * (x / 4) ** 2 + 0.5 * (x / 1.3) ** 2, 100, rng)
    assert narrow.k_hat > 0.7
    assert not narrow.converged
    assert ImportanceDiagnostics.from_json(narrow.to_json()) == narrow


def test_proposals_that_count_equally_need_no_smoothing():
    rng = np.random.default_rng(1)
    some = np.r_[np.zeros(900), np.full(100, -np.inf)]
    for log_weights, number in ((np.zeros(1000), 1000), (some, 900)):
        chosen, diagnostics = resample(log_weights, number, rng)
        assert sorted(chosen) == list(range(number))
        assert diagnostics.converged
        assert diagnostics.ess == pytest.approx(number)


def brute_force(counts, fillable, prior, size):
    """Probability of every population table of a 2 x 2 sample, by integration over κ
    and both margins on a grid."""
    kappa = np.exp(np.linspace(log(prior.quantile(1e-6)), log(prior.quantile(1 - 1e-6)), 80))
    share = (np.arange(80) + 0.5) / 80
    k, a, b = np.meshgrid(kappa, share, share, indexing="ij")
    pi = np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], axis=-1) * fillable
    alpha = k[..., None] * pi / pi.sum(-1, keepdims=True)
    weight = np.exp(prior.logpdf(k)) * k

    @cache
    def term(cell, count):
        return gammaln(alpha[..., cell] + count) - gammaln(alpha[..., cell])

    def likelihood(table):
        terms = sum(term(cell, int(table[cell])) for cell in np.flatnonzero(fillable).tolist())
        return np.exp(gammaln(k) - gammaln(k + table.sum()) + terms)

    evidence = (weight * likelihood(counts)).sum()
    rest = size - counts.sum()
    tables = [
        np.array([i, j, m, rest - i - j - m])
        for i in range(rest + 1)
        for j in range(rest + 1 - i)
        for m in range(rest + 1 - i - j)
    ]
    out = {}
    for extra in tables:
        if (extra[fillable == 0] > 0).any():
            continue
        ways = exp(lgamma(rest + 1) - sum(lgamma(x + 1) for x in extra))
        out[tuple(counts + extra)] = ways * (weight * likelihood(counts + extra)).sum() / evidence
    return out


@pytest.mark.parametrize(
    ("zero", "mu"),
    [
        pytest.param(None, log(3), marks=pytest.mark.slow),
        (1, log(3)),
        pytest.param(None, log(300), marks=pytest.mark.slow),
        pytest.param(1, log(300), marks=pytest.mark.slow),
    ],
)
def test_population_draws_follow_the_posterior_of_a_tiny_table(zero, mu):
    counts = np.array([3, 0, 1, 2])
    fillable = np.ones(4)
    prior = tc.Prior("LogNormal", mu=mu, sigma=1.0)
    sample = xr.DataArray(counts.reshape(2, 2), dims=("a", "b"))
    options = {}
    if zero is not None:
        fillable[zero] = 0
        options["structural_zeros"] = xr.DataArray(fillable.reshape(2, 2) == 0, dims=("a", "b"))
    exact = brute_force(counts, fillable, prior, 10)
    assert sum(exact.values()) == pytest.approx(1, abs=1e-6)
    model = tc.DirichletLogLinear(priors={"kappa": prior})
    fit = model.fit(sample, population_size=10, **options, **TIGHT)
    assert fit.attrs["sampler"] == "importance sampling"
    drawn = fit["posterior_predictive"]["population"].values.reshape(-1, 4)
    found = {
        tuple(t): n / len(drawn)
        for t, n in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True)
    }
    # 20,000 draws of some 35 tables: the largest standard error is sqrt(0.25 / 20,000)
    # = 0.0035.
    for table, probability in exact.items():
        error = (probability * (1 - probability) / len(drawn)) ** 0.5
        assert abs(found.get(table, 0.0) - probability) < 6 * error + 1e-3, table
    assert set(found) <= set(exact)


@pytest.mark.slow
def test_it_agrees_with_nuts(dirichlet_by_nuts, religion_sample):
    fast = tc.DirichletLogLinear().fit(religion_sample, population_size=2449, **TIGHT)
    importance = ImportanceDiagnostics.from_json(fast.attrs["importance"])
    chain = tc.summary(dirichlet_by_nuts)
    ours, theirs = tc.summary(fast).table, chain.table
    for measure in ("R1", "R2", "tau1", "tau2", "zero_term", "entropy_term"):
        error = (
            ours.loc[measure, "sd"] ** 2 / importance.ess + theirs.loc[measure, "mcse"] ** 2
        ) ** 0.5
        assert abs(ours.loc[measure, "mean"] - theirs.loc[measure, "mean"]) < 5 * error, measure
        for edge in ("2.5%", "97.5%"):
            # A tail quantile is known about four times less well than the mean.
            assert abs(ours.loc[measure, edge] - theirs.loc[measure, edge]) <= max(
                20 * error, 1e-12
            ), (measure, edge)
    for name in ("margin_area", "margin_religion"):
        a, b = fast["posterior"][name], dirichlet_by_nuts["posterior"][name]
        spread = b.std(("chain", "draw"))
        gap = abs(a.mean(("chain", "draw")) - b.mean(("chain", "draw")))
        assert bool((gap < 5 * spread * (1 / importance.ess + 1 / 400) ** 0.5).all())


@pytest.mark.parametrize(
    "sample",
    [
        xr.DataArray([5, 0, 2], dims="a"),
        xr.DataArray(np.arange(24).reshape(2, 3, 4), dims=("a", "b", "c")),
        xr.DataArray([[0, 1], [0, 0]], dims=("a", "b")),
        xr.DataArray(np.eye(6, dtype=int) * 50, dims=("a", "b")),
        xr.DataArray(np.ones((4, 5), dtype=int), dims=("a", "b")),
        xr.DataArray([[3, 4, 0]], dims=("a", "b")),
    ],
    ids=["one variable", "three variables", "n = 1", "diagonal", "all ones", "one category"],
)
def test_tables_of_any_shape_and_hardness(sample):
    fit = tc.DirichletLogLinear().fit(
        sample, population_size=1000, draws=1000, chains=2, random_seed=1
    )
    assert fit.attrs["sampler"] == "importance sampling"
    tc.fits.check_population(
        fit["posterior_predictive"]["population"], sample, population_size=1000
    )
    assert tc.summary(fit).converged


@pytest.mark.parametrize(("mu", "closeness"), [(60.0, "the model"), (-20.0, "the sample")])
def test_extreme_concentrations_are_the_two_limits(mu, closeness, religion_sample):
    model = tc.DirichletLogLinear(
        priors={"kappa": tc.Prior("LogNormal", mu=mu if mu < 0 else 25.0, sigma=0.1)}
    )
    fit = model.fit(religion_sample, population_size=2449, draws=1000, random_seed=1)
    drawn = fit["posterior_predictive"]["population"]
    if closeness == "the sample":
        assert bool(((drawn > 0) == (religion_sample > 0)).all())
    else:
        independent = (
            tc.margin(religion_sample, "area") * tc.margin(religion_sample, "religion") / 245 / 245
        )
        p = (drawn.mean(("chain", "draw")) - religion_sample) / (2449 - 245)
        assert float(abs(p - independent).max()) < 0.03


def test_nuts_takes_over_where_the_diagnostics_fail(religion_sample, monkeypatch):
    from taciturn.estimators.log_linear import dirichlet as module

    def fails(*arguments):
        kappa, margins, _ = real(*arguments)
        return kappa, margins, ImportanceDiagnostics(k_hat=1.4, ess=12.0)

    class TookOverError(Exception):
        pass

    def nuts(*_):
        raise TookOverError

    real = module.sample_main_effects
    monkeypatch.setattr(module, "sample_main_effects", fails)
    monkeypatch.setattr(tc.DirichletLogLinear, "learn_nuts", nuts)
    with pytest.raises(TookOverError):
        tc.DirichletLogLinear().fit(religion_sample, population_size=2449, draws=100)


def with_zeros(zeros):
    """A sample of a table of 8 by 8 cells, some of which cannot be filled."""
    rng = np.random.default_rng(1)
    expected = 30 * np.exp(rng.normal(size=(8, 8)))
    population = xr.DataArray(rng.poisson(expected) * ~zeros, dims=("a", "b"))
    sample = tc.draw_sample(population, fraction=0.1, random_seed=1)
    given = xr.DataArray(zeros, dims=("a", "b"))
    return sample, {"population_size": int(population.sum()), "structural_zeros": given}


ROW, COLUMN = np.indices((8, 8))
PATTERNS = {
    "triangle": COLUMN < ROW - 1,
    "diagonal": COLUMN == ROW,
    "a quarter": (5 * ROW + 3 * COLUMN) % 4 == 0,
    "one row but for two": (ROW == 3) & (COLUMN > 1),
}


@pytest.mark.parametrize("zeros", PATTERNS.values(), ids=list(PATTERNS))
def test_structural_zeros_need_no_markov_chain(zeros):
    sample, given = with_zeros(zeros)
    fit = tc.DirichletLogLinear().fit(sample, random_seed=1, progressbar=False, **given)
    assert fit.attrs["sampler"] == "importance sampling"


SMALL = {
    "a corner": ([[211, 1], [0, 17]], [[0, 0], [1, 0]], 1769),
    "a corner of many": ([[1905, 501], [0, 1766]], [[0, 0], [1, 0]], 12_027),
    "three by four": (
        [[2, 136, 0, 77], [0, 53, 569, 5], [6, 18, 338, 21]],
        [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
        11_402,
    ),
    "a category without cells": ([[2, 366], [0, 0]], [[0, 0], [1, 1]], 1982),
}


def small(name):
    counts, zeros, size = SMALL[name]
    sample = xr.DataArray(np.array(counts), dims=("a", "b"))
    return sample, {
        "population_size": size,
        "structural_zeros": xr.DataArray(np.array(zeros, dtype=bool), dims=("a", "b")),
    }


@pytest.mark.parametrize("name", SMALL)
def test_small_tables_with_structural_zeros_need_no_markov_chain(name):
    """The first proposals miss nearly all of these posteriors; others are learned."""
    sample, given = small(name)
    fit = tc.DirichletLogLinear().fit(sample, random_seed=1, progressbar=False, **given)
    assert fit.attrs["sampler"] == "importance sampling"


def integrated(name):
    """Mean and standard deviation of log κ and of the log odds of both margins of a
    2 x 2 table, by integration on a grid."""
    counts, zeros, _ = SMALL[name]
    counts, fillable = np.ravel(counts), 1.0 - np.ravel(zeros)
    prior = tc.Prior("LogNormal", mu=1 + log(counts.sum()), sigma=1.5)
    axes = np.linspace(-6, 18, 97), np.linspace(-10, 12, 177), np.linspace(-12, 10, 177)
    log_kappa, x, y = np.meshgrid(*axes, indexing="ij")
    a, b = expit(x), expit(y)
    pi = (
        np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])
        * fillable[:, None, None, None]
    )
    alpha, kappa = np.exp(log_kappa) * pi / pi.sum(axis=0), np.exp(log_kappa)
    height = prior.logpdf(kappa.ravel()).reshape(kappa.shape) + log_kappa
    height += np.log(a * (1 - a) * b * (1 - b))  # of uniform margins, by their log odds
    height += gammaln(kappa) - gammaln(kappa + counts.sum())
    for own, count in zip(alpha, counts, strict=True):
        if count:
            height += gammaln(own + count) - gammaln(own)
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    for axis in range(3):  # nothing that counts is outside
        ends = np.moveaxis(weight, axis, 0)[[0, -1]]
        assert ends.max() < 1e-4 * weight.max()
    found = []
    for values in (log_kappa, x, y):
        mean = (weight * values).sum()
        found.append((mean, np.sqrt((weight * (values - mean) ** 2).sum())))
    return np.array(found)


def test_what_was_learned_is_the_posterior():
    """Against integration: within four standard errors of 2,000 effective draws."""
    sample, given = small("a corner")
    fit = tc.DirichletLogLinear().fit(
        sample, random_seed=1, draws=4_000, chains=1, progressbar=False, **given
    )
    assert json.loads(fit.attrs["importance"])["ess"] > 2_000
    posterior = fit["posterior"]
    values = [np.log(posterior["kappa"])]
    values += [logit(posterior[f"margin_{d}"].isel({d: 0})) for d in "ab"]
    for own, (mean, spread) in zip(values, integrated("a corner"), strict=True):
        assert float(own.mean()) == pytest.approx(mean, abs=0.09 * spread)
        assert float(own.std()) == pytest.approx(spread, rel=0.09)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [with_zeros(PATTERNS["triangle"]), small("three by four"), small("a corner of many")],
    ids=["triangle", "three by four", "a corner of many"],
)
def test_structural_zeros_agree_with_nuts(given):
    sample, given = given
    fits = [
        tc.DirichletLogLinear().fit(
            sample, random_seed=1, method=method, progressbar=False, **given
        )
        for method in ("fast", "nuts")
    ]
    first, second = (np.log(fit["posterior"]["kappa"]) for fit in fits)
    assert float(first.mean()) == pytest.approx(
        float(second.mean()), abs=0.15 * float(second.std())
    )
    for margin in ("margin_a", "margin_b"):
        one, other = (fit["posterior"][margin] for fit in fits)
        spread = other.std(("chain", "draw"))
        off = (one.mean(("chain", "draw")) - other.mean(("chain", "draw"))) / spread
        assert float(np.abs(off).max()) < 0.2
        ratio = one.std(("chain", "draw")) / spread
        assert float(ratio.min()) > 0.8
        assert float(ratio.max()) < 1.25


def test_interactions_are_left_to_nuts(religion_sample, monkeypatch):
    class AskedError(Exception):
        pass

    def nuts(*_):
        raise AskedError

    monkeypatch.setattr(tc.DirichletLogLinear, "learn_nuts", nuts)
    with pytest.raises(AskedError):
        tc.DirichletLogLinear("~ area * religion").fit(religion_sample, population_size=2449)


@pytest.mark.slow
def test_importing_the_fast_path_compiles_nothing(religion_sample):
    """A fit by the fast path works where PyMC cannot even be imported."""
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['pymc'] = sys.modules['pytensor'] = None\nimport taciturn as"
        " tc\nsample = tc.draw_sample(tc.load_dataset('area_by_religion'), fraction=0.1,"
        " random_seed=1)\nfit = tc.assess(tc.DirichletLogLinear().fit(sample, population_size=2449,"
        " draws=100, random_seed=1))\nprint(float(fit['risk']['R2'].mean()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 0.1 < float(done.stdout) < 0.3


@pytest.mark.slow
def test_a_large_sample_overrules_the_prior_of_kappa():
    """κ far below what its default prior reaches: the grid follows the likelihood, as
    NUTS does."""
    rng = np.random.default_rng(5)
    shares = np.outer(np.full(12, 1 / 12), np.full(12, 1 / 12))
    p = rng.standard_gamma(30 * shares)
    population = xr.DataArray(
        rng.multinomial(1_000_000, (p / p.sum()).ravel()).reshape(12, 12), dims=("a", "b")
    )
    sample = tc.draw_sample(population, fraction=0.1, random_seed=1)
    cut = np.exp(1 + np.log(100_000) - 1.5 * 5.2)  # the prior's 1e-7 quantile
    fast = tc.DirichletLogLinear().fit(sample, population_size=1_000_000, draws=500, random_seed=1)
    assert fast.attrs["sampler"] == "importance sampling"
    chain = tc.DirichletLogLinear().fit(
        sample,
        population_size=1_000_000,
        draws=500,
        random_seed=1,
        method="nuts",
        progressbar=False,
    )
    a, b = (np.log(fit["posterior"]["kappa"].values.ravel()) for fit in (fast, chain))
    assert np.exp(b).mean() < cut
    # 300 effective draws each at the least: five standard errors.
    assert abs(a.mean() - b.mean()) < 5 * np.hypot(a.std(), b.std()) / np.sqrt(300)
    assert 0.75 < a.std() / b.std() < 1.33


def test_equal_shares_of_cells_that_can_be_filled():
    """A formula without terms and a structural zero: the fit of a table without that
    cell."""
    how = {"population_size": 21, "draws": 100, "random_seed": 1, "progressbar": False}
    counts = np.array([[3, 0, 1], [1, 2, 0]])
    coords = {"a": ["x", "y"], "b": ["u", "v", "w"]}
    sample = xr.DataArray(counts, dims=("a", "b"), coords=coords)
    zeros = sample.copy(data=[[False, True, False], [False] * 3])
    model = tc.DirichletLogLinear("~ 1")
    fit = model.fit(sample, structural_zeros=zeros, **how)
    without = xr.DataArray(np.delete(counts.ravel(), 1), dims="c", coords={"c": list("12345")})
    other = model.fit(without, **how)
    drawn = fit["posterior_predictive"]["population"].values.reshape(4, 100, 6)
    expected = other["posterior_predictive"]["population"].values
    np.testing.assert_array_equal(np.delete(drawn, 1, axis=-1), expected)
