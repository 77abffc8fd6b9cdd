"""What an attacker can work out: published examples, enumeration of all compatible
tables, contradictions."""

from itertools import product
from math import inf, isnan, log2

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError, TableError

ACTIVITIES, SIZES = ["2,3", "4", "5", "6", "7"], [4, 5, 6, 7, 8]
TURNOVER = xr.DataArray(
    [
        [80, 253, 54, 0, 0],
        [641, 3694, 2062, 746, 0],
        [592, 150, 329, 1387, 1440],
        [57, 256, 946, 995, 2027],
        [78, 0, 890, 1719, 1743],
    ],
    dims=("activity", "size"),
    coords={"activity": ACTIVITIES, "size": SIZES},
)
"""Table 1 of Oganian & Domingo-Ferrer (2003) with one of the possible values in each of
its suppressed cells."""
SUPPRESSED = TURNOVER.isin([150, 1387, 256, 995])


def bounds_of(release, **arguments):
    return tc.attacker_bounds(release, progressbar=False, **arguments)


def interval(bounds, **cell):
    chosen = bounds.sel(cell)
    return float(chosen["lower"]), float(chosen["upper"])


def test_published_suppression():
    bounds = bounds_of(tc.Suppression(TURNOVER, SUPPRESSED))
    assert interval(bounds, activity="5", size=5) == (0, 406)
    assert interval(bounds, activity="5", size=7) == (1131, 1537)
    assert interval(bounds, activity="6", size=5) == (0, 406)
    assert interval(bounds, activity="6", size=7) == (845, 1251)
    hidden = bounds.where(SUPPRESSED, drop=True)
    assert (hidden["n_values"] == 407).all()
    np.testing.assert_allclose(hidden["risk"], 1 / log2(407), rtol=1e-14)
    assert str(float(hidden["risk"][0, 0])).startswith("0.1153")
    assert not bounds["disclosed"].where(SUPPRESSED, other=False).any()


def test_published_cells_are_disclosed_with_their_value():
    bounds = bounds_of(tc.Suppression(TURNOVER, SUPPRESSED))
    assert (bounds["published"] == ~SUPPRESSED).all()
    assert bounds["disclosed"].where(bounds["published"], other=True).all()
    assert (bounds["lower"] == TURNOVER).where(bounds["published"], other=True).all()
    assert (bounds["upper"] == TURNOVER).where(bounds["published"], other=True).all()
    assert bounds["risk"].where(bounds["published"]).isnull().all()


def test_published_redesign():
    release = tc.GlobalRecoding(TURNOVER, {"activity": {"5,6": ["5", "6"]}})
    bounds = bounds_of(release)
    for size, total in zip(SIZES, [649, 406, 1275, 2382, 3467], strict=True):
        for activity in ("5", "6"):
            assert interval(bounds, activity=activity, size=size) == (0, total)
    assert bounds["published"].sel(activity=["2,3", "4", "7"]).all()
    assert release.system.row_label(0) == "activity=5,6, size=4"


def test_redesign_of_two_variables_merges_their_cells():
    table = xr.DataArray(np.arange(9).reshape(3, 3), dims=("a", "b"))
    bounds = bounds_of(tc.GlobalRecoding(table, {"a": {"low": [0, 1]}, "b": {"low": [0, 1]}}))
    assert bounds["upper"].values.tolist() == [
        [8, 8, 7],
        [8, 8, 7],
        [13, 13, 8],
    ]  # 0 + 1 + 3 + 4, 2 + 5, 6 + 7
    assert bounds["published"].values.tolist() == [[False] * 3, [False] * 3, [False, False, True]]


def test_one_suppressed_cell_of_a_row_is_disclosed():
    table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    bounds = bounds_of(tc.Suppression(table, table == 1))
    assert interval(bounds, a=0, b=1) == (1, 1)
    assert bool(bounds["disclosed"][0, 1])
    assert not bool(bounds["published"][0, 1])
    assert isnan(bounds["risk"][0, 1])
    assert bounds["n_values"][0, 1] == 1


