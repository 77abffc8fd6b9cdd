"""Linked tables: projections of a multiway table that is not released itself."""

from collections.abc import Mapping, Sequence
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
    Total,
    build_system,
)
from taciturn.errors import ParameterError
from taciturn.schema import table_dims
from taciturn.tables.margins import (
    Margin,
    margin_names,
    margin_of,
    named_margins,
)
from taciturn.tables.steps import checked_mask

__all__ = ["LinkedTables"]


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTables(Release):
    r"""Projections of a multiway table that is not released itself.

    .. math:: \sum_{j : j|_m = c} x_j = z_{m,c}, \qquad x_j \ge 0

    for every released cell `c` of every released projection `m`.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many
        `decimals`.
    released : sequence of margins
        The released projections, each named by its variables, such as ``[("activity",
        "size"), ("region",), ()]``, or by levels above them as in `Suppression`; ``()``
        is the grand total.
    suppressed : mapping of margin to DataArray of bool, optional
        True where a cell of a released projection is suppressed.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; a mask that
        is not bool or has other dimensions or categories.
    ParameterError
        Projections that are neither of variables of the table nor of levels above them,
        or stand twice; `suppressed` of one that is not released; `decimals` outside 0
        to 12.

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

    def __post_init__(self) -> None:
        self.system()

    def system(self) -> LinearSystem:
        """One equation for every released cell of every projection, in the order of
        `released`.
        """
        table = true_steps(self)
        margins = self.projections(table)
        projected = set(map(frozenset, margins))
        for key in self.suppressed or {}:
            if frozenset(margin_names(key, table, name="suppressed")) not in projected:
                raise ParameterError(
                    f"suppressed must name released projections, {margins}, got {key!r}"
                )
        masks = self._suppressed(table, margins)
        totals_of = []
        for total in true_totals(table, margins):
            released = ~masks.get(frozenset(map(str, total.labels.dims)), ~total.released)
            values = np.where(
                released, total.least, 0
            )  # a system knows what is published, and nothing else
            labels = total.labels.copy(data=values.reshape(total.labels.shape))
            totals_of.append(Total(labels, total.group, values, values, released))
        known = np.zeros(table.size, dtype=np.bool_)
        return build_system(table, known, totals_of, decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The cells of a released projection that are not suppressed."""
        table = true_steps(self)
        size = margin_of(table, names)[0].size
        if set(names) not in map(set, self.projections(table)):
            return np.zeros(size, dtype=np.bool_)
        return ~self._suppressed(table, [names]).get(
            frozenset(names), np.zeros(size, dtype=np.bool_)
        )

    def shown(self) -> Shown:
        """Every released projection."""
        system = self.system()
        lines = (
            f"Linked tables of {sizes_label(system.published, self.decimals)}",
            (
                "released projections:"
                f" {', '.join(margin_label(table_dims(total.labels)) for total in system.totals)}"
            ),
        )
        return Shown(
            lines,
            [
                published_grid(total.labels, total.released, self.decimals)
                for total in system.totals
            ],
        )

    def _suppressed(
        self, table: xr.DataArray, margins: Sequence[tuple[str, ...]]
    ) -> dict[frozenset[str], Booleans]:
        """What is suppressed of each of these margins, by flat position; two masks of
        one margin add up.
        """
        masks: dict[frozenset[str], Booleans] = {}
        templates = {frozenset(names): margin_of(table, names)[0] for names in margins}
        for key, mask in (self.suppressed or {}).items():
            names = frozenset(margin_names(key, table, name="suppressed"))
            if names in templates:
                hidden = checked_mask(mask, templates[names], name=f"suppressed[{key!r}]").ravel()
                masks[names] = hidden | masks.get(names, hidden)
        return masks

    def projections(self, table: xr.DataArray) -> list[tuple[str, ...]]:
        """The released projections by the names of their variables."""
        return named_margins(self.released, table, name="released")
