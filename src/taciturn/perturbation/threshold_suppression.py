"""Threshold suppression, and which cells it is about."""

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.perturbation.replicates import Counts, labelled
from taciturn.schema import MAX_COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = ["is_small", "small_cells", "suppress_small_cells"]


def suppress_small_cells(table: xr.DataArray, *, minimum: int) -> xr.DataArray:
    r"""Suppress the counts between 0 and a threshold, and release zero in their place.

    .. math:: G_i = F_i \, 1\{F_i = 0 \text{ or } F_i \ge t\}

    Kept: zeros, counts of the threshold and more. Not kept: totals, and the expected
    value of any small cell.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    minimum : int
        The smallest count that is released, `t`; at least 2. `small_cells` says which
        are not.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)`` with the one replicate that there is, like
        all protection methods.

    Raises
    ------
    ParameterError
        `minimum` that is not a whole number from 2 to 2**53.
    TableError
        What `check_table` refuses.

    Notes
    -----
    A table has no sign for a suppressed cell, so R2 of this release is that for a
    reader who takes suppressed cells for empty ones. A published sign tells more: that
    somebody is in the cell, and fewer than the threshold. Other cells are not
    suppressed along (secondary suppression): where a total is published too, a cell
    suppressed alone in its row or column follows from it by subtraction.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Chapter 5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> tc.perturbation.suppress_small_cells(xr.DataArray([0, 2, 3, 4], dims="x"), minimum=3).values.tolist()
    [[0, 0, 3, 4]]
    """
    table = check_table(table)
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    return labelled(table, np.where(is_small(table.values, minimum), 0, table.values)[None])


def small_cells(table: xr.DataArray, *, minimum: int) -> xr.DataArray:
    """Tell the cells with a count between 0 and a threshold, both excluded.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    minimum : int
        The smallest count that is not small; at least 2.

    Returns
    -------
    DataArray
        bool, dims of the table: True where `suppress_small_cells` suppresses and
        `adjust_small_cells` adjusts.

    Raises
    ------
    ParameterError
        `minimum` that is not a whole number from 2 to 2**53.
    TableError
        What `check_table` refuses.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Chapter 5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> tc.perturbation.small_cells(xr.DataArray([0, 2, 3, 4], dims="x"), minimum=3).values.tolist()
    [False, True, False, False]
    """
    table = check_table(table)
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    return table.copy(data=is_small(table.values, minimum)).rename("small")


def is_small(counts: Counts, minimum: int) -> npt.NDArray[np.bool_]:
    """Which counts lie between 0 and the minimum, both excluded."""
    return (counts > 0) & (counts < minimum)
