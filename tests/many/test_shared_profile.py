"""Areas that share a profile: the compiled likelihood, populations of an area against
enumeration, and the chain against its PyMC twin."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import gammaln, logsumexp
from scipy.stats import chisquare, geom, ks_2samp, multinomial, nbinom

import taciturn as tc
from exact import assert_same_distribution, dirichlet_multinomial_pmf, tables
from shared_areas import ranks
from taciturn.errors import ParameterError, PriorError, TableError
from taciturn.many.seeds import rng_of
from taciturn.many.shared_profile.cells import _log_effect, log_probability
from taciturn.many.shared_profile.chain import Chain
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.shared_profile.kernels import (
    add_effects,
    fill_usual,
    log_with_outliers,
)
from taciturn.many.shared_profile.layout import Layout
from taciturn.many.shared_profile.moves import (
    _closer,
    _log_density,
    known_of_area,
    step_far,
    step_level,
    step_near,
)

LAYOUT = Layout({"a": 2, "b": 3}, np.ones(6, dtype=bool))


def test_effects_stand_where_their_categories_do():
    assert LAYOUT.levels.tolist() == [[0, 0, 0, 1, 1, 1], [2, 3, 4, 2, 3, 4]]
    assert list(LAYOUT.effects) == ["main_a", "main_b", "interactions"]
    shared = np.arange(11.0)
    parameters = {"main_a": 1.0, "main_b": 10.0, "interactions": 100.0}
    by_hand = [0 + 20 + 500, 0 + 30 + 600, 0 + 40 + 700, 1 + 20 + 800, 1 + 30 + 900, 1 + 40 + 1000]
    assert LAYOUT.profile(shared, parameters).tolist() == by_hand
    for name, (cells, starts) in LAYOUT.cells_of.items():
        where = LAYOUT.effects[name]
        for number in range(where.stop - where.start):
            own = cells[starts[number] : starts[number + 1]]
            moved = shared + np.eye(11)[where.start + number]
            changed = LAYOUT.profile(moved, parameters) - LAYOUT.profile(shared, parameters)
            assert sorted(own) == np.flatnonzero(changed).tolist()


def test_structural_zeros_have_no_part():
    layout = Layout({"a": 2, "b": 3}, np.array([True, True, False, True, True, True]))
    assert layout.cells == 5
    assert layout.levels.tolist() == [[0, 0, 1, 1, 1], [2, 3, 2, 3, 4]]


@pytest.mark.parametrize("nu", [0.3, 20.0, 1e9])
def test_counts_are_negative_binomial(nu):
    rng = np.random.default_rng(1)
    counts = rng.poisson(2.0, (5, 6)).astype(float)
    counts[0, 0] = 60.0
    effects, scales = rng.standard_normal((5, 6)), rng.random(5)
    profile = rng.standard_normal(6)
    shapes = nu * np.exp(0.4 * profile)
    sums, means = np.empty((6, 5)), np.empty((6, 5))
    add_effects(effects, scales, LAYOUT.levels, sums, means)
    found = log_probability(counts.T.copy(), sums, means, profile, np.log(shapes))
    tilts = effects[:, :1] + effects[:, 1:] * scales @ LAYOUT.members.T
    mean = np.exp(profile + tilts)
    exact = nbinom.logpmf(counts, shapes, shapes / (shapes + mean)).sum()
    nobody = nbinom.logpmf(0 * counts, shapes, shapes / (shapes + mean)).sum()
    others = log_probability(0 * counts.T, sums, means, profile, np.log(shapes))
    assert others == pytest.approx(nobody, rel=1e-6)
    assert found - gammaln(counts + 1).sum() == pytest.approx(exact, rel=1e-6)


def test_an_effect_moves_the_share_and_the_shape_of_its_cells():
    """Against the probability of all counts, with both moved by hand, and the prior."""
    rng = np.random.default_rng(6)
    counts = rng.poisson(2.0, (6, 5)).astype(float)
    sums, profile = rng.standard_normal((6, 5)), rng.standard_normal(6)
    log_shapes, slopes, now = rng.standard_normal(6), np.array([0.7, 0.4]), -0.3
    own = np.array([1, 3, 4])
    for tried in (-0.3, 0.9, -2.0):
        moved = np.isin(np.arange(6), own) * (tried - now)
        exact = log_probability(
            counts, sums, np.exp(sums), profile + 0.7 * moved, log_shapes + 0.4 * moved
        )
        before = log_probability(counts, sums, np.exp(sums), profile, log_shapes)
        found, at_now = (
            _log_effect(counts, sums, np.exp(sums), profile, log_shapes, own, slopes, now, at)
            for at in (tried, now)
        )
        prior = -0.5 * (tried**2 - now**2)
        assert found - at_now == pytest.approx(exact - before + prior, abs=1e-9)


def test_many_areas_with_counts_of_every_size():
    """More areas than factors whose logarithm can be taken at once, of means from
    1e-12 to 1e12."""
    rng = np.random.default_rng(4)
    sums = rng.uniform(-27.0, 27.0, (6, 800))
    counts = np.minimum(rng.poisson(np.exp(np.minimum(sums, 3.0))), 12).astype(float)
    profile, shapes = rng.normal(size=6), np.exp(rng.uniform(-3.0, 12.0, 6))
    found = log_probability(counts, sums, np.exp(sums), profile, np.log(shapes))
    mean, shape = np.exp(profile[:, None] + sums), shapes[:, None]
    exact = nbinom.logpmf(counts, shape, shape / (shape + mean)) + gammaln(counts + 1)
    assert found == pytest.approx(exact.sum(), rel=1e-9)


def test_a_cell_is_usual_or_an_outlier():
    """The sum over both of negative binomial and geometric probabilities."""
    rng = np.random.default_rng(7)
    profile, shapes, scales = rng.normal(size=6), np.exp(rng.normal(size=6)), np.full(5, 0.4)
    counts, effects = rng.poisson(2.0, (30, 6)).astype(float), rng.normal(size=(30, 6))
    effects[:, 0] = np.log(counts.sum(axis=1) / 6)
    counts[0, 0] = 2_000.0  # hardly possible without outliers
    chance, size = 0.01, 1.5
    outliers = LAYOUT.outliers({"outliers": chance, "outlier_size": size})
    usual, inverse = np.empty_like(counts), np.empty_like(counts)
    known = (profile, np.log(shapes), LAYOUT.levels, scales, outliers)
    fill_usual(counts, known, effects, usual, inverse)
    assert (inverse == 0).sum() == 1  # of the count that is hardly possible
    found = usual.sum() + log_with_outliers(counts, usual, inverse, effects, outliers)
    means = np.exp(profile + effects[:, :1] + 0.4 * effects[:, 1:] @ LAYOUT.members.T)
    largest = size * 6 * np.exp(effects[:, :1])
    as_usual = nbinom.logpmf(counts, shapes, shapes / (shapes + means))
    as_outlier = geom.logpmf(counts + 1, 1 / (1 + largest))
    exact = np.logaddexp(np.log1p(-chance) + as_usual, np.log(chance) + as_outlier).sum()
    assert found - gammaln(counts + 1).sum() == pytest.approx(exact, rel=1e-9)


def shared(
    profile: list[float], nu: float, power: float, scale: float, draws: int,
    outliers: tuple[float, float] = (1e-12, 1.0),
) -> Populations:  # fmt: skip
    layout = Layout({"a": 2, "b": 2}, np.ones(4, dtype=bool))
    x = np.tile(profile, (draws, 1))
    own = layout.outliers(dict(zip(("outliers", "outlier_size"), outliers, strict=True)))
    scales = np.full((draws, 4), scale)
    return Populations(x, np.log(nu) + power * x, scales, np.tile(own, (draws, 1)), layout)


def drawn(own: Populations, size: int, seed: int) -> np.ndarray:
    sample = np.array([[2, 0, 1, 0]])
    return own.draw(sample, np.array([size]), [rng_of(seed, "x")])[0] - sample


@pytest.mark.statistical
def test_without_effects_of_areas_populations_are_dirichlet_multinomial():
    """With factors that spread as Dirichlet's do, and without them."""
    profile = [0.3, -0.5, 0.1, 0.0]
    weights = 1.5 * np.exp(profile) + [2, 0, 1, 0]
    exact = {x: dirichlet_multinomial_pmf(x, weights) for x in tables(3, 4)}
    assert_same_distribution(drawn(shared(profile, 1.5, 1.0, 0.0, 40_000), 6, 1), exact)
    share = np.exp(profile) / np.exp(profile).sum()
    exact = {x: float(multinomial.pmf(x, 3, share)) for x in tables(3, 4)}
    assert_same_distribution(drawn(shared(profile, 1e8, 0.0, 0.0, 40_000), 6, 2), exact)


