"""What must be left open at primary cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers
from taciturn.errors import ParameterError, TableError
from taciturn.schema import (
    MAX_COUNT,
    cell_label,
    table_dims,
)
from taciturn.suppression.published import PublishedCells
from taciturn.tables.margins import (
    Margin,
    finest_totals,
    margin_names,
)
from taciturn.tables.steps import checked_mask, in_steps
from taciturn.validate import is_real

__all__ = ["Required", "flags_of", "published_cells", "required_at"]


@dataclass(frozen=True, eq=False, repr=False)
class Required:
    """What must be left open at primary cells, in steps.

    Attributes
    ----------
    cells : array of int64, shape (primary cells,)
        Their numbers among the published cells.
    up, down : array of int64, shape (primary cells,)
        How far above and below its value an attacker must have to take each for
        possible.
    width : array of int64, shape (primary cells,)
        Least distance between the bounds of each.
    """

    cells: Integers
    up: Integers
    down: Integers
    width: Integers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.cells):,} primary cells)"

    @property
    def most(self) -> int:
        """The farthest that any of them must deviate to one side."""
        return int(np.maximum(self.width, np.maximum(self.up, self.down)).max(initial=0))

    def met(self, lower: npt.NDArray[np.number], upper: npt.NDArray[np.number]) -> Booleans:
        """Whether deviations from `lower` (at most 0) to `upper` are enough, for each
        primary cell.
        """
        return (upper >= self.up) & (-lower >= self.down) & (upper - lower >= self.width)


def published_cells(
    table: Any,
    linked: Sequence[Margin] | None,
    costs: xr.DataArray | Mapping[Margin, xr.DataArray] | None,
    decimals: int,
) -> PublishedCells:
    """Number the cells of a release: of a table with all its totals, which stay, or of
    linked tables.
    """
    steps = in_steps(table, decimals)
    variables = table_dims(steps)
    if linked is None:
        margins = [variables, *finest_totals(steps)]
    else:
        margins = LinkedTables(table, linked, decimals=decimals).projections(steps)
        if not margins:
            raise ParameterError(
                "linked must name a margin at least; without it the table is released with all"
                " totals"
            )
    cells = PublishedCells(steps, tuple(margins), decimals, np.zeros(0))
    price = 1 + cells.values / 10.0**decimals
    if linked is None:
        price[cells.first[1] :] = np.inf
    for number, given in by_margin(costs, cells, linked, name="costs").items():
        price[cells.part(number)] = checked_values(given, cells.labels(number), name="costs")
        if not (price[cells.part(number)] > 0).all():
            where = cells.label(cells.first[number] + int(np.argmin(price[cells.part(number)] > 0)))
            raise ParameterError(
                f"costs must be above 0, or infinite for cells to publish: not so at {where}"
            )
    return PublishedCells(steps, tuple(margins), decimals, price)


def required_at(
    cells: PublishedCells,
    primary: xr.DataArray | Mapping[Margin, xr.DataArray],
    protection: Any,
    linked: Sequence[Margin] | None,
) -> Required:
    """What must be left open, from a risk or intervals."""
    flags = flags_of(cells, primary, linked, name="primary")
    chosen = np.flatnonzero(flags)
    none = np.zeros(len(chosen), dtype=np.int64)
    if isinstance(protection, xr.Dataset | Mapping):
        down, up = _interval(cells, flags, protection, linked)
        # An interval of one value would allow the cell to be worked out.
        return Required(chosen, up[chosen], down[chosen], np.maximum(up + down, 1)[chosen])
    if not is_real(protection) or not 0 < protection <= 1:
        raise ParameterError(
            "protection must be a risk above 0 and up to 1, or a Dataset of lower and upper, got"
            f" {protection!r}"
        )
    # Rounding must not ask for one value more than 2**(1/risk).
    values = 2.0 ** min(1 / float(protection), 53.0)
    return Required(
        chosen, none, none, np.full(len(chosen), int(np.ceil(values * (1 - 1e-12))) - 1)
    )


def flags_of(
    cells: PublishedCells,
    given: xr.DataArray | Mapping[Margin, xr.DataArray] | None,
    linked: Sequence[Margin] | None,
    *,
    name: str,
) -> Booleans:
    """A flag for each cell, from masks of margins."""
    flags = np.zeros(len(cells.values), dtype=np.bool_)
    for number, mask in by_margin(given, cells, linked, name=name).items():
        flags[cells.part(number)] = checked_mask(mask, cells.labels(number), name=name).ravel()
    return flags


def _interval(
    cells: PublishedCells, primary: Booleans, protection: Any, linked: Sequence[Margin] | None
) -> tuple[Integers, Integers]:
    down, up = np.zeros(len(cells.values)), np.zeros(len(cells.values))
    step = 10.0**cells.decimals
    for number, given in by_margin(protection, cells, linked, name="protection").items():
        if not isinstance(given, xr.Dataset) or not {"lower", "upper"} <= set(given.data_vars):
            raise TableError(
                "protection must be a Dataset with the variables 'lower' and 'upper', got"
                f" {type(given).__name__}"
            )
        part, labels = cells.part(number), cells.labels(number)
        low, high = (
            checked_values(given[side], labels, name=f"protection[{side!r}]")
            for side in ("lower", "upper")
        )
        down[part] = np.ceil(cells.values[part] - low * step - 1e-6)
        up[part] = np.ceil(high * step - cells.values[part] - 1e-6)
    for position in np.flatnonzero(primary):
        if not (0 <= down[position] <= cells.values[position] and 0 <= up[position] < MAX_COUNT):
            raise ParameterError(
                "protection must have lower from 0 to the true value and upper from it on: not so"
                f" at {cells.label(int(position))}"
            )
    return np.where(primary, down, 0).astype(np.int64), np.where(primary, up, 0).astype(np.int64)


def by_margin(
    given: Any, cells: PublishedCells, linked: Sequence[Margin] | None, *, name: str
) -> dict[int, Any]:
    """What is given for each margin, by its number; a value that is no mapping is for
    the table itself.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or isinstance(given, xr.Dataset):
        given = {table_dims(cells.table): given}
    free = cells.margins if linked is not None else cells.margins[:1]
    number_of = {frozenset(names): number for number, names in enumerate(free)}
    found = {}
    for key, value in given.items():
        names = frozenset(margin_names(key, cells.table, name=name))
        if names not in number_of:
            raise ParameterError(
                f"{name} must be of margins whose cells may be suppressed, {list(free)}, got"
                f" {key!r}"
            )
        if number_of[names] in found:
            raise ParameterError(f"{name} must have each margin once, got {list(given)}")
        found[number_of[names]] = value
    return found


def checked_values(given: Any, labels: xr.DataArray, *, name: str) -> Floats:
    """Numbers for all cells of a margin, in its order."""
    if not isinstance(given, xr.DataArray) or not np.issubdtype(given.dtype, np.number):
        raise TableError(
            f"{name} must be a DataArray of numbers with the dimensions {table_dims(labels)}"
        )
    checked_mask(xr.zeros_like(given, dtype=bool), labels, name=name)
    values = given.transpose(*labels.dims).values.astype(float).ravel()
    if np.isnan(values).any():
        at = np.unravel_index(int(np.argmax(np.isnan(values))), labels.shape)
        raise TableError(
            f"{name} must not be missing: {cell_label(labels, tuple(int(i) for i in at))}"
        )
    return values
