"""Mixed Poisson log-linear model: the Dirichlet-multinomial as a special case, all
tables of a size, brute-force integration of tiny tables, and NUTS."""

from math import exp

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import beta

import taciturn as tc
from taciturn.errors import ParameterError, PriorError
from taciturn.estimators.mixed_poisson.blocks import of_draws
from taciturn.estimators.mixed_poisson.grid import Fitted
from taciturn.estimators.mixed_poisson.mixing import MIXING
from taciturn.estimators.mixed_poisson.target import Target
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters
from taciturn.estimators.unlabelled import arrays_of

KINDS = {name: {"mixing": name} for name in ("mixture", *MIXING)}
KINDS["with zeros"] = {"mixing": "gamma", "zero_inflated": True}
each = pytest.mark.parametrize("kind", KINDS)
FIXED = {"mixture": {"share": 0.4}, "with zeros": {"inflation": 0.25}}
"""Parameters that only some kinds have."""
LOGS = np.linspace(-12, 40, 4_001)
QUICK = {"chains": 2, "progressbar": False}


def table(values) -> xr.DataArray:
    array = np.asarray(values)
    coords = {d: [f"{d}{i}" for i in range(s)] for d, s in zip("ab", array.shape, strict=True)}
    return xr.DataArray(array, dims=("a", "b"), coords=coords)


def at(kind: str, intensity, nu: float, power: float, a, b) -> Parameters:
    """Parameters that differ in the intensity alone."""
    draws, dims = len(intensity), ("chain", "draw")
    values = {"intensity": intensity}
    values |= {name: [value] * draws for name, value in FIXED.get(kind, {}).items()}
    values |= {"nu": [nu] * draws, "power": [power] * draws}
    single = {name: (dims, np.asarray(value)[None]) for name, value in values.items()}
    margins = {
        f"margin_{d}": ((*dims, d), np.tile(m, (1, draws, 1))) for d, m in (("a", a), ("b", b))
    }
    return Parameters(xr.Dataset({**single, **margins}))


def over_intensity(kind, counts, nu, power, a, b) -> float:
    """Logarithm of p(sample | parameters), the intensity integrated out."""
    estimator, logs = tc.MixedPoisson(**KINDS[kind]), LOGS
    problem = make_problem(table(counts), 10_000, None, None)
    values = estimator.log_joint(problem, at(kind, np.exp(logs), nu, power, a, b))[0]
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum() * (logs[1] - logs[0])))


def test_gamma_with_power_one_is_the_dirichlet_multinomial():
    """Of two tables with the same total, the ratio of their probabilities."""
    a, b, nu = np.array([0.3, 0.7]), np.array([0.25, 0.6, 0.15]), 0.8
    weights = nu * 6 * np.outer(a, b)

    def exact(counts):
        return (gammaln(weights + counts) - gammaln(weights)).sum()

    first, second = np.array([[2, 0, 1], [0, 5, 0]]), np.array([[1, 1, 1], [3, 1, 1]])
    found = [over_intensity("gamma", counts, nu, 1.0, a, b) for counts in (first, second)]
    assert found[0] - found[1] == pytest.approx(exact(first) - exact(second), abs=1e-6)


@each
def test_probabilities_of_all_tables_sum_to_one(kind):
    """Multinomial samples: over all tables of 4, `n` times the integral over the
    intensity, which is that of the sum's Poisson probability."""
    a, b, n = np.array([0.3, 0.7]), np.array([0.4, 0.6]), 4
    total = 0.0
    for cells in np.ndindex(5, 5, 5):
        if sum(cells) <= n:
            counts = np.array([*cells, n - sum(cells)])
            log_p = over_intensity(kind, counts.reshape(2, 2), 0.5, 0.4, a, b)
            total += exp(log_p - gammaln(counts + 1).sum())
    assert n * total == pytest.approx(1, abs=1e-5)


