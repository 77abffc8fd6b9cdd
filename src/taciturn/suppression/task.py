"""A table and what is asked of its suppression: patterns as releases, and whether they
protect.
"""

from collections.abc import (
    Collection,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from taciturn.attack.bounds.attacker import attacker_bounds
from taciturn.attack.rank import constraint_rank, rank_decrease
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.showing import (
    PRIMARY,
    SAFE,
    SECONDARY,
)
from taciturn.attack.releases.suppression import Suppression
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError
from taciturn.schema import MAX_COUNT
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.required import Required
from taciturn.tables.margins import Margin

__all__ = ["Found", "Task"]


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """A pattern, what no cheaper one is below of, how many it was compared with, and
    whether there was time for all.
    """

    pattern: Booleans
    bound: float
    compared: int
    complete: bool


class Task:
    """A table and what is asked of its suppression: patterns as releases, and whether
    they protect.
    """

    def __init__(
        self,
        table: xr.DataArray,
        linked: Sequence[Margin] | None,
        cells: PublishedCells,
        required: Required,
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
        return LinkedTables(
            self._table, list(cells.margins), suppressed=suppressed, decimals=cells.decimals
        )

    def audit(self, pattern: Booleans, asked: Booleans) -> dict[tuple[str, ...], xr.Dataset]:
        """Bounds of the asked cells, for each margin of which some may be
        suppressed.
        """
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
        """How far below and above its value an attacker must take each primary cell for
        possible, in steps.
        """
        low, high = np.zeros(len(self.cells.costs)), np.zeros(len(self.cells.costs))
        for names, bounds in audit.items():
            part = self.cells.part(self.cells.margins.index(names))
            low[part], high[part] = bounds["lower"].values.ravel(), bounds["upper"].values.ravel()
        chosen = self.required.cells
        step = 10.0**self.cells.decimals
        true = self.cells.values[chosen]
        return np.rint(low[chosen] * step) - true, np.rint(high[chosen] * step) - true

    def reachable(self, position: int) -> tuple[int, int]:
        """How far a primary cell can deviate when all that may be is suppressed; raises
        if that is not enough.
        """
        asked = np.zeros_like(self.primaries)
        asked[self.required.cells[position]] = True
        lower, upper = self.deviations(
            self.audit(np.isfinite(self.cells.costs) | self.primaries, asked)
        )
        if not self.required.met(lower, upper)[position]:
            raise AttackError(
                f"no pattern protects {self._label(position)}, even with all cells suppressed that"
                " may be; allow totals to be suppressed by naming them in linked, or ask for less"
                " protection"
            )
        # A cell that no total limits is infinite above.
        return int(-lower[position]), int(min(upper[position], MAX_COUNT))

    def protects(self, pattern: Booleans) -> bool:
        return bool(self.required.met(*self.deviations(self.audit(pattern, self.primaries))).all())

    def cost(self, pattern: Booleans) -> float:
        return float(self.cells.costs[pattern & ~self.primaries].sum())

    def rank_decrease(self, pattern: Booleans) -> tuple[int, int]:
        """By how much suppression lowers the rank of all that is released, and of its
        finest margins alone.

        Propositions 1 to 3 are on the second. With totals of these margins released as
        well the first is often the same for all patterns of a cost, and the second
        decides.
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
        suppressed: dict[Margin, xr.DataArray] = {
            names: cells.flags(number, pattern) for number, names in chosen
        }
        release = LinkedTables(self._table, [names for _, names in chosen], decimals=cells.decimals)
        return rank_decrease(release, suppressed)

    def known_to(self, own: Booleans) -> "Task":
        """What is left to protect from one who knows cells: that the other primary ones
        are worked out exactly.
        """
        costs = np.where(own, np.inf, self.cells.costs)
        others = self.required.cells[~own[self.required.cells]]
        none = np.zeros_like(others)
        required = Required(others, none, none, none + 1)
        return Task(self._table, self._linked, replace(self.cells, costs=costs), required)

    def audited(self, found: Found) -> SuppressionPattern:
        """The result; raises if it does not hold what was asked."""
        pattern = found.pattern
        audit = self.audit(pattern, self.primaries)
        lower, upper = self.deviations(audit)
        short = np.flatnonzero(~self.required.met(lower, upper))
        if len(short):
            raise AttackError(f"the pattern found does not protect {self._label(int(short[0]))}")
        status = {}
        for number in self.suppressible():
            suppressed, primary = (
                self.cells.flags(number, flags) for flags in (pattern, self.primaries)
            )
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
        """Which primary cell this is; not what is known of it, which may be its
        value.
        """
        return self.cells.label(int(self.required.cells[position]))
