"""The PyMC model of latent classes: its density against a slow twin and the kernels of
the departures, its prior against the distributions it stands for, and NUTS against
enumeration and the collapsed Gibbs sampler."""

from functools import cache
from itertools import permutations, product
from math import exp, lgamma, log, prod

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import integrate, stats

import taciturn as tc
from interpreted import INTERPRETED, interpreted
from taciturn.errors import PriorError, TableError
from taciturn.estimators.latent_class.kernels import log_of_departures
from taciturn.estimators.latent_class.model import number_of_classes
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters, SamplerSettings

COUNTS = np.array([[[3, 0], [0, 1], [1, 0]], [[0, 2], [0, 4], [0, 0]]])
ZEROS = np.zeros_like(COUNTS, dtype=bool)
ZEROS[0, 0, 1] = ZEROS[1, 2, 0] = True
FEW = {"concentration": tc.Prior("Uniform", lower=0.1, upper=0.5)}
"""A prior for which there are few classes."""


def table(counts) -> xr.DataArray:
    return xr.DataArray(counts, dims=("a", "b", "c")[: np.ndim(counts)])


def fixed(**values: float) -> dict[str, tc.Prior]:
    """Priors that hold parameters at values, as good as."""
    return {name: tc.Prior("LogNormal", mu=log(x), sigma=1e-3) for name, x in values.items()}


# ---- density


class Twin:
    """The model's density by definition, one class, cell and factor at a time."""

    def __init__(self, estimator: tc.LatentClass, zeros) -> None:
        sample = table(COUNTS)
        zeros = None if zeros is None else table(zeros)
        self.problem = make_problem(sample, 90, zeros)
        self.priors = estimator.priors_for(self.problem)
        self.model = estimator.build(sample, 90, structural_zeros=zeros)
        self.start = self.model.initial_point()
        self.density = pytensor.function(
            self.model.value_vars, self.model.logp(jacobian=False), mode=INTERPRETED
        )

    def point(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Random values of all parameters, as they are in the model."""
        found = {}
        for variable in self.model.free_RVs:
            shape = self.start[self.model.rvs_to_values[variable].name].shape
            x = rng.standard_normal(shape)
            if variable.name == "concentration":
                x = 0.1 + 0.4 / (1 + np.exp(-x))
            elif variable.name == "power":
                x = 1 / (1 + np.exp(-x))
            elif "gamma" not in variable.name and variable.name != "log_relative_intensity":
                x = np.exp(x)
            found[variable.name] = x
        return found

    def log_density(self, point) -> float:
        given = []
        for variable in self.model.free_RVs:
            x = point[variable.name]
            if variable.name == "concentration":
                x = np.log((x - 0.1) / (0.5 - x))
            elif variable.name == "power":
                x = np.log(x / (1 - x))
            elif "gamma" not in variable.name and variable.name != "log_relative_intensity":
                x = np.log(x)
            given.append(x)
        return float(self.density(*given))

    def shares(self, point) -> np.ndarray:
        weight, left = [], 1.0
        for e in point["stick"]:
            v = 1 - exp(-e / point["concentration"])
            weight.append(left * v)
            left *= 1 - v
        weight.append(left)
        cells = np.zeros(COUNTS.shape)
        for h, w in enumerate(weight):
            profiles = []
            for dim, d in zip("abc", COUNTS.shape, strict=True):
                a = point[f"profile_{dim}"] / d
                rates = []
                for z, f in zip(point[f"gamma_{dim}"][h], point[f"fading_{dim}"][h], strict=True):
                    gamma = (a + 1) * exp(z / (a + 1) ** 0.5)
                    rates.append(gamma * exp(-f) ** (1 / a))
                profiles.append(np.array(rates) / sum(rates))
            for x in product(*map(range, COUNTS.shape)):
                cells[x] += w * prod(p[i] for p, i in zip(profiles, x, strict=True))
        cells[~self.problem.fillable] = 0.0
        return cells / cells.sum()

    def log_prior(self, point) -> float:
        value = sum(float(prior.logpdf(point[name])) for name, prior in self.priors.items())
        for name, x in point.items():
            if name == "stick" or name.startswith("fading"):
                value += stats.expon.logpdf(x).sum()
            elif name.startswith("gamma"):
                (dim,) = name.removeprefix("gamma_")
                k = point[f"profile_{dim}"] / COUNTS.shape["abc".index(dim)] + 1
                gamma = k * np.exp(x / k**0.5)
                value += (stats.gamma(k).logpdf(gamma) + np.log(gamma / k**0.5)).sum()
        return value

    def log_likelihood(self, point) -> float:
        inside = self.problem.fillable
        f, pi = COUNTS[inside], self.shares(point)[inside]
        if "nu" not in point:
            return float(stats.multinomial.logpmf(f, f.sum(), pi))
        shapes = point["nu"] * (1 + inside.sum() * pi) ** point["power"]
        means = f.sum() * exp(point["log_relative_intensity"]) * pi
        return sum(log(chance(*cell)) for cell in zip(f, means, shapes, strict=True))


def chance(count: int, mean: float, shape: float) -> float:
    """Of a Poisson count with an inverse Gaussian factor, integrated over its
    logarithm."""
    factor, poisson = stats.invgauss(mu=1 / shape, scale=shape), stats.poisson

    def density(x: float) -> float:
        return factor.pdf(exp(x)) * poisson.pmf(count, mean * exp(x)) * exp(x)

    return integrate.quad(density, -40, 12, points=[-3, -1, 0, 1, 2, 3], limit=500)[0]


@pytest.mark.parametrize("zeros", [None, ZEROS], ids=["all cells", "structural zeros"])
@pytest.mark.parametrize("departures", [False, True])
@interpreted
def test_the_density_is_that_of_a_slow_twin(departures, zeros) -> None:
    twin = Twin(tc.LatentClass(FEW, departures=departures), zeros)
    rng = np.random.default_rng(1)
    for _ in range(4):
        point = twin.point(rng)
        expected = twin.log_prior(point) + twin.log_likelihood(point)
        assert twin.log_density(point) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("zeros", [None, ZEROS], ids=["all cells", "structural zeros"])
@interpreted
def test_given_the_shares_departures_are_those_of_the_second_step(zeros) -> None:
    """Differences of the density between values of ν, the power and the intensity, and
    of the probability by which the package's own chain draws them."""
    twin = Twin(tc.LatentClass(FEW), zeros)
    rng = np.random.default_rng(2)
    point = twin.point(rng)
    inside = twin.problem.fillable
    f, pi = COUNTS[inside].astype(float), twin.shares(point)[inside]
    ours, theirs = [], []
    for nu, power, relative in [(0.1, 0.5, 0.0), (1.0, 0.0, 0.4), (30.0, 1.0, -0.7), (4, 0.2, 2)]:
        moved = {
            "nu": nu,
            "power": power + 1e-9 * (1 - 2 * power),
            "log_relative_intensity": relative,
        }
        here = point | {name: np.asarray(float(x)) for name, x in moved.items()}
        priors = sum(float(twin.priors[name].logpdf(here[name])) for name in ("nu", "power"))
        ours.append(twin.log_density(here) - priors)
        tried, out = np.array([[log(nu), power, log(f.sum()) + relative]]), np.zeros(1)
        log_of_departures(f, np.ones(len(f)), np.log(pi), len(f), tried, out)
        theirs.append(out[0])
    assert np.ptp(theirs) > 1
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=1e-6)


