"""A published table with its definition: which records each of its cells counts, and
what is published of the count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.attack.system import UNLIMITED
from taciturn.release_log.noise import Noise
from taciturn.schema import MAX_COUNT

__all__ = ["Axis", "PublishedTable", "same_tables"]

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axis:
    """A dimension of a published table.

    Attributes
    ----------
    name : str
        What it is called: a variable, or a level above one.
    variable : str
        The variable whose categories it groups.
    labels : tuple of str
        Its categories.
    classes : array of int64, shape (categories of the variable,)
        The one that each category of the variable goes into; -1 for none.
    absent : bool
        Whether the last one is the place of those that have no row in a new table and
        hold nobody, and no category of the table.
    """

    name: str
    variable: str
    labels: tuple[str, ...]
    classes: Integers
    absent: bool = False

    @property
    def given(self) -> int:
        """How many of its categories have a row in the table: the first ones."""
        return len(self.labels) - self.absent

    def grouped(self, counted: Integers, group: Integers, kept: Integers) -> "Axis":
        """The dimension whose categories are added up by these groups of them, of which
        some are kept; `counted` is as `classes`.
        """
        if len(kept) == len(self.labels):
            return replace(self, classes=counted)
        labels = tuple(
            " + ".join(label for label, own in zip(self.labels, group, strict=True) if own == each)
            for each in kept
        )
        place = np.full(int(group.max()) + 2, -1)
        place[kept] = np.arange(len(kept))
        codes = np.where(counted < 0, -1, place[group[np.maximum(counted, 0)]])
        return Axis(self.name, self.variable, labels, codes)


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """What is published of one table.

    Attributes
    ----------
    axes : tuple of Axis
        Its dimensions.
    where : mapping of str to array of bool
        For each variable by which records are selected, the categories of those that
        are counted.
    least, most : array of int64
        The interval of each cell, of the sizes of the axes; 0 and `UNLIMITED` where
        nothing is published. Of a perturbed count it is what its mechanism leaves.
    noise : Noise or None
        How its counts were perturbed; None where they were not.
    """

    axes: tuple[Axis, ...]
    where: Mapping[str, Booleans]
    least: Integers
    most: Integers
    noise: Noise | None = None

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables on which it depends who is counted where."""
        return frozenset((*(axis.variable for axis in self.axes), *self.where))

    @cached_property
    def informative(self) -> Booleans:
        """The cells of which something is published."""
        return (self.least > 0) | (self.most < UNLIMITED)

    @cached_property
    def shown(self) -> Booleans:
        """The cells that are published, as they are or not."""
        return self.informative if self.noise is None else self.informative | self.noise.some

    @cached_property
    def exact(self) -> bool:
        """Whether every cell is published as it is."""
        return bool((self.least == self.most).all())

    @cached_property
    def counts_everybody(self) -> bool:
        """Whether it says how many people there are in all."""
        whole = all((axis.classes >= 0).all() for axis in self.axes)
        return self.exact and self.noise is None and not self.where and whole

    @cached_property
    def key(self) -> bytes:
        """Equal for tables that say the same."""
        parts = [(axis.variable, axis.classes.tobytes()) for axis in self.axes]
        parts += [(name, mask.tobytes()) for name, mask in sorted(self.where.items())]
        ends = (self.least.tobytes(), self.most.tobytes())
        return repr((parts, ends)).encode()

    def classes(self, variable: str, size: int) -> Integers:
        """The place along this variable, of so many categories, that each of them goes
        to; -1 for none.
        """
        found = np.zeros(size, dtype=np.int64)
        for axis in self.axes:
            if axis.variable == variable:
                found = axis.classes
        if variable in self.where:
            found = np.where(self.where[variable], found, -1)
        return found

    def unpublished(self, variable: str) -> Booleans:
        """For each line along a variable the cells of which nothing is published, as
        far as lines differ: their sum follows from that of the line.
        """
        for place, axis in enumerate(self.axes):
            if axis.variable == variable:
                lines = np.moveaxis(~self.informative, place, -1)
                return np.unique(lines.reshape(-1, len(axis.labels)), axis=0)
        return np.zeros((0, 1), dtype=np.bool_)

    def coarsened(self, classes: Mapping[str, Integers]) -> "PublishedTable | None":
        """What it says of classes of categories of some variables, summed over the
        others: its own categories are added up to those that no class cuts through.

        Where some of the people in a class are not counted, the sum is less than the
        class holds. None where nothing is left.
        """
        least: Integers = self.least
        most: Integers = self.most
        axes: list[Axis] = []
        where: dict[str, Booleans] = {}
        whole = True
        named = {axis.variable for axis in self.axes}
        for name, mask in self.where.items():
            if name not in named:
                cover = _cover(mask, classes.get(name))
                whole = whole and bool((cover == mask).all())
                if not cover.all():
                    where[name] = cover
        for place, axis in reversed(list(enumerate(self.axes))):
            counted = self.classes(axis.variable, len(axis.classes))
            own = classes.get(axis.variable)
            group, outside = _joined(counted, len(axis.labels), own)
            # A category that the filter leaves out counts nobody, and says nothing.
            some = np.isin(np.arange(len(group)), counted)
            kept = np.unique(group[some & (group != outside)])
            if not len(kept):
                whole = False
                cover = _cover(counted >= 0, own)
                least = np.asarray(least.sum(axis=place))
                most = np.full(least.shape, UNLIMITED)
                if not cover.all():
                    where[axis.variable] = cover
                continue
            least, most = (_sums(end, place, group, kept) for end in (least, most))
            if len(kept) == 1 and outside < 0:
                least, most = (np.asarray(end.take(0, axis=place)) for end in (least, most))
                continue
            axes.append(axis.grouped(counted, group, kept))
        most = most if whole else np.full_like(most, UNLIMITED)
        found = PublishedTable(tuple(reversed(axes)), where, least, most)
        return found if found.informative.any() else None

    def implies(self, other: "PublishedTable", sizes: Mapping[str, int]) -> bool:
        """Whether the other table is a margin or a part of this one, of which every
        cell is published as it is.
        """
        if not self.exact:
            return False
        for variable in self.variables | other.variables:
            fine, coarse = (each.classes(variable, sizes[variable]) for each in (self, other))
            if ((fine < 0) & (coarse >= 0)).any():
                return False
            inside = fine >= 0
            first = np.full(fine.max(initial=-1) + 1, -2)
            first[fine[inside]] = coarse[inside]
            if (first[fine[inside]] != coarse[inside]).any():
                return False
        return True

    def added_up(self, other: "PublishedTable", sizes: Mapping[str, int]) -> Integers:
        """The cells of a table that this one implies, by its own."""
        inside = np.ones(self.least.shape, dtype=np.bool_)
        target = np.zeros(self.least.shape, dtype=np.int64)
        places = {axis.variable: place for place, axis in enumerate(self.axes)}
        steps = {
            axis.variable: prod(other.least.shape[place + 1 :])
            for place, axis in enumerate(other.axes)
        }
        for variable in self.variables | other.variables:
            fine, coarse = (each.classes(variable, sizes[variable]) for each in (self, other))
            place = places.get(variable)
            at = np.full(1 if place is None else self.least.shape[place], -1)
            at[fine[fine >= 0]] = coarse[fine >= 0]
            along = at.reshape([-1 if axis == place else 1 for axis in range(self.least.ndim)])
            inside &= along >= 0
            target += np.maximum(along, 0) * steps.get(variable, 0)
        sums = np.zeros(other.least.size, dtype=np.int64)
        np.add.at(sums, target[inside], self.least[inside])
        return sums.reshape(other.least.shape)

    def tells_apart(self, classes: Mapping[str, Integers], sizes: Mapping[str, int]) -> bool:
        """Whether each of its cells is made of whole classes of these variables."""
        for variable in self.variables:
            own = classes.get(variable, np.zeros(sizes[variable], dtype=np.int64))
            at = self.classes(variable, sizes[variable])
            first = np.unique(own, return_index=True)[1]
            if (at[first][own] != at).any():
                return False
        return True

    def without(self, cells: Sequence[int]) -> "PublishedTable":
        """The table with some cells, by flat position, not published."""
        least, most = self.least.copy(), self.most.copy()
        least.ravel()[cells], most.ravel()[cells] = 0, UNLIMITED
        noise = None if self.noise is None else self.noise.without(cells)
        return replace(self, least=least, most=most, noise=noise)

    def label(self, cell: int) -> str:
        """Who is counted in a cell, by its flat position."""
        place = np.unravel_index(cell, self.least.shape) if self.axes else ()
        return ", ".join(
            f"{axis.name}={axis.labels[int(at)]}" for axis, at in zip(self.axes, place, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """Who is counted where, in plain types."""
        return {
            "axes": [
                {
                    "name": axis.name,
                    "variable": axis.variable,
                    "labels": list(axis.labels),
                    "classes": axis.classes.tolist(),
                }
                for axis in self.axes
            ],
            "where": {name: np.flatnonzero(mask).tolist() for name, mask in self.where.items()},
        }

    @classmethod
    def from_json(
        cls,
        given: Mapping[str, Any],
        sizes: Mapping[str, int],
        least: Sequence[int],
        most: Sequence[int],
        noise: tuple[Mapping[str, Any], Sequence[Sequence[int]]] | None = None,
    ) -> "PublishedTable":
        """What `as_json` gave, with the intervals in flat order, and for a perturbed
        table what `Noise.as_json` gave with what was released.

        Raises
        ------
        ValueError, TypeError, KeyError
            Not that, or of other variables than those of these sizes.
        """
        axes = tuple(_axis(each, sizes) for each in given["axes"])
        if len({axis.variable for axis in axes}) < len(axes):
            raise ValueError("two dimensions of a table are of one variable")
        where = {}
        for name, places in given["where"].items():
            where[name] = np.isin(np.arange(sizes[name]), _whole(places, 0, sizes[name] - 1))
            if not where[name].any():
                raise ValueError(f"a table selects no category of {name!r}")
        shape = tuple(len(axis.labels) for axis in axes)
        # A total that is rounded to 0 may be in an interval that begins below.
        lower = np.array(_whole(least, -MAX_COUNT, MAX_COUNT), dtype=np.int64).reshape(shape)
        upper = np.array(_whole(most, 0, UNLIMITED), dtype=np.int64).reshape(shape)
        if (lower > upper).any():
            raise ValueError("the least of a cell is above its most")
        own = None if noise is None else Noise.from_json(*noise, shape)
        return cls(axes, where, lower, upper, own)


def _axis(given: Mapping[str, Any], sizes: Mapping[str, int]) -> Axis:
    """A dimension of a file, checked to be one of variables of these sizes."""
    name, variable, labels = (given[key] for key in ("name", "variable", "labels"))
    if not (isinstance(labels, list) and labels and all(type(x) is str for x in (name, *labels))):
        raise ValueError("a dimension must have a name and labels that are texts")
    classes = np.array(_whole(given["classes"], -1, len(labels) - 1), dtype=np.int64)
    if len(classes) != sizes[variable]:
        raise ValueError("the definition of a table is not that of this log")
    return Axis(name, variable, tuple(labels), classes)


def _whole(given: Any, least: int, most: int) -> list[int]:
    """A list of whole numbers in this range."""
    if not isinstance(given, list) or any(
        type(each) is not int or not least <= each <= most for each in given
    ):
        raise ValueError(f"a list must have whole numbers from {least} to {most}")
    return given


def same_tables(some: Iterable[PublishedTable], others: Iterable[PublishedTable]) -> bool:
    """Whether the same is published."""

    def content(tables: Iterable[PublishedTable]) -> list[Any]:
        return [
            (t.as_json(), t.least.tolist(), t.most.tolist())
            if t.noise is None
            else (t.as_json(), t.noise.as_json(), t.noise.released.tolist())
            for t in tables
        ]

    return content(some) == content(others)


def _cover(mask: Booleans, classes: Integers | None) -> Booleans:
    """The classes of which something is in a set, by category; all without classes."""
    if classes is None:
        return np.ones(len(mask), dtype=np.bool_)
    return np.isin(classes, classes[mask])


def _joined(counted: Integers, size: int, classes: Integers | None) -> tuple[Integers, int]:
    """The group of each of so many categories of a table, such that no class is in two,
    and the group of what is not counted; -1 where all is.
    """
    own = np.zeros(len(counted), dtype=np.int64) if classes is None else classes
    node = np.where(counted < 0, size, counted)
    group = np.arange(size + 1)
    while True:
        least = np.full(int(own.max()) + 1, size)
        np.minimum.at(least, own, group[node])
        before = group.copy()
        np.minimum.at(group, node, least[own])
        if np.array_equal(group, before):
            break
    return group[:size], int(group[size]) if (counted < 0).any() else -1


def _sums(end: Integers, place: int, group: Integers, kept: Integers) -> Integers:
    """The sums of groups along an axis; without a limit where one of them has none."""
    if len(kept) == end.shape[place]:
        return end
    inside = (kept[:, None] == group).astype(np.int64)
    open_ = end >= UNLIMITED
    sums = np.tensordot(inside, np.where(open_, 0, end), (1, place))
    sums[np.tensordot(inside, open_.astype(np.int64), (1, place)) > 0] = UNLIMITED
    return np.moveaxis(sums, 0, place)
