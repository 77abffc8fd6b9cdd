"""Estimators whose parameters have a prior."""

from abc import abstractmethod

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters, PriorDraws, SamplerSettings

__all__ = ["BayesianEstimator"]


class BayesianEstimator(Estimator):
    """An estimator whose parameters have a prior.

    They are drawn without a Markov chain where the diagnostics of that succeed
    (`learn_fast`), and by NUTS otherwise (`learn_nuts`). `priors_for`, `log_joint` and
    `draw_prior` serve the sensitivity to the priors and simulation-based calibration.
    """

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draw the parameters by `learn_trusted`, or else by `learn_nuts`."""
        parameters = self.learn_trusted(problem, settings, seed)
        return self.learn_nuts(problem, settings, seed) if parameters is None else parameters

    def learn_trusted(
        self, problem: Problem, settings: SamplerSettings, seed: int
    ) -> Parameters | None:
        """Draw the parameters by `learn_fast`; None where another method is asked for,
        or where that fails.
        """
        if settings.method != "fast":
            return None
        parameters = self.learn_fast(problem, settings, np.random.default_rng(seed))
        if parameters is None:
            return None
        importance = parameters.importance
        return parameters if importance is None or importance.converged else None

    @abstractmethod
    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        """Draw the parameters without a Markov chain and without compiling a model.

        Returns
        -------
        learned : Parameters or None
            ``posterior`` (chain, draw, ...) and, where the draws were weighted,
            ``importance``: NUTS takes over where these diagnostics fail. None for a
            model that has no such path.
        """

    @abstractmethod
    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draw the parameters of the PyMC model.

        Returns
        -------
        learned : Parameters
            ``posterior`` (chain, draw, ...) and ``sample_stats``.
        """

    @abstractmethod
    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the prior of each parameter that is fitted, by its name in the
        posterior; empty where none is.

        Raises
        ------
        PriorError
            A prior was given for a parameter that the model does not have.
        """

    @abstractmethod
    def log_joint(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Logarithm of p(sample, known margins | parameters), in nats and up to a
        constant.

        The terms of `log_conditionals` do not add up to it, because conditionals do not
        factorise.

        Returns
        -------
        array, shape (chain, draw)
        """

    def log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        """Logarithm of the prior density of each parameter, (chain, draw); None where
        no parameter is fitted.
        """
        posterior = parameters.posterior
        priors = self.priors_for(problem)
        if posterior is None or not priors:
            return None
        densities = {
            name: (
                ("chain", "draw"),
                prior.log_density(posterior[name].transpose("chain", "draw", ...).values),
            )
            for name, prior in priors.items()
        }
        return xr.Dataset(densities, coords={dim: posterior[dim] for dim in ("chain", "draw")})

    @abstractmethod
    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters from their priors, and a sample and a population from each.

        Of `problem` only the shape, the sizes and the structural zeros may be used, not
        the counts of the sample.

        Parameters
        ----------
        problem : Problem
            Sample size, population size and cells.
        draws : int
            How many.
        rng : Generator
            The only source of randomness.

        Returns
        -------
        PriorDraws
            Parameters (draws, ...), samples and populations (draws, cells).
        """
