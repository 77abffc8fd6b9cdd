"""The Bayesian models: their likelihoods against closed forms, their conditionals and
posteriors against exact ones."""

from math import exp, factorial, lgamma, log, prod

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr

import taciturn as tc
from exact import dirichlet_multinomial_pmf, tables, urn_from_nothing
from interpreted import INTERPRETED, interpreted
from taciturn.diagnostics import check_convergence, error_of_mean
from taciturn.errors import ConvergenceWarning, FormulaError, PriorError, TableError
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters


def table(values, dims=("a", "b")) -> xr.DataArray:
    array = np.asarray(values)
    return xr.DataArray(
        array,
        dims=dims,
        coords={d: [f"{d}{i}" for i in range(s)] for d, s in zip(dims, array.shape, strict=True)},
    )


@interpreted
def observed_logp(model: pm.Model):
    """Log-probability of any table given the free parameters, in the model's order."""
    value = pt.lvector("value")
    free = list(model.free_RVs)
    compiled = pytensor.function(
        [*free, value], pm.logp(model["sample_counts"], value), mode=INTERPRETED
    )
    return lambda *args: float(compiled(*map(np.asarray, args)))


def posterior(**values) -> Parameters:
    """Parameters of one draw."""
    variables = {
        name: xr.DataArray(np.asarray(value)[None, None], dims=("chain", "draw", *dims))
        for name, (value, *dims) in values.items()
    }
    return Parameters(posterior=xr.Dataset(variables))


# ---- likelihoods


def test_dirichlet_likelihood_is_the_dirichlet_multinomial_of_every_table() -> None:
    model = tc.DirichletLogLinear().build(table([[2, 0], [1, 1]]), 10)
    logp = observed_logp(model)
    kappa, a, b = 3.7, np.array([0.3, 0.7]), np.array([0.6, 0.4])
    weights = (kappa * np.outer(a, b)).ravel()
    for x in tables(4, 4):
        assert logp(kappa, a, b, x) == pytest.approx(
            log(dirichlet_multinomial_pmf(x, weights)), abs=1e-9
        )


def test_dirichlet_likelihood_leaves_structural_zeros_out() -> None:
    zeros = table([[False, True], [False, False]])
    model = tc.DirichletLogLinear().build(table([[2, 0], [1, 1]]), 10, structural_zeros=zeros)
    logp = observed_logp(model)
    kappa, a, b = 3.7, np.array([0.3, 0.7]), np.array([0.6, 0.4])
    pi = np.outer(a, b).ravel()[[0, 2, 3]]
    total = 0.0
    for x in tables(4, 3):
        expected = dirichlet_multinomial_pmf(x, kappa * pi / pi.sum())
        total += expected
        assert logp(kappa, a, b, x) == pytest.approx(log(expected), abs=1e-9)
    assert total == pytest.approx(1)


@pytest.mark.parametrize("discount", [0.0, 0.35])
@pytest.mark.parametrize("theta", [0.4, 6.0])
def test_urn_likelihood_is_the_sequential_urn_for_every_table(
    theta: float, discount: float
) -> None:
    """EPPF × orders × labels. With n = 4 individuals no more than 4 of 5 cells are
    seen, and all tables sum to 1."""
    logp = observed_logp(
        tc.ChineseRestaurant(discount=discount).build(table([[1, 0, 0, 0, 3]], ("a", "b")), 10)
    )
    exact = urn_from_nothing(5, 4, theta, discount)
    assert len(exact) == len(tables(4, 5))
    assert sum(exp(logp(theta, x)) for x in exact) == pytest.approx(1, abs=1e-12)
    for x, chance in exact.items():
        assert logp(theta, x) == pytest.approx(log(chance), abs=1e-9)
    # By hand, for (1, 0, 0, 0, 3): θ + σ over (θ+1)(θ+2)(θ+3), times (1-σ)(2-σ); 4
    # orders; 1 of 5·4 labellings.
    by_hand = (
        (theta + discount) * (1 - discount) * (2 - discount) / prod(theta + i for i in (1, 2, 3))
    )
    assert exp(logp(theta, (1, 0, 0, 0, 3))) == pytest.approx(by_hand * 4 / (5 * 4))


