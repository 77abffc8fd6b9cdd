"""Tables of swapped records: what is published of them as it is, and within bounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from taciturn.attack.system import UNLIMITED
from taciturn.errors import ParameterError, TableError
from taciturn.release_log.codebook import Booleans, Codebook, Integers
from taciturn.release_log.noise import NOT_RELEASED, Noise
from taciturn.release_log.published import Axis, PublishedTable
from taciturn.release_log.swapping import RecordSwapping
from taciturn.release_log.window import Source
from taciturn.validate import quoted

__all__ = [
    "is_by_area",
    "of_whole_classes",
    "sizes_of",
    "spelled_out",
    "swapped_as_released",
    "swapped_tables",
    "swapping_of",
    "true_counts",
]


def swapping_of(table: PublishedTable) -> RecordSwapping | None:
    """By which the records of a table were swapped; None if they were not."""
    mechanism = None if table.noise is None else table.noise.mechanism
    return mechanism if isinstance(mechanism, RecordSwapping) else None


def sizes_of(swapping: RecordSwapping, codebook: Codebook) -> PublishedTable:
    """The sizes of the areas, which swapping keeps, as a published table: its first
    axis are the areas.

    Raises
    ------
    ParameterError
        Variables or categories that are not those of the log.
    """
    axes: list[Axis] = []
    for name, labels in swapping.categories.items():
        variable = codebook.variable_of(name, "sizes")
        if sorted(labels) != sorted(codebook.labels_of(name)):
            raise ParameterError(
                f"sizes must have the categories of {name!r} in the log,"
                f" {quoted(list(codebook.labels_of(name)))}, got {quoted(labels)}"
            )
        if any(axis.variable == variable for axis in axes):
            raise ParameterError(f"sizes must have {variable!r} or one level above it")
        classes = np.zeros(len(codebook.variables[variable]), dtype=np.int64)
        for place, label in enumerate(labels):
            classes[codebook.members(name, label, "sizes")] = place
        axes.append(Axis(name, variable, tuple(labels), classes))
    return PublishedTable(tuple(axes), {}, swapping.sizes.values, swapping.sizes.values)


def of_whole_classes(
    noisy: Iterable[Source], classes: Mapping[str, Integers], codebook: Codebook
) -> list[Source]:
    """The perturbed tables whose cells are made of whole classes of these variables, as
    are the areas of swapped records.
    """
    numbers = {name: len(labels) for name, labels in codebook.variables.items()}
    found = []
    for source in noisy:
        swapping = swapping_of(source[1])
        sizes = [] if swapping is None else [sizes_of(swapping, codebook)]
        if all(each.tells_apart(classes, numbers) for each in (source[1], *sizes)):
            found.append(source)
    return found


def is_by_area(table: PublishedTable, codebook: Codebook) -> bool:
    """Whether a table of swapped records is by the areas, or of one of them: over both
    its counts are true ones.
    """
    swapping = swapping_of(table)
    assert swapping is not None, "swapped"
    return _is_by(sizes_of(swapping, codebook).axes[0], table)


def _is_by(areas: Axis, table: PublishedTable) -> bool:
    return bool((table.classes(areas.variable, len(areas.classes)) != 0).any())


def true_counts(
    tables: Iterable[PublishedTable], codebook: Codebook
) -> tuple[list[PublishedTable], list[PublishedTable]]:
    """Tables, of swapped records over both areas as those of true ones, and the sizes
    of the areas that are public with these.
    """
    found, sizes = [], []
    for table in tables:
        swapping = swapping_of(table)
        if swapping is not None and not is_by_area(table, codebook):
            table = replace(table, noise=None)
            sizes.append(sizes_of(swapping, codebook))
        found.append(table)
    return found, sizes


def swapped_tables(
    tables: Sequence[PublishedTable],
    swapping: RecordSwapping,
    keys: str | None,
    codebook: Codebook,
) -> list[PublishedTable]:
    """Tables of swapped records, given as if they were not: the swapping is their
    noise, and of those with the geography no count is certain.

    Raises
    ------
    TableError
        A table that is not by the two areas, or not by the `match` variables.
    ParameterError
        As `sizes_of`.
    """
    sizes = sizes_of(swapping, codebook)
    areas, *match = sizes.axes
    found = []
    for table in tables:
        seen = table.least == table.most
        noise = Noise(swapping, True, keys, np.where(seen, table.least, NOT_RELEASED)[None])
        if not _is_by(areas, table):
            found.append(replace(table, noise=noise))
            continue
        if not _told_apart(table, areas) or not _no_finer(table, areas):
            raise TableError(
                f"after swapping between {areas.labels[0]} and {areas.labels[1]} a table must be by"
                f" these two, or over both, got the categories of {areas.variable!r} otherwise"
            )
        finer = [
            other
            for other in tables
            if other.variables >= table.variables
            and all(_told_apart(other, axis) for axis in match)
        ]
        if not finer:
            raise TableError(
                "after swapping of records that agree on"
                f" {', '.join(axis.name for axis in match)} a table must be by these as well, or"
                " of one category of each: otherwise its counts have no known probabilities"
            )
        nothing = np.zeros_like(table.least)
        found.append(replace(table, least=nothing, most=nothing + UNLIMITED, noise=noise))
    return found


def _told_apart(table: PublishedTable, axis: Axis) -> bool:
    """Whether no cell of a table is of two categories of an axis."""
    own = table.classes(axis.variable, len(axis.classes))
    pairs = {(place, at) for place, at in zip(own, axis.classes, strict=True) if place >= 0}
    return len(pairs) == len({place for place, _ in pairs})


def _no_finer(table: PublishedTable, axis: Axis) -> bool:
    """Whether all of a category of an axis is in one place of a table, or none."""
    own = table.classes(axis.variable, len(axis.classes))
    return len(set(zip(own, axis.classes, strict=True))) == len(set(axis.classes))


def spelled_out(sources: Iterable[Source], codebook: Codebook) -> list[Source]:
    """Tables, and for each of swapped records also what is public with it: the sums
    over the areas, their sizes, and bounds of the true counts, which they are over both
    areas.
    """
    found: list[Source] = []
    for release, table in sources:
        swapping = swapping_of(table)
        if swapping is None:
            found.append((release, table))
        elif is_by_area(table, codebook):
            parts = _Parts(table, codebook)
            found += [(release, each) for each in (parts.bounded, parts.summed, parts.sizes)]
        else:
            found += [(release, table), (release, sizes_of(swapping, codebook))]
    return found


def swapped_as_released(table: PublishedTable) -> PublishedTable:
    """What a swapped table says of the swapped records."""
    assert table.noise is not None, "swapped"
    released = table.noise.released[0]
    seen = released != NOT_RELEASED
    return replace(
        table,
        least=np.where(seen, released, 0),
        most=np.where(seen, released, UNLIMITED),
        noise=None,
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a table of swapped records says.

    Attributes
    ----------
    table : PublishedTable
        The table.
    codebook : Codebook
        The variables of the log.
    """

    table: PublishedTable
    codebook: Codebook

    @cached_property
    def _swapping(self) -> RecordSwapping:
        swapping = swapping_of(self.table)
        assert swapping is not None
        return swapping

    @cached_property
    def sizes(self) -> PublishedTable:
        """The number of records of each area and category of the match variables."""
        return sizes_of(self._swapping, self.codebook)

    @cached_property
    def _own(self) -> PublishedTable:
        return swapped_as_released(self.table)

    @cached_property
    def _at(self) -> int | None:
        """The place of the axis of the areas, if both are there."""
        areas = self.sizes.axes[0]
        at = self.table.classes(areas.variable, len(areas.classes))
        places = [i for i, axis in enumerate(self.table.axes) if axis.variable == areas.variable]
        return places[0] if places and len(np.unique(at[at >= 0])) > 1 else None

    @cached_property
    def summed(self) -> PublishedTable:
        """The sums over the areas: where only one is published it is the least."""
        variable = self.sizes.axes[0].variable
        least, most = self._own.least, self._own.most
        for place, axis in enumerate(self.table.axes):
            if axis.variable == variable:
                open_ = (most >= UNLIMITED).any(axis=place)
                most = np.where(open_, UNLIMITED, most.sum(axis=place))
                least = np.asarray(least.sum(axis=place))
        if self._at is None:
            most = np.full_like(least, UNLIMITED)
        axes = tuple(axis for axis in self.table.axes if axis.variable != variable)
        where = {name: mask for name, mask in self.table.where.items() if name != variable}
        return PublishedTable(axes, where, least, most)

    @cached_property
    def bounded(self) -> PublishedTable:
        """The table with the bounds that are certain: no more came or left than moved,
        and of those who are in the other area no fewer came than did not stay there.
        """
        sizes, moves = self._swapping.sizes.values, np.asarray(self._swapping.moves)
        least, most = self._own.least, self._own.most
        moved = self._over_match(moves)
        lower = np.maximum(least - moved, 0)
        upper = np.where(most >= UNLIMITED, UNLIMITED, most + moved)
        if self._at is not None:
            areas, axis = self.sizes.axes[0], self.table.axes[self._at]
            lines = [np.moveaxis(end, self._at, 0) for end in (least, most, lower, upper)]
            for area in (0, 1):
                own, other = (int(axis.classes[areas.classes == x][0]) for x in (area, 1 - area))
                here, there = (
                    np.broadcast_to(self._over_match(sizes[x] - moves), least.shape)
                    for x in (area, 1 - area)
                )
                here, there = (np.moveaxis(each, self._at, 0)[own] for each in (here, there))
                fewest, most_there, low, high = lines
                known = most_there[other] < UNLIMITED
                low[own] = np.maximum(low[own], fewest[other] - there)
                high[own] = np.minimum(
                    high[own], np.where(known, most_there[other] + here, UNLIMITED)
                )
        return replace(self.table, least=lower, most=upper)

    def _over_match(self, numbers: Integers) -> Integers:
        """Numbers by category of the match variables, added up over those that a cell
        counts, in the shape of the table or one that goes with it.
        """
        match = self.sizes.axes[1:]
        for place, axis in enumerate(match):
            numbers = np.moveaxis(np.tensordot(self._touched(axis), numbers, (1, place)), 0, place)
        order = [each.variable for each in match]
        inside = [axis.variable for axis in self.table.axes if axis.variable in order]
        rest = [name for name in order if name not in inside]
        numbers = numbers.transpose([order.index(name) for name in [*inside, *rest]])
        sizes = iter(numbers.shape)
        return numbers.reshape(
            [next(sizes) if axis.variable in order else 1 for axis in self.table.axes]
        )

    def _touched(self, axis: Axis) -> Integers:
        """Which categories of an axis the places of the table along it are of; of a
        variable that is no axis of the table there is one place.
        """
        size = len(axis.classes)
        own = self.table.classes(axis.variable, size)
        along = [len(each.labels) for each in self.table.axes if each.variable == axis.variable]
        found = np.zeros((along[0] if along else 1, len(axis.labels)), dtype=np.int64)
        inside: Booleans = own >= 0
        found[own[inside], axis.classes[inside]] = 1
        return found
