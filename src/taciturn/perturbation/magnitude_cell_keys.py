"""The cell-key method for magnitudes: noise on totals of a quantity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.perturbation.magnitude_noise import (
    FlexShare,
    check_magnitude_perturbation,
    drawn_noise,
)
from taciturn.perturbation.replicates import Counts, seed_mark
from taciturn.perturbation.summed_keys import further_keys, given_keys, summed_keys
from taciturn.schema import MAX_COUNT
from taciturn.tables.records import Records, read_records
from taciturn.tables.values import whole_steps
from taciturn.validate import (
    generator,
    is_real,
    name_of,
    names_of,
    quoted,
    real_number,
    whole_number,
)

__all__ = ["cell_key_magnitudes"]

Floats = npt.NDArray[np.float64]

_MOST_DECIMALS = 9
_MOST_RANKS = 100


def cell_key_magnitudes(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    value: str,
    *,
    perturbation: xr.DataArray,
    share: float | FlexShare,
    rank_weights: Sequence[float] = (1.0,),
    separation: float = 0.0,
    contributor: str | None = None,
    decimals: int = 0,
    keys: str | Sequence[float] | Floats | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> xr.DataArray:
    r"""Total a quantity of microdata and perturb the totals by the cell-key method.

    With :math:`x_1 \ge x_2 \ge \dots` the contributions to a cell and `X` their sum,

    .. math::

        G = X + \sum_{j=1}^K \delta_j v_j, \qquad \delta_j = \varepsilon_j\, m(X)\, x_j

    where the noise :math:`v_j` follows from the key of the cell by the perturbation
    table, in the row of :math:`x_j / \delta_j`, between rows by interpolation. Small
    totals, :math:`0 < X \le z_s`, have noise of a fixed size instead, so that those
    near zero do not stay as they are: :math:`G = X + \delta v` with :math:`\delta =
    m(0)\, z_s`, in the row of :math:`X / \delta`.

    With the same `keys` and perturbation table, a set of records gets the same noise in
    every table in which it forms a cell, margins included. Tables and their margins are
    perturbed separately and do not add up. Kept: zero totals, and the expected value of
    each; no total becomes negative. The variance of the noise is at most :math:`V
    \sum_j \delta_j^2`, and exactly that where each :math:`x_j / \delta_j \ge D` and the
    variance of the last row is `V`. Rounding to a step adds at most half of one.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row a record, held in memory.
    variables : sequence of str
        The classifying variables.
    value : str
        The quantity: a number of at least 0 in every row. A record of 0 adds nothing
        to a cell, and its key neither.
    perturbation : DataArray
        As `magnitude_perturbation_table` returns it, dims ``(ratio, noise)``, with the
        largest noise `D` and the variance `V`.
    share : float or FlexShare
        Size `m` of the noise as a share of the contributions, above 0 and at most 1, or
        how it depends on the total.
    rank_weights : sequence of float
        :math:`\varepsilon_1 = 1`, and those of the next largest contributions, falling
        and at least 0; there are as many as contributions that make noise, `K`.
    separation : float
        The total `z_s` up to which noise is of a fixed size, in units of `value`; 0 for
        none.
    contributor : str, optional
        Column that names who contributes. Rows of one contributor in one cell are one
        contribution, their sum. Without it every row is one.
    decimals : int
        Decimal places of the values and of the result, from 0 to 9. True sums are
        exact, in whole steps of ``10**-decimals``.
    keys : str or array of float, optional
        Record keys, as in `cell_key_records`. The noise of magnitudes comes from
        further keys that follow from the sum of these, and shows no relation to the
        noise of counts.
    categories : mapping of str to sequence, optional
        As in `read_table`.
    replicates : int
        Number of independent sets of record keys; must be 1 if `keys` are given.
    random_seed : int or Generator, optional
        As in `cell_key`; must be None if `keys` are given.
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

    Returns
    -------
    DataArray
        float64, dims ``(replicate, *variables)``, named ``total``, in the units of
        `value`.

    Raises
    ------
    ParameterError
        An argument outside its range, keys that `cell_key_records` refuses, a
        perturbation table that is not one of magnitudes.
    TableError
        An unknown column, a missing label; a value that is missing, negative, not a
        number or has more decimals; a grand total beyond 2**53 steps.

    References
    ----------
    Giessing & Tent (2019), as in `FlexShare`; Meindl & Enderle (2019), cellKey:
    consistent perturbation of statistical tables, UNECE/Eurostat work session on
    statistical data confidentiality.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": list("AAAB"), "trade": list("ffmf")})
    >>> firms["turnover"] = [600, 300, 10, 50]
    >>> keyed = {
    ...     "value": "turnover",
    ...     "perturbation": tc.perturbation.magnitude_perturbation_table(2, 1),
    ...     "share": tc.perturbation.FlexShare(small=0.3, large=0.1, turn=500),
    ...     "rank_weights": (1, 0.5),
    ...     "keys": tc.perturbation.record_keys(4),
    ... }
    >>> areas = tc.perturbation.cell_key_magnitudes(firms, ["area"], **keyed)
    >>> both = tc.perturbation.cell_key_magnitudes(firms, ["area", "trade"], **keyed)
    >>> same = both.sel(area="B", trade="f") == areas.sel(area="B")  # one firm
    >>> bool(same.all())
    True
    """
    variables, value = names_of(variables, "variables"), name_of(value, "value")
    replicates = whole_number(replicates, "replicates", least=1)
    decimals = whole_number(decimals, "decimals", least=0, most=_MOST_DECIMALS)
    separation = real_number(separation, "separation", least=0) * 10**decimals
    cumulated, noise = check_magnitude_perturbation(perturbation)
    weights = _checked_weights(rank_weights)
    if not isinstance(share, FlexShare):
        share = real_number(share, "share", above=0, most=1)
    others = {value: "values"} | ({keys: "record keys"} if isinstance(keys, str) else {})
    columns = variables if contributor is None else [*variables, contributor]
    how: dict[str, Any] = {"others": others, "counted": False, "sep": sep, "encoding": encoding}
    read = read_records(records, columns, categories, **how)
    cells = _cells(read, variables, value, contributor, len(weights), decimals)
    of_records = given_keys(keys, read, replicates=replicates, random_seed=random_seed)
    units, ratios = _units(cells, share, weights, separation, 10**decimals)
    rng = generator(random_seed)
    of_cells = np.empty((replicates, cells.totals.size))
    for row in of_cells:
        drawn = rng.random(read.rows) if of_records is None else of_records
        row[:] = summed_keys(cells.index, drawn[cells.counted], len(row))
    added = np.zeros(of_cells.shape)
    for rank, (unit, ratio) in enumerate(zip(units, ratios, strict=True)):
        added += unit * drawn_noise(ratio, further_keys(of_cells, rank + 1), cumulated, noise)
    out = (cells.totals + np.rint(added)) / 10**decimals
    labels = {dim: read.categories[dim] for dim in variables}
    return xr.DataArray(
        out.reshape(replicates, *map(len, labels.values())),
        dims=("replicate", *variables),
        coords={"replicate": np.arange(replicates), **labels},
        name="total",
        attrs=seed_mark(random_seed),
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Totals in steps, and what makes their noise."""

    totals: Counts
    largest: Floats
    """Largest contributions, shape ``(ranks, cells)``, 0 beyond their number."""
    counted: npt.NDArray[np.bool_]
    """Which records are above 0."""
    index: Counts
    """The cells of these."""


