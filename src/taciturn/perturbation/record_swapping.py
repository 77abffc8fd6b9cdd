"""Record swapping: pairs of records in different areas exchange their geography."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from numba import njit

from taciturn.errors import ParameterError
from taciturn.perturbation.replicates import labelled
from taciturn.perturbation.swapping_joint import SwappedCells
from taciturn.schema import COUNT
from taciturn.tables.records import Records, read_records
from taciturn.validate import (
    generator,
    names_of,
    number_between,
    whole_number,
)

__all__ = ["swap_records", "swapped_table"]

Microdata = str | PathLike[str] | Any


def swap_records(
    records: Microdata,
    *,
    geography: str,
    rate: float,
    match: Sequence[str] = (),
    at_risk: Sequence[str] = (),
    minimum: int = 1,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.Dataset:
    """Choose pairs of records that exchange their geography.

    Records in cells of at most `minimum` of the table over `at_risk` come first, in
    random order; the others follow, in random order. Each that has not moved yet
    exchanges its geography with a record drawn uniformly from those that have not
    moved, live elsewhere and agree with it on `match`, until ``round(rate * n / 2)``
    pairs have formed. Who finds no partner stays.

    Kept exactly: the number of records in each area, every table of the other
    variables, and every table of the geography with `match` variables. What changes is
    the geography's association with all others.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row a unit that moves as a whole, a person or a household.
    geography : str
        The variable that is exchanged.
    rate : float
        Share of the records that change places, in ``[0, 1]``, both of each pair
        counted.
    match : sequence of str
        Variables on which both records of a pair agree, such as household size.
    at_risk : sequence of str
        Variables whose small cells are swapped first, usually with the geography among
        them. Without any the swapping is random, not targeted.
    minimum : int
        Largest count of a small cell; 1 takes uniques.
    replicates : int
        Number of independent swappings, along ``replicate``.
    random_seed : int or Generator, optional
        The same seed gives the same pairs.

    Returns
    -------
    Dataset
        ``partner``, int64, dims ``(replicate, record)``: the row whose geography a
        record gets, itself if it stays; ``pairs``, their number, and
        ``without_partner``, how many records were to move and found nobody, dims
        ``(replicate,)``. The released geography is
        ``microdata[geography].to_numpy()[swaps.partner]``.

    Raises
    ------
    ParameterError
        A rate outside ``[0, 1]``, `geography` among `match`, a threshold or replicates
        below 1, or no record that has an eligible partner.
    TableError
        An unknown variable, a missing label, no records.

    References
    ----------
    Shlomo, Tudor & Groom (2010), Data swapping for protecting census tables, Privacy in
    Statistical Databases, Springer, 41-51, on targeted swapping, whose partners also
    depend on distance. Dalenius & Reiss (1982), Data-swapping: a technique for
    disclosure control, Journal of Statistical Planning and Inference 6, 73-85. Antal,
    Shlomo & Elliot (2014), Section 1, on pre-tabular methods.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "sex": list("fmfm"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(
    ...     people, geography="area", rate=0.5, match=["sex"], at_risk=["area", "religion"], random_seed=1
    ... )
    >>> sorted(people.area.to_numpy()[swaps.partner.values[0]].tolist())
    ['A', 'A', 'B', 'B']
    """
    match, at_risk = names_of(match, "match"), names_of(at_risk, "at_risk")
    if not isinstance(geography, str):
        raise ParameterError(f"geography must be the name of a variable, got {geography!r}")
    rate = number_between(rate, "rate", 0, 1)
    minimum = whole_number(minimum, "threshold", least=1)
    replicates = whole_number(replicates, "replicates", least=1)
    if geography in match:
        raise ParameterError(
            f"{geography!r} cannot be in match: the records of a pair live in different areas"
        )
    read = read_records(records, list(dict.fromkeys([geography, *match, *at_risk])))
    area = read.codes[geography]
    group = np.unique(read.cells(match), return_inverse=True)[1] if match else np.zeros_like(area)
    # Records that agree on match, and those of them in one area.
    pools, local = (
        np.bincount(group),
        np.unique(group * (area.max() + 1) + area, return_inverse=True)[1],
    )
    if (pools[group] == np.bincount(local)[local]).all():
        own = read.label([geography, *match], 0)
        agreeing = f" that agrees on {match}" if match else ""
        raise ParameterError(
            f"no record has an eligible partner: row 1, {own}, like every other, has none{agreeing}"
            " in another area"
        )
    risky = _in_small_cell(read, at_risk, minimum)
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(pools)])
    rng = generator(random_seed)
    wanted = round(rate * read.rows / 2)
    partner = np.empty((replicates, read.rows), dtype=np.int64)
    counted = np.empty((replicates, 2), dtype=np.int64)
    for row, counts in zip(partner, counted, strict=True):
        order = np.concatenate(
            [rng.permutation(np.flatnonzero(risky)), rng.permutation(np.flatnonzero(~risky))]
        )
        counts[:] = _pair(order, group, local, members.copy(), starts, wanted, rng, row)
    return xr.Dataset(
        {
            "partner": (("replicate", "record"), partner),
            "pairs": (("replicate",), counted[:, 0]),
            "without_partner": (("replicate",), counted[:, 1]),
        },
        coords={"replicate": np.arange(replicates)},
        attrs={
            "geography": geography,
            "match": match,
            "at_risk": at_risk,
            "threshold": minimum,
            "rate": rate,
        },
    )


def swapped_table(
    records: Microdata,
    swaps: xr.Dataset,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Tabulate microdata after record swapping.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        The microdata that `swap_records` was given.
    swaps : Dataset
        Its result.
    variables : sequence of str
        The classifying variables, the geography among them: no other table changes.
    categories : mapping of str to sequence, optional
        As in `read_table`.

    Returns
    -------
    DataArray
        int64, named ``count``, dims ``(replicate, *dims)``. Its sums over all variables
        but the geography, and over the geography, are those of the table before.

    Raises
    ------
    TableError
        `swaps` that are not of these records, or what `tabulate` refuses.
    ParameterError
        `variables` without the geography.

    References
    ----------
    Shlomo, Tudor & Groom (2010), as in `swap_records`.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(people, geography="area", rate=1, random_seed=1)
    >>> tc.perturbation.swapped_table(people, swaps, ["area", "religion"]).values.tolist()
    [[[0, 0, 2], [1, 1, 0]]]
    """
    cells = SwappedCells(records, swaps, variables, categories)
    size = int(np.prod(cells.shape))
    counts = np.bincount(cells.before, minlength=size)
    released = np.array(
        [np.bincount(cells.after(b), minlength=size) for b in range(cells.replicates)],
        dtype=np.int64,
    )
    table = xr.DataArray(
        counts.reshape(cells.shape), dims=list(cells.coords), coords=cells.coords, name=COUNT
    )
    return labelled(table, released.reshape(-1, *cells.shape))


def _in_small_cell(records: Records, variables: list[str], minimum: int) -> npt.NDArray[np.bool_]:
    """Which records are in cells of at most so many."""
    if not variables:
        return np.zeros(records.rows, dtype=bool)
    _, cell, counts = np.unique(records.cells(variables), return_inverse=True, return_counts=True)
    return counts[cell] <= minimum


@njit(cache=True)
def _pair(order, group, local, pool, starts, wanted, rng, partner):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `partner`, row by row of `order`; how many pairs there are, and who found
    nobody.

    `pool` holds the records of each group from `starts` on, those that have not moved
    first: `left` of them.
    """
    n = order.size
    place = np.empty(n, dtype=np.int64)
    for p in range(n):
        place[pool[p]] = p
    left = starts[1:] - starts[:-1]
    left_local = np.zeros(n, dtype=np.int64)
    for r in range(n):
        left_local[local[r]] += 1
        partner[r] = r
    pairs = alone = 0
    for r in order:
        if pairs == wanted:
            break
        if partner[r] != r:
            continue
        g = group[r]
        if left[g] == left_local[local[r]]:
            alone += 1
            continue
        # Somebody is eligible, so this ends; those of the own area are drawn in vain.
        other = pool[starts[g] + rng.integers(0, left[g])]
        while local[other] == local[r]:
            other = pool[starts[g] + rng.integers(0, left[g])]
        partner[r], partner[other] = other, r
        for mover in (r, other):
            left[g] -= 1
            left_local[local[mover]] -= 1
            last = pool[starts[g] + left[g]]
            pool[place[mover]], pool[starts[g] + left[g]] = last, mover
            place[last], place[mover] = place[mover], starts[g] + left[g]
        pairs += 1
    return pairs, alone
