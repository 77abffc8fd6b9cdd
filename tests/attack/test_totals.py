"""Bounds of totals that a release does not show, held against enumeration of all
compatible tables."""

from itertools import combinations, product
from math import inf

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.errors import AttackError, ParameterError, TableError


def bounds_of(release, **arguments):
    return tc.attacker_bounds(release, progressbar=False, **arguments)


def interval(bounds, **cell):
    chosen = bounds.sel(cell)
    return float(chosen["lower"]), float(chosen["upper"])


MERGED = xr.DataArray(
    [
        [80, 253, 54, 0, 0],
        [641, 3694, 2062, 746, 0],
        [592, 150, 329, 1387, 1440],
        [57, 256, 946, 995, 2027],
        [78, 0, 890, 1719, 1743],
    ],
    dims=("activity", "size"),
    coords={"activity": ["2,3", "4", "5", "6", "7"], "size": [4, 5, 6, 7, 8]},
)
"""Table 1 of Oganian & Domingo-Ferrer (2003) with one of the possible values in each of
its suppressed cells."""


def test_totals_of_merged_rows():
    # Expressions (5): x6 + x12 = 8179, with x6 and x12 the sums of rows that do not
    # show.
    release = tc.GlobalRecoding(MERGED, {"activity": {"5,6": ["5", "6"]}})
    bounds = bounds_of(release, margin="activity")
    assert bounds["lower"].dims == ("activity",)
    assert interval(bounds, activity="5") == (0, 649 + 406 + 1275 + 2382 + 3467) == (0, 8179)
    assert interval(bounds, activity="6") == (0, 8179)
    assert bounds["published"].values.tolist() == [True, True, False, False, True]
    assert bounds["lower"].sel(activity=["2,3", "4", "7"]).values.tolist() == [387, 7143, 4430]
    assert bounds["disclosed"].values.tolist() == [True, True, False, False, True]


def test_a_suppressed_cell_of_a_released_projection():
    table = xr.DataArray([[[1, 2], [3, 0]], [[4, 1], [2, 2]]], dims=("a", "b", "c"))
    hidden = xr.DataArray([[True, False], [False, False]], dims=("a", "b"))
    pairs = tc.LinkedTables(table, [("a", "b"), ("a", "c")], suppressed={("a", "b"): hidden})
    bounds = bounds_of(pairs, margin=("a", "b"))
    # Both totals of a=0 over b and c are 4 + 2; the released cell a=0, b=1 holds 3, the
    # rest is a=0, b=0.
    assert interval(bounds, a=0, b=0) == (3, 3)
    assert bool(bounds["disclosed"].all())
    assert bounds["published"].values.tolist() == [[False, True], [True, True]]
    alone = tc.LinkedTables(table, [("a", "b")], suppressed={("a", "b"): hidden})
    assert interval(bounds_of(alone, margin=("a", "b")), a=0, b=0) == (0, inf)
    assert bounds_of(alone, margin=("b",))["lower"].values.tolist() == [5, 3 + 4]
    assert bounds_of(alone, margin=("b",))["upper"].values.tolist() == [inf, 3 + 4]


def test_totals_follow_from_finer_ones_and_are_not_published():
    table = xr.DataArray([[[1, 2], [3, 0]], [[4, 1], [2, 2]]], dims=("a", "b", "c"))
    bounds = bounds_of(tc.LinkedTables(table, [("a", "b")]), margin=())
    assert bounds["lower"].dims == ()
    assert float(bounds["lower"]) == float(bounds["upper"]) == 15
    assert bool(bounds["disclosed"])
    assert not bool(bounds["published"])


def test_variables_in_another_order():
    table = xr.DataArray([[[1, 2], [3, 0]], [[4, 1], [2, 2]]], dims=("a", "b", "c"))
    release = tc.LinkedTables(table, [("a", "b"), ("c",)])
    whole = bounds_of(release, margin=("c", "a", "b"))
    assert whole["upper"].dims == ("c", "a", "b")
    assert whole.identical(bounds_of(release).transpose("c", "a", "b"))
    assert bounds_of(release, margin=("c", "a")).identical(
        bounds_of(release, margin=("a", "c")).transpose("c", "a")
    )


