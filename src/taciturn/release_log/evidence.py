"""What perturbed counts say of a total: how likely each value of it gives what was
released of it, of what is tied to it, and of sums that it is, or is a part of.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from taciturn.attack.mechanisms import Mechanism
from taciturn.attack.system import UNLIMITED
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.window import Source, Window, named

__all__ = ["Evidence", "Line", "Seen", "Tied", "Way", "all_seen", "bits_of"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 5  # counts of a message
_LEAST: Final = 1e-300  # stands for what is too improbable


@dataclass(frozen=True, eq=False)
class Seen:
    """What was released of one total, once.

    Attributes
    ----------
    source : Source
        The release, and its table.
    cell : int or None
        The cell of the table; None for a sum of its cells, or what follows from several
        tables.
    cells : array of int64
        The combinations of classes that it counts.
    value : int
        What was released.
    keys : hashable
        What the noise follows from; another for each that has noise of its own.
    mechanism : Mechanism
        How it was perturbed.
    others : frozenset of int
        Further releases that it follows from.
    same_key : tuple of Seen
        What other mechanisms released of it with the same key, which `mechanism` holds.
    """

    source: Source
    cell: int | None
    cells: Integers
    value: int
    keys: Hashable
    mechanism: Mechanism
    others: frozenset[int] = frozenset()
    same_key: tuple["Seen", ...] = ()

    @property
    def name(self) -> str:
        """Which count it is, for messages."""
        if self.cell is None:
            return f"a count of {named(*self.source, 0).rpartition(' of ')[2]}"
        return named(*self.source, self.cell)

    @cached_property
    def bits(self) -> int:
        """The combinations of classes that it counts, as bits."""
        return bits_of(self.cells)

    @property
    def sets(self) -> dict[str, Booleans]:
        """For each variable the categories that it counts, where these are not all."""
        table = self.source[1]
        assert self.cell is not None, "asked of cells only"
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
    sums : sequence of Way or Line
        Counts that add up to it, and totals that it is a part of.
    lacking : bool
        Whether something was released of it that could not be weighed.
    """

    seen: Sequence[Tied]
    sums: "Sequence[Way | Line]" = ()
    lacking: bool = False

    @cached_property
    def every(self) -> list[Seen]:
        """All that was released."""
        return [seen for _, _, seen in self.seen] + [x for each in self.sums for x in each.seen]

    @property
    def releases(self) -> frozenset[int]:
        """The releases that it comes from."""
        return frozenset[int]().union(*({x.source[0]} | x.others for x in self.every))

    def contradiction(self) -> str:
        """That no count gives all this, in words."""
        every = [each for x in self.every for each in (x, *x.same_key)]
        shown = [f"{x.name} as {x.value}" for x in every[:_SHOWN]]
        more = len(every) - len(shown)
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
        for each in self.sums:
            centres += each.ends
            reach = min([reach, *(seen.mechanism.reach for seen in each.seen)])
        if low > high or not centres or np.isinf(reach):
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
        for each in self.sums:
            found += each.log_weights(values)
        return found

    @cached_property
    def practical(self) -> tuple[int, int]:
        """The least and the most that it practically is, if nothing else limits it."""
        low, high = self.ends(0, UNLIMITED)
        return low, max(low, high)

    @cached_property
    def weights(self) -> Floats:
        """The probability of all that was released, given each of these values, over
        the largest; 0 where none of them gives it.
        """
        low, high = self.practical
        log_weights = self.log_weights(np.arange(low, high + 1))
        largest = log_weights.max()
        return np.exp(log_weights - largest) if largest > -np.inf else np.zeros(len(log_weights))


