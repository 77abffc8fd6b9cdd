"""Latent classes: a large sparse table as a mixture of tables whose variables are
independent, from which single cells depart.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import check_convergence
from taciturn.errors import ParameterError
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.latent_class.chain import Chain, Draw, Layout, sticks
from taciturn.estimators.latent_class.departures import NAMES, Departures
from taciturn.estimators.latent_class.draws import (
    all_shares,
    depart,
    departures_of,
    labelled_draws,
)
from taciturn.estimators.latent_class.kernels import log_of_departures, multiply_by_factors
from taciturn.estimators.latent_class.model import build_model
from taciturn.estimators.priors import (
    Prior,
    check_priors,
    merge_priors,
)
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.sampling.draws import draw_multinomial
from taciturn.estimators.settings import (
    Counts,
    Parameters,
    PriorDraws,
    SamplerSettings,
)
from taciturn.parallel import linear_algebra_alone
from taciturn.progress import progress_bar
from taciturn.validate import true_or_false

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["LatentClass"]

Floats = npt.NDArray[np.float64]
_THIN: Final = 5
"""Sweeps per draw after the warm-up."""
_AIMING: Final = 100
"""Sweeps at the end of the warm-up in which departures are drawn, too."""
_NAMES: Final = frozenset(
    {"class", "classes", "concentration", "expected_tau1", "sample_coverage", "weight"}
)


@dataclass(frozen=True, repr=False)
class LatentClass(BayesianEstimator):
    r"""Mixture of latent classes within which the variables are independent, with as
    many classes as the data require, from which single cells depart.

    .. math::

        \pi(x) &= \sum_h w_h \prod_j \psi_{hj}(x_j), \qquad
        w_h = v_h \prod_{g < h} (1 - v_g), \quad v_h \sim \text{Beta}(1, \alpha) \\
        \psi_{hj} &\sim \text{Dirichlet}(b_j / d_j, \dots, b_j / d_j) \\
        p_i &\propto \pi_i g_i, \qquad
        \operatorname{E} g_i = 1, \quad \operatorname{Var} g_i = 1 / r_i, \qquad
        r_i = \nu (1 + K \pi_i)^\beta \\
        f &\sim \text{Multinomial}(n, p), \qquad
        F - f \sim \text{Multinomial}(N - n, p)

    for variables with :math:`d_j` categories and `K` cells that can be filled: a
    Dirichlet process mixture of products of multinomials, and inverse Gaussian factors
    :math:`g_i`. It is meant for large, nearly empty tables of many variables, where the
    interactions of a log-linear model would have to be chosen; intervals were studied
    on tables of two to five and of eight.

    Parameters
    ----------
    priors : mapping of str to Prior, optional
        Replacements for priors, by name. The parameters are ``concentration``
        (:math:`\alpha`) and ``profile_<variable>`` (:math:`b_j`, how similar the
        classes are in that variable: small where each class has its own categories);
        ``nu`` (:math:`\nu`) and ``power`` (:math:`\beta`) of the departures.
    departures : bool
        Whether cells depart from the classes, :math:`p_i = \pi_i` otherwise: the model
        of Dunson & Xing and of Manrique-Vallier & Reiter, whose R1 and R2 are too low
        where cells do.

    Raises
    ------
    PriorError
        On `fit`: a prior for a parameter that the model does not have.
    ParameterError
        `departures` that are not True or False. On `fit`: ``method="nuts"``, or known
        margins, which the sampler cannot use.
    EstimationError
        On `fit`: structural zeros that take up nearly all of the fitted distribution.

    Notes
    -----
    *Priors.* The concentration is Gamma(1/4, 1/4) as in Dunson & Xing; :math:`b_j` is
    log-normal with median 1 and standard deviation 2 on the log scale, where they and
    Manrique-Vallier & Reiter use the uniform :math:`b_j = d_j`. :math:`\nu` is
    log-normal with median `e` and standard deviation 3, :math:`\beta` is uniform
    between 0 and 1.

    *Two steps.* The classes are learned as if no cell departed, and the departures
    given each draw of them: nothing that is learned of departures goes back to the
    classes (a cut, Plummer 2015). Letting it go back was tried, roughly, and explained
    by departures what classes should. Each step keeps its own target; together they are
    not the posterior of one model, and what is claimed rests on repeated samples. For
    the same reason there are no leave-one-out terms: `compare`, `stack` and those
    functions of ArviZ that ask for ``log_likelihood`` take a fit without departures.

    *Departures.* A cell that expects less than the average one departs like others of
    that kind: were the power to go on, as in `MixedPoisson`, cells that expect next to
    nobody would depart without limit, though nothing can be learned of them. Counts are
    Poisson-inverse Gaussian given the shares and an ``intensity``, which belongs to the
    computation; :math:`\nu`, :math:`\beta` and the intensity are drawn by choosing
    between several proposals (Tjelmeland 2004).

    *Sampler.* A Gibbs sampler with weights and shares integrated out draws the class of
    each individual given all others (Neal 2000, algorithm 3), and :math:`\alpha` and
    :math:`b_j` by slice sampling; further steps split and merge classes (Jain & Neal
    2004). There are five sweeps per draw after the warm-up and one per draw during it.
    Given the classes, weights and shares are drawn exactly, including those of classes
    without a sampled individual, until less than 1 in 10,000 of the population is left
    for the last. The number of classes has no limit. The order of classes has no
    meaning; they are sorted by weight. Convergence is judged by what a draw implies for
    the risk rather than by its parameters: ``expected_tau1``,
    :math:`\sum_{f_i = 1} (1 - p_i)^{N - n}`, and ``sample_coverage``,
    :math:`\sum_{f_i > 0} p_i`, as well as R2. ``concentration`` and ``classes``, the
    number of classes with a sampled individual, mix slowly, as similar classes come and
    go, and with them ``nu`` and ``power``. With departures :math:`p_i` contains a draw
    of the factors, so that chains are told apart by what matters beside these.

    *Structural zeros.* The population is the mixture without them, with :math:`\pi`
    renormalised over the other cells. The sampler adds the individuals that the model
    would have put there (Manrique-Vallier & Reiter 2014).

    *In PyMC.* `build` returns the model with the classes of individuals integrated out,
    and the stick broken a fixed number of times: 38 classes with the default prior, the
    fewest whose last one, which stands for all further classes, has less than 1 in
    1,000 of the population on average at the 95 % quantile of the concentration's
    prior; at most 100. The classes ``weight`` and ``share_<variable>`` are functions of
    variables that NUTS can move (``stick``, ``gamma_<variable>``,
    ``fading_<variable>``). Without departures it is the model that the sampler draws
    from. With departures it is *one joint posterior*, in which what is learned of
    departures goes back to the classes: not what `fit` draws, and its shares can be
    quite different. Classes change places from draw to draw and between chains: read
    what does not depend on their order.

    *Tables of two variables* that depend strongly on each other are missed, with R2 too
    low or too high: see the page on coverage. `default_estimator` has a pool for them.

    References
    ----------
    Dunson & Xing (2009), Nonparametric Bayes modeling of multivariate categorical data,
    JASA 104; Manrique-Vallier & Reiter (2012), Estimating identification disclosure
    risk using mixed membership models, JASA 107; Manrique-Vallier & Reiter (2014),
    Bayesian estimation of discrete multivariate latent structure models with structural
    zeros, JCGS 23; Neal (2000), Markov chain sampling methods for Dirichlet process
    mixture models, JCGS 9; Plummer (2015), Cuts in Bayesian graphical models,
    Statistics and Computing 25; Tjelmeland (2004), Using all Metropolis-Hastings
    proposals to estimate mean values, NTNU preprint Statistics 4/2004.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> settings = {"draws": 500, "tune": 200, "random_seed": 1, "progressbar": False}
    >>> fit = tc.LatentClass().fit(sample, population_size=2449, **settings)
    >>> sorted(fit["posterior"].data_vars)[:4]
    ['classes', 'concentration', 'expected_tau1', 'intensity']
    >>> model = tc.LatentClass(departures=False).build(sample, 2449)
    >>> sorted(v.name for v in model.free_RVs)[:3]
    ['concentration', 'fading_area', 'fading_religion']
    """

    priors: Mapping[str, Prior] = field(default_factory=dict)
    departures: bool = True

    title: ClassVar[str] = "Latent classes: Dirichlet process mixture of independent variables"
    command_name: ClassVar[str] = "latent-class"

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        departures = true_or_false(self.departures, "departures")  # from a file it may be anything
        object.__setattr__(self, "departures", departures)

    def monitored(self, posterior: xr.Dataset) -> xr.Dataset:
        """Return what the classes imply for the risk, to which neither their order nor
        their number matters.
        """
        told = posterior[["expected_tau1", "sample_coverage"]]
        varying = [name for name, values in told.data_vars.items() if float(values.std()) > 0]
        return told[varying] if varying else posterior[["concentration"]]

    def priors_for(self, problem: Problem) -> dict[str, Prior]:
        """Return the priors of the concentration, of the profile weights and of the
        departures.
        """
        defaults = {"concentration": Prior("Gamma", alpha=0.25, beta=0.25)}
        defaults |= {
            f"profile_{dim}": Prior("LogNormal", mu=0.0, sigma=2.0) for dim in problem.variables
        }
        if self.departures:
            defaults["nu"] = Prior("LogNormal", mu=1.0, sigma=3.0)
            defaults["power"] = Prior("Uniform", lower=0.0, upper=1.0)
        shares = {f"share_{dim}" for dim in problem.variables}
        own = NAMES if self.departures else ()
        problem.refuse_names({*defaults, *shares, *_NAMES, *own})
        return merge_priors(defaults, self.priors)

    def build(
        self,
        sample: xr.DataArray,
        population_size: int,
        *,
        structural_zeros: xr.DataArray | None = None,
    ) -> "pm.Model":
        """Return the PyMC model of a sample, with the classes of individuals integrated
        out; its dims are the table's variables and ``class``, and the observed variable
        is ``sample_counts``, with the cells in row-major order.

        With departures its posterior is a joint one, not the two steps of `fit`.
        """
        problem = make_problem(sample, population_size, structural_zeros)
        return build_model(problem, self.priors_for(problem))

    def learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters:
        """Draw the parameters by collapsed Gibbs sampling, one thread per chain."""
        priors = self.priors_for(problem)
        base = {name: prior for name, prior in priors.items() if name not in NAMES}
        stop = Event()

        def run(own: np.random.Generator, show: bool) -> list[Draw]:
            chain = Chain(problem, base, own)
            departures = Departures(problem, priors, own) if self.departures else None
            kept = []
            sweeps = settings.tune + settings.draws
            title, shown = "latent classes, first chain", show and settings.progressbar
            with progress_bar(title, sweeps, shown=shown) as bar:
                for number in range(sweeps):
                    if stop.is_set():
                        break
                    warm = number < settings.tune
                    for _ in range(1 if warm else _THIN):
                        chain.sweep()
                    if not warm:
                        kept.append(_draw(chain, departures, adapt=False))
                    elif departures and number >= settings.tune - _AIMING:
                        _draw(chain, departures, adapt=True)
                    bar.advance()
            return kept

        # Chains take all cores already, which linear algebra would, too.
        with (
            linear_algebra_alone(),
            ThreadPoolExecutor(min(settings.chains, os.cpu_count() or 1)) as pool,
        ):
            jobs = [
                pool.submit(run, own, number == 0)
                for number, own in enumerate(rng.spawn(settings.chains))
            ]
            try:
                chains = [job.result() for job in jobs]
            finally:
                stop.set()
        posterior = labelled_draws(problem, chains)
        check_convergence(self.monitored(posterior), None, warn=True)
        return Parameters(posterior, sampler="collapsed Gibbs")

    def learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Refuse: the model has a sampler of its own."""
        raise ParameterError(
            "LatentClass has a sampler of its own: use method='fast', or sample from its `build`"
        )

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the individuals not sampled, given factors that the sample informs."""
        shares = all_shares(problem, parameters)
        if self.departures:
            depart(problem, parameters, shares, rng, informed=True)
        rest = problem.population_size - problem.sample_size
        return problem.counts + draw_multinomial(rest, shares, rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size, with factors that no sample informs."""
        shares = all_shares(problem, parameters)
        if self.departures:
            depart(problem, parameters, shares, rng, informed=False)
        return draw_multinomial(problem.sample_size, shares, rng)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> Floats | None:
        """Logarithm of the share of each occupied cell; None with departures, whose two
        steps importance sampling cannot leave an individual out of.
        """
        if self.departures:
            return None
        assert parameters.posterior is not None
        terms = np.log(all_shares(problem, parameters)[:, problem.occupied])
        sizes = parameters.posterior.sizes
        return np.asarray(terms.reshape(sizes["chain"], sizes["draw"], -1))

    def log_joint(self, problem: Problem, parameters: Parameters) -> Floats:
        """Logarithm of p(sample, intensity | parameters), up to a constant, that of the
        second step; without departures, of the multinomial probability.
        """
        assert parameters.posterior is not None
        shares = all_shares(problem, parameters)
        if self.departures:
            inside = np.flatnonzero(problem.fillable)
            counts, times = problem.counts[inside].astype(float), np.ones(len(inside))
            logs = np.log(np.maximum(shares[:, inside], 1e-300))
            values = np.zeros(len(logs))
            for draw, tried in enumerate(departures_of(parameters)):
                out = values[draw : draw + 1]
                log_of_departures(counts, times, logs[draw], problem.cells, tried[None], out)
        else:
            values = np.log(shares[:, problem.occupied]) @ problem.counts[problem.occupied]
        return np.asarray(values.reshape(parameters.posterior.sizes["chain"], -1))

    def draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Draw parameters, samples and populations."""
        priors = self.priors_for(problem)
        parameters = {name: prior.draw(rng, draws) for name, prior in priors.items()}
        table = Layout(problem)
        shares = np.zeros((draws, problem.sample.size))
        for number in range(draws):
            concentration = parameters["concentration"][number]
            weights = [parameters[f"profile_{dim}"][number] for dim in problem.variables]
            each = np.repeat(np.divide(weights, table.sizes), table.sizes)
            while not shares[number].any():  # redrawn if every share is at structural zeros
                weight = sticks(1.0, concentration, 1e-12, 10_000, rng)
                share = table.profiles(np.repeat(each[:, None], len(weight), axis=1), rng)
                shares[number] = table.all_cells(weight, share) * table.fillable
        if self.departures:
            shares /= shares.sum(axis=1, keepdims=True)
            none, zero = np.zeros(shares.shape[1]), np.zeros(draws)
            own = (parameters["nu"], parameters["power"], zero)
            multiply_by_factors(shares, none, problem.cells, *own, rng)
        population = draw_multinomial(problem.population_size, shares, rng)
        # The individuals are exchangeable, so any n of them are a sample.
        sample = [
            rng.multivariate_hypergeometric(F, problem.sample_size, method="marginals")
            for F in population
        ]
        return PriorDraws(parameters, np.array(sample), population)


def _draw(chain: Chain, departures: Departures | None, *, adapt: bool) -> Draw:
    """A draw of the classes, and of the departures from them."""
    numbers, weight, share = chain.draw()
    if departures is None:
        return {**numbers, **chain.implied(weight, share)}, weight, share
    shares = chain.table.shares(weight, share)
    departures.step(shares, adapt=adapt)
    return {**numbers, **departures.draw(shares)}, weight, share
