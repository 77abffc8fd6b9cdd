"""Secondary suppression: which further cells must not be published so that the sensitive ones cannot be worked out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.attack._progress import progress_bar
from taciturn.attack.bounds import attacker_bounds
from taciturn.attack.cuts import PatternProgram
from taciturn.attack.deviations import DeviationSearch
from taciturn.attack.pattern import SuppressionPattern
from taciturn.attack.published import PublishedCells, Required, flags_of, published_cells, required_at
from taciturn.attack.rank import constraint_rank, rank_decrease
from taciturn.attack.releases import LinkedTables, Margin, Suppression
from taciturn.attack.showing import PRIMARY, SAFE, SECONDARY
from taciturn.attack.solver import Floats, OutOfTimeError
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError, ParameterError
from taciturn.schema import MAX_COUNT
from taciturn.validate import generator, number_between

__all__ = ["suppress_secondary"]

_SMALL: Final = 2_000  # cells that may be suppressed, up to which the cheapest pattern is looked for
_ORDERS: Final = 3  # of the primary cells, tried for a first pattern
_TIES: Final = 50  # patterns of the same cost, compared by their rank


def suppress_secondary(
    table: xr.DataArray,
    primary: xr.DataArray | Mapping[Margin, xr.DataArray],
    *,
    linked: Sequence[Margin] | None = None,
    protection: float | xr.Dataset | Mapping[Margin, xr.Dataset] = 1.0,
    costs: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    singletons: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    decimals: int = 0,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = 0,
    progressbar: bool = True,
) -> SuppressionPattern:
    r"""Suppress further cells so that no primary cell can be worked out, at the least cost that is found.

    .. math:: \min_{S \supseteq P} \sum_{c \in S \setminus P} w_c \quad \text{such that} \quad
        \min_{x \in T(S)} x_p \le \ell_p, \quad \max_{x \in T(S)} x_p \ge h_p \quad \text{for all } p \in P

    with `P` the primary cells, `w` the costs, and `T(S)` the tables that are compatible with what is published when
    `S` is suppressed. With a risk as protection the condition is ``1 / log2 m <= risk`` instead, for the `m` values
    from the least to the most.

    A first pattern comes from one linear program for each primary cell; cells that turn out not to be needed are
    published again. With up to 2,000 cells that may be suppressed an integer program then looks for the cheapest
    pattern, and, where it has found it, for others of this cost: of up to 50 the one with the largest rank decrease
    is taken. Larger tables keep the first pattern. In all cases the result is audited with `attacker_bounds`.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with so many `decimals`.
    primary : DataArray of bool or mapping of margin to DataArray of bool
        True for sensitive cells: of the table, or of released margins, such as ``{("area", "sex"): mask}``.
    linked : sequence of margins, optional
        All that is released: projections of the table, each named by its variables; ``()`` is the grand total, and all
        variables are the table itself. Any of their cells may be suppressed. Without it the table is released with all
        its totals, and these stay published.
    protection : float, Dataset or mapping of margin to Dataset
        What must be left open at each primary cell. A number above 0 and up to 1 is the largest risk in 1/bits; 1, the
        default, says that no primary cell can be worked out exactly. A Dataset has the variables ``lower`` and
        ``upper`` in the table's units: values as low and as high as these must be possible.
    costs : DataArray or mapping of margin to DataArray, optional
        What it costs to suppress each cell, above 0; infinite where it must be published. By default 1 and the cell's
        value, in the table's units.
    singletons : DataArray of bool or mapping of margin to DataArray of bool, optional
        True for cells with a single contributor, who knows the value. Each of these contributors, who may subtract it,
        is then kept from working out any other primary cell exactly, by further cells, which the least cost leaves out.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.
    time_limit : float
        Seconds after which the best pattern found so far is taken; audits that have begun and the last one add to it.
    gap : float
        Relative distance to the least cost that is good enough, from 0 to below 1.
    random_seed : int or Generator, optional
        For the orders in which primary cells are taken. The same seed gives the same pattern, unless the time limit
        ends the search.
    progressbar : bool
        Show progress on standard error.

    Returns
    -------
    SuppressionPattern

    Raises
    ------
    TableError
        Values that are negative, missing, infinite or have more decimals; masks, costs or intervals with other
        dimensions or categories.
    ParameterError
        Margins that are not variables of the table; `primary`, `costs` or `protection` of a margin that is not
        released; costs that are not above 0; a risk outside (0, 1], an interval that does not hold the true value.
    AttackError
        No pattern protects: the message names the primary cell. No pattern was found within `time_limit`. The audit
        finds a primary cell that is not protected, which would be an error of this function.

    Notes
    -----
    Contributors to a cell that is not theirs alone know more than others, too: see `attacker_bounds` with `knowledge`.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.5, Propositions 1 to 3. Fischetti & Salazar (2001), Solving the cell
    suppression problem on tabular data with linear constraints, Management Science 47, 1008-1027.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("activity", "region"))
    >>> pattern = tc.suppress_secondary(table, table == 8, progressbar=False)
    >>> pattern.status["activity", "region"].values.tolist()[1:]
    [['primary', 'safe', 'secondary'], ['secondary', 'safe', 'secondary']]
    >>> pattern.cost, pattern.gap
    (54.0, 0.0)
    """
    deadline = monotonic() + _seconds(time_limit)
    if number_between(gap, "gap", 0, 1) == 1:
        raise ParameterError(f"gap must be from 0 to below 1, got {gap!r}")
    cells = published_cells(table, linked, costs, decimals)
    required = required_at(cells, primary, protection, linked)
    task = _Task(table, linked, cells, required)
    search = DeviationSearch(cells, required, task.reachable)
    orders = generator(random_seed)
    with progress_bar("primary cells to protect", _ORDERS * len(required.cells), shown=progressbar) as bar:
        first, complete = _first_pattern(search, task, orders, deadline, bar.advance)
        bar.finish("cheaper patterns")
        if np.isfinite(cells.costs).sum() > _SMALL or not complete:
            found = _Found(first, 0.0, 1, complete)
        else:
            found = _cheapest(task, search, first, gap=gap, deadline=deadline)
        alone = flags_of(cells, singletons, linked, name="singletons")
        return task.audited(replace(found, pattern=_hidden_from(task, alone, found.pattern, deadline)))


@dataclass(frozen=True, eq=False, repr=False)
class _Found:
    """A pattern, what no cheaper one is below of, how many it was compared with, and whether there was time for all."""

    pattern: Booleans
    bound: float
    compared: int
    complete: bool


class _Task:
    """A table and what is asked of its suppression: patterns as releases, and whether they protect."""

    def __init__(
        self, table: xr.DataArray, linked: Sequence[Margin] | None, cells: PublishedCells, required: Required
    ) -> None:
        self.cells, self.required = cells, required
        self._table, self._linked = table, linked
        self.primaries = np.zeros(len(cells.costs), dtype=np.bool_)
        self.primaries[required.cells] = True

    def release(self, pattern: Booleans) -> Suppression | LinkedTables:
        cells = self.cells
        if self._linked is None:
            return Suppression(self._table, cells.flags(0, pattern), decimals=cells.decimals)
        suppressed: dict[Margin, xr.DataArray] = {
            names: cells.flags(number, pattern) for number, names in enumerate(cells.margins)
        }
        return LinkedTables(self._table, list(cells.margins), suppressed=suppressed, decimals=cells.decimals)

    def audit(self, pattern: Booleans, asked: Booleans) -> dict[tuple[str, ...], xr.Dataset]:
        """Bounds of the asked cells, for each margin of which some may be suppressed."""
        release = self.release(pattern)
        found = {}
        for number in self.suppressible():
            names = self.cells.margins[number]
            mask = self.cells.flags(number, asked)
            if mask.any():
                found[names] = attacker_bounds(release, margin=names, cells=mask, progressbar=False)
        return found

    def suppressible(self) -> list[int]:
        return [0] if self._linked is None else list(range(len(self.cells.margins)))

    def deviations(self, audit: Mapping[tuple[str, ...], xr.Dataset]) -> tuple[Floats, Floats]:
        """How far below and above its value an attacker must take each primary cell for possible, in steps."""
        low, high = np.zeros(len(self.cells.costs)), np.zeros(len(self.cells.costs))
        for names, bounds in audit.items():
            part = self.cells.part(self.cells.margins.index(names))
            low[part], high[part] = bounds["lower"].values.ravel(), bounds["upper"].values.ravel()
        chosen = self.required.cells
        step = 10.0**self.cells.decimals
        true = self.cells.values[chosen]
        return np.rint(low[chosen] * step) - true, np.rint(high[chosen] * step) - true

    def reachable(self, position: int) -> tuple[int, int]:
        """How far a primary cell can deviate when all that may be is suppressed; raises if that is not enough."""
        asked = np.zeros_like(self.primaries)
        asked[self.required.cells[position]] = True
        lower, upper = self.deviations(self.audit(np.isfinite(self.cells.costs) | self.primaries, asked))
        if not self.required.met(lower, upper)[position]:
            raise AttackError(
                f"no pattern protects {self._label(position)}, even with all cells suppressed that may "
                "be; allow totals to be suppressed by naming them in linked, or ask for less protection"
            )
        # A cell that no total limits is infinite above.
        return int(-lower[position]), int(min(upper[position], MAX_COUNT))

    def protects(self, pattern: Booleans) -> bool:
        return bool(self.required.met(*self.deviations(self.audit(pattern, self.primaries))).all())

    def cost(self, pattern: Booleans) -> float:
        return float(self.cells.costs[pattern & ~self.primaries].sum())

    def rank_decrease(self, pattern: Booleans) -> tuple[int, int]:
        """By how much suppression lowers the rank of all that is released, and of its finest margins alone.

        Propositions 1 to 3 are on the second. With totals of these margins released as well the first is often the
        same for all patterns of a cost, and the second decides.
        """
        if self._linked is None:
            # Of a table that is released itself each cell has an equation.
            decrease = int(pattern.sum()) - constraint_rank(self.release(pattern)).rank
            return decrease, decrease
        margins, finest = set(self.cells.margins), set(self.cells.finest())
        return self._rank(pattern, margins), self._rank(pattern, finest)

    def _rank(self, pattern: Booleans, margins: Collection[tuple[str, ...]]) -> int:
        cells = self.cells
        chosen = [(number, names) for number, names in enumerate(cells.margins) if names in margins]
        suppressed: dict[Margin, xr.DataArray] = {names: cells.flags(number, pattern) for number, names in chosen}
        release = LinkedTables(self._table, [names for _, names in chosen], decimals=cells.decimals)
        return rank_decrease(release, suppressed)

    def known_to(self, own: Booleans) -> "_Task":
        """What is left to protect from one who knows cells: that the other primary ones are worked out exactly."""
        costs = np.where(own, np.inf, self.cells.costs)
        others = self.required.cells[~own[self.required.cells]]
        none = np.zeros_like(others)
        required = Required(others, none, none, none + 1)
        return _Task(self._table, self._linked, replace(self.cells, costs=costs), required)

    def audited(self, found: _Found) -> SuppressionPattern:
        """The result; raises if it does not hold what was asked."""
        pattern = found.pattern
        audit = self.audit(pattern, self.primaries)
        lower, upper = self.deviations(audit)
        short = np.flatnonzero(~self.required.met(lower, upper))
        if len(short):
            raise AttackError(f"the pattern found does not protect {self._label(int(short[0]))}")
        status = {}
        for number in self.suppressible():
            suppressed, primary = (self.cells.flags(number, flags) for flags in (pattern, self.primaries))
            kind = np.where(primary, PRIMARY, np.where(suppressed, SECONDARY, SAFE))
            status[self.cells.margins[number]] = suppressed.copy(data=kind).rename("status")
        cost = self.cost(pattern)
        return SuppressionPattern(
            release=self.release(pattern),
            status=status,
            audit=audit,
            cost=cost,
            bound=min(found.bound, cost),
            rank_decrease=self.rank_decrease(pattern)[0],
            compared=found.compared,
            complete=found.complete,
        )

    def _label(self, position: int) -> str:
        """Which primary cell this is; not what is known of it, which may be its value."""
        return self.cells.label(int(self.required.cells[position]))


def _first_pattern(
    search: DeviationSearch,
    task: _Task,
    orders: np.random.Generator,
    deadline: float,
    on_cell: Callable[[], object],
) -> tuple[Booleans, bool]:
    """The cheapest of a few patterns by deviations, and whether all were tried before the deadline."""
    required = task.required
    by_need = np.argsort(-np.maximum(required.width, required.up + required.down), kind="stable")
    best, complete = None, True
    for number in range(_ORDERS):
        order = by_need if number == 0 else orders.permutation(len(required.cells))
        try:
            pattern, whole = search.complete(task.primaries, order, deadline=deadline, on_cell=on_cell)
        except OutOfTimeError:
            if best is None:
                raise
            return best, False
        complete = complete and whole
        if best is None or task.cost(pattern) < task.cost(best):
            best = pattern
    assert best is not None
    return best, complete


def _cheapest(task: _Task, search: DeviationSearch, first: Booleans, *, gap: float, deadline: float) -> _Found:
    """The cheapest pattern, and of those that cost the same the one with the largest rank decrease."""
    program = PatternProgram(task.cells, task.required, task.cost(first), task.protects)
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
                pattern, _ = search.complete(pattern, order, deadline=deadline, on_cell=lambda: None)
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


def _hidden_from(task: _Task, singletons: Booleans, pattern: Booleans, deadline: float) -> Booleans:
    """A pattern with further cells, so that no single contributor of a suppressed one works out a primary cell.

    Of two cells with a single contributor one of which is part of the other it is the same one, who knows both.
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
            search = DeviationSearch(insider.cells, insider.required, insider.reachable)
            order = np.arange(len(insider.required.cells))
            further, _ = search.complete(seen, order, deadline=deadline, on_cell=lambda: None)
        except OutOfTimeError:
            raise
        except AttackError as error:
            raise AttackError(f"for the single contributor of {task.cells.label(cell)} {error}") from error
        # What more is suppressed leaves no attacker less to wonder about.
        hidden |= further
        if not insider.protects(hidden & ~own):
            raise AttackError(
                f"the pattern found does not protect from the single contributor of {task.cells.label(cell)}"
            )
    return hidden


def _seconds(time_limit: Any) -> float:
    number = isinstance(time_limit, int | float | np.integer | np.floating) and not isinstance(time_limit, bool)
    if not number or not time_limit > 0:
        raise ParameterError(f"time_limit must be seconds above 0, got {time_limit!r}")
    return float(time_limit)
