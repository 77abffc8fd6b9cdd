"""One part of many tables: their fits, one by one, and what is kept of each."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import TableError, TaciturnError
from taciturn.estimators.base import Estimator
from taciturn.estimators.default import default_estimator
from taciturn.estimators.problem import Problem
from taciturn.fits.risk import check_cells, measures
from taciturn.fits.unlabelled import MEASURES, draw_populations, quantiles
from taciturn.many.collection import Collection, Stack
from taciturn.many.seeds import rng_of, seed_of_table
from taciturn.many.shared_profile.estimator import Populations
from taciturn.risk.table_risk import Weights

__all__ = ["Kept", "Task", "run_task"]

_REASON_BYTES: Final = 240  # of a reason, in UTF-8; longer ones are cut

Counts = npt.NDArray[np.int64]


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
            "reason": ("uint8", ("byte",)),
        }
        for measure in MEASURES:
            for name, own in ((measure, ()), *((f"{measure}_by_{v}", (v,)) for v in self.by)):
                found[name] = ("float64", (*own, "quantile"))
                found[f"{name}_mean"] = ("float64", own)
            if self.every_draw:
                found[f"{measure}_draws"] = ("float64", ("draw",))
        return found

    def check_names(self, over: str) -> None:
        """Raise `TableError` for a variable that gives the result labels and has the
        name of one of its arrays.
        """
        taken = {*self.arrays, "population_size", "quantile", "draw"}
        for name in (over, *self.by):
            if name in taken:
                raise TableError(
                    f"the variable {name!r} has the name of a result: rename it",
                    in_python=f", as in tables.rename({{{name!r}: ...}})",
                )

    @property
    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of every array, but for the tables."""
        sizes = {"byte": _REASON_BYTES, "quantile": len(self.quantiles), "draw": self.draws}
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


def run_task(task: Task) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """What is kept of each table, with the number of the first."""
    number = len(task.tables)
    out: dict[str, npt.NDArray[Any]] = {}
    for name, (kind, shape) in task.kept.shapes.items():
        empty = np.nan if kind == "float64" else 0
        out[name] = np.full((number, *shape), empty, dtype=kind)
    if isinstance(task.tables.tables, Stack):
        table = task.tables.tables.tables
        out["sample_size"][:] = table.sum(table.dims[1:]).values
    for k, label in enumerate(task.tables.labels):
        try:
            problem = task.tables.problem(k)
            population, converged = _drawn(task, problem, label)
            measured = _measured(population, problem, task.kept)
        except TaciturnError as error:
            text = f"{type(error).__name__}: {error}".encode()[:_REASON_BYTES]
            out["reason"][k, : len(text)] = np.frombuffer(text, dtype=np.uint8)
            continue
        out["sample_size"][k], out["converged"][k] = problem.sample_size, converged
        for name, values in measured.items():
            out[name][k] = values
    return task.start, out


def _drawn(task: Task, problem: Problem, label: Any) -> tuple[Counts, bool]:
    """Populations of a table, (draws, cells), and whether its fit converged."""
    if isinstance(task.estimator, Populations):
        return task.estimator.draw(problem, rng_of(task.seed, label)), True
    seed = seed_of_table(task.seed, label)
    estimator = task.estimator or default_estimator(problem.sample)
    return draw_populations(estimator, problem, task.kept.draws, seed)


def _measured(population: Counts, problem: Problem, kept: Kept) -> dict[str, Any]:
    """Quantiles, means and draws of every measure of a table and of its categories."""
    found: dict[str, Any] = {}
    tables = population.reshape(-1, *problem.sample.shape)
    for variable in (None, *kept.by):
        axis = None if variable is None else problem.variables.index(variable)
        if variable is not None:
            cells = problem.sample.copy(data=problem.fillable)
            check_cells(cells.sum([dim for dim in problem.variables if dim != variable]))
        risk = measures(tables, problem.sample.values, problem.fillable, axis, kept.weights)
        for measure in MEASURES:
            name = measure if variable is None else f"{measure}_by_{variable}"
            found[name] = quantiles(risk[measure], kept.quantiles, measure)
            found[f"{name}_mean"] = risk[measure].mean(axis=0)
            if kept.every_draw and variable is None:
                found[f"{name}_draws"] = risk[measure]
    return found
