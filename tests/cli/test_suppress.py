"""``taciturn suppress``: a table of counts becomes a file that gives no small count
away."""

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import taciturn as tc
from attackers.outsider import Outsider, read_file
from taciturn.cli import cli, main
from taciturn.files import RELEASE_ENDINGS


@pytest.fixture
def path(tmp_path):
    table = tc.load_dataset("area_by_religion").isel(area=slice(4), religion=[0, 3, 4, 7, 8])
    table.to_dataframe().to_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


def run(*words):
    return CliRunner().invoke(cli, ["suppress", *map(str, words)])


def cells_in(path):
    """Value, None where suppressed, of each cell by its labels other than totals."""
    cells = read_file(path)
    assert {cell.status for cell in cells} <= {"published", "suppressed"}
    assert all((cell.value is None) == (cell.status == "suppressed") for cell in cells)
    return {cell.labels: cell.value for cell in cells}


@pytest.mark.parametrize("ending", RELEASE_ENDINGS)
def test_the_file_holds_what_is_published_and_no_small_count(path, ending):
    """Nor can an outsider work out one that is suppressed."""
    out = path.with_name(f"out{ending}")
    result = run(path, "--threshold", 4, "--output", out)
    assert result.exit_code == 0, result.output
    assert "not for release" in result.output
    table = tc.read_table(path)
    found = cells_in(out)
    assert len(found) == 5 * 6
    for names in (["area", "religion"], ["area"], ["religion"], []):
        margin = tc.margin(table, names)
        for at in np.ndindex(margin.shape):
            labels = frozenset(
                (n, str(margin[n].values[i])) for n, i in zip(names, at, strict=True)
            )
            value = int(margin.values[at])
            assert found[labels] == value or (found[labels] is None)
            assert not (0 < value < 4 and found[labels] is not None)
    ranges = Outsider(read_file(out)).ranges()
    assert len(ranges) == list(found.values()).count(None) > 0
    assert all(least < most for least, most in ranges.values())


def test_it_is_what_python_writes(path):
    out, same = path.with_name("out.csv"), path.with_name("same.csv")
    assert run(path, "--threshold", 4, "--output", out, "--total", "all").exit_code == 0
    table = tc.read_table(path)
    margins = [("area", "religion"), ("area",), ("religion",), ()]
    primary = {names: ((margin := tc.margin(table, names)) > 0) & (margin < 4) for names in margins}
    pattern = tc.suppress(table, primary, linked=margins, random_seed=0, progressbar=False)
    tc.write_release(pattern, same, total="all")
    assert out.read_text() == same.read_text()


def test_options_of_what_is_released(path):
    levels, out = path.with_name("levels.csv"), path.with_name("out.csv")
    levels.write_text("area,district\n1,North\n2,North\n3,South\n4,South\n")
    common = ["--threshold", 4, "--output", out, "--force"]
    assert run(path, *common, "--hierarchy", levels).exit_code == 0
    found = cells_in(out)
    assert len(found) == (4 + 2 + 1) * (5 + 1)
    districts = tc.read_table(path).values.reshape(2, 2, 5).sum(axis=(1, 2)).tolist()
    assert [found[frozenset({("area", name)})] for name in ("North", "South")] == districts
    codes, same = path.with_name("area.hrc"), path.with_name("same.csv")
    codes.write_text("North\n@1\n@2\nSouth\n@3\n@4\n")
    assert run(path, "--threshold", 4, "--output", same, "--hierarchy", codes).exit_code == 0
    assert same.read_text().replace("\r", "") == out.read_text()
    result = run(path, *common, "--hierarchy", codes.rename(path.with_name("districts.hrc")))
    assert result.exit_code == 1
    assert "a file of codes is called like the variable" in str(result.exception)
    assert run(path, *common, "--by", "religion").exit_code == 0
    assert list(cells_in(out).values()) == [
        *tc.margin(tc.read_table(path), "religion").values.tolist(),
        tc.read_table(path).values.sum(),
    ]
    assert run(path, *common, "--linked", "area", "--linked", "religion").exit_code == 0
    assert len(cells_in(out)) == 4 + 5


def test_protection_from_who_knows_the_rule_and_beyond(path):
    out = path.with_name("out.csv")
    hidden = []
    for words in ([], ["--rule-known"], ["--protection", "0.2"]):
        assert run(path, "--threshold", 4, "--output", out, "--force", *words).exit_code == 0
        hidden.append(list(cells_in(out).values()).count(None))
        if words == ["--protection", "0.2"]:  # 1 / log2 32
            small = tc.perturbation.small_cells(tc.read_table(path), minimum=4)
            ranges = Outsider(read_file(out)).ranges()
            for area, religion in np.argwhere(small.values):
                labels = {
                    ("area", str(area + 1)),
                    ("religion", str(small.religion.values[religion])),
                }
                least, most = ranges[frozenset(labels)]
                assert most - least + 1 >= 32
    assert hidden[0] <= hidden[1]
    assert hidden[0] < hidden[2]


def test_the_column_keeps_its_name(path):
    path.write_text(path.read_text().replace("count", "people", 1))
    out = path.with_name("out.csv")
    words = ["--threshold", 4, "--count", "people", "--output", out]
    assert run(path, *words).exit_code == 0
    assert out.read_text().splitlines()[0] == "area,religion,people,status"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--threshold", "4"], 2, "Missing option '--output'"),
        (["--output", "out.csv"], 2, "Missing option '--threshold'"),
        (["--threshold", "1", "--output", "out.csv"], 2, "2<=x<="),
        (["--threshold", "4", "--protection", "0", "--output", "out.csv"], 2, "0<x<=1"),
        (["--threshold", "4", "--by", "sex", "--output", "out.csv"], 1, "no variable ['sex']"),
        (["--threshold", "4", "--linked", "sex", "--output", "out.csv"], 1, "--linked must name"),
        (["--threshold", "4", "--total", "1", "--output", "out.csv"], 1, "total must be no cat"),
        (["--threshold", "4", "--output", "out.txt"], 1, "ends in .csv, .parquet, .json, .xlsx"),
        (["--threshold", "4", "--output", "table.csv", "--force"], 1, "is the file that is read"),
        (["--threshold", "2", "--rule-known", "--output", "out.csv"], 1, "a single value"),
    ],
)
def test_what_it_refuses(words, status, message, path, capsys, monkeypatch):
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "argv", ["taciturn", "suppress", "table.csv", *words])
    before = path.read_text()
    with pytest.raises(SystemExit) as done:
        main()
    error = capsys.readouterr().err
    assert (done.value.code, message in error) == (status, True), error
    assert [each.name for each in path.parent.iterdir()] == ["table.csv"]
    assert path.read_text() == before


def test_python_runs_the_command_line():
    words = [sys.executable, "-m", "taciturn"]
    done = subprocess.run([*words, "suppress"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: python -m taciturn suppress ")