@each
def test_conditionals_are_ratios_of_probabilities(kind):
    """The harmonic mean over draws of the intensity leaves an individual out."""
    a, b, counts = np.array([0.3, 0.7]), np.array([0.4, 0.6]), np.array([[2, 0], [1, 4]])
    model, problem = tc.MixedPoisson(**KINDS[kind]), make_problem(table(counts), 99, None, None)
    parameters = at(kind, np.exp(LOGS), 0.5, 0.4, a, b)
    joint = model.log_joint(problem, parameters)[0]
    weight = np.exp(joint - joint.max())
    terms = model.log_conditionals(problem, parameters)[0]
    found = weight.sum() / (weight[:, None] * np.exp(-terms)).sum(axis=0)
    whole = over_intensity(kind, counts, 0.5, 0.4, a, b)
    for number, cell in enumerate(np.argwhere(counts > 0)):
        fewer = counts.copy()
        fewer[tuple(cell)] -= 1
        less = over_intensity(kind, fewer, 0.5, 0.4, a, b)
        # Probabilities of sequences are these integrals over (n - 1)!.
        assert np.log(found[number]) == pytest.approx(whole - less - np.log(6), abs=1e-6)


def test_conditionals_are_those_of_the_dirichlet_multinomial():
    """With gamma factors and power 1, by the urn of κ = ν K."""
    a, b, counts = np.array([0.3, 0.7]), np.array([0.4, 0.6]), np.array([[2, 0], [1, 4]])
    model, parameters = tc.MixedPoisson(mixing="gamma"), at("gamma", np.exp(LOGS), 0.9, 1.0, a, b)
    problem = make_problem(table(counts), 99, None, None)
    joint = model.log_joint(problem, parameters)[0]
    weight = np.exp(joint - joint.max())
    terms = model.log_conditionals(problem, parameters)[0]
    found = weight.sum() / (weight[:, None] * np.exp(-terms)).sum(axis=0)
    exact = (counts - 1 + 3.6 * np.outer(a, b)) / (6 + 3.6)
    np.testing.assert_allclose(found, exact[counts > 0], rtol=1e-5)


def test_the_grid_follows_the_sample_beyond_the_tails_of_the_prior():
    """Factors that depart far more than the prior of ν expects of a large sample."""
    rng = np.random.default_rng(3)
    factors = rng.gamma(0.1, 10, size=(10, 10))
    sample = table(rng.multinomial(100_000, (factors / factors.sum()).ravel()).reshape(10, 10))
    fit = tc.MixedPoisson(mixing="gamma").fit(
        sample, population_size=200_000, draws=500, random_seed=1, **QUICK
    )
    assert float(np.log(fit["posterior"]["nu"]).median()) < -1.5
    assert fit.attrs["sampler"] == "importance sampling"


def two_kinds_of_areas(seed: int) -> tuple[xr.DataArray, int]:
    """A sample of areas of which every other one is eight times as large."""
    religion = tc.load_dataset("area_by_religion")
    larger = np.where(np.arange(10) % 2, 8, 1)[:, None]
    population = religion.copy(data=religion.values * larger)
    return tc.draw_sample(population, fraction=0.03, random_seed=seed), int(population.sum())


@pytest.mark.parametrize("mixing", ["mixture", "inverse Gaussian"])
def test_the_grid_holds_all_that_counts_once_concentrations_are_learned(mixing):
    """The coarse grid may come to rest before that, as in most of these samples."""
    for seed in range(6):
        problem = make_problem(*two_kinds_of_areas(seed), None)
        model = tc.MixedPoisson(mixing=mixing)
        terms = model.terms_for(problem)
        nodes = Fitted.to(Target(problem, terms, model.priors_for(problem), model._pure)).nodes
        height = nodes.height.reshape(*map(len, nodes.axes))
        assert height[-1].max() < height.max() - 7  # of the largest ν


@pytest.mark.slow
def test_areas_of_two_sizes_agree_with_nuts():
    sample, size = two_kinds_of_areas(6)
    fits = [
        tc.MixedPoisson().fit(
            sample, population_size=size, draws=2000, random_seed=2, method=method, **QUICK
        )
        for method in ("fast", "nuts")
    ]
    log_nu = [np.log(fit["posterior"]["nu"].values) for fit in fits]
    assert log_nu[0].mean() == pytest.approx(log_nu[1].mean(), abs=0.2)
    assert log_nu[0].std() == pytest.approx(log_nu[1].std(), rel=0.15)  # was 0.7 of it
    check_parameters_agree(fits)


