"""What a release is: all that is published of a table."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.releases.showing import Shown
from taciturn.attack.system import (
    Booleans,
    LinearSystem,
    Total,
)
from taciturn.tables.margins import margin_of
from taciturn.tables.steps import in_steps

__all__ = ["Release", "true_steps", "true_totals"]


class Release(ABC):
    """What is published of a table. Its `system` holds all tables that are compatible
    with it.

    A release prints what it publishes; a true table that it holds is an attribute of
    its own, and never shown.
    """

    @abstractmethod
    def system(self) -> LinearSystem:
        """The release as one sparse linear system over the cells that it does not
        show.
        """

    @abstractmethod
    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """Which totals over these variables are published with their value, by flat
        position; of all, which cells.
        """

    @abstractmethod
    def shown(self) -> Shown:
        """What is published, to be printed."""

    def __repr__(self) -> str:
        """What is published, in words and small tables."""
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()


def true_steps(release: Any) -> xr.DataArray:
    return in_steps(release.true_table, release.decimals, name="true_table")


def true_totals(table: xr.DataArray, margins: Sequence[tuple[str, ...]]) -> Iterator[Total]:
    for names in margins:
        totals, group = margin_of(table, names)
        values = totals.values.ravel()
        yield Total(totals, group, values, values, np.ones(values.size, dtype=np.bool_))