@pytest.mark.statistical
def test_effects_of_an_area_are_drawn_given_its_sample():
    """Against a million draws of everything from the model, weighted by the probability
    of the sample. Tolerance: five standard errors of both."""
    profile, nu, scale, chance, size = np.array([0.3, -0.5, 0.1, 0.0]), 2.0, 0.8, 0.1, 1.5
    rng = np.random.default_rng(3)
    effects = scale * rng.standard_normal((1_000_000, 4))
    members = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    shape = nu * np.exp(0.5 * profile)
    share = np.exp(profile + effects @ members.T) * rng.gamma(shape, size=effects.shape) / shape
    outlier = rng.random(share.shape) < chance
    share[outlier] = 4 * size * rng.exponential(size=outlier.sum())
    share /= share.sum(axis=1, keepdims=True)
    weight = share[:, 0] ** 2 * share[:, 2]
    exact = weight @ share / weight.sum()
    error = np.sqrt(((weight[:, None] * (share - exact)) ** 2).sum(axis=0)) / weight.sum()
    rows = drawn(shared(list(profile), nu, 0.5, scale, 20_000, (chance, size)), 1003, 4) / 1000
    own = rows.std(axis=0) / np.sqrt(len(rows) / 3)  # neighbouring draws are alike a little
    assert np.all(np.abs(rows.mean(axis=0) - exact) < 5 * np.hypot(error, own))


