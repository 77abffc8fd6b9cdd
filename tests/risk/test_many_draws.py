"""Many draws against one release go through a lookup of counts; the numbers are those
of one draw at a time."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.information.kernels import pair_sums

RNG = np.random.default_rng(5)


def draws(rows: int) -> xr.DataArray:
    """Tables of 6 cells and 40 individuals; the counts of late rows are beyond those of
    the first ones."""
    even = RNG.multinomial(40, np.full(6, 1 / 6), size=rows)
    even[-1] = [40, 0, 0, 0, 0, 0]
    even[-2] = [0, 39, 1, 0, 0, 0]
    return xr.DataArray(even.reshape(rows, 2, 3), dims=("draw", "a", "b"))


@pytest.mark.parametrize(
    "release", [[1, 0, 2, 0, 5, 1], [4, 4, 4, 4, 4, 4], [0, 0, 0, 0, 0, 3], [80, 0, 0, 0, 0, 0]]
)
@pytest.mark.parametrize("masked", [False, True])
def test_lookup_gives_what_single_tables_give(release, masked):
    released = xr.DataArray(np.reshape(release, (2, 3)), dims=("a", "b"))
    population = draws(2000)
    where = None
    if masked:
        where = released.copy(data=np.ones((2, 3), dtype=bool))
        where[1, 0] = False
        population[:, 0, 0] += population[:, 1, 0]
        population[:, 1, 0] = 0
        released[1, 0] = 0
    together = tc.disclosure_risk(population, released, where=where)
    for row in [0, 1, 700, -2, -1]:
        alone = tc.disclosure_risk(population[row], released, where=where)
        for name in together.data_vars:
            assert float(together[name][row]) == pytest.approx(float(alone[name]), abs=1e-13), (
                name,
                row,
            )


def test_sums_do_not_depend_on_lookups():
    """To the last digit: numbers of many tables do not depend on their company. NumPy's
    logarithm of 9,170 is another than that of the compiled loops."""
    population = draws(2000).values.reshape(-1, 6)
    population[7] = [9_170, 0, 3, 1, 0, 0]
    population[3] = [2**21, 0, 3, 1, 0, 0]
    release, mask = np.array([1, 0, 2, 0, 5, 1]), np.ones(6, dtype=bool)
    looked_up = pair_sums(np.delete(population, 3, axis=0), release, mask, core=1)
    together = pair_sums(population, release, mask, core=1)
    alone = [pair_sums(row, release, mask, core=1) for row in population]
    assert np.array_equal(together, alone)
    assert np.array_equal(looked_up, np.delete(together, 3, axis=0))
    population = draws(2000).values.reshape(-1, 6)  # all of one total: terms are looked up
    alone = [pair_sums(row, release, mask, core=1) for row in population]
    assert np.array_equal(pair_sums(population, release, mask, core=1), alone)


def test_totals_that_differ_leave_the_lookup():
    population = draws(2000)
    population[1500, 0, 0] += 7
    released = xr.DataArray([[1, 0, 2], [0, 5, 1]], dims=("a", "b"))
    together, alone = (
        tc.disclosure_risk(population, released),
        tc.disclosure_risk(population[1500], released),
    )
    assert float(together.R2[1500]) == pytest.approx(float(alone.R2), abs=1e-13)


@pytest.mark.parametrize("bad", [-1, 2**53 + 1])
def test_a_bad_count_far_down_is_named(bad):
    population = draws(2000)
    population[1777, 1, 2] = bad
    with pytest.raises(tc.TaciturnError, match=rf"draw=1777, a=1, b=2 holds {bad}"):
        tc.disclosure_risk(population, xr.DataArray([[1, 0, 2], [0, 5, 1]], dims=("a", "b")))


def test_a_count_just_beyond_the_lookup():
    rows = np.random.default_rng(1).multinomial(40, np.full(6, 1 / 6), size=2000)
    edge = 2 * int(rows[:256].max()) + 1  # what is looked up is made of the first rows
    rows[-1] = [edge, 39 - edge, 1, 0, 0, 0]
    tables = xr.DataArray(rows.reshape(-1, 2, 3), dims=("draw", "a", "b"))
    release = xr.DataArray([[1, 0, 2], [0, 5, 1]], dims=("a", "b"))
    together = tc.disclosure_risk(tables, release).isel(draw=-1)
    alone = tc.disclosure_risk(tables[-1], release)
    for name in alone.data_vars:
        assert float(together[name]) == pytest.approx(float(alone[name]), abs=1e-13), name
