"""What single contributors work out, held against all whole-number deviations."""

import numpy as np
import pytest
import xarray as xr

from taciturn.suppression.arguments import (
    checked_cells,
    checked_costs,
    checked_knowledge,
    checked_required,
)
from taciturn.suppression.insiders import Insiders
from taciturn.suppression.task import Task

WITHIN = 4


def a_task(seed):
    """A table of 3 x 3 cells that is released with its totals, all of which may be
    suppressed, with a pattern and single contributors."""
    rng = np.random.default_rng(seed)
    table = xr.DataArray(rng.integers(0, WITHIN + 1, (3, 3)), dims=("a", "b"))
    cells = checked_cells(table, [("a", "b"), "a", "b", ()], 0)
    flags = np.zeros(len(cells.values), dtype=bool)
    flags[:9] = rng.random(9) < 0.5
    flags[0] = True
    required = checked_required(flags, 1.0, cells)
    costs = checked_costs(None, cells)
    known = checked_knowledge(None, cells, required, costs)
    task = Task(cells, costs, required, known)
    return task, flags | (rng.random(len(flags)) < 0.4), rng.random(len(flags)) < 0.4


def deviations(task, pattern):
    """Those of all published cells in all tables that are compatible with a pattern and
    near the true one, and in all near it if no cell were bounded."""
    steps = [np.arange(-2.0, 3.0) if hidden else [0.0] for hidden in pattern[:9]]
    every = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 9)
    moved = every @ task.cells.matrix.T.toarray()
    open_ = moved[(moved[:, ~pattern] == 0).all(axis=1)]
    inside = (open_ >= -task.cells.values).all(axis=1)
    return open_[inside], open_


@pytest.mark.parametrize("seed", range(12))
def test_what_insiders_can_and_cannot_work_out(seed):
    task, pattern, singletons = a_task(seed)
    insiders = Insiders(task, singletons)
    primaries = task.required.cells
    possible, unbounded = deviations(task, pattern)
    seen = np.zeros_like(singletons)
    for insider in insiders.of(pattern):
        own = insider.own
        assert not (own & ~singletons).any()
        assert not (seen & own).any()
        seen |= own
        hidden = insiders.hidden(insider, pattern)
        kept = possible[(possible[:, own] == 0).all(axis=1)]
        # What is shown by small steps is possible; all that is possible is not tied.
        moves = (kept[:, primaries] != 0).any(axis=0)
        free = unbounded[(unbounded[:, own] == 0).all(axis=1)]
        tied = insiders.tied(insider, pattern)
        ever = (free != 0).any(axis=0)
        assert not ever[tied].any()
        others = primaries[pattern[primaries] & ~own[primaries]]
        assert set(others[~ever[others]]) == set(tied)
        assert not (hidden & ~moves).any()
    assert not (pattern & singletons & ~seen).any()


def test_an_insider_knows_all_cells_that_are_nested():
    task, pattern, _ = a_task(3)
    singletons = np.zeros_like(pattern)
    singletons[[0, 9]] = True  # a cell, and the total of its row
    (insider,) = Insiders(task, singletons).of(pattern | singletons)
    assert np.flatnonzero(insider.own).tolist() == [0, 9]
