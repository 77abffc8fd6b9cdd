"""Secondary suppression of several tables at once that share cells."""

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.attack.solver import Floats
from taciturn.attack.system import UNLIMITED, Booleans, Total
from taciturn.errors import ParameterError, TableError
from taciturn.progress import progress_steps
from taciturn.suppression.apriori import Apriori, Instructions, instructions_of
from taciturn.suppression.arguments import (
    checked_cells,
    checked_costs,
    checked_flags,
    checked_gap,
    checked_knowledge,
    checked_required,
)
from taciturn.suppression.audit import Make, patterns_of
from taciturn.suppression.known import Known
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.secondary import searched, warn_if_unproved
from taciturn.suppression.shared import SharedCells
from taciturn.suppression.sharing import share
from taciturn.suppression.task import Required, Task
from taciturn.tables.margins import Margin, every_margin
from taciturn.validate import generator, real_number

__all__ = ["shared_cells", "suppress_shared", "suppress_tables"]


def suppress_tables(
    tables: Mapping[str, xr.DataArray],
    primary: Mapping[str, xr.DataArray | Mapping[Margin, xr.DataArray]],
    *,
    linked: Mapping[str, Sequence[Margin]] | None = None,
    protection: float | Mapping[str, xr.Dataset | Mapping[Margin, xr.Dataset]] = 1.0,
    costs: Mapping[str, xr.DataArray | Mapping[Margin, xr.DataArray]] | None = None,
    singletons: Mapping[str, xr.DataArray | Mapping[Margin, xr.DataArray]] | None = None,
    knowledge: tuple[float, float] | Mapping[str, Knowledge] | None = None,
    apriori: Mapping[str, Apriori] | None = None,
    decimals: int = 0,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> dict[str, SuppressionPattern]:
    r"""Secondary suppression of several tables at once, which share cells but are not
    at hand as one.

    Cells over the same variables, or levels above them, and with the same labels are
    one cell in all tables: it is suppressed in all or in none, primary if it is in any,
    and protected as far as any of them asks. Other totals that tables have in common,
    released or not, must be the same and tie the tables. A total over a variable of
    both tables is the same only if both have the same categories, empty ones aside.

    Parameters
    ----------
    tables : mapping of str to DataArray
        The true tables by name, of the same quantity of the same individuals; levels
        above a variable are further coordinates, as in `suppress`. What one table has
        as a variable and another as categories that make it up, as regions and towns,
        is tied only if the finer table has that coordinate; several such levels of one
        variable may be as many variables of another table.
    primary : mapping of str to DataArray or mapping of margin to DataArray
        For each table that has any, its sensitive cells, as in `suppress`.
    linked : mapping of str to sequence of margins, optional
        For some tables all that is released: margins, the table itself among them. By
        default a table is released with all its totals. Cells of totals may be
        suppressed like others.
    protection : float or mapping of str to Dataset or mapping of margin to Dataset
        A risk for all primary cells, or for each table intervals, as in `suppress`.
    costs, singletons, apriori : mapping of str to those of `suppress`, optional
        For some tables. What `apriori` says of a cell in one table holds in all; the
        largest of several costs of a cell counts.
    knowledge : pair of numbers or mapping of str to ranges, optional
        The range of every primary cell, or ranges of cells for some tables, as in
        `suppress`.
    decimals, time_limit, gap, random_seed, progressbar
        As in `suppress`, for all tables.

    Returns
    -------
    dict of str to SuppressionPattern
        The pattern of each table. ``cost``, ``bound``, ``rank_decrease``, ``compared``
        and ``complete`` are those of all tables together, a cell that several have
        counted once, and ``audit`` has what is left to who sees all of them; `release`
        and `intervals` are of the one table. Release none of them as long as one has
        cells that are `unproved`.

    Raises
    ------
    TableError
        Two tables hold different totals of the same cell, or may have one variable,
        level or category in two spellings or types, such as 1 and 1.0, which would be
        two; otherwise as `suppress`, as are the other errors.
    ParameterError
        Fewer than two tables; arguments for a table that is not there; `linked` without
        the table itself.
    AttackError
        As `suppress`; the attribute `pattern` holds a pattern for each table.

    Warns
    -----
    UnprovedWarning
        As `suppress`.

    Notes
    -----
    An attacker is taken to know all that is released, that each table adds up, that no
    value is negative, unless a cell of some table is, and that the tables agree in what
    they share, by the names of variables and levels: who knows which town is in which
    region works out more where no coordinate says so. Where tables hang together as a
    chain or a tree, such as A x B, B x C and C x D, whatever agrees in this way is the
    projection of some table over all variables, so that nobody knows more than this.
    Where they form a cycle, such as A x B, B x C and A x C, it may be the projection of
    none, and who considers the table over all variables can know more: there, suppress
    that table, with the tables as its `linked` margins.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    >>> by_area = xr.DataArray(values, dims=("trade", "area"))
    >>> by_size = xr.DataArray([[40, 40], [30, 19], [60, 1]], dims=("trade", "size"))
    >>> tables = {"area": by_area, "size": by_size}
    >>> found = tc.suppression.suppress_tables(
    ...     tables, {"area": by_area == 8}, random_seed=1, progressbar=False
    ... )
    >>> int((found["area"].status["trade", "area"] == "secondary").sum())
    3
    """
    with progress_steps("setting up the equations", shown=progressbar):
        cells = shared_cells(tables, linked, decimals)
    found = suppress_shared(
        tables,
        cells,
        primary=primary,
        protection=protection,
        costs=costs,
        singletons=singletons,
        knowledge=knowledge,
        apriori=apriori,
        time_limit=time_limit,
        gap=gap,
        random_seed=random_seed,
        progressbar=progressbar,
    )
    warn_if_unproved(list(found.values()), found)
    return found


def shared_cells(
    tables: Any, linked: Mapping[str, Sequence[Margin]] | None, decimals: int
) -> SharedCells:
    """Check several tables, and number their cells."""
    if not isinstance(tables, Mapping) or len(tables) < 2:
        raise ParameterError(
            "tables must be a mapping of names to two tables or more; a single one is for suppress"
        )
    margins = _for_tables(linked, tables, "linked")
    return share(
        {
            name: checked_cells(table, _released(name, table, margins), decimals)
            for name, table in tables.items()
        }
    )


def suppress_shared(
    tables: Mapping[str, xr.DataArray],
    cells: SharedCells,
    *,
    primary: Any,
    protection: Any,
    costs: Any,
    singletons: Any,
    knowledge: Any,
    apriori: Any,
    time_limit: float,
    gap: float,
    random_seed: int | np.random.Generator | None,
    progressbar: bool,
) -> dict[str, SuppressionPattern]:
    """The patterns of tables whose cells are numbered, proved or not."""
    start = monotonic()
    deadline = start + real_number(time_limit, "time_limit", above=0)
    gap = checked_gap(gap)
    with progress_steps("setting up the equations", shown=progressbar):
        told = _told(_for_tables(apriori, tables, "apriori"), cells)
        ruled = _flags(primary, cells, name="primary")
        flags = told.primary(ruled)
        required = told.required(_required(flags, protection, cells), ruled, cells)
        prices = told.prices(_costs(_for_tables(costs, tables, "costs"), cells), flags, cells)
        knowns = _knowns(knowledge, cells, required, prices)
        known = _together(knowns, cells)
        alone = _flags(singletons, cells, name="singletons")
        task = Task(cells, prices, required.within(known), known)
        rng = generator(random_seed)
    by_table = {
        name: (table, cells.parts[name], cells.numbers[name], knowns[name])
        for name, table in tables.items()
    }
    make: Make[dict[str, SuppressionPattern]] = partial(patterns_of, by_table)
    return searched(task, alone, make, rng, (start, deadline), gap, shown=progressbar)


def _for_tables(given: Any, tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Check that an argument is a mapping, and of tables that there are."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not set(given) <= set(tables):
        got = list(given) if isinstance(given, Mapping) else type(given).__name__
        raise ParameterError(
            f"{name} must be a mapping whose keys are names of tables, {list(tables)}, got {got}"
        )
    return given


def _released(name: str, table: Any, linked: Mapping[str, Sequence[Margin]]) -> Sequence[Margin]:
    """The margins of a table that are released."""
    margins = linked.get(name)
    if margins is None:
        if not isinstance(table, xr.DataArray):
            return ()
        return [tuple(map(str, table.dims)), *reversed(every_margin(table))]
    own = {frozenset([each] if isinstance(each, str) else each) for each in margins}
    if isinstance(table, xr.DataArray) and frozenset(table.dims) not in own:
        raise ParameterError(
            f"linked[{name!r}] must have the table itself, {tuple(table.dims)}, among its margins,"
            f" got {list(margins)}"
        )
    return margins


def _flags(given: Any, cells: SharedCells, *, name: str) -> Booleans:
    """Which cells are flagged in any table."""
    flags = np.zeros(len(cells.values), dtype=np.bool_)
    for table, masks in _for_tables(given, cells.parts, name).items():
        of_table = checked_flags(masks, cells.parts[table], name=f"{name}[{table!r}]")
        flags[cells.numbers[table][of_table]] = True
    return flags


def _costs(given: Mapping[str, Any], cells: SharedCells) -> Floats:
    """The largest cost of each cell; infinite for sums, which are always known."""
    costs = np.full(len(cells.values), np.inf)
    costs[: cells.table.size] = 0.0
    for name, part in cells.parts.items():
        of_table = checked_costs(given.get(name), part)
        np.maximum.at(costs, cells.numbers[name], of_table)
    return costs


def _required(flags: Booleans, protection: Any, cells: SharedCells) -> Required:
    """The most that any table asks for of each primary cell."""
    chosen = np.flatnonzero(flags)
    up, down, width = (np.zeros(len(cells.values), dtype=np.int64) for _ in range(3))
    by_table = protection
    if isinstance(protection, Mapping):
        by_table = _for_tables(protection, cells.parts, "protection")
    for name, part in cells.parts.items():
        asked = by_table.get(name, 1.0) if isinstance(by_table, Mapping) else by_table
        of_table = checked_required(flags[cells.numbers[name]], asked, part)
        at = cells.numbers[name][of_table.cells]
        for every, own in ((up, of_table.up), (down, of_table.down), (width, of_table.width)):
            np.maximum.at(every, at, own)
    width = np.maximum(width, up + down)
    return Required(chosen, up[chosen], down[chosen], width[chosen])


def _told(given: Mapping[str, Apriori], cells: SharedCells) -> Instructions:
    """What is asked of single cells in any table."""
    found = Instructions()
    for name, rows in given.items():
        told = instructions_of(rows, cells.parts[name])
        _take(found.status, told.status, name, cells)
        _take(found.costs, told.costs, name, cells)
        _take(found.levels, told.levels, name, cells)
    return found


def _take[T](every: dict[int, T], own: Mapping[int, T], name: str, cells: SharedCells) -> None:
    for cell, value in own.items():
        number = int(cells.numbers[name][cell])
        if every.setdefault(number, value) != value:
            raise TableError(
                f"apriori[{name!r}]: {cells.label(number)} is to be {value!r}, and is"
                f" {every[number]!r} in another table"
            )


def _knowns(
    knowledge: Any, cells: SharedCells, required: Required, prices: Floats
) -> dict[str, Known]:
    """What is known of the cells of each table."""
    for_all = knowledge if isinstance(knowledge, tuple | list) else None
    by_table = {} if for_all is not None else _for_tables(knowledge, cells.parts, "knowledge")
    primary = np.zeros(len(cells.values), dtype=np.bool_)
    primary[required.cells] = True
    found = {}
    for name, part in cells.parts.items():
        numbers = cells.numbers[name]
        own = np.flatnonzero(primary[numbers])
        asked = Required(own, *(np.zeros_like(own) for _ in range(3)))
        given = for_all if for_all is not None else by_table.get(name)
        found[name] = checked_knowledge(given, part, asked, prices[numbers])
    return found


def _together(knowns: Mapping[str, Known], cells: SharedCells) -> Known:
    """What is known of all cells by any table."""
    size = cells.table.size
    least, most = np.full(size, -UNLIMITED if cells.signed else 0), np.full(size, UNLIMITED)
    for name, known in knowns.items():
        np.maximum.at(least, cells.numbers[name], known.lower)
        np.minimum.at(most, cells.numbers[name], known.upper)
    released = np.zeros(size, dtype=np.bool_)
    ranges = Total(xr.zeros_like(cells.table), np.arange(size), least, most, released)
    return Known(cells, (ranges,) if any(known.totals for known in knowns.values()) else ())
