"""What perturbed counts say of a total: how likely each value of it gives what was
released of it, and of what is tied to it.

Two totals are tied if one is the other and a constant, or a constant less the other, in
all compatible tables: so are the women and the men where it is known how many they are
together.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from taciturn.attack.mechanisms import Mechanism
from taciturn.attack.posterior.lattice import kernel_basis
from taciturn.attack.system import UNLIMITED
from taciturn.errors import TableError
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.mechanisms import canonical
from taciturn.release_log.search import compatible_tables, limited, members_of, propagated
from taciturn.release_log.window import Source, Window, named

__all__ = ["Evidence", "Seen", "Ties"]

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

_SAME: Final = 0  # seeds of the numbers that tell sets of cells apart
_TIED: Final = 1
_SHOWN: Final = 5  # counts of a message


@dataclass(frozen=True, eq=False)
class Seen:
    """What was released of one total, once.

    Attributes
    ----------
    source : Source
        The release, and its table.
    cell : int
        The cell of the table.
    cells : array of int64
        The combinations of classes that it counts.
    value : int
        What was released.
    keys : hashable
        What the noise follows from; another for each that has noise of its own.
    """

    source: Source
    cell: int
    cells: Integers
    value: int
    keys: Hashable

    @property
    def mechanism(self) -> Mechanism:
        """How it was perturbed."""
        noise = self.source[1].noise
        assert noise is not None, "only perturbed tables are seen"
        return noise.mechanism

    @property
    def sets(self) -> dict[str, Booleans]:
        """For each variable the categories that it counts, where these are not all."""
        table = self.source[1]
        place = np.unravel_index(self.cell, table.least.shape) if table.axes else ()
        taken = dict(table.where)
        for axis, at in zip(table.axes, place, strict=True):
            own = axis.classes == int(at)
            taken[axis.variable] = own & taken.get(axis.variable, own)
        return {name: each for name, each in taken.items() if not each.all()}


type Tied = tuple[int, int, Seen]
"""A sign `s` and a shift `c`, such that what was released is of ``c + s * t``."""


@dataclass(frozen=True)
class Evidence:
    """All that was released of a total `t` and of what is tied to it.

    Attributes
    ----------
    seen : sequence of Tied
        What was released, and of what.
    """

    seen: Sequence[Tied]

    @property
    def releases(self) -> frozenset[int]:
        """The releases that it comes from."""
        return frozenset(each.source[0] for _, _, each in self.seen)

    def contradiction(self) -> str:
        """That no count gives all this, in words."""
        shown = [f"{named(*x.source, x.cell)} as {x.value}" for _, _, x in self.seen[:_SHOWN]]
        more = len(self.seen) - len(shown)
        return (
            f"no count gives all that is published of one: {', '.join(shown)}"
            f"{f' and {more} more' if more > 0 else ''}: are these the mechanisms?"
        )

    def ends(self, low: int, high: int) -> tuple[int, int]:
        """The least and the most that the total practically is, from `low` to `high`,
        which may be without a limit. What is further out than noise reaches has less
        than ``exp(-40)`` of the largest probability, to either side.
        """
        centres, reach = [], np.inf
        for sign, shift, seen in self.seen:
            support = seen.mechanism.support(seen.value)
            assert support is not None, "what no count gives is not released"
            least, most = (sign * (end - shift) for end in support[::sign])
            low, high = int(max(low, least)), int(min(high, most))
            if np.isinf(support[1]):
                centres.append(sign * (seen.value - shift))
                reach = min(reach, seen.mechanism.reach)
        if low > high or not centres:
            return low, high
        near = np.clip(centres, low, high)
        step = int(min(np.ceil(reach), UNLIMITED))
        return max(low, int(near.min()) - step), min(high, int(near.max()) + step)

    def log_weights(self, values: Integers) -> Floats:
        """The logarithm of the probability of all that was released, given each of
        these values.
        """
        found = np.zeros(len(values))
        for sign, shift, seen in self.seen:
            true = shift + sign * values
            own = seen.mechanism.log_probability(seen.value, np.maximum(true, 0))
            found += np.where(true >= 0, own, -np.inf)
        return found


class Ties:
    """Which perturbed counts of a window are tied to which totals.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals, over classes that perturbed tables
        tell apart, too.
    noisy : sequence of Source
        Perturbed tables whose cells are made of whole classes.

    Raises
    ------
    TableError
        Two counts of the same records, with noise from the same keys, differ; what is
        known does not give what was released.
    """

    def __init__(self, window: Window, noisy: Sequence[Source]) -> None:
        self._window = window
        system, unlimited = limited(window.system)
        lower, upper = propagated(system)
        self.lower, self.upper = lower, np.where(unlimited, UNLIMITED, upper)
        self._table = next(compatible_tables(window.system)[0])
        open_ = self.lower < self.upper
        nobody = self.upper == 0
        same = np.where(nobody, np.uint64(0), _numbers(_SAME, len(lower)))
        exact = np.flatnonzero(system.least == system.most)
        basis = kernel_basis(csr_array(system.matrix[exact][:, open_])).astype(np.uint64)
        # Sums of these are equal where totals differ by a constant.
        self.numbers = np.zeros(len(lower), dtype=np.uint64)
        self.numbers[open_] = basis.T @ _numbers(_TIED, basis.shape[0])
        self.seen = _once(list(_all_seen(window, noisy)), same)
        self._by_hash: dict[int, list[Seen]] = {}
        for each in self.seen:
            if own := self.hash_of(each.cells):
                self._by_hash.setdefault(own, []).append(each)
            else:
                self._check_known(each)

    def hash_of(self, cells: Integers) -> int:
        """A number for a total, equal for those that differ by a constant; 0 for what
        is known.
        """
        return int(self.numbers[cells].sum())

    @cached_property
    def tied(self) -> Hashes:
        """The numbers of all totals that something was released of, or of what is tied
        to them.
        """
        own = np.array(list(self._by_hash), dtype=np.uint64)
        return np.concatenate([own, np.uint64(0) - own])

    def of(self, cells: Integers) -> Evidence:
        """What was released of a total, and of all that is tied to it."""
        own = self.hash_of(cells)
        total = int(self._table[cells].sum())
        found = []
        for sign, wanted in ((1, own), (-1, (-own) % 2**64)):
            for seen in self._by_hash.get(wanted, []) if own else []:
                found.append((sign, int(self._table[seen.cells].sum()) - sign * total, seen))
        return Evidence(self._independent(found))

    def _check_known(self, seen: Seen) -> None:
        """Raise where what is known does not give what was released of it."""
        true = self._table[seen.cells].sum()
        if np.isneginf(seen.mechanism.log_probability(seen.value, np.array([true]))[0]):
            raise TableError(
                f"{named(*seen.source, seen.cell)} is published as {seen.value}, and can only be"
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
        rows = members_of([seen.cells for _, _, seen in found], len(self.numbers)).toarray()
        return int(np.linalg.matrix_rank(rows[:, self.upper > 0]))


def _numbers(seed: int, size: int) -> Hashes:
    """Random numbers by whose sums, modulo ``2**64``, sets are told apart."""
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


def _all_seen(window: Window, noisy: Sequence[Source]) -> Iterator[Seen]:
    """Every perturbed count that is of somebody."""
    for place, source in enumerate(noisy):
        release, table = source
        noise = table.noise
        assert noise is not None, "only perturbed tables are given"
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
                yield Seen(source, cell, parts[cell], int(released[cell]), own)


def _once(every: Sequence[Seen], same: Hashes) -> list[Seen]:
    """Counts of the same records with noise from the same keys once."""
    kept: dict[Hashable, Seen] = {}
    for each in every:
        records = int(same[each.cells].sum())
        first = kept.setdefault((each.keys, records), each)
        alike = first.value == each.value
        if not alike and canonical(first.mechanism) == canonical(each.mechanism):
            raise TableError(
                f"{named(*first.source, first.cell)} is published as {first.value}, and"
                f" {named(*each.source, each.cell)} as {each.value}: with the same keys the same"
                " records have one answer"
            )
    return list(kept.values())
