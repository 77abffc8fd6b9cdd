"""Latent classes: the sampler against enumeration of all divisions into classes, and
what the fit holds."""

import warnings
from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import (
    ConvergenceWarning,
    EstimationError,
    ParameterError,
    PriorError,
    TableError,
)
from taciturn.estimators.latent_class.chain import Chain, Layout, _slice_sample
from taciturn.estimators.problem import make_problem

QUIET = {"progressbar": False, "random_seed": 1}
POINT = 1e-3
"""Spread of a log-normal prior that is as good as a point."""


def table(counts) -> xr.DataArray:
    counts = np.asarray(counts)
    dims = ("a", "b", "c")[: counts.ndim]
    coords = {
        dim: [f"{dim}{i}" for i in range(size)]
        for dim, size in zip(dims, counts.shape, strict=True)
    }
    return xr.DataArray(counts, dims=dims, coords=coords)


def fixed(alpha: float, **profiles: float) -> dict[str, tc.Prior]:
    """Priors that hold the parameters at values, as good as."""
    values = {"concentration": alpha, **{f"profile_{dim}": b for dim, b in profiles.items()}}
    return {
        name: tc.Prior("LogNormal", mu=log(value), sigma=POINT) for name, value in values.items()
    }


def divisions(n: int):
    """All divisions of n individuals into classes, as labels in order of appearance."""

    def grow(labels):
        if len(labels) == n:
            yield tuple(labels)
            return
        for label in range(max(labels, default=-1) + 2):
            yield from grow([*labels, label])

    yield from grow([])


def exact_posterior(levels, sizes, alpha, profiles) -> dict[tuple[int, ...], float]:
    """Chance of every division: Chinese restaurant times Dirichlet-multinomial of each
    class and variable."""
    chances = {}
    for labels in divisions(len(levels)):
        value = 0.0
        for label in set(labels):
            own = [x for x, other in zip(levels, labels, strict=True) if other == label]
            value += log(alpha) + lgamma(len(own))
            for j, (size, b) in enumerate(zip(sizes, profiles, strict=True)):
                counts = np.bincount([x[j] for x in own], minlength=size)
                value += (
                    lgamma(b)
                    - lgamma(b + len(own))
                    + sum(lgamma(b / size + c) - lgamma(b / size) for c in counts)
                )
        chances[labels] = exp(value)
    total = sum(chances.values())
    return {labels: chance / total for labels, chance in chances.items()}


SAMPLE = table([[2, 0, 1], [0, 1, 1]])
ALPHA, PROFILES = 0.8, {"a": 0.7, "b": 1.5}


def exact_shares() -> np.ndarray:
    """Expected share of every cell given the sample, over all divisions of its five
    individuals."""
    levels = [cell for cell in product(range(2), range(3)) for _ in range(int(SAMPLE.values[cell]))]
    n, b = len(levels), list(PROFILES.values())
    out = np.full((2, 3), ALPHA / (n + ALPHA) / 6)
    for labels, chance in exact_posterior(levels, (2, 3), ALPHA, b).items():
        for label in set(labels):
            own = [x for x, other in zip(levels, labels, strict=True) if other == label]
            shares = [
                (np.bincount([x[j] for x in own], minlength=size) + b[j] / size) / (len(own) + b[j])
                for j, size in enumerate((2, 3))
            ]
            out += chance * len(own) / (n + ALPHA) * np.outer(*shares)
    return out


@pytest.fixture(scope="module")
def chain_draws():
    chain = Chain(make_problem(SAMPLE, 50), fixed(ALPHA, **PROFILES), np.random.default_rng(1))
    layout, shares, classes = Layout(make_problem(SAMPLE, 50)), [], []
    for _ in range(3_000):
        chain.sweep()
        numbers, weight, share = chain.draw()
        shares.append(layout.all_cells(weight, share))
        classes.append(numbers["classes"])
    return np.array(shares), np.array(classes)


def test_shares_are_those_of_enumeration(chain_draws) -> None:
    """3,000 sweeps; batches of 60 give the Monte Carlo error, 4.5 of which a right
    sampler exceeds once in 20,000. The slow tests take more."""
    shares, _ = chain_draws
    means = shares.reshape(50, 60, 6).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 50**0.5
    assert (error < 0.007).all()
    np.testing.assert_array_less(np.abs(means.mean(axis=0) - exact_shares().ravel()), 4.5 * error)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)


