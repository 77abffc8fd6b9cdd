"""Chinese restaurant: the Ewens-Pitman urn over the K cells of a table, with its
concentration and discount fitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import check_convergence
from taciturn.errors import ParameterError, PriorError
from taciturn.estimators.block_estimator import BlockEstimator, LearnedBlock
from taciturn.estimators.blocks import TableBlock, generators
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.sampling.draws import draw_urn, draw_urn_from_nothing
from taciturn.estimators.sampling.importance import all_converged, proposals_for
from taciturn.estimators.sampling.kernels import LIMITS
from taciturn.estimators.sampling.nuts import sample_posterior
from taciturn.estimators.settings import Counts, Parameters, PriorDraws, SamplerSettings
from taciturn.estimators.unlabelled import Arrays, Learned, arrays_of
from taciturn.estimators.urn.blocks import complete_block, learn_block
from taciturn.estimators.urn.margins import margin_product
from taciturn.estimators.urn.model import urn_data, urn_variable
from taciturn.estimators.urn.quadrature import UrnLikelihood, prior_of, sample_urn_parameters
from taciturn.validate import is_real, quoted

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["ChineseRestaurant"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class ChineseRestaurant(BlockEstimator):
    r"""Ewens-Pitman urn over `K` cells, with concentration :math:`\theta` and discount
    :math:`\sigma` fitted.

    While any cell is empty, the individual who comes after `m` others joins filled cell
    `i`, or opens one of the empty cells, with probabilities

    .. math:: \frac{F_i - \sigma}{m + \theta}, \quad \frac{\theta + k\sigma}{m + \theta}

    where `k` cells are filled. Once the last cell has opened, the urn closes:
    individuals join cell `i` with probability :math:`(F_i - \sigma)/(m - K\sigma)`. The
    sample is the first `n` individuals of the urn, the population its first `N`. The
    likelihood is that of the sample's partition,

    .. math::

        \prod_{i=1}^{k-1}(\theta + i\sigma) \prod_{j=1}^{k} (1 - \sigma)_{f_j - 1}
        \sum_s \frac{P(s)}{(\theta + 1)_{s-1} (s - K\sigma)_{n-s}}

    with :math:`(x)_m = x (x + 1) \cdots (x + m - 1)`. If the sample leaves a cell
    empty, :math:`s = n` and this is exactly Pitman's formula. If it fills all `K`, the
    urn closed with individual `s`, which the table does not show: :math:`P(s)` is the
    distribution of `s` over all orders of the individuals, computed exactly up to
    `n = 512` and from 512 random orders beyond.

    Parameters
    ----------
    discount : float, optional
        :math:`\sigma`: fitted by default. A value in ``[0, 1)`` is held fixed; 0 is the
        urn of Ewens, of Hoppe and of Antal, Shlomo & Elliot (2015). A negative value
        :math:`-\alpha` implies :math:`\theta = K\alpha`, which is the symmetric
        Dirichlet(:math:`\alpha`) over the cells and leaves no parameter to fit.
    base : {"uniform", "log-linear"}
        Which empty cell opens: each with equal probability, or with probability
        proportional to the product of the sample's margins, with 1 added to the count
        of each category (the posterior mean of its proportion under a uniform prior).
        The probabilities of the cells still empty sum to 1. The margins are plugged in:
        their uncertainty is ignored. The likelihood above does not depend on the base;
        if the sample fills all cells, this assumes that the order in which the cells
        opened carries no information about when they did.
    priors : mapping of str to Prior, optional
        Replacements for the priors of ``theta`` and, if it is fitted, of ``discount``,
        whose prior must be a Beta or a Uniform within 0 and 1.

    Raises
    ------
    ParameterError
        A `discount` of 1 or more, or an unknown `base`.
    PriorError
        On `fit`: a prior for a parameter that the model does not have, or a prior of
        ``discount`` that extends beyond ``[0, 1]``.

    Notes
    -----
    Default priors: ``theta`` is log-normal with median `K` and scale
    ``max(1.5, log(K)/3)``, so that for any `K` three standard deviations include both
    urns that fill a single cell and urns that would fill far more than `K`.
    ``discount`` is Beta(1, 2): its density falls from the urn of Ewens at 0 to zero at
    1, where every individual would open a cell of its own, which describes no table.

    The fast path is quadrature on a grid over both parameters; see
    `taciturn.estimators.urn.quadrature`.

    The individual left out in ``log_likelihood`` is taken to be the one who came last:
    for the others, the cell of a lone individual is still empty and, with the
    log-linear base, that individual adds nothing to the margins. Where a sample fills
    every cell this is not quite to leave one out, as the likelihood does not know who
    came last: `loo` then favours the urn.

    References
    ----------
    Pitman (2006), Combinatorial stochastic processes, Theorem 3.2; Antal, Shlomo &
    Elliot (2015), Section 5.2.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.ChineseRestaurant().fit(sample, population_size=2449, random_seed=1)
    >>> sorted(fit["posterior"].data_vars)
    ['discount', 'theta']
    >>> model = tc.ChineseRestaurant(discount=0.0).build(sample, 2449)
    >>> [v.name for v in model.free_RVs]
    ['theta']
    """

    discount: float | None = None
    base: Literal["uniform", "log-linear"] = "uniform"
    priors: Mapping[str, Prior] = field(default_factory=dict)

    title: ClassVar[str] = "Chinese restaurant (Ewens-Pitman urn), Bayesian"
    command_name: ClassVar[str] = "chinese-restaurant"
    fast_sampler: ClassVar[str] = "quadrature with importance sampling"

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", _checked_discount(self.discount))
        if self.base not in ("uniform", "log-linear"):
            raise ParameterError(f"base must be 'uniform' or 'log-linear', got {quoted(self.base)}")
        object.__setattr__(self, "priors", check_priors(self.priors))

    def build(
        self,
        sample: xr.DataArray,
        population_size: int,
        *,
        structural_zeros: xr.DataArray | None = None,
    ) -> "pm.Model":
        """Return the PyMC model of a sample; its observed variable is
        ``sample_counts``, with the cells in row-major order.
        """
        return self._build(make_problem(sample, population_size, structural_zeros))

    def _build(self, problem: Problem) -> "pm.Model":
        import pymc as pm

        priors = self.priors_for(problem)
        fillable = problem.fillable.ravel()
        base = self._base(problem)
        with pm.Model() as model:
            variables: dict[str, Any] = {
                name: prior.variable(name) for name, prior in priors.items()
            }
            theta = variables.get("theta", -problem.cells * (self.discount or 0.0))
            discount = variables.get("discount", self.discount)
            weights = None if base is None else base[fillable]
            urn_variable("sample_counts", theta, discount, problem.counts[fillable], weights)
        return model

    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the priors of those of ``theta`` and ``discount`` that are fitted."""
        if self._is_dirichlet and self.priors:
            raise PriorError(
                f"a prior is given for {sorted(self.priors)}, but a negative discount leaves none"
                " to fit"
            )
        defaults = {}
        if not self._is_dirichlet:
            cells = log(problem.cells)
            defaults["theta"] = Prior("LogNormal", mu=cells, sigma=max(1.5, cells / 3))
        if self.discount is None:
            defaults["discount"] = Prior("Beta", alpha=1.0, beta=2.0)
        priors = merge_priors(defaults, self.priors)
        if "discount" in priors:
            prior = priors["discount"]
            if (
                prior.distribution not in ("Beta", "Uniform")
                or prior.parameters.get("upper", 1.0) > 1
            ):
                raise PriorError(
                    "'discount' lies in [0, 1): its prior must be a Beta or a Uniform there, got"
                    f" {prior!r}"
                )
        return priors

    @property
    def _is_dirichlet(self) -> bool:
        return self.discount is not None and self.discount < 0

    def _base(self, problem: Problem) -> Floats | None:
        return (
            None
            if self.base == "uniform"
            else margin_product(problem.counts.reshape(problem.sample.shape))
        )

    def learn_unlabelled(
        self, problem: Problem, draws: int, rng: np.random.Generator
    ) -> Learned | None:
        """Draw the parameters by quadrature; return None if the posterior cannot be
        computed.
        """
        priors = self.priors_for(problem)
        if self._is_dirichlet:
            return Learned({})
        likelihood = UrnLikelihood(problem.counts, problem.cells)
        found = sample_urn_parameters(likelihood, priors, self.discount, draws, rng)
        if found is None:
            return None
        theta, discount, diagnostics = found
        fitted = {"theta": theta, "discount": discount}
        return Learned({name: fitted[name] for name in fitted if name in priors}, diagnostics)

    def label(self, problem: Problem, draws: Arrays, settings: SamplerSettings) -> xr.Dataset:
        """Return the draws with chain and draw."""
        shape = (settings.chains, settings.draws)
        coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
        return xr.Dataset(
            {name: (("chain", "draw"), values.reshape(shape)) for name, values in draws.items()},
            coords=coords,
        )

    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draw the parameters by NUTS."""
        priors = self.priors_for(problem)
        if not priors:
            return Parameters()
        exact = {name: prior.to_dict() for name, prior in priors.items()}
        posterior, stats, sampler = sample_posterior(
            lambda: self._build(problem),
            settings,
            seed,
            list(priors),
            key=f"{type(self)} {self.discount!r} {exact} {problem.cells}",
            data=urn_data(problem.counts[problem.fillable.ravel()]),
        )
        check_convergence(posterior, stats, warn=True)
        return Parameters(posterior=posterior, sample_stats=stats, sampler=sampler)

    def _theta_and_discount(
        self, problem: Problem, draws: int, parameters: Arrays
    ) -> tuple[Floats, Floats]:
        """Both parameters at each draw, those that are fixed too."""
        fixed = self.discount or 0.0
        theta = parameters.get("theta", np.full(draws, -problem.cells * fixed))
        return theta, parameters.get("discount", np.full(draws, fixed))

    def _of_chains(self, problem: Problem, parameters: Parameters) -> tuple[Floats, Floats]:
        """Both parameters at each draw, (chain, draw)."""
        posterior = parameters.posterior
        shape = (1, 1) if posterior is None else (posterior.sizes["chain"], -1)
        draws = 1 if posterior is None else posterior.sizes["chain"] * posterior.sizes["draw"]
        found = arrays_of(problem, parameters)
        theta, discount = self._theta_and_discount(problem, draws, found)
        return theta.reshape(shape), discount.reshape(shape)

    def complete(
        self, problem: Problem, draws: int, parameters: Arrays, rng: np.random.Generator
    ) -> Counts:
        """Continue the urn from the sample."""
        empty = problem.fillable.ravel() & (problem.counts == 0)
        theta, discount = self._theta_and_discount(problem, draws, parameters)
        return draw_urn(
            problem.counts,
            empty,
            problem.population_size,
            theta,
            rng,
            discount=discount,
            base=self._base(problem),
        )

    def learn_block(
        self, block: TableBlock, draws: int, rngs: Sequence[np.random.Generator]
    ) -> LearnedBlock | None:
        """Draw those of each sample that leaves a cell empty, if any are fitted."""
        if type(self) is not ChineseRestaurant or self.base != "uniform":
            return None
        priors = self.priors_for(block.first)
        theta = np.full((len(block.counts), draws), -block.first.cells * (self.discount or 0.0))
        sigma = np.full(theta.shape, self.discount or 0.0)
        if self._is_dirichlet:
            return LearnedBlock({"theta": theta, "sigma": sigma}, np.ones(len(theta), dtype=bool))
        urn, number = prior_of(priors, self.discount), proposals_for(draws)
        counts = np.compress(block.fillable, block.counts, axis=1)
        found = learn_block(counts, urn, number, generators(rngs), theta, sigma)
        return LearnedBlock({"theta": theta, "sigma": sigma}, all_converged(*found))

    def complete_block(
        self,
        block: TableBlock,
        parameters: Arrays,
        turns: npt.NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
        out: Counts,
    ) -> None:
        """Continue the urn from each sample."""
        samples, urns = (block.counts, block.fillable), (parameters["theta"], parameters["sigma"])
        complete_block(samples, block.missing, urns, turns, LIMITS, generators(rngs), out)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size from the urn."""
        draws = arrays_of(problem, parameters)
        theta, discount = self._theta_and_discount(problem, settings.total, draws)
        return draw_urn_from_nothing(
            problem.fillable.ravel(),
            problem.sample_size,
            theta,
            rng,
            discount=discount,
            base=self._base(problem),
        )

    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters, samples and populations.

        Because the urn closes, a sample is its first `n` individuals rather than a
        random choice of `n` out of `N`: the population is continued from the sample.
        The margins of the log-linear base have no prior and are those of `problem`; a
        fit to a simulated sample would plug in the margins of that sample.
        """
        parameters = {
            name: prior.draw(rng, draws) for name, prior in self.priors_for(problem).items()
        }
        theta, discount = self._theta_and_discount(problem, draws, parameters)
        fillable, base = problem.fillable.ravel(), self._base(problem)
        sample = draw_urn_from_nothing(
            fillable, problem.sample_size, theta, rng, discount=discount, base=base
        )
        empty = fillable & (sample == 0)
        size = problem.population_size
        population = draw_urn(sample, empty, size, theta, rng, discount=discount, base=base)
        return PriorDraws(parameters, sample, population)

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of the probability of the sample's partition."""
        assert parameters.posterior is not None
        return UrnLikelihood(problem.counts, problem.cells)(*self._of_chains(problem, parameters))

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of the probability that the next individual, after all others,
        joins or opens each occupied cell.
        """
        theta, sigma = (x[..., None] for x in self._of_chains(problem, parameters))
        counts = problem.counts[problem.counts > 0]
        seen, others = len(counts), problem.sample_size - 1
        new = theta + sigma * (seen - 1)
        with np.errstate(divide="ignore"):
            chance = np.where(counts > 1, counts - 1 - sigma, new * self._share_of_new(problem))
            closed = (counts > 1) & (
                seen == problem.cells
            )  # closed for the others too: they fill every cell
            return np.log(chance) - np.log(
                np.where(closed, others - problem.cells * sigma, others + theta)
            )

    def _share_of_new(self, problem: Problem) -> Floats:
        """Probability that a new colour would take each occupied cell, had that cell
        been empty; valid for cells of lone individuals only.
        """
        counts = problem.counts
        occupied = np.flatnonzero(counts)
        shares = np.full(len(occupied), 1 / (problem.cells - len(occupied) + 1))
        if self.base == "uniform":
            return shares
        empty = problem.fillable.ravel() & (counts == 0)
        for i in np.flatnonzero(counts[occupied] == 1):
            others = counts.copy()
            others[occupied[i]] = 0
            weights = margin_product(others.reshape(problem.sample.shape))
            own = weights[occupied[i]]
            shares[i] = own / (own + weights[empty].sum())
        return shares


def _checked_discount(value: Any) -> float | None:
    if value is None:
        return None
    if not is_real(value) or not value < 1:
        raise ParameterError(
            f"discount must be a finite number below 1, or None to fit it; got {quoted(value)}"
        )
    return float(value)
