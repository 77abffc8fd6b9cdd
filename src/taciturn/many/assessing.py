"""The risk of many tables in one call."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn import __version__
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.base import Estimator
from taciturn.files import ADDRESS, expanded
from taciturn.fits.risk import check_by
from taciturn.many.collection import Collection, Stack, collected, named_over
from taciturn.many.lazily import Block, assess_lazily
from taciturn.many.results import Results
from taciturn.many.seeds import seed_of_table
from taciturn.many.shared_profile.estimator import Populations, SharedProfile
from taciturn.many.tasks import Kept, Task, run_task
from taciturn.parallel import Workers, run_all
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.store import recorded
from taciturn.tables.tabulation import tabulate
from taciturn.validate import (
    check_weights,
    is_whole,
    names_of,
    quoted,
    real_number,
    seed_number,
    whole_number,
)

__all__ = ["assess_many"]

Counts = npt.NDArray[np.int64]

_FEWEST_AREAS: Final = 5
_TABLES: Final = {"shared": 1000, "alone": 50}
"""Of a task, which takes some seconds."""


def assess_many(
    tables: Any,
    *,
    population_size: Any,
    over: str | None = None,
    variables: Sequence[str] | None = None,
    estimator: Estimator | SharedProfile | None = None,
    structural_zeros: xr.DataArray | None = None,
    draws: int = 1000,
    quantiles: Sequence[float] = (0.025, 0.5, 0.975),
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    by: str | Sequence[str] = (),
    keep_draws: bool = False,
    random_seed: int | np.random.Generator | None = None,
    workers: Workers = None,
    progressbar: bool = True,
    store: str | PathLike[str] | None = None,
) -> xr.Dataset:
    r"""Posterior of the risk of each of many tables: R1, R2 and τ1.

    Parameters
    ----------
    tables : DataArray, mapping, iterable or records
        Samples. One DataArray holds a table for each category of `over`, such as an
        area. A mapping of labels to tables, or an iterable of tables, holds tables of
        any shapes. Records of individuals, whatever `tabulate` takes, are counted by
        `over` and `variables`. A DataArray in chunks of Dask gives a result in chunks.
    population_size : int, sequence, mapping, Series or DataArray
        `N` of each table: one number for all, one for each in the order of the tables,
        or one by label.
    over : str, optional
        The variable of a DataArray, or of records, whose categories are the tables.
    variables : sequence of str, optional
        The classifying variables of each table, if `tables` are records.
    estimator : Estimator or SharedProfile, optional
        An estimator is fitted to each table by itself. `SharedProfile` learns what all
        tables have in common, which narrows what is said of each; it needs tables in
        one DataArray with the same structural zeros, and is the default there from five
        tables on that can be assessed. From others nothing is learned.
        Otherwise the default is `default_estimator` of each table.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled: in all tables of a DataArray or, with the
        dimension `over`, in each.
    draws : int
        Populations drawn of each table; of fewer than 400 the ends of intervals are
        rough.
    quantiles : sequence of float
        Probabilities in (0, 1).
    weights : sequence of three floats
        As in `disclosure_risk`.
    by : str or sequence of str
        Variables whose categories are to be assessed, too; for tables in one DataArray.
    keep_draws : bool
        Whether the result has the measures of every draw.
    random_seed : int or Generator, optional
        The same seed gives the same numbers: those of a table depend on the seed, its
        label and itself alone, or also on what the tables share, whatever the order of
        the tables and the number of workers. If no seed is given, that of an existing
        `store` is used.
    workers : int or dask.distributed.Client, optional
        Number of processes, all cores by default; or the client of a cluster, whose
        workers are then used.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.
    store : path, optional
        A folder for what is done, each chain over what areas share included. The same
        call goes on from there after an interruption; the folder of another call is
        refused. Needs ``taciturn[many]``.

    Returns
    -------
    Dataset
        By table (the dimension `over`, or ``table``): ``R1``, ``R2`` and ``tau1`` with
        the dimension ``quantile``; their means ``R1_mean`` and so on; with `by`
        ``R2_by_<variable>`` and ``R2_by_<variable>_mean``, by category, and
        ``empty_by_<variable>``, the share of draws with nobody in it, in which all
        measures are 0, as in `assess`; with `keep_draws` ``R2_draws``, by ``draw``.
        ``R2_ess`` is how many independent draws those of R2 are worth for its mean, by
        their autocorrelation, where areas share a profile: few where one departs a lot;
        NaN of fits to single tables. ``converged`` is whether the sampler of the table,
        or of what areas share, did. A table that cannot be assessed, such as one with a
        count that is missing, has NaN, and the ``reason`` in words; others have an
        empty one. ``sample_size`` and ``population_size`` are 0 where they are
        not known. The attribute ``settings`` is JSON.

    Raises
    ------
    TableError
        A DataArray none of whose tables is one; for `SharedProfile`, fewer than two
        areas that can be assessed.
    ParameterError
        Population sizes that do not match the tables, labels that are no text or
        numbers, or what else is out of its range.
    PriorError
        A prior that the model of what areas share does not have.
    FileFormatError
        `store` is of another call, in use or cannot be written.

    Warns
    -----
    ConvergenceWarning
        What areas share was not learned well enough; ``converged`` is False everywhere.

    See Also
    --------
    assess : The risk of one fit, with all that ArviZ does.

    Notes
    -----
    *Chunks.* With tables in chunks of Dask along `over`, the result is computed when it
    is asked for, by whatever scheduler or client is then active; the numbers are the
    same. Small chunks that follow each other are one task, of up to two hundred tables
    of areas that share a profile or of an estimator that draws several tables at once,
    and fifty others, unless their cells are a million; the result has chunks of up to
    two hundred. Only what areas share is learned at once, from the areas that this
    takes. A table is checked when its task runs. As it
    is not known before how many tables have a sample, `SharedProfile` is the default
    from five tables on.

    *Counts.* Quantiles of ``tau1``, a count, are whole numbers: the smallest with at
    least that probability at or below them.

    *What a store gives away.* It has the risk of every sample to the last digit and a
    hash of all tables. Keep it like the samples.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.2, random_seed=1)
    >>> risk = tc.assess_many(
    ...     sample,
    ...     over="area",
    ...     population_size=religion.sum("religion"),
    ...     estimator=tc.ChineseRestaurant(),
    ...     draws=100,
    ...     random_seed=1,
    ...     progressbar=False,
    ...     workers=1,
    ... )
    >>> dict(risk["R2"].sizes)
    {'area': 10, 'quantile': 3}
    """
    if variables is not None:
        if isinstance(tables, xr.DataArray):
            raise ParameterError("variables are those of records: tables are in a DataArray")
        tables = tabulate(tables, [named_over(over), *names_of(variables, "variables")])
    found = collected(tables, population_size, over, structural_zeros)
    place = _folder(store)
    if found.lazy and place is not None:
        raise ParameterError("store is for tables in memory: write a lazy result with to_zarr")
    kept = _kept(found, draws, quantiles, weights, by, keep_draws)
    kept.check_names(found.over)
    chosen = _chosen(found, estimator)
    if random_seed is None and place is not None:
        random_seed = recorded(place / "log.jsonl", "random_seed", int)
    run = _Run(found, chosen, kept, seed_number(random_seed), workers, progressbar)
    risk = run.lazily() if found.lazy else run.at_once(place)
    return risk.assign_attrs(settings=json.dumps(run.settings))


def _folder(store: Any) -> Path | None:
    """Where results are kept, on this machine."""
    if store is None:
        return None
    if not isinstance(store, str | PathLike) or ADDRESS.match(str(store)):
        raise ParameterError(
            f"store must be the name of a folder on this machine, got {quoted(store)}"
        )
    return expanded(store)


@dataclass(frozen=True)
class _Run:
    """One call, with its arguments checked."""

    tables: Collection
    estimator: Estimator | SharedProfile | None
    kept: Kept
    seed: int
    workers: Workers
    progressbar: bool

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All but the tables."""
        return {
            "estimator": None if self.estimator is None else self.estimator.spec(),
            **asdict(self.kept),
            "random_seed": self.seed,
            "version": __version__,
        }

    @property
    def step(self) -> int:
        """Number of tables of a task."""
        return _TABLES["shared" if isinstance(self.estimator, SharedProfile) else "alone"]

    def ready(self, results: Results | None) -> tuple[Estimator | Populations | None, bool]:
        """What draws populations, and whether what areas share is known well enough:
        learned now, or before an interruption.
        """
        if not isinstance(self.estimator, SharedProfile):
            return self.estimator, True
        assert isinstance(self.tables.tables, Stack)
        learned = self.estimator.learn(
            self._learned_from,
            self.tables.tables.layout,
            seed=self.seed,
            workers=self.workers,
            progressbar=self.progressbar,
            kept=results,
        )
        return learned.populations(self.kept.draws), learned.diagnostics(warn=True).converged

    @cached_property
    def _learned_from(self) -> Counts:
        """Samples of areas that can be assessed, in an order of their own, so that the
        one in which they are given decides nothing.
        """
        stack = self.tables.tables
        assert isinstance(self.estimator, SharedProfile)
        assert isinstance(stack, Stack)
        most = self.estimator.areas
        order = np.argsort([seed_of_table(self.seed, label) for label in self.tables.labels])
        order = order[[is_whole(self.tables.sizes[k]) for k in order.tolist()]]
        counts, rest = self._fine(order[:most]), order[most:]
        if len(counts) < most and len(rest):  # else no more of lazy tables are read
            rest = rest[stack.sampled[rest]]
        while len(counts) < most and len(rest):  # what is wrong of lazy tables shows in memory
            more, rest = self._fine(rest[:most]), rest[most:]
            counts = np.concatenate([counts, more])[:most]
        if len(counts) < 2:
            raise TableError(
                f"{len(counts)} of {len(self.tables)} areas can be assessed; what areas share needs"
                " two"
            )
        return counts

    def _fine(self, numbers: npt.NDArray[np.int64]) -> Counts:
        """Samples of those of some areas that can be assessed."""
        own = self.tables.chosen(numbers)
        assert isinstance(own.tables, Stack)
        return own.tables.counts[own.fine]

    def lazily(self) -> xr.Dataset:
        """A result that is computed when it is asked for, but for what areas share."""
        stack = self.tables.tables
        assert isinstance(stack, Stack)
        ready, converged = self.ready(None)
        block = Block(
            stack.over,
            {name: stack.tables[name].values for name in stack.sizes},
            ready,
            self.kept,
            converged,
            self.seed,
        )
        return assess_lazily(stack, self.tables.sizes, block)

    @property
    def _identity(self) -> dict[str, str]:
        """Hashes by which a store knows the tables again."""
        known = {"labels": self.tables.labels, "population_size": self.tables.sizes}
        own = {name: sha256(repr(values).encode()).hexdigest() for name, values in known.items()}
        return own | {"tables": self.tables.digest()}

    def at_once(self, store: Path | None) -> xr.Dataset:
        """A result in memory, from a store as far as that has it."""
        header = {} if store is None else {**self.settings, **self._identity}
        if isinstance(self.estimator, SharedProfile):
            self._learned_from  # noqa: B018 - what is wrong with it leaves no store
        with Results(store, header, len(self.tables), self.step, self.kept.shapes) as results:
            ready, converged = self.ready(results)
            self.fill(results, ready)
            risk = results.dataset(self.tables, self.kept)
        risk["converged"] = risk["converged"] & converged
        return risk

    def fill(self, results: Results, ready: Estimator | Populations | None) -> None:
        """Assess all tables that are still to do."""
        tasks = [
            Task(
                start,
                self.tables.part(start, start + self.step),
                ready,
                self.kept,
                self.seed,
            )
            for start in range(0, len(self.tables), self.step)
            if start not in results.done
        ]
        how: Any = {"workers": self.workers, "progressbar": self.progressbar}
        with closing(run_all(run_task, tasks, title=f"{len(self.tables)} tables", **how)) as parts:
            for start, arrays in parts:
                results.add(start, arrays)


