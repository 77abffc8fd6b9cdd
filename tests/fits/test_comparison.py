"""Leave-one-out terms against the definition, ArviZ's own path, mixtures of draws, and
what is refused."""

from math import exp, inf, lgamma, log

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, lognorm

import taciturn as tc
from exact import dirichlet_multinomial_pmf, tables, urn_from_nothing
from taciturn.errors import (
    ComparisonWarning,
    EstimationError,
    FileFormatError,
    ParameterError,
    TableError,
)
from taciturn.estimators import Parameters, pointwise
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import SamplerSettings
from taciturn.fits.comparison import comparison_text

QUIET = {"random_seed": 1, "progressbar": False}


def table(counts, dims=("a", "b")) -> xr.DataArray:
    counts = np.asarray(counts)
    coords = {
        dim: [f"{dim}{i}" for i in range(size)]
        for dim, size in zip(dims, counts.shape, strict=True)
    }
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


def by_cell(values: xr.DataArray) -> np.ndarray:
    """One value for each occupied cell, from one for each individual."""
    counts = values["individuals"].values
    at = [0]
    while (following := at[-1] + counts[at[-1]]) < len(counts):
        at.append(int(following))
    return values.values[at]


def foreign(sample: xr.DataArray, terms: np.ndarray, **coords) -> xr.DataTree:
    """A fit as somebody else would make it, terms (chain, draw, individual)."""
    values = xr.DataArray(
        terms,
        dims=("chain", "draw", "person"),
        coords={n: ("person", x) for n, x in coords.items()},
    )
    groups = {"observed_data": {"count": sample}, "log_likelihood": {"y": values}}
    return xr.DataTree.from_dict({name: xr.Dataset(arrays) for name, arrays in groups.items()})


def individuals(sample: xr.DataArray) -> np.ndarray:
    """Position of each individual's cell, in the order of the cells."""
    return np.repeat(np.arange(sample.size), sample.values.ravel())


# ---- the terms by definition


def test_dirichlet_terms_by_integration_over_a_grid() -> None:
    """p(x_i | x_-i) = E[(f_i - 1 + κπ_i)/(n - 1 + κ) | x_-i]; the grid is exact to
    1e-6, the draws to about 0.01."""
    sample = table([[4, 1], [2, 2]])
    prior = {"kappa": tc.Prior("LogNormal", mu=2, sigma=1)}
    fit = tc.DirichletLogLinear(priors=prior).fit(sample, population_size=50, draws=5000, **QUIET)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    share, mass = (nodes + 1) / 2, weights / 2
    log_kappa = np.linspace(2 - 6, 2 + 6, 121)
    a, b, kappa = np.meshgrid(share, share, np.exp(log_kappa), indexing="ij")
    prior_mass = mass[:, None, None] * mass[:, None] * lognorm(1, scale=exp(2)).pdf(kappa) * kappa
    pi = np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])
    counts = sample.values.ravel()
    expected = []
    for cell in range(4):
        others = counts - (np.arange(4) == cell)
        log_joint = gammaln(kappa) - gammaln(kappa + 8)
        for f, p in zip(others, pi, strict=True):
            log_joint += gammaln(kappa * p + f) - gammaln(kappa * p)
        posterior = prior_mass * np.exp(log_joint)
        chance = (others[cell] + kappa * pi[cell]) / (8 + kappa)
        expected.append(log((posterior * chance).sum() / posterior.sum()))
    result = tc.loo(fit)
    np.testing.assert_allclose(by_cell(result.elpd_i), expected, atol=0.03)
    assert result.elpd == pytest.approx(
        4 * expected[0] + expected[1] + 2 * expected[2] + 2 * expected[3], abs=0.1
    )


def test_restaurant_terms_by_integration_over_a_grid() -> None:
    """Pitman's formula for the partition, and the chance of the cell among those empty
    to the others."""
    sample = table([[4, 1, 0], [2, 0, 0]])
    model = tc.ChineseRestaurant(priors={"theta": tc.Prior("LogNormal", mu=1, sigma=1)})
    fit = model.fit(sample, population_size=50, draws=5000, **QUIET)
    log_theta, sigma = np.meshgrid(
        np.linspace(1 - 6, 1 + 6, 400), (np.arange(400) + 0.5) / 400, indexing="ij"
    )
    theta = np.exp(log_theta)
    prior_mass = lognorm(1, scale=exp(1)).pdf(theta) * theta * beta(1, 2).pdf(sigma)
    expected = []
    for others, chance in (
        ([3, 1, 2], (3 - sigma) / (6 + theta)),
        ([4, 2], (theta + 2 * sigma) / (6 + theta) / 4),
        ([4, 1, 1], (1 - sigma) / (6 + theta)),
    ):
        joint = np.ones_like(theta)
        for i in range(1, len(others)):
            joint *= theta + i * sigma
        for f in others:
            for j in range(1, f):
                joint *= j - sigma
        for j in range(1, 6):
            joint /= theta + j
        expected.append(log((prior_mass * joint * chance).sum() / (prior_mass * joint).sum()))
    np.testing.assert_allclose(by_cell(tc.loo(fit).elpd_i), expected, atol=0.03)


