"""Small and directly disclosive cells: by hand, from the definition, in words of who
knows whom, and lazily."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import taciturn as tc
from strategies import tables
from taciturn.errors import ParameterError, TableError

TABLE = xr.DataArray([[2, 0, 0], [3, 1, 0], [4, 4, 4]], dims=("region", "health"))
small, disclosive = tc.risk.small_cell_share, tc.risk.disclosive_cell_share


def test_by_hand():
    assert float(small(TABLE)) == 2 / 9
    assert float(small(TABLE, minimum=4)) == 3 / 9
    assert small(TABLE, dim="health").values.tolist() == [1 / 3, 1 / 3, 0]
    shares = [float(9 * disclosive(TABLE, coalition=k, sensitive="health")) for k in range(9)]
    # Region 1 from outside; the 3 once the single one asks, who in turn is left over
    # for the three; in region 3 two thirds have to know each other.
    assert shares == pytest.approx([1, 2, 2, 3, 3, 3, 3, 3, 6])
    # The last category has people in one region only.
    assert float(disclosive(TABLE, coalition=0)) == 2 / 9
    # Over the regions, the single one is found by the four of region 3.
    assert float(disclosive(TABLE, coalition=4, sensitive="region")) == 3 / 9


def test_structural_zeros_are_no_cells():
    where = (TABLE > 0) | (xr.DataArray([0, 1, 2], dims="health") < 1)
    cells = int(where.sum())
    assert float(small(TABLE, where=where)) == 2 / cells
    # The one of region 2 finds the 3 of it, and the 4 of the same category. Without
    # structural zeros an outsider finds two cells, each now the only one of its line.
    assert float(disclosive(TABLE, coalition=1, where=where)) == 2 / cells
    assert float(disclosive(TABLE, coalition=0, where=where)) == 0
    # Who is in region 1 is in its only cell, as everybody knows.
    alone = (TABLE > 0) | (xr.DataArray([1, 2, 2], dims="region") > 1)
    assert float(9 * disclosive(TABLE, coalition=0, sensitive="health")) == 1
    assert float(disclosive(TABLE, coalition=0, sensitive="health", where=alone)) == 0
    one = xr.DataArray([[2], [3]], dims=("region", "health"))
    assert float(disclosive(one, coalition=0, sensitive="health")) == 0
    empty = xr.DataArray([[False, False], [True, True]], dims=("a", "b"))
    found = small(xr.DataArray([[0, 0], [1, 5]], dims=("a", "b")), dim="b", where=empty)
    assert np.isnan(found[0])
    assert float(found[1]) == 0.5


def learns(line, at, k):
    """Whether some of the people in a line, at most k, can conclude that all others, at
    least one, are in one cell, of several: they subtract themselves and see who is
    left."""
    if len(line) < 2:
        return False
    for known in product(*(range(count + 1) for count in line)):
        left = np.subtract(line, known)
        if sum(known) <= k and left[at] > 0 and left.sum() == left[at]:
            return True
    return False


@given(tables(max_count=3), st.integers(0, 4), st.data())
def test_coalitions_one_by_one(table, k, data):
    names = list(table.dims)
    sensitive = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    open_cells = data.draw(hnp.arrays(bool, table.shape))
    where = (table > 0) | open_cells
    hits = 0
    for position in np.argwhere(where.values).tolist():
        lines = []
        for dim in sensitive:
            axis = names.index(dim)
            index = tuple(slice(None) if i == axis else at for i, at in enumerate(position))
            line, cells = table.values[index], where.values[index]
            lines.append((line[cells].tolist(), int(cells[: position[axis]].sum())))
        hits += any(learns(line, at, k) for line, at in lines)
    found = disclosive(table, coalition=k, sensitive=sensitive, where=where)
    assert float(found) == hits / int(where.sum())
    assert float(small(table, minimum=2)) == (table.values == 1).sum() / table.size


@given(tables(draw_dims=("chain", "draw")), st.integers(0, 5))
def test_draws_lazy_and_one_at_a_time(table, k):
    for measure in (
        small,
        lambda each: small(each, dim=each.dims[-1]),
        lambda each: disclosive(each, coalition=k),
    ):
        eager, lazy = measure(table), measure(table.chunk(draw=1))
        assert lazy.chunks is not None
        xr.testing.assert_identical(lazy.compute(scheduler="synchronous"), eager)
        xr.testing.assert_identical(
            measure(table[-1, -1].drop_vars(["chain", "draw"])),
            eager[-1, -1].drop_vars(["chain", "draw"]),
        )
    assert (disclosive(table, coalition=k) <= disclosive(table, coalition=k + 1)).all()


def test_bad_input():
    for wrong in (1, 2.5, "3"):
        with pytest.raises(ParameterError, match="minimum must be"):
            small(TABLE, minimum=wrong)
    with pytest.raises(ParameterError, match="coalition must be"):
        disclosive(TABLE, coalition=-1)
    for wrong in ("sex", [], ["health", "sex"]):
        with pytest.raises(ParameterError, match="sensitive must name variables of the table"):
            disclosive(TABLE, sensitive=wrong)
    with pytest.raises(TableError, match="leaves out a cell with a positive count"):
        small(TABLE, where=TABLE > 2)
    with pytest.raises(TableError, match="must be whole numbers"):
        small(TABLE + 0.5)
    draws = (TABLE - 1).expand_dims(chain=1, draw=2).chunk()
    with pytest.raises(TableError, match="negative"):
        disclosive(draws).compute(scheduler="synchronous")


def test_a_lazy_table_does_not_have_people_outside_where():
    table = xr.DataArray([1, 1, 1, 5], dims="x")
    where = xr.DataArray([False, True, True, True], dims="x")
    for share in (tc.risk.small_cell_share, tc.risk.disclosive_cell_share):
        for counts in (table, table.chunk()):
            with pytest.raises(TableError, match="where leaves out a cell with a positive count"):
                share(counts, where=where).compute()
