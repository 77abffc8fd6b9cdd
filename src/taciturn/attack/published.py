"""The cells that a release may publish or suppress: those of a table and of its totals, over the cells of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.releases import LinkedTables, Margin, finest_totals
from taciturn.attack.solver import Floats
from taciturn.attack.system import (
    Booleans,
    Integers,
    checked_mask,
    determines,
    in_steps,
    level_codes,
    margin_names,
    margin_of,
    without_implied,
)
from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims

__all__ = ["PublishedCells", "Required", "flags_of", "published_cells", "required_at"]


@dataclass(frozen=True, eq=False, repr=False)
class Required:
    """What must be left open at primary cells, in steps.

    Attributes
    ----------
    cells : array of int64, shape (primary cells,)
        Their numbers among the published cells.
    up, down : array of int64, shape (primary cells,)
        How far above and below its value an attacker must have to take each for possible.
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
        """Whether deviations from `lower` (at most 0) to `upper` are enough, for each primary cell."""
        return (upper >= self.up) & (-lower >= self.down) & (upper - lower >= self.width)


@dataclass(frozen=True, eq=False, repr=False)
class PublishedCells:
    """Cells of released margins, numbered in the order of the margins; a table itself is the margin of all variables.

    Attributes
    ----------
    table : DataArray of int64
        The true table in steps.
    margins : tuple of tuple of str
        The released margins.
    decimals : int
        Decimal places of the table's values.
    costs : array of float64, shape (cells,)
        What it costs to suppress each; infinite where it must be published.
    """

    table: xr.DataArray
    margins: tuple[tuple[str, ...], ...]
    decimals: int
    costs: Floats

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.costs):,} cells in {len(self.margins):,} margins)"

    @cached_property
    def _parts(self) -> list[tuple[xr.DataArray, Integers]]:
        return [margin_of(self.table, names) for names in self.margins]

    @cached_property
    def first(self) -> list[int]:
        """Number of the first cell of each margin, and of all cells at the end."""
        return [0, *np.cumsum([labels.size for labels, _ in self._parts]).tolist()]

    @cached_property
    def values(self) -> Integers:
        """True values of the cells."""
        return np.concatenate([labels.values.ravel() for labels, _ in self._parts]).astype(np.int64)

    @cached_property
    def matrix(self) -> csr_array:
        """Which cells of the table make up each cell, shape (cells, cells of the table)."""
        n = self.table.size
        rows = np.concatenate([group + start for (_, group), start in zip(self._parts, self.first, strict=False)])
        columns = np.tile(np.arange(n), len(self.margins))
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.first[-1], n))

    @cached_property
    def column(self) -> Integers:
        """The cell of the table that each published cell is, -1 if it is a total."""
        found = np.full(self.first[-1], -1)
        for number, names in enumerate(self.margins):
            if set(names) == set(self.table.dims):
                found[self.first[number] + self._parts[number][1]] = np.arange(self.table.size)
        return found

    @cached_property
    def inner(self) -> Integers:
        """The published cell that each cell of the table is, in its order; empty where the table is not released."""
        released = np.flatnonzero(self.column >= 0)
        return released[np.argsort(self.column[released])]

    @cached_property
    def equations(self) -> csr_array:
        """Sums that hold between published cells: a total and its parts, shape (equations, cells)."""
        finer = [
            [
                other
                for other, fine in enumerate(self.margins)
                if determines(fine, names, self.table) and not determines(names, fine, self.table)
            ]
            for names in self.margins
        ]
        rows, columns, done = [], [], 0
        for number, (labels, group) in enumerate(self._parts):
            for other in finer[number]:
                if any(between in finer[number] and other in finer[between] for between in range(len(self.margins))):
                    continue
                # One cell of the table stands for each part.
                _, at = np.unique(self._parts[other][1], return_index=True)
                parts = self._parts[other][1][at]
                rows += [done + group[at], done + np.arange(labels.size)]
                columns += [self.first[other] + parts, self.first[number] + np.arange(labels.size)]
                done += labels.size
        if not rows:
            return csr_array((0, self.first[-1]))
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(row)), (row, column)), shape=(done, self.first[-1]))

    @cached_property
    def categories(self) -> csr_array:
        """Which categories each cell has, shape (cells, categories of all variables)."""
        names = sorted({name for margin in self.margins for name in margin})
        sizes = [len(level_codes(self.table, name)[0]) for name in names]
        start = dict(zip(names, np.cumsum([0, *sizes]).tolist(), strict=False))
        rows, columns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for number, (labels, _) in enumerate(self._parts):
            for axis, name in enumerate(self.margins[number]):
                along = np.arange(labels.shape[axis]).reshape([-1 if i == axis else 1 for i in range(labels.ndim)])
                columns.append(start[name] + np.broadcast_to(along, labels.shape).ravel())
                rows.append(self.first[number] + np.arange(labels.size))
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(row)), (row, column)), shape=(self.first[-1], sum(sizes)))

    def ceilings(self, asked: int) -> Floats:
        """More than each cell rises in a table that differs from the true one no more than `asked` needs.

        A cell of the table that is in no published sum need rise by no more than `asked`. What others rise by falls
        elsewhere in a published sum. All that falls is at most the grand total `N`, and each part of it lets one cell
        rise for each margin; in a suppressed total for each other margin. So no cell rises by more than `N`, and no
        total by more than `N` for each cell that it holds, or for each margin but its own.
        """
        held = np.diff(self.matrix.indptr)
        return np.minimum(held, max(len(self.margins) - 1, 1)) * float(self.table.values.sum()) + asked + 1

    def new_categories(self, pattern: Booleans) -> Integers:
        """How many categories of each cell no cell of a pattern has."""
        unused = self.categories.T @ pattern == 0
        return np.asarray(self.categories @ unused, dtype=np.int64)

    def nested(self, cell: int) -> Booleans:
        """The cells that are a part of this one, or it of them; itself, too."""
        sizes = np.diff(self.matrix.indptr)
        shared = (self.matrix @ self.matrix[[cell]].T).toarray().ravel()
        return np.asarray((shared == sizes) | (shared == sizes[cell]))

    def finest(self) -> list[tuple[str, ...]]:
        """Margins that no other determines."""
        return without_implied(self.margins, self.table)

    def part(self, number: int) -> slice:
        """The numbers of one margin's cells."""
        return slice(self.first[number], self.first[number + 1])

    def labels(self, number: int) -> xr.DataArray:
        """One margin's true values, in steps."""
        return self._parts[number][0]

    def flags(self, number: int, cells: Booleans) -> xr.DataArray:
        """The flags of one margin's cells, with its labels."""
        labels, _ = self._parts[number]
        return labels.copy(data=cells[self.part(number)].reshape(labels.shape))

    def label(self, cell: int) -> str:
        """Which cell this is, in words."""
        number = int(np.searchsorted(self.first, cell, side="right")) - 1
        labels, _ = self._parts[number]
        at = np.unravel_index(cell - self.first[number], labels.shape)
        return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"


