"""The commands release-log and check: a log, tables, verdicts, statuses."""

import json

import pandas as pd
import pytest

import taciturn as tc

pytest.importorskip("duckdb")

PEOPLE = (
    "age,sex\n" + "16-64,f\n" * 30 + "16-64,m\n" * 28 + "65,f\n" + "66+,f\n" * 20 + "66+,m\n" * 20
)
LOG = ["--log", "p.duckdb"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, run):
    """The current folder, with a log of some people and three tables."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "all.csv").write_text("sex,count\nf,51\nm,48\n")
    (tmp_path / "not65.csv").write_text("sex,count\nf,50\nm,48\n")
    (tmp_path / "hidden.csv").write_text("sex,count,status\nf,,suppressed\nm,48,published\n")
    words = ["release-log", "people.csv", "--variables", "age,sex", "--output", "p.duckdb"]
    assert run(*words, "--public-total")[0] == 0
    return tmp_path


def test_a_log_holds_categories_and_the_total_of_the_records():
    log = tc.ReleaseLog("p.duckdb")
    assert dict(log.codebook.variables) == {"age": ("16-64", "65", "66+"), "sex": ("f", "m")}
    assert log.codebook.total == 99


def test_a_table_passes_and_is_logged(run):
    status, text, said = run("check", "all.csv", *LOG, "--add", "all", "--protection", "none")
    assert (status, said) == (0, "")
    assert text.splitlines() == [
        "Nothing found: no small count can be worked out that could not be before.",
        "Logged as release 1, 'all'.",
    ]
    assert tc.ReleaseLog("p.duckdb").releases["protection"].tolist() == ["none"]


def test_a_difference_ends_with_status_4_and_is_not_logged(run):
    run("check", "all.csv", *LOG, "--add", "all")
    words = ["check", "not65.csv", *LOG, "--where", "age=16-64,66+", "--add", "again"]
    status, text, _ = run(*words)
    assert status == 4
    # The number of records is public: 99 less the 98 that this table counts.
    assert "age=65: 1 (0 to 99 before), by itself" in text
    assert "Not logged." in text
    assert len(tc.ReleaseLog("p.duckdb").releases) == 1
    status, whole, _ = run(*words, "--format", "json", "--output", "found.csv")
    found = json.loads(whole)
    assert (status, found["passed"], found["number"]) == (4, False, None)
    assert found["findings"][0]["cell"] == "age=65"
    assert pd.read_csv("found.csv")["upper"].tolist() == [1]
    status, text, _ = run("check", "hidden.csv", *LOG, "--where", "age=16-64,66+", "--add", "safe")
    assert (status, "Logged as release 2, 'safe'." in text) == (0, True)


def test_what_was_taken_together_in_parts_ends_with_status_3(run, monkeypatch):
    monkeypatch.setattr("taciturn.release_log.checking._MOST_CELLS", 1)
    run("check", "all.csv", *LOG, "--add", "all")
    status, text, _ = run("check", "hidden.csv", *LOG, "--where", "age=16-64,66+", "--add", "part")
    assert status == 3
    assert "this is no proof" in text
    assert "Logged as release" in text


def test_merged_categories_are_named(run, folder):
    (folder / "merged.csv").write_text("age,count\nyoung,58\nold,41\n")
    words = ["check", "merged.csv", *LOG, "--merge", "age:young=16-64", "--merge", "age:old=65,66+"]
    assert run(*words)[0] == 0
    status, _, said = run("check", "merged.csv", *LOG, "--merge", "young=16-64")
    assert (status, "'young' is no variable:category" in said) == (2, True)
    status, _, said = run("check", "merged.csv", *LOG)
    assert (status, "has no category 'young'" in said) == (1, True)


def test_missing_labels_are_a_category_of_their_own(run, folder):
    (folder / "people.csv").write_text(PEOPLE + ",f\n")
    words = ["release-log", "people.csv", "--variables", "age,sex", "--output", "q.duckdb"]
    status, _, said = run(*words)
    assert (status, "missing" in said) == (1, True)
    assert run(*words, "--missing", "not stated")[0] == 0
    assert "not stated" in tc.ReleaseLog("q.duckdb").codebook.variables["age"]


def test_a_wrong_total_and_a_file_that_is_no_log(run, folder):
    (folder / "wrong.csv").write_text("sex,count\nf,51\nm,40\n")
    status, _, said = run("check", "wrong.csv", *LOG)
    assert (status, "adds up to 91, and there are 99 records" in said) == (1, True)
    status, _, said = run("check", "all.csv", "--log", "people.csv")
    assert (status, said.startswith("taciturn: error: people.csv")) == (1, True)


def test_a_variable_is_selected_by_once(run, folder):
    """The last of two would be taken for the whole filter."""
    words = ["check", "hidden.csv", *LOG]
    status, _, said = run(*words, "--where", "age=16-64", "--where", "age=66+")
    assert (status, "--where: 'age' is given twice" in said) == (2, True)
    (folder / "merged.csv").write_text("age,count\nyoung,58\n66+,41\n")
    words = ["check", "merged.csv", *LOG, "--merge", "age:young=16-64", "--merge", "age:young=65"]
    status, _, said = run(*words)
    assert (status, "--merge: 'age:young' is given twice" in said) == (2, True)


def test_a_status_that_is_not_known_hides_nothing(run, folder):
    (folder / "status.csv").write_text("sex,count,status\nf,51,Published\nm,48,Published\n")
    status, _, said = run("check", "status.csv", *LOG)
    assert (status, "status must be one of published" in said) == (1, True)


def test_which_log_answered_is_told(run):
    _, whole, _ = run("check", "all.csv", *LOG, "--format", "json")
    assert json.loads(whole)["log"] == tc.ReleaseLog(LOG[1]).id
    assert run("check", "all.csv", *LOG, "--add", "")[0] == 1


def test_a_mechanism_is_named_or_in_a_file(run, folder):
    noisy = ["check", "noisy.csv", *LOG, "--mechanism", "geometric-noise:epsilon=0.5"]
    (folder / "noisy.csv").write_text("sex,count,status\nf,4,published\nm,,suppressed\n")
    for number in range(11):
        status, _, said = run(*noisy, "--add", f"answer {number}", "--certainty", "0.999")
        assert (status, said) == (0, "")
    status, text, _ = run(*noisy, "--certainty", "0.9")
    assert status == 0  # nothing that was not nearly known before
    status, text, _ = run(*noisy, "--certainty", "0.992")
    assert status == 4
    assert "sex=f: 4 with probability 0.995 (0.992 before), with answer 0; answer 1;" in text
    words = ["--certainty", "0.992", "--format", "json", "--output", "found.csv"]
    found = json.loads(run(*noisy, *words)[1])
    assert (found["findings"], found["likely"][0]["values"]) == ([], "4")
    rows = pd.read_csv("found.csv")
    assert (rows["cell"].item(), rows["values"].item()) == ("sex=f", 4)
    table = tc.perturbation.perturbation_table(2, 1)
    data = {
        "name": "cell-keys",
        "perturbed": table["perturbed"].values.tolist(),
        "probabilities": table.values.tolist(),
    }
    (folder / "keys.json").write_text(json.dumps(data))
    keys = ["check", "noisy.csv", *LOG, "--mechanism", "keys.json", "--keys", "2026"]
    assert run(*keys, "--where", "age=66+", "--add", "keys")[0] == 0
    (_, table), *_ = [x for x in tc.ReleaseLog(LOG[1])._database.tables() if x[0] == 12]
    assert table.noise.as_json() == {"mechanism": data, "keyed": True, "keys": "2026"}
    data = {
        "name": "record-swapping",
        "geography": "sex",
        "categories": {"sex": ["f", "m"]},
        "sizes": [51, 48],
        "moves": 3,
    }
    (folder / "swapping.json").write_text(json.dumps(data))
    (folder / "swapped.csv").write_text("sex,count\nf,50\nm,49\n")
    status, _, said = run("check", "swapped.csv", *LOG, "--mechanism", "swapping.json")
    assert (status, "is published as" in said) == (1, True)


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ("geometric-noise", 2, "neither name:parameter=number"),
        ("geometric-noise:epsilon=1e3", 2, "neither name:parameter=number"),
        ("geometric-noise:epsilon=nan", 2, "neither name:parameter=number"),
        ("geometric-noise:epsilon=" + "9" * 5000, 2, "neither name:parameter=number"),
        ("geometric-noise:epsilon=0", 2, "epsilon must be"),
        ("geometric-noise:scale=2", 2, "has the parameters epsilon"),
        ("random-rounding:base=1.5", 2, "base must be"),
        ("__import__:os=1", 2, "neither name:parameter=number"),
        ("noise:epsilon=1", 2, "mechanism must have one of the names"),
        ("cell-keys:perturbed=1", 2, "has the parameters perturbed, probabilities"),
        ("missing.json", 1, "missing.json: no such file"),
        ("bad.json", 1, "bad.json: is no JSON"),
        ("twice.json", 1, "a name is given twice"),
        ("number.json", 1, "mechanism must have one of the names"),
        ("long.json", 1, "may have 100,000 entries"),
        ("uneven.json", 1, "a list of rows of 2 numbers"),
    ],
)
def test_a_mechanism_is_data(run, folder, given, status, message):
    (folder / "bad.json").write_text("{'name': exec}")
    (folder / "twice.json").write_text('{"name": "random-rounding", "base": 3, "base": 5}')
    (folder / "number.json").write_text("3")
    keys = {"name": "cell-keys", "perturbed": [0, 1], "probabilities": [[1, 0], [0]]}
    (folder / "uneven.json").write_text(json.dumps(keys))
    keys["probabilities"] = [[1, 0]] * 60_000
    (folder / "long.json").write_text(json.dumps(keys))
    got, _, said = run("check", "all.csv", *LOG, "--mechanism", given)
    assert (got, message in " ".join(said.split())) == (status, True), said
