"""Attacks on patterns by linear and integer programs, held against exact bounds."""

import numpy as np
import pytest
import xarray as xr

from taciturn.suppression.arguments import (
    checked_cells,
    checked_costs,
    checked_knowledge,
    checked_required,
)
from taciturn.suppression.attacks import Attacks
from taciturn.suppression.cheapest import PatternProgram
from taciturn.suppression.deviations import DeviationSearch
from taciturn.suppression.insiders import Insiders
from taciturn.suppression.reach import Reach
from taciturn.suppression.search import PatternSearch
from taciturn.suppression.task import Task

ENDLESS = np.inf


def a_task(seed, shape=(4, 4, 3), risk=0.6, largest=12):
    rng = np.random.default_rng(seed)
    table = xr.DataArray(rng.integers(0, largest, shape), dims=tuple("abc"[: len(shape)]))
    margins = [tuple(table.dims), *[tuple(d for d in table.dims if d != out) for out in table.dims]]
    cells = checked_cells(table, margins, 0)
    flags = np.zeros(len(cells.values), dtype=bool)
    inner = cells.inner
    flags[inner[(table.values.ravel() > 0) & (table.values.ravel() < 4)]] = True
    required = checked_required(flags, risk, cells)
    costs = checked_costs(None, cells)
    known = checked_knowledge(None, cells, required, costs)
    return Task(cells, costs, required.within(known), known)


def exact(task, pattern):
    """What an attacker can work out, by the bounds of each cell."""
    lower, upper = task.deviations(task.cells.system(pattern), task.primaries)
    return task.required.met(lower, upper)


def patterns_of(task, seed, number=6):
    rng = np.random.default_rng(seed)
    for share in np.linspace(0.1, 0.9, number):
        yield task.primaries | (rng.random(len(task.costs)) < share)


@pytest.mark.parametrize("seed", range(6))
def test_a_pattern_protects_if_and_only_if_exact_bounds_say_so(seed):
    task = a_task(seed)
    attacks = Attacks(task, np.random.default_rng(0))
    answers = set()
    for pattern in patterns_of(task, seed):
        reach = attacks.proof(pattern, deadline=ENDLESS)
        protects = bool(exact(task, pattern).all())
        assert (reach is not None) == protects
        answers.add(protects)
        if reach is not None:
            # Each of these tables is possible, and they show what is claimed.
            low, high = task.witnessed(task.cells.system(pattern), reach.witnesses)
            assert task.required.met(low, high).all()
    assert seed or answers == {True, False}


@pytest.mark.parametrize("seed", range(6))
def test_what_many_at_once_leave_contains_all_that_is_not_protected(seed):
    task = a_task(seed, shape=(5, 5))  # where real numbers allow no more than whole ones
    attacks = Attacks(task, np.random.default_rng(0))
    for pattern in patterns_of(task, seed):
        met = exact(task, pattern)
        left = attacks.left(pattern.astype(float), deadline=ENDLESS)
        assert set(left) >= set(np.flatnonzero(~met))
        reach = Reach(task.required)
        attacks.settle(pattern, reach, deadline=ENDLESS, whole=True)
        assert not (reach.met() & ~met).any()


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_is_below_the_cheapest_pattern_and_leads_to_the_first(seed):
    task = a_task(seed, shape=(5, 5))
    nobody = np.zeros(len(task.costs), dtype=bool)
    search = PatternSearch(task, np.random.default_rng(seed), nobody, deadline=ENDLESS)
    search.first(lambda: None)
    bound, first = search.found.bound, search.task.cost(search.found.pattern)
    search.cheapest(0.0)
    least = search.task.cost(search.found.pattern)
    assert search.found.bound == least
    assert bound <= least + 1e-6 * least
    assert least <= first
    assert exact(task, search.found.pattern).all()


def test_what_is_found_in_real_numbers_is_proved_in_whole_ones():
    """Whatever linear programs end in, whole tables prove what is claimed."""
    task = a_task(3, shape=(3, 3, 3), largest=6)
    done = DeviationSearch(task, np.random.default_rng(0)).complete(
        task.primaries, task.required.by_need(), deadline=ENDLESS
    )
    low, high = task.witnessed(task.cells.system(done.pattern), done.reach.witnesses)
    assert task.required.met(low, high).all()
    assert exact(task, done.pattern).all()


def test_reach_leaves_to_one_side_what_the_other_is_short_of():
    table = xr.DataArray([[9, 9], [9, 9]], dims=("a", "b"))
    cells = checked_cells(table, None, 0)
    flags = np.zeros(len(cells.values), dtype=bool)
    flags[0] = True
    reach = Reach(checked_required(flags, 1 / np.log2(6), cells))  # a width of 5
    assert [side.tolist() for side in reach.goals()] == [[5.0], [5.0]]
    reach.widen(np.array([2.0]))
    assert [side.tolist() for side in reach.goals()] == [[5.0], [3.0]]
    reach.widen(np.array([-3.0]))
    assert [side.tolist() for side in reach.goals()] == [[0.0], [0.0]]
    assert reach.open_sides == 0
    assert reach.enough(0)


@pytest.mark.parametrize("seed", range(8))
def test_no_cell_of_a_cheapest_pattern_is_left_out(seed):
    """Reduced costs belong to the relaxation, whatever integer programs raise the bound
    to."""
    task = a_task(seed, shape=(4, 4))
    nobody = np.zeros(len(task.costs), dtype=bool)
    program = PatternProgram(task, Insiders(task, nobody), np.random.default_rng(0))
    program.relax(deadline=ENDLESS)
    while True:
        pattern = program.next_pattern(deadline=ENDLESS)
        if program.proof(pattern, deadline=ENDLESS) is not None:
            break
        program.relax(deadline=ENDLESS)
    candidates = program.candidates
    program.leave_out(task.cost(pattern))
    assert program.candidates <= candidates
    # The pattern can still be chosen, and nothing cheaper or else protects.
    chosen, protects = program.among(pattern, deadline=ENDLESS)
    assert protects
    np.testing.assert_array_equal(chosen, pattern)
