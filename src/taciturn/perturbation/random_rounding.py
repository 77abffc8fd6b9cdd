"""Unbiased random rounding to a base."""

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.perturbation.replicates import Counts, replicated
from taciturn.schema import COUNT, MAX_COUNT
from taciturn.tables.checks import check_table
from taciturn.validate import is_whole, quoted, whole_number

__all__ = ["random_round"]


def random_round(
    table: xr.DataArray,
    *,
    rounding_base: int = 3,
    totals: str | int | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    r"""Round every cell to a neighbouring multiple of a base, without bias.

    A count with remainder `r` is rounded up with probability `r / b` and down
    otherwise, independently of all other cells:

    .. math:: P(G_i = F_i - r_i + b) = r_i / b, \qquad P(G_i = F_i - r_i) = 1 - r_i / b

    Kept: the expected value of each cell, multiples of the base, non-negative whole
    numbers. Not kept: totals. The sum of rounded cells has the right expectation, but
    differs from the total by up to ``b - 1`` per cell.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    rounding_base : int
        The base `b`, at least 2; the 2014 paper takes 3.
    totals : str or int, optional
        A label, such as ``"Total"``, of one more category for each variable: the totals
        of the table are rounded too, independently and from their true values, as
        statistical offices publish them. The rounded table then does not add up, and
        each rounded total is within ``b - 1`` of the true one. Measures that compare
        the release with the table take it without them:
        ``released.drop_sel(area="Total", sex="Total")``.
    replicates : int
        Number of independent roundings, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        For roundings that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    ParameterError
        `totals` that is no label; `rounding_base` that is not a whole number from 2 to
        2**53; fewer than one replicate.
    TableError
        Whatever `check_table` refuses, or `totals` is already a category.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 4. Totals: Shlomo (2007), Statistical
    disclosure control methods for census frequency tables, International Statistical
    Review 75, 199-217.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([3, 6], dims="x")
    >>> tc.random_round(table, rounding_base=3, random_seed=1).values.tolist()
    [[3, 6]]
    >>> tc.random_round(table, totals="Total", random_seed=1)["x"].values.tolist()
    [0, 1, 'Total']
    """
    table = check_table(table)
    rounding_base = whole_number(rounding_base, "rounding_base", least=2, most=MAX_COUNT)
    replicates = whole_number(replicates, "replicates", least=1)
    if totals is not None:
        if not isinstance(totals, str) and not is_whole(totals):
            raise ParameterError(
                f"totals must be a label, text or a whole number, got {quoted(totals)}"
            )
        table = _with_totals(table, totals)
    down, remainder = np.divmod(table.values, rounding_base)

    def release(rng: np.random.Generator, shape: tuple[int, ...]) -> Counts:
        rounded: Counts = (down + (rng.random(shape) * rounding_base < remainder)) * rounding_base
        return rounded

    return replicated(table, replicates, random_seed, release)


def _with_totals(table: xr.DataArray, label: str | int) -> xr.DataArray:
    """The table with one more category for each variable, for the sums over it."""
    if (whole := float(table.values.sum(dtype=float))) > MAX_COUNT:
        raise TableError(f"the table sums to {whole:.0f}: its totals must be at most 2**53")
    counts, coords = table.values, {}
    for axis, dim in enumerate(table.dims):
        labels = table.indexes[dim]
        if label in labels:
            raise TableError(
                f"totals: {label!r} is already a category of {dim!r}; give another label"
            )
        coords[dim] = labels.insert(len(labels), label)
        counts = np.concatenate([counts, counts.sum(axis=axis, keepdims=True)], axis=axis)
    return check_table(xr.DataArray(counts, dims=table.dims, coords=coords, name=COUNT))
