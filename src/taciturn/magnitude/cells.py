"""The cells of a magnitude table that have contributors, in whole steps, so that rules
compare exactly.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
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
    dims = table["total"].dims
    occupied = np.asarray(table["contributors"].transpose(*dims).values > 0)
    if not occupied.any():
        raise TableError("no cell of the table has a contributor")

    def amounts(name: str) -> npt.NDArray[np.object_]:
        values = table[name].transpose(*dims, ...).values[occupied]
        if not np.isfinite(values).all() or (values < 0).any():
            raise TableError(
                f"{name!r} must be finite and not negative where there are contributors"
            )
        steps: npt.NDArray[np.object_] = (
            np.rint(values * 10.0 ** int(decimals)).astype(np.int64).astype(object)
        )
        return steps

    def counted(name: str) -> npt.NDArray[Any]:
        numbers: npt.NDArray[Any] = table[name].transpose(*dims).values[occupied]
        return numbers

    requested = "requests" in table and "requested" in table
    waived = "waivers" in table and "unwaived" in table
    return Cells(
        total=amounts("absolute_total"),
        largest=amounts("largest"),
        contributors=counted("contributors"),
        entropy=counted("entropy"),
        requests=counted("requests") if requested else None,
        requested=amounts("requested") if requested else None,
        waivers=counted("waivers") if waived else None,
        unwaived=amounts("unwaived") if waived else None,
        step=Fraction(1, 10 ** int(decimals)),
        occupied=occupied,
    )
