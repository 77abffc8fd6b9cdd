"""The command line as one language: every command prints text, JSON and CSV, takes
``-`` where it reads or writes a table, and ends with the same statuses.

Run as a script, it writes the table of all commands that the guide includes.
"""

import io
import json
import random
import re
import sys
from pathlib import Path

import click
import pandas as pd
import pytest

import taciturn as tc
from taciturn.cli import cli
from taciturn.cli.files import Input, Output

SERVING = ("serve",)  # prints nothing, and ends when it is told to: see tests/service
COMMANDS = {name: command for name, command in cli.commands.items() if name not in SERVING}
TABLE = Path(__file__).parents[2] / "docs" / "how-to" / "_command_table.md"
KEYS = random.Random(1)
FILES = {
    "table.csv": "a,b,count\nx,1,30\nx,2,40\ny,1,20\ny,2,10\n",
    "margins.csv": "a,count\nx,700\ny,300\n",
    "people.csv": "a,b,sales,key\n"
    + "".join(f"{'xy'[i % 2]},{i % 3},{i},{KEYS.random()}\n" for i in range(1, 19)),
    "hidden.csv": "a,b\nx,1\nx,2\ny,1\ny,2\n",
    "levels.csv": "b,half\n1,first\n2,second\n",
    "released.csv": "a,b,count,status\nx,1,,suppressed\nx,2,,suppressed\n"
    "y,1,20,published\ny,2,10,published\nx,Total,70,published\ny,Total,30,published\n",
}
FIT = ["-N", "1000", "--model", "log-linear", "--draws", "100", "--seed", "1"]
RULE = ["--variables", "a,b", "--value", "sales", "--rule", "freq:4"]
SMALL = ["--fractions", "0.5", "--samples", "2", "--draws", "5", "--seed", "1", "--workers", "1"]
EXAMPLES: dict[str, list[str]] = {
    "tabulate": ["people.csv", "--variables", "a,b"],
    "assess": ["table.csv", *FIT],
    "assess-many": ["table.csv", "--over", "a", *FIT, "--workers", "1"],
    "summary": ["one.nc"],
    "compare": ["one.nc", "two.nc"],
    "perturb": ["table.csv", "--method", "conventional-round", "--report"],
    "cell-key": ["people.csv", "--variables", "a,b", "--keys", "key"],
    "suppress": ["table.csv", "--threshold", "11", "--output", "out.csv"],
    "attack": ["table.csv", "--release", "released.csv"],
    "rules": ["people.csv", *RULE],
    "diagnose": ["one.nc"],
    "release-log": ["people.csv", "--variables", "a,b", "--output", "new.duckdb"],
    "check": ["table.csv", "--log", "project.duckdb"],
    "study": ["table.csv", "--model", "log-linear", *SMALL],
    "validate": ["card.toml"],
    "report": ["one.nc", "--output", "out.html"],
}
"""A working example of every command; the first word is what it reads."""
NOT_CONVERGED = ("assess", "assess-many", "summary", "perturb", "diagnose", "report")
OUTPUT = ("--output", "out.csv", "out.html", "new.duckdb")
NOTHING_FOUND = ("check",)
"""What prints what it finds, which in its example is nothing."""


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Two fits of one sample and the model card of one, as files."""
    folder = tmp_path_factory.mktemp("fits")
    population = tc.load_dataset("area_by_sex")
    sample = tc.draw_sample(population, fraction=0.1, random_seed=1)
    settings = {"population_size": int(population.sum()), "draws": 100, "random_seed": 1}
    for name, model in {"one": tc.LogLinear(), "two": tc.PolyaUrn()}.items():
        fit = tc.assess(model.fit(sample, **settings))
        tc.save_fit(fit, folder / f"{name}.nc")
    drawn = {"table": "area_by_sex", "fraction": 0.1, "random_seed": 1}
    texts = {"citation": "a census", "calibration": "none", "command": "a test", "public": True}
    variables = {"a": ["x", "y"], "b": ["1", "2"]}
    tc.ReleaseLog(folder / "project.duckdb", variables=variables)
    other = model.fit(sample, **settings | {"random_seed": 2})
    tc.cards.write_card(folder / "card.toml", fit, reference=other, **drawn, **texts)
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, fits):
    """The current folder, with the files of the examples."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    for name in ("one.nc", "two.nc", "card.toml", "project.duckdb"):
        (tmp_path / name).symlink_to(fits / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fed(run, monkeypatch):
    """Runs a command whose standard input is a file."""

    def fed(path, *words):
        stream = io.TextIOWrapper(io.BytesIO(Path(path).read_bytes()))
        monkeypatch.setattr(sys, "stdin", stream)
        return run(*words)

    return fed


def streams(name: str, kind: type) -> list[click.Parameter]:
    """Parameters of a command that take ``-``."""
    found = [param for param in COMMANDS[name].params if isinstance(param.type, kind)]
    return [param for param in found if param.type.stream]


READING = [name for name in COMMANDS if streams(name, Input)]
WRITING = [name for name in COMMANDS if streams(name, Output)]
each_command = pytest.mark.parametrize("name", COMMANDS)


def test_every_command_has_an_example():
    assert set(EXAMPLES) == set(COMMANDS), "give the new command a working example here"


def test_commands_stand_in_the_order_of_their_use(run):
    _, text, _ = run("--help")
    listed = [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line]
    order = [
        "tabulate",
        "assess",
        "assess-many",
        "summary",
        "compare",
        "perturb",
        "cell-key",
        "suppress",
        "attack",
    ]
    order[5:5] = ["diagnose"]
    order += ["rules", "release-log", "check"]
    assert listed == [*order, "study", "validate", "report", *SERVING]


@each_command
def test_text_json_and_csv(name, run, folder):
    status, text, said = run(name, *EXAMPLES[name])
    assert (status, bool(text.strip())) == (0, True), said
    again = [name, *EXAMPLES[name], *(["--force"] if "--output" in EXAMPLES[name] else [])]
    status, whole, _ = run(*again, "--format", "json")
    found = json.loads(whole, parse_constant=pytest.fail)
    assert (status, type(found), bool(found)) == (0, dict, True)
    status, rows, _ = run(*again, "--format", "csv")
    frame = pd.read_csv(io.StringIO(rows))
    assert (status, frame.empty) == (0, name in NOTHING_FOUND)
    assert not any(str(column).startswith("Unnamed") for column in frame.columns)
    numbers = [x for x in frame.select_dtypes("number").to_numpy().ravel() if x == x][:5]
    for number in numbers:  # to the last digit
        assert f"{float(number)!r}".removesuffix(".0") in whole


@pytest.mark.parametrize("name", READING)
def test_a_table_from_standard_input(name, run, fed):
    words = [*EXAMPLES[name][1:], *(["--force"] if "--output" in EXAMPLES[name] else [])]
    expected = run(name, EXAMPLES[name][0], *words, "--format", "json")
    found = fed(EXAMPLES[name][0], name, "-", *words, "--format", "json")
    assert found == expected
    assert expected[0] == 0


@pytest.mark.parametrize("name", READING)
def test_standard_input_is_held_to_the_same_rules(name, folder, fed):
    (folder / "bad.csv").write_text(FILES[EXAMPLES[name][0]] + "x,1\n")
    lines = FILES[EXAMPLES[name][0]].count("\n") + 1
    fields = FILES[EXAMPLES[name][0]].partition("\n")[0].count(",") + 1
    status, text, said = fed("bad.csv", name, "-", *EXAMPLES[name][1:])
    assert (status, text) == (1, "")
    assert said == (
        f"taciturn: error: standard input: line {lines} has 2 fields, the header has {fields}\n"
    )
    (folder / "bad.csv").write_bytes(b"PAR1")
    status, text, said = fed("bad.csv", name, "-", *EXAMPLES[name][1:])
    assert (status, text, "standard input: not a text file" in said) == (1, "", True)


@pytest.mark.parametrize("name", WRITING)
def test_a_table_to_standard_output(name, run, folder):
    words = [word for word in EXAMPLES[name] if word not in OUTPUT]
    printed = run(name, *words, "--output", "file.csv")
    status, text, said = run(name, *words, "--output", "-")
    assert (status, printed[0]) == (0, 0)
    assert text == (folder / "file.csv").read_text()
    assert said.replace("standard output", "file.csv") == printed[1]
    status, text, said = run(name, *words, "--output", "-", "--format", "json")
    assert text == (folder / "file.csv").read_text()
    assert json.loads(said)
    assert not (folder / "-").exists()


def test_a_pipe_of_commands(run, fed, folder):
    _, table, _ = run("tabulate", "people.csv", "--variables", "a,b")
    (folder / "t.csv").write_text(table)
    status, released, _ = fed(
        "t.csv", *["suppress", "-", "--threshold", "4", "--output", "-", "--seed", "1"]
    )
    assert status == 0
    (folder / "r.csv").write_text(released)
    status, text, _ = fed("r.csv", "attack", "t.csv", "--release", "-")
    assert (status, "can be worked out exactly" in text) == (0, True)


@pytest.mark.parametrize("name", ["assess", "perturb", "suppress", "attack"])
def test_microdata_are_counted_first(name, run, folder):
    _, counts, _ = run("tabulate", "people.csv", "--variables", "a,b")
    (folder / "t.csv").write_text(counts)
    run("suppress", "t.csv", "--threshold", "4", "--output", "released.csv", "--force")
    words = [*EXAMPLES[name][1:], "--format", "json", *(["--force"] if name == "suppress" else [])]
    expected = run(name, "t.csv", *words)
    assert expected[0] == 0
    assert run(name, "people.csv", "--variables", "a,b", *words) == expected
    status, text, said = run(name, "t.csv", "--variables", "a,b", *words)
    assert (status, text, "has a column 'count', so that it is no microdata" in said) == (
        1,
        "",
        True,
    )


def test_magnitudes_are_not_counted(run):
    words = ["attack", "people.csv", "--variables", "a,b", "--decimals", "2", "--linked", "a"]
    status, text, said = run(*words)
    assert (status, text, "--decimals are those of magnitudes" in said) == (2, "", True)


@each_command
def test_what_no_stream_is_for_is_refused(name, run):
    for param in COMMANDS[name].params:
        if not isinstance(param.type, Input | Output) or param.type.stream:
            continue
        words = (
            ["-"] if isinstance(param, click.Argument) else [*EXAMPLES[name], param.opts[0], "-"]
        )
        status, text, said = run(name, *words)
        assert (status, text) == (2, "")
        assert "can hold a table" in said or "can take a table" in said


def test_two_inputs_are_not_both_standard_input(run):
    for name in READING:
        for param in streams(name, Input):
            if isinstance(param, click.Option):
                status, text, said = run(name, "-", *EXAMPLES[name][1:], param.opts[0], "-")
                assert (status, text) == (2, "")
                assert "standard input can be read once, and '-' is given for" in said
                assert f"'{param.opts[0]}'" in said


@each_command
def test_the_ending_of_an_output_is_one_that_it_can_have(name, run, folder):
    for param in COMMANDS[name].params:
        if isinstance(param.type, Output) and not param.type.resumed:
            words = [word for word in EXAMPLES[name] if word not in OUTPUT]
            status, text, said = run(name, *words, param.opts[0], "out.txt")
            assert (status, text) == (1, "")
            assert "out.txt: cannot be written with the ending '.txt'" in said
            assert not (folder / "out.txt").exists()


@each_command
def test_wrong_usage_and_files_that_are_missing(name, run):
    assert run(name)[0] == 2
    status, text, said = run(name, *EXAMPLES[name], "--no-such-option")
    assert (status, text, "No such option" in said) == (2, "", True)
    status, text, said = run(name, *EXAMPLES[name], "--format", "yaml")
    assert (status, text) == (2, "")
    missing = f"no{Path(EXAMPLES[name][0]).suffix}"
    status, text, said = run(name, missing, *EXAMPLES[name][1:])
    assert (status, "no such file" in said) == (1, True)
    assert text == "" or name == "validate"


@each_command
def test_help_says_which_statuses_there_are(name):
    words = " ".join((COMMANDS[name].help or "").split())
    _, _, statuses = words.partition("Exit status: 0 ")
    said = [0, *map(int, re.findall(r"(?:^|, )(\d) [a-zA-Z]", statuses))]
    assert said == statuses_of(name), name


def test_csv_files_are_read_in_every_dialect():
    for name in READING:
        options = {option for param in COMMANDS[name].params for option in param.opts}
        assert {"--sep", "--encoding"} <= options, name


# ---- the table of all commands


def statuses_of(name: str) -> list[int]:
    """Exit statuses that a command has."""
    options = {option for param in COMMANDS[name].params for option in param.opts}
    if name == "check":
        return [0, 1, 2, 3, 4]
    return [0, 1, 2, *[3] * (name in NOT_CONVERGED), *[4] * ("--fail-on" in options)]


def named(name: str, kind: type) -> str:
    """Parameters that take ``-``, as they are written."""
    return ", ".join(
        f"`{param.opts[0]}`" if isinstance(param, click.Option) else f"`{param.make_metavar(None)}`"
        for param in streams(name, kind)
    )


def table() -> str:
    """All commands, their formats, streams and statuses, as Markdown."""
    lines = [
        "| command | reads | `--format` | `-` is read as | `-` is written for | exit statuses |",
        "|---|---|---|---|---|---|",
    ]
    for name, command in COMMANDS.items():
        argument = next(param for param in command.params if isinstance(param, click.Argument))
        form = next(param for param in command.params if param.opts[0] == "--format")
        cells = [
            f"`{name}`",
            f"`{argument.make_metavar(None)}`",
            ", ".join(form.type.choices),
            named(name, Input),
            named(name, Output),
            ", ".join(map(str, statuses_of(name))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_the_guide_is_this_one():
    assert TABLE.read_text(encoding="utf-8") == table(), f"python {Path(__file__).name}"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
