"""Simulation-based calibration: whether an estimator recovers what its own prior
generated.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn import __version__
from taciturn.errors import EstimationError, ParameterError, TaciturnError
from taciturn.estimators.base import Estimator
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.problem import Problem, checked_fillable, make_problem
from taciturn.estimators.settings import check_method
from taciturn.fits.unlabelled import MEASURES, fit_draws, measure
from taciturn.parallel import Workers, run_all
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.schema import MAX_COUNT
from taciturn.studies.jobs import known_table
from taciturn.tables.checks import require_array
from taciturn.tables.sampling import MAX_SAMPLED_POPULATION
from taciturn.validate import seed_number, whole_number

__all__ = ["calibrate", "rank_with_ties", "uniformity"]

Floats = npt.NDArray[np.float64]


def calibrate(
    estimator: Estimator,
    template: xr.DataArray,
    *,
    sample_size: int,
    population_size: int,
    simulations: int = 300,
    draws: int = 200,
    thin: int = 5,
    bins: int = 20,
    structural_zeros: xr.DataArray | None = None,
    known_margins: str | Sequence[str] = (),
    method: Literal["fast", "nuts"] = "fast",
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
    workers: Workers = None,
) -> xr.Dataset:
    r"""Simulation-based calibration of a Bayesian estimator, for its parameters, R1, R2
    and tau1.

    Each simulation draws parameters from the prior, then a population of `N` and a
    sample of `n` from it, fits, and ranks the true value `q` among `L` posterior draws,
    with ties broken at random:

    .. math::

        u = \frac{|\{l : q_l < q\}| + V (|\{l : q_l = q\}| + 1)}{L + 1},
        \qquad V \sim \text{Uniform}(0, 1)

    If the draws are independent draws from the posterior, `u` is uniform on ``[0, 1]``,
    also for counts.

    Parameters
    ----------
    estimator : Estimator
        An estimator with a proper prior.
    template : DataArray
        A table with the variables and categories; its counts are not used.
    sample_size, population_size : int
        `n` and `N`, the same in all simulations, as default priors depend on `n`.
    simulations : int
        Number of simulations.
    draws : int
        Number of posterior draws among which a value is ranked, `L`.
    thin : int
        The estimator makes ``draws * thin`` draws, of which every `thin`-th is kept:
        neighbours in a chain, and duplicates from resampling, are not independent.
    bins : int
        Number of bins of equal width for the chi-square test.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled.
    known_margins : str or sequence of str
        Variables whose joint table in each simulated population the estimator is given.
    method : {"fast", "nuts"}
        As in an estimator's `fit`.
    random_seed : int or Generator, optional
        The same seed gives the same numbers, whatever the number of workers.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.
    workers : int or dask.distributed.Client, optional
        Number of processes, all cores by default; or the client of a cluster, whose
        workers are then used.

    Returns
    -------
    Dataset
        ``rank`` (quantity, simulation), `u` in ``[0, 1]``; ``chi_square``, ``p_value``
        of the bins' counts and ``p_value_ks`` of the Kolmogorov-Smirnov test
        (quantity); ``failures``, the number of samples that the estimator refused,
        whose ranks are NaN and left out of the tests. Components of a vector are
        separate quantities, such as ``margin_area[0]``.

    Raises
    ------
    ParameterError
        An estimator without a prior to draw from, or without one of known margins;
        numbers out of range, or an unknown method.
    EstimationError
        The estimator's posterior lacks a parameter that its prior has.

    Notes
    -----
    Each test is for one quantity: of `m` independent ones, the smallest p-value is
    below ``alpha / m`` with probability ``alpha``. Samples are not refused at random:
    if more than a few are, the tests say less. R1 and tau1 have few possible values in
    small tables; breaking ties at random keeps `u` exactly uniform.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari & Gelman (2018), Validating Bayesian inference
    algorithms with simulation-based calibration, arXiv:1804.06788.

    Examples
    --------
    >>> import taciturn as tc
    >>> result = tc.calibrate(
    ...     tc.DirichletLogLinear(),
    ...     tc.load_dataset("area_by_sex"),
    ...     sample_size=50,
    ...     population_size=500,
    ...     simulations=4,
    ...     draws=20,
    ...     random_seed=1,
    ...     progressbar=False,
    ...     workers=1,
    ... )
    >>> result["rank"].sel(quantity=["kappa", "R2", "tau1"]).shape
    (3, 4)
    """
    simulations = whole_number(simulations, "simulations", least=1)
    draws = whole_number(draws, "draws", least=1)
    thin = whole_number(thin, "thin", least=1)
    bins = whole_number(bins, "bins", least=2)
    check_method(method)
    problem = _empty_problem(template, sample_size, population_size, structural_zeros)
    seed = seed_number(random_seed)
    if not isinstance(estimator, BayesianEstimator):
        raise ParameterError(f"{type(estimator).__name__} has no prior to draw a population from")
    estimator.draw_prior(problem, 1, np.random.default_rng(0))
    margins = known_table(problem.sample, known_margins)
    _check_design(estimator, problem, replace(problem, known_margins=margins))
    jobs = [
        Simulation(estimator, problem, known_margins, draws, thin, method, seed, number)
        for number in range(simulations)
    ]
    ranks = dict(
        run_all(run_simulation, jobs, workers=workers, progressbar=progressbar, title="simulations")
    )
    settings = {
        **_table_settings(problem, margins),
        "estimator": estimator.spec(),
        "sample_size": sample_size,
        "population_size": population_size,
        "simulations": simulations,
        "draws": draws,
        "thin": thin,
        "bins": bins,
        "method": method,
        "random_seed": seed,
        "version": __version__,
    }
    return _result(estimator, ranks, bins).assign_attrs(settings=json.dumps(settings))


def _check_design(estimator: BayesianEstimator, problem: Problem, known: Problem) -> None:
    """Raise `ParameterError` unless a posterior with known margins has all parameters
    that are drawn from the prior without.
    """
    estimator.check_design(known)
    if given := sorted(set(estimator.priors_for(problem)) - set(estimator.priors_for(known))):
        raise ParameterError(
            f"{type(estimator).__name__} takes known margins as they are, without a prior of"
            f" {given}: calibrate it without known_margins"
        )


def _result(
    estimator: Estimator, ranks: dict[int, dict[str, float] | None], bins: int
) -> xr.Dataset:
    """Ranks and tests of uniformity, from the ranks of each simulation."""
    fitted = [found for found in ranks.values() if found is not None]
    if not fitted:
        raise EstimationError(f"{estimator!r} refused the samples of all {len(ranks)} simulations")
    quantities = list(fitted[0])
    table = np.full((len(quantities), len(ranks)), np.nan)
    for number, found in ranks.items():
        if found is not None:
            table[:, number] = [found[name] for name in quantities]
    names = ("chi_square", "p_value", "p_value_ks")
    tests = np.array([uniformity(row[~np.isnan(row)], bins) for row in table]).T
    return xr.Dataset(
        {
            "rank": (("quantity", "simulation"), table),
            **{name: ("quantity", row) for name, row in zip(names, tests, strict=True)},
            "failures": len(ranks) - len(fitted),
        },
        coords={"quantity": quantities, "simulation": np.arange(len(ranks))},
    )


@dataclass(frozen=True)
class Simulation:
    """Everything that one simulation needs."""

    estimator: BayesianEstimator
    problem: Problem
    known_margins: str | Sequence[str]
    draws: int
    thin: int
    method: Literal["fast", "nuts"]
    seed: int
    number: int


def run_simulation(job: Simulation) -> tuple[int, dict[str, float] | None]:
    """Ranks of all quantities; None if the estimator refuses the sample."""
    prior_seed, fit_seed, tie_seed = np.random.SeedSequence(
        job.seed, spawn_key=(job.number,)
    ).spawn(3)
    rng = np.random.default_rng(prior_seed)
    parameters, samples, populations = job.estimator.draw_prior(job.problem, 1, rng)
    sample, population = (
        job.problem.sample.copy(data=x[0].reshape(job.problem.sample.shape))
        for x in (samples, populations)
    )
    margins = known_table(population, job.known_margins)
    problem = make_problem(
        sample, job.problem.population_size, job.problem.structural_zeros, margins
    )
    seed = int(fit_seed.generate_state(1)[0])
    try:
        fit = fit_draws(job.estimator, problem, job.draws * job.thin, seed, job.method)
    except TaciturnError:
        return job.number, None
    posterior = fit.parameters.posterior
    missing = [name for name in parameters if posterior is None or name not in posterior]
    if posterior is None or missing:
        raise EstimationError(
            f"the prior of {type(job.estimator).__name__} draws {missing}, its posterior has none"
        )
    ties = np.random.default_rng(tie_seed)
    ranks: dict[str, float] = {}
    for name, values in parameters.items():
        array: Any = posterior[name].transpose("chain", "draw", ...).values
        components = array.reshape(job.draws * job.thin, -1)[:: job.thin]
        true = np.ravel(values[0])
        for i, value in enumerate(true):
            label = name if np.ndim(values[0]) == 0 else f"{name}[{i}]"
            ranks[label] = rank_with_ties(float(value), components[:, i], ties)
    truth = measure(populations[:1], problem, DEFAULT_WEIGHTS)[:, 0]
    drawn = measure(fit.population[:: job.thin], problem, DEFAULT_WEIGHTS)
    for name, value, values in zip(MEASURES, truth, drawn, strict=True):
        ranks[name] = rank_with_ties(float(value), values, ties)
    return job.number, ranks


def rank_with_ties(value: float, draws: Floats, rng: np.random.Generator) -> float:
    """Rank of a value among draws, scaled to [0, 1]; values equal up to rounding are
    ties, broken at random.
    """
    equal = int(np.isclose(draws, value, rtol=1e-12, atol=0).sum())
    below = int(((draws < value) & ~np.isclose(draws, value, rtol=1e-12, atol=0)).sum())
    return float((below + rng.random() * (equal + 1)) / (len(draws) + 1))


def uniformity(ranks: Floats, bins: int) -> tuple[float, float, float]:
    """Chi-square statistic over bins, its p-value, and the p-value of the
    Kolmogorov-Smirnov test.
    """
    from scipy.stats import chisquare, kstest

    counts, _ = np.histogram(ranks, bins=bins, range=(0, 1))
    test = chisquare(counts)
    return float(test.statistic), float(test.pvalue), float(kstest(ranks, "uniform").pvalue)


def _table_settings(problem: Problem, margins: xr.DataArray | None) -> dict[str, Any]:
    """Of which table the simulations are."""
    return {
        **({} if margins is None else {"known_margins": list(margins.dims)}),
        "categories": {str(dim): problem.sample.sizes[dim] for dim in problem.sample.dims},
        "structural_zeros": np.flatnonzero(~problem.fillable).tolist(),
    }


def _empty_problem(
    template: xr.DataArray,
    sample_size: int,
    population_size: int,
    structural_zeros: xr.DataArray | None,
) -> Problem:
    """The shape of the table, with a placeholder sample of `n` in a single cell."""
    require_array(template, name="template")
    free = np.ones(template.shape, dtype=bool)
    if structural_zeros is not None:
        free = checked_fillable(template, structural_zeros)
    counts = np.zeros(template.size, dtype=np.int64)
    size = whole_number(sample_size, "sample_size", least=1, most=MAX_COUNT)
    counts[np.argmax(free.ravel())] = size
    problem = make_problem(
        template.copy(data=counts.reshape(template.shape)), population_size, structural_zeros
    )
    if population_size >= MAX_SAMPLED_POPULATION:
        raise ParameterError(
            f"population_size must be below 10**9, from which samples are drawn, got"
            f" {population_size}"
        )
    return problem
