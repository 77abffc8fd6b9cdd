"""Shares of cells that give somebody away: small ones, and directly disclosive ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.information.reduction import cell_mask, reduced_dims, refuse_outside
from taciturn.schema import MAX_COUNT, table_dims
from taciturn.tables.checks import check_counts, check_table
from taciturn.validate import names_of, quoted, whole_number

__all__ = ["disclosive_cell_share", "small_cell_share"]


def small_cell_share(
    table: xr.DataArray,
    *,
    minimum: int = 3,
    dim: str | Sequence[str] | None = None,
    where: xr.DataArray | None = None,
) -> xr.DataArray:
    r"""Share of the cells that hold few individuals, who can be identified.

    .. math:: \frac{|\{i : 0 < F_i < m\}|}{K}

    Parameters
    ----------
    table : DataArray
        Population table `F` of `K` cells or draws of it, or a release.
    minimum : int
        The smallest count that is not small, `m`, at least 2, as in `small_cells`.
    dim : str or sequence of str, optional
        Variables to sum over. Fewer than all give the share in each row or column.
    where : DataArray of bool, optional
        True where a cell can be filled. The others, structural zeros, are no cells.

    Returns
    -------
    DataArray
        ``small_cell_share``, in ``[0, 1]``; `chain`, `draw` and `replicate` are kept,
        and dask-backed input stays lazy. NaN for a category without cells.

    Raises
    ------
    ParameterError
        `minimum` that is not a whole number from 2, or unknown `dim`.
    TableError
        A mask that leaves out a filled cell, and what `check_table` refuses.

    Notes
    -----
    *What it does not tell.* Empty cells are not small, although a row with one filled
    cell gives away what all in it have in common: `disclosive_cell_share` measures
    this. A small cell is one whatever is published of it.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, second edition,
    Section 5.9.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[1, 4, 0], [2, 7, 3]], dims=("a", "b"))
    >>> round(float(tc.risk.small_cell_share(table)), 3)
    0.333
    >>> tc.risk.small_cell_share(table, dim="a").values.tolist()
    [1.0, 0.0, 0.0]
    """
    minimum = whole_number(minimum, "minimum", least=2, most=MAX_COUNT)
    table = check_table(table, draws=True)
    over = reduced_dims(table, dim)
    mask = cell_mask(table, where)

    def kernel(counts: Any, cells: Any) -> Any:
        counts = _checked_chunk(counts, cells, table)
        axes = tuple(range(-len(over), 0))
        small = ((counts > 0) & (counts < minimum)).sum(axis=axes)
        return _share(small, cells.sum(axis=axes))

    return _applied(kernel, table, mask, over, "small_cell_share")


def disclosive_cell_share(
    table: xr.DataArray,
    *,
    coalition: int = 1,
    sensitive: str | Sequence[str] | None = None,
    where: xr.DataArray | None = None,
) -> xr.DataArray:
    r"""Share of the cells that are directly disclosive to a coalition of `k`
    individuals.

    .. math:: \frac{|\{i : F_i > 0,\ F_{i+} - k \le F_i \text{ for some sensitive
        variable}\}|}{K}

    with :math:`F_{i+}` the total of the cells that differ from `i` in the sensitive
    variable alone, and `i` itself, at least two of which can be filled. At most `k`
    individuals are outside the cell: who knows them, because they are they, concludes
    that all others are in it. Outsiders are ``k = 0``, who need a total that has one
    filled cell.

    Parameters
    ----------
    table : DataArray
        Population table `F` of `K` cells or draws of it, or a release.
    coalition : int
        How many individuals know of each other, `k`, at least 0.
    sensitive : str or sequence of str, optional
        The variables that an attacker wants to learn of others, all by default. Totals
        over each of them are taken to be published.
    where : DataArray of bool, optional
        True where a cell can be filled. The others, structural zeros, are no cells.

    Returns
    -------
    DataArray
        ``disclosive_cell_share``, in ``[0, 1]``, which does not fall with `coalition`
        or with more sensitive variables; `chain`, `draw` and `replicate` are kept, and
        dask-backed input stays lazy.

    Raises
    ------
    ParameterError
        `coalition` that is not a whole number from 0, or `sensitive` that does not name
        variables of the table.
    TableError
        A mask that leaves out a filled cell, and what `check_table` refuses.

    Notes
    -----
    *What is known anyway.* Where one cell of a total can be filled at all, because the
    others are structural zeros or the variable has one category, nothing is learnt from
    it, and it makes no cell disclosive here.

    *Empty cells* are not disclosive: nobody is in them of whom something could be
    learnt. Totals over several sensitive variables add no cell, as they are not below
    those over one.

    *What it does not tell.* Attackers are told the true cells and totals. What
    suppression or perturbation leave them with is the question of `attacker_bounds`.
    Where several categories together say what one would, such as kinds of one disease,
    merge them first, and measure both tables.

    References
    ----------
    Lupp & Langsrud (2021), Suppression of directly-disclosive cells in frequency
    tables, UNECE/Eurostat expert meeting on statistical data confidentiality; Hundepool
    et al., Handbook on Statistical Disclosure Control, second edition, Section 5.9.

    Examples
    --------
    Both in region 1 are ill, which anybody can see. The one in region 2 who is well
    knows that the other three are ill.

    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[2, 0], [3, 1]], dims=("region", "health"))
    >>> given = {"sensitive": "health"}
    >>> float(tc.risk.disclosive_cell_share(table, coalition=0, **given))
    0.25
    >>> float(tc.risk.disclosive_cell_share(table, coalition=1, **given))
    0.5
    """
    coalition = whole_number(coalition, "coalition", least=0, most=MAX_COUNT)
    table = check_table(table, draws=True)
    variables = table_dims(table)
    learnt = variables if sensitive is None else names_of(sensitive, "sensitive")
    if not learnt or not set(learnt) <= set(variables):
        raise ParameterError(
            f"sensitive must name variables of the table, {variables}; got {quoted(sensitive)}"
        )
    mask = cell_mask(table, where)

    def kernel(counts: Any, cells: Any) -> Any:
        counts = _checked_chunk(counts, cells, table)
        found = np.zeros(counts.shape, dtype=bool)
        for dim in learnt:
            axis = variables.index(dim) - len(variables)
            total = counts.sum(axis=axis, keepdims=True)
            unknown = cells.sum(axis=axis, keepdims=True) > 1
            found |= (total - counts <= coalition) & unknown
        axes = tuple(range(-len(variables), 0))
        return _share((found & (counts > 0)).sum(axis=axes), cells.sum(axis=axes))

    return _applied(kernel, table, mask, list(variables), "disclosive_cell_share")


def _checked_chunk(counts: Any, cells: Any, table: xr.DataArray) -> Any:
    """Lazy counts are checked where they are computed, and that they are in cells."""
    if table.chunks is None:
        return counts
    check_counts(counts)
    refuse_outside(counts, cells)
    return counts.astype(np.int64)


def _share(found: Any, cells: Any) -> Any:
    return np.where(cells > 0, found / np.maximum(cells, 1), np.nan)


def _applied(
    kernel: Any, table: xr.DataArray, mask: xr.DataArray, over: list[str], name: str
) -> xr.DataArray:
    share: xr.DataArray = xr.apply_ufunc(
        kernel,
        table,
        mask,
        input_core_dims=[over, over],
        join="exact",
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    return share.rename(name)
