"""Bounds written with their proofs: the second program accepts them, and refuses what
is wrong, whatever was changed."""

import copy
import json
import re
import subprocess
import sys
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

import taciturn as tc
from strategies import shapes, tables
from taciturn.attack.certificates import checker, checking, parts
from taciturn.attack.certificates.checker import CertificateError
from taciturn.errors import FileFormatError, ParameterError
from taciturn.schema import cell_label

TABLE = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
SMALL = tc.Suppression(TABLE, TABLE < 5)


def written(release, folder, **options):
    """The certificate of a release, and the file that it is in."""
    path = Path(folder, "bounds.json")
    tc.attack.write_certificate(release, path, progressbar=False, overwrite=True, **options)
    return json.loads(path.read_text()), path


def check(document, folder):
    path = Path(folder, "changed.json")
    path.write_text(json.dumps(document))
    return checker.check(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("certificates")


class Pairs(tc.attack.Release):
    """Of `n` cells no two hold more than 1, and with a last one all hold `n`: that one
    holds at least n / 2 by linear programs, and n - 1 in whole numbers."""

    def __init__(self, n):
        self.n = n
        self.__post_init__()

    @property
    def system(self):
        cells, totals = self.n + 1, []
        for pair in combinations(range(self.n), 2):
            labels = xr.DataArray([0, 0], dims="part", coords={"part": [f"{pair}", "others"]})
            group = np.where(np.isin(np.arange(cells), pair), 0, 1)
            ends, released = (np.array([0, 0]), np.array([1, 0])), np.array([True, False])
            totals.append(tc.attack.Total(labels, group, *ends, released))
        every = xr.DataArray([self.n], dims="all", coords={"all": ["all"]})
        totals.append(tc.attack.Total.exact(every, np.zeros(cells, dtype=int)))
        nothing = xr.DataArray(np.zeros(cells, dtype=int), dims="x")
        return tc.attack.build_system(nothing, nothing.values > 0, totals, decimals=0)

    def publishes(self, names):
        return np.zeros(self.n + 1, dtype=bool)

    def shown(self):
        return tc.attack.Shown(["pairs"], [])


# Of two categories each, with the totals of all pairs: there are tables in parts that
# go further than any in whole numbers, by more than 1.
ONES = np.isin(np.arange(16), [0, 7, 11, 13, 14]).astype(int)


def four_variables():
    table = xr.DataArray(ONES.reshape(4 * (2,)), dims=[*"abcd"])
    return tc.LinkedTables(table, list(combinations("abcd", 2)))


def three_variables():
    """The same, with two of them as levels of one."""
    table = xr.DataArray(ONES.reshape(4, 2, 2), dims=["ab", "c", "d"])
    table = table.assign_coords(a=("ab", [0, 0, 1, 1]), b=("ab", [0, 1, 0, 1]))
    pairs = [(one, other) for one in "ab" for other in "cd"]
    return tc.Suppression(table, table >= 0, totals=["ab", *pairs, ("c", "d")])


# ---- against `attacker_bounds`


@st.composite
def releases(draw):
    """Releases of all kinds of tables of one to three variables, some with levels or
    negative values, and what to bound."""
    table = draw(tables(shape=shapes(max_dims=3), max_count=6))
    dims = list(table.dims)
    margins = [names for size in range(len(dims) + 1) for names in combinations(dims, size)]
    some = st.lists(st.sampled_from(margins), min_size=1, unique=True)
    flags = st.lists(st.booleans(), min_size=table.size, max_size=table.size)
    margin = draw(st.none() | st.sampled_from(margins))
    kind = draw(
        st.sampled_from(["suppression", "signed", "levels", "linked", "rounding", "perturbed"])
    )
    if kind == "rounding":
        released = table // 3 * 3
        controlled = True if table.ndim <= 2 else [released.sum(dims[0]), released.sum()]
        totals = draw(st.sampled_from([False, controlled]))
        return tc.Rounding(released, 3, method="random", totals=totals), margin
    if kind == "perturbed":
        return tc.attack.Perturbed(table // 3 * 3, tc.attack.RandomRounding(3)), margin
    if kind == "linked":
        return tc.LinkedTables(table, draw(some), signed=draw(st.booleans())), margin
    if kind == "signed":
        table = table - draw(st.integers(1, 3))
    if kind == "levels":
        half = np.arange(table.shape[0]) % 2
        table = table.assign_coords(half=(dims[0], half))
    hidden = table.copy(data=np.array(draw(flags)).reshape(table.shape))
    return tc.Suppression(table, hidden, totals=draw(st.booleans() | some)), margin


@settings(max_examples=60, deadline=None)
@given(case=releases())
def test_every_bound_of_the_attacker_is_written_and_proved(case, folder):
    release, margin = case
    bounds = tc.attacker_bounds(release, margin=margin, progressbar=False)
    try:
        document, path = written(release, folder, margin=margin)
    except ParameterError:  # nothing to bound
        assert bounds["disclosed"].all()
        return
    checked = tc.attack.check_certificate(path, release=release)
    assert checked.not_proved == ()
    assert len(checked.bounds) == 2 * len(document["bounds"])
    sides = bounds[["lower", "upper", "disclosed"]].to_array().values.reshape(3, -1).T
    positions = product(*map(range, bounds["lower"].shape))
    labels = [cell_label(bounds["lower"], at) or "the grand total" for at in positions]
    found = dict(zip(labels, sides, strict=True))
    for bound in document["bounds"]:
        lower, upper, _ = found.pop(bound["label"])
        assert number(bound["lower"]["value"], -np.inf) == lower
        assert number(bound["upper"]["value"], np.inf) == upper
    assert all(disclosed for *_, disclosed in found.values())


def number(value, otherwise):
    return otherwise if value is None else value


@pytest.mark.parametrize("decimals", [0, 6])
def test_large_numbers_are_proved_as_well(decimals, folder):
    """Of this table the solver says of some bounds, when asked once, that there is no
    table."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10**10, (3, 5, 4)) / 10**decimals
    table = xr.DataArray(values, dims=[*"abc"])
    release = tc.LinkedTables(table, list(combinations("abc", 2)), decimals=decimals)
    _, path = written(release, folder)
    checked = tc.attack.check_certificate(path, release=release)
    assert (checked.decimals, checked.not_proved) == (decimals, ())


# ---- proofs that need a tree, and those that there are not


def nodes_of(document):
    sides = (bound[side] for bound in document["bounds"] for side in ("lower", "upper"))
    return [side["proof"] for side in sides if side.get("proof")]


@pytest.mark.parametrize(
    "release", [Pairs(5), three_variables(), four_variables()], ids=["pairs", "three", "four"]
)
def test_where_linear_programs_go_too_far_the_proof_is_a_tree(release, folder):
    document, path = written(release, folder)
    trees = [nodes for nodes in nodes_of(document) if len(nodes) > 1]
    assert trees
    assert tc.attack.check_certificate(path).not_proved == ()
    for bound in document["bounds"]:
        for side, sign in (("lower", -1), ("upper", 1)):
            true = extreme(document, bound["cells"], sign)
            assert bound[side]["value"] == true
    for nodes in trees:
        for at in range(len(nodes)):
            left = nodes.pop(at)
            with pytest.raises(CertificateError, match=r"^bounds\[\d+\]\.(lower|upper)\.proof"):
                check(document, folder)
            nodes.insert(at, left)
        nodes.append(left)
        with pytest.raises(CertificateError, match="stands after its tree"):
            check(document, folder)
        nodes.pop()


def extreme(document, cells, sign):
    """How far a sum of cells goes in the system of a document, by an integer program;
    None where nothing limits it."""
    n = len(document["cells"])
    matrix = np.zeros((len(document["rows"]), n))
    for row, total in zip(matrix, document["rows"], strict=True):
        row[total["cells"]] = 1
    costs = np.zeros(n)
    costs[cells] = -sign
    limits = [
        [[number(each[name], end) for each in document[part]] for name, end in ends.items()]
        for part, ends in (
            ("cells", {"lower": -np.inf, "upper": np.inf}),
            ("rows", {"least": -np.inf, "most": np.inf}),
        )
    ]
    found = milp(
        costs,
        integrality=np.ones(n),
        bounds=Bounds(*limits[0]),
        constraints=LinearConstraint(matrix, *limits[1]) if len(matrix) else None,
    )
    if found.status == 0:
        return -sign * round(found.fun)
    assert found.status in (3, 4), "there is a table"
    return None


def test_a_bound_without_a_proof_is_said_to_have_none(folder, monkeypatch):
    monkeypatch.setattr(parts, "_NODES", 1)
    document, path = written(Pairs(5), folder)
    checked = tc.attack.check_certificate(path)
    assert [(side.cell, side.side, side.value) for side in checked.not_proved] == [
        ("x=5", "lower", 4)
    ]
    assert repr(checked) == "11 bounds proved, 1 not"
    assert document["bounds"][5]["lower"]["proof"] is None
    document["bounds"][0]["upper"]["table"] = None
    assert len(check(document, folder).not_proved) == 2


# ---- what is changed


def places(value, path=()):
    """Every number and every multiplier of a document."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*path, key))
    elif path[-1] not in ("label", "format", "shows") and value is not None:
        yield path


def changed(document, path, change):
    """A copy in which one value is another one."""
    document = copy.deepcopy(document)
    *way, last = path
    inside = document
    for key in way:
        inside = inside[key]
    inside[last] = change(inside[last])
    return document


def assert_refused_or_right(document, folder):
    """No bound is called proved that is another one in the system of the document."""
    try:
        checked = check(document, folder)
    except CertificateError:
        return False
    cells = [bound["cells"] for bound in document["bounds"] for _ in range(2)]
    for side, inside in zip(checked.bounds, cells, strict=True):
        sign = 1 if side.side == "upper" else -1
        assert not side.proved or side.value == extreme(document, inside, sign)
    return True


def added(one):
    """Something more, of a number or of the text of a fraction."""

    def change(value):
        if isinstance(value, int):
            return value + one
        return str(checker.Fraction(value) + one)

    return change


OPEN = tc.Suppression(TABLE, TABLE < 5, totals=["a"])
SIGNED = tc.Suppression(TABLE - 2, TABLE < 5, totals=["b"])
SEVERAL = {"small": SMALL, "open": OPEN, "signed": SIGNED, "pairs": Pairs(5)}


@pytest.mark.parametrize("one", [1, -1])
@pytest.mark.parametrize("name", SEVERAL)
def test_no_number_can_be_changed_to_prove_what_is_wrong(name, one, folder):
    document, _ = written(SEVERAL[name], folder)
    accepted = {
        path
        for path in places(document)
        if assert_refused_or_right(changed(document, path, added(one)), folder)
    }
    # What is left: limits, multipliers and numbers that nothing depends on.
    assert {path[-1] for path in accepted} & {"value", "version"} == set()
    assert {path[0] for path in accepted} & {"tables"} == set()
    for at, row in enumerate(document["rows"]):
        if row["least"] == row["most"]:
            other = changed(document, ("rows", at, "least"), added(one))
            other = changed(other, ("rows", at, "most"), added(one))
            with pytest.raises(CertificateError, match=rf"tables\[0\] has \d+ in rows\[{at}\]"):
                check(other, folder)


@pytest.mark.parametrize("name", SEVERAL)
def test_what_is_left_out_is_missed(name, folder):
    document, _ = written(SEVERAL[name], folder)
    for part in ("tables", "rows", "cells"):
        for at in range(len(document[part])):
            less = copy.deepcopy(document)
            del less[part][at]
            assert_refused_or_right(less, folder)
    for name in document:
        less = {key: value for key, value in document.items() if key != name}
        with pytest.raises(CertificateError, match="and nothing else"):
            check(less, folder)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(list(SEVERAL)))
def test_any_changes_are_refused_or_prove_what_is_right(data, name, folder):
    document = copy.deepcopy(written_once(name, folder))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(document))))
        other = st.sampled_from([0, 1, -1, 2, 7, None, True, "1/2", "-1", "x", [], {}, 1.5])
        value = data.draw(other)
        document = changed(document, path, lambda _, value=value: value)
    assert_refused_or_right(document, folder)


