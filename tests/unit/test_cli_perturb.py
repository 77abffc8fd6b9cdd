"""``taciturn perturb``: the release as a file, the report, and what it refuses."""

import sys

import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli


@pytest.fixture
def path(tmp_path, religion):
    religion.to_dataframe().to_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


def run(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["taciturn", "perturb", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as done:
        return done.code, *capsys.readouterr()
    return 0, *capsys.readouterr()


def test_the_issue_of_a_release(path, tmp_path, religion, capsys, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    arguments = ["--method", "random-round", "--base", 3, "--seed", 1, "--replicates", 20, "--output", out, "--report"]
    status, shown, _ = run(capsys, monkeypatch, path, *arguments)
    assert status == 0
    expected = tc.random_round(religion, base=3, replicates=20, random_seed=1)
    rows = pd.read_csv(out)
    assert list(rows.columns) == ["replicate", "area", "religion", "count"]
    assert (rows["count"].values == expected.values.ravel()).all()
    risk = tc.disclosure_risk(religion, expected)["R2"]
    line = next(line for line in shown.splitlines() if line.startswith("R2"))
    assert f"{float(risk.mean()):.4f}" in line
    assert "0.2315" in line
    assert "20 releases by random-round" in shown


@pytest.mark.parametrize(
    ("arguments", "release"),
    [
        (["conventional-round"], lambda t: tc.conventional_round(t)),
        (["controlled-round", "--seed", 2], lambda t: tc.controlled_round(t, random_seed=2)),
        (["small-cell-adjust", "--seed", 2], lambda t: tc.small_cell_adjust(t, random_seed=2)),
        (["suppress-cells", "--threshold", 4], lambda t: tc.suppress_cells(t, threshold=4)),
        (
            ["geometric-noise", "--epsilon", 0.5, "--seed", 2],
            lambda t: tc.geometric_noise(t, epsilon=0.5, random_seed=2),
        ),
        (
            ["cell-key", "--max-noise", 4, "--variance", 1.5, "--seed", 2],
            lambda t: tc.cell_key(t, perturbation=tc.perturbation_table(4, 1.5), random_seed=2),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_method(arguments, release, path, tmp_path, religion, capsys, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    assert run(capsys, monkeypatch, path, "--output", out, "--method", *arguments)[0] == 0
    read = tc.read_table(out)  # a single release is a table like any other
    xr.testing.assert_equal(read.astype(int), release(religion).isel(replicate=0, drop=True).assign_coords(read.coords))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--method", "random-round"], 2, "give --output, --report or both"),
        (
            ["--method", "random-round", "--epsilon", 1, "--report"],
            2,
            "--epsilon does not apply to --method random-round",
        ),
        (["--method", "geometric-noise", "--report"], 2, "--method geometric-noise needs --epsilon"),
        (["--method", "suppress-cells", "--report"], 2, "--method suppress-cells needs --threshold"),
        (["--method", "conventional-round", "--seed", 1, "--report"], 2, "has no randomness"),
        (["--method", "swap", "--report"], 2, "is not one of"),
        (["--method", "random-round", "--base", 1, "--report"], 1, "base must be"),
        (["--method", "geometric-noise", "--epsilon", 0, "--report"], 1, "epsilon must be"),
        (["--method", "geometric-noise", "--epsilon", "nan", "--report"], 1, "epsilon must be"),
        (["--method", "cell-key", "--variance", 40, "--report"], 1, "variance"),
        (["--method", "random-round", "--output", "/no/such/folder/out.csv"], 1, "does not exist"),
    ],
)
def test_what_it_refuses(arguments, status, message, path, capsys, monkeypatch) -> None:
    code, shown, error = run(capsys, monkeypatch, path, *arguments)
    assert code == status
    assert message in error
    assert shown == ""


def test_fractions_are_refused_and_nothing_is_written(path, tmp_path, capsys, monkeypatch) -> None:
    path.write_text(path.read_text().replace(",0\n", ",0.5\n", 1))
    out = tmp_path / "out.csv"
    code, _, error = run(capsys, monkeypatch, path, "--method", "random-round", "--output", out)
    assert code == 1
    assert "0.5" in error
    assert not out.exists()
