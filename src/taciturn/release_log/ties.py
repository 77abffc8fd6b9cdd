"""Which totals are tied to which perturbed counts: one is the other and a constant, or
a constant less the other, in all compatible tables. So are the women and the men where
it is known how many they are together.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from taciturn.attack import Mechanism
from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.evidence import Evidence, Seen, Tied
from taciturn.release_log.known import Hashes, Known, random_hashes
from taciturn.release_log.mechanisms import canonical
from taciturn.release_log.search import members_of
from taciturn.release_log.swapped import swapping_of
from taciturn.release_log.swapped_file import swapped_files
from taciturn.release_log.ways import Ways
from taciturn.release_log.window import Source, Window

__all__ = ["Ties"]

_SAME: Final = 0  # a seed of the numbers that tell sets of cells apart


class Ties:
    """Which perturbed counts of a window are tied to which totals.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals, over classes that perturbed tables
        tell apart, too.
    noisy : sequence of Source
        Perturbed tables whose cells are made of whole classes.

    Attributes
    ----------
    known : Known
        What follows of totals from what is published as it is.
    seen : list of Seen
        All counts that were perturbed each for itself.
    swapped : list of SwappedFile
        The swapped files that tables are from.

    Raises
    ------
    TableError
        Two counts of the same records, with noise from the same keys, differ; what is
        known does not give what was released.
    """

    def __init__(self, window: Window, noisy: Sequence[Source]) -> None:
        self.known = Known(window)
        nobody = self.known.upper == 0
        same = np.where(nobody, np.uint64(0), random_hashes(_SAME, len(nobody)))
        counted = [source for source in noisy if not swapping_of(source[1])]
        self.seen = _once(list(_all_seen(window, counted)), same)
        self.swapped = swapped_files(window, [each for each in noisy if swapping_of(each[1])])
        self._ways = Ways(window, self.seen)
        self._by_hash: dict[int, list[Seen]] = {}
        for each in self.seen:
            if own := self.known.hash_of(each.cells):
                self._by_hash.setdefault(own, []).append(each)
            else:
                self._check_known(each)

    @cached_property
    def tied(self) -> Hashes:
        """The numbers of all totals that something was released of, or of what is tied
        to them.
        """
        own = np.array(list(self._by_hash), dtype=np.uint64)
        return np.concatenate([own, np.uint64(0) - own])

    def of(self, cells: Integers) -> Evidence:
        """What was released of a total, of all that is tied to it, and of counts that
        add up to it; of swapped records what is known of the total itself.
        """
        own = self.known.hash_of(cells)
        total = self.known.value(cells)
        found = []
        for sign, wanted in ((1, own), (-1, (-own) % 2**64)):
            for seen in self._by_hash.get(wanted, []) if own else []:
                found.append((sign, self.known.value(seen.cells) - sign * total, seen))
        found = self._independent(found)
        used = {seen.keys for _, _, seen in found}
        ways = self._ways.of(cells, used)
        files = self.swapped if own else []
        found += [(1, 0, count) for file in files if (count := file.of(cells)) is not None]
        return Evidence(found, ways, any(file.lacks(cells) for file in files))

    def _check_known(self, seen: Seen) -> None:
        """Raise where what is known does not give what was released of it."""
        true = self.known.value(seen.cells)
        if np.isneginf(seen.mechanism.log_probability(seen.value, np.array([true]))[0]):
            raise TableError(
                f"{seen.name} is published as {seen.value}, and can only be"
                f" {true}, from which {seen.mechanism!r} does not give it"
            )

    def _independent(self, found: Sequence[Tied]) -> list[Tied]:
        """Of counts with noise from the same keys those whose noise does not follow
        from that of others: keys of disjoint sets of records add up.
        """
        kept: dict[Hashable, list[Tied]] = {}
        for each in found:
            own = kept.setdefault(each[2].keys, [])
            # Two sets that differ have keys that are independent.
            if len(own) < 2 or self._rank([*own, each]) > len(own):
                own.append(each)
        return [each for own in kept.values() for each in own]

    def _rank(self, found: Sequence[Tied]) -> int:
        rows = members_of([seen.cells for _, _, seen in found], len(self.known.upper)).toarray()
        return int(np.linalg.matrix_rank(rows[:, self.known.upper > 0]))


def _all_seen(window: Window, noisy: Sequence[Source]) -> Iterator[Seen]:
    """Every perturbed count that is of somebody."""
    for place, source in enumerate(noisy):
        release, table = source
        noise = table.noise
        assert noise is not None, "only perturbed tables are given"
        assert isinstance(noise.mechanism, Mechanism), "of each count for itself"
        group = window.group(table)
        order = np.argsort(group, kind="stable")
        cells, first = np.unique(group[order], return_index=True)
        parts: Mapping[int, Integers] = dict(
            zip(cells.tolist(), np.split(order, first[1:]), strict=True)
        )
        for repetition, released in enumerate(noise.released.reshape(len(noise.released), -1)):
            for cell in np.flatnonzero(released >= 0).tolist():
                if cell not in parts:
                    continue
                own: Hashable = (place, repetition, cell)
                if noise.keyed:
                    own = ("own", release) if noise.keys is None else ("named", noise.keys)
                yield Seen(source, cell, parts[cell], int(released[cell]), own, noise.mechanism)


def _once(every: Sequence[Seen], same: Hashes) -> list[Seen]:
    """Counts of the same records with noise from the same keys once."""
    kept: dict[Hashable, Seen] = {}
    for each in every:
        records = int(same[each.cells].sum())
        first = kept.setdefault((each.keys, records), each)
        alike = first.value == each.value
        if not alike and canonical(first.mechanism) == canonical(each.mechanism):
            raise TableError(
                f"{first.name} is published as {first.value}, and"
                f" {each.name} as {each.value}: with the same keys the same"
                " records have one answer"
            )
    return list(kept.values())
