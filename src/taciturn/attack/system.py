"""A release as one sparse linear system over the cells that it does not publish."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array

from taciturn.schema import cell_label

__all__ = ["UNLIMITED", "LinearSystem", "Total", "build_system", "has_negative", "open_ended"]

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
UNLIMITED: Final = 2**60
"""Upper bound, in steps, of a cell that no total limits, and with a minus the lower one
of a cell that may be negative; no sum of released values comes near it."""


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Totals over one way of grouping the cells; all values in steps.

    Attributes
    ----------
    labels : DataArray
        A table with a cell for each group, whose categories name the totals; 0 where
        one is not released.
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

    @classmethod
    def exact(cls, labels: xr.DataArray, group: Integers) -> "Total":
        """Totals that are all released as they are, such as those of `margin_of`."""
        values = labels.values.ravel()
        return cls(labels, group, values, values, np.ones(values.size, dtype=np.bool_))

    def without(self, suppressed: Booleans) -> "Total":
        """These totals with some suppressed, whose values are dropped."""
        released = self.released & ~suppressed
        least, most = np.where(released, self.least, 0), np.where(released, self.most, 0)
        labels = self.labels.copy(data=least.reshape(self.labels.shape))
        return Total(labels, self.group, least, most, released)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({int(self.released.sum()):,} of {self.labels.size:,} released)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class LinearSystem:
    r"""All tables that are compatible with a release: integer `x`, in steps, with
    bounds on its cells and totals.

    .. math:: l \le A x \le h, \qquad u_j \le x_j \le v_j, \qquad x \in \mathbb{Z}^n

    The unit of all values is the step, ``10**-decimals``. `A` holds zeros and ones, and
    -1 where a sum that is a cell itself is subtracted. A total without an unknown cell
    has no row; from the others the published cells are subtracted.

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
        `u`, 0 or, in a table with negative values, ``-UNLIMITED``, unless more is
        known; and `v`, `UNLIMITED` where no total limits a cell.
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
        return (
            f"{type(self).__name__}({rows:,} equations, {columns:,} unknown of"
            f" {self.published.size:,} cells)"
        )

    @cached_property
    def signed(self) -> bool:
        """Whether a term of some total may be negative, so that a total does not limit
        its cells by itself.
        """
        return bool((self.matrix.data < 0).any() or (self.lower < 0).any())

    def holds(self, cells: Integers) -> bool:
        """Whether values of the unknown cells are within all bounds."""
        sums = self.matrix @ cells
        inside = (self.lower <= cells).all() and (cells <= self.upper).all()
        return bool(inside and (self.least <= sums).all() and (sums <= self.most).all())

    def most_of_cells(self) -> Integers:
        """The largest value of each unknown cell that its own bound and each of its
        totals, taken alone, allow.
        """
        most = self.upper.copy()
        if self.signed:
            return most
        coo = self.matrix.tocoo()
        np.minimum.at(most, coo.col, self.most[coo.row])
        return most

    def capped(self) -> tuple["LinearSystem", Booleans]:
        """The system with an upper bound for every total, and the cells that only
        totals without one hold: these have no upper bound, whatever the system says.

        In any table they can be lowered to the largest of the least values of these
        totals, which then still hold, and nothing else changes. Where terms may be
        negative that is not so, and the system is returned as it is.
        """
        if self.signed:
            return self, np.zeros(len(self.upper), dtype=np.bool_)
        open_ = self.most >= UNLIMITED
        held = np.asarray(self.matrix.sum(axis=0)).ravel() > 0
        unlimited = held & (self.most_of_cells() >= UNLIMITED)
        if not open_.any():
            return self, unlimited
        enough = np.maximum(self.lower, self.least[open_].max())
        upper = np.where(unlimited, enough, self.upper)
        most = np.minimum(self.most, self.matrix @ replace(self, upper=upper).most_of_cells())
        return replace(self, upper=upper, most=most), unlimited

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
    signed: bool = False,
    lower: Integers | None = None,
    upper: Integers | None = None,
) -> LinearSystem:
    """Build the system of a table whose published cells and totals are given.

    Parameters
    ----------
    table : DataArray of int64
        The table in steps; its values are used where they are known. If some are
        negative, no cell has a lower bound of 0.
    known : array of bool, shape (cells,)
        The published cells.
    totals : iterable of Total
        The released totals.
    decimals : int
        Decimal places of the values.
    signed : bool
        Whether cells may be negative, even if all values are at least 0.
    lower, upper : array of int64, shape (cells,), optional
        Bounds of every cell, in steps; by default 0, or none, and none but the totals.

    Returns
    -------
    LinearSystem
    """
    totals = tuple(totals)
    floor = -UNLIMITED if signed or has_negative(table) else 0
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
        lower=np.full(n, floor) if lower is None else np.maximum(lower[unknown], floor),
        upper=np.full(n, UNLIMITED) if upper is None else upper[unknown],
        totals=totals,
        row_total=_joined(row_total),
        row_group=_joined(row_group),
        decimals=decimals,
    )


def has_negative(table: xr.DataArray) -> bool:
    """Whether some cell is negative, so that none is known to hold at least 0."""
    return bool((table.values < 0).any())


def open_ended(bounds: Integers) -> Floats:
    """Bounds for a solver: infinite where there is none."""
    return np.where(np.abs(bounds) >= UNLIMITED // 2, np.copysign(np.inf, bounds), bounds)


def _joined(parts: Sequence[npt.NDArray[Any]]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)