def test_without_totals_nothing_limits_a_cell():
    table = xr.DataArray([5, 1], dims="a")
    bounds = bounds_of(tc.Suppression(table, table == 1, totals=False))
    assert interval(bounds, a=1) == (0, inf)
    assert bounds["risk"].values.tolist()[1] == 0
    assert bounds["n_values"].values.tolist() == [1, inf]


def test_named_margins_only():
    table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    everything = xr.ones_like(table, dtype=bool)
    assert bounds_of(tc.Suppression(table, everything, totals=["a"]))["upper"].values.tolist() == [
        [6, 6],
        [6, 6],
    ]
    assert bounds_of(tc.Suppression(table, everything, totals=[()]))["upper"].values.tolist() == [
        [12, 12],
        [12, 12],
    ]


@pytest.mark.parametrize(
    ("base", "method", "released", "expected"),
    [
        (5, "conventional", [0, 5, 10], [(0, 2), (3, 7), (8, 12)]),
        (
            4,
            "conventional",
            [0, 4],
            [(0, 1), (2, 5)],
        ),  # [4 - 2, 4 + 2): half of an even base goes up
        (3, "random", [0, 3, 6], [(0, 2), (1, 5), (4, 8)]),
    ],
)
def test_rounding_intervals(base, method, released, expected):
    bounds = bounds_of(tc.Rounding(xr.DataArray(released, dims="x"), base, method=method))
    assert list(zip(bounds["lower"].values, bounds["upper"].values, strict=True)) == expected
    for low, high, n_values in zip(
        *(bounds[name].values for name in ("lower", "upper", "n_values")), strict=True
    ):
        assert n_values == high - low + 1


def test_rounding_intervals_hold_what_the_method_rounds_to_them():
    table = xr.DataArray(np.arange(40), dims="x")
    for base in (2, 3, 4, 5):
        bounds = bounds_of(
            tc.Rounding(tc.perturbation.conventional_round(table, rounding_base=base)[0], base)
        )
        assert ((bounds["lower"] <= table) & (table <= bounds["upper"])).all()
        assert (bounds["n_values"].where(bounds["lower"] > 0, other=base) == base).all()
        bounds = bounds_of(
            tc.Rounding(
                tc.random_round(table, rounding_base=base, random_seed=1)[0], base, method="random"
            )
        )
        assert ((bounds["lower"] <= table) & (table <= bounds["upper"])).all()


def test_rounding_of_one_decimal():
    bounds = bounds_of(tc.Rounding(xr.DataArray([0.0, 1.5], dims="x"), 0.5, decimals=1))
    np.testing.assert_allclose(bounds["lower"], [0, 1.3])  # [1.25, 1.75) in tenths
    np.testing.assert_allclose(bounds["upper"], [0.2, 1.7])
    assert bounds["n_values"].values.tolist() == [3, 5]


def test_rounding_with_true_totals_and_with_rounded_ones():
    released = xr.DataArray([5, 5], dims="x")
    exact = bounds_of(tc.Rounding(released, 5, totals=[xr.DataArray(14)], exact_totals=True))
    assert exact["lower"].values.tolist() == [7, 7]
    rounded = bounds_of(tc.Rounding(released, 5, totals=[xr.DataArray(15)]))
    assert rounded["lower"].values.tolist() == [6, 6]  # 13 - 7
    # Of 1, 1, 1 and 1, rounded to 0 each, the sum of what is released is 4 off.
    with pytest.raises(ParameterError, match="conventional rounding controls none"):
        tc.Rounding(released, 5, totals=True)
    controlled = tc.Rounding(released, 5, method="random", totals=True)
    assert float(bounds_of(controlled, margin=())["upper"]) == 14


def test_linked_tables():
    table = xr.DataArray([[[1, 2], [3, 0]]], dims=("activity", "size", "region"))
    one = bounds_of(tc.LinkedTables(table, [("activity", "size")]))
    assert one["upper"].values.tolist() == [[[3, 3], [3, 3]]]
    hidden = xr.DataArray([[True, False]], dims=("activity", "size"))
    release = tc.LinkedTables(
        table, [("activity", "size"), ()], suppressed={("size", "activity"): hidden}
    )
    assert bounds_of(release)["upper"].values.tolist() == [
        [[3, 3], [3, 3]]
    ]  # 6 - 3, by the grand total
    assert [release.system.row_label(row) for row in (0, 1)] == [
        "activity=0, size=1",
        "the grand total",
    ]