@pytest.mark.parametrize("name", ["dirichlet", "restaurant"])
def test_terms_by_fitting_again_without_an_individual_of_each_cell(
    name, fast_fits, religion_sample
) -> None:
    """2,000 draws without the individual know a term to about 0.01, the sum to about
    0.3; in sample it is 11 and 0.4 higher."""
    fit = fast_fits[name]
    estimator = tc.estimators.estimator_from_spec(fit.attrs["estimator"])
    problem = make_problem(religion_sample, 2449)
    settings = SamplerSettings(1000, 1, 2, 0, False)
    exact = []
    for number, cell in enumerate(problem.occupied):
        others = estimator.learn(problem.without(cell), settings, 7 + number)
        term = estimator.log_conditionals(problem, others)[..., number]
        exact.append(logsumexp(term) - log(term.size))
    result = tc.loo(fit)
    np.testing.assert_allclose(by_cell(result.elpd_i), exact, atol=0.04)
    assert result.elpd == pytest.approx(problem.counts[problem.occupied] @ np.array(exact), abs=0.8)
    assert result.p > 0


def test_grouped_terms_give_what_arviz_gives_with_a_column_an_individual(fit_as_chain, fast_fits):
    some = {name: fit.isel(draw=slice(0, 300)) for name, fit in fast_fits.items()}
    for fit in (fit_as_chain, *some.values()):
        ours, theirs = tc.loo(fit), az.loo(fit, pointwise=True)
        for name in ("elpd", "se", "p", "good_k"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(ours.elpd_i, theirs.elpd_i, atol=1e-10)
        np.testing.assert_allclose(ours.pareto_k, theirs.pareto_k, atol=1e-10)
        assert (ours.n_samples, ours.n_data_points, ours.kind) == (theirs.n_samples, 245, "loo")
        assert str(ours) == str(theirs)
    reference = az.compare(some, round_to="none")
    found = tc.compare(some)[list(reference.columns)]
    pd.testing.assert_frame_equal(found, reference, rtol=1e-9, atol=1e-9)


def test_a_pool_predicts_by_its_mixture(religion_sample) -> None:
    shares = {"dirichlet": 0.8, "restaurant": 0.2}
    fit = tc.LinearPool(shares=shares).fit(
        religion_sample, population_size=2449, draws=250, **QUIET
    )
    terms = pointwise.by_individual(fit["cell_log_likelihood"].to_dataset())
    each = fit.assign(log_likelihood=xr.DataTree(terms))
    members = {name: az.loo(each, pointwise=True, var_name=name) for name in shares}
    mixed = np.log(sum(shares[name] * np.exp(own.elpd_i.values) for name, own in members.items()))
    result = tc.loo(fit)
    np.testing.assert_allclose(result.elpd_i, mixed, atol=1e-10)
    worst = np.maximum(*(own.pareto_k.values for own in members.values()))
    np.testing.assert_allclose(result.pareto_k, worst, atol=1e-10)


def test_labels_say_whose_terms_they_are(fast_fits, religion_sample) -> None:
    elpd_i = tc.loo(fast_fits["dirichlet"]).elpd_i
    people = {dim: elpd_i[dim].values for dim in religion_sample.dims}
    found = np.zeros(religion_sample.shape, dtype=int)
    for area, religion in zip(people["area"], people["religion"], strict=True):
        found[
            list(religion_sample["area"].values).index(area),
            list(religion_sample["religion"]).index(religion),
        ] += 1
    np.testing.assert_array_equal(found, religion_sample)


# ---- plug-in estimators


def test_log_linear_terms_are_those_of_an_estimate_without_the_individual() -> None:
    """n_i. n_.j / n² of the others; who is alone in a row gets probability 0."""
    sample = table([[3, 1, 0], [2, 4, 0], [0, 0, 1]])
    fit = tc.LogLinear().fit(sample, population_size=60, draws=2, **QUIET)
    expected = [4 - 1, 4 - 1, 6 - 1, 6 - 1, 0]  # row of the others
    columns = [5 - 1, 5 - 1, 5 - 1, 5 - 1, 0]
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(expected) * np.array(columns) / 10**2)
    terms = fit["cell_log_likelihood"].to_dataset()
    np.testing.assert_allclose(terms["leave_one_out"], logs, atol=1e-9)
    in_sample = [4 * 5, 4 * 5, 6 * 5, 6 * 5, 1]
    np.testing.assert_allclose(terms["count"], np.log(np.array(in_sample) / 11**2), atol=1e-9)
    result = tc.loo(fit)
    assert (result.elpd, result.pareto_k, result.n_samples) == (-inf, None, 0)
    assert np.isnan([result.se, result.p]).all()
    assert "-inf" in str(result)


def test_log_linear_effective_parameters(religion_sample) -> None:
    """Main effects of 10 x 9 categories have 17 free parameters; p is near that of the
    15 margins filled here."""
    result = tc.loo(tc.LogLinear().fit(religion_sample, population_size=2449, draws=2, **QUIET))
    assert 10 < result.p < 20


