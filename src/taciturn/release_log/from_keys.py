"""What follows of counts from answers with the same keys, by the rule that the same
records have one answer: of sets of records with different answers one holds somebody
who is not in the other.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final, NamedTuple

import numpy as np

from taciturn.attack.system import UNLIMITED
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.evidence import Seen, all_seen, bits_of
from taciturn.release_log.known import random_hashes
from taciturn.release_log.same_keys import same_records, shared_keys
from taciturn.release_log.swapped import swapping_of
from taciturn.release_log.window import NEW, PUBLIC, Source, Window, classes_of

__all__ = ["Derived", "FromKeys", "from_keys", "keyed", "told_apart"]

_MOST_PAIRS: Final = 100_000  # of answers
_MOST_TOTALS: Final = 3_000


class Derived(NamedTuple):
    """A total of which something follows from two answers.

    Attributes
    ----------
    cells : array of int64
        The combinations of classes that it counts.
    least, most : int
        Its bounds.
    releases : tuple of (int, int)
        The releases of the two answers.
    name : str
        Which answers these are, for messages.
    """

    cells: Integers
    least: int
    most: int
    releases: tuple[int, int]
    name: str


class FromKeys(NamedTuple):
    """What follows from all answers two by two.

    Attributes
    ----------
    totals : sequence of Derived
        Totals of which something follows that does not follow from a part of each.
    complete : bool
        Whether nothing else follows.
    several : bool
        Whether some of it follows from other releases, too.
    """

    totals: Sequence[Derived]
    complete: bool
    several: bool


class _Answer(NamedTuple):
    """An answer about some records, its mechanism as text, and the releases that it is
    in.
    """

    seen: Seen
    kind: str
    releases: frozenset[int]


class _Pair(NamedTuple):
    """Two answers with the same keys, the combinations of classes that only one of them
    is about, as bits, and the counts that give both where these hold nobody.
    """

    one: _Answer
    other: _Answer
    bits: int
    counts: Integers


def keyed(noisy: Sequence[Source]) -> list[Source]:
    """Of perturbed tables those whose counts have noise from keys, each for itself."""
    return [
        source
        for source in noisy
        if source[1].noise is not None and source[1].noise.keyed and not swapping_of(source[1])
    ]


def told_apart(window: Window, noisy: Sequence[Source]) -> Window:
    """The window, over classes that also tell apart what tables with keys do."""
    tables = [table for _, table in [*window.sources, *keyed(noisy)]]
    return replace(window, classes=classes_of(window.classes, tables, window.codebook))


def from_keys(
    window: Window, noisy: Sequence[Source], unlimited: Booleans, nobody: Booleans
) -> FromKeys:
    """What follows from answers with the same keys two by two.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals.
    noisy : sequence of Source
        The tables with keys, whose cells are made of whole classes.
    unlimited, nobody : array of bool
        The combinations of classes without an upper bound: that they hold somebody says
        nothing of others. And those that are known to hold nobody.

    Raises
    ------
    TableError
        As of `same_records`.
    """
    same = np.where(nobody, np.uint64(0), random_hashes(0, len(nobody)))
    free, empty = (bits_of(np.flatnonzero(each)) for each in (unlimited, nobody))
    alike: dict[Hashable, dict[Hashable, list[_Answer]]] = {}
    for group in same_records(list(all_seen(window, noisy)), same):
        for kind, own in group.items():
            # Others may not know that these are the same records.
            for bits in dict.fromkeys(each.bits for each in own):
                seen = [each for each in own if each.bits == bits]
                answer = _Answer(seen[0], kind, frozenset(each.source[0] for each in seen))
                answers = alike.setdefault((seen[0].keys, bits & free), {})
                answers.setdefault((kind, seen[0].value), []).append(answer)
    every = (pair for answers in alike.values() for pair in _pairs([*answers.values()]))
    return _derived(window, list(islice(every, _MOST_PAIRS + 1)), empty)


def _pairs(answers: Sequence[Sequence[_Answer]]) -> Iterator[_Pair]:
    """Two by two of several, each given of some sets of records, those from which more
    follows than from each by itself if their sets are the same.
    """
    by_least = sorted(((_ends(own[0].seen), own) for own in answers), key=lambda each: each[0])
    for place, ((_, most), some) in enumerate(by_least):
        for (least, _), others in by_least[place + 1 :]:
            if least > most:
                break
            if (counts := _of_both(some[0], others[0])) is None:
                continue
            for one, other in product(some, others):
                yield _Pair(one, other, one.seen.bits ^ other.seen.bits, counts)


def _ends(seen: Seen) -> tuple[int, float]:
    """The least and the most of the counts that give an answer."""
    ends = seen.mechanism.support(seen.value)
    assert ends is not None, "what no count gives is not released"
    return ends


def _of_both(one: _Answer, other: _Answer) -> Integers | None:
    """The counts that give both answers about the same records; None where all do that
    give each of them, or where it is not known.
    """
    if one.kind == other.kind:
        return np.empty(0, dtype=np.int64)
    found = shared_keys(one.seen, other.seen)
    return None if found is None or found[1].all() else found[0][found[1]]


def _derived(window: Window, pairs: Sequence[_Pair], empty: int) -> FromKeys:
    """What pairs say that does not follow from a part of it: as that is published by
    the same releases, or by itself follows from a pair of these. `empty` are the
    combinations of classes that hold nobody.
    """
    held = _held(window) if pairs else {}
    found: list[Derived] = []
    complete, several = len(pairs) <= _MOST_PAIRS, False
    for pair in sorted(pairs[:_MOST_PAIRS], key=lambda each: each.bits.bit_count()):
        releases, others = _releases(pair.one.releases, pair.other.releases)
        earlier = frozenset(releases) - {NEW}
        counts, differ = pair.counts, pair.bits & ~empty > 0
        parts = (part for own, sets in held.items() if own <= earlier for part in sets)
        if differ and any(part & pair.bits == part for part in parts):
            continue
        # No row says that sets differ or have one of these counts, nor that of some.
        if len(counts) and (pair.bits or len(counts) <= counts[-1] - counts[0]):
            complete = False
        if len(found) == _MOST_TOTALS:
            complete = False
            break
        name = _name(pair)
        if differ and not len(counts):
            held.setdefault(earlier, []).append(pair.bits)
            cells = np.setxor1d(pair.one.seen.cells, pair.other.seen.cells)
            found.append(Derived(cells, 1, UNLIMITED, releases, name))
        elif not pair.bits and len(counts):
            ends = int(counts[0]), int(counts[-1])
            found.append(Derived(pair.one.seen.cells, *ends, releases, name))
        several |= others
    return FromKeys(found, complete, several)


def _held(window: Window) -> dict[frozenset[int], list[int]]:
    """The combinations of classes that together are published to hold somebody, by the
    earlier release that they are from, if it is one.
    """
    found: dict[frozenset[int], list[int]] = {}
    for release, table in window.sources:
        inside = window.inside(table)
        sets = (bits_of(inside[cell]) for cell in np.flatnonzero(table.least > 0).tolist())
        found.setdefault(frozenset({release}) - {NEW, PUBLIC}, []).extend(filter(None, sets))
    return found


def _releases(one: frozenset[int], other: frozenset[int]) -> tuple[tuple[int, int], bool]:
    """One release of each, with as few earlier ones as possible, and whether others do
    as well.
    """
    one, other = (each & {NEW} or each for each in (one, other))
    if common := one & other:
        return (min(common), min(common)), len(one) > 1 and len(other) > 1
    return (min(one), min(other)), len(one) > 1 or len(other) > 1


def _name(pair: _Pair) -> str:
    """Of what two answers say something, for messages."""
    one, other = (f"{each.seen.name} as {each.seen.value}" for each in (pair.one, pair.other))
    return f"{'who is in only one of ' * (pair.bits > 0)}{one} and {other}, by the same keys,"
