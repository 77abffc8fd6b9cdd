"""Small cell adjustment: unbiased rounding of small counts only."""

import numpy as np
import xarray as xr

from taciturn.perturbation.replicates import Counts, replicated
from taciturn.perturbation.threshold_suppression import is_small
from taciturn.schema import MAX_COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = ["adjust_small_cells"]


def adjust_small_cells(
    table: xr.DataArray,
    *,
    minimum: int = 3,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    r"""Move small counts to zero or to the minimum, without bias; keep the others.

    .. math:: P(G_i = m) = F_i / m, \qquad P(G_i = 0) = 1 - F_i / m \qquad (0 < F_i < m)

    Kept: the expected value of each cell, zeros, counts of the minimum and above. Not
    kept: totals. Publish those of the adjusted cells: true ones would reveal what was
    adjusted.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    minimum : int
        The smallest count that is kept, `m`, at least 2. With 3, ones and twos are
        adjusted.
    replicates : int
        Number of independent adjustments, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        For adjustments that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        `minimum` that is not a whole number from 2 to 2**53; fewer than one replicate.
    TableError
        Whatever `check_table` refuses.

    References
    ----------
    Shlomo (2007), Statistical disclosure control methods for census frequency tables,
    International Statistical Review 75, 199-217; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 5.5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([0, 3, 4], dims="x")
    >>> tc.perturbation.adjust_small_cells(table, random_seed=1).values.tolist()
    [[0, 3, 4]]
    """
    table = check_table(table)
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    replicates = whole_number(replicates, "replicates", least=1)
    counts = table.values
    small = is_small(counts, minimum)

    def release(rng: np.random.Generator, shape: tuple[int, ...]) -> Counts:
        adjusted: Counts = np.where(small, minimum * (rng.random(shape) * minimum < counts), counts)
        return adjusted

    return replicated(table, replicates, random_seed, release)
