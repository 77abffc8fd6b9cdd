"""What releases, patterns and protected tables print."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc

SMALL = xr.DataArray(
    [[20, 50, 10], [8, 19, 22], [17, 32, 12]],
    coords={"activity": ["farms", "<b>shops", "banks"], "reg<i>on": ["North", "West", "South"]},
    dims=("activity", "reg<i>on"),
)


def lines_of(made):
    assert str(made) == repr(made)
    return [" ".join(line.split()) for line in repr(made).splitlines()]


def test_a_suppression_prints_its_published_cells():
    lines = lines_of(tc.Suppression(SMALL, SMALL < 12))
    assert lines[:3] == [
        "Suppression of activity (3) x reg<i>on (3), 0 decimals",
        "published totals: all",
        "activity x reg<i>on: 7 published, 2 suppressed",
    ]
    assert lines[5:] == ["farms 20 50 ·", "<b>shops · 19 22", "banks 17 32 12"]


def test_html_is_escaped():
    release = tc.Suppression(SMALL, SMALL < 12)
    for made in (release, tc.suppress(SMALL, SMALL == 8, random_seed=0, progressbar=False)):
        html = made._repr_html_()
        assert "<table" in html
        assert "<b>" not in html
        assert "<i>" not in html
        assert "&lt;b&gt;shops" in html


@pytest.mark.parametrize(
    ("totals", "words"),
    [(True, "all"), (False, "none"), ([], "none"), (["activity", ()], "activity, grand total")],
)
def test_published_totals_are_named(totals, words):
    assert (
        lines_of(tc.Suppression(SMALL, SMALL < 12, totals=totals))[1]
        == f"published totals: {words}"
    )


def test_a_redesign_prints_merged_categories():
    lines = lines_of(
        tc.GlobalRecoding(SMALL / 10, {"activity": {"other": ["farms", "banks"]}}, decimals=1)
    )
    assert lines[0].endswith("1 decimal")
    assert lines[1] == "published totals: all; 6 cells are merged with others"
    assert lines[-2:] == ["other 3.7 8.2 2.2", "<b>shops 0.8 1.9 2.2"]


def test_linked_tables_print_each_projection():
    by_activity = SMALL.sum("reg<i>on")
    release = tc.LinkedTables(SMALL, ["activity", ()], suppressed={"activity": by_activity < 50})
    lines = lines_of(release)
    assert lines[1:3] == [
        "released projections: activity, grand total",
        "activity: 2 published, 1 suppressed",
    ]
    assert lines[-6:] == [
        "farms 80",
        "<b>shops ·",
        "banks 61",
        "grand total: 1 published, 0 suppressed",
        "value",
        "grand total 190",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "none"),
        ({"totals": True}, "sums of the rounded cells"),
        ({"totals": []}, "none, rounded"),
        ({"totals": [SMALL.sum()], "exact_totals": True}, "grand total, exact"),
    ],
)
def test_a_rounding_prints_the_rounded_table(options, words):
    lines = lines_of(tc.Rounding(5 * (SMALL // 5), 5, method="random", **options))
    assert lines[1] == f"random, to multiples of 5; published totals: {words}"
    assert lines[-1] == "banks 15 30 10"


def test_a_pattern_shows_the_status_of_what_is_suppressed():
    pattern = tc.suppress(SMALL, SMALL == 8, random_seed=0, progressbar=False)
    assert lines_of(pattern) == [
        "activity x reg<i>on: 1 primary, 3 secondary, 5 safe",
        "secondary cells: the cheapest; rank decrease 1",
        "not for release: this tells primary cells from secondary ones",
    ]
    html = pattern._repr_html_()
    assert html.count("<td>· primary</td>") == 1
    assert html.count("<td>· secondary</td>") == 3


def test_large_tables_and_tables_of_three_variables_are_counted_only():
    large = xr.DataArray(np.ones((20, 20), dtype=int), dims=("a", "b"))
    cube = xr.DataArray(np.ones((2, 2, 2), dtype=int), dims=("a", "b", "c"))
    note = "up to 10 tables are printed, of up to 200 cells and two variables"
    for table in (large, cube):
        release = tc.Suppression(table, table > 1)
        assert lines_of(release)[-2:] == [
            f"{' x '.join(table.dims)}: {table.size} published, 0 suppressed",
            note,
        ]
        assert "<table" not in release._repr_html_()
        assert note in release._repr_html_()


def test_a_protected_table_prints_what_may_be_released():
    cells = [(area, size, sales) for area in "ABC" for size in "xyz" for sales in (5, 4, 3)]
    firms = pd.DataFrame([*cells, ("A", "x", 90)], columns=["area", "size", "sales"])
    protected = tc.protect_table(
        firms, ["area", "size"], "sales", tc.Dominance(1, 0.75), progressbar=False
    )
    lines = lines_of(protected)
    assert lines[:2] == [
        "Protected table of 'sales', area (3) x size (3), 0 decimals",
        "area x size: 2 published, 7 suppressed",
    ]
    assert lines[4].startswith("A · ")
    assert lines[-1] == "grand total 198"
    html = protected._repr_html_()
    assert html.count("<table") == 4
    assert "primary" not in "".join([*lines, html])
    assert "secondary" not in "".join([*lines, html])


def test_parts_of_a_system_say_their_sizes():
    system = tc.Suppression(SMALL, SMALL < 12).system
    assert repr(system) == "LinearSystem(4 equations, 2 unknown of 9 cells)"
    assert repr(system.totals[0]) == "Total(3 of 3 released)"


def test_at_most_ten_tables_are_printed():
    table = xr.DataArray(np.ones((2,) * 5, dtype=int), dims=tuple("abcde"))
    pairs = [(first, second) for first in "abcde" for second in "abcde" if first < second]
    release = tc.LinkedTables(table, [*pairs, ()])
    assert release._repr_html_().count("<table") == 10
    assert "grand total: 1 published, 0 suppressed" in lines_of(release)
