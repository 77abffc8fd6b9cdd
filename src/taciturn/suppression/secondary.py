"""Secondary suppression: which further cells must not be published, so that the
primary ones cannot be worked out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.attack.bounds.of_system import bounds_table
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.suppression import Suppression
from taciturn.attack.solver import OutOfTimeError
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError, ParameterError
from taciturn.progress import progress_bar, progress_steps
from taciturn.schema import PRIMARY, SAFE, SECONDARY, STATUS
from taciturn.suppression.arguments import (
    checked_cells,
    checked_costs,
    checked_flags,
    checked_knowledge,
    checked_required,
)
from taciturn.suppression.cheapest import PatternProgram
from taciturn.suppression.deviations import DeviationSearch
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.task import Task
from taciturn.tables.margins import Margin
from taciturn.validate import generator, real_number

__all__ = ["suppress"]

_SMALL: Final = 2_000  # cells that may be suppressed: up to these the cheapest is sought
_ORDERS: Final = 3  # of the primary cells, tried for a first pattern
_TIES: Final = 50  # patterns of the same cost, compared by their rank


@dataclass(frozen=True, eq=False, repr=False)
class _Found:
    """A pattern, a lower bound of the cost of all, the number of equally cheap ones it
    was chosen from, and whether there was time for everything.
    """

    pattern: Booleans
    bound: float
    compared: int
    complete: bool


def suppress(
    table: xr.DataArray,
    primary: xr.DataArray | Mapping[Margin, xr.DataArray],
    *,
    linked: Sequence[Margin] | None = None,
    protection: float | xr.Dataset | Mapping[Margin, xr.Dataset] = 1.0,
    costs: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    singletons: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    knowledge: tuple[float, float] | Knowledge | None = None,
    decimals: int = 0,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> SuppressionPattern:
    r"""Secondary suppression: suppress further cells, at the least cost found, so that
    no primary cell can be worked out.

    .. math::

        \min_{S \supseteq P} \sum_{c \in S \setminus P} w_c
        \quad \text{such that} \quad
        \min_{x \in T(S)} x_p \le \ell_p, \quad \max_{x \in T(S)} x_p \ge h_p
        \quad \text{for all } p \in P

    with `P` the primary cells, `w` the costs, and `T(S)` the tables that are compatible
    with what is published when `S` is suppressed, and with `knowledge`. If the
    protection is a risk, the condition is ``1 / log2 m <= risk`` instead, for the `m`
    values from the least to the most.

    A first pattern comes from one linear program for each primary cell; cells that turn
    out not to be needed are published again. If at most 2,000 cells may be suppressed,
    an integer program then looks for the cheapest pattern and, once it is found, for
    others of the same cost: of up to 50 the one with the largest rank decrease is
    taken. Larger tables keep the first pattern. In all cases the result is audited as
    by `attacker_bounds`.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with `decimals` decimal places.
    primary : DataArray of bool or mapping of margin to DataArray of bool
        True for sensitive cells: of the table, or of released margins, such as
        ``{("area", "sex"): mask}``.
    linked : sequence of margins, optional
        All that is released: projections of the table, each named by its variables;
        ``()`` is the grand total, and all variables together are the table itself. Any
        of their cells may be suppressed. Without it the table is released with all its
        totals, and these remain published.
    protection : float, Dataset or mapping of margin to Dataset
        The uncertainty that must remain at each primary cell. A number above 0 and up
        to 1 is the largest risk in 1/bits; with 1, the default, no primary cell can be
        worked out exactly. A Dataset has the variables ``lower`` and ``upper`` in the
        table's units: values as low and as high as these must be possible.
    costs : DataArray or mapping of margin to DataArray, optional
        What it costs to suppress each cell, above 0; infinite where it must be
        published. By default 1 and the cell's value, in the table's units.
    singletons : DataArray of bool or mapping of margin to DataArray of bool, optional
        True for cells with a single contributor, who knows the value and can subtract
        it. Further cells are then suppressed so that none of these contributors can
        work out any other primary cell exactly; the least cost is found without them.
    knowledge : pair of numbers, Dataset or mapping, optional
        What an attacker knows beforehand. A pair is the range of every primary cell, as
        known to who knows the rule: ``(1, 2)`` for counts that are primary if they are
        below 3 but not 0. If no cell with less than the first number may be suppressed,
        an attacker is taken to know that of all suppressed cells. Otherwise ranges or
        contributions as `attacker_bounds` takes them, of the table's cells, or ranges
        of margins whose cells may be suppressed. Where knowledge alone leaves a cell
        less uncertain than `protection` asks for, all that it leaves must remain, which
        is at least two values.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.
    time_limit : float
        Seconds after which the best pattern found so far is taken; an audit that is
        under way and the final one are completed.
    gap : float
        Relative distance to the least cost that is good enough, from 0 to below 1.
    random_seed : int or Generator, optional
        For the orders in which primary cells are taken. The same seed gives the same
        pattern, unless the time limit ends the search.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    SuppressionPattern

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; masks, costs
        or intervals with other dimensions or categories.
    ParameterError
        Margins that are not variables of the table; `primary`, `costs` or `protection`
        for a margin that is not released; costs that are not above 0; a risk outside
        (0, 1], an interval or `knowledge` that does not contain the true value.
    AttackError
        No pattern protects, or `knowledge` alone leaves a single value: the message
        names the primary cell. No pattern was found
        within `time_limit`. The audit finds a primary cell that is not protected, which
        would be a fault of this function.

    Notes
    -----
    Who knows the rule learns more where primary cells can be told from secondary ones:
    release ``pattern.tables``, not ``pattern.status``. A range of the primary cells in
    `knowledge` assumes the worse, that they can be told. All that is possible to this
    attacker is possible to one who sees only which cells are suppressed. Who can tell
    them apart also knows that secondary cells are not in the range; that is no
    interval, and is considered only where ranges say it.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.5, Propositions 1 to 3. Fischetti &
    Salazar (2001), Solving the cell suppression problem on tabular data with linear
    constraints, Management Science 47, 1008-1027.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    >>> table = xr.DataArray(values, dims=("activity", "region"))
    >>> pattern = tc.suppress(table, table == 8, random_seed=1, progressbar=False)
    >>> pattern.status["activity", "region"].values.tolist()[1:]
    [['primary', 'safe', 'secondary'], ['secondary', 'safe', 'secondary']]
    >>> pattern.cost, pattern.gap
    (54.0, 0.0)
    """
    deadline = monotonic() + real_number(time_limit, "time_limit", above=0)
    if real_number(gap, "gap", least=0, most=1) == 1:
        raise ParameterError(f"gap must be from 0 to below 1, got {gap!r}")
    with progress_steps("setting up the equations", shown=progressbar):
        cells = checked_cells(table, linked, decimals)
        required = checked_required(primary, protection, cells)
        alone = checked_flags(singletons, cells, name="singletons")
        prices = checked_costs(costs, cells)
        known = checked_knowledge(knowledge, cells, required, prices)
        task = Task(cells, prices, required.within(known), known)
        search = DeviationSearch(task)
    rng = generator(random_seed)
    pieces = _ORDERS * len(required.cells)
    with progress_bar("primary cells to protect", pieces, shown=progressbar) as bar:
        first, complete = _first_pattern(task, search, rng, deadline, bar.advance)
        bar.finish("cheaper patterns")
        if np.isfinite(task.costs).sum() > _SMALL or not complete:
            found = _Found(first, 0.0, 1, complete)
        else:
            found = _cheapest(task, search, first, gap=gap, deadline=deadline)
        hidden = _hidden_from_singletons(task, alone, found.pattern, deadline)
        return _audited(task, replace(found, pattern=hidden), table)


def _first_pattern(
    task: Task,
    search: DeviationSearch,
    rng: np.random.Generator,
    deadline: float,
    on_cell: Callable[[], object],
) -> tuple[Booleans, bool]:
    """The cheapest of a few patterns found by deviations, and whether all were tried
    before the deadline.
    """
    required = task.required
    by_need = np.argsort(-np.maximum(required.width, required.up + required.down), kind="stable")
    best, complete = None, True
    for number in range(_ORDERS):
        order = by_need if number == 0 else rng.permutation(len(required.cells))
        try:
            pattern, whole = search.complete(
                task.primaries, order, deadline=deadline, on_cell=on_cell
            )
        except OutOfTimeError:
            if best is None:
                raise
            return best, False
        complete = complete and whole
        if best is None or task.cost(pattern) < task.cost(best):
            best = pattern
    assert best is not None
    return best, complete


def _cheapest(
    task: Task, search: DeviationSearch, first: Booleans, *, gap: float, deadline: float
) -> _Found:
    """The cheapest pattern; of those that cost the same, the one with the largest rank
    decrease.
    """
    program = PatternProgram(task, task.cost(first))
    program.relax(deadline=deadline)
    best, cost = first, task.cost(first)
    order = np.arange(len(task.required.cells))
    while cost > program.bound + max(gap * cost, 1e-6 * cost):
        found = program.next_pattern(deadline=deadline)
        if found is None:
            return _Found(best, program.bound, 1, False)
        pattern, protects = found
        if not protects:
            program.relax(deadline=deadline)
            try:
                pattern, _ = search.complete(
                    pattern, order, deadline=deadline, on_cell=lambda: None
                )
            except OutOfTimeError:
                continue
        if task.cost(pattern) < cost and task.protects(pattern):
            best, cost = pattern, task.cost(pattern)
    bound = cost if cost <= program.bound + 1e-6 * cost else program.bound
    first_of_cost, rank, compared, ended = best, task.rank_decrease(best), 1, False
    if bound == cost:
        for pattern in program.of_cost(cost, deadline=deadline):
            if np.array_equal(pattern, first_of_cost):
                continue
            decrease = task.rank_decrease(pattern)
            if decrease > rank:
                best, rank = pattern, decrease
            compared += 1
            if compared >= _TIES:
                break
        ended = monotonic() > deadline
    return _Found(best, bound, compared, not ended)


def _hidden_from_singletons(
    task: Task, singletons: Booleans, pattern: Booleans, deadline: float
) -> Booleans:
    """A pattern with further cells, so that no single contributor of a suppressed cell
    can work out a primary one.

    If two cells have a single contributor and one is part of the other, it is the same
    contributor, who knows both.
    """
    hidden, met = pattern.copy(), np.zeros_like(pattern)
    while len(left := np.flatnonzero(hidden & singletons & ~met)):
        cell = int(left[0])
        own = task.cells.nested(cell) & singletons
        met |= own
        insider = task.known_to(own)
        seen = hidden & ~own
        if insider.protects(seen):
            continue
        try:
            order = np.arange(len(insider.required.cells))
            further, _ = DeviationSearch(insider).complete(
                seen, order, deadline=deadline, on_cell=lambda: None
            )
        except OutOfTimeError:
            raise
        except AttackError as error:
            raise AttackError(
                f"for the single contributor of {task.cells.label(cell)} {error}"
            ) from error
        # Suppressing more leaves every attacker at least as uncertain.
        hidden |= further
        if not insider.protects(hidden & ~own):
            raise AttackError(
                "the pattern found does not protect from the single contributor of"
                f" {task.cells.label(cell)}"
            )
    return hidden


def _audited(task: Task, found: _Found, table: xr.DataArray) -> SuppressionPattern:
    """The result; raises `AttackError` if it does not achieve what was asked."""
    cells, pattern = task.cells, found.pattern
    suppressed: dict[Margin, xr.DataArray] = {
        names: cells.flags(number, pattern) for number, names in enumerate(cells.suppressible)
    }
    release: Suppression | LinkedTables
    if cells.linked:
        release = LinkedTables(table, cells.margins, suppressed=suppressed, decimals=cells.decimals)
    else:
        release = Suppression(table, suppressed[cells.margins[0]], decimals=cells.decimals)
    lower, upper = task.bounds(release.system, task.primaries)
    chosen = task.required.cells
    true = cells.values[chosen]
    short = np.flatnonzero(~task.required.met(lower[chosen] - true, upper[chosen] - true))
    if len(short):
        raise AttackError(f"the pattern found does not protect {task.label(int(short[0]))}")
    status, audit = {}, {}
    for number, names in enumerate(cells.suppressible):
        hidden = suppressed[names]
        part, primary = cells.part(number), cells.flags(number, task.primaries)
        kind = np.where(primary, PRIMARY, np.where(hidden, SECONDARY, SAFE))
        status[names] = hidden.copy(data=kind).rename(STATUS)
        if primary.any():
            audit[names] = bounds_table(
                cells.labels(number),
                lower[part],
                upper[part],
                asked=task.primaries[part],
                published=~pattern[part],
                decimals=cells.decimals,
            )
    cost = task.cost(pattern)
    return SuppressionPattern(
        release=release,
        status=status,
        audit=audit,
        cost=cost,
        bound=min(found.bound, cost),
        rank_decrease=task.rank_decrease(pattern)[0],
        compared=found.compared,
        complete=found.complete,
        knowledge=task.known.ranges(),
    )
