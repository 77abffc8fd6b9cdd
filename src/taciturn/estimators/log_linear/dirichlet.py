"""Dirichlet-multinomial log-linear model: a table that follows a log-linear model more
or less closely.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import highest_k_hat
from taciturn.estimators.block_estimator import BlockEstimator, LearnedBlock
from taciturn.estimators.blocks import TableBlock, generators
from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.base import LogLinearEstimator
from taciturn.estimators.log_linear.blocks import complete_block, learn_block
from taciturn.estimators.log_linear.importance import (
    design_of,
    kappa_prior,
    known_of,
    sample_main_effects,
)
from taciturn.estimators.log_linear.model import build_model, effect_name
from taciturn.estimators.log_linear.posterior import log_likelihoods
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_dirichlet_multinomial
from taciturn.estimators.sampling.importance import all_converged, proposals_for
from taciturn.estimators.sampling.kernels import LIMITS
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings
from taciturn.estimators.strata import draw_replicates, draw_rest, log_stratum_chance
from taciturn.estimators.unlabelled import Arrays, Learned, arrays_of

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["DirichletLogLinear"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class DirichletLogLinear(LogLinearEstimator, BlockEstimator):
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
        return {"kappa": _prior_of_kappa(problem.sample_size)}

    def build_for(self, problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
        """Return the PyMC model of a checked sample."""
        return build_model(problem, terms, priors)

    def sample_fast(
        self,
        problem: Problem,
        terms: Terms,
        priors: Mapping[str, Prior],
        draws: int,
        rng: np.random.Generator,
    ) -> Learned | None:
        """Draw κ, and the margins; None for a model with interactions."""
        if any(len(term) > 1 for term in terms):
            return None
        dims = [term[0] for term in terms]
        kappa, margins, diagnostics = sample_main_effects(problem, dims, priors, draws, rng)
        named = {effect_name((dim,)): own for dim, own in zip(dims, margins, strict=True)}
        return Learned({"kappa": kappa, **named}, diagnostics)

    def _weights(self, problem: Problem, parameters: Arrays) -> Floats:
        """κπ of each draw, shape (draws, cells); 0 at structural zeros."""
        kappa = parameters["kappa"]
        weights = self.log_shares(problem, len(kappa), parameters)
        # Relative to the largest cell that can be filled, so that they neither overflow
        # nor vanish all at once.
        np.exp(weights - weights.max(axis=1, keepdims=True), out=weights)
        weights *= (kappa / weights.sum(axis=1))[:, None]
        return weights

    def complete(
        self, problem: Problem, draws: int, parameters: Arrays, rng: np.random.Generator
    ) -> Counts:
        """Draw the individuals not sampled, stratum by stratum of the known margins."""
        weights = self._weights(problem, parameters) + problem.counts
        return problem.counts + draw_rest(problem, draws, weights, draw_dirichlet_multinomial, rng)

    def learn_block(
        self, block: TableBlock, draws: int, rngs: Sequence[np.random.Generator]
    ) -> LearnedBlock | None:
        """Draw κ, and the margins side by side, of each sample."""
        terms, first = self.terms_for(block.first), block.first
        if type(self) is not DirichletLogLinear or any(len(term) > 1 for term in terms):
            return None
        dims, fillable = [term[0] for term in terms], block.fillable
        levels, starts, *rest = design_of(first, dims, self.priors_for(first))
        design = (np.compress(fillable, levels, axis=1), starts, *rest, not fillable.all())
        sizes = block.sample_sizes.tolist()
        of_size = {
            size: kappa_prior(self.priors.get("kappa", _prior_of_kappa(size)))
            for size in set(sizes)
        }
        priors, number = np.array([of_size[size] for size in sizes]), proposals_for(draws)
        kappa = np.empty((len(sizes), draws))
        margins = np.empty((len(sizes), draws, starts[-1]))
        counts = np.compress(fillable, block.counts, axis=1)
        given = (counts, design, priors, number, generators(rngs))
        k_hat, ess = learn_block(*given, kappa, margins)
        trusted = all_converged(k_hat, ess) & (k_hat <= highest_k_hat(number))
        return LearnedBlock({"kappa": kappa, "margins": margins}, trusted)

    def complete_block(
        self,
        block: TableBlock,
        parameters: Arrays,
        turns: npt.NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
        out: Counts,
    ) -> None:
        """Draw the individuals not sampled of each table."""
        first = block.first
        dims = [term[0] for term in self.terms_for(first)]
        levels = design_of(first, dims, self.priors_for(first))[0]
        own = (parameters["kappa"], parameters["margins"])
        given = (block.counts, block.missing, (levels, block.fillable), own)
        complete_block(*given, turns, LIMITS, generators(rngs), out)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size."""
        weights = self._weights(problem, arrays_of(problem, parameters))
        return draw_replicates(problem, settings.total, weights, draw_dirichlet_multinomial, rng)

    def draw_from_model(
        self, problem: Problem, parameters: Arrays, size: int, rng: np.random.Generator
    ) -> Counts:
        """Draw a table of so many individuals for each draw of the parameters."""
        return draw_dirichlet_multinomial(size, self._weights(problem, parameters), rng)

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of p(sample, known margins | parameters), up to a constant."""
        assert parameters.posterior is not None
        draws = arrays_of(problem, parameters)
        weights, known = self._weights(problem, draws), known_of(problem, (), {})
        strata = weights @ (problem.strata[:, None] == np.arange(known.sizes.size))
        occupied = np.ascontiguousarray(weights[:, problem.occupied])
        value: Floats = log_likelihoods(draws["kappa"], occupied, strata, known)
        return value.reshape(parameters.posterior.sizes["chain"], -1)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of ``p(x_i | x_-i, parameters)``: within the stratum, where margins
        are known.
        """
        posterior = parameters.posterior
        assert posterior is not None
        draws = arrays_of(problem, parameters)
        occupied, weights = problem.occupied, self._weights(problem, draws)
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


def _prior_of_kappa(sample_size: int) -> Prior:
    return Prior("LogNormal", mu=1 + log(sample_size), sigma=1.5)
