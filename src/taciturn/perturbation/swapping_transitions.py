"""Transitions of record swapping, and the uncertainty left to those who know them."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.information.reduction import log_base
from taciturn.perturbation.replicates import Counts
from taciturn.schema import COUNT
from taciturn.tables.records import read_records
from taciturn.validate import names_of

__all__ = ["SwappedCells", "swapping_conditional_entropy", "swapping_joint"]

Microdata = str | PathLike[str] | Any


def swapping_joint(
    records: Microdata,
    swaps: xr.Dataset,
    variables: Sequence[str],
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> pd.DataFrame:
    """Count the records that moved from each cell to each other, for pairs that occur.

    As only the geography changes, a pair of cells is the cell before and the geography
    after.

    Parameters
    ----------
    records, swaps, variables, categories
        As in `swapped_table`.

    Returns
    -------
    DataFrame
        One row for each pair of cells that is not empty: ``replicate``, the variables,
        the geography after, named ``<geography>_released``, and ``count``. In each
        replicate the counts sum to the number of records, so there are at most as many
        rows; the ``K × K`` matrix is never built.

    Raises
    ------
    TableError, ParameterError
        As `swapped_table`; also a variable with the name of the geography after.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Section 3.1: the joint distribution of the cells
    before and after.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(people, geography="area", rate=1, random_seed=1)
    >>> moves = tc.perturbation.swapping_joint(people, swaps, ["area", "religion"])
    >>> moves.values.tolist()
    [[0, 'A', 'x', 'B', 1], [0, 'A', 'y', 'B', 1], [0, 'B', 'z', 'A', 2]]
    """
    cells = SwappedCells(records, swaps, variables, categories)
    after = f"{cells.geography}_released"
    if after in cells.coords:
        raise ParameterError(
            f"{after!r} names a variable of the table and the geography after: rename the variable"
        )
    frames = []
    for replicate in range(cells.replicates):
        pairs, counts = np.unique(cells.pair(replicate), return_counts=True)
        before, moved_to = np.divmod(pairs, cells.areas)
        codes = np.unravel_index(before, cells.shape)
        labels = {
            dim: cells.coords[dim][code] for dim, code in zip(cells.coords, codes, strict=True)
        }
        labels[after] = cells.coords[cells.geography][moved_to]
        frames.append(
            pd.DataFrame(
                {"replicate": swaps["replicate"].values[replicate], **labels, COUNT: counts}
            )
        )
    return pd.concat(frames, ignore_index=True)


def swapping_conditional_entropy(
    records: Microdata,
    swaps: xr.Dataset,
    variables: Sequence[str],
    *,
    averaged: bool = False,
    base: float | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    r"""`H(X | Y)` of a table before and after record swapping if the moves are known.

    .. math:: H(X|Y) = -\sum_{i,j} \frac{n_{ij}}{n} \log \frac{n_{ij}}{n_{\cdot j}}

    with `n_ij` the number of records that moved from cell `i` to cell `j`.
    `conditional_entropy` of the two tables is for those who see only these, and assumes
    that as few records as possible moved. Given to `disclosure_risk` as
    `conditional_entropy`, the result gives R2 with the known transitions.

    Parameters
    ----------
    records, swaps, variables, categories
        As in `swapped_table`.
    averaged : bool
        Whether to average the joint distributions of all replicates before taking the
        entropy: the uncertainty of those who know the method, but not which records
        moved in this release. This takes many replicates; with few it is too low.
        Otherwise each replicate has its own value.
    base : float, optional
        Base of the logarithm: 2 gives bits, None nats.

    Returns
    -------
    DataArray
        In ``[0, H(X)]``, dims ``(replicate,)``, or a scalar if `averaged`. The work
        grows with the number of records, not with the pairs of cells.

    Raises
    ------
    TableError, ParameterError
        As `swapped_table`; a `base` that is not above 1 and finite.

    References
    ----------
    Antal, Shlomo & Elliot (2014), eq. (3.2), with the joint distribution known; Theorem
    6 for the average.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xxxx")})
    >>> swaps = tc.swap_records(people, geography="area", rate=0.5, random_seed=1)
    >>> tc.perturbation.swapping_conditional_entropy(
    ...     people, swaps, ["area", "religion"], base=2
    ... ).values.tolist()
    [1.0]
    """
    cells = SwappedCells(records, swaps, variables, categories)
    unit = log_base(base)
    if averaged:
        every = range(cells.replicates)
        joint = np.concatenate([cells.pair(b) for b in every])
        after = np.concatenate([cells.after(b) for b in every])
        return xr.DataArray(_left(joint, after) / unit, name="conditional_entropy")
    values = [_left(cells.pair(b), cells.after(b)) / unit for b in range(cells.replicates)]
    coords = {"replicate": swaps["replicate"].values}
    return xr.DataArray(values, dims="replicate", coords=coords, name="conditional_entropy")


class SwappedCells:
    """The cell of each record of a table, before and after."""

    def __init__(
        self,
        microdata: Microdata,
        swaps: Any,
        variables: Sequence[str],
        categories: Mapping[str, Sequence[Any]] | None,
    ) -> None:
        if (
            not isinstance(swaps, xr.Dataset)
            or "partner" not in swaps
            or "geography" not in swaps.attrs
        ):
            raise TableError(f"swaps must be a result of swap_records, got {type(swaps).__name__}")
        if set(swaps["partner"].dims) != {"replicate", "record"}:
            raise TableError(
                "swaps must be over replicate and record, the partners are over"
                f" {swaps['partner'].dims}"
            )
        dims = names_of(variables, "variables")
        self.geography = str(swaps.attrs["geography"])
        if self.geography not in dims:
            raise ParameterError(
                f"variables must include the geography {self.geography!r}, as swapping changes no"
                f" other table; got {dims}"
            )
        read = read_records(microdata, dims, categories)
        self._partner: Counts = swaps["partner"].transpose("replicate", "record").values
        if self._partner.shape[1] != read.rows:
            raise TableError(
                f"swaps are of {self._partner.shape[1]} records, {read.origin} has {read.rows}"
            )
        self.before, self.coords = read.cells(dims), read.categories
        self.shape = tuple(len(labels) for labels in self.coords.values())
        self.replicates = len(self._partner)
        at = dims.index(self.geography)
        self.areas = self.shape[at]
        self._step = int(np.prod(self.shape[at + 1 :]))
        self._area: Counts = self.before // self._step % self.areas

    def after(self, replicate: int) -> Counts:
        """Number of each record's cell in a release."""
        cells: Counts = (
            self.before + (self._area[self._partner[replicate]] - self._area) * self._step
        )
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