DOCUMENTS = {}


def written_once(name, folder):
    if name not in DOCUMENTS:
        DOCUMENTS[name] = written(SEVERAL[name], folder)[0]
    return DOCUMENTS[name]


# ---- hostile files

WHOLE = '{"format": "taciturn certificate", "version": 1, "decimals": 0, "cells": [], '
WHOLE += '"rows": [], "tables": [[]], "bounds": []}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as JSON"),
        (b"\xff", "cannot be read as JSON"),
        (WHOLE.encode("utf-16"), "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b"[]", "the certificate must be an object of format, version"),
        (b'{"format": 1, "format": 2}', "an object has a name twice: format, format"),
        (WHOLE.replace("0", "1" * 41).encode(), "a number has more than 40 digits"),
        (WHOLE.replace("0", "9" * 10_000).encode(), "a number has more than 40 digits"),
        (WHOLE.replace("0", "0.5").encode(), "a number must be a whole one, not 0.5"),
        (WHOLE.replace("0", "1e9").encode(), "a number must be a whole one, not 1e9"),
        (WHOLE.replace("0", "NaN").encode(), "a number must be a whole one, not NaN"),
        (WHOLE.replace("0", "true").encode(), "decimals must be a whole number from 0 to 12"),
        (WHOLE.replace("0", '"0"').encode(), "not a str"),
        (WHOLE.replace("0", "13").encode(), "from 0 to 12, not 13"),
        (WHOLE.replace(": 1,", ": 2,").encode(), "format and version must be"),
        (WHOLE.replace("[[]]", "[[1]]").encode(), r"tables[0] must have 0 values"),
        (WHOLE.replace("[[]]", "{}").encode(), "tables must be a list"),
    ],
)
def test_a_file_that_is_no_certificate_is_refused(content, message, folder):
    path = folder / "hostile.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"hostile.json: .*{re.escape(message)}"):
        tc.attack.check_certificate(path)


