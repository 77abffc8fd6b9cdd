"""Global recoding: categories are combined before a table is released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.showing import Grid, Shown, published_grid, sizes_label, whole_grid
from taciturn.attack.system import Booleans, Integers, LinearSystem, Total, build_system
from taciturn.errors import ParameterError
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import every_margin, margin_of
from taciturn.tables.steps import in_steps
from taciturn.validate import mapping_of, quoted

__all__ = ["GlobalRecoding"]


@dataclass(frozen=True, eq=False, repr=False)
class GlobalRecoding(Release):
    r"""Global recoding: a table released with combined categories and all its totals.

    .. math:: \sum_{j \in g} x_j = G_g, \qquad x_j \ge 0

    for the cells `j` of the original table that make up the released cell `g`. A cell
    whose categories are all kept is published.

    Parameters
    ----------
    true_table : DataArray
        The true table, which is never printed: counts, or magnitudes with `decimals`
        decimal places.
    merge : mapping of str to mapping
        For each recoded variable the new categories and those that they combine, such
        as ``{"activity": {"5,6": ["5", "6"]}}``. A category that is not named is kept.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals.
    ParameterError
        A variable or category that the table does not have, a category that goes into
        two new ones, a new category that combines none or has the name of one that is
        kept; `decimals` outside 0 to 12.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.3, expressions (5).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([2, 3, 4], dims="x", coords={"x": ["a", "b", "c"]})
    >>> release = tc.GlobalRecoding(table, {"x": {"a,b": ["a", "b"]}})
    >>> tc.attacker_bounds(release, progressbar=False)["upper"].values.tolist()
    [5.0, 5.0, 4.0]
    """

    true_table: xr.DataArray
    merge: Mapping[str, Mapping[Any, Sequence[Any]]]
    decimals: int = field(default=0, kw_only=True)

    @cached_property
    def _steps(self) -> xr.DataArray:
        return in_steps(self.true_table, self.decimals, name="true_table").copy()

    @cached_property
    def _recoded(self) -> dict[str, tuple[list[Any], Integers]]:
        """The new categories of each variable, and the one that each old category goes
        into.
        """
        table = self._steps
        variables = tuple(map(str, table.dims))
        mapping_of(self.merge, "merge", "variables, such as {'age': {'young': ['0-4', '5-9']}}")
        unknown = [name for name in self.merge if name not in variables]
        if unknown:
            raise ParameterError(
                f"merge must name variables of the table, {variables}, got {unknown}"
            )
        return {
            name: _merged_categories(table, name, self.merge.get(name, {})) for name in variables
        }

    @cached_property
    def system(self) -> LinearSystem:
        """One equation for every released cell that combines several."""
        table = self._steps
        group = np.zeros(table.shape, dtype=np.int64)
        for axis, (labels, merged) in enumerate(self._recoded.values()):
            group = group * len(labels) + merged.reshape(
                [-1 if i == axis else 1 for i in range(table.ndim)]
            )
        shape = [len(labels) for labels, _ in self._recoded.values()]
        sums = np.zeros(int(np.prod(shape)), dtype=np.int64)
        np.add.at(sums, group.ravel(), table.values.ravel())
        named = {dim: np.array(labels, dtype=object) for dim, (labels, _) in self._recoded.items()}
        merged_table = xr.DataArray(sums.reshape(shape), dims=list(named), coords=named)
        known = np.bincount(group.ravel())[group.ravel()] == 1
        total = Total.exact(merged_table, group.ravel())
        return build_system(table, known, [total], decimals=self.decimals)

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The totals of categories that are kept; over levels above variables none."""
        table = self._steps
        if not set(names) <= set(table.dims):
            return np.zeros(margin_of(table, names)[0].size, dtype=np.bool_)
        published = np.ones(1, dtype=np.bool_)
        for name in names:
            _, merged = self._recoded[name]
            published = np.logical_and.outer(published, np.bincount(merged)[merged] == 1)
        return published.ravel()

    def shown(self) -> Shown:
        """The table of combined categories."""
        merged = self.system.totals[0]
        lines = (
            f"Global recoding of {sizes_label(self._steps, self.decimals)}",
            f"published totals: all; {len(self.system.unknown):,} cells are merged with others",
        )
        return Shown(lines, [published_grid(merged.labels, merged.released, self.decimals)])

    def published_tables(self) -> Sequence[Grid]:
        """The table of combined categories, and all its totals."""
        merged = self.system.totals[0].labels
        totals = (margin_of(merged, names)[0] for names in reversed(every_margin(merged)))
        return [*self.shown().grids, *(whole_grid(total, self.decimals) for total in totals)]


def _merged_categories(
    table: xr.DataArray, dim: str, merge: Mapping[Any, Any]
) -> tuple[list[Any], Integers]:
    """The new categories of a variable, in the order of the old ones, and the one that
    each old category goes into.
    """
    mapping_of(merge, f"merge[{dim!r}]", "new categories to the old ones that go into them")
    old = labels_of(table[dim])
    new_of: dict[Any, Any] = {}
    for new, parts in merge.items():
        if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
            raise ParameterError(
                f"merge[{dim!r}][{new!r}] must be a sequence of categories, got {quoted(parts)}"
            )
        for part in parts:
            if part not in old:
                raise ParameterError(
                    f"merge: {dim!r} has no category {part!r}, its categories are {old}"
                )
            if part in new_of:
                raise ParameterError(f"merge: category {part!r} of {dim!r} is named twice")
            new_of[part] = new
    staying = [label for label in old if label not in new_of]
    clash = [new for new in merge if new in staying]
    if clash:
        raise ParameterError(
            f"merge: {clash[0]!r} is a category of {dim!r} that is kept; give the new one"
            " another name"
        )
    labels = list(dict.fromkeys(new_of.get(label, label) for label in old))
    place = {label: number for number, label in enumerate(labels)}
    return labels, np.array([place[new_of.get(label, label)] for label in old], dtype=np.int64)
