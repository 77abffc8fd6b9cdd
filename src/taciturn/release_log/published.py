"""A published table with its definition: which records each of its cells counts, and
what is published of the count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.attack.system import UNLIMITED

__all__ = ["Axis", "PublishedTable"]

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
    """

    name: str
    variable: str
    labels: tuple[str, ...]
    classes: Integers


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
        nothing is published.
    """

    axes: tuple[Axis, ...]
    where: Mapping[str, Booleans]
    least: Integers
    most: Integers

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables on which it depends who is counted where."""
        return frozenset((*(axis.variable for axis in self.axes), *self.where))

    @cached_property
    def informative(self) -> Booleans:
        """The cells of which something is published."""
        return (self.least > 0) | (self.most < UNLIMITED)

    @cached_property
    def exact(self) -> bool:
        """Whether every cell is published as it is."""
        return bool((self.least == self.most).all())

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

    def over(self, variables: Iterable[str]) -> "PublishedTable | None":
        """What it says of the table over these variables: sums over the others. Where a
        sum leaves out some categories, it is less than the total. None where nothing is
        left.
        """
        kept = set(variables)
        if self.variables <= kept:
            return self
        least, most, axes = self.least, self.most, []
        whole = all(name in kept for name in self.where)
        for place, axis in reversed(list(enumerate(self.axes))):
            if axis.variable in kept:
                axes.append(axis)
                continue
            whole = whole and bool((axis.classes >= 0).all())
            open_ = (most >= UNLIMITED).any(axis=place)
            least = least.sum(axis=place)
            most = np.where(open_, UNLIMITED, np.where(most >= UNLIMITED, 0, most).sum(axis=place))
        if not whole:
            most = np.full_like(most, UNLIMITED)
        where = {name: mask for name, mask in self.where.items() if name in kept}
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

    def label(self, cell: int) -> str:
        """Who is counted in a cell, by its flat position."""
        place = np.unravel_index(cell, self.least.shape) if self.axes else ()
        return ", ".join(
            f"{axis.name}={axis.labels[int(at)]}" for axis, at in zip(self.axes, place, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types; what is not published is null."""
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
        least: Iterable[int],
        most: Iterable[int],
    ) -> "PublishedTable":
        """What `as_json` gave, with the intervals in flat order."""
        axes = tuple(
            Axis(
                each["name"],
                each["variable"],
                tuple(each["labels"]),
                np.array(each["classes"], dtype=np.int64),
            )
            for each in given["axes"]
        )
        where = {
            name: np.isin(np.arange(sizes[name]), places) for name, places in given["where"].items()
        }
        shape = tuple(len(axis.labels) for axis in axes)
        ends = (np.array(end, dtype=np.int64).reshape(shape) for end in (least, most))
        return cls(axes, where, *ends)