def test_a_certificate_of_nothing_is_refused(folder):
    path = folder / "empty.json"
    path.write_text(WHOLE)
    with pytest.raises(FileFormatError, match="bounds must not be empty"):
        tc.attack.check_certificate(path)
    release = tc.Suppression(TABLE, TABLE < 0)
    with pytest.raises(ParameterError, match="nothing to bound"):
        tc.attack.write_certificate(release, folder / "none.json", progressbar=False)
    assert not (folder / "none.json").exists()


def test_what_a_bound_is_of_is_that_of_the_release(folder):
    """Not what the file calls it, nor in other units."""
    release = tc.Suppression(TABLE, TABLE < 5)
    document, path = written(release, folder, margin="a")
    assert tc.attack.check_certificate(path, release=release).not_proved == ()

    def refused(message, **changes):
        other = json.loads(json.dumps(document))
        other["bounds"][0] |= changes.pop("bound", {})
        path.write_text(json.dumps(other | changes))
        with pytest.raises(FileFormatError, match=message):
            tc.attack.check_certificate(path, release=release)

    refused("bound of 3 cells that is called 'a=1'", bound={"label": "a=1"})
    refused("has 3 decimals, and the release 0", decimals=3)
    nothing = {"value": 0, "table": 0, "proof": [{"shows": "bound", "multipliers": []}]}
    empty = {"label": "a=0", "cells": [], "lower": nothing, "upper": nothing}
    refused(r"bounds\[0\] has no cell", bound=empty)
    refused(r"bounds\[0\] must be of the cell 'a=0, b=0' or a sum", bound={"label": "a=0, b=0"})


