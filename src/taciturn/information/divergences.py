"""How far a release is from its table: f-divergences, relative entropy and the
Hellinger distance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import rel_entr, xlogy

from taciturn.errors import ParameterError, TableError
from taciturn.information.reduction import checked_pair, log_base, reduced_dims
from taciturn.tables.checks import check_counts
from taciturn.validate import one_of, quoted

__all__ = ["DIVERGENCES", "Divergence", "f_divergence", "hellinger_distance", "relative_entropy"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Divergence:
    """A convex function `f` with `f(1) = 0`, and its two limits.

    Attributes
    ----------
    function : callable
        `f` on arrays of positive numbers.
    at_zero : float
        Limit of `f(x)` as `x` falls to 0: the contribution, per unit of `q`, of a cell
        that is empty in the table.
    slope : float
        Limit of `f(x)/x` as `x` grows: the contribution, per unit of `p`, of a cell
        that is empty in the release.
    """

    function: Callable[[Floats], npt.NDArray[np.floating[Any]]]
    at_zero: float
    slope: float


DIVERGENCES: Final = MappingProxyType(
    {
        "relative-entropy": Divergence(lambda x: xlogy(x, x), 0.0, inf),
        "squared-hellinger": Divergence(lambda x: 1 - np.sqrt(x), 1.0, 0.0),
        "total-variation": Divergence(lambda x: np.abs(x - 1) / 2, 0.5, 0.5),
        "chi-square": Divergence(lambda x: (x - 1) ** 2, 1.0, inf),
        "jensen-shannon": Divergence(
            lambda x: (xlogy(x, x) - xlogy(x + 1, (x + 1) / 2)) / 2, log(2) / 2, log(2) / 2
        ),
    }
)
"""Named divergences for `f_divergence`."""


def f_divergence(
    table: xr.DataArray,
    released: xr.DataArray,
    *,
    divergence: str | Divergence,
    dim: str | Sequence[str] | None = None,
) -> xr.DataArray:
    r"""An f-divergence between a table and its release.

    .. math:: D_f(P \| Q) = \sum_i q_i\, f(p_i / q_i)

    A cell with `q = 0 < p` adds `p` times the slope of `f` at infinity, one with `p = 0
    < q` adds `q f(0)`, and one that is empty in both adds nothing. The slope of `f` at
    1 need not be zero; that of ``1 - √x`` is not.

    Parameters
    ----------
    table, released : DataArray
        Counts; scaled to probabilities `p` and `q`.
    divergence : str or Divergence
        A name in `DIVERGENCES`, or a divergence of your own.
    dim : str or sequence of str, optional
        As in `entropy`.

    Returns
    -------
    DataArray
        At least 0, possibly infinite; in nats where logarithms occur.

    Raises
    ------
    ParameterError
        An unknown name.
    TableError
        An empty table, or tables that `conditional_entropy` refuses.

    References
    ----------
    Antal, Shlomo & Elliot (2014), eq. (3.3).

    Examples
    --------
    >>> import taciturn as tc
    >>> sex = tc.load_dataset("area_by_sex")
    >>> float(tc.information.f_divergence(sex, sex, divergence="total-variation"))
    0.0
    """
    if isinstance(divergence, str):
        if divergence not in DIVERGENCES:
            raise ParameterError(
                f"no divergence {quoted(divergence)}: there are {', '.join(DIVERGENCES)}"
            )
        divergence = DIVERGENCES[divergence]
    if not isinstance(divergence, Divergence):
        raise ParameterError(f"divergence must be a name or a Divergence, got {quoted(divergence)}")
    f, at_zero, slope = divergence.function, divergence.at_zero, divergence.slope

    def kernel(p: Floats, q: Floats) -> Floats:
        both = (p > 0) & (q > 0)
        ratio = np.divide(p, q, out=np.ones(both.shape), where=both)
        terms = np.where(both, q * f(ratio), 0.0)
        gained, lost = (p == 0) & (q > 0), (q == 0) & (p > 0)
        terms = np.where(gained, np.where(gained, q, 1.0) * at_zero, terms)
        return np.where(lost, np.where(lost, p, 1.0) * slope, terms)

    total = _summed(kernel, table, released, dim)
    # Terms of both signs cancel to a rounding error below 0 when the tables are nearly
    # proportional.
    return total.clip(min=0).rename("f_divergence")


def relative_entropy(
    table: xr.DataArray,
    released: xr.DataArray,
    *,
    dim: str | Sequence[str] | None = None,
    base: float | None = None,
) -> xr.DataArray:
    r"""Relative entropy (Kullback-Leibler divergence) of a table from its release.

    .. math:: D(P \| Q) = \sum_i p_i \log (p_i / q_i)

    Parameters
    ----------
    table, released, dim, base
        As in `conditional_entropy`.

    Returns
    -------
    DataArray
        At least 0; infinite if an occupied cell of the table is empty in the release.

    Raises
    ------
    TableError
        An empty table, or tables that `conditional_entropy` refuses.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> p, q = xr.DataArray([1, 1], dims="x"), xr.DataArray([1, 3], dims="x")
    >>> float(tc.information.relative_entropy(p, q).round(4))
    0.1438
    """
    total = _summed(rel_entr, table, released, dim)
    return (total.clip(min=0) / log_base(base)).rename("relative_entropy")


def hellinger_distance(
    table: xr.DataArray,
    released: xr.DataArray,
    *,
    dim: str | Sequence[str] | None = None,
    scale: Literal["counts", "probabilities"] = "counts",
) -> xr.DataArray:
    r"""Hellinger distance between a table and its release, a measure of what is lost.

    .. math:: HD(F, G) = \sqrt{\tfrac12 \sum_i (\sqrt{F_i} - \sqrt{G_i})^2}

    Parameters
    ----------
    table, released, dim
        As in `conditional_entropy`.
    scale : {"counts", "probabilities"}
        On counts, as in the tables of the paper, or on `F/N` and `G/M`, where it lies
        in ``[0, 1]``.

    Returns
    -------
    DataArray
        At least 0.

    Raises
    ------
    ParameterError
        An unknown `scale`.
    TableError
        Tables that `conditional_entropy` refuses; on probabilities also an empty
        release.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1 and Tables 1-4.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> f, g = xr.DataArray([4, 9], dims="x"), xr.DataArray([1, 9], dims="x")
    >>> float(tc.information.hellinger_distance(f, g).round(4))
    0.7071
    """
    one_of(scale, "scale", ("counts", "probabilities"))

    def kernel(p: Floats, q: Floats) -> Floats:
        return ((np.sqrt(p) - np.sqrt(q)) / sqrt(2)) ** 2

    total = _summed(kernel, table, released, dim, normalise=scale == "probabilities")
    return (total**0.5).rename("hellinger_distance")


def _summed(
    kernel: Callable[[Floats, Floats], Floats],
    table: xr.DataArray,
    released: xr.DataArray,
    dims: str | Sequence[str] | None,
    *,
    normalise: bool = True,
) -> xr.DataArray:
    """Sum a function of matching cells; the two tables broadcast over draws and
    replicates.
    """
    table, released = checked_pair(table, released)
    over = reduced_dims(table, dims)
    axes = tuple(range(-len(over), 0))

    def summed(p: Any, q: Any) -> Any:
        check_counts(p)
        check_counts(q, name="released")
        p, q = p.astype(float), q.astype(float)
        if normalise:
            p_total, q_total = p.sum(axis=axes, keepdims=True), q.sum(axis=axes, keepdims=True)
            for name, total in (("table", p_total), ("released", q_total)):
                if (total == 0).any():
                    raise TableError(
                        f"{name} is empty: nobody in it, so it has no distribution over cells"
                    )
            p, q = p / p_total, q / q_total
        return kernel(p, q).sum(axis=axes)

    total: xr.DataArray = xr.apply_ufunc(
        summed,
        table,
        released,
        input_core_dims=[over, over],
        join="exact",
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    return total
