"""All that is published over some variables as one linear system.

The cells of the system are combinations of classes: categories of a variable that no
table tells apart are one class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.system import LinearSystem, Total, build_system
from taciturn.errors import TableError
from taciturn.release_log.codebook import Codebook, Integers
from taciturn.release_log.published import PublishedTable

__all__ = [
    *("NEW", "PUBLIC", "Source", "Window", "classes_of", "named", "told_of", "total_of"),
    "window_of",
]

NEW: Final = 0
"""The number of the release that is checked."""
PUBLIC: Final = -1
"""The number of what is public without a release: how many records there are."""

type Source = tuple[int, PublishedTable]
"""A published table, and the number of the release that it belongs to."""


@dataclass(frozen=True, eq=False, repr=False)
class Window:
    """What is published over some variables.

    Attributes
    ----------
    codebook : Codebook
        The variables of the log.
    classes : mapping of str to array of int64, shape (categories,)
        For each variable of the window, in order, the class of each of its categories.
    sources : sequence of Source
        What is published over these variables; none of it follows from another part.
    told : sequence of Source
        All that is published over them.
    """

    codebook: Codebook
    classes: Mapping[str, Integers]
    sources: Sequence[Source]
    told: Sequence[Source]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many classes each variable has."""
        return tuple(int(each.max()) + 1 for each in self.classes.values())

    @cached_property
    def system(self) -> LinearSystem:
        """A row for each published cell, a column for each combination of classes."""
        table = xr.DataArray(
            np.zeros(self.shape, dtype=np.int64),
            dims=list(self.classes),
            coords={name: self.labels(name) for name in self.classes},
        )
        known = np.zeros(table.size, dtype=np.bool_)
        totals = [total_of(release, each, self.group(each)) for release, each in self.sources]
        return build_system(table, known, totals, decimals=0)

    def labels(self, variable: str) -> list[str]:
        """The classes of a variable by their categories."""
        categories = np.array(self.codebook.variables[variable], dtype=object)
        own = self.classes[variable]
        return [" + ".join(categories[own == each]) for each in range(int(own.max()) + 1)]

    def group(self, table: PublishedTable) -> Integers:
        """The cell of the table that each combination of classes belongs to; one past
        the last for none.
        """
        places = {axis.variable: place for place, axis in enumerate(table.axes)}
        sizes = table.least.shape
        group = np.zeros(self.shape, dtype=np.int64)
        outside = np.zeros(self.shape, dtype=np.bool_)
        for dim, (name, own) in enumerate(self.classes.items()):
            first = np.unique(own, return_index=True)[1]
            at = table.classes(name, len(own))[first]
            at = at.reshape([-1 if i == dim else 1 for i in range(len(self.shape))])
            outside |= at < 0
            if name in places:
                stride = prod(sizes[places[name] + 1 :])
                group += np.maximum(at, 0) * stride
        return np.where(outside, table.least.size, group).ravel()

    def inside(self, table: PublishedTable) -> list[Integers]:
        """The combinations of classes that each cell of the table counts."""
        group, size = self.group(table), table.least.size
        order = np.argsort(group, kind="stable")
        return np.split(order, np.searchsorted(group[order], np.arange(1, size + 1)))[:size]


def total_of(release: int, table: PublishedTable, group: Integers) -> Total:
    """The table as groups of combinations, for messages: the last is everybody else."""
    size = table.least.size
    shown = [named(release, table, cell) for cell in range(size)]
    labels = xr.DataArray(
        np.zeros(size + 1, dtype=np.int64),
        dims="cell",
        coords={"cell": [*shown, ""]},
    )
    least, most = np.append(table.least.ravel(), 0), np.append(table.most.ravel(), 0)
    return Total(labels, group, least, most, np.append(table.informative.ravel(), False))


def named(release: int, table: PublishedTable, cell: int) -> str:
    """Which cell of which release, for messages."""
    by = {NEW: "this table", PUBLIC: "the log"}.get(release, f"release {release}")
    return f"{table.label(cell) or 'total'} of {by}"


def classes_of(
    variables: Iterable[str], tables: Sequence[PublishedTable], codebook: Codebook
) -> dict[str, Integers]:
    """The class of each category of each variable: those that no table tells apart are
    one.
    """
    found = {}
    for name in variables:
        size = len(codebook.variables[name])
        told = {table.classes(name, size).tobytes() for table in tables if name in table.variables}
        stacked = np.array(
            [np.zeros(size, np.int64), *(np.frombuffer(each, dtype=np.int64) for each in told)]
        )
        _, first, inverse = np.unique(stacked, axis=1, return_index=True, return_inverse=True)
        # Classes in the order of their first category.
        rank = np.argsort(np.argsort(first))
        found[name] = rank[inverse.ravel()]
    return found


def told_of(classes: Mapping[str, Integers], sources: Iterable[Source]) -> list[Source]:
    """What releases say of these classes; what several say by the first."""
    told: dict[bytes, Source] = {}
    for release, table in sources:
        coarse = table.coarsened(classes)
        if coarse is not None:
            told.setdefault(coarse.key, (release, coarse))
    return list(told.values())


def window_of(
    classes: Mapping[str, Integers], told: Sequence[Source], codebook: Codebook
) -> Window:
    """What `told_of` gave of these classes, less what follows from another part.

    Raises
    ------
    TableError
        What follows from another part is published otherwise.
    """
    kept = _without_implied(told, codebook)
    names = [name for name in codebook.variables if name in classes]
    return Window(codebook, classes_of(names, [table for _, table in kept], codebook), kept, told)


def _without_implied(sources: Sequence[Source], codebook: Codebook) -> list[Source]:
    """Of tables that follow from others only these; of equal ones the first. What takes
    no earlier release is kept, so that none seems to be needed for it.
    """
    sizes = {name: len(labels) for name, labels in codebook.variables.items()}
    # What is finer has more cells, and cannot follow from what has fewer.
    order = sorted(range(len(sources)), key=lambda i: (-sources[i][1].least.size, i))
    kept: list[int] = []
    for i in order:
        table = sources[i][1]
        fine = next((j for j in kept if sources[j][1].implies(table, sizes)), None)
        if fine is None:
            kept.append(i)
        else:
            _check_agree(sources[fine], sources[i], sizes)
    free = {sources[i][0] for i in kept} & {NEW} | {PUBLIC}
    for i in order:
        release, table = sources[i]
        own = [sources[j][1] for j in kept if sources[j][0] == release]
        if release in free and i not in kept and not any(x.implies(table, sizes) for x in own):
            kept.append(i)
    return [sources[i] for i in sorted(kept)]


def _check_agree(fine: Source, coarse: Source, sizes: Mapping[str, int]) -> None:
    """Raise where a table is not what another says that it must be."""
    sums = fine[1].added_up(coarse[1], sizes)
    bad = np.flatnonzero((sums < coarse[1].least) | (sums > coarse[1].most))
    if len(bad):
        least, most = (int(end.flat[bad[0]]) for end in (coarse[1].least, coarse[1].most))
        whose = named(fine[0], fine[1], 0).rpartition(" of ")[2]
        raise TableError(
            f"{named(*coarse, int(bad[0]))} is published as"
            f" {least if least == most else f'{least} to {most}'}, and the counts of {whose} add"
            f" up to {int(sums.flat[bad[0]])}"
        )
