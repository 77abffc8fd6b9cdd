"""What secondary suppression finds: which cells are suppressed, and what that leaves
open.
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
    """Which cells are suppressed, and what an attacker can still work out of them.

    Printing it shows no suppressed value. The true table is ``release.true_table``.

    Attributes
    ----------
    release : Suppression or LinkedTables
        What is published, to be attacked further, with the true table.
    status : mapping of tuple of str to DataArray
        For each margin whose cells may be suppressed, by the names of its variables,
        ``safe``, ``primary`` or ``secondary`` for each cell.
    audit : mapping of tuple of str to Dataset
        `attacker_bounds` of the primary cells of each of these margins that has some.
    cost, bound : float
        What the secondary cells cost together, and what no protecting pattern is below
        of; `bound` is 0 where the table is too large to look for one. Costs are by
        default sums of suppressed values: not for release.
    rank_decrease : int
        Degrees of freedom that all suppressed cells leave to the table.
    compared : int
        Patterns of the same cost that this is the one of largest `rank_decrease` of.
    complete : bool
        False if the search was ended by the time limit; then another run may end at
        another pattern.
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
        """Which part of the cost the cheapest pattern may save; 0 is proved to be the
        cheapest, to a millionth.
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
        """How good the pattern is; not its cost, by default a sum of suppressed values
        that would give more away.
        """
        if self.gap == 0:
            quality = "the cheapest"
        elif self.bound > 0:
            quality = f"at most {100 * (self.cost / self.bound - 1):.3g} % above the cheapest"
        else:
            quality = "not compared with the cheapest"
        return [f"secondary cells: {quality}; rank decrease {self.rank_decrease}"]
