"""A linear system and bounds with their proofs as one document, in the words of JSON.

The format is that of ``docs/how-to/certificates.md``, and what `checker` reads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.bounds.of_cells import components
from taciturn.attack.certificates.checker import FORMAT, VERSION
from taciturn.attack.certificates.multipliers import is_open
from taciturn.attack.certificates.parts import Part
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem
from taciturn.errors import AttackError
from taciturn.schema import cell_label

__all__ = ["GRAND_TOTAL", "Bound", "document_of", "published"]

GRAND_TOTAL: Final = "the grand total"
"""What the sum of all cells is called."""


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """The least and the most of a sum of cells, in steps, and the cells by their flat
    positions in the table.
    """

    label: str
    cells: Integers
    lower: int
    upper: int


class _Share(NamedTuple):
    """A sum of cells in a part: its coefficients, and what it has besides."""

    part: Part
    costs: Integers
    besides: int


def document_of(
    system: LinearSystem, bounds: Sequence[Bound], *, on_bound: Callable[[], object]
) -> dict[str, Any]:
    """The certificate of some bounds of a release.

    Parameters
    ----------
    system : LinearSystem
        The release.
    bounds : sequence of Bound
        Those of its cells or totals.
    on_bound : callable
        Called when a lower or an upper bound has its proof, or none is found.
    """
    if (system.matrix.data != 1).any():
        raise AttackError(
            "a certificate is for totals that are sums of cells; this release has one from which"
            " a cell is subtracted"
        )
    values = system.published.values.ravel().copy()
    values[system.unknown] = np.where(system.lower == system.upper, system.lower, 0)
    members = _members(system, bounds)
    parts, shares = [], {}
    for rows, columns in _connected(system, members):
        part = _part(system, rows[rows < len(system.least)], columns)
        parts.append(part)
        for at in (rows[rows >= len(system.least)] - len(system.least)).tolist():
            costs = members[[at]].toarray().ravel()[columns]
            shares[at] = _Share(part, costs, int(values[bounds[at].cells].sum()))
    written = []
    for at, bound in enumerate(bounds):
        each: dict[str, Any] = {"label": bound.label, "cells": bound.cells.tolist()}
        for name, sign, value in (("lower", -1, bound.lower), ("upper", 1, bound.upper)):
            each[name] = _side(shares.get(at), sign, value)
            on_bound()
        written.append(each)
    tables = _tables(system, parts)
    if not tables:
        for each in written:
            each["lower"]["table"] = each["upper"]["table"] = None
    return {
        "format": FORMAT,
        "version": VERSION,
        "decimals": system.decimals,
        **published(system),
        "tables": tables,
        "bounds": written,
    }


def published(system: LinearSystem) -> dict[str, Any]:
    """The part of a certificate that says what is published and known."""
    return {"cells": _cells(system), "rows": _rows(system)}


def _members(system: LinearSystem, bounds: Sequence[Bound]) -> csr_array:
    """A row for each bound, with its unknown cells."""
    column = np.full(system.published.size, -1)
    column[system.unknown] = np.arange(len(system.unknown))
    size = [len(bound.cells) for bound in bounds]
    cells = np.concatenate([np.empty(0, dtype=np.int64), *(bound.cells for bound in bounds)])
    row, place = np.repeat(np.arange(len(bounds)), size), column[cells]
    row, place = row[place >= 0], place[place >= 0]
    ones = np.ones(len(row), dtype=np.int64)
    return csr_array((ones, (row, place)), shape=(len(bounds), len(system.unknown)))


def _connected(system: LinearSystem, members: csr_array) -> Iterator[tuple[Integers, Integers]]:
    """Rows, those of the members last, and columns of the parts that share no open
    cell.
    """
    joined = csr_array(vstack([system.matrix, members]))
    every = np.ones(len(system.unknown), dtype=np.bool_)
    yield from components(joined, system.lower, system.upper, every)


def _part(system: LinearSystem, rows: Integers, columns: Integers) -> Part:
    """A part, from whose rows the cells that are fixed are subtracted."""
    taken = csr_array(system.matrix[rows])
    shown = taken @ np.where(system.lower == system.upper, system.lower, 0)
    inside = csr_array(taken[:, columns])
    return Part(
        Rows(inside, system.least[rows] - shown, system.most[rows] - shown),
        system.lower[columns],
        system.upper[columns],
        row_numbers=rows,
        columns=columns,
        cell_numbers=system.unknown[columns],
    )


def _side(share: _Share | None, sign: int, value: int) -> dict[str, Any]:
    """A bound and its proof; of a sum without an open cell it needs no row."""
    if share is None:
        return {"value": value, "table": 0, "proof": [{"shows": "bound", "multipliers": []}]}
    if abs(value) < UNLIMITED:
        table, proof = share.part.bounded(sign * share.costs, sign * (value - share.besides))
        return {"value": value, "table": table, "proof": proof}
    table, ray = share.part.unbounded(sign * share.costs)
    return {"value": None, "table": table, "ray": ray}


def _cells(system: LinearSystem) -> list[dict[str, Any]]:
    """All cells; a published one has its value as both limits."""
    lower = system.published.values.ravel().copy()
    upper = lower.copy()
    lower[system.unknown], upper[system.unknown] = system.lower, system.upper
    positions = np.ndindex(system.published.shape)
    labels = (cell_label(system.published, position) for position in positions)
    return [
        {"label": label, "lower": low, "upper": high}
        for label, low, high in zip(labels, _limits(lower), _limits(upper), strict=True)
    ]


def _rows(system: LinearSystem) -> list[dict[str, Any]]:
    """The released totals of unknown cells as they are published, and with all their
    cells.
    """
    values = system.published.values.ravel()
    known = np.ones(len(values), dtype=np.bool_)
    known[system.unknown] = False
    orders = [np.argsort(total.group, kind="stable") for total in system.totals]
    groups = [total.group[order] for total, order in zip(system.totals, orders, strict=True)]
    found = []
    for row, (number, group) in enumerate(zip(system.row_total, system.row_group, strict=True)):
        first, last = np.searchsorted(groups[number], (group, group + 1))
        inside = orders[number][first:last]
        shown = inside[known[inside]]
        start, end = system.matrix.indptr[row : row + 2]
        cells = np.concatenate([shown, system.unknown[system.matrix.indices[start:end]]])
        sides = np.array([system.least[row], system.most[row]]) + values[shown].sum()
        least, most = _limits(sides)
        label, numbers = system.row_label(row), sorted(cells.tolist())
        found.append({"label": label, "least": least, "most": most, "cells": numbers})
    return found


def _tables(system: LinearSystem, parts: Sequence[Part]) -> list[list[int]]:
    """Tables that are one of each part: the first of the first ones, and so on. Where a
    part has none, there is none.
    """
    if any(part.any_table() is None for part in parts):
        return []
    found = np.zeros((max([1, *(len(part.tables) for part in parts)]), len(system.unknown)), int)
    for part in parts:
        last = len(part.tables) - 1
        for number in range(len(found)):
            found[number, part.columns] = part.tables[min(number, last)]
    open_ = np.flatnonzero(system.lower < system.upper)
    in_order = open_[np.argsort(system.unknown[open_])]
    return [table[in_order].tolist() for table in found]


def _limits(bounds: Integers) -> list[int | None]:
    """Bounds, and None where there is none."""
    return [
        None if open_ else bound
        for bound, open_ in zip(bounds.tolist(), is_open(bounds).tolist(), strict=True)
    ]
