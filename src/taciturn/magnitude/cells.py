"""The cells of a magnitude table that have contributors, in whole steps, so that rules
compare exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import MAX_COUNT, cell_label
from taciturn.tables.steps import is_between_steps
from taciturn.validate import is_whole

__all__ = ["Cells", "cells_of"]

_NEEDED = ("total", "absolute_total", "contributors", "largest", "share", "entropy")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a magnitude table that have a contributor, as rules are given them.

    Amounts are whole steps of ``10**-decimals``, as integers of Python in arrays of
    objects, so that rules can compare exactly.

    Attributes
    ----------
    total : ndarray of int
        Sum of the sizes of the contributions to each cell, shape ``(cells,)``.
    largest : ndarray of int
        Sizes of the largest contributions, in descending order, shape ``(cells,
        ranks)``; 0 beyond the number of contributors.
    contributors : ndarray
        Number of contributors, or the sum of their sampling weights.
    entropy : ndarray of float
        Entropy of the shares of the contributors, in bits.
    requests : ndarray or None
        How many asked for protection; None if the table was made without ``request=``.
    requested : ndarray of int or None
        Size of the largest contribution of one who asked.
    waivers : ndarray or None
        How many waived protection; None if the table was made without ``waiver=``.
    unwaived : ndarray of int or None
        Size of the largest contribution of one who did not.
    step : Fraction
        One step, in the units of the table.
    occupied : ndarray of bool
        Where these cells are, in the shape of the table.
    """

    total: npt.NDArray[np.object_]
    largest: npt.NDArray[np.object_]
    contributors: npt.NDArray[Any]
    entropy: npt.NDArray[np.float64]
    requests: npt.NDArray[Any] | None
    requested: npt.NDArray[np.object_] | None
    waivers: npt.NDArray[Any] | None
    unwaived: npt.NDArray[np.object_] | None
    step: Fraction
    occupied: npt.NDArray[np.bool_]

    def __repr__(self) -> str:
        """How many there are; not what is in them."""
        return f"Cells({len(self.total)} occupied)"

    def ranked(self, number: int, rule: str) -> npt.NDArray[np.object_]:
        """The largest `number` contributions of each cell, as `rule` needs them. Where
        some are waived, the largest of which at least one is not.
        """
        kept = self.largest.shape[1]
        if number > kept and (self.contributors > kept).any():
            raise TableError(
                f"{rule} needs the {number} largest contributions, the table holds {kept}",
                in_python=f": make it with largest={number}, or name so many columns of a table"
                " that is aggregated already",
                at_shell="; those of a table that is aggregated already are named by --aggregated",
            )
        top = self.largest[:, :number]
        if self.unwaived is None or number > kept:
            return top
        return np.column_stack([top[:, :-1], np.minimum(top[:, -1], self.unwaived)])

    @property
    def open(self) -> npt.NDArray[np.bool_]:
        """In which cells somebody has not waived protection."""
        if self.waivers is None:
            return np.ones(len(self.total), dtype=np.bool_)
        return np.asarray(self.waivers < self.contributors)

    def where(self, mask: npt.NDArray[np.bool_]) -> "Cells":
        """Some of the cells."""
        occupied = np.zeros_like(self.occupied)
        occupied[self.occupied] = mask
        return replace(
            self,
            total=self.total[mask],
            largest=self.largest[mask],
            contributors=self.contributors[mask],
            entropy=self.entropy[mask],
            requests=None if self.requests is None else self.requests[mask],
            requested=None if self.requested is None else self.requested[mask],
            waivers=None if self.waivers is None else self.waivers[mask],
            unwaived=None if self.unwaived is None else self.unwaived[mask],
            occupied=occupied,
        )

    def amount(self, steps: Any) -> str:
        """An amount in steps as text, in the units of the table."""
        return f"{float(steps * self.step):,.15g}"


def cells_of(table: Any) -> Cells:
    """Check that a Dataset is a magnitude table, and return its occupied cells."""
    if not isinstance(table, xr.Dataset):
        raise TableError(
            f"table must be a Dataset of tabulate_magnitude, got {type(table).__name__}"
        )
    absent = [name for name in _NEEDED if name not in table]
    decimals: Any = table.attrs.get("decimals")
    if absent or not is_whole(decimals):
        lacking = absent or ["the attribute decimals"]
        raise TableError(
            "table must be a Dataset of tabulate_magnitude: it has no"
            f" {', '.join(map(str, lacking))}"
        )
    places = int(decimals)
    table = table.transpose(*table["total"].dims, ...)
    ranks = table["largest"].dims[table["total"].ndim :]
    first = table["largest"].coords.get("rank")
    if ranks != ("rank",) or (first is not None and (first != 1 + np.arange(len(first))).any()):
        raise TableError("'largest' must have the dimension 'rank', with the labels 1, 2, ...")
    occupied = np.asarray(_numbers(table["contributors"], places) > 0)
    if not occupied.any():
        raise TableError("no cell of the table has a contributor")

    def amounts(name: str) -> npt.NDArray[np.object_]:
        steps: npt.NDArray[np.object_] = _steps(table[name], occupied, places).astype(object)
        return steps

    def counted(name: str) -> npt.NDArray[Any]:
        return _numbers(table[name], places)[occupied]

    requested = "requests" in table and "requested" in table
    waived = "waivers" in table and "unwaived" in table
    cells = Cells(
        total=amounts("absolute_total"),
        largest=amounts("largest"),
        contributors=counted("contributors"),
        entropy=table["entropy"].values[occupied],
        requests=counted("requests") if requested else None,
        requested=amounts("requested") if requested else None,
        waivers=counted("waivers") if waived else None,
        unwaived=amounts("unwaived") if waived else None,
        step=Fraction(1, 10**places),
        occupied=occupied,
    )
    _check_together(table, cells)
    return cells


