"""Information loss: how far a release is from its table, in terms that matter to its
users.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.information.reduction import cell_mask, checked_pair
from taciturn.schema import table_dims
from taciturn.validate import quoted

__all__ = ["information_loss"]

_BLOCK_CELLS: Final = 2**20  # cells of pairs of tables to compare at a time
_MEASURES: Final = {
    "hellinger": np.float64,
    "mean_absolute_error": np.float64,
    "mean_relative_error": np.float64,
    "spearman": np.float64,
    "kept_zeros": np.int64,
    "lost_zeros": np.int64,
    "new_zeros": np.int64,
}
_OF_ASSOCIATION: Final = {
    "cramers_v_change": np.float64,
    "chi_squared_change": np.float64,
    "between_variance_change": np.float64,
}

Floats = npt.NDArray[np.float64]


def information_loss(
    table: xr.DataArray,
    released: xr.DataArray,
    *,
    association: Sequence[str] | None = None,
    where: xr.DataArray | None = None,
) -> xr.Dataset:
    r"""Compare a release with its table: distances, ranks, zeros and association.

    With `F` the table, `G` the release and `K` cells:

    .. math::

        HD = \sqrt{\tfrac12 \sum_i (\sqrt{F_i} - \sqrt{G_i})^2}, \qquad
        MAE = \frac1K \sum_i |G_i - F_i|, \qquad
        MRE = \frac1K \sum_i \frac{|G_i - F_i|}{\max(F_i, 1)}, \qquad
        \rho = \frac{\sum_i (a_i - \bar a)(b_i - \bar b)}
                    {\sqrt{\sum_i (a_i - \bar a)^2 \sum_i (b_i - \bar b)^2}}

    with `a` and `b` the ranks of the cells in `F` and in `G`, ties having the mean of
    theirs, and, over the two-way table of two variables with `R` and `C` categories,
    shares `p` and `N` individuals,

    .. math::

        \chi^2 &= N \sum_{rc} \frac{(p_{rc} - p_{r+} p_{+c})^2}{p_{r+} p_{+c}}, \qquad
        V = \sqrt{\frac{\chi^2 / N}{\min(R, C) - 1}} \\
        BV &= \sum_r p_{r+} \sum_c \Bigl(\frac{p_{rc}}{p_{r+}} - p_{+c}\Bigr)^2

    Parameters
    ----------
    table : DataArray
        Frequency table, or draws of it.
    released : DataArray
        What is released, or replicates of it. Draws and replicates give all their
        pairs; a dimension that both tables have pairs them one to one.
    association : sequence of two str, optional
        The variables whose association is compared, on the two-way table of both: the
        groups, `r`, and what is compared between them, `c`. Without it those of a table
        that has two, in its order; for other tables the measures of association are
        then left out.
    where : DataArray of bool, optional
        True where a cell can be filled. The others, structural zeros, are none of the
        `K` cells, have no rank and are no zeros that are kept.

    Returns
    -------
    Dataset
        On the dimensions `chain`, `draw` and `replicate` of the two tables; lazy ones
        are computed. For a release that is the table all are 0 but ``kept_zeros`` and
        ``spearman``, which is 1:

        - ``hellinger``: `hellinger_distance` on counts, at least 0;
        - ``mean_absolute_error``: MAE, in individuals a cell, at least 0;
        - ``mean_relative_error``: MRE, at least 0; an empty cell is taken for one with
          one individual, so each individual that the release puts there adds 1;
        - ``spearman``: :math:`\rho`, from -1 to 1, where the release orders the cells
          as the table does; 0 for a release that has one count everywhere, and NaN for
          a table that has, in all cells that can be filled: there is no order to lose;
        - ``kept_zeros``, ``lost_zeros``: empty cells that the release leaves empty and
          that it fills, numbers that sum to the empty cells of the table;
          ``new_zeros``: filled cells that it empties;
        - ``cramers_v_change``: V of the release less V of the table, from -1 to 1;
          below 0 where the release weakens the association. V is 0 where fewer than two
          rows or columns are filled;
        - ``chi_squared_change``: :math:`\chi^2` of the release, relative to that of the
          table, less 1; at least -1. What a test of independence gains or loses;
        - ``between_variance_change``: the same of `BV`, the variance of the shares of
          the categories `c` between the groups `r`. Below 0 where the groups have
          become more alike. Both are NaN where the table has no association at all.

    Raises
    ------
    TableError
        Mismatched categories, a `where` that leaves out somebody, or what `check_table`
        refuses.
    ParameterError
        `association` that does not name two variables of the table.

    Notes
    -----
    *What they do not tell.* The distances do not know which cells matter. A release can
    keep every rank and change every count, and can move people between cells of equal
    expectation without a trace in any measure of association. These three compare one
    two-way table, and not what a user would conclude: whether a test still rejects also
    depends on the degrees of freedom. :math:`\chi^2` grows with the number of
    individuals, so that a release with fewer of them lowers it although all shares are
    the same, which V and `BV` do not see.

    *Between-variance.* With `c` one category against all others, `BV` is the variance
    of its share between the groups, the numerator of :math:`R^2` in a one-way analysis
    of variance of who has the category; here it is summed over the categories, which is
    the numerator of Goodman and Kruskal's :math:`\tau`. Groups count by their size.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1; Shlomo (2007), Statistical disclosure
    control methods for census frequency tables, International Statistical Review 75,
    199-217; Hundepool et al., Handbook on Statistical Disclosure Control, second
    edition, Section 5.8; Goodman & Kruskal (1954), Measures of association for cross
    classifications, JASA 49, 732-764, Section 9.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> rounded = tc.random_round(
    ...     religion, rounding_base=3, replicates=10, random_seed=1
    ... )
    >>> loss = tc.information_loss(religion, rounded)
    >>> loss.sizes
    Frozen({'replicate': 10})
    >>> int(loss.lost_zeros.max())
    0
    """
    table, released = checked_pair(table, released, values=False)
    table, released = checked_pair(
        table.compute(), released.compute()
    )  # counts of lazy tables, too
    variables = list(table_dims(table))
    pair = _associated(variables, association)
    fillable: Any = slice(None)
    if where is not None:
        cell_mask(released, where, name="where, which holds for the release, too,")
        fillable = cell_mask(table, where).transpose(*variables).values.ravel()
    kinds = {**_MEASURES, **(_OF_ASSOCIATION if pair else {})}

    def kernel(F: Any, G: Any) -> tuple[npt.NDArray[Any], ...]:
        cells = F.shape[F.ndim - len(variables) :]
        lead = np.broadcast_shapes(F.shape[: -len(cells)], G.shape[: -len(cells)])
        pairs, step = int(np.prod(lead)), max(1, _BLOCK_CELLS // int(np.prod(cells)))
        single = F.ndim == len(cells)  # compared with all releases, and ranked once
        F, G = np.broadcast_to(F, lead + cells), np.broadcast_to(G, lead + cells)
        found = {name: np.empty(pairs, dtype=kind) for name, kind in kinds.items()}
        for start in range(0, pairs, step):
            block = np.arange(start, min(start + step, pairs))
            at = np.unravel_index(block, lead) if lead else np.s_[None]
            f, g = F[at][:1] if single else F[at], G[at]
            measures = _of_cells(*(each.reshape(len(each), -1)[:, fillable] for each in (f, g)))
            if pair:
                measures |= _of_association(*(_two_way(each, variables, pair) for each in (f, g)))
            for name, values in measures.items():
                found[name][block] = values
        return tuple(values.reshape(lead) for values in found.values())

    results = xr.apply_ufunc(
        kernel,
        table,
        released,
        input_core_dims=[variables, variables],
        output_core_dims=[[]] * len(kinds),
        join="exact",
    )
    return xr.Dataset(dict(zip(kinds, results, strict=True)))


def _associated(variables: list[str], association: Sequence[str] | None) -> list[str]:
    """The two variables whose association is compared, or an empty list."""
    if association is None:
        return variables if len(variables) == 2 else []
    named: list[Any] = list(association) if isinstance(association, list | tuple) else [association]
    known = all(isinstance(name, str) and name in variables for name in named)
    if not known or len(named) != 2 or named[0] == named[1]:
        raise ParameterError(
            f"association must name two variables of the table, {tuple(variables)}; got"
            f" {quoted(association)}"
        )
    return named


def _of_cells(f: npt.NDArray[np.int64], g: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Measures of tables against releases, both of shape (pairs, cells)."""
    change = np.abs(g - f)
    empty, emptied = f == 0, g == 0
    return {
        "hellinger": np.sqrt(((np.sqrt(f) - np.sqrt(g)) ** 2).sum(axis=1) / 2),
        "mean_absolute_error": change.mean(axis=1),
        "mean_relative_error": (change / np.maximum(f, 1)).mean(axis=1),
        "spearman": _spearman(f, g),
        "kept_zeros": (empty & emptied).sum(axis=1),
        "lost_zeros": (empty & ~emptied).sum(axis=1),
        "new_zeros": (~empty & emptied).sum(axis=1),
    }