def test_internal_intruder_as_published():
    # 995 to 1004 for the cell: the other cell of the row holds 0 to 9.
    table = xr.DataArray([[1000, 4], [3, 6]], dims=("a", "b"))
    release = tc.Suppression(table, xr.DataArray([[True, True], [True, True]], dims=("a", "b")))
    outside = bounds_of(release)
    assert interval(outside, a=0, b=0) == (994, 1003)
    inside = bounds_of(release, knowledge={(0, 0): 400})
    assert interval(inside, a=0, b=0) == (401, 603)
    assert inside["n_values"][0, 0] == 603 - 401 + 1
    rounded = tc.Rounding(xr.DataArray([1000], dims="x"), 10)
    assert interval(bounds_of(rounded), x=0) == (995, 1004)
    assert interval(bounds_of(rounded, knowledge={0: 400}), x=0) == (401, 604)
    assert interval(bounds_of(rounded, knowledge={(0,): [400, 150]}), x=0) == (401, 454)


def test_contributions_limit_other_cells_too():
    table = xr.DataArray([[6, 4], [3, 7]], dims=("a", "b"))
    release = tc.Suppression(table, xr.ones_like(table, dtype=bool))
    assert interval(bounds_of(release), a=0, b=1) == (1, 10)
    assert interval(bounds_of(release, knowledge={(0, 0): 3}), a=0, b=1) == (
        1,
        3,
    )  # at most 10 - 3 - 4


def test_some_cells_only():
    bounds = bounds_of(tc.Suppression(TURNOVER, SUPPRESSED), cells=TURNOVER == 150)
    assert interval(bounds, activity="5", size=5) == (0, 406)
    others = bounds.where(TURNOVER != 150)
    assert others["lower"].isnull().all()
    assert others["n_values"].isnull().all()
    assert int(bounds["disclosed"].sum()) == 0


def compatible(table, hidden, margins):
    """The least and the most of each cell over all non-negative whole tables with the
    same margins."""
    places = np.argwhere(hidden)
    axes = [tuple(axis for axis in range(table.ndim) if axis not in margin) for margin in margins]
    wanted = [table.sum(axis=axis) for axis in axes]
    ranges = []
    for place in places:
        totals = [
            total[tuple(place[list(margin)])] for margin, total in zip(margins, wanted, strict=True)
        ]
        ranges.append(range(int(min(totals)) + 1))
    low, high = table.copy(), table.copy()
    for values in product(*ranges):
        tried = table.copy()
        tried[hidden] = values
        if all(
            np.array_equal(tried.sum(axis=axis), total)
            for axis, total in zip(axes, wanted, strict=True)
        ):
            low, high = np.minimum(low, tried), np.maximum(high, tried)
    return low, high