@pytest.mark.parametrize(
    "counts", [(3, 0, 1, 0), (1, 1, 0, 0), (1, 0, 0, 0), (2, 1, 1, 1), (2, 1, 2, 3)]
)
def test_polya_urn_terms_are_ratios_of_the_probabilities_of_tables(counts) -> None:
    theta = 1.9
    fit = tc.PolyaUrn(theta=theta).fit(
        table(np.reshape(counts, (2, 2))), population_size=20, draws=2, **QUIET
    )
    terms = fit["cell_log_likelihood"].to_dataset()
    expected = []
    for cell in np.flatnonzero(counts):
        others = tuple(count - (i == cell) for i, count in enumerate(counts))
        expected.append(next_individual(others, theta)[int(cell)])
    np.testing.assert_allclose(np.exp(terms["leave_one_out"]), expected, rtol=1e-9)
    xr.testing.assert_equal(terms["leave_one_out"], terms["count"].rename("leave_one_out"))


def next_individual(others: tuple[int, ...], theta: float) -> dict[int, float]:
    """The urn's chances for the individual after all others."""
    if not any(others):
        return {cell: 1 / len(others) for cell in range(len(others))}
    seen = sum(count > 0 for count in others)
    black = theta if seen < len(others) else 0.0
    total = sum(others) + black
    return {
        i: count / total if count else black / total / (len(others) - seen)
        for i, count in enumerate(others)
    }


def test_polya_urn_estimates_theta_again(religion_sample) -> None:
    fit = tc.PolyaUrn().fit(religion_sample, population_size=2449, draws=2, **QUIET)
    cell = int(np.flatnonzero(religion_sample.values.ravel() == 1)[0])
    others = religion_sample.copy(data=religion_sample.values.copy())
    others.values.flat[cell] = 0
    theta = float(
        tc.PolyaUrn().fit(others, population_size=2449, draws=2, **QUIET)["constant_data"]["theta"]
    )
    assert theta != pytest.approx(float(fit["constant_data"]["theta"]), rel=1e-3)
    seen = int((others > 0).sum())
    number = int((religion_sample.values.ravel()[:cell] > 0).sum())
    term = float(fit["cell_log_likelihood"]["leave_one_out"][number])
    assert exp(term) == pytest.approx(theta / (244 + theta) / (90 - seen))


def test_who_has_no_estimate_without_somebody_cannot_be_compared() -> None:
    fit = tc.LogLinear().fit(table([[1, 0], [0, 0]]), population_size=20, draws=2, **QUIET)
    with pytest.raises(
        EstimationError, match="has no estimate without an individual of a=a0, b=b0"
    ):
        tc.loo(fit)


@pytest.mark.parametrize("estimator", ["log-linear", "dirichlet"])
def test_known_margins_are_known_to_the_terms_too(estimator) -> None:
    """Chance of a cell for one of those whom the others leave, summed over all
    populations with these rows."""
    sample, rows = table([[2, 1], [1, 0]]), [5, 4]
    problem = make_problem(
        sample, 9, known_margins=xr.DataArray(rows, dims="a", coords={"a": ["a0", "a1"]})
    )
    share = np.array([0.2, 0.3, 0.1, 0.4])
    if estimator == "log-linear":
        model = tc.LogLinear()
        learned = Parameters(constants={"probability": sample.copy(data=share.reshape(2, 2))})
    else:
        model, kappa = tc.DirichletLogLinear("~ a + b"), 3.0
        share = np.outer([0.4, 0.6], [0.7, 0.3]).ravel()
        margins = {
            "margin_a": (("chain", "draw", "a"), [[[0.4, 0.6]]]),
            "margin_b": (("chain", "draw", "b"), [[[0.7, 0.3]]]),
        }
        learned = Parameters(xr.Dataset({"kappa": (("chain", "draw"), [[kappa]]), **margins}))

    def chance(rest: tuple[int, ...], others: np.ndarray) -> float:
        if estimator == "dirichlet":
            return dirichlet_multinomial_pmf(rest, kappa * share + others)
        log_p = lgamma(sum(rest) + 1) + sum(
            n * log(p) - lgamma(n + 1) for n, p in zip(rest, share, strict=True)
        )
        return exp(log_p)

    found = np.exp(model.log_conditionals(problem, learned)).ravel()
    for number, cell in enumerate(problem.occupied):
        others = sample.values.ravel() - (np.arange(4) == cell)
        left = rows[0] - others[:2].sum(), rows[1] - others[2:].sum()
        possible = {(*x, *y): 0.0 for x in tables(left[0], 2) for y in tables(left[1], 2)}
        possible = {rest: chance(rest, others) for rest in possible}
        expected = sum(p * rest[cell] / sum(left) for rest, p in possible.items()) / sum(
            possible.values()
        )
        assert found[number] == pytest.approx(expected, rel=1e-9)


# ---- comparison


def best_weights(results) -> np.ndarray:
    """Stacking weights by expectation-maximisation, slow and without a doubt: every
    step raises the log score."""
    chances = np.exp(np.stack([result.elpd_i.values for result in results], axis=1))
    weights = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(5_000):
        joint = chances * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


