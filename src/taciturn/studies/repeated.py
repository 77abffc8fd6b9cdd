"""Repeated-sampling studies: many samples from a known population, with the estimates
from each compared with the truth.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from taciturn import __version__
from taciturn.errors import ParameterError
from taciturn.estimators.base import Estimator
from taciturn.estimators.problem import checked_fillable, make_problem
from taciturn.estimators.settings import check_method
from taciturn.files import check_output
from taciturn.parallel import Workers, run_all
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.store import Store, recorded
from taciturn.studies.jobs import (
    Job,
    jobs_left,
    known_table,
    run_job,
)
from taciturn.studies.records import check_records
from taciturn.studies.statistics import summarise
from taciturn.tables.checks import check_table
from taciturn.validate import (
    check_weights,
    is_real,
    mapping_of,
    quoted,
    seed_number,
    whole_number,
)

__all__ = ["study"]


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
    workers: Workers = None,
    store: str | PathLike[str] | None = None,
) -> xr.Dataset:
    r"""Bias, RMSE and coverage of estimators over repeated samples of a known
    population.

    From sample `s` of `S`, whose true risk is `T_s`, an estimator makes draws of the
    population; `m_s` is the mean risk of these draws and `[l_s, u_s]` their
    equal-tailed 95 % interval. With a bar for the mean over samples:

    .. math::

        \text{bias} &= \overline{m_s - T_s}, &
        \text{rmse} &= \sqrt{\overline{(m_s - T_s)^2}}, \\
        \text{coverage} &= \overline{1[l_s \le T_s \le u_s]}, &
        \text{width} &= \overline{u_s - l_s}, \\
        \text{score} &= \overline{u_s - l_s
            + 40 \max(l_s - T_s,\, T_s - u_s,\, 0)}

    The interval score is the smaller the better: in expectation, no interval has a
    smaller one than that between the 2.5 and 97.5 % quantiles of the truth.
    All estimators are given the same samples. `R2` and `tau1` are properties of a
    sample, so the truth differs between samples as well.

    Parameters
    ----------
    population : DataArray
        The population table.
    estimators : mapping of str to Estimator
        Estimators, by the names they are given in the result.
    fractions : sequence of float
        Sampling fractions in (0, 1].
    samples : int
        Number of samples for each fraction, `S`.
    draws : int
        Number of draws of the population for each sample and estimator.
    weights : sequence of three floats
        As in `disclosure_risk`.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled.
    known_margins : str or sequence of str
        Variables whose joint table in the population the estimators are given.
    method : {"fast", "nuts"}
        As in an estimator's `fit`; NUTS runs one chain here.
    random_seed : int or Generator, optional
        The same seed gives the same numbers, whatever the number of workers, and
        whatever other estimators, fractions and samples there are. If no seed is given,
        that of an existing `store` is used.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.
    workers : int or dask.distributed.Client, optional
        Number of processes, all cores by default; or the client of a cluster, whose
        workers are then used.
    store : path, optional
        File that receives one JSON line for each completed sample and estimator. A
        further call with the same study continues from it, also with more samples; the
        file of another study is refused, and so is a second writer.

    Returns
    -------
    Dataset
        Dims ``estimator``, ``fraction`` and ``measure`` (``R1``, ``R2``, ``tau1``).
        ``truth`` and ``estimate`` are means over samples of `T_s` and `m_s`; ``bias``,
        ``rmse``, ``coverage``, ``width`` and ``score`` as above; each has its Monte
        Carlo standard error ``<name>_mcse``. ``failures`` and ``unconverged``
        (estimator, fraction) count samples. The attribute ``settings`` is JSON.

    Raises
    ------
    ParameterError
        No estimators, fractions that give no sample or the same sample size, or counts
        that are not positive.
    TableError
        A population that `check_table` refuses.
    FileFormatError
        `store` is not the store of a study, is damaged, belongs to another study, is
        being written by one or cannot be written.

    Notes
    -----
    *Failures.* If an estimator raises a `TaciturnError` on a sample, its interval there
    counts as not covering the truth: coverage and ``truth`` are over all samples, the
    other statistics are over those that were estimated, and ``failures`` counts the
    rest; the first message of each estimator is in the attribute ``failure_messages``.
    ``unconverged`` counts samples whose fit warned that its sampler did not converge;
    they are kept.

    *Counts.* The interval of ``tau1``, a count, runs from the smallest whole number `l`
    with ``P(tau1 <= l) >= 0.025`` to the smallest `u` with ``P(tau1 <= u) >= 0.975``,
    both included. It contains at least 95 % of the posterior, often far more, so that a
    calibrated estimator covers the truth in more than 95 % of samples.

    *Monte Carlo errors.* The standard deviation over samples divided by
    :math:`\sqrt S`; for ``rmse``, that of the squared error by the delta method; for
    ``coverage``, if `k` of `S` intervals cover, the standard deviation of
    Beta(k + 1/2, S - k + 1/2), which is above zero even when all or none do.

    *What the result gives away.* Result and store hold the risk of the population
    itself, `T_s`, to the last digit, and the seed of the samples, a store also a hash
    of the population's counts. From this a small population can be found by trying
    tables. Keep them like the population.

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and
    estimation, JASA 102, Eq. 43 (interval score); Morris, White & Crowther (2019),
    Using simulation studies to evaluate statistical methods, Statistics in Medicine 38.

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
    if store is not None:
        if not isinstance(store, str | PathLike):
            raise ParameterError(f"store must be the name of a file, got {quoted(store)}")
        check_output(Path(store), overwrite=True)
    table = check_table(population, name="population")
    sizes = _sample_sizes(table, fractions)
    samples = whole_number(samples, "samples", least=1)
    draws = whole_number(draws, "draws", least=1)
    check_method(method)
    _check_estimators(estimators)
    margins = known_table(table, known_margins)
    problem = make_problem(table, int(table.sum()), structural_zeros, margins)
    for estimator in estimators.values():
        estimator.check_design(problem)
    if random_seed is None and store is not None:
        random_seed = recorded(store, "random_seed", int)
    seed, checked = seed_number(random_seed), check_weights(weights)
    known = (table, structural_zeros, margins)
    job = Job(*known, 0, 0, dict(estimators), draws, checked, method, seed)
    header = _header(job, sizes)
    counts = sha256(repr(table.values.tolist()).encode()).hexdigest()
    with Store(store, {**header, "counts": counts}) as kept:
        check_records(str(store), kept.records, job, sizes.values())
        done = {(r["estimator"], r["size"], r["sample"]) for r in kept.records}
        jobs = list(jobs_left(job, sizes.values(), samples, done))
        title = f"{sum(len(x.estimators) for x in jobs)} fits"
        results = run_all(run_job, jobs, workers=workers, progressbar=progressbar, title=title)
        with closing(results):  # which ends the workers
            for record in chain.from_iterable(results):
                kept.add(record)
    result = summarise(kept.records, list(estimators), sizes, samples)
    result.attrs["settings"] = json.dumps({**header, "samples": samples, "fractions": list(sizes)})
    return result