def test_urn_likelihood_where_the_sample_outnumbers_the_cells() -> None:
    """n > K: exact for every table that leaves a cell empty, so that the urn cannot
    have closed."""
    logp = observed_logp(tc.ChineseRestaurant(discount=0.2).build(table([[5, 0, 1]]), 10))
    for x, chance in urn_from_nothing(3, 6, 1.7, 0.2).items():
        if min(x) == 0:
            assert logp(1.7, x) == pytest.approx(log(chance), abs=1e-9)


def test_urn_likelihood_counts_only_cells_that_can_be_filled() -> None:
    zeros = table([[False, True], [False, False]])
    model = tc.ChineseRestaurant(discount=0.0).build(
        table([[2, 0], [0, 0]]), 10, structural_zeros=zeros
    )
    logp = observed_logp(model)
    for x, chance in urn_from_nothing(3, 2, 0.9).items():
        assert logp(0.9, x) == pytest.approx(log(chance), abs=1e-9)


@interpreted
def test_both_models_can_be_drawn_from() -> None:
    sample = table([[2, 0, 1], [1, 1, 0]])
    for estimator in (tc.DirichletLogLinear(), tc.ChineseRestaurant(discount=0.3)):
        with estimator.build(sample, 10):
            prior = pm.sample_prior_predictive(
                draws=15, random_seed=1, compile_kwargs={"mode": INTERPRETED}
            )
        drawn = prior["prior_predictive"]["sample_counts"].values
        assert drawn.shape == (1, 15, 6)
        assert (drawn.sum(-1) == 5).all()
        assert len(np.unique(drawn.reshape(15, 6), axis=0)) > 1


# ---- leave-one-out conditionals


def sequence_probability(x: tuple[int, ...], pmf) -> float:
    """Probability of one assignment of individuals to cells: every order of a table is
    equally likely."""
    return pmf(x) * prod(map(factorial, x)) / factorial(sum(x)) if sum(x) else 1.0


@pytest.mark.parametrize(
    "x", [(3, 0, 1, 0), (1, 1, 0, 0), (1, 0, 0, 0), (0, 5, 0, 0), (2, 1, 1, 0)]
)
def test_dirichlet_conditionals_are_ratios_of_joint_probabilities(x) -> None:
    kappa, a, b = 2.3, np.array([0.3, 0.7]), np.array([0.6, 0.4])
    weights = (kappa * np.outer(a, b)).ravel()
    problem = make_problem(table(np.reshape(x, (2, 2))), 20)
    parameters = posterior(kappa=(kappa,), margin_a=(a, "a"), margin_b=(b, "b"))
    terms = tc.DirichletLogLinear().log_conditionals(problem, parameters)
    assert_ratios(terms, x, lambda y: dirichlet_multinomial_pmf(y, weights))


@pytest.mark.parametrize("discount", [0.0, 0.45])
@pytest.mark.parametrize(
    "x", [(3, 0, 1, 0), (1, 1, 0, 0), (1, 0, 0, 0), (0, 5, 0, 0), (2, 1, 1, 0)]
)
def test_urn_conditionals_are_ratios_of_joint_probabilities(x, discount) -> None:
    theta = 1.9
    problem = make_problem(table(np.reshape(x, (2, 2))), 20)
    terms = tc.ChineseRestaurant(discount=discount).log_conditionals(
        problem, posterior(theta=(theta,))
    )
    assert_ratios(terms, x, lambda y: urn_from_nothing(4, sum(y), theta, discount)[y])


def assert_ratios(terms: np.ndarray, x: tuple[int, ...], pmf) -> None:
    occupied = [i for i, count in enumerate(x) if count]
    assert terms.shape == (1, 1, len(occupied))
    for term, i in zip(terms[0, 0], occupied, strict=True):
        without = tuple(count - (j == i) for j, count in enumerate(x))
        assert exp(term) == pytest.approx(
            sequence_probability(x, pmf) / sequence_probability(without, pmf), rel=1e-9
        )


def test_pointwise_likelihood_has_one_value_an_individual(
    fit_dirichlet, fit_restaurant, religion_sample
) -> None:
    counts = religion_sample.values.ravel()
    for fit in (fit_dirichlet, fit_restaurant):
        pointwise = fit["log_likelihood"]["count"]
        assert pointwise.dims == ("chain", "draw", "individual")
        assert pointwise.sizes["individual"] == 245
    theta, sigma = (
        float(fit_restaurant["posterior"][name].values[0, 0]) for name in ("theta", "discount")
    )
    first, k = int(counts[counts > 0][0]), int((counts > 0).sum())
    new = (theta + (k - 1) * sigma) / (244 + theta) / (90 - k + 1)
    expected = (first - 1 - sigma) / (244 + theta) if first > 1 else new
    assert exp(fit_restaurant["log_likelihood"]["count"].values[0, 0, 0]) == pytest.approx(expected)


