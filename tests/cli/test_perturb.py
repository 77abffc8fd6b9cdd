"""``taciturn perturb``: the release as a file, the report, and what it refuses."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli
from taciturn.publication.release_file import WRITERS


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


def test_the_file_and_the_report(path, tmp_path, religion, capsys, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    arguments = [
        "--method",
        "random-round",
        "--rounding-base",
        3,
        "--seed",
        1,
        "--replicates",
        20,
        "--output",
        out,
        "--report",
    ]
    status, shown, error = run(capsys, monkeypatch, path, *arguments)
    assert status == 0
    expected = tc.random_round(religion, rounding_base=3, replicates=20, random_seed=1)
    rows = pd.read_csv(out)
    columns = ["replicate", "area", "religion", "count_not_for_release", "status"]
    assert list(rows.columns) == columns
    assert set(rows["status"]) == {"published"}
    assert (rows["count_not_for_release"].values == expected.values.ravel()).all()
    assert f"{out} must not be released: it was drawn with --seed" in error
    assert "replicates together" in error
    other = np.random.default_rng(np.random.SeedSequence(1).spawn(1)[0])  # than in the file
    measured = tc.random_round(religion, rounding_base=3, replicates=20, random_seed=other)
    risk = tc.disclosure_risk(religion, measured)["R2"]
    line = next(line for line in shown.splitlines() if line.startswith("R2"))
    assert f"{float(risk.mean()):.4f}" in line
    assert "0.2315" in line
    assert "20 releases by random-round" in shown


@pytest.mark.parametrize(
    ("arguments", "release"),
    [
        (["conventional-round"], lambda t: tc.perturbation.conventional_round(t)),
        (["controlled-round", "--seed", 2], lambda t: tc.controlled_round(t, random_seed=2)),
        (
            ["round-small-counts", "--rounding-base", 4, "--seed", 2],
            lambda t: tc.perturbation.round_small_counts(t, rounding_base=4, random_seed=2),
        ),
        (
            ["adjust-small-cells", "--seed", 2],
            lambda t: tc.perturbation.adjust_small_cells(t, random_seed=2),
        ),
        (
            ["suppress-small-cells", "--minimum", 4],
            lambda t: tc.perturbation.suppress_small_cells(t, minimum=4),
        ),
        (
            ["add-noise", "--epsilon", 0.5, "--seed", 2],
            lambda t: tc.add_noise(t, epsilon=0.5, random_seed=2),
        ),
        (
            ["cell-key", "--max-noise", 4, "--variance", 1.5, "--seed", 2],
            lambda t: tc.cell_key(
                t, perturbation=tc.perturbation.perturbation_table(4, 1.5), random_seed=2
            ),
        ),
        (
            ["cell-key", "--variance", 2, "--js", 1, "--pstay", 0.4, "--seed", 2],
            lambda t: tc.cell_key(
                t,
                perturbation=tc.perturbation.perturbation_table(3, 2, js=1, pstay=0.4),
                random_seed=2,
            ),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_method(arguments, release, path, tmp_path, religion, capsys, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    status, _, error = run(capsys, monkeypatch, path, "--output", out, "--method", *arguments)
    assert status == 0
    seeded = "--seed" in arguments
    assert ("must not be released" in error) == seeded
    # A single release is a table like any other; one made with a seed says what it is.
    # A suppressed cell has no value in it, and is not 0.
    rows = pd.read_csv(out, dtype={"area": str, "religion": str})
    suppressed = rows.pop("status") == "suppressed"
    column = "count_not_for_release" if seeded else "count"
    assert rows[column].isna().equals(suppressed)
    expected = release(religion).isel(replicate=0)
    hidden = expected.coords.get("suppressed", xr.zeros_like(expected, dtype=bool))
    assert suppressed.tolist() == hidden.values.ravel().tolist()
    assert suppressed.any() == (arguments[0] == "suppress-small-cells")
    read = tc.read_table(rows.fillna({column: 1}), count=column)
    assert np.array_equal(read, expected)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--method", "random-round"], 2, "give --output, --report or both"),
        (
            ["--method", "random-round", "--epsilon", 1, "--report"],
            2,
            "--epsilon does not apply to --method random-round",
        ),
        (
            ["--method", "add-noise", "--report"],
            2,
            "--method add-noise needs --epsilon",
        ),
        (
            ["--method", "suppress-small-cells", "--report"],
            2,
            "--method suppress-small-cells needs --minimum",
        ),
        (["--method", "conventional-round", "--seed", 1, "--report"], 2, "has no randomness"),
        (["--method", "swap", "--report"], 2, "is not one of"),
        (
            ["--method", "random-round", "--rounding-base", 1, "--report"],
            2,
            "1 is not in the range",
        ),
        (["--method", "add-noise", "--epsilon", 0, "--report"], 2, "0.0 is not in the range"),
        (
            ["--method", "add-noise", "--epsilon", "nan", "--report"],
            2,
            "nan is not a finite number",
        ),
        (["--method", "cell-key", "--variance", 40, "--report"], 1, "variance"),
        (["--method", "random-round", "--output", "/no/such/folder/out.csv"], 1, "does not exist"),
    ],
)
def test_what_it_refuses(arguments, status, message, path, capsys, monkeypatch) -> None:
    code, shown, error = run(capsys, monkeypatch, path, *arguments)
    assert code == status
    assert message in error
    assert shown == ""


def test_a_release_says_nothing_of_how_it_was_drawn(path, tmp_path, capsys, monkeypatch) -> None:
    outs = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for out in outs:
        arguments = ["--method", "add-noise", "--epsilon", 0.5, "--output", out]
        said = f"1 release by add-noise written to {out}\n"
        assert run(capsys, monkeypatch, path, *arguments) == (0, said, "")
    one, two = (pd.read_csv(out) for out in outs)
    assert list(one.columns) == ["area", "religion", "count", "status"]
    assert not one.equals(two)


def test_many_replicates_are_no_release_either(path, tmp_path, capsys, monkeypatch) -> None:
    out = tmp_path / "out.csv"
    arguments = ["--method", "add-noise", "--epsilon", 0.5, "--replicates", 2, "--output", out]
    _, _, error = run(capsys, monkeypatch, path, *arguments)
    assert "must not be released: its replicates together come close to the true table" in error
    assert pd.read_csv(out).columns[-2] == "count_not_for_release"


@pytest.mark.parametrize("seed", [[], ["--seed", 5]], ids=str)
def test_the_report_is_not_of_the_release_in_the_file(
    seed, path, tmp_path, religion, capsys, monkeypatch
) -> None:
    """Its measures would be equations for the true table."""
    out = tmp_path / "out.csv"
    arguments = ["--method", "add-noise", "--epsilon", 0.1, "--report", "--output", out, *seed]
    _, shown, _ = run(capsys, monkeypatch, path, *arguments)
    assert shown.startswith("1 release by add-noise, not those of the file")
    count = "count_not_for_release" if seed else "count"
    read = tc.read_table(out, count=count).rename("count").astype(int)
    of_the_file = tc.information_loss(religion.assign_coords(read.coords), read)
    line = next(line for line in shown.splitlines() if line.startswith("hellinger"))
    assert f"{float(of_the_file.hellinger):.4f}" not in line


def test_the_original_is_not_overwritten(path, capsys, monkeypatch) -> None:
    before = path.read_text()
    code, _, error = run(capsys, monkeypatch, path, "--method", "random-round", "--output", path)
    assert (code, path.read_text()) == (1, before)
    assert "is the file that is read; give the output a name of its own" in error


@pytest.mark.parametrize(
    ("name", "message"),
    [("o.txt", "ends in .csv, .parquet"), ("x" * 300 + ".csv", "cannot be written")],
)
def test_names_that_will_not_do(name, message, path, tmp_path, capsys, monkeypatch) -> None:
    code, _, error = run(
        capsys, monkeypatch, path, "--method", "random-round", "--output", tmp_path / name
    )
    assert code == 1
    assert message in error
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("failure", "code"), [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)]
)
def test_a_write_that_fails_leaves_nothing_behind(
    failure, code, path, tmp_path, capsys, monkeypatch
) -> None:
    def to_csv(rows, what, file):
        file.write(b"half of it")
        raise failure

    monkeypatch.setitem(WRITERS, ".csv", to_csv)
    status, shown, error = run(
        capsys, monkeypatch, path, "--method", "random-round", "--output", tmp_path / "out.csv"
    )
    assert (status, shown) == (code, "")
    assert "internal" not in error
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_where_the_report_fails(tmp_path, capsys, monkeypatch) -> None:
    (tmp_path / "one.csv").write_text("a,count\nx,3\n")
    arguments = ["--method", "random-round", "--report", "--output", tmp_path / "out.csv"]
    code, _, error = run(capsys, monkeypatch, tmp_path / "one.csv", *arguments)
    assert code == 1
    assert "cell" in error
    assert not (tmp_path / "out.csv").exists()


def test_the_column_keeps_its_name(path, tmp_path, capsys, monkeypatch) -> None:
    path.write_text(path.read_text().replace("count", "people", 1))
    out = tmp_path / "out.csv"
    assert (
        run(
            capsys,
            monkeypatch,
            path,
            "--count",
            "people",
            "--method",
            "conventional-round",
            "--output",
            out,
        )[0]
        == 0
    )
    assert list(pd.read_csv(out).columns) == ["area", "religion", "people", "status"]


@pytest.mark.parametrize("option", ["--rounding-base", "--replicates"])
def test_numbers_beyond_all_machines(option, path, capsys, monkeypatch) -> None:
    arguments = ["--method", "random-round", option, 10**20, "--report"]
    code, _, error = run(capsys, monkeypatch, path, *arguments)
    assert code in (1, 2)
    assert "internal" not in error


def test_fractions_are_refused_and_nothing_is_written(path, tmp_path, capsys, monkeypatch) -> None:
    path.write_text(path.read_text().replace(",0\n", ",0.5\n", 1))
    out = tmp_path / "out.csv"
    code, _, error = run(capsys, monkeypatch, path, "--method", "random-round", "--output", out)
    assert code == 1
    assert "0.5" in error
    assert not out.exists()


SAMPLE = Path(__file__).parents[2] / "examples" / "area_by_religion_sample.csv"


def test_without_a_population_size_the_report_says_whose_risk_it_is(capsys, monkeypatch) -> None:
    arguments = ["--method", "random-round", "--seed", 1, "--report"]
    status, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments)
    assert status == 0
    assert "The table is taken as the population itself." in shown.splitlines()[1]
    table = tc.read_table(SAMPLE)
    risk = float(tc.disclosure_risk(table, table)["R2"])
    assert f"{risk:.4f}" in shown


@pytest.mark.slow
def test_one_random_release_has_a_range_of_risk_alone(capsys, monkeypatch) -> None:
    """Draws of the population give R2 of the release a range; what it lost has none."""
    arguments = ["--method", "random-round", "--seed", 1, "--report", "-N", 2449]
    _, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments, "--format", "json")
    rows = {row["measure"]: row for row in json.loads(shown)["measures"]}
    assert rows["R2"]["lower"] < rows["R2"]["released"] < rows["R2"]["upper"]
    assert {row["lower"] for name, row in rows.items() if name not in ("R1", "R2")} == {None}
    _, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments)
    assert "--replicates shows in which range they are" in shown
    assert shown.count("one release") == len(rows) - 2


EVEN = "a,b,count\n1,1,2\n1,2,2\n2,1,2\n2,2,2\n"
"""Of which no association can change, and nothing has a rank."""


@pytest.mark.parametrize(
    ("text", "arguments", "undefined"),
    [
        (
            "a,b,count\n1,1,2\n1,2,1\n2,1,2\n2,2,1\n",
            ["conventional-round"],
            ["chi squared change", "between variance change"],
        ),
        (EVEN, ["conventional-round"], ["spearman", "chi squared change", "between variance"]),
        (EVEN, ["add-noise", "--epsilon", 1, "--replicates", 20], ["spearman", "chi squared"]),
        ("a,count\n1,2\n2,2\n", ["add-noise", "--epsilon", 1, "--replicates", 20], ["spearman"]),
    ],
)
def test_what_is_not_defined_is_not_one_release(
    text, arguments, undefined, path, capsys, monkeypatch
) -> None:
    path.write_text(text)
    _, shown, _ = run(capsys, monkeypatch, path, "--report", "--method", *arguments)
    assert "one release" not in shown
    assert "Another release" not in shown
    assert "nan" not in shown
    for name in undefined:
        line = next(line for line in shown.splitlines() if line.startswith(name))
        assert line.split("not defined")[1:] == [" ", " " * 17, ""]


def test_what_is_not_defined_of_one_release(path, capsys, monkeypatch) -> None:
    path.write_text(EVEN)
    _, shown, _ = run(
        capsys, monkeypatch, path, "--report", "--method", "add-noise", "--epsilon", 1
    )
    line = next(line for line in shown.splitlines() if line.startswith("chi squared change"))
    assert line.split("not defined")[1:] == ["   ", ""]
    assert "nan" not in shown
    assert shown.count("one release") == 1
    assert "Another release has other numbers" in shown


def test_one_random_release_has_no_range(capsys, monkeypatch) -> None:
    arguments = ["--method", "random-round", "--seed", 1, "--report"]
    _, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments)
    assert "95 % of releases" not in shown
    assert "--replicates shows in which range they are" in shown
    assert "one release" in shown
    _, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments, "--format", "json")
    rows = json.loads(shown)["measures"]
    assert {row["lower"] for row in rows} == {row["probability"] for row in rows} == {None}
    several = [*arguments, "--replicates", 2]
    for ranged in (several, ["--method", "conventional-round", "--report"]):
        _, shown, _ = run(capsys, monkeypatch, SAMPLE, *ranged)
        assert "95 % of releases" in shown


@pytest.mark.slow  # two fits by the default estimator
def test_with_a_population_size_the_risk_is_that_of_assess(capsys, monkeypatch) -> None:
    arguments = ["--method", "random-round", "--seed", 1, "-N", 2449, "--report"]
    status, shown, _ = run(capsys, monkeypatch, SAMPLE, *arguments)
    assert status == 0
    assert "Risk of the population of 2,449 that the sample comes from" in shown
    sample = tc.read_table(SAMPLE)
    fit = tc.default_estimator(sample).fit(
        sample, population_size=2449, random_seed=1, progressbar=False
    )
    risk = float(tc.assess(fit)["risk"]["R2"].mean())
    line = next(line for line in shown.splitlines() if line.startswith("R2"))
    assert line.split()[1] == f"{risk:.4f}"


def test_a_population_that_is_not_reported_on(path, tmp_path, capsys, monkeypatch) -> None:
    arguments = ["--method", "random-round", "-N", 2449, "--output", tmp_path / "out.csv"]
    status, _, error = run(capsys, monkeypatch, path, *arguments)
    assert status == 2
    assert "--population-size is for --report" in error
