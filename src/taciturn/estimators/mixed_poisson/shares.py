"""Shares of cells within strata whose sizes are known; without any, of the table."""

from math import log

import numpy as np
import numpy.typing as npt

from taciturn.estimators.mixed_poisson.blocks import in_cache
from taciturn.estimators.mixed_poisson.kernels import less_highest, means_and_shapes, scale_to
from taciturn.estimators.problem import Problem

__all__ = ["Strata"]

Floats = npt.NDArray[np.float64]


class Strata:
    """The strata of the known margins, each with an intensity of its own; one, the
    whole table, without known margins.

    Parameters
    ----------
    problem : Problem
        The sample and what is known of its population.
    sampled : bool
        Only strata from which anybody was sampled; all that have anybody otherwise.

    Attributes
    ----------
    kept : array of int64, shape (strata,)
        Their numbers among all strata.
    seen : array of int64, shape (cells,)
        Positions in the table of the cells that can be filled.
    of_cell : array of int64, shape (cells,)
        The stratum of each.
    members : array, shape (cells, strata)
        1 where a cell is of the stratum, 0 elsewhere.
    cells : array of int64, shape (strata,)
        Number of cells of each.
    log_sizes : array, shape (strata,)
        Logarithms of their shares of the population.
    log_cells : float
        Logarithm of the number of cells that can be filled.
    log_rates : array, shape (cells,)
        Logarithms of the sampling rates, relative to that of a simple random sample.
    log_start : array, shape (strata,)
        Logarithm of the intensity that gives each the sample it has.
    """

    def __init__(self, problem: Problem, *, sampled: bool) -> None:
        counts = np.bincount(
            problem.strata, weights=problem.learned_from, minlength=len(problem.stratum_sizes)
        )
        self.kept = np.flatnonzero((counts if sampled else problem.stratum_sizes) > 0)
        number = np.full(len(counts), -1)
        number[self.kept] = np.arange(len(self.kept))
        stratum = number[problem.strata]
        self.seen = np.flatnonzero(problem.fillable.ravel() & (stratum >= 0))
        self.of_cell = stratum[self.seen]
        self.log_cells, self._size = log(problem.cells), problem.sample.size
        self.log_sizes = np.log(problem.stratum_sizes[self.kept] / problem.population_size)
        self.log_rates = np.log(problem.relative_rates[self.seen])
        with np.errstate(divide="ignore"):
            self.log_start = np.log(counts[self.kept]) - self.log_sizes
        self.members = np.eye(len(self.kept))[self.of_cell]
        self.cells = np.bincount(self.of_cell, minlength=len(self.kept))

    def sums(self, values: Floats) -> Floats:
        """Sums over the cells of each stratum, shape (draws, strata)."""
        return np.asarray(values @ self.members)

    def log_shares(self, effects: Floats) -> Floats:
        """Logarithms of shares in proportion to the exponentials of `effects`, shape
        (draws, cells), that add up to the stratum's share of the population.
        """
        logs = np.array(effects, order="C")
        for rows in in_cache(logs):
            if len(self.kept) == 1:  # quicker without looking up the stratum of each cell
                own = logs[rows]
                own -= own.max(axis=1, keepdims=True)
                own += self.log_sizes - np.log(np.exp(own).sum(axis=1, keepdims=True))
                continue
            less_highest(self.of_cell, len(self.kept), logs[rows])
            scale_to(self.log_sizes, self.of_cell, np.exp(logs[rows]), logs[rows])
        return logs

    def shares(self, logs: Floats) -> Floats:
        """Shares of all cells of the table, of those seen in proportion to the
        exponentials of `logs` in each stratum.
        """
        found = np.zeros((len(logs), self._size))
        found[:, self.seen] = np.exp(self.log_shares(logs))
        return found

    def means_and_shapes(
        self, log_shares: Floats, log_intensity: Floats, log_nu: Floats, power: Floats
    ) -> tuple[Floats, Floats]:
        """Logarithms of the mean and the shape of each cell, shape (draws, cells), from
        intensities of strata, (draws, strata), and ν and the power, (draws,).
        """
        mean, shape = np.empty_like(log_shares), np.empty_like(log_shares)
        of_cells = self.of_cell, self.log_rates
        given = (log_intensity, log_nu, power, self.log_cells)
        means_and_shapes(log_shares, of_cells, *given, mean, shape)
        return mean, shape