# ---- specification


def test_build_has_named_dims(religion_sample) -> None:
    model = tc.DirichletLogLinear("~ area*religion").build(religion_sample, 2449)
    assert list(model.coords["area"]) == religion_sample["area"].values.tolist()
    assert list(model.coords["religion"]) == religion_sample["religion"].values.tolist()
    dims = model.named_vars_to_dims
    assert dims["margin_area"] == ("area",)
    assert dims["effect_area_religion"] == ("area", "religion")
    assert {v.name for v in model.free_RVs} == {
        *(
            "kappa",
            "margin_area",
            "margin_religion",
            "scale_area_religion",
            "interaction_coordinates",
        )
    }


def test_a_variable_with_one_category_has_no_margin() -> None:
    model = tc.DirichletLogLinear("~ a*b").build(table([[2, 0, 1]]), 10)
    assert {v.name for v in model.free_RVs} == {"kappa", "margin_b"}


def test_priors_are_replaced_by_name(religion_sample) -> None:
    priors = {
        "kappa": tc.Prior("Gamma", alpha=2, beta=0.5),
        "margin_area": tc.Prior("Dirichlet", a=4),
    }
    model = tc.DirichletLogLinear(priors=priors).build(religion_sample, 2449)
    kappa = pm.logp(model["kappa"], 3.0).eval({}, mode=INTERPRETED)
    assert kappa == pytest.approx(log(0.5**2 * 3) - 0.5 * 3)  # β² x exp(-βx) / Γ(2)
    even = np.full(10, 1 / 10)
    area = pm.logp(model["margin_area"], even).eval({}, mode=INTERPRETED)
    assert area == pytest.approx(lgamma(40) - 10 * lgamma(4) + 10 * 3 * log(1 / 10))
    religion = pm.logp(model["margin_religion"], np.full(9, 1 / 9)).eval({}, mode=INTERPRETED)
    assert religion == pytest.approx(lgamma(9))  # untouched: uniform on the simplex
    restaurant = tc.ChineseRestaurant(priors={"theta": tc.Prior("Exponential", lam=0.25)}).build(
        religion_sample, 2449
    )
    assert pm.logp(restaurant["theta"], 2.0).eval({}, mode=INTERPRETED) == pytest.approx(
        log(0.25) - 0.25 * 2
    )


def test_default_priors(religion_sample) -> None:
    def lognormal(x, mu, sigma):
        return -((log(x) - mu) ** 2) / (2 * sigma**2) - log(x * sigma) - log(2 * np.pi) / 2

    kappa = tc.DirichletLogLinear().build(religion_sample, 2449)["kappa"]
    assert pm.logp(kappa, 50.0).eval({}, mode=INTERPRETED) == pytest.approx(
        lognormal(50, 1 + log(245), 1.5)
    )
    theta = tc.ChineseRestaurant().build(religion_sample, 2449)["theta"]
    assert pm.logp(theta, 50.0).eval({}, mode=INTERPRETED) == pytest.approx(
        lognormal(50, log(90), 1.5)
    )
    discount = tc.ChineseRestaurant().build(religion_sample, 2449)["discount"]
    assert pm.logp(discount, 0.3).eval({}, mode=INTERPRETED) == pytest.approx(log(2 * (1 - 0.3)))
    wide = tc.ChineseRestaurant().priors_for(
        make_problem(table(np.ones((1000, 1000), dtype=int)), 10**6)
    )
    assert wide["theta"] == tc.Prior("LogNormal", mu=log(10**6), sigma=log(10**6) / 3)