def large_sample(size):
    """The largest cell has 1.5 times as many people as `size`."""
    rng = np.random.default_rng(3)
    even = np.outer(*(np.exp(rng.normal(size=length)) for length in (6, 5)))
    means = size / 10 * (np.exp(rng.normal(0, 1.5, (6, 5))) + even)
    return table(rng.poisson(means)), int(11 * means.sum())


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6, 1e7])
@pytest.mark.parametrize("mixing", ["gamma", "inverse Gaussian", "mixture"])
def test_large_counts_need_no_markov_chain(mixing, size):
    """The posterior, far from its prior and much narrower, hardly changes with the
    size: the grid once ended at a power of 0.19, or followed a ridge to nowhere. For
    gamma factors NUTS has means of log ν from 0.19 to 0.53, and of the power from 0.16
    to 0.24."""
    problem = make_problem(*large_sample(size), None, None)
    settings = np.random.default_rng(1)
    found = tc.MixedPoisson(mixing=mixing).learn_unlabelled(problem, 2000, settings)
    assert found is not None
    assert found.importance is not None
    assert found.importance.converged
    assert -0.7 < np.log(found.draws["nu"]).mean() < 0.8
    assert 0.1 < found.draws["power"].mean() < 0.65
    assert found.draws["power"].min() < 0.05


def test_a_power_whose_prior_lies_beyond_the_first_grid():
    """It once stayed at 2, and no diagnostic said so."""
    problem = make_problem(*large_sample(1e6), None, None)
    priors = {"power": tc.Prior("Uniform", lower=2, upper=3)}
    model = tc.MixedPoisson(mixing="gamma", priors=priors)
    found = model.learn_unlabelled(problem, 1000, np.random.default_rng(1))
    assert found is not None
    assert found.importance is not None
    assert found.importance.converged
    assert found.draws["power"].std() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e4, 1e6])
def test_large_counts_agree_with_nuts(size):
    sample, population_size = large_sample(size)
    model = tc.MixedPoisson(mixing="gamma")
    fits = [
        model.fit(
            sample,
            population_size=population_size,
            draws=2000,
            random_seed=2,
            method=method,
            **QUICK,
        )
        for method in ("fast", "nuts")
    ]
    assert fits[0].attrs["sampler"] == "importance sampling"
    check_parameters_agree(fits)


@pytest.mark.parametrize(
    "priors",
    [
        {"power": tc.Prior("Exponential", lam=1.0)},
        {"nu": tc.Prior("Uniform", lower=1.0, upper=1.001)},
        {"nu": tc.Prior("InverseGamma", alpha=0.01, beta=1.0)},
        {"margin_a": tc.Prior("Dirichlet", a=0.002), "margin_b": tc.Prior("Dirichlet", a=0.002)},
    ],
    ids=str,
)
@each
def test_priors_of_any_shape(priors, kind, monkeypatch):
    """Fitted, or left to NUTS, but never an error."""
    monkeypatch.setattr(tc.MixedPoisson, "learn_nuts", lambda *_: pytest.skip("left to NUTS"))
    sample = table([[5, 0, 3], [2, 1, 0], [0, 0, 0]])
    fit = tc.MixedPoisson(priors=priors, **KINDS[kind]).fit(
        sample, population_size=1000, draws=100, random_seed=1, **QUICK
    )
    assert np.isfinite(fit["posterior"].to_dataset().to_array()).all()
    assert not tc.fits.prior_sensitivity(fit).isna().any().any()


def shares_of_equal_probability(nodes):
    """A priori, of the first of two categories: quantiles of a symmetric beta
    distribution, its concentration integrated out.
    """
    levels = (np.arange(1000) + 0.5) / 1000
    a = 0.5 * levels**-4.0  # quantiles of the Pareto distribution

    def excess(share, probability):
        return beta.cdf(share, a, a).mean() - probability

    middles = (np.arange(nodes) + 0.5) / nodes
    return np.array([brentq(excess, 0, 1, args=(p,), xtol=1e-9) for p in middles])


