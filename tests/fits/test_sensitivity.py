"""Prior sensitivity: densities in closed form, the distance on exact distributions, and
fits under a changed prior."""

from math import lgamma, log, sqrt

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln

import taciturn as tc
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters
from taciturn.fits.mixtures import fit_makers
from taciturn.fits.sensitivity import sensitivity_lines

SIZE = {"population_size": 2449, "progressbar": False}


@pytest.fixture(scope="module")
def small(religion) -> xr.DataArray:
    """A sample of 24, where priors matter."""
    return tc.draw_sample(religion, fraction=0.01, random_seed=1)


@pytest.fixture(scope="module")
def pooled(religion_sample) -> xr.DataTree:
    return tc.assess(tc.LinearPool().fit(religion_sample, draws=500, random_seed=3, **SIZE))


# The prior's density
# --------------------------------------------------------------------------------------


def test_density_of_a_number_without_an_upper_end_is_that_of_its_logarithm() -> None:
    x = np.array([0.01, 1.0, 50.0])
    np.testing.assert_allclose(
        tc.Prior("LogNormal", mu=2.0, sigma=1.5).log_density(x),
        stats.norm(2.0, 1.5).logpdf(np.log(x)),
    )
    # An exponential with rate 1: the density of y = log x is exp(y - exp y).
    np.testing.assert_allclose(tc.Prior("Exponential", lam=1.0).log_density(x), np.log(x) - x)


def test_density_of_a_bounded_number_is_its_own() -> None:
    x = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        tc.Prior("Beta", alpha=1.0, beta=2.0).log_density(x), np.log(2 * (1 - x))
    )
    np.testing.assert_allclose(
        tc.Prior("Uniform", lower=0.0, upper=4.0).log_density(x), [-log(4)] * 3
    )


