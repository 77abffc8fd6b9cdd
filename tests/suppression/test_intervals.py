"""Intervals in the place of blanks tell nothing that is not published already."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import FileFormatError, ParameterError, TableError

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
    unproved = dataclasses.replace(
        pattern, unproved_in_all=1, unproved={("a", "b"): primary["a", "b"]}
    )
    with pytest.raises(ParameterError, match="are not proved to be protected"):
        unproved.intervals()


ENDINGS = (".csv", ".parquet", ".xlsx")


def read_rows(path):
    """The file as it is, numbers as numbers."""
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}
    return readers[path.suffix](path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_have_the_intervals_beside_the_values(ending, tmp_path):
    pattern, _ = protected(0)
    path = tmp_path / f"release{ending}"
    tc.write_release(pattern, path, value="sales", intervals=True)
    rows = read_rows(path)
    assert rows.columns.tolist() == ["a", "b", "sales", "lower", "upper", "status"]
    suppressed = rows["status"] == "suppressed"
    assert suppressed.any()
    assert (rows["sales"].isna() == suppressed).all()
    shown = rows[~suppressed]
    assert (shown["lower"] == shown["sales"]).all()
    assert (shown["upper"] == shown["sales"]).all()
    found = rows.set_index(["a", "b"])
    for names, table in pattern.intervals(progressbar=False).items():
        for labels, cell in table[["lower", "upper"]].to_dataframe().iterrows() if names else ():
            labels = labels if isinstance(labels, tuple) else (labels,)
            at = dict(zip(names, labels, strict=True))
            row = found.loc[(at.get("a", "Total"), at.get("b", "Total"))]
            assert (row["lower"], row["upper"]) == (cell["lower"], cell["upper"])


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_with_intervals_is_the_release_without_them(ending, tmp_path):
    pattern, _ = protected(1)
    for name, intervals in (("with", True), ("without", False)):
        tc.write_release(pattern, tmp_path / f"{name}{ending}", intervals=intervals)
    true = pattern.release.true_table
    both = [
        tc.publication.read_release(tmp_path / f"{name}{ending}", true)
        for name in ("with", "without")
    ]
    first, second = map(tc.publication.release_rows, both)
    assert first.equals(second)


def test_an_interval_that_tells_more_is_refused(tmp_path):
    pattern, _ = protected(1)
    true, path = pattern.release.true_table, tmp_path / "r.csv"
    rows = tc.publication.release_rows(pattern, intervals=True)
    row = int(rows.index[rows["status"] == "suppressed"][0])
    changes = (("lower", 1, "narrower"), ("upper", -1, "narrower"), ("lower", 0.5, "an end of"))
    for side, by, message in changes:
        changed = rows.copy()
        changed.loc[row, side] += by
        changed.to_csv(path, index=False)
        with pytest.raises(TableError, match=message):
            tc.publication.read_release(path, true)
    rows.assign(lower=0, upper=np.nan).to_csv(path, index=False)  # wider: open above
    assert isinstance(tc.publication.read_release(path, true), tc.LinkedTables)


def test_what_no_total_limits_is_open_above(tmp_path):
    table = xr.DataArray([[5, 20], [30, 40]], dims=("a", "b"))
    pattern = tc.suppress(table, table == 5, linked=[("a", "b")], random_seed=0, progressbar=False)
    tc.write_release(pattern, tmp_path / "r.csv", intervals=True)
    assert (tmp_path / "r.csv").read_text().splitlines()[1] == "0,0,,0,,suppressed"
    read = tc.publication.read_release(tmp_path / "r.csv", table)
    assert tc.publication.release_rows(read)["status"].tolist().count("suppressed") == 1


def test_what_has_no_intervals_and_where_there_is_no_room(tmp_path):
    pattern, _ = protected(0)
    with pytest.raises(FileFormatError, match=r"'\.json'; give .* \.csv, \.parquet, \.xlsx"):
        tc.write_release(pattern, tmp_path / "r.json", intervals=True)
    with pytest.raises(ParameterError, match=r"intervals are those of .* got LinkedTables"):
        tc.write_release(pattern.release, tmp_path / "r.csv", intervals=True)
    with pytest.raises(ParameterError, match="value must not be 'lower'"):
        tc.write_release(pattern, tmp_path / "r.csv", value="lower", intervals=True)
    assert not list(tmp_path.iterdir())


def test_the_commands_write_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pattern, _ = protected(0)
    table = pattern.release.true_table
    table.to_series().rename("count").reset_index().to_csv("table.csv", index=False)
    run = CliRunner().invoke
    done = run(cli, ["suppress", "table.csv", "--threshold", "8", "--output", "r.csv"])
    assert done.exit_code == 0, done.output
    words = ["suppress", "table.csv", "--threshold", "8", "--intervals", "--output"]
    done = run(cli, [*words, "intervals.csv"])
    assert done.exit_code == 0, done.output
    plain, more = pd.read_csv("r.csv"), pd.read_csv("intervals.csv")
    assert more.drop(columns=["lower", "upper"]).equals(plain)
    asked = run(cli, ["attack", "table.csv", "--release", "intervals.csv"])
    assert asked.exit_code == 0, asked.output
    assert "give" in str(run(cli, [*words, "r.json"]).exception)
    rules = ["rules", "table.csv", "--variables", "a,b", "--value", "count", "--rule", "freq:3"]
    refused = run(cli, [*rules, "--intervals"])
    assert refused.exit_code == 2
    assert "--intervals needs --output" in refused.output
