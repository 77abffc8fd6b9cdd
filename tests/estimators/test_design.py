"""Samples that are not simple random ones: strata, and sampling weights."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import gammaln
from scipy.stats import chisquare

import taciturn as tc
from taciturn.errors import ParameterError, TableError, TaciturnError
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters
from taciturn.fits.checks import is_rough

QUICK = {"chains": 2, "draws": 200, "progressbar": False, "random_seed": 1}
MODELS = {"dirichlet": tc.DirichletLogLinear(), "mixed": tc.MixedPoisson()}
MODELS["zeros"] = tc.MixedPoisson(mixing="gamma", zero_inflated=True)
each = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def table(values, dims="ab") -> xr.DataArray:
    array = np.asarray(values)
    coords = {d: [f"{d}{i}" for i in range(s)] for d, s in zip(dims, array.shape, strict=True)}
    return xr.DataArray(array, dims=tuple(dims), coords=coords)


@pytest.fixture(scope="module")
def stratified():
    """Religion by area: a fortieth of every other area and a fifth of the others."""
    population = tc.load_dataset("area_by_religion")
    parts = [
        tc.draw_sample(population.isel(area=[k]), fraction=(0.025, 0.2)[k % 2], random_seed=k)
        for k in range(10)
    ]
    return xr.concat(parts, "area"), population.sum("religion")


@each
def test_draws_keep_strata(model, stratified):
    sample, strata = stratified
    fit = model.fit(sample, population_size=2449, strata=strata, **QUICK)
    assert fit.attrs["sampler"] == "importance sampling"
    drawn = fit["posterior_predictive"].to_dataset()
    tc.fits.check_population(
        drawn["population"], sample, population_size=2449, known_margins=strata
    )
    assert (drawn["count"].sum("religion") == sample.sum("religion")).all()
    assert "by area, fractions from 0.0" in str(tc.summary(fit))


@pytest.fixture(scope="module")
def weights(stratified):
    """What the people sampled in each cell stand for."""
    sample, strata = stratified
    return (sample / sample.sum("religion") * strata).fillna(0.0)


def test_fits_of_designs_are_repeated(stratified, weights, tmp_path):
    sample, strata = stratified
    model = tc.MixedPoisson()
    for design in (
        {"strata": strata},
        {"sampling_weights": weights},
        {"sampling_weights": weights, "effective_size": 90.0},
    ):
        fit = model.fit(sample, population_size=2449, **design, **QUICK)
        tc.save_fit(fit, tmp_path / "fit.nc", overwrite=True)
        again = tc.fits.repeat_fit(tc.read_fit(tmp_path / "fit.nc"), progressbar=False)
        for group in ("posterior", "constant_data", "posterior_predictive"):
            xr.testing.assert_equal(again[group].to_dataset(), fit[group].to_dataset())
        assert np.isfinite(tc.fits.prior_sensitivity(again).loc["R2", "prior"])
    assert "; weighted, says as much as 90 people sampled one by one" in str(tc.summary(fit))


def test_strata_enter_the_dirichlet_model_as_known_margins_do(stratified):
    """Given the sizes, the sample sizes of strata say nothing of the parameters."""
    sample, strata = stratified
    model = MODELS["dirichlet"]
    ways = [
        model.fit(sample, population_size=2449, **{name: strata}, **QUICK)
        for name in ("strata", "known_margins")
    ]
    first, second = (fit["posterior_predictive"]["population"] for fit in ways)
    xr.testing.assert_equal(first, second)
    # Left out, an individual comes back to his own stratum only by design.
    terms = [fit["cell_log_likelihood"]["count"] for fit in ways]
    of_stratum = sample.sum("religion").values
    left = strata.values - of_stratum + 1
    area = {label: k for k, label in enumerate(sample["area"].values)}
    at = [area[label] for label in terms[0]["area"].values]
    np.testing.assert_allclose(
        terms[0] - terms[1], np.log((2449 - of_stratum.sum() + 1) / left[at]) + 0 * terms[0]
    )


def at(share: float, intensity, nu: float, power: float, b, inflation: float) -> Parameters:
    """Parameters of a table of strata a by b that differ in the intensities alone."""
    draws, dims = len(intensity), ("chain", "draw")
    single = {
        "nu": (dims, np.full((1, draws), nu)),
        "power": (dims, np.full((1, draws), power)),
        "share": (dims, np.full((1, draws), share)),
        "inflation": (dims, np.full((1, draws), inflation)),
        "intensity": ((*dims, "a"), np.asarray(intensity)[None]),
        "margin_b": ((*dims, "b"), np.tile(b, (1, draws, 1))),
    }
    return Parameters(xr.Dataset(single))


def log_probability(share: float, counts, nu, power, b, inflation=0.0) -> float:
    """Logarithm of p(sample of two strata | parameters), both intensities integrated
    out."""
    logs = np.linspace(-14, 16, 241)
    grid = np.exp(np.array([[x, y] for x in logs for y in logs]))
    problem = make_problem(table(counts), 80, strata=table([30, 50], "a"))
    model = tc.MixedPoisson(zero_inflated=inflation > 0)
    values = model.log_joint(problem, at(share, grid, nu, power, b, inflation))[0]
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()) + 2 * np.log(logs[1] - logs[0]))


@pytest.mark.parametrize("inflation", [0.0, 0.4])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_samples_of_strata_are_multinomial_of_their_own(share, inflation):
    """The probabilities of all samples of 2 and 3 sum to one."""
    # With zeros and wide factors intensities would reach beyond the grid.
    total, b, nu = 0.0, np.array([0.4, 0.6]), 3.0 if inflation else 0.5
    for first in range(3):
        for second in range(4):
            counts = np.array([[first, 2 - first], [second, 3 - second]])
            log_p = log_probability(share, counts, nu, 0.4, b, inflation)
            total += np.exp(log_p - gammaln(counts + 1).sum())
    assert 2 * 3 * total == pytest.approx(1, abs=1e-5)


def test_gamma_factors_with_power_one_are_dirichlet_in_each_stratum():
    b, nu = np.array([0.3, 0.7]), 0.8
    weights = nu * 4 * np.outer([30 / 80, 50 / 80], b)
    first, second = np.array([[2, 1], [0, 5]]), np.array([[0, 3], [3, 2]])
    found = [log_probability(0.0, counts, nu, 1.0, b) for counts in (first, second)]
    exact = [(gammaln(weights + counts) - gammaln(weights)).sum() for counts in (first, second)]
    assert found[0] - found[1] == pytest.approx(exact[0] - exact[1], abs=1e-6)


def test_a_stratum_without_a_sample_and_one_without_people():
    sample = table([[5, 2, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]])
    strata = table([70, 40, 0, 12], "a")
    for model in MODELS.values():
        fit = model.fit(sample, population_size=122, strata=strata, **QUICK)
        tc.assess(fit)  # checks the strata of every draw
        population = fit["posterior_predictive"]["population"]
        assert (population.isel(a=1) == 0).any()
        assert (population.isel(a=1).std() > 0).any()


@pytest.mark.slow
def test_nuts_tells_apart_samples_with_other_empty_strata():
    """One compiled model serves no sample in which other strata are empty, and the
    intensity of an empty one is no parameter that has to converge."""
    strata = table([60, 40, 80], "a")
    for sample in (table([[5, 2], [0, 0], [3, 9]]), table([[5, 2], [6, 3], [3, 9]])):
        fits = [
            tc.MixedPoisson(mixing="gamma").fit(
                sample,
                population_size=180,
                strata=strata,
                method=method,
                **QUICK | {"draws": 2000, "chains": 4},
            )
            for method in ("fast", "nuts")
        ]
        # Medians, as the tail is heavy, of some thousand effective draws.
        fast, nuts = (fit["posterior"]["intensity"].median(["chain", "draw"]) for fit in fits)
        np.testing.assert_allclose(fast, nuts, rtol=0.1)
        assert tc.summary(fits[1]).converged


@pytest.mark.slow
@pytest.mark.parametrize("interaction", [False, True])
def test_nuts_agrees_in_strata(stratified, interaction):
    sample, strata = stratified
    model = tc.MixedPoisson("~ area * religion" if interaction else None)
    # Two chains of 1,000 draws had an r-hat of 1.012 where they were compiled anew.
    more = QUICK | {"chains": 4, "draws": 2000}
    fast, nuts = (
        tc.assess(model.fit(sample, population_size=2449, strata=strata, method=m, **more))
        for m in ("fast", "nuts")
    )
    assert fast.attrs["sampler"] == "importance sampling"
    assert ("effect_area_religion" in fast["posterior"]) == interaction
    assert "margin_area" not in fast["posterior"]
    for name in ("R2", "tau1"):
        one, two = (fit["risk"][name].values for fit in (fast, nuts))
        assert one.mean() == pytest.approx(two.mean(), abs=0.15 * two.std())
    one, two = (fit["posterior"]["intensity"] for fit in (fast, nuts))
    np.testing.assert_allclose(one.mean(["chain", "draw"]), two.mean(["chain", "draw"]), rtol=0.1)


@pytest.mark.statistical
def test_strata_are_calibrated():
    """Ranks of the truth among draws, of populations that the model makes given the
    sizes of the strata: uniform, by one chi-squared test each."""
    rng, ranks = np.random.default_rng(11), {"nu": [], "empty": []}
    priors = {
        "nu": tc.Prior("LogNormal", mu=1.0, sigma=0.7),
        "margin_b": tc.Prior("Dirichlet", a=3.0),
    }
    model = tc.MixedPoisson(priors=priors)
    sizes, drawn = np.array([60, 25, 120]), np.array([20, 5, 10])
    strata = table(sizes, "a")
    for number in range(160):
        nu = float(np.exp(1.0 + 0.7 * rng.normal()))
        power, margin = rng.random(), rng.dirichlet(np.full(4, 3.0))
        share = np.outer(sizes / 205, margin)
        shape = nu * (12 * share) ** power
        if rng.random() < 0.5:
            factors = rng.gamma(np.maximum(shape, 1e-6)) / shape
        else:
            factors = rng.wald(1.0, shape)
        weights = share * np.maximum(factors, 1e-300)
        population = np.array(
            [rng.multinomial(m, w / w.sum()) for m, w in zip(sizes, weights, strict=True)]
        )
        sample = np.array(
            [
                rng.multivariate_hypergeometric(own, n)
                for own, n in zip(population, drawn, strict=True)
            ]
        )
        fit = model.fit(
            table(sample),
            population_size=205,
            strata=strata,
            draws=99,
            chains=1,
            random_seed=number,
            progressbar=False,
        )
        assert fit.attrs["sampler"] == "importance sampling"
        empty = (fit["posterior_predictive"]["population"] == 0).sum(["a", "b"]).values.ravel()
        of_nu = fit["posterior"]["nu"].values.ravel()
        for name, true, values in (
            ("nu", nu, of_nu),
            ("empty", (population == 0).sum(), empty),
        ):
            ties = rng.integers((values == true).sum() + 1)
            ranks[name].append((values < true).sum() + ties)
    for name, found in ranks.items():
        counts = np.bincount(np.array(found) // 10, minlength=10)
        assert chisquare(counts).pvalue > 1e-4, (name, counts)


@pytest.mark.parametrize("model", [tc.MixedPoisson(), tc.MixedPoisson(mixing="gamma")], ids=repr)
def test_equal_weights_change_nothing(model, stratified):
    sample, _ = stratified
    size = int(sample.sum())
    plain = model.fit(sample, population_size=2449, **QUICK)
    weighted = model.fit(
        sample, population_size=2449, sampling_weights=sample * (2449 / size), **QUICK
    )
    for name, values in plain["posterior"].data_vars.items():
        np.testing.assert_allclose(weighted["posterior"][name], values, rtol=1e-6)
    assert float(weighted["constant_data"]["effective_size"]) == size
    assert "cell_log_likelihood" not in weighted.children


def test_weights_say_at_which_rates_cells_were_sampled():
    """Only their proportions count; of a cell whose people stand for less than
    themselves everybody was sampled."""
    sample = table([[8, 2], [5, 4]])
    weights = sample * table([2.0, 10.0], "a")  # differ by a, and not within
    for scale in (1.0, 3.0):
        problem = make_problem(sample, 550, sampling_weights=weights * scale)
        expected = [110 / 550 / 2] * 2 + [110 / 550 / 10] * 2
        np.testing.assert_allclose(problem.rates, expected, rtol=1e-4)
        np.testing.assert_allclose(problem.relative_rates, problem.rates * 550 / 19)
        np.testing.assert_allclose(problem.learned_from, [8, 2, 5, 4])
    crowded = make_problem(sample, 70, sampling_weights=weights)  # 2 stand for 1.3, 10 for 6.4
    np.testing.assert_allclose(crowded.rates, [11 / 14] * 2 + [11 / 70] * 2, rtol=1e-4)
    everybody = make_problem(sample, 19, sampling_weights=sample * 1.0)
    np.testing.assert_allclose(everybody.rates, 1)
    together = make_problem(sample, 550, sampling_weights=weights, effective_size=9.5)
    np.testing.assert_allclose(together.learned_from, [4, 1, 2.5, 2])
    assert not together.whole


def test_weights_beside_structural_zeros():
    sample = table([[6, 0, 2], [5, 4, 0], [1, 3, 7]])
    zeros = table([[False, True, False], [False, False, True], [False, False, False]])
    weights = sample * table([3.0, 9.0, 6.0], "a")
    fit = tc.MixedPoisson().fit(
        sample, population_size=150, sampling_weights=weights, structural_zeros=zeros, **QUICK
    )
    population = fit["posterior_predictive"]["population"]
    assert (population.where(zeros, 0) == 0).all()
    assert (population.sum(["a", "b"]) == 150).all()
    assert population.sum("b").mean(["chain", "draw"])[1] > 150 * 9 / 28 + 8  # as counted


def test_rates_give_back_the_population():
    """Everybody sampled stands for somebody, and all of them for everybody; a cell of
    which everybody was sampled stays whole, however others vary."""
    rng = np.random.default_rng(4)
    sample = table(rng.poisson(3, (6, 8)) + 1)
    weights = sample * rng.lognormal(1.5, 0.8, sample.shape).clip(1.2)
    weights[0] = sample[0]
    size = round(float(weights.sum()))
    problem = make_problem(sample, size, sampling_weights=weights)
    assert (problem.counts / problem.rates).sum() == pytest.approx(size, rel=0.05)
    exact = make_problem(sample, int(weights.sum()) + 1, sampling_weights=weights)
    assert exact.rates.max() <= 1
    calibrated = weights * (size / float(weights.sum()))
    calibrated[0] = sample[0]
    assert (make_problem(sample, size, sampling_weights=calibrated).rates[:8] > 0.95).all()


@pytest.mark.parametrize("size", [20, 20.001, 20.02, 20.5, 22])
def test_people_who_stand_for_hardly_more_than_themselves(size):
    """Equal weights are those of a simple random sample, however near to 1: there is no
    cell from which all the others are missing, and not from empty ones alone."""
    sample = table([[8_000, 2_000], [0, 10_000]])
    problem = make_problem(sample, round(size * 1000), sampling_weights=sample * 1.0)
    rates = [20 / size] * 2 + [problem.rates[2]] + [20 / size]
    np.testing.assert_allclose(problem.rates, rates, rtol=1e-6)
    mixed = sample * table([1.0, 1.0 + 2 * (size / 20 - 1)], "a")
    rates = make_problem(sample, round(size * 1000), sampling_weights=mixed).rates
    assert rates[:2].tolist() == [1.0, 1.0]  # so that it is the second row they miss
    assert size == 20 or rates[3] < 1.0


def test_a_variable_may_be_called_stratum():
    shape = (2, 3, 4)
    intensity = xr.DataArray(np.ones(shape), dims=("chain", "draw", "stratum"))
    intensity[..., 1] = 0.0
    intensity = intensity.assign_coords(stratum=list("abcd"))
    posterior = xr.Dataset({"intensity": intensity, "nu": intensity.isel(stratum=0, drop=True)})
    margin = intensity.isel(chain=0, draw=0, drop=True)
    found = tc.MixedPoisson().monitored(posterior.assign(margin_stratum=margin))
    assert found["intensity"].shape == (2, 3, 3)


def test_whom_the_sample_leaves():
    """Of a cell that was sampled whole nobody is left; of others those whom the sample
    was less likely to take."""
    sample = table([[30, 20], [30, 20]])
    weights = sample * table([1.0, 9.0], "a")
    fit = tc.MixedPoisson().fit(sample, population_size=500, sampling_weights=weights, **QUICK)
    population = fit["posterior_predictive"]["population"]
    assert (population.isel(a=0) == sample.isel(a=0)).all()
    assert (population.sum(["a", "b"]) == 500).all()


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_a_sample_at_unequal_rates_is_multinomial(share):
    """Its probability with the intensity integrated out, against that with the factors
    of both cells integrated over instead: up to a constant of all samples."""
    nu, power, margin, rates = 0.7, 0.6, np.array([0.3, 0.7]), np.array([0.02, 0.15])
    shape = nu * (2 * margin) ** power

    def log_joint(counts) -> float:
        grid = np.exp(np.linspace(-16, 16, 4001))
        single = {
            "nu": np.full((1, grid.size), nu),
            "power": np.full((1, grid.size), power),
            "share": np.full((1, grid.size), share),
            "intensity": grid[None],
        }
        draws = xr.Dataset({k: (("chain", "draw"), v) for k, v in single.items()})
        draws["margin_a"] = (("chain", "draw", "a"), np.tile(margin, (1, grid.size, 1)))
        sample = table(counts, "a")
        problem = make_problem(sample, 100, sampling_weights=sample * 5.0)
        problem.__dict__["rates"] = rates  # in place of what equal weights say
        values = tc.MixedPoisson().log_joint(problem, Parameters(draws))[0]
        return float(np.log(np.exp(values - values.max()).sum()) + values.max())

    def direct(counts) -> float:
        z = np.linspace(-30, 12, 1200)
        g = np.exp(z)
        density = []
        for r in shape:
            gamma = np.exp(r * np.log(r * g) - r * g - gammaln(r))  # of the logarithm
            wald = np.sqrt(r / (2 * np.pi * g)) * np.exp(-r * (g - 1) ** 2 / (2 * g))
            density.append((1 - share) * gamma + share * wald)
        one, two = rates[0] * margin[0] * g[:, None], rates[1] * margin[1] * g[None]
        with np.errstate(divide="ignore"):
            log_p = counts[0] * np.log(one / (one + two)) + counts[1] * np.log(two / (one + two))
        value = (np.exp(log_p) * density[0][:, None] * density[1][None]).sum()
        return float(np.log(value))

    first, second = np.array([3, 1]), np.array([1, 3])
    assert log_joint(first) - log_joint(second) == pytest.approx(
        direct(first) - direct(second), abs=1e-4
    )


@pytest.mark.statistical
def test_samples_at_unequal_rates_are_calibrated():
    """Ranks of the truth among draws, of samples that the model makes where one
    category was sampled at eight times the rate of another: uniform, by one chi-squared
    test each."""
    rng, ranks = np.random.default_rng(12), {"nu": [], "empty": [], "first": []}
    prior = {f"margin_{name}": tc.Prior("Dirichlet", a=3.0) for name in "ab"}
    priors = prior | {"nu": tc.Prior("LogNormal", mu=1.0, sigma=0.7)}
    model, size, number = tc.MixedPoisson(priors=priors), 2000, 60
    relative = np.array([1.0, 2.0, 8.0])
    for k in range(160):
        nu, power = float(np.exp(1.0 + 0.7 * rng.normal())), rng.random()
        share = np.outer(rng.dirichlet(np.full(3, 3.0)), rng.dirichlet(np.full(4, 3.0)))
        shape = nu * (12 * share) ** power
        # The share of inverse Gaussian factors is uniform, and each factor one of them.
        wald = rng.random((3, 4)) < rng.random()
        factors = np.where(wald, rng.wald(1.0, shape), rng.gamma(np.maximum(shape, 1e-6)) / shape)
        weights = share * np.maximum(factors, 1e-300)
        at_rates = weights * relative[:, None]
        sample = rng.multinomial(number, (at_rates / at_rates.sum()).ravel()).reshape(3, 4)
        stands_for = sample / relative[:, None]
        stands_for *= size / stands_for.sum()
        rates = relative * (sample / relative[:, None]).sum() / size
        rest = weights * (1 - np.minimum(rates, 1))[:, None]
        population = sample + rng.multinomial(size - number, (rest / rest.sum()).ravel()).reshape(
            3, 4
        )
        fit = model.fit(
            table(sample),
            population_size=size,
            sampling_weights=table(np.maximum(stands_for, sample)),
            draws=99,
            chains=1,
            random_seed=k,
            progressbar=False,
        )
        drawn = fit["posterior_predictive"]["population"]
        found = {
            "nu": (nu, fit["posterior"]["nu"].values.ravel()),
            "empty": ((population == 0).sum(), (drawn == 0).sum(["a", "b"]).values.ravel()),
            "first": (population[0].sum(), drawn.isel(a=0).sum("b").values.ravel()),
        }
        for name, (true, values) in found.items():
            ties = rng.integers((values == true).sum() + 1)
            ranks[name].append((values < true).sum() + ties)
    for name, found in ranks.items():
        counts = np.bincount(np.array(found) // 10, minlength=10)
        assert chisquare(counts).pvalue > 1e-4, (name, counts)


def test_what_a_fit_of_a_design_cannot_do(stratified, weights, tmp_path):
    sample, strata = stratified
    for design, word in (
        ({"strata": strata}, "stratified"),
        ({"sampling_weights": weights}, "weighted"),
    ):
        fit = tc.MixedPoisson().fit(sample, population_size=2449, **design, **QUICK)
        with pytest.raises(ParameterError, match=f"the fit is of a {word} one"):
            tc.cards.write_card(
                tmp_path / "x.toml",
                fit,
                reference=fit,
                table="area_by_religion",
                citation="x",
                calibration="x",
                command="x",
            )
    with pytest.raises(TableError, match="not for a sample with weights"):
        tc.loo(fit)
    said = tc.summary(fit).sentence
    assert "checks are approximate" in said
    assert "An effective size is rough" not in said
    told = {"sampling_weights": weights, "effective_size": 90.0}
    fit = tc.MixedPoisson().fit(sample, population_size=2449, **told, **QUICK)
    assert "An effective size is rough" in tc.summary(fit).sentence


def test_fits_that_predict_within_strata_are_not_compared_with_others(stratified):
    sample, strata = stratified
    fits = {
        name: tc.DirichletLogLinear().fit(sample, population_size=2449, **design, **QUICK)
        for name, design in {"told": {"strata": strata}, "not": {}}.items()
    }
    with pytest.raises(TableError, match="do not know the sample to be drawn in the same way"):
        tc.compare(fits)


def test_checks_count_unless_people_were_sampled_together(stratified):
    """Replicates have the rates of the weights; but each of their people comes by
    himself."""
    sample, _ = stratified
    even = xr.full_like(sample, 3)  # looks like no sample of the model: all cells are alike
    more = QUICK | {"draws": 1000}
    for design, rough in (
        ({"sampling_weights": even * 3.0}, False),
        ({"sampling_weights": even * 3.0, "effective_size": 100.0}, True),
    ):
        fit = tc.MixedPoisson(mixing="gamma").fit(even, population_size=5000, **design, **more)
        checks = tc.fits.predictive_checks(fit)
        assert is_rough(checks) is rough
        assert bool(tc.summary(fit).problems) is not rough


def test_a_report_says_how_the_sample_was_drawn(stratified, weights, tmp_path):
    sample, strata = stratified
    for design, words in (
        ({"strata": strata}, "in each stratum, by area"),
        ({"sampling_weights": weights}, "a sample with unequal chances, as its weights say."),
        (
            {"sampling_weights": weights, "effective_size": 90.0},
            "a weighted sample that says as much as 90 people sampled one by one.",
        ),
        ({}, "the sample is a simple random sample without replacement."),
    ):
        fit = tc.MixedPoisson().fit(sample, population_size=2449, **design, **QUICK)
        tc.report(fit, tmp_path / "page.html", overwrite=True, progressbar=False)
        page = (tmp_path / "page.html").read_text()
        assert words in page
        assert ("simple random sample without replacement." in page) is (not design)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda c: c.assign(effective_size=("x", [1.0, 2.0])), "must be one value"),
        (lambda c: c.assign(effective_size=np.nan), "effective_size must be"),
        (lambda c: c.drop_vars("sampling_weights"), "needs both"),
        (lambda c: c.assign(sampling_weights=-c["sampling_weights"]), "at least 1|must be 0"),
        (lambda c: c.assign(stratified=True), "no sizes of its strata"),
    ],
)
def test_files_with_impossible_designs(changed, message, tmp_path):
    fit = tc.MixedPoisson().fit(GOOD, population_size=95, sampling_weights=GOOD * 3.0, **QUICK)
    fit["constant_data"] = xr.DataTree(changed(fit["constant_data"].to_dataset()))
    with pytest.raises(TaciturnError, match=message):
        tc.summary(fit)


@pytest.mark.slow
@pytest.mark.parametrize("effective_size", [None, 90.0])
def test_nuts_agrees_with_weights(effective_size, stratified, weights):
    sample, _ = stratified
    fast, nuts = (
        tc.assess(
            tc.MixedPoisson().fit(
                sample,
                population_size=2449,
                sampling_weights=weights,
                effective_size=effective_size,
                method=method,
                **QUICK | {"draws": 1500},
            )
        )
        for method in ("fast", "nuts")
    )
    assert ("share" in fast["posterior"]) == (effective_size is None)
    one, two = (fit["risk"]["R2"].values for fit in (fast, nuts))
    assert one.mean() == pytest.approx(two.mean(), abs=0.15 * two.std())
    assert one.std() == pytest.approx(two.std(), rel=0.15)


GOOD = table([[8, 2], [5, 0]])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sampling_weights": GOOD * 0.5}, TableError, "at least 1 for each individual sampled"),
        ({"sampling_weights": GOOD + 1.0}, TableError, "must be 0 where nobody was sampled: a=a1"),
        ({"sampling_weights": GOOD * np.inf}, TableError, "must be finite"),
        ({"sampling_weights": GOOD.sum("a") * 1.0}, TableError, "are over"),
        ({"sampling_weights": [[8.0, 2.0]]}, TableError, "must be a DataArray of numbers"),
        ({"sampling_weights": GOOD * 2.0, "effective_size": 16}, ParameterError, "effective_size"),
        ({"effective_size": 5}, ParameterError, "without sampling_weights"),
        ({"strata": table([50, 5], "a")}, TableError, "strata sum to 55"),
        ({"strata": table([91, 4], "a")}, TableError, "the size 4 of a=a1 is below the sample's 5"),
        (
            {"strata": table([50, 45], "a"), "known_margins": table([50, 45], "a")},
            ParameterError,
            "give one of known_margins, strata",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        tc.MixedPoisson().fit(GOOD, population_size=95, **given, **QUICK)


@pytest.mark.parametrize(
    "model", [tc.LinearPool(), tc.LatentClass(), tc.LogLinear(), tc.DirichletLogLinear()], ids=repr
)
def test_models_without_weights_say_so(model):
    with pytest.raises(ParameterError, match="cannot take sampling weights"):
        model.fit(GOOD, population_size=95, sampling_weights=GOOD * 2.0, **QUICK)
