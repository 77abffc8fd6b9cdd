"""What a larger simple random sample would be worth for a decision: the expected value
of sample information.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import xarray as xr

from taciturn.decisions.choice import decided
from taciturn.decisions.constraint import Constraint
from taciturn.decisions.decision import Decision
from taciturn.decisions.expectations import Question, checked_question
from taciturn.decisions.larger_samples import (
    Candidates,
    Counts,
    Expected,
    LargerSample,
    expected_losses,
)
from taciturn.decisions.measures import RISK
from taciturn.decisions.monte_carlo import ROUNDING
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.base import Estimator
from taciturn.estimators.problem import make_problem
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.recorded import recorded_estimator
from taciturn.parallel import Workers, run_all
from taciturn.risk.outcomes import outcomes
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.tables.checks import reordered
from taciturn.tables.sampling import MAX_SAMPLED_POPULATION
from taciturn.validate import check_weights, quoted, seed_number, whole_number

__all__ = ["value_of_sample"]


def value_of_sample(
    fit: xr.DataTree,
    released: Mapping[str, xr.DataArray],
    *,
    sample_sizes: Sequence[int],
    loss: str | Mapping[str, float],
    constraint: Constraint | None = None,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    association: Sequence[str] | None = None,
    estimator: Estimator | None = None,
    samples: int = 100,
    draws: int = 500,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
    workers: Workers = None,
) -> xr.Dataset:
    r"""What it would be worth to sample more people before choosing a protection: the
    expected value of sample information, of simple random samples.

    The population `F` is drawn from the fit, then a larger sample `f'` from it that
    contains the sample `f`, with the people that are added drawn from those that are
    not sampled yet; the estimator is fitted to it, and the best candidate chosen anew:

    .. math::

        \mathrm{EVSI}(n') = \frac1J \sum_{j=1}^J
            \Bigl( E[L_{a^*} \mid f'_j] - \min_{a \in A} E[L_a \mid f'_j] \Bigr)

    with the choice :math:`a^*` from what is known now. As the mean of
    :math:`E[L_{a^*} \mid f'_j]` is :math:`E[L_{a^*}]`, this is what the expected loss
    falls by. It is at least 0 and, but for Monte Carlo error, at most the expected
    value of perfect information.

    Parameters
    ----------
    fit : DataTree
        Of the sample that was protected: a simple random one, or one with known
        margins.
    released, loss, constraint, weights, association
        As in `choose_protection`; R2 needs a price, as losses do not depend on the
        population. The releases stay as they are: this is what it is worth to know more
        of the population, not to release a larger sample.
    sample_sizes : sequence of int
        Sizes `n'` of the larger samples, the people of the first sample among them: up
        to the population size.
    estimator : Estimator, optional
        By default the one that the fit records, with its specification.
    samples : int
        Number of larger samples of each size, `J`.
    draws : int
        Number of draws of the population for each.
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
        Dim ``sample_size``: ``value``, in the unit of the prices, and ``mcse``, its
        Monte Carlo error from `samples`; ``changed``, the share of the samples after
        which another candidate is chosen; ``unconverged``, the number of fits that did
        not converge, which are kept. Attributes: ``chosen``, what is chosen now, and
        ``perfect_information`` with ``perfect_information_mcse``.

    Raises
    ------
    ParameterError
        Sizes that are not between those of the sample and of the population, no price
        of R2, nothing that keeps the constraint, and what `choose_protection` raises.
    TableError
        A stratified or weighted sample, or a fit that is none.
    EstimationError
        The fit does not record an estimator, or this cannot be fitted to a larger
        sample.

    Notes
    -----
    *How sure.* ``mcse`` leaves out that each of the `J` expected losses is itself a
    mean over `draws`, whose noise can only raise the value, because the least of noisy
    means is chosen: where candidates are close, look whether more draws lower it. All
    candidates are compared on the same draws, which keeps the noise of differences
    small.

    *Other designs.* People are added by simple random sampling, and what they would be
    worth under another design, which may be more or less, is not computed: fits of
    stratified or weighted samples are refused.

    *A constraint* is about what is known now, as in `choose_protection`.

    *Coherence.* The value is that of an office that believes the fit. An estimator with
    a prior that depends on the sample size, or one that plugs in estimates, does not
    expect what it will find, so that its value may even be above that of perfect
    information.

    References
    ----------
    Raiffa & Schlaifer (1961), Applied statistical decision theory, Harvard University.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> given = {"random_seed": 1, "progressbar": False}
    >>> fit = tc.LinearPool().fit(sample, population_size=2449, draws=100, **given)
    >>> candidates = {
    ...     "as it is": sample,
    ...     "nearest 3": tc.perturbation.conventional_round(sample, rounding_base=3),
    ... }
    >>> worth = tc.decisions.value_of_sample(
    ...     fit,
    ...     candidates,
    ...     sample_sizes=[500],
    ...     loss={"R2": 60, "hellinger": 1},
    ...     samples=4,
    ...     draws=50,
    ...     workers=1,
    ...     **given,
    ... )
    >>> bool(worth["value"].item() >= 0)
    True
    """
    question = checked_question(loss, constraint, check_weights(weights))
    if RISK not in question.prices:
        raise ParameterError(
            "the loss does not depend on the population, so to know more of it is worth nothing:"
            " give 'R2' a price in loss"
        )
    parts, model = fit_parts(fit), _estimator(fit, estimator)
    sizes = _checked_sizes(sample_sizes, parts)
    samples = whole_number(samples, "samples", least=1)
    draws = whole_number(draws, "draws", least=1)
    seed = seed_number(random_seed)
    now, candidates = _now(parts, released, question, association)
    problem = make_problem(parts.sample, **parts.given)
    tasks = [
        LargerSample(problem, model, candidates, population, draws, size, number, seed)
        for number, population in enumerate(_populations(parts, samples, seed))
        for size in sizes
    ]
    results = run_all(
        expected_losses, tasks, workers=workers, progressbar=progressbar, title="larger samples"
    )
    with closing(results):  # which ends the workers
        found = sorted(results, key=lambda result: result.number)
    return _summarised({size: [r for r in found if r.size == size] for size in sizes}, now)


def _estimator(fit: xr.DataTree, given: Any) -> Estimator:
    """The given estimator, or the one that made the fit."""
    estimator = recorded_estimator(fit) if given is None else given
    if not isinstance(estimator, Estimator):
        problem = (
            "the fit does not record the estimator that made it: give estimator="
            if given is None
            else f"estimator must be an Estimator, such as tc.LinearPool(), got {quoted(given)}"
        )
        raise ParameterError(problem)
    return estimator


def _checked_sizes(given: Any, parts: FitParts) -> list[int]:
    """Sizes of larger samples, of a sample that can be enlarged at random."""
    if parts.stratified or parts.sampling_weights is not None:
        raise TableError(
            "the value of a larger sample is that of a simple random one: this fit is of a"
            f" {'stratified' if parts.stratified else 'weighted'} sample"
        )
    if parts.population_size >= MAX_SAMPLED_POPULATION:
        raise TableError(
            "samples can be drawn from fewer than 10**9 individuals, the population has"
            f" {parts.population_size}"
        )
    if isinstance(given, np.ndarray):
        given = list(np.atleast_1d(given))
    sizes = list(given) if isinstance(given, Sequence) else [given]
    least, most = int(parts.sample.sum()) + 1, parts.population_size
    checked = [whole_number(size, "sample_sizes", least=least, most=most) for size in sizes]
    if not checked or len(set(checked)) < len(checked):
        raise ParameterError(
            f"sample_sizes must be different sizes, at least one, got {quoted(given)}"
        )
    return checked


def _now(
    parts: FitParts,
    released: Mapping[str, xr.DataArray],
    question: Question,
    association: Sequence[str] | None,
) -> tuple[Decision, Candidates]:
    """What is chosen now, and the candidates that may be chosen later: it comes
    first.
    """
    expected, rest = {}, {}
    for name, outcome in outcomes(
        released,
        table=parts.sample,
        population=parts.population,
        where=parts.sample.copy(data=parts.fillable),
        association=association,
    ):
        expected[name] = question.answer(outcome)
        risk = float(outcome.risk(RISK, question.weights).mean())
        rest[name] = expected[name].loss.mean - question.prices[RISK] * risk
    now = decided(expected)
    if now.chosen is None:
        raise ParameterError(f"no candidate keeps {question.constraint}: nothing can be chosen")
    names = [now.chosen, *(n for n in expected if expected[n].feasible and n != now.chosen)]
    releases = tuple(_by_cell(released[name], parts.sample) for name in names)
    losses = np.array([rest[name] for name in names])
    return now, Candidates(releases, question.prices[RISK], losses, question.weights)


def _by_cell(release: xr.DataArray, sample: xr.DataArray) -> Counts:
    """Releases of shape (replicates, cells), in the order of the sample."""
    ordered = reordered(release, sample).transpose(..., *sample.dims)
    return ordered.values.astype(np.int64).reshape(-1, sample.size)


def _populations(parts: FitParts, number: int, seed: int) -> Iterator[Counts]:
    """Some of the draws of the population, each (cells,), none twice if there are
    enough.
    """
    chains, draws = parts.population.sizes["chain"], parts.population.sizes["draw"]
    rng = np.random.default_rng(seed)
    for at in rng.choice(chains * draws, number, replace=number > chains * draws):
        chain, draw = divmod(int(at), draws)
        population = parts.population.isel(chain=[chain], draw=[draw]).compute()
        parts.check_counts(population)
        yield population.values.ravel()


def _summarised(found: Mapping[int, Sequence[Expected]], now: Decision) -> xr.Dataset:
    """What the larger samples of each size save; the first candidate is that of now."""
    rows: dict[str, list[float]] = {"value": [], "mcse": [], "changed": [], "unconverged": []}
    for results in found.values():
        losses = np.array([result.losses for result in results])
        saved = losses[:, 0] - losses.min(axis=1)
        error = saved.std(ddof=1) / len(saved) ** 0.5 if len(saved) > 1 else np.nan
        rows["value"].append(float(saved.mean()))
        rows["mcse"].append(float(error))
        rows["changed"].append(float((saved > ROUNDING * losses[:, 0]).mean()))
        rows["unconverged"].append(sum(not result.converged for result in results))
    return xr.Dataset(
        {name: ("sample_size", values) for name, values in rows.items()},
        coords={"sample_size": list(found)},
        attrs={
            "chosen": now.chosen,
            "perfect_information": now.perfect_information,
            "perfect_information_mcse": now.perfect_information_mcse,
        },
    )
