"""Suppression of small cells, and which cells are small."""

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.perturbation.replicates import Counts, labelled
from taciturn.schema import MAX_COUNT, SUPPRESSED
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = ["is_small", "small_cells", "suppress_small_cells"]


def suppress_small_cells(table: xr.DataArray, *, minimum: int) -> xr.DataArray:
    r"""Suppress small counts: 1, the least they can be, stands for them, and they are
    marked.

    .. math:: G_i = \begin{cases} 1 & 0 < F_i < m \\ F_i & \text{otherwise}\end{cases}

    Kept: zeros, counts of the minimum and above. Not kept: totals, and the expected
    value of any small cell.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    minimum : int
        The smallest count that is kept, `m`, at least 2. `small_cells` marks the cells
        below it.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)`` with a single replicate, as all protection
        methods return. The coordinate ``suppressed`` is True for suppressed
        cells, of which `write_release` writes no value.

    Raises
    ------
    ParameterError
        `minimum` that is not a whole number from 2 to 2**53.
    TableError
        Whatever `check_table` refuses; a variable called ``suppressed``.

    Notes
    -----
    A published mark says that a count is not 0. R2 and losses of this release are for a
    reader who takes each suppressed cell for the least that it can be; who knows the
    minimum may guess better, and who takes them for empty has not seen the marks.
    No further cells are suppressed (secondary suppression): if a total is published
    too, a cell that is the only one suppressed in its row or column follows by
    subtraction.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Chapter 5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([0, 2, 3, 4], dims="x")
    >>> tc.perturbation.suppress_small_cells(table, minimum=3).values.tolist()
    [[0, 1, 3, 4]]
    """
    table = check_table(table)
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    if SUPPRESSED in table.dims:
        raise TableError(f"a variable must not be called {SUPPRESSED!r}, which marks cells here")
    small = is_small(table.values, minimum)
    released = labelled(table, np.where(small, 1, table.values)[None], {})
    return released.assign_coords({SUPPRESSED: (released.dims, small[None])})


def small_cells(table: xr.DataArray, *, minimum: int) -> xr.DataArray:
    """Mark the cells whose count lies between 0 and the minimum, both excluded.

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
        Whatever `check_table` refuses.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Chapter 5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([0, 2, 3, 4], dims="x")
    >>> tc.perturbation.small_cells(table, minimum=3).values.tolist()
    [False, True, False, False]
    """
    table = check_table(table)
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    return table.copy(data=is_small(table.values, minimum)).rename("small")


def is_small(counts: Counts, minimum: int) -> npt.NDArray[np.bool_]:
    """Which counts lie between 0 and the minimum, both excluded."""
    return (counts > 0) & (counts < minimum)
