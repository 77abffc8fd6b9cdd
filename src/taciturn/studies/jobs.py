"""One sample from a known population, and the risk each estimator infers from it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TaciturnError
from taciturn.estimators.base import Estimator
from taciturn.estimators.problem import Problem, make_problem
from taciturn.fits.unlabelled import (
    MEASURES,
    fit_draws,
    interval,
    measure,
)
from taciturn.tables.margins import margin
from taciturn.tables.sampling import draw_sample
from taciturn.validate import names_of

__all__ = ["Job", "jobs_left", "known_table", "problem_and_truth", "run_job"]


@dataclass(frozen=True)
class Job:
    """One sample and the estimators to be fitted to it."""

    population: xr.DataArray
    structural_zeros: xr.DataArray | None
    known_margins: xr.DataArray | None
    size: int
    sample: int
    estimators: dict[str, Estimator]
    draws: int
    weights: tuple[float, float, float]
    method: Literal["fast", "nuts"]
    seed: int


def known_table(population: xr.DataArray, variables: str | Sequence[str]) -> xr.DataArray | None:
    """The population's table over some variables; None if there are none."""
    dims = names_of(variables, "known_margins")
    return margin(population, dims) if dims else None


def draw_job_sample(job: Job) -> xr.DataArray:
    """The sample of a job, the same for all estimators."""
    return draw_sample(
        job.population, size=job.size, random_seed=np.random.default_rng(_sequence(job, "sample"))
    )


def problem_and_truth(job: Job) -> tuple[Problem, npt.NDArray[np.float64]]:
    """What the estimators are given, and the risk of the sample."""
    problem = make_problem(
        draw_job_sample(job), int(job.population.sum()), job.structural_zeros, job.known_margins
    )
    return problem, measure(job.population.values.reshape(1, -1), problem, job.weights)[:, 0]


def run_job(job: Job) -> list[dict[str, Any]]:
    """Draw the sample and give a record for each estimator."""
    problem, truth = problem_and_truth(job)
    records = []
    for name, estimator in job.estimators.items():
        record: dict[str, Any] = {
            "estimator": name,
            "size": job.size,
            "sample": job.sample,
            "truth": truth.tolist(),
        }
        try:
            seed = int(_sequence(job, f"estimator {name}").generate_state(1)[0])
            fit = fit_draws(estimator, problem, job.draws, seed, job.method)
            risk = measure(fit.population, problem, job.weights)
        except TaciturnError as error:
            record["failure"] = f"{type(error).__name__}: {error}"
        else:
            record["mean"] = risk.mean(axis=1).tolist()
            record["interval"] = [
                interval(draws, m) for draws, m in zip(risk, MEASURES, strict=True)
            ]
            record["converged"] = fit.converged
        records.append(record)
    return records


def _sequence(job: Job, what: str) -> np.random.SeedSequence:
    """Seeds depend only on the study's seed, the sample size, the sample's number and
    the estimator's name.
    """
    word = int.from_bytes(hashlib.sha256(what.encode()).digest()[:4], "big")
    return np.random.SeedSequence(job.seed, spawn_key=(job.size, job.sample, word))


def jobs_left(job: Job, sizes: Any, samples: int, done: set[tuple[str, int, int]]) -> Iterator[Job]:
    """Samples still to do, with fractions interleaved so that the time left can be
    estimated.
    """
    for sample in range(samples):
        for size in sizes:
            missing = {
                name: e for name, e in job.estimators.items() if (name, size, sample) not in done
            }
            if missing:
                yield replace(job, size=size, sample=sample, estimators=missing)
