"""What ``taciturn rules`` reads: several quantities, missing labels, τ-ARGUS."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.publication.release_file import WRITERS

VARIABLES = ["area", "trade"]


def firms(number=36):
    generator = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "firm": generator.integers(0, 30, number),
            "area": generator.choice(["k", "l", "m", ""], number),
            "trade": generator.choice(list("uvw"), number),
            "sales": np.round(generator.lognormal(4, 1.5, number), 1),
            "staff": generator.integers(1, 40, number),
        }
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    firms().to_csv(tmp_path / "firms.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rules(*words, status=0):
    run = CliRunner().invoke(cli, ["rules", *words])
    assert run.exit_code == status, run.output + str(run.exception)
    return run.output if status != 1 else str(run.exception)


RECORDS = ["firms.csv", "--variables", "area,trade", "--contributor", "firm", "--missing", "?"]
BOTH = [*RECORDS, "--value", "sales", "--value", "staff", "--decimals", "1", "--decimals", "0"]
RULES = ["--rule", "sales=p%:15", "--rule", "staff=freq:2", "--rule", "nk:1,0.95"]
FILES = ["--output", "sales.csv", "--output", "staff.csv", "--force"]


def test_several_quantities_are_written_as_by_the_function(folder):
    more = {"contributor": "firm", "missing": "?", "random_seed": 0, "progressbar": False}
    dominance = tc.Dominance(1, 0.95)
    judged = {
        "sales": [tc.PPercent(15), dominance],
        "staff": [tc.magnitude.MinimumFrequency(2), dominance],
    }
    for same in (False, True):
        rules(*BOTH, *RULES, *FILES, *(["--same-cells"] if same else []))
        done = tc.protect_table(
            "firms.csv",
            VARIABLES,
            ["sales", "staff"],
            judged,
            decimals={"sales": 1, "staff": 0},
            same_cells=same,
            **more,
        )
        for value, table in done.items():
            tc.write_release(table, "expected.csv", overwrite=True)
            written = (folder / f"{value}.csv").read_bytes()
            assert written == (folder / "expected.csv").read_bytes()
        hidden = [
            (pd.read_csv(f"{value}.csv")["status"] == "suppressed").tolist() for value in done
        ]
        assert (hidden[0] == hidden[1]) is same


def test_of_several_outputs_all_are_written_or_none(folder, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setitem(WRITERS, ".json", fail)
    outputs = ["--output", "sales.csv", "--output", "staff.json"]
    assert "no space left" in rules(*BOTH, *RULES, *outputs, status=1)
    assert [path.name for path in folder.iterdir()] == ["firms.csv"]


def test_what_is_printed_of_several_quantities():
    text = rules(*BOTH, *RULES)
    assert [line for line in text.splitlines() if line in ("sales", "staff")] == ["sales", "staff"]
    found = json.loads(rules(*BOTH, *RULES, "--format", "json"))
    assert set(found) == {"not_for_release", "quantities"}
    assert list(found["quantities"]) == ["sales", "staff"]
    alone = [*RECORDS, "--value", "staff", "--rule", "freq:2", "--rule", "nk:1,0.95"]
    of_one = json.loads(rules(*alone, "--format", "json"))
    assert found["quantities"]["staff"] == of_one
    rows = rules(*BOTH, *RULES, "--format", "csv").splitlines()
    assert rows[0] == "value,area,trade,reason_not_for_release"
    assert {row.partition(",")[0] for row in rows[1:]} == {"sales", "staff"}


def test_missing_labels_are_refused_left_out_or_safe():
    words = ["firms.csv", "--variables", "area,trade", "--value", "staff", "--rule", "freq:9"]
    assert "a label is missing: 'area'" in rules(*words, status=1)
    dropped = rules(*words, "--missing", "drop", "--top", "99")
    lost = int((firms()["area"] == "").sum())
    assert f"taciturn: {lost} records that lack a label are left out" in dropped
    assert "area=?" not in dropped
    assert "area=?, trade=u" in rules(*words, "--missing", "?", "--top", "99")
    safe = rules(*words, "--missing", "?", "--safe", "area=?", "--top", "99")
    assert "area=?" not in safe
    # Without a record that lacks the label, too.
    rules(*words, "--missing", "?", "--safe", "area=?", "--safe", "trade=?")


def cells():
    """A row for each cell and total, and how many waived among them."""
    frame = firms().assign(area=firms()["area"].replace("", "n"), agreed=firms()["firm"] % 2)
    tables = tc.magnitude.tabulate_margins(
        frame, VARIABLES, "staff", contributor="firm", waiver="agreed"
    )
    rows = []
    for names, table in tables.items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = [str(cell[name].item()) if name in names else "Total" for name in VARIABLES]
            counts = [int(cell[name]) for name in ("total", "contributors", "waivers", "unwaived")]
            rows.append([*labels, *counts, *cell["largest"].values[:2].astype(int).tolist()])
    frame.to_csv("agreed.csv", index=False)
    numbers = ["staff", "n", "waived", "open", "first", "second"]
    return pd.DataFrame(rows, columns=[*VARIABLES, *numbers])


def test_waivers_of_records_and_of_cells():
    cells().to_csv("cells.csv", index=False)
    words = ["--variables", "area,trade", "--value", "staff", "--rule", "p%:15"]
    records = ["agreed.csv", *words, "--contributor", "firm"]
    aggregated = ["cells.csv", *words, "--aggregated", "n,first,second"]
    with_waivers = rules(*records, "--waiver", "agreed", "--top", "99")
    assert rules(*aggregated, "--waiver", "waived,open", "--top", "99") == with_waivers
    assert with_waivers != rules(*records, "--top", "99")


def test_a_table_of_argus(folder):
    frame = cells().drop(columns=["waived", "open"]).assign(status="")
    frame.loc[0, "status"] = "U"
    frame.to_csv("cells.tab", sep=";", header=False, index=False)
    roles = ["<NUMERIC>", "<FREQUENCY>", "<MAXSCORE>", "<MAXSCORE>", "<STATUS>"]
    said = dict(zip(frame, ["<RECODEABLE>"] * 2 + roles, strict=True))
    text = "".join(f"{name}\n  {role}\n" for name, role in said.items())
    (folder / "cells.rda").write_text(text)
    frame.to_csv("cells.csv", index=False)
    rows = pd.DataFrame([{**frame.loc[0, VARIABLES], "status": "sensitive"}])
    rows.to_csv("rows.csv", index=False)
    words = ["--rule", "p%:15", "--safety-range", "20"]
    argus = ["cells.tab", "--metadata", "cells.rda", *words, "--output", "out.csv"]
    named = ["--variables", "area,trade", "--value", "staff", "--aggregated", "n,first,second"]
    same = ["cells.csv", *words, *named, "--apriori", "rows.csv", "--output", "same.csv"]
    assert rules(*argus) == rules(*same)
    assert (folder / "out.csv").read_bytes() == (folder / "same.csv").read_bytes()
    assert "suppressed" in (folder / "out.csv").read_text()
    shown = rules(*argus[:3], *words[:2])
    assert (
        "what cells.tab says of single cells counts for what is suppressed, with --output" in shown
    )


def test_costs_that_are_said_again_take_the_place_of_those_of_a_table(folder):
    frame = cells().drop(columns=["waived", "open"]).assign(cost=40)
    frame.to_csv("cells.tab", sep=";", header=False, index=False)
    roles = ["<NUMERIC>", "<FREQUENCY>", "<MAXSCORE>", "<MAXSCORE>", "<NUMERIC> <COSTVAR>"]
    said = dict(zip(frame, ["<RECODEABLE>"] * 2 + roles, strict=True))
    text = "".join(f"{name}\n  {role}\n" for name, role in said.items())
    (folder / "cells.rda").write_text(text)
    area, trade = frame.loc[0, VARIABLES]
    (folder / "own.hst").write_text(f"{area},{trade},c,1\n")
    argus = ["cells.tab", "--metadata", "cells.rda", "--rule", "p%:15", "--output", "out.csv"]
    rules(*argus, "--apriori", "own.hst")
    (folder / "own.hst").write_text(f"{area},{trade},c,1\n{area},{trade},c,2\n")
    assert "is to cost 2, and was to cost 1" in rules(
        *argus, "--apriori", "own.hst", "--force", status=1
    )


def test_rules_about_more_of_the_largest_than_are_usual():
    words = ["firms.csv", "--variables", "trade", "--contributor", "firm", "--value", "staff"]
    shown = json.loads(rules(*words, "--rule", "nk:7,0.8", "--format", "json"))
    table = tc.tabulate_magnitude("firms.csv", "trade", "staff", contributor="firm", largest=7)
    expected = tc.sensitive_cells(table, tc.Dominance(7, 0.8))["sensitive"]
    (one,) = [own for own in shown["margins"] if own["variables"] == ["trade"]]
    assert one["sensitive"] == int(expected.sum()) > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["firms.csv", "--value", "staff"], "Missing option '--variables'"),
        (["firms.csv", "--variables", "area"], "Missing option '--value'"),
        ([*BOTH, "--output", "one.csv"], "--output is given once for each --value: there are 1"),
        ([*BOTH, "--output", "-", "--output", "-"], "'-', standard output, can take one table"),
        ([*BOTH, "--decimals", "1"], "--decimals is given once, or once for each --value"),
        ([*BOTH, "--apriori", "firms.csv"], "--apriori needs --output: it is about what is"),
        ([*BOTH, "--safety-range", "5"], "--safety-range needs --output"),
        ([*BOTH, "--same-cells"], "--same-cells needs --output, and several of --value"),
        ([*BOTH, "--value", "staff"], "--value must name each quantity once"),
        ([*RECORDS, "--value", "staff", "--waiver", "a,b"], "--waiver names one column of records"),
        (
            ["firms.csv", *BOTH[1:3], *BOTH[7:11], "--aggregated", "n,first"],
            "--aggregated names the largest contributions of one --value",
        ),
        (
            ["cells.tab", "--metadata", "cells.rda", "--waiver", "a,b"],
            "--metadata says what the columns are: --waiver does not apply",
        ),
        (["-", "--metadata", "firms.csv"], "--metadata is of a table in a file, not of '-'"),
        (
            ["cells.tab", "--metadata", "cells.rda", "--value", "a", "--value", "b"],
            "--metadata is of one --value",
        ),
    ],
)
def test_wrong_usage(words, message, folder):
    (folder / "cells.rda").touch()
    text = rules(*words, "--rule", "freq:3", status=2)
    assert message in " ".join(text.split())


def test_a_quantity_without_a_rule():
    assert "--rule gives no rule for 'staff'" in rules(*BOTH, "--rule", "sales=freq:3", status=1)


@pytest.mark.parametrize(
    "label", ["total", "TOTAL", "All", '"Total "', '" Total"', "Germany", '"Germany, total"']
)
def test_a_total_by_another_word_than_that_of_totals_discloses_nothing(label, folder):
    lines = ["area,x,n,l", "A,500,9,90", "B,30,2,20", "C,80,7,20", f"{label},610,18,90"]
    (folder / "c.csv").write_text("\n".join(lines) + "\n")
    words = ["c.csv", "--variables", "area", "--value", "x", "--aggregated", "n,l"]
    words += ["--rule", "freq:3", "--output", "out.csv"]
    run = CliRunner().invoke(cli, ["rules", *words])
    assert run.exit_code == 1
    assert "with --total, or" in run.exception.at_shell
    assert not (folder / "out.csv").exists()
    rules(*words, "--total", label.strip('"'))
    written = pd.read_csv("out.csv")
    hidden = written.loc[written["status"] == "suppressed", "area"].tolist()
    assert len(hidden) == 2
    assert "B" in hidden


@pytest.mark.parametrize("label", ["All", "Europe"])
def test_a_total_by_another_word_in_one_of_two_variables(label, folder):
    (folder / "c.csv").write_text(
        "area,sex,x,n,l\nN,f,60,9,50\nN,w,30,2,20\nN,All,90,11,50\nS,f,60,9,50\nS,w,35,5,20\n"
        "S,All,95,14,50\nTotal,f,120,18,50\nTotal,w,65,7,20\nTotal,All,185,25,50\n".replace(
            "All", label
        )
    )
    words = ["c.csv", "--variables", "area,sex", "--value", "x", "--aggregated", "n,l"]
    message = rules(*words, "--rule", "freq:3", "--output", "-", status=1)
    assert f"'sex' in row 3 of c.csv is '{label}', which" in message


def test_totals_of_many_steps_are_not_held_against_themselves(folder):
    (folder / "c.csv").write_text("a,x\nB,597164530.6839\nB,823927744.5460\n")
    words = ["c.csv", "--variables", "a", "--value", "x", "--decimals", "4", "--rule", "freq:2"]
    rules(*words, "--output", "out.csv")
    lines = (folder / "out.csv").read_text().splitlines()
    assert lines[1:] == ["B,1421092275.2299,published", "Total,1421092275.2299,published"]


def test_a_group_without_rows_of_its_categories_is_empty(folder):
    (folder / "h.csv").write_text("area,region\nA,G\nB,G\nC,H\n")
    (folder / "c.csv").write_text("area,x,n\nA,5,3\nB,3,3\nG,8,6\nH,0,0\nTotal,8,6\n")
    words = ["c.csv", "--variables", "area", "--value", "x", "--aggregated", "n"]
    words += ["--hierarchy", "h.csv", "--rule", "freq:3", "--output", "out.csv"]
    rules(*words)
    assert "C,0,published" in (folder / "out.csv").read_text()
