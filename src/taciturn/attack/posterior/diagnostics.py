"""Whether the chains of a walk agree, and how many independent draws they are worth."""

import numpy as np
import numpy.typing as npt

__all__ = ["convergence"]

Floats = npt.NDArray[np.float64]


def convergence(draws: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Rank-normalised split R-hat and bulk effective sample size of each cell.

    Parameters
    ----------
    draws : array of int64, shape (chain, draw, cells)
        At least four draws a chain.

    Returns
    -------
    r_hat, ess_bulk : array of float64, shape (cells,)
        NaN where all draws agree.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding,
    and localization: an improved R-hat for assessing convergence of MCMC, Bayesian
    Analysis 16(2), 667-718.
    """
    from arviz_stats.base import array_stats

    r_hat, ess = np.full(draws.shape[2], np.nan), np.full(draws.shape[2], np.nan)
    varies = np.ptp(draws, axis=(0, 1)) > 0
    if varies.any():
        moving = draws[:, :, varies].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):  # chains that each stand still
            r_hat[varies] = array_stats.rhat(moving, chain_axis=0, draw_axis=1)
            ess[varies] = array_stats.ess(moving, chain_axis=0, draw_axis=1, method="bulk")
    return r_hat, ess
