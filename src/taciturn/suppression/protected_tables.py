"""Magnitude tables that share cells, protected together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import Rule
from taciturn.magnitude.contradictions import refuse_other_margins
from taciturn.magnitude.sensitivity import Safe, sensitive_margins
from taciturn.suppression.apriori import Apriori
from taciturn.suppression.protected import (
    ProtectedTable,
    asked_of,
    check_names,
)
from taciturn.suppression.secondary import warn_if_unproved
from taciturn.suppression.several_tables import shared_cells, suppress_shared
from taciturn.suppression.shared import SharedCells
from taciturn.validate import real_number

__all__ = ["protect_tables"]

type Margins = Mapping[tuple[str, ...], xr.Dataset]


def protect_tables(
    tables: Mapping[str, Margins],
    rules: Rule | Sequence[Rule],
    *,
    safe: Safe | None = None,
    knowledge: tuple[float, float] | Mapping[str, Knowledge] | None = None,
    apriori: Mapping[str, Apriori] | None = None,
    safety_range: float = 0.0,
    empty_cells_known: bool = True,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> dict[str, ProtectedTable]:
    """Protect several magnitude tables at once, which share cells but are not at hand
    as one, such as turnover by branch and region, and by branch and size.

    The steps are those of `protect_margins`, with `suppress_tables`, which says what is
    the same cell in several tables, and what an attacker is taken to know.

    Parameters
    ----------
    tables : mapping of str to mapping of tuple of str to Dataset
        By name, what `read_margins` or `tabulate_margins` give for each table: that
        over all its variables first, and the margins that are to be released with it.
        All of the same quantity of the same contributors. Levels tie tables only where
        the finer one has them, as in `suppress_tables`.
    rules, safety_range, empty_cells_known, time_limit, gap, random_seed, progressbar
        As in `protect_table`, for all tables.
    safe : mapping of str to label or list of labels, optional
        As in `protect_table`, for each table that has the variable.
    knowledge, apriori
        As in `suppress_tables`.

    Returns
    -------
    dict of str to ProtectedTable
        Each table with its pattern, of which `suppress_tables` says what holds for all
        tables together. Release none of them as long as one has cells that are
        `unproved`.

    Raises
    ------
    TableError
        Two tables hold different totals, or numbers of contributors, of the same cell,
        or different quantities; otherwise as `protect_margins`.
    ParameterError, AttackError
        As `suppress_tables` and `protect_table`.

    Warns
    -----
    UnprovedWarning
        As `suppress_tables`.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame(
    ...     [(t, a, s, x) for t in "FW" for a in "NS" for s in "xy" for x in (5, 4, 3)]
    ...     + [("F", "N", "x", 90)],
    ...     columns=["trade", "area", "size", "sales"],
    ... )
    >>> tables = {
    ...     name: tc.magnitude.tabulate_margins(firms, ["trade", name], "sales")
    ...     for name in ("area", "size")
    ... }
    >>> done = tc.suppression.protect_tables(
    ...     tables, tc.Dominance(1, 0.7), random_seed=1, progressbar=False
    ... )
    >>> [table.pattern.n_primary for table in done.values()]
    [1, 1]
    """
    real_number(safety_range, "safety_range", least=0)
    value, decimals = _same_quantity(tables)
    totals = {name: next(iter(margins.values()))["total"] for name, margins in tables.items()}
    for name, margins in tables.items():
        _refuse_other_margins(name, margins)
        first = next(iter(margins))
        check_names(value, [*first, *map(str, set(totals[name].coords) - set(first))])
    cells = shared_cells(totals, {name: list(each) for name, each in tables.items()}, decimals)
    _refuse_other_contributors(tables, cells)
    by_hand: Any = {"safety_range": safety_range, "empty_cells_known": empty_cells_known}
    by_hand["signed"] = cells.signed
    sensitive = {
        name: sensitive_margins(margins, rules, own)
        for (name, margins), own in zip(tables.items(), _safe(safe, totals), strict=True)
    }
    asked: dict[str, dict[str, Any]] = {}
    for name, margins in tables.items():
        for what, given in asked_of(margins, sensitive[name], rules, **by_hand).items():
            asked.setdefault(what, {})[name] = given
    patterns = suppress_shared(
        totals,
        cells,
        **asked,
        knowledge=knowledge,
        apriori=apriori,
        time_limit=time_limit,
        gap=gap,
        random_seed=random_seed,
        progressbar=progressbar,
    )
    warn_if_unproved(list(patterns.values()), patterns)
    return {
        name: ProtectedTable(pattern.tables, value, decimals, sensitive[name], pattern)
        for name, pattern in patterns.items()
    }


def _same_quantity(tables: Any) -> tuple[str, int]:
    """The name and the decimals of the quantity; raises where they differ."""
    if not isinstance(tables, Mapping) or not all(isinstance(x, Mapping) for x in tables.values()):
        raise ParameterError(
            "tables must be a mapping of names to what read_margins or tabulate_margins give"
        )
    found = {
        name: tuple(next(iter(margins.values())).attrs.get(key) for key in ("value", "decimals"))
        for name, margins in tables.items()
    }
    if len(set(found.values())) > 1:
        raise TableError(
            "tables that share cells must be of the same quantity, with the same decimals, got"
            f" {found}"
        )
    value, decimals = next(iter(found.values()), ("", 0))
    return str(value), int(decimals or 0)


def _refuse_other_margins(name: str, margins: Margins) -> None:
    """Raise where the margins of a table are not of its cells."""
    try:
        refuse_other_margins(margins)
    except TableError as error:
        raise TableError(f"of the table {name!r}: {error}") from None


def _refuse_other_contributors(tables: Mapping[str, Margins], cells: SharedCells) -> None:
    """Raise `TableError` where not as many contribute to a cell in all tables."""
    counted = np.full(len(cells.values), np.nan)
    for name, part in cells.parts.items():
        own = np.concatenate(
            [
                tables[name][names]["contributors"].transpose(*names).values.ravel()
                for names in part.margins
            ]
        ).astype(float)
        numbers = cells.numbers[name]
        other = ~np.isnan(counted[numbers]) & ~np.isclose(counted[numbers], own, atol=0)
        if other.any():
            at = int(np.argmax(other))
            raise TableError(
                f"{cells.label(int(numbers[at]))} must have as many contributors in all tables:"
                f" {counted[numbers[at]]:g}, and {own[at]:g} in {name!r}"
            )
        counted[numbers] = own


def _safe(safe: Safe | None, totals: Mapping[str, xr.DataArray]) -> list[Safe | None]:
    """What is safe in each table."""
    if not isinstance(safe, Mapping):
        return [safe] * len(totals)
    variables = {dim for total in totals.values() for dim in total.dims}
    others = {name: labels for name, labels in safe.items() if name not in variables}
    # A variable of none of the tables is an error in each.
    return [
        {name: safe[name] for name in safe if name in total.dims} | others
        for total in totals.values()
    ]