@pytest.mark.statistical
def test_populations_belong_to_what_areas_share_at_each_draw():
    """Of two areas with six people what they share differs a lot from draw to draw, and
    so do the effects that belong to it: those of the last draw were still there in the
    next, so that 24.4 % of populations had nobody in two of the three cells, where
    27.8 % have. Two million draws of everything from the model, weighted by the
    probability of both samples, give what is shared in independent draws, and the
    population with it. Tolerance: five standard errors of both."""
    rng, number, layout = np.random.default_rng(0), 2_000_000, Layout({"v": 3}, np.ones(3, bool))
    samples, column = np.array([[3, 1, 0], [0, 0, 2]]), (number, 1)
    profile = rng.standard_normal((number, 3)) * abs(2.5 * rng.standard_normal(column))
    log_shape = 1 + 2 * rng.standard_normal(column) + rng.random(column) * profile
    log_shape = np.clip(log_shape, -30, 30)
    chance, size = rng.beta(0.5, 7.5, column), np.exp(2 * rng.standard_normal(column))
    weight = np.ones(number)
    for sample in samples:
        # Gamma variates of small shapes underflow: theirs are those of one more, times
        # a power of a uniform one.
        shape = np.exp(log_shape)
        logs = profile + np.log(rng.gamma(shape + 1)) - rng.exponential(size=shape.shape) / shape
        logs -= log_shape
        exceptional = rng.random(logs.shape) < chance
        logs = np.where(exceptional, np.log(3 * size * rng.exponential(size=logs.shape)), logs)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        weight *= np.prod(share**sample, axis=1)
    at = rng.choice(number, 40_000, p=weight / weight.sum())
    exact = (rng.multinomial(6, share[at])[:, 2] == 6).mean()
    level = logsumexp(profile[at], axis=1, keepdims=True)
    outlier = layout.outliers({"outliers": chance[at, 0], "outlier_size": size[at, 0]})
    outlier -= level * [0, 0, 1]
    areas = Populations(profile[at] - level, log_shape[at], np.zeros((len(at), 3)), outlier, layout)
    rows = areas.draw(samples[1:], np.array([8]), [rng_of(5, "x")])[0, :, 2] == 8
    error = np.sqrt(exact * (1 - exact) / len(at))
    assert abs(rows.mean() - exact) < 5 * np.hypot(error, error * np.sqrt(3))  # alike a little