def test_all_cells_as_a_released_projection():
    table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    release = tc.LinkedTables(
        table, [("a", "b"), "a"], suppressed={("b", "a"): (table == 1).transpose()}
    )
    bounds = bounds_of(release)
    assert bounds["published"].values.tolist() == [[True, False], [True, True]]
    assert interval(bounds, a=0, b=1) == (1, 1)


def test_what_suppression_publishes():
    table = xr.DataArray(np.arange(8).reshape(2, 2, 2), dims=("a", "b", "c"))
    hidden = table < 6
    everything = tc.Suppression(table, hidden)
    named = tc.Suppression(table, hidden, totals=[("a", "b"), "c"])
    for names in ["a", "b", "c", ("a", "b"), ("a", "c"), ()]:
        assert bool(bounds_of(everything, margin=names)["published"].all())
        bounds = bounds_of(named, margin=names)
        assert (bounds["published"] == (names in ("c", ("a", "b")))).all()
    assert (bounds_of(named)["published"] == ~hidden).all()
    assert bounds_of(named, margin="a")["disclosed"].all()  # sums of published ones
    # The cell at b=0 holds up to 4 + 5; of c=1 it holds 1 + 3 + 5 less what 0 + 1 and 2
    # + 3 allow others.
    assert interval(bounds_of(named, margin=("a", "c")), a=1, c=1) == (7 + 9 - 1 - 5, 7 + 9)


def test_a_level_with_a_group_for_each_category_is_published_with_its_variable():
    table = xr.DataArray([[1, 2], [3, 4]], dims=("a", "b"), coords={"L": ("b", ["u", "v"])})
    for totals in ([("a",)], True):
        release = tc.Suppression(table, table == 1, totals=totals)
        bounds = bounds_of(release, margin=("a", "L"))
        assert bounds["published"].values.tolist() == [[False, True], [True, True]]
        assert (bounds["disclosed"] & ~bounds["published"]).values.sum() == 1
    for totals, names in (("b", "L"), ("L", "b")):
        release = tc.Suppression(table, table == 1, totals=[totals])
        assert bounds_of(release, margin=names)["published"].all()
    wide = xr.DataArray([[1, 2, 5], [3, 4, 6]], dims=("a", "b"))
    wide = wide.assign_coords(L=("b", ["u", "v", "v"]))
    some = tc.Suppression(wide, wide == 2, totals=["b"])
    assert bounds_of(some, margin="L")["published"].values.tolist() == [True, False]
    groups = bounds_of(some, margin=("a", "L"))["published"].values.tolist()
    assert groups == [[True, False], [True, False]]  # v has sums, which nothing publishes
    # A suppressed cell that is published under another name is given away.
    bounds = bounds_of(tc.Suppression(table, table == 1, totals=[("a", "L")]))
    assert (bounds["disclosed"] & ~bounds["published"]).values.tolist() == [
        [True, False],
        [False, False],
    ]
    merged = table.assign_coords(L=("b", ["u", "u"]))
    release = tc.Suppression(merged, table == 1, totals=[("a",)])
    assert bounds_of(release, margin=("a", "L"))["published"].all()
    assert not bounds_of(release, margin="L")["published"].any()


def test_rounded_totals():
    released = xr.DataArray([[5, 5], [0, 10]], dims=("a", "b"))
    bounds = bounds_of(tc.Rounding(released, 5), margin="a")
    assert bounds["lower"].values.tolist() == [3 + 3, 0 + 8]
    assert bounds["upper"].values.tolist() == [7 + 7, 2 + 12]
    assert not bounds["published"].any()
    exact = tc.Rounding(released, 5, totals=[xr.DataArray([11, 9], dims="a")], exact_totals=True)
    bounds = bounds_of(exact, margin="a")
    assert bounds["lower"].values.tolist() == bounds["upper"].values.tolist() == [11, 9]
    assert bounds["published"].all()
    assert bounds_of(exact, margin="b")["lower"].values.tolist() == [
        11 - 7 + 0,
        11 - 7 + 9 - 1,
    ]  # 5: 3-7, 0: 0-2, 10: 8-9
    assert not bounds_of(exact, margin="b")["published"].any()


