"""What an estimator is given: a checked sample, the size of its population and the cells that cannot be filled."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables import check_table, same_categories

__all__ = ["Problem", "make_problem"]

_TAKEN: Final = frozenset(
    {"expected_empty_cells", "individual", "member", "population", "population_size", "probability", "sample"}
    | {"structural_zeros", "theta"}
)
"""Names of a fit's own variables, which no dimension beside them can have."""


@dataclass(frozen=True)
class Problem:
    """A sample table and what is known of its population.

    Attributes
    ----------
    sample : DataArray
        The sample `f`.
    population_size : int
        `N`.
    fillable : array of bool
        Shape of the sample; False at structural zeros.
    """

    sample: xr.DataArray
    population_size: int
    fillable: npt.NDArray[np.bool_]

    @property
    def variables(self) -> tuple[str, ...]:
        """The classifying variables."""
        return table_dims(self.sample)

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

    def draws(self, values: npt.NDArray[np.int64], chains: int, name: str) -> xr.DataArray:
        """Label tables of shape (chains * draws, cells) with chain, draw and the variables."""
        shaped = values.reshape(chains, -1, *self.sample.shape)
        coords = {
            "chain": np.arange(chains),
            "draw": np.arange(shaped.shape[1]),
            **{dim: self.sample[dim].values for dim in self.variables},
        }
        return xr.DataArray(shaped, dims=("chain", "draw", *self.variables), coords=coords, name=name)


def make_problem(sample: xr.DataArray, population_size: int, structural_zeros: xr.DataArray | None = None) -> Problem:
    """Check a sample against its population.

    Raises
    ------
    TableError
        Fewer than two cells, nobody in the sample, a structural zero with a positive count, or a variable with a name
        that a fit uses itself.
    ParameterError
        A population size that is not a whole number, is below the sample size or beyond 2**53.
    """
    sample = check_table(sample, name="sample")
    for dim in table_dims(sample):
        if dim in _TAKEN or "/" in dim:
            rule = "holds a '/', which separates the groups of a fit" if "/" in dim else "is a name that fits use"
            raise TableError(f"the variable {dim!r} {rule}: rename it, as in sample.rename({{{dim!r}: ...}})")
    size = int(sample.sum())
    if sample.size < 2:
        raise TableError(f"the sample has {sample.size} cell; a table needs at least two")
    if size == 0:
        raise TableError("the sample is empty: nothing can be said about its population")
    if not _is_whole(population_size):
        raise ParameterError(f"population_size must be a whole number, got {population_size!r}")
    if not size <= population_size <= MAX_COUNT:
        raise ParameterError(
            f"population_size must be from the sample's {size} individuals to 2**53, got {population_size}"
        )
    fillable = np.ones(sample.shape, dtype=bool)
    if structural_zeros is not None:
        fillable = _fillable(sample, structural_zeros)
        if fillable.sum() < 2:
            raise TableError(f"{int(fillable.sum())} cell can be filled; a table needs at least two")
    coords = {dim: sample[dim].values for dim in table_dims(sample)}
    bare = xr.DataArray(sample.values, dims=sample.dims, coords=coords, name=sample.name)
    return Problem(bare, int(population_size), fillable)


def _is_whole(value: Any) -> bool:
    number = isinstance(value, int | np.integer | float) and not isinstance(value, bool)
    return number and bool(np.isfinite(value)) and int(value) == value


def _fillable(sample: xr.DataArray, structural_zeros: Any) -> npt.NDArray[np.bool_]:
    if not isinstance(structural_zeros, xr.DataArray) or structural_zeros.dtype != np.bool_:
        raise TableError("structural_zeros must be a DataArray of bool, True where a cell cannot be filled")
    same_variables = set(structural_zeros.dims) == set(sample.dims)
    if same_variables and dict(structural_zeros.sizes) != dict(sample.sizes):
        raise TableError(
            f"structural_zeros has the sizes {dict(structural_zeros.sizes)}, the sample has {dict(sample.sizes)}"
        )
    labelled = structural_zeros.assign_coords(
        {d: sample[d] for d in structural_zeros.dims if d not in structural_zeros.coords and d in sample.dims}
    )
    same_categories(labelled, sample, names=("structural_zeros", "sample"))
    zeros = labelled.transpose(*sample.dims)
    filled = np.argwhere((zeros & (sample > 0)).values)
    if len(filled):
        at = cell_label(sample, tuple(int(i) for i in filled[0]))
        raise TableError(f"a structural zero has a positive count: {at} holds {int(sample.values[tuple(filled[0])])}")
    return np.asarray(~zeros.values)
