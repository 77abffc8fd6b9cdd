"""Totals of levels above variables, such as the regions of countries, held against
enumeration."""

from itertools import product
from math import inf

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError, TableError


def bounds_of(release, **arguments):
    return tc.attacker_bounds(release, progressbar=False, **arguments)


COUNTRIES = ["Spain", "Italy", "Norway", "Sweden"]
TABLE = xr.DataArray(
    [[5, 1], [2, 4], [3, 6], [7, 2]],
    dims=("country", "sex"),
    coords={"country": COUNTRIES, "sex": ["f", "m"]},
).assign_coords(region=("country", ["South", "South", "North", "North"]))
HIDDEN = xr.zeros_like(TABLE, dtype=bool)
HIDDEN[[0, 2]] = True


def test_totals_of_regions_give_cells_away():
    plain = bounds_of(tc.Suppression(TABLE.drop_vars("region"), HIDDEN.drop_vars("region")))
    assert plain["upper"].sel(country="Spain").values.tolist() == [6, 6]
    bounds = bounds_of(tc.Suppression(TABLE, HIDDEN))
    # South, f is 5 + 2 and Italy, f is 2.
    assert bounds["lower"].sel(country="Spain").values.tolist() == [7 - 2, 5 - 4]
    assert bounds["disclosed"].all()
    assert bounds["published"].equals(~HIDDEN)
    assert bounds["region"].values.tolist() == ["South", "South", "North", "North"]


def test_named_levels():
    release = tc.Suppression(TABLE, xr.ones_like(TABLE, dtype=bool), totals=[("region", "sex")])
    assert bounds_of(release)["upper"].values.tolist() == [[7, 5], [7, 5], [10, 8], [10, 8]]
    bounds = bounds_of(release, margin=("sex", "region"))
    assert bounds["lower"].dims == ("sex", "region")
    assert bounds["region"].values.tolist() == ["South", "North"]  # in order of first appearance
    assert bounds["lower"].values.tolist() == [[7, 10], [5, 8]]
    assert bounds["published"].all()
    assert not bounds_of(release, margin="region")["published"].any()
    assert bounds_of(release, margin="region")["lower"].values.tolist() == [12, 18]
    assert bounds_of(release, margin="country")["upper"].values.tolist() == [12, 12, 18, 18]
    assert release.system.row_label(1) == "region=South, sex=m"


def test_linked_tables_of_levels():
    hidden = xr.DataArray(
        [[True, False]] * 2, dims=("region", "sex"), coords={"region": ["South", "North"]}
    )
    release = tc.LinkedTables(
        TABLE, [("region", "sex"), "country"], suppressed={("sex", "region"): hidden}
    )
    bounds = bounds_of(release, margin=("region", "sex"))
    assert bounds["disclosed"].all()  # 6 + 6 less 5, 9 + 9 less 8
    assert bounds["lower"].values.tolist() == [[7, 5], [10, 8]]
    assert (bounds["published"] == ~hidden).all()
    assert bounds_of(release)["upper"].values.tolist() == [[6, 5], [6, 5], [9, 8], [9, 8]]
    other = tc.LinkedTables(
        TABLE,
        [("region", "sex"), "country"],
        suppressed={("region", "sex"): hidden.isel(region=[1, 0])},
    )
    assert bounds_of(other, margin=("region", "sex")).identical(bounds)
    with pytest.raises(TableError, match=r"'region' differ .* only one has 'East', 'North'"):
        tc.LinkedTables(
            TABLE,
            [("region", "sex")],
            suppressed={("region", "sex"): hidden.assign_coords(region=["South", "East"])},
        )


def test_rounded_totals_of_levels():
    released = (TABLE * 0 + 5).isel(sex=0, drop=True)
    cells = bounds_of(tc.Rounding(released, 5))
    assert cells["upper"].values.tolist() == [7, 7, 7, 7]
    totals = xr.DataArray([14, 6], dims="region", coords={"region": ["South", "North"]})
    exact = bounds_of(tc.Rounding(released, 5, totals=[totals], exact_totals=True))
    assert exact["lower"].values.tolist() == [7, 7, 3, 3]
    assert bounds_of(tc.Rounding(released, 5, totals=[totals], exact_totals=True), margin="region")[
        "published"
    ].all()
    with pytest.raises(TableError, match="categories of 'region' differ"):
        tc.Rounding(
            released, 5, totals=[totals.assign_coords(region=["x", "y"])], exact_totals=True
        )
    with pytest.raises(ParameterError, match="with the level 'region' controlled rounding"):
        tc.Rounding(released, 5, method="random", totals=True)
    totals = totals.copy(data=[10, 10])
    release = tc.Rounding(released, 5, method="random", totals=[totals])
    controlled = bounds_of(release, margin="region")
    assert controlled["upper"].values.tolist() == [14, 14]  # 10 + 4, and not 9 + 9


