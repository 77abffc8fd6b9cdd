"""Intervals in the place of blanks tell nothing that is not published already."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError

LEVEL = 4


def protected(seed):
    generator = np.random.default_rng(seed)
    table = xr.DataArray(
        generator.integers(1, 40, (3, 4)),
        coords={"a": list("xyz"), "b": list("klmn")},
        dims=("a", "b"),
    )
    margins = [("a", "b"), "a", "b", ()]
    primary = {("a", "b"): table < 8, ("b",): table.sum("a") < 45}
    interval = {
        names: xr.Dataset({"lower": (total - LEVEL).clip(min=0), "upper": total + LEVEL})
        for names, total in {("a", "b"): table, ("b",): table.sum("a")}.items()
    }
    pattern = tc.suppress(
        table, primary, linked=margins, protection=interval, random_seed=0, progressbar=False
    )
    return pattern, primary


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_who_has_the_intervals_works_out_no_more(seed):
    pattern, primary = protected(seed)
    found = pattern.intervals(progressbar=False)
    assert pattern.n_primary > 0
    known = {names: table[["lower", "upper"]] for names, table in found.items()}
    for names, table in found.items():
        bounds = tc.attacker_bounds(pattern.release, margin=names, progressbar=False)
        more = tc.attacker_bounds(pattern.release, margin=names, knowledge=known, progressbar=False)
        for side in ("lower", "upper"):
            assert table[side].equals(bounds[side])
            assert more[side].equals(bounds[side])
        true = tc.margin(pattern.release.true_table, names)
        assert bool(((table["lower"] <= true) & (true <= table["upper"])).all())
        if names in primary:
            width = [(true - table["lower"]), (table["upper"] - true)]
            for each, asked in zip(width, (np.minimum(LEVEL, true), LEVEL), strict=True):
                assert bool((each >= asked).where(primary[names], True).all())
        shown = table["status"] == "published"
        assert bool((table["lower"] == table["upper"]).where(shown, True).all())
        assert bool(table["value"].isnull().equals(~shown))


def test_intervals_depend_on_what_is_published_alone():
    """Another table with the same published cells has the same intervals."""
    pattern, _ = protected(0)
    hidden = {names: table["value"].isnull() for names, table in pattern.tables.items()}
    step = next(
        move
        for move in np.ndindex(3, 3, 4, 4)
        if move[0] < move[1]
        and move[2] != move[3]
        and all(hidden["a", "b"].values[i, j] for i in move[:2] for j in move[2:])
        and pattern.release.true_table.values[move[0], move[3]] > 0
        and pattern.release.true_table.values[move[1], move[2]] > 0
    )
    other = pattern.release.true_table.copy(deep=True)
    for i, j, by in ((0, 2, 1), (0, 3, -1), (1, 2, -1), (1, 3, 1)):
        other.values[step[i], step[j]] += by
    release = tc.LinkedTables(other, list(hidden), suppressed=hidden)
    for names, table in pattern.intervals(progressbar=False).items():
        bounds = tc.attacker_bounds(release, margin=names, progressbar=False)
        assert table["lower"].equals(bounds["lower"])
        assert table["upper"].equals(bounds["upper"])


def test_a_pattern_that_is_not_for_release_has_none():
    import dataclasses

    pattern, primary = protected(0)
    unproved = dataclasses.replace(pattern, unproved={("a", "b"): primary["a", "b"]})
    with pytest.raises(ParameterError, match="are not proved to be protected"):
        unproved.intervals()
