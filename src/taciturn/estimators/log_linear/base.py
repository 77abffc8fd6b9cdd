"""What models with log-linear shares of cells have in common: terms, margins and
interactions, their priors, and NUTS.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import softmax

from taciturn.diagnostics import check_convergence
from taciturn.errors import TableError
from taciturn.estimators.formula import Terms, parse_formula
from taciturn.estimators.log_linear.interactions import Interactions
from taciturn.estimators.log_linear.model import (
    COORDINATES,
    concentration_name,
    effect_name,
    free_interactions,
    model_coords,
    model_data,
    model_names,
    scale_name,
)
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.sampling.draws import draw_log_gammas
from taciturn.estimators.sampling.nuts import sample_posterior
from taciturn.estimators.settings import Counts, Parameters, PriorDraws, SamplerSettings
from taciturn.estimators.unlabelled import Arrays, Learned, UnlabelledEstimator

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["LogLinearEstimator"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LogLinearEstimator(UnlabelledEstimator):
    """An estimator around log-linear shares of cells: the product of a margin for each
    variable in the formula and a symmetric (zero-sum) effect for each interaction.
    """

    formula: str | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)

    takes_formula: ClassVar[bool] = True
    fast_sampler: ClassVar[str] = "importance sampling"
    sized: ClassVar[str]
    """The parameter whose default prior depends on the size of the sample."""
    others: ClassVar[tuple[str, ...]] = ()
    """Further variables of the model, besides those of the shares."""
    reserved: ClassVar[tuple[str, ...]] = ()
    """Further names that no variable of the table may have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))

    @property
    def variant(self) -> str:
        """What tells apart models of this class with the same terms and priors."""
        return ""

    @abstractmethod
    def own_priors(self, problem: Problem) -> dict[str, Prior]:
        """Return the default priors of the parameters besides those of the shares."""

    def margin_prior(self, dim: str) -> dict[str, Prior]:
        """Return the default prior of a margin, or of how even it is."""
        return {effect_name((dim,)): Prior("Dirichlet", a=1.0)}

    @abstractmethod
    def build_for(self, problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
        """Return the PyMC model of a checked sample."""

    def build(
        self,
        sample: xr.DataArray,
        population_size: int,
        *,
        structural_zeros: xr.DataArray | None = None,
        known_margins: xr.DataArray | None = None,
        strata: xr.DataArray | None = None,
        sampling_weights: xr.DataArray | None = None,
        effective_size: float | None = None,
    ) -> "pm.Model":
        """Return the PyMC model of a sample, with the table's variables as named dims.

        The observed variable is ``sample_counts``, the cells in row-major order; known
        margins of the population, or sizes of strata, are the potential
        ``known_margins``. With an `effective_size` below that of the sample
        ``sample_counts`` is a potential, too. Interactions are one
        vector of standard normal coordinates, ``interaction_coordinates``, from which
        come the effects, ``effect_<variable>_<variable>``.
        """
        problem = make_problem(
            sample,
            population_size,
            structural_zeros=structural_zeros,
            known_margins=known_margins,
            strata=strata,
            sampling_weights=sampling_weights,
            effective_size=effective_size,
        )
        self.check_design(problem)
        return self.build_for(problem, self.terms_for(problem), self.priors_for(problem))

    def terms_for(self, problem: Problem) -> Terms:
        """Return the terms of the formula that have something to estimate: a variable
        with one category has not.
        """
        terms = parse_formula(self.formula, problem.variables)
        return tuple(term for term in terms if all(problem.sample.sizes[dim] > 1 for dim in term))

    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the priors of all parameters: those of the model itself, the margins
        and the interactions' scales.
        """
        terms, priors = self.terms_for(problem), self.own_priors(problem)
        for term in terms:
            if len(term) == 1:
                priors |= self.margin_prior(term[0])
            else:
                priors[scale_name(term)] = Prior("HalfNormal", sigma=1.0)
        priors = merge_priors(priors, self.priors)
        problem.refuse_names(
            {*model_names(terms, priors, self.sized), *self.others, *self.reserved}
        )
        _refuse_same_name(terms)
        return priors

    @abstractmethod
    def sample_fast(
        self,
        problem: Problem,
        terms: Terms,
        priors: Mapping[str, Prior],
        draws: int,
        rng: np.random.Generator,
    ) -> Learned | None:
        """Draw the parameters and the effects of all terms; None for terms that are
        left to NUTS.
        """

    @abstractmethod
    def draw_from_model(
        self, problem: Problem, parameters: Arrays, size: int, rng: np.random.Generator
    ) -> Counts:
        """Draw a table of so many individuals for each draw of the parameters, which no
        sample informs.
        """

    def learn_unlabelled(
        self, problem: Problem, draws: int, rng: np.random.Generator
    ) -> Learned | None:
        """Draw the parameters by `sample_fast`."""
        return self.sample_fast(
            problem, self.terms_for(problem), self.priors_for(problem), draws, rng
        )

    def label(self, problem: Problem, draws: Arrays, settings: SamplerSettings) -> xr.Dataset:
        """Return the draws with chain, draw and the variables."""
        effects = {effect_name(term): term for term in self.terms_for(problem)}
        strata = () if problem.known_margins is None else problem.known_margins.dims
        shape, found = (settings.chains, settings.draws), {}
        for name, values in draws.items():
            own = effects.get(name, strata[: values.ndim - 1])
            found[name] = (("chain", "draw", *own), values.reshape(*shape, *values.shape[1:]))
        coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
        known = {dim for own, _ in found.values() for dim in own} - coords.keys()
        coords |= {dim: problem.sample[dim].values for dim in problem.variables if dim in known}
        return xr.Dataset(found, coords=coords)

    def fixed_in_model(self, problem: Problem) -> str:
        """What a compiled model holds of the sample besides its data; other samples
        need one of their own.
        """
        return ""

    def draw_others(
        self, problem: Problem, draws: int, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Draw parameters that have no prior of their own; none by default."""
        return {}

    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters, samples and populations."""
        terms, priors = self.terms_for(problem), self.priors_for(problem)
        dims = [term[0] for term in terms if len(term) == 1]
        single = {name: priors[name].draw(rng, draws) for name in self.own_priors(problem)}
        single |= {name: priors[name].draw(rng, draws) for name in _concentrations(priors, dims)}
        effects = {
            effect_name((dim,)): _draw_margin(problem, dim, priors, single, draws, rng)
            for dim in dims
        }
        if interactions := free_interactions(terms, problem):
            coordinates = rng.normal(size=(draws, interactions.size))
            names = map(scale_name, interactions.terms)
            scales = {name: priors[name].draw(rng, draws) for name in names}
            single |= scales
            effects |= _scaled_effects(interactions, coordinates, scales)
        others = self.draw_others(problem, draws, rng)
        parameters = {**single, **others, **effects}
        population = self.draw_from_model(problem, parameters, problem.population_size, rng)
        # The individuals are exchangeable, so that any n of them are a sample.
        sample = [
            rng.multivariate_hypergeometric(F, problem.sample_size, method="marginals")
            for F in population
        ]
        return PriorDraws({**single, **effects}, np.array(sample), population)

    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draw the parameters by NUTS."""
        terms = self.terms_for(problem)
        priors = self.priors_for(problem)
        interactions = free_interactions(terms, problem)
        names = [name for name in priors if name in self.own_priors(problem)]
        names += _concentrations(priors, problem.variables)
        names += [*self.others, *(effect_name(term) for term in terms if len(term) == 1)]
        names += [COORDINATES, *map(scale_name, interactions.terms)] if interactions else []
        # One prior depends on the sample size by default, so its parameters are data as
        # well.
        sized = priors[self.sized]
        fixed = {name: prior.to_dict() for name, prior in priors.items() if name != self.sized}
        key = (
            f"{type(self)} {self.variant} {terms} {fixed} {sized.distribution}"
            f" {model_coords(problem)} {problem.fillable.tobytes()!r}"
        )
        if problem.known_margins is not None:
            key += f" margins of {problem.known_margins.dims}"
        if problem.weighting is not None:
            key += " at rates" if problem.whole else " at rates, scaled"
        key += self.fixed_in_model(problem)
        posterior, stats, sampler = sample_posterior(
            lambda: self.build_for(problem, terms, priors),
            settings,
            seed,
            names,
            key=key,
            data=model_data(problem, self.sized, sized),
        )
        if interactions:
            posterior = _with_effects(posterior, interactions)
        check_convergence(self.monitored(posterior), stats, warn=True)
        labels = {
            dim: problem.sample[dim].values for dim in problem.variables if dim in posterior.dims
        }
        return Parameters(
            posterior=posterior.assign_coords(labels), sample_stats=stats, sampler=sampler
        )

    def log_shares(self, problem: Problem, draws: int, parameters: Arrays) -> Floats:
        """Logarithms of the shares of all cells at each draw, up to a constant of the
        draw, shape (draws, cells); minus infinity at structural zeros.
        """
        found, sizes = np.zeros((draws, *problem.sample.shape)), problem.sizes
        for term in self.terms_for(problem):
            effect = parameters[effect_name(term)]
            with np.errstate(divide="ignore"):
                values = np.log(effect) if len(term) == 1 else effect
            found += values.reshape(-1, *[sizes[d] if d in term else 1 for d in sizes])
        found[:, ~problem.fillable] = -np.inf
        return found.reshape(draws, -1)


def _concentrations(priors: Mapping[str, Prior], dims: Sequence[str]) -> list[str]:
    """Names of the concentrations of margins that have a prior."""
    return [name for name in map(concentration_name, dims) if name in priors]


def _draw_margin(
    problem: Problem,
    dim: str,
    priors: Mapping[str, Prior],
    drawn: Mapping[str, Floats],
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw a margin from its prior, given its concentration where that has one."""
    categories = problem.sample.sizes[dim]
    if (name := concentration_name(dim)) not in drawn:
        return priors[effect_name((dim,))].draw(rng, draws, categories=categories)
    logs = draw_log_gammas(np.repeat(drawn[name][:, None], categories, axis=1), rng)
    return np.asarray(softmax(logs, axis=1))


def _scaled_effects(
    interactions: Interactions, coordinates: Floats, scales: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The effect of each interaction, (..., *categories), from the coordinates of all,
    (..., size), and its scale, (...).
    """
    found = {}
    for number, term in enumerate(interactions.terms):
        scale, effect = scales[scale_name(term)], interactions.effect(number, coordinates)
        found[effect_name(term)] = effect * scale.reshape(*scale.shape, *[1] * len(term))
    return found


def _with_effects(posterior: xr.Dataset, interactions: Interactions) -> xr.Dataset:
    """The effect of each interaction in place of the coordinates of all."""
    coordinates = posterior[COORDINATES].transpose("chain", "draw", ...).values
    scales = {
        name: posterior[name].transpose("chain", "draw").values
        for name in map(scale_name, interactions.terms)
    }
    found = _scaled_effects(interactions, coordinates, scales)
    effects = {
        effect_name(term): (("chain", "draw", *term), found[effect_name(term)])
        for term in interactions.terms
    }
    (own,) = set(posterior[COORDINATES].dims) - {"chain", "draw"}
    return posterior.drop_dims([own]).assign(effects)


def _refuse_same_name(terms: Terms) -> None:
    effects = [effect_name(term) for term in terms]
    twice = sorted({name for name in effects if effects.count(name) > 1})
    if twice:
        raise TableError(f"two interactions would both be named {twice[0]!r}: rename a variable")
