"""Totals that a perturbed table splits into counts of its own."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from taciturn.attack import Mechanism
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.evidence import Evidence, Seen, Way
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.window import Window

__all__ = ["Ways", "margins"]

_MOST_PARTS: Final = 50
_MOST_SUM: Final = 2_000  # that a total practically is
_NEAR: Final = 1e-6


class Ways:
    """Which totals are sums of perturbed counts of one table.

    Parameters
    ----------
    window : Window
        What is published.
    seen : sequence of Seen
        All perturbed counts.
    """

    def __init__(self, window: Window, seen: Sequence[Seen]) -> None:
        self._tables: list[PublishedTable] = []
        groups: list[Integers] = []
        self._seen: list[dict[int, list[Seen]]] = []
        places: dict[int, int] = {}
        for each in seen:
            table = each.source[1]
            if id(table) not in places:
                places[id(table)] = len(self._tables)
                self._tables.append(table)
                groups.append(window.group(table))
                self._seen.append({})
            assert each.cell is not None, "counts of cells"
            self._seen[places[id(table)]].setdefault(each.cell, []).append(each)
        self._groups = np.array(groups).reshape(len(groups), prod(window.shape))
        # A cell that is in a total as a whole adds 1 to the sum of these over it.
        shares = [
            np.where(own < table.least.size, 1 / np.bincount(own)[own], np.inf)
            for own, table in zip(self._groups, self._tables, strict=True)
        ]
        self._shares = np.array(shares).reshape(self._groups.shape)

    def of(self, cells: Integers, used: set[Hashable]) -> list[Way]:
        """The ways in which a total is a sum, no two of them split by the same
        variables or with noise from the same keys, or from those that are used: given
        the total, they are then independent. Those of few counts first.
        """
        found: dict[tuple[bytes, ...], Way] = {}
        wholes = self._shares[:, cells].sum(axis=1)
        may = (wholes > 2 - _NEAR) & (wholes < _MOST_PARTS + _NEAR)
        may[may] = abs(wholes[may] - np.rint(wholes[may])) < _NEAR
        for number in np.flatnonzero(may).tolist():
            table, seen = self._tables[number], self._seen[number]
            place, size = np.unique(self._groups[number][cells], return_counts=True)
            own = place.tolist()
            if not all(each in seen for each in own):
                continue
            inside = [seen[each][0].cells for each in own]
            if [len(each) for each in inside] != size.tolist():
                continue
            order = sorted(range(len(own)), key=lambda part: inside[part].tobytes())
            same = tuple(inside[part].tobytes() for part in order)
            parts = [[(1, 0, each) for each in seen[own[part]]] for part in order]
            if same in found:
                parts = [
                    [*first.seen, *more]
                    for first, more in zip(found[same].parts, parts, strict=True)
                ]
            found[same] = Way([Evidence(each) for each in parts], _split(table, own))
        kept: list[Way] = []
        split: frozenset[str] = frozenset()
        for way in sorted(found.values(), key=lambda each: len(each.parts)):
            keys = {each.keys for each in way.seen}
            if way.ends[1] <= _MOST_SUM and not (split & way.split or keys & used):
                kept.append(way)
                split |= way.split
                used = used | keys
        return kept


def _split(table: PublishedTable, cells: Sequence[int]) -> frozenset[str]:
    """The variables by which these cells of a table differ."""
    places = np.unravel_index(list(cells), table.least.shape)
    return frozenset(
        axis.variable for axis, at in zip(table.axes, places, strict=True) if (at != at[0]).any()
    )


def margins(
    window: Window, table: PublishedTable
) -> Iterator[tuple[dict[str, Booleans], Integers]]:
    """The sums of a table over some of its variables, and of a swapped one its cells:
    the categories that each takes, and the combinations of classes that it counts.
    """
    assert table.noise is not None, "of perturbed tables"
    by_itself = isinstance(table.noise.mechanism, Mechanism)
    group = window.group(table)
    inside = group < table.least.size
    places = np.unravel_index(np.where(inside, group, 0), table.least.shape) if table.axes else ()
    for kept in product((False, True), repeat=len(table.axes)):
        if all(kept) and by_itself:  # its cells are seen
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
