"""Entropy of a table, and what remains of it once a release is known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import entr, xlog1py, xlogy

from taciturn.errors import ParameterError, TableError
from taciturn.information.reduction import (
    cell_mask,
    checked_pair,
    log_base,
    reduced_dims,
    sums_of_pair,
    sums_of_table,
)
from taciturn.schema import draw_dims, table_dims
from taciturn.tables.checks import check_counts, check_table, reordered
from taciturn.validate import names_of

__all__ = [
    "averaged_conditional_entropy",
    "conditional_entropy",
    "conditional_entropy_from_joint",
    "conditional_entropy_from_transition",
    "entropy",
]

_BLOCK_BYTES = 64 * 2**20


def entropy(
    table: xr.DataArray, *, dim: str | Sequence[str] | None = None, base: float | None = None
) -> xr.DataArray:
    r"""Entropy of the distribution of individuals over cells.

    .. math:: H(X) = -\sum_i p_i \log p_i, \qquad p_i = F_i / N

    with :math:`0 \log 0 = 0`.

    Parameters
    ----------
    table : DataArray
        Frequency table, or draws of one; `chain`, `draw` and `replicate` are kept.
    dim : str or sequence of str, optional
        Variables to sum over; with fewer than all, each row or column is treated as a
        table of its own.
    base : float, optional
        Base of the logarithm: 2 gives bits, None nats.

    Returns
    -------
    DataArray
        In ``[0, log K]``, one value per table.

    Raises
    ------
    TableError
        An invalid or empty table.
    ParameterError
        An unknown `dim` or an invalid `base`.

    References
    ----------
    Antal, Shlomo & Elliot (2014), eq. (3.1).

    Examples
    --------
    >>> import taciturn as tc
    >>> float(tc.information.entropy(tc.load_dataset("area_by_sex"), base=2).round(4))
    4.2944
    """
    table = check_table(table, draws=True, values=False)
    over = reduced_dims(table, dim)
    sums = sums_of_table(table, cell_mask(table, None), over)
    return (sums["entropy"] / log_base(base)).rename("entropy")


def conditional_entropy(
    table: xr.DataArray,
    released: xr.DataArray,
    *,
    dim: str | Sequence[str] | None = None,
    base: float | None = None,
) -> xr.DataArray:
    r"""Entropy that is left in a table once its release is known, `H(X | Y)`.

    Who moved where is unknown: as many individuals as possible are assumed to stay in
    their cell, and the rest to move at random. With :math:`p = F/N`, :math:`q = G/M`,
    :math:`m = \min(p, q)`, :math:`r = p - m`,
    :math:`s = q - m`, :math:`t = \sum r`:

    .. math::

        H(X|Y) = -\sum m \log\frac{m}{q} - \sum r \log\frac{r}{t}
                 - \sum s \log\frac{s}{q}

    Parameters
    ----------
    table : DataArray
        The original table, `F`.
    released : DataArray
        The released table, `G`: rounded, perturbed or a sample. The totals may differ.
    dim, base
        As in `entropy`.

    Returns
    -------
    DataArray
        In ``[0, H(X)]``: 0 when `G` is proportional to `F`, `H(X)` when nothing is
        released (`M = 0`). Draws of one and replicates of the other are combined in all
        pairs.

    Raises
    ------
    TableError
        An invalid or empty table, or tables whose categories differ.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Theorem 4 and eq. (3.6). The work is proportional to
    `K`; no `K × K` matrix is formed.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> left = tc.information.conditional_entropy(religion, sample)
    >>> bool(left < tc.information.entropy(religion))
    True
    """
    table, released = checked_pair(table, released, values=False)
    over = reduced_dims(table, dim)
    sums = sums_of_pair(table, released, cell_mask(table, None), over)
    return (sums["conditional_entropy"] / log_base(base)).rename("conditional_entropy")


def conditional_entropy_from_joint(
    joint: xr.DataArray, *, given: str | Sequence[str], base: float | None = None
) -> xr.DataArray:
    """`H(X | Y)` when it is known who moved where.

    Parameters
    ----------
    joint : DataArray
        Non-negative counts or probabilities of all pairs: the variables before and
        after release, under different names (``area`` and ``area_released``). It is
        scaled to sum to one. `chain`, `draw` and `replicate` are kept.
    given : str or sequence of str
        The variables of the release, `Y`.
    base : float, optional
        As in `entropy`.

    Returns
    -------
    DataArray
        ``H(X, Y) - H(Y)``, at least 0.

    Raises
    ------
    TableError
        Negative or non-finite entries, or a joint that sums to 0 or to more than a
        double holds.
    ParameterError
        `given` names no variable of `joint`, or all of them.

    Examples
    --------
    >>> import numpy as np, xarray as xr, taciturn as tc
    >>> stay = xr.DataArray(np.diag([3, 1]), dims=("x", "y"))
    >>> float(tc.information.conditional_entropy_from_joint(stay, given="y"))
    0.0
    """
    if not isinstance(joint, xr.DataArray):
        raise TableError(f"joint must be an xarray.DataArray, got {type(joint).__name__}")
    after = list(dict.fromkeys(names_of(given, "given")))
    before = [dim for dim in table_dims(joint) if dim not in after]
    unknown = [dim for dim in after if dim not in table_dims(joint)]
    if unknown or not after or not before:
        raise ParameterError(
            f"given must name some but not all variables of the joint, {table_dims(joint)}; got"
            f" {after}"
        )
    _refuse_bad_mass(joint, "joint")
    joint = joint.astype(np.float64)
    with np.errstate(over="ignore"):
        total = joint.sum(before + after)
        if bool((total <= 0).any()):
            raise TableError("joint sums to 0: there is nobody in it")
        if not bool(np.isfinite(total).all()):
            raise TableError("joint sums to more than a double holds")

    def uncertainty(values: Any) -> Any:
        flat = values.reshape(*values.shape[: -len(before)], -1)
        return _uncertainty(np.moveaxis(flat, -1, 0))

    of_each: xr.DataArray = xr.apply_ufunc(
        uncertainty,
        joint / total,
        input_core_dims=[before],
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    return (of_each.sum(after) / log_base(base)).rename("conditional_entropy")


def conditional_entropy_from_transition(
    table: xr.DataArray, transition: xr.DataArray, *, base: float | None = None
) -> xr.DataArray:
    """`H(X | Y)` of a table under known transition probabilities.

    Parameters
    ----------
    table : DataArray
        The original table.
    transition : DataArray
        ``P(after | before)``: the variables of `table` and, under other names, those
        after release; sums to 1 over the latter wherever `table` has somebody.
    base : float, optional
        As in `entropy`.

    Returns
    -------
    DataArray

    Raises
    ------
    TableError
        Probabilities that are negative or not finite, or that do not sum to 1 in an
        occupied cell.

    Examples
    --------
    >>> import numpy as np, xarray as xr, taciturn as tc
    >>> table = xr.DataArray([2, 2], dims="x")
    >>> swap = xr.DataArray([[0.5, 0.5], [0.5, 0.5]], dims=("x", "y"))
    >>> float(tc.information.conditional_entropy_from_transition(table, swap, base=2))
    1.0
    """
    table = check_table(table, draws=True, like=(transition,))
    if not isinstance(transition, xr.DataArray):
        raise TableError(f"transition must be an xarray.DataArray, got {type(transition).__name__}")
    variables = table_dims(table)
    after = [dim for dim in table_dims(transition) if dim not in variables]
    missing = [dim for dim in variables if dim not in transition.dims]
    if missing or not after:
        raise ParameterError(
            f"transition must have the table's variables {variables} and others after; it has"
            f" {transition.dims}"
        )
    _refuse_bad_mass(transition, "transition")
    for dim in variables:
        if transition.sizes[dim] != table.sizes[dim]:
            raise TableError(
                f"transition has {transition.sizes[dim]} categories of {dim!r}, the table"
                f" {table.sizes[dim]}"
            )
    transition = reordered(transition, table)
    for dim in variables:
        if not np.array_equal(transition[dim].values, table[dim].values):
            raise TableError(
                f"the categories of {dim!r} differ between the table and the transition"
            )
    wrong = (abs(transition.sum(after) - 1) > 1e-9) & (table > 0)
    if bool(wrong.any()):
        raise TableError(
            "transition must sum to 1 over the variables in after, for every cell with a count"
        )
    return conditional_entropy_from_joint(table * transition, given=after, base=base)


def averaged_conditional_entropy(
    table: xr.DataArray, released: xr.DataArray, *, base: float | None = None
) -> xr.DataArray:
    r"""`H(X | Y)` under the joint distribution averaged over replicates of a release.

    This is the uncertainty left to an intruder who knows the *method* and one release,
    whereas the mean of `conditional_entropy` over replicates is what is left on average
    to one who is told which cells gained and which lost. The joints are averaged first
    and the entropy is taken last, so the value is never below that mean.

    Parameters
    ----------
    table : DataArray
        One table, `F`.
    released : DataArray
        Replicates `G_1 .. G_B` of its release along ``replicate``. Empty ones are an
        outcome of their own, which leaves `H(X)`.
    base : float, optional
        As in `entropy`.

    Returns
    -------
    DataArray
        A scalar in ``[0, H(X)]``.

    Raises
    ------
    TableError
        No dimension ``replicate``, or tables that `conditional_entropy` refuses.

    Notes
    -----
    The averaged joint has no compact form: the work grows with `B K²`. It is formed in
    blocks of columns, so memory stays bounded.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Theorem 6.

    Examples
    --------
    >>> import taciturn as tc
    >>> sex = tc.load_dataset("area_by_sex")
    >>> rounded = tc.random_round(sex, rounding_base=3, replicates=200, random_seed=1)
    >>> mean = tc.information.conditional_entropy(sex, rounded).mean()
    >>> bool(tc.information.averaged_conditional_entropy(sex, rounded) >= mean)
    True
    """
    table, released = checked_pair(table, released)
    if draw_dims(table) or draw_dims(released) != ("replicate",):
        raise TableError(
            "the joint is averaged over the replicates of one table: expected 'replicate' in"
            f" released and no draws in table, got {draw_dims(released)} and {draw_dims(table)}"
        )
    variables = table_dims(table)
    counts: Any = table.values.ravel().astype(float)
    releases: Any = released.transpose("replicate", *variables).values.reshape(
        released.sizes["replicate"], -1
    )
    releases = releases.astype(float)
    check_counts(counts)
    check_counts(releases, name="released")
    totals = releases.sum(axis=1, keepdims=True)
    if counts.sum() == 0:
        raise TableError("table is empty: there is no distribution to average")
    p, whole = counts / counts.sum(), float(_uncertainty(counts / counts.sum()))
    filled, number = totals[:, 0] > 0, len(totals)
    releases, totals = releases[filled], totals[filled]
    q = releases / totals
    stay = np.minimum(p, q)
    # Of two shares near 1 the others tell how far they are apart.
    apart = (totals - releases) / totals - (counts.sum() - counts) / counts.sum()
    apart = np.where(stay > 0.5, apart, p - q)
    excess, missing = np.maximum(apart, 0), np.maximum(-apart, 0)
    moved = excess.sum(axis=1, keepdims=True)
    leaving = np.divide(excess, moved, out=np.zeros_like(excess), where=moved > 0)
    diagonal = stay.sum(axis=0) / number
    block = max(1, int(_BLOCK_BYTES // (8 * p.size)))
    left = (1 - filled.mean()) * whole
    for start in range(0, p.size, block):
        columns = slice(start, start + block)
        joint = leaving.T @ missing[:, columns] / number
        inside = np.arange(joint.shape[1])
        joint[start + inside, inside] += diagonal[columns]
        left += float(_uncertainty(joint).sum())
    return xr.DataArray(min(left, whole) / log_base(base), name="conditional_entropy")


def _uncertainty(mass: Any) -> Any:
    """``-sum m log(m / total)`` over the first axis. The largest share is computed from
    the others: near 1 it would say little of what it lacks.
    """
    largest = mass.argmax(axis=0)[None]
    most = np.take_along_axis(mass, largest, axis=0)[0]
    others = mass.copy()
    np.put_along_axis(others, largest, 0.0, axis=0)
    rest = others.sum(axis=0)
    total = np.where(most > 0, most + rest, 1.0)
    return entr(others).sum(axis=0) + xlogy(rest, total) - xlog1py(most, -rest / total)


def _refuse_bad_mass(array: xr.DataArray, name: str) -> None:
    if array.dtype.kind not in "biuf":
        raise TableError(f"{name} must hold numbers, got {array.dtype}")
    if not bool(((array >= 0) & np.isfinite(array)).all()):
        raise TableError(f"{name} must hold finite, non-negative values")
