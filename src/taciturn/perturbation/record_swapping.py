"""Record swapping: pairs of records in different areas exchange their geography."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from numba import njit

from taciturn._frames import LongTable
from taciturn._longform import code_rows
from taciturn.errors import ParameterError, TableError
from taciturn.information._wrap import log_base
from taciturn.perturbation._replicates import Counts, labelled
from taciturn.schema import COUNT
from taciturn.tables import read_records
from taciturn.validate import generator, names_of, number_between, whole_number

__all__ = ["swap_records", "swapped_table", "swapping_conditional_entropy", "swapping_joint"]

Microdata = str | PathLike[str] | Any


def swap_records(
    microdata: Microdata,
    *,
    geography: str,
    rate: float,
    match: Sequence[str] = (),
    at_risk: Sequence[str] = (),
    threshold: int = 1,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.Dataset:
    """Choose pairs of records that exchange their geography.

    Records in cells of at most `threshold` of the table over `at_risk` come first, in random order; the others follow,
    in random order. Each that has not moved yet exchanges its geography with a record drawn uniformly from those that
    have not moved, live elsewhere and agree with it on `match`, until ``round(rate * n / 2)`` pairs have formed. Who
    finds no partner stays.

    Kept exactly: the number of records in each area, every table of the other variables, and every table of the
    geography with `match` variables. What changes is the geography's association with all others.

    Parameters
    ----------
    microdata : path, pandas or polars DataFrame
        One row a unit that moves as a whole, a person or a household.
    geography : str
        The variable that is exchanged.
    rate : float
        Share of the records that change places, in ``[0, 1]``, both of each pair counted.
    match : sequence of str
        Variables on which both records of a pair agree, such as household size.
    at_risk : sequence of str
        Variables whose small cells are swapped first, usually with the geography among them. Without any the swapping
        is random, not targeted.
    threshold : int
        Largest count of a small cell; 1 takes uniques.
    replicates : int
        Number of independent swappings, along ``replicate``.
    random_seed : int or Generator, optional
        The same seed gives the same pairs.

    Returns
    -------
    Dataset
        ``partner``, int64, dims ``(replicate, record)``: the row whose geography a record gets, itself if it stays;
        ``pairs``, their number, and ``without_partner``, how many records were to move and found nobody, dims
        ``(replicate,)``. The released geography is ``microdata[geography].to_numpy()[swaps.partner]``.

    Raises
    ------
    ParameterError
        A rate outside ``[0, 1]``, `geography` among `match`, a threshold or replicates below 1, or no record that has
        an eligible partner.
    TableError
        An unknown variable, a missing label, no records.

    References
    ----------
    Shlomo, Tudor & Groom (2010), Data swapping for protecting census tables, Privacy in Statistical Databases,
    Springer, 41-51, on targeted swapping, whose partners also depend on distance. Dalenius & Reiss (1982),
    Data-swapping: a technique for disclosure control, Journal of Statistical Planning and Inference 6, 73-85. Antal,
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
    threshold = whole_number(threshold, "threshold", least=1)
    replicates = whole_number(replicates, "replicates", least=1)
    if geography in match:
        raise ParameterError(f"{geography!r} cannot be in match: the records of a pair live in different areas")
    long = read_records(microdata, list(dict.fromkeys([geography, *match, *at_risk])))
    area, _ = code_rows(long, [geography], None)
    group = np.unique(code_rows(long, match, None)[0], return_inverse=True)[1] if match else np.zeros_like(area)
    # Records that agree on match, and those of them in one area.
    pools, local = np.bincount(group), np.unique(group * (area.max() + 1) + area, return_inverse=True)[1]
    if (pools[group] == np.bincount(local)[local]).all():
        own = ", ".join(f"{name}={long.columns[name][0]}" for name in [geography, *match])
        agreeing = f" that agrees on {match}" if match else ""
        raise ParameterError(
            f"no record has an eligible partner: row 1, {own}, like every other, has none{agreeing} in another area"
        )
    risky = _in_small_cell(long, at_risk, threshold)
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(pools)])
    rng = generator(random_seed)
    wanted = round(rate * long.rows / 2)
    partner = np.empty((replicates, long.rows), dtype=np.int64)
    counted = np.empty((replicates, 2), dtype=np.int64)
    for row, counts in zip(partner, counted, strict=True):
        order = np.concatenate([rng.permutation(np.flatnonzero(risky)), rng.permutation(np.flatnonzero(~risky))])
        counts[:] = _pair(order, group, local, members.copy(), starts, wanted, rng, row)
    return xr.Dataset(
        {
            "partner": (("replicate", "record"), partner),
            "pairs": (("replicate",), counted[:, 0]),
            "without_partner": (("replicate",), counted[:, 1]),
        },
        coords={"replicate": np.arange(replicates)},
        attrs={"geography": geography, "match": match, "at_risk": at_risk, "threshold": threshold, "rate": rate},
    )