def test_stacking_weights(fast_fits, fit_loglinear, fit_urn) -> None:
    fits = {**fast_fits, "log-linear": fit_loglinear, "urn": fit_urn}
    found = tc.compare(fits)
    assert found["weight"].sum() == pytest.approx(1, abs=1e-12)
    assert (found["weight"] >= 0).all()
    expected = best_weights([tc.loo(fit) for fit in fits.values()])
    np.testing.assert_allclose(found.loc[list(fits), "weight"], expected, atol=0.01)
    assert list(found["rank"]) == [0, 1, 2, 3]
    assert (np.diff(found["elpd"]) <= 0).all()
    for method in ("pseudo-bma", "bb-pseudo-bma"):
        assert tc.compare(fits, method=method)["weight"].sum() == pytest.approx(1, abs=1e-12)


def test_a_fit_beside_itself(fast_fits) -> None:
    fit = fast_fits["restaurant"]
    found = tc.compare({"one": fit, "same": fit})
    assert found["weight"].to_list() == pytest.approx([0.5, 0.5], abs=1e-9)
    assert (found["elpd_diff"] == 0).all()
    stacked = tc.fits.stack({"one": fit, "same": fit}, random_seed=1)
    xr.testing.assert_equal(
        stacked["posterior_predictive"].to_dataset(),
        fit["posterior_predictive"].to_dataset()[["population", "count"]],
    )


def impossible() -> dict[str, xr.DataTree]:
    """Somebody is alone in a row; the plug-in model is better for all others."""
    sample = table([[10, 21, 0, 0], [19, 40, 0, 0], [3, 5, 0, 0], [0, 0, 1, 0]])
    models = {
        "log-linear": tc.LogLinear(),
        "urn": tc.ChineseRestaurant(),
        "symmetric": tc.ChineseRestaurant(-0.05),
    }
    return {
        name: model.fit(sample, population_size=800, draws=250, **QUIET)
        for name, model in models.items()
    }


def test_of_fits_that_all_miss_somebody_none_is_best() -> None:
    sample = table([[5, 4, 1], [3, 6, 0], [1, 0, 0]])
    fits = {
        formula: tc.LogLinear(formula).fit(sample, population_size=200, draws=50, **QUIET)
        for formula in (f"~ {name}" for name in sample.dims)
    }
    found = tc.compare(fits)
    assert (found["elpd"] == -np.inf).all()
    assert comparison_text(found).endswith("probability 0, and none is best.")


def test_probability_zero_is_no_reason_not_to_mix() -> None:
    fits = impossible()
    found = tc.compare(fits)
    row = found.loc["log-linear"]
    assert found.index[-1] == "log-linear"
    assert (row["elpd"], row["elpd_diff"], row["p_worse"]) == (-inf, -inf, 1.0)
    assert np.isnan([row["se"], row["dse"], row["p"]]).all()
    assert row["diag_elpd"] == "1 with probability 0"
    expected = best_weights([tc.loo(fit) for fit in fits.values()])
    assert expected[0] > 0.5
    np.testing.assert_allclose(found.loc[list(fits), "weight"], expected, atol=0.01)
    assert "'log-linear' gives somebody in the sample probability 0" in comparison_text(found)
    for method in ("pseudo-bma", "bb-pseudo-bma"):
        weights = tc.compare(fits, method=method)["weight"]
        assert weights["log-linear"] == 0
        assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["stacking", "pseudo-bma", "bb-pseudo-bma"])
def test_a_fit_that_misses_nobody_ranks_first_however_far_behind(method) -> None:
    counts = np.rint(np.outer([400, 300, 200, 100, 1], [0.6, 0.3, 0.05, 0.03, 0.02])).astype(int)
    counts[4] = 0
    counts[4, 0] = 1
    models = {"log-linear": tc.LogLinear(), "urn": tc.PolyaUrn(theta=500.0)}
    fits = {
        name: model.fit(table(counts), population_size=10_000, draws=50, **QUIET)
        for name, model in models.items()
    }
    found, own = tc.compare(fits, method=method), {name: tc.loo(fit) for name, fit in fits.items()}
    assert own["log-linear"].elpd == -inf
    assert list(found.index) == ["urn", "log-linear"]
    assert found["rank"].tolist() == [0, 1]
    assert found["elpd_diff"].tolist() == [0.0, -inf]
    assert found.loc["urn", "elpd"] == own["urn"].elpd
    assert found.loc["urn", "se"] == own["urn"].se
    assert np.isnan(found.loc["urn", "p_worse"])
    said = comparison_text(found)
    assert said.startswith("In words: 'urn' predicts the cell of a person left out")
    assert "'log-linear' gives somebody in the sample probability 0." in said