def published_cells(
    table: Any,
    linked: Sequence[Margin] | None,
    costs: xr.DataArray | Mapping[Margin, xr.DataArray] | None,
    decimals: int,
) -> PublishedCells:
    """Number the cells of a release: of a table with all its totals, which stay, or of linked tables."""
    steps = in_steps(table, decimals)
    variables = table_dims(steps)
    if linked is None:
        margins = [variables, *finest_totals(steps)]
    else:
        margins = LinkedTables(table, linked, decimals=decimals).projections(steps)
        if not margins:
            raise ParameterError("linked must name a margin at least; without it the table is released with all totals")
    cells = PublishedCells(steps, tuple(margins), decimals, np.zeros(0))
    price = 1 + cells.values / 10.0**decimals
    if linked is None:
        price[cells.first[1] :] = np.inf
    for number, given in _by_margin(costs, cells, linked, name="costs").items():
        price[cells.part(number)] = _checked_values(given, cells.labels(number), name="costs")
        if not (price[cells.part(number)] > 0).all():
            where = cells.label(cells.first[number] + int(np.argmin(price[cells.part(number)] > 0)))
            raise ParameterError(f"costs must be above 0, or infinite for cells to publish: not so at {where}")
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
    number = isinstance(protection, int | float | np.integer | np.floating) and not isinstance(protection, bool)
    if not number or not 0 < protection <= 1:
        raise ParameterError(
            f"protection must be a risk above 0 and up to 1, or a Dataset of lower and upper, got {protection!r}"
        )
    # Rounding must not ask for one value more than 2**(1/risk).
    values = 2.0 ** min(1 / float(protection), 53.0)
    return Required(chosen, none, none, np.full(len(chosen), int(np.ceil(values * (1 - 1e-12))) - 1))


