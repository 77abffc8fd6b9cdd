"""What perturbed counts say of a total: how likely each value of it gives what was
released of it, of what is tied to it, and of counts that add up to it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.attack.mechanisms import Mechanism
from taciturn.attack.system import UNLIMITED
from taciturn.release_log.codebook import Booleans, Integers
from taciturn.release_log.window import Source, named

__all__ = ["Evidence", "Seen", "Tied", "Way"]

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
    """

    source: Source
    cell: int | None
    cells: Integers
    value: int
    keys: Hashable
    mechanism: Mechanism
    others: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """Which count it is, for messages."""
        if self.cell is None:
            return f"a count of {named(*self.source, 0).rpartition(' of ')[2]}"
        return named(*self.source, self.cell)

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
    ways : sequence of Way
        Counts that add up to it.
    lacking : bool
        Whether something was released of it that could not be weighed.
    """

    seen: Sequence[Tied]
    ways: "Sequence[Way]" = ()
    lacking: bool = False

    @cached_property
    def every(self) -> list[Seen]:
        """All that was released."""
        return [seen for _, _, seen in self.seen] + [x for way in self.ways for x in way.seen]

    @property
    def releases(self) -> frozenset[int]:
        """The releases that it comes from."""
        return frozenset[int]().union(*({x.source[0]} | x.others for x in self.every))

    def contradiction(self) -> str:
        """That no count gives all this, in words."""
        shown = [f"{x.name} as {x.value}" for x in self.every[:_SHOWN]]
        more = len(self.every) - len(shown)
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
        for way in self.ways:
            centres += way.ends
            reach = min([reach, *(seen.mechanism.reach for seen in way.seen)])
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
        for way in self.ways:
            found += way.log_weights(values)
        return found


@dataclass(frozen=True, eq=False)
class Way:
    r"""A total as the sum of counts that were perturbed each for itself.

    Given the total, all whole numbers that add up to it are equally likely:

    .. math:: P(y \mid t) = \sum_{c_1 + \dots + c_k = t} \prod_j P(y_j \mid c_j) \Big/
        \binom{t + k - 1}{k - 1}

    Attributes
    ----------
    parts : sequence of Evidence
        What was released of each.
    split : frozenset of str
        The variables by which the total is split.
    """

    parts: Sequence[Evidence]
    split: frozenset[str]

    @cached_property
    def seen(self) -> list[Seen]:
        """All that was released of the parts."""
        return [seen for each in self.parts for _, _, seen in each.seen]

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the most that the total practically is by it."""
        low, high = zip(*(each.ends(0, UNLIMITED) for each in self.parts), strict=True)
        return sum(low), sum(high)

    @cached_property
    def _log_weights(self) -> Floats:
        """For each total from 0 to the most that it practically is."""
        sums, number = np.ones(1), np.zeros(self.ends[1] + 1)
        number[0] = 1.0
        for each in self.parts:
            low, high = each.ends(0, UNLIMITED)
            log_weights = each.log_weights(np.arange(low, high + 1))
            own = np.zeros(high + 1)
            own[low:] = np.exp(log_weights - log_weights.max())
            sums, number = np.convolve(sums, own), number.cumsum()
            sums /= sums.max()
        return np.log(np.maximum(sums, _LEAST)) - np.log(number)

    def log_weights(self, values: Integers) -> Floats:
        """The logarithm of the probability of all that was released, up to a constant,
        given each of these totals.
        """
        inside = (values >= 0) & (values <= self.ends[1])
        return np.where(inside, self._log_weights[np.where(inside, values, 0)], np.log(_LEAST))