def test_some_totals_and_contributions():
    table = xr.DataArray([[[6, 4], [3, 7]], [[1, 1], [1, 1]]], dims=("a", "b", "c"))
    release = tc.LinkedTables(table, [("a", "b")])
    wanted = xr.DataArray([[True, False], [False, False]], dims=("a", "c"))
    bounds = bounds_of(release, margin=("a", "c"), cells=wanted)
    assert interval(bounds, a=0, c=0) == (0, 20)
    assert bounds["lower"].isnull().sum() == 3
    known = bounds_of(release, margin=("a", "c"), cells=wanted, knowledge={(0, 0, 0): 2})
    assert interval(known, a=0, c=0) == (2 + 3, 20)  # the cell holds 2 and more than 2


def test_decimals():
    table = xr.DataArray([[[0.5, 0.2], [0.1, 0.0]]], dims=("a", "b", "c"))
    bounds = bounds_of(tc.LinkedTables(table, [("a", "b")], decimals=1), margin="c")
    np.testing.assert_allclose(bounds["upper"], [0.8, 0.8])
    assert bounds["n_values"].values.tolist() == [9, 9]


EVERY = [names for size in range(4) for names in combinations("abc", size)]


def enumerated(values, released, hidden, asked):
    """Bounds of the asked totals over all non-negative whole tables with the released
    totals."""
    shape = values.shape
    axes = {
        names: tuple("abc".index(name) for name in "abc" if name not in names)
        for names in [*released, asked]
    }
    ranges = []
    unlimited = np.zeros(shape, dtype=bool)
    for place in np.ndindex(shape):
        most = [
            int(values.sum(axis=axes[names])[tuple(place["abc".index(name)] for name in names)])
            for names in released
            if not hidden[names][tuple(place["abc".index(name)] for name in names)]
        ]
        unlimited[place] = not most
        ranges.append(range(min(most) + 1 if most else 1))
    tables = np.array(list(product(*ranges))).reshape(-1, *shape)
    fits = np.ones(len(tables), dtype=bool)
    for names in released:
        within = tuple(axis + 1 for axis in axes[names])
        wrong = (tables.sum(axis=within) != values.sum(axis=axes[names])) & ~hidden[names]
        fits &= ~wrong.reshape(len(tables), -1).any(axis=1)
    totals = tables[fits].sum(axis=tuple(axis + 1 for axis in axes[asked]))
    high = np.where(unlimited.any(axis=axes[asked]), inf, totals.max(axis=0))
    return totals.min(axis=0), high


@settings(max_examples=30, deadline=None)
@given(data=st.data(), asked=st.sampled_from(EVERY))
def test_bounds_of_totals_are_those_of_enumeration(data, asked):
    shape = data.draw(st.sampled_from([(2, 2, 2), (1, 3, 2), (2, 1, 3)]))
    size = int(np.prod(shape))
    people = data.draw(st.lists(st.integers(0, size - 1), max_size=4))
    values = np.bincount(people, minlength=size).reshape(shape).astype(int)
    table = xr.DataArray(values, dims=tuple("abc"))
    released = data.draw(st.lists(st.sampled_from(EVERY[:-1]), unique=True, min_size=1, max_size=4))
    hidden, masks = {}, {}
    for names in released:
        total = table.sum([name for name in "abc" if name not in names])
        chosen = data.draw(st.lists(st.booleans(), min_size=total.size, max_size=total.size))
        hidden[names] = np.array(chosen).reshape(total.shape)
        masks[names] = total.copy(data=hidden[names])
    bounds = bounds_of(tc.LinkedTables(table, released, suppressed=masks), margin=asked)
    low, high = enumerated(values, released, hidden, asked)
    assert np.array_equal(bounds["lower"].values, low)
    assert np.array_equal(bounds["upper"].values, high)
    if asked in released:
        assert np.array_equal(bounds["published"].values, ~hidden[asked])
    assert bounds["disclosed"].where(bounds["published"], other=True).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data(), method=st.sampled_from(["conventional", "random"]), given_rows=st.booleans())