def test_no_weights_where_no_fit_can_predict_somebody() -> None:
    fit = impossible()["log-linear"]
    with pytest.raises(
        EstimationError, match="all fits give an individual of a=a3, b=b2 probability 0"
    ):
        tc.compare({"one": fit, "two": fit})
    sample = table([[20, 0], [0, 1]])
    alone = {"rows": tc.LogLinear("~ a"), "columns": tc.LogLinear("~ b")}
    fits = {
        name: model.fit(sample, population_size=60, draws=2, **QUIET)
        for name, model in alone.items()
    }
    with pytest.raises(EstimationError, match="all fits give an individual of a=a1, b=b1"):
        tc.compare(fits)


def test_high_k_hat_is_warned_of_and_counted() -> None:
    """Importance ratios with a tail of exponent 1 have k-hat 1; those of the other cell
    are bounded."""
    sample = table([[3, 1]])
    rng = np.random.default_rng(1)
    heavy = -np.log(1 + rng.pareto(1.0, (4, 1000)))
    light = -1 - 0.1 * rng.random((4, 1000))
    fit = foreign(sample, np.stack([light, light, light, heavy], axis=-1))
    other = foreign(sample, np.stack([light] * 4, axis=-1))
    with pytest.warns(
        ComparisonWarning, match=r"k-hat of the fit is above 0.70 for 1 of 4 individuals"
    ):
        result = tc.loo(fit)
    assert result.warning
    with pytest.warns(ComparisonWarning, match="k-hat of the fit 'heavy' is above"):
        found = tc.compare({"heavy": fit, "light": other})
    assert found["high_k"].to_dict() == {"heavy": 0.25, "light": 0.0}
    assert "25.0% of individuals for 'heavy'" in comparison_text(found)


def test_terms_that_do_not_vary_need_no_smoothing(religion_sample) -> None:
    fit = tc.ChineseRestaurant(discount=-0.5).fit(
        religion_sample, population_size=2449, draws=100, **QUIET
    )
    result = tc.loo(fit)
    counts = religion_sample.values[religion_sample.values > 0]
    np.testing.assert_allclose(
        by_cell(result.elpd_i), np.log((counts - 0.5) / (244 + 45)), rtol=1e-12
    )
    assert result.p == pytest.approx(0, abs=1e-9)


def test_few_draws(religion_sample) -> None:
    fit = tc.ChineseRestaurant().fit(
        religion_sample, population_size=2449, draws=1, chains=1, **QUIET
    )
    with pytest.warns(ComparisonWarning):
        assert np.isfinite(tc.loo(fit).elpd)


def test_bounds_of_what_a_fit_keeps(monkeypatch, religion_sample) -> None:
    model, arguments = tc.ChineseRestaurant(), {"population_size": 2449, "draws": 200, **QUIET}
    whole = model.fit(religion_sample, **arguments)
    monkeypatch.setattr(pointwise, "_BY_INDIVIDUAL_LIMIT", 800 * 245 - 1)
    fit = model.fit(religion_sample, **arguments)
    assert "log_likelihood" not in fit.children
    np.testing.assert_array_equal(tc.loo(fit).elpd_i, tc.loo(whole).elpd_i)
    monkeypatch.setattr(pointwise, "_BY_CELL_LIMIT", 800 * 36 - 1)
    none = model.fit(religion_sample, **arguments)
    assert "cell_log_likelihood" not in none.children
    monkeypatch.setattr(pointwise, "_BY_CELL_LIMIT", 90 * 36 - 1)
    assert "cell_log_likelihood" not in tc.LogLinear().fit(religion_sample, **arguments).children
    with pytest.raises(TableError, match="the fit 'none' has no log likelihood"):
        tc.compare({"whole": whole, "none": none})


# ---- fits of others


def test_columns_in_the_order_of_the_cells(fast_fits, religion_sample) -> None:
    own = fast_fits["dirichlet"]
    fit = foreign(religion_sample, own["log_likelihood"]["count"].values)
    assert tc.loo(fit).elpd == pytest.approx(
        tc.loo(own).elpd, abs=0.1
    )  # without the posterior, other tails
    assert tc.compare({"ours": fast_fits["restaurant"], "theirs": fit}).index[0] == "theirs"


