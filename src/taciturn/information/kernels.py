"""Compiled loops over many tables at once, on plain arrays with the cells last.

One pass over a pair of tables gives every sum that R1, R2 and the conditional entropy
need. What makes it quick: logarithms of small counts come from a lookup table; what
depends on one table alone is kept while that table stays the same; and where many draws
of one total meet a single release, the usual case, what a cell adds depends on its
count alone, so that each count's terms are worked out once. Threads share the rows; the
numbers do not depend on how many.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.information.compiled import (
    cell_terms,
    pair_kernel,
    scan_kernel,
    table_kernel,
    tabulated_kernel,
)
from taciturn.schema import MAX_COUNT

__all__ = ["PAIR_SUMS", "TABLE_SUMS", "CountsOutOfRangeError", "pair_sums", "table_sums"]

TABLE_SUMS: Final = ("total", "cells", "zeros", "entropy")
"""What a table is summed up to; entropy in nats."""
PAIR_SUMS: Final = (
    "total",
    "released_total",
    "cells",
    "zeros",
    "zeros_both",
    "zeros_either",
    "entropy",
    "conditional_entropy",
)
"""What a table and its release are summed up to; entropies in nats."""
_LOOKUP_LIMIT: Final = 2**20
_NO_LOOKUP: Final = np.zeros(1)
_LOOKED_AT: Final = 256
_FINE, _OUT_OF_RANGE, _OTHER_TOTAL = 0, 1, 2
_TERMS_LIMIT: Final = 2**22  # 100 MB
_THREADED_FROM: Final = 2**20  # cells; below, starting threads costs more than it saves
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class CountsOutOfRangeError(Exception):
    """A count is negative or beyond 2**53."""


def table_sums(table: npt.NDArray[Any], mask: npt.NDArray[np.bool_], *, core: int) -> Floats:
    """Sums of each table.

    Parameters
    ----------
    table : array, shape (..., *cells)
        Counts; the last `core` axes are the cells.
    mask : array of bool, broadcastable to `table`
        False leaves a cell out.
    core : int
        Number of cell axes.

    Returns
    -------
    array, shape (..., 4)
        `TABLE_SUMS`.
    """
    lead = table.shape[:-core]
    rows, _ = _indexed(table, lead, core)
    masks, mask_of = _indexed(mask, lead, core)
    out = np.empty((len(rows), len(TABLE_SUMS)))
    logs = _logs(rows, _scan(rows, masks[0])[0])
    _share(
        len(rows),
        rows.size,
        lambda part: table_kernel(rows[part], masks, mask_of[part], logs, out[part]),
    )
    return out.reshape(*lead, -1)


def pair_sums(
    table: npt.NDArray[Any], released: npt.NDArray[Any], mask: npt.NDArray[np.bool_], *, core: int
) -> Floats:
    """Sums of each pair of a table and a release; leading axes broadcast and nothing is
    copied for it.

    Returns
    -------
    array, shape (..., 8)
        `PAIR_SUMS`.
    """
    lead = np.broadcast_shapes(table.shape[:-core], released.shape[:-core])
    first, first_of = _indexed(table, lead, core)
    second, second_of = _indexed(released, lead, core)
    masks, mask_of = _indexed(mask, lead, core)
    out = np.empty((len(first_of), len(PAIR_SUMS)))
    released_largest, released_total = _scan(second, masks[0])
    if (
        len(second) == len(masks) == 1
        and released_total > 0
        and _tabulated(first, second[0], masks[0], out)
    ):
        return out.reshape(*lead, -1)
    largest, _ = _scan(first, masks[0])
    cells = first.shape[1]
    logs, released_logs = _logs(first, largest), _logs(second, released_largest)

    def work(part: slice) -> None:
        pair_kernel(
            first,
            second,
            masks,
            first_of[part],
            second_of[part],
            mask_of[part],
            logs,
            released_logs,
            out[part],
        )

    _share(len(out), len(out) * cells, work)
    return out.reshape(*lead, -1)


def _tabulated(rows: Counts, release: Counts, mask: npt.NDArray[np.bool_], out: Floats) -> bool:
    """Fill `out` by looking up what each cell adds for each count; False where that
    does not pay or totals differ.
    """
    if not rows.size:
        return False
    total = int(rows[0][mask].sum())
    counts = 2 * int(rows[:_LOOKED_AT].max()) + 1  # larger ones are worked out where they occur
    if total <= 0 or not 0 < 4 * counts < len(rows) or counts * rows.shape[1] > _TERMS_LIMIT:
        return False
    terms = cell_terms(counts, total, release, mask)
    found: list[int] = []

    def look_up(part: slice) -> None:
        found.append(tabulated_kernel(rows[part], release, mask, total, terms, out[part]))

    _share(len(rows), rows.size, look_up)
    if _OUT_OF_RANGE in found:
        raise CountsOutOfRangeError
    return _OTHER_TOTAL not in found


def _scan(rows: Counts, mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Largest count, and the total that all rows share (0 where they differ); refuses
    what is no count.
    """
    if rows.size == 0:
        return 0, 0
    total = int(rows[0][mask].sum())
    found: list[tuple[int, int, bool]] = []
    _share(len(rows), rows.size, lambda part: found.append(scan_kernel(rows[part], mask, total)))
    smallest, largest = min(x[0] for x in found), max(x[1] for x in found)
    if smallest < 0 or largest > MAX_COUNT:
        raise CountsOutOfRangeError
    return largest, total if all(x[2] for x in found) else 0


def _share(rows: int, cells: int, work: Callable[[slice], None]) -> None:
    """Do the work on all rows, in as many slices as there are processors when there is
    much of it.
    """
    threads = min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        rows,
    )
    if cells < _THREADED_FROM or threads < 2:
        work(slice(0, rows))
        return
    edges = [rows * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, edges[:-1], edges[1:])))


def _indexed(
    array: npt.NDArray[Any], lead: tuple[int, ...], core: int
) -> tuple[Any, npt.NDArray[np.int64]]:
    """Tables as rows, and which row each output uses."""
    own = array.shape[: array.ndim - core]
    number = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
    cells = int(np.prod(array.shape[array.ndim - core :]))
    dtype = np.bool_ if array.dtype == np.bool_ else np.int64
    rows: npt.NDArray[Any] = np.ascontiguousarray(array.reshape(-1, cells), dtype=dtype)
    return rows, np.ascontiguousarray(np.broadcast_to(number, lead).ravel())


def _logs(rows: Counts, largest: int) -> Floats:
    """Logarithms of 0 (as 0), 1, 2, ... up to the largest count, where that saves
    work.
    """
    if largest >= min(_LOOKUP_LIMIT, rows.size):
        return _NO_LOOKUP
    return np.log(np.maximum(np.arange(largest + 1), 1))
