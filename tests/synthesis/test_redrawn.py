"""Tables redrawn with the margins of the true one: every table that has them listed,
with its probability."""

from math import factorial, prod

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from exact import assert_same_distribution
from strategies import tables
from taciturn.errors import ParameterError, PerturbationError, TableError
from taciturn.synthesis import redraw_table

DRAWS = 20_000


def compositions(total, cells):
    """All tables of so many individuals in so many cells."""
    if cells == 1:
        return [(total,)]
    return [(k, *rest) for k in range(total + 1) for rest in compositions(total - k, cells - 1)]


def listed(table, keep, distribution, zeros=None):
    """Probability of every table with these margins, by flat counts."""
    cells = np.array(compositions(int(table.sum()), table.size))
    shaped = cells.reshape(-1, *table.shape)
    fits = np.ones(len(cells), dtype=bool)
    if zeros is not None:
        fits &= (shaped[:, zeros.values] == 0).all(axis=1)
    for names in keep:
        away = tuple(table.get_axis_num(d) for d in table.dims if d not in names)
        wanted = table.values.sum(axis=away)
        margin = shaped.sum(axis=tuple(axis + 1 for axis in away))
        fits &= (margin == wanted).reshape(len(cells), -1).all(axis=1)
    found = {
        tuple(row): 1 / prod(map(factorial, row)) if distribution == "exact" else 1.0
        for row in cells[fits].tolist()
    }
    return {row: weight / sum(found.values()) for row, weight in found.items()}


TWO = xr.DataArray([[1, 2, 0], [2, 0, 1]], dims=("a", "b"))
THREE = xr.DataArray([[[1, 0], [2, 1]], [[0, 1], [1, 1]]], dims=("a", "b", "c"))
ZEROS = xr.DataArray([[False, False, True], [False, False, False]], dims=("a", "b"))


@pytest.mark.parametrize("distribution", ["exact", "uniform"])
@pytest.mark.parametrize(
    ("table", "keep", "zeros"),
    [
        (TWO, [("a",), ("b",)], None),
        (TWO, [("b",)], None),
        (TWO, [()], ZEROS),
        (THREE, [("a", "c"), ("c", "b")], None),
        (THREE, [("a",), ("c", "b")], None),
        (THREE, [("a", "b"), ("a", "c"), ("b", "c")], None),
        (THREE, [("a",), ("b",), ("c",)], None),
    ],
)
def test_each_table_with_its_probability(table, keep, zeros, distribution):
    drawn = redraw_table(
        table,
        keep=keep,
        distribution=distribution,
        structural_zeros=zeros,
        replicates=DRAWS,
        random_seed=1,
        progressbar=False,
    )
    assert drawn.dims == ("replicate", *table.dims)
    expected = listed(table, keep, distribution, zeros)
    assert_same_distribution(drawn.values.reshape(DRAWS, -1), expected)


@pytest.mark.parametrize("distribution", ["exact", "uniform"])
@given(
    table=tables(shape=st.sampled_from([(2, 2), (2, 3), (2, 2, 2)]), max_count=2), data=st.data()
)
def test_a_table_that_its_margins_determine_is_not_released(distribution, table, data):
    """Whenever the list of all tables with these margins has one."""
    pairs = {2: [[("x",), ("y",)], [("x",)]], 3: [[("x", "y"), ("y", "z")], [("x",), ("y", "z")]]}
    table = table.rename(dict(zip(table.dims, "xyz", strict=False)))
    keep = data.draw(st.sampled_from(pairs[table.ndim]))
    zeros = (table == 0) if data.draw(st.booleans()) else None
    arguments = {"keep": keep, "distribution": distribution, "structural_zeros": zeros}
    arguments |= {"random_seed": 1, "progressbar": False}
    if len(listed(table, keep, distribution, zeros)) > 1:
        assert redraw_table(table, **arguments).sum() == table.sum()
    else:
        with pytest.raises(PerturbationError, match="leave one table"):
            redraw_table(table, **arguments)


def test_more_individuals_than_can_be_multiplied():
    """Products of totals end at 2**63; beyond it SciPy would end the process."""
    most = 3_037_000_499
    assert most**2 < 2**63 <= (most + 1) ** 2
    table = xr.DataArray([[1, most // 2], [most // 2, most - 2 * (most // 2) - 1]], dims=("a", "b"))
    assert int(table.sum()) == most
    drawn = redraw_table(table, keep=["a", "b"], replicates=5, random_seed=1)
    assert (drawn.sum("a") == table.sum("a")).all()
    assert (drawn >= 0).all()
    for more in (1, 2**40):
        with pytest.raises(ParameterError, match="at most 3,037,000,499 individuals"):
            redraw_table(table + more * (table > 1), keep=["a", "b"])
    parts = xr.concat([table, table], "c")
    drawn = redraw_table(parts, keep=[("a", "c"), ("b", "c")], random_seed=1)
    assert int(drawn.sum()) == 2 * most


@pytest.mark.parametrize("distribution", ["exact", "uniform"])
def test_only_the_margins_matter(distribution):
    """Another table with the same margins gives the same releases: nothing else of the
    true table is in them. The uniform ones are from a walk."""
    table = tc.load_dataset("area_by_sex")
    given = {"keep": ["area", "sex"], "distribution": distribution, "progressbar": False}
    first = redraw_table(table, replicates=3, random_seed=1, **given)
    other = redraw_table(table, random_seed=5, **given)[0].drop_vars("replicate")
    assert not (other == table).all()
    xr.testing.assert_identical(redraw_table(other, replicates=3, random_seed=1, **given), first)
    for names in ("area", "sex"):
        assert (first.sum(names) == table.sum(names)).all()
    assert first.dtype == np.int64


def test_a_seed_is_marked():
    assert "not_for_release" in redraw_table(TWO, keep=["a", "b"], random_seed=1).attrs
    assert redraw_table(TWO, keep=["a", "b"]).attrs == {}


def test_levels_can_be_kept():
    table = TWO.assign_coords(b=["x", "y", "z"], group=("b", ["low", "low", "high"]))
    drawn = redraw_table(
        table, keep=[("a", "group")], replicates=50, random_seed=1, progressbar=False
    )
    high = drawn.sel(b="z")
    assert (high == table.sel(b="z")).all()  # alone in its group
    assert (drawn.sel(b=["x", "y"]).sum("b") == table.sel(b=["x", "y"]).sum("b")).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"keep": []}, ParameterError, "keep must name a margin"),
        ({"keep": [("a", "b")]}, ParameterError, "names the whole table"),
        ({"keep": ["c"]}, ParameterError, "keep must name variables"),
        ({"distribution": "any"}, ParameterError, "distribution must be one of"),
        ({"replicates": 0}, ParameterError, "replicates must be"),
        ({"structural_zeros": ZEROS.astype(int)}, TableError, "must be a DataArray of bool"),
        ({"structural_zeros": TWO > 1}, TableError, "somebody is in a=0, b=1"),
    ],
)
def test_what_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        redraw_table(TWO, **{"keep": ["a", "b"], **change})
