"""Linked tables: projections of a multiway table that is not released itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.showing import Shown, margin_label, published_grid, sizes_label
from taciturn.attack.system import Booleans, LinearSystem, Total, build_system
from taciturn.errors import ParameterError
from taciturn.tables.margins import Margin, margin_names, margin_of, named_margins
from taciturn.tables.steps import checked_mask, in_steps
from taciturn.validate import mapping_of, quoted

__all__ = ["LinkedTables"]


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTables(Release):
    r"""Projections of a multiway table that is not released itself.

    .. math:: \sum_{j : j|_m = c} x_j = z_{m,c}, \qquad x_j \ge 0

    for every released cell `c` of every released projection `m`. In a table with
    negative values no cell is known to be at least 0.

    Parameters
    ----------
    true_table : DataArray
        The true table, which is never printed: counts, or magnitudes with `decimals`
        decimal places.
    released : sequence of margins
        The released projections, each named by its variables, such as ``[("activity",
        "size"), ("region",), ()]``, or by levels above them as in `Suppression`; ``()``
        is the grand total.
    suppressed : mapping of margin to DataArray of bool, optional
        True where a cell of a released projection is suppressed.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.
    signed : bool
        Whether the quantity may be negative, although the table has no negative value.

    Raises
    ------
    TableError
        Values that are missing, infinite or have more decimals; a mask that
        is not bool or has other dimensions or categories.
    ParameterError
        Projections that are not over variables of the table or levels above them, or
        that are named twice; `suppressed` for one that is not released; `decimals`
        outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.4, expressions (6) to (8).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[[1, 2], [3, 0]]], dims=("activity", "size", "region"))
    >>> release = tc.LinkedTables(table, [("activity", "size"), ("activity", "region")])
    >>> tc.attacker_bounds(release, progressbar=False)["upper"].values.tolist()
    [[[3.0, 2.0], [3.0, 2.0]]]
    """

    true_table: xr.DataArray
    released: Sequence[Margin]
    suppressed: Mapping[Margin, xr.DataArray] | None = field(default=None, kw_only=True)
    decimals: int = field(default=0, kw_only=True)
    signed: bool = field(default=False, kw_only=True)

    @cached_property
    def system(self) -> LinearSystem:
        """One equation for every released cell of every projection, in the order of
        `released`.
        """
        table = in_steps(self.true_table, self.decimals, name="true_table", signed=True)
        margins = named_margins(self.released, table, name="released")
        totals = {frozenset(names): Total.exact(*margin_of(table, names)) for names in margins}
        if self.suppressed is not None:
            mapping_of(self.suppressed, "suppressed", "released projections to masks")
        for key, mask in (self.suppressed or {}).items():
            names = frozenset(margin_names(key, table, name="suppressed"))
            if names not in totals:
                raise ParameterError(
                    f"suppressed must name released projections, {margins}, got {quoted(key)}"
                )
            hidden = checked_mask(mask, totals[names].labels, name=f"suppressed[{key!r}]")
            totals[names] = totals[names].without(hidden.ravel())
        known = np.zeros(table.size, dtype=np.bool_)
        return build_system(
            table, known, totals.values(), decimals=self.decimals, signed=self.signed
        )

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The cells of a released projection that are not suppressed."""
        labels, group = margin_of(self.system.published, names)
        published = np.zeros(labels.size, dtype=np.bool_)
        for total in self.system.totals:
            if set(total.labels.dims) == set(names):
                published[group] = total.released[total.group]
        return published

    def shown(self) -> Shown:
        """Every released projection."""
        totals = self.system.totals
        projections = (margin_label(map(str, total.labels.dims)) for total in totals)
        lines = (
            f"Linked tables of {sizes_label(self.system.published, self.decimals)}",
            f"released projections: {', '.join(projections)}",
        )
        grids = [published_grid(total.labels, total.released, self.decimals) for total in totals]
        return Shown(lines, grids)