@pytest.mark.statistical
def test_an_area_moves_between_a_large_cell_of_its_categories_and_an_outlier():
    """What areas share is as 60 generated areas had it, and this one departs from that
    a lot: cells of 9 and 5 people are outliers, or large as their categories are. Steps
    around one mode stay there: 1,000 populations were worth 100 of this seed. Against a
    million draws from the model, weighted. Tolerance: five standard errors of both."""
    layout = Layout({"a": 3, "b": 4}, np.ones(12, dtype=bool))
    sample = np.array([0, 1, 0, 9, 0, 5, 0, 1, 0, 0, 0, 0])
    profile = np.array(
        [-5.1, -4.88, -5.5, -0.21, -4.06, -4.07, -4.53, -2.6, -4.9, -7.29, -5.64, -3.62]
    )
    log_shape = np.array([2.1, 1.9, 2.0, 4.3, 2.6, 2.2, 2.4, 3.2, 2.2, 0.7, 1.9, 2.7])
    outlier = np.array([-3.62, -0.03, -0.86])
    rng, scale = np.random.default_rng(3), np.repeat([1.0, 0.85], [3, 4])
    sums = np.zeros(5)
    for _ in range(20):
        effects = scale * rng.standard_normal((50_000, 7))
        share = np.exp(profile + effects @ layout.members.T)
        share *= rng.gamma(np.exp(log_shape), size=share.shape) / np.exp(log_shape)
        exceptional = rng.random(share.shape) < np.exp(outlier[0])
        share[exceptional] = np.exp(outlier[2]) * rng.exponential(size=exceptional.sum())
        share /= share.sum(axis=1, keepdims=True)
        weight = np.exp(np.log(share[:, sample > 0]) @ sample[sample > 0] + 20)
        own, square = share[:, 3], weight**2
        sums += [weight.sum(), weight @ own, square.sum(), square @ own, square @ own**2]
    exact = sums[1] / sums[0]
    error = np.sqrt(sums[4] - 2 * exact * sums[3] + exact**2 * sums[2]) / sums[0]
    rows = [np.tile(each, (1000, 1)) for each in (profile, log_shape, scale, outlier)]
    areas = Populations(*rows, layout)
    given = np.tile(sample, (16, 1)), np.full(16, 10_000)
    found = areas.draw(*given, [rng_of(1, str(number)) for number in range(16)])[:, :, 3] / 10_000
    means = found.mean(axis=1)
    assert abs(means.mean() - exact) < 5 * np.hypot(error, means.std(ddof=1) / 4)
    assert found.var() / means.var(ddof=1) > 400


def areas(seed: int = 5, number: int = 8) -> xr.DataArray:
    rng = np.random.default_rng(seed)
    share = np.exp(rng.standard_normal(6) + 0.5 * rng.standard_normal((number, 6)))
    share /= share.sum(axis=1, keepdims=True)
    counts = np.array(
        [rng.multinomial(size, row) for size, row in zip(range(5, 77, 9), share, strict=True)]
    )
    coords = {"area": [f"A{k}" for k in range(number)]}
    return xr.DataArray(counts.reshape(number, 2, 3), dims=("area", "a", "b"), coords=coords)


