"""Mixed Poisson log-linear model: cells that depart from a log-linear model by a factor
each, whose spread follows a power of the cell's size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.errors import ParameterError
from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.base import LogLinearEstimator
from taciturn.estimators.mixed_poisson.importance import sample_main_effects
from taciturn.estimators.mixed_poisson.mixing import MIXING, Mixing
from taciturn.estimators.mixed_poisson.model import build_model
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_multinomial
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["MixedPoisson"]

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
        (:math:`\beta`); ``margin_<variable>`` for each variable in the formula;
        ``scale_<variable>_<variable>`` for the size of each interaction.
    mixing : {"inverse Gaussian", "gamma"}
        The distribution of the factors. The inverse Gaussian has a heavier upper and a
        lighter lower tail: a few cells may be far larger than the model says without
        most others being empty.

    Raises
    ------
    ParameterError
        No such `mixing`. On `fit`: known margins, which the model cannot keep.
    PriorError
        On `fit`: a prior for a parameter that the model does not have.

    Notes
    -----
    Default priors: ``nu`` is log-normal around `e n / K`, so that :math:`\nu K` has the
    prior of :math:`\kappa` in `DirichletLogLinear`; ``power`` is uniform between 0 and
    1; margins are uniform on the simplex; interaction scales half-normal with scale 1.

    *The intensity.* With counts that are Poisson with means
    :math:`\theta \pi_i g_i` and a density of :math:`\theta` proportional to
    :math:`1/\theta`, their sum says nothing of anything else, so that the counts given
    their sum are multinomial with the shares above. Given :math:`\theta` the cells are
    independent, and the factors integrate out: the counts are negative binomial with
    gamma factors, and Poisson-inverse Gaussian with the others. ``intensity`` is
    :math:`\theta`, a part of the computation rather than of the model; given it and the
    count, a factor is gamma, or generalised inverse Gaussian.

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
    >>> sorted(fit["posterior"].data_vars)
    ['intensity', 'margin_area', 'margin_religion', 'nu', 'power']
    """

    mixing: str = "inverse Gaussian"

    sized: ClassVar[str] = "nu"
    others: ClassVar[tuple[str, ...]] = ("intensity",)
    caution: ClassVar[str] = (
        "Do not rely on the intervals of R1 and R2 where many cells are nearly impossible: in"
        " repeated samples of one such table of 50,000 people they hardly ever contained the truth."
    )
    title: ClassVar[str] = "Mixed Poisson log-linear model, Bayesian"
    command_name: ClassVar[str] = "mixed-poisson"

    def __post_init__(self) -> None:
        super().__post_init__()
        if str(self.mixing) not in MIXING:  # from a file it may be anything
            raise ParameterError(f"mixing must be one of {list(MIXING)}, got {self.mixing!r:.80}")

    @property
    def variant(self) -> str:
        """The distribution of the factors."""
        return self.mixing

    @property
    def _factors(self) -> Mixing:
        return MIXING[self.mixing]

    def own_priors(self, problem: Problem) -> dict[str, Prior]:
        """Return the default priors of ``nu`` and ``power``."""
        average = problem.sample_size / problem.cells
        return {
            "nu": Prior("LogNormal", mu=1 + log(average), sigma=1.5),
            "power": Prior("Uniform", lower=0.0, upper=1.0),
        }

    def build_for(self, problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
        """Return the PyMC model of a checked sample."""
        return build_model(problem, terms, priors, self._factors)

    def sample_fast(
        self,
        problem: Problem,
        dims: list[str],
        priors: Mapping[str, Prior],
        draws: int,
        rng: np.random.Generator,
    ) -> tuple[dict[str, Floats], list[Floats], ImportanceDiagnostics]:
        """Draw ν, the power and the intensity, and the margins."""
        return sample_main_effects(problem, dims, priors, self._factors, draws, rng)

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the factors given the sample, then the individuals not sampled."""
        log_mean, log_shape = self._cells(problem, parameters)
        # Not 0, so that a sampled cell has a share whatever the parameters.
        kept, mean = problem.fillable.ravel(), np.maximum(np.exp(log_mean), 1e-200)
        sample = problem.counts[kept].astype(float)
        shares = mean * self._factors.draw(sample, mean, np.exp(log_shape), rng)
        rest = problem.population_size - problem.sample_size
        return _over_all(problem, problem.counts[kept] + draw_multinomial(rest, shares, rng))

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size."""
        return self.draw_from_model(problem, parameters, problem.sample_size, rng)

    def draw_from_model(
        self, problem: Problem, parameters: Parameters, size: int, rng: np.random.Generator
    ) -> Counts:
        """Draw a table of so many individuals for each draw of the parameters."""
        log_mean, log_shape = self._cells(problem, parameters)
        logs = log_mean + self._factors.draw_log_prior(np.exp(log_shape), rng)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return _over_all(problem, draw_multinomial(size, shares, rng))

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of p(sample, intensity | parameters), up to a constant."""
        posterior, counts = parameters.posterior, problem.counts[problem.fillable.ravel()]
        assert posterior is not None
        values = self._factors.log_pmf(counts.astype(float), *self._cells(problem, parameters))
        return np.asarray(values.sum(axis=1)).reshape(posterior.sizes["chain"], -1)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats | None:
        r"""Logarithm of ``p(x_i | x_-i, parameters)``, with the intensity as a
        parameter: the harmonic mean over its draws, which leaving-one-out by importance
        sampling takes, leaves the individual out exactly. None for a sample of one:
        without it the intensity would have no proper distribution.
        """
        if problem.sample_size == 1:
            return None
        posterior, counts = parameters.posterior, problem.counts[problem.fillable.ravel()]
        assert posterior is not None
        occupied = np.flatnonzero(counts)
        at = [part[:, occupied] for part in self._cells(problem, parameters)]
        there = counts[occupied].astype(float)
        terms = self._factors.log_pmf(there, *at) - self._factors.log_pmf(there - 1, *at)
        terms -= log(problem.sample_size - 1)
        return terms.reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)

    def _cells(self, problem: Problem, parameters: Parameters) -> tuple[Floats, Floats]:
        """Logarithms of the mean and of the shape of the cells that can be filled,
        (chains * draws, cells).
        """
        posterior = parameters.posterior
        assert posterior is not None
        nu, power, intensity = (
            posterior[name].transpose("chain", "draw").values.reshape(-1, 1)
            for name in ("nu", "power", "intensity")
        )
        shares = self.log_shares(problem, posterior)[:, problem.fillable.ravel()]
        shares = np.asarray(log_softmax(shares, axis=1))
        return np.log(intensity) + shares, np.log(nu) + power * (log(problem.cells) + shares)


def _over_all(problem: Problem, tables: Counts) -> Counts:
    """Tables with the structural zeros."""
    found = np.zeros((len(tables), problem.fillable.size), dtype=np.int64)
    found[:, problem.fillable.ravel()] = tables
    return found
