"""Log weights of every value of the open cells and totals, where what is released is
likelier given some than given others.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from taciturn.attack.mechanisms.likelihood import Likelihood
from taciturn.attack.posterior.prior import log_poisson
from taciturn.attack.system import Floats, Integers, LinearSystem
from taciturn.errors import ParameterError, TableError

__all__ = ["LogWeights", "within_cells"]

_MOST_WEIGHTS: Final = 20_000_000


def within_cells(system: LinearSystem, lower: Integers, upper: Integers) -> LinearSystem:
    """The system with every total between the sums of the bounds of its cells."""
    return replace(
        system,
        least=np.maximum(system.least, system.matrix @ lower),
        most=np.minimum(system.most, system.matrix @ upper),
    )


class LogWeights:
    """Prior and likelihood of the unknown cells and of the totals, value by value.

    Parameters
    ----------
    system : LinearSystem
        The release, with finite bounds of totals.
    lower, upper : array of int64, shape (n,)
        Finite bounds of the unknown cells.
    expected : array of float64
        Expected count of each cell; empty for the uniform prior.
    likelihood : Likelihood
        Of what is released.
    """

    def __init__(
        self,
        system: LinearSystem,
        lower: Integers,
        upper: Integers,
        expected: Floats,
        likelihood: Likelihood,
    ) -> None:
        self._system, self._lower, self._upper = system, lower, upper
        self._expected, self._likelihood = expected, likelihood
        values = int((upper - lower + 1).sum() + (system.most - system.least + 1).sum())
        if values > _MOST_WEIGHTS:
            raise ParameterError(
                f"cells and totals can hold {values:,} values in all, at most {_MOST_WEIGHTS:,} are"
                " weighed; give fewer cells, or smaller counts"
            )
        for column in np.flatnonzero(lower == upper).tolist():
            if np.isneginf(self.of_cell(column)).all():
                self._refuse(system.unknown_label(column), int(lower[column]))
        for row in np.flatnonzero(system.least == system.most).tolist():
            if np.isneginf(self.of_total(row)).all():
                self._refuse(system.row_label(row), int(system.least[row]))

    def of_cell(self, column: int) -> Floats:
        """For each value of an unknown cell, from its lower to its upper bound."""
        true = np.arange(self._lower[column], self._upper[column] + 1)
        cell = int(self._system.unknown[column])
        found = self._likelihood.of_cell(cell, true)
        if len(true) > 1:
            found += log_poisson(self._expected, cell, true)
        return found

    def of_total(self, row: int) -> Floats:
        """For each value of a total, from its least to its most."""
        system = self._system
        true = np.arange(system.least[row], system.most[row] + 1)
        return self._likelihood.of_total(
            int(system.row_total[row]), int(system.row_group[row]), true
        )

    def _refuse(self, place: str, value: int) -> None:
        raise TableError(
            f"the release contradicts itself: {place} could hold {value} only, from which the"
            " mechanism does not give what is released"
        )