def test_columns_in_any_order_with_categories(fast_fits, religion_sample) -> None:
    own = fast_fits["dirichlet"]["log_likelihood"]["count"].values
    order = np.random.default_rng(1).permutation(245)
    cell = individuals(religion_sample)[order]
    labels = {
        dim: religion_sample[dim].values[index]
        for dim, index in zip(
            religion_sample.dims, np.unravel_index(cell, religion_sample.shape), strict=True
        )
    }
    mixed = foreign(religion_sample, own[..., order], **labels)
    np.testing.assert_array_equal(
        tc.loo(mixed).elpd_i, tc.loo(foreign(religion_sample, own)).elpd_i
    )
    with pytest.raises(
        TableError,
        match=r"differs for individuals of the same cell, area=1, religion=1.*along 'person'",
    ):
        tc.loo(foreign(religion_sample, own[..., order]))
    labels["area"] = np.where(labels["area"] == "3", "x", labels["area"])
    with pytest.raises(TableError, match="individual in area=x, which is no category"):
        tc.loo(foreign(religion_sample, own[..., order], **labels))
    labels["area"] = np.where(labels["area"] == "x", "1", labels["area"])
    with pytest.raises(
        TableError, match=r"has \d+ individuals in area=1, religion=1, its sample has 16"
    ):
        tc.loo(foreign(religion_sample, own[..., order], **labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tree: tree["log_likelihood"].assign(z=tree["log_likelihood"]["y"]),
            r"\['y', 'z'\]: only one",
        ),
        (
            lambda tree: tree["log_likelihood"].to_dataset().isel(person=slice(3)),
            "each of the 4 individuals",
        ),
        (
            lambda tree: tree["log_likelihood"].to_dataset().isel(chain=0),
            "must be .chain, draw, individual.",
        ),
        (
            lambda tree: tree["log_likelihood"].to_dataset() * np.nan,
            "is nan at chain 0, draw 0 for an individual of a=a0",
        ),
        (lambda tree: tree["log_likelihood"].to_dataset() - np.inf, "is -inf at chain 0, draw 0"),
        (
            lambda tree: np.exp(tree["log_likelihood"].to_dataset()),
            "is 0.367.* at chain 0, draw 0 for an individual of a=a0, b=b0; the logarithm of a",
        ),
        (
            lambda tree: tree["log_likelihood"].to_dataset().where(lambda x: x.draw != 3, np.nan),
            "is nan at chain 0, draw 3",
        ),
        (lambda tree: tree["log_likelihood"].to_dataset().astype(str), "must hold numbers, got"),
        (lambda tree: tree["log_likelihood"].to_dataset().astype(complex), "must hold numbers"),
        (lambda tree: tree["log_likelihood"].to_dataset().isel(draw=[]), "must hold numbers"),
        (lambda _: xr.Dataset(), "the log likelihood of the fit is empty"),
    ],
)
def test_foreign_terms_that_cannot_be_used(change, message) -> None:
    tree = foreign(table([[3, 1]]), np.full((2, 10, 4), -1.0))
    changed = change(tree)
    tree["log_likelihood"] = changed if isinstance(changed, xr.DataTree) else xr.DataTree(changed)
    with pytest.raises(TableError, match=message):
        tc.loo(tree)


@pytest.mark.filterwarnings("ignore:k-hat")
def test_whole_numbers_are_terms_too() -> None:
    terms = np.random.default_rng(1).integers(-3, 0, (2, 10, 1)).repeat(4, axis=2)
    sample = table([[4, 0]])
    one, same = (tc.loo(foreign(sample, own)) for own in (terms, terms.astype(float)))
    np.testing.assert_array_equal(one.elpd_i, same.elpd_i)


def test_parameters_that_are_no_numbers_of_the_draws(tmp_path) -> None:
    sample = table([[5, 2, 0], [1, 0, 3]])
    population = (sample + 1).rename("population").expand_dims(chain=1, draw=10)
    groups = {
        "posterior_predictive": {"population": population},
        "observed_data": {"count": sample},
        "constant_data": {"population_size": 17},
    }
    for posterior in ({"mu": ("sample", np.zeros(10))}, {"mu": (("chain", "draw"), [["x"] * 10])}):
        tree = {name: xr.Dataset(arrays) for name, arrays in groups.items()}
        fit = xr.DataTree.from_dict(tree | {"posterior": xr.Dataset(posterior)})
        with pytest.raises(TableError, match="'mu' of the group 'posterior'"):
            tc.save_fit(fit, tmp_path / "fit.nc")
        assert not list(tmp_path.iterdir())
        with pytest.raises(TableError, match="'mu' of the group 'posterior' must be numbers over"):
            tc.summary(tc.assess(fit))
    large = fit.drop_nodes("posterior").map_over_datasets(lambda data: data.astype("uint64"))
    again = fit.drop_nodes("posterior")
    np.testing.assert_array_equal(
        *(tc.synthesis.synthetic_tables(one, random_seed=1, size=5) for one in (large, again))
    )


# ---- the stack


@pytest.fixture(scope="module")
def mixed(fast_fits):
    """A mixture that all fits have a share in: they predict alike, and pseudo-BMA does
    not choose among them.

    Without sample uniques, so that every k-hat is far from its limit and the terms do
    not warn."""
    sample = table([[9, 4, 0], [4, 8, 5]])
    models = {
        "dirichlet": tc.DirichletLogLinear(),
        "pool": tc.LinearPool(),
        "log-linear": tc.LogLinear(),
    }
    fits = {
        name: model.fit(sample, population_size=150, draws=500 + 100 * i, chains=2 + i, **QUIET)
        for i, (name, model) in enumerate(models.items())
    }
    return sample, fits, tc.fits.stack(fits, method="pseudo-bma", random_seed=3)