SMALL = [
    ((2, 3), [(0,), (1,)]),
    ((2, 2, 2), [(0, 1), (0, 2), (1, 2)]),
    ((3, 2, 2), [(0, 1), (0, 2), (1, 2)]),
]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), case=st.sampled_from(SMALL), decimals=st.sampled_from([0, 1]))
def test_suppression_bounds_are_those_of_enumeration(data, case, decimals):
    shape, margins = case
    size = int(np.prod(shape))
    values = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))).reshape(
        shape
    )
    hidden = np.zeros(size, dtype=bool)
    hidden[list(data.draw(st.sets(st.integers(0, size - 1), max_size=7)))] = True
    hidden = hidden.reshape(shape)
    dims = tuple("abc"[: len(shape)])
    release = tc.Suppression(
        xr.DataArray(values / 10**decimals, dims=dims),
        xr.DataArray(hidden, dims=dims),
        decimals=decimals,
    )
    bounds = bounds_of(release)
    low, high = compatible(values, hidden, margins)
    assert np.array_equal(bounds["lower"].values, low / 10**decimals)
    assert np.array_equal(bounds["upper"].values, high / 10**decimals)
    assert np.array_equal(bounds["n_values"].values, high - low + 1)


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    margins=st.sampled_from([[(0, 1)], [(0, 1), (2,)], [(0, 1), (1, 2), (0, 2)], [(), (0, 2)]]),
)
def test_linked_tables_bounds_are_those_of_enumeration(data, margins):
    values = np.array(data.draw(st.lists(st.integers(0, 1), min_size=8, max_size=8))).reshape(
        2, 2, 2
    )
    table = xr.DataArray(values, dims=("a", "b", "c"))
    released = [tuple("abc"[axis] for axis in margin) for margin in margins]
    bounds = bounds_of(tc.LinkedTables(table, released))
    low, high = compatible(values, np.ones((2, 2, 2), dtype=bool), margins)
    assert np.array_equal(bounds["lower"].values, low)
    assert np.array_equal(bounds["upper"].values, high)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), method=st.sampled_from(["conventional", "random"]), exact=st.booleans())
def test_rounding_bounds_are_those_of_enumeration(data, method, exact):
    base = data.draw(st.integers(2, 3))
    released = (
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))).reshape(2, 2)
        * base
    )
    rows, columns = (
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=2)))
        * (1 if exact else base)
        for _ in range(2)
    )

    def fits(value, published):
        if method == "conventional":
            return published - base / 2 <= value < published + base / 2
        return published - base < value < published + base

    found = []
    for values in product(
        *([value for value in range(10) if fits(value, cell)] for cell in released.ravel())
    ):
        tried = np.array(values).reshape(2, 2)
        sums, wanted = [*tried.sum(axis=1), *tried.sum(axis=0)], [*rows, *columns]
        if all(
            total == given if exact else fits(total, given)
            for total, given in zip(sums, wanted, strict=True)
        ):
            found.append(tried)
    totals = [xr.DataArray(rows, dims="a"), xr.DataArray(columns, dims="b")]
    release = tc.Rounding(
        xr.DataArray(released, dims=("a", "b")),
        base,
        method=method,
        totals=totals,
        exact_totals=exact,
    )
    if not found:
        with pytest.raises(TableError, match="contradicts itself"):
            bounds_of(release)
        return
    bounds = bounds_of(release)
    assert np.array_equal(bounds["lower"].values, np.min(found, axis=0))
    assert np.array_equal(bounds["upper"].values, np.max(found, axis=0))


def test_integer_bounds_where_linear_ones_are_not_attained():
    # Three variables of three categories with all margins of two are no network:
    # corners may be fractions.
    rng = np.random.default_rng(5)
    moved = 0
    for _ in range(10):
        table = xr.DataArray(rng.integers(0, 2, (3, 3, 3)), dims=("a", "b", "c"))
        release = tc.LinkedTables(table, [("a", "b"), ("a", "c"), ("b", "c")])
        low, high = enumerated_cubes(table.values)
        bounds = bounds_of(release)
        assert np.array_equal(bounds["lower"].values, low)
        assert np.array_equal(bounds["upper"].values, high)
        moved += int((low < high).sum())
    assert moved > 0


def enumerated_cubes(table):
    """Bounds of a 3 x 3 x 3 table of zeros and ones with its margins, slice by slice:
    the third follows."""
    slices = []
    for number in range(2):
        rows, columns = table[number].sum(axis=1), table[number].sum(axis=0)
        free = [np.array(values).reshape(2, 2) for values in product(range(4), repeat=4)]
        found = []
        for corner in free:
            full = np.zeros((3, 3), dtype=int)
            full[:2, :2] = corner
            full[:2, 2] = rows[:2] - corner.sum(axis=1)
            full[2] = columns - full[:2].sum(axis=0)
            if (full >= 0).all():
                found.append(full)
        slices.append(found)
    across = table.sum(axis=0)
    low, high = table.copy(), table.copy()
    for first, second in product(*slices):
        third = across - first - second
        if (third >= 0).all():
            tried = np.stack([first, second, third])
            low, high = np.minimum(low, tried), np.maximum(high, tried)
    return low, high


