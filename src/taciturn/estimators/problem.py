"""What an estimator is given: a checked sample and what is known of its population."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables.checks import aligned, check_table
from taciturn.validate import is_whole, quoted

__all__ = ["Problem", "make_problem"]

_TAKEN: Final = frozenset(
    {
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
        "structural_zeros",
        "theta",
    }
)
"""Names that no dimension of the table may have: those of a fit's own variables, and
``sample``, ArviZ's name for chain and draw combined."""
_MARGIN_NAMES: Final = ("known_margins", "sample")


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
    """

    sample: xr.DataArray
    population_size: int
    fillable: npt.NDArray[np.bool_]
    known_margins: xr.DataArray | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The classifying variables."""
        return table_dims(self.sample)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of categories of each variable."""
        return {dim: self.sample.sizes[dim] for dim in self.variables}

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The sample as a vector over all cells."""
        return np.asarray(self.sample.values, dtype=np.int64).ravel()

    @property
    def sample_size(self) -> int:
        """Number of sampled individuals, `n`."""
        return int(self.sample.sum())

    @property
    def cells(self) -> int:
        """Number of cells that can be filled, `K`."""
        return int(self.fillable.sum())

    @property
    def structural_zeros(self) -> xr.DataArray:
        """True where a cell cannot be filled."""
        return self.sample.copy(data=~self.fillable).rename("structural_zeros")

    @property
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

    @property
    def occupied(self) -> npt.NDArray[np.int64]:
        """Positions of the cells with a positive sample count, in row-major order."""
        return np.flatnonzero(self.counts)

    @property
    def constants(self) -> dict[str, Any]:
        """What a fit keeps of the problem besides the sample, for ``constant_data``."""
        found = {
            "population_size": self.population_size,
            "structural_zeros": self.structural_zeros,
        }
        margins = {} if self.known_margins is None else {"known_margins": self.known_margins}
        return found | margins

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
) -> Problem:
    """Check a sample against its population.

    Raises
    ------
    TableError
        Fewer than two cells, an empty sample, a structural zero with a positive count,
        or a variable whose name is reserved for fits; known margins that are not a
        table over some of the variables, or that contradict the sample, the population
        size or the structural zeros.
    ParameterError
        A population size that is not a whole number, or that is below the sample size
        or above 2**53.
    """
    sample = check_table(sample, name="sample")
    for dim in table_dims(sample):
        if dim in _TAKEN or "/" in dim:
            rule = (
                "holds a '/', which separates the groups of a fit"
                if "/" in dim
                else "is a name that fits use"
            )
            raise TableError(
                f"the variable {dim!r} {rule}: rename it, as in sample.rename({{{dim!r}: ...}})"
            )
    size = int(sample.sum())
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
    fillable = np.ones(sample.shape, dtype=bool)
    if structural_zeros is not None:
        fillable = _fillable(sample, structural_zeros)
        if fillable.sum() < 2:
            raise TableError(
                f"{int(fillable.sum())} cell can be filled; a table needs at least two"
            )
    coords = {dim: sample[dim].values for dim in table_dims(sample)}
    bare = xr.DataArray(sample.values, dims=sample.dims, coords=coords, name=sample.name)
    problem = Problem(bare, int(population_size), fillable)
    if known_margins is None:
        return problem
    return replace(problem, known_margins=_checked_margins(problem, known_margins))


def _checked_margins(problem: Problem, margins: Any) -> xr.DataArray:
    """The known margins in the sample's order, checked against the rest of the data."""
    if isinstance(margins, list | tuple):
        raise TableError(
            "known_margins must be one DataArray: several margins at once are not supported"
        )
    table = check_table(margins, name="known_margins")
    dims = [dim for dim in problem.variables if dim in table.dims]
    if not dims or len(dims) < table.ndim:
        raise TableError(
            "known_margins must be a table over some of the sample's variables"
            f" {problem.variables}, got {table.dims}"
        )
    table = aligned(
        table,
        problem.sample.sum([d for d in problem.variables if d not in dims]),
        names=_MARGIN_NAMES,
    )
    table = table.transpose(*dims)
    total = int(table.sum())
    if total != problem.population_size:
        raise TableError(
            f"known_margins sum to {total}, but population_size is {problem.population_size}"
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
                f"the known margin {sizes[first]} of {at} " + what.format(sampled=sampled[first])
            )
    return bare.rename("known_margins")


def _fillable(sample: xr.DataArray, structural_zeros: Any) -> npt.NDArray[np.bool_]:
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
    labelled = structural_zeros.assign_coords(
        {
            d: sample[d]
            for d in structural_zeros.dims
            if d not in structural_zeros.coords and d in sample.dims
        }
    )
    zeros = aligned(labelled, sample, names=("structural_zeros", "sample"))
    zeros = zeros.transpose(*sample.dims)
    filled = np.argwhere((zeros & (sample > 0)).values)
    if len(filled):
        at = cell_label(sample, tuple(int(i) for i in filled[0]))
        raise TableError(
            f"a structural zero has a positive count: {at} holds"
            f" {int(sample.values[tuple(filled[0])])}"
        )
    return np.asarray(~zeros.values)