def tree_document(nodes):
    """A cell from 0 to 1 whose upper bound has this proof."""
    side = {"value": 1, "table": 0, "proof": nodes}
    lower = {"value": 1, "table": 0, "proof": None}
    return {
        **json.loads(WHOLE),
        "cells": [{"label": "x", "lower": 0, "upper": 1}],
        "tables": [[1]],
        "bounds": [{"label": "x", "cells": [0], "lower": lower, "upper": side}],
    }


LEAF = {"shows": "bound", "multipliers": []}


def test_a_tree_may_be_long_but_not_deep(folder):
    upwards, downwards = [], []
    for at in range(1100):
        upwards += [{"cell": 0, "at_most": at}, LEAF]
        downwards.append({"cell": 0, "at_most": -at})
    assert check(tree_document([*upwards, LEAF]), folder).bounds[1].proved
    with pytest.raises(CertificateError, match="deeper in it than 1000"):
        check(tree_document(downwards + 1101 * [LEAF]), folder)


def test_what_takes_too_long_to_check_is_refused(folder, monkeypatch):
    document = tree_document([LEAF])
    check(document, folder)
    monkeypatch.setattr(checker, "_STEPS", 2)
    with pytest.raises(CertificateError, match="takes more than 2 steps"):
        check(document, folder)
    monkeypatch.setattr(checker, "_BYTES", 100)
    with pytest.raises(CertificateError, match="has more than 100 bytes"):
        check(document, folder)


