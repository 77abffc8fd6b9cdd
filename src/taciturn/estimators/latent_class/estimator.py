"""Latent classes: a large sparse table as a mixture of tables whose variables are
independent.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import check_convergence
from taciturn.errors import ParameterError
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.latent_class.chain import Chain, Draw, Layout, sticks
from taciturn.estimators.priors import (
    Prior,
    check_priors,
    merge_priors,
)
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_multinomial
from taciturn.estimators.settings import (
    Counts,
    Parameters,
    PriorDraws,
    SamplerSettings,
)
from taciturn.progress import progress_bar

__all__ = ["LatentClass"]

Floats = npt.NDArray[np.float64]
_THIN: Final = 5
"""Sweeps per draw after the warm-up."""
_NAMES: Final = frozenset(
    {"class", "classes", "concentration", "expected_tau1", "sample_coverage", "weight"}
)


@dataclass(frozen=True, repr=False)
class LatentClass(BayesianEstimator):
    r"""Mixture of latent classes within which the variables are independent, with as
    many classes as the data require.

    .. math::

        \pi(x) &= \sum_h w_h \prod_j \psi_{hj}(x_j), \qquad
        w_h = v_h \prod_{g < h} (1 - v_g), \quad v_h \sim \text{Beta}(1, \alpha) \\
        \psi_{hj} &\sim \text{Dirichlet}(b_j / d_j, \dots, b_j / d_j) \\
        f &\sim \text{Multinomial}(n, \pi), \qquad
        F - f \sim \text{Multinomial}(N - n, \pi)

    for variables with :math:`d_j` categories: a Dirichlet process mixture of products
    of multinomials. It is meant for large, nearly empty tables of three to eight
    variables, where the interactions of a log-linear model would have to be chosen. Its
    cost grows with the sample and the number of variables, not with the cells.

    Parameters
    ----------
    priors : mapping of str to Prior, optional
        Replacements for priors, by name. The parameters are ``concentration``
        (:math:`\alpha`) and ``profile_<variable>`` (:math:`b_j`, how similar the
        classes are in that variable: small where each class has its own categories).

    Raises
    ------
    PriorError
        On `fit`: a prior for a parameter that the model does not have.
    ParameterError
        On `fit`: ``method="nuts"``, or known margins, which the sampler cannot use.
    EstimationError
        On `fit`: structural zeros that take up nearly all of the fitted distribution.

    Notes
    -----
    *Priors.* The concentration is Gamma(1/4, 1/4) as in Dunson & Xing; :math:`b_j` is
    log-normal with median 1 and standard deviation 2 on the log scale, where they and
    Manrique-Vallier & Reiter use the uniform :math:`b_j = d_j`.

    *Sampler.* A Gibbs sampler with weights and shares integrated out draws the class of
    each individual given all others (Neal 2000, algorithm 3), and :math:`\alpha` and
    :math:`b_j` by slice sampling; further steps split and merge classes (Jain & Neal
    2004). There are five sweeps per draw after the warm-up and one per draw during it.
    Given the classes, weights and shares are drawn exactly, including those of classes
    without a sampled individual, until less than 1 in 10,000 of the population is left
    for the last. The number of classes has no limit. The order of classes has no
    meaning; they are sorted by weight. Convergence is judged by what the classes imply
    for the risk rather than by the classes themselves: ``expected_tau1``,
    :math:`\sum_{f_i = 1} (1 - \pi_i)^{N - n}`, and ``sample_coverage``,
    :math:`\sum_{f_i > 0} \pi_i`, as well as R2. ``concentration`` and ``classes``, the
    number of classes with a sampled individual, mix slowly, as similar classes come and
    go.

    *Structural zeros.* The population is the mixture without them, with :math:`\pi`
    renormalised over the other cells. The sampler adds the individuals that the model
    would have put there (Manrique-Vallier & Reiter 2014).

    *What it is not for.* Tables of two variables, above all tables by area: there,
    classes add nothing to the rows; use `LinearPool`, which was chosen for its
    coverage.

    References
    ----------
    Dunson & Xing (2009), Nonparametric Bayes modeling of multivariate categorical data,
    JASA 104; Manrique-Vallier & Reiter (2012), Estimating identification disclosure
    risk using mixed membership models, JASA 107; Manrique-Vallier & Reiter (2014),
    Bayesian estimation of discrete multivariate latent structure models with structural
    zeros, JCGS 23; Neal (2000), Markov chain sampling methods for Dirichlet process
    mixture models, JCGS 9.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> settings = {"draws": 500, "tune": 200, "random_seed": 1, "progressbar": False}
    >>> fit = tc.LatentClass().fit(sample, population_size=2449, **settings)
    >>> sorted(fit["posterior"].data_vars)[:4]
    ['classes', 'concentration', 'expected_tau1', 'profile_area']
    """

    priors: Mapping[str, Prior] = field(default_factory=dict)

    caution: ClassVar[str] = (
        "Do not rely on the intervals of R1 and R2: in repeated samples of eight-variable tables,"
        " the intervals of tau1 contained the truth as often as they should, those of R1 and R2"
        " rarely or never where single cells depart from the classes."
    )
    title: ClassVar[str] = "Latent classes: Dirichlet process mixture of independent variables"
    command_name: ClassVar[str] = "latent-class"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))

    def monitored(self, posterior: xr.Dataset) -> xr.Dataset:
        """Return what the classes imply for the risk, to which neither their order nor
        their number matters.
        """
        told = posterior[["expected_tau1", "sample_coverage"]]
        varying = [name for name, values in told.data_vars.items() if float(values.std()) > 0]
        return told[varying] if varying else posterior[["concentration"]]

    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the priors of the concentration and of the profile weights."""
        defaults = {"concentration": Prior("Gamma", alpha=0.25, beta=0.25)}
        defaults |= {
            f"profile_{dim}": Prior("LogNormal", mu=0.0, sigma=2.0) for dim in problem.variables
        }
        shares = {f"share_{dim}" for dim in problem.variables}
        problem.refuse_names({*defaults, *shares, *_NAMES})
        return merge_priors(defaults, self.priors)

    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters:
        """Draw the parameters by collapsed Gibbs sampling, one thread per chain."""
        priors = self.priors_for(problem)
        stop = Event()

        def run(own: np.random.Generator, show: bool) -> list[Draw]:
            chain = Chain(problem, priors, own)
            kept = []
            sweeps = settings.tune + settings.draws
            title, shown = "latent classes, first chain", show and settings.progressbar
            with progress_bar(title, sweeps, shown=shown) as bar:
                for number in range(sweeps):
                    if stop.is_set():
                        break
                    for _ in range(_THIN if number >= settings.tune else 1):
                        chain.sweep()
                    if number >= settings.tune:
                        kept.append(chain.draw())
                    bar.advance()
            return kept

        with ThreadPoolExecutor(min(settings.chains, os.cpu_count() or 1)) as pool:
            jobs = [
                pool.submit(run, own, number == 0)
                for number, own in enumerate(rng.spawn(settings.chains))
            ]
            try:
                chains = [job.result() for job in jobs]
            finally:
                stop.set()
        posterior = _posterior(problem, chains)
        check_convergence(self.monitored(posterior), None, warn=True)
        return Parameters(posterior, sampler="collapsed Gibbs")

    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Refuse: the model has a sampler of its own."""
        raise ParameterError("LatentClass has a sampler of its own: use method='fast'")

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the unsampled individuals from the mixture."""
        rest = problem.population_size - problem.sample_size
        return problem.counts + draw_multinomial(rest, _all_shares(problem, parameters), rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size from the mixture."""
        return draw_multinomial(problem.sample_size, _all_shares(problem, parameters), rng)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of the mixture's share of each occupied cell."""
        shares = _all_shares(problem, parameters)
        terms: Floats = np.log(shares[:, problem.occupied]) - np.log(
            shares.sum(axis=1, keepdims=True)
        )
        assert parameters.posterior is not None
        return terms.reshape(
            parameters.posterior.sizes["chain"], parameters.posterior.sizes["draw"], -1
        )

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of the multinomial probability of the sample, up to a constant."""
        return self.log_conditionals(problem, parameters) @ problem.counts[problem.occupied]

    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters, samples and populations."""
        priors = self.priors_for(problem)
        parameters = {name: prior.draw(rng, draws) for name, prior in priors.items()}
        table, fillable = Layout(problem), problem.fillable.ravel()
        shares = np.zeros((draws, problem.sample.size))
        for number in range(draws):
            concentration = parameters["concentration"][number]
            weights = [parameters[f"profile_{dim}"][number] for dim in problem.variables]
            each = np.repeat(np.divide(weights, table.sizes), table.sizes)
            while not shares[number].any():  # redrawn if every share is at structural zeros
                weight = sticks(1.0, concentration, 1e-12, 10_000, rng)
                share = table.profiles(np.repeat(each[:, None], len(weight), axis=1), rng)
                shares[number] = table.all_cells(weight, share) * fillable
        population = draw_multinomial(problem.population_size, shares, rng)
        # The individuals are exchangeable, so any n of them are a sample.
        sample = [
            rng.multivariate_hypergeometric(F, problem.sample_size, method="marginals")
            for F in population
        ]
        return PriorDraws(parameters, np.array(sample), population)


def _posterior(problem: Problem, chains: list[list[Draw]]) -> xr.Dataset:
    """Label the draws; classes that are absent from a draw have weight 0."""
    draws = len(chains[0])
    most = max(len(weight) for chain in chains for _, weight, _ in chain)
    first = Layout(problem).first
    weight = np.zeros((len(chains), draws, most), dtype=np.float32)
    share = np.zeros((len(chains), draws, most, first[-1]), dtype=np.float32)
    for c, chain in enumerate(chains):
        for d, (_, own, profiles) in enumerate(chain):
            weight[c, d, : len(own)] = own
            share[c, d, : len(own)] = profiles.T
    numbers = {
        name: (("chain", "draw"), np.array([[draw[0][name] for draw in chain] for chain in chains]))
        for name in chains[0][0][0]
    }
    shares = {
        f"share_{dim}": (("chain", "draw", "class", dim), share[..., a:b])
        for dim, a, b in zip(problem.variables, first, first[1:], strict=False)
    }
    coords = {"chain": np.arange(len(chains)), "draw": np.arange(draws)}
    labels = {dim: problem.sample[dim].values for dim in problem.variables}
    return xr.Dataset(
        {**numbers, "weight": (("chain", "draw", "class"), weight), **shares},
        coords={**coords, **labels},
    )


def _all_shares(problem: Problem, parameters: Parameters) -> Floats:
    """Share of every cell at each draw, (chains * draws, cells); 0 at structural zeros,
    and not renormalised.
    """
    posterior = parameters.posterior
    assert posterior is not None
    table = Layout(problem)
    classes = posterior.sizes["class"]
    weight = (
        posterior["weight"]
        .transpose("chain", "draw", "class")
        .values.reshape(-1, classes)
        .astype(float)
    )
    parts = [
        posterior[f"share_{dim}"].transpose("chain", "draw", "class", dim).values
        for dim in problem.variables
    ]
    shares = np.concatenate(parts, axis=-1).reshape(-1, classes, table.first[-1])
    out = np.empty((len(weight), problem.sample.size))
    for draw, (w, share) in enumerate(zip(weight, shares, strict=True)):
        out[draw] = table.all_cells(w, share.T.astype(float))
    out[:, ~problem.fillable.ravel()] = 0.0
    return out
