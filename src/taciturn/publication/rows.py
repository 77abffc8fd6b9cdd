"""A release in long form: a row for each cell."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.publication.published import Published, Releasable, published
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import hierarchies
from taciturn.tables.spelling import legible, seen

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["long_form", "release_rows"]


def release_rows(
    release: Releasable,
    *,
    value: str | None = None,
    total: str = "Total",
    internal: bool = False,
    intervals: bool = False,
) -> "pd.DataFrame":
    """All cells of a release in long form.

    Parameters
    ----------
    release, value, total, internal, intervals
        As in `write_release`.

    Returns
    -------
    DataFrame
        A column for each variable, one with the name of the quantity, NaN where
        suppressed, with `intervals` ``lower`` and ``upper``, and ``status``, which is
        ``published`` or ``suppressed``; with `internal` ``status_not_for_release``
        instead, which is ``safe``, ``primary`` or ``secondary``.

    Raises
    ------
    ParameterError
        As for `write_release`.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([5, 1, 2], coords={"area": ["A", "B", "C"]}, dims="area")
    >>> release = tc.Suppression(table, table < 3)
    >>> tc.publication.release_rows(release).values.tolist()[2:]
    [['C', nan, 'suppressed'], ['Total', 8.0, 'published']]
    """
    what = published(release, value=value, internal=internal, intervals=intervals)
    return long_form(what, total=total)


def long_form(what: Published, *, total: str) -> "pd.DataFrame":
    """A row for each cell. Levels above a variable are in its column, as its totals
    are.
    """
    import pandas as pd

    tables = [values for values, _ in what.tables]
    known = [*tables, what.cells]
    column_of = _columns(tables, known)
    variables = list(dict.fromkeys(column_of.values()))
    others = [*what.numbers, what.status]
    if what.value in others[1:]:
        raise ParameterError(f"value must not be {what.value!r}, which names another column")
    if clash := set(others) & set(variables):
        raise ParameterError(
            f"a variable must not be called {min(clash)!r}, which is the name of a column of the"
            f" file; its columns are {[*variables, *others]}"
        )
    _check_labels(tables, known, column_of, total)
    parts = []
    for at, (values, status) in enumerate(what.tables):
        names = list(map(str, values.dims))
        labels = list(product(*(values.get_index(name).tolist() for name in names)))
        columns = [column_of[name] for name in names]
        rows = pd.DataFrame(labels, columns=columns, index=range(len(labels)), dtype=object)
        for name in variables:
            if name not in columns:
                rows[name] = total
        rows[what.value] = np.ravel(values.values)
        for side, ends in what.intervals[at].items() if what.intervals else ():
            rows[side] = np.ravel(ends.values)
        rows[what.status] = np.ravel(status.transpose(*names).values)
        parts.append(rows[[*variables, *others]])
    found = pd.concat(parts, ignore_index=True)
    if set(column_of) == set(variables):
        return found
    # A branch that ends above the others is a cell on each level, and one row.
    return found[~found[variables].astype(str).duplicated()].reset_index(drop=True)


def _columns(tables: Sequence[xr.DataArray], known: Sequence[xr.DataArray]) -> dict[str, str]:
    """The column of each variable, and of each level that of the variable below it."""
    above: dict[str, str] = {}
    for table in known:
        for dim, levels in hierarchies(table).items():
            above.update(dict.fromkeys(levels, dim))
    found = {}
    for table in tables:
        for name in map(str, table.dims):
            lowest = name
            while lowest in above:
                lowest = above[lowest]
            found[name] = lowest
    return found


def _check_labels(
    tables: Sequence[xr.DataArray],
    known: Sequence[xr.DataArray],
    column_of: dict[str, str],
    total: str,
) -> None:
    """Raise `ParameterError` where two categories of a column would be written alike,
    or one of a level like one of the variable that the column is called after.
    """
    for column in dict.fromkeys(column_of.values()):
        levels = [name for name, found in column_of.items() if found == column]
        names = list(dict.fromkeys([column, *levels]))
        written: dict[str, list[str]] = {}
        for table in known:
            for name in set(names) & set(table.dims):
                written.setdefault(name, [str(label) for label in table.get_index(name)])
        groups = _groups(known, column, names)
        for name, labels in written.items():
            if len(set(labels)) < len(labels):
                raise ParameterError(
                    f"categories of {name!r} must differ when they are written: {labels}"
                )
            both = {
                label
                for other in names
                for label in set(written[other]) & set(labels)
                if groups.get((other, label)) != groups.get((name, label))
            }
            if both:
                raise ParameterError(
                    f"categories of {column!r} and of a level above it must differ, as they are in"
                    f" one column: {min(both)!r} is of {' and '.join(map(repr, names))}"
                )
        summed = any(not set(names) & set(table.dims) for table in tables)
        for name, labels in written.items():
            alike = [label for label in labels if seen(label) == seen(total)]
            if summed and alike:
                raise ParameterError(
                    f"total must be no category, nor look like one: {name!r} has"
                    f" {legible(alike[0])!r}; choose another word"
                )


def _groups(
    tables: Sequence[xr.DataArray], column: str, names: Sequence[str]
) -> dict[tuple[str, str], set[int]]:
    """The categories of a column that each label of it and of levels above stands
    for.
    """
    found: dict[tuple[str, str], set[int]] = {}
    for table in [table for table in tables if column in table.dims][:1]:
        for name in set(names) & {column, *hierarchies(table)[column]}:
            for place, label in enumerate(labels_of(table[name])):
                found.setdefault((name, str(label)), set()).add(place)
    return found