def _spearman(f: npt.NDArray[np.int64], g: npt.NDArray[np.int64]) -> Floats:
    """Rank correlation of the cells of tables and releases, shape (pairs, cells)."""
    a, b = _centred_ranks(f), _centred_ranks(g)
    spread, kept = (a**2).sum(axis=1), (b**2).sum(axis=1)
    both = spread * kept
    rho = (a * b).sum(axis=1) / np.sqrt(np.where(both > 0, both, 1))
    return np.where(spread > 0, np.clip(rho, -1, 1), np.nan)


def _centred_ranks(counts: npt.NDArray[np.int64]) -> Floats:
    """Ranks along the last axis, less their mean; ties share the mean of theirs."""
    order = counts.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(counts, order, axis=1)
    places = np.arange(counts.shape[1])
    rises = ordered[:, 1:] > ordered[:, :-1]
    edge = np.ones((len(counts), 1), dtype=bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, rises]), places, 0), axis=1)
    ends = np.where(np.hstack([rises, edge]), places, places[-1])
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(counts.shape)
    np.put_along_axis(ranks, order, (first + last - places[-1]) / 2, axis=1)
    return ranks


def _two_way(
    tables: npt.NDArray[np.int64], variables: list[str], pair: list[str]
) -> npt.NDArray[np.int64]:
    """Tables of shape (pairs, *cells) summed over all but a pair of variables, whose
    axes are then in its order.
    """
    axes = [variables.index(name) + 1 for name in pair]
    others = tuple(set(range(1, tables.ndim)) - set(axes))
    summed: npt.NDArray[np.int64] = (
        tables.transpose(0, *axes, *others)
        .reshape(len(tables), *(tables.shape[axis] for axis in axes), -1)
        .sum(axis=-1)
    )
    return summed


