"""Whether chains agree, and how many independent draws they are worth, on plain arrays.

References
----------
Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC, Bayesian Analysis
16(2), 667-718: equations (4), (10), (11), (13), (14).
"""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = ["bulk_ess", "split_r_hat"]

Floats = npt.NDArray[np.float64]


def split_r_hat(draws: npt.NDArray[np.int64]) -> float:
    """Rank-normalised split R-hat: the larger of that of the draws and of their
    distances from the median.

    Parameters
    ----------
    draws : array of int64, shape (chain, draw)
        At least four draws a chain.

    Returns
    -------
    float
        NaN where all draws agree.
    """
    halves = _halves(draws)
    folded = np.abs(halves - np.median(halves))
    return float(np.fmax(_r_hat(_normal(halves)), _r_hat(_normal(folded))))


def bulk_ess(draws: npt.NDArray[np.int64]) -> float:
    """Effective sample size of the rank-normalised draws, from the autocorrelation of
    split chains.

    Parameters
    ----------
    draws : array of int64, shape (chain, draw)
        At least four draws a chain.

    Returns
    -------
    float
        NaN where all draws agree.
    """
    values = _normal(_halves(draws))
    chains, n = values.shape
    if np.ptp(values) == 0:
        return float("nan")
    centred = values - values.mean(axis=1, keepdims=True)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + values.mean(axis=1).var(ddof=1)
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1.0
    # Sums of pairs are positive and fall for a reversible chain; noise takes over where
    # they no longer do.
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else len(pairs)])
    time = max(-1 + 2 * pairs.sum(), 1 / np.log10(chains * n))
    return float(chains * n / time)


def _halves(draws: npt.NDArray[np.int64]) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]]).astype(np.float64)


def _normal(values: Floats) -> Floats:
    """Normal scores of the ranks over all chains."""
    return np.asarray(
        ndtri((rankdata(values).reshape(values.shape) - 0.375) / (values.size + 0.25))
    )


def _r_hat(values: Floats) -> float:
    n = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1)
    if within == 0:
        return float("inf") if between > 0 else float("nan")
    return float(np.sqrt((n - 1) / n + between / within))