@pytest.mark.parametrize(
    ("estimator", "name", "prior", "message"),
    [
        (
            tc.DirichletLogLinear,
            "kapa",
            tc.Prior("HalfNormal", sigma=1),
            r"\['kapa'\], the parameters .* are kappa, margin_a",
        ),
        (tc.DirichletLogLinear, "scale_a_b", tc.Prior("HalfNormal", sigma=1), "scale_a_b"),
        (tc.DirichletLogLinear, "margin_a", tc.Prior("HalfNormal", sigma=1), "must be a Dirichlet"),
        (
            tc.DirichletLogLinear,
            "kappa",
            tc.Prior("Dirichlet", a=1),
            "must be a distribution of one positive number",
        ),
        (
            tc.DirichletLogLinear,
            "kappa",
            tc.Prior("Uniform", lower=-1, upper=9),
            "lower must be at least 0",
        ),
        (
            tc.ChineseRestaurant,
            "kappa",
            tc.Prior("HalfNormal", sigma=1),
            "the parameters of this model are theta, discount",
        ),
    ],
)
def test_a_prior_that_matches_no_parameter(estimator, name, prior, message) -> None:
    with pytest.raises(PriorError, match=message):
        estimator(priors={name: prior}).build(table([[2, 0], [1, 1]]), 10)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "Normal",
            {"mu": 0, "sigma": 1},
            "no distribution 'Normal' for a prior: there are Beta, Dirichlet",
        ),
        ("__import__", {}, "no distribution"),
        ("HalfNormal", {}, r"takes the parameters \('sigma',\), got \(\)"),
        ("HalfNormal", {"sigma": 1, "mu": 0}, "takes the parameters"),
        ("HalfNormal", {"sd": 1}, "takes the parameters"),
        ("HalfNormal", {"sigma": 0}, "sigma must be a positive number, got 0"),
        ("HalfNormal", {"sigma": -1}, "sigma must be a positive number, got -1"),
        ("HalfNormal", {"sigma": float("inf")}, "sigma must be a positive number, got inf"),
        ("HalfNormal", {"sigma": float("nan")}, "sigma must be a positive number, got nan"),
        ("HalfNormal", {"sigma": "1"}, "sigma must be a positive number, got '1'"),
        ("HalfNormal", {"sigma": True}, "sigma must be a positive number, got True"),
        ("LogNormal", {"mu": float("nan"), "sigma": 1}, "mu must be a finite number"),
        ("Uniform", {"lower": 2, "upper": 2}, "lower must be below upper"),
    ],
)
def test_priors_refused(name, parameters, message) -> None:
    with pytest.raises(PriorError, match=message):
        tc.Prior(name, **parameters)


