"""A command that fails on its arguments or its table says so before anything heavy is
imported."""

import json
import subprocess
import sys

import pytest

LIBRARIES = {"numpy", "pandas", "scipy", "xarray"}
HEAVY = {
    "arviz",
    "duckdb",
    "highspy",
    "matplotlib",
    "numba",
    "nutpie",
    "pymc",
    "pytensor",
    "scipy.stats",  # xarray imports other parts of SciPy where dask is installed
}

FILES = {
    "table.csv": "a,b,count\nx,1,3\nx,2,4\ny,1,2\ny,2,1\n",
    "negative.csv": "a,b,count\nx,1,-3\nx,2,4\n",
    "twice.csv": "a,b,count\nx,1,3\nx,1,4\n",
    "hidden.csv": "a,b\nx,1\n",
    "other.csv": "a,c\nx,1\n",
    "card.toml": "x = 1\n",
    "one.nc": "",
    "notes.txt": "a,b,count\nx,1,3\n",
}
ASSESS = ["assess", "table.csv", "-N", "100"]
MANY = ["assess-many", "table.csv", "--over", "a", "-N", "100"]
PERTURB = ["perturb", "table.csv", "--report", "--method"]
SUPPRESS = ["suppress", "table.csv", "--output", "o.csv"]
RULES = ["rules", "table.csv", "--variables", "a", "--value", "count"]
STUDY = ["study", "table.csv", "--model", "log-linear"]

