"""A table of which some cells are suppressed, with its totals."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.showing import (
    Grid,
    Shown,
    margin_label,
    published_grid,
    sizes_label,
    whole_grid,
)
from taciturn.attack.system import Booleans, LinearSystem, Total, build_system
from taciturn.tables.margins import (
    Margin,
    every_margin,
    finest_totals,
    margin_of,
    named_margins,
    without_implied,
)
from taciturn.tables.steps import checked_mask, in_steps

__all__ = ["Suppression"]


@dataclass(frozen=True, eq=False, repr=False)
class Suppression(Release):
    r"""A table with suppressed cells, and its totals.

    .. math::

        \sum_{j \in S \cap m} x_j = T_m - \sum_{j \in m \setminus S} F_j,
        \qquad x_j \ge 0

    for every total `T` of the cells `m` and the suppressed cells `S`. In a table with
    negative values no cell is known to be at least 0.

    A hierarchy is a further coordinate along a variable,
    ``table.assign_coords(region=("country", ["North", ...]))``. Its name is the name of
    a level, and can be used in margins like that of a variable. There may be several,
    nested or not. A coordinate that gives each category a label of its own adds no
    totals.

    Parameters
    ----------
    true_table : DataArray
        The true table, which is never printed: counts, or magnitudes with `decimals`
        decimal places.
    suppressed : DataArray of bool
        True where a cell is suppressed; dims of the table.
    totals : bool or sequence of margins
        The published totals. True publishes the table with all its margins: row,
        column and grand totals for two variables; for more, the margins over one
        variable, from which all others follow; and those of every level of every
        hierarchy. False publishes none. Otherwise the margins, each named by its
        variables or levels, such as ``[("area", "sex"), ("region", "sex"), "age",
        ()]``; ``()`` is the grand total.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are missing, infinite, have more decimals or add up to more than
        ``2**53`` steps; a `suppressed` that is not bool or has other dimensions or
        categories; a level with a missing label.
    ParameterError
        `totals` that are neither variables of the table nor levels above them, or name
        two levels of the same variable; `decimals` outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.1, expressions (4).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    >>> tc.Suppression(table, table < 3).system.matrix.toarray().tolist()
    [[1, 0], [0, 1], [0, 1], [1, 0]]
    """

    true_table: xr.DataArray
    suppressed: xr.DataArray
    totals: bool | Sequence[Margin] = field(default=True, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    @cached_property
    def _steps(self) -> xr.DataArray:
        return in_steps(self.true_table, self.decimals, name="true_table", signed=True).copy()

    @cached_property
    def _hidden(self) -> Booleans:
        return checked_mask(self.suppressed, self._steps, name="suppressed").flatten()

    @cached_property
    def _margins(self) -> list[tuple[str, ...]]:
        """The published margins, or with all totals those from which the others
        follow.
        """
        if isinstance(self.totals, bool):
            return finest_totals(self._steps) if self.totals else []
        return named_margins(self.totals, self._steps, name="totals")

    @cached_property
    def system(self) -> LinearSystem:
        """One equation for every total with a suppressed cell, except totals that
        follow from finer ones.
        """
        table = self._steps
        totals = [
            Total.exact(*margin_of(table, names)) for names in without_implied(self._margins, table)
        ]
        return build_system(table, ~self._hidden, totals, decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The cells that are not suppressed, and the totals of published margins, under
        whichever names: a group of one category has the sums of that category. Who
        publishes a suppressed cell under another name gives it away.
        """
        table = self._steps
        labels, group = margin_of(table, names)
        margins = every_margin(table) if self.totals is True else self._margins
        if set(names) != set(table.dims) and set(names) in map(set, margins):
            return np.ones(labels.size, dtype=np.bool_)
        alone, suppressed = _same(group, np.arange(table.size)), _any(self._hidden, group)
        published = alone & ~suppressed
        for other in margins:
            published |= _same(group, margin_of(table, other)[1]) & ~(alone & suppressed)
        return published

    def shown(self) -> Shown:
        """The cells that are not suppressed, and which totals are published."""
        if isinstance(self.totals, bool):
            totals = "all" if self.totals else "none"
        else:
            totals = ", ".join(map(margin_label, self._margins)) or "none"
        lines = (
            f"Suppression of {sizes_label(self._steps, self.decimals)}",
            f"published totals: {totals}",
        )
        return Shown(lines, [published_grid(self._steps, ~self._hidden, self.decimals)])

    def published_tables(self) -> Sequence[Grid]:
        """The table, and each of the published totals."""
        table = self._steps
        margins = reversed(every_margin(table)) if self.totals is True else self._margins
        totals = (names for names in margins if set(names) != set(table.dims))
        return [
            *self.shown().grids,
            *(whole_grid(margin_of(table, names)[0], self.decimals) for names in totals),
        ]


def _same(group: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Booleans:
    """Which groups of cells are groups of another margin as well."""
    first = np.unique(group, return_index=True)[1]
    own = other[first]
    strangers = np.bincount(group, weights=own[group] != other)
    alike = np.bincount(group) == np.bincount(other)[own]
    return np.asarray((strangers == 0) & alike, dtype=np.bool_)


def _any(cells: Booleans, group: npt.NDArray[np.int64]) -> Booleans:
    """Which groups have one of the cells."""
    return np.asarray(np.bincount(group, weights=cells) > 0, dtype=np.bool_)