def flags_of(
    cells: PublishedCells,
    given: xr.DataArray | Mapping[Margin, xr.DataArray] | None,
    linked: Sequence[Margin] | None,
    *,
    name: str,
) -> Booleans:
    """A flag for each cell, from masks of margins."""
    flags = np.zeros(len(cells.values), dtype=np.bool_)
    for number, mask in _by_margin(given, cells, linked, name=name).items():
        flags[cells.part(number)] = checked_mask(mask, cells.labels(number), name=name).ravel()
    return flags


def _interval(
    cells: PublishedCells, primary: Booleans, protection: Any, linked: Sequence[Margin] | None
) -> tuple[Integers, Integers]:
    down, up = np.zeros(len(cells.values)), np.zeros(len(cells.values))
    step = 10.0**cells.decimals
    for number, given in _by_margin(protection, cells, linked, name="protection").items():
        if not isinstance(given, xr.Dataset) or not {"lower", "upper"} <= set(given.data_vars):
            raise TableError(
                f"protection must be a Dataset with the variables 'lower' and 'upper', got {type(given).__name__}"
            )
        part, labels = cells.part(number), cells.labels(number)
        low, high = (_checked_values(given[side], labels, name=f"protection[{side!r}]") for side in ("lower", "upper"))
        down[part] = np.ceil(cells.values[part] - low * step - 1e-6)
        up[part] = np.ceil(high * step - cells.values[part] - 1e-6)
    for position in np.flatnonzero(primary):
        if not (0 <= down[position] <= cells.values[position] and 0 <= up[position] < MAX_COUNT):
            raise ParameterError(
                f"protection must have lower from 0 to the true value and upper from it on: not so at "
                f"{cells.label(int(position))}"
            )
    return np.where(primary, down, 0).astype(np.int64), np.where(primary, up, 0).astype(np.int64)


def _by_margin(given: Any, cells: PublishedCells, linked: Sequence[Margin] | None, *, name: str) -> dict[int, Any]:
    """What is given for each margin, by its number; a value that is no mapping is for the table itself."""
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
            raise ParameterError(f"{name} must be of margins whose cells may be suppressed, {list(free)}, got {key!r}")
        if number_of[names] in found:
            raise ParameterError(f"{name} must have each margin once, got {list(given)}")
        found[number_of[names]] = value
    return found


def _checked_values(given: Any, labels: xr.DataArray, *, name: str) -> Floats:
    """Numbers for all cells of a margin, in its order."""
    if not isinstance(given, xr.DataArray) or not np.issubdtype(given.dtype, np.number):
        raise TableError(f"{name} must be a DataArray of numbers with the dimensions {table_dims(labels)}")
    checked_mask(xr.zeros_like(given, dtype=bool), labels, name=name)
    values = given.transpose(*labels.dims).values.astype(float).ravel()
    if np.isnan(values).any():
        at = np.unravel_index(int(np.argmax(np.isnan(values))), labels.shape)
        raise TableError(f"{name} must not be missing: {cell_label(labels, tuple(int(i) for i in at))}")
    return values
