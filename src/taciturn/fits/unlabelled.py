"""One sample, one estimator: draws of the population and the risk of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import noted_failures
from taciturn.estimators.base import Estimator
from taciturn.estimators.blocks import TableBlock
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters, SamplerSettings
from taciturn.parallel import WITHOUT_THREADS
from taciturn.risk.table_risk import Weights, risk_of_counts
from taciturn.risk.uniques import uniques_of_counts

__all__ = [
    "INTERVAL",
    "MEASURES",
    "FittedDraws",
    "Measure",
    "attained_quantiles",
    "draw_block",
    "draw_populations",
    "fit_draws",
    "interval",
    "measure",
    "quantiles",
]

MEASURES: Final = ("R1", "R2", "tau1")
INTERVAL: Final = 0.95
_ROUNDING: Final = 1e-6  # of a draw

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Measure = Literal["R1", "R2", "tau1"]


@dataclass(frozen=True)
class FittedDraws:
    """The parameters and draws of a fit, without labels."""

    parameters: Parameters
    population: Counts
    converged: bool


def fit_draws(
    estimator: Estimator, problem: Problem, draws: int, seed: int, method: Any
) -> FittedDraws:
    """Population tables of one chain: those of ``estimator.fit(..., chains=1,
    draws=draws, random_seed=seed)``.

    The fit's labels, replicates and pointwise likelihoods are left out, as they cost
    more than the draws of a small table.
    """
    settings = SamplerSettings(
        draws=draws, tune=1000, chains=1, seed=seed, progressbar=False, method=method
    )
    learning, rng = _seeds(seed)
    with noted_failures() as failures:
        parameters = estimator.learn(problem, settings, learning)
        population = estimator.draw_population(problem, settings, parameters, rng)
    return FittedDraws(parameters, population, not failures)


def _seeds(seed: int) -> tuple[int, np.random.Generator]:
    """Those of the parameters and of the populations of a fit."""
    learning, drawing, _ = np.random.SeedSequence(seed).spawn(3)
    return int(learning.generate_state(1)[0]), np.random.default_rng(drawing)


def draw_populations(
    estimator: Estimator, problem: Problem, draws: int, seed: int
) -> tuple[Counts, bool]:
    """Population tables of `fit_draws` and whether it converged: the same numbers, in a
    third of the time where they need no labelled parameters.
    """
    found = estimator.draw_unlabelled(problem, draws, *_seeds(seed))
    if found is not None:
        return found, True
    fit = fit_draws(estimator, problem, draws, seed, "fast")
    return fit.population, fit.converged


def draw_block(
    estimator: Estimator, block: TableBlock, draws: int, seeds: Sequence[int]
) -> tuple[Counts, Mask] | None:
    """Population tables of `draw_populations` for many tables in compiled code,
    (tables, draws, cells), and which tables have them; None where there are none.
    """
    learning, drawing = zip(*map(_seeds, seeds), strict=True)
    return estimator.draw_block(block, draws, learning, drawing)


def measure(population: Counts, problem: Problem, weights: Weights) -> Floats:
    """R1, R2 and tau1 of each population table given the sample, shape (3, tables).

    Like `disclosure_risk` and `unique_risk`, but on plain arrays: for a small table the
    labels would cost more than the computation.
    """
    mask = problem.fillable.ravel()
    out = np.empty((len(MEASURES), len(population)))
    step = max(1, WITHOUT_THREADS // population.shape[1])
    for start in range(0, len(population), step):
        rows = slice(start, start + step)
        risk = risk_of_counts(population[rows], problem.counts, mask, core=1, weights=weights)
        out[:2, rows] = risk["R1"], risk["R2"]
    out[2], _ = uniques_of_counts(population, problem.counts, core=1)
    return out


def interval(draws: Floats, name: str) -> tuple[float, float]:
    """Equal-tailed 95 % interval; for a count, its ends are whole numbers."""
    tail = (1 - INTERVAL) / 2
    low, high = quantiles(draws, (tail, 1 - tail), name)
    return float(low), float(high)


def quantiles(draws: Floats, probabilities: Sequence[float], name: str) -> Floats:
    """Quantiles over the first axis, on a new last one; of a count, whole numbers."""
    way = attained_quantiles if name == "tau1" else np.quantile
    return np.moveaxis(way(draws, probabilities, axis=0), 0, -1)


def attained_quantiles(values: Floats, probabilities: Sequence[float], axis: int) -> Floats:
    """The smallest values that at least such shares of all are at most, on a new first
    axis.
    """
    number = values.shape[axis]
    # (1 - 0.95) / 2 is a little more than 25 of 1,000, and would be the 26th.
    place = np.maximum(np.ceil(number * np.asarray(probabilities) - _ROUNDING), 1)
    return np.asarray(np.quantile(values, (place - 0.5) / number, axis=axis, method="inverted_cdf"))