def test_the_stack_keeps_the_population_contract(mixed) -> None:
    sample, fits, stacked = mixed
    population = stacked["posterior_predictive"]["population"]
    assert population.sizes == {"chain": 2, "draw": 500, "a": 2, "b": 3}
    tc.fits.check_population(population, sample, population_size=150)
    weights = tc.compare(fits, method="pseudo-bma")["weight"]
    member = stacked["posterior"]["member"].values
    for number, (name, fit) in enumerate(fits.items()):
        turn = member == number
        np.testing.assert_allclose(turn.sum(axis=1), 500 * weights[name], atol=1)
        assert turn.any()
        for variable in ("population", "count"):
            own = fit["posterior_predictive"][variable].values[:2, :500]
            np.testing.assert_array_equal(
                stacked["posterior_predictive"][variable].values[turn], own[turn]
            )
    assert len({tuple(row) for row in member}) == 2  # chains take turns in other orders
    again = tc.fits.stack(fits, method="pseudo-bma", random_seed=3)
    xr.testing.assert_identical(again["posterior"].to_dataset(), stacked["posterior"].to_dataset())
    assert again.attrs == stacked.attrs


def test_the_stack_is_a_fit_like_any_other(mixed, tmp_path) -> None:
    _, fits, stacked = mixed
    assessed = tc.assess(stacked)
    result = tc.summary(assessed)
    for name in fits:
        assert f" {name}: " in result.text
    assert "stack of 3 fits" in result.text
    assert "LinearPool()" in result.text
    assert "pool: dirichlet: no Markov chain" in result.text
    assert "log-linear: no parameters sampled" in result.text
    assert "leave out that the parameters are estimated" in result.sentence
    assert set(result.diagnostics.members) == set(fits)
    assert result.diagnostics.ess == pytest.approx(1000)  # every member's draws are worth more
    tc.save_fit(assessed, tmp_path / "stack.nc")
    read = tc.read_fit(tmp_path / "stack.nc")
    assert tc.summary(read).text == result.text
    np.testing.assert_array_equal(read["risk"]["R2"], assessed["risk"]["R2"])
    assert tc.plot_risk({"stack": read}).get_xlabel() == "R2"
    with pytest.raises(
        FileFormatError,
        match="a stack of 'dirichlet', 'pool', 'log-linear' and no estimator made it",
    ):
        tc.fits.repeat_fit(read)
    with pytest.raises(
        TableError, match="the fit 'stack' is a stack: its weights were chosen with everybody"
    ):
        tc.compare({"stack": read, **fits})


def test_a_member_that_did_not_converge_is_said_of_the_stack(fast_fits, fit_as_chain) -> None:
    stuck = fit_as_chain.copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e4
    result = tc.summary(
        tc.fits.stack({"stuck": stuck, "dirichlet": fast_fits["dirichlet"]}, random_seed=1)
    )
    assert not result.converged
    assert "stuck: r-hat is" in result.text


def test_stacks_that_cannot_be_read(mixed) -> None:
    stacked = mixed[2].copy()
    stacked.attrs["stack"] = '{"weights": {"other": 1.0}}'
    with pytest.raises(FileFormatError, match=r"has weights for \['other'\]"):
        tc.summary(stacked)
    stacked.attrs["stack"] = "[]"
    with pytest.raises(FileFormatError, match="the weights of the stack cannot be read"):
        tc.summary(stacked)


def test_a_stack_is_of_one_population() -> None:
    sample = table([[5, 2], [3, 0]])

    def fit(**arguments) -> xr.DataTree:
        return tc.LogLinear().fit(
            sample, **{"population_size": 90, "draws": 2, **QUIET, **arguments}
        )

    one = fit()
    rows = xr.DataArray([60, 30], dims="a", coords={"a": ["a0", "a1"]})
    for other, message in (
        (fit(population_size=91), "populations of different size: 90 and 91"),
        (fit(structural_zeros=sample == 0), "different structural zeros, first at a=a1, b=b1"),
        (fit(known_margins=rows), "know different margins"),
    ):
        assert (
            len(tc.compare({"one": one, "other": other})) == 2
        )  # they predict the same individuals
        with pytest.raises(TableError, match=f"the fits 'one' and 'other' .*{message}"):
            tc.fits.stack({"one": one, "other": other})
    stacked = tc.fits.stack({"one": fit(known_margins=rows), "other": fit(known_margins=rows)})
    assert tc.assess(stacked)["constant_data"]["known_margins"].values.tolist() == [60, 30]
    alien = foreign(sample, np.full((2, 10, 10), -1.0))
    with pytest.raises(
        TableError, match="the fit 'alien' cannot be stacked: the fit has no 'population'"
    ):
        tc.fits.stack({"one": one, "alien": alien})


# ---- what is refused


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["one"], "at least two fits, got .'one'."),
        ([], "at least two fits"),
        (["one", 2], "text without '/', got 2"),
        (["one", "a/b"], "text without '/', got 'a/b'"),
        (["one", ""], "text without '/', got ''"),
        (["one", ".."], "text without '/', got '..'"),
    ],
)
@pytest.mark.parametrize("function", [tc.compare, tc.fits.stack])
def test_names_of_fits(function, names, message, fast_fits) -> None:
    with pytest.raises(ParameterError, match=message):
        function(dict.fromkeys(names, fast_fits["restaurant"]))


