"""How releases and results on them are printed: what is published, and nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import pandas as pd
import xarray as xr

from taciturn.attack.system import Booleans
from taciturn.schema import PRIMARY, SAFE, SECONDARY, table_dims

__all__ = [
    "Grid",
    "Shown",
    "counts_of",
    "margin_label",
    "published_grid",
    "sizes_label",
    "whole_grid",
]

_BLANK: Final = "·"
_MOST_CELLS: Final = 200  # of a table that is printed
_MOST_TABLES: Final = 10
_NOT_PRINTED: Final = (
    f"up to {_MOST_TABLES} tables are printed, of up to {_MOST_CELLS} cells and two variables"
)


@dataclass(frozen=True, eq=False)
class Grid:
    """A table as it is published.

    Attributes
    ----------
    values : DataArray of float64
        Published values, NaN where none is published.
    decimals : int
        Decimal places of the values.
    status : DataArray of str, optional
        What is printed for the cells without a value.
    """

    values: xr.DataArray
    decimals: int
    status: xr.DataArray | None = None

    @property
    def label(self) -> str:
        """What is tabulated, and how many cells are published."""
        if self.status is not None:
            return f"{margin_label(table_dims(self.values))}: {counts_of(self.status)}"
        published = int(self.values.notnull().sum())
        suppressed = self.values.size - published
        return (
            f"{margin_label(table_dims(self.values))}: {published:,} published, {suppressed:,}"
            " suppressed"
        )

    @property
    def printable(self) -> bool:
        """Whether it is small enough to be printed."""
        return self.values.size <= _MOST_CELLS and self.values.ndim <= 2

    def frame(self) -> pd.DataFrame:
        """The table as text, with blanks for what is not published."""
        values = self.values.values.ravel().tolist()
        blanks = [""] * len(values) if self.status is None else self.status.values.ravel().tolist()
        text = [
            f"{_BLANK} {blank}".rstrip() if np.isnan(value) else f"{value:.{self.decimals}f}"
            for value, blank in zip(values, blanks, strict=True)
        ]
        rows, columns = (
            [self.values.get_index(dim) for dim in self.values.dims],
            pd.Index(["value"]),
        )
        if not rows:
            rows = [pd.Index(["grand total"])]
        if len(rows) == 2:
            columns = rows.pop()
        return pd.DataFrame(
            np.array(text, dtype=object).reshape(len(rows[0]), -1), rows[0], columns
        )


@dataclass(frozen=True, eq=False)
class Shown:
    """What a release or result prints of itself.

    Attributes
    ----------
    lines : sequence of str
        What it is, in words.
    grids : sequence of Grid
        The tables that it publishes.
    """

    lines: Sequence[str]
    grids: Sequence[Grid]

    def text(self) -> str:
        """Lines and tables for a terminal."""
        parts = list(self.lines)
        for grid, printed in self._grids():
            parts.append(grid.label)
            if printed:
                parts.append(grid.frame().to_string())
        return "\n".join([*parts, *self._note()])

    def html(self) -> str:
        """Lines and tables for a notebook."""
        parts = [f"<p>{'<br>'.join(map(escape, self.lines))}</p>"]
        for grid, printed in self._grids():
            parts.append(f"<p>{escape(grid.label)}</p>")
            if printed:
                parts.append(grid.frame().to_html())
        return "\n".join([*parts, *(f"<p>{escape(note)}</p>" for note in self._note())])

    def _grids(self) -> Iterable[tuple[Grid, bool]]:
        return (
            (grid, grid.printable and number < _MOST_TABLES)
            for number, grid in enumerate(self.grids)
        )

    def _note(self) -> list[str]:
        return [] if all(printed for _, printed in self._grids()) else [_NOT_PRINTED]


def published_grid(steps: xr.DataArray, published: Booleans, decimals: int) -> Grid:
    """A table in steps as it is published, by flat position."""
    values = np.where(published, steps.values.ravel() / 10.0**decimals, np.nan)
    return Grid(steps.copy(data=values.reshape(steps.shape)), decimals)


def whole_grid(steps: xr.DataArray, decimals: int) -> Grid:
    """A table in steps of which every cell is published."""
    return published_grid(steps, np.ones(steps.size, dtype=np.bool_), decimals)


def margin_label(names: Iterable[str]) -> str:
    """A margin by its variables: ``area x sex``."""
    return " x ".join(names) or "grand total"


def sizes_label(table: xr.DataArray, decimals: int) -> str:
    """Variables of a table with their numbers of categories, and its decimals: ``area
    (4) x sex (2), 0 decimals``.
    """
    sizes = margin_label(f"{name} ({table.sizes[name]:,})" for name in table_dims(table))
    return f"{sizes}, {decimals} decimal{'' if decimals == 1 else 's'}"


def counts_of(status: xr.DataArray) -> str:
    """How many cells have each status: ``1 primary, 3 secondary, 5 safe``."""
    return ", ".join(f"{int((status == kind).sum())} {kind}" for kind in (PRIMARY, SECONDARY, SAFE))
