"""What a message says would help: an option at the shell, an argument in Python."""

import pickle

import pytest

import taciturn as tc
from taciturn.errors import TableError

MISSING = "; --missing of taciturn tabulate and taciturn rules leaves such records out"
MANY = ["--draws", "5", "--workers", "1"]
FILES = {
    "people.csv": "area,sex\nA,f\n,m\n",
    "table.csv": "area,sex,count\nA,f,1\n,m,2\n",
    "total.csv": "area,sex,count\nA,f,1\nA,m,2\nTotal,f,1\nTotal,m,2\n",
    "results.csv": "R2,sex,count\na,f,3\nb,m,4\n",
    "slash.csv": "a/b,sex,count\na,f,3\nb,m,4\n",
    "good.csv": "area,sex,count\nA,f,3\nB,m,4\n",
    "sizes.csv": "area,population_size\nA,30\n,40\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, with the files."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["tabulate", "people.csv", "--variables", "area,sex"], f"row 2 of people.csv{MISSING}"),
        (["assess", "people.csv", "--variables", "area,sex", "-N", "9"], MISSING),
        (["assess-many", "people.csv", "--over", "area", "--variables", "sex", "-N", "9"], MISSING),
        (["assess", "table.csv", "-N", "9"], "row 2 of table.csv; each row needs one"),
        (
            ["assess-many", "good.csv", "--over", "area", "--population-sizes", "sizes.csv"],
            "row 2 of sizes.csv; each row needs one",
        ),
        (["assess", "total.csv", "-N", "9"], "leave its rows out; if it is a category"),
        (["assess-many", "results.csv", "--over", "R2", "-N", "9"], "a result: rename it\n"),
        (["assess", "slash.csv", "-N", "9"], "the groups of a fit: rename it\n"),
    ],
    ids=["tabulate", "assess", "assess-many", "table", "sizes", "total", "result", "slash"],
)
def test_the_shell_is_told_of_its_options(run, words, end):
    status, printed, said = run(*words, *(MANY if words[0] == "assess-many" else []))
    assert (status, printed) == (1, "")
    assert end in said
    assert "missing=" not in said
    assert "rows[" not in said
    assert "rename(" not in said


def test_python_is_told_of_its_arguments():
    with pytest.raises(TableError, match="with missing= tabulate and protect_table") as found:
        tc.tabulate("people.csv", ["area", "sex"])
    again = pickle.loads(pickle.dumps(found.value))
    assert str(again) == str(found.value)
    assert again.at_shell == found.value.at_shell != str(again)
    with pytest.raises(TableError, match=r"of a data frame with rows\[rows"):
        tc.read_table("total.csv")
    with pytest.raises(TableError, match="each row needs one"):
        tc.read_table("table.csv")
