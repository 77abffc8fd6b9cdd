"""Dirichlet-multinomial log-linear model: a table that follows a log-linear model more
or less closely.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.base import LogLinearEstimator, posterior_of
from taciturn.estimators.log_linear.importance import sample_main_effects
from taciturn.estimators.log_linear.likelihood import log_likelihood, log_margin_likelihood
from taciturn.estimators.log_linear.model import build_model
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_dirichlet_multinomial
from taciturn.estimators.settings import Counts, Parameters, PriorDraws, SamplerSettings
from taciturn.estimators.strata import draw_replicates, draw_rest, log_stratum_chance

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["DirichletLogLinear"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class DirichletLogLinear(LogLinearEstimator):
    r"""Population proportions around a log-linear model, with the closeness fitted.

    .. math::

        p &\sim \text{Dirichlet}(\kappa \pi) \\
        f \mid p &\sim \text{Multinomial}(n, p) \\
        F - f \mid f &\sim \text{DirichletMultinomial}(N - n, \kappa\pi + f)

    :math:`\pi` is log-linear: the product of a margin for each variable in the formula
    and a symmetric (zero-sum) effect for each interaction. :math:`\kappa \to \infty` is
    the log-linear model itself, :math:`\kappa \to 0` the sample.

    Parameters
    ----------
    formula : str, optional
        Hierarchical log-linear formula; main effects without one.
    priors : mapping of str to Prior, optional
        Replaces priors by name. The parameters are ``kappa``; ``margin_<variable>`` for
        each variable in the formula; ``scale_<variable>_<variable>`` for the size of
        each interaction.

    Raises
    ------
    PriorError
        On `fit`: a prior for a parameter the model does not have.

    Notes
    -----
    Default priors: ``kappa`` is log-normal around `e n`, so that the weight
    :math:`\kappa/(\kappa + n)` of the log-linear model relative to the sample is widely
    spread whatever `n`; margins are uniform on the simplex; interaction scales
    half-normal with scale 1.

    Known margins of the population also inform :math:`\kappa` and the margins: their
    likelihood given the sample is Dirichlet-multinomial over the strata, with the
    weights :math:`\kappa\pi + f` summed in each. Given them the strata are independent,
    and the population within each is Dirichlet-multinomial.

    Examples
    --------
    >>> import taciturn as tc
    >>> priors = {"kappa": tc.Prior("LogNormal", mu=5, sigma=1)}
    >>> model = tc.DirichletLogLinear("~ area + religion", priors=priors)
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> sorted(v.name for v in model.build(sample, 2449).free_RVs)
    ['kappa', 'margin_area', 'margin_religion']
    """

    sized: ClassVar[str] = "kappa"
    keeps_margins: ClassVar[bool] = True
    title: ClassVar[str] = "Dirichlet-multinomial log-linear model, Bayesian"
    command_name: ClassVar[str] = "dirichlet-log-linear"

    def own_priors(self, problem: Problem) -> dict[str, Prior]:
        """Return the default prior of ``kappa``."""
        return {"kappa": Prior("LogNormal", mu=1 + log(problem.sample_size), sigma=1.5)}

    def build_for(self, problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
        """Return the PyMC model of a checked sample."""
        return build_model(problem, terms, priors)

    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        """Draw the parameters by importance sampling; None for a model with
        interactions.
        """
        dims = self.main_effects_for(problem)
        if dims is None:
            return None
        kappa, margins, diagnostics = sample_main_effects(
            problem, dims, self.priors_for(problem), settings.total, rng
        )
        drawn = dict(zip(dims, margins, strict=True))
        posterior = posterior_of(problem, {"kappa": kappa}, drawn, settings)
        return Parameters(posterior, sampler="importance sampling", importance=diagnostics)

    def _weights(self, problem: Problem, parameters: Parameters) -> Floats:
        """κπ of each draw, shape (chains * draws, cells); 0 at structural zeros."""
        posterior = parameters.posterior
        assert posterior is not None
        kappa = posterior["kappa"].transpose("chain", "draw").values.ravel()
        weights = self.log_shares(problem, posterior)
        # Relative to the largest cell that can be filled, so that they neither overflow
        # nor vanish all at once.
        np.exp(weights - weights.max(axis=1, keepdims=True), out=weights)
        weights *= (kappa / weights.sum(axis=1))[:, None]
        return weights

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the individuals not sampled, stratum by stratum of the known margins."""
        weights = self._weights(problem, parameters) + problem.counts
        return problem.counts + draw_rest(
            problem, settings.total, weights, draw_dirichlet_multinomial, rng
        )

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size."""
        weights = self._weights(problem, parameters)
        return draw_replicates(problem, settings.total, weights, draw_dirichlet_multinomial, rng)

    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters, samples and populations, for main effects only."""
        dims, priors = self.refuse_interactions(problem), self.priors_for(problem)
        settings = SamplerSettings(draws=draws, tune=1, chains=1, seed=0, progressbar=False)
        kappa = priors["kappa"].draw(rng, draws)
        margins = {
            dim: priors[f"margin_{dim}"].draw(rng, draws, categories=problem.sample.sizes[dim])
            for dim in dims
        }
        weights = self._weights(
            problem, Parameters(posterior_of(problem, {"kappa": kappa}, margins, settings))
        )
        population = draw_dirichlet_multinomial(problem.population_size, weights, rng)
        # The individuals are exchangeable, so that any n of them are a sample.
        sample = [
            rng.multivariate_hypergeometric(F, problem.sample_size, method="marginals")
            for F in population
        ]
        drawn = {f"margin_{dim}": margin for dim, margin in margins.items()}
        return PriorDraws({"kappa": kappa, **drawn}, np.array(sample), population)

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of p(sample, known margins | parameters), up to a constant."""
        posterior = parameters.posterior
        assert posterior is not None
        kappa = posterior["kappa"].transpose("chain", "draw").values
        occupied = problem.counts > 0
        weights = self._weights(problem, parameters)
        value = log_likelihood(kappa.ravel(), weights[:, occupied], problem.counts[occupied])
        if problem.known_margins is not None:
            strata = weights @ np.eye(problem.known_margins.size)[problem.strata]
            value += log_margin_likelihood(kappa.ravel(), strata, problem)
        return value.reshape(kappa.shape)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of ``p(x_i | x_-i, parameters)``: within the stratum, where margins
        are known.
        """
        posterior = parameters.posterior
        assert posterior is not None
        occupied, weights = problem.occupied, self._weights(problem, parameters)
        others, whole = np.array(problem.sample_size - 1), weights.sum(axis=1, keepdims=True)
        if problem.known_margins is not None:  # the stratum takes the place of the table
            of_stratum = np.eye(problem.known_margins.size)[problem.strata]
            others = (problem.counts @ of_stratum)[problem.strata[occupied]] - 1
            whole = (weights @ of_stratum)[:, problem.strata[occupied]]
        within = np.log(problem.counts[occupied] - 1 + weights[:, occupied]) - np.log(
            others + whole
        )
        terms: Floats = log_stratum_chance(problem) + within
        return terms.reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)
