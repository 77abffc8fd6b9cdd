"""The totals of a window that an attacker may work out: each takes for each variable
one class, all of them, or what one table counts and another does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.window import Window

__all__ = ["Totals", "coarsest", "with_sums"]

_MOST_DIFFERENCES: Final = 1_000  # of a variable
_MOST_TOTALS: Final = 5_000_000  # with differences of one more variable

type Numbers = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Totals:
    """All totals of a window, in one order.

    Those that take classes or whole variables come first: the table with a further
    place along each variable for the sum over it. Then, for one variable after the
    other, those that take a difference of two sets that tables name along it.

    Attributes
    ----------
    window : Window
        The window.
    """

    window: Window

    @cached_property
    def _extended(self) -> tuple[int, ...]:
        return tuple(size + 1 for size in self.window.shape)

    @cached_property
    def complete(self) -> bool:
        """Whether there was room for all differences."""
        return all(len(sets) <= room for sets, room in self._every_difference)

    @cached_property
    def _every_difference(self) -> list[tuple[Booleans, int]]:
        """For each variable the sets of classes, and how many there is room for."""
        size = prod(self._extended)
        rooms = [_MOST_TOTALS // (size // own) for own in self._extended]
        return [
            (_differences(self.window, name), min(room, _MOST_DIFFERENCES))
            for name, room in zip(self.window.classes, rooms, strict=True)
        ]

    @cached_property
    def _differences(self) -> list[tuple[int, Booleans]]:
        """For each variable with some, its place and the sets of classes."""
        return [
            (place, sets[:room])
            for place, (sets, room) in enumerate(self._every_difference)
            if len(sets[:room])
        ]

    def of(self, cells: Numbers) -> Numbers:
        """All totals of a table, by flat position; of several columns for each
        combination of classes their sums.
        """
        whole = with_sums(cells.reshape(*self.window.shape, -1).sum(axis=-1))
        parts = [whole.ravel()]
        for place, sets in self._differences:
            single = whole.take(range(self.window.shape[place]), axis=place)
            parts.append(np.tensordot(sets.astype(cells.dtype), single, (1, place)).ravel())
        return np.concatenate(parts)

    def sets(self, total: int) -> dict[str, Booleans]:
        """The classes that a total takes of the variables it is not summed over."""
        size = prod(self._extended)
        names = list(self.window.classes)
        if total < size:
            at = [int(i) for i in np.unravel_index(total, self._extended)]
            return {
                name: np.arange(n) == i
                for name, n, i in zip(names, self.window.shape, at, strict=True)
                if i < n
            }
        done = size
        for place, sets in self._differences:
            rest = [i for i in range(len(names)) if i != place]
            shape = (len(sets), *(self._extended[i] for i in rest))
            if total < done + prod(shape):
                which, *at = (int(i) for i in np.unravel_index(total - done, shape))
                found = {
                    names[i]: np.arange(self.window.shape[i]) == j
                    for i, j in zip(rest, at, strict=True)
                    if j < self.window.shape[i]
                }
                return {names[place]: sets[which], **found}
            done += prod(shape)
        raise IndexError(total)

    def cells(self, total: int) -> Integers:
        """The combinations of classes in a total."""
        taken = self.sets(total)
        inside = np.ones(self.window.shape, dtype=np.bool_)
        for axis, name in enumerate(self.window.classes):
            if name in taken:
                mask = taken[name].reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
                inside &= mask
        return np.flatnonzero(inside)


def with_sums(table: Numbers) -> Numbers:
    """A table with a further place along each variable for the sum over it."""
    for axis in range(table.ndim):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    return table


def coarsest[Key](
    described: Sequence[tuple[Key, Mapping[str, Booleans]]], values: Mapping[Key, Any]
) -> list[Key]:
    """Of totals, each with its sets, that are part of another with the same value only
    this other.
    """
    kept: list[tuple[Key, Mapping[str, Booleans]]] = []
    for total, taken in sorted(described, key=lambda each: (len(each[1]), _taken(each[1]))):
        if not any(
            values[other] == values[total] and _inside(taken, wider) for other, wider in kept
        ):
            kept.append((total, taken))
    return [total for total, _ in kept]


def _taken(sets: Mapping[str, Booleans]) -> int:
    """Less the number of classes, so that wider sets come first."""
    return -sum(int(each.sum()) for each in sets.values())


def _inside(taken: Mapping[str, Booleans], wider: Mapping[str, Booleans]) -> bool:
    """Whether all that one total counts is in another."""
    return all(name in taken and not (taken[name] & ~each).any() for name, each in wider.items())


def _differences(window: Window, name: str) -> Booleans:
    """What one set that a table names along a variable has and another has not, and
    what a table leaves unpublished in a line along it, as far as it is more than a
    class and less than all.
    """
    own = window.classes[name]
    first = np.unique(own, return_index=True)[1]
    every = np.ones(len(first), dtype=np.bool_)
    named = {every.tobytes(): every}
    found: dict[bytes, Booleans] = {}
    for _, table in window.told:
        at = table.classes(name, len(own))[first]
        for each in (at >= 0, *(at == i for i in range(int(at.max(initial=-1)) + 1))):
            named[each.tobytes()] = each
        for hidden in table.unpublished(name):
            left = (at >= 0) & hidden[np.maximum(at, 0)]
            found[left.tobytes()] = left
    sets = list(named.values())
    for one in sets:
        for other in [np.zeros_like(every), *sets]:
            left = one & ~other
            found[left.tobytes()] = left
    several = [each for each in found.values() if 1 < each.sum() < len(every)]
    if not several:
        return np.zeros((0, len(every)), dtype=np.bool_)
    # Those of few classes first: they count the fewest people.
    return np.array(sorted(several, key=lambda x: int(x.sum())))
