"""``taciturn tabulate``, and ``assess`` on microdata, as a clerk has them."""

import io
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import TableError

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "area_by_religion_sample.csv"
QUICK = ["-N", "2449", "--model", "log-linear", "--draws", "50", "--seed", "1"]


@pytest.fixture
def people(tmp_path) -> Path:
    """Microdata behind the sample, as a clerk has them."""
    rows = pd.read_csv(SAMPLE, dtype={"area": str, "religion": str})
    records = rows.loc[rows.index.repeat(rows["count"])].drop(columns="count")
    path = tmp_path / "people.csv"
    records.sample(frac=1, random_state=1).to_csv(path, index=False, sep=";")
    return path


def run(*arguments) -> tuple[str, str]:
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_what_is_written_is_read_as_the_same_table(people, tmp_path):
    expected = tc.tabulate(people, ["area", "religion"])
    printed, _ = run("tabulate", people, "--variables", "area,religion")
    run("tabulate", people, "--variables", "area,religion", "--output", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == printed
    assert tc.read_table(tmp_path / "t.csv").identical(expected)


def test_names_with_separators_in_them(tmp_path):
    people = pd.DataFrame({"age, in years": ["0", "1", "1"], "a;b|c": ["x", "y", "y"], "e": "z"})
    people.to_csv(tmp_path / "people.csv", index=False)
    for name in ("age, in years", "a;b|c"):
        words = ["--variables", f' e , "{name}"', "--output", tmp_path / "t.csv", "--force"]
        run("tabulate", tmp_path / "people.csv", *words, "--sep", ",")
        table = tc.read_table(tmp_path / "t.csv")  # which sees what separates
        assert table.identical(tc.tabulate(people, ["e", name]))
    wrong = CliRunner().invoke(cli, ["tabulate", "people.csv", "--variables", '"e,a'])
    assert wrong.exit_code == 2
    assert "are not names joined by commas" in wrong.output


def test_missing_labels_and_their_number(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("area;sex\nZürich;f\n;m\nZürich;\nGenève;f\n", encoding="latin-1")
    given = ["tabulate", path, "--variables", "area,sex", "--encoding", "latin-1"]
    with pytest.raises(TableError, match="a label is missing: 'area' in row 2"):
        run(*given)
    printed, said = run(*given, "--missing", "drop")
    assert tc.read_table(pd.read_csv(io.StringIO(printed))).to_series().to_dict() == {
        ("Genève", "f"): 1,
        ("Genève", "m"): 0,
        ("Zürich", "f"): 1,
        ("Zürich", "m"): 0,
    }
    assert said == "taciturn: 2 records that lack a label are left out\n"
    printed, said = run(*given, "--missing", "not stated")
    assert printed.splitlines()[-3:] == [
        "not stated,f,0",
        "not stated,m,1",
        "not stated,not stated,0",
    ]
    assert said == ""


def test_categories_from_files(people, tmp_path):
    (tmp_path / "religions.csv").write_text(
        "religion,label\n11,none\n" + "".join(f"{code},x\n" for code in range(1, 11))
    )
    given = ["--variables", "area,religion", "--categories", tmp_path / "religions.csv"]
    printed, _ = run("tabulate", people, *given)
    table = tc.read_table(pd.read_csv(io.StringIO(printed)))
    assert table["religion"].values.tolist() == [11, *range(1, 11)]
    assert int(table.sel(religion=11).sum()) == 0
    with pytest.raises(TableError, match="another file of --categories has those of 'religion'"):
        run("tabulate", people, *given, *given[2:])
    (tmp_path / "other.csv").write_text("code\n1\n")
    with pytest.raises(TableError, match="one column must be called like one of the variables"):
        run("tabulate", people, *given, "--categories", tmp_path / "other.csv")


def test_sums_of_weights(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("area,w\nA,1.5\nB,2\nA,2.25\n")
    printed, _ = run("tabulate", path, "--variables", "area", "--sampling-weights", "w")
    assert printed == "area,weighted_count\nA,3.75\nB,2.0\n"


def test_assess_takes_microdata(people, tmp_path):
    """The same numbers as from their table."""
    run("tabulate", people, "--variables", "area,religion", "--output", tmp_path / "t.csv")
    direct, _ = run("assess", people, "--variables", "area,religion", *QUICK)
    assert direct == run("assess", tmp_path / "t.csv", *QUICK)[0]
    assert "R2" in direct


@pytest.mark.parametrize("command", [["assess", *QUICK], ["tabulate"]])
def test_rows_of_a_table_are_not_counted_as_people(command):
    with pytest.raises(TableError, match="has a column 'count', so that it is no microdata"):
        run(command[0], SAMPLE, "--variables", "area,religion", *command[1:])