def test_contradiction_names_a_minimal_set_of_totals():
    released = xr.DataArray([[5, 5], [5, 5]], dims=("a", "b"))
    rows = xr.DataArray([15, 10], dims="a")
    columns = xr.DataArray([5, 5], dims="b")
    release = tc.Rounding(released, 5, totals=[rows, columns])
    # Rows hold at least 13 + 8, columns at most 7 + 7.
    with pytest.raises(TableError, match="contradicts itself") as raised:
        bounds_of(release)
    named = str(raised.value).split("at once, ")[1].split("; ")
    assert 1 <= len(named) <= 4
    labels = ["a=0", "a=1", "b=0", "b=1"]
    kept = [label for label in labels if any(text.startswith(label) for text in named)]
    assert contradict(kept)
    for left_out in kept:
        assert not contradict([label for label in kept if label != left_out])


def contradict(kept):
    """Whether no table of cells from 3 to 7 has these totals of the example above, by
    enumeration."""
    wanted = {"a=0": (13, 17), "a=1": (8, 12), "b=0": (3, 7), "b=1": (3, 7)}
    for first, second, third, fourth in product(range(3, 8), repeat=4):
        sums = {
            "a=0": first + second,
            "a=1": third + fourth,
            "b=0": first + third,
            "b=1": second + fourth,
        }
        if all(wanted[label][0] <= sums[label] <= wanted[label][1] for label in kept):
            return False
    return True


def test_contradiction_of_several_totals():
    # Each total is possible by itself; rows make 6 + 6, columns 11.
    released = xr.DataArray([[2, 2], [2, 2]], dims=("a", "b"))
    totals = [xr.DataArray([6, 6], dims="a"), xr.DataArray([6, 5], dims="b")]
    release = tc.Rounding(released, 2, method="random", totals=totals, exact_totals=True)
    with pytest.raises(TableError, match="contradicts itself") as raised:
        bounds_of(release)
    for label in ("a=0", "a=1", "b=1"):
        assert label in str(raised.value)


def test_contradiction_in_whole_numbers_only():
    # Cells of even parity hold 1 or 2, the others 0. Totals of 3 take one 2 of the two
    # cells of each category, but any two of the four cells share a category. All at 1.5
    # would do.
    parity = np.indices((2, 2, 2)).sum(axis=0) % 2
    released = xr.DataArray(2 * (1 - parity), dims=("a", "b", "c"))
    totals = [xr.DataArray([3, 3], dims=dim) for dim in "abc"]
    with pytest.raises(TableError, match="no table of whole numbers of steps") as raised:
        bounds_of(tc.Rounding(released, 2, totals=totals, exact_totals=True))
    assert "with 2 unknown cells" not in str(raised.value)  # every total is over four cells
    halves = bounds_of(tc.Rounding(released * 1.0, 2, totals=totals, exact_totals=True, decimals=1))
    assert halves["lower"].values[0, 0, 0] == 1


def test_progress_is_shown_on_standard_error(capsys):
    tc.attacker_bounds(tc.Suppression(TURNOVER, SUPPRESSED))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "4/4" in shown.err


def test_large_values():
    table = xr.DataArray([[10**14, 3 * 10**13 + 7], [5, 10**12]], dims=("a", "b"))
    bounds = bounds_of(tc.Suppression(table, xr.ones_like(table, dtype=bool)))
    assert interval(bounds, a=0, b=0) == (10**14 - 10**12, 10**14 + 5)