def _check_together(table: xr.Dataset, cells: Cells) -> None:
    """Raise `TableError` where parts of a table contradict each other."""
    rising = np.zeros(table["largest"].shape, dtype=np.bool_)
    rising[cells.occupied, 1:] = np.diff(cells.largest, axis=1) > 0
    _refuse(table["largest"], {"descend along 'rank'": rising})
    _check_sums(table, cells)
    _check_shares(table, cells.occupied)
    if cells.waivers is not None:
        beyond = np.zeros(cells.occupied.shape, dtype=np.bool_)
        beyond[cells.occupied] = cells.waivers > cells.contributors
        _refuse(table["waivers"], {"be at most 'contributors'": beyond})


def _check_sums(table: xr.Dataset, cells: Cells) -> None:
    """Raise `TableError` where contributions add up to more than all of them do."""
    above, beyond = np.zeros_like(cells.occupied), np.zeros_like(cells.occupied)
    above[cells.occupied] = cells.largest.sum(axis=1) > cells.total
    _refuse(table["absolute_total"], {"be at least the sum of 'largest'": above})
    total = np.abs(table["total"].values[cells.occupied]) * float(1 / cells.step)
    beyond[cells.occupied] = np.rint(total) > cells.total.astype(np.float64)
    _refuse(table["total"], {"be at most 'absolute_total', of either sign": beyond})


def _check_shares(table: xr.Dataset, occupied: npt.NDArray[np.bool_]) -> None:
    """Raise `TableError` where shares are not those of the largest contributions, as
    after a sum of tables, in which one who contributes to several counts as several.
    """
    ratio = table["largest"] / table["absolute_total"]
    off = np.zeros(ratio.shape, dtype=np.bool_)
    shares = table["share"].values[occupied]
    off[occupied] = ~np.isclose(shares, ratio.values[occupied], equal_nan=True)
    rule = "be 'largest' / 'absolute_total', with totals of tabulate_margins and no sums of cells"
    _refuse(table["share"], {rule: off})


def _numbers(counts: xr.DataArray, decimals: int) -> npt.NDArray[Any]:
    """How many contribute to each cell, or do so in some way; with sampling weights,
    which are at least 1 and have no more decimals than amounts, the sum of these.
    """
    numbers: npt.NDArray[Any] = counts.values
    if numbers.dtype.kind not in "iuf":
        raise TableError(f"{counts.name!r} must hold numbers, got the type {numbers.dtype}")
    whole = "be whole numbers" if decimals == 0 else f"have at most {decimals} decimals"
    _refuse(
        counts,
        {
            "not be missing": np.isnan(numbers),
            "be finite": np.isinf(numbers),
            "not be negative": numbers < 0,
            whole: is_between_steps(numbers, decimals),
            "be 0 or at least 1": (numbers > 0) & (numbers < 1),
        },
    )
    return numbers


def _steps(
    amounts: xr.DataArray, occupied: npt.NDArray[np.bool_], decimals: int
) -> npt.NDArray[np.int64]:
    """The amounts of the occupied cells in whole steps."""
    among = occupied.reshape(occupied.shape + (1,) * (amounts.ndim - occupied.ndim))
    values = np.where(among, amounts.values, 0.0)
    _refuse(
        amounts,
        {
            "be finite and not negative where there are contributors": (
                ~np.isfinite(values) | (values < 0)
            ),
            f"have at most {decimals} decimals": is_between_steps(values, decimals),
            "be at most 2**53 steps": values * 10.0**decimals > MAX_COUNT,
        },
    )
    return np.rint(values[occupied] * 10.0**decimals).astype(np.int64)


def _refuse(array: xr.DataArray, problems: Mapping[str, npt.NDArray[np.bool_]]) -> None:
    """Raise `TableError` at the first cell that breaks one of some rules."""
    for rule, bad in problems.items():
        if bad.any():
            position = tuple(int(i) for i in np.argwhere(bad)[0])
            where = cell_label(array, position) or "the grand total"
            raise TableError(f"{array.name!r} must {rule}: {where} holds {array.values[position]}")
