"""The result of secondary suppression: which cells are suppressed, and what an attacker
can still work out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import xarray as xr

from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.showing import Shown, counts_of, margin_label
from taciturn.attack.releases.suppression import Suppression

__all__ = ["SuppressionPattern"]


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionPattern:
    """Which cells are suppressed, and what an attacker can still work out about them.

    Printing it shows no suppressed value. The true table is ``release.true_table``.

    Attributes
    ----------
    release : Suppression or LinkedTables
        What is published, with the true table; it can be attacked further.
    status : mapping of tuple of str to DataArray
        For each margin whose cells may be suppressed, by the names of its variables,
        ``safe``, ``primary`` or ``secondary`` for each cell.
    audit : mapping of tuple of str to Dataset
        Bounds on the primary cells of each of these margins that has any, as
        `attacker_bounds` gives them.
    cost, bound : float
        What the secondary cells cost together, and a lower bound of the cost of every
        protecting pattern; `bound` is 0 where the table is too large to look for one.
        By default costs are sums of suppressed values: not for release.
    rank_decrease : int
        Degrees of freedom that the suppressed cells leave.
    compared : int
        Number of patterns of the same cost from which the one with the largest
        `rank_decrease` was taken.
    complete : bool
        False if the time limit ended the search; another run may then give another
        pattern.
    """

    release: Suppression | LinkedTables
    status: Mapping[tuple[str, ...], xr.DataArray]
    audit: Mapping[tuple[str, ...], xr.Dataset]
    cost: float
    bound: float
    rank_decrease: int
    compared: int
    complete: bool

    @property
    def gap(self) -> float:
        """The share of the cost that the cheapest pattern may save; 0 if this one is
        proved to be the cheapest, to within a millionth.
        """
        return 0.0 if self.cost <= self.bound else 1 - self.bound / self.cost

    def __repr__(self) -> str:
        """A line for each margin, and how good the pattern is."""
        margins = [
            f"{margin_label(names)}: {counts_of(status)}" for names, status in self.status.items()
        ]
        return "\n".join([*margins, *self._quality()])

    def _repr_html_(self) -> str:
        grids = [
            replace(grid, status=status)
            for grid, status in zip(self.release.shown().grids, self.status.values(), strict=True)
        ]
        return Shown(self._quality(), grids).html()

    def _quality(self) -> list[str]:
        """How good the pattern is, without its cost: by default that is a sum of
        suppressed values, which would give more away.
        """
        if self.gap == 0:
            quality = "the cheapest"
        elif self.bound > 0:
            quality = f"at most {100 * (self.cost / self.bound - 1):.3g} % above the cheapest"
        else:
            quality = "not compared with the cheapest"
        return [f"secondary cells: {quality}; rank decrease {self.rank_decrease}"]
