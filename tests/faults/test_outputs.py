"""What may be written where: an output is never an input, another output, a folder, a
link, a pipe, a socket or a device, and replaces a file only if it is told to."""

import ast
import inspect
import os
import random
import re
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli
from taciturn.cli.databases import Records
from taciturn.cli.files import FileCommand, Folder, Input, Output
from taciturn.errors import FileFormatError
from writers import FILES_WRITTEN, WRITERS, write_card

PACKAGE = Path(tc.__file__).parent
KEYS = random.Random(1)
FILES = {
    "table.csv": "a,b,count\nx,1,30\nx,2,40\ny,1,20\ny,2,10\n",
    "margins.csv": "a,count\nx,700\ny,300\n",
    "sizes.csv": "a,population_size\nx,700\ny,300\n",
    "hidden.csv": "a,b\nx,1\nx,2\ny,1\ny,2\n",
    "released.csv": "a,b,count,status\nx,1,,suppressed\nx,2,,suppressed\n"
    "y,1,20,published\ny,2,10,published\nx,Total,70,published\ny,Total,30,published\n",
    "levels.csv": "b,half\n1,first\n2,second\n",
    "cells.hst": "y,2,c,5\n",
    "cells.rda": "a\n<RECODEABLE>\nsales\n<NUMERIC>\nfirms\n<FREQUENCY>\n",
    "rows.hst": "x,2,c,5\n",
    "records.csv": "a,b,sales,firm,key\n"
    + "".join(f"x,{1 + i % 2},{i},{i},{KEYS.random()}\n" for i in range(1, 9)),
    "card.toml": "format_version = 1\n",
    "one.nc": "no fit yet\n",
    "project.duckdb": "no log yet\n",
    "two.nc": "no fit yet\n",
    "store": "",
    "old.csv": "old\n",
}
FIT = ["-N", "1000", "--draws", "200", "--chains", "2", "--seed", "1"]
SMALL = ["--fractions", "0.5", "--samples", "2", "--draws", "5", "--seed", "1", "--workers", "1"]
MANY = ["--model", "log-linear", "--draws", "20", "--seed", "1", "--workers", "1"]
RULES = ["--variables", "a,b", "--value", "sales", "--rule", "freq:3"]
CELLS = ["--apriori", "cells.hst"]
COUNTED = ["--variables", "a,b"]
EXAMPLES = {
    "tabulate": ["records.csv", "--variables", "b", "--categories", "levels.csv"],
    "assess": ["table.csv", *FIT, "--model", "log-linear", "--known-margins", "margins.csv"],
    "assess-many": ["table.csv", "--over", "a", "--population-sizes", "sizes.csv", *MANY],
    "compare": ["one.nc", "two.nc", "--seed", "1"],
    "study": ["table.csv", "--model", "log-linear", *SMALL],
    "cell-key": ["records.csv", *COUNTED, "--keys", "key", "--categories", "levels.csv"],
    "perturb": ["table.csv", "--method", "conventional-round"],
    "suppress": ["table.csv", "--threshold", "11", "--hierarchy", "levels.csv", *CELLS],
    "attack": ["table.csv", "--suppressed", "hidden.csv", "--hierarchy", "levels.csv"],
    "report": ["one.nc", "--release", "released.csv", "--log", "project.duckdb"],
    "release-log": ["records.csv", "--variables", "a,b", "--hierarchy", "levels.csv"],
    "check": ["table.csv", "--log", "project.duckdb"],
    "rules": ["records.csv", *RULES, "--hierarchy", "levels.csv", "--apriori", "rows.hst"],
}
"""Every command that writes, with all of its inputs."""
OTHERWISE = {
    "assess": ["table.csv", *FIT, "--model", "log-linear", "--strata", "margins.csv"],
    "attack": ["table.csv", "--release", "released.csv"],
    "rules": ["records.csv", "--metadata", "cells.rda", "--rule", "freq:3"],
}
"""The same with inputs that exclude some of these."""
COMMANDS = cli.cli.commands


def options_of(command: click.Command, kind: type) -> list[click.Parameter]:
    return [param for param in command.params if isinstance(param.type, kind)]


OUTPUTS = [
    (name, option.opts[0])
    for name, command in COMMANDS.items()
    for option in options_of(command, Output)
]
NEW = [each for each in OUTPUTS if each[1] != "--store"]
INPUTS = [
    (name, option, word)
    for name, option in OUTPUTS
    for word in EXAMPLES.get(name, []) + OTHERWISE.get(name, [])
    if word in FILES
] + [("assess", "--save", "card.toml")]


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)  # the whole path may be too long for a socket


