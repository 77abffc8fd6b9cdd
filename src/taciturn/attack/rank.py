"""Rank of a release: how many of its equations do not follow from the others."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.system import Integers, LinearSystem, build_system
from taciturn.errors import ParameterError
from taciturn.tables.margins import Margin, margin_names
from taciturn.tables.steps import checked_mask
from taciturn.validate import quoted, whole_number

__all__ = ["ConstraintRank", "constraint_rank", "rank_decrease", "rank_of"]


@dataclass(frozen=True)
class ConstraintRank:
    """Rank of the equations of a release.

    Attributes
    ----------
    rank : int
        Number of equations that do not follow from others.
    rows : int
        Number of equations.
    dependent : tuple of str
        Equations that follow from the others, ``rows - rank`` of them: one choice of
        those that can be left out together.
    """

    rank: int
    rows: int
    dependent: tuple[str, ...]


def constraint_rank(
    release: Release | Sequence[Margin], *, sizes: Mapping[str, int] | None = None
) -> ConstraintRank:
    r"""Exact rank of the equations that a release gives for the cells it does not
    publish.

    With rank `r` and `n` unknown cells, ``n - r`` degrees of freedom are left.
    Elimination is sparse and in whole numbers, so the rank is exact. Where no cell is
    published and all totals are over variables, not levels above them, only some
    columns enter: those of cells whose variables outside the first category are
    together in a released projection. They span the columns of the others, even with
    suppressed rows left out, and there are

    .. math:: \sum_{S \subseteq m \text{ for a released } m} \ \prod_{v \in S} (n_v - 1)

    of them, which is the rank without suppression, for :math:`n_v` categories of a
    variable `v`.

    Parameters
    ----------
    release : Release or sequence of margins
        A release, or the names of released projections of a table with the given
        `sizes`.
    sizes : mapping of str to int, optional
        Number of categories of each variable; with projections only.

    Returns
    -------
    ConstraintRank

    Raises
    ------
    ParameterError
        `sizes` that are missing for projections, given for a release or not whole
        numbers of at least 1; projections that are not over these variables, or that
        are named twice.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.5, equations (9) to (13).

    Examples
    --------
    >>> import taciturn as tc
    >>> sizes = {"activity": 3, "size": 4, "region": 3}
    >>> pairs = [("activity", "size"), ("activity", "region"), ("size", "region")]
    >>> found = tc.attack.constraint_rank(pairs, sizes=sizes)
    >>> found.rank, found.rows
    (24, 33)
    """
    if not isinstance(release, Release):
        if not isinstance(sizes, Mapping) or not sizes:
            raise ParameterError(
                f"sizes must give the number of categories of each variable, got {quoted(sizes)}"
            )
        shape = [whole_number(size, f"sizes[{name!r}]", least=1) for name, size in sizes.items()]
        release = LinkedTables(
            xr.DataArray(np.zeros(shape, dtype=np.int64), dims=list(sizes)), release
        )
    elif sizes is not None:
        raise ParameterError(
            f"sizes are for projections, a release has its own; got {quoted(sizes)}"
        )
    system = release.system
    dependent = _dependent_rows(system)
    rows = system.matrix.shape[0]
    return ConstraintRank(
        rows - len(dependent), rows, tuple(system.row_label(row) for row in dependent)
    )


def rank_decrease(release: LinkedTables, pattern: Mapping[Margin, xr.DataArray]) -> int:
    """By how much the rank of linked tables falls when more of their cells are
    suppressed.

    Of two patterns the one with the larger decrease leaves more degrees of freedom and
    so protects better.

    Parameters
    ----------
    release : LinkedTables
        The release before.
    pattern : mapping of margin to DataArray of bool
        True where a cell of a released projection is suppressed, as in `LinkedTables`.

    Returns
    -------
    int
        From 0 to the number of cells in the pattern.

    Raises
    ------
    ParameterError
        A `release` that is not a `LinkedTables`, a pattern for a projection that is not
        released.
    TableError
        A mask that is not bool or has other dimensions or categories.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.5, Propositions 1 to 3.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[[1, 2], [3, 0]], [[4, 1], [2, 2]]], dims=("a", "b", "c"))
    >>> release = tc.LinkedTables(table, [("a", "b"), ("a", "c")])
    >>> first_row = {("a", "b"): table.sum("c") == 3}
    >>> tc.attack.rank_decrease(release, first_row)
    1
    """
    if not isinstance(release, LinkedTables):
        raise ParameterError(f"release must be a LinkedTables, got {type(release).__name__}")
    before = release.system
    totals = {frozenset(total.labels.dims): total for total in before.totals}
    for key, mask in pattern.items():
        names = frozenset(margin_names(key, before.published, name="pattern"))
        if names not in totals:
            raise ParameterError(
                "pattern must name released projections,"
                f" {[tuple(total.labels.dims) for total in before.totals]}, got {key!r}"
            )
        hidden = checked_mask(mask, totals[names].labels, name=f"pattern[{key!r}]")
        totals[names] = totals[names].without(hidden.ravel())
    known = np.zeros(before.published.size, dtype=np.bool_)
    after = build_system(before.published, known, totals.values(), decimals=before.decimals)
    return rank_of(before) - rank_of(after)


def rank_of(system: LinearSystem) -> int:
    """Exact rank of the matrix of a system."""
    return int(system.matrix.shape[0]) - len(_dependent_rows(system))


def _dependent_rows(system: LinearSystem) -> list[int]:
    """Rows that follow from the others."""
    matrix = system.matrix[:, _spanning_columns(system)].tocsr()
    ends = matrix.indptr.tolist()
    entries = list(zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True))
    return _eliminated([dict(entries[start:end]) for start, end in pairwise(ends)])


def _spanning_columns(system: LinearSystem) -> Integers:
    """Columns that span all others."""
    table = system.published
    every = np.arange(len(system.unknown))
    projections = [frozenset(total.labels.dims) for total in system.totals]
    if len(every) < table.size or not all(names <= set(table.dims) for names in projections):
        return every
    used = np.zeros(table.shape, dtype=np.int64)
    for axis, size in enumerate(table.shape):
        along = (np.arange(size) > 0).astype(np.int64) << axis
        used |= along.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    inside = []
    for code in np.unique(used):
        names = {dim for axis, dim in enumerate(table.dims) if code >> axis & 1}
        if any(names <= projection for projection in projections):
            inside.append(code)
    return np.flatnonzero(np.isin(used.ravel(), inside))


def _eliminated(rows: list[dict[int, int]]) -> list[int]:
    """Rows that elimination in whole numbers reduces to zero; `rows` is used up.

    The shortest row goes next, by its rarest column, which keeps the others short.
    """
    holders: dict[int, set[int]] = {}
    for number, row in enumerate(rows):
        for column in row:
            holders.setdefault(column, set()).add(number)
    queue = [(len(row), number) for number, row in enumerate(rows)]
    heapq.heapify(queue)
    dependent, done = [], set()
    while queue:
        length, number = heapq.heappop(queue)
        pivot = rows[number]
        if number in done or length != len(pivot):
            continue
        done.add(number)
        if not pivot:
            dependent.append(number)
            continue
        column = min(pivot, key=lambda c: len(holders[c]))
        for held in pivot:
            holders[held].discard(number)
        for other in list(holders[column]):
            _eliminate(rows[other], pivot, column, other, holders)
            heapq.heappush(queue, (len(rows[other]), other))
    return sorted(dependent)


def _eliminate(
    row: dict[int, int],
    pivot: dict[int, int],
    column: int,
    number: int,
    holders: dict[int, set[int]],
) -> None:
    """Subtract a multiple of the pivot from a row so that its entry in the column is
    zero.
    """
    divisor = gcd(pivot[column], row[column])
    times, less = pivot[column] // divisor, row[column] // divisor
    if times != 1:
        for held in row:
            row[held] *= times
    for held, entry in pivot.items():
        value = row.get(held, 0) - less * entry
        if value:
            row[held] = value
            holders[held].add(number)
        elif held in row:
            del row[held]
            holders[held].discard(number)
    if times not in (1, -1):
        common = gcd(*row.values())
        for held in row:
            row[held] //= common