def test_priors_are_values() -> None:
    prior = tc.Prior("LogNormal", mu=-1, sigma=np.float32(0.5))
    assert prior == tc.Prior("LogNormal", sigma=0.5, mu=np.int64(-1))
    assert hash(prior) == hash(tc.Prior("LogNormal", mu=-1, sigma=0.5))
    assert prior != tc.Prior("LogNormal", mu=1, sigma=0.5)
    assert tc.Prior.from_dict(prior.to_dict()) == prior
    assert repr(prior) == "Prior('LogNormal', mu=-1, sigma=0.5)"
    with pytest.raises(PriorError, match="must be a Prior"):
        tc.DirichletLogLinear(priors={"kappa": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "dims", [("kappa", "b"), ("margin_b", "b"), ("sample_counts", "b"), ("a", "effect_a_effect_a")]
)
def test_a_variable_named_as_a_parameter(dims) -> None:
    clashes = dims != ("a", "effect_a_effect_a")
    build = tc.DirichletLogLinear().build
    if clashes:
        with pytest.raises(TableError, match="has the name of a parameter of the model: rename it"):
            build(table([[2, 0], [1, 1]], dims), 10)
    else:
        assert build(table([[2, 0], [1, 1]], dims), 10).free_RVs


def test_two_interactions_of_one_name() -> None:
    sample = table(np.ones((2, 2, 2, 2), dtype=int), ("a", "b_c", "a_b", "c"))
    with pytest.raises(TableError, match="two interactions would both be named 'effect_a_b_c'"):
        tc.DirichletLogLinear("~ a:b_c + a_b:c").build(sample, 100)


@pytest.mark.parametrize(
    "name", ["population", "sample", "population_size", "theta", "probability", "a/b"]
)
def test_a_variable_named_as_a_part_of_the_fit(name) -> None:
    with pytest.raises(TableError, match=f"the variable '{name}' .*rename it"):
        tc.LogLinear().fit(table([[2, 0], [1, 1]], (name, "b")), population_size=10)


def test_an_unknown_variable_in_the_formula() -> None:
    with pytest.raises(FormulaError, match="names 'sex': the table's variables are 'a', 'b'"):
        tc.DirichletLogLinear("~ a + sex").build(table([[2, 0], [1, 1]]), 10)


# ---- posteriors against quadrature


def test_dirichlet_population_against_quadrature() -> None:
    """2 x 2, κ held at 4: every population table's probability by a sum over both
    margins, within 4.5 MCSE."""
    import arviz as az

    sample, kappa, extra = table([[3, 0], [1, 2]]), 4.0, 2
    f = sample.values.ravel()
    grid = (np.arange(100) + 0.5) / 100  # the priors of both margins are uniform
    exact = dict.fromkeys(tables(extra, 4), 0.0)
    total = 0.0
    for a in grid:
        for b in grid:
            weights = kappa * np.array([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])
            likelihood = dirichlet_multinomial_pmf(tuple(f), weights)
            total += likelihood
            for x in exact:
                exact[x] += likelihood * dirichlet_multinomial_pmf(x, weights + f)
    model = tc.DirichletLogLinear(
        priors={"kappa": tc.Prior("Uniform", lower=kappa - 1e-3, upper=kappa + 1e-3)}
    )
    fit = model.fit(
        sample,
        population_size=6 + extra,
        draws=3000,
        chains=2,
        tune=500,
        random_seed=2,
        progressbar=False,
    )
    drawn = fit["posterior_predictive"]["population"].values.reshape(2, 3000, 4) - f
    for x, mass in exact.items():
        hit = (drawn == x).all(-1).astype(float)
        p = mass / total
        ess = min(float(az.ess(hit)), hit.size) if 0 < hit.mean() < 1 else hit.size
        assert abs(hit.mean() - p) < 4.5 * (p * (1 - p) / ess) ** 0.5 + 1 / hit.size


# ---- convergence


def test_a_fit_that_did_not_converge_says_so() -> None:
    rng = np.random.default_rng(1)
    dims = ("chain", "draw")
    good = xr.Dataset({"x": (dims, rng.normal(size=(4, 500)))})
    apart = xr.Dataset({"x": (dims, rng.normal(size=(4, 500)) + np.arange(4)[:, None])})
    few = xr.Dataset({"x": (dims, rng.normal(size=(4, 50)))})
    diverged = xr.Dataset({"diverging": (dims, np.arange(2000).reshape(4, 500) < 3)})
    assert check_convergence(good, None, warn=True).converged
    with pytest.warns(ConvergenceWarning, match="r-hat is .*at most 1.01"):
        assert check_convergence(apart, None, warn=True).r_hat > 1.5
    with pytest.warns(ConvergenceWarning, match="effective sample size is .*at least 400"):
        check_convergence(few, None, warn=True)
    with pytest.warns(ConvergenceWarning, match="3 transitions diverged"):
        assert check_convergence(good, diverged, warn=True).divergences == 3
    # One chain cannot be compared with another: not converged rather than unknown.
    stuck = xr.Dataset({"x": (dims, np.ones((4, 500)))})
    assert not check_convergence(stuck, None).converged


@pytest.mark.slow
@pytest.mark.parametrize("name", ["restaurant_by_nuts", "dirichlet_by_nuts"])
def test_shared_fits_converged(name, request) -> None:
    fit = request.getfixturevalue(name)
    assert check_convergence(
        fit["posterior"].to_dataset(), fit["sample_stats"].to_dataset()
    ).converged


def test_errors_of_short_chains_are_no_less_than_those_of_independent_draws() -> None:
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(2000, 50, 8))
    stated = np.array([error_of_mean(each) for each in draws])
    # The mean of 400 draws has an error of 0.05.
    assert 0.05 < stated.mean() < 0.055
    apart = rng.normal(size=(4, 8)) + np.array([0.0, 0.0, 0.0, 8.0])[:, None]
    assert error_of_mean(apart) > 1.5
    long = rng.normal(size=(4, 500))
    assert error_of_mean(long) == pytest.approx(2000**-0.5, rel=0.15)


def test_draws_that_are_not_finite_pass_no_check() -> None:
    """Their ranks are as good as others."""
    values = np.random.default_rng(0).normal(size=(4, 1000))
    for value in (np.inf, -np.inf, np.nan):
        values[:, ::2] = value
        found = check_convergence(xr.Dataset({"x": (("chain", "draw"), values)}), None)
        assert np.isnan(found.r_hat)
        assert not found.converged
