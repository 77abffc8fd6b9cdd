"""Attained bounds of the cells or totals of a linear system, and the table of
results.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.bounds.of_cells import attained_bounds
from taciturn.attack.bounds.of_totals import signed_total_bounds, total_bounds
from taciturn.attack.system import UNLIMITED, Booleans, Integers, LinearSystem
from taciturn.errors import TableError

__all__ = ["RESULTS", "bounds_of", "bounds_table", "check_names"]

RESULTS: Final = ("lower", "upper", "n_values", "risk", "disclosed", "published")
"""Variables of the table of results."""


def bounds_of(
    system: LinearSystem,
    labels: xr.DataArray,
    group: Integers,
    asked: Booleans,
    *,
    on_cell: Callable[[], object] = lambda: None,
    known: Integers | None = None,
    deadline: float = np.inf,
) -> tuple[Integers, Integers]:
    """The least and the most that each asked total of a margin can be, in steps; over
    all variables of the table, each asked cell.

    Parameters
    ----------
    system : LinearSystem
        The release.
    labels, group : DataArray, array of int64
        The margin, as `margin_of` gives it.
    asked : array of bool, shape (totals,)
        The totals whose bounds are wanted.
    on_cell : callable
        Called when the bounds of an asked total that is open are known.
    known : array of int64, shape (cells,), optional
        A compatible table, and
    deadline : float
        when to stop, as `attained_bounds` takes them.

    Returns
    -------
    lower, upper : array of int64, shape (totals,)
        `UNLIMITED` above, and ``-UNLIMITED`` below, where nothing limits a total; not
        necessarily attained where one is not asked for.

    Raises
    ------
    TableError, AttackError
        As `attained_bounds` and `total_bounds`.
    """
    if set(labels.dims) != set(system.published.dims):
        bounds = signed_total_bounds if system.signed else total_bounds
        return bounds(
            system, labels, group, asked, on_total=on_cell, known=known, deadline=deadline
        )
    low, high = attained_bounds(
        system,
        asked[group][system.unknown],
        on_cell=on_cell,
        known=None if known is None else known[system.unknown],
        deadline=deadline,
    )
    lower = np.empty(len(asked), dtype=np.int64)
    lower[group] = system.published.values.ravel()
    upper = lower.copy()
    lower[group[system.unknown]], upper[group[system.unknown]] = low, high
    return lower, upper


def check_names(table: xr.DataArray) -> None:
    """Raise `TableError` where a variable or level is called like a result."""
    taken = [str(name) for name in table.coords if name in RESULTS]
    taken += [str(name) for name in table.dims if name in RESULTS]
    if taken:
        raise TableError(
            f"{taken[0]!r} cannot name a variable or level: it is among the results, {RESULTS}"
        )


def bounds_table(
    labels: xr.DataArray,
    lower: Integers,
    upper: Integers,
    *,
    asked: Booleans,
    published: Booleans,
    decimals: int,
) -> xr.Dataset:
    """Bounds in the table's units with the risk that they mean, as `attacker_bounds`
    returns them; all arrays over the cells of `labels`, bounds in steps.
    """
    low = np.where(asked, np.where(lower <= -UNLIMITED, -np.inf, lower), np.nan)
    high = np.where(asked, np.where(upper >= UNLIMITED, np.inf, upper), np.nan)
    values = high - low + 1
    with np.errstate(divide="ignore"):
        risk = np.where(values == 1, np.nan, 1 / np.log2(values))
    step = 10.0**decimals
    arrays: tuple[npt.NDArray[Any], ...] = (
        low / step,
        high / step,
        values,
        risk,
        values == 1,
        published,
    )
    columns = dict(zip(RESULTS, arrays, strict=True))
    return xr.Dataset(
        {name: (labels.dims, a.reshape(labels.shape)) for name, a in columns.items()},
        coords={dim: labels[dim] for dim in labels.dims},
    )
