"""Estimators whose parameters are single values, computed from the sample."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import EstimationError
from taciturn.estimators.base import Estimator
from taciturn.estimators.pointwise import fits_by_cell
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters, SamplerSettings
from taciturn.schema import occupied_cells

__all__ = ["PlugInEstimator"]


class PlugInEstimator(Estimator):
    """An estimator whose parameters are single values, computed from the sample.

    `learn` returns them as ``constants``. There is no posterior to remove an individual
    from, so the leave-one-out term is computed exactly, with the parameters estimated
    again without that individual; it is NaN where they cannot be.
    """

    plug_in: ClassVar[bool] = True
    caution: ClassVar[str] = (
        "The intervals leave out that the parameters are estimated: prefer a Bayesian estimator for"
        " them."
    )

    @abstractmethod
    def log_conditionals(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Logarithm of ``p(x_i | x_-i, parameters)``, in nats, for one individual of
        each occupied cell.

        Returns
        -------
        array, shape (occupied cell,)
            In the order of `problem.occupied`; minus infinity where the probability
            is 0.
        """

    def cell_log_likelihood(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        """Return ``count``, with the parameters of the whole sample, and
        ``leave_one_out``, with those of all others; None where these take too long.
        """
        if not fits_by_cell(problem.sample.size, problem):  # each estimate passes over all cells
            return None
        terms = {
            "count": self.log_conditionals(problem, parameters),
            "leave_one_out": self._leave_one_out(problem, settings),
        }
        arrays = {name: ("occupied_cell", term) for name, term in terms.items()}
        return xr.Dataset(arrays, coords=occupied_cells(problem.sample))

    def _leave_one_out(
        self, problem: Problem, settings: SamplerSettings
    ) -> npt.NDArray[np.float64]:
        """Logarithm of ``p(x_i | x_-i)``, its parameters estimated from the others."""
        terms = np.full(len(problem.occupied), np.nan)
        for number, cell in enumerate(problem.occupied):
            try:
                others = self.learn(problem.without(cell), settings, settings.seed)
            except EstimationError:
                continue
            terms[number] = self.log_conditionals(problem, others)[number]
        return terms
