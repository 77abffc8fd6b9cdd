"""What can be worked out in a window: the totals of which few values are left.

A walk among the compatible tables comes first. A total that differs enough between two
of them is proved to be open; the few that are left get exact bounds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array

from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.bounds.contradiction import contradiction
from taciturn.attack.bounds.of_cells import attained_bounds
from taciturn.attack.bounds.propagation import ContradictionError, propagate
from taciturn.attack.system import UNLIMITED, Booleans, LinearSystem, Total
from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.totals import Totals
from taciturn.release_log.walk import Walk
from taciturn.schema import MAX_COUNT
from taciturn.validate import real_number, whole_number

__all__ = [
    "Limits",
    "bounds_of_totals",
    "candidates",
    "compatible_tables",
    "limited",
    "members_of",
    "propagated",
    "ranges",
]

_IDLE: Final = 10  # tables in a row that settle nothing
_MOST_TABLES: Final = 200


@dataclass(frozen=True)
class Limits:
    """What must not be worked out.

    Attributes
    ----------
    threshold : int
        A count from 1 to below it is small.
    values : int
        How many values a small count must be able to have.
    certainty : float
        The probability from which on fewer values than that count as all.
    """

    threshold: int
    values: int
    certainty: float = 0.95

    @classmethod
    def checked(cls, threshold: int, values: int, certainty: float) -> "Limits":
        """Of what a user gives."""
        return cls(
            whole_number(threshold, "threshold", least=2, most=MAX_COUNT),
            whole_number(values, "values", least=2, most=MAX_COUNT),
            real_number(certainty, "certainty", above=0, most=1),
        )

    @property
    def apart(self) -> int:
        """How far apart two values of a total are that leave it enough of them."""
        return self.values - 1

    def hit(self, lower: Integers, upper: Integers) -> Booleans:
        """Which totals are small, and have too few values."""
        small = (upper > 0) & (upper < self.threshold)
        return small & (upper - lower < self.apart)

    def may_hit(self, low: Integers, high: Integers) -> Booleans:
        """Which totals may do so, by values that they take in some tables."""
        few = (high < self.threshold) & (high - low < self.apart)
        # More than one value is too few: one that is 0 in these tables may be more.
        return few & ((high > 0) | (self.values > 2))


def candidates(system: LinearSystem, totals: Totals, limits: Limits) -> Integers:
    """The totals that are small in all compatible tables of a walk, and do not have
    enough values among them: all that can be worked out are among these.

    Raises
    ------
    TableError
        What is published contradicts itself; the message quotes a minimal set of
        totals that no table can have at once.
    AttackError
        The solver finds no table.
    """
    tables, unlimited = compatible_tables(system)
    endless = totals.of(unlimited.astype(np.int64)) > 0
    low, high = ranges(map(totals.of, tables), endless, limits.may_hit)
    return np.flatnonzero(limits.may_hit(low, high))


def ranges(
    values: Iterator[Integers], endless: Booleans, may: Callable[[Integers, Integers], Booleans]
) -> tuple[Integers, Integers]:
    """The least and the most of each total in compatible tables, of as many as settle
    for which it may matter; no limit above those that are `endless`.
    """
    low, high = np.full(len(endless), UNLIMITED), np.full(len(endless), -UNLIMITED)
    idle = 0
    before = len(endless)
    for each in values:
        np.minimum(low, each, out=low)
        np.maximum(high, each, out=high)
        left = int(may(low, high).sum())
        idle = idle + 1 if before - left < 1 else 0
        before = left
        if idle >= _IDLE or left == 0:
            break
    return low, np.where(endless, UNLIMITED, high)


def compatible_tables(system: LinearSystem) -> tuple[Iterator[Integers], Booleans]:
    """Tables that are compatible with what is published, and the cells that have no
    upper bound.
    """
    system, unlimited = limited(system)
    lower, upper = propagated(system)
    return _walked(system, lower, upper), unlimited


def _walked(system: LinearSystem, lower: Integers, upper: Integers) -> Iterator[Integers]:
    open_ = np.flatnonzero(lower < upper)
    if not len(open_):
        yield lower
        return
    shown = system.matrix @ np.where(lower == upper, lower, 0)
    matrix = csr_array(system.matrix[:, open_])
    kept = np.flatnonzero(np.diff(matrix.indptr))
    rows = Rows(csr_array(matrix[kept]), (system.least - shown)[kept], (system.most - shown)[kept])
    walk = Walk(rows, lower[open_], upper[open_], np.random.default_rng(0))
    try:
        for found in walk.tables(_MOST_TABLES):
            table = lower.copy()
            table[open_] = found
            yield table
    except ContradictionError:
        raise TableError(contradiction(system, "what is published")) from None


def bounds_of_totals(
    system: LinearSystem, inside: Sequence[Integers], *, apart: int = UNLIMITED
) -> tuple[Integers, Integers]:
    """Attained bounds of the totals of some cells: each gets a column for what it
    leaves of the most that it may be, so that its own bounds are those of a cell. Those
    of totals that two tables set so far `apart` are valid, and need not be attained.
    """
    if not len(inside):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    capped, unlimited = limited(system)
    lower, upper = propagated(capped)
    members = members_of(inside, len(lower))
    most = members @ upper
    added = len(inside)
    none = np.zeros(added, dtype=np.int64)
    widened = replace(
        capped,
        unknown=np.concatenate([capped.unknown, none - 1]),
        matrix=csr_array(
            block_array(
                [[capped.matrix, None], [members, eye_array(added, dtype=np.int64)]], format="csr"
            )
        ),
        least=np.concatenate([capped.least, most]),
        most=np.concatenate([capped.most, most]),
        lower=np.concatenate([lower, none]),
        upper=np.concatenate([upper, most - members @ lower]),
        totals=(*capped.totals, Total(system.published, none, none, none, none > 0)),
        row_total=np.concatenate([capped.row_total, none + len(capped.totals)]),
        row_group=np.concatenate([capped.row_group, np.arange(added)]),
    )
    asked = np.arange(len(lower) + added) >= len(lower)
    low, high = attained_bounds(widened, asked, on_cell=lambda: None, apart=apart)
    open_ = np.asarray(members @ unlimited.astype(np.int64)) > 0
    return most - high[asked], np.where(open_, UNLIMITED, most - low[asked])


def members_of(inside: Sequence[Integers], cells: int) -> csr_array:
    """A row for each total, with ones for its cells."""
    row = np.repeat(np.arange(len(inside)), [len(each) for each in inside])
    ones = np.ones(len(row), dtype=np.int64)
    columns = np.concatenate([np.empty(0, dtype=np.int64), *inside])
    return csr_array((ones, (row, columns)), shape=(len(inside), cells))


def limited(system: LinearSystem) -> tuple[LinearSystem, Booleans]:
    """The system with an upper bound for every cell, and the cells that have none:
    these are left at what is low enough for all else.
    """
    capped, unlimited = system.capped()
    free = capped.upper >= UNLIMITED
    free &= np.asarray(capped.matrix.sum(axis=0)).ravel() == 0
    return replace(capped, upper=np.where(free, capped.lower, capped.upper)), unlimited | free


def propagated(system: LinearSystem) -> tuple[Integers, Integers]:
    """Bounds of cells that follow from one total after the other."""
    lower, upper = system.lower.copy(), system.upper.copy()
    try:
        propagate(system.matrix, system.least, system.most, lower, upper)
    except ContradictionError:
        raise TableError(contradiction(system, "what is published")) from None
    return lower, upper
