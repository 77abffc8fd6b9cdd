"""Statistics of the cells of one margin, counted by DuckDB in whole steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import TableError
from taciturn.magnitude.contributors import check_contributors
from taciturn.magnitude.database import Database
from taciturn.magnitude.expressions import WEIGHT_DECIMALS, WHOLE

__all__ = [
    "CellStatistics",
    "Kept",
    "cell_statistics",
    "group_contributions",
    "weight_decimals",
]

_UNIT: Final = 10**WEIGHT_DECIMALS
_LARGEST_KEY: Final = 2**61


@dataclass(frozen=True)
class CellStatistics:
    """The cells of a margin with a contributor in them; values in steps."""

    cells: npt.NDArray[np.int64]
    """Their numbers, of the labels in order of appearance."""
    contributors: list[float]
    total: list[int]
    absolute_total: list[int]
    largest: list[list[int]]
    entropy: npt.NDArray[np.float64]
    requests: list[float] | None
    requested: list[int] | None
    waivers: list[int] | None
    unwaived: list[int] | None


@dataclass(frozen=True)
class Kept:
    """What a margin keeps of the variable at a position: its labels, or the group of
    each where a level above it is kept.
    """

    at: int
    groups: list[int] | None = None
    size: int = 0


def group_contributions(database: Database) -> None:
    """Make ``contributions``: one row for each contributor in each cell of the full
    table.
    """
    roles = database.roles
    if roles.contributor is None and roles.holding is None:
        database.connection.execute("CREATE VIEW contributions AS SELECT * FROM records")
        return
    check_contributors(database)
    _refuse_conflicts(database)
    unit, joined = _units(database)
    database.connection.execute(
        f"CREATE TABLE contributions AS SELECT cell, {unit} AS u, {_of_contributor(database)} "
        f"FROM records {joined} GROUP BY ALL"
    )


def _units(database: Database) -> tuple[str, str]:
    """SQL for a whole number that tells contributors apart, holdings among them, and
    for a join that it needs.

    Numbers are grouped several times as fast as text, and one of them twice as fast as
    two.
    """
    own = (
        "row" if database.roles.contributor is None else "c"
    )  # who a record without a holding belongs to
    names = [own] if database.roles.holding is None else [own, "h"]
    types = database.types("records")
    if all(types[name] in WHOLE for name in names):
        if len(names) == 1:
            return own, ""
        [bounds] = database.fetch(f"SELECT min(h), max(h), min({own}), max({own}) FROM records")
        if all(-_LARGEST_KEY <= bound <= _LARGEST_KEY for bound in bounds if bound is not None):
            return f"CASE WHEN h IS NULL THEN 2 * {own}::BIGINT ELSE 2 * h::BIGINT + 1 END", ""
    key = (
        own
        if len(names) == 1
        else f"CASE WHEN h IS NULL THEN 'c' || {own}::VARCHAR ELSE 'h' || h::VARCHAR END"
    )
    database.connection.execute(
        "CREATE TABLE units AS SELECT key, row_number() OVER () AS u "
        f"FROM (SELECT DISTINCT {key} AS key FROM records)"
    )
    return "units.u", f"JOIN units ON units.key = {key}"


def _of_contributor(database: Database) -> str:
    """SQL for what the rows of one contributor come to."""
    columns = ["sum(x)::BIGINT AS x"]
    columns += ["any_value(w) AS w"] if database.roles.sampling_weights is not None else []
    columns += ["bool_or(r) AS r"] if database.roles.request is not None else []
    columns += ["bool_and(v) AS v"] if database.roles.waiver is not None else []
    return ", ".join(columns)


def _refuse_conflicts(database: Database) -> None:
    """A contributor has one holding or none, and one weight."""
    roles = database.roles
    if roles.contributor is None:
        return
    checks = {}
    if roles.holding is not None:
        checks["h"] = ("min(h) <> max(h) OR count(h) NOT IN (0, count(*))", roles.holding)
    if roles.sampling_weights is not None:
        checks["w"] = ("min(w) <> max(w)", roles.sampling_weights)
    for short, (conflict, name) in checks.items():
        found = database.fetch(
            f"SELECT c FROM records GROUP BY c HAVING {conflict} ORDER BY min(row) LIMIT 1"
        )
        if not found:
            continue
        code = found[0][0]
        rows = database.connection.execute(
            f"SELECT min(row), {short} FROM records WHERE c = ? GROUP BY {short} ORDER BY 1"
            " LIMIT 2",
            [code],
        ).fetchall()
        shown = []
        for row, value in rows:
            value = f"{value / _UNIT:g}" if short == "w" else repr(database.meaning(short, value))
            shown.append(f"{'none' if value == 'None' else value} in row {row}")
        raise TableError(
            f"a contributor has one value of {name!r}: {database.meaning('c', code)!r} has"
            f" {' and '.join(shown)}"
        )


def weight_decimals(database: Database) -> int:
    """So many decimals as write all weights out."""
    if database.roles.sampling_weights is None:
        return 0
    steps = " ".join(
        f"WHEN w % {10 ** (WEIGHT_DECIMALS - places)} = 0 THEN {places}" for places in range(7)
    )
    [(decimals,)] = database.fetch(f"SELECT max(CASE {steps} END) FROM records")
    return int(decimals)


def cell_statistics(
    database: Database, kept: Sequence[Kept], *, largest: int, places: int
) -> CellStatistics:
    """Statistics of the margin that keeps some variables, or levels above them.

    `places` is the number of decimals of the weights: with them a step is so many
    decimals finer.
    """
    cell, source = _margin_cell(database.sizes, kept), "contributions"
    grouped = database.roles.contributor is not None or database.roles.holding is not None
    if grouped and cell != "cell":
        source = (
            f"(SELECT {cell} AS cell, u, {_of_contributor(database)} FROM contributions"
            " GROUP BY ALL)"
        )
        cell = "cell"
    weighted = database.roles.sampling_weights is not None
    size = "abs(x)"
    surprise = f"CASE WHEN x <> 0 THEN {size}::DOUBLE * log2({size}::DOUBLE) ELSE 0 END"
    chosen = {
        "cell": cell,
        "contributors": "sum(w)" if weighted else "count(*)",
        "total": "sum(x::HUGEINT * w)" if weighted else "sum(x)",
        "absolute": f"sum({size}::HUGEINT * w)" if weighted else f"sum({size})",
        "largest": f"max({size}, {largest})",
        "surprise": f"fsum({f'w / {_UNIT} * ' if weighted else ''}{surprise})",
    }
    if weighted:
        chosen["weights"] = f"max_by(w, {size}, {largest})"
    if database.roles.request is not None:
        chosen["requests"] = f"{'sum(w)' if weighted else 'count(*)'} FILTER (r)"
        chosen["requested"] = f"max({size}) FILTER (r)"
    if database.roles.waiver is not None:
        chosen["waivers"] = "count(*) FILTER (v)"
        chosen["unwaived"] = f"max({size}) FILTER (NOT v)"
    listed = ", ".join(f"{expression} AS {name}" for name, expression in chosen.items())
    rows = database.fetch(f"SELECT {listed} FROM {source} GROUP BY 1 ORDER BY 1")
    found = dict(zip(chosen, zip(*rows, strict=True), strict=True))
    return _statistics(found, weighted=weighted, largest=largest, places=places)


def _margin_cell(sizes: list[int], kept: Sequence[Kept]) -> str:
    """SQL for the number of the cell of a margin that holds a cell of the full
    table.
    """
    if len(kept) == len(sizes) and all(each.groups is None for each in kept):
        return "cell"
    number = "0"
    for each in kept:
        i = each.at
        code, size = f"cell // {prod(sizes[i + 1 :])} % {sizes[i]}", sizes[i]
        if each.groups is not None:
            code, size = f"({each.groups}::INTEGER[])[{code} + 1]", each.size
        number = f"({number}) * {size} + {code}"
    return f"({number})::INTEGER"


def _statistics(
    found: dict[str, Any], *, weighted: bool, largest: int, places: int
) -> CellStatistics:
    finer = 10**places
    per_unit = _UNIT // finer  # x * w is in steps of so many times less
    numbers = [count / _UNIT if weighted else count for count in found["contributors"]]
    absolute = [int(x) // per_unit if weighted else int(x) for x in found["absolute"]]
    sizes = [[int(x) for x in top] + [0] * (largest - len(top)) for top in found["largest"]]
    if weighted:
        sizes = [
            _expanded(top, [w // per_unit for w in weights], finer)
            for top, weights in zip(sizes, found["weights"], strict=True)
        ]
    entropy = [
        _entropy(total / finer, surprise, number, top[0] == total)
        for total, surprise, number, top in zip(
            absolute, found["surprise"], numbers, sizes, strict=True
        )
    ]
    asked, waived = "requests" in found, "waivers" in found
    return CellStatistics(
        cells=np.asarray(found["cell"], dtype=np.int64),
        contributors=numbers,
        total=[int(x) // per_unit if weighted else int(x) for x in found["total"]],
        absolute_total=absolute,
        largest=sizes,
        entropy=np.asarray(entropy),
        requests=(
            [(count or 0) / (_UNIT if weighted else 1) for count in found["requests"]]
            if asked
            else None
        ),
        requested=[int(x or 0) * finer for x in found["requested"]] if asked else None,
        waivers=list(found["waivers"]) if waived else None,
        unwaived=[int(x or 0) for x in found["unwaived"]] if waived else None,
    )


def _expanded(sizes: list[int], weights: list[int], finer: int) -> list[int]:
    """The largest contributions where one of weight `w` stands for `w` of its size.

    Ranks follow each other on a line on which each contribution takes the length of its
    weight; what lies between two ranks is the contribution of the second. All weights
    are at least 1, so that as many records as ranks fill them.
    """
    filled, record, left = [], 0, weights[0]
    for _ in sizes:
        room, held = finer, 0
        while room and record < len(weights):
            taken = min(room, left)
            held, room, left = held + taken * sizes[record], room - taken, left - taken
            if not left:
                record += 1
                left = weights[record] if record < len(weights) else 0
        filled.append(held)
    return filled


def _entropy(total: float, surprise: float, number: float, alone: bool) -> float:
    """``log2 T - sum(x log2 x) / T``, in bits; 0 where one contributes all or nobody
    anything.
    """
    if total == 0 or alone:
        return 0.0
    return min(max(log2(total) - surprise / total, 0.0), log2(number))
