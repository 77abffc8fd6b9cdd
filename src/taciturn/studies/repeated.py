"""Repeated-sampling studies: many samples of a known population, each estimated and
held against the truth.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TaciturnError
from taciturn.estimators.base import Estimator
from taciturn.estimators.problem import make_problem
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.studies.parallel import run_all
from taciturn.studies.scores import INTERVAL, MEASURES, fit_draws, interval, measure
from taciturn.studies.store import Store, recorded
from taciturn.tables.checks import check_table
from taciturn.tables.margins import margin
from taciturn.tables.sampling import draw_sample

if TYPE_CHECKING:
    import pandas as pd
from taciturn.validate import check_weights, seed_number, whole_number

__all__ = ["STATISTICS", "study", "study_table"]

STATISTICS: Final = ("truth", "estimate", "bias", "rmse", "coverage", "width")
"""What a study says of each estimator, each with its Monte Carlo error
``<name>_mcse``."""

_ROUNDING: Final = 1e-12  # the truth may be an end of the interval, up to the last bits

Floats = npt.NDArray[np.float64]


def study(
    population: xr.DataArray,
    estimators: Mapping[str, Estimator],
    *,
    fractions: Sequence[float] = (0.1, 0.05, 0.01),
    samples: int = 200,
    draws: int = 1000,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    structural_zeros: xr.DataArray | None = None,
    known_margins: str | Sequence[str] = (),
    method: Literal["fast", "nuts"] = "fast",
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
    workers: int | None = None,
    store: str | PathLike[str] | None = None,
) -> xr.Dataset:
    r"""Bias, RMSE and coverage of estimators over repeated samples of a known
    population.

    From sample `s` of `S`, whose risk is `T_s`, an estimator makes draws of the
    population; `m_s` is the mean risk of these draws and `[l_s, u_s]` their
    equal-tailed 95 % interval. With means over samples written as a bar:

    .. math::

        \text{bias} &= \overline{m_s - T_s}, &
        \text{rmse} &= \sqrt{\overline{(m_s - T_s)^2}}, \\
        \text{coverage} &= \overline{1[l_s \le T_s \le u_s]}, &
        \text{width} &= \overline{u_s - l_s}

    All estimators see the same samples. The risk of a sample, `R2` and `tau1`, is a
    property of that sample, so the truth differs between samples too.

    Parameters
    ----------
    population : DataArray
        The population table.
    estimators : mapping of str to Estimator
        Estimators by the names they get in the result.
    fractions : sequence of float
        Sampling fractions in (0, 1].
    samples : int
        Samples for each fraction, `S`.
    draws : int
        Draws of the population for each sample and estimator.
    weights : sequence of three floats
        As in `disclosure_risk`.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled.
    known_margins : str or sequence of str
        Variables whose joint table in the population the estimators are told.
    method : {"fast", "nuts"}
        As in an estimator's `fit`; NUTS runs one chain here.
    random_seed : int or Generator, optional
        The same seed gives the same numbers, whatever the number of workers, and
        whatever other estimators, fractions and further samples there are. An existing
        `store` gives its own where none is given.
    progressbar : bool
        Show progress on standard error.
    workers : int, optional
        Processes; all cores without it.
    store : path, optional
        File that gets one JSON line for each sample and estimator done. A second call
        with the same study continues there, also with more samples; another study's
        file is refused.

    Returns
    -------
    Dataset
        Dims ``estimator``, ``fraction`` and ``measure`` (``R1``, ``R2``, ``tau1``).
        ``truth`` and ``estimate`` are means over samples of `T_s` and `m_s`; ``bias``,
        ``rmse``, ``coverage`` and ``width`` as above; each has its Monte Carlo standard
        error ``<name>_mcse``. ``failures`` and ``unconverged`` (estimator, fraction)
        count samples. The attribute ``settings`` is JSON.

    Raises
    ------
    ParameterError
        No estimators, fractions that give no sample or the same sample size, or counts
        that are not positive.
    TableError
        What `check_table` refuses.
    FileFormatError
        `store` is no store, belongs to another study or cannot be written.

    Notes
    -----
    *Failures.* An estimator that raises a `TaciturnError` on a sample has an interval
    that does not hold the truth there: coverage is over all samples, the other
    statistics are over those that were estimated, and ``failures`` counts the rest; the
    first message of each estimator is in the attribute ``failure_messages``.
    ``unconverged`` counts samples whose fit warned that its sampler did not converge;
    they are kept.

    *Counts.* The interval of ``tau1``, a count, runs from the smallest whole number `l`
    with ``P(tau1 <= l) >= 0.025`` to the smallest `u` with ``P(tau1 <= u) >= 0.975``,
    both included. It holds at least 95 % of the posterior, often far more, so that a
    calibrated estimator covers in more than 95 % of samples.

    *Monte Carlo errors.* Standard deviation over samples by :math:`\sqrt S`; for
    ``rmse`` that of the squared error by the delta method; for ``coverage`` with `k` of
    `S` the standard deviation of Beta(k + 1/2, S - k + 1/2), which is above zero when
    all or none cover.

    References
    ----------
    Morris, White & Crowther (2019), Using simulation studies to evaluate statistical
    methods, Statistics in Medicine 38.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> result = tc.study(
    ...     religion,
    ...     {"plug-in": tc.LogLinear()},
    ...     fractions=[0.1],
    ...     samples=5,
    ...     draws=50,
    ...     random_seed=1,
    ...     progressbar=False,
    ...     workers=1,
    ... )
    >>> dict(result.sizes)
    {'estimator': 1, 'fraction': 1, 'measure': 3}
    >>> bool(result.rmse.sel(measure="R2").item() < 0.1)
    True
    """
    table = check_table(population, name="population")
    sizes = _sample_sizes(table, fractions)
    samples, draws = (
        whole_number(samples, "samples", least=1),
        whole_number(draws, "draws", least=1),
    )
    if method not in ("fast", "nuts"):
        raise ParameterError(f"method must be 'fast' or 'nuts', got {method!r}")
    if not estimators:
        raise ParameterError("give at least one estimator: {'log-linear': LogLinear()}")
    for name, estimator in estimators.items():
        if not isinstance(estimator, Estimator):
            raise ParameterError(
                f"the estimator {name!r} must be an Estimator, such as LogLinear(), got"
                f" {estimator!r}"
            )
    margins = known_table(table, known_margins)
    problem = make_problem(table, int(table.sum()), structural_zeros, margins)
    for estimator in estimators.values():
        estimator.check_margins(problem)
    if random_seed is None and store is not None:
        random_seed = recorded(store, "random_seed", int)
    job = Job(
        table,
        structural_zeros,
        margins,
        0,
        0,
        dict(estimators),
        draws,
        check_weights(weights),
        method,
        seed_number(random_seed),
    )
    header = _header(job, sizes)
    with Store(store, header) as kept:
        done = {(r["estimator"], r["size"], r["sample"]) for r in kept.records}
        jobs = list(_jobs(job, sizes.values(), samples, done))
        title = f"{sum(len(x.estimators) for x in jobs)} fits"
        for records in run_all(
            run_job, jobs, workers=workers, progressbar=progressbar, title=title
        ):
            for record in records:
                kept.add(record)
    result = _summarise(kept.records, list(estimators), sizes, samples)
    result.attrs["settings"] = json.dumps({**header, "samples": samples, "fractions": list(sizes)})
    return result


@dataclass(frozen=True)
class Job:
    """One sample and the estimators to hold against it."""

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
    """The population's table over some variables; None over none."""
    dims = [variables] if isinstance(variables, str) else list(variables)
    return margin(population, dims) if dims else None


