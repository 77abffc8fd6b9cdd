"""The log-linear plug-in estimator of the papers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from taciturn.estimators.formula import parse_formula
from taciturn.estimators.ipf import fit_margins
from taciturn.estimators.plug_in import PlugInEstimator
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_multinomial
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings
from taciturn.estimators.strata import draw_replicates, draw_rest, log_stratum_chance

__all__ = ["LogLinear"]


@dataclass(frozen=True, repr=False)
class LogLinear(PlugInEstimator):
    r"""Log-linear model with its maximum-likelihood probabilities plugged in as if they
    were known.

    .. math:: F = f + \text{Multinomial}(N - n, \hat p)

    :math:`\hat p` comes from iterative proportional fitting; with main effects of two variables it is
    :math:`n_{i\bullet} n_{\bullet j} / n^2`. The intervals ignore that :math:`\hat p` is estimated, and are too
    narrow for that reason.

    Known margins of the population replace those of the sample where the formula
    includes them, and every draw reproduces them.

    Parameters
    ----------
    formula : str, optional
        Hierarchical log-linear formula, such as ``"~ area + religion"``; main effects
        without one.

    References
    ----------
    Antal, Shlomo & Elliot (2015), Section 5.1.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=50, chains=2, random_seed=1)
    >>> int(fit["posterior_predictive"]["population"].sum("religion").sum("area")[0, 0])
    2449
    """

    formula: str | None = None

    keeps_margins: ClassVar[bool] = True
    title: ClassVar[str] = "Log-linear model, plug-in"
    command_name: ClassVar[str] = "log-linear"
    takes_formula: ClassVar[bool] = True

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Fit the probabilities of the cells, ``probability``."""
        terms = parse_formula(self.formula, problem.variables)
        fitted = fit_margins(
            problem.sample.values, problem.variables, terms, problem.fillable, problem.known_margins
        )
        return Parameters(
            constants={"probability": problem.sample.copy(data=fitted).rename("probability")}
        )

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw the individuals not sampled from a multinomial."""
        probability = parameters.constants["probability"].values.reshape(1, -1)
        return problem.counts + draw_rest(
            problem, settings.total, probability, draw_multinomial, rng
        )

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size from a multinomial."""
        probability = parameters.constants["probability"].values.reshape(1, -1)
        return draw_replicates(problem, settings.total, probability, draw_multinomial, rng)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Logarithm of the probability of each occupied cell."""
        probability, strata = parameters.constants["probability"].values.ravel(), problem.strata
        whole = np.bincount(strata, probability)[strata]  # 1 without known margins
        within = np.divide(
            probability, whole, out=np.zeros_like(probability), where=probability > 0
        )
        with np.errstate(divide="ignore"):
            return np.asarray(log_stratum_chance(problem) + np.log(within[problem.occupied]))