def test_the_number_of_classes_is_that_of_enumeration(chain_draws) -> None:
    _, classes = chain_draws
    levels = [cell for cell in product(range(2), range(3)) for _ in range(int(SAMPLE.values[cell]))]
    expected = np.zeros(6)
    for labels, chance in exact_posterior(levels, (2, 3), ALPHA, list(PROFILES.values())).items():
        expected[len(set(labels))] += chance
    for k in (1, 2, 3):
        means = (classes == k).reshape(50, 60).mean(axis=1)
        assert abs(means.mean() - expected[k]) < 4.5 * means.std(ddof=1) / 50**0.5


@pytest.mark.parametrize("seed", [1, 14, 24])
def test_a_chain_may_start_with_fewer_classes(seed) -> None:
    """Five individuals need not be in all of the classes that a chain starts with."""
    chain = Chain(make_problem(SAMPLE, 50), fixed(ALPHA, **PROFILES), np.random.default_rng(seed))
    assert chain.used < 3
    for _ in range(10):
        assert np.unique(chain.classes).tolist() == list(range(chain.used))
        chain.sweep()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("_PROPOSALS", 0), ("_LARGE", 1)])
def test_with_fewer_splits_and_mergers_the_chances_are_the_same(name, value, monkeypatch) -> None:
    """They only help: without any, and with as few as for a large sample."""
    monkeypatch.setattr(f"taciturn.estimators.latent_class.chain.{name}", value)
    chain = Chain(make_problem(SAMPLE, 50), fixed(ALPHA, **PROFILES), np.random.default_rng(2))
    layout, shares = Layout(make_problem(SAMPLE, 50)), []
    for _ in range(20_000):
        chain.sweep()
        _, weight, share = chain.draw()
        shares.append(layout.all_cells(weight, share))
    means = np.array(shares).reshape(100, 200, 6).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 10
    np.testing.assert_array_less(np.abs(means.mean(axis=0) - exact_shares().ravel()), 4.5 * error)


@pytest.mark.slow
def test_structural_zeros_against_weighted_draws() -> None:
    """The posterior without the cells is the posterior with them, weighted by what is
    left of the mixture ^ -n."""
    zeros = SAMPLE.copy(data=SAMPLE.values == 0) & (SAMPLE["b"] == "b0")
    assert int(zeros.sum()) == 1
    priors = fixed(ALPHA, **PROFILES)
    problem = make_problem(SAMPLE, 50, zeros)
    chain, free = (
        Chain(p, priors, np.random.default_rng(3)) for p in (problem, make_problem(SAMPLE, 50))
    )
    layout = Layout(problem)
    kept, weighted = [], []
    for _ in range(20_000):
        for own, out in ((chain, kept), (free, weighted)):
            own.sweep()
            _, weight, share = own.draw()
            out.append(layout.all_cells(weight, share))
    kept, weighted = np.array(kept), np.array(weighted)
    inside = ~zeros.values.ravel()
    importance = weighted[:, inside].sum(axis=1) ** -5.0
    expected = (weighted * importance[:, None]).reshape(100, 200, 6).sum(
        axis=1
    ) / importance.reshape(100, 200, 1).sum(axis=1)
    means = (kept * 1.0).reshape(100, 200, 6).mean(axis=1)
    error = np.hypot(means.std(axis=0, ddof=1), expected.std(axis=0, ddof=1)) / 10
    np.testing.assert_array_less(np.abs(means.mean(axis=0) - expected.mean(axis=0)), 4.5 * error)


def test_a_slice_step_keeps_a_normal_distribution() -> None:
    rng = np.random.default_rng(4)
    x, values = 0.0, []
    for _ in range(20_000):
        x = _slice_sample(x, lambda y: -((y - 3) ** 2) / 8, rng)
        values.append(x)
    means = np.array(values).reshape(100, 200).mean(axis=1)
    assert abs(means.mean() - 3) < 4.5 * means.std(ddof=1) / 10
    assert np.std(values) == pytest.approx(2, rel=0.05)


@pytest.fixture(scope="module")
def classes_sample() -> xr.DataArray:
    """Two kinds of people, who share no category: a product of margins gives every
    mixed cell a chance."""
    population = np.zeros((4, 4, 4), dtype=np.int64)
    population[:2, :2, :2], population[2:, 2:, 2:] = 400, 10
    return tc.draw_sample(table(population), fraction=0.1, random_seed=1)


@pytest.fixture(scope="module")
def fit(classes_sample) -> xr.DataTree:
    return tc.LatentClass().fit(
        classes_sample, population_size=3280, draws=400, tune=200, chains=2, **QUIET
    )


@pytest.fixture(scope="module")
def without(classes_sample) -> xr.DataTree:
    return tc.LatentClass(departures=False).fit(
        classes_sample, population_size=3280, draws=400, tune=200, chains=2, **QUIET
    )


