"""Releases of a table: what is published of it, and what each says about the cells that it does not show."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.showing import Shown, margin_label, published_grid, sizes_label
from taciturn.attack.system import (
    Booleans,
    LinearSystem,
    Total,
    build_system,
    checked_mask,
    coarser_levels,
    in_steps,
    margin_names,
    margin_of,
    without_implied,
)
from taciturn.errors import ParameterError
from taciturn.schema import table_dims

__all__ = ["LinkedTables", "Margin", "Redesign", "Release", "Suppression", "every_margin"]

type Margin = str | Sequence[str]
"""A margin, named by its variables or levels above them; no variable is the grand total."""


class Release(ABC):
    """What is published of a table. Its `system` holds all tables that are compatible with it.

    A release prints what it publishes; a true table that it holds is an attribute of its own, and never shown.
    """

    @abstractmethod
    def system(self) -> LinearSystem:
        """The release as one sparse linear system over the cells that it does not show."""

    @abstractmethod
    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """Which totals over these variables are published with their value, by flat position; of all, which cells."""

    @abstractmethod
    def shown(self) -> Shown:
        """What is published, to be printed."""

    def __repr__(self) -> str:
        """What is published, in words and small tables."""
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()


@dataclass(frozen=True, eq=False, repr=False)
class Suppression(Release):
    r"""A table of which some cells are suppressed, with its totals.

    .. math:: \sum_{j \in S \cap m} x_j = T_m - \sum_{j \in m \setminus S} F_j, \qquad x_j \ge 0

    for every total `T` of the cells `m` and the suppressed cells `S`.

    A hierarchy is a further coordinate along a variable, ``table.assign_coords(region=("country", ["North", ...]))``:
    its name is that of a level, and names margins as a variable does. There may be several, nested or not. A
    coordinate that gives each category a label of its own is no level with totals.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many `decimals`.
    suppressed : DataArray of bool
        True where a cell is suppressed; dims of the table.
    totals : bool or sequence of margins
        The published totals. True is the table with all its margins: for two variables the totals of rows, columns
        and the whole, for more the margins of one variable fewer, from which all others follow; and with those of every
        level of every hierarchy. False is none. Else the margins, each named by its variables or levels, such as
        ``[("area", "sex"), ("region", "sex"), "age", ()]``; ``()`` is the grand total.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; a grand total beyond ``2**53`` steps; a
        `suppressed` that is not bool or has other dimensions or categories; a level without a label somewhere.
    ParameterError
        `totals` that are neither variables of the table nor levels above them, or name two levels of one; `decimals`
        outside 0 to 12.

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
        table = _steps(self)
        checked_mask(self.suppressed, table, name="suppressed")
        self._margins(table)

    def system(self) -> LinearSystem:
        """Equations of the totals that hold a suppressed cell; totals that follow from finer ones are left out."""
        table = _steps(self)
        known = ~checked_mask(self.suppressed, table, name="suppressed").ravel()
        margins = self._margins(table)
        finest = _true_totals(table, without_implied(margins, table))
        return build_system(table, known, finest, decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """All totals of a margin or none of them; the cells that are not suppressed."""
        table = _steps(self)
        if set(names) == set(table.dims):
            template, _ = margin_of(table, names)
            return ~checked_mask(self.suppressed, template, name="suppressed").ravel()
        margins = every_margin(table) if self.totals is True else self._margins(table)
        published = set(names) in map(set, margins)
        return np.full(margin_of(table, names)[0].size, published)

    def shown(self) -> Shown:
        """The cells that are not suppressed, and which totals there are."""
        table = _steps(self)
        if isinstance(self.totals, bool):
            totals = "all" if self.totals else "none"
        else:
            totals = ", ".join(map(margin_label, self._margins(table))) or "none"
        lines = (f"Suppression of {sizes_label(table, self.decimals)}", f"published totals: {totals}")
        return Shown(lines, [published_grid(table, self.publishes(table_dims(table)), self.decimals)])

    def _margins(self, table: xr.DataArray) -> list[tuple[str, ...]]:
        if isinstance(self.totals, bool):
            return finest_totals(table) if self.totals else []
        return _named_margins(self.totals, table, name="totals")


@dataclass(frozen=True, eq=False, repr=False)
class Redesign(Release):
    r"""A table whose categories are merged before it is released, with all its totals.

    .. math:: \sum_{j \in g} x_j = G_g, \qquad x_j \ge 0

    for the cells `j` of the original table that make up the released cell `g`. A cell none of whose categories is
    merged is published.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many `decimals`.
    merge : mapping of str to mapping
        For each variable the new categories and what they are made of, such as ``{"activity": {"5,6": ["5", "6"]}}``.
        A category that is not named stays.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals.
    ParameterError
        A variable or category that the table does not have, a category in two merged ones, a merged one that is named
        like a category that stays or is made of nothing; `decimals` outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.3, expressions (5).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([2, 3, 4], dims="x", coords={"x": ["a", "b", "c"]})
    >>> release = tc.Redesign(table, {"x": {"a,b": ["a", "b"]}})
    >>> tc.attacker_bounds(release, progressbar=False)["upper"].values.tolist()
    [5.0, 5.0, 4.0]
    """

    true_table: xr.DataArray
    merge: Mapping[str, Mapping[Any, Sequence[Any]]]
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self.system()

    def system(self) -> LinearSystem:
        """One equation for every released cell that is made of several."""
        table = _steps(self)
        unknown_names = [dim for dim in self.merge if dim not in table_dims(table)]
        if unknown_names:
            raise ParameterError(f"merge must name variables of the table, {table_dims(table)}, got {unknown_names}")
        group = np.zeros(table.shape, dtype=np.int64)
        labels: dict[str, list[Any]] = {}
        for axis, dim in enumerate(table_dims(table)):
            labels[dim], merged = _merged(table, dim, self.merge.get(dim, {}))
            group = group * len(labels[dim]) + merged.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
        shape = [len(names) for names in labels.values()]
        sums = np.zeros(int(np.prod(shape)), dtype=np.int64)
        np.add.at(sums, group.ravel(), table.values.ravel())
        named = {dim: np.array(names, dtype=object) for dim, names in labels.items()}
        template = xr.DataArray(sums.reshape(shape), dims=list(labels), coords=named)
        known = np.bincount(group.ravel())[group.ravel()] == 1
        total = Total(template, group.ravel(), sums, sums, np.ones(len(sums), dtype=np.bool_))
        return build_system(table, known, [total], decimals=self.decimals)

    def shown(self) -> Shown:
        """The table of merged categories."""
        system = self.system()
        merged = system.totals[0]
        lines = (
            f"Redesign of {sizes_label(system.published, self.decimals)}",
            f"published totals: all; {len(system.unknown):,} cells are merged with others",
        )
        return Shown(lines, [published_grid(merged.labels, merged.released, self.decimals)])

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The totals of categories that stay; of levels above variables none is."""
        table = _steps(self)
        if not set(names) <= set(table.dims):
            return np.zeros(margin_of(table, names)[0].size, dtype=np.bool_)
        published = np.ones(1, dtype=np.bool_)
        for name in names:
            _, merged = _merged(table, name, self.merge.get(name, {}))
            published = np.logical_and.outer(published, np.bincount(merged)[merged] == 1)
        return published.ravel()


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTables(Release):
    r"""Projections of a multiway table that is not released itself.

    .. math:: \sum_{j : j|_m = c} x_j = z_{m,c}, \qquad x_j \ge 0

    for every released cell `c` of every released projection `m`.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many `decimals`.
    released : sequence of margins
        The released projections, each named by its variables, such as ``[("activity", "size"), ("region",), ()]``, or
        by levels above them as in `Suppression`; ``()`` is the grand total.
    suppressed : mapping of margin to DataArray of bool, optional
        True where a cell of a released projection is suppressed.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; a mask that is not bool or has other
        dimensions or categories.
    ParameterError
        Projections that are neither of variables of the table nor of levels above them, or stand twice; `suppressed` of
        one that is not released; `decimals` outside 0 to 12.

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
        """One equation for every released cell of every projection, in the order of `released`."""
        table = _steps(self)
        margins = self.projections(table)
        projected = set(map(frozenset, margins))
        for key in self.suppressed or {}:
            if frozenset(margin_names(key, table, name="suppressed")) not in projected:
                raise ParameterError(f"suppressed must name released projections, {margins}, got {key!r}")
        masks = self._suppressed(table, margins)
        totals_of = []
        for total in _true_totals(table, margins):
            released = ~masks.get(frozenset(map(str, total.labels.dims)), ~total.released)
            values = np.where(released, total.least, 0)  # a system knows what is published, and nothing else
            labels = total.labels.copy(data=values.reshape(total.labels.shape))
            totals_of.append(Total(labels, total.group, values, values, released))
        known = np.zeros(table.size, dtype=np.bool_)
        return build_system(table, known, totals_of, decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The cells of a released projection that are not suppressed."""
        table = _steps(self)
        size = margin_of(table, names)[0].size
        if set(names) not in map(set, self.projections(table)):
            return np.zeros(size, dtype=np.bool_)
        return ~self._suppressed(table, [names]).get(frozenset(names), np.zeros(size, dtype=np.bool_))

    def shown(self) -> Shown:
        """Every released projection."""
        system = self.system()
        lines = (
            f"Linked tables of {sizes_label(system.published, self.decimals)}",
            f"released projections: {', '.join(margin_label(table_dims(total.labels)) for total in system.totals)}",
        )
        return Shown(lines, [published_grid(total.labels, total.released, self.decimals) for total in system.totals])

    def _suppressed(self, table: xr.DataArray, margins: Sequence[tuple[str, ...]]) -> dict[frozenset[str], Booleans]:
        """What is suppressed of each of these margins, by flat position; two masks of one margin add up."""
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
        return _named_margins(self.released, table, name="released")


def _steps(release: Suppression | Redesign | LinkedTables) -> xr.DataArray:
    return in_steps(release.true_table, release.decimals, name="true_table")


def finest_totals(table: xr.DataArray) -> list[tuple[str, ...]]:
    """The margins from which all others follow: one variable is left out, or at a level above."""
    variables = table_dims(table)
    margins = []
    for dim in reversed(variables):
        for level in (*coarser_levels(table, dim), None):
            names = (level if name == dim else name for name in variables)
            margins.append(tuple(name for name in names if name is not None))
    return margins


def every_margin(table: xr.DataArray) -> list[tuple[str, ...]]:
    """All margins, with each variable left out, at a level above or as it is; not all as they are."""
    variables = table_dims(table)
    choices = product(*((None, *coarser_levels(table, dim), dim) for dim in variables))
    named = (tuple(name for name in names if name is not None) for names in choices)
    return [names for names in named if names != variables]


def _true_totals(table: xr.DataArray, margins: Sequence[tuple[str, ...]]) -> Iterator[Total]:
    for names in margins:
        totals, group = margin_of(table, names)
        values = totals.values.ravel()
        yield Total(totals, group, values, values, np.ones(values.size, dtype=np.bool_))


def _named_margins(margins: Any, table: xr.DataArray, *, name: str) -> list[tuple[str, ...]]:
    if isinstance(margins, str) or not isinstance(margins, Sequence):
        raise ParameterError(f"{name} must be a sequence of margins, such as [('a', 'b'), 'c'], got {margins!r}")
    named = [margin_names(margin, table, name=name) for margin in margins]
    if len({frozenset(names) for names in named}) < len(named):
        raise ParameterError(f"{name} must name each margin once, got {list(margins)!r}")
    return named


def _merged(table: xr.DataArray, dim: str, merge: Mapping[Any, Any]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """New categories of a variable, in the order of the old ones, and which of them each old one becomes."""
    old = table[dim].values.tolist()
    new_of: dict[Any, Any] = {}
    for new, parts in merge.items():
        if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
            raise ParameterError(f"merge[{dim!r}][{new!r}] must be a sequence of categories, got {parts!r}")
        for part in parts:
            if part not in old:
                raise ParameterError(f"merge: {dim!r} has no category {part!r}, its categories are {old}")
            if part in new_of:
                raise ParameterError(f"merge: category {part!r} of {dim!r} stands twice")
            new_of[part] = new
    staying = [label for label in old if label not in new_of]
    clash = [new for new in merge if new in staying]
    if clash:
        raise ParameterError(f"merge: {clash[0]!r} is a category of {dim!r} that stays; name the merged one otherwise")
    labels = list(dict.fromkeys(new_of.get(label, label) for label in old))
    place = {label: number for number, label in enumerate(labels)}
    return labels, np.array([place[new_of.get(label, label)] for label in old], dtype=np.int64)