def brute_force(sample, size, kind, nodes=16):
    """Expectations given a 2 x 2 sample, on a grid of all parameters, with the model's
    own draws of the populations at each node; and the probability of the sample."""
    further = next(iter(FIXED.get(kind, {})), None)
    n = sample.sum()
    shares = shares_of_equal_probability(24)
    if further:
        nodes, shares = 12, shares_of_equal_probability(16)
    log_nu = 1 + np.log(n / 4) + 1.5 * np.linspace(-3.5, 3.5, nodes)
    power = (np.arange(8) + 0.5) / 8
    log_t = np.log(n) + np.linspace(-3, 3, nodes)
    omegas = (np.arange(4) + 0.5) / 4 if further else [0.0]
    axes = np.meshgrid(log_nu, power, log_t, shares, shares, omegas, indexing="ij")
    u, betas, t, a, b, omega = (x.ravel() for x in axes)
    dims = ("chain", "draw")
    values = {"nu": np.exp(u), "power": betas, "intensity": np.exp(t)}
    if further:
        values[further] = omega
    single = {name: (dims, value[None]) for name, value in values.items()}
    margins = {
        f"margin_{d}": ((*dims, d), np.stack([m, 1 - m], axis=-1)[None])
        for d, m in (("a", a), ("b", b))
    }
    parameters = Parameters(xr.Dataset({**single, **margins}))
    model = tc.MixedPoisson(**KINDS[kind])
    problem = make_problem(table(sample), size, None, None)
    log_weight = model.log_joint(problem, parameters)[0] - 0.5 * ((u - u.mean()) / 1.5) ** 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    kept = weight > weight.max() * 1e-7
    posterior = parameters.posterior.isel(draw=np.flatnonzero(kept))
    some = arrays_of(problem, Parameters(posterior))
    rng = np.random.default_rng(3)
    empty = np.mean(
        [(model.complete(problem, kept.sum(), some, rng) == 0).sum(axis=1) for _ in range(4)],
        axis=0,
    )
    own = weight[kept] / weight[kept].sum()
    return {
        "empty": own @ empty,
        "power": own @ betas[kept],
        "log nu": own @ u[kept],
        "margin": own @ a[kept],
        **({further: own @ omega[kept]} if further else {}),
    }


def expectations(fit):
    """What `brute_force` has of a 2 x 2 sample, from the draws of a fit."""
    posterior = fit["posterior"]
    empty = (fit["posterior_predictive"]["population"] == 0).sum(["a", "b"])
    return {
        "empty": float(empty.mean()),
        "power": float(posterior["power"].mean()),
        "log nu": float(np.log(posterior["nu"]).mean()),
        "margin": float(posterior["margin_a"].isel(a=0).mean()),
    }


@each
def test_draws_follow_the_posterior_of_a_tiny_table(kind):
    sample = np.array([[6, 0], [1, 2]])
    exact = brute_force(sample, 60, kind)
    fit = tc.MixedPoisson(**KINDS[kind]).fit(
        table(sample), population_size=60, draws=2_000, random_seed=4, **QUICK
    )
    found = expectations(fit)
    assert "k_hat" in fit.attrs["importance"]
    # Some thousand effective draws: three of their standard errors, and the grid's.
    tolerances = {"empty": 0.04, "power": 0.02, "log nu": 0.08, "margin": 0.01}
    for name in FIXED.get(kind, {}):
        found[name] = float(fit["posterior"][name].mean())
        tolerances[name] = 0.02
    for name, tolerance in tolerances.items():
        assert found[name] == pytest.approx(exact[name], abs=tolerance), (name, found, exact)


def test_the_sample_says_how_many_factors_are_inverse_gaussian():
    """A table of a few counts that a gamma distribution explains better."""
    sample = np.array([[40, 0], [0, 3]])
    exact = brute_force(sample, 400, "mixture")["share"]
    fit = tc.MixedPoisson().fit(
        table(sample), population_size=400, draws=5_000, random_seed=4, **QUICK
    )
    assert exact < 0.46
    # Of a few thousand effective draws; the grid is coarse.
    assert float(fit["posterior"]["share"].mean()) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("alpha", [0.5, 8.0])