@interpreted
def test_with_next_to_no_departures_counts_are_multinomial() -> None:
    """Over all intensities, with a density of 1 over the intensity: 1 / n times the
    probability without departures."""
    twin, plain = Twin(tc.LatentClass(FEW), ZEROS), Twin(tc.LatentClass(FEW, False), ZEROS)
    point = twin.point(np.random.default_rng(4)) | {"nu": np.asarray(1e9)}
    own = {name: point[name] for name in plain.point(np.random.default_rng(4))}
    step, n, total = 0.02, COUNTS.sum(), 0.0
    for relative in np.arange(-4, 3, step):
        here = point | {"log_relative_intensity": np.asarray(relative)}
        total += exp(twin.log_density(here) - twin.log_prior(here)) * step
    assert log(total) == pytest.approx(plain.log_likelihood(own) - log(n), abs=1e-5)


# ---- prior


@interpreted
def test_weights_and_profiles_have_their_distributions() -> None:
    """Kolmogorov-Smirnov tests of 2,000 draws from the prior, of which right ones fail
    once in 100,000 each: of the first break, and of one share of each variable."""
    priors = fixed(concentration=0.8, profile_a=0.3, profile_b=6.0)
    model = tc.LatentClass(priors, departures=False).build(table(COUNTS.sum(axis=2)), 90)
    names = ("weight", "share_a", "share_b")
    weight, a, b = pm.draw(
        [model[name] for name in names], draws=2_000, random_seed=3, mode=INTERPRETED
    )
    np.testing.assert_allclose(weight.sum(axis=1), 1)
    second = weight[:, 1] / weight[:, 1:].sum(axis=1)
    for values, law in (
        (weight[:, 0], stats.beta(1, 0.8)),
        (second, stats.beta(1, 0.8)),
        (a[:, 0, 1], stats.beta(0.15, 0.15)),
        (b[:, -1, 0], stats.beta(2, 4)),
    ):
        assert stats.kstest(values, law.cdf).pvalue > 1e-5