WRONG = ["1/0", "0.5", "1/", "²", " 1", "1e9", "", "+1", "1" * 41, "1/" + "1" * 41, 1, None, True]


@pytest.mark.parametrize(
    "multipliers",
    [*([[0, wrong]] for wrong in WRONG), [[1, "1"]], [[-1, "1"]], [[0, "1"], [0, "1"]], [[0]], [0]],
)
def test_multipliers_are_fractions_of_different_rows(multipliers, folder):
    document = tree_document([{"shows": "bound", "multipliers": multipliers}])
    document["rows"] = [{"label": "r", "least": 0, "most": 1, "cells": [0]}]
    with pytest.raises(CertificateError, match=r"bounds\[0\].upper.proof\[0\] "):
        check(document, folder)


def test_a_limit_that_is_missing_may_have_the_multiplier_0(folder):
    document = tree_document([{"shows": "bound", "multipliers": [[0, "0"]]}])
    document["rows"] = [{"label": "r", "least": None, "most": 1, "cells": [0]}]
    assert check(document, folder).bounds[1].proved
    document["bounds"][0]["upper"]["proof"][0]["multipliers"] = [[0, "-1/2"]]
    with pytest.raises(CertificateError, match=r"uses a limit that rows\[0\] does not have"):
        check(document, folder)


def test_fractions_have_a_common_denominator_of_few_digits(folder):
    primes = [10**20 + 39, 10**20 + 129, 10**20 + 151]
    document = tree_document([{"shows": "bound", "multipliers": []}])
    row = {"label": "r", "least": 0, "most": 1, "cells": [0]}
    document["rows"] = [row, row, row]
    pairs = [[i, f"1/{prime}"] for i, prime in enumerate(primes)]
    document["bounds"][0]["upper"]["proof"][0]["multipliers"] = pairs
    with pytest.raises(CertificateError, match="a common denominator of more than 40 digits"):
        check(document, folder)


# ---- the file that stands alone