def test_classes_are_found(fit, classes_sample) -> None:
    population = fit["posterior_predictive"]["population"].values
    empty = np.ones((4, 4, 4), dtype=bool)
    empty[:2, :2, :2] = empty[2:, 2:, 2:] = False
    assert (
        population[..., empty].sum(axis=-1).mean() < 40
    )  # a product of margins puts hundreds there
    loglinear = tc.LogLinear().fit(classes_sample, population_size=3280, draws=50, **QUIET)
    assert (
        loglinear["posterior_predictive"]["population"].values[..., empty].sum(axis=-1).mean() > 150
    )


def test_the_groups_of_a_fit(fit, without) -> None:
    posterior = fit["latent_classes"].to_dataset()
    assert posterior["weight"].dims == ("chain", "draw", "class")
    assert posterior["share_b"].dims == ("chain", "draw", "class", "b")
    np.testing.assert_allclose(posterior["weight"].sum("class"), 1, atol=1e-5)
    assert (posterior["weight"].diff("class") <= 1e-7).all()
    used = posterior["weight"] > 0
    np.testing.assert_allclose(posterior["share_c"].sum("c").where(used, 1), 1, atol=1e-5)
    profiles = {"profile_a", "profile_b", "profile_c"}
    assert set(fit["log_prior"].data_vars) == {"concentration", "nu", "power", *profiles}
    assert set(without["log_prior"].data_vars) == {"concentration", *profiles}
    assert "sample_stats" not in fit.children


def test_without_departures_individuals_are_independent_given_the_classes(
    without, classes_sample
) -> None:
    terms = without["cell_log_likelihood"]["count"].isel(chain=1, draw=7).values
    one = without["latent_classes"].to_dataset().isel(chain=1, draw=7)
    shares = xr.dot(
        one["weight"], one["share_a"], one["share_b"], one["share_c"], dim="class"
    ).transpose("a", "b", "c")
    np.testing.assert_allclose(terms, np.log(shares.values[classes_sample.values > 0]), atol=1e-4)


@pytest.mark.parametrize("name", ["fit", "without"])
def test_expected_tau1_is_the_mean_of_tau1(name, request) -> None:
    fit = request.getfixturevalue(name)
    risk = tc.assess(fit)["risk"].to_dataset()
    expected = fit["posterior"].to_dataset()["expected_tau1"]
    error = float((risk["tau1"] - expected).std()) / np.sqrt(risk["tau1"].size)
    assert abs(float(risk["tau1"].mean() - expected.mean())) <= 4.5 * error + 1e-12


def test_what_a_person_reads(fit) -> None:
    result = tc.summary(fit)
    assert result.converged
    assert "Latent classes" in result.text
    assert "rely" not in result.sentence
    assert result.sensitivity is not None
    assert {"concentration", "nu", "profile_a", "R2"} <= set(result.sensitivity.index)
    assert result.diagnostics.ess_bulk >= 400


