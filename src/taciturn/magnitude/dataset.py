"""The Dataset of a magnitude table, from the statistics of its cells."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.magnitude.expressions import MAX_STEPS
from taciturn.magnitude.roles import Roles
from taciturn.magnitude.statistics import CellStatistics
from taciturn.schema import cell_label

__all__ = ["bytes_of_cell", "magnitude_dataset"]


def bytes_of_cell(roles: Roles, largest: int) -> int:
    """How much of the table a cell takes in memory."""
    marks = [role for role in (roles.request, roles.waiver) if role is not None]
    return 8 * (4 + 2 * largest + 2 * len(marks))


def magnitude_dataset(
    cells: CellStatistics,
    categories: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.int64]]],
    decimals: int,
    roles: Roles,
    largest: int,
) -> xr.Dataset:
    """Place the statistics of cells in a table over all categories, each given with the
    positions of the codes that number the cells.
    """
    dims = tuple(categories)
    labels = {dim: names for dim, (names, _) in categories.items()}
    shape = tuple(len(names) for names in labels.values())
    at = _flat_positions(cells, [positions for _, positions in categories.values()], shape)
    template = xr.DataArray(np.broadcast_to(0, shape), dims=dims, coords=labels)
    _refuse_large_cells(cells, at, template, decimals)

    def placed(
        values: Any, *, empty: Any = 0, dtype: Any = np.float64, ranks: int | None = None
    ) -> Any:
        flat = np.full((int(np.prod(shape)), *([ranks] if ranks else [])), empty, dtype=dtype)
        flat[at] = values
        return flat.reshape((*shape, *([ranks] if ranks else [])))

    step = 10.0**decimals  # dividing by it gives the double nearest to the decimal number
    absolute = np.asarray(cells.absolute_total, dtype=np.float64)
    sizes = np.asarray(cells.largest, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        shares = sizes / absolute[:, None]
    counted = np.float64 if roles.sampling_weights is not None else np.int64
    ranked = (*dims, "rank")
    variables = {
        "total": (dims, placed(np.asarray(cells.total, dtype=np.float64) / step)),
        "absolute_total": (dims, placed(absolute / step)),
        "contributors": (dims, placed(cells.contributors, dtype=counted)),
        "largest": (ranked, placed(sizes / step, ranks=largest)),
        "share": (ranked, placed(shares, empty=np.nan, ranks=largest)),
        "entropy": (dims, placed(cells.entropy, empty=np.nan)),
    }
    if cells.requests is not None and cells.requested is not None:
        variables["requests"] = (dims, placed(cells.requests, dtype=counted))
        variables["requested"] = (
            dims,
            placed(np.asarray(cells.requested, dtype=np.float64) / step),
        )
    if cells.waivers is not None and cells.unwaived is not None:
        variables["waivers"] = (dims, placed(cells.waivers, dtype=np.int64))
        variables["unwaived"] = (dims, placed(np.asarray(cells.unwaived, dtype=np.float64) / step))
    coords = labels | {"rank": np.arange(1, largest + 1)}
    return xr.Dataset(variables, coords=coords, attrs={"value": roles.value, "decimals": decimals})


def _flat_positions(
    cells: CellStatistics, positions: list[npt.NDArray[np.int64]], shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Where the cells stand in the table, whose categories may be in another order and
    more than the labels that number the cells.
    """
    if not shape:
        return np.zeros(len(cells.cells), dtype=np.int64)
    codes = np.unravel_index(cells.cells, tuple(map(len, positions)))
    index = [of_codes[code] for of_codes, code in zip(positions, codes, strict=True)]
    return np.asarray(np.ravel_multi_index(index, shape), dtype=np.int64)


def _refuse_large_cells(
    cells: CellStatistics, at: npt.NDArray[np.int64], template: xr.DataArray, decimals: int
) -> None:
    """Raise `TableError` where a cell holds more than double precision can."""
    for total, position in zip(cells.absolute_total, at, strict=True):
        if total > MAX_STEPS:
            index = tuple(int(i) for i in np.unravel_index(position, template.shape))
            where = cell_label(template, index) or "the grand total"
            raise TableError(
                f"a cell can hold at most 10**15 steps of 10**-{decimals}: {where} holds {total};"
                " give the values in a larger unit, or values and weights with fewer decimals"
            )