def _kept(
    tables: Collection, draws: Any, quantiles: Any, weights: Any, by: Any, keep_draws: bool
) -> Kept:
    """What to keep of each table."""
    probabilities = tuple(
        real_number(value, "a quantile", least=0) for value in np.atleast_1d(quantiles).tolist()
    )
    if not probabilities or min(probabilities) <= 0 or max(probabilities) >= 1:
        raise ParameterError(f"quantiles must be in (0, 1), got {quoted(quantiles)}")
    if len(set(probabilities)) < len(probabilities):
        raise ParameterError(f"quantiles must differ, got {quoted(quantiles)}")
    draws = whole_number(draws, "draws", least=1)
    categories: dict[str, int] = {}
    if variables := names_of(by, "by"):
        if not isinstance(tables.tables, Stack):
            raise ParameterError("by is for tables in one DataArray")
        sizes = tables.tables.sizes
        categories = {name: sizes[name] for name in check_by(variables, tuple(sizes))}
    return Kept(draws, probabilities, check_weights(weights), categories, bool(keep_draws))


def _chosen(tables: Collection, estimator: Any) -> Estimator | SharedProfile | None:
    """The estimator; None is the default of each table."""
    stack = tables.tables if isinstance(tables.tables, Stack) else None
    if estimator is None:
        if stack is None or len(tables) < _FEWEST_AREAS:
            return None
        zeros = stack.structural_zeros
        if zeros is not None and tables.over in zeros.dims:
            return None
        if not tables.lazy and tables.fine.sum() < _FEWEST_AREAS:
            return None
        return SharedProfile()
    if isinstance(estimator, SharedProfile):
        if stack is None:
            raise ParameterError("SharedProfile needs tables in one DataArray: give it and over")
        return estimator
    if isinstance(estimator, Estimator):
        return estimator
    raise ParameterError(
        f"estimator must be an Estimator or SharedProfile(), got {quoted(estimator)}"
    )