def test_totals_of_a_rounded_table_are_those_of_enumeration(data, method, given_rows):
    base = data.draw(st.integers(2, 3))
    true = np.array(data.draw(st.lists(st.integers(0, 5), min_size=6, max_size=6))).reshape(2, 3)
    released = base * (true // base + data.draw(st.integers(0, 1)) * (true % base > 0))
    if method == "conventional":
        released = base * ((2 * true + base) // (2 * base))

    def fits(value, published):
        low = published - (base / 2 if method == "conventional" else base)
        at_low = value >= low if method == "conventional" else value > low
        return at_low and value < 2 * published - low

    choices = [[value for value in range(12) if fits(value, cell)] for cell in released.ravel()]
    tables = np.array(list(product(*choices))).reshape(-1, 2, 3)
    if given_rows:
        tables = tables[(tables.sum(axis=2) == true.sum(axis=1)).all(axis=1)]
    totals = [xr.DataArray(true.sum(axis=1), dims="a")] if given_rows else False
    table = xr.DataArray(released, dims=("a", "b"))
    release = tc.Rounding(table, base, method=method, totals=totals, exact_totals=given_rows)
    for names, axes in {("a",): 2, ("b",): 1, (): (1, 2)}.items():
        bounds = bounds_of(release, margin=names)
        assert np.array_equal(bounds["lower"].values, tables.sum(axis=axes).min(axis=0))
        assert np.array_equal(bounds["upper"].values, tables.sum(axis=axes).max(axis=0))
        assert bool(bounds["published"].all()) == (given_rows and names == ("a",))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), asked=st.sampled_from([("a",), ("b",), ()]))
def test_contributions_limit_totals_as_enumeration_says(data, asked):
    values = np.array(data.draw(st.lists(st.integers(0, 4), min_size=6, max_size=6))).reshape(2, 3)
    place = data.draw(st.sampled_from([tuple(map(int, cell)) for cell in np.argwhere(values >= 0)]))
    known = data.draw(st.lists(st.integers(1, 2), min_size=1, max_size=2))
    least = sum(known) + max(known) + 1
    table = xr.DataArray(values, dims=("a", "b"))
    release = tc.Suppression(table, xr.ones_like(table, dtype=bool), totals=["a"])
    tables = (
        np.array(list(product(range(values.sum(axis=1).max() + 1), repeat=3)))
        if values.any()
        else np.zeros((1, 3))
    )
    rows = [tables[tables.sum(axis=1) == total] for total in values.sum(axis=1)]
    rows[place[0]] = rows[place[0]][rows[place[0]][:, place[1]] >= least]
    if not len(rows[place[0]]):
        with pytest.raises(TableError, match="leaves nothing"):
            bounds_of(release, margin=asked, knowledge={place: known})
        return
    bounds = bounds_of(release, margin=asked, knowledge={place: known})
    low, high = (sum(getattr(row, extreme)(axis=0) for row in rows) for extreme in ("min", "max"))
    if asked == ("b",):  # the rows are independent
        assert np.array_equal(bounds["lower"].values, low)
        assert np.array_equal(bounds["upper"].values, high)
    else:
        assert np.array_equal(bounds["lower"].values, values.sum(axis=1 if asked else None))
        assert bounds["disclosed"].all()


def test_two_masks_of_one_projection_add_up():
    table = xr.DataArray([[[1, 2], [3, 0]], [[4, 1], [2, 2]]], dims=("a", "b", "c"))
    sums = table.sum("c")
    release = tc.LinkedTables(
        table, [("a", "b")], suppressed={("a", "b"): sums == 5, ("b", "a"): sums == 4}
    )
    assert bounds_of(release, margin=("a", "b"))["published"].values.tolist() == [
        [True, True],
        [False, False],
    ]
    assert bounds_of(release)["upper"].values.tolist() == [
        [[3, 3], [3, 3]],
        [[inf, inf], [inf, inf]],
    ]


