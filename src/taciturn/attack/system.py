"""What a release says, as one sparse linear system over the cells that it does not show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
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
    "in_steps",
    "margin_names",
    "margin_of",
]

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

UNLIMITED: Final = 2**60
"""Upper bound, in steps, of a cell that no total limits; no sum of released values comes near it."""

_MOST_DECIMALS: Final = 12  # doubles have 15 digits, and some must be left before the point


@dataclass(frozen=True, eq=False)
class Total:
    """Released totals over one way of grouping the cells; all values in steps.

    Attributes
    ----------
    labels : DataArray
        A table with a cell for each group, whose categories name the totals.
    group : array of int64, shape (cells,)
        The flat position in `labels` of the group that each cell belongs to.
    least, most : array of int64, shape (groups,)
        The interval of each total.
    released : array of bool, shape (groups,)
        False where a total is not released.
    """

    labels: xr.DataArray
    group: Integers
    least: Integers
    most: Integers
    released: Booleans


@dataclass(frozen=True, eq=False)
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


def margin_names(margin: Any, table: xr.DataArray, *, name: str) -> tuple[str, ...]:
    """Variables of a margin: one name or a sequence of names, each of the table's and once."""
    if isinstance(margin, str):
        names: tuple[Any, ...] = (margin,)
    elif isinstance(margin, Sequence):
        names = tuple(margin)
    else:
        raise ParameterError(f"{name} must name a margin by its variables, such as ('a', 'b'), got {margin!r}")
    variables = table_dims(table)
    if any(dim not in variables for dim in names) or len(set(names)) < len(names):
        raise ParameterError(f"{name} must name variables of the table, {variables}, each once; got {margin!r}")
    return names


def margin_of(table: xr.DataArray, names: tuple[str, ...]) -> tuple[xr.DataArray, Integers]:
    """The table's totals over all but some variables, in steps, and the flat position there of every cell."""
    totals = table.sum([dim for dim in table.dims if dim not in names]).transpose(*names)
    group = np.zeros(table.shape, dtype=np.int64)
    for dim in names:
        axis = table.get_axis_num(dim)
        along = np.arange(table.shape[axis]).reshape([-1 if i == axis else 1 for i in range(table.ndim)])
        group = group * table.shape[axis] + along
    return totals, group.ravel()
