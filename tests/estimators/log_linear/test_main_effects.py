"""The compiled posterior of the Dirichlet-multinomial log-linear model with main
effects against its formula, and its proposals against each other."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import gammaln

from taciturn.estimators.log_linear.importance import kappa_prior, known_of
from taciturn.estimators.log_linear.posterior import log_posteriors
from taciturn.estimators.log_linear.proposals import find_proposals, propose
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import make_problem

CASES = [
    ("ab", {}),
    ("ab", {"zeros": True}),
    ("a", {}),
    ("", {}),
    ("ab", {"known": "a"}),
    ("ab", {"known": "ac"}),
    ("abc", {"known": "bc", "zeros": True}),
    ("c", {"known": "a", "zeros": True}),
]


def case(dims, *, zeros=False, known=""):
    """A sample of a table of three variables, and priors of its margins."""
    rng = np.random.default_rng(len(dims) + 7 * zeros)
    shape = {"a": 3, "b": 2, "c": 4}
    impossible = (rng.random(24) < 0.3) & zeros
    population = rng.multinomial(400, rng.dirichlet(np.where(impossible, 1e-9, 0.7)))
    population[impossible] = 0
    counts = rng.multivariate_hypergeometric(population, 60)
    coords = {dim: [f"{dim}{i}" for i in range(size)] for dim, size in shape.items()}

    def table(values):
        return xr.DataArray(np.reshape(values, tuple(shape.values())), coords=coords)

    margins = table(population).sum([dim for dim in shape if dim not in known])
    problem = make_problem(
        table(counts), 400, table(impossible) if zeros else None, margins if known else None
    )
    priors = {f"margin_{dim}": Prior("Dirichlet", a=0.5 + 0.5 * (dim != "a")) for dim in dims}
    return problem, {"kappa": Prior("Gamma", alpha=2.0, beta=0.05), **priors}


def shares(problem, dims, margins):
    """Of all cells, 0 at structural zeros."""
    found = xr.ones_like(problem.sample, dtype=float)
    for dim, margin in zip(dims, margins, strict=True):
        found = found * xr.DataArray(margin, dims=dim)
    found = found.where(problem.fillable, 0.0)
    return found / found.sum()


def log_formula(problem, dims, priors, kappa, margins):
    """Density of log κ and the margins, cell by cell."""
    own = kappa * shares(problem, dims, margins).transpose(*problem.variables)
    n, rest = problem.sample_size, problem.population_size - problem.sample_size
    seen = problem.sample.values > 0
    a, f = own.values[seen], problem.sample.values[seen]
    value = (gammaln(a + f) - gammaln(a)).sum() + gammaln(kappa) - gammaln(kappa + n)
    if problem.known_margins is not None:
        over = [dim for dim in problem.variables if dim not in problem.known_margins.dims]
        sampled = problem.sample.sum(over)
        left = (problem.known_margins - sampled).values
        b = (own.sum(over) + sampled).transpose(*problem.known_margins.dims).values[left > 0]
        value += (gammaln(b + left[left > 0]) - gammaln(b)).sum()
        value += gammaln(kappa + n) - gammaln(kappa + n + rest)
    value += priors["kappa"].logpdf(np.array(kappa)) + np.log(kappa)
    for dim, margin in zip(dims, margins, strict=True):
        value += (priors[f"margin_{dim}"].parameters["a"] - 1) * np.log(margin).sum()
    return float(value)


@pytest.mark.parametrize(("dims", "given"), CASES)
def test_the_posterior_is_its_formula(dims, given):
    """Up to one constant."""
    problem, priors = case(dims, **given)
    rng, rows = np.random.default_rng(1), 40
    kappa = np.exp(rng.normal(3, 2, rows))
    margins = [rng.dirichlet(np.ones(problem.sizes[dim]), rows) for dim in dims]
    known, prior = known_of(problem, list(dims), priors), kappa_prior(priors["kappa"])
    logs = np.log(np.concatenate([*margins, np.empty((rows, 0))], axis=1))
    found = log_posteriors(kappa, logs, known, prior)
    expected = [
        log_formula(problem, dims, priors, kappa[k], [margin[k] for margin in margins])
        for k in range(rows)
    ]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-8)


@pytest.mark.parametrize(("dims", "given"), CASES)
def test_weights_are_the_posterior_over_the_proposals(dims, given):
    """The mean of the weights is the same integral, however proposals are spread: those
    that the sample shapes, and those of another sample."""
    problem, priors = case(dims, **given)
    known, prior = known_of(problem, list(dims), priors), kappa_prior(priors["kappa"])
    own, rng = find_proposals(known, prior), np.random.default_rng(2)
    log_kappa, heights, shapes = own
    other = (log_kappa, 0.5 * heights + 0.5 / len(heights), np.sqrt(shapes))
    means, errors, reference = [], [], None
    for proposals in (own, other):
        kappa, logs, log_proposal = propose(known, proposals, 40_000, rng)
        log_weights = log_posteriors(kappa, logs, known, prior) - log_proposal
        assert kappa.min() > 0
        for start, stop in zip(known.starts[:-1], known.starts[1:], strict=True):
            np.testing.assert_allclose(np.exp(logs[:, start:stop]).sum(axis=1), 1.0)
        reference = log_weights.max() if reference is None else reference
        weights = np.exp(log_weights - reference)
        means.append(weights.mean())
        errors.append(weights.std() / 200)
    assert abs(means[0] - means[1]) < 5 * np.hypot(*errors)
    assert errors[0] < 0.02 * means[0]
