"""One part of many tables: their populations, and what is kept of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import effective_draws
from taciturn.errors import TableError, TaciturnError
from taciturn.estimators.base import Estimator
from taciturn.estimators.blocks import TABLES_AT_ONCE, TableBlock
from taciturn.estimators.default import default_estimator
from taciturn.estimators.problem import Problem
from taciturn.fits.risk import check_cells, measures
from taciturn.fits.unlabelled import MEASURES, draw_block, draw_populations, quantiles
from taciturn.many.collection import Collection, Stack
from taciturn.many.seeds import rng_of, seed_of_table
from taciturn.many.shared_profile.estimator import Populations
from taciturn.parallel import WITHOUT_THREADS
from taciturn.risk.table_risk import Weights

__all__ = ["Kept", "Task", "run_task"]

_REASON_BYTES: Final = 240  # of a reason, in UTF-8; longer ones are cut

Arrays = dict[str, npt.NDArray[Any]]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Kept:
    """What is kept of each table.

    Attributes
    ----------
    draws : int
        Of the population of each table.
    quantiles : tuple of float
        Probabilities.
    weights : tuple of float
        Of the terms of R1 and R2.
    by : dict of str to int
        Variables whose categories are assessed, too, and how many these are.
    every_draw : bool
        Whether all draws are kept.
    """

    draws: int
    quantiles: tuple[float, ...]
    weights: Weights
    by: dict[str, int]
    every_draw: bool

    @property
    def arrays(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Type and dimensions of every array, but for the tables."""
        found: dict[str, tuple[str, tuple[str, ...]]] = {
            "sample_size": ("int64", ()),
            "converged": ("bool", ()),
            "R2_ess": ("float64", ()),
            "reason": ("uint8", ("reason",)),
        }
        for measure in MEASURES:
            for name, own in ((measure, ()), *((f"{measure}_by_{v}", (v,)) for v in self.by)):
                found[name] = ("float64", (*own, "quantile"))
                found[f"{name}_mean"] = ("float64", own)
            if self.every_draw:
                found[f"{measure}_draws"] = ("float64", ("draw",))
        for variable in self.by:
            found[f"empty_by_{variable}"] = ("float64", (variable,))
        return found

    def check_names(self, over: str) -> None:
        """Raise `TableError` for a variable that gives the result labels and has the
        name of one of its arrays.
        """
        taken = {*self.arrays, "population_size", "quantile", "draw"}
        others = {f"{variable}_mean" for variable in self.by}  # whose arrays would be the same
        for name in (over, *self.by):
            if name in taken or name in others:
                raise TableError(
                    f"the variable {name!r} has the name of a result: rename it",
                    in_python=f", as in tables.rename({{{name!r}: ...}})",
                )

    @property
    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of every array, but for the tables."""
        sizes = {"reason": _REASON_BYTES, "quantile": len(self.quantiles), "draw": self.draws}
        sizes |= self.by
        return {
            name: (kind, tuple(sizes[dim] for dim in dims))
            for name, (kind, dims) in self.arrays.items()
        }


@dataclass(frozen=True)
class Task:
    """Some of the tables.

    Attributes
    ----------
    start : int
        Number of the first table.
    estimator : Estimator, Populations or None
        For one table after the other, what areas share, or the default of each table.
    """

    start: int
    tables: Collection
    estimator: Estimator | Populations | None
    kept: Kept
    seed: int


def run_task(task: Task) -> tuple[int, Arrays]:
    """What is kept of each table, with the number of the first."""
    number = len(task.tables)
    out: Arrays = {}
    for name, (kind, shape) in task.kept.shapes.items():
        empty = np.nan if kind == "float64" else 0
        out[name] = np.full((number, *shape), empty, dtype=kind)
    stack = task.tables.tables
    if isinstance(stack, Stack):
        out["sample_size"][:] = stack.tables.sum(stack.tables.dims[1:]).values
    if isinstance(task.estimator, Populations):
        assert isinstance(stack, Stack)
        _assess_blocks(task, task.estimator, stack, out)
    else:
        _assess_alone(task, task.estimator, out)
    return task.start, out


def _assess_alone(task: Task, given: Estimator | None, out: Arrays) -> None:
    """Blocks of tables, as far as the estimator takes them, and one fit after the
    other; tables that are alike are measured together.
    """
    done = np.zeros(len(task.tables), dtype=bool)
    if given is not None:
        _assess_blocks_of_fits(task, given, out, done)
    for own in _together(_drawn(task, given, out, done)):
        drawn = [each.population for each in own]
        population = np.stack(drawn) if len(drawn) > 1 else drawn[0][None]  # large: no copy
        samples = np.stack([each.problem.sample.values for each in own])
        variables, fillable = own[0].problem.variables, own[0].problem.fillable
        measured = _measured(population, samples, variables, fillable, task.kept)
        for name, values in measured.items():
            out[name][[each.number for each in own]] = values


@dataclass(frozen=True)
class _Drawn:
    """Populations of one table, (draws, cells)."""

    number: int
    problem: Problem
    population: Counts

    def is_like(self, other: "_Drawn") -> bool:
        """Whether both have the same variables and cells that can be filled."""
        one, two = self.problem, other.problem
        return one.variables == two.variables and np.array_equal(one.fillable, two.fillable)


def _drawn(task: Task, given: Estimator | None, out: Arrays, done: Mask) -> Iterator[_Drawn]:
    """Populations of each table that is not done and can be assessed; of others the
    reason is kept.
    """
    for k, label in enumerate(task.tables.labels):
        if done[k]:
            continue
        try:
            problem = task.tables.problem(k)
            _check_categories(problem.sample, problem.fillable, task.kept)
            seed = seed_of_table(task.seed, label)
            estimator = given or default_estimator(problem.sample)
            population, converged = draw_populations(estimator, problem, task.kept.draws, seed)
        except TaciturnError as error:
            _give_reason(out, k, error)
            if not isinstance(task.tables.tables, Stack):
                out["sample_size"][k] = task.tables.sampled(k)
            continue
        out["sample_size"][k], out["converged"][k] = problem.sample_size, converged
        yield _Drawn(k, problem, population)


def _together(drawn: Iterator[_Drawn]) -> Iterator[list[_Drawn]]:
    """Tables that are alike and follow each other, as many as are measured at once."""
    own: list[_Drawn] = []
    for one in drawn:
        if own and not one.is_like(own[0]):
            yield own
            own = []
        own.append(one)
        if (len(own) + 1) * one.population.size > WITHOUT_THREADS:  # before more are drawn
            yield own
            own = []
    if own:
        yield own


def _assess_blocks_of_fits(task: Task, estimator: Estimator, out: Arrays, done: Mask) -> None:
    """Tables of a stack with the same structural zeros, a block of them at once; what
    is wrong with others, or with all, is left to what takes one table, and so are large
    ones, as compiled code cannot be interrupted.
    """
    stack, draws = task.tables.tables, task.kept.draws
    if not isinstance(stack, Stack) or not stack.same_zeros:
        return
    numbers, samples = np.flatnonzero(task.tables.fine), stack.tables.values
    counts = samples.reshape(len(samples), -1)
    at_once = min(TABLES_AT_ONCE, WITHOUT_THREADS // (draws * counts.shape[1]))
    if at_once == 0:
        return
    for block in batched(numbers.tolist(), at_once):
        own, first = np.array(block), task.tables.problem(block[0])
        seeds = [seed_of_table(task.seed, task.tables.labels[k]) for k in block]
        sizes = np.array([task.tables.sizes[k] for k in block], dtype=np.int64)
        try:
            _check_categories(first.sample, first.fillable, task.kept)
            found = draw_block(estimator, TableBlock(first, counts[own], sizes), draws, seeds)
        except TaciturnError:
            return
        if found is None:
            return
        drawn, trusted = found
        if trusted.any():
            _keep_block(task, stack, own[trusted], drawn[trusted], first.fillable, out)
            done[own[trusted]] = True


def _keep_block(
    task: Task,
    stack: Stack,
    own: Counts,
    drawn: Counts,
    fillable: Mask,
    out: Arrays,
    *,
    of_a_chain: bool = False,
) -> None:
    """What is kept of tables with these populations, (tables, draws, cells)."""
    out["converged"][own] = True
    given = (drawn, stack.tables.values[own], tuple(stack.sizes), fillable, task.kept)
    for name, values in _measured(*given, of_a_chain=of_a_chain).items():
        out[name][own] = values


def _assess_blocks(task: Task, shared: Populations, stack: Stack, out: Arrays) -> None:
    """Areas that share a profile, a block of them in each call of compiled code."""
    fillable, fine = stack.layout.fillable, task.tables.fine
    for k in np.flatnonzero(~fine).tolist():
        try:
            task.tables.problem(k)
        except TaciturnError as error:
            _give_reason(out, k, error)
    try:
        _check_categories(stack.blank, fillable, task.kept)
    except TaciturnError as error:
        for k in np.flatnonzero(fine).tolist():
            _give_reason(out, k, error)
        return
    counts = stack.counts
    for block in batched(np.flatnonzero(fine).tolist(), shared.at_once):
        own = np.array(block)
        rngs = [rng_of(task.seed, task.tables.labels[k]) for k in block]
        sizes = np.array([task.tables.sizes[k] for k in block], dtype=np.int64)
        drawn = np.zeros((len(own), task.kept.draws, fillable.size), dtype=np.int64)
        drawn[..., fillable] = shared.draw(counts[own], sizes, rngs)
        mask = fillable.reshape(stack.tables.shape[1:])
        _keep_block(task, stack, own, drawn, mask, out, of_a_chain=True)


def _check_categories(table: xr.DataArray, fillable: Mask, kept: Kept) -> None:
    """Raise `TableError` unless each category of `by` has two cells to fill."""
    if not kept.by:
        return
    cells = table.copy(data=fillable.reshape(table.shape))
    for variable in kept.by:
        check_cells(cells.sum([dim for dim in cells.dims if dim != variable]))


def _give_reason(out: Arrays, number: int, error: TaciturnError) -> None:
    """Why a table cannot be assessed."""
    text = f"{type(error).__name__}: {error}".encode()[:_REASON_BYTES]
    out["reason"][number, : len(text)] = np.frombuffer(text, dtype=np.uint8)


def _measured(
    population: Counts,
    samples: Counts,
    variables: Sequence[str],
    fillable: Mask,
    kept: Kept,
    *,
    of_a_chain: bool = False,
) -> Arrays:
    """Quantiles, means and draws of every measure of some tables and of their
    categories, from populations (tables, draws, cells) and samples (tables, ...), all
    with the same variables and cells that can be filled, (...). Of the draws of a chain
    also what they are worth: those of other fits are resampled, in no order.
    """
    found: Arrays = {}
    tables = population.reshape(*population.shape[:2], *fillable.shape)
    for variable in (None, *kept.by):
        axis = None if variable is None else variables.index(variable)
        risk = measures(tables, samples[:, None], fillable, axis, kept.weights)
        for measure in MEASURES:
            name = measure if variable is None else f"{measure}_by_{variable}"
            draws = np.moveaxis(risk[measure], 1, 0)
            found[name] = quantiles(draws, kept.quantiles, measure)
            found[f"{name}_mean"] = draws.mean(axis=0)
            if kept.every_draw and variable is None:
                found[f"{name}_draws"] = risk[measure]
        if variable is None and of_a_chain:
            found["R2_ess"] = effective_draws(risk["R2"])
        if variable is not None:
            found[f"empty_by_{variable}"] = (risk["size_term"] == 0).mean(axis=1)
    return found