def _cells(
    read: Records,
    variables: list[str],
    value: str,
    contributor: str | None,
    ranks: int,
    decimals: int,
) -> _Cells:
    steps = _steps(read, value, decimals)
    index = read.cells(variables)
    number = int(np.prod([len(read.categories[dim]) for dim in variables]))
    totals = np.zeros(number, dtype=np.int64)
    np.add.at(totals, index, steps)
    counted = steps > 0
    cell, size = index[counted], steps[counted]
    if contributor is not None:
        pairs = np.column_stack([cell, read.codes[contributor][counted]])
        found, group = np.unique(pairs, axis=0, return_inverse=True)
        cell, size = found[:, 0], np.zeros(len(found), dtype=np.int64)
        np.add.at(size, group.ravel(), steps[counted])
    order = np.lexsort((-size, cell))
    cell, size = cell[order], size[order]
    rank = np.arange(len(cell)) - np.searchsorted(cell, cell)
    kept = rank < ranks
    largest = np.zeros((ranks, number))
    largest[rank[kept], cell[kept]] = size[kept]
    return _Cells(totals, largest, counted, index[counted])


def _steps(read: Records, value: str, decimals: int) -> Counts:
    """The values in whole steps."""
    steps = [whole_steps(raw, decimals) for raw in read.others[value]]
    if None in steps:
        row = steps.index(None)
        raise TableError(
            f"{value!r} must be a number of at least 0 with at most {decimals} decimals: row"
            f" {row + 1} of {read.origin} holds {quoted(read.others[value][row])}"
        )
    if sum(step for step in steps if step is not None) > MAX_COUNT:
        raise TableError(f"the total of {value!r} must be at most 2**53 steps of 10**-{decimals}")
    return np.array(steps, dtype=np.int64)


def _units(
    cells: _Cells, share: float | FlexShare, weights: Floats, separation: float, step: int
) -> tuple[Floats, Floats]:
    """Units of the noise in steps, and how many of them a contribution has, each of
    shape ``(ranks, cells)``.
    """
    if isinstance(share, FlexShare):
        shares, of_small = share.at(cells.totals / step), share.small
    else:
        shares, of_small = np.full(cells.totals.shape, share), share
    units = weights[:, None] * shares * cells.largest
    limits = cells.largest.copy()
    small = cells.totals <= separation
    units[:, small] = 0
    units[0, small] = separation * of_small
    limits[0, small] = cells.totals[small]
    ratios = np.divide(limits, units, out=np.zeros_like(units), where=units > 0)
    return units, ratios


def _checked_weights(weights: Any) -> Floats:
    each = list(weights) if np.iterable(weights) and not isinstance(weights, str) else []
    numbers = each and len(each) <= _MOST_RANKS and all(is_real(weight) for weight in each)
    if not numbers or each[0] != 1 or each[-1] < 0 or (np.diff(each) > 0).any():
        raise ParameterError(
            f"rank_weights must be 1 to {_MOST_RANKS} numbers, 1 and then falling ones of at least"
            f" 0, such as (1, 0.5, 0.2); got {quoted(weights)}"
        )
    return np.array(each, dtype=float)
