"""Record swapping: pairs of records in different areas exchange their geography."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from numba import njit

from taciturn.errors import ParameterError
from taciturn.perturbation.replicates import MARK, Counts, labelled, seed_mark
from taciturn.perturbation.swapping_transitions import SwappedCells
from taciturn.schema import COUNT
from taciturn.tables.records import Records, read_records
from taciturn.validate import generator, name_of, names_of, real_number, whole_number

__all__ = ["Swappable", "swap_records", "swappable", "swapped_table"]

Microdata = str | PathLike[str] | Any


def swap_records(
    records: Microdata,
    *,
    geography: str,
    rate: float,
    match: Sequence[str] = (),
    at_risk: Sequence[str] = (),
    minimum: int = 2,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.Dataset:
    """Choose pairs of records that exchange their geography.

    Records at risk, in cells of the table over `at_risk` with a count below `minimum`,
    come first, in random order; the others follow, in random order. Each that has not
    moved yet exchanges its geography with a record drawn uniformly from those that have
    not moved, are in another area and agree with it on `match`, until ``round(rate * n
    / 2)`` pairs have formed. A record without a possible partner stays where it is.

    Kept exactly: the number of records in each area, every table of the other
    variables, and every table of the geography with `match` variables. What changes is
    the association of the geography with all other variables.

    Parameters
    ----------
    records : path, pandas or polars DataFrame
        One row per unit that moves as a whole, a person or a household.
    geography : str
        The variable that is exchanged.
    rate : float
        Share of the records that change places, in ``[0, 1]``, counting both of each
        pair.
    match : sequence of str
        Variables on which both records of a pair agree, such as household size.
    at_risk : sequence of str
        Variables of the table whose small cells are swapped first, usually including
        the geography. Without any, swapping is random, not targeted.
    minimum : int
        Smallest count of a cell that is not at risk; with 2, uniques are.
    replicates : int
        Number of independent swappings, along ``replicate``.
    random_seed : int or Generator, optional
        For pairs that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.

    Returns
    -------
    Dataset
        ``partner``, int64, dims ``(replicate, record)``: the row whose geography a
        record gets, its own if it stays; ``pairs``, the number of pairs, and
        ``without_partner``, the number of records that were to move and found no
        partner, dims ``(replicate,)``. The released geography is
        ``records[geography].to_numpy()[swaps.partner]``.

    Raises
    ------
    ParameterError
        A rate outside ``[0, 1]``, `geography` among `match`, `minimum` below 2, fewer
        than one replicate, or no record that has an eligible partner.
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
    >>> people = pd.DataFrame(
    ...     {"area": list("AABB"), "sex": list("fmfm"), "religion": list("xyzz")}
    ... )
    >>> swaps = tc.swap_records(
    ...     people,
    ...     geography="area",
    ...     rate=0.5,
    ...     match=["sex"],
    ...     at_risk=["area", "religion"],
    ...     random_seed=1,
    ... )
    >>> sorted(people["area"].to_numpy()[swaps["partner"].values[0]].tolist())
    ['A', 'A', 'B', 'B']
    """
    given = swappable(records, geography, rate, match, at_risk, minimum)
    replicates = whole_number(replicates, "replicates", least=1)
    read, group, risky = given.read, given.group, given.risky
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
    rng = generator(random_seed)
    partner = np.empty((replicates, read.rows), dtype=np.int64)
    counted = np.empty((replicates, 2), dtype=np.int64)
    for row, counts in zip(partner, counted, strict=True):
        order = np.concatenate(
            [rng.permutation(np.flatnonzero(risky)), rng.permutation(np.flatnonzero(~risky))]
        )
        counts[:] = _pair(order, group, given.local, members.copy(), starts, given.wanted, rng, row)
    return xr.Dataset(
        {
            "partner": (("replicate", "record"), partner),
            "pairs": (("replicate",), counted[:, 0]),
            "without_partner": (("replicate",), counted[:, 1]),
        },
        coords={"replicate": np.arange(replicates)},
        attrs={**given.attrs, **seed_mark(random_seed)},
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
        The classifying variables, among them the geography: no other table changes.
    categories : mapping of str to sequence, optional
        As in `read_table`.

    Returns
    -------
    DataArray
        int64, named ``count``, dims ``(replicate, *dims)``. Its totals for each area,
        and its sums over the geography, are those of the original table.

    Raises
    ------
    TableError
        `swaps` of other records, or whatever `tabulate` refuses.
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
    >>> after = tc.perturbation.swapped_table(people, swaps, ["area", "religion"])
    >>> after.values.tolist()
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
    mark = {MARK: swaps.attrs[MARK]} if MARK in swaps.attrs else {}
    return labelled(table, released.reshape(-1, *cells.shape), mark)


@dataclass(frozen=True, eq=False, repr=False)
class Swappable:
    """Who may exchange places with whom, and how many do.

    Attributes
    ----------
    read : Records
        The records.
    group, local : array of int64, shape (records,)
        Number of each record's group, which agrees on `match`, and of the part of the
        group in its area.
    risky : array of bool, shape (records,)
        Which records come first.
    wanted : int
        Number of pairs.
    attrs : dict
        The arguments, checked.
    """

    read: Records
    group: Counts
    local: Counts
    risky: npt.NDArray[np.bool_]
    wanted: int
    attrs: dict[str, Any]


def swappable(
    records: Microdata,
    geography: str,
    rate: float,
    match: Sequence[str],
    at_risk: Sequence[str],
    minimum: int,
    *,
    others: Sequence[str] = (),
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> Swappable:
    """Check the arguments of `swap_records`; `others` are further variables to read."""
    match, at_risk = names_of(match, "match"), names_of(at_risk, "at_risk")
    geography = name_of(geography, "geography")
    rate = real_number(rate, "rate", least=0, most=1)
    minimum = whole_number(minimum, "minimum", least=2)
    if geography in match:
        raise ParameterError(
            f"{geography!r} cannot be in match: the records of a pair live in different areas"
        )
    names = list(dict.fromkeys([geography, *match, *at_risk, *others]))
    read = read_records(records, names, categories)
    group, local = _groups(read, geography, match)
    attrs = {"geography": geography, "match": match, "at_risk": at_risk}
    return Swappable(
        read,
        group,
        local,
        _in_small_cell(read, at_risk, minimum),
        round(rate * read.rows / 2),
        {**attrs, "minimum": minimum, "rate": rate},
    )


def _groups(read: Records, geography: str, match: list[str]) -> tuple[Counts, Counts]:
    """Number of each record's group, which agrees on `match`, and of the part of the
    group in its area; raise unless a record has an eligible partner.
    """
    area = read.codes[geography]
    group = np.zeros_like(area)
    if match:
        group = np.unique(read.cells(match), return_inverse=True)[1]
    local = np.unique(group * (area.max() + 1) + area, return_inverse=True)[1]
    if (np.bincount(group)[group] == np.bincount(local)[local]).all():
        own = read.label([geography, *match], 0)
        agreeing = f" that agrees on {match}" if match else ""
        raise ParameterError(
            f"no record has an eligible partner: row 1, {own}, like every other, has none{agreeing}"
            " in another area"
        )
    return group, local


def _in_small_cell(records: Records, variables: list[str], minimum: int) -> npt.NDArray[np.bool_]:
    """Which records are in cells with a count below the minimum."""
    if not variables:
        return np.zeros(records.rows, dtype=bool)
    _, cell, counts = np.unique(records.cells(variables), return_inverse=True, return_counts=True)
    return counts[cell] < minimum


@njit(cache=True)
def _pair(order, group, local, pool, starts, wanted, rng, partner):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `partner`, taking records in `order`; return the number of pairs and of
    records without a partner.

    `pool` holds the records of each group from its place in `starts` on, first the
    `left` ones that have not moved.
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
        # A record is eligible, so this ends; those in the same area are rejected.
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