PLACES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "folder": (Path.mkdir, "is a folder"),
    "link to a file": (lambda path: path.symlink_to("old.csv"), "is a symbolic link"),
    "link to the input": (lambda path: path.symlink_to("table.csv"), "is a symbolic link"),
    "link to nothing": (lambda path: path.symlink_to("nothing"), "is a symbolic link"),
    "link to itself": (lambda path: path.symlink_to(path.name), "is a symbolic link"),
    "link to a folder": (lambda path: path.symlink_to("."), "is a symbolic link"),
    "pipe": (os.mkfifo, "is a named pipe"),
    "socket": (make_socket, "is a socket"),
}
"""What may stand where nothing can be written."""
ELSEWHERE = {
    "/dev/null": "is a device",
    "no/out.csv": "the folder no does not exist",
    "old.csv/out.csv": "the folder old.csv does not exist",
    f"{300 * 'x'}.csv": "cannot be written",
    ".": "is a folder",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the files of the examples."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found_in(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a folder: which file it is, its permissions, times and content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
        found[str(path)] = (state.st_ino, state.st_mode, state.st_mtime_ns, content)
    return found


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs a command in this process; its status and what it says."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, words)])
        status = 0
        try:
            cli.main()
        except SystemExit as done:
            status = int(done.code or 0)
        return status, capsys.readouterr().err

    return run


@pytest.fixture
def refused(run, folder, monkeypatch):
    """Holds a command to refuse an output before it does anything."""

    def refused(message: str, name: str, *words: object) -> None:
        monkeypatch.setattr(COMMANDS[name], "callback", lambda **_: pytest.fail("it began"))
        before = found_in(folder)
        status, error = run(name, *EXAMPLES[name], *words)
        assert (status, message in error) == (1, True), error
        assert found_in(folder) == before

    return refused


# ---- commands


@pytest.mark.parametrize("name", COMMANDS)
def test_every_path_of_a_command_is_an_input_or_an_output(name):
    command = COMMANDS[name]
    assert type(command) is FileCommand
    paths = [param for kind in (click.Path, click.File) for param in options_of(command, kind)]
    kinds = (Input, Output, Records, Folder)
    assert [param.name for param in paths if type(param.type) not in kinds] == []
    new = [param for param in paths if isinstance(param.type, Output) and not param.type.resumed]
    assert ("force" in [param.name for param in command.params]) is bool(new)


def test_the_examples_give_every_input():
    assert set(EXAMPLES) == {name for name, _ in OUTPUTS}
    for name, words in EXAMPLES.items():
        command = COMMANDS[name]
        required = [each.opts[0] for each in options_of(command, Output) if each.required]
        outputs = [word for option in required for word in (option, "out.csv")]
        contexts = [
            command.make_context(name, [*each, *outputs]).params
            for each in (words, OTHERWISE.get(name, words))
        ]
        for param in options_of(command, Input):
            assert any(given[str(param.name)] for given in contexts), name


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_an_output_is_a_regular_file(name, option, place, refused, folder):
    make, message = PLACES[place]
    make(folder / "out.csv")
    force = ["--force"] if (name, option) in NEW else []
    refused(f"out.csv: {message}", name, option, "out.csv", *force)


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_an_output_stands_in_a_folder(name, option, place, refused):
    refused(ELSEWHERE[place], name, option, place)


@pytest.mark.parametrize(("name", "option", "read"), INPUTS)
def test_an_output_is_no_input(name, option, read, refused, folder):
    (folder / "sub").mkdir()
    (folder / "hard.csv").hardlink_to(folder / read)
    words = ["--model", read] if read == "card.toml" else []
    words += OTHERWISE[name][1:] if read in OTHERWISE.get(name, [])[1:] else []
    words += ["--force"] if (name, option) in NEW else []
    for spelled in (read, folder / read, f"sub/../{read}", "hard.csv"):
        refused(f"{spelled}: is the file that is read", name, option, spelled, *words)


def test_an_input_that_is_a_link_is_not_replaced_by_way_of_it(refused, folder):
    (folder / "link.csv").symlink_to("old.csv")
    words = ["--known-margins", "link.csv", "--save", "old.csv", "--force"]
    refused("old.csv: is the file that is read", "assess", *words)


@pytest.mark.parametrize(("name", "option"), NEW)
def test_a_file_is_not_replaced_unasked(name, option, refused):
    refused("old.csv: exists already; give another name, or replace", name, option, "old.csv")


def test_two_outputs_are_two_files(refused, folder):
    (folder / "sub").mkdir()
    (folder / "hard.csv").hardlink_to(folder / "store")
    names = [name for name, _ in OUTPUTS]
    assert {name for name in names if names.count(name) > 1} == {"study", "attack"}
    words = ["--output", "new.csv", "--certificate", "new.csv"]
    refused("new.csv: is another output, too", "attack", *words)
    for store, output in (
        ("new", "new"),
        ("new", "sub/../new"),
        ("sub/new", folder / "sub" / "new"),
        ("store", "./store"),
        ("store", "hard.csv"),
    ):
        words = ["--store", store, "--output", output, "--force"]
        refused(f"{Path(output)}: is another output, too", "study", *words)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two fits of one sample, as files."""
    labels = {"a": ["x", "y"], "b": ["1", "2"]}
    table = xr.DataArray([[30, 40], [20, 10]], coords=labels, dims=("a", "b"))
    folder = tmp_path_factory.mktemp("fits")
    for name, model in {"one": tc.LogLinear(), "two": tc.PolyaUrn()}.items():
        fit = model.fit(table, population_size=1000, draws=100, random_seed=1)
        tc.save_fit(fit, folder / f"{name}.nc")
    tc.ReleaseLog(folder / "project.duckdb", variables=labels)
    return folder


ENDINGS = {
    ("assess", "--save"): ".nc",
    ("compare", "--save"): ".nc",
    ("report", "--output"): ".html",
    ("release-log", "--output"): ".duckdb",
    ("attack", "--certificate"): ".json",
}


@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_a_command_writes_its_output_and_nothing_else(name, option, run, folder, saved):
    for made in ("one.nc", "two.nc", "project.duckdb"):
        (folder / made).write_bytes((saved / made).read_bytes())
    new = f"new{ENDINGS.get((name, option), '.csv')}"
    before, out = found_in(folder), folder / new
    words = [name, *EXAMPLES[name], option, new]
    assert run(*words) == (0, "")
    first = found_in(folder)
    assert first.keys() - before.keys() == {str(out)}
    assert {path: state for path, state in first.items() if path in before} == before
    if (name, option) not in NEW:
        return
    assert run(*words)[0] == 1
    assert found_in(folder) == first
    out.chmod(0o640)
    out.write_text("old\n")
    assert run(*words, "--force") == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert len(out.read_bytes()) == len(first[str(out)][3])
    assert found_in(folder).keys() == first.keys()


# ---- functions


def public_functions() -> dict[str, Callable[..., Any]]:
    modules = [tc, *(value for name in tc.__all__ if inspect.ismodule(value := getattr(tc, name)))]
    return {
        name: value
        for module in modules
        for name in module.__all__
        if inspect.isfunction(value := getattr(module, name))
    }


def test_every_function_that_writes_is_listed_and_asks():
    asking = {
        name: parameters["overwrite"]
        for name, function in public_functions().items()
        if "overwrite" in (parameters := inspect.signature(function).parameters)
    }
    assert set(asking) == set(WRITERS)
    for parameter in asking.values():
        assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, False)


@pytest.mark.parametrize(("name", "ending"), FILES_WRITTEN)
def test_a_function_writes_a_new_file_or_is_told_to_replace_one(name, ending, folder):
    write, path = WRITERS[name][0], folder / f"new{ending}"
    write(path)
    first = found_in(folder)
    with pytest.raises(FileFormatError, match="exists already"):
        write(path)
    assert found_in(folder) == first
    path.chmod(0o640)
    write(path, overwrite=True)
    second = found_in(folder)
    assert second.keys() == first.keys()
    assert second[str(path)][0] != first[str(path)][0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_function_writes_a_regular_file(name, place, folder):
    (make, message), (write, endings) = PLACES[place], WRITERS[name]
    path = folder / f"out{endings[0]}"
    make(path)
    before = found_in(folder)
    with pytest.raises(FileFormatError, match=rf"out\.\w+: {message}"):
        write(path, overwrite=True)
    assert found_in(folder) == before


@pytest.mark.parametrize("place", PLACES)
def test_a_store_is_a_regular_file(place, folder):
    make, message = PLACES[place]
    make(folder / "out")
    before = found_in(folder)
    population = tc.load_dataset("area_by_sex")
    with pytest.raises(FileFormatError, match=f"out: {message}"):
        tc.study(population, {"x": tc.LogLinear()}, store=folder / "out", progressbar=False)
    assert found_in(folder) == before


def test_a_card_does_not_replace_its_table(folder):
    with pytest.raises(FileFormatError, match=r"table\.csv: is the file that is read"):
        write_card(folder / "table.csv", table="table.csv", overwrite=True)
    assert (folder / "table.csv").read_text() == FILES["table.csv"]


# ---- the package


MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in PACKAGE.rglob("*.py")
}


def calls_in(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    """Calls by the last part of their names."""
    return [
        (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id, call)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name)
    ]


def test_what_writes_a_whole_file_is_told_whether_to_replace_one():
    found = 0
    for path, tree in MODULES.items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                called = [call for name, call in calls_in(function) if name == "whole_file"]
                names = [argument.arg for argument in function.args.kwonlyargs]
                assert not called or "overwrite" in names, f"{path}: {function.name}"
                for call in called:
                    assert [word.arg for word in call.keywords] == ["overwrite"]
                    found += 1
    assert found == 8


def test_nothing_else_writes_files():
    by_path = {"write_text", "write_bytes", "savefig", "touch", "copyfile", "tofile", "mkstemp"}
    opening = {
        path
        for path, tree in MODULES.items()
        for name, call in calls_in(tree)
        if name in by_path
        or (name == "open" and re.search(r"'[rwaxb]*[wax+][b+]*'", ast.unparse(call)))
    }
    assert opening == {"files.py", "reports/pictures.py"}  # the latter into memory
    given = {"to_csv", "to_parquet", "to_netcdf"}
    writing = {path for path, tree in MODULES.items() if given & dict(calls_in(tree)).keys()}
    writing -= {"publication/release_file.py"}  # in memory
    assert writing == {"files.py", "fits/files.py", "publication/formats.py"}
