"""Mixed Poisson log-linear model: cells that depart from a log-linear model by a factor
each, whose spread follows a power of the cell's size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, prod
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, PriorError
from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.base import LogLinearEstimator
from taciturn.estimators.log_linear.model import concentration_name, effect_name
from taciturn.estimators.mixed_poisson.blocks import of_draws
from taciturn.estimators.mixed_poisson.importance import sample_parameters
from taciturn.estimators.mixed_poisson.mixing import MIXING, Mixing, log_not_all, mixing_with
from taciturn.estimators.mixed_poisson.model import build_model
from taciturn.estimators.mixed_poisson.shares import Strata
from taciturn.estimators.mixed_poisson.target import OPTIONAL
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_multinomial
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings
from taciturn.estimators.strata import draw_replicates, draw_rest, log_stratum_chance
from taciturn.estimators.unlabelled import Arrays, Learned, arrays_of
from taciturn.validate import quoted, true_or_false

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["MixedPoisson"]

MIXTURE: Final = "mixture"
WALD: Final = "inverse Gaussian"
_MOST_COORDINATES: Final = 120  # of interactions, beyond which too few proposals count
_MOST_EFFECTS: Final = 250  # that they make, of which each pair is looked at

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class MixedPoisson(LogLinearEstimator):
    r"""Population proportions that depart from a log-linear model by a random factor in
    each cell; how widely the factors spread is a power of the cell's expected size.

    .. math::

        p_i &\propto \pi_i g_i, \qquad
        \operatorname{E} g_i = 1, \quad \operatorname{Var} g_i = 1 / r_i, \qquad
        r_i = \nu (K \pi_i)^\beta \\
        f \mid p &\sim \text{Multinomial}(n, p), \qquad
        F - f \mid f, p \sim \text{Multinomial}(N - n, p)

    for `K` cells that can be filled. :math:`\pi` is log-linear: the product of a margin
    for each variable in the formula and a symmetric (zero-sum) effect for each
    interaction. A cell of average size has a factor with variance :math:`1/\nu`. With
    :math:`\beta = 0` all factors spread alike; with :math:`\beta = 1` and gamma factors
    this is `DirichletLogLinear` with :math:`\kappa = \nu K`, in which small cells
    depart widely.

    Parameters
    ----------
    formula : str, optional
        Hierarchical log-linear formula; main effects without one.
    priors : mapping of str to Prior, optional
        Replaces priors by name. The parameters are ``nu`` (:math:`\nu`), ``power``
        (:math:`\beta`); ``share`` (:math:`\omega`) of a mixture; ``inflation``
        (:math:`\zeta`) with zeros;
        ``concentration_<variable>`` for each variable in the formula,
        how even its margin is, or in its place ``margin_<variable>``, a Dirichlet prior
        with a concentration that is known; ``scale_<variable>_<variable>`` for the size
        of each interaction.
    mixing : {"mixture", "gamma", "inverse Gaussian"}
        The distribution of the factors. The inverse Gaussian has a heavier upper and a
        lighter lower tail than the gamma distribution: a few cells may be far larger
        than the model says without most others being empty. In a mixture the factor of
        each cell is inverse Gaussian with probability :math:`\omega`, and gamma
        otherwise.
    zero_inflated : bool
        Whether there may be cells where nobody can be, besides those that are named as
        structural zeros: a factor is 0 with probability :math:`\zeta`, and as above
        otherwise. R1 and R2 are those of all cells, these included.

    Raises
    ------
    ParameterError
        No such `mixing`, or `zero_inflated` is neither True nor False. On `fit`: an
        effective size with inverse Gaussian factors.
    PriorError
        A prior of ``share`` or ``inflation`` that is not between 0 and 1. On `fit`: a
        prior for a parameter that the model does not have.

    Notes
    -----
    Default priors: ``nu`` is log-normal around `e n / K`, so that :math:`\nu K` has the
    prior of :math:`\kappa` in `DirichletLogLinear`; ``power`` is uniform between 0 and
    1, and so are ``share`` and ``inflation``; interaction scales are half-normal with
    scale 1. The margin of a variable is Dirichlet with a concentration `a` for all
    categories, which is Pareto with shape 1/4 and at least 1/2: from Jeffreys' prior up
    to a margin that is even.

    *The intensity.* With counts that are Poisson with means
    :math:`\theta \pi_i g_i` and a density of :math:`\theta` proportional to
    :math:`1/\theta`, their sum says nothing of anything else, so that the counts given
    their sum are multinomial with the shares above. Given :math:`\theta` the cells are
    independent, and the factors integrate out: the counts are negative binomial with
    gamma factors, and Poisson-inverse Gaussian with the others. ``intensity`` is
    :math:`\theta`, a part of the computation rather than of the model; given it and the
    count, a factor is gamma, or generalised inverse Gaussian.

    *Zeros.* Given the parameters, the odds that nobody can be in an empty cell of the
    sample are :math:`\zeta : (1 - \zeta) p_0`, where :math:`p_0` is the probability
    that it is empty otherwise. Somebody can be in some cell of each stratum, or of the
    table: the prior of the factors is conditional on that.

    *Known margins and strata.* Given the sizes of the strata, samples and populations
    of each are multinomial of their own, whatever the sampling fractions, and there is
    an intensity for each stratum. The sizes take the place of the effects that say how
    large a stratum is, and say nothing else.

    *Weights.* Smoothed over the table they say at which rate :math:`c_i` people of each
    cell were sampled, and the sample is multinomial with shares in proportion to
    :math:`c_i p_i`, who was not sampled with :math:`(1 - c_i) p_i`. With an effective
    size below `n` the counts are scaled to it, and the factors are gamma.

    References
    ----------
    Bethlehem, Keller & Pannekoek (1990), Disclosure control of microdata, JASA 85
    (gamma, :math:`\beta = 0`); Carlson (2002), Assessing microdata disclosure risk
    using the Poisson-inverse Gaussian distribution, Statistics in Transition 5.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.MixedPoisson().fit(sample, population_size=2449, random_seed=1)
    >>> sorted(fit["posterior"].data_vars)[:3]
    ['concentration_area', 'concentration_religion', 'intensity']
    >>> bool(fit["posterior"]["concentration_area"].median() > 10)  # areas are alike
    True
    """

    mixing: str = MIXTURE
    zero_inflated: bool = False

    sized: ClassVar[str] = "nu"
    others: ClassVar[tuple[str, ...]] = ("intensity",)
    reserved: ClassVar[tuple[str, ...]] = ("log_relative_intensity",)
    caution: ClassVar[str] = (
        "Its intervals for R1 and R2 of large tables of flows, a few of whose cells are far larger"
        " than the others, are often too narrow."
    )
    keeps_margins: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    title: ClassVar[str] = "Mixed Poisson log-linear model, Bayesian"
    command_name: ClassVar[str] = "mixed-poisson"

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [MIXTURE, *MIXING]
        if str(self.mixing) not in known:  # from a file it may be anything
            raise ParameterError(f"mixing must be one of {known}, got {quoted(self.mixing)}")
        inflated = true_or_false(self.zero_inflated, "zero_inflated")
        object.__setattr__(self, "zero_inflated", inflated)
        for name in OPTIONAL:
            prior = self.priors.get(name)
            if prior is not None and prior.quantile(1.0) > 1:
                raise PriorError(f"{name} is a probability: a prior between 0 and 1, got {prior}")

    @property
    def variant(self) -> str:
        """The distribution of the factors."""
        return f"{self.mixing}, with zeros" if self.zero_inflated else self.mixing

    def check_design(self, problem: Problem) -> None:
        """Raise `ParameterError` for what inverse Gaussian factors cannot take."""
        super().check_design(problem)
        if not problem.whole and self.mixing == WALD:
            raise ParameterError(
                "with an effective_size below the sample's counts are not whole, which needs gamma"
                " factors: use mixing='gamma', or leave it out"
            )

    def terms_for(self, problem: Problem) -> Terms:
        """Return the terms of the formula, but for those that say how large the strata
        are.
        """
        known = set() if problem.known_margins is None else set(problem.known_margins.dims)
        return tuple(term for term in super().terms_for(problem) if not set(term) <= known)

    def fixed_in_model(self, problem: Problem) -> str:
        """Return which strata have a sample."""
        return f" sampled {Strata(problem, sampled=True).kept.tobytes()!r}"

    def monitored(self, posterior: xr.Dataset) -> xr.Dataset:
        """Return the posterior but the intensities of strata that have no sample."""
        intensity = posterior["intensity"]
        flat = intensity.values.reshape(*intensity.shape[:2], -1)
        sampled = flat[..., flat.any(axis=(0, 1))]
        own = posterior.drop_vars("intensity")
        return own.assign(intensity=(("chain", "draw", "sampled_stratum"), sampled))

    def _mixes(self, problem: Problem) -> bool:
        """Whether factors may be of either kind: counts that are not whole need gamma
        ones.
        """
        return self.mixing == MIXTURE and problem.whole

    @property
    def _pure(self) -> float:
        """The share of inverse Gaussian factors where it has no prior."""
        return float(self.mixing == WALD)

    def own_priors(self, problem: Problem) -> dict[str, Prior]:
        """Return the default priors of what the factors are like."""
        average, between = problem.sample_size / problem.cells, Prior("Uniform", lower=0, upper=1)
        priors = {"nu": Prior("LogNormal", mu=1 + log(average), sigma=1.5), "power": between}
        optional = {"share": self._mixes(problem), "inflation": self.zero_inflated}
        return priors | {name: between for name, there in optional.items() if there}

    def margin_prior(self, dim: str) -> dict[str, Prior]:
        """Return the default prior of how even a margin is, unless the margin has been
        given one.
        """
        if effect_name((dim,)) in self.priors:
            return super().margin_prior(dim)
        return {concentration_name(dim): Prior("Pareto", alpha=0.25, m=0.5)}

    def build_for(self, problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
        """Return the PyMC model of a checked sample."""
        return build_model(problem, terms, priors, self._pure)

    def sample_fast(
        self,
        problem: Problem,
        terms: Terms,
        priors: Mapping[str, Prior],
        draws: int,
        rng: np.random.Generator,
    ) -> Learned | None:
        """Draw all parameters; None where there are too many interactions."""
        sizes = [[problem.sizes[dim] for dim in term] for term in terms if len(term) > 1]
        coordinates = sum(prod(size - 1 for size in own) for own in sizes)
        if coordinates > _MOST_COORDINATES or sum(map(prod, sizes)) > _MOST_EFFECTS:
            return None
        found, diagnostics = sample_parameters(problem, terms, priors, self._pure, draws, rng)
        found["intensity"] = _over_strata(problem, found["intensity"])
        return Learned(found, diagnostics)

    def draw_others(
        self, problem: Problem, draws: int, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return an intensity, which belongs to the computation."""
        ones = np.ones((draws, len(Strata(problem, sampled=True).kept)))
        return {"intensity": _over_strata(problem, ones)}

    def complete(
        self, problem: Problem, draws: int, parameters: Arrays, rng: np.random.Generator
    ) -> Counts:
        """Draw the individuals not sampled, stratum by stratum of the known margins,
        given factors that the sample informs.
        """
        strata = Strata(problem, sampled=False)
        seen = np.isfinite(strata.log_start)[strata.of_cell]  # not where nobody was sampled
        told = problem.learned_from[strata.seen]
        weighted = problem.weighting is not None
        log_left = np.log(np.maximum(1 - problem.rates[strata.seen], 1e-300)) if weighted else None

        def populations(parameters: Arrays, rng: np.random.Generator) -> Counts:
            log_shares, log_mean, log_shape = self._cells(problem, strata, parameters)
            mixing, log_factors = self._factors(problem, parameters), np.empty_like(log_mean)
            mean, shape = np.maximum(np.exp(log_mean[:, seen]), 1e-200), np.exp(log_shape)
            with np.errstate(divide="ignore"):  # r may vanish, too
                log_factors[:, seen] = np.log(mixing.draw(told[seen], mean, shape[:, seen], rng))
            others = strata.of_cell[~seen]
            log_factors[:, ~seen] = mixing.draw_log_prior(shape[:, ~seen], others, rng)
            if log_left is not None:
                log_factors += log_left
            weights = strata.shares(log_shares + log_factors)
            return problem.counts + draw_rest(problem, len(weights), weights, draw_multinomial, rng)

        return of_draws(populations, parameters, len(strata.seen), rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size; with weights each cell at its own rate."""
        strata = Strata(problem, sampled=False)

        def samples(parameters: Arrays, rng: np.random.Generator) -> Counts:
            weights = self._from_model(problem, strata, parameters, rng) * problem.rates
            return draw_replicates(problem, len(weights), weights, draw_multinomial, rng)

        return of_draws(samples, arrays_of(problem, parameters), len(strata.seen), rng)

    def draw_from_model(
        self, problem: Problem, parameters: Arrays, size: int, rng: np.random.Generator
    ) -> Counts:
        """Draw a table of so many individuals for each draw of the parameters."""
        strata = Strata(problem, sampled=False)

        def tables(parameters: Arrays, rng: np.random.Generator) -> Counts:
            return draw_multinomial(size, self._from_model(problem, strata, parameters, rng), rng)

        return of_draws(tables, parameters, len(strata.seen), rng)

    def _from_model(
        self, problem: Problem, strata: Strata, parameters: Arrays, rng: np.random.Generator
    ) -> Floats:
        """Shares of all cells, with factors that no sample informs."""
        log_shares, _, log_shape = self._cells(problem, strata, parameters)
        mixing = self._factors(problem, parameters)
        factors = mixing.draw_log_prior(np.exp(log_shape), strata.of_cell, rng)
        return strata.shares(log_shares + factors)

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of p(sample, intensity | parameters), up to a constant."""
        posterior = parameters.posterior
        assert posterior is not None
        strata = Strata(problem, sampled=False)
        counts = problem.learned_from[strata.seen]

        def joint(parameters: Arrays) -> Floats:
            _, *cells = self._cells(problem, strata, parameters)
            return self._factors(problem, parameters).log_pmf(counts, *cells).sum(axis=1)

        drawn = arrays_of(problem, parameters)
        values = of_draws(joint, drawn, len(counts))
        if self.zero_inflated:
            values -= log_not_all(drawn["inflation"].ravel(), Strata(problem, sampled=True).cells)
        return values.reshape(posterior.sizes["chain"], -1)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats | None:
        r"""Logarithm of ``p(x_i | x_-i, parameters)``, with the intensity as a
        parameter: the harmonic mean over its draws, which leaving-one-out by importance
        sampling takes, leaves the individual out exactly. None for a sample, or one of
        a stratum, of one: without it the intensity would have no proper distribution;
        and with weights, as the sampling rates are learned from those of all.
        """
        of_stratum = np.bincount(problem.strata, weights=problem.counts)[problem.strata]
        others = of_stratum[problem.occupied] - 1
        if problem.weighting is not None or not others.all():
            return None
        posterior = parameters.posterior
        assert posterior is not None
        strata = Strata(problem, sampled=False)
        counts = problem.counts[strata.seen].astype(float)
        occupied = np.flatnonzero(counts)
        there = counts[occupied]

        def ratios(parameters: Arrays) -> Floats:
            _, *cells = self._cells(problem, strata, parameters)
            cells = [part[:, occupied] for part in cells]
            mixing = self._factors(problem, parameters)
            return mixing.log_pmf(there, *cells) - mixing.log_pmf(there - 1, *cells)

        terms = of_draws(ratios, arrays_of(problem, parameters), len(counts))
        terms += log_stratum_chance(problem) - np.log(others)
        return terms.reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)

    def _factors(self, problem: Problem, parameters: Arrays) -> Mixing:
        """The distribution of the factors at each draw."""
        share = parameters["share"].ravel() if self._mixes(problem) else self._pure
        return mixing_with(share, parameters["inflation"].ravel() if self.zero_inflated else 0.0)

    def _cells(
        self, problem: Problem, strata: Strata, parameters: Arrays
    ) -> tuple[Floats, Floats, Floats]:
        """Logarithms of the share, the mean and the shape of the cells that can be
        filled, (draws, cells).
        """
        draws = len(parameters["nu"])
        shares = strata.log_shares(self.log_shares(problem, draws, parameters)[:, strata.seen])
        intensity = parameters["intensity"].reshape(draws, -1)[:, strata.kept]
        with np.errstate(divide="ignore"):
            log_intensity = np.log(intensity)
        log_nu, power = np.log(parameters["nu"].ravel()), parameters["power"].ravel()
        return shares, *strata.means_and_shapes(shares, log_intensity, log_nu, power)


def _over_strata(problem: Problem, intensity: Floats) -> Floats:
    """Intensities of the strata that have a sample in their places among all, 0 in
    others; without known margins the only one.
    """
    if problem.known_margins is None:
        return intensity[:, 0]
    found = np.zeros((len(intensity), problem.known_margins.size))
    found[:, Strata(problem, sampled=True).kept] = intensity
    return found.reshape(-1, *problem.known_margins.shape)
