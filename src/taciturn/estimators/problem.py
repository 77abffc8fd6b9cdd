"""What an estimator is given: a checked sample and what is known of its population."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.estimators.design import Weighting, check_weighting
from taciturn.estimators.rates import smoothed_weights
from taciturn.schema import MAX_COUNT, WEIGHTED_COUNT, cell_label, table_dims
from taciturn.tables.checks import aligned, check_table
from taciturn.tables.sampling import MAX_SAMPLED_POPULATION
from taciturn.validate import is_whole, quoted

__all__ = ["Problem", "check_names", "checked_fillable", "make_problem", "problem_of"]

_TAKEN: Final = frozenset(
    {
        "effective_size",
        "expected_empty_cells",
        "individual",
        "individuals",
        "known_margins",
        "leave_one_out",
        "member",
        "occupied_cell",
        "population",
        "population_size",
        "probability",
        "sample",
        "sampled_stratum",
        "sampling_weights",
        "stratified",
        "structural_zeros",
        "theta",
    }
)
"""Names that no dimension of the table may have: those of a fit's own variables, and
``sample``, ArviZ's name for chain and draw combined."""


_NOBODY_ELSE: Final = 0.001
"""People that somebody stands for at most beside themselves, if for nobody else,"""
_OF_AVERAGE: Final = 0.1
"""and as a part of those for whom people stand on average."""


@dataclass(frozen=True)
class Problem:
    """A checked sample table and what is known about its population.

    Attributes
    ----------
    sample : DataArray
        The sample `f`.
    population_size : int
        `N`.
    fillable : array of bool
        Shape of the sample; False at structural zeros.
    known_margins : DataArray, optional
        The population's table over some of the variables, in the sample's order of
        variables and categories.
    stratified : bool
        Whether the known margins are those of strata, in each of which a sample of its
        own was drawn.
    weighting : Weighting, optional
        Of a sample in which not everybody was equally likely.
    """

    sample: xr.DataArray
    population_size: int
    fillable: npt.NDArray[np.bool_]
    known_margins: xr.DataArray | None = None
    stratified: bool = False
    weighting: Weighting | None = None

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The classifying variables."""
        return table_dims(self.sample)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of categories of each variable."""
        return {dim: self.sample.sizes[dim] for dim in self.variables}

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The sample as a vector over all cells."""
        return np.asarray(self.sample.values, dtype=np.int64).ravel()

    @cached_property
    def learned_from(self) -> npt.NDArray[np.float64]:
        """The sample as counts that add up to what it says as much as."""
        scale = 1.0 if self.weighting is None else self.weighting.effective_size / self.sample_size
        return np.asarray(self.counts * scale, dtype=float)

    @property
    def whole(self) -> bool:
        """Whether it is learned from the sample's own counts."""
        return self.weighting is None or self.weighting.effective_size == self.sample_size

    @cached_property
    def rates(self) -> npt.NDArray[np.float64]:
        """Probability of the individuals of each cell to be sampled."""
        if self.weighting is None:
            return np.full(self.sample.size, self.sample_size / self.population_size)
        totals = self.weighting.totals.values.astype(float)
        totals *= self.population_size / totals.sum()
        weights = smoothed_weights(self.sample.values, totals)
        weights *= self.population_size / (self.sample.values * weights).sum()
        average = self.population_size / self.sample_size - 1
        others = min(_NOBODY_ELSE, _OF_AVERAGE * average)
        whole = (self.counts > 0) & (totals.ravel() - self.counts < self.counts * others)
        return np.where(whole, 1.0, 1 / np.maximum(weights.ravel(), 1.0))

    @property
    def relative_rates(self) -> npt.NDArray[np.float64]:
        """The same, relative to that of a simple random sample."""
        if self.weighting is None:
            return np.ones(self.sample.size)
        return self.rates * (self.population_size / self.sample_size)

    @cached_property
    def sample_size(self) -> int:
        """Number of sampled individuals, `n`."""
        return int(self.counts.sum())

    @cached_property
    def cells(self) -> int:
        """Number of cells that can be filled, `K`."""
        return int(self.fillable.sum())

    @property
    def structural_zeros(self) -> xr.DataArray:
        """True where a cell cannot be filled."""
        return self.sample.copy(data=~self.fillable).rename("structural_zeros")

    @cached_property
    def strata(self) -> npt.NDArray[np.int64]:
        """For each cell, the position of the known margin that it counts towards; 0 for
        every cell if no margins are known.
        """
        if self.known_margins is None:
            return np.zeros(self.sample.size, dtype=np.int64)
        numbers = xr.DataArray(
            np.arange(self.known_margins.size).reshape(self.known_margins.shape),
            dims=self.known_margins.dims,
        )
        _, spread = xr.broadcast(xr.DataArray(self.sample.values, dims=self.variables), numbers)
        return np.asarray(spread.transpose(*self.variables).values).ravel()

    @property
    def stratum_sizes(self) -> npt.NDArray[np.int64]:
        """Number of individuals of the population in each stratum."""
        if self.known_margins is None:
            return np.array([self.population_size])
        return np.asarray(self.known_margins.values, dtype=np.int64).ravel()

    @cached_property
    def occupied(self) -> npt.NDArray[np.int64]:
        """Positions of the cells with a positive sample count, in row-major order."""
        return np.flatnonzero(self.counts)

    @property
    def constants(self) -> dict[str, Any]:
        """What a fit keeps of the problem besides the sample, for ``constant_data``."""
        found: dict[str, Any] = {
            "population_size": self.population_size,
            "structural_zeros": self.structural_zeros,
        }
        if self.known_margins is not None:
            found |= {"known_margins": self.known_margins}
        if self.stratified:
            found |= {"stratified": True}
        if self.weighting is not None:
            found |= {
                "sampling_weights": self.weighting.totals,
                "effective_size": self.weighting.effective_size,
            }
        return found

    def refuse_names(self, names: Collection[str]) -> None:
        """Raise `TableError` if a variable has one of these names, which belong to
        parameters of the model.
        """
        clash = sorted(set(names) & set(self.variables))
        if clash:
            raise TableError(
                f"the variable {clash[0]!r} has the name of a parameter of the model: rename it"
            )

    def without(self, cell: int) -> "Problem":
        """Return the problem with one sampled individual of that cell removed."""
        counts = self.counts.copy()
        counts[cell] -= 1
        return replace(self, sample=self.sample.copy(data=counts.reshape(self.sample.shape)))

    def draws(self, values: npt.NDArray[np.int64], chains: int, name: str) -> xr.DataArray:
        """Label tables of shape (chains * draws, cells) by chain, draw and cell."""
        return self.label(values.reshape(chains, -1, *self.sample.shape), name)

    def label(self, tables: Any, name: str) -> xr.DataArray:
        """Label an array of shape ``(chains, draws, *sample.shape)``."""
        coords = {
            "chain": np.arange(tables.shape[0]),
            "draw": np.arange(tables.shape[1]),
            **{dim: self.sample[dim].values for dim in self.variables},
        }
        return xr.DataArray(
            tables, dims=("chain", "draw", *self.variables), coords=coords, name=name
        )


