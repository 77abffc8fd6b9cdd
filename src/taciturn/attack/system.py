"""What a release says, as one sparse linear system over the cells that it does not show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.sparse import csr_array

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables import check_table, same_categories
from taciturn.validate import whole_number

__all__ = [
    "UNLIMITED",
    "LinearSystem",
    "Total",
    "build_system",
    "checked_mask",
    "coarser_levels",
    "determines",
    "hierarchies",
    "in_steps",
    "level_codes",
    "margin_names",
    "margin_of",
    "without_implied",
]

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

UNLIMITED: Final = 2**60
"""Upper bound, in steps, of a cell that no total limits; no sum of released values comes near it."""

_MOST_DECIMALS: Final = 12  # doubles have 15 digits, and some must be left before the point


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Released totals over one way of grouping the cells; all values in steps.

    Attributes
    ----------
    labels : DataArray
        A table with a cell for each group, whose categories name the totals; 0 where one is not released.
    group : array of int64, shape (cells,)
        The flat position in `labels` of the group that each cell belongs to.
    least, most : array of int64, shape (groups,)
        The interval of each total; 0 where it is not released.
    released : array of bool, shape (groups,)
        False where a total is not released.
    """

    labels: xr.DataArray
    group: Integers
    least: Integers
    most: Integers
    released: Booleans

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self.released.sum()):,} of {self.labels.size:,} released)"


@dataclass(frozen=True, eq=False, repr=False)
class LinearSystem:
    r"""All tables that are compatible with a release: whole `x`, in steps, with bounds on it and on its totals.

    .. math:: l \le A x \le h, \qquad u_j \le x_j \le v_j, \qquad x \in \mathbb{Z}^n

    The unit of all values is the step, ``10**-decimals``. `A` holds zeros and ones. A total that holds no unknown
    cell has no row, and the published cells of the others are subtracted.

    Attributes
    ----------
    published : DataArray of int64
        Published values in steps, dims of the table; 0 where unknown.
    unknown : array of int64, shape (n,)
        Flat positions in the table of the unknown cells, the columns.
    matrix : csr_array of int64, shape (rows, n)
        `A`.
    least, most : array of int64, shape (rows,)
        `l` and `h`; equal where a total is released as it is.
    lower, upper : array of int64, shape (n,)
        `u`, at least 0, and `v`; `UNLIMITED` where no total limits a cell.
    totals : tuple of Total
        The released totals.
    row_total, row_group : array of int64, shape (rows,)
        Which of the `totals`, and which of its groups, each row is.
    decimals : int
        Decimal places of the values.
    """

    published: xr.DataArray
    unknown: Integers
    matrix: csr_array
    least: Integers
    most: Integers
    lower: Integers
    upper: Integers
    totals: tuple[Total, ...]
    row_total: Integers
    row_group: Integers
    decimals: int

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"{type(self).__name__}({rows:,} equations, {columns:,} unknown of {self.published.size:,} cells)"

    def most_of_cells(self) -> Integers:
        """What each unknown cell is at most by its own bound and by each of its totals alone."""
        most = self.upper.copy()
        coo = self.matrix.tocoo()
        np.minimum.at(most, coo.col, self.most[coo.row])
        return most

    def row_label(self, row: int) -> str:
        """Which total a row is, in words."""
        labels = self.totals[self.row_total[row]].labels
        at = np.unravel_index(self.row_group[row], labels.shape)
        return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"

    def unknown_label(self, column: int) -> str:
        """Which cell a column is, in words."""
        at = np.unravel_index(self.unknown[column], self.published.shape)
        return cell_label(self.published, tuple(int(i) for i in at))


