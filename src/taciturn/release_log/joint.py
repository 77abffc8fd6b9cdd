"""All that is published over some variables as one linear system, with tables of
swapped records: each cell is divided into those who stayed in their area and those who
left it, in each swapped file. With it goes what follows from answers with the same
keys.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array, vstack

from taciturn.attack.system import LinearSystem, Total, build_system
from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.from_keys import FromKeys, from_keys, keyed
from taciturn.release_log.mechanisms import canonical
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.search import limited, members_of, propagated
from taciturn.release_log.swapped import is_by_area, sizes_of, swapped_as_released, swapping_of
from taciturn.release_log.swapping import RecordSwapping
from taciturn.release_log.window import NEW, Source, Window, named, total_of, window_of

__all__ = ["Joint", "by_file", "records_of", "same_mechanism", "without"]

_MOST_COLUMNS: Final = 4_000

type Sources = Sequence[Source]


class Joint:
    """One linear system of a window, of swapped files, and of what follows from answers
    with the same keys.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals, over classes that the tables with
        keys, those of swapped records and the sizes of their areas tell apart.
    noisy : sequence of Source
        Perturbed tables whose cells are made of whole classes; those of swapped records
        are taken, but of files for which there is no room, the new one's last; of those
        with keys what follows from two answers.

    Attributes
    ----------
    window : Window
        The window.
    left_out : frozenset of int
        The releases that have tables of files for which there was no room.
    """

    def __init__(self, window: Window, noisy: Sources) -> None:
        self.window = window
        swapped = [source for source in noisy if swapping_of(source[1])]
        files = [
            own
            for own in by_file(swapped).values()
            if any(is_by_area(table, window.codebook) for _, table in own)
        ]
        room = max(0, int(np.log2(_MOST_COLUMNS / prod(window.shape))))
        self._files = files[:room]
        self.left_out = frozenset(release for own in files[room:] for release, _ in own)
        self._keyed = keyed(noisy)

    @property
    def _ways(self) -> int:
        """How many columns each combination of classes has."""
        return int(2 ** len(self._files))

    def columns(self, cells: Integers) -> Integers:
        """The columns of some combinations of classes."""
        return np.asarray((cells[:, None] * self._ways + np.arange(self._ways)).ravel())

    def cells(self, columns: npt.NDArray[np.int64]) -> Integers:
        """Sums of the columns of each combination of classes."""
        return np.asarray(columns.reshape(-1, self._ways).sum(axis=1))

    @property
    def says_something_new(self) -> bool:
        """Whether the new release is part of it."""
        sources = [*self.window.sources, *(source for own in self._files for source in own)]
        derived = any(NEW in each.releases for each in self.from_keys.totals)
        return derived or any(release == NEW for release, _ in sources)

    @property
    def complete(self) -> bool:
        """Whether all that is published is part of it."""
        return not self.left_out and self.from_keys.complete

    @cached_property
    def releases_of_row(self) -> Integers:
        """The two releases that each row of the system comes from; mostly it is one."""
        published = [release for release, _ in [*self.window.sources, *self._of_files]]
        every = [(published[total],) * 2 for total in self._published.row_total.tolist()]
        every += [each.releases for each in self.from_keys.totals]
        return np.array(every, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def from_keys(self) -> FromKeys:
        """What follows from answers with the same keys."""
        if not self._keyed:
            return FromKeys((), complete=True, several=False)
        system, unlimited = limited(self._published)
        nobody = ~unlimited & (propagated(system)[1] == 0)
        ways = (unlimited.reshape(-1, self._ways), nobody.reshape(-1, self._ways))
        return from_keys(self.window, self._keyed, ways[0].any(axis=1), ways[1].all(axis=1))

    @cached_property
    def system(self) -> LinearSystem:
        """A row for each published cell, and for what follows from two answers with the
        same keys; a column for each combination of classes and for who stayed and who
        left in each swapped file.
        """
        published, derived = self._published, self.from_keys.totals
        if not derived:
            return published
        inside = members_of([self.columns(each.cells) for each in derived], len(published.upper))
        least = np.array([each.least for each in derived])
        named = xr.DataArray(least, dims="cell", coords={"cell": [each.name for each in derived]})
        overlapping = np.zeros(len(published.upper), dtype=np.int64)  # these are no groups
        most = np.array([each.most for each in derived])
        total = Total(named, overlapping, least, most, np.ones(len(derived), dtype=np.bool_))
        return replace(
            published,
            matrix=csr_array(vstack([published.matrix, inside])),
            least=np.concatenate([published.least, total.least]),
            most=np.concatenate([published.most, total.most]),
            totals=(*published.totals, total),
            row_total=np.append(published.row_total, 0 * least + len(published.totals)),
            row_group=np.append(published.row_group, np.arange(len(derived))),
        )

    @cached_property
    def _published(self) -> LinearSystem:
        """The system without what follows from answers with the same keys."""
        plain = self.window.system
        if not self._files:
            return plain
        other = max(self.window.classes, key=len, default="")  # a name that no variable has
        table = xr.DataArray(
            np.zeros((*plain.published.shape, *(2 for _ in self._files)), dtype=np.int64),
            dims=[
                *plain.published.dims,
                *(f"{other} in file {i + 1}" for i in range(len(self._files))),
            ],
            coords=plain.published.coords,
        )
        known = np.zeros(table.size, dtype=np.bool_)
        totals = [replace(each, group=np.repeat(each.group, self._ways)) for each in plain.totals]
        totals += [total for _, total in self._of_files]
        return build_system(table, known, totals, decimals=0)

    @cached_property
    def _of_files(self) -> list[tuple[int, Total]]:
        """The totals of swapped files, each with its release."""
        found: list[tuple[int, Total]] = []
        for place, own in enumerate(self._files):
            left = np.arange(self._ways) >> (len(self._files) - 1 - place) & 1 > 0
            found += _of_file(self.window, own, left)
        return found


def _of_file(
    window: Window, own: Sources, left: npt.NDArray[np.bool_]
) -> Iterator[tuple[int, Total]]:
    """What tables of a swapped file say: who is counted in an area are those who stayed
    and those who left the other. `left` are the columns of a combination of classes for
    those who left.
    """
    swapping = same_mechanism(own)
    sizes = sizes_of(swapping, window.codebook)
    areas = sizes.axes[0]
    of_areas = window.group(sizes)
    area = of_areas // prod(sizes.least.shape[1:])
    rest = without(window, areas.variable)
    cell = np.zeros((int(rest.max()) + 1, 2), dtype=np.int64)
    cell[rest, area] = np.arange(len(rest))
    for number, table in records_of(window, own).sources:
        if areas.variable in table.variables and table.key != sizes.key:  # which follow
            group = window.group(table)
            elsewhere = group[cell[rest, 1 - area]]
            published = np.where(left, elsewhere[:, None], group[:, None]).ravel()
            yield number, total_of(number, table, published)
    moves = np.broadcast_to(np.asarray(swapping.moves), sizes.least.shape)
    axes = (replace(areas, name=f"who left {areas.name}"), *sizes.axes[1:])
    moved = PublishedTable(axes, {}, moves, moves)
    group = np.where(left, of_areas[:, None], moves.size).ravel()
    for release in dict.fromkeys(release for release, _ in own):
        yield release, total_of(release, moved, group)


def by_file(swapped: Sources) -> dict[Hashable, list[Source]]:
    """Tables of swapped records by the file that they are from, the new ones first:
    those with the same keys are from one.
    """
    found: dict[Hashable, list[Source]] = {}
    for source in sorted(swapped, key=lambda each: each[0] != NEW):
        noise = source[1].noise
        assert noise is not None, "swapped"
        keys: Hashable = ("own", source[0]) if noise.keys is None else ("named", noise.keys)
        found.setdefault(keys, []).append(source)
    return found


def records_of(window: Window, own: Sources) -> Window:
    """What is published of the records of one swapped file: its tables, and all that
    swapping keeps of the true ones.

    Raises
    ------
    TableError
        Tables of the file contradict each other, or their mechanisms differ.
    """
    sizes = sizes_of(same_mechanism(own), window.codebook)
    variable = sizes.axes[0].variable
    kept = [source for source in window.told if variable not in source[1].variables]
    kept.append((own[0][0], sizes))
    kept += [(release, swapped_as_released(table)) for release, table in own]
    return window_of(window.classes, kept, window.codebook)


def same_mechanism(sources: Sequence[Source]) -> RecordSwapping:
    """The mechanism of all tables of a file."""
    found: dict[str, tuple[RecordSwapping, Source]] = {}
    for source in sources:
        swapping = swapping_of(source[1])
        assert swapping is not None
        found.setdefault(canonical(swapping), (swapping, source))
    (first, _), *others = found.values()
    if others:
        one, two = (named(*source, 0).rpartition(" of ")[2] for _, source in [*found.values()][:2])
        raise TableError(
            f"{one} and {two} are said to be of the same swapped records, with other sizes or moves"
        )
    return first


def without(window: Window, variable: str) -> Integers:
    """The combination of classes of all variables but one that each cell is of."""
    place = list(window.classes).index(variable)
    shape = [1 if i == place else size for i, size in enumerate(window.shape)]
    rest = np.arange(prod(shape)).reshape(shape)
    return np.broadcast_to(rest, window.shape).ravel()
