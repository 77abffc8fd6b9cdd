"""``taciturn attack``: what it prints and writes is what Python gives, and what it
refuses."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli

TABLE = xr.DataArray(
    [[5, 1], [2, 4], [7, 9]],
    dims=("region", "size"),
    coords={"region": ["A", "B", "C"], "size": ["s", "m"]},
    name="count",
)
COUNTRY = "country,region\nX,A\nY,B\nY,C\n"
SQUARE = "region,size,status\nA,s,secondary\nA,m,primary\nB,s,primary\nB,m,secondary\nC,s,safe\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    TABLE.to_dataframe().to_csv(tmp_path / "table.csv")
    (tmp_path / "hidden.csv").write_text(SQUARE)
    (tmp_path / "country.csv").write_text(COUNTRY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, arguments)])
        status = 0
        try:
            cli.main()
        except SystemExit as done:
            status = done.code or 0
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


@pytest.fixture
def attack(run):
    return lambda *arguments: run("attack", *arguments)


def test_a_suppressed_table(attack, folder):
    status, out, err = attack("table.csv", "--suppressed", "hidden.csv", "--output", "out.csv")
    assert (status, err) == (0, "")
    # Rows hold 6 and 6, the columns' rest is 7 and 5.
    assert out.splitlines() == [
        "cell              lower  upper  values    risk",
        "region=A, size=s      1      6       6  0.3869",
        "region=A, size=m      0      5       6  0.3869",
        "region=B, size=s      1      6       6  0.3869",
        "region=B, size=m      0      5       6  0.3869",
        "",
        "0 of 4 cells that are not published can be worked out exactly",
    ]
    rows = pd.read_csv("out.csv")
    assert list(rows.columns) == [
        "region",
        "size",
        "lower",
        "upper",
        "n_values",
        "risk",
        "disclosed",
    ]
    assert rows["lower"].tolist() == [1, 0, 1, 0]
    np.testing.assert_allclose(rows["risk"], 1 / np.log2(6))
    assert sorted(path.name for path in folder.iterdir()) == [
        "country.csv",
        "hidden.csv",
        "out.csv",
        "table.csv",
    ]


def test_disclosed_cells_come_first_then_those_at_most_risk(attack):
    (pd.DataFrame({"region": ["A", "A", "B", "B", "C"], "size": ["s", "m", "s", "m", "s"]})).to_csv(
        "more.csv", index=False
    )
    status, out, _ = attack(
        "table.csv", "--suppressed", "more.csv", "--output", "out.csv", "--top", 2
    )
    assert status == 0
    lines = out.splitlines()
    assert lines[1].split() == ["region=C,", "size=s", "7", "7", "1", "disclosed"]  # 16 less 9
    assert lines[3:] == [
        "and 3 more",
        "",
        "1 of 5 cells that are not published can be worked out exactly",
    ]
    rows = pd.read_csv("out.csv")
    assert rows["disclosed"].tolist() == [True, False, False, False, False]
    assert rows["risk"].isna().tolist() == [True, False, False, False, False]
    status, out, _ = attack("table.csv", "--suppressed", "more.csv", "--top", 0)
    assert out == "1 of 5 cells that are not published can be worked out exactly\n"
    status, out, _ = attack("table.csv", "--linked", "region", "--linked", "size")
    values = [int(line.split()[4]) for line in out.splitlines()[1:7]]
    assert values == sorted(values)  # more values are less risk
    assert values == [7, 7, 7, 7, 13, 13]  # 0 to 6 of 6, and 16 - 14 to 14


def test_levels_and_their_totals(attack):
    with_levels = TABLE.assign_coords(country=("region", ["X", "Y", "Y"]))
    hidden = xr.zeros_like(TABLE, dtype=bool)
    hidden[:2] = True
    found = tc.attacker_bounds(tc.Suppression(with_levels, hidden), progressbar=False)
    assert found["disclosed"].all()  # of Y only B is suppressed
    status, out, _ = attack("table.csv", "--suppressed", "hidden.csv", "--hierarchy", "country.csv")
    assert status == 0
    assert "4 of 4 cells that are not published" in out
    Path("total.csv").write_text("size,country\ns,X\nm,X\ns,Y\nm,Y\n")
    files = ["--suppressed", "hidden.csv", "--suppressed", "total.csv"]
    status, out, _ = attack(
        "table.csv", *files, "--hierarchy", "country.csv", "--output", "out.csv"
    )
    assert status == 0
    rows = pd.read_csv("out.csv")
    assert list(rows.columns)[:3] == ["region", "size", "country"]
    cells, totals = rows[rows["region"].notna()], rows[rows["region"].isna()]
    assert cells["lower"].tolist() == [
        1,
        0,
        1,
        0,
    ]  # as without levels: the totals of sizes are all that is left
    assert cells["upper"].tolist() == [6, 5, 6, 5]
    assert totals.set_index(["size", "country"])["upper"].to_dict() == {
        ("s", "X"): 6,
        ("m", "X"): 5,
        ("s", "Y"): 6 + 7,
        ("m", "Y"): 5 + 9,
    }
    assert "size=m, country=Y" in out


def test_linked_tables_and_a_margin(attack):
    cube = xr.DataArray(
        [[[1, 2], [3, 0]], [[4, 1], [2, 2]]],
        dims=("a", "b", "c"),
        coords={"a": ["p", "q"], "b": ["r", "t"], "c": ["u", "v"]},
        name="people",
    )
    cube.to_dataframe().to_csv("cube.csv")
    Path("ab.csv").write_text("b,a\nr,p\n")
    linked = ["--count", "people", "--linked", "a,b", "--linked", "a,c", "--suppressed", "ab.csv"]
    status, out, _ = attack("cube.csv", *linked)
    assert status == 0
    assert out.splitlines()[1].split() == [
        "a=p,",
        "b=r",
        "3",
        "3",
        "1",
        "disclosed",
    ]  # 4 + 2 less 3
    # The eight inner cells, which nothing publishes, are bounded as well.
    assert out.splitlines()[-1].startswith("1 of 9")
    status, out, _ = attack("cube.csv", *linked, "--margin", "a,b,c", "--output", "out.csv")
    assert status == 0
    assert "totals over a, b, c that are not published" in out.splitlines()[-1]
    status, _, err = attack("cube.csv", *linked, "--margin", "a", "--fail-on", "disclosed")
    assert status == 2
    assert "leave out --margin" in err
    release = tc.LinkedTables(cube, [("a", "b"), ("a", "c")])
    expected = tc.attacker_bounds(release, progressbar=False)
    rows = pd.read_csv("out.csv").set_index(["a", "b", "c"])
    for cell, row in rows.iterrows():
        chosen = expected.sel(dict(zip("abc", cell, strict=True)))
        assert (row["lower"], row["upper"]) == (float(chosen["lower"]), float(chosen["upper"]))
    status, out, _ = attack("cube.csv", *linked, "--margin", "")
    assert out.splitlines()[1].split() == ["the", "grand", "total", "15", "15", "1", "disclosed"]


def test_named_totals(attack):
    status, out, _ = attack("table.csv", "--suppressed", "hidden.csv", "--totals", "region")
    assert status == 0
    assert [line.split()[2:4] for line in out.splitlines()[1:5]] == [["0", "6"]] * 4
    status, out, _ = attack("table.csv", "--suppressed", "hidden.csv", "--totals", "")
    assert [line.split()[2:4] for line in out.splitlines()[1:5]] == [["0", "12"]] * 4


def test_magnitudes(attack):
    Path("values.csv").write_text("region,size,count\nA,s,0.10\nA,m,2e-1\nB,s,0.3\nB,m,.4\n")
    Path("all.csv").write_text("region,size\nA,s\nA,m\nB,s\nB,m\n")
    status, out, _ = attack("values.csv", "--suppressed", "all.csv", "--decimals", 1)
    assert status == 0
    # Rows hold 0.3 and 0.7, columns 0.4 and 0.6.
    assert out.splitlines()[1].split() == ["region=A,", "size=s", "0.0", "0.3", "4", "0.5000"]
    assert out.splitlines()[4].split() == ["region=B,", "size=m", "0.3", "0.6", "4", "0.5000"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nan",
        "-0.1",
        "0.25",
        "1_0",
        "inf",
        "1e400",
        "1e-999999999",
        "0.1000000000000000000000000000001",
        "x",
    ],
)
def test_values_that_are_not_taken(attack, text):
    Path("values.csv").write_text(f"region,size,count\nA,s,{text}\nA,m,0.2\n")
    Path("one.csv").write_text("region,size\nA,s\n")
    status, out, err = attack("values.csv", "--suppressed", "one.csv", "--decimals", 1)
    assert (status, out) == (1, "")
    found = "is missing" if text in {"", "nan"} else "holds"
    assert f"with at most 1 decimals: region=A, size=s {found}" in err


def test_labels_do_not_reach_the_terminal_raw(attack):
    """Control characters in a file are refused, and shown as escapes."""
    Path("table.csv").write_text("region,size,count\nA\x1b[2J,s,1\nA\x1b[2J,m,2\nB,s,3\nB,m,4\n")
    Path("hidden.csv").write_text("region,size\nB,s\n")
    status, out, err = attack("table.csv", "--suppressed", "hidden.csv")
    assert status == 1
    assert "\x1b" not in out + err
    assert "A\\x1b[2J" in err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "hidden.csv",
            "region,size\nA,s\nA,x\n",
            "hidden.csv: row 2 has size=x, which is no category of the table",
        ),
        (
            "hidden.csv",
            "region,size\nA,s\nA,s\n",
            "row 2 gives the cell region=A, size=s a second time",
        ),
        (
            "hidden.csv",
            "region,area\nA,s\n",
            r"must name what is released: region,size or size or region; .* 'area'",
        ),
        (
            "hidden.csv",
            "region,size,status\nA,s,open\n",
            "one of published, suppressed, safe, primary, secondary; row 1 has 'open'",
        ),
        ("hidden.csv", "region,size,status\nA,s,safe\n", "no cell is suppressed"),
        ("hidden.csv", "region,size,status\nA,s,published\n", "no cell is suppressed"),
        ("hidden.csv", "", "the file is empty"),
        ("country.csv", "region,size\nA,s\n", "a hierarchy has one column called like"),
        (
            "country.csv",
            "region,country\nA,X\nB,X\n",
            "no row for region=C; each category of 'region' must have one",
        ),
        ("country.csv", "region,country\nA,X\nA,X\n", "row 2 gives region=A a second time"),
        ("country.csv", "region,country\nA,X\nD,X\n", "no row for region=B"),
        ("country.csv", "region,country\nA,X\nB, \nC,X\n", "row 2 has no 'country' for region=B"),
        ("country.csv", "region,count\nA,X\n", "'count' cannot name a level"),
        ("country.csv", "region,lower\nA,X\nB,Y\nC,Y\n", "'lower' cannot name a variable or level"),
    ],
)
def test_bad_files(attack, folder, name, content, message):
    (folder / name).write_text(content)
    before = sorted(folder.iterdir())
    files = ["--suppressed", "hidden.csv", "--hierarchy", "country.csv"]
    status, out, err = attack(
        "table.csv", *(files if name == "country.csv" else files[:2]), "--output", "out.csv"
    )
    assert (status, out) == (1, "")
    assert err.startswith("taciturn: error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["table.csv"], 2, "give --release, --suppressed or --linked"),
        (
            ["table.csv", "--linked", "size", "--totals", "region"],
            2,
            "--totals are those of a released table",
        ),
        (["table.csv", "--suppressed", "hidden.csv", "--decimals", "13"], 2, "0<=x<=12"),
        (
            ["table.csv", "--suppressed", "hidden.csv", "--totals", "area"],
            1,
            "--totals must name variables",
        ),
        (["table.csv", "--linked", "region", "--margin", "area"], 1, "margin must name variables"),
        (["table.csv", "--suppressed", "none.csv"], 1, "none.csv: no such file"),
        (
            ["table.csv", "--suppressed", "hidden.csv", "--output", "table.csv"],
            1,
            "is the file that is read",
        ),
        (
            ["table.csv", "--suppressed", "hidden.csv", "--output", "hidden.csv"],
            1,
            "is the file that is read",
        ),
        (
            ["table.csv", "--suppressed", "hidden.csv", "--output", "no/out.csv"],
            1,
            "does not exist",
        ),
    ],
)
def test_refusals(attack, arguments, status, message):
    found, out, err = attack(*arguments)
    assert (found, out) == (status, "")
    assert message in err


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json"])
def test_a_file_of_a_release_as_it_is(attack, ending, run):
    words = ["--threshold", "3", "--hierarchy", "country.csv", "--seed", "1", "--total", "All"]
    assert run("suppress", "table.csv", *words, "--output", f"released{ending}")[0] == 0
    levels = TABLE.assign_coords(country=("region", ["X", "Y", "Y"]))
    release = tc.publication.read_release(f"released{ending}", levels, total="All")
    expected = tc.attacker_bounds(release, progressbar=False)
    status, out, err = attack(
        "table.csv", "--release", f"released{ending}", "--hierarchy", "country.csv",
        "--total", "All", "--output", "bounds.csv", "--margin", "region,size"
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "0 of 4 totals over region, size that are not published can be worked out exactly" in out
    found = pd.read_csv("bounds.csv", index_col=["region", "size"])[["lower", "upper"]]
    for cell, row in found.iterrows():
        at = expected.sel(region=cell[0], size=cell[1])
        assert row.tolist() == [float(at["lower"]), float(at["upper"])]
    Path("other.csv").write_text(Path("table.csv").read_text().replace(",9", ",8"))
    status, out, err = attack(
        "other.csv", "--release", f"released{ending}", "--hierarchy", "country.csv",
        "--total", "All",
    )  # fmt: skip
    assert (status, out, "is not that of the table" in err) == (1, "", True)


def test_releases_in_which_nothing_is_suppressed(attack, run):
    assert run("perturb", "table.csv", "--method", "random-round", "--output", "r.csv")[0] == 0
    status, out, err = attack("table.csv", "--release", "r.csv")
    assert (status, out) == (1, "")
    assert "r.csv: every cell is published, as it is or perturbed" in err
    assert run("suppress", "table.csv", "--threshold", "2", "--output", "s.csv")[0] == 0
    Path("s.csv").write_text(
        TABLE.assign_coords().to_dataframe().assign(status="published").to_csv()
    )
    status, out, err = attack("table.csv", "--release", "s.csv")
    assert (status, out) == (1, "")
    assert "s.csv: every cell is published, as it is or perturbed" in err


def test_a_file_without_a_variable_of_the_table_is_said_to_leave_cells_out(attack):
    """A published zero is one of all cells in it, which --linked looks at."""
    Path("t.csv").write_text("a,b,count\nx,p,0\nx,q,0\ny,p,1\ny,q,1\nz,p,0\nz,q,2\nw,p,4\nw,q,5\n")
    Path("r.csv").write_text(
        "a,count,status\nx,0,published\ny,,suppressed\nz,,suppressed\nw,9,published\n"
    )
    Path("s.csv").write_text("a\ny\nz\n")
    status, _, err = attack("t.csv", "--release", "r.csv", "--fail-on", "disclosed")
    assert status == 0
    assert "r.csv has no b: cells of the table, which are by that too, were not looked at" in err
    status, _, err = attack(
        *("t.csv", "--linked", "a", "--suppressed", "s.csv", "--fail-on", "disclosed")
    )
    assert (status, "not looked at" in err) == (4, False)


def test_an_interval_that_leaves_out_its_published_value_is_refused(attack):
    Path("t.csv").write_text("a,count\nx,3\ny,4\nz,9\n")
    rows = "a,count,lower,upper,status\nx,,0,7,suppressed\ny,,0,7,suppressed\nz,9,{},published\n"
    for ends, refused in (("9,9", False), (",", False), ("0,3", True), ("10,12", True)):
        Path("r.csv").write_text(rows.format(ends) + "Total,16,16,16,published\n")
        status, _, err = attack("t.csv", "--release", "r.csv")
        assert status == refused
        assert ("its interval leaves out 9, which is published" in err) == refused