def build_system(
    table: xr.DataArray,
    known: Booleans,
    totals: Iterable[Total],
    *,
    decimals: int,
    lower: Integers | None = None,
    upper: Integers | None = None,
) -> LinearSystem:
    """Join totals to a system.

    Parameters
    ----------
    table : DataArray of int64
        The table in steps; its values are used where they are known.
    known : array of bool, shape (cells,)
        The published cells.
    totals : iterable of Total
        The released totals.
    decimals : int
        Decimal places of the values.
    lower, upper : array of int64, shape (cells,), optional
        Bounds of every cell, in steps; from 0 to what the totals allow without them.

    Returns
    -------
    LinearSystem
    """
    totals = tuple(totals)
    values = np.where(known, table.values.ravel(), 0)
    unknown = np.flatnonzero(~known)
    rows, columns, least, most, row_total, row_group = [], [], [], [], [], []
    done = 0
    for number, total in enumerate(totals):
        groups = total.labels.size
        group = total.group[unknown]
        wanted = total.released & (np.bincount(group, minlength=groups) > 0)
        kept = np.flatnonzero(wanted)
        row_of = np.full(groups, -1)
        row_of[kept] = done + np.arange(len(kept))
        inside = np.flatnonzero(wanted[group])
        rows.append(row_of[group[inside]])
        columns.append(inside)
        shown = np.zeros(groups, dtype=np.int64)
        np.add.at(shown, total.group, values)  # bincount's weights would be doubles
        least.append((total.least - shown)[kept])
        most.append((total.most - shown)[kept])
        row_total.append(np.full(len(kept), number))
        row_group.append(kept)
        done += len(kept)
    row, column = _joined(rows), _joined(columns)
    entries = np.ones(len(row), dtype=np.int64)
    n = len(unknown)
    return LinearSystem(
        published=table.copy(data=values.reshape(table.shape)),
        unknown=unknown,
        matrix=csr_array((entries, (row, column)), shape=(done, n)),
        least=_joined(least),
        most=_joined(most),
        lower=np.zeros(n, dtype=np.int64) if lower is None else np.maximum(lower[unknown], 0),
        upper=np.full(n, UNLIMITED) if upper is None else upper[unknown],
        totals=totals,
        row_total=_joined(row_total),
        row_group=_joined(row_group),
        decimals=decimals,
    )


def _joined(parts: Sequence[npt.NDArray[Any]]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)


def in_steps(table: Any, decimals: int, *, name: str = "table") -> xr.DataArray:
    """Check a table of counts or magnitudes and return it in steps of ``10**-decimals``, as int64 with labels."""
    decimals = whole_number(decimals, "decimals", least=0, most=_MOST_DECIMALS)
    if not isinstance(table, xr.DataArray) or decimals == 0:
        return _summable(check_table(table, name=name), name)
    values = table.values
    if not (np.issubdtype(values.dtype, np.integer) or np.issubdtype(values.dtype, np.floating)):
        raise TableError(f"{name} must hold numbers, got the type {values.dtype}")
    values = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # A sum of decimals is off by some units in the last place of a double, which is no further decimal.
        off = np.abs(values - np.round(values, decimals)) > 8 * np.spacing(np.abs(values))
        problems = {
            "not be missing": np.isnan(values),
            "be finite": np.isinf(values),
            "not be negative": values < 0,
            f"have at most {decimals} decimals": off,
            "be at most 2**53 steps": values * 10.0**decimals > MAX_COUNT,
        }
    for rule, bad in problems.items():
        if bad.any():
            position = tuple(int(i) for i in np.argwhere(bad)[0])
            raise TableError(f"{name}: values must {rule}: {cell_label(table, position)} holds {values[position]}")
    steps = np.rint(values * 10.0**decimals).astype(np.int64)
    return _summable(check_table(table.copy(data=steps), name=name), name)


def _summable(table: xr.DataArray, name: str) -> xr.DataArray:
    if table.values.sum(dtype=float) > MAX_COUNT:
        raise TableError(f"{name}: the grand total must be at most 2**53 steps, got {table.values.sum(dtype=float):g}")
    return table


def checked_mask(mask: Any, table: xr.DataArray, *, name: str) -> Booleans:
    """A mask of a table's cells as a plain array in the table's order of dimensions."""
    if not isinstance(mask, xr.DataArray) or mask.dtype != np.bool_:
        found = f"a DataArray of {mask.dtype}" if isinstance(mask, xr.DataArray) else type(mask).__name__
        raise TableError(f"{name} must be a DataArray of bool with the dimensions {table_dims(table)}, got {found}")
    if set(mask.dims) != set(table.dims) or any(mask.sizes[dim] != table.sizes[dim] for dim in table.dims):
        raise TableError(f"{name} must have the sizes {dict(table.sizes)}, got {dict(mask.sizes)}")
    mask = mask.assign_coords({dim: table[dim] for dim in table.dims if dim not in mask.coords})
    same_categories(mask, table, names=(name, "the table"))
    return np.asarray(mask.transpose(*table.dims).values, dtype=np.bool_)


