"""Dirichlet-multinomial log-linear model: a table that follows a log-linear model more
or less closely.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import check_convergence
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.formula import Terms, parse_formula
from taciturn.estimators.log_linear.importance import sample_main_effects
from taciturn.estimators.log_linear.interactions import Interactions
from taciturn.estimators.log_linear.likelihood import log_likelihood, log_margin_likelihood
from taciturn.estimators.log_linear.model import (
    COORDINATES,
    build_model,
    effect_name,
    free_interactions,
    model_coords,
    model_data,
    model_names,
    scale_name,
)
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.sampling.draws import draw_dirichlet_multinomial
from taciturn.estimators.sampling.nuts import sample_posterior
from taciturn.estimators.settings import Counts, Parameters, PriorDraws, SamplerSettings
from taciturn.estimators.strata import draw_replicates, draw_rest, log_stratum_chance

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["DirichletLogLinear"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class DirichletLogLinear(BayesianEstimator):
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

    formula: str | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)

    keeps_margins: ClassVar[bool] = True
    title: ClassVar[str] = "Dirichlet-multinomial log-linear model, Bayesian"
    command_name: ClassVar[str] = "dirichlet-log-linear"
    takes_formula: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))

    def build(
        self,
        sample: xr.DataArray,
        population_size: int,
        *,
        structural_zeros: xr.DataArray | None = None,
        known_margins: xr.DataArray | None = None,
    ) -> "pm.Model":
        """Return the PyMC model of a sample, with the table's variables as named dims.

        The observed variable is ``sample_counts``, the cells in row-major order; known
        margins of the population are a potential of that name. Interactions are one
        vector of standard normal coordinates, ``interaction_coordinates``, from which
        come the effects, ``effect_<variable>_<variable>``.
        """
        problem = make_problem(sample, population_size, structural_zeros, known_margins)
        return build_model(problem, self.terms_for(problem), self.priors_for(problem))

    def terms_for(self, problem: Problem) -> Terms:
        """Return the terms of the formula that have something to estimate: a variable
        with one category has not.
        """
        terms = parse_formula(self.formula, problem.variables)
        return tuple(term for term in terms if all(problem.sample.sizes[dim] > 1 for dim in term))

    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the priors of ``kappa``, the margins and the interactions' scales."""
        terms = self.terms_for(problem)
        priors = merge_priors(self._default_priors(problem, terms), self.priors)
        problem.refuse_names(model_names(terms, priors))
        _refuse_same_name(terms)
        return priors

    def _default_priors(self, problem: Problem, terms: Terms) -> dict[str, Prior]:
        priors = {"kappa": Prior("LogNormal", mu=1 + log(problem.sample_size), sigma=1.5)}
        for term in terms:
            if len(term) == 1:
                priors[f"margin_{term[0]}"] = Prior("Dirichlet", a=1.0)
            else:
                priors[scale_name(term)] = Prior("HalfNormal", sigma=1.0)
        return priors

    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        """Draw the parameters by importance sampling; None for a model with
        interactions.
        """
        terms = self.terms_for(problem)
        if any(len(term) > 1 for term in terms):
            return None
        priors = self.priors_for(problem)
        dims = [term[0] for term in terms]
        kappa, margins, diagnostics = sample_main_effects(
            problem, dims, priors, settings.total, rng
        )
        posterior = _posterior(problem, kappa, dict(zip(dims, margins, strict=True)), settings)
        return Parameters(posterior, sampler="importance sampling", importance=diagnostics)

    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draw the parameters by NUTS."""
        terms = self.terms_for(problem)
        priors = self.priors_for(problem)
        interactions = free_interactions(terms, problem)
        names = ["kappa", *(effect_name(term) for term in terms if len(term) == 1)]
        names += [COORDINATES, *map(scale_name, interactions.terms)] if interactions else []
        # The prior of κ depends on the sample size by default, so its parameters are
        # data as well.
        kappa = priors["kappa"]
        others = {name: prior.to_dict() for name, prior in priors.items() if name != "kappa"}
        key = (
            f"{type(self)} {terms} {others} {kappa.distribution} {model_coords(problem)}"
            f" {problem.fillable.tobytes()!r}"
        )
        if problem.known_margins is not None:
            key += f" margins of {problem.known_margins.dims}"
        posterior, stats, sampler = sample_posterior(
            lambda: build_model(problem, terms, priors),
            settings,
            seed,
            names,
            key=key,
            data=model_data(problem, kappa),
        )
        if interactions:
            posterior = _with_effects(posterior, interactions)
        check_convergence(posterior, stats, warn=True)
        labels = {
            dim: problem.sample[dim].values for dim in problem.variables if dim in posterior.dims
        }
        return Parameters(
            posterior=posterior.assign_coords(labels), sample_stats=stats, sampler=sampler
        )

    def _weights(self, problem: Problem, parameters: Parameters) -> Floats:
        """κπ of each draw, shape (chains * draws, cells); 0 at structural zeros."""
        posterior = parameters.posterior
        assert posterior is not None
        kappa = posterior["kappa"].transpose("chain", "draw").values.ravel()
        log_pi = np.zeros((len(kappa), *problem.sample.shape))
        for term in self.terms_for(problem):
            effect = posterior[effect_name(term)].transpose("chain", "draw", *term).values
            with np.errstate(divide="ignore"):
                values = np.log(effect) if len(term) == 1 else effect
            log_pi += values.reshape(
                -1, *[problem.sample.sizes[d] if d in term else 1 for d in problem.variables]
            )
        log_pi[:, ~problem.fillable] = -np.inf
        weights: Floats = log_pi.reshape(len(kappa), -1)
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
        terms = self.terms_for(problem)
        if any(len(term) > 1 for term in terms):
            raise ParameterError(
                f"calibration knows main effects only, the formula is {self.formula!r}"
            )
        priors = self.priors_for(problem)
        settings = SamplerSettings(draws=draws, tune=1, chains=1, seed=0, progressbar=False)
        kappa = priors["kappa"].draw(rng, draws)
        margins = {
            dim: priors[f"margin_{dim}"].draw(rng, draws, categories=problem.sample.sizes[dim])
            for (dim,) in terms
        }
        weights = self._weights(problem, Parameters(_posterior(problem, kappa, margins, settings)))
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


def _posterior(
    problem: Problem, kappa: Floats, margins: Mapping[str, Floats], settings: SamplerSettings
) -> xr.Dataset:
    """Draws of κ and of the margin of each variable, with chain and draw."""
    shape, dims = (settings.chains, settings.draws), ("chain", "draw")
    drawn = {
        f"margin_{dim}": ((*dims, dim), margin.reshape(*shape, -1))
        for dim, margin in margins.items()
    }
    coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
    labels = {dim: problem.sample[dim].values for dim in margins}
    return xr.Dataset({"kappa": (dims, kappa.reshape(shape)), **drawn}, coords={**coords, **labels})


def _with_effects(posterior: xr.Dataset, interactions: Interactions) -> xr.Dataset:
    """The effect of each interaction in place of the coordinates of all."""
    coordinates = posterior[COORDINATES].transpose("chain", "draw", ...).values
    effects = {}
    for number, term in enumerate(interactions.terms):
        scale = posterior[scale_name(term)].transpose("chain", "draw").values
        effect = interactions.effect(number, coordinates)
        effects[effect_name(term)] = (
            ("chain", "draw", *term),
            effect * scale.reshape(*scale.shape, *[1] * len(term)),
        )
    (own,) = set(posterior[COORDINATES].dims) - {"chain", "draw"}
    return posterior.drop_dims([own]).assign(effects)


def _refuse_same_name(terms: Terms) -> None:
    effects = [effect_name(term) for term in terms]
    twice = sorted({name for name in effects if effects.count(name) > 1})
    if twice:
        raise TableError(f"two interactions would both be named {twice[0]!r}: rename a variable")
