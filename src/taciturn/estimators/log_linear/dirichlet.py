"""Dirichlet-multinomial log-linear model: a table that follows a log-linear model more
or less closely.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import check_convergence
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.base import BayesianEstimator
from taciturn.estimators.formula import Terms, parse_formula
from taciturn.estimators.log_linear.interactions import Interactions, halves
from taciturn.estimators.log_linear.main_effects import (
    log_likelihood,
    log_margin_likelihood,
    sample_main_effects,
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


_COORDINATES: Final = "interaction_coordinates"


@dataclass(frozen=True, repr=False)
class DirichletLogLinear(BayesianEstimator):
    r"""Population proportions around a log-linear model, with the closeness fitted.

    .. math::

        p &\sim \text{Dirichlet}(\kappa \pi), \qquad f \mid p \sim \text{Multinomial}(n, p) \\
        F - f \mid f &\sim \text{DirichletMultinomial}(N - n, \kappa\pi + f)

    :math:`\pi` is log-linear: a margin for each variable in the formula, multiplied, times one symmetric (zero-sum)
    effect for each interaction. :math:`\kappa \to \infty` is the log-linear model
    itself, :math:`\kappa \to 0` the sample.

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
    :math:`\kappa/(\kappa + n)` that the log-linear model has beside the sample is
    spread widely whatever `n`; margins are uniform on the simplex; interaction scales
    half-normal with scale 1.

    Known margins of the population say something of :math:`\kappa` and of the margins,
    too: their likelihood given the sample is Dirichlet-multinomial over the strata,
    with the weights :math:`\kappa\pi + f` summed in each. Within a stratum the
    population is then Dirichlet-multinomial on its own.

    Examples
    --------
    >>> import taciturn as tc
    >>> model = tc.DirichletLogLinear("~ area + religion", priors={"kappa": tc.Prior("LogNormal", mu=5, sigma=1)})
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> sorted(v.name for v in model.build(sample, 2449).free_RVs)
    ['kappa', 'margin_area', 'margin_religion']
    """

    formula: str | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)

    keeps_margins: ClassVar[bool] = True
    title: ClassVar[str] = "Dirichlet-multinomial log-linear model, Bayesian"

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
        return self._build(make_problem(sample, population_size, structural_zeros, known_margins))

    def _build(self, problem: Problem) -> "pm.Model":
        import pymc as pm
        import pytensor.tensor as pt

        terms = self._terms(problem)
        priors = self._priors(problem)
        sizes = _sizes(problem)
        with pm.Model(coords=_labels(problem)) as model:
            hyperparameters = {
                name.removeprefix("kappa_"): pm.Data(name, value)
                for name, value in _hyperparameters(priors["kappa"]).items()
            }
            kappa = priors["kappa"].variable("kappa", parameters=hyperparameters)
            margins = {
                dim: pt.log(
                    priors[f"margin_{dim}"].variable(f"margin_{dim}", dims=dim, size=sizes[dim])
                )
                for (dim,) in (term for term in terms if len(term) == 1)
            }
            full = _main_effects(margins, sizes)
            if interactions := _interactions(terms, sizes):
                scales = [
                    priors[name].variable(name) for name in map(_scale_name, interactions.terms)
                ]
                raw = pm.Normal(_COORDINATES, 0, 1, shape=interactions.size)
                coordinates = raw * pt.stack(scales)[interactions.term]
                between = pt.zeros(interactions.shape)[interactions.row, interactions.column].set(
                    coordinates
                )
                full = full + pt.dot(pt.dot(interactions.left, between), interactions.right.T)
                for number, term in enumerate(interactions.terms):
                    effect = pt.dot(
                        interactions.basis(number), coordinates[interactions.term == number]
                    )
                    shape = [sizes[dim] for dim in term]
                    pm.Deterministic(_effect_name(term), effect.reshape(shape), dims=term)
            full = full.ravel()
            kept = np.flatnonzero(problem.fillable.ravel())
            pi = pm.math.softmax(full[kept])
            counts = pm.Data("counts", problem.counts[kept])
            _dirichlet_multinomial("sample_counts", kappa * pi, counts)
            if problem.known_margins is not None:
                of_stratum = np.eye(problem.known_margins.size)[problem.strata[kept]]
                sampled = pt.dot(counts, of_stratum)
                a = pt.dot(kappa * pi, of_stratum) + sampled
                rest = pm.Data("margins", problem.stratum_sizes) - sampled
                # Of the individuals not sampled: Dirichlet-multinomial over the strata.
                log_p = (pt.gammaln(a + rest) - pt.gammaln(a))[pt.nonzero(rest)[0]].sum()
                pm.Potential(
                    "known_margins", log_p + pt.gammaln(a.sum()) - pt.gammaln(a.sum() + rest.sum())
                )
        return model

    def _terms(self, problem: Problem) -> Terms:
        """Terms of the formula that have something to estimate: a variable with one
        category has not.
        """
        terms = parse_formula(self.formula, problem.variables)
        return tuple(term for term in terms if all(problem.sample.sizes[dim] > 1 for dim in term))

    def _priors(self, problem: Problem) -> dict[str, Prior]:
        terms = self._terms(problem)
        priors = merge_priors(self._default_priors(problem, terms), self.priors)
        _refuse_name_clash(problem, priors, terms)
        return priors

    def _default_priors(self, problem: Problem, terms: Terms) -> dict[str, Prior]:
        priors = {"kappa": Prior("LogNormal", mu=1 + log(problem.sample_size), sigma=1.5)}
        for term in terms:
            if len(term) == 1:
                priors[f"margin_{term[0]}"] = Prior("Dirichlet", a=1.0)
            else:
                priors[_scale_name(term)] = Prior("HalfNormal", sigma=1.0)
        return priors

    def _learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        terms = self._terms(problem)
        if any(len(term) > 1 for term in terms):
            return None
        priors = self._priors(problem)
        dims = [term[0] for term in terms]
        kappa, margins, diagnostics = sample_main_effects(
            problem, dims, priors, settings.total, rng
        )
        posterior = _posterior(problem, kappa, dict(zip(dims, margins, strict=True)), settings)
        return Parameters(posterior, sampler="importance sampling", importance=diagnostics)

    def _learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        terms = self._terms(problem)
        priors = self._priors(problem)
        interactions = _interactions(terms, _sizes(problem))
        names = ["kappa", *(_effect_name(term) for term in terms if len(term) == 1)]
        names += [_COORDINATES, *map(_scale_name, interactions.terms)] if interactions else []
        # The prior of κ depends on the sample size by default, so its parameters are
        # data, too.
        kappa = priors.pop("kappa")
        others = {name: prior.to_dict() for name, prior in priors.items()}
        key = (
            f"{type(self)} {terms} {others} {kappa.distribution} {_labels(problem)}"
            f" {problem.fillable.tobytes()!r}"
        )
        data = {"counts": problem.counts[problem.fillable.ravel()], **_hyperparameters(kappa)}
        if problem.known_margins is not None:
            key += f" margins of {problem.known_margins.dims}"
            data["margins"] = problem.stratum_sizes
        posterior, stats, sampler = sample_posterior(
            lambda: self._build(problem), settings, seed, names, key=key, data=data
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
        for term in self._terms(problem):
            effect = posterior[_effect_name(term)].transpose("chain", "draw", *term).values
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

    def _draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        weights = self._weights(problem, parameters) + problem.counts
        return problem.counts + draw_rest(
            problem, settings.total, weights, draw_dirichlet_multinomial, rng
        )

    def _draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        weights = self._weights(problem, parameters)
        return draw_replicates(problem, settings.total, weights, draw_dirichlet_multinomial, rng)

    def _draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        terms = self._terms(problem)
        if any(len(term) > 1 for term in terms):
            raise ParameterError(
                f"calibration knows main effects only, the formula is {self.formula!r}"
            )
        priors = self._priors(problem)
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
        return {"kappa": kappa, **drawn}, np.array(sample), population

    def _log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
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

    def _log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
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
    coordinates = posterior[_COORDINATES].transpose("chain", "draw", ...).values
    effects = {}
    for number, term in enumerate(interactions.terms):
        scale = posterior[_scale_name(term)].transpose("chain", "draw").values
        effect = interactions.effect(number, coordinates)
        effects[_effect_name(term)] = (
            ("chain", "draw", *term),
            effect * scale.reshape(*scale.shape, *[1] * len(term)),
        )
    (own,) = set(posterior[_COORDINATES].dims) - {"chain", "draw"}
    return posterior.drop_dims([own]).assign(effects)


def _main_effects(margins: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """Sum of the main effects, a matrix: combinations of the first variables'
    categories by those of the others.
    """
    import pytensor.tensor as pt

    sums = []
    for half in halves(sizes):
        total = pt.zeros(1)
        for dim in half:
            total = (total[:, None] + margins.get(dim, np.zeros(sizes[dim]))).ravel()
        sums.append(total)
    return sums[0][:, None] + sums[1]


def _interactions(terms: Terms, sizes: Mapping[str, int]) -> Interactions | None:
    own = tuple(term for term in terms if len(term) > 1)
    return Interactions(own, sizes) if own else None


def _scale_name(term: tuple[str, ...]) -> str:
    return f"scale_{'_'.join(term)}"


def _effect_name(term: tuple[str, ...]) -> str:
    return f"margin_{term[0]}" if len(term) == 1 else f"effect_{'_'.join(term)}"


def _refuse_name_clash(problem: Problem, priors: Mapping[str, Prior], terms: Terms) -> None:
    names = {
        "sample_counts",
        "counts",
        "margins",
        _COORDINATES,
        *priors,
        *(_effect_name(term) for term in terms),
    }
    names |= set(_hyperparameters(priors["kappa"]))
    clash = sorted(names & set(problem.variables))
    if clash:
        raise TableError(
            f"the variable {clash[0]!r} has the name of a parameter of the model: rename it"
        )
    effects = [_effect_name(term) for term in terms]
    twice = sorted({name for name in effects if effects.count(name) > 1})
    if twice:
        raise TableError(f"two interactions would both be named {twice[0]!r}: rename a variable")


def _sizes(problem: Problem) -> dict[str, int]:
    return {dim: problem.sample.sizes[dim] for dim in problem.variables}


def _labels(problem: Problem) -> dict[str, list[Any]]:
    return {dim: problem.sample[dim].values.tolist() for dim in problem.variables}


def _hyperparameters(kappa: Prior) -> dict[str, Floats]:
    return {f"kappa_{name}": np.asarray(value) for name, value in kappa.parameters.items()}


def _dirichlet_multinomial(name: str, alpha: Any, observed: Any) -> Any:
    """Observed Dirichlet-multinomial whose log-probability works on occupied cells
    only: an empty cell adds nothing.
    """
    import pymc as pm
    import pytensor.tensor as pt

    def logp(value: Any, alpha: Any, _size: Any) -> Any:
        n, total = value.sum(), alpha.sum()
        occupied = pt.nonzero(value)[0]
        x, a = value[occupied], alpha[occupied]
        cells = pt.gammaln(a + x) - pt.gammaln(a) - pt.gammaln(x + 1)
        return pt.gammaln(n + 1) + pt.gammaln(total) - pt.gammaln(total + n) + cells.sum()

    def dist(alpha: Any, size: Any, batch: Any) -> Any:
        return pm.DirichletMultinomial.dist(n=size, a=alpha, size=batch)

    return pm.CustomDist(
        name,
        alpha,
        observed.sum(),
        dist=dist,
        logp=logp,
        signature="(n),()->(n)",
        observed=observed,
    )