def swapped_table(
    microdata: Microdata,
    swaps: xr.Dataset,
    dims: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    """Tabulate microdata after record swapping.

    Parameters
    ----------
    microdata : path, pandas or polars DataFrame
        The microdata that `swap_records` was given.
    swaps : Dataset
        Its result.
    dims : sequence of str
        The classifying variables, the geography among them: no other table changes.
    categories : mapping of str to sequence, optional
        As in `read_table`.

    Returns
    -------
    DataArray
        int64, named ``count``, dims ``(replicate, *dims)``. Its sums over all variables but the geography, and over
        the geography, are those of the table before.

    Raises
    ------
    TableError
        `swaps` that are not of these records, or what `tabulate` refuses.
    ParameterError
        `dims` without the geography.

    References
    ----------
    Shlomo, Tudor & Groom (2010), as in `swap_records`.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(people, geography="area", rate=1, random_seed=1)
    >>> tc.swapped_table(people, swaps, ["area", "religion"]).values.tolist()
    [[[0, 0, 2], [1, 1, 0]]]
    """
    cells = _Cells(microdata, swaps, dims, categories)
    size = int(np.prod(cells.shape))
    counts = np.bincount(cells.before, minlength=size)
    released = np.array([np.bincount(cells.after(b), minlength=size) for b in range(cells.replicates)], dtype=np.int64)
    table = xr.DataArray(counts.reshape(cells.shape), dims=list(cells.coords), coords=cells.coords, name=COUNT)
    return labelled(table, released.reshape(-1, *cells.shape))


def swapping_joint(
    microdata: Microdata,
    swaps: xr.Dataset,
    dims: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> pd.DataFrame:
    """Count who moved from which cell to which, in the pairs of cells that occur.

    As only the geography changes, a pair of cells is the cell before and the geography after.

    Parameters
    ----------
    microdata, swaps, dims, categories
        As in `swapped_table`.

    Returns
    -------
    DataFrame
        One row for each pair of cells with somebody in it: ``replicate``, the variables, the geography after under the
        name ``<geography>_released``, and ``count``. In each replicate the counts sum to the number of records, so
        there are at most as many rows; the ``K × K`` matrix is not made.

    Raises
    ------
    TableError, ParameterError
        As `swapped_table`; also a variable that has the name of the geography after.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1: the joint distribution of the cells before and after.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(people, geography="area", rate=1, random_seed=1)
    >>> tc.swapping_joint(people, swaps, ["area", "religion"]).values.tolist()
    [[0, 'A', 'x', 'B', 1], [0, 'A', 'y', 'B', 1], [0, 'B', 'z', 'A', 2]]
    """
    cells = _Cells(microdata, swaps, dims, categories)
    after = f"{cells.geography}_released"
    if after in cells.coords:
        raise ParameterError(f"{after!r} names a variable of the table and the geography after: rename the variable")
    frames = []
    for replicate in range(cells.replicates):
        pairs, counts = np.unique(cells.pair(replicate), return_counts=True)
        before, moved_to = np.divmod(pairs, cells.areas)
        codes = np.unravel_index(before, cells.shape)
        labels = {dim: cells.coords[dim][code] for dim, code in zip(cells.coords, codes, strict=True)}
        labels[after] = cells.coords[cells.geography][moved_to]
        frames.append(pd.DataFrame({"replicate": swaps["replicate"].values[replicate], **labels, COUNT: counts}))
    return pd.concat(frames, ignore_index=True)


def swapping_conditional_entropy(
    microdata: Microdata,
    swaps: xr.Dataset,
    dims: Sequence[str],
    *,
    averaged: bool = False,
    base: float | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    r"""`H(X | Y)` of a table before and after record swapping, when it is known who moved.

    .. math:: H(X|Y) = -\sum_{i,j} \frac{n_{ij}}{n} \log \frac{n_{ij}}{n_{\cdot j}}

    with `n_ij` the number of records that went from cell `i` to cell `j`. `conditional_entropy` of the two tables is
    for those who see these only, and takes it that as few as possible moved. Given to `disclosure_risk` as
    `conditional_entropy`, the result gives R2 with the known transition.

    Parameters
    ----------
    microdata, swaps, dims, categories
        As in `swapped_table`.
    averaged : bool
        Whether to average the joint distributions of all replicates before the entropy is taken: the uncertainty of
        those who know the method, but not who moved in this release. It takes many replicates; with few it is too
        low. Otherwise each replicate has its own value.
    base : float, optional
        Base of the logarithm: 2 gives bits, None nats.

    Returns
    -------
    DataArray
        In ``[0, H(X)]``, dims ``(replicate,)``, or a scalar if `averaged`. The work grows with the number of records,
        not with the pairs of cells.

    Raises
    ------
    TableError, ParameterError
        As `swapped_table`; a `base` that is not one.

    References
    ----------
    Antal, Shlomo & Elliot (2014), eq. (3.2), with the joint distribution known; Theorem 6 for the average.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xxxx")})
    >>> swaps = tc.swap_records(people, geography="area", rate=0.5, random_seed=1)
    >>> tc.swapping_conditional_entropy(people, swaps, ["area", "religion"], base=2).values.tolist()
    [1.0]
    """
    cells = _Cells(microdata, swaps, dims, categories)
    unit = log_base(base)
    if averaged:
        every = range(cells.replicates)
        joint = np.concatenate([cells.pair(b) for b in every])
        after = np.concatenate([cells.after(b) for b in every])
        return xr.DataArray(_left(joint, after) / unit, name="conditional_entropy")
    values = [_left(cells.pair(b), cells.after(b)) / unit for b in range(cells.replicates)]
    coords = {"replicate": swaps["replicate"].values}
    return xr.DataArray(values, dims="replicate", coords=coords, name="conditional_entropy")


class _Cells:
    """The cell of each record of a table, before and after."""

    def __init__(
        self,
        microdata: Microdata,
        swaps: Any,
        dims: Sequence[str],
        categories: Mapping[str, Sequence[Any]] | None,
    ) -> None:
        if not isinstance(swaps, xr.Dataset) or "partner" not in swaps or "geography" not in swaps.attrs:
            raise TableError(f"swaps must be a result of swap_records, got {type(swaps).__name__}")
        if set(swaps["partner"].dims) != {"replicate", "record"}:
            raise TableError(f"swaps must be over replicate and record, the partners are over {swaps['partner'].dims}")
        dims, self.geography = names_of(dims, "dims"), str(swaps.attrs["geography"])
        if self.geography not in dims:
            raise ParameterError(
                f"dims must hold the geography {self.geography!r}, as swapping changes no other table; got {dims}"
            )
        long = read_records(microdata, dims)
        self._partner: Counts = swaps["partner"].transpose("replicate", "record").values
        if self._partner.shape[1] != long.rows:
            raise TableError(f"swaps are of {self._partner.shape[1]} records, {long.origin} has {long.rows}")
        self.before, self.coords = code_rows(long, dims, categories)
        self.shape = tuple(len(labels) for labels in self.coords.values())
        self.replicates = len(self._partner)
        at = dims.index(self.geography)
        self.areas = self.shape[at]
        self._step = int(np.prod(self.shape[at + 1 :]))
        self._area: Counts = self.before // self._step % self.areas

    def after(self, replicate: int) -> Counts:
        """Number of each record's cell in a release."""
        cells: Counts = self.before + (self._area[self._partner[replicate]] - self._area) * self._step
        return cells

    def pair(self, replicate: int) -> Counts:
        """One number for each record's cell before and its geography after."""
        pairs: Counts = self.before * self.areas + self._area[self._partner[replicate]]
        return pairs


def _left(joint: Counts, after: Counts) -> float:
    """``H(X, Y) - H(Y)`` of labels, one for each record."""
    return max(_entropy(joint) - _entropy(after), 0.0)


def _entropy(labels: Counts) -> float:
    share = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(share * np.log(share)).sum())


def _in_small_cell(long: LongTable, dims: list[str], threshold: int) -> npt.NDArray[np.bool_]:
    """Which records are in cells of at most so many."""
    if not dims:
        return np.zeros(long.rows, dtype=bool)
    _, cell, counts = np.unique(code_rows(long, dims, None)[0], return_inverse=True, return_counts=True)
    return counts[cell] <= threshold


@njit(cache=True)
def _pair(order, group, local, pool, starts, wanted, rng, partner):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `partner`, row by row of `order`; how many pairs there are, and who found nobody.

    `pool` holds the records of each group from `starts` on, those that have not moved first: `left` of them.
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
