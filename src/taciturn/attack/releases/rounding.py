"""A rounded table: every published value stands for an interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.showing import Grid, Shown, margin_label, sizes_label, whole_grid
from taciturn.attack.releases.totals import check_totals, total_in_steps
from taciturn.attack.system import Booleans, Integers, LinearSystem, Total, build_system
from taciturn.errors import ParameterError, TableError
from taciturn.schema import cell_label
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import coarser_levels, every_margin, margin_of
from taciturn.tables.steps import in_steps
from taciturn.validate import is_real, one_of, quoted

__all__ = ["Rounding"]


@dataclass(frozen=True, eq=False, repr=False)
class Rounding(Release):
    r"""A rounded table, with or without totals.

    A released multiple `v` of the base `b` stands for

    .. math:: v - b/2 \le x < v + b/2 \quad \text{(conventional)}, \qquad
        v - b < x < v + b \quad \text{(random, controlled)}

    and `x` is at least 0. A rounded total stands for such an interval as well.

    Parameters
    ----------
    released : DataArray
        The released table, multiples of the base.
    base : float
        The rounding base `b`, of at least two steps.
    method : {"conventional", "random"}
        To the nearest multiple, with halves going up, or to one of the two multiples
        on either side of a value, as in random and controlled rounding.
    totals : bool or sequence of DataArray
        The published totals. False publishes none. True says that all totals, down to
        the grand total, are the sums of the released cells and within the base, as
        after controlled rounding of one or two variables. Otherwise the published
        totals themselves, one table over the variables or levels of each margin: of
        sums of released cells those alone that were controlled, as
        `controlled_round` of three or more variables controls some, and others may be
        further off than a rounded value is.
    exact_totals : bool
        Whether the published `totals` are the true ones; otherwise they are rounded in
        the same way as the cells.
    decimals : int
        Decimal places of the true values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        A cell or rounded total that is not a multiple of the base; values or totals
        that are negative, missing, infinite or have more decimals; totals with other
        categories.
    ParameterError
        `base` below two steps or with more decimals, an unknown `method`,
        `exact_totals` without the totals themselves, `decimals` outside 0 to 12; True
        where not all totals are controlled, as by conventional rounding.

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

    released: xr.DataArray
    base: float
    method: Literal["conventional", "random"] = field(default="conventional", kw_only=True)
    totals: bool | Sequence[xr.DataArray] = field(default=False, kw_only=True)
    exact_totals: bool = field(default=False, kw_only=True)
    decimals: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        one_of(self.method, "method", ("conventional", "random"))
        check_totals(() if isinstance(self.totals, bool) else self.totals, self.exact_totals)
        if self.exact_totals and isinstance(self.totals, bool):
            raise ParameterError(
                f"exact_totals needs the true totals themselves in totals, got {self.totals}"
            )
        super().__post_init__()
        self._check_controlled()

    def _check_controlled(self) -> None:
        """Raise where all totals are said to be within the base, and are not: they are
        after controlled rounding of a table of two variables, without levels.
        """
        if self.totals is not True:
            return
        table = self._steps
        variables = [dim for dim in map(str, table.dims) if table.sizes[dim] > 1]
        levels = [
            level
            for dim in variables
            for level in coarser_levels(table, dim)
            if len(set(labels_of(table[level]))) > 1
        ]
        if self.method == "random" and len(variables) <= 2 and not levels:
            return
        why = "conventional rounding controls none; give those that are rounded, each for itself"
        if self.method == "random":
            of = f"the level {levels[0]!r}" if levels else f"{len(variables)} variables"
            one = f"released.sum({list(map(str, table.dims[1:])) or ''})"
            why = (
                f"with {of} controlled rounding controls some, and others may be further off; give"
                f" those that were controlled, such as {one}"
            )
        raise ParameterError(f"totals must be within the base, and not True: {why}")

    @cached_property
    def _steps(self) -> xr.DataArray:
        return in_steps(self.released, self.decimals, name="released").copy()

    @cached_property
    def system(self) -> LinearSystem:
        """An interval for every cell and every published total."""
        table, base = self._steps, self._base()
        _check_multiples(table, base, self.decimals, name="released")
        lower, upper = self._interval(table.values.ravel(), base)
        known = np.zeros(table.size, dtype=np.bool_)
        totals = self._totals(table, base)
        return build_system(table, known, totals, decimals=self.decimals, lower=lower, upper=upper)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """All totals of a margin that is published as it is; a rounded value is not."""
        exact = [] if isinstance(self.totals, bool) or not self.exact_totals else self.totals
        published = any(set(total.dims) == set(names) for total in exact)
        return np.full(margin_of(self._steps, names)[0].size, published)

    def shown(self) -> Shown:
        """The rounded table, and which totals are published."""
        table = self._steps
        if isinstance(self.totals, bool):
            totals = "sums of the rounded cells" if self.totals else "none"
        else:
            margins = (
                ", ".join(margin_label(map(str, total.dims)) for total in self.totals) or "none"
            )
            totals = f"{margins}, {'exact' if self.exact_totals else 'rounded'}"
        lines = (
            f"Rounding of {sizes_label(table, self.decimals)}",
            f"{self.method}, to multiples of {self.base:g}; published totals: {totals}",
        )
        return Shown(lines, [whole_grid(table, self.decimals)])

    def published_tables(self) -> Sequence[Grid]:
        """The rounded table, and each of the published totals."""
        totals = self._published_totals(self._steps, self._base())
        return [*self.shown().grids, *(whole_grid(total, self.decimals) for total in totals)]

    def _base(self) -> int:
        steps = float(self.base) * 10.0**self.decimals if is_real(self.base) else np.nan
        if not (
            2 <= np.rint(steps) <= 2**53 and np.isclose(steps, np.rint(steps), rtol=1e-12, atol=0)
        ):
            least = 2 * 10.0**-self.decimals
            raise ParameterError(
                f"base must be a multiple of {least / 2:g} of at least {least:g}, got"
                f" {quoted(self.base)}"
            )
        return int(np.rint(steps))

    def _interval(self, values: Integers, base: int) -> tuple[Integers, Integers]:
        if self.method == "conventional":
            return values - base // 2, values + (base - 1) // 2
        return values - base + 1, values + base - 1

    def _totals(self, table: xr.DataArray, base: int) -> Iterator[Total]:
        for total in self._published_totals(table, base):
            labels, group = margin_of(table, tuple(map(str, total.dims)))
            values = total.values.ravel()
            least, most = (values, values) if self.exact_totals else self._interval(values, base)
            yield Total(labels, group, least, most, np.ones(labels.size, dtype=np.bool_))

    def _published_totals(self, table: xr.DataArray, base: int) -> list[xr.DataArray]:
        """The values of the published totals, in steps."""
        if isinstance(self.totals, bool):
            # Intervals of finer totals add up to wider ones, so no total follows from
            # others here.
            margins = every_margin(table) if self.totals else []
            return [margin_of(table, names)[0] for names in margins]
        published = [total_in_steps(total, table, self.decimals) for total in self.totals]
        for total in published:
            if not self.exact_totals:
                _check_multiples(total, base, self.decimals, name="totals")
        return published


def _check_multiples(table: xr.DataArray, base: int, decimals: int, *, name: str) -> None:
    bad = np.argwhere(table.values % base)
    if len(bad):
        position = tuple(int(i) for i in bad[0])
        step = 10.0**decimals
        raise TableError(
            f"{name} must hold multiples of {base / step:g}:"
            f" {cell_label(table, position) or 'the grand total'} holds"
            f" {table.values[position] / step:g}"
        )
