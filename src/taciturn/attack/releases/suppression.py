"""A table of which some cells are suppressed, with its totals."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import (
    Release,
    true_steps,
    true_totals,
)
from taciturn.attack.releases.showing import (
    Shown,
    margin_label,
    published_grid,
    sizes_label,
)
from taciturn.attack.system import (
    Booleans,
    LinearSystem,
    build_system,
)
from taciturn.schema import table_dims
from taciturn.tables.margins import (
    Margin,
    every_margin,
    finest_totals,
    margin_of,
    named_margins,
    without_implied,
)
from taciturn.tables.steps import checked_mask

__all__ = ["Suppression"]


@dataclass(frozen=True, eq=False, repr=False)
class Suppression(Release):
    r"""A table of which some cells are suppressed, with its totals.

    .. math:: \sum_{j \in S \cap m} x_j = T_m - \sum_{j \in m \setminus S} F_j, \qquad x_j \ge 0

    for every total `T` of the cells `m` and the suppressed cells `S`.

    A hierarchy is a further coordinate along a variable,
    ``table.assign_coords(region=("country", ["North", ...]))``: its name is that of a
    level, and names margins as a variable does. There may be several, nested or not. A
    coordinate that gives each category a label of its own is no level with totals.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many
        `decimals`.
    suppressed : DataArray of bool
        True where a cell is suppressed; dims of the table.
    totals : bool or sequence of margins
        The published totals. True is the table with all its margins: for two variables
        the totals of rows, columns and the whole, for more the margins of one variable
        fewer, from which all others follow; and with those of every level of every
        hierarchy. False is none. Else the margins, each named by its variables or
        levels, such as ``[("area", "sex"), ("region", "sex"), "age", ()]``; ``()`` is
        the grand total.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; a grand total
        beyond ``2**53`` steps; a `suppressed` that is not bool or has other dimensions
        or categories; a level without a label somewhere.
    ParameterError
        `totals` that are neither variables of the table nor levels above them, or name
        two levels of one; `decimals` outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.1, expressions (4).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    >>> tc.Suppression(table, table < 3).system().matrix.toarray().tolist()
    [[1, 0], [0, 1], [0, 1], [1, 0]]
    """

    true_table: xr.DataArray
    suppressed: xr.DataArray
    totals: bool | Sequence[Margin] = field(default=True, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        table = true_steps(self)
        checked_mask(self.suppressed, table, name="suppressed")
        self._margins(table)

    def system(self) -> LinearSystem:
        """Equations of the totals that hold a suppressed cell; totals that follow from
        finer ones are left out.
        """
        table = true_steps(self)
        known = ~checked_mask(self.suppressed, table, name="suppressed").ravel()
        margins = self._margins(table)
        finest = true_totals(table, without_implied(margins, table))
        return build_system(table, known, finest, decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """All totals of a margin or none of them; the cells that are not suppressed."""
        table = true_steps(self)
        if set(names) == set(table.dims):
            template, _ = margin_of(table, names)
            return ~checked_mask(self.suppressed, template, name="suppressed").ravel()
        margins = every_margin(table) if self.totals is True else self._margins(table)
        published = set(names) in map(set, margins)
        return np.full(margin_of(table, names)[0].size, published)

    def shown(self) -> Shown:
        """The cells that are not suppressed, and which totals there are."""
        table = true_steps(self)
        if isinstance(self.totals, bool):
            totals = "all" if self.totals else "none"
        else:
            totals = ", ".join(map(margin_label, self._margins(table))) or "none"
        lines = (
            f"Suppression of {sizes_label(table, self.decimals)}",
            f"published totals: {totals}",
        )
        return Shown(
            lines, [published_grid(table, self.publishes(table_dims(table)), self.decimals)]
        )

    def _margins(self, table: xr.DataArray) -> list[tuple[str, ...]]:
        if isinstance(self.totals, bool):
            return finest_totals(table) if self.totals else []
        return named_margins(self.totals, table, name="totals")
