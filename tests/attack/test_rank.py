"""Rank of linked tables: the published example, every pattern of it, and dense
twins."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError, TableError

SIZES = {"activity": 3, "size": 4, "region": 3}
AS, AR, SR = ("activity", "size"), ("activity", "region"), ("size", "region")
CUBE = xr.DataArray(np.ones((3, 4, 3), dtype=int), dims=list(SIZES))


@pytest.mark.parametrize(
    ("projections", "rank", "rows"),
    [([AS], 12, 12), ([AS, AR], 12 + 9 - 3, 21), ([AS, AR, SR], 24, 33)],
)
def test_published_ranks(projections, rank, rows):
    found = tc.attack.constraint_rank(projections, sizes=SIZES)
    assert (found.rank, found.rows) == (rank, rows)
    assert len(found.dependent) == len(set(found.dependent)) == rows - rank
    assert tc.attack.constraint_rank(tc.LinkedTables(CUBE, projections)) == found


def test_dependent_equations_can_be_left_out_together():
    release = tc.LinkedTables(CUBE, [AS, AR, SR])
    system = release.system
    dependent = tc.attack.constraint_rank(release).dependent
    assert len(dependent) == 3 + 4 + 3 - 1
    kept = [row for row in range(33) if system.row_label(row) not in dependent]
    assert np.linalg.matrix_rank(system.matrix.toarray()[kept]) == 24


def corners(names, other):
    """Suppress the first cell of a projection, and those that protect it in the row and
    column of another one."""
    mask = np.zeros([SIZES[name] for name in names], dtype=bool)
    mask[np.ix_([0, other[0]], [0, other[1]])] = True
    return xr.DataArray(mask, dims=names)


def decreases(projections, totals=()):
    release = tc.LinkedTables(CUBE, [*projections, *totals])
    choices = [
        product(range(1, SIZES[first]), range(1, SIZES[second])) for first, second in projections
    ]
    return {
        chosen: tc.attack.rank_decrease(
            release,
            {
                names: corners(names, other)
                for names, other in zip(projections, chosen, strict=True)
            },
        )
        for chosen in product(*choices)
    }


def test_three_linked_tables_over_all_secondary_suppressions():
    found = decreases([AS, AR, SR])
    assert len(found) == 144
    # The published pattern: a3, s3 in the first table, a2, r3 in the second, s4, r2 in
    # the third.
    assert found[(2, 2), (1, 2), (3, 1)] == 4
    assert (min(found.values()), max(found.values())) == (4, 7)
    best = {chosen for chosen, decrease in found.items() if decrease == 7}
    same = {((a, s), (a, r), (s, r)) for a in (1, 2) for s in (1, 2, 3) for r in (1, 2)}
    assert best == same  # Propositions 2 and 3


def test_with_the_totals_of_each_variable_published_all_secondary_suppressions_are_alike():
    found = decreases([AS, AR, SR], totals=SIZES)
    assert Counter(found.values()) == {3: 144}


def test_bounds_do_not_depend_on_shared_rows_and_columns():
    """With totals published, the first cell of a table is bounded by its own four
    suppressed cells alone."""
    cube = CUBE.copy(data=np.random.default_rng(0).integers(2, 9, CUBE.shape))
    first = corners(AS, (1, 1)) & (np.arange(12).reshape(3, 4) == 0)
    seen = set()
    for by_region in product(product((1, 2), (1, 2)), product((1, 2, 3), (1, 2))):
        hidden = {
            names: corners(names, chosen) for names, chosen in zip([AR, SR], by_region, strict=True)
        }
        release = tc.LinkedTables(
            cube, [AS, AR, SR, *SIZES], suppressed={AS: corners(AS, (1, 1)), **hidden}
        )
        bounds = tc.attacker_bounds(release, margin=AS, cells=first, progressbar=False)
        seen.add((float(bounds["lower"][0, 0]), float(bounds["upper"][0, 0])))
    assert len(seen) == 1


def test_two_linked_tables_over_all_secondary_suppressions():
    found = decreases([AS, AR])
    assert Counter(found.values()) == {6: 12, 5: 12}
    assert all(
        (decrease == 6) == (first[0] == second[0]) for (first, second), decrease in found.items()
    )


def test_further_suppressions_add_to_those_of_the_release():
    before = tc.LinkedTables(CUBE, [AS, AR], suppressed={AS: corners(AS, (1, 1))})
    everything = tc.LinkedTables(CUBE, [AS, AR])
    both = {AS: corners(AS, (1, 1)), AR: corners(AR, (1, 1))}
    first = tc.attack.rank_decrease(everything, {AS: both[AS]})
    assert (
        first + tc.attack.rank_decrease(before, {AR: both[AR]})
        == tc.attack.rank_decrease(everything, both)
        == 6
    )
    assert tc.attack.rank_decrease(before, {("size", "activity"): both[AS]}) == 0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_rank_is_that_of_the_dense_matrix(data):
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    table = xr.DataArray(np.ones(shape, dtype=int), dims=("a", "b", "c"))
    every = [(), ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
    margins = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=4))
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    masks = {}
    for names in margins:
        if names:
            total = table.sum([dim for dim in table.dims if dim not in names])
            masks[names] = total.copy(data=rng.random(total.shape) < 0.3)
    for release in (
        tc.LinkedTables(table, margins, suppressed=masks),
        tc.Suppression(table, table.copy(data=rng.random(shape) < 0.6), totals=margins),
    ):
        matrix = release.system.matrix.toarray()
        expected = np.linalg.matrix_rank(matrix) if matrix.size else 0
        found = tc.attack.constraint_rank(release)
        assert found.rank == expected
        assert found.rows == len(matrix)
        assert len(found.dependent) == found.rows - found.rank


def test_a_large_system():
    sizes = {"a": 40, "b": 50, "c": 50}
    found = tc.attack.constraint_rank([("a", "b"), ("a", "c"), ("b", "c")], sizes=sizes)
    assert found.rank == 1 + 39 + 49 + 49 + 39 * 49 + 39 * 49 + 49 * 49
    assert found.rows == 2000 + 2000 + 2500


def test_bad_input():
    with pytest.raises(ParameterError, match="sizes must give the number of categories"):
        tc.attack.constraint_rank([AS])
    with pytest.raises(ParameterError, match="a release has its own"):
        tc.attack.constraint_rank(tc.LinkedTables(CUBE, [AS]), sizes=SIZES)
    with pytest.raises(
        ParameterError, match=r"sizes\['activity'\] must be a whole number of at least 1, got 0"
    ):
        tc.attack.constraint_rank([AS], sizes={"activity": 0, "size": 2})
    with pytest.raises(ParameterError, match="variables of the table"):
        tc.attack.constraint_rank([("activity", "age")], sizes=SIZES)
    with pytest.raises(ParameterError, match="must be a LinkedTables, got Suppression"):
        tc.attack.rank_decrease(tc.Suppression(CUBE, CUBE > 2), {})
    with pytest.raises(ParameterError, match="released projections"):
        tc.attack.rank_decrease(tc.LinkedTables(CUBE, [AS]), {AR: corners(AR, (1, 1))})
    with pytest.raises(TableError, match="must have the sizes"):
        tc.attack.rank_decrease(tc.LinkedTables(CUBE, [AS]), {AS: corners(AR, (1, 1))})