def started(seed):
    """A chain at values that are drawn from the prior."""
    priors, rng = tc.SharedProfile().priors_for(LAYOUT), np.random.default_rng(seed)
    chain = Chain(areas().values.reshape(8, 6).astype(float), LAYOUT, priors, rng)
    chain.warming = False
    for name, prior in priors.items():
        chain.parameters[name] = prior.quantile(rng.random())
    chain.shared[:] = rng.standard_normal(len(chain.shared))
    chain.spreads[:] = rng.standard_normal(len(chain.spreads))
    return chain


def test_a_level_moves_and_what_counts_depend_on_stays():
    for seed in range(20):
        chain = started(seed)
        chain._add_effects()
        before = chain.shared.copy()
        expected = state(chain)
        chain._level()
        assert not np.allclose(chain.shared[:5], before[:5])
        np.testing.assert_allclose(state(chain), expected, rtol=1e-9, atol=1e-9)


def state(chain):
    """Logarithms of means, shapes and the means of outliers."""
    profile, levels = chain.profile, chain.effects[:, :1]
    outlier = levels + np.log(chain.parameters["outlier_size"])
    shapes = chain._free_log_shapes(profile)[None]
    return np.concatenate([levels + profile, np.tile(shapes, (8, 1)), outlier], axis=1)


def test_a_scale_moves_with_its_level_as_the_prior_has_it():
    """From draws of the prior to draws of it: 4,000 chains, a Kolmogorov-Smirnov test
    at 1e-6 for each of the parameters, the level and a difference."""
    before, after = [], []
    for seed in range(4_000):
        chain = started(seed)
        own = chain.shared[LAYOUT.effects["main_b"]]
        following = {"nu": -chain.parameters["power"], "outlier_size": 1.0}
        for found in (before, after):
            if found is after:
                chain._move_scale_and_level("main_b", own, following)
            values = [np.log(chain.parameters[k]) for k in ("main_b", "nu", "outlier_size")]
            found.append([*values, own.mean(), own[0] - own[1]])
    moved = np.abs(np.subtract(before, after))
    assert (moved[:, 0] > 1e-6).mean() > 0.99
    for one, other in zip(np.transpose(before), np.transpose(after), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-6


@pytest.mark.slow
def test_the_chain_agrees_with_nuts():
    """Means of all parameters of both within five Monte Carlo errors."""
    import arviz as az
    import pymc as pm

    estimator = tc.SharedProfile(draws=2000, chains=2)
    table = areas()
    learned = estimator.learn(
        table.values.reshape(8, 6), LAYOUT, seed=1, workers=2, progressbar=False
    )
    with estimator.build(table, over="area"):
        trace = pm.sample(
            2000, tune=2000, chains=2, cores=1, random_seed=1, progressbar=False,
            target_accept=0.98, nuts_sampler="nutpie",
        )  # fmt: skip
    for name in (
        "power",
        "main_a",
        "main_b",
        "interactions",
        "tilt_a",
        "tilt_b",
        "spread_a",
        "spread_b",
    ):
        ours, theirs = learned.posterior[name].values, trace["posterior"][name].values
        errors = [x.std() / np.sqrt(float(az.ess(x))) for x in (ours, theirs)]
        assert abs(ours.mean() - theirs.mean()) < 5 * np.hypot(*errors), name
    for name in ("nu", "outliers", "outlier_size"):
        logs = [np.log(x[name].values) for x in (learned.posterior, trace["posterior"])]
        errors = [x.std() / np.sqrt(float(az.ess(x))) for x in logs]
        assert abs(logs[0].mean() - logs[1].mean()) < 5 * np.hypot(*errors), name
    shares = [np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True)) for x in (
        learned.posterior["profile"].values, trace["posterior"]["profile"].values)]  # fmt: skip
    for cell in range(6):
        own = [x[..., cell] for x in shares]
        errors = [x.std() / np.sqrt(float(az.ess(x))) for x in own]
        assert abs(own[0].mean() - own[1].mean()) < 5 * np.hypot(*errors), cell