def alone(*words, folder):
    """The checker, in a folder of its own, without other libraries."""
    script = Path(folder, "alone.py")
    script.write_bytes(Path(checker.__file__).read_bytes())
    command = [sys.executable, "-I", "-S", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


def test_the_checker_stands_alone(folder, monkeypatch):
    _, path = written(SMALL, folder)
    done = alone(path, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [
        "proved: a=0, b=0: lower bound 0",
        "proved: a=0, b=0: upper bound 4",
    ]
    assert done.stdout.splitlines()[-1] == "8 bounds proved, 0 not"
    path.write_text(path.read_text().replace('"value": 4', '"value": 5'))
    done = alone(path, folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bounds[0].upper.table does not attain 5\n"
    assert alone(folder=folder).returncode == 1
    assert alone(folder / "no.json", folder=folder).returncode == 1
    monkeypatch.setattr(parts, "_NODES", 1)
    done = alone(written(Pairs(5), folder)[1], folder=folder)
    assert done.returncode == 2
    assert "NOT PROVED: x=5: lower bound 4" in done.stdout.splitlines()


def test_labels_cannot_write_to_a_terminal(folder):
    document = tree_document([LEAF])
    document["cells"][0]["label"] = "\x1b[2Jé\ud800"
    path = folder / "label.json"
    path.write_text(json.dumps(document))
    done = alone(path, folder=folder)
    assert done.returncode == 2
    assert done.stdout.splitlines()[1] == r"proved: \x1b[2Jé\ud800: upper bound 1"


@pytest.mark.parametrize(("value", "shown"), [(-5, "-0.05"), (0, "0.00"), (12345, "123.45")])
def test_bounds_are_printed_in_units(value, shown, folder, capsys):
    document = tree_document([LEAF])
    document["decimals"] = 2
    document["cells"][0] |= {"lower": value, "upper": value}
    document["tables"] = [[]]
    document["bounds"][0]["lower"] |= {"value": value, "proof": [LEAF]}
    document["bounds"][0]["upper"] |= {"value": value}
    path = folder / "units.json"
    path.write_text(json.dumps(document))
    assert checker.main([str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"proved: x: lower bound {shown}"


# ---- what is written


def test_a_certificate_is_held_against_its_release(folder):
    _, path = written(SMALL, folder)
    assert tc.attack.check_certificate(path, release=SMALL).not_proved == ()
    other = tc.Suppression(TABLE + (TABLE == 4), TABLE < 5)
    with pytest.raises(FileFormatError, match=r"has other rows than the release: rows\[1\] is"):
        tc.attack.check_certificate(path, release=other)
    with pytest.raises(FileFormatError, match="has 6 cells, and the release 3"):
        tc.attack.check_certificate(path, release=tc.Suppression(TABLE[0], TABLE[0] < 5))
    with pytest.raises(ParameterError, match="release must be a Suppression"):
        tc.attack.check_certificate(path, release=TABLE)
    known = xr.Dataset({"lower": 0 * TABLE + 1, "upper": TABLE.where(TABLE > 4, 4)})
    _, path = written(SMALL, folder, knowledge=known)
    assert tc.attack.check_certificate(path, release=SMALL, knowledge=known).not_proved == ()
    with pytest.raises(FileFormatError, match=r"other cells than the release: cells\[0\] is"):
        tc.attack.check_certificate(path, release=SMALL)


def test_the_file_says_what_is_published_and_nothing_else(folder):
    document, path = written(SMALL, folder)
    other = xr.DataArray([[0, 4, 9], [5, 1, 9]], dims=("a", "b"))
    again = path.read_bytes()
    written(tc.Suppression(other, TABLE < 5), folder)
    assert path.read_bytes() == again
    assert document["cells"][2] == {"label": "a=0, b=2", "lower": 9, "upper": 9}
    assert {"label": "a=0", "least": 13, "most": 13, "cells": [0, 1, 2]} in document["rows"]


def test_several_margins_are_in_one_file(folder):
    hidden = {"a": (TABLE.sum("b") == 13), "b": (TABLE.sum("a") == 5)}
    release = tc.LinkedTables(TABLE, ["a", "b", ()], suppressed=hidden)
    document, path = written(release, folder, cells=release.unpublished_cells())
    cells = [f"a={a}, b={b}" for a in range(2) for b in range(3)]
    assert [bound["label"] for bound in document["bounds"]] == [*cells, "a=0", "b=0", "b=1"]
    assert tc.attack.check_certificate(path).not_proved == ()


def test_what_attackers_know_is_in_the_file(folder):
    known = xr.Dataset({"lower": 0 * TABLE + 1, "upper": (TABLE + 1.0).where(TABLE < 9, np.inf)})
    document, path = written(SMALL, folder, knowledge=known)
    bounds = tc.attacker_bounds(SMALL, knowledge=known, progressbar=False)
    assert document["cells"][1] == {"label": "a=0, b=1", "lower": 1, "upper": 2}
    assert document["bounds"][0]["upper"]["value"] == bounds["upper"][0, 0]
    assert tc.attack.check_certificate(path).not_proved == ()


def test_a_pattern_is_written_by_its_release(folder):
    table = xr.DataArray([[3, 10, 20], [11, 12, 30], [20, 30, 9]], dims=("a", "b"))
    pattern = tc.suppress(table, table < 4, progressbar=False)
    document, path = written(pattern.release, folder)
    assert tc.attack.check_certificate(path).not_proved == ()
    assert len(document["bounds"]) == int(pattern.release.suppressed.sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knowledge": {(0, 0): 1}}, "knowledge of a certificate must be ranges"),
        ({"margin": "a", "cells": {"a": None}}, "margin must be None where cells name theirs"),
        ({"margin": "c"}, "margin must name variables"),
        ({"cells": {"c": None}}, "cells must name variables"),
    ],
)
def test_wrong_arguments_are_refused(options, message, folder):
    path = folder / "new.json"
    with pytest.raises(ParameterError, match=message):
        tc.attack.write_certificate(SMALL, path, progressbar=False, **options)
    assert not path.exists()


def test_wrong_places_and_releases_are_refused(folder):
    with pytest.raises(FileFormatError, match=r"cannot be written with the ending '\.txt'"):
        tc.attack.write_certificate(SMALL, folder / "new.txt")
    with pytest.raises(ParameterError, match="release must be a Suppression"):
        tc.attack.write_certificate(TABLE, folder / "new.json")
    with pytest.raises(FileFormatError, match="no such file"):
        tc.attack.check_certificate(folder / "no.json")


def test_labels_are_those_of_a_margin_in_any_order_and_of_levels(folder):
    """As the caller or a projection names its variables, and levels that rename."""
    names = {"half": ("a", ["lo", "hi"]), "code": ("a", ["A", "B"]), "odd": ("b", [0, 1, 0])}
    table = TABLE.assign_coords(a=[1, 2], b=list("xyz"), **names)
    release = tc.Suppression(table, table < 5, totals=["b"])
    for margin in (("b", "a"), "code", ("odd", "code"), ("half", "b"), "odd", ("a",), ()):
        _, path = written(release, folder, margin=margin)
        assert tc.attack.check_certificate(path, release=release).not_proved == ()
    hidden = {("b", "a"): (table < 5).transpose("b", "a")}
    linked = tc.LinkedTables(table, [("b", "a"), "a"], suppressed=hidden)
    _, path = written(linked, folder, cells=linked.unpublished_cells())
    assert tc.attack.check_certificate(path, release=linked).not_proved == ()


def test_a_label_of_many_variables_is_not_tried_in_all_their_orders(folder, monkeypatch):
    """Labels that hold what stands between them are told apart, too."""
    names = ["x", "y", *(f"v{at}" for at in range(6))]
    table = xr.DataArray(
        np.array([[1, 2], [3, 9]]).reshape(2, 2, *[1] * 6),
        dims=names,
        coords={"x": ["x", "x, v0=0"], "v0": ["0, v1=0"], "v1": ["0"]},
    )
    release = tc.Suppression(table, table < 5)
    document, path = written(release, folder, margin=[*names[:1:-1], "x"])
    assert tc.attack.check_certificate(path, release=release).not_proved == ()
    right = document["bounds"][0]["label"]
    assert right.endswith("v1=0, v0=0, v1=0, x=x")
    written_out = []
    monkeypatch.setattr(
        checking, "cell_label", lambda *given: written_out.append(given) or cell_label(*given)
    )
    for wrong in ("v1=0, " + right, right.replace("v0=0, v1=0", "v1=0, v0=0"), right + ", "):
        document["bounds"][0]["label"] = wrong
        path.write_text(json.dumps(document))
        with pytest.raises(FileFormatError, match="has a bound of 2 cells that is called"):
            tc.attack.check_certificate(path, release=release)
    assert len(written_out) < 3 * len(document["bounds"]) * table.ndim * 2**table.ndim


@given(st.lists(st.text(st.sampled_from("a=, "), max_size=4), min_size=1, max_size=4), st.data())
def test_parts_of_a_label_in_some_order(parts, data):
    orders = {", ".join(order) for order in permutations(parts)}
    label = data.draw(st.sampled_from(sorted(orders)) | st.text(st.sampled_from("a=, ")))
    assert checking._in_some_order(label, parts) is (label in orders)
