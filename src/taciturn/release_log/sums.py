"""Sums of perturbed counts: totals that a perturbed table splits into counts of its
own, and counts that are what others leave of a total.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from taciturn.attack import Mechanism
from taciturn.release_log.answers import Answers, Chosen
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.evidence import Line, Way
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.window import Window

__all__ = ["Sums", "margins"]

_MOST_PARTS: Final = 50
_MOST_SUM: Final = 2_000  # that a total practically is
_NEAR: Final = 1e-6


class _Table:
    """A perturbed table, and which of its cells are known or were answered."""

    def __init__(self, table: PublishedTable, window: Window, answers: Answers) -> None:
        self.shape = table.least.shape
        self.variables = [axis.variable for axis in table.axes]
        self.group = group = window.group(table)
        self.inside = window.inside(table)
        self.sizes = np.array([len(each) for each in self.inside])
        # A cell that is in a total as a whole adds 1 to the sum of these over it.
        self.shares = np.append(1 / np.maximum(self.sizes, 1), np.inf)[group]
        sums = np.zeros(table.least.size + 1, dtype=np.uint64)
        np.add.at(sums, group, answers.known.numbers)
        numbers = sums[:-1].reshape(self.shape)
        self.usable = (numbers == 0) | np.isin(numbers, answers.tied)
        # Along each variable the cells whose others and whose total are usable.
        self._left = []
        for axis in range(len(self.shape)):
            total = numbers.sum(axis=axis, keepdims=True, dtype=np.uint64)
            lacking = (~self.usable).sum(axis=axis, keepdims=True) - ~self.usable
            self._left.append((lacking == 0) & ((total == 0) | np.isin(total, answers.tied)))

    def split(self, cells: Sequence[int]) -> frozenset[str]:
        """The variables by which these cells differ."""
        places = np.unravel_index(list(cells), self.shape)
        return frozenset(
            name for name, at in zip(self.variables, places, strict=True) if (at != at[0]).any()
        )

    def lines(self, cell: int) -> Iterator[tuple[str, list[int]]]:
        """The variables along which a cell is what usable others leave of a usable
        total, and these others.
        """
        numbers = np.arange(self.usable.size).reshape(self.shape)
        for axis, name in enumerate(self.variables):
            if self._left[axis].flat[cell]:
                lines = np.moveaxis(numbers, axis, -1).reshape(-1, self.shape[axis])
                line = lines[(lines == cell).any(axis=1)].ravel()
                yield name, line[line != cell].tolist()


class Sums:
    """Which totals are sums of perturbed counts, and parts of such sums.

    Parameters
    ----------
    window : Window
        What is published.
    answers : Answers
        All perturbed counts.
    """

    def __init__(self, window: Window, answers: Answers) -> None:
        self._answers = answers
        tables = {id(each.source[1]): each.source[1] for each in answers.seen}
        self._tables = [_Table(each, window, answers) for each in tables.values()]
        shares = [each.shares for each in self._tables]
        self._shares = np.array(shares).reshape(len(shares), prod(window.shape))

    def of(self, cells: Integers, chosen: Chosen) -> list[Way | Line]:
        """The ways in which a total is a sum, no two of them split by the same
        variables, and the lines that it is a part of, one along each variable: given
        the total, they are then independent. Those of few counts first.
        """
        wholes = self._shares[:, cells].sum(axis=1)
        whole = wholes < _MOST_PARTS + _NEAR
        whole[whole] = abs(wholes[whole] - np.rint(wholes[whole])) < _NEAR
        near = [self._tables[number] for number in np.flatnonzero(whole).tolist()]
        found: list[Way | Line] = []
        split: frozenset[str] = frozenset()
        for by, parts in sorted(_ways(near, cells), key=lambda each: len(each[1])):
            if not split & by and (taken := self._way(parts, chosen)) is not None:
                way, chosen = taken
                found.append(way)
                split |= by
        along = set()
        for name, parts in sorted(_lines(near, cells), key=lambda each: len(each[1])):
            if name not in along and (left := self._line(cells, parts, chosen)) is not None:
                line, chosen = left
                found.append(line)
                along.add(name)
        return found

    def _way(self, parts: Sequence[Integers], chosen: Chosen) -> tuple[Way, Chosen] | None:
        """A sum of these counts, and what is chosen with it; None where all of them are
        known, all that was released of one is chosen already, or the sum is too large.
        """
        chosen = chosen.copy()
        known, kept = 0, []
        for cells in parts:
            if not self._answers.known.hash_of(cells):
                known += self._answers.known.value(cells)
                continue
            kept.append(chosen.take(self._answers.of(cells)))
            if not kept[-1].seen:
                return None
        if not kept:
            return None
        way = Way(kept, known)
        return (way, chosen) if way.ends[1] <= _MOST_SUM else None

    def _line(
        self, cells: Integers, others: Sequence[Integers], chosen: Chosen
    ) -> tuple[Line, Chosen] | None:
        """A count as what these leave of their total; None as of `_way`."""
        if (taken := self._way(others, chosen)) is None:
            return None
        way, chosen = taken
        total = np.concatenate([cells, *others])
        if not self._answers.known.hash_of(total):
            return Line(way, self._answers.known.value(total)), chosen
        whole = chosen.take(self._answers.of(total))
        fits = whole.seen and whole.practical[1] <= _MOST_SUM
        return (Line(way, whole), chosen) if fits else None


def _ways(
    tables: Sequence[_Table], cells: Integers
) -> Iterator[tuple[frozenset[str], list[Integers]]]:
    """The ways in which tables split a total, and by which variables."""
    for table in tables:
        place, size = np.unique(table.group[cells], return_counts=True)
        if len(place) > 1 and (table.sizes[place] == size).all() and table.usable.flat[place].all():
            own = place.tolist()
            yield table.split(own), [table.inside[each] for each in own]


def _lines(tables: Sequence[_Table], cells: Integers) -> Iterator[tuple[str, list[Integers]]]:
    """The lines of tables that a cell of theirs is a part of, but for it."""
    for table in tables:
        cell = int(table.group[cells[0]])
        if table.sizes[cell] == len(cells) and (table.group[cells] == cell).all():
            for name, others in table.lines(cell):
                if len(others) <= _MOST_PARTS:
                    yield name, [table.inside[each] for each in others]


def margins(
    window: Window, table: PublishedTable
) -> Iterator[tuple[dict[str, Booleans], Integers]]:
    """The sums of a table over some of its variables, and its cells unless something
    was released of each: the categories that each takes, and the combinations of
    classes that it counts.
    """
    assert table.noise is not None, "of perturbed tables"
    by_itself = isinstance(table.noise.mechanism, Mechanism)
    group = window.group(table)
    inside = group < table.least.size
    places = np.unravel_index(np.where(inside, group, 0), table.least.shape) if table.axes else ()
    for kept in product((False, True), repeat=len(table.axes)):
        if all(kept) and by_itself and table.noise.some.all():  # its cells are seen
            continue
        for at in np.ndindex(*(n for n, k in zip(table.least.shape, kept, strict=True) if k)):
            own = iter(at)
            taken, counted = dict(table.where), inside
            for axis, k, place in zip(table.axes, kept, places, strict=True):
                label = next(own) if k else None
                mask = axis.classes >= 0 if label is None else axis.classes == label
                taken[axis.variable] = mask & taken.get(axis.variable, mask)
                counted = counted if label is None else counted & (place == label)
            sets = {name: each for name, each in taken.items() if not each.all()}
            if counted.any():
                yield sets, np.flatnonzero(counted)