WITHOUT_LIBRARIES = [
    (["assess", "no.csv", "-N", "100"], 1, "no.csv: no such file"),
    (["assess", "notes.txt", "-N", "100"], 1, "cannot read the ending '.txt'"),
    (["assess", "table.csv"], 2, "--population-size"),
    (["assess", "table.csv", "-N", "0"], 2, "1<=x<="),
    ([*ASSESS, "--known-margins", "no.csv"], 1, "no.csv: no such file"),
    ([*ASSESS, "--save", "no/fit.nc"], 1, "the folder no does not exist"),
    ([*ASSESS, "--save", "table.csv", "--force"], 1, "is the file that is read"),
    ([*ASSESS, "--save", "one.nc"], 1, "one.nc: exists already"),
    ([*ASSESS, "--model", "card.toml", "--save", "card.toml", "--force"], 1, "that is read"),
    ([*ASSESS, "--threshold", "1.5"], 2, "0<=x<=1"),
    ([*ASSESS, "--threshold", "nan"], 2, "nan is not a finite number"),
    ([*ASSESS, "--weights", "0.5,0.5,0.5"], 2, "sum to 1"),
    ([*ASSESS, "--model", "magic"], 2, "neither a model card nor one of linear-pool"),
    ([*ASSESS, "--model", "no.toml"], 1, "no.toml: no such file"),
    ([*ASSESS, "--model", "latent-class", "--formula", "~ a"], 2, "--formula does not apply"),
    ([*ASSESS, "--model", "card.toml", "--formula", "~ a"], 2, "which has its own"),
    ([*ASSESS, "--draws", "0"], 2, "1<=x<=1000000"),
    ([*ASSESS, "--variables", "a", "--variables", "b"], 2, "--variables was given 2 times"),
    (["assess-many", "table.csv", "--over", "a"], 2, "give either --population-size or"),
    ([*MANY, "--population-sizes", "no.csv"], 2, "give either --population-size or"),
    ([*MANY, "--table", "people"], 2, "--table needs --variables"),
    ([*MANY, "--table", "people", "--variables", "b"], 2, "is read as a file of records"),
    (["assess-many", "no.csv", "--over", "a", "-N", "9"], 1, "no.csv: no such file"),
    ([*MANY, "--output", "no/o.csv"], 1, "the folder no does not exist"),
    (["tabulate", "postgres://h/d", "--variables", "a"], 2, "needs --table"),
    (["tabulate", "no.duckdb", "--variables", "a", "--table", "t"], 1, "no such file"),
    (["summary", "no.nc"], 1, "no.nc: no such file"),
    (["summary", "one.nc", "--format", "yaml"], 2, "is not one of"),
    (["report", "one.nc", "--output", "p.pdf"], 1, "p.pdf: cannot be written with the ending"),
    (["report", "no.nc", "--output", "p.html"], 1, "no.nc: no such file"),
    (["report", "one.nc", "--output", "one.nc", "--force"], 1, "is the file that is read"),
    (["report", "one.nc", "--output", "p.html", "--release", "no.csv"], 1, "no.csv: no such file"),
    (["report", "one.nc", "--output", "p.html", "--log", "no.db"], 1, "no.db: no such file"),
    (["report", "one.nc", "--output", "p.html", *2 * ["--release", "a.csv"]], 2, "called 'a'"),
    (["summary", "one.nc", "--fail-on", "R2>2:0.1"], 2, "is none of: R2>0.2:0.05"),
    ([*ASSESS, "--fail-on", "disclosed"], 2, "is none of: R2>0.2:0.05"),
    (["check", "no.csv", "--log", "one.nc"], 1, "no.csv: no such file"),
    (["check", "table.csv", "--log", "no.duckdb"], 1, "no.duckdb: no such file"),
    (["check", "table.csv", "--log", "one.nc", "--where", "a"], 2, "is no name=category"),
    (["check", "table.csv", "--log", "one.nc", "--threshold", "1"], 2, "2<=x<="),
    (["release-log", "no.csv", "--variables", "a", "--output", "o.duckdb"], 1, "no such file"),
    (["release-log", "table.csv", "--output", "o.duckdb"], 2, "--variables"),
    (["diagnose", "no.nc"], 1, "no.nc: no such file"),
    (["diagnose", "one.nc", "--format", "yaml"], 2, "is not one of"),
    (["compare", "one.nc"], 2, "at least two fits, got 'one' alone"),
    (["compare", "one.nc", "one.nc"], 2, "two fits would be called 'one'"),
    (["compare", "one.nc", "two.nc"], 1, "two.nc: no such file"),
    (["compare", "one.nc", "table.csv", "--save", "no/s.nc"], 1, "does not exist"),
    ([*PERTURB, "magic"], 2, "is not one of"),
    ([*PERTURB, "add-noise"], 2, "needs --epsilon"),
    ([*PERTURB, "add-noise", "--epsilon", "0"], 2, "0.0 is not in the range"),
    ([*PERTURB, "suppress-small-cells"], 2, "needs --minimum"),
    ([*PERTURB, "random-round", "--minimum", "3"], 2, "--minimum does not apply"),
    ([*PERTURB, "random-round", "--rounding-base", "1"], 2, "1 is not in the range"),
    ([*PERTURB, "conventional-round", "--seed", "1"], 2, "has no randomness"),
    ([*PERTURB, "random-round", "--output", "o.txt"], 1, "ends in .csv, .parquet, .json, .xlsx"),
    (SUPPRESS, 2, "--threshold"),
    ([*SUPPRESS, "--threshold", "1"], 2, "2<=x<="),
    ([*SUPPRESS[:2], "--threshold", "3", "--output", "o.txt"], 1, "ends in .csv, .parquet"),
    (["suppress", "no.csv", *SUPPRESS[2:], "--threshold", "3"], 1, "no.csv: no such file"),
    ([*SUPPRESS, "--threshold", "3", "--hierarchy", "no.csv"], 1, "no.csv: no such file"),
    (["perturb", "table.csv", "--method", "random-round"], 2, "give --output, --report or both"),
    (["perturb", "no.csv", "--report", "--method", "random-round"], 1, "no such file"),
    (["attack", "table.csv"], 2, "give --release, --suppressed or --linked"),
    (["attack", "table.csv", "--suppressed", "no.csv"], 1, "no.csv: no such file"),
    (["attack", "table.csv", "--release", "no.csv"], 1, "no.csv: no such file"),
    (["attack", "table.csv", "--release", "notes.txt"], 1, "'.csv' and '.parquet' and '.json'"),
    (["attack", "table.csv", "--release", "hidden.csv", "--linked", "a"], 2, "do not apply"),
    (["attack", "table.csv", "--linked", "a", "--fail-on", "checks"], 2, "is none of: disclosed"),
    (["attack", "table.csv", "--linked", "a", "--totals", "b"], 2, "--totals are those of"),
    (["attack", "table.csv", "--linked", "a", "--certificate", "c.txt"], 1, "ending '.txt'"),
    (["attack", "table.csv", "--linked", "a", "--certificate", "no/c.json"], 1, "does not exist"),
    (["attack", "table.csv", "--linked", "a", "--hierarchy", "no.csv"], 1, "no such file"),
    ([*RULES], 2, "--rule"),
    (["rules", "no.csv", *RULES[2:], "--rule", "freq:3"], 1, "no such file"),
    ([*RULES, "--rule", "freq:3", "--output", "o.txt"], 1, "ends in .csv, .parquet, .json"),
    ([*RULES, "--rule", "freq:3", "--time-limit", "nan"], 2, "nan is not a finite number"),
    ([*STUDY, "--fractions", "0.1,2"], 2, "above 0 and at most 1, got 2.0"),
    ([*STUDY, "--store", "no/store"], 1, "does not exist"),
    (["study", "no.csv", "--model", "log-linear"], 1, "no such file"),
    ([*STUDY, "--store", "new", "--output", "./new"], 1, "is another output, too"),
    (["validate", "no.toml"], 1, "no.toml: no such file"),
    (["serve", "no.duckdb"], 1, "no.duckdb: no such file"),
    (["serve", "one.nc", "--host", "0.0.0.0"], 2, "is not one of '127.0.0.1', '::1'"),
    (["serve", "one.nc", "--port", "65536"], 2, "0<=x<=65535"),
    (["serve", "one.nc", "--time-limit", "nan"], 2, "nan is not a finite number"),
    (["frobnicate"], 2, "No such command"),
]
WITH_THE_TABLE = [
    (["assess", "negative.csv", "-N", "100"], 1, "a=x, b=1 holds '-3'"),
    (["assess", "twice.csv", "-N", "100"], 1, "stands in more than one row"),
    ([*ASSESS, "--count", "people"], 1, "no column 'people'"),
    ([*ASSESS, "--known-margins", "negative.csv"], 1, "holds '-3'"),
    (["perturb", "negative.csv", "--report", "--method", "cell-key"], 1, "holds '-3'"),
    (["suppress", "negative.csv", *SUPPRESS[2:], "--threshold", "3"], 1, "holds '-3'"),
    ([*SUPPRESS, "--threshold", "3", "--by", "c"], 1, "no variable ['c']"),
    ([*SUPPRESS, "--threshold", "3", "--linked", "c"], 1, "--linked must name variables"),
    (["study", "negative.csv", "--model", "log-linear"], 1, "holds '-3'"),
    (["attack", "negative.csv", "--suppressed", "hidden.csv"], 1, "holds '-3'"),
    (["attack", "table.csv", "--suppressed", "other.csv"], 1, "must name what is released"),
    (["attack", "table.csv", "--linked", "c"], 1, "--linked must name variables"),
    (["attack", "table.csv", "--linked", "a", "--margin", "c"], 1, "--margin must name variables"),
    ([*RULES, "--rule", "nonsense:1"], 1, "no rule 'nonsense:1'"),
    ([*RULES, "--rule", "p%:0"], 1, "p must be a number above 0 and at most 100"),
]
RUN_ALL = """
import contextlib, io, json, sys
from taciturn.cli import main

for words in json.loads(sys.stdin.read()):
    sys.argv, before, status, written = ["taciturn", *words], set(sys.modules), 0, io.StringIO()
    try:
        with contextlib.redirect_stderr(written), contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as done:
        status = done.code or 0
    loaded = sorted(set(sys.modules) - before)
    print(json.dumps([status, written.getvalue(), loaded]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Status, messages and newly imported libraries of each command, all run one after
    another in one fresh interpreter."""
    folder = tmp_path_factory.mktemp("commands")
    for name, content in FILES.items():
        (folder / name).write_text(content)
    commands = [words for words, _, _ in [*WITHOUT_LIBRARIES, *WITH_THE_TABLE]]
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {tuple(words): result for words, result in zip(commands, results, strict=True)}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    WITHOUT_LIBRARIES,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_are_refused_before_any_library_is_imported(words, status, message, outcomes):
    found, written, loaded = outcomes[tuple(words)]
    assert (found, message in written) == (status, True), written
    assert not set(loaded) & (HEAVY | LIBRARIES)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    WITH_THE_TABLE,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_tables_are_refused_before_anything_is_compiled(words, status, message, outcomes):
    found, written, loaded = outcomes[tuple(words)]
    assert (found, message in written) == (status, True), written
    assert not set(loaded) & HEAVY