@pytest.mark.parametrize(
    ("prior", "classes"),
    [
        (tc.Prior("Gamma", alpha=0.25, beta=0.25), 38),
        (tc.Prior("Uniform", lower=0, upper=1), 11),
        (tc.Prior("LogNormal", mu=-40, sigma=1), 2),
        (tc.Prior("LogNormal", mu=9, sigma=1), 100),
        (tc.Prior("LogNormal", mu=0, sigma=500), 100),
    ],
    ids=str,
)
def test_there_are_as_many_classes_as_the_concentration_asks_for(prior, classes) -> None:
    assert number_of_classes(prior) == classes
    likely = prior.quantile(0.95)
    if 2 < classes < 100:
        left = likely / (1 + likely)
        assert left ** (classes - 1) < 1e-3 < left ** (classes - 2)


def test_priors_are_replaced_by_name() -> None:
    sample = table(COUNTS)
    priors = {"profile_b": tc.Prior("Exponential", lam=0.25), **FEW}
    model = tc.LatentClass(priors).build(sample, 90)
    found = pm.logp(model["profile_b"], 2.0).eval({}, mode=INTERPRETED)
    assert found == pytest.approx(log(0.25) - 0.5)
    assert model.named_vars_to_dims["share_b"] == ("class", "b")
    every = {"concentration", "nu", "power", "profile_a", "profile_b", "profile_c"}
    assert every == set(tc.LatentClass().priors_for(make_problem(sample, 90)))
    assert every | {"intensity", "weight", "share_a"} <= set(model.named_vars)
    half = tc.Prior("HalfNormal", sigma=1)
    with pytest.raises(PriorError, match="the parameters of this model are concentration"):
        tc.LatentClass({"alpha": half}).build(sample, 90)
    with pytest.raises(PriorError, match="given for \\['nu'\\]"):
        tc.LatentClass({"nu": half}, departures=False).build(sample, 90)


@pytest.mark.parametrize("name", ["stick", "class", "gamma_b", "weight"])
def test_names_that_clash(name) -> None:
    with pytest.raises(TableError, match=f"'{name}' has the name of a parameter"):
        tc.LatentClass().build(table(COUNTS).rename(a=name), 90)


@interpreted
def test_a_variable_with_one_category() -> None:
    model = tc.LatentClass(FEW, departures=False).build(table([[3, 1, 0]]), 90)
    start = model.initial_point()
    assert np.isfinite(model.compile_logp(mode=INTERPRETED)(start))


# ---- posterior


def sampled(model: pm.Model) -> xr.Dataset:
    with model:
        trace = pm.sample(
            1000, tune=1000, chains=4, cores=1, random_seed=1, progressbar=False,
            target_accept=0.95, nuts_sampler="nutpie",
        )  # fmt: skip
    return trace["posterior"].to_dataset()


def shares_of(posterior: xr.Dataset) -> np.ndarray:
    """Shares of all cells, (chain, draw, cells)."""
    dims = [str(name)[6:] for name in posterior.data_vars if str(name).startswith("share_")]
    parts = [posterior[f"share_{dim}"] for dim in dims]
    cells = xr.dot(posterior["weight"], *parts, dim="class").transpose("chain", "draw", *dims)
    return cells.values.reshape(*cells.shape[:2], -1)


def error(values: np.ndarray) -> float:
    return float(values.std() / np.sqrt(float(az.ess(values))))


SMALL = np.array([[2, 0, 1], [0, 1, 1]])
ALPHA, PROFILES = 0.8, (0.7, 1.5)


@cache
def chance_of_sizes(sizes: tuple[int, ...], classes: int | None) -> float:
    """Of a division into classes of these sizes: by a stick that is broken up to a
    number of classes, or without end."""
    n = sum(sizes)
    if classes is None:
        told = len(sizes) * log(ALPHA) + sum(map(lgamma, sizes))
        return exp(told + lgamma(ALPHA) - lgamma(ALPHA + n))
    total = 0.0
    for labels in permutations(range(classes), len(sizes)):
        own = dict(zip(labels, sizes, strict=True))
        value, after = 0.0, n
        for h in range(max(labels) + 1 if max(labels) < classes - 1 else classes - 1):
            at = own.get(h, 0)
            after -= at
            value += log(ALPHA) + lgamma(1 + at) + lgamma(ALPHA + after)
            value -= lgamma(1 + ALPHA + at + after)
        total += exp(value)
    return total


