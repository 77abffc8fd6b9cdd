"""One larger sample that contains the sample at hand, and what is expected of each
candidate once it is known.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from taciturn.estimators.base import Estimator
from taciturn.estimators.problem import Problem
from taciturn.fits.unlabelled import draw_populations
from taciturn.parallel import WITHOUT_THREADS
from taciturn.risk.table_risk import Weights, risk_of_counts

__all__ = ["Candidates", "Expected", "LargerSample", "expected_losses"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Candidates:
    """What is chosen among.

    Attributes
    ----------
    releases : tuple of arrays of int64, shape (replicates, cells)
        In the order of the sample's cells.
    price : float
        Of a unit of R2.
    rest : array of shape (candidates,)
        The expected loss that does not depend on the population.
    weights : tuple of three floats
        Of R2.
    """

    releases: tuple[Counts, ...]
    price: float
    rest: Floats
    weights: Weights


@dataclass(frozen=True, repr=False)
class LargerSample:
    """What a worker is given.

    Attributes
    ----------
    problem : Problem
        Of the sample at hand.
    estimator : Estimator
        To be fitted to the larger one.
    candidates : Candidates
        Among which is chosen.
    population : array of shape (cells,)
        A draw of the population, from which the larger sample is drawn.
    draws : int
        Of the population given the larger sample.
    size, number : int
        People in the larger sample, and which of those of this size it is.
    seed : int
        Of the whole study.
    """

    problem: Problem
    estimator: Estimator
    candidates: Candidates
    population: Counts
    draws: int
    size: int
    number: int
    seed: int


class Expected(NamedTuple):
    """Expected losses of the candidates given the larger sample, and whether its fit
    converged.
    """

    size: int
    number: int
    losses: Floats
    converged: bool


def expected_losses(task: LargerSample) -> Expected:
    """Draw the larger sample, fit the estimator and take means over the draws."""
    sequence = np.random.SeedSequence(task.seed, spawn_key=(task.size, task.number))
    sampling, fitting = sequence.spawn(2)
    counts = task.problem.counts
    added = np.random.default_rng(sampling).multivariate_hypergeometric(
        task.population - counts, task.size - int(counts.sum()), method="marginals"
    )
    sample = task.problem.sample
    larger = replace(task.problem, sample=sample.copy(data=(counts + added).reshape(sample.shape)))
    seed = int(fitting.generate_state(1)[0])
    population, converged = draw_populations(task.estimator, larger, task.draws, seed)
    given = task.candidates
    mask = task.problem.fillable.ravel()
    risks = [_mean_risk(population, release, mask, given.weights) for release in given.releases]
    return Expected(task.size, task.number, given.price * np.array(risks) + given.rest, converged)


def _mean_risk(
    population: Counts, release: Counts, mask: npt.NDArray[np.bool_], weights: Weights
) -> float:
    """Mean of R2 over all draws and replicates, some draws at a time."""
    step = max(1, WITHOUT_THREADS // release.size)
    total = 0.0
    for start in range(0, len(population), step):
        some = population[start : start + step, np.newaxis]
        total += float(risk_of_counts(some, release, mask, core=1, weights=weights)["R2"].sum())
    return total / (len(population) * len(release))
