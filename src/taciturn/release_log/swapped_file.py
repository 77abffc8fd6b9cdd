"""What all tables of one swapped file say of a total: swapped records are records, of
which counts, sums and differences are exact; only the area of some is another one.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.evidence import Seen
from taciturn.release_log.joint import by_file, records_of, same_mechanism, without
from taciturn.release_log.known import Hashes, Known
from taciturn.release_log.noise import NOT_RELEASED
from taciturn.release_log.swapped import sizes_of
from taciturn.release_log.swapping import SwappedCount
from taciturn.release_log.window import NEW, Source, Window, named

__all__ = ["SwappedFile", "swapped_files"]


def swapped_files(window: Window, swapped: Sequence[Source]) -> "list[SwappedFile]":
    """The swapped files that tables are from: those with the same keys are from one.

    Raises
    ------
    TableError
        Tables of one file that contradict each other, or whose mechanisms differ.
    """
    return [SwappedFile(window, keys, own) for keys, own in by_file(swapped).items()]


class SwappedFile:
    """One swapped file in a window.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals, over classes that the tables of the
        file and the sizes of its areas tell apart.
    keys : hashable
        Which file it is.
    sources : sequence of Source
        Its tables, the new ones first.
    """

    def __init__(self, window: Window, keys: Hashable, sources: Sequence[Source]) -> None:
        self._keys, self._sources = keys, sources
        records = records_of(window, sources)
        self._known = Known(replace(records, classes=window.classes))
        swapping = same_mechanism(sources)
        sizes = sizes_of(swapping, window.codebook)
        self._sizes = swapping.sizes.values.reshape(2, -1)
        self._moves = np.asarray(swapping.moves).ravel()
        self._area, self._stratum = np.divmod(window.group(sizes), self._sizes.shape[1])
        self._rest = without(window, sizes.axes[0].variable)
        self._groups = [window.group(table) for _, table in sources]

    @property
    def numbers(self) -> Hashes:
        """Numbers of the cells whose sum is 0 where a count of the swapped records is
        known.
        """
        return self._known.numbers

    def of(self, cells: Integers) -> Seen | None:
        """What is known of a total of swapped records, if it has a known probability
        given the true one.
        """
        if self._known.hash_of(cells):
            return None
        both = self._both(cells)
        strata = np.unique(self._stratum[cells])
        if len(both) == len(cells):  # of both areas: swapping changes nothing
            kind = self._known.value(cells)
            return self._seen(cells, SwappedCount(kind, 0, 0, kind))
        area = int(self._area[cells[0]])
        whole = np.array_equal(cells, both[self._area[both] == area])
        if len(strata) > 1 or not whole or self._known.hash_of(both):
            return None
        own, other = (int(self._sizes[x, strata[0]]) for x in (area, 1 - area))
        moves, kind = int(self._moves[strata[0]]), self._known.value(both)
        return self._seen(cells, SwappedCount(own, other, moves, kind))

    def lacks(self, cells: Integers) -> bool:
        """Whether a total is known of swapped records, and has no known probability as
        the sum over the areas is not published, at least not by the new release.
        """
        new = self._sources[0][0] == NEW
        open_ = not self._known.hash_of(cells) and self._known.hash_of(self._both(cells))
        return new and bool(open_)

    def _both(self, cells: Integers) -> Integers:
        """The same cells of both areas."""
        return np.flatnonzero(np.isin(self._rest, self._rest[cells]))

    def _seen(self, cells: Integers, count: SwappedCount) -> Seen:
        """What is known of a total, from one table if there is one that says it."""
        value = self._known.value(cells)
        source, others = self._sources[0], {release for release, _ in self._sources}
        for each, group in zip(self._sources, self._groups, strict=True):
            place, size = np.unique(group[cells], return_counts=True)
            noise = each[1].noise
            assert noise is not None, "swapped"
            if place[-1] == each[1].least.size:
                continue
            all_of = np.array_equal(size, np.bincount(group)[place])
            if all_of and (noise.released[0].ravel()[place] != NOT_RELEASED).all():
                source, others = each, set()
                break
        if count.support(value) is None:
            raise TableError(
                f"a count of {named(*source, 0).rpartition(' of ')[2]} is {value} after swapping,"
                f" which no true count gives: are the sizes and the moves of its areas true?"
            )
        return Seen(source, None, cells, value, self._keys, count, frozenset(others))