@pytest.mark.slow
def test_saved_and_repeated(fit, tmp_path) -> None:
    tc.save_fit(fit, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_identical(read["posterior"].to_dataset(), fit["posterior"].to_dataset())
    again = tc.fits.repeat_fit(read, progressbar=False)
    xr.testing.assert_equal(
        again["posterior_predictive"].to_dataset(), fit["posterior_predictive"].to_dataset()
    )


def test_compared_with_other_estimators(fit, without, classes_sample) -> None:
    other = tc.DirichletLogLinear().fit(classes_sample, population_size=3280, draws=250, **QUIET)
    ranked = tc.compare({"classes": without, "dirichlet": other})
    assert ranked.index[0] == "classes"
    stacked = tc.fits.stack({"classes": without, "dirichlet": other}, random_seed=1)
    tc.fits.check_population(
        stacked["posterior_predictive"]["population"], classes_sample, population_size=3280
    )
    with pytest.raises(TableError, match="no log likelihood"):  # learned in two steps
        tc.compare({"classes": fit, "dirichlet": other})


def test_few_draws_are_said_not_to_have_converged(classes_sample) -> None:
    with pytest.warns(ConvergenceWarning, match="effective sample size"):
        fit = tc.LatentClass().fit(classes_sample, population_size=3280, draws=20, tune=5, **QUIET)
    assert not tc.summary(fit).converged


def test_one_cell_holds_everybody() -> None:
    sample = table([[5, 0], [0, 0]])
    with pytest.warns(ConvergenceWarning):
        fit = tc.LatentClass().fit(sample, population_size=5, draws=5, tune=1, chains=2, **QUIET)
    assert (fit["posterior_predictive"]["population"] == sample).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "nuts"}, ParameterError, "sampler of its own: use method='fast'"),
        (
            {"known_margins": table([[2, 0], [1, 1]]).sum("b") * 10},
            ParameterError,
            "LatentClass cannot keep known",
        ),
    ],
)
def test_what_it_does_not_do(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        tc.LatentClass().fit(table([[2, 0], [1, 1]]), population_size=40, **arguments)


def test_priors_are_checked() -> None:
    prior = tc.Prior("HalfNormal", sigma=1)
    with pytest.raises(
        PriorError, match="the parameters of this model are concentration, profile_a, profile_b"
    ):
        tc.LatentClass({"alpha": prior}).fit(table([[2, 0], [1, 1]]), population_size=40)


def test_names_that_clash() -> None:
    sample = table([[2, 0], [1, 1]]).rename(a="class")
    with pytest.raises(TableError, match="'class' has the name of a parameter"):
        tc.LatentClass().fit(sample, population_size=40)


def test_structural_zeros_that_hold_all_that_is_fitted(monkeypatch) -> None:
    """People on a diagonal, in classes that cannot be told apart: nearly all of what is
    fitted lies off it."""
    monkeypatch.setattr("taciturn.estimators.latent_class.chain._MOST_MISSES", 10_000)
    zeros = ~np.eye(110, dtype=bool)  # 110 x 109 would have to be added: above the limit
    priors = fixed(1e-6, a=1e6, b=1e6)
    sample = table(np.eye(110, dtype=int))
    with pytest.raises(EstimationError, match=r"the structural zeros hold 99\.09% of what"):
        tc.LatentClass(priors).fit(
            sample, population_size=220, structural_zeros=table(zeros), chains=1, **QUIET
        )


@pytest.mark.parametrize(
    "most", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["some", "default"]
)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_a_small_sample_beside_many_structural_zeros(seed, most, monkeypatch) -> None:
    """Now and then a draw of so small a sample lies on the zeros nearly whole, which is
    no reason to stop. With a lower limit of individuals to add that is more common."""
    monkeypatch.setattr("taciturn.estimators.latent_class.chain._MOST_MISSES", most)
    counts = np.zeros((3, 3), dtype=np.int64)
    counts[0, 0], counts[2, 2] = 5, 3
    zeros = np.ones((3, 3), dtype=bool)
    zeros[0, 0] = zeros[2, 2] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = tc.LatentClass().fit(
            table(counts),
            population_size=80,
            structural_zeros=table(zeros),
            draws=50,
            tune=50,
            chains=2,
            random_seed=seed,
            progressbar=False,
        )
    assert (fit["posterior_predictive"]["population"].values[..., zeros] == 0).all()


@pytest.mark.parametrize(
    "prior",
    [
        tc.Prior("InverseGamma", alpha=0.01, beta=0.01),
        tc.Prior("LogNormal", mu=0, sigma=300),
        tc.Prior("Gamma", alpha=1e-4, beta=1),
        tc.Prior("HalfCauchy", beta=5),
        tc.Prior("Uniform", lower=0, upper=3),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_priors_that_say_next_to_nothing(prior) -> None:
    sample = table([[4, 0, 1], [0, 3, 1]])
    for name in ("concentration", "profile_a"):
        fit = tc.LatentClass({name: prior}).fit(
            sample, population_size=90, draws=20, tune=20, chains=2, **QUIET
        )
        values = fit["posterior"].to_dataset()[name]
        assert np.isfinite(values).all()
        assert (values > 0).all()


def test_a_prior_outside_of_what_can_be_computed() -> None:
    prior = tc.Prior("Uniform", lower=1e13, upper=2e13)
    with pytest.raises(
        PriorError, match="the prior of 'concentration' has next to nothing between"
    ):
        tc.LatentClass({"concentration": prior}).fit(
            table([[4, 0], [0, 3]]), population_size=90, **QUIET
        )


def test_draws_from_the_prior_live_where_they_can() -> None:
    zeros = np.zeros((3, 4), dtype=bool)
    zeros[:, 1:3] = True
    sample = table(np.where(zeros, 0, [[3, 0, 0, 1]] * 3))
    problem = make_problem(sample, 100, table(zeros))
    _, samples, populations = tc.LatentClass().draw_prior(problem, 500, np.random.default_rng(1))
    assert (populations.sum(axis=1) == 100).all()
    assert (samples.sum(axis=1) == 12).all()
    assert (populations[:, zeros.ravel()] == 0).all()
