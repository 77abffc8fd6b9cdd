"""Conventional rounding: each cell to the nearest multiple of a base."""

import xarray as xr

from taciturn.perturbation.replicates import labelled
from taciturn.schema import MAX_COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import whole_number

__all__ = ["conventional_round"]


def conventional_round(table: xr.DataArray, *, rounding_base: int = 5) -> xr.DataArray:
    r"""Round every cell to the nearest multiple of a base.

    .. math:: G_i = b \lfloor F_i / b + 1/2 \rfloor

    A count halfway between two multiples, which occurs only with an even base, goes up.
    Kept: multiples of the base, non-negative whole numbers, every cell within ``b / 2``
    of its count. Not kept: totals and expected values: where most counts are below ``b
    / 2``, most of the table is lost.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    rounding_base : int
        The base `b`, at least 2.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)`` with a single replicate, as all protection
        methods return.

    Raises
    ------
    ParameterError
        `rounding_base` that is not a whole number from 2 to 2**53.
    TableError
        Whatever `check_table` refuses.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Section 5.5.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([2, 3, 7, 8], dims="x")
    >>> tc.perturbation.conventional_round(table, rounding_base=5).values.tolist()
    [[0, 5, 5, 10]]
    """
    table = check_table(table)
    rounding_base = whole_number(rounding_base, "rounding_base", least=2, most=MAX_COUNT)
    rounded = (table.values + rounding_base // 2) // rounding_base * rounding_base
    return labelled(table, rounded[None], {})
