"""Which perturbed counts say something of a total: those of it, and those of what is
tied to it, which is the total and a constant, or a constant less the total, in all
compatible tables. So are the women and the men where it is known how many they are
together.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from taciturn.attack.system import UNLIMITED
from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.evidence import Evidence, Seen, Tied
from taciturn.release_log.known import Hashes, Known

__all__ = ["Answers", "Chosen"]

_MOST_COUNTS: Final = 10_000  # that are tried; noise without an end gives any


class Answers:
    """All perturbed counts of a window, by the totals that they say something of.

    Parameters
    ----------
    known : Known
        What follows of totals from what is published as it is.
    seen : sequence of Seen
        All counts that were perturbed each for itself.

    Raises
    ------
    TableError
        What is known does not give what was released; or no count does that is within
        what follows of it from one total after the other.
    """

    def __init__(self, known: Known, seen: Sequence[Seen]) -> None:
        self.known, self.seen = known, seen
        self._by_hash: dict[int, list[Seen]] = {}
        self._found: dict[bytes, Evidence] = {}
        for each in seen:
            if own := known.hash_of(each.cells):
                self._by_hash.setdefault(own, []).append(each)
            else:
                self._check_known(each)
        for each in seen:
            if known.hash_of(each.cells):
                self._check_open(each)

    @cached_property
    def tied(self) -> Hashes:
        """The numbers of all totals that something was released of, or of what is tied
        to them.
        """
        own = np.array(list(self._by_hash), dtype=np.uint64)
        return np.concatenate([own, np.uint64(0) - own])

    def of(self, cells: Integers) -> Evidence:
        """What was released of a total and of what is tied to it."""
        place = cells.tobytes()
        if place not in self._found:
            self._found[place] = Evidence(self._tied_to(cells))
        return self._found[place]

    def _tied_to(self, cells: Integers) -> list[Tied]:
        own = self.known.hash_of(cells)
        total = self.known.value(cells)
        return [
            (sign, self.known.value(seen.cells) - sign * total, seen)
            for sign, wanted in ((1, own), (-1, (-own) % 2**64))
            for seen in (self._by_hash.get(wanted, []) if own else [])
        ]

    def _check_known(self, seen: Seen) -> None:
        """Raise where what is known does not give what was released of it."""
        true = self.known.value(seen.cells)
        if np.isneginf(seen.mechanism.log_probability(seen.value, np.array([true]))[0]):
            raise TableError(
                f"{seen.name} is published as {seen.value}, and can only be"
                f" {true}, from which {seen.mechanism!r} does not give it"
            )

    def _check_open(self, seen: Seen) -> None:
        """Raise where no count within its bounds gives all that was released of it."""
        evidence, upper = self.of(seen.cells), self.known.upper[seen.cells]
        high = UNLIMITED if (upper >= UNLIMITED).any() else int(upper.sum())
        low, high = evidence.ends(int(self.known.lower[seen.cells].sum()), high)
        if high - low >= _MOST_COUNTS:
            return
        if np.isneginf(evidence.log_weights(np.arange(low, high + 1))).all():
            raise TableError(evidence.contradiction())


class Chosen:
    """Perturbed counts whose noise does not follow from that of others among them: each
    once, and of the same keys those whose sets of records are linearly independent, as
    keys of disjoint sets add up.

    Parameters
    ----------
    anybody : int
        The combinations of classes that may hold somebody, as bits.
    by_keys : mapping of hashable to tuple of int
        The sets of those that are taken, by their keys.
    """

    def __init__(self, anybody: int, by_keys: Mapping[Hashable, tuple[int, ...]]) -> None:
        self._anybody, self._by_keys = anybody, {**by_keys}

    def copy(self) -> "Chosen":
        """The same, to which others can be added."""
        return Chosen(self._anybody, self._by_keys)

    def take(self, evidence: Evidence) -> Evidence:
        """What of it can be taken, too."""
        kept = []
        for each in evidence.seen:
            keys, own = each[2].keys, self._by_keys.get(each[2].keys, ())
            more = (*own, each[2].bits & self._anybody)
            if _are_independent(more):
                self._by_keys[keys] = more
                kept.append(each)
        return evidence if len(kept) == len(evidence.seen) else Evidence(kept)


def _are_independent(sets: Sequence[int]) -> bool:
    """Whether the last of these sets is linearly independent of the others, which are
    of each other.
    """
    if not any(each & sets[-1] for each in sets[:-1]):
        return True
    common = [[(one & other).bit_count() for other in sets] for one in sets]
    return int(np.linalg.matrix_rank(np.array(common))) == len(sets)
