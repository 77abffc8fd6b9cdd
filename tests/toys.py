"""Estimators whose draws are known in advance, importable by the workers of a study."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import xarray as xr

from taciturn.errors import EstimationError
from taciturn.estimators import BayesianEstimator, Estimator, Parameters, Prior, PriorDraws


@dataclass(frozen=True)
class Scripted(Estimator):
    """Puts everybody unsampled into one cell: the draws alternate between the given
    cells."""

    cells: tuple[int, ...] = (0,)
    title: ClassVar[str] = "scripted"

    def learn(self, problem, settings, seed):
        return Parameters()

    def draw_population(self, problem, settings, parameters, rng):
        out = np.tile(problem.counts, (settings.chains * settings.draws, 1))
        for i in range(len(out)):
            out[i, self.cells[i % len(self.cells)]] += problem.population_size - problem.sample_size
        return out

    draw_replicates = draw_population


@dataclass(frozen=True)
class Truth(Scripted):
    """Knows the population."""

    population: Mapping[str, int] = field(default_factory=dict)

    def draw_population(self, problem, settings, parameters, rng):
        return np.tile(list(self.population.values()), (settings.chains * settings.draws, 1))


@dataclass(frozen=True)
class Refuses(Scripted):
    """Has no solution for samples with nobody in the first cell."""

    def learn(self, problem, settings, seed):
        if problem.counts[0] == 0:
            raise EstimationError("nobody in the first cell")
        return Parameters()


@dataclass(frozen=True)
class Slow(Scripted):
    """Takes its time."""

    seconds: float = 30.0

    def learn(self, problem, settings, seed):
        time.sleep(self.seconds)
        return Parameters()


@dataclass(frozen=True)
class Coins(BayesianEstimator):
    """Cell probabilities uniform on [0, 1] in a table of two cells: the beta-binomial,
    with a posterior in closed form.

    `prior_weight` other than 1 in the posterior makes it wrong on purpose.
    """

    posterior_weight: float = 1.0
    title: ClassVar[str] = "beta-binomial"

    def priors_for(self, problem):
        return {"p": Prior("Beta", alpha=1.0, beta=1.0)}

    def log_joint(self, problem, parameters):
        p = parameters.posterior["p"].values
        first, second = problem.counts
        return first * np.log(p) + second * np.log1p(-p)

    def draw_prior(self, problem, draws, rng):
        p = rng.beta(1.0, 1.0, size=draws)
        first = rng.binomial(problem.population_size, p)
        population = np.stack([first, problem.population_size - first], axis=1)
        sample = [rng.multivariate_hypergeometric(F, problem.sample_size) for F in population]
        return PriorDraws({"p": p}, np.array(sample), population)

    def learn_nuts(self, problem, settings, seed):
        return self.learn_fast(problem, settings, np.random.default_rng(seed))

    def learn_fast(self, problem, settings, rng):
        a, b = problem.counts + self.posterior_weight
        p = rng.beta(a, b, size=(settings.chains, settings.draws))
        return Parameters(posterior=xr.Dataset({"p": (("chain", "draw"), p)}))

    def draw_population(self, problem, settings, parameters, rng):
        p = parameters.posterior["p"].values.ravel()
        first = rng.binomial(problem.population_size - problem.sample_size, p)
        new = np.stack([first, problem.population_size - problem.sample_size - first], axis=1)
        return problem.counts + new

    draw_replicates = draw_population


def running_children(parent: int) -> list[int]:
    """Process ids below a process, itself excluded."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8")
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    below = [parent]
    for ancestor in below:
        below += [child for child, its_parent in parents.items() if its_parent == ancestor]
    return below[1:]


@dataclass(frozen=True)
class Polya(Estimator):
    """Draws of a Pólya urn that holds one ball for each cell and each sampled
    individual: the Dirichlet-multinomial with a uniform prior. They are listed, each as
    often as its probability says."""

    title: ClassVar[str] = "Pólya urn"

    def learn(self, problem, settings, seed):
        return Parameters()

    def draw_population(self, problem, settings, parameters, rng):
        tables = [problem.counts]
        for _ in range(problem.population_size - problem.sample_size):
            one = np.eye(problem.sample.size, dtype=np.int64)
            tables = [t + one[cell] for t in tables for cell in np.repeat(range(len(t)), t + 1)]
        listed = np.array(tables)
        times, left = divmod(settings.chains * settings.draws, len(listed))
        assert not left, f"draws must be a multiple of {len(listed)}"
        return np.tile(listed, (times, 1))

    draw_replicates = draw_population
