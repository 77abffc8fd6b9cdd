"""The plug-in Pólya urn estimator of Antal, Shlomo & Elliot (2015)."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import digamma

from taciturn.errors import EstimationError, ParameterError
from taciturn.estimators.formula import parse_formula
from taciturn.estimators.ipf import fit_margins
from taciturn.estimators.plug_in import PlugInEstimator
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_urn, draw_urn_from_nothing
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings
from taciturn.validate import quoted, real_number

__all__ = ["PolyaUrn", "expected_new_colours", "solve_theta"]

_LARGEST_LOG_THETA: Final = 60.0


@dataclass(frozen=True, repr=False)
class PolyaUrn(PlugInEstimator):
    r"""Hoppe's urn with the number of black balls set by the expected number of empty
    cells.

    The urn starts with the sample's `f_i` balls of each colour and :math:`\theta` black
    ones. A coloured ball, when drawn, adds another of its colour; a black ball adds a
    new colour, which is given an empty cell at random; this goes on up to `N` balls.
    :math:`\theta` solves

    .. math:: |E| - |\hat D| = \theta\,(\psi(N + \theta) - \psi(n + \theta)), \qquad
              |\hat D| = \sum_i (1 - \hat p_i)^N

    with :math:`\hat p` from a log-linear model. Once the last empty cell has opened,
    the black balls are removed. The equation is that of an urn with as many cells to
    open as it likes: where hardly any cell stays empty, more do in the draws than
    :math:`|\hat D|`, by half a cell or a few. The intervals ignore that :math:`\theta`
    is estimated.

    Parameters
    ----------
    theta : float, optional
        The number of black balls, at least 0, if it is not to be estimated.
    empty_cells : int, optional
        `|D|`, the number of empty cells in the population, if it is known; in the
        draws it holds on average, as far as the equation does.
    formula : str, optional
        Log-linear formula for :math:`\hat p`; main effects by default.

    Raises
    ------
    ParameterError
        A negative or non-finite `theta`, both `theta` and `empty_cells`, or more empty
        cells than the sample has.
    EstimationError
        On `fit`: more cells would have to open than `N - n` draws can open.

    Notes
    -----
    If :math:`|E| - |\hat D| \le 0`, no cell opens and :math:`\theta = 0`. The cost
    grows with the number of cells opened, not with `N`. ``expected_empty_cells`` in
    ``constant_data`` is the :math:`|\hat D|` of the equation.

    References
    ----------
    Antal, Shlomo & Elliot (2015), Section 5.2, eq. (5)-(6), whose sum is the difference
    of digamma functions; Hoppe (1984), Pólya-like urns and the Ewens' sampling formula,
    J. Math. Biol. 20.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.PolyaUrn().fit(sample, population_size=2449, draws=50, random_seed=1)
    >>> bool(fit["constant_data"]["theta"] > 0)
    True
    """

    theta: float | None = None
    empty_cells: int | None = None
    formula: str | None = None

    title: ClassVar[str] = "Pólya urn, plug-in"
    command_name: ClassVar[str] = "polya-urn"
    takes_formula: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.theta is not None:
            object.__setattr__(self, "theta", real_number(self.theta, "theta", least=0))
        if self.theta is not None and self.empty_cells is not None:
            raise ParameterError(
                "give theta or empty_cells, which theta would be estimated from, not both"
            )
        if self.empty_cells is not None:
            empty = real_number(self.empty_cells, "empty_cells", least=0)
            if not empty.is_integer():
                raise ParameterError(
                    f"empty_cells must be a whole number of at least 0, got"
                    f" {quoted(self.empty_cells)}"
                )
            object.__setattr__(self, "empty_cells", int(empty))

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Solve for ``theta``, and keep ``expected_empty_cells`` with it."""
        empty = problem.cells - int((problem.counts > 0).sum())
        if self.theta is not None:
            return Parameters(constants={"theta": float(self.theta)})
        if self.empty_cells is not None:
            if self.empty_cells > empty:
                raise ParameterError(
                    f"empty_cells is {self.empty_cells}, but only {empty} of the sample's cells are"
                    " empty"
                )
            expected = float(self.empty_cells)
        else:
            terms = parse_formula(self.formula, problem.variables)
            p = fit_margins(problem.sample.values, problem.variables, terms, problem.fillable)
            with np.errstate(divide="ignore"):
                log_empty = problem.population_size * np.log1p(-p[problem.fillable])
            everybody = problem.population_size == problem.sample_size
            expected = float(empty if everybody else np.exp(log_empty).sum())
        theta = solve_theta(empty - expected, problem.sample_size, problem.population_size)
        return Parameters(constants={"theta": theta, "expected_empty_cells": expected})

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Continue the urn from the sample."""
        theta = np.full(settings.chains * settings.draws, parameters.constants["theta"])
        empty = problem.fillable.ravel() & (problem.counts == 0)
        return draw_urn(problem.counts, empty, problem.population_size, theta, rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw samples of the same size from the urn."""
        theta = np.full(settings.chains * settings.draws, parameters.constants["theta"])
        return draw_urn_from_nothing(problem.fillable.ravel(), problem.sample_size, theta, rng)

    def log_conditionals(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Logarithm of the probability that the next draw from the urn, after all
        others, is of each occupied cell.
        """
        theta, others = parameters.constants["theta"], problem.sample_size - 1
        counts = problem.counts[problem.occupied]
        seen = len(counts)
        if others == 0:  # the first individual opens a cell whatever θ is
            return np.array([-log(problem.cells)])
        # A lone individual opened their cell, one of the K - k + 1 that the others
        # leave empty. If the others fill every cell, the black balls have been
        # removed.
        opened = theta / (others + theta) / (problem.cells - seen + 1)
        joined = (counts - 1) / (others if seen == problem.cells else others + theta)
        with np.errstate(divide="ignore"):
            return np.log(np.where(counts == 1, opened, joined))


def expected_new_colours(theta: float, sample_size: int, population_size: int) -> float:
    """Expected number of black draws while the urn grows from `n` to `N` balls:
    θ (ψ(N + θ) - ψ(n + θ)).
    """
    return float(theta * (digamma(population_size + theta) - digamma(sample_size + theta)))


def solve_theta(new_colours: float, sample_size: int, population_size: int) -> float:
    """Number of black balls that opens `new_colours` colours on average; 0 if there are
    none to open.
    """
    draws = population_size - sample_size
    if new_colours <= 0:
        return 0.0

    def excess(log_theta: float) -> float:
        return expected_new_colours(exp(log_theta), sample_size, population_size) - new_colours

    highest = log(population_size) + log(1e4)
    if new_colours >= draws or excess(highest) < 0:
        raise EstimationError(
            f"{new_colours:.4g} empty cells are to open, but {draws} individuals outside the sample"
            f" can open at most {draws}: no θ solves this; the table has too many cells for its"
            " population, or give theta"
        )
    lowest = log(new_colours) - _LARGEST_LOG_THETA
    return exp(brentq(excess, lowest, highest, xtol=1e-13, rtol=1e-13))
