"""The linear system of a table of which only projections are released, over the cells
of these instead of those of the table: mostly they are far fewer.

Two projections that agree on what they share make up a table in whole numbers: in each
category of what they share, they are two margins with the same total. So do several
that can be joined one after another, each sharing with those before it nothing but what
it shares with one of them. Three that share variables in a cycle need not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from scipy.sparse import block_array, csr_array, eye_array

from taciturn.attack.system import UNLIMITED, Booleans, Integers, LinearSystem, Total
from taciturn.schema import table_dims
from taciturn.tables.margins import margin_of

__all__ = ["over_projections"]

type _Names = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class _Projections:
    """The largest projections of which something is released.

    Attributes
    ----------
    names : list of tuple of str
        The variables of each.
    cells : list of array of int64
        For each cell of each, one of the cells of the table that are in it.
    first : list of int
        The column of the first cell of each.
    along : dict of int to frozenset of str
        The variables of each of the system's totals that has a row.
    """

    names: list[_Names]
    cells: list[Integers]
    first: list[int]
    along: dict[int, frozenset[str]]


def over_projections(
    system: LinearSystem, margin: Integers, known: Integers | None
) -> tuple[LinearSystem, Integers | None]:
    """The system over the cells of projections, and the columns of a known table; the
    system as it is where projections do not make up a table, or none contains a margin,
    given by the total of it that each cell of the table is in.

    The columns of one projection that contains the margin stand for a cell of the table
    each, any that is in the same total of the margin; the other columns for none.
    """
    table = system.published
    as_it_is = system, None if known is None else known[system.unknown]
    everything_open = len(system.unknown) == table.size and not system.lower.any()
    if not everything_open or (system.upper < UNLIMITED).any():
        return as_it_is
    along = {
        number: _told_apart(system.totals[number].group, table)
        for number in np.unique(system.row_total).tolist()
    }
    names, target = _largest(list(along.values()), table), _told_apart(margin, table)
    chosen = [number for number, each in enumerate(names) if target <= set(each)]
    tree = _tree(names)
    if not chosen or tree is None or set(names[0]) == set(table_dims(table)):
        return as_it_is
    groups = [margin_of(table, each)[1] for each in names]
    cells = [np.unique(group, return_index=True)[1] for group in groups]
    first = [0, *np.cumsum([len(each) for each in cells]).tolist()]
    projections = _Projections(names, cells, first, along)
    reduced = _untied(system, projections, chosen[0])
    if reduced.most_of_cells().astype(float).sum() >= UNLIMITED:
        return as_it_is  # some cell has no upper bound, or sums may not be exact
    columns = None
    if known is not None:
        columns = np.concatenate([_sums(group, known) for group in groups])
    for pair in tree:
        reduced, columns = _tied(reduced, projections, pair, columns)
    return reduced, columns


def _told_apart(group: Integers, table: xr.DataArray) -> frozenset[str]:
    """The variables whose categories are not all in the same group, whatever the others
    are: groups of cells are sums of cells of the projection onto these.
    """
    groups = group.reshape(table.shape)
    return frozenset(
        name
        for axis, name in enumerate(table_dims(table))
        if (groups != groups.take([0], axis=axis)).any()
    )


def _largest(along: Sequence[frozenset[str]], table: xr.DataArray) -> list[_Names]:
    """Sets of variables that no other set contains."""
    every = list(dict.fromkeys(along))
    return [
        tuple(name for name in table_dims(table) if name in names)
        for names in every
        if not any(names < other for other in every)
    ]


def _tree(projections: Sequence[_Names]) -> list[tuple[int, int]] | None:
    """Pairs of projections that are tied by what they share, so that they make up a
    table; None where there is none: a spanning tree that shares the most must share
    each variable once less than there are projections with it.
    """
    sets = [set(names) for names in projections]
    joined, edges = {0}, []
    while len(joined) < len(sets):
        pairs = [(i, j) for i in joined for j in range(len(sets)) if j not in joined]
        edges.append(max(pairs, key=lambda pair: len(sets[pair[0]] & sets[pair[1]])))
        joined.add(edges[-1][1])
    shared = sum(len(sets[i] & sets[j]) for i, j in edges)
    if shared < sum(map(len, sets)) - len(set().union(*sets)):
        return None
    return edges


def _untied(system: LinearSystem, projections: _Projections, chosen: int) -> LinearSystem:
    """The system over the cells of all projections, each with the totals that it
    contains.
    """
    rows, columns, taken = [], [], []
    done = 0
    for number, names in projections.along.items():
        own = np.flatnonzero(system.row_total == number)
        total = system.totals[number]
        row_of = np.full(total.labels.size, -1)
        row_of[system.row_group[own]] = np.arange(len(own))
        for place, cells in enumerate(projections.cells):
            if names <= set(projections.names[place]):
                row = row_of[total.group[cells]]
                inside = np.flatnonzero(row >= 0)
                rows.append(done + row[inside])
                columns.append(projections.first[place] + inside)
                taken.append(own)
                done += len(own)
    row, column, source = (np.concatenate(parts) for parts in (rows, columns, taken))
    size = projections.first[-1]
    unknown = np.full(size, -1)
    start = projections.first[chosen]
    unknown[start : start + len(projections.cells[chosen])] = projections.cells[chosen]
    return replace(
        system,
        unknown=unknown,
        matrix=csr_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(done, size)),
        least=system.least[source],
        most=system.most[source],
        lower=np.zeros(size, dtype=np.int64),
        upper=np.full(size, UNLIMITED),
        row_total=system.row_total[source],
        row_group=system.row_group[source],
    )


def _tied(
    system: LinearSystem,
    projections: _Projections,
    pair: tuple[int, int],
    known: Integers | None,
) -> tuple[LinearSystem, Integers | None]:
    """The system in which two projections agree on what they share.

    A shared total that is released, and so a row of both, needs nothing more. For
    another, one column is what remains of it up to more than it can be, in both.
    """
    table = system.published
    both = [name for name in projections.names[pair[0]] if name in projections.names[pair[1]]]
    labels, group = margin_of(table, tuple(both))
    sides = [(projections.first[place], group[projections.cells[place]]) for place in pair]
    open_ = np.flatnonzero(~_released(system, projections, both, group, labels.size))
    if len(open_) == 0:
        return system, known
    most = system.most_of_cells()
    ceiling = np.min(
        [_sums(inside, most[start : start + len(inside)]) for start, inside in sides], axis=0
    )[open_]
    row_of = np.full(labels.size, -1)
    row_of[open_] = np.arange(len(open_))
    blocks: list[list[csr_array | None]] = [[system.matrix, None]]
    for start, inside in sides:
        row = row_of[inside]
        held = np.flatnonzero(row >= 0)
        ones = np.ones(len(held), dtype=np.int64)
        shape = (len(open_), system.matrix.shape[1])
        blocks.append(
            [
                csr_array((ones, (row[held], start + held)), shape=shape),
                csr_array(eye_array(len(open_), dtype=np.int64)),
            ]
        )
    shown = np.zeros(labels.size, dtype=np.int64)
    if known is not None:
        start, inside = sides[0]
        known = np.concatenate(
            [known, ceiling - _sums(inside, known[start : start + len(inside)])[open_]]
        )
    twice = np.concatenate([ceiling, ceiling])
    return replace(
        system,
        unknown=np.concatenate([system.unknown, np.full(len(open_), -1)]),
        matrix=csr_array(block_array(blocks, format="csr")),
        least=np.concatenate([system.least, twice]),
        most=np.concatenate([system.most, twice]),
        lower=np.concatenate([system.lower, np.zeros(len(open_), dtype=np.int64)]),
        upper=np.concatenate([system.upper, ceiling]),
        totals=(*system.totals, Total(labels, group, shown, shown, shown > 0)),
        row_total=np.concatenate([system.row_total, np.full(len(twice), len(system.totals))]),
        row_group=np.concatenate([system.row_group, open_, open_]),
    ), known


def _released(
    system: LinearSystem,
    projections: _Projections,
    names: list[str],
    group: Integers,
    size: int,
) -> Booleans:
    """Which totals over some variables are released as they are."""
    found = np.zeros(size, dtype=np.bool_)
    for number in projections.along:
        total = system.totals[number]
        if set(total.labels.dims) == set(names):
            rows = (system.row_total == number) & (system.least == system.most)
            exact = np.zeros(size, dtype=np.bool_)
            exact[system.row_group[rows]] = True
            found[group] |= exact[total.group]
    return found


def _sums(group: Integers, values: Integers) -> Integers:
    """Sums of values by group; all groups have some."""
    found = np.zeros(group.max(initial=-1) + 1, dtype=np.int64)
    np.add.at(found, group, values)
    return found
