"""Global recoding: a table whose categories are merged before it is released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.releases.base import Release, true_steps
from taciturn.attack.releases.showing import (
    Shown,
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
from taciturn.tables.margins import margin_of

__all__ = ["GlobalRecoding"]


@dataclass(frozen=True, eq=False, repr=False)
class GlobalRecoding(Release):
    r"""A table whose categories are merged before it is released, with all its totals.

    .. math:: \sum_{j \in g} x_j = G_g, \qquad x_j \ge 0

    for the cells `j` of the original table that make up the released cell `g`. A cell
    none of whose categories is merged is published.

    Parameters
    ----------
    true_table : DataArray
        The true table, which nothing printed shows: counts, or magnitudes with so many
        `decimals`.
    merge : mapping of str to mapping
        For each variable the new categories and what they are made of, such as
        ``{"activity": {"5,6": ["5", "6"]}}``. A category that is not named stays.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals.
    ParameterError
        A variable or category that the table does not have, a category in two merged
        ones, a merged one that is named like a category that stays or is made of
        nothing; `decimals` outside 0 to 12.

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

    def __post_init__(self) -> None:
        self.system()

    def system(self) -> LinearSystem:
        """One equation for every released cell that is made of several."""
        table = true_steps(self)
        unknown_names = [dim for dim in self.merge if dim not in table_dims(table)]
        if unknown_names:
            raise ParameterError(
                f"merge must name variables of the table, {table_dims(table)}, got {unknown_names}"
            )
        group = np.zeros(table.shape, dtype=np.int64)
        labels: dict[str, list[Any]] = {}
        for axis, dim in enumerate(table_dims(table)):
            labels[dim], merged = merged_categories(table, dim, self.merge.get(dim, {}))
            group = group * len(labels[dim]) + merged.reshape(
                [-1 if i == axis else 1 for i in range(table.ndim)]
            )
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
            f"GlobalRecoding of {sizes_label(system.published, self.decimals)}",
            f"published totals: all; {len(system.unknown):,} cells are merged with others",
        )
        return Shown(lines, [published_grid(merged.labels, merged.released, self.decimals)])

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """The totals of categories that stay; of levels above variables none is."""
        table = true_steps(self)
        if not set(names) <= set(table.dims):
            return np.zeros(margin_of(table, names)[0].size, dtype=np.bool_)
        published = np.ones(1, dtype=np.bool_)
        for name in names:
            _, merged = merged_categories(table, name, self.merge.get(name, {}))
            published = np.logical_and.outer(published, np.bincount(merged)[merged] == 1)
        return published.ravel()


def merged_categories(
    table: xr.DataArray, dim: str, merge: Mapping[Any, Any]
) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """New categories of a variable, in the order of the old ones, and which of them
    each old one becomes.
    """
    old = table[dim].values.tolist()
    new_of: dict[Any, Any] = {}
    for new, parts in merge.items():
        if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
            raise ParameterError(
                f"merge[{dim!r}][{new!r}] must be a sequence of categories, got {parts!r}"
            )
        for part in parts:
            if part not in old:
                raise ParameterError(
                    f"merge: {dim!r} has no category {part!r}, its categories are {old}"
                )
            if part in new_of:
                raise ParameterError(f"merge: category {part!r} of {dim!r} stands twice")
            new_of[part] = new
    staying = [label for label in old if label not in new_of]
    clash = [new for new in merge if new in staying]
    if clash:
        raise ParameterError(
            f"merge: {clash[0]!r} is a category of {dim!r} that stays; name the merged one"
            " otherwise"
        )
    labels = list(dict.fromkeys(new_of.get(label, label) for label in old))
    place = {label: number for number, label in enumerate(labels)}
    return labels, np.array([place[new_of.get(label, label)] for label in old], dtype=np.int64)
