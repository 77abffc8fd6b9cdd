"""Which released totals contradict each other."""

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.solver import Program
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem, open_ended
from taciturn.errors import AttackError

__all__ = ["contradiction"]


def contradiction(system: LinearSystem, what: str = "the release") -> str:
    """Name a minimal set of totals that contradict each other: without any one of them
    there is a table. `what` is that which they are published by.
    """
    rows = np.arange(system.matrix.shape[0])
    whole = _feasible(system, rows, whole=False)
    size = max(1, len(rows) // 2)
    while True:
        start = 0
        while start < len(rows):
            rest = np.delete(rows, slice(start, start + size))
            if _feasible(system, rest, whole=whole):
                start += size
            else:
                rows = rest
        if size == 1:
            break
        size = max(1, size // 2)
    if _feasible(system, rows, whole=whole, sure=True):
        raise AttackError("the solver finds no table, but cannot say which totals allow none")
    named = [_interval(system, int(row)) for row in rows]
    kind = "of whole numbers of steps " if whole else ""
    return (
        f"{what} contradicts itself: no table {kind}with its cells in their bounds has, at"
        " once, " + "; ".join(named)
    )


def _feasible(system: LinearSystem, rows: Integers, *, whole: bool, sure: bool = False) -> bool:
    if len(rows) == 0:
        return True
    matrix = csr_array(system.matrix[rows])
    held = np.flatnonzero(np.diff(matrix.tocsc().indptr))
    program = Program(
        csr_array(matrix[:, held]),
        open_ended(system.least[rows]),
        open_ended(system.most[rows]),
        open_ended(system.lower[held]),
        open_ended(system.upper[held]),
        whole=np.full(len(held), whole),
    )
    return program.solve(np.zeros(len(held)), sure=sure) is not None


def _interval(system: LinearSystem, row: int) -> str:
    """A total as it is published: less its published cells it may be the value of a
    suppressed one.
    """
    total, group = system.totals[system.row_total[row]], system.row_group[row]
    inside = np.diff(system.matrix.indptr)[row]
    cells = f"{inside} unknown cell{'s' if inside > 1 else ''}"
    if not total.released[group]:
        return f"{system.row_label(row)} with {cells}"
    step = 10.0**system.decimals
    least, most = total.least[group] / step, total.most[group] / step
    value = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    if total.most[group] >= UNLIMITED:
        value = f"{least:g} or more"
    return f"{system.row_label(row)} of {value} with {cells}"
