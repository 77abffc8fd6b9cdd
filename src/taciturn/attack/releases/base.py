"""What every release has in common: the base class of all of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import xarray as xr

from taciturn.attack.mechanisms.likelihood import Likelihood
from taciturn.attack.releases.showing import Grid, Shown
from taciturn.attack.system import Booleans, LinearSystem

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

    def suppressed_cells(self) -> dict[tuple[str, ...], xr.DataArray]:
        """The cells that are suppressed, by the variables of each table and total that
        has some.
        """
        masks = [grid.values.isnull() for grid in self.published_tables()]
        return {tuple(map(str, mask.dims)): mask for mask in masks if bool(mask.any())}

    def __repr__(self) -> str:
        """What is published, in words and small tables."""
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()