def _of_association(
    f: npt.NDArray[np.int64], g: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """Measures of two-way tables against releases, shape (pairs, rows, columns)."""
    (phi_f, between_f), (phi_g, between_g) = _association(f), _association(g)
    most = max(min(f.shape[1:]) - 1, 1)  # of phi squared
    before, after = (np.minimum(np.sqrt(phi / most), 1) for phi in (phi_f, phi_g))
    chi_squared = (g.sum(axis=(1, 2)) * phi_g, f.sum(axis=(1, 2)) * phi_f)
    return {
        "cramers_v_change": after - before,
        "chi_squared_change": _relative_change(*chi_squared),
        "between_variance_change": _relative_change(between_g, between_f),
    }


def _association(tables: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Chi-squared over the individuals, and the between-variance, of two-way tables of
    shape (tables, rows, columns).
    """
    counts = tables.astype(float)
    p = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    of_rows, of_columns = p.sum(axis=2, keepdims=True), p.sum(axis=1, keepdims=True)
    expected = of_rows * of_columns
    # What independence leaves is a rounding error, and no association.
    departure = np.where(np.isclose(p, expected, rtol=1e-12, atol=0), 0, p - expected) ** 2
    phi = np.divide(departure, expected, out=np.zeros_like(p), where=expected > 0)
    between = np.divide(departure, of_rows, out=np.zeros_like(p), where=of_rows > 0)
    return phi.sum(axis=(1, 2)), between.sum(axis=(1, 2))


def _relative_change(after: Floats, before: Floats) -> Floats:
    """What is after relative to what was before, less 1; NaN where nothing was."""
    return np.where(before > 0, after / np.where(before > 0, before, 1) - 1, np.nan)
