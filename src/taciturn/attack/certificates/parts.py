"""Proofs of bounds in one connected part of a system: tables that attain them, and
multipliers, or trees of them, that show that no table goes beyond.
"""

from math import gcd
from typing import Any, Final

import numpy as np

from taciturn.attack.bounds.branching import whole_table
from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.certificates.multipliers import DENOMINATORS, System, is_open
from taciturn.attack.solver import ANY_SOLUTION, Program, Solved
from taciturn.attack.system import Floats, Integers, open_ended
from taciturn.errors import AttackError

__all__ = ["Part"]

_NODES: Final = 1000  # of a tree, at most
_PULL: Final = 1e3  # on what is bounded, next to which random costs are small
_NEAR: Final = 1e-6  # of a whole number


class Part:
    """Cells that share rows or totals with one another, and with no others.

    Parameters
    ----------
    rows : Rows
        The rows.
    lower, upper : array of int64, shape (n,)
        Bounds of the cells.
    row_numbers, cell_numbers : array of int64
        What the certificate calls the rows and the cells.
    columns : array of int64, shape (n,)
        The cells among the unknown ones.

    Attributes
    ----------
    columns : array of int64, shape (n,)
        As given.
    tables : list of array of int64, shape (n,)
        Tables that attain bounds.
    """

    def __init__(
        self,
        rows: Rows,
        lower: Integers,
        upper: Integers,
        *,
        row_numbers: Integers,
        columns: Integers,
        cell_numbers: Integers,
    ) -> None:
        self._system = System(rows, lower, upper)
        self._row_numbers, self._cell_numbers = row_numbers, cell_numbers
        self.columns = columns
        self._programs: dict[bool, Program] = {}
        self._generator = np.random.default_rng(0)  # of costs that do not matter
        self.tables: list[Integers] = []

    def bounded(self, costs: Integers, most: int) -> tuple[int | None, list[Any] | None]:
        """The number of a table in which ``costs @ x`` is `most`, and the proof that it
        is so much in none; None for what is not found.
        """
        proof = self._tree(costs, most)
        return self._attaining(costs, most), proof

    def unbounded(self, costs: Integers) -> tuple[int | None, list[Any] | None]:
        """The number of a table, and a ray that raises ``costs @ x``."""
        return self.any_table(), self._ray(costs)

    def any_table(self) -> int | None:
        """The number of a table."""
        none = np.zeros(len(self._cell_numbers), dtype=np.int64)
        return self._attaining(none, 0)

    def _attaining(self, costs: Integers, most: int) -> int | None:
        for number, table in enumerate(self.tables):
            if costs @ table == most:
                return number
        try:
            values: Floats | Integers | None = self._near(costs, most)
            if values is None:
                solved = self._solve(costs, whole=True, gap=0.0 if costs.any() else ANY_SOLUTION)
                values = None if solved is None else solved.values
        except AttackError:
            return None
        found = values is not None and self._keep(values, costs, most)
        return len(self.tables) - 1 if found else None

    def _near(self, costs: Integers, most: int) -> Integers | None:
        """A table that attains a bound, by branching from solutions of random costs,
        which may have other cells at their bounds as well.
        """
        system, cells = self._system, np.flatnonzero(costs)
        low, high = system.lower.copy(), system.upper.copy()
        if len(cells) == 1:
            low[cells] = high[cells] = most * costs[cells]
        for thorough in (False, False, True):
            random = self._generator.normal(size=len(low))
            random[is_open(high)] = np.abs(random[is_open(high)])
            random[is_open(low)] = 0.0 - np.abs(random[is_open(low)])
            random[is_open(low) & is_open(high)] = 0.0
            table, _ = whole_table(
                self._program(whole=False),
                system.rows,
                low,
                high,
                random - _PULL * costs,
                generator=self._generator,
                thorough=thorough,
                deadline=np.inf,
            )
            if table is not None and costs @ table == most:
                return table
        return None

    def _keep(self, values: Floats | Integers, costs: Integers, most: int) -> bool:
        """Keep a table that attains what none does yet, if it holds exactly."""
        table = np.rint(values).astype(np.int64)
        system = self._system
        if costs @ table != most or any(costs @ other == most for other in self.tables):
            return False
        if not system.rows.hold(table, system.lower, system.upper):
            return False
        self.tables.append(table)
        return True

    def _tree(self, costs: Integers, most: int) -> list[Any] | None:
        """The nodes of a proof, each before those below and then those above it."""
        nodes: list[Any] = []
        waiting = [(self._system.lower, self._system.upper)]
        while waiting and len(nodes) < _NODES:
            low, high = waiting.pop()
            leaf, split = self._node(costs, low, high, most, onwards=not nodes)
            if leaf is not None:
                nodes.append(leaf)
                continue
            if split is None:
                return None
            cell, at_most = split
            below, above = high.copy(), low.copy()
            below[cell], above[cell] = at_most, at_most + 1
            waiting += [(above, high), (low, below)]
            nodes.append({"cell": int(self._cell_numbers[cell]), "at_most": at_most})
        return None if waiting else nodes

    def _node(
        self, costs: Integers, lower: Integers, upper: Integers, most: int, *, onwards: bool
    ) -> tuple[dict[str, Any] | None, tuple[int, int] | None]:
        """A leaf for these bounds or else a cell to split, and where; where the solver
        has neither, as may happen with large numbers, it is asked in all its ways.
        """
        for sure in (False, True):
            try:
                solved = self._solve(costs, lower, upper, onwards=onwards and not sure, sure=sure)
            except AttackError:
                continue
            if solved is None:
                leaf, cell = self._no_table(lower, upper), None
            else:
                self._keep(solved.values, costs, most)
                leaf = self._leaf("bound", costs, lower, upper, -solved.duals, most)
                cell = self._in_parts(solved.values)
            if leaf is not None:
                return leaf, None
            if solved is not None and cell is not None:
                return None, (cell, int(np.floor(solved.values[cell])))
        return None, None

    def _in_parts(self, values: Floats) -> int | None:
        """The cell that is farthest from a whole number, of those that determine all
        others.
        """
        off = np.where(self._system.rows.free, np.abs(values - np.rint(values)), 0)
        cell = int(np.argmax(off))
        return cell if off[cell] > _NEAR else None

    def _no_table(self, lower: Integers, upper: Integers) -> dict[str, Any] | None:
        """A leaf for the last program, which has no solution."""
        ray = self._programs[False].ray()
        if ray is None:
            return None
        ray = ray / max(np.abs(ray).max(initial=0), 1e-300)
        none = np.zeros(len(lower), dtype=np.int64)
        leaves = (self._leaf("no table", none, lower, upper, each, -1) for each in (ray, -ray))
        return next((leaf for leaf in leaves if leaf is not None), None)

    def _leaf(
        self,
        shows: str,
        costs: Integers,
        lower: Integers,
        upper: Integers,
        multipliers: Floats,
        most: int,
    ) -> dict[str, Any] | None:
        found = self._system.proof(costs, lower, upper, multipliers, most)
        if found is None:
            return None
        weights, denominator = found
        used = np.flatnonzero(weights)
        texts = (_fraction(int(weight), denominator) for weight in weights[used])
        pairs = sorted(zip(self._row_numbers[used].tolist(), texts, strict=True))
        return {"shows": shows, "multipliers": [list(pair) for pair in pairs]}

    def _ray(self, costs: Integers) -> list[Any] | None:
        """Pairs of a cell and how it moves."""
        system = self._system
        least, most = (is_open(side).astype(float) for side in (system.lower, system.upper))
        row_least, row_most = (
            np.where(is_open(side), np.inf, 0.0) for side in (system.rows.least, system.rows.most)
        )
        program = Program(system.rows.matrix, -row_least, row_most, -least, most)
        try:
            solved = program.solve(-costs)
        except AttackError:
            return None
        for denominator in DENOMINATORS:
            moves = np.rint((solved.values if solved else 0 * costs) * denominator).astype(np.int64)
            if costs @ moves > 0 and system.is_ray(moves):
                moves //= np.gcd.reduce(moves)
                used = np.flatnonzero(moves)
                pairs = zip(self._cell_numbers[used].tolist(), moves[used].tolist(), strict=True)
                return [list(pair) for pair in sorted(pairs)]
        return None

    def _solve(
        self,
        costs: Integers,
        lower: Integers | None = None,
        upper: Integers | None = None,
        *,
        whole: bool = False,
        gap: float = 0.0,
        sure: bool = False,
        onwards: bool = False,
    ) -> Solved | None:
        """A solution of most cost; None where there is none."""
        system = self._system
        return self._program(whole=whole).solve(
            -costs,
            lower=open_ended(system.lower if lower is None else lower),
            upper=open_ended(system.upper if upper is None else upper),
            gap=gap,
            sure=sure,
            onwards=onwards,
        )

    def _program(self, *, whole: bool) -> Program:
        system = self._system
        if whole not in self._programs:
            self._programs[whole] = Program(
                system.rows.matrix,
                open_ended(system.rows.least),
                open_ended(system.rows.most),
                open_ended(system.lower),
                open_ended(system.upper),
                whole=system.rows.free if whole else None,
            )
        return self._programs[whole]


def _fraction(numerator: int, denominator: int) -> str:
    """A fraction in lowest terms, without a denominator of 1."""
    common = gcd(numerator, denominator)
    over = denominator // common
    return f"{numerator // common}" + (f"/{over}" if over > 1 else "")