TABLE = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"), coords={"a": ["p", "q"], "b": [1, 2]})
MASK = TABLE < 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tc.Rounding(TABLE - 2, 1), TableError, "a=p, b=2 holds -1"),
        (lambda: tc.Suppression(TABLE.where(~MASK), MASK), TableError, "not be missing: a=p, b=2"),
        (lambda: tc.Suppression(TABLE + 0.5, MASK), TableError, "whole numbers"),
        (
            lambda: tc.Suppression(TABLE + 0.25, MASK, decimals=1),
            TableError,
            "at most 1 decimals: a=p, b=1 holds 5.25",
        ),
        (
            lambda: tc.Rounding(TABLE - 2.0, 1, decimals=1),
            TableError,
            "not be negative: a=p, b=2 holds -1.0",
        ),
        (lambda: tc.Suppression(TABLE * 1e16, MASK, decimals=1), TableError, r"2\*\*53 steps"),
        (
            lambda: tc.Suppression(TABLE, MASK, decimals=13),
            ParameterError,
            "decimals must be .* from 0 to 12, got 13",
        ),
        (
            lambda: tc.Suppression(TABLE.values, MASK, decimals=1),
            TableError,
            "must be an xarray.DataArray",
        ),
        (
            lambda: tc.Suppression(TABLE, MASK.astype(int)),
            TableError,
            "DataArray of bool .* got a DataArray of int",
        ),
        (
            lambda: tc.Suppression(TABLE, MASK.isel(a=[0])),
            TableError,
            "sizes {'a': 2, 'b': 2}, got {'a': 1, 'b': 2}",
        ),
        (
            lambda: tc.Suppression(TABLE, MASK.assign_coords(b=[1, 3])),
            TableError,
            "only one has 2, 3",
        ),
        (
            lambda: tc.Suppression(TABLE, MASK, totals=["c"]),
            ParameterError,
            "variables of the table, .* got 'c'",
        ),
        (lambda: tc.Suppression(TABLE, MASK, totals="a"), ParameterError, "sequence of margins"),
        (
            lambda: tc.Suppression(TABLE, MASK, totals=["a", ("a",)]),
            ParameterError,
            "each margin once",
        ),
        (
            lambda: tc.Suppression(TABLE, MASK, totals=[3]),
            ParameterError,
            "by its variables, .* got 3",
        ),
        (lambda: tc.Rounding(TABLE, 5), TableError, "multiples of 5: a=p, b=2 holds 1"),
        (
            lambda: tc.Rounding(TABLE * 5, 1),
            ParameterError,
            "base must be a multiple of 1 of at least 2, got 1",
        ),
        (lambda: tc.Rounding(TABLE * 5, True), ParameterError, "got True"),
        (
            lambda: tc.Rounding(TABLE * 5, 5, method="up"),
            ParameterError,
            "'conventional', 'random', got 'up'",
        ),
        (
            lambda: tc.Rounding(TABLE * 5, 5, totals=True, exact_totals=True),
            ParameterError,
            "exact_totals needs",
        ),
        (
            lambda: tc.Rounding(TABLE * 5, 5, totals=[xr.DataArray(3)]),
            TableError,
            "totals must hold multiples of 5",
        ),
        (lambda: tc.Rounding(TABLE * 5, 5, totals=[7]), TableError, "must be DataArrays, got int"),
        (
            lambda: tc.Rounding(TABLE * 5, 5, totals=[xr.DataArray([5, 5], dims="a")]),
            TableError,
            "categories of 'a' differ",
        ),
        (
            lambda: tc.GlobalRecoding(TABLE, {"c": {}}),
            ParameterError,
            r"variables of the table, .* got \['c'\]",
        ),
        (
            lambda: tc.GlobalRecoding(TABLE, {"a": {"x": ["r"]}}),
            ParameterError,
            "'a' has no category 'r'",
        ),
        (
            lambda: tc.GlobalRecoding(TABLE, {"a": {"x": ["p"], "y": ["p"]}}),
            ParameterError,
            "'p' of 'a' is named twice",
        ),
        (
            lambda: tc.GlobalRecoding(TABLE, {"a": {"q": ["p"]}}),
            ParameterError,
            "'q' is a category of 'a' that is kept",
        ),
        (
            lambda: tc.GlobalRecoding(TABLE, {"a": {"x": "p"}}),
            ParameterError,
            "must be a sequence of categories, got 'p'",
        ),
        (lambda: tc.LinkedTables(TABLE, ["a", "c"]), ParameterError, "got 'c'"),
        (
            lambda: tc.LinkedTables(TABLE, ["a"], suppressed={"b": MASK.any("a")}),
            ParameterError,
            r"released projections, \[\('a',\)\], got 'b'",
        ),
        (
            lambda: tc.LinkedTables(TABLE, ["a"], suppressed={"a": MASK}),
            TableError,
            r"suppressed\['a'\] must have",
        ),
    ],
)
def test_bad_releases(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"knowledge": {("p", 3): 1}}, ParameterError, "'b' has no category 3"),
        ({"knowledge": {("p",): 1}}, ParameterError, "a category of each of"),
        ({"knowledge": {("p", 2): 0}}, ParameterError, "above 0"),
        ({"knowledge": {("p", 2): 0.5}}, ParameterError, "at most 0 decimals"),
        ({"knowledge": {("p", 2): "1"}}, ParameterError, "number or several, got '1'"),
        ({"knowledge": {("q", 2): 2}}, TableError, "nothing at a=q, b=2"),
        ({"knowledge": {("p", 2): 2}}, TableError, "nothing at a=p, b=2"),
        ({"cells": MASK.values}, TableError, "cells must be a DataArray of bool .* got ndarray"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        bounds_of(tc.Suppression(TABLE, MASK), **arguments)


def test_something_else_than_a_release():
    with pytest.raises(ParameterError, match="got DataArray"):
        bounds_of(TABLE)


@pytest.mark.parametrize(
    "make",
    [
        lambda table, mask: tc.Suppression(table, mask),
        lambda table, mask: tc.Suppression(table / 10, mask, decimals=1),
        lambda table, mask: tc.LinkedTables(
            table, ["a", ("a", "b")], suppressed={("a", "b"): mask}
        ),
        lambda table, mask: tc.GlobalRecoding(table, {"a": {"x": ["p", "q"]}}),
        lambda table, mask: tc.Rounding(table * 3, 3, totals=[(table * 3).sum("a")]),
    ],
)
def test_a_release_is_what_it_was_when_it_was_made(make):
    """It is checked then, and not again: what becomes of the arrays must not matter."""
    table, mask = TABLE.copy(deep=True), MASK.copy(deep=True)
    release, same = make(table, mask), make(TABLE, MASK)
    table[:], mask[:] = -1, ~mask
    assert repr(release) == repr(same)
    assert release.system is release.system
    for margin in (None, "b"):
        found, expected = (
            tc.attacker_bounds(each, margin=margin, progressbar=False) for each in (release, same)
        )
        assert found.identical(expected)


@pytest.mark.parametrize("seed", range(5))
def test_controlled_rounding_of_three_variables_controls_some_totals(seed):
    """Others may be off by the base or more, so that all of them exclude the truth."""
    counts = np.random.default_rng(seed).poisson(1.5, (3, 3, 8))
    table = xr.DataArray(counts, dims=("a", "b", "c"))
    rounded = tc.controlled_round(table, rounding_base=3, random_seed=seed).isel(replicate=0)
    rounded = rounded.drop_vars("replicate")
    assert int(abs(rounded - table).max()) < 3
    assert max(int(abs((rounded - table).sum(name)).max()) for name in "abc") >= 3
    with pytest.raises(ParameterError, match="with 3 variables controlled rounding controls some"):
        tc.Rounding(rounded, 3, method="random", totals=True)
    controlled = [rounded.sum(["b", "c"]), rounded.sum(["a", "c"]), rounded.sum(["a", "b"])]
    release = tc.Rounding(rounded, 3, method="random", totals=[*controlled, rounded.sum()])
    bounds = bounds_of(release)
    assert ((bounds["lower"] <= table) & (table <= bounds["upper"])).all()
    for name, total in zip("abc", controlled, strict=True):
        bounds = bounds_of(release, margin=name)
        truth = table.sum([other for other in "abc" if other != name])
        assert ((bounds["lower"] <= truth) & (truth <= bounds["upper"])).all()
        assert total.dims == (name,)
    one = rounded.isel(c=[0]).assign_coords(kind=("a", ["k"] * 3))  # as of two variables
    assert tc.Rounding(one, 3, method="random", totals=True).totals is True
