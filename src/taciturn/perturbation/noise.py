"""The two-sided geometric mechanism of differential privacy."""

from math import expm1, tanh

import numpy as np
import xarray as xr

from taciturn.perturbation.replicates import Counts, replicated
from taciturn.schema import MAX_COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import real_number, whole_number

__all__ = ["add_noise"]


def add_noise(
    table: xr.DataArray,
    *,
    epsilon: float,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    r"""Add two-sided geometric noise to every cell; negative results become zero.

    .. math::

        P(Z_i = k) = \frac{1 - a}{1 + a}\, a^{|k|}, \qquad a = e^{-\varepsilon},
        \qquad G_i = \max(F_i + Z_i, 0)

    Adding or removing one person changes one cell by one, so the table as a whole is
    `ε`-differentially private if tables that differ by one person are neighbours;
    replacing one person by another changes two cells, which makes it `2ε`. Negative
    results become zero after the noise has been added, which costs no privacy.

    Kept: non-negative whole numbers. Not kept: totals, zeros, and the expected value of
    small counts, which are biased upwards by ``a ** (F_i + 1) / (1 - a ** 2)``: in a
    large table with many empty cells the total grows considerably.

    Parameters
    ----------
    table : DataArray
        Frequency table; every cell gets noise, empty ones too.
    epsilon : float
        Privacy loss `ε`, above 0, in nats; the smaller, the more noise. The noise has
        the variance ``2 a / (1 - a) ** 2``.
    replicates : int
        Number of independent releases, along a leading dimension ``replicate``. Each
        costs `ε`: publish one.
    random_seed : int or Generator, optional
        For noise that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.

    Returns
    -------
    DataArray
        int64 from 0 to 2**53, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        `epsilon` that is not a finite number above 0; fewer than one replicate.
    TableError
        Whatever `check_table` refuses.

    Notes
    -----
    Meant for measuring what such noise does to a table. The generator is not
    cryptographic and works in double precision, so that probabilities hold to about
    1e-16, not exactly as the definition of `ε` requires.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2012), Universally utility-maximizing privacy
    mechanisms, SIAM Journal on Computing 41, 1673-1693: the geometric mechanism.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([5, 0], dims="x")
    >>> noisy = tc.add_noise(table, epsilon=1, replicates=1000, random_seed=1)
    >>> int(noisy.min())
    0
    """
    table = check_table(table)
    epsilon = real_number(epsilon, "epsilon", above=0)
    replicates = whole_number(replicates, "replicates", least=1)
    none, stop = tanh(epsilon / 2), -expm1(-epsilon)  # P(Z = 0) = (1 - a) / (1 + a) and 1 - a

    def release(rng: np.random.Generator, shape: tuple[int, ...]) -> Counts:
        # Sign and size apart: the difference of two geometric variates would be 0 where
        # both exceed 64 bits.
        sign = rng.random(shape)
        size = np.minimum(rng.geometric(stop, shape), MAX_COUNT)
        noise = np.where(sign < none, 0, np.where(sign < (1 + none) / 2, size, -size))
        noisy: Counts = np.clip(table.values + noise, 0, MAX_COUNT)
        return noisy

    return replicated(table, replicates, random_seed, release)
