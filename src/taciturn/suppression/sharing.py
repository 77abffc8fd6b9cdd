"""Which cells several tables have in common, and the sums that tie the others."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations, permutations, product

import numpy as np
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.system import Integers
from taciturn.errors import TableError
from taciturn.schema import cell_label
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.shared import SharedCells
from taciturn.suppression.written_alike import check_categories, check_names
from taciturn.tables.margins import (
    finer_margins,
    hierarchies,
    labels_along,
    level_codes,
)

__all__ = ["share"]

type Names = tuple[str, ...]
type Term = tuple[Integers, int]
"""The numbers of cells, and the sign with which they are in a sum."""


def share(parts: Mapping[str, PublishedCells]) -> SharedCells:
    """Number the cells of several tables, each of which releases all cells of some
    margins, its own among them.

    Raises
    ------
    TableError
        Two tables hold different totals of the same cell, or write a category in
        different ways.
    """
    signed = any(cells.signed for cells in parts.values())
    parts = {name: replace(cells, signed=signed) for name, cells in parts.items()}
    tables = {name: _Table(name, cells) for name, cells in parts.items()}
    pairs = [_Pair(*both) for both in combinations(tables.values(), 2)]
    for pair in pairs:
        pair.check_labels()
        pair.check_totals()
    values = _number(tables, pairs)
    terms = [sum_ for table in tables.values() for sum_ in table.sums()]
    terms += [sum_ for pair in pairs for sum_ in pair.sums()]
    cells = xr.DataArray(values, dims="cell", coords={"cell": np.arange(len(values))})
    return SharedCells(
        table=cells,
        margins=(("cell",), ("sum",)),
        linked=False,
        decimals=next(iter(parts.values())).decimals,
        signed=signed,
        parts=parts,
        numbers={name: table.numbers for name, table in tables.items()},
        sums=_matrix(terms, len(values)),
    )


class _Table:
    """A table among several, whose cells get numbers."""

    def __init__(self, name: str, cells: PublishedCells) -> None:
        self.name, self.cells, self.table = name, cells, cells.table
        self.of = {
            level: dim for dim, above in hierarchies(self.table).items() for level in (dim, *above)
        }
        self.margin = {frozenset(names): at for at, names in enumerate(cells.margins)}
        self.numbers = np.full(len(cells.values), -1)
        self._codes: dict[str, tuple[list[str], Integers]] = {}
        self._held: dict[str, frozenset[str]] = {}

    def keys(self, names: Names) -> list[tuple[str, ...]]:
        """The labels of the cells of a margin, in the order of `margin_of`; of levels
        of one variable also those that no category has together.
        """
        return list(product(*(self.labels(name) for name in names)))

    def labels(self, name: str) -> list[str]:
        """The labels of a variable or level, as they are written."""
        return self._coded(name)[0]

    def _coded(self, name: str) -> tuple[list[str], Integers]:
        if name not in self._codes:
            written = [str(label) for label in labels_along(self.table, name)]
            self._codes[name] = written, level_codes(self.table, name)[1]
        return self._codes[name]

    def labels_above(self, finer: str, coarser: str) -> dict[str, str] | None:
        """The label of one name for each of another; None where that does not say."""
        if self.of[finer] != self.of[coarser]:
            return None
        (labels, own), (above, codes) = self._coded(finer), self._coded(coarser)
        pairs = {(labels[i], above[j]) for i, j in zip(own, codes, strict=True)}
        found = dict(pairs)
        return found if len(found) == len(pairs) else None

    def groups(self, names: Names) -> Integers:
        """The place among these keys of that of each cell of the table."""
        group = np.zeros(self.table.shape, dtype=np.int64)
        for name in names:
            labels, codes = self._coded(name)
            axis = self.table.get_axis_num(self.of[name])
            shape = [-1 if i == axis else 1 for i in range(self.table.ndim)]
            group = group * len(labels) + codes.reshape(shape)
        return group.ravel()

    def totals(self, names: Names) -> dict[tuple[str, ...], int]:
        """The values of the cells of a margin."""
        keys = self.keys(names)
        found = np.zeros(len(keys), dtype=np.int64)
        np.add.at(found, self.groups(names), self.table.values.ravel())
        return dict(zip(keys, found.tolist(), strict=True))

    def held(self, name: str) -> frozenset[str]:
        """The labels of a variable or level of which not all cells are empty."""
        if name not in self._held:
            written = np.array(self.labels(name), dtype=object)
            occupied = self.groups((name,))[self.table.values.ravel() != 0]
            self._held[name] = frozenset(written[np.unique(occupied)].tolist())
        return self._held[name]

    def of_margin(self, names: Names) -> dict[tuple[str, ...], Integers]:
        """The numbers of what makes up each cell of a margin: of the cell itself, if it
        is released.
        """
        if frozenset(names) in self.margin:
            at = self.margin[frozenset(names)]
            own = self.cells.margins[at]
            numbers = self.numbers[self.cells.part(at)]
            order = [own.index(name) for name in names]
            return {
                tuple(key[i] for i in order): numbers[[place]]
                for place, key in enumerate(self.keys(own))
            }
        keys, group = self.keys(names), self.groups(names)
        by_group = np.argsort(group, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=len(keys)))
        inner = self.numbers[self.cells.inner]
        return dict(zip(keys, np.split(inner[by_group], ends[:-1]), strict=True))

    def sums(self) -> Iterator[list[Term]]:
        """Each released total and what makes it up, of the coarsest finer margin; of
        margins with the same cells, as of a variable of one category, each is tied to
        an earlier one.
        """
        for at, finer in enumerate(finer_margins(self.cells.margins, self.table)):
            if not finer:
                continue
            other = min(finer, key=lambda each: self.cells.totals[each].labels.size)
            # One cell of the table stands for each part.
            parts, where = np.unique(self.cells.totals[other].group, return_index=True)
            group = self.cells.totals[at].group[where]
            by_group = np.argsort(group, kind="stable")
            ends = np.cumsum(np.bincount(group))
            numbers = self.numbers[self.cells.part(other)][parts[by_group]]
            totals = self.numbers[self.cells.part(at)]
            for total, added in zip(totals, np.split(numbers, ends[:-1]), strict=True):
                yield [(added, 1), (np.array([total]), -1)]


class _Pair:
    """Two tables, and the margins over which they have the same cells."""

    def __init__(self, first: _Table, second: _Table) -> None:
        self.first, self.second = first, second

    @cached_property
    def shared(self) -> list[str]:
        """Variables and levels of both."""
        return [name for name in self.first.of if name in self.second.of]

    @cached_property
    def common(self) -> list[Names]:
        """Margins of which both tables have the cells: over variables or levels of
        both, and with the same categories of whatever else both have. What are several
        variables in one table may be levels of one variable in the other.
        """
        choices = [
            [*(name for name in self.shared if self.first.of[name] == dim), None]
            for dim in self.first.table.dims
        ]
        by_one_each = [tuple(filter(None, chosen)) for chosen in product(*choices)]
        every = dict.fromkeys([*by_one_each, *self._without_implied()])
        return [names for names in every if self._is_common(names)]

    def _is_common(self, names: Names) -> bool:
        of_first = {self.first.of[name] for name in names}
        of_second = {self.second.of[name] for name in names}
        return all(
            self.first.held(name) == self.second.held(name)
            for name in self.shared
            if self.first.of[name] not in of_first and self.second.of[name] not in of_second
        )

    def _without_implied(self) -> list[Names]:
        """Sets of shared names of which none follows from another one, nor several from
        one whose labels both tables have: a finer margin says more then.
        """
        found: list[Names] = [()]
        for name in self.shared:
            found += [
                (*names, name)
                for names in found
                if not any(name in self.implied[own] or own in self.implied[name] for own in names)
            ]
        of_both = [self.implied[name] for name in self.shared if self._same_labels(name)]
        return [names for names in found if not any(len(own & set(names)) > 1 for own in of_both)]

    @cached_property
    def implied(self) -> dict[str, set[str]]:
        """For each shared name the others whose label follows from its label, and is
        the same in both tables: where an area is in another district in each of them,
        nobody can be in it.
        """
        found: dict[str, set[str]] = {name: set() for name in self.shared}
        for finer, coarser in permutations(self.shared, 2):
            one, two = (table.labels_above(finer, coarser) for table in (self.first, self.second))
            if one is None or two is None:
                continue
            if all(one[label] == two[label] for label in one.keys() & two.keys()):
                found[finer].add(coarser)
        return found

    def check_labels(self) -> None:
        """Raise `TableError` where what may be one category is written in two ways, and
        so would be two.
        """
        first, second = self.first, self.second
        check_names((first.name, list(first.of)), (second.name, list(second.of)))
        for name in self.shared:
            one, two = ((each.name, labels_along(each.table, name)) for each in (first, second))
            check_categories(name, one, two)

    def check_totals(self) -> None:
        """Raise `TableError` where they hold different totals of the same cell."""
        step = 10.0**self.first.cells.decimals
        for names in self.common:
            held, other = self.first.totals(names), self.second.totals(names)
            for key in held:
                if held[key] != other.get(key, held[key]):
                    where = ", ".join(
                        f"{name}={label}" for name, label in zip(names, key, strict=True)
                    )
                    raise TableError(
                        f"{where or 'the grand total'} must hold the same in all tables:"
                        f" {held[key] / step:.15g} in {self.first.name!r},"
                        f" {other[key] / step:.15g} in {self.second.name!r}"
                    )
        for table, others, nobody in self.empty:
            values = table.table.values.ravel()
            for cell in nobody[values[nobody] != 0]:
                place = np.unravel_index(cell, table.table.shape)
                where = cell_label(table.table, tuple(map(int, place)))
                raise TableError(
                    f"{where} of {table.name!r} must hold 0: no category of {others.name!r} has"
                    f" its labels together, it holds {values[cell] / step:.15g}"
                )

    def sums(self) -> Iterator[list[Term]]:
        """Each cell that both have and not both release, as made up in one table and in
        the other; none that follows from finer ones.
        """
        for names in self.common:
            both = frozenset(names)
            released = both in self.first.margin and both in self.second.margin
            if released or any(self._follows(names, other) for other in self.common):
                continue
            one, two = self.first.of_margin(names), self.second.of_margin(names)
            for key in [key for key in one if key in two]:
                # Cells of both are on both sides.
                terms = np.setdiff1d(one[key], two[key]), np.setdiff1d(two[key], one[key])
                if any(map(len, terms)):
                    yield [(terms[0], 1), (terms[1], -1)]
        for table, _, nobody in self.empty:
            for number in table.numbers[table.cells.inner][nobody]:
                yield [(np.array([number]), 1)]

    @cached_property
    def empty(self) -> list[tuple[_Table, _Table, Integers]]:
        """Where values may be negative, so that it does not follow from a sum of 0: the
        cells of each table whose labels no category of the other has together.
        """
        if not self.first.cells.signed:
            return []
        both = (self.first, self.second), (self.second, self.first)
        return [(table, other, self._nobody(table, other)) for table, other in both]

    def _nobody(self, table: _Table, other: _Table) -> Integers:
        found = np.zeros(table.table.size, dtype=np.bool_)
        for names in self.common:
            if len({other.of[name] for name in names}) < len(names):
                theirs = other.keys(names)
                nobody = np.ones(len(theirs), dtype=np.bool_)
                nobody[other.groups(names)] = False
                empty = dict(zip(theirs, nobody.tolist(), strict=True))
                keys = [empty.get(key, False) for key in table.keys(names)]
                found |= np.array(keys)[table.groups(names)]
        return np.flatnonzero(found)

    def _follows(self, names: Names, other: Names) -> bool:
        """Whether that cells of a margin are the same follows from those of another:
        both tables have all of these, the empty ones too.
        """
        if names == other or not all(map(self._same_labels, other)):
            return False
        coarser = self._gives(names, other)
        return self._gives(other, names) and (
            not coarser or self.common.index(other) < self.common.index(names)
        )

    def _gives(self, finer: Names, coarser: Names) -> bool:
        """Whether the labels of one margin follow from those of another, in the same
        way in both tables.
        """
        implied = set(finer).union(*(self.implied[name] for name in finer))
        return all(
            name in implied or (self._same_labels(name) and len(self.first.labels(name)) == 1)
            for name in coarser
        )

    def _same_labels(self, name: str) -> bool:
        return set(self.first.labels(name)) == set(self.second.labels(name))


def _number(tables: Mapping[str, _Table], pairs: list[_Pair]) -> Integers:
    """Give the tables' cells numbers, the same to the same cell; the value of each."""
    values: list[int] = []
    same = {
        (table.name, margin): (table.name, margin)
        for table in tables.values()
        for margin in table.margin
    }

    def root(node: tuple[str, frozenset[str]]) -> tuple[str, frozenset[str]]:
        while same[node] != node:
            node = same[node]
        return node

    for pair in pairs:
        for names in pair.common:
            nodes = [(table.name, frozenset(names)) for table in (pair.first, pair.second)]
            if all(node in same for node in nodes):
                same[root(nodes[1])] = root(nodes[0])
    known: dict[tuple[object, ...], int] = {}
    holder: list[str] = []
    for table in tables.values():
        for at, names in enumerate(table.cells.margins):
            ordered = tuple(sorted(names))
            order = [names.index(name) for name in ordered]
            cells = table.cells.part(at)
            for place, key in enumerate(table.keys(names)):
                cell = (*root((table.name, frozenset(names))), tuple(key[i] for i in order))
                value = int(table.cells.values[cells][place])
                if cell not in known:
                    known[cell] = len(values)
                    values.append(value)
                    holder.append(table.name)
                number = known[cell]
                if values[number] != value:  # the same by way of a third table
                    raise TableError(
                        f"{table.cells.label(cells.start + place)} must hold the same in"
                        f" {holder[number]!r} and {table.name!r}, which other tables join: it"
                        f" holds {values[number]} and {value} steps"
                    )
                table.numbers[cells.start + place] = number
    return np.array(values, dtype=np.int64)


def _matrix(sums: list[list[Term]], columns: int) -> csr_array:
    """The sums as rows, each once."""
    rows: dict[tuple[tuple[int, ...], ...], list[Term]] = {}
    for terms in sums:
        signed = sorted((sign, *sorted(numbers.tolist())) for numbers, sign in terms)
        rows.setdefault(tuple(signed), terms)
    column = [np.concatenate([numbers for numbers, _ in terms]) for terms in rows.values()]
    entry = [
        np.concatenate([np.full(len(numbers), sign) for numbers, sign in terms])
        for terms in rows.values()
    ]
    starts = np.cumsum([0, *map(len, column)])
    none = np.empty(0, dtype=np.int64)
    return csr_array(
        (np.concatenate([none, *entry]), np.concatenate([none, *column]), starts),
        shape=(len(rows), columns),
    )