def test_the_share_follows_its_prior(alpha):
    """A sample of one person says nothing of it; priors low or high in the middle."""
    fit = tc.MixedPoisson(priors={"share": tc.Prior("Beta", alpha=alpha, beta=alpha)}).fit(
        table([[1, 0], [0, 0]]), population_size=90, draws=20_000, random_seed=4, **QUICK
    )
    found = fit["posterior"]["share"].values.ravel()
    law = beta(alpha, alpha)
    quantiles = np.quantile(found, [0.1, 0.5, 0.9])  # the median's standard error is 0.006
    np.testing.assert_allclose(quantiles, law.ppf([0.1, 0.5, 0.9]), atol=0.03)


@pytest.mark.parametrize("name", ["share", "inflation"])
def test_shares_are_probabilities(name):
    above = {name: tc.Prior("Uniform", lower=0.0, upper=2.0)}
    with pytest.raises(PriorError, match=rf"{name}.*between 0 and 1"):
        tc.MixedPoisson(priors=above, zero_inflated=True)


def check_parameters_agree(fits):
    spreads = {name for name in fits[0]["posterior"].data_vars if "concentration" in name}
    others = [
        name for name in fits[0]["posterior"].data_vars if name[:5] in ("share", "infla", "scale")
    ]
    for name in ("power", "intensity", *others, *sorted(spreads)):
        first, second = (fit["posterior"][name].values for fit in fits)
        if name in spreads:  # without an upper end
            first, second = first**-0.5, second**-0.5
        spread = max(first.std(), second.std())
        assert first.mean() == pytest.approx(second.mean(), abs=0.2 * spread)


@each
@pytest.mark.slow
def test_it_agrees_with_nuts(kind, religion_sample):
    """Mean and standard deviation of R2, and of the parameters; with half as many draws
    NUTS is near the limits of convergence, on one side or the other by machine."""
    model = tc.MixedPoisson(**KINDS[kind])
    fits = [
        model.fit(
            religion_sample,
            population_size=2449,
            draws=4000,
            random_seed=2,
            method=method,
            **QUICK,
        )
        for method in ("fast", "nuts")
    ]
    risks = [tc.assess(fit)["risk"]["R2"].values for fit in fits]
    assert risks[0].mean() == pytest.approx(risks[1].mean(), abs=0.003)
    assert risks[0].std() == pytest.approx(risks[1].std(), rel=0.1)
    check_parameters_agree(fits)


def check_it_agrees_with_nuts(model, sample):
    """On 300 of 3,000 people, with as many chains as it takes for those of NUTS to have
    enough effective draws."""
    settings = {"population_size": 3000, "draws": 2500, "chains": 4, "progressbar": False}
    fits = [
        model.fit(sample, random_seed=2, method=method, **settings) for method in ("fast", "nuts")
    ]
    assert fits[0].attrs["sampler"] == "importance sampling"
    risks = [tc.assess(fit)["risk"]["R2"].values for fit in fits]
    # Each has some hundred effective draws or more.
    assert risks[0].mean() == pytest.approx(risks[1].mean(), abs=0.2 * risks[1].std())
    assert risks[0].std() == pytest.approx(risks[1].std(), rel=0.15)
    check_parameters_agree(fits)


def flows(a, b):
    return np.where(a == b, 20.0, 1.0) / (1 + a) / (1 + b)


def four_variables(a, b, c, d):
    return (1 + a) * (1 + b) * (1 + 3 * (c == d)) / (1 + d)


@pytest.mark.parametrize(("shares", "shape"), [(flows, (12, 12)), (four_variables, (3, 4, 3, 5))])
@pytest.mark.slow
def test_it_agrees_with_nuts_on_tables_of_other_kinds(shares, shape):
    rng = np.random.default_rng(5)
    expected = shares(*np.indices(shape))
    counts = rng.multinomial(300, (expected / expected.sum()).ravel()).reshape(shape)
    sample = xr.DataArray(counts, dims=tuple("abcd"[: len(shape)]))
    check_it_agrees_with_nuts(tc.MixedPoisson(), sample)


