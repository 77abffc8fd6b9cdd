"""What every release has in common: the base class of all of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import xarray as xr

from taciturn.attack.mechanisms.likelihood import Likelihood
from taciturn.attack.releases.showing import Grid, Shown
from taciturn.attack.system import Booleans, LinearSystem
from taciturn.schema import table_dims
from taciturn.tables.margins import margin_of

__all__ = ["Release"]


class Release(ABC):
    """What is published of a table, as an attacker sees it.

    A release of another kind derives from this class and defines `system`, `publishes`
    and `shown`; `attacker_bounds`, `attacker_posterior` and `constraint_rank` then take
    it. A subclass that is a dataclass builds its system when it is made, so that all it
    is given is checked once, there; later changes to the arrays handed in have no
    effect.

    A release prints what it publishes. A true table that it holds is an attribute of
    its own and is never printed.
    """

    def __post_init__(self) -> None:
        """Build the system, which checks whatever the release was given."""
        _ = self.system

    @property
    @abstractmethod
    def system(self) -> LinearSystem:
        """All tables that are compatible with the release, as one sparse linear system
        over the cells that it does not publish; best a `functools.cached_property`.
        """

    @abstractmethod
    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """Which totals over these variables or levels are published, by flat position;
        over all variables of the table, which cells.
        """

    @abstractmethod
    def shown(self) -> Shown:
        """What is published, for printing."""

    @property
    def likelihood(self) -> Likelihood | None:
        """How likely what is published is, given each value of a cell or total; None
        where all compatible tables give it alike.
        """
        return None

    def published_tables(self) -> Sequence[Grid]:
        """The tables and totals of a file of this release; by default those that are
        `shown`.
        """
        return self.shown().grids

    def released_margins(self) -> list[tuple[str, ...]]:
        """The variables or levels of each table and total that something is released
        of.
        """
        return [tuple(map(str, grid.values.dims)) for grid in self.published_tables()]

    def lacks(self, table: xr.DataArray) -> tuple[str, ...]:
        """Variables of `table` that the released table does not have, as a file of
        totals over the others: cells that are by them too are not among
        `unpublished_cells`.
        """
        own = self.system.published.dims
        return tuple(str(dim) for dim in table_dims(table) if dim not in own)

    def unpublished_cells(self) -> dict[tuple[str, ...], xr.DataArray]:
        """Where the true value itself is not published: cells of the table, and of each
        table and total that something is released of, by their variables.
        """
        table = self.system.published
        margins: dict[frozenset[str], tuple[str, ...]] = {}
        for names in (table_dims(table), *self.released_margins()):
            if {*names} <= {*table.dims, *table.coords}:  # else it shows something else
                margins.setdefault(frozenset(names), names)
        found: dict[tuple[str, ...], xr.DataArray] = {}
        for names in margins.values():
            published = self.publishes(names)
            if not published.all():
                labels, _ = margin_of(table, names)
                found[names] = labels.copy(data=~published.reshape(labels.shape))
        return found

    def __repr__(self) -> str:
        """What is published, in words and small tables."""
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()
