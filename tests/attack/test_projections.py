"""Bounds of linked tables over the cells of their projections, beside those over the
cells of the whole table.
"""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.attack.bounds import of_totals
from taciturn.attack.bounds.projections import over_projections
from taciturn.errors import TableError

PAIR = [("a", "b"), ("a", "c"), ("a",), ("b",), ("c",), ()]
WITH_LEVEL = [*PAIR, ("g", "b"), ("g", "c"), ("g",)]
APART = [("a",), ("b", "c"), ("c",), ()]
CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("b",), ("c",), ()]
STAR = [("a", "b"), ("a", "c"), ("a", "d"), ()]
COARSE = [("g", "b"), ("a",), ("g", "c"), ()]
CYCLE = [("a", "b"), ("b", "c"), ("a", "c"), ()]


def release_of(margins, seed, *, hidden=0.5, always=((),)):
    """A table of small numbers, of whose projections cells are suppressed at random."""
    generator = np.random.default_rng(seed)
    dims = sorted({name for names in margins for name in names} - {"g"} | {"a"})
    table = xr.DataArray(
        generator.integers(0, 5, [4, 2, 3, 2][: len(dims)]),
        dims=dims,
        coords={"g": ("a", ["x", "x", "y", "y"])},
    )
    suppressed = {}
    for names in margins:
        labels = tc.attack.LinkedTables(table, [names]).system.totals[0].labels
        if names not in always:
            suppressed[names] = labels.copy(data=generator.random(labels.shape) < hidden)
    return tc.LinkedTables(table, margins, suppressed=suppressed)


def over_cells(monkeypatch, release, names, **options):
    """Bounds over the cells of the whole table."""
    with monkeypatch.context() as patch:
        patch.setattr(of_totals, "over_projections", lambda system, *_: (system, None))
        return tc.attacker_bounds(release, margin=names, progressbar=False, **options)


def reduced(release, names):
    """Whether a release is attacked over the cells of projections."""
    group = tc.attack.LinkedTables(release.true_table, [names]).system.totals[0].group
    return over_projections(release.system, group, None)[0] is not release.system


