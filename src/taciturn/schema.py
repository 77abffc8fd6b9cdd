"""Names of dimensions, groups and variables, and the population contract.

What every module shares lives here, so that a fit made by one part can be read by all
others.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError

__all__ = [
    "COUNT",
    "DRAW_DIMS",
    "INTERNAL_STATUS",
    "LATENT_CLASS",
    "MAX_COUNT",
    "PRIMARY",
    "PUBLISHED",
    "REPLICATE",
    "RESERVED_NAMES",
    "RISK_MEASURES",
    "SAFE",
    "SCHEMA_VERSION",
    "SECONDARY",
    "SIDES",
    "STATUS",
    "SUPPRESSED",
    "WEIGHTED_COUNT",
    "WORTH",
    "cell_label",
    "check_population",
    "check_population_counts",
    "check_population_labels",
    "draw_dims",
    "draws_at_a_time",
    "occupied_cells",
    "split_draws",
    "table_dims",
]

SCHEMA_VERSION: Final = 2
"""Version of the layout of a saved fit; raised when a reader of older files would
misread a new one."""

COUNT: Final = "count"
"""Name of a frequency table and of the count column in a file."""

WEIGHTED_COUNT: Final = "weighted_count"
"""Name of a table of sums of sampling weights."""

REPLICATE: Final = "replicate"
"""Dimension of the tables that a protection method or a sample returns."""

WORTH: Final = "independent_draws"
"""Attribute of draws of a population, from weighted proposals: what they are worth."""

DRAW_DIMS: Final = ("chain", "draw", REPLICATE)
"""Dimensions that measures keep: posterior draws, and replicates of a perturbation or a
sample."""

LATENT_CLASS: Final = "class"
"""Dimension of the parameters of single latent classes."""

RESERVED_NAMES: Final = frozenset({*DRAW_DIMS, COUNT})
"""Names a classifying variable cannot have."""

RISK_MEASURES: Final = ("R1", "R2", "tau1", "tau2")
"""Measures of an assessed fit that are one number for each draw."""

MAX_COUNT: Final = 2**53
"""Largest count that double precision holds exactly."""

STATUS: Final = "status"
"""Name of the column that says whether a cell is published."""

SIDES: Final = ("lower", "upper")
"""The ends of an interval."""

INTERNAL_STATUS: Final = "status_not_for_release"
"""Name of the column that tells primary cells from secondary ones."""

PUBLISHED: Final = "published"
SUPPRESSED: Final = "suppressed"
"""The status of a cell in what is released, which does not say why it is suppressed."""

SAFE: Final = "safe"
PRIMARY: Final = "primary"
SECONDARY: Final = "secondary"
"""The status of a cell for the office alone. Who knows the rule learns from ``primary``
what range the value is in."""

_BLOCK: Final = 2**22


def draws_at_a_time(cells: int) -> int:
    """How many tables are worked on at once, so that their values take some tens of
    megabytes.
    """
    return max(1, _BLOCK // cells)


def split_draws(draws: xr.DataArray) -> Iterator[xr.DataArray]:
    """Parts of posterior draws, each of consecutive ones of one chain, where all
    together are many.

    Tables that are made as they are read are then in memory a part at a time.
    """
    step = draws_at_a_time(draws.size // (draws.sizes["chain"] * draws.sizes["draw"]))
    if draws.size <= _BLOCK:
        yield draws
        return
    for chain in range(draws.sizes["chain"]):
        for start in range(0, draws.sizes["draw"], step):
            yield draws.isel(chain=slice(chain, chain + 1), draw=slice(start, start + step))


def table_dims(table: xr.DataArray) -> tuple[str, ...]:
    """Classifying variables of a table: all its dimensions but `chain`, `draw` and
    `replicate`.
    """
    return tuple(str(dim) for dim in table.dims if dim not in DRAW_DIMS)


def draw_dims(table: xr.DataArray) -> tuple[str, ...]:
    """Those of `chain`, `draw` and `replicate` that a table has, in its own order."""
    return tuple(str(dim) for dim in table.dims if dim in DRAW_DIMS)


def cell_label(table: xr.DataArray, position: tuple[int, ...]) -> str:
    """Where a value stands, in words: ``area=3, religion=7``."""
    labels = []
    for dim, index in zip(table.dims, position, strict=True):
        label = table[dim].values[index] if dim in table.coords else int(index)
        labels.append(f"{dim}={label}")
    return ", ".join(labels)


def occupied_cells(sample: xr.DataArray) -> dict[str, tuple[str, npt.NDArray[Any]]]:
    """Coordinates of the occupied cells: the number of ``individuals`` in each, and its
    categories.
    """
    at = np.nonzero(sample.values)
    labels = {
        str(dim): sample[dim].values[index] for dim, index in zip(sample.dims, at, strict=True)
    }
    coords = {"individuals": np.asarray(sample.values[at], dtype=np.int64), **labels}
    return {name: ("occupied_cell", values) for name, values in coords.items()}


def check_population(
    population: xr.DataArray,
    sample: xr.DataArray,
    *,
    population_size: int,
    structural_zeros: xr.DataArray | None = None,
    known_margins: xr.DataArray | None = None,
) -> None:
    """Check draws of a population table against the population contract.

    Every draw is an integer table with the sample's dimensions and categories, is
    nowhere below the sample, sums to the population size, is zero at structural zeros
    and has the known margins.

    Parameters
    ----------
    population : DataArray
        Draws, dims ``(chain, draw, *sample.dims)`` in any order.
    sample : DataArray
        The sample table.
    population_size : int
        Number of individuals in the population, `N`.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled.
    known_margins : DataArray, optional
        The population's table over some of the variables.

    Raises
    ------
    TableError
        Names the first draw and cell that breaks the contract.
    """
    check_population_labels(population, sample, structural_zeros, known_margins)
    check_population_counts(
        population.transpose(*draw_dims(population), *table_dims(sample)),
        sample,
        population_size,
        structural_zeros,
        known_margins,
    )


def check_population_labels(
    population: xr.DataArray,
    sample: xr.DataArray,
    structural_zeros: xr.DataArray | None,
    known_margins: xr.DataArray | None,
) -> None:
    """The part of the contract that is the same for all draws: whole numbers over the
    categories of the sample.
    """
    cells, expected = table_dims(population), table_dims(sample)
    if set(cells) != set(expected):
        raise TableError(f"population has the dimensions {cells}, the sample has {expected}")
    if not np.issubdtype(population.dtype, np.integer):
        raise TableError(f"population draws must be integers, got {population.dtype}")
    labelled = {"population": population, "known_margins": known_margins}
    if structural_zeros is not None and structural_zeros.coords:
        labelled["structural_zeros"] = structural_zeros
    for name, other in labelled.items():
        for dim in expected:
            if other is None or dim not in other.dims:
                continue
            if not np.array_equal(other[dim].values, sample[dim].values):
                raise TableError(f"the categories of {dim!r} differ between {name} and sample")


def check_population_counts(
    population: xr.DataArray,
    sample: xr.DataArray,
    population_size: int,
    structural_zeros: xr.DataArray | None,
    known_margins: xr.DataArray | None,
) -> None:
    """The part of the contract that each draw must keep, for draws whose labels are
    those of the sample.
    """
    cells = list(table_dims(sample))

    def refuse(bad: xr.DataArray, what: str) -> None:
        if bad.any():
            at = cell_label(bad, tuple(int(i) for i in np.argwhere(bad.values)[0]))
            raise TableError(f"a population draw {what} at {at}")

    refuse(population < sample, "is below the sample")
    refuse(
        population.sum(cells) != population_size,
        f"does not sum to the population size {population_size}",
    )
    if structural_zeros is not None:
        zeros = structural_zeros.transpose(*cells)
        refuse((population > 0) & zeros, "fills a structural zero")
    if known_margins is not None:
        kept = [dim for dim in cells if dim in known_margins.dims]
        margin = population.sum([dim for dim in cells if dim not in kept])
        refuse(margin != known_margins.transpose(*kept), "does not keep the known margin")