def divisions(n: int):
    """All divisions of n individuals into classes, as labels in order of appearance."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*labels, x) for labels in found for x in range(max(labels) + 2)]
    return found


def evidence(cells, classes) -> float:
    """Probability of the cells of individuals, one after the other."""
    total = 0.0
    for labels in divisions(len(cells)):
        value = 0.0
        for label in set(labels):
            own = [x for x, other in zip(cells, labels, strict=True) if other == label]
            for j, (d, b) in enumerate(zip(SMALL.shape, PROFILES, strict=True)):
                counts = np.bincount([x[j] for x in own], minlength=d)
                value += lgamma(b) - lgamma(b + len(own))
                value += sum(lgamma(b / d + c) - lgamma(b / d) for c in counts)
        sizes = tuple(sorted(labels.count(label) for label in set(labels)))
        total += exp(value) * chance_of_sizes(sizes, classes)
    return total


def exact_shares(classes: int | None) -> np.ndarray:
    """Expected shares of all cells: the chances of the next individual."""
    every = list(product(range(2), range(3)))
    cells = [cell for cell in every for _ in range(int(SMALL[cell]))]
    chances = np.array([evidence([*cells, cell], classes) for cell in every])
    np.testing.assert_allclose(chances.sum(), evidence(cells, classes), rtol=1e-9)
    return chances / chances.sum()


PRIORS = fixed(concentration=ALPHA, profile_a=PROFILES[0], profile_b=PROFILES[1])


def test_classes_that_are_left_out_hardly_matter() -> None:
    """Expected shares with a stick that is broken in 10, and without end."""
    classes = number_of_classes(PRIORS["concentration"])
    assert classes == 10
    away = np.abs(exact_shares(classes) - exact_shares(None)).max()
    assert 0 < away < 1e-5


@pytest.mark.slow
def test_nuts_gives_what_enumeration_gives() -> None:
    """Expected shares, 4.5 Monte Carlo errors of which are exceeded once in 20,000."""
    found = shares_of(sampled(tc.LatentClass(PRIORS, departures=False).build(table(SMALL), 50)))
    errors = np.array([error(found[..., cell]) for cell in range(6)])
    assert (errors < 0.006).all()
    np.testing.assert_array_less(np.abs(found.mean(axis=(0, 1)) - exact_shares(None)), 4.5 * errors)


OTHERS = {
    "three variables": ([[[6, 1], [0, 2], [1, 0]], [[0, 3], [2, 9], [0, 4]]], None),
    "structural zeros": ([[7, 0, 1], [0, 5, 0], [1, 0, 3]], [[0, 0, 0], [1, 0, 0], [0, 0, 0]]),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_nuts_agrees_with_the_collapsed_sampler(name) -> None:
    """Without departures, means and mean squares of what does not depend on the order
    of classes: shares of all cells, the log-likelihood, τ1 and the coverage that they
    imply, and R2. 4.5 Monte Carlo errors, which one in 150,000 exceeds."""
    counts, zeros = OTHERS[name]
    sample = table(counts)
    zeros = None if zeros is None else table(zeros) == 1
    estimator, problem = tc.LatentClass(departures=False), make_problem(sample, 200, zeros)
    model = estimator.build(sample, 200, structural_zeros=zeros)
    settings = SamplerSettings(1000, 1000, 4, 1, False, "fast")
    collapsed = estimator.learn_fast(problem, settings, np.random.default_rng(1)).posterior
    told = []
    for posterior in (sampled(model), collapsed):
        shares = shares_of(posterior) * problem.fillable.ravel()
        shares /= shares.sum(axis=-1, keepdims=True)
        alone = shares[..., problem.counts == 1]
        drawn = estimator.draw_population(
            problem, settings, Parameters(posterior), np.random.default_rng(2)
        )
        tables = problem.draws(drawn, 4, "population")
        risk = tc.disclosure_risk(tables, sample, where=~problem.structural_zeros)
        told.append(
            {
                **{f"share {k}": shares[..., k] for k in np.flatnonzero(problem.fillable)},
                "likelihood": np.log(shares[..., problem.occupied])
                @ problem.counts[problem.occupied],
                "tau1": ((1 - alone) ** (200 - problem.sample_size)).sum(axis=-1),
                "coverage": shares[..., problem.occupied].sum(axis=-1),
                "R2": risk["R2"].values,
            }
        )
    for key, first in told[0].items():
        for own, other in ((first, told[1][key]), (first**2, told[1][key] ** 2)):
            assert abs(own.mean() - other.mean()) < 4.5 * np.hypot(error(own), error(other)), key
    assert min(float(az.ess(x)) for x in told[0].values()) > 400