def make_problem(
    sample: xr.DataArray,
    population_size: int,
    structural_zeros: xr.DataArray | None = None,
    known_margins: xr.DataArray | None = None,
    strata: xr.DataArray | None = None,
    sampling_weights: xr.DataArray | None = None,
    effective_size: float | None = None,
) -> Problem:
    """Check a sample against its population; the arguments are those of
    `Estimator.fit`.

    Raises
    ------
    TableError
        Fewer than two cells, an empty sample, a structural zero with a positive count,
        or a variable whose name is reserved for fits; known margins that are not a
        table over some of the variables, or that contradict the sample, the population
        size or the structural zeros, and the same of strata; sampling weights that
        contradict the sample.
    ParameterError
        A population size that is not a whole number, or that is below the sample size
        or above 2**53; an effective size beyond the sample's; known margins, strata and
        weights together.
    """
    refuse_weighted(sample)
    given = (structural_zeros, known_margins, strata, sampling_weights)
    sample = check_table(sample, name="sample", like=given)
    check_names(table_dims(sample))
    _check_size(sample, population_size)
    fillable = np.ones(sample.shape, dtype=bool)
    if structural_zeros is not None:
        fillable = checked_fillable(sample, structural_zeros)
        _check_fillable(sample, fillable)
    coords = {dim: sample[dim].values for dim in table_dims(sample)}
    bare = xr.DataArray(sample.values, dims=sample.dims, coords=coords, name=sample.name)
    weighting = check_weighting(bare, sampling_weights, effective_size)
    problem = Problem(bare, int(population_size), fillable, weighting=weighting)
    return _with_margins(problem, known_margins, strata)


def problem_of(
    sample: xr.DataArray, population_size: int, fillable: npt.NDArray[np.bool_]
) -> Problem:
    """The problem of a table that is checked but for its counts: one of many."""
    _check_size(sample, population_size)
    _check_fillable(sample, fillable)
    return Problem(sample, int(population_size), fillable)


def refuse_weighted(sample: Any) -> None:
    """Raise `TableError` for sums of weights in place of a sample."""
    if getattr(sample, "name", None) == WEIGHTED_COUNT:
        raise TableError(
            "the sample is a table of sums of weights, an estimate of the population: give the"
            " sample as it was counted, and this as sampling_weights"
        )


def check_names(variables: Collection[str]) -> None:
    """Raise `TableError` for a variable whose name fits use themselves."""
    for dim in variables:
        if dim in _TAKEN or "/" in dim:
            rule = (
                "holds a '/', which separates the groups of a fit"
                if "/" in dim
                else "is a name that fits use"
            )
            raise TableError(
                f"the variable {dim!r} {rule}: rename it",
                in_python=f", as in sample.rename({{{dim!r}: ...}})",
            )