@pytest.mark.parametrize("margins", [PAIR, WITH_LEVEL, APART, CHAIN, STAR, COARSE], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_bounds_are_those_of_the_whole_table(margins, seed, monkeypatch):
    release = release_of(margins, seed)
    for names in margins:
        assert reduced(release, names)
        bounds = tc.attacker_bounds(release, margin=names, progressbar=False)
        xr.testing.assert_identical(bounds, over_cells(monkeypatch, release, names))


@pytest.mark.parametrize("seed", range(2))
def test_known_ranges_of_projections(seed, monkeypatch):
    release = release_of(PAIR, seed)
    true = release.true_table.sum("c").drop_vars("g")
    ranges = {
        "knowledge": {("a", "b"): xr.Dataset({"lower": (true - 2).clip(0), "upper": true + 3})}
    }
    for names in PAIR:
        bounds = tc.attacker_bounds(release, margin=names, progressbar=False, **ranges)
        expected = over_cells(monkeypatch, release, names, **ranges)
        xr.testing.assert_identical(bounds, expected)


@pytest.mark.parametrize("seed", range(2))
def test_a_suppressed_pattern_of_linked_tables_keeps_its_bounds(seed, monkeypatch):
    table = release_of(PAIR, seed).true_table + 1
    primary = {("a", "b"): table.sum("c") < 7}
    options = {"linked": PAIR, "random_seed": 0, "progressbar": False}
    pattern = tc.suppress(table.drop_vars("g"), primary, **options)
    for names, audit in pattern.audit.items():
        asked = (pattern.status[names] == "primary").drop_vars("g", errors="ignore")
        expected = over_cells(monkeypatch, pattern.release, names, cells=asked)
        xr.testing.assert_identical(audit[["lower", "upper"]], expected[["lower", "upper"]])


def test_other_releases_are_attacked_over_the_whole_table(monkeypatch):
    assert not reduced(release_of(CYCLE, 0), ("a", "b"))
    # No projection contains the margin; the whole table is released; no upper bounds.
    assert not reduced(release_of(PAIR, 0), ("b", "c"))
    assert not reduced(release_of([*PAIR, ("a", "b", "c")], 0), ("a", "b"))
    open_ = release_of(PAIR, 0, always=(), hidden=0.9)
    assert not reduced(open_, ("a", "b"))
    bounds = tc.attacker_bounds(open_, margin=("a", "b"), progressbar=False)
    assert np.isinf(bounds["upper"]).any()
    # Cells of the table are known of.
    table = open_.true_table
    of_cells = xr.Dataset({"lower": table * 0, "upper": table + 4}).drop_vars("g")
    release = release_of(PAIR, 1)
    bounds = tc.attacker_bounds(release, margin=("a", "b"), knowledge=of_cells, progressbar=False)
    expected = over_cells(monkeypatch, release, ("a", "b"), knowledge=of_cells)
    xr.testing.assert_identical(bounds, expected)


def test_a_contradiction_names_what_is_released():
    table = release_of(PAIR, 0).true_table.drop_vars("g") + 1
    hidden = {
        names: xr.ones_like(table.sum("bc".replace(names[1], "")), dtype=bool) for names in PAIR[:2]
    }
    release = tc.LinkedTables(table, PAIR, suppressed=hidden)
    true = table.sum("c")
    few = {("a", "b"): xr.Dataset({"lower": true * 0, "upper": true * 0 + 1})}
    with pytest.raises(TableError, match=r"itself: .* the grand total of 77 with 24"):
        tc.attacker_bounds(release, margin=("a", "b"), knowledge=few, progressbar=False)


def test_hundreds_of_thousands_of_cells_are_attacked_in_seconds():
    table = xr.DataArray(
        np.random.default_rng(2).integers(0, 3, (60, 40, 50)), dims=("a", "b", "c")
    )
    hidden = {
        names: table.sum(dim) < 48 for names, dim in {("a", "b"): "c", ("a", "c"): "b"}.items()
    }
    release = tc.LinkedTables(
        table, PAIR, suppressed=hidden | {("a",): table.sum(["b", "c"]) < 1990}
    )
    bounds = tc.attacker_bounds(release, margin=("a", "b"), progressbar=False)
    true = table.sum("c")
    assert ((bounds["lower"] <= true) & (true <= bounds["upper"])).all()
    assert not bounds["published"].all()


class Diagonals(tc.attack.Release):
    """Totals along the diagonals of a table, which no margin is; their labels may be
    called as a variable is.
    """

    def __init__(self, true_table, called):
        self.true_table, self.called = true_table, called

    @property
    def system(self):
        group = np.add.outer(*(np.arange(size) for size in self.true_table.shape)).ravel()
        sums = np.bincount(group, weights=self.true_table.values.ravel()).astype(int)
        labels = xr.DataArray(sums, {self.called: list(map(str, range(len(sums))))}, self.called)
        nothing = np.zeros(self.true_table.size, dtype=bool)
        totals = [tc.attack.Total.exact(labels, group)]
        return tc.attack.build_system(self.true_table, known=nothing, totals=totals, decimals=0)

    def publishes(self, names):
        return np.zeros(max(1, sum(self.true_table.sizes[name] for name in names)), dtype=bool)

    def shown(self):
        return tc.attack.Shown(["totals along diagonals"], [])


@pytest.mark.parametrize("called", ["diagonal", "a"])
def test_totals_that_are_no_margins(called):
    """Of 2 by 2 cells: 1 in the first, 2 in the last, and 5 in the other two."""
    table = xr.DataArray([[1, 2], [3, 2]], {"a": ["x", "y"], "b": ["u", "v"]}, ("a", "b"))
    release = Diagonals(table, called)
    total = tc.attacker_bounds(release, margin=(), progressbar=False)
    assert (total["lower"].item(), total["upper"].item()) == (8, 8)
    rows = tc.attacker_bounds(release, margin="a", progressbar=False)
    assert rows["lower"].values.tolist() == [1, 2]
    assert rows["upper"].values.tolist() == [6, 7]
