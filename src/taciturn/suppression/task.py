"""What is asked of a suppression, checked, and whether a pattern achieves it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from taciturn.attack.bounds.of_system import bounds_of
from taciturn.attack.rank import rank_of
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers, LinearSystem
from taciturn.errors import AttackError, TableError
from taciturn.schema import MAX_COUNT
from taciturn.suppression.known import Known
from taciturn.suppression.published import PublishedCells

__all__ = ["ImpossibleError", "Required", "Task", "Witness"]

type Witness = tuple[Integers, Integers]
"""A table that differs from the true one: in which of its cells, and by how much."""


class ImpossibleError(AttackError):
    """No pattern protects."""


@dataclass(frozen=True, eq=False, repr=False)
class Required:
    """The uncertainty that must remain at primary cells, in steps.

    Attributes
    ----------
    cells : array of int64, shape (primary cells,)
        Their numbers among the published cells.
    up, down : array of int64, shape (primary cells,)
        How far above and below its true value an attacker must have to consider each
        possible.
    width : array of int64, shape (primary cells,)
        Least distance between the bounds of each.
    """

    cells: Integers
    up: Integers
    down: Integers
    width: Integers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.cells):,} primary cells)"

    @property
    def most(self) -> int:
        """The farthest that any of them must deviate to one side."""
        return int(np.maximum(self.width, np.maximum(self.up, self.down)).max(initial=0))

    def met(self, lower: Integers | Floats, upper: Integers | Floats) -> Booleans:
        """Whether deviations from `lower` (at most 0) to `upper` are enough, for each
        primary cell.
        """
        return (upper >= self.up) & (-lower >= self.down) & (upper - lower >= self.width)

    def by_need(self) -> Integers:
        """The primary cells that must be the most uncertain first."""
        need = np.maximum(self.width, self.up + self.down)
        return np.argsort(-need, kind="stable")

    def within(self, known: Known) -> "Required":
        """What of this an attacker's knowledge allows: no cell can be more uncertain
        than what is known of it.

        Raises
        ------
        AttackError
            A single value of a cell is left.
        """
        cells, true = known.cells, known.cells.values[self.cells]
        down, up = true - known.lower[self.cells], known.upper[self.cells] - true
        if (down + up < 1).any():
            cell = int(self.cells[np.argmax(down + up < 1)])
            raise ImpossibleError(
                f"no pattern protects {cells.label(cell)}: the knowledge alone leaves a single"
                " value"
            )
        return Required(
            self.cells,
            np.minimum(self.up, up),
            np.minimum(self.down, down),
            np.minimum(self.width, down + up),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """A suppression to be found: the cells, their costs, and what must remain open.

    Attributes
    ----------
    cells : PublishedCells
        What is released, and what of it may be suppressed.
    costs : array of float64, shape (cells,)
        What it costs to suppress each cell; infinite where it must be published.
    required : Required
        The uncertainty that must remain.
    known : Known
        What the attacker knows beforehand.
    """

    cells: PublishedCells
    costs: Floats
    required: Required
    known: Known

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.cells!r}, {self.required!r})"

    @cached_property
    def primaries(self) -> Booleans:
        """Which cells are primary."""
        flags = np.zeros(len(self.costs), dtype=np.bool_)
        flags[self.required.cells] = True
        return flags

    @cached_property
    def up(self) -> Floats:
        """How far each cell may rise: further than any has to, and no further than is
        known.
        """
        known: Floats = (self.known.upper - self.cells.values).astype(float)
        return np.minimum(self.cells.ceilings(self.required.most), known)

    @cached_property
    def down(self) -> Floats:
        """How far each cell may fall."""
        known: Floats = (self.cells.values - self.known.lower).astype(float)
        return np.minimum(self.cells.ceilings(self.required.most), known)

    @cached_property
    def inner_up(self) -> Floats:
        """How far each cell of the table may rise, released or not."""
        table = self.cells.table.values.ravel()
        known: Floats = (self.known.inner_upper - table).astype(float)
        return np.minimum(self.cells.inner_ceiling(self.required.most), known)

    @cached_property
    def inner_down(self) -> Floats:
        """How far each cell of the table may fall."""
        table = self.cells.table.values.ravel()
        known: Floats = (table - self.known.inner_lower).astype(float)
        return np.minimum(self.cells.inner_ceiling(self.required.most), known)

    def allows(self, deviations: Integers, free: Booleans) -> bool:
        """Whether a table that differs from the true one by these deviations of its
        cells has the same published values in all but some cells, and is within what
        is known.
        """
        moved = self.cells.matrix @ deviations
        inside = (-self.inner_down <= deviations).all() and (deviations <= self.inner_up).all()
        allowed = np.where(free, (-self.down <= moved) & (moved <= self.up), moved == 0)
        return bool(inside and allowed.all())

    def cost(self, pattern: Booleans) -> float:
        """What the secondary cells of a pattern cost together."""
        return float(self.costs[pattern & ~self.primaries].sum())

    def bounds(
        self,
        system: LinearSystem,
        asked: Booleans,
        *,
        deadline: float = np.inf,
        attained: bool = False,
    ) -> tuple[Integers, Integers]:
        """What an attacker can work out of the asked cells, in steps; of others the
        true values.

        If what is `attained` will do, nothing is raised where the time is up or the
        solver fails: the bounds are then as wide as tables found so far show, at least
        the true value.
        """
        system = self.known.limit(system)
        lower, upper = self.cells.values.copy(), self.cells.values.copy()
        for number in range(len(self.cells.suppressible)):
            part, total = self.cells.part(number), self.cells.totals[number]
            if asked[part].any():
                try:
                    low, high = bounds_of(
                        system,
                        total.labels,
                        total.group,
                        asked[part],
                        known=self.cells.table.values.ravel() if attained else None,
                        deadline=deadline,
                    )
                except (AttackError, TableError) as error:
                    if attained:
                        continue
                    if isinstance(error, TableError):
                        reason = "the solver finds no table, although the true one is compatible"
                        raise AttackError(reason) from error
                    raise
                lower[part], upper[part] = low, high
        return lower, upper

    def deviations(
        self,
        system: LinearSystem,
        asked: Booleans,
        *,
        deadline: float = np.inf,
        attained: bool = False,
    ) -> tuple[Integers, Integers]:
        """How far below and above its true value an attacker must consider each primary
        cell possible, in steps.
        """
        lower, upper = self.bounds(system, asked, deadline=deadline, attained=attained)
        chosen = self.required.cells
        true = self.cells.values[chosen]
        return lower[chosen] - true, upper[chosen] - true

    def witnessed(
        self, system: LinearSystem, witnesses: Sequence[Witness]
    ) -> tuple[Integers, Integers]:
        """How far below and above its true value each primary cell is in those tables
        that are compatible with a system, exactly.
        """
        true = self.cells.table.values.ravel()
        fixed = np.ones(len(true), dtype=np.bool_)
        fixed[system.unknown] = False
        limited = self.known.limit(system)
        sums = self.cells.matrix[self.required.cells]
        low = np.zeros(len(self.required.cells), dtype=np.int64)
        high = low.copy()
        for where, by in witnesses:
            table = true.copy()
            table[where] += by
            if not fixed[where].any() and limited.holds(table[system.unknown]):
                deviations = (sums @ (table - true)).astype(np.int64)
                np.minimum(low, deviations, out=low)
                np.maximum(high, deviations, out=high)
        return low, high

    def reachable(self, position: int, *, deadline: float) -> tuple[int, int]:
        """How far down and up a primary cell can deviate when everything that may be
        suppressed is; raises `AttackError` if that is not enough.
        """
        asked = np.zeros_like(self.primaries)
        asked[self.required.cells[position]] = True
        lower, upper = self.deviations(self._widest, asked, deadline=deadline)
        if not self.required.met(lower, upper)[position]:
            raise ImpossibleError(
                f"no pattern protects {self.label(position)}"
                f"{' from an attacker with this knowledge' if self.known.totals else ''}, even with"
                " all cells suppressed that may be; allow totals to be suppressed by naming them in"
                " linked, or ask for less protection"
            )
        # A cell that nothing limits has no bound.
        return int(min(-lower[position], MAX_COUNT)), int(min(upper[position], MAX_COUNT))

    @cached_property
    def _widest(self) -> LinearSystem:
        return self.cells.system(np.isfinite(self.costs) | self.primaries)

    def rank_decrease(self, pattern: Booleans) -> tuple[int, int]:
        """By how much suppression lowers the rank of all that is released, and of its
        finest margins alone.

        Propositions 1 to 3 concern the latter. With totals of these margins released as
        well, the former is often the same for all patterns of a cost, and the latter
        decides.
        """
        cells = self.cells
        if not cells.linked:
            # Each cell of a table that is itself released has an equation.
            decrease = int(pattern.sum()) - rank_of(cells.system(pattern))
            return decrease, decrease
        of_all, of_finest = self._ranks
        return (
            of_all - rank_of(cells.system(pattern)),
            of_finest - rank_of(cells.system(pattern, cells.finest)),
        )

    @cached_property
    def _ranks(self) -> tuple[int, int]:
        """Ranks of linked tables and of the finest of them, without suppression."""
        nothing = np.zeros_like(self.primaries)
        system, finest = self.cells.system(nothing), self.cells.system(nothing, self.cells.finest)
        return rank_of(system), rank_of(finest)

    def known_to(self, own: Booleans) -> "Task":
        """What remains to be protected from someone who knows some cells: the other
        primary cells must not be worked out exactly.
        """
        others = self.required.cells[~own[self.required.cells]]
        none = np.zeros_like(others)
        return replace(
            self,
            costs=np.where(own, np.inf, self.costs),
            required=Required(others, none, none, none + 1),
        )

    def label(self, position: int) -> str:
        """Which primary cell this is, in words."""
        return self.cells.label(int(self.required.cells[position]))