def test_redesign_publishes_no_level():
    release = tc.GlobalRecoding(TABLE, {"country": {"South": ["Spain", "Italy"]}})
    bounds = bounds_of(release, margin="region")
    assert bounds["lower"].values.tolist() == bounds["upper"].values.tolist() == [12, 18]
    assert not bounds["published"].any()


def test_a_further_name_of_each_category_is_no_level():
    named = TABLE.assign_coords(code=("country", ["ES", "IT", "NO", "SE"])).drop_vars("region")
    bounds = bounds_of(tc.Suppression(named, HIDDEN))
    assert bounds["upper"].sel(country="Spain").values.tolist() == [6, 6]
    by_code = bounds_of(tc.Suppression(named, HIDDEN), margin=("code", "sex"))
    assert by_code["upper"].sel(code="ES").values.tolist() == [6, 6]
    assert (by_code["published"].values == ~HIDDEN.values).all()  # under the other name
    everything = tc.Suppression(named, HIDDEN, totals=[("code", "sex")])
    assert bounds_of(everything)[
        "disclosed"
    ].all()  # where such totals are published, they are the cells


def test_totals_that_follow_from_others_have_no_rows():
    levels = TABLE.assign_coords(
        world=("country", ["all"] * 4),
        union=("country", ["in", "in", "out", "in"]),
        region_code=("country", [1, 1, 2, 2]),
    )
    system = tc.Suppression(levels, xr.ones_like(TABLE, dtype=bool)).system
    dims = [total.labels.dims for total in system.totals]
    # The world follows from regions; regions and unions do not follow from each other;
    # codes are the regions again.
    assert dims == [("country",), ("region", "sex"), ("union", "sex")]


LEVELS = {
    "none": {},
    "one": {"h": [0, 0, 1]},
    "alias and one": {"i": ["x", "y", "z"], "h": ["p", "q", "p"]},
    "crossing": {"h": [0, 0, 1], "g": [0, 1, 1]},
    "nested": {"h": [0, 0, 1], "g": [0, 0, 0]},
}


def grouping(table, names):
    """The group of each cell, the slow way."""
    groups = []
    for place in np.ndindex(table.shape):
        cell = table[place]
        groups.append(tuple(cell[name].item() for name in names))
    return np.array([sorted(set(groups)).index(group) for group in groups])


def enumerated(values, hidden, groups, shown):
    """All fillings of hidden cells for which the shown totals of groups are those of
    the values."""
    flat, cells = values.ravel(), np.flatnonzero(hidden.ravel())
    ranges = []
    for cell in cells:
        most = [
            flat[group == group[cell]].sum()
            for group, show in zip(groups, shown, strict=True)
            if show[group[cell]]
        ]
        ranges.append(range(int(min(most)) + 1 if most else 1))
    found = []
    for filling in product(*ranges):
        tried = flat.copy()
        tried[cells] = filling
        if all(
            tried[group == number].sum() == flat[group == number].sum()
            for group, show in zip(groups, shown, strict=True)
            for number in np.flatnonzero(show)
        ):
            found.append(tried)
    return np.array(found)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), levels=st.sampled_from(sorted(LEVELS)), other=st.booleans())