@pytest.mark.statistical
def test_ranks_are_uniform():
    """Simulation-based calibration: the rank of what areas share, and of the risk of an
    area, among draws given data made from them. 100 data sets, chi-square of five bins
    at 1e-6 each."""
    every = [ranks(seed) for seed in range(100)]
    for name in every[0]:
        found = np.bincount([rank[name] * 5 // 100 for rank in every], minlength=5)
        assert chisquare(found).pvalue > 1e-6, (name, found)


def test_arguments_are_checked():
    with pytest.raises(ParameterError, match="areas must be"):
        tc.SharedProfile(areas=0)
    prior = {"kappa": tc.Prior("HalfNormal", sigma=1)}
    with pytest.raises(PriorError, match="kappa"):
        tc.SharedProfile(priors=prior).build(areas(), over="area")
    with pytest.raises(TableError, match="the sample of area=A0 is empty"):
        tc.SharedProfile().build(areas() * (areas()["area"] != "A0"), over="area")
    assert repr(tc.SharedProfile(areas=9)) == "SharedProfile(areas=9)"


def test_angles_close_in_on_where_the_ellipse_began():
    rng = np.random.default_rng(1)
    for _ in range(100):
        high = angle = 2 * np.pi * rng.random()
        low = high - 2 * np.pi
        for _ in range(20):
            before = angle
            angle, low, high = _closer(angle, low, high, rng)
            assert low <= 0.0 <= high
            assert low <= angle <= high
            assert before in (low, high)
        assert high - low < 0.2 * np.pi


@pytest.mark.parametrize("step", ["near", "far", "level"])
def test_steps_of_an_area_leave_its_density(step):
    """One cell for each of two categories: the level of the area, and the effect of a
    category, against sums over a grid. Of 20,000 steps, with a tolerance of 0.06 of the
    spread."""
    layout = Layout({"v": 2}, np.ones(2, dtype=bool))
    profile, log_shape = np.array([-0.5, -0.9]), np.array([1.0, 0.3])
    outlier = layout.outliers({"outliers": 0.05, "outlier_size": 1.5})
    shared = (profile, log_shape, layout.levels, np.array([0.8, 0.8]), outlier)
    given = known_of_area(np.array([6.0, 1.0]), shared, np.exp(profile), np.exp(log_shape))
    mode, root = np.array([1.5, 0.2, -0.2]), np.diag([1.2, 1.0, 1.0])
    rng, effects, drawn = np.random.default_rng(3), np.array([1.0, 0.2, -0.3]), []
    for _ in range(20_000):
        if step == "near":
            step_near(given, effects, mode, root, 4, rng)
        else:
            if step == "far":
                step_far(given, effects, 4, rng)
            step_level(given, effects, rng)
        drawn.append(effects.copy())
    levels = np.linspace(-25, 12, 371)
    wide = np.linspace(-4.5, 4.5, 46)
    first, second = (effects[1:2], effects[2:]) if step == "level" else (wide, wide)
    height = np.array(
        [
            [[_log_density(given, np.array([x, a, b])) for b in second] for a in first]
            for x in levels
        ]
    )
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    drawn = np.array(drawn)
    own = [(levels, weight.sum(axis=(1, 2))), (first, weight.sum(axis=(0, 2)))]
    moving = 1 if step == "level" else 2
    for (grid, chance), found in zip(own[:moving], drawn.T[:moving], strict=True):
        mean = chance @ grid
        spread = (chance @ (grid - mean) ** 2) ** 0.5
        assert abs(found.mean() - mean) < 0.06 * spread
        assert found.std() == pytest.approx(spread, rel=0.06)
