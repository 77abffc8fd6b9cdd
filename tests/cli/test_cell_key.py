"""``taciturn cell-key``: what the functions of Python give, and options that do not go
together."""

import io

import numpy as np
import pandas as pd
import pytest

import taciturn as tc


@pytest.fixture
def firms(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"area": rng.choice(list("AB"), 60), "firm": rng.integers(0, 40, 60)})
    frame["turnover"] = np.round(rng.lognormal(5, 1, 60), 1)
    frame["key"] = np.random.default_rng(2).random(60)
    frame.to_csv(tmp_path / "firms.csv", index=False)
    return tmp_path / "firms.csv"


COUNTS = ["--variables", "area", "--keys", "key"]
TOTALS = [*COUNTS, "--value", "turnover", "--share", "0.3", "--decimals", "1"]


def test_counts(run, firms):
    status, text, _ = run("cell-key", firms, *COUNTS, "--variance", "2", "--js", "1")
    noise = tc.perturbation.perturbation_table(3, 2, js=1)
    expected = tc.perturbation.cell_key_records(firms, ["area"], perturbation=noise, keys="key")
    assert status == 0
    found = pd.read_csv(io.StringIO(text))
    assert found["count"].tolist() == expected[0].values.tolist()


@pytest.mark.parametrize("words", [COUNTS, TOTALS])
def test_categories_that_nobody_has(run, firms, tmp_path, words):
    (tmp_path / "areas.csv").write_text("area\nB\nC\nA\n")
    _, text, _ = run("cell-key", firms, *words, "--categories", tmp_path / "areas.csv")
    found = pd.read_csv(io.StringIO(text)).set_index("area").iloc[:, -1]
    _, text, _ = run("cell-key", firms, *words)
    without = pd.read_csv(io.StringIO(text)).set_index("area").iloc[:, -1]
    assert found.to_dict() == without.to_dict() | {"C": 0}
    assert found.index.tolist() == ["B", "C", "A"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {"share": 0.3}),
        (["--grid", "4", "--separation", "10"], {"share": 0.3, "grid": 4, "separation": 10}),
        (
            ["--large-share", "0.1", "--turn", "900", "--rank-weights", "1,0.5"],
            {
                "share": tc.perturbation.FlexShare(small=0.3, large=0.1, turn=900),
                "rank_weights": (1, 0.5),
            },
        ),
        (["--contributor", "firm"], {"share": 0.3, "contributor": "firm"}),
    ],
)
def test_totals(run, firms, tmp_path, options, arguments):
    out = tmp_path / "out.csv"
    status, text, _ = run("cell-key", firms, *TOTALS, *options, "--output", out)
    assert (status, text.startswith("2 cells written to")) == (0, True)
    noise = tc.perturbation.magnitude_perturbation_table(3, 1, grid=arguments.pop("grid", 2))
    asked = {"perturbation": noise, "keys": "key", "decimals": 1} | arguments
    expected = tc.perturbation.cell_key_magnitudes(firms, ["area"], "turnover", **asked)
    assert pd.read_csv(out)["total"].tolist() == expected[0].values.tolist()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([*COUNTS, "--share", "0.3"], 2, "--share does not apply without --value"),
        ([*TOTALS, "--js", "1"], 2, "--js does not apply with --value"),
        ([*COUNTS, "--value", "turnover"], 2, "--value needs --share"),
        ([*TOTALS, "--turn", "9"], 2, "--large-share and --turn need each other"),
        ([*TOTALS, "--rank-weights", "1,x"], 2, "'1,x' are not numbers joined by commas"),
        ([*TOTALS, "--rank-weights", "0.5"], 1, "rank_weights must be 1 to 100 numbers"),
        (["--variables", "area"], 2, "Missing option '--keys'"),
        (["--variables", "area", "--keys", "firm"], 1, "record keys must be numbers in [0, 1)"),
        ([*COUNTS, "--js", "2"], 1, "accepted there: a variance of at least 2"),
    ],
)
def test_what_is_refused(run, firms, words, status, message):
    found, text, said = run("cell-key", firms, *words)
    assert (found, text) == (status, "")
    assert message in said