def test_a_contradiction_is_told_by_released_totals():
    released = xr.DataArray([[5, 5], [5, 5]], dims=("a", "b"))
    totals = [xr.DataArray([15, 10], dims="a"), xr.DataArray([5, 5], dims="b")]
    release = tc.Rounding(released, 5, totals=totals)
    with pytest.raises(TableError, match="contradicts itself") as cells:
        bounds_of(release)
    with pytest.raises(TableError) as raised:
        bounds_of(release, margin="a")
    assert str(raised.value) == str(cells.value)
    # Cells of even parity hold 1 or 2, the others 0; only whole numbers contradict,
    # which no propagation finds.
    parity = np.indices((2, 2, 2)).sum(axis=0) % 2
    cube = xr.DataArray(2 * (1 - parity), dims=("a", "b", "c"))
    release = tc.Rounding(
        cube, 2, totals=[xr.DataArray([3, 3], dims=dim) for dim in "abc"], exact_totals=True
    )
    with pytest.raises(TableError, match="no table of whole numbers of steps") as cells:
        bounds_of(release)
    with pytest.raises(TableError) as raised:
        bounds_of(release, margin=("a", "b"))
    assert str(raised.value) == str(cells.value)


def test_large_totals():
    table = xr.DataArray([[10**12, 3 * 10**12 + 7], [5, 10**11]], dims=("a", "b"))
    everything = xr.ones_like(table, dtype=bool)
    release = tc.Suppression(table, everything, totals=["a"])
    bounds = bounds_of(release, margin="b")
    assert bounds["upper"].values.tolist() == [4 * 10**12 + 7 + 10**11 + 5] * 2
    zeros = tc.Rounding(xr.DataArray(np.zeros((8, 8), dtype=int), dims=("a", "b")), 2**52)
    with pytest.raises(AttackError, match=r"up to 2\*\*53"):
        bounds_of(zeros, margin="a")


def test_one_total_in_a_large_release():
    table = xr.DataArray(np.random.default_rng(1).poisson(20, (8, 8, 8)), dims=("a", "b", "c"))
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    hidden = table.sum("c").copy(data=np.zeros((8, 8), dtype=bool))
    hidden[:2, :2] = True
    bounds = bounds_of(
        tc.LinkedTables(table, pairs, suppressed={("a", "b"): hidden}), margin=("a", "b")
    )
    assert (bounds["lower"] <= table.sum("c")).all()
    assert (table.sum("c") <= bounds["upper"]).all()
    assert (bounds["lower"] == bounds["upper"]).where(~hidden, other=True).all()
    sums = bounds.where(hidden, drop=True)
    assert (sums["lower"] < sums["upper"]).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"margin": "d"}, ParameterError, "margin must name variables of the table, .* got 'd'"),
        ({"margin": ("a", "a")}, ParameterError, "each once"),
        ({"margin": 3}, ParameterError, "by its variables, .* got 3"),
        ({"margin": "a", "cells": MERGED > 3}, TableError, "cells must have the sizes"),
        (
            {"margin": "a", "cells": [True]},
            TableError,
            r"cells must be .* dimensions \('a',\), got list",
        ),
    ],
)
def test_bad_arguments(arguments, error, message):
    table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    with pytest.raises(error, match=message):
        bounds_of(tc.Suppression(table, table < 3), **arguments)


def test_totals_are_put_in_the_order_of_the_table():
    """`groupby` sorts its labels: these were refused as others."""
    coords = {"a": ["x", "y", "z"], "kind": ("a", ["n", "m", "n"])}
    table = xr.DataArray([[0, 3], [6, 3], [9, 0]], dims=("a", "b"), coords=coords)
    by_kind, by_a = table.sum("b").groupby("kind").sum(), table.sum("b").drop_vars("kind")
    for totals in ([by_kind, by_a[[2, 0, 1]]], [by_kind[::-1], by_a]):
        release = tc.Rounding(table, 3, method="random", totals=totals)
        expected = tc.Rounding(table, 3, method="random", totals=[by_kind[::-1], by_a])
        xr.testing.assert_identical(bounds_of(release), bounds_of(expected))
        tc.attack.Perturbed(table, tc.attack.RandomRounding(3), totals=totals)
    numbered = table.assign_coords(a=[2, 0, 1])
    bare = table.sum("b").drop_vars(["a", "kind"])  # in which order is not said
    with pytest.raises(TableError, match="categories of 'a' differ between totals"):
        tc.Rounding(numbered, 3, method="random", totals=[bare])
    for wrong in (by_kind.assign_coords(kind=["n", "k"]), by_kind[:1]):
        with pytest.raises(TableError, match="categories of 'kind' differ between totals"):
            tc.Rounding(table, 3, method="random", totals=[wrong])