def from_the_prior(sample, size, number=400_000):
    """Expectations given a 2 x 2 sample, with gamma factors and an interaction: a tenth
    of the draws count.
    """
    model, rng, n = tc.MixedPoisson("a * b", mixing="gamma"), np.random.default_rng(1), sample.sum()
    problem, dims = make_problem(table(sample), size, None, None), ("chain", "draw")
    log_nu = 1 + np.log(n / 4) + 1.5 * rng.normal(size=number)
    values = {"nu": np.exp(log_nu), "power": rng.random(number)}
    off = 0.45 * rng.normal(size=number)
    values["intensity"] = n * np.exp(off)
    every = {name: (dims, value[None]) for name, value in values.items()}
    for dim in "ab":
        a = 0.5 * np.maximum(rng.random(number), 1e-2) ** -4.0
        first = rng.beta(a, a)
        every[f"margin_{dim}"] = ((*dims, dim), np.stack([first, 1 - first], axis=-1)[None])
    coordinate = np.abs(rng.normal(size=number)) * rng.normal(size=number)
    effect = coordinate[:, None, None] * np.array([[0.5, -0.5], [-0.5, 0.5]])
    every["effect_a_b"] = ((*dims, "a", "b"), effect[None])
    parameters = Parameters(xr.Dataset(every))
    log_weight = model.log_joint(problem, parameters)[0] + 0.5 * (off / 0.45) ** 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 10_000
    kept = rng.choice(number, 20_000, p=weight)
    some = arrays_of(problem, Parameters(parameters.posterior.isel(draw=kept)))
    return {
        "empty": (model.complete(problem, len(kept), some, rng) == 0).sum(axis=1).mean(),
        "power": weight @ values["power"],
        "log nu": weight @ log_nu,
        "margin": weight @ every["margin_a"][1][0, :, 0],
        "interaction": weight @ coordinate,
    }


def test_an_interaction_of_a_tiny_table_follows_its_posterior():
    """Against draws from the prior, weighted by the likelihood. Its effect has one
    coordinate, positive where the diagonal is full.
    """
    sample = np.array([[7, 0], [1, 4]])
    exact = from_the_prior(sample, 60)
    fit = tc.MixedPoisson("a * b", mixing="gamma").fit(
        table(sample), population_size=60, draws=2_000, random_seed=4, **QUICK
    )
    assert fit.attrs["sampler"] == "importance sampling"
    found = expectations(fit)
    found["interaction"] = 2 * float(fit["posterior"]["effect_a_b"].isel(a=0, b=0).mean())
    assert exact["interaction"] > 1
    # About four standard errors, of some thousand effective draws.
    tolerances = {"empty": 0.03, "power": 0.02, "log nu": 0.1, "margin": 0.015}
    for name, tolerance in {**tolerances, "interaction": 0.1}.items():
        assert found[name] == pytest.approx(exact[name], abs=tolerance), (name, found, exact)


@pytest.mark.parametrize(
    ("shape", "formula"), [((10, 9), "a * b"), ((5, 3, 4), "a * b + b * c + a * c")]
)
@pytest.mark.slow
def test_interactions_agree_with_nuts(shape, formula):
    rng = np.random.default_rng(5)
    names = tuple("abc"[: len(shape)])
    effects = rng.normal(0, 0.6, shape) + sum(
        rng.normal(0, 0.8, [size if i == axis else 1 for i in range(len(shape))])
        for axis, size in enumerate(shape)
    )
    expected = np.exp(effects).ravel()
    counts = rng.multinomial(300, expected / expected.sum()).reshape(shape)
    sample = xr.DataArray(counts, dims=names)
    check_it_agrees_with_nuts(tc.MixedPoisson(formula, mixing="gamma"), sample)


