"""Chinese restaurant: the urn of the papers with its concentration fitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import lgamma, log
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.estimators.base import Counts, Estimator, Parameters, SamplerSettings, checked_number
from taciturn.estimators.draws import draw_urn, draw_urn_from_nothing
from taciturn.estimators.nuts import check_convergence, sample_posterior
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.problem import Problem, make_problem

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["ChineseRestaurant"]


@dataclass(frozen=True)
class ChineseRestaurant(Estimator):
    r"""Ewens-Pitman urn with the concentration :math:`\theta` fitted by likelihood.

    Individuals join a seen cell with probability :math:`(f_i - \sigma)/(n + \theta)` and open a new one with
    :math:`(\theta + k\sigma)/(n + \theta)`; a new one takes an empty cell at random. The likelihood of the sample is
    that of its partition into `k` cells,

    .. math:: \frac{\prod_{i=1}^{k-1}(\theta + i\sigma)}{(\theta + 1)_{n-1}} \prod_{j=1}^{k} (1 - \sigma)_{f_j - 1}

    With :math:`\sigma = 0` this is the urn of Antal, Shlomo & Elliot (2015), fitted by likelihood instead of by
    moments.

    Parameters
    ----------
    discount : float
        :math:`\sigma` in ``[0, 1)``, held fixed.
    priors : mapping of str to Prior, optional
        Replaces the prior of ``theta``.

    Raises
    ------
    ParameterError
        `discount` outside ``[0, 1)``.
    PriorError
        On `fit`: a prior for another parameter.

    Notes
    -----
    The default prior of ``theta`` is log-normal around the number of cells. A table has `K` cells: when the last empty
    one opens, no further ones do and individuals join the open cells.

    References
    ----------
    Pitman (2006), Combinatorial stochastic processes, Theorem 3.2; Antal, Shlomo & Elliot (2015), Section 5.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> [v.name for v in tc.ChineseRestaurant().build(sample, 2449).free_RVs]
    ['theta']
    """

    discount: float = 0.0
    priors: Mapping[str, Prior] = field(default_factory=dict)

    title: ClassVar[str] = "Chinese restaurant (Ewens-Pitman urn), Bayesian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", checked_number(self.discount, "discount"))
        if self.discount >= 1:
            raise ParameterError(f"discount must be at least 0 and below 1, got {self.discount}")
        object.__setattr__(self, "priors", check_priors(self.priors))

    def build(
        self, sample: xr.DataArray, population_size: int, *, structural_zeros: xr.DataArray | None = None
    ) -> "pm.Model":
        """Return the PyMC model of a sample; its observed variable is ``sample_counts``, cells in row-major order."""
        return self._build(make_problem(sample, population_size, structural_zeros))

    def _build(self, problem: Problem) -> "pm.Model":
        import pymc as pm

        priors = merge_priors({"theta": Prior("LogNormal", mu=log(problem.cells), sigma=1.5)}, self.priors)
        fillable = problem.fillable.ravel()
        with pm.Model() as model:
            theta = priors["theta"].variable("theta")
            _urn("sample_counts", theta, self.discount, problem.counts[fillable])
        return model

    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        posterior, stats, sampler = sample_posterior(self._build(problem), settings, seed, ["theta"])
        check_convergence(posterior, stats, warn=True)
        return Parameters(posterior=posterior, sample_stats=stats, sampler=sampler)

    def _draw_population(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        empty = problem.fillable.ravel() & (problem.counts == 0)
        theta = _theta(parameters).ravel()
        return draw_urn(problem.counts, empty, problem.population_size, theta, rng, discount=self.discount)

    def _draw_replicates(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        theta = _theta(parameters).ravel()
        fillable = problem.fillable.ravel()
        return draw_urn_from_nothing(fillable, problem.sample_size, theta, rng, discount=self.discount)

    def _log_conditionals(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        theta = _theta(parameters)[..., None]
        counts = problem.counts[problem.counts > 0]
        seen = len(counts)
        # A singleton's cell was new to the others: the chance of a new cell, spread over those empty without it.
        new = theta + self.discount * (seen - 1)
        free = problem.cells - seen + 1
        joined = np.where(counts > 1, counts - 1 - self.discount, 1.0)
        with np.errstate(divide="ignore"):
            chance = np.where(counts > 1, joined, new / free)
        return np.log(chance) - np.log(problem.sample_size - 1 + theta)


def _theta(parameters: Parameters) -> npt.NDArray[np.float64]:
    assert parameters.posterior is not None
    return np.asarray(parameters.posterior["theta"].transpose("chain", "draw").values)


def _urn(name: str, theta: Any, discount: float, observed: Counts) -> Any:
    """Observed table whose log-probability is that of its partition, with new cells taken at random."""
    import pymc as pm
    import pytensor.tensor as pt

    size, cells = int(observed.sum()), len(observed)

    def logp(value: Any, theta: Any, _cells: Any) -> Any:
        n = value.sum()
        x = value[pt.nonzero(value)[0]]
        seen = x.shape[0]
        later = pt.arange(1, seen)
        opened = pt.log(theta + later * discount).sum() - pt.gammaln(theta + n) + pt.gammaln(theta + 1)
        joined = (pt.gammaln(x - discount) - lgamma(1 - discount)).sum()
        orders = pt.gammaln(n + 1) - pt.gammaln(x + 1).sum()
        # PyTensor takes gammaln of a small whole number in single precision, hence the cast and the constants.
        labels = pt.gammaln(pt.cast(cells - seen + 1, "float64")) - lgamma(cells + 1)
        return opened + joined + orders + labels

    def random(theta: Any, _cells: Any, rng: Any = None, size_: Any = None, **_: Any) -> Any:
        concentration = np.atleast_1d(theta).astype(float)
        drawn = draw_urn_from_nothing(np.ones(cells, dtype=bool), size, concentration, rng, discount=discount)
        return drawn.reshape(*np.shape(theta), cells)

    return pm.CustomDist(
        name,
        theta,
        np.zeros(cells),
        logp=logp,
        random=random,
        signature="(),(n)->(n)",
        dtype="int64",
        observed=observed,
    )