def _check_estimators(estimators: Mapping[str, Estimator]) -> None:
    mapping_of(estimators, "estimators", "names to estimators, {'log-linear': LogLinear()}")
    if not estimators:
        raise ParameterError("give at least one estimator: {'log-linear': LogLinear()}")
    for name, estimator in estimators.items():
        if not isinstance(name, str):
            raise ParameterError(f"the name of an estimator must be text, got {quoted(name)}")
        if not isinstance(estimator, Estimator):
            raise ParameterError(
                f"the estimator {name!r} must be an Estimator, such as LogLinear(), got"
                f" {quoted(estimator)}"
            )


def _sample_sizes(population: xr.DataArray, fractions: Sequence[float]) -> dict[float, int]:
    total = int(population.sum())
    sizes: dict[float, int] = {}
    if not np.iterable(fractions):
        raise ParameterError(
            f"fractions must be numbers, such as [0.01, 0.05], got {quoted(fractions)}"
        )
    for fraction in fractions:
        if not is_real(fraction) or not 0 < fraction <= 1 or round(fraction * total) < 1:
            raise ParameterError(
                f"fractions must be up to 1 and give somebody of {total} a place, got"
                f" {quoted(fraction)}"
            )
        size = round(fraction * total)
        if size in sizes.values():
            raise ParameterError(
                f"fractions: {quoted(fraction)} gives a sample of {size}, as another fraction does"
            )
        sizes[float(fraction)] = size
    if not sizes:
        raise ParameterError("give at least one sampling fraction")
    return sizes


def _header(job: Job, sizes: Mapping[float, int]) -> dict[str, Any]:
    """What identifies a study beside the counts of its population; not the number of
    samples, so that it can be increased later.
    """
    table = job.population
    known: dict[str, Any] = {}
    if job.known_margins is not None:
        known["known_margins"] = list(job.known_margins.dims)
    if job.structural_zeros is not None:
        fillable = checked_fillable(table, job.structural_zeros)
        known["structural_zeros"] = np.flatnonzero(~fillable).tolist()
    return {
        **known,
        "categories": {str(dim): table.sizes[dim] for dim in table.dims},
        "sample_sizes": sorted(sizes.values()),
        "estimators": {
            name: estimator.spec() for name, estimator in sorted(job.estimators.items())
        },
        "draws": job.draws,
        "weights": list(job.weights),
        "method": job.method,
        "random_seed": job.seed,
        "version": __version__,
    }
