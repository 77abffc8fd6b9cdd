"""How far primary cells can deviate, by the tables found."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers
from taciturn.suppression.task import Required, Witness

__all__ = ["Reach"]

_NEAR: Final = 1e-6  # of a whole number: the solver's rounding


class Reach:
    """How far witnesses let each primary cell deviate, and which cells each witness
    needs. A witness is a table by its deviations from the true one. What is `known`
    beforehand remains, whatever is published.
    """

    def __init__(self, required: Required, known: "Reach | None" = None) -> None:
        self._required, self._known = required, known
        self._found: list[tuple[tuple[Integers, Floats], Floats, Booleans]] = []
        self._high = np.zeros(len(required.cells))
        self._low = np.zeros(len(required.cells))
        if known is not None:
            self._high, self._low = known._high.copy(), known._low.copy()

    def enough(self, position: int) -> bool:
        """Whether a primary cell is protected."""
        low, high, required = self._low[position], self._high[position], self._required
        enough = high >= required.up[position] and -low >= required.down[position]
        return bool(enough and high - low >= required.width[position])

    def met(self) -> Booleans:
        """Which primary cells are protected."""
        return self._required.met(self._low, self._high)

    def all_enough(self) -> bool:
        """Whether all primary cells are protected."""
        return bool(self.met().all())

    def goals(self) -> tuple[Floats, Floats]:
        """How far above and below its true value each primary cell still has to be
        possible; 0 where nothing more is needed on that side.

        Where a width is required, either side counts, and what one is short of is left
        to the other.
        """
        required = self._required
        up = np.maximum(required.up, required.width - np.maximum(required.down, -self._low))
        down = np.maximum(required.down, required.width - np.maximum(required.up, self._high))
        met = self.met()
        return (
            np.where(met | (self._high >= up), 0.0, up),
            np.where(met | (-self._low >= down), 0.0, down),
        )

    @property
    def open_sides(self) -> int:
        """How many goals are left."""
        up, down = self.goals()
        return int((up > 0).sum() + (down > 0).sum())

    @property
    def witnesses(self) -> list[Witness]:
        """All witnesses, if they are whole numbers."""
        return [(where, by.astype(np.int64)) for (where, by), _, _ in self._found]

    def tables(self, size: int) -> Iterator[Floats]:
        """All witnesses, by the deviations of the table's cells."""
        for (where, by), _, _ in self._found:
            table = np.zeros(size)
            table[where] = by
            yield table

    @property
    def deviations(self) -> tuple[Integers, Integers]:
        """How far each primary cell can deviate below and above, in whole steps."""
        return np.ceil(self._low).astype(np.int64), np.floor(self._high).astype(np.int64)

    def beyond(self, position: int, deviation: float) -> bool:
        """Whether a primary cell can deviate that far."""
        return bool(
            self._high[position] >= deviation if deviation > 0 else self._low[position] <= deviation
        )

    def add(self, deviations: Floats, at_primaries: Floats, needs: Booleans) -> None:
        """Add a witness: its deviations of the table's cells and of the primary cells,
        and the cells in which it differs from the true table.
        """
        where = np.flatnonzero(deviations)
        self._add((where, deviations[where]), at_primaries, needs)

    def widen(self, at_primaries: Floats) -> None:
        """Take note of how far the primary cells deviate in a table."""
        whole = np.rint(at_primaries)
        near = np.abs(at_primaries - whole) <= _NEAR * np.maximum(1.0, np.abs(whole))
        at_primaries = np.where(near, whole, at_primaries)
        np.maximum(self._high, at_primaries, out=self._high)
        np.minimum(self._low, at_primaries, out=self._low)

    def without(self, cell: int) -> "Reach":
        """What remains when a cell is published."""
        left = Reach(self._required, self._known)
        for witness, at_primaries, needs in self._found:
            if not needs[cell]:
                left._add(witness, at_primaries, needs)
        return left

    def _add(self, witness: tuple[Integers, Floats], at_primaries: Floats, needs: Booleans) -> None:
        self._found.append((witness, at_primaries, needs))
        self.widen(at_primaries)
