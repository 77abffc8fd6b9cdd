"""How far primary cells can deviate, by the witnesses found."""

import numpy as np

from taciturn.attack.system import Booleans, Integers
from taciturn.suppression.task import Required, Witness

__all__ = ["Reach"]


class Reach:
    """How far witnesses let each primary cell deviate, and which cells each witness
    needs.
    """

    def __init__(self, required: Required) -> None:
        self._required = required
        self._found: list[tuple[Witness, Integers, Booleans]] = []
        self._high = np.zeros(len(required.cells), dtype=np.int64)
        self._low = np.zeros(len(required.cells), dtype=np.int64)

    def enough(self, position: int) -> bool:
        """Whether a primary cell is protected."""
        low, high = int(self._low[position]), int(self._high[position])
        required = self._required
        enough = high >= required.up[position] and -low >= required.down[position]
        return bool(enough and high - low >= required.width[position])

    def met(self) -> Booleans:
        """Which primary cells are protected."""
        return self._required.met(self._low, self._high)

    def all_enough(self) -> bool:
        """Whether all primary cells are protected."""
        return bool(self.met().all())

    @property
    def witnesses(self) -> list[Witness]:
        """All witnesses."""
        return [witness for witness, _, _ in self._found]

    @property
    def deviations(self) -> tuple[Integers, Integers]:
        """How far each primary cell can deviate below and above."""
        return self._low, self._high

    def beyond(self, position: int, deviation: int) -> bool:
        """Whether a primary cell can deviate that far."""
        return bool(
            self._high[position] >= deviation if deviation > 0 else self._low[position] <= deviation
        )

    def add(self, deviations: Integers, at_primaries: Integers, needs: Booleans) -> None:
        """Add a witness: its deviations of the table's cells and of the primary cells,
        and the cells in which it differs from the true table.
        """
        where = np.flatnonzero(deviations)
        self._add((where, deviations[where]), at_primaries, needs)

    def _add(self, witness: Witness, at_primaries: Integers, needs: Booleans) -> None:
        self._found.append((witness, at_primaries, needs))
        np.maximum(self._high, at_primaries, out=self._high)
        np.minimum(self._low, at_primaries, out=self._low)

    def without(self, cell: int) -> "Reach":
        """What remains when a cell is published."""
        left = Reach(self._required)
        for witness, at_primaries, needs in self._found:
            if not needs[cell]:
                left._add(witness, at_primaries, needs)
        return left
