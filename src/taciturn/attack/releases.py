"""Releases of a table: what is published of it, and what each says about the cells that it does not show."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.system import (
    LinearSystem,
    Total,
    build_system,
    checked_mask,
    in_steps,
    margin_names,
    margin_of,
)
from taciturn.errors import ParameterError, TableError
from taciturn.schema import cell_label, table_dims

__all__ = ["LinkedTables", "Redesign", "Release", "Rounding", "Suppression"]

type Margin = str | Sequence[str]
"""A margin, named by its variables; no variable is the grand total."""


class Release(ABC):
    """What is published of a table. Its `system` holds all tables that are compatible with it."""

    @abstractmethod
    def system(self) -> LinearSystem:
        """The release as one sparse linear system over the cells that it does not show."""


@dataclass(frozen=True, eq=False)
class Suppression(Release):
    r"""A table of which some cells are suppressed, with its totals.

    .. math:: \sum_{j \in S \cap m} x_j = T_m - \sum_{j \in m \setminus S} F_j, \qquad x_j \ge 0

    for every total `T` of the cells `m` and the suppressed cells `S`.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with so many `decimals`.
    suppressed : DataArray of bool
        True where a cell is suppressed; dims of the table.
    totals : bool or sequence of margins
        The published totals. True is the table with all its margins: for two variables the totals of rows, columns
        and the whole, for more the margins of one variable fewer, from which all others follow. False is none. Else
        the margins, each named by its variables, such as ``[("area", "sex"), "age", ()]``; ``()`` is the grand total.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; a grand total beyond ``2**53`` steps; a
        `suppressed` that is not bool or has other dimensions or categories.
    ParameterError
        `totals` that are not variables of the table, `decimals` outside 0 to 12.

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

    table: xr.DataArray
    suppressed: xr.DataArray
    totals: bool | Sequence[Margin] = field(default=True, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        table = in_steps(self.table, self.decimals)
        checked_mask(self.suppressed, table, name="suppressed")
        self._margins(table)

    def system(self) -> LinearSystem:
        """Equations of the totals that hold a suppressed cell; totals that follow from finer ones are left out."""
        table = in_steps(self.table, self.decimals)
        known = ~checked_mask(self.suppressed, table, name="suppressed").ravel()
        margins = self._margins(table)
        finest = [names for names in margins if not any(set(names) < set(other) for other in margins)]
        return build_system(table, known, _true_totals(table, finest), decimals=self.decimals)

    def _margins(self, table: xr.DataArray) -> list[tuple[str, ...]]:
        if isinstance(self.totals, bool):
            variables = table_dims(table)
            return list(combinations(variables, len(variables) - 1)) if self.totals else []
        return _named_margins(self.totals, table, name="totals")


@dataclass(frozen=True, eq=False)
class Rounding(Release):
    r"""A rounded table, with or without totals.

    A released multiple `v` of the base `b` stands for

    .. math:: v - b/2 \le x < v + b/2 \quad \text{(conventional)}, \qquad
        v - b < x < v + b \quad \text{(random, controlled)}

    and `x` is at least 0. A rounded total stands for such an interval, too.

    Parameters
    ----------
    table : DataArray
        The released table, multiples of the base.
    base : float
        The rounding base `b`, of at least two steps.
    method : {"conventional", "random"}
        To the nearest multiple, half of the base going up, or to one of the two multiples around a value, as random and
        controlled rounding do.
    totals : bool or sequence of DataArray
        The published totals. False is none. True says that sums of released cells are the rounded totals, as after
        controlled rounding: all margins of one variable fewer, down to the grand total. Else the published totals, a
        table over the variables of each margin.
    exact_totals : bool
        Whether the published `totals` are the true ones; without it they are rounded in the same way as cells.
    decimals : int
        Decimal places of the true values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        A cell or rounded total that is no multiple of the base; values or totals that are negative, missing, infinite
        or have more decimals; totals with other categories.
    ParameterError
        `base` below two steps or with more decimals, an unknown `method`, `exact_totals` without the totals
        themselves, `decimals` outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.2.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> release = tc.Rounding(xr.DataArray([0, 5, 10], dims="x"), 5)
    >>> tc.attacker_bounds(release, progressbar=False)["upper"].values.tolist()
    [2.0, 7.0, 12.0]
    """

    table: xr.DataArray
    base: float
    method: Literal["conventional", "random"] = field(default="conventional", kw_only=True)
    totals: bool | Sequence[xr.DataArray] = field(default=False, kw_only=True)
    exact_totals: bool = field(default=False, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.method not in ("conventional", "random"):
            raise ParameterError(f"method must be 'conventional' or 'random', got {self.method!r}")
        if self.exact_totals and isinstance(self.totals, bool):
            raise ParameterError(f"exact_totals needs the true totals themselves in totals, got {self.totals}")
        self.system()

    def system(self) -> LinearSystem:
        """An interval for every cell, and one for every total."""
        table = in_steps(self.table, self.decimals)
        base = self._base()
        _check_multiples(table, base, self.decimals, name="table")
        lower, upper = self._interval(table.values.ravel(), base)
        known = np.zeros(table.size, dtype=np.bool_)
        totals = self._totals(table, base)
        return build_system(table, known, totals, decimals=self.decimals, lower=lower, upper=upper)

    def _base(self) -> int:
        base: Any = self.base
        number = isinstance(base, int | float | np.integer | np.floating) and not isinstance(base, bool)
        steps = float(base) * 10.0**self.decimals if number else np.nan
        if not (2 <= np.rint(steps) <= 2**53 and np.isclose(steps, np.rint(steps), rtol=1e-12, atol=0)):
            least = 2 * 10.0**-self.decimals
            raise ParameterError(f"base must be a multiple of {least / 2:g} of at least {least:g}, got {self.base!r}")
        return int(np.rint(steps))

    def _interval(self, values: npt.NDArray[np.int64], base: int) -> tuple[npt.NDArray[np.int64], ...]:
        if self.method == "conventional":
            return values - base // 2, values + (base - 1) // 2
        return values - base + 1, values + base - 1

    def _totals(self, table: xr.DataArray, base: int) -> Iterator[Total]:
        if isinstance(self.totals, bool):
            variables = table_dims(table) if self.totals else ()
            # Intervals of finer totals add up to wider ones, so that no total follows from others here.
            margins = [names for size in range(len(variables)) for names in combinations(variables, size)]
            published = [margin_of(table, names)[0] for names in margins]
        else:
            published = [self._published(table, total, base) for total in self.totals]
        for total in published:
            labels, group = margin_of(table, table_dims(total))
            values = total.values.ravel()
            least, most = (values, values) if self.exact_totals else self._interval(values, base)
            yield Total(labels, group, least, most, np.ones(labels.size, dtype=np.bool_))

    def _published(self, table: xr.DataArray, total: Any, base: int) -> xr.DataArray:
        if not isinstance(total, xr.DataArray):
            raise TableError(f"totals must be DataArrays, got {type(total).__name__}")
        names = margin_names(total.dims, table, name="totals")
        # A grand total has no dimension, which a table must have.
        steps = in_steps(total if names else total.expand_dims("total"), self.decimals, name="totals")
        if not self.exact_totals:
            _check_multiples(steps, base, self.decimals, name="totals")
        for dim in names:
            if not np.array_equal(steps[dim], table[dim]):
                raise TableError(f"the categories of {dim!r} differ between totals and the table")
        return steps if names else steps.isel(total=0, drop=True)


@dataclass(frozen=True, eq=False)
class Redesign(Release):
    r"""A table whose categories are merged before it is released, with all its totals.

    .. math:: \sum_{j \in g} x_j = G_g, \qquad x_j \ge 0

    for the cells `j` of the original table that make up the released cell `g`. A cell none of whose categories is
    merged is published.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with so many `decimals`.
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

    table: xr.DataArray
    merge: Mapping[str, Mapping[Any, Sequence[Any]]]
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self.system()

    def system(self) -> LinearSystem:
        """One equation for every released cell that is made of several."""
        table = in_steps(self.table, self.decimals)
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


@dataclass(frozen=True, eq=False)
class LinkedTables(Release):
    r"""Projections of a multiway table that is not released itself.

    .. math:: \sum_{j : j|_m = c} x_j = z_{m,c}, \qquad x_j \ge 0

    for every released cell `c` of every released projection `m`.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with so many `decimals`.
    released : sequence of margins
        The released projections, each named by its variables, such as ``[("activity", "size"), ("region",), ()]``;
        ``()`` is the grand total.
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
        Projections that are not variables of the table, or stand twice; `suppressed` of one that is not released;
        `decimals` outside 0 to 12.

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

    table: xr.DataArray
    released: Sequence[Margin]
    suppressed: Mapping[Margin, xr.DataArray] | None = field(default=None, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self.system()

    def system(self) -> LinearSystem:
        """One equation for every released cell of every projection, in the order of `released`."""
        table = in_steps(self.table, self.decimals)
        margins = self.projections(table)
        masks = dict.fromkeys(map(frozenset, margins), np.zeros(0, dtype=np.bool_))
        for key, mask in (self.suppressed or {}).items():
            hidden_in = frozenset(margin_names(key, table, name="suppressed"))
            if hidden_in not in masks:
                raise ParameterError(f"suppressed must name released projections, {margins}, got {key!r}")
            totals, _ = margin_of(table, next(names for names in margins if frozenset(names) == hidden_in))
            masks[hidden_in] = checked_mask(mask, totals, name=f"suppressed[{key!r}]").ravel()
        totals_of = []
        for names, total in zip(margins, _true_totals(table, margins), strict=True):
            hidden = masks[frozenset(names)]
            shown = ~hidden if hidden.size else total.released
            totals_of.append(Total(total.labels, total.group, total.least, total.most, shown))
        known = np.zeros(table.size, dtype=np.bool_)
        return build_system(table, known, totals_of, decimals=self.decimals)

    def projections(self, table: xr.DataArray) -> list[tuple[str, ...]]:
        """The released projections by the names of their variables."""
        return _named_margins(self.released, table, name="released")


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


def _check_multiples(table: xr.DataArray, base: int, decimals: int, *, name: str) -> None:
    bad = np.argwhere(table.values % base)
    if len(bad):
        position = tuple(int(i) for i in bad[0])
        step = 10.0**decimals
        raise TableError(
            f"{name} must hold multiples of {base / step:g}: {cell_label(table, position)} holds "
            f"{table.values[position] / step:g}"
        )


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