@dataclass(frozen=True, eq=False)
class Way:
    r"""A total as the sum of counts that are known or were perturbed each for itself.

    Given the total, all whole numbers that are not known and add up to it with those
    that are, `d` together, are equally likely:

    .. math:: P(y \mid t) = \sum_{c_1 + \dots + c_k = t - d} \prod_j P(y_j \mid c_j)
        \Big/ \binom{t - d + k - 1}{k - 1}

    Attributes
    ----------
    parts : sequence of Evidence
        What was released of each that is not known.
    known : int
        What the others add up to.
    """

    parts: Sequence[Evidence]
    known: int

    @cached_property
    def seen(self) -> list[Seen]:
        """All that was released of the parts."""
        return [seen for each in self.parts for seen in each.every]

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the most that the total practically is by it."""
        low, high = zip(*(each.practical for each in self.parts), strict=True)
        return self.known + sum(low), self.known + sum(high)

    @cached_property
    def weights(self) -> Floats:
        """For each total within `ends` the sum, up to a factor."""
        sums = np.ones(1)
        for each in self.parts:
            sums = np.convolve(sums, each.weights)
            sums /= max(sums.max(), _LEAST)
        return sums

    def log_weights(self, values: Integers) -> Floats:
        """The logarithm of the probability of all that was released, up to a constant,
        given each of these totals.
        """
        low, high = self.ends
        left, parts = np.arange(low, high + 1) - self.known, len(self.parts)
        number = gammaln(left + parts) - gammaln(left + 1) - gammaln(parts)
        return _at(values, low, np.log(np.maximum(self.weights, _LEAST)) - number)


@dataclass(frozen=True, eq=False)
class Line:
    r"""A count as what others leave of a total, which is known or was perturbed, too.

    Given the count, all others are equally likely whole numbers; of those that add up
    to what it leaves of a known total, as in `Way`:

    .. math:: P(y \mid t) \propto \sum_s P(y_T \mid t + s)
        \sum_{s_2 + \dots + s_k = s} \prod_j P(y_j \mid s_j)

    Attributes
    ----------
    others : Way
        The other parts.
    total : int or Evidence
        The total, or what was released of it.
    """

    others: Way
    total: int | Evidence

    @property
    def seen(self) -> list[Seen]:
        """All that was released of the others and the total."""
        return self.others.seen + ([] if isinstance(self.total, int) else self.total.every)

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the most that the count practically is by it."""
        low, high = self._ends
        return max(0, low), max(0, high)

    @property
    def _ends(self) -> tuple[int, int]:
        whole = self.total
        low, high = (whole, whole) if isinstance(whole, int) else whole.practical
        least, most = self.others.ends
        return low - most, high - least

    @cached_property
    def _log_weights(self) -> Floats:
        """Where the total is not known, for each difference of it and the others."""
        assert isinstance(self.total, Evidence), "asked of what was perturbed"
        sums = np.convolve(self.total.weights, self.others.weights[::-1])
        return np.log(np.maximum(sums / max(sums.max(), _LEAST), _LEAST))

    def log_weights(self, values: Integers) -> Floats:
        """The logarithm of the probability of all that was released, up to a constant,
        given each of these counts.
        """
        if isinstance(self.total, int):
            return self.others.log_weights(self.total - values)
        return _at(values, self._ends[0], self._log_weights)


def all_seen(window: Window, noisy: Sequence[Source]) -> Iterator[Seen]:
    """Every count of tables whose counts were perturbed each for itself."""
    for place, source in enumerate(noisy):
        release, table = source
        noise = table.noise
        assert noise is not None, "only perturbed tables are given"
        assert isinstance(noise.mechanism, Mechanism), "of each count for itself"
        parts = window.inside(table)
        for repetition, released in enumerate(noise.released.reshape(len(noise.released), -1)):
            for cell in np.flatnonzero(released >= 0).tolist():
                own: Hashable = (place, repetition, cell)
                if noise.keyed:
                    own = ("own", release) if noise.keys is None else ("named", noise.keys)
                yield Seen(source, cell, parts[cell], int(released[cell]), own, noise.mechanism)


def bits_of(cells: Integers) -> int:
    """A set of cells as the bits of a number."""
    inside = np.zeros(int(cells.max(initial=0)) + 1, dtype=np.bool_)
    inside[cells] = True
    return int.from_bytes(np.packbits(inside, bitorder="little").tobytes(), "little")


def _at(values: Integers, first: int, log_weights: Floats) -> Floats:
    """Of values their log weights, which begin with that of the first."""
    place = values - first
    inside = (place >= 0) & (place < len(log_weights))
    return np.where(inside, log_weights[np.where(inside, place, 0)], np.log(_LEAST))
