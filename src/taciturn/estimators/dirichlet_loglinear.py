"""Dirichlet-multinomial log-linear model: a table that follows a log-linear model more or less closely."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.estimators.base import Counts, Estimator, Parameters, SamplerSettings
from taciturn.estimators.draws import draw_dirichlet_multinomial
from taciturn.estimators.formula import Terms, parse_formula
from taciturn.estimators.nuts import check_convergence, sample_posterior
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.problem import Problem, make_problem

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["DirichletLogLinear"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DirichletLogLinear(Estimator):
    r"""Population proportions around a log-linear model, with the closeness fitted.

    .. math::

        p &\sim \text{Dirichlet}(\kappa \pi), \qquad f \mid p \sim \text{Multinomial}(n, p) \\
        F - f \mid f &\sim \text{DirichletMultinomial}(N - n, \kappa\pi + f)

    :math:`\pi` is log-linear: a margin for each variable in the formula, multiplied, times one symmetric (zero-sum)
    effect for each interaction. :math:`\kappa \to \infty` is the log-linear model itself, :math:`\kappa \to 0` the
    sample.

    Parameters
    ----------
    formula : str, optional
        Hierarchical log-linear formula; main effects without one.
    priors : mapping of str to Prior, optional
        Replaces priors by name. The parameters are ``kappa``; ``margin_<variable>`` for each variable in the formula;
        ``scale_<variable>_<variable>`` for the size of each interaction.

    Raises
    ------
    PriorError
        On `fit`: a prior for a parameter the model does not have.

    Notes
    -----
    Default priors: ``kappa`` is log-normal around `e n`, so that the weight :math:`\kappa/(\kappa + n)` that the
    log-linear model has beside the sample is spread widely whatever `n`; margins are uniform on the simplex;
    interaction scales half-normal with scale 1.

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

    title: ClassVar[str] = "Dirichlet-multinomial log-linear model, Bayesian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))

    def build(
        self, sample: xr.DataArray, population_size: int, *, structural_zeros: xr.DataArray | None = None
    ) -> "pm.Model":
        """Return the PyMC model of a sample, with the table's variables as named dims.

        The observed variable is ``sample_counts``, the cells in row-major order.
        """
        return self._build(make_problem(sample, population_size, structural_zeros))

    def _build(self, problem: Problem) -> "pm.Model":
        import pymc as pm
        import pytensor.tensor as pt

        terms = self._terms(problem)
        priors = merge_priors(self._default_priors(problem, terms), self.priors)
        _refuse_name_clash(problem, priors, terms)
        labels = {dim: problem.sample[dim].values.tolist() for dim in problem.variables}
        sizes = dict(problem.sample.sizes)
        with pm.Model(coords=labels) as model:
            kappa = priors["kappa"].variable("kappa")
            log_pi = pt.zeros(())
            for term in terms:
                shape = [sizes[dim] if dim in term else 1 for dim in problem.variables]
                if len(term) == 1:
                    (dim,) = term
                    margin = priors[f"margin_{dim}"].variable(f"margin_{dim}", dims=dim, size=sizes[dim])
                    effect = pt.log(margin)
                else:
                    name = "_".join(term)
                    scale = priors[f"scale_{name}"].variable(f"scale_{name}")
                    raw = pm.ZeroSumNormal(f"raw_{name}", sigma=1, n_zerosum_axes=len(term), dims=term)
                    effect = pm.Deterministic(f"effect_{name}", scale * raw, dims=term)
                log_pi = log_pi + effect.reshape(shape)
            full = pt.broadcast_to(log_pi, problem.sample.shape).ravel()
            kept = np.flatnonzero(problem.fillable.ravel())
            pi = pm.math.softmax(full[kept])
            _dirichlet_multinomial("sample_counts", kappa * pi, problem.counts[kept])
        return model

    def _terms(self, problem: Problem) -> Terms:
        """Terms of the formula that have something to estimate: a variable with one category has not."""
        terms = parse_formula(self.formula, problem.variables)
        return tuple(term for term in terms if all(problem.sample.sizes[dim] > 1 for dim in term))

    def _default_priors(self, problem: Problem, terms: Terms) -> dict[str, Prior]:
        priors = {"kappa": Prior("LogNormal", mu=1 + log(problem.sample_size), sigma=1.5)}
        for term in terms:
            if len(term) == 1:
                priors[f"margin_{term[0]}"] = Prior("Dirichlet", a=1.0)
            else:
                priors[f"scale_{'_'.join(term)}"] = Prior("HalfNormal", sigma=1.0)
        return priors

    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        terms = self._terms(problem)
        model = self._build(problem)
        names = ["kappa", *(_effect_name(term) for term in terms)]
        names += [f"scale_{'_'.join(term)}" for term in terms if len(term) > 1]
        posterior, stats, sampler = sample_posterior(model, settings, seed, names)
        check_convergence(posterior, stats, warn=True)
        return Parameters(posterior=posterior, sample_stats=stats, sampler=sampler)

    def _weights(self, problem: Problem, parameters: Parameters) -> Floats:
        """κπ of each draw, shape (chains * draws, cells); 0 at structural zeros."""
        posterior = parameters.posterior
        assert posterior is not None
        log_pi: Any = 0.0
        for term in self._terms(problem):
            effect = posterior[_effect_name(term)].transpose("chain", "draw", *term)
            values = effect.values.reshape(
                -1, *[problem.sample.sizes[d] if d in term else 1 for d in problem.variables]
            )
            with np.errstate(divide="ignore"):
                log_pi = log_pi + (np.log(values) if len(term) == 1 else values)
        kappa = posterior["kappa"].transpose("chain", "draw").values.ravel()
        log_pi = np.broadcast_to(log_pi, (len(kappa), *problem.sample.shape)).reshape(len(kappa), -1)
        log_pi = np.where(problem.fillable.ravel(), log_pi, -np.inf)
        pi: Floats = np.exp(log_pi - log_pi.max(axis=1, keepdims=True))
        return kappa[:, None] * pi / pi.sum(axis=1, keepdims=True)

    def _draw_population(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        weights = self._weights(problem, parameters) + problem.counts
        rest = problem.population_size - problem.sample_size
        return problem.counts + draw_dirichlet_multinomial(rest, weights, rng)

    def _draw_replicates(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        return draw_dirichlet_multinomial(problem.sample_size, self._weights(problem, parameters), rng)

    def _log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
        posterior = parameters.posterior
        assert posterior is not None
        occupied = np.flatnonzero(problem.counts)
        kappa = posterior["kappa"].values.reshape(-1, 1)
        weights = self._weights(problem, parameters)[:, occupied]
        terms = np.log(problem.counts[occupied] - 1 + weights) - np.log(problem.sample_size - 1 + kappa)
        return terms.reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)


def _effect_name(term: tuple[str, ...]) -> str:
    return f"margin_{term[0]}" if len(term) == 1 else f"effect_{'_'.join(term)}"


def _refuse_name_clash(problem: Problem, priors: Mapping[str, Prior], terms: Terms) -> None:
    names = {"sample_counts", *priors, *(_effect_name(term) for term in terms)}
    clash = sorted(names & set(problem.variables))
    if clash:
        raise TableError(f"the variable {clash[0]!r} has the name of a parameter of the model: rename it")
    effects = [_effect_name(term) for term in terms]
    twice = sorted({name for name in effects if effects.count(name) > 1})
    if twice:
        raise TableError(f"two interactions would both be named {twice[0]!r}: rename a variable")


def _dirichlet_multinomial(name: str, alpha: Any, observed: Counts) -> Any:
    """Observed Dirichlet-multinomial whose log-probability works on occupied cells only: an empty cell adds nothing."""
    import pymc as pm
    import pytensor.tensor as pt

    size = int(observed.sum())

    def logp(value: Any, alpha: Any) -> Any:
        n, total = value.sum(), alpha.sum()
        occupied = pt.nonzero(value)[0]
        x, a = value[occupied], alpha[occupied]
        cells = pt.gammaln(a + x) - pt.gammaln(a) - pt.gammaln(x + 1)
        return pt.gammaln(n + 1) + pt.gammaln(total) - pt.gammaln(total + n) + cells.sum()

    def dist(alpha: Any, size_: Any) -> Any:
        return pm.DirichletMultinomial.dist(n=size, a=alpha, size=size_)

    return pm.CustomDist(name, alpha, dist=dist, logp=logp, signature="(n)->(n)", observed=observed)
