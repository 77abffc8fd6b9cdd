"""Bounds of an attacker who knows ranges beforehand, held against enumeration of all
compatible tables."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError, TableError

MOST = 11  # of a cell that is enumerated; no total or range of these tests reaches it
EVERY = np.array(list(product(range(MOST + 1), repeat=4))).reshape(-1, 2, 2)
AXES = {("a", "b"): (), ("a",): (2,), ("b",): (1,), (): (1, 2)}


def bounds_of(release, **arguments):
    return tc.attacker_bounds(release, progressbar=False, **arguments)


@st.composite
def cases(draw):
    """A table of counts up to 2, what is suppressed of its margins, and ranges that
    hold for the true values."""
    counts = draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    table = xr.DataArray(np.array(counts).reshape(2, 2), dims=("a", "b"))
    released = draw(st.lists(st.sampled_from(list(AXES)), min_size=1, unique=True))
    known = draw(st.lists(st.sampled_from(list(AXES)), min_size=1, unique=True))
    hidden, ranges = {}, {}
    for names in AXES:
        true = total(table, names)
        hidden[names] = xr.zeros_like(true, dtype=bool)
        if names in released:
            flags = draw(st.lists(st.booleans(), min_size=true.size, max_size=true.size))
            hidden[names] = true.copy(data=np.array(flags).reshape(true.shape))
        if names in known:
            ends = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, np.inf]))
            ends = draw(st.lists(ends, min_size=true.size, max_size=true.size))
            down, up = np.array(ends, dtype=float).T.reshape(2, *true.shape)
            ranges[names] = xr.Dataset(
                {"lower": (true - down).clip(min=0), "upper": true.astype(float) + up}
            )
    return table, released, {names: hidden[names] for names in released}, ranges


def total(table, names):
    return table.sum([dim for dim in table.dims if dim not in names])


@settings(max_examples=30, deadline=None)
@given(case=cases(), asked=st.sampled_from(list(AXES)))
def test_bounds_under_ranges_are_those_of_enumeration(case, asked):
    table, released, hidden, ranges = case
    release = tc.LinkedTables(table, released, suppressed=hidden)
    fits = EVERY
    for names in released:
        shown = ~hidden[names].values
        values = fits.sum(axis=AXES[names])
        same = values[..., shown] == total(table, names).values[shown]
        fits = fits[same.reshape(len(fits), -1).all(axis=1)]
    for names, known in ranges.items():
        values = fits.sum(axis=AXES[names])
        inside = (values >= known["lower"].values) & (values <= known["upper"].values)
        fits = fits[inside.reshape(len(fits), -1).all(axis=1)]
    values = fits.sum(axis=AXES[asked])
    found = bounds_of(release, margin=asked, knowledge=ranges)
    most = values.max(axis=0)
    assert np.array_equal(found["lower"].values, values.min(axis=0))
    assert np.array_equal(found["upper"].values, np.where(most >= MOST, np.inf, most))


def test_a_suppressed_count_below_the_minimum():
    """Who knows that two of the cells are 1 or 2 narrows the others as well."""
    table = xr.DataArray([[1, 4, 9], [2, 3, 9]], dims=("a", "b"))
    small = table < 3
    release = tc.Suppression(table, table < 5)
    ranges = xr.Dataset({"lower": xr.where(small, 1, 0), "upper": xr.where(small, 2.0, np.inf)})
    bounds = bounds_of(release, knowledge=ranges)
    assert bounds["lower"].values.tolist() == [[1, 3, 9], [1, 3, 9]]
    assert bounds["upper"].values.tolist() == [[2, 4, 9], [2, 4, 9]]


def test_levels_and_decimals():
    table = xr.DataArray(
        [0.5, 1.5, 2.0], dims="a", coords={"a": list("xyz"), "region": ("a", ["n", "n", "s"])}
    )
    release = tc.LinkedTables(table, [()], decimals=1)
    region = xr.DataArray([1.0, 2.0], dims="region", coords={"region": ["n", "s"]})
    known = {"region": xr.Dataset({"lower": region, "upper": region + 1.04})}
    bounds = bounds_of(release, margin="region", knowledge=known)
    assert bounds["lower"].values.tolist() == [1.0, 2.0]
    assert bounds["upper"].values.tolist() == [2.0, 3.0]


def test_a_range_of_what_is_published():
    table = xr.DataArray([[1, 4], [2, 3]], dims=("a", "b"))
    release = tc.Suppression(table, table < 3)
    true = {"a": xr.Dataset({"lower": table.sum("b"), "upper": table.sum("b")})}
    plain = bounds_of(release)
    assert bounds_of(release, knowledge=true).identical(plain)
    assert bounds_of(release, knowledge=None).identical(plain)
    assert bounds_of(release, knowledge={}).identical(plain)


TABLE = xr.DataArray([[1, 4, 9], [2, 3, 9]], dims=("a", "b"))
ANY = xr.Dataset({"lower": TABLE * 0, "upper": TABLE * np.inf})


@pytest.mark.parametrize(
    ("knowledge", "error", "message"),
    [
        (ANY.assign(lower=TABLE * 0 + 9), TableError, r"no value in the known range at a=0, b=0"),
        (ANY.assign(upper=TABLE * 0 + 8), TableError, r"no value in the known range at a=0, b=2"),
        ({"a": ANY.sum("b").assign(lower=TABLE.sum("b") + 1)}, TableError, r"range at a=0$"),
        ({(): ANY.sum() + 29}, TableError, r"at once, .* the grand total with 4 unknown cells$"),
        (ANY - 1, ParameterError, r"lower from 0 on, .* not so at a=0, b=0"),
        (ANY.assign(upper=TABLE * 0 - 1), ParameterError, r"upper from lower on"),
        ({"a": ANY}, TableError, r"knowledge\['lower'\] must have the sizes"),
        ({"c": ANY}, ParameterError, r"knowledge must name variables of the table"),
        ({("a", "b"): ANY, ("b", "a"): ANY}, ParameterError, r"each margin once"),
        ((1, 2), ParameterError, r"must be a Dataset .* got \(1, 2\)"),
        (ANY.assign(lower=TABLE < 3), TableError, r"must be a DataArray of numbers"),
    ],
)
def test_bad_ranges(knowledge, error, message):
    with pytest.raises(error, match=message):
        bounds_of(tc.Suppression(TABLE, TABLE < 5), knowledge=knowledge)


def test_ranges_that_contradict_the_totals():
    """No cell is out of its range for itself."""
    known = ANY.assign(lower=xr.where(TABLE < 5, 3, 0))
    with pytest.raises(TableError, match="no table with its cells in their bounds"):
        bounds_of(tc.Suppression(TABLE, TABLE < 5), knowledge=known)
