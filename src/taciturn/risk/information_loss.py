"""Information loss: how far a release is from its table, in terms that matter to its
users.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.information.reduction import checked_pair
from taciturn.schema import table_dims

__all__ = ["information_loss"]

_BLOCK_CELLS: Final = 2**20  # cells of pairs of tables to compare at a time
_MEASURES: Final = {
    "hellinger": np.float64,
    "mean_absolute_error": np.float64,
    "mean_relative_error": np.float64,
    "kept_zeros": np.int64,
    "lost_zeros": np.int64,
    "new_zeros": np.int64,
}

Floats = npt.NDArray[np.float64]


def information_loss(
    table: xr.DataArray, released: xr.DataArray, *, association: Sequence[str] | None = None
) -> xr.Dataset:
    r"""Compare a release with its table: distances, zeros and association.

    With `F` the table, `G` the release and `K` cells:

    .. math::

        HD = \sqrt{\tfrac12 \sum_i (\sqrt{F_i} - \sqrt{G_i})^2}, \qquad
        MAE = \frac1K \sum_i |G_i - F_i|, \qquad
        MRE = \frac1K \sum_i \frac{|G_i - F_i|}{\max(F_i, 1)}

    and, over the two-way table of two variables with `R` and `C` categories and shares
    `p`,

    .. math::

        V = \sqrt{\frac{1}{\min(R, C) - 1}
            \sum_{rc} \frac{(p_{rc} - p_{r+} p_{+c})^2}{p_{r+} p_{+c}}}

    Parameters
    ----------
    table : DataArray
        Frequency table, or draws of it.
    released : DataArray
        What is released, or replicates of it. Draws and replicates give all their
        pairs; a dimension that both tables have pairs them one to one.
    association : sequence of two str, optional
        The variables whose Cramér's V is compared, on the two-way table of both.
        Without it those of a table that has two; for other tables the measure is then
        left out.

    Returns
    -------
    Dataset
        On the dimensions `chain`, `draw` and `replicate` of the two tables; lazy ones
        are computed. For a release that is the table all but ``kept_zeros`` are 0:

        - ``hellinger``: `hellinger_distance` on counts, at least 0;
        - ``mean_absolute_error``: MAE, in individuals a cell, at least 0;
        - ``mean_relative_error``: MRE, at least 0; an empty cell is taken for one with
          one individual, so each individual that the release puts there adds 1;
        - ``kept_zeros``, ``lost_zeros``: empty cells that the release leaves empty and
          that it fills, numbers that sum to the empty cells of the table;
          ``new_zeros``: filled cells that it empties;
        - ``cramers_v_change``: V of the release less V of the table, from -1 to 1;
          below 0 where the release weakens the association. V is 0 where fewer than two
          rows or columns are filled.

    Raises
    ------
    TableError
        Mismatched categories, or what `check_table` refuses.
    ParameterError
        `association` that does not name two variables of the table.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1; Shlomo (2007), Statistical disclosure
    control methods for census frequency tables, International Statistical Review 75,
    199-217.

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
    others = tuple(axis - len(variables) for axis, dim in enumerate(variables) if dim not in pair)
    kinds = {**_MEASURES, **({"cramers_v_change": np.float64} if pair else {})}

    def kernel(F: Any, G: Any) -> tuple[npt.NDArray[Any], ...]:
        cells = F.shape[F.ndim - len(variables) :]
        lead = np.broadcast_shapes(F.shape[: -len(cells)], G.shape[: -len(cells)])
        pairs, step = int(np.prod(lead)), max(1, _BLOCK_CELLS // int(np.prod(cells)))
        F, G = np.broadcast_to(F, lead + cells), np.broadcast_to(G, lead + cells)
        found = {name: np.empty(pairs, dtype=kind) for name, kind in kinds.items()}
        for start in range(0, pairs, step):
            block = np.arange(start, min(start + step, pairs))
            at = np.unravel_index(block, lead) if lead else np.s_[None]
            f, g = F[at], G[at]
            measures = _distances_and_zeros(f.reshape(len(block), -1), g.reshape(len(block), -1))
            if pair:
                measures["cramers_v_change"] = _cramers_v(g.sum(axis=others)) - _cramers_v(
                    f.sum(axis=others)
                )
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
    if len(named) != 2 or named[0] == named[1] or not all(name in variables for name in named):
        raise ParameterError(
            f"association must name two variables of the table, {tuple(variables)}; got {named}"
        )
    return named


def _distances_and_zeros(
    f: npt.NDArray[np.int64], g: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """Measures of tables against releases, both of shape (pairs, cells)."""
    change = np.abs(g - f)
    empty, emptied = f == 0, g == 0
    return {
        "hellinger": np.sqrt(((np.sqrt(f) - np.sqrt(g)) ** 2).sum(axis=1) / 2),
        "mean_absolute_error": change.mean(axis=1),
        "mean_relative_error": (change / np.maximum(f, 1)).mean(axis=1),
        "kept_zeros": (empty & emptied).sum(axis=1),
        "lost_zeros": (empty & ~emptied).sum(axis=1),
        "new_zeros": (~empty & emptied).sum(axis=1),
    }


def _cramers_v(tables: npt.NDArray[np.int64]) -> Floats:
    """Cramér's V of two-way tables of shape (tables, rows, columns)."""
    counts = tables.astype(float)
    p = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    expected = p.sum(axis=2, keepdims=True) * p.sum(axis=1, keepdims=True)
    departure = np.divide((p - expected) ** 2, expected, out=np.zeros_like(p), where=expected > 0)
    v: Floats = np.sqrt(departure.sum(axis=(1, 2)) / max(min(p.shape[1:]) - 1, 1))
    return np.minimum(v, 1)  # which rounding errors may pass