def draw_job_sample(job: Job) -> xr.DataArray:
    """The sample of a job, the same for all estimators."""
    return draw_sample(
        job.population, size=job.size, random_seed=np.random.default_rng(_sequence(job, "sample"))
    )


def run_job(job: Job) -> list[dict[str, Any]]:
    """Draw the sample and give a record for each estimator."""
    problem = make_problem(
        draw_job_sample(job), int(job.population.sum()), job.structural_zeros, job.known_margins
    )
    truth = measure(job.population.values.reshape(1, -1), problem, job.weights)[:, 0]
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
    """Seeds depend on the study's seed, the sample size, the sample's number and the
    estimator's name alone.
    """
    word = int.from_bytes(hashlib.sha256(what.encode()).digest()[:4], "big")
    return np.random.SeedSequence(job.seed, spawn_key=(job.size, job.sample, word))


def _sample_sizes(population: xr.DataArray, fractions: Sequence[float]) -> dict[float, int]:
    total = int(population.sum())
    sizes: dict[float, int] = {}
    for fraction in fractions:
        if not 0 < fraction <= 1 or round(fraction * total) < 1:
            raise ParameterError(
                f"fractions must be up to 1 and give somebody of {total} a place, got {fraction!r}"
            )
        size = round(fraction * total)
        if size in sizes.values():
            raise ParameterError(
                f"fractions: {fraction!r} gives a sample of {size}, as another fraction does"
            )
        sizes[float(fraction)] = size
    if not sizes:
        raise ParameterError("give at least one sampling fraction")
    return sizes


def _header(job: Job, sizes: Mapping[float, int]) -> dict[str, Any]:
    """What identifies a study; the number of samples does not, so that it can be
    raised.
    """
    table = job.population
    labels = {str(dim): table[dim].values.tolist() for dim in table.dims}
    digest = hashlib.sha256(json.dumps([labels, list(table.shape)], default=str).encode())
    digest.update(np.ascontiguousarray(table.values, dtype="<i8").tobytes())
    if job.structural_zeros is not None:
        digest.update(
            np.ascontiguousarray(
                job.structural_zeros.transpose(*table.dims).values, dtype=bool
            ).tobytes()
        )
    known = {} if job.known_margins is None else {"known_margins": list(job.known_margins.dims)}
    return {
        **known,
        "population": digest.hexdigest(),
        "sample_sizes": sorted(sizes.values()),
        "estimators": {
            name: estimator.spec() for name, estimator in sorted(job.estimators.items())
        },
        "draws": job.draws,
        "weights": list(job.weights),
        "method": job.method,
        "random_seed": job.seed,
        "version": version("taciturn"),
    }