@pytest.mark.parametrize("shape", [(16, 16), (2, 119)], ids=str)
def test_many_interactions_are_left_to_nuts(shape):
    """Too few proposals would count of 15 x 15 coordinates; 118 are tried."""
    counts = np.random.default_rng(4).poisson(2, size=shape)
    problem = make_problem(table(counts), 5_000, None, None)
    model = tc.MixedPoisson("a * b")
    found = model.learn_unlabelled(problem, 10, np.random.default_rng(1))
    assert (found is None) == (shape == (16, 16))


def test_replaced_priors_of_interactions(monkeypatch):
    """Scales that are nearly fixed, and of any size."""
    monkeypatch.setattr(tc.MixedPoisson, "learn_nuts", lambda *_: pytest.skip("left to NUTS"))
    nearly = tc.Prior("LogNormal", mu=-3.0, sigma=0.01)
    for scale in (nearly, tc.Prior("HalfStudentT", nu=3, sigma=1)):
        fit = tc.MixedPoisson("a * b", priors={"scale_a_b": scale}).fit(
            table([[5, 0, 3], [2, 1, 0]]), population_size=90, draws=500, random_seed=1, **QUICK
        )
        scales = fit["posterior"]["scale_a_b"].values
        assert np.isfinite(scales).all()
        if scale == nearly:
            assert scales.mean() == pytest.approx(np.exp(-3), rel=0.01)


def test_structural_zeros_and_uniform_variables():
    zeros = table([[False, True, False], [False, False, True]])
    sample = table([[4, 0, 1], [2, 0, 0]])
    fit = tc.MixedPoisson("~ a").fit(
        sample, population_size=90, structural_zeros=zeros, draws=200, random_seed=1, **QUICK
    )
    population = fit["posterior_predictive"]["population"]
    tc.fits.check_population(population, sample, population_size=90, structural_zeros=zeros)
    single = {"nu", "power", "intensity", "share", "concentration_a"}
    assert set(fit["posterior"].data_vars) == {*single, "margin_a"}


def test_large_tables_do_not_depend_on_the_number_of_threads(monkeypatch):
    """Its 1.2 million counts are drawn in blocks."""
    counts = np.random.default_rng(4).negative_binomial(0.5, 0.3, size=(30, 20))
    fits = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        fits.append(
            tc.MixedPoisson().fit(
                table(counts), population_size=9_000, draws=1_000, random_seed=3, **QUICK
            )
        )
    assert fits[0].attrs["sampler"] == "importance sampling"
    for group in ("posterior", "posterior_predictive", "cell_log_likelihood"):
        xr.testing.assert_identical(*(fit[group].to_dataset() for fit in fits))


def test_blocks_of_draws_keep_their_order_and_have_random_numbers_of_their_own():
    draws, cells = 3_000, 400
    given = {"nu": np.arange(draws, dtype=float)}

    def work(parameters, rng):
        return np.column_stack([parameters["nu"], rng.random(len(parameters["nu"]))])

    found = of_draws(work, given, cells, np.random.default_rng(1))
    assert found[:, 0].tolist() == given["nu"].tolist()
    assert len(np.unique(found[:, 1])) == draws
    few = of_draws(work, given, 1, np.random.default_rng(1))  # at once, with the generator given
    assert few[:, 1].tolist() == np.random.default_rng(1).random(draws).tolist()
    assert of_draws(lambda parameters: parameters["nu"], given, cells).tolist() == list(
        range(draws)
    )


def test_what_it_refuses(religion_sample):
    with pytest.raises(ParameterError, match="mixing must be one of"):
        tc.MixedPoisson(mixing="log-normal")
    with pytest.raises(ParameterError, match="zero_inflated must be True or False, got 1"):
        tc.MixedPoisson(zero_inflated=1)
    weights = religion_sample * 10.0
    with pytest.raises(ParameterError, match="not whole, which needs gamma factors"):
        tc.MixedPoisson(mixing="inverse Gaussian").fit(
            religion_sample, population_size=2449, sampling_weights=weights, effective_size=100
        )
    assert (
        tc.MixedPoisson()
        .fit(religion_sample, population_size=2449, draws=5, random_seed=1, **QUICK)
        .attrs["importance"]
    )
