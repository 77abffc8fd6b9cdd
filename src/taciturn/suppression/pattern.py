"""The result of secondary suppression: which cells are suppressed, and what an attacker
can still work out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.bounds.of_release import attacker_bounds
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.showing import Shown, counts_of, margin_label
from taciturn.attack.releases.suppression import Suppression
from taciturn.errors import ParameterError
from taciturn.schema import PRIMARY, PUBLISHED, STATUS, SUPPRESSED

__all__ = ["SuppressionPattern"]

_INTERNAL: Final = "not for release: this tells primary cells from secondary ones"


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionPattern:
    """Which cells are suppressed, and what an attacker can still work out about them.

    A pattern is for those who protect a table, and only `tables` is for release: who
    knows the rule by which cells are primary learns from the status of a cell what
    range it is in. Printing a pattern tells primary cells from secondary ones, but
    shows no suppressed value. The true table is ``release.true_table``.

    Attributes
    ----------
    release : Suppression or LinkedTables
        What is published, with the true table; it can be attacked further. What it
        prints is for release.
    status : mapping of tuple of str to DataArray
        For each margin whose cells may be suppressed, by the names of its variables,
        ``safe``, ``primary`` or ``secondary`` for each cell: not for release.
    audit : mapping of tuple of str to Dataset
        Bounds on the primary cells of each of these margins that has any, as
        `attacker_bounds` gives them to an attacker with this `knowledge`: not for
        release, since others have none.
    cost, bound : float
        What the secondary cells cost together, and a lower bound of the cost of every
        protecting pattern; `bound` is 0 where there was no time to look for one.
        By default costs are sums of suppressed values: not for release.
    rank_decrease : int
        Degrees of freedom that the suppressed cells leave.
    compared : int
        Number of patterns of the same cost from which the one with the largest
        `rank_decrease` was taken.
    complete : bool
        False if the time limit ended the search or the audit; another run may then give
        another pattern.
    unproved : mapping of tuple of str to DataArray of bool
        True for primary cells that are not proved to be protected, for each margin that
        has any: not for release. As long as there are any, nothing of this pattern is.
    unproved_in_all : int
        How many there are in this table and in those that were protected together with
        it: as long as there are any, nothing of these patterns is for release.
    knowledge : mapping of tuple of str to Dataset
        The ranges that the attacker is assumed to know, as `attacker_bounds` takes
        them; empty if none.
    """

    release: Suppression | LinkedTables
    status: Mapping[tuple[str, ...], xr.DataArray]
    audit: Mapping[tuple[str, ...], xr.Dataset]
    cost: float
    bound: float
    rank_decrease: int
    compared: int
    complete: bool
    unproved: Mapping[tuple[str, ...], xr.DataArray]
    unproved_in_all: int
    knowledge: Mapping[tuple[str, ...], xr.Dataset]

    @property
    def tables(self) -> dict[tuple[str, ...], xr.Dataset]:
        """What may be released: for each margin whose cells may be suppressed, by the
        names of its variables, ``value`` (float64, NaN where suppressed) and ``status``
        (``published`` or ``suppressed``).
        """
        found = {}
        for names, grid in zip(self.status, self.release.shown().grids, strict=True):
            hidden = grid.values.isnull()
            status = hidden.copy(data=np.where(hidden, SUPPRESSED, PUBLISHED))
            found[names] = xr.Dataset({"value": grid.values, STATUS: status})
        return found

    def intervals(self, *, progressbar: bool = True) -> dict[tuple[str, ...], xr.Dataset]:
        """What may be released instead of blanks: for each suppressed cell the interval
        that everybody can work out from the cells that are published.

        As it follows from them, publishing it tells nothing new: who has the intervals
        as well is left with the same bounds, those of the audit or wider. It says
        nothing of where in it the true value is, nor whether a cell is primary.

        Parameters
        ----------
        progressbar : bool
            Show progress, on standard error or below the cell of a notebook.

        Returns
        -------
        dict of tuple of str to Dataset
            As `tables`, with ``lower`` and ``upper`` (float64): the value of a
            published cell, and the bounds of a suppressed one, infinite above where no
            total limits it.

        Raises
        ------
        ParameterError
            Some primary cells are not proved to be protected.
        AttackError
            As for `attacker_bounds`.

        Examples
        --------
        >>> import xarray as xr, taciturn as tc
        >>> values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
        >>> table = xr.DataArray(values, dims=("activity", "region"))
        >>> pattern = tc.suppress(table, table == 8, random_seed=1, progressbar=False)
        >>> found = pattern.intervals(progressbar=False)["activity", "region"]
        >>> found["lower"].values.tolist()[1], found["upper"].values.tolist()[1]
        ([0.0, 19.0, 5.0], [25.0, 19.0, 30.0])
        """
        if self.not_for_release:
            raise ParameterError(
                f"{self.not_for_release}: this pattern is not for release; give the search a longer"
                " time_limit"
            )
        found = {}
        for names, table in self.tables.items():
            hidden = table["value"].isnull()
            bounds = attacker_bounds(
                self.release, margin=names, cells=hidden, progressbar=progressbar
            )
            sides = {side: table["value"].fillna(bounds[side]) for side in ("lower", "upper")}
            found[names] = table.assign(sides)
        return found

    @property
    def n_primary(self) -> int:
        """Number of primary cells."""
        return sum(int((status == PRIMARY).sum()) for status in self.status.values())

    @property
    def n_unproved(self) -> int:
        """Number of primary cells that are not proved to be protected."""
        return sum(int(cells.sum()) for cells in self.unproved.values())

    @property
    def not_for_release(self) -> str:
        """Why nothing of this pattern is for release; empty where it is."""
        if self.unproved:
            return (
                f"{self.n_unproved} of {self.n_primary} primary cells are not proved to be"
                " protected"
            )
        if self.unproved_in_all:
            return (
                f"{self.unproved_in_all} primary cells of tables that were protected together with"
                " this one are not proved to be protected"
            )
        return ""

    @property
    def gap(self) -> float:
        """The share of the cost that the cheapest pattern may save; 0 if this one is
        proved to be the cheapest, to within a millionth.
        """
        return 0.0 if self.cost <= self.bound else 1 - self.bound / self.cost

    def __repr__(self) -> str:
        """A line for each margin, how good the pattern is, and that this is not for
        release.
        """
        margins = [
            f"{margin_label(names)}: {counts_of(status)}" for names, status in self.status.items()
        ]
        return "\n".join([*margins, *self._quality(), _INTERNAL])

    def _repr_html_(self) -> str:
        grids = [
            replace(grid, status=status)
            for grid, status in zip(self.release.shown().grids, self.status.values(), strict=True)
        ]
        return Shown([*self._quality(), _INTERNAL], grids).html()

    def _quality(self) -> list[str]:
        """How good the pattern is, without its cost: by default that is a sum of
        suppressed values, which would give more away.
        """
        if self.unproved_in_all:
            quality = "not compared with the cheapest"
        elif self.gap == 0:
            quality = "the cheapest"
        elif self.bound > 0:
            quality = f"at most {100 * (self.cost / self.bound - 1):.3g} % above the cheapest"
        else:
            quality = "not compared with the cheapest"
        lines = [f"secondary cells: {quality}; rank decrease {self.rank_decrease}"]
        if self.not_for_release:
            lines.append(f"NOT FOR RELEASE: {self.not_for_release}")
        return lines