def hierarchies(table: xr.DataArray) -> dict[str, tuple[str, ...]]:
    """The levels above each variable: further coordinates along it, such as the regions of countries."""
    return {
        dim: tuple(str(name) for name, coord in table.coords.items() if coord.dims == (dim,) and name != dim)
        for dim in table_dims(table)
    }


def margin_names(margin: Any, table: xr.DataArray, *, name: str) -> tuple[str, ...]:
    """Variables of a margin, or levels above them: one name or a sequence of names, one at most for each variable."""
    if isinstance(margin, str):
        names: tuple[Any, ...] = (margin,)
    elif isinstance(margin, Sequence):
        names = tuple(margin)
    else:
        raise ParameterError(f"{name} must name a margin by its variables, such as ('a', 'b'), got {margin!r}")
    variables = table_dims(table)
    above = hierarchies(table)
    of = {level: dim for dim in variables for level in (dim, *above[dim])}
    if any(each not in of for each in names) or len(set(names)) < len(names):
        levels = tuple(level for dim in variables for level in above[dim])
        or_levels = f", or levels above them, {levels}" if levels else ""
        raise ParameterError(
            f"{name} must name variables of the table, {variables}{or_levels}, each once; got {margin!r}"
        )
    along = [of[each] for each in names]
    if len(set(along)) < len(along):
        twice = next(dim for dim in along if along.count(dim) > 1)
        both = [each for each in names if of[each] == twice]
        raise ParameterError(f"{name} must name one level of each variable; {both} are all of {twice!r}, in {margin!r}")
    return names


def level_codes(table: xr.DataArray, name: str) -> tuple[npt.NDArray[Any], Integers]:
    """Categories of a variable, or of a level above one in order of first appearance, and that of each position."""
    labels = table[name].values
    if name in table.dims:
        return labels, np.arange(len(labels))
    codes, categories = pd.factorize(labels)
    if (codes < 0).any():
        dim = table[name].dims[0]
        missing = table[dim].values[np.flatnonzero(codes < 0)[0]]
        raise TableError(
            f"a label of {name!r} is missing, at {dim}={missing}: each category belongs to one of {name!r}"
        )
    return np.asarray(categories), codes.astype(np.int64)


def margin_of(table: xr.DataArray, names: tuple[str, ...]) -> tuple[xr.DataArray, Integers]:
    """The table's totals over some of its variables or levels, in steps, and the flat position there of each cell."""
    group = np.zeros(table.shape, dtype=np.int64)
    coords = {}
    for name in names:
        coords[name], codes = level_codes(table, name)
        axis = table.get_axis_num(table[name].dims[0])
        group = group * len(coords[name]) + codes.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    shape = [len(labels) for labels in coords.values()]
    totals = np.zeros(int(np.prod(shape)), dtype=np.int64)
    np.add.at(totals, group.ravel(), table.values.ravel())
    above = {level: table[level] for dim, levels in hierarchies(table).items() if dim in names for level in levels}
    return xr.DataArray(totals.reshape(shape), dims=names, coords=coords).assign_coords(above), group.ravel()


def without_implied(margins: Sequence[tuple[str, ...]], table: xr.DataArray) -> list[tuple[str, ...]]:
    """The margins that do not follow from another one, whose grouping of cells is finer; of equal ones the first."""
    return [
        names
        for number, names in enumerate(margins)
        if not any(
            determines(other, names, table) and (place < number or not determines(names, other, table))
            for place, other in enumerate(margins)
        )
    ]


def determines(finer: tuple[str, ...], coarser: tuple[str, ...], table: xr.DataArray) -> bool:
    """Whether cells of one group of the first margin are always in one group of the second."""
    for dim in table_dims(table):
        codes = []
        for names in (finer, coarser):
            level = next((name for name in names if table[name].dims == (dim,)), None)
            codes.append(np.zeros(table.sizes[dim], dtype=np.int64) if level is None else level_codes(table, level)[1])
        pairs = len(set(zip(*(each.tolist() for each in codes), strict=True)))
        if pairs > len(set(codes[0].tolist())):
            return False
    return True


def coarser_levels(table: xr.DataArray, dim: str) -> tuple[str, ...]:
    """The levels above a variable that put some of its categories together: a further name for each is none."""
    return tuple(name for name in hierarchies(table)[dim] if len(level_codes(table, name)[0]) < table.sizes[dim])
