"""Bounds by multipliers and tables by branching, against enumeration."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from taciturn.attack.bounds.branching import whole_table
from taciturn.attack.bounds.certificates import Rows
from taciturn.attack.solver import Program

# Each two of three cells have a total: their solution is in halves if all are odd.
PAIRS = csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))


def system(seed):
    """Rows over six cells, and all the tables within them."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(0, 2, (4, 6))
    upper = generator.integers(1, 5, 6)
    every = np.stack(np.meshgrid(*(np.arange(most + 1) for most in upper)), -1).reshape(-1, 6)
    sums = matrix @ every[generator.integers(len(every))]
    wide = generator.integers(0, 2, 4)
    rows = Rows(csr_array(matrix), sums - wide, sums + wide)
    fits = ((every @ matrix.T >= rows.least) & (every @ matrix.T <= rows.most)).all(axis=1)
    return rows, np.zeros(6, dtype=np.int64), upper, every[fits]


def program_of(rows, lower, upper):
    return Program(rows.matrix, rows.least, rows.most, lower, upper)


@pytest.mark.parametrize("seed", range(25))
def test_no_multipliers_give_a_bound_that_a_table_exceeds(seed):
    rows, lower, upper, tables = system(seed)
    generator = np.random.default_rng(100 + seed)
    program = program_of(rows, lower, upper)
    for _ in range(8):
        costs = generator.integers(-2, 3, 6)
        solved = program.solve(-costs)
        most, goal = (tables @ costs).max(), int(np.floor(-solved.objective + 1e-6))
        exact = rows.ceiling(costs, lower, upper, -solved.duals, goal=goal)
        assert most <= exact == goal
        for size in (1e-9, 1e-3, 1, 1e3):
            off = -solved.duals + size * generator.normal(size=4)
            ceiling = rows.ceiling(costs, lower, upper, off, goal=goal)
            assert ceiling >= most
            assert size > 1e-8 or ceiling == goal


def test_sums_are_exact_where_numbers_are_large():
    rows = Rows(csr_array(np.array([[1, 1]])), np.array([2**60 - 1]), np.array([2**60 - 1]))
    lower, upper = np.array([0, 1]), np.array([2**60, 2**60])
    costs = np.array([1, 0])
    assert rows.ceiling(costs, lower, upper, np.array([1.0]), goal=0) == 2**60 - 2
    # Multipliers this large would not be: nothing is said.
    assert rows.ceiling(costs, lower, upper, np.array([1e30]), goal=0) is None


def test_multipliers_are_rounded_to_thirds_or_to_anything():
    matrix = csr_array(np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]))
    rows = Rows(matrix, np.full(4, 10**9 - 1), np.full(4, 10**9 - 1))
    lower, upper = np.zeros(4, dtype=np.int64), np.full(4, 10**9)
    costs = np.ones(4, dtype=np.int64)
    third = np.full(4, 1 / 3)
    assert rows.ceiling(costs, lower, upper, third, goal=0) == 4 * (10**9 - 1) // 3
    # Four cells of up to 10**9, and multipliers off by up to 2**-47.
    seventeenth = np.full(4, 1 / 17)
    expected = 4 * (10**9 - 1) / 17 + 4 * 10**9 * 14 / 17
    assert rows.ceiling(costs, lower, upper, seventeenth, goal=0) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("thorough", [True, False])
def test_branching_finds_a_table_or_proves_that_there_is_none(seed, thorough):
    rows, lower, upper, tables = system(seed)
    generator = np.random.default_rng(seed)
    program = program_of(rows, lower, upper)
    for cell in range(6):
        for value in range(upper[cell] + 1):
            low, high = lower.copy(), upper.copy()
            low[cell] = high[cell] = value
            table, none = whole_table(
                program,
                rows,
                low,
                high,
                generator.normal(size=6),
                generator=generator,
                thorough=thorough,
                deadline=np.inf,
            )
            there = (tables[:, cell] == value).any()
            assert (table is not None) == there
            assert none == (thorough and not there)
            assert table is None or (tables == table).all(axis=1).any()


def test_a_solution_in_halves_only_is_none():
    rows = Rows(PAIRS, np.array([1, 1, 1]), np.array([1, 1, 1]))
    bounds = np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
    program = program_of(rows, *bounds)
    assert program.solve(np.zeros(3)).values.tolist() == [0.5, 0.5, 0.5]
    generator = np.random.default_rng(0)
    options = {"generator": generator, "thorough": True, "deadline": np.inf}
    assert whole_table(program, rows, *bounds, np.zeros(3), **options) == (None, True)


def test_what_is_not_proved_is_not_ruled_out():
    rows = Rows(PAIRS, np.array([1, 1, 3]), np.array([1, 1, 3]))
    bounds = np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
    assert rows.rule_out(*bounds, np.array([0.0, 0.0, 1.0]))
    assert rows.rule_out(*bounds, np.array([0.0, 0.0, -1.0]))
    assert not rows.rule_out(*bounds, np.array([1.0, 0.0, 0.0]))
    assert not rows.rule_out(*bounds, None)