def test_suppression_with_levels_is_that_of_enumeration(data, levels, other):
    values = np.array(data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))).reshape(3, 2)
    hidden = np.zeros(6, dtype=bool)
    hidden[list(data.draw(st.sets(st.integers(0, 5), max_size=5)))] = True
    hidden = hidden.reshape(3, 2)
    table = xr.DataArray(values, dims=("a", "b"), coords={"a": [0, 1, 2], "b": ["u", "v"]})
    table = table.assign_coords({name: ("a", labels) for name, labels in LEVELS[levels].items()})
    if other:
        table = table.assign_coords(k=("b", ["w", "w"]))
    release = tc.Suppression(table, xr.DataArray(hidden, dims=("a", "b")))
    of_a = [name for name in LEVELS[levels] if name != "i"]
    margins = [
        [name for name in names if name]
        for names in product(["", *of_a, "a"], ["", *(["k"] if other else []), "b"])
        if names != ("a", "b")
    ]
    groups = [grouping(table, names) for names in margins]
    tables = enumerated(values, hidden, groups, [np.ones(6, dtype=bool)] * len(groups))
    bounds = bounds_of(release)
    assert np.array_equal(bounds["lower"].values.ravel(), tables.min(axis=0))
    assert np.array_equal(bounds["upper"].values.ravel(), tables.max(axis=0))
    for names in margins:
        assert bounds_of(release, margin=names)["published"].all()


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_linked_tables_with_levels_are_those_of_enumeration(data):
    people = data.draw(st.lists(st.integers(0, 5), max_size=4))
    values = np.bincount(people, minlength=6).reshape(3, 2)
    table = xr.DataArray(values, dims=("a", "b"), coords={"a": [0, 1, 2], "b": ["u", "v"]})
    table = table.assign_coords(h=("a", [0, 0, 1]), g=("a", [0, 1, 1]))
    every = [(), ("a",), ("h",), ("g",), ("b",), ("h", "b"), ("g", "b")]
    released = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1, max_size=4))
    asked = data.draw(st.sampled_from([*every, ("a", "b")]))
    groups = [grouping(table, names) for names in released]
    shown, masks = [], {}
    for names, group in zip(released, groups, strict=True):
        count = int(group.max()) + 1
        hide = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
        shape = [3 if name == "a" else 2 for name in names]
        masks[names] = xr.DataArray(
            hide.reshape(shape), dims=names, coords={n: table[n] for n in names if n in "ab"}
        )
        shown.append(~hide)
    bounds = bounds_of(tc.LinkedTables(table, released, suppressed=masks), margin=asked)
    tables = enumerated(values, np.ones((3, 2), dtype=bool), groups, shown)
    of = grouping(table, asked)
    limited = np.array(
        [
            any(show[group[cell]] for group, show in zip(groups, shown, strict=True))
            for cell in range(6)
        ]
    )
    totals = np.array([tables[:, of == number].sum(axis=1) for number in range(int(of.max()) + 1)])
    free = [not limited[of == number].all() for number in range(int(of.max()) + 1)]
    assert np.array_equal(bounds["lower"].values.ravel(), totals.min(axis=1))
    assert np.array_equal(bounds["upper"].values.ravel(), np.where(free, inf, totals.max(axis=1)))


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_rank_with_levels_is_that_of_the_dense_matrix(data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)))
    table = xr.DataArray(np.ones(shape, dtype=int), dims=("a", "b", "c"))
    for level, dim in {"h": "a", "g": "a", "k": "b"}.items():
        size = table.sizes[dim]
        table = table.assign_coords(
            {level: (dim, data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))}
        )
    names = st.sampled_from(
        [(), ("h",), ("a", "b"), ("h", "b"), ("g", "k"), ("h", "c"), ("k", "c"), ("a", "k", "c")]
    )
    margins = data.draw(st.lists(names, unique=True, max_size=4))
    release = tc.LinkedTables(table, margins)
    masks = {}
    for total in release.system.totals:
        drawn = (
            np.random.default_rng(data.draw(st.integers(0, 1000))).random(total.labels.shape) < 0.3
        )
        masks[total.labels.dims] = total.labels.copy(data=drawn)
    decrease = tc.attack.rank_decrease(release, masks)
    ranks = []
    for chosen in (release, tc.LinkedTables(table, margins, suppressed=masks)):
        matrix = chosen.system.matrix.toarray()
        expected = np.linalg.matrix_rank(matrix) if matrix.size else 0
        assert tc.attack.constraint_rank(chosen).rank == expected
        ranks.append(expected)
    assert decrease == ranks[0] - ranks[1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: tc.Suppression(TABLE, HIDDEN, totals=[("country", "region")]),
            ParameterError,
            (
                r"totals must name one level of each variable; \['country', 'region'\] are all of"
                r" 'country'"
            ),
        ),
        (
            lambda: bounds_of(tc.Suppression(TABLE, HIDDEN), margin="area"),
            ParameterError,
            (
                r"variables of the table, \('country', 'sex'\), or levels above them,"
                r" \('region',\), each once; got 'area'"
            ),
        ),
        (
            lambda: tc.Suppression(
                TABLE.assign_coords(region=("country", ["a", None, "b", "b"])),
                HIDDEN.drop_vars("region"),
            ),
            TableError,
            "a label of 'region' is missing, at country=Italy",
        ),
        (
            lambda: tc.LinkedTables(
                TABLE.assign_coords(rank=("country", [1, np.nan, 2, 2])), ["rank"]
            ),
            TableError,
            "a label of 'rank' is missing, at country=Italy",
        ),
    ],
)
def test_bad_levels(make, error, message):
    with pytest.raises(error, match=message):
        make()