def _jobs(job: Job, sizes: Any, samples: int, done: set[tuple[str, int, int]]) -> Iterator[Job]:
    """Samples still to do, all fractions mixed so that the time left can be guessed."""
    for sample in range(samples):
        for size in sizes:
            missing = {
                name: e for name, e in job.estimators.items() if (name, size, sample) not in done
            }
            if missing:
                yield replace(job, size=size, sample=sample, estimators=missing)


def _summarise(
    records: Sequence[dict[str, Any]], names: list[str], sizes: Mapping[float, int], samples: int
) -> xr.Dataset:
    by_cell: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for record in records:
        if record["sample"] < samples:
            by_cell.setdefault((record["estimator"], record["size"]), {})[record["sample"]] = record
    shape = (len(names), len(sizes), len(MEASURES))
    values = {
        f"{name}{end}": np.full(shape, np.nan) for name in STATISTICS for end in ("", "_mcse")
    }
    failures, unconverged = np.zeros(shape[:2], dtype=np.int64), np.zeros(shape[:2], dtype=np.int64)
    messages: dict[str, str] = {}
    for i, name in enumerate(names):
        for j, size in enumerate(sizes.values()):
            cell = [record for _, record in sorted(by_cell[name, size].items())]
            fitted = [record for record in cell if "failure" not in record]
            failures[i, j] = len(cell) - len(fitted)
            unconverged[i, j] = sum(not record["converged"] for record in fitted)
            for record in cell:
                if "failure" in record:
                    messages.setdefault(name, record["failure"])
            for k in range(len(MEASURES)):
                for statistic, value in _statistics(cell, fitted, k).items():
                    values[statistic][i, j, k] = value
    dims = ("estimator", "fraction", "measure")
    return xr.Dataset(
        {
            **{name: (dims, array) for name, array in values.items()},
            "failures": (dims[:2], failures),
            "unconverged": (dims[:2], unconverged),
        },
        coords={"estimator": names, "fraction": list(sizes), "measure": list(MEASURES)},
        attrs={"failure_messages": json.dumps(messages), "interval": INTERVAL},
    )


def _statistics(
    cell: list[dict[str, Any]], fitted: list[dict[str, Any]], k: int
) -> dict[str, float]:
    """The statistics of one measure; NaN where nothing was estimated, or for an error
    from a single sample.
    """
    found = dict(
        zip(("truth", "truth_mcse"), _mean_and_error([r["truth"][k] for r in cell]), strict=True)
    )
    truth = np.array([r["truth"][k] for r in fitted])
    mean = np.array([r["mean"][k] for r in fitted])
    low, high = np.array([r["interval"][k] for r in fitted]).reshape(-1, 2).T
    for name, values in {"estimate": mean, "bias": mean - truth, "width": high - low}.items():
        found[name], found[f"{name}_mcse"] = _mean_and_error(values)
    square, error = _mean_and_error((mean - truth) ** 2)
    found["rmse"] = square**0.5
    found["rmse_mcse"] = error / (2 * found["rmse"]) if found["rmse"] > 0 else error
    held, out = int(((low - _ROUNDING <= truth) & (truth <= high + _ROUNDING)).sum()), len(cell)
    a, b = held + 0.5, out - held + 0.5
    found["coverage"], found["coverage_mcse"] = held / out, (a * b / (a + b + 1)) ** 0.5 / (a + b)
    return found


def _mean_and_error(values: Sequence[float] | Floats) -> tuple[float, float]:
    array = np.asarray(values, dtype=float)
    mean = float(array.mean()) if array.size else np.nan
    return mean, float(array.std(ddof=1)) / array.size**0.5 if array.size > 1 else np.nan


def study_table(result: xr.Dataset) -> "pd.DataFrame":
    """Lay a study out as a table: one row for each fraction, measure and estimator.

    Parameters
    ----------
    result : Dataset
        What `study` returns.

    Returns
    -------
    pandas.DataFrame
        The statistics and their Monte Carlo errors as columns.

    Examples
    --------
    >>> import taciturn as tc
    >>> result = tc.study(
    ...     tc.load_dataset("area_by_sex"),
    ...     {"urn": tc.PolyaUrn()},
    ...     fractions=[0.1],
    ...     samples=3,
    ...     draws=10,
    ...     random_seed=1,
    ...     progressbar=False,
    ...     workers=1,
    ... )
    >>> columns = ["fraction", "measure", "estimator"]
    >>> tc.studies.study_table(result)[columns].values.tolist()
    [[0.1, 'R1', 'urn'], [0.1, 'R2', 'urn'], [0.1, 'tau1', 'urn']]
    """
    order: list[Any] = ["fraction", "measure", "estimator"]
    return result.to_dataframe(dim_order=order).reset_index()
