"""Estimators whose draws are plain arrays until they get their labels: for a small
table the labels cost more than the draws.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings

__all__ = ["Arrays", "Learned", "UnlabelledEstimator", "arrays_of"]

Arrays = Mapping[str, npt.NDArray[np.float64]]
"""Parameters by name, all draws on the first axis: those of one chain, then those of
the next."""


class Learned(NamedTuple):
    """Draws of the parameters, and how far to trust them."""

    draws: Arrays
    importance: ImportanceDiagnostics | None = None


class UnlabelledEstimator(BayesianEstimator):
    """A Bayesian estimator with a fast path on plain arrays."""

    fast_sampler: ClassVar[str]
    """What draws the parameters on that path, for the record."""

    @abstractmethod
    def learn_unlabelled(
        self, problem: Problem, draws: int, rng: np.random.Generator
    ) -> Learned | None:
        """Draw the parameters without a Markov chain; None where there is no such
        path.
        """

    @abstractmethod
    def complete(
        self, problem: Problem, draws: int, parameters: Arrays, rng: np.random.Generator
    ) -> Counts:
        """Draw a population for each draw of the parameters, (draws, cells)."""

    @abstractmethod
    def label(self, problem: Problem, draws: Arrays, settings: SamplerSettings) -> xr.Dataset:
        """Return the draws with chain, draw and the variables of the table."""

    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        """Draw the parameters by `learn_unlabelled`."""
        found = self.learn_unlabelled(problem, settings.total, rng)
        if found is None:
            return None
        if not found.draws:
            return Parameters()
        posterior = self.label(problem, found.draws, settings)
        return Parameters(posterior, sampler=self.fast_sampler, importance=found.importance)

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the individuals not sampled by `complete`."""
        return self.complete(problem, settings.total, arrays_of(problem, parameters), rng)

    def draw_unlabelled(
        self, problem: Problem, draws: int, seed: int, rng: np.random.Generator
    ) -> Counts | None:
        """Draw populations as a fit of one chain does; None where it would not take the
        fast path.
        """
        found = self.trusted(problem, draws, seed)
        return None if found is None else self.complete(problem, draws, found, rng)

    @property
    def learns_on_plain_arrays(self) -> bool:
        """Whether `learn_unlabelled` and `complete` say what a fit draws, as no
        subclass has ways of its own.
        """
        own = type(self)
        return (own.learn, own.learn_trusted, own.learn_fast, own.draw_population) == (
            UnlabelledEstimator.learn,
            UnlabelledEstimator.learn_trusted,
            UnlabelledEstimator.learn_fast,
            UnlabelledEstimator.draw_population,
        )

    def trusted(self, problem: Problem, draws: int, seed: int) -> Arrays | None:
        """Draws of the parameters that a fit with this seed would keep; None where it
        would not take the fast path, or where a subclass has one of its own.
        """
        if not self.learns_on_plain_arrays:
            return None
        found = self.learn_unlabelled(problem, draws, np.random.default_rng(seed))
        if found is None or (found.importance is not None and not found.importance.converged):
            return None
        return found.draws


def arrays_of(problem: Problem, parameters: Parameters) -> Arrays:
    """Draws without their labels; categories in the order of the table's variables."""
    posterior, found = parameters.posterior, {}
    for name, draws in ({} if posterior is None else posterior.data_vars).items():
        own = [variable for variable in problem.variables if variable in draws.dims]
        values = draws.transpose("chain", "draw", *own, ...).values
        found[str(name)] = values.reshape(-1, *values.shape[2:])
    return found