def test_bad_input(fast_fits, religion_sample) -> None:
    fit = fast_fits["restaurant"]
    with pytest.raises(ParameterError, match="a mapping of names to fits, got DataTree"):
        tc.compare(fit)
    with pytest.raises(ParameterError, match="a mapping of names to fits, got list"):
        tc.compare([fit, fit])
    with pytest.raises(ParameterError, match=r"method must be 'stacking'.*got 'waic'"):
        tc.compare(fast_fits, method="waic")
    with pytest.raises(TableError, match=r"the fit 'b' must be an xarray\.DataTree, got int"):
        tc.compare({"a": fit, "b": 1})
    with pytest.raises(TableError, match=r"the fit must be an xarray\.DataTree, got Dataset"):
        tc.loo(xr.Dataset())
    with pytest.raises(TableError, match="the fit has no 'count' in the group 'observed_data'"):
        tc.loo(xr.DataTree())


def test_fits_of_different_samples(fast_fits, religion_sample) -> None:
    other = religion_sample.copy(data=religion_sample.values.copy())
    other.values[0, 0] -= 1
    other.values[1, 1] += 1
    changed = {
        r"different samples: area=1, religion=1 holds 16 in the one and 15 in the other": other,
        r"different tables, with the variables \('area', 'religion'\) and \('religion', 'area'\)": (
            religion_sample.T
        ),
        r"the categories of 'area' differ": religion_sample.isel(area=slice(None, None, -1)),
    }
    for message, sample in changed.items():
        fit = tc.PolyaUrn().fit(sample, population_size=2449, draws=2, **QUIET)
        with pytest.raises(TableError, match=message):
            tc.compare({"a": fast_fits["restaurant"], "b": fit})


def test_cells_that_are_not_those_of_the_sample(fast_fits) -> None:
    broken = fast_fits["restaurant"].copy(deep=True)
    broken["observed_data"]["count"][0, 0] -= 1
    with pytest.raises(
        TableError,
        match="the occupied cells of the fit are not those of its sample: 'individuals' differs",
    ):
        tc.loo(broken)


@pytest.mark.parametrize("name", ["occupied_cell", "leave_one_out"])
def test_names_of_the_terms_are_taken(name) -> None:
    sample = xr.DataArray([[3, 1], [0, 2]], dims=(name, "b"))
    with pytest.raises(TableError, match="is a name that fits use"):
        tc.LogLinear().fit(sample, population_size=60, random_seed=1)


def test_names_of_members_are_taken() -> None:
    sample = xr.DataArray([[3, 1], [0, 2]], dims=("restaurant", "b"))
    with pytest.raises(
        TableError, match="the variable 'restaurant' has the name of a member of the pool"
    ):
        tc.LinearPool().fit(sample, population_size=60, **QUIET)
    for name in ("count", "draw", "individual"):
        with pytest.raises(ParameterError, match="a name that fits use themselves"):
            tc.LinearPool({name: tc.ChineseRestaurant(), "b": tc.ChineseRestaurant(0.0)})


def test_words(fast_fits, fit_loglinear) -> None:
    text = comparison_text(tc.compare({**fast_fits, "log-linear": fit_loglinear}))
    assert text.startswith(
        "In words: 'log-linear' predicts the cell of a person left out of the sample best."
    )
    assert "'dirichlet' predicts alike" in text
    assert "'restaurant' is clearly behind: by 23.4, with standard error 6.9" in text
    assert "It does not say which fit is nearer in R2" in text


def test_urn_from_nothing_agrees_with_the_next_individual() -> None:
    """The oracle of this file against the package of oracles."""
    chances = urn_from_nothing(4, 3, 1.9)
    after = urn_from_nothing(4, 4, 1.9)
    found = dict.fromkeys(after, 0.0)
    for others, chance in chances.items():
        for cell, following in next_individual(others, 1.9).items():
            found[tuple(count + (i == cell) for i, count in enumerate(others))] += (
                chance * following
            )
    assert found == pytest.approx(after)


def test_a_mixed_poisson_model_of_four_people_has_terms_above_zero():
    """Its intensity is one of the parameters. The model with gamma factors, a power of
    1 and the same priors is the Dirichlet one."""
    sample = xr.DataArray([[2, 1], [1, 0]], dims=("a", "b"))
    priors = {f"margin_{name}": tc.Prior("Dirichlet", a=1.0) for name in sample.dims}
    own = {
        "power": tc.Prior("Uniform", lower=0.9999, upper=1.0),
        "nu": tc.Prior("LogNormal", mu=1.0 + np.log(4 / 4), sigma=1.5),
    }
    given = {"population_size": 10, "draws": 4000, "random_seed": 1, "progressbar": False}
    mixed = tc.MixedPoisson(mixing="gamma", priors=priors | own).fit(sample, **given)
    assert float(mixed["cell_log_likelihood"]["count"].max()) > 0
    dirichlet = tc.DirichletLogLinear(priors=priors).fit(sample, **given)
    assert tc.loo(mixed).elpd == pytest.approx(tc.loo(dirichlet).elpd, abs=0.05)
    mixed["cell_log_likelihood"]["count"] += 8.0
    with pytest.raises(TableError, match="at most 0"):
        tc.loo(mixed)