def _check_size(sample: xr.DataArray, population_size: Any) -> None:
    size = int(sample.values.sum())
    if sample.size < 2:
        raise TableError(f"the sample has {sample.size} cell; a table needs at least two")
    if size == 0:
        raise TableError("the sample is empty: nothing can be said about its population")
    if not is_whole(population_size):
        raise ParameterError(
            f"population_size must be a whole number up to 2**53, got {quoted(population_size)}"
        )
    if not size <= population_size <= MAX_COUNT:
        raise ParameterError(
            f"population_size must be from the sample's {size} individuals to 2**53, got"
            f" {population_size}"
        )


def _with_margins(problem: Problem, known_margins: Any, strata: Any) -> Problem:
    """The problem with known margins or strata, of which there may be one."""
    given = {"known_margins": known_margins, "strata": strata}
    if problem.weighting is not None:
        given["sampling_weights"] = problem.weighting
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) > 1:
        raise ParameterError(f"give one of {', '.join(given)}, not several")
    for name in ("known_margins", "strata"):
        if name in given:
            margins = _checked_margins(problem, given[name], name)
            problem = replace(problem, known_margins=margins, stratified=name == "strata")
    return problem


def _checked_margins(problem: Problem, margins: Any, name: str) -> xr.DataArray:
    """The known margins in the sample's order, checked against the rest of the data."""
    if isinstance(margins, list | tuple):
        raise TableError(f"{name} must be one DataArray: several margins at once are not supported")
    table = check_table(margins, name=name, like=(problem.sample,))
    dims = [dim for dim in problem.variables if dim in table.dims]
    if not dims or len(dims) < table.ndim:
        raise TableError(
            f"{name} must be a table over some of the sample's variables"
            f" {problem.variables}, got {table.dims}"
        )
    table = aligned(
        table,
        problem.sample.sum([d for d in problem.variables if d not in dims]),
        names=(name, "sample"),
    )
    table = table.transpose(*dims)
    total = int(table.sum())
    if total != problem.population_size:
        raise TableError(f"{name} sum to {total}, but population_size is {problem.population_size}")
    if name == "known_margins" and total >= MAX_SAMPLED_POPULATION:
        raise TableError(
            f"known_margins must be of fewer than 10**9 people, which they are sampled from: they"
            f" sum to {total}"
        )
    bare = xr.DataArray(
        table.values, dims=dims, coords={dim: problem.sample[dim].values for dim in dims}
    )
    known = replace(problem, known_margins=bare)
    strata, sizes = known.strata, known.stratum_sizes
    sampled = np.bincount(strata, weights=problem.counts, minlength=len(sizes)).astype(np.int64)
    fillable = np.bincount(strata, weights=problem.fillable.ravel(), minlength=len(sizes)) > 0
    for what, wrong in (
        ("is below the sample's {sampled}", sizes < sampled),
        ("cannot be filled: all its cells are structural zeros", (sizes > 0) & ~fillable),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            at = cell_label(bare, tuple(int(i) for i in np.unravel_index(first, bare.shape)))
            raise TableError(
                f"the {'known margin' if name == 'known_margins' else 'size'} {sizes[first]} of"
                f" {at} {what.format(sampled=sampled[first])}"
            )
    return bare.rename("known_margins")


def checked_fillable(sample: xr.DataArray, structural_zeros: Any) -> npt.NDArray[np.bool_]:
    """Where cells can be filled, from structural zeros of tables like the sample."""
    if not isinstance(structural_zeros, xr.DataArray) or structural_zeros.dtype != np.bool_:
        raise TableError(
            "structural_zeros must be a DataArray of bool, True where a cell cannot be filled"
        )
    same_variables = set(structural_zeros.dims) == set(sample.dims)
    if same_variables and dict(structural_zeros.sizes) != dict(sample.sizes):
        raise TableError(
            f"structural_zeros has the sizes {dict(structural_zeros.sizes)}, the sample has"
            f" {dict(sample.sizes)}"
        )
    zeros = aligned(structural_zeros, sample, names=("structural_zeros", "sample"))
    zeros = zeros.transpose(*sample.dims)
    return np.asarray(~zeros.values)


def _check_fillable(sample: xr.DataArray, fillable: npt.NDArray[np.bool_]) -> None:
    """Raise `TableError` where a cell is filled that cannot be, or few can be."""
    filled = np.argwhere(~fillable & (sample.values > 0))
    if len(filled):
        at = cell_label(sample, tuple(int(i) for i in filled[0]))
        raise TableError(
            f"a structural zero has a positive count: {at} holds"
            f" {int(sample.values[tuple(filled[0])])}"
        )
    if fillable.sum() < 2:
        raise TableError(f"{int(fillable.sum())} cell can be filled; a table needs at least two")
