"""Whole-number deviations: all of them, and none else."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from taciturn.attack.free_columns import lattice_of


def solutions(sums, within):
    """All whole numbers from -within to within for which the sums are 0."""
    columns = sums.shape[1]
    return [
        np.array(each)
        for each in product(range(-within, within + 1), repeat=columns)
        if not (sums @ np.array(each)).any()
    ]


@pytest.mark.parametrize("seed", range(20))
def test_free_columns_determine_all_whole_solutions(seed):
    rng = np.random.default_rng(seed)
    sums = rng.integers(-1, 2, size=(rng.integers(1, 5), 6))
    lattice = lattice_of(csr_array(sums))
    free = np.flatnonzero(lattice.free)
    found = solutions(sums, 2)
    # Taken for halves, those that are whole in the free columns are whole everywhere.
    for each in found:
        assert (each[free] % 2).any() or not (each % 2).any()
    if lattice.basis is None:
        return
    assert not (sums @ lattice.basis).any()
    for each in found:
        np.testing.assert_array_equal(lattice.basis @ each[free], each)
    assert np.linalg.matrix_rank(sums) == sums.shape[1] - len(free)


def test_sums_that_allow_even_numbers_only_leave_a_tie():
    """a + b = a + c = b + c = 0 for halves, and 2 a = 0 remains of them."""
    sums = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 2]])
    lattice = lattice_of(csr_array(sums))
    assert lattice.basis is None or not (sums @ lattice.basis).any()
    assert len(solutions(sums, 2)) > 1
    odd = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    assert lattice_of(csr_array(odd)).basis is None


def test_nothing_published_leaves_everything_free():
    lattice = lattice_of(csr_array((0, 3)))
    assert lattice.free.all()
    np.testing.assert_array_equal(lattice.basis, np.eye(3))


def test_a_published_cell_is_not_free():
    lattice = lattice_of(csr_array(np.array([[1, 0], [0, 0]])))
    assert lattice.free.tolist() == [False, True]
    np.testing.assert_array_equal(lattice.basis, [[0], [1]])
