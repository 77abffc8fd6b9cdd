"""What is found for each cell of the table: draws, summaries, diagnostics."""

import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.posterior.diagnostics import convergence
from taciturn.attack.posterior.parts import PartPosterior
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem
from taciturn.diagnostics import HIGHEST_R_HAT, SMALLEST_ESS
from taciturn.errors import ConvergenceWarning
from taciturn.schema import cell_label

__all__ = ["RESULTS", "CellPosteriors"]

RESULTS: Final = (
    "table",
    "lower",
    "upper",
    "n_values",
    "mean",
    "entropy",
    "entropy_mcse",
    "risk",
    "risk_uniform",
    "disclosed",
    "published",
    "exact",
    "r_hat",
    "ess_bulk",
)
"""Variables of the result."""


class CellPosteriors:
    """Posterior of each cell of the table, in steps, filled in part by part.

    Parameters
    ----------
    system : LinearSystem
        The release.
    lower, upper : array of int64, shape (n,)
        Attained bounds of its unknown cells.
    chains, draws : int
        Number of chains, and of draws in each.
    """

    def __init__(
        self, system: LinearSystem, lower: Integers, upper: Integers, chains: int, draws: int
    ) -> None:
        self._system = system
        size, published = system.published.size, system.published.values.ravel()
        self._lower, self._upper = published.astype(float), published.astype(float)
        self._lower[system.unknown] = lower
        self._upper[system.unknown] = np.where(upper >= UNLIMITED, np.inf, upper)
        # Cells that no part holds are published or have one possible value.
        self._mean = self._lower.copy()
        self._draws = np.empty((chains, draws, size), dtype=np.int64)
        self._draws[:] = published
        self._draws[:, :, system.unknown] = lower
        self._entropy, self._error = np.zeros(size), np.zeros(size)
        self._exact = np.ones(size, dtype=np.bool_)
        self._r_hat, self._ess = np.full(size, np.nan), np.full(size, np.nan)

    def keep(self, columns: Integers, found: PartPosterior) -> None:
        """Take over what was found for a part, and its diagnostics."""
        cells = self._system.unknown[columns]
        self._draws[:, :, cells] = found.draws
        self._entropy[cells], self._error[cells] = found.entropy, found.error
        self._mean[cells], self._exact[cells] = found.mean, found.exact
        if not found.exact:
            self._r_hat[cells], self._ess[cells] = convergence(found.draws)

    def warn(self) -> None:
        """Warn where chains disagree or the draws of a walk are too few."""
        bad = (self._r_hat > HIGHEST_R_HAT) | (self._ess < SMALLEST_ESS)
        if bad.any():
            worst, table = int(np.nanargmin(self._ess)), self._system.published
            at = tuple(int(i) for i in np.unravel_index(worst, table.shape))
            warnings.warn(
                f"the walk among the compatible tables did not converge in {int(bad.sum())} of"
                f" {int((~self._exact).sum())} cells: r-hat is up to"
                f" {np.nanmax(self._r_hat):.3f}, at most {HIGHEST_R_HAT} is accepted; the"
                f" effective sample size is {self._ess[worst]:.0f} at {cell_label(table, at)}, at"
                f" least {SMALLEST_ESS:.0f} is needed. More tune and draws may help",
                ConvergenceWarning,
                stacklevel=3,
            )

    def dataset(self, published: npt.NDArray[np.bool_]) -> xr.Dataset:
        """All results, in the units of the table, with which cells are `published`."""
        table = self._system.published
        step = 10.0**self._system.decimals
        values = self._upper - self._lower + 1
        disclosed = values == 1
        with np.errstate(divide="ignore"):
            risk = np.where(disclosed, np.nan, 1 / self._entropy)
            risk_uniform = np.where(disclosed, np.nan, 1 / np.log2(values))
        arrays: tuple[npt.NDArray[Any], ...] = (
            self._draws / step if self._system.decimals else self._draws,
            self._lower / step,
            self._upper / step,
            values,
            self._mean / step,
            self._entropy,
            self._error,
            risk,
            risk_uniform,
            disclosed,
            published,
            self._exact,
            self._r_hat,
            self._ess,
        )
        chains, draws, _ = self._draws.shape
        return xr.Dataset(
            {
                name: (
                    (*("chain", "draw")[: array.ndim - 1], *table.dims),
                    array.reshape(*array.shape[:-1], *table.shape),
                )
                for name, array in zip(RESULTS, arrays, strict=True)
            },
            coords={
                "chain": range(chains),
                "draw": range(draws),
                **{dim: table[dim] for dim in table.dims},
            },
        )