def test_density_of_a_margin_is_over_its_last_axis() -> None:
    margins = np.array([[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]])
    expected = [[stats.dirichlet([2.5] * 3).logpdf(margin) for margin in margins[0]]]
    np.testing.assert_allclose(tc.Prior("Dirichlet", a=2.5).log_density(margins), expected)
    flat = tc.Prior("Dirichlet", a=1.0).log_density(np.array([[0.0, 1.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(flat, [lgamma(2), lgamma(2)])


@pytest.mark.parametrize(
    ("prior", "scaled"),
    [
        (
            tc.Prior("LogNormal", mu=3.0, sigma=1.2),
            tc.Prior("LogNormal", mu=3.0, sigma=1.2 / sqrt(0.7)),
        ),
        (
            tc.Prior("Gamma", alpha=2.0, beta=0.5),
            tc.Prior("Gamma", alpha=0.7 * 2.0, beta=0.7 * 0.5),
        ),
        (
            tc.Prior("Beta", alpha=1.0, beta=2.0),
            tc.Prior("Beta", alpha=1.0, beta=1 + 0.7 * (2.0 - 1)),
        ),
        (tc.Prior("Uniform", lower=0.0, upper=1.0), tc.Prior("Uniform", lower=0.0, upper=1.0)),
    ],
)
def test_what_a_power_makes_of_a_prior(prior, scaled) -> None:
    """On the chosen scale the power 0.7 gives a member of the same family, up to a
    constant."""
    x = np.array([0.05, 0.3, 0.6, 0.95])
    assert np.ptp(0.7 * prior.log_density(x) - scaled.log_density(x)) == pytest.approx(0, abs=1e-12)


# The groups of a fit
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["fit_dirichlet", pytest.param("dirichlet_by_nuts", marks=pytest.mark.slow)]
)
def test_log_prior_of_the_dirichlet_model_on_both_paths(name, request) -> None:
    fit = request.getfixturevalue(name)
    found = fit["log_prior"].to_dataset()
    assert list(found.data_vars) == ["kappa", "margin_area", "margin_religion"]
    assert found["kappa"].dims == ("chain", "draw")
    expected = stats.norm(1 + log(245), 1.5).logpdf(np.log(fit["posterior"]["kappa"].values))
    np.testing.assert_allclose(found["kappa"], expected)
    np.testing.assert_allclose(found["margin_area"], lgamma(10))  # uniform: (J - 1)!
    np.testing.assert_allclose(found["margin_religion"], lgamma(9))


def test_log_prior_of_the_pool_has_its_members_names(pooled) -> None:
    found, posterior = pooled["log_prior"].to_dataset(), pooled["posterior"].to_dataset()
    assert {"dirichlet_kappa", "restaurant_theta", "restaurant_discount"} <= set(found.data_vars)
    np.testing.assert_allclose(
        found["restaurant_discount"], np.log(2 * (1 - posterior["restaurant_discount"]))
    )
    assert found["restaurant_theta"].sizes == {"chain": 4, "draw": 500}


def test_without_parameters_there_is_no_log_prior(fit_loglinear, religion_sample) -> None:
    symmetric = tc.ChineseRestaurant(discount=-0.5).fit(
        religion_sample, draws=10, random_seed=1, **SIZE
    )
    assert "log_prior" not in fit_loglinear.children
    assert "log_prior" not in symmetric.children


@pytest.mark.parametrize("name", ["fit_dirichlet", "fit_as_chain", "fit_pool"])
def test_arviz_runs_on_a_fit_as_it_is(name, request) -> None:
    table = az.psense_summary(request.getfixturevalue(name))
    assert np.isfinite(table[["prior", "likelihood"]].to_numpy()).all()


def test_log_prior_is_saved(pooled, tmp_path) -> None:
    tc.save_fit(pooled, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_identical(read["log_prior"].to_dataset(), pooled["log_prior"].to_dataset())
    pd.testing.assert_frame_equal(tc.prior_sensitivity(read), tc.prior_sensitivity(pooled))


# The joint likelihood
# --------------------------------------------------------------------------------------


def test_joint_likelihood_of_the_dirichlet_model_is_that_of_the_individuals_one_after_another() -> (
    None
):
    sample = xr.DataArray([[3, 0], [1, 2]], dims=("a", "b"))
    problem = make_problem(sample, 50)
    kappa, a, b = (
        np.array([0.7, 30.0]),
        np.array([[0.2, 0.8], [0.6, 0.4]]),
        np.array([[0.5, 0.5], [0.9, 0.1]]),
    )
    posterior = xr.Dataset(
        {
            "kappa": (("chain", "draw"), kappa[None]),
            "margin_a": (("chain", "draw", "a"), a[None]),
            "margin_b": (("chain", "draw", "b"), b[None]),
        }
    )
    found = tc.DirichletLogLinear().log_joint(problem, Parameters(posterior))
    expected = []
    for k, pi in zip(kappa, a[:, :, None] * b[:, None, :], strict=True):
        seen, terms = np.zeros((2, 2)), 0.0
        for cell in [(0, 0)] * 3 + [(1, 0)] + [(1, 1)] * 2:
            terms += log((seen[cell] + k * pi[cell]) / (seen.sum() + k))
            seen[cell] += 1
        expected.append(terms)
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_joint_likelihood_of_the_restaurant_is_that_of_the_individuals_one_after_another(
    religion_sample,
) -> None:
    problem = make_problem(religion_sample, 2449)
    theta, sigma = np.array([[2.0, 40.0]]), np.array([[0.0, 0.4]])
    posterior = xr.Dataset(
        {"theta": (("chain", "draw"), theta), "discount": (("chain", "draw"), sigma)}
    )
    found = tc.ChineseRestaurant().log_joint(problem, Parameters(posterior))
    expected = []
    for t, s in zip(theta[0], sigma[0], strict=True):
        terms, before, tables = 0.0, 0, 0
        for count in problem.counts[problem.counts > 0]:
            for seated in range(count):
                terms += log(((t + tables * s) if seated == 0 else seated - s) / (before + t))
                tables += seated == 0
                before += 1
        expected.append(terms)
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


# Sensitivity
# --------------------------------------------------------------------------------------


def test_sensitivity_against_exact_distributions(religion_sample) -> None:
    """The Ewens urn has one parameter: its posterior, also under powers of prior and
    likelihood, is exact on a grid.

    4,000 draws: the sensitivities are within a tenth.
    """
    fit = tc.ChineseRestaurant(discount=0.0).fit(religion_sample, draws=1000, random_seed=2, **SIZE)
    drawn = np.log(fit["posterior"]["theta"].values)
    x = np.linspace(drawn.min(), drawn.max(), 20_001)  # the distance is over the draws' range
    seen = int((religion_sample > 0).sum())
    log_likelihood = seen * x + gammaln(np.exp(x)) - gammaln(np.exp(x) + 245)
    log_prior = -0.5 * ((x - log(90)) / 1.5) ** 2

    def distribution(prior_power: float, likelihood_power: float) -> np.ndarray:
        density = np.exp(
            prior_power * log_prior
            + likelihood_power * log_likelihood
            - (log_prior + log_likelihood).max()
        )
        return np.cumsum(density) / density.sum()

    def one_way(p: np.ndarray, q: np.ndarray) -> float:
        return (p * np.log2(2 * p / (p + q))).sum() + (q.sum() - p.sum()) / (2 * log(2))

    def distance(p: np.ndarray, q: np.ndarray) -> float:
        return sqrt(max(one_way(p, q) + one_way(q, p), 0) / (p.sum() + q.sum()))

    def apart(p: np.ndarray, q: np.ndarray) -> float:
        (p, q), (left, right) = (np.clip(pair, 1e-300, 1) for pair in ((p, q), (1 - p, 1 - q)))
        return max(distance(p, q), distance(left, right))

    base = distribution(1, 1)
    table = tc.prior_sensitivity(fit)
    for column, powers in (("prior", lambda a: (a, 1)), ("likelihood", lambda a: (1, a))):
        exact = np.mean(
            [apart(base, distribution(*powers(a))) / abs(np.log2(a)) for a in (0.99, 1.01)]
        )
        assert table.loc["theta", column] == pytest.approx(exact, rel=0.1)
    assert table.loc["theta", "driver"] == "theta"


def test_the_same_as_arviz_on_a_tree_made_by_hand(pooled, religion_sample) -> None:
    """Each member's own draws, its parameters on the scale of their priors, and its
    joint likelihood."""
    table = tc.prior_sensitivity(pooled)
    assert table.index.names == ["member", "quantity"]
    posterior, risk = pooled["posterior"].to_dataset(), pooled["risk"].to_dataset()
    own = posterior["member"].values == 1
    theta, sigma = (posterior[f"restaurant_{name}"].values[own] for name in ("theta", "discount"))
    seen = religion_sample.values[religion_sample.values > 0]
    k = len(seen)
    joint = np.array(
        [
            np.log(t + s * np.arange(1, k)).sum()
            + (gammaln(seen - s) - gammaln(1 - s)).sum()
            - (gammaln(t + seen.sum()) - gammaln(t + 1))
            for t, s in zip(theta, sigma, strict=True)
        ]
    )
    log_prior = {
        "theta": stats.norm(log(90), max(1.5, log(90) / 3)).logpdf(np.log(theta)),
        "discount": np.log(2 * (1 - sigma)),
    }
    quantities = {"theta": np.log(theta), "discount": sigma} | {
        name: risk[name].values[own].astype(float) for name in ("R2", "R1", "tau1")
    }
    tree = az.from_dict(
        {
            "posterior": {name: values[None] for name, values in quantities.items()},
            "log_prior": {name: values[None] for name, values in log_prior.items()},
            "log_likelihood": {"count": joint[None]},
        }
    )
    expected = az.psense_summary(tree, round_to=6)
    found = table.loc["restaurant"]
    np.testing.assert_allclose(found["prior"], expected["prior"], atol=2e-5)
    np.testing.assert_allclose(found["likelihood"], expected["likelihood"], atol=2e-5)
    assert found["diagnosis"].tolist() == expected["diagnosis"].tolist()
    alone = {name: az.psense(tree, group_var_names=[name]) for name in log_prior}
    for name in quantities:
        assert found.loc[name, "driver"] == max(alone, key=lambda prior: float(alone[prior][name]))


@pytest.fixture(scope="module")
def base(small) -> xr.DataTree:
    return tc.assess(tc.DirichletLogLinear().fit(small, draws=5000, random_seed=1, **SIZE))


@pytest.mark.parametrize("power", [0.8, 1.25])
def test_power_scaled_means_are_those_under_the_changed_prior(base, small, power) -> None:
    """LogNormal(mu, sigma) to a power is LogNormal(mu, sigma / sqrt(power)): fit with
    that, and compare.

    20,000 draws a fit; each difference within five standard errors, each shift of the
    same sign and beyond three."""
    prior = tc.DirichletLogLinear().priors_for(make_problem(small, 2449))["kappa"].parameters
    changed = tc.Prior("LogNormal", mu=prior["mu"], sigma=prior["sigma"] / sqrt(power))
    model = tc.DirichletLogLinear(priors={"kappa": changed})
    refit = tc.assess(model.fit(small, draws=5000, random_seed=2, **SIZE))
    weights = np.exp((power - 1) * base["log_prior"]["kappa"].values)
    weights /= weights.sum()

    def log_kappa(fit):
        return np.log(fit["posterior"]["kappa"].values)

    def r2(fit):
        return fit["risk"]["R2"].values

    for quantity in (log_kappa, r2):
        values, again = quantity(base), quantity(refit)
        shift, scaled = again.mean() - values.mean(), (weights * values).sum() - values.mean()
        error = values.std() / sqrt(
            12_500
        )  # draws chosen from weighted proposals count for less than they are
        assert abs(shift - scaled) < 5 * error
        assert np.sign(shift) == np.sign(scaled)
        assert min(abs(shift), abs(scaled)) > 3 * error
    # The likelihood is flat far out, so that a wider prior lets kappa grow.
    assert (log_kappa(refit).mean() > log_kappa(base).mean()) == (power < 1)


def test_the_prior_matters_less_in_a_larger_sample(small, religion_sample) -> None:
    by_size = {
        sample.sum().item(): tc.prior_sensitivity(
            tc.ChineseRestaurant().fit(sample, random_seed=1, **SIZE)
        )["prior"]
        for sample in (small, religion_sample)
    }
    assert by_size[24]["R2"] > 0.05 > by_size[245]["R2"]


def test_a_uniform_prior_moves_nothing(religion_sample) -> None:
    flat = {"kappa": tc.Prior("Uniform", lower=1.0, upper=1e4)}
    fit = tc.DirichletLogLinear(priors=flat).fit(religion_sample, draws=200, random_seed=1, **SIZE)
    table = tc.prior_sensitivity(fit)
    assert (table["prior"] == 0).all()
    assert (table["driver"] == "").all()
    assert table.loc["R2", "likelihood"] > 0.05


def test_what_is_the_same_in_all_draws_is_not_sensitive(religion) -> None:
    """Everybody is in the sample: nothing is left to draw."""
    fit = tc.ChineseRestaurant().fit(
        religion, population_size=2449, draws=100, random_seed=1, progressbar=False
    )
    assert (tc.prior_sensitivity(fit).loc[["R2", "R1", "tau1"], ["prior", "likelihood"]] == 0).all(
        axis=None
    )


def test_one_individual_tells_nothing_of_the_urn() -> None:
    sample = xr.DataArray([[0, 0], [1, 0]], dims=("a", "b"))
    fit = tc.ChineseRestaurant().fit(
        sample, population_size=30, draws=200, random_seed=1, progressbar=False
    )
    table = tc.prior_sensitivity(fit)
    assert (table["likelihood"] == 0).all()
    assert table.loc["theta", "diagnosis"] == "potential strong prior / weak likelihood"


def test_members_of_a_stack_are_looked_at_one_by_one(religion_sample, pooled) -> None:
    fits = {
        "my own": tc.DirichletLogLinear().fit(religion_sample, draws=600, random_seed=1, **SIZE),
        "pool": pooled,
    }
    stacked = tc.fits.stack(fits, random_seed=1)
    makers = fit_makers(stacked, chains=4, draws=500)
    assert list(makers) == ["my own", "pool dirichlet", "pool restaurant"]
    assert (sum(maker.made.astype(int) for maker in makers.values()) == 1).all()
    xr.testing.assert_equal(
        makers["pool dirichlet"].posterior["kappa"],
        pooled["posterior"].to_dataset()["dirichlet_kappa"].rename("kappa"),
    )
    members = tc.prior_sensitivity(stacked).index.get_level_values("member")
    assert set(members) == {name for name, maker in makers.items() if maker.made.sum() >= 100}


# Refusals and words
# --------------------------------------------------------------------------------------


def test_refusals(fit_loglinear, pooled, religion_sample) -> None:
    with pytest.raises(ParameterError, match=r"no parameter has a prior in LogLinear\(\)"):
        tc.prior_sensitivity(fit_loglinear)
    with pytest.raises(ParameterError, match="threshold must be a number from 0 to 1, got -1"):
        tc.prior_sensitivity(pooled, threshold=-1)
    few = tc.DirichletLogLinear().fit(religion_sample, draws=12, chains=1, random_seed=1, **SIZE)
    with pytest.raises(ParameterError, match="12 draws are too few to weigh: at least 100"):
        tc.prior_sensitivity(few)
    unknown = pooled.copy()
    del unknown.attrs["estimator"]
    with pytest.raises(FileFormatError, match="does not record an estimator"):
        tc.prior_sensitivity(unknown)
    partial = pooled.copy()
    partial["posterior"] = xr.DataTree(
        pooled["posterior"].to_dataset().drop_vars("dirichlet_kappa")
    )
    with pytest.raises(
        TableError, match=r"no draws of the parameter 'kappa' of DirichletLogLinear\(\)"
    ):
        tc.prior_sensitivity(partial)


def test_the_threshold_is_that_of_the_diagnosis(pooled) -> None:
    assert (tc.prior_sensitivity(pooled, threshold=1.0)["diagnosis"] == "✓").all()
    assert "✓" not in set(tc.prior_sensitivity(pooled, threshold=0.0)["diagnosis"])


def _table(rows: dict[str, tuple[float, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "prior": [prior for prior, _ in rows.values()],
            "driver": [driver for _, driver in rows.values()],
        },
        index=pd.Index(list(rows), name="quantity"),
    )


def test_lines_name_what_moves_r2_and_which_parameters_move() -> None:
    moving = _table(
        {
            "kappa": (0.21, "kappa"),
            "R2": (0.12, "kappa"),
            "R1": (0.2, "kappa"),
            "tau1": (0.9, "kappa"),
        }
    )
    still = _table(
        {"theta": (0.04, "theta"), "R2": (0.01, "theta"), "R1": (0.0, ""), "tau1": (0.0, "")}
    )
    assert sensitivity_lines(moving) == [
        "R2 moves with the priors (sensitivity 0.12, above 0.05), most with that of kappa",
        "parameters that move with the priors: kappa 0.21",
    ]
    assert sensitivity_lines(still) == [
        "R2 hardly moves with the priors (sensitivity at most 0.01)"
    ]
    both = pd.concat({"dirichlet": moving, "restaurant": still}, names=["member"])
    assert sensitivity_lines(both) == [
        "dirichlet R2 moves with the priors (sensitivity 0.12, above 0.05), most with that of"
        " dirichlet kappa",
        "parameters that move with the priors: dirichlet kappa 0.21",
    ]


def test_summary_says_it(pooled, fit_loglinear, small) -> None:
    result = tc.summary(pooled)
    assert "Prior:       R2 hardly moves with the priors" in result.text
    pd.testing.assert_frame_equal(result.sensitivity, tc.prior_sensitivity(pooled))
    moved = tc.summary(tc.ChineseRestaurant().fit(small, random_seed=1, **SIZE))
    assert "Prior:       R2 moves with the priors (sensitivity 0." in moved.text
    none = tc.summary(fit_loglinear)
    assert none.sensitivity is None
    assert "Prior:       not scaled: no parameter has a prior in LogLinear()" in none.text
