"""Tables that are aggregated already: the same as from the records that they sum."""

from contextlib import suppress
from decimal import Decimal
from itertools import combinations_with_replacement, permutations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import read_margins, tabulate_margins
from taciturn.magnitude.contradictions import refuse_other_margins

HRC = "A\n@A1\n@@A11\n@@A12\n@A2\nB\nC\n@C1\n@C2\n"
LEAVES = ["A11", "A12", "A2", "B", "C1", "C2"]
RULES = [tc.PPercent(20), tc.magnitude.MinimumFrequency(3)]
ROLES = {"contributors": "firms", "largest": ["first", "second"], "decimals": 1}


@pytest.fixture
def hrc(tmp_path):
    path = tmp_path / "trade.hrc"
    path.write_text(HRC)
    return path


def records(seed, number=90):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "trade": generator.choice(LEAVES, number),
            "area": generator.choice(["x", "y", "z"], number),
            "sales": np.round(generator.lognormal(3, 1.2, number), 1),
        }
    )


def aggregated(tables, label="Total"):
    """A row for each cell, once."""
    rows = []
    for names, table in tables.items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = {name.partition("_")[0]: str(cell[name].item()) for name in names}
            first, second = cell["largest"].values[:2]
            rows.append(
                {
                    "area": labels.get("area", label),
                    "trade": labels.get("trade", label),
                    "sales": cell["total"].item(),
                    "firms": cell["contributors"].item(),
                    "first": first,
                    "second": second if second else None,
                }
            )
    return pd.DataFrame(rows).drop_duplicates(["area", "trade"], ignore_index=True)


def test_cells_and_totals_of_all_levels_come_back(hrc, tmp_path):
    given = {"hierarchies": {"trade": hrc}}
    tables = tabulate_margins(
        records(0), ["area", "trade"], "sales", decimals=1, largest=2, **given
    )
    cells = aggregated(tables)
    path = tmp_path / "cells.csv"
    cells.sample(frac=1, random_state=1).to_csv(path, index=False)
    for source in (cells, path):
        found = read_margins(source, ["area", "trade"], "sales", **ROLES, **given)
        assert set(found) == set(tables)
        for names, table in found.items():
            expected = tables[names].sel({name: table[name].values for name in names})
            for each in ("total", "absolute_total", "contributors", "largest", "share"):
                xr.testing.assert_allclose(
                    table[each].reset_coords(drop=True), expected[each].reset_coords(drop=True)
                )


@pytest.mark.parametrize("seed", [0, 1])
def test_protected_as_from_the_records(hrc, seed):
    given = {"hierarchies": {"trade": hrc}}
    search = {"random_seed": 0, "progressbar": False}
    tables = tabulate_margins(records(seed), ["area", "trade"], "sales", decimals=1, **given)
    expected = tc.protect_table(
        records(seed), ["area", "trade"], "sales", RULES, decimals=1, **given, **search
    )
    cells = aggregated(tables)
    found = read_margins(cells, ["area", "trade"], "sales", **ROLES, **given)
    done = tc.suppression.protect_margins(found, RULES, **search)
    assert done.pattern.n_primary == expected.pattern.n_primary > 0
    assert done.pattern.cost == pytest.approx(expected.pattern.cost)
    for names, table in done.sensitive.items():
        same = expected.sensitive[names]["sensitive"]
        same = same.sel({name: table[name].values for name in names})
        assert np.array_equal(table["sensitive"].values, same.values)


CELLS = pd.DataFrame(
    [
        ("n", "f", 60, 3, 40, 15),
        ("n", "w", 30, 2, 20, 10),
        ("s", "f", 25, 4, 10, 9),
        ("n", "all", 90, 5, 40, 20),
        ("s", "all", 25, 4, 10, 9),
        ("all", "all", 115, 9, 40, 20),
    ],
    columns=["area", "trade", "sales", "firms", "first", "second"],
)


def read(cells, **options):
    roles = {**ROLES, "decimals": 0, "total": "all", **options}
    return read_margins(cells, ["area", "trade"], "sales", **roles)


def test_a_cell_without_a_row_is_empty_and_a_margin_without_rows_is_not_released():
    found = read(CELLS)
    assert list(found) == [("area", "trade"), ("area",), ()]
    table = found["area", "trade"]
    assert table["total"].values.tolist() == [[60, 30], [25, 0]]
    assert table["contributors"].values.tolist() == [[3, 2], [4, 0]]
    assert found[()].attrs == {"value": "sales", "decimals": 0}


def test_totals_of_branches_that_end_early_alone_are_totals():
    """Each label of this margin stands on two levels: all its rows were left out."""
    rows = [("B", "x", 5), ("B", "y", 6), ("C", "x", 7), ("C", "y", 80), ("B", "Total", 11)]
    rows += [("C", "Total", 87), ("Total", "x", 12), ("Total", "y", 86), ("Total", "Total", 98)]
    frame = pd.DataFrame(rows, columns=["area", "trade", "v"]).assign(n=1)
    frame["n"] = [1, 1, 1, 1, 2, 2, 2, 2, 4]
    above = pd.DataFrame({"area": ["A1", "A2", "B", "C"], "region": ["A", "A", "B", "C"]})
    given = {"contributors": "n", "hierarchies": {"area": above}}
    found = read_margins(frame, ["area", "trade"], "v", **given)
    assert list(found) == [("area", "trade"), ("area",), ("trade",), ()]
    frame.loc[4, "v"] = 999
    with pytest.raises(TableError, match="the total of area=B must be the sum of its parts, 11"):
        read_margins(frame, ["area", "trade"], "v", **given)


@pytest.mark.parametrize("order", [1, -1])
def test_of_margins_that_a_row_may_be_of_one_with_all_its_cells_is_there(order):
    """Of 3 margins each row of totals is in several; in the finest others would be
    empty that are not.
    """
    cells = [("A1", "S1", "W", 5), ("A2", "S2", "W", 6), ("B", "S1", "U1", 7)]
    cells += [("B", "S2", "U2", 80), ("A1", "Y", "U1", 9), ("A2", "Y", "U2", 3)]
    totals = [("A", "S", "W", 11), ("B", "S", "U", 87), ("A", "Y", "U", 12)][::order]
    frame = pd.DataFrame([*cells, *totals], columns=["a", "t", "u", "v"])
    frame["n"] = [1] * 6 + [2] * 3
    groups = {"a": ["A1", "A2", "B"], "t": ["S1", "S2", "Y"], "u": ["U1", "U2", "W"]}
    levels = {
        name: pd.DataFrame({name: own, f"{name}_1": [own[0][0], own[1][0], own[2]]})
        for name, own in groups.items()
    }
    found = read_margins(frame, list("atu"), "v", contributors="n", hierarchies=levels)
    assert list(found) == [("a", "t", "u"), ("a_1", "t_1", "u_1")]
    assert found["a_1", "t_1", "u_1"]["total"].values.sum() == 110


@pytest.mark.parametrize("seed", range(30))
def test_each_row_is_a_cell_of_a_margin_whichever_empty_ones_have_none(hrc, seed):
    generator = np.random.default_rng(seed)
    some = generator.choice(LEAVES, generator.integers(1, 4), replace=False)
    kept = records(seed, 12)
    kept = kept[kept["trade"].isin(some)]
    if kept.empty:
        return
    levels = {"trade": hrc}
    tables = tabulate_margins(
        kept, ["area", "trade"], "sales", hierarchies=levels, decimals=1, largest=2
    )
    rows = aggregated(tables)
    given = rows[(rows["firms"] > 0) | (generator.random(len(rows)) < 0.5)]
    found = read_margins(given, ["area", "trade"], "sales", hierarchies=levels, **ROLES)
    back = aggregated(found).set_index(["area", "trade"])["sales"]
    for area, trade, sales in given[["area", "trade", "sales"]].itertuples(index=False):
        assert back[area, trade] == pytest.approx(sales)


@pytest.mark.parametrize(
    ("row", "column", "given", "message"),
    [
        (3, "sales", 91, "the total of area=n must be the sum of its parts, 90: it is 91"),
        (5, "sales", 116, "the total of the whole table must be the sum of its parts, 115"),
        (0, "sales", -1, "'sales' must be numbers from 0 with at most 0 decimals: row 1"),
        (0, "sales", 60.5, "'sales' must be numbers from 0 with at most 0 decimals: row 1"),
        (0, "sales", None, "'sales' must be numbers from 0 with at most 0 decimals: row 1"),
        (0, "first", 10, "row 1 of .* has largest contributions that do not descend"),
        (0, "second", 35, "row 1 of .* has largest contributions that add up to more than"),
        (1, "second", 5, "row 2 of .* has largest contributions of all who contribute that are"),
        (2, "firms", 0, "row 3 of .* has a total of 'sales' and nobody who contributes"),
        (2, "firms", 1, "row 3 of .* has more largest contributions than contribute"),
        (2, "trade", "w", "the total of"),
        (2, "area", "n", "a cell can be given once: row 3 of .*, area=n, trade=f"),
        (2, "trade", " ", "a label is missing: 'trade' in row 3"),
        (4, "firms", 3, "to area=s must contribute from 4 to 4, as to its parts: it has 3"),
        (3, "firms", 7, "to area=n must contribute from 3 to 6, as to its parts: it has 7"),
        (3, "first", 30, "'first' of area=n must be at least that of its parts, 40: it is 30"),
        (4, "first", 11, "contributions to area=s up to 'first' must .*, 10: they are 11"),
    ],
)
def test_tables_that_contradict_themselves(row, column, given, message):
    cells = CELLS.astype(object)
    cells.loc[row, column] = given
    if message == "the total of":  # s, w instead of s, f: all totals still hold
        assert read(cells)["area", "trade"]["total"].values.tolist() == [[60, 30], [0, 25]]
        return
    with pytest.raises(TableError, match=message):
        read(cells)


def test_totals_are_held_against_totals_of_parts():
    rows = [
        *(("n", "f", 60, 3, 50, 5), ("n", "m", 40, 2, 30, 10)),
        *(("s", "f", 20, 4, 15, 3), ("s", "m", 10, 1, 10, 0)),
        *(("n", "all", 100, 5, 80, 10), ("s", "all", 30, 5, 15, 10)),
        *(("all", "f", 80, 7, 50, 15), ("all", "m", 50, 3, 30, 10)),
    ]
    for last, message in (
        (("all", "all", 130, 6, 80, 15), "to the whole table must contribute from 7 to"),
        (("all", "all", 130, 7, 50, 50), "'first' of the whole table must be at least .* 80: it"),
        (("all", "all", 130, 7, 80, 10), "'second' of the whole table must be at least .* 15: it"),
        (("all", "all", 130, 7, 80, 15), None),
    ):
        cells = pd.DataFrame([*rows, last], columns=CELLS.columns)
        if message is None:
            assert read(cells)[()]["largest"].values.tolist() == [80, 15]
            continue
        with pytest.raises(TableError, match=message):
            read(cells)


LARGEST = ["first", "second"]


@pytest.mark.parametrize(
    ("rows", "kept", "message"),
    [
        (
            [("A", 100, 5, 20), ("B", 10, 5, 2), ("Total", 110, 10, 90)],
            1,
            "the largest contributions to the whole table up to 'first' must be together at most"
            " those to its parts, 22: they are 90",
        ),
        # Nobody contributes to B.
        ([("A", 6, 2, 3), ("B", 0, 0, 0), ("Total", 6, 2, 4)], 1, "up to 'first' .* 3: they are 4"),
        (
            [("A", 30, 5, 10, 6), ("B", 25, 4, 9, 8), ("Total", 55, 6, 17, 17)],
            2,
            "up to 'second' .* 33: they are 34",
        ),
        ([("A", 30, 5, 10, 6), ("B", 25, 4, 9, 8), ("Total", 55, 6, 19, 14)], 2, None),
    ],
)
def test_who_is_large_in_a_total_is_so_in_its_parts(rows, kept, message):
    columns = LARGEST[:kept]
    cells = pd.DataFrame(rows, columns=["area", "sales", "firms", *columns])
    if message is None:
        read_margins(cells, "area", "sales", contributors="firms", largest=columns)
        return
    with pytest.raises(TableError, match=message):
        read_margins(cells, "area", "sales", contributors="firms", largest=columns)


@pytest.mark.parametrize("kept", [1, 2])
def test_largest_contributions_are_accepted_up_to_what_they_can_be(kept):
    """All contributions of 0 to 3 of the same three to two parts, whoever of the one is
    who of the other.
    """
    for parts in combinations_with_replacement(combinations_with_replacement((3, 2, 1, 0), 3), 2):
        if 0 in map(sum, parts):
            continue
        sums = [
            sorted(map(sum, zip(parts[0], other, strict=True)), reverse=True)
            for other in permutations(parts[1])
        ]
        possible = {tuple(each[:kept]) for each in sums}
        accepted = set()
        for sizes in combinations_with_replacement(range(6, -1, -1), kept):
            named = zip("AB", parts, strict=True)
            rows = [(label, sum(part), 3, *part[:kept]) for label, part in named]
            rows.append(("Total", sum(map(sum, parts)), 3, *sizes))
            cells = pd.DataFrame(rows, columns=["area", "sales", "firms", *LARGEST[:kept]])
            with suppress(TableError):
                read_margins(cells, "area", "sales", contributors="firms", largest=LARGEST[:kept])
                accepted.add(sizes)
        assert accepted >= possible
        assert max(map(sum, accepted)) == max(map(sum, possible))
        assert max(accepted)[0] == max(possible)[0]


def test_numbers_of_contributors_may_be_rounded():
    """Where there are waivers, there are no weights."""
    weighted = [("A", 10, 1, 8), ("B", 9, 1, 7), ("Total", 19, 3, 8)]  # 1.4 + 1.4 = 2.8
    cells = pd.DataFrame(weighted, columns=["area", "sales", "firms", "first"])
    found = read_margins(cells.drop(columns="first"), "area", "sales", contributors="firms")
    assert found[()]["contributors"].item() == 3
    cells[["waived", "other"]] = [(0, 8), (0, 7), (0, 8)]
    with pytest.raises(
        TableError, match=r"to the whole table must contribute from 1 to 2, .* has 3"
    ):
        read_margins(
            cells, "area", "sales", contributors="firms", waiver=("waived", "other"), decimals=1
        )


def test_a_column_has_one_role():
    for roles in ({"contributors": "sales"}, {"contributors": "area"}, {"largest": ["first"] * 2}):
        with pytest.raises(ParameterError, match=r"the column '.*' is given in two roles"):
            read(CELLS, **roles)


def test_names_of_what_is_found_name_no_variable():
    for name in ("total", "rank", "sensitive"):
        cells = CELLS.rename(columns={"area": name})
        with pytest.raises(TableError, match=rf"table: \['{name}'\] cannot name a variable"):
            read_margins(cells, [name, "trade"], "sales", contributors="firms")


def test_rules_that_need_more_than_there_is():
    found = read(CELLS)
    with pytest.raises(TableError, match="needs the 3 largest contributions, the table holds 2"):
        tc.sensitive_cells(found["area", "trade"], tc.Dominance(3, 0.75))
    with pytest.raises(TableError, match="needs the entropy of all contributions"):
        tc.sensitive_cells(found["area", "trade"], tc.magnitude.EntropyRule(0.5))
    bare = read(CELLS, largest=[])
    held = tc.sensitive_cells(bare["area", "trade"], tc.magnitude.MinimumFrequency(3))
    assert held["sensitive"].values.tolist() == [[False, True], [False, False]]


def test_the_command_takes_cells_as_it_takes_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(a, b, 10 * x + y) for x, a in enumerate("klm") for y, b in enumerate("uvw")]
    firms = pd.DataFrame([row for row in rows for _ in range(4)], columns=["area", "trade", "x"])
    firms.loc[5, "x"] = 500
    firms.to_csv("firms.csv", index=False)
    cells = []
    for names, table in tc.magnitude.tabulate_margins(firms, ["area", "trade"], "x").items():
        for place in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, place, strict=True)))
            labels = {name: str(cell[name].item()) for name in names}
            first, second = cell["largest"].values[:2]
            cells.append(
                {name: labels.get(name, "all") for name in ("area", "trade")}
                | {"x": int(cell["total"]), "n": int(cell["contributors"])}
                | {"first": int(first), "second": int(second)}
            )
    pd.DataFrame(cells).to_csv("cells.csv", index=False)
    rule = ["--variables", "area,trade", "--value", "x", "--rule", "p%:10", "--total", "all"]
    columns = ["--aggregated", "n,first,second"]
    run = CliRunner().invoke
    for more in ([], ["--output", "out.csv", "--force"]):
        shown = [
            run(cli, ["rules", *words, *rule, *more])
            for words in (["firms.csv"], ["cells.csv", *columns])
        ]
        assert [result.exit_code for result in shown] == [0, 0], shown[1].output
        assert shown[0].output == shown[1].output
    assert "1 sensitive" in shown[0].output
    assert "suppressed" in (tmp_path / "out.csv").read_text()
    refused = run(cli, ["rules", "cells.csv", *columns, *rule, "--holding", "area"])
    assert refused.exit_code == 2
    assert "--aggregated has no records to which --holding could apply" in refused.output
    off = pd.DataFrame(cells).assign(x=lambda frame: frame["x"] + (frame.index == 0))
    off.to_csv("off.csv", index=False)
    wrong = run(cli, ["rules", "off.csv", *columns, *rule])
    assert wrong.exit_code == 1


@pytest.mark.parametrize("labels", [["Total", "Total"], []])
def test_totals_alone_are_no_table(labels):
    cells = pd.DataFrame({"area": labels, "sort": ["x", "y"][: len(labels)], "sales": 1, "n": 1})
    with pytest.raises(TableError, match="'area' has no label of a cell, but totals only"):
        read_margins(cells, ["area", "sort"], "sales", contributors="n")


@pytest.mark.parametrize("first", [None, 0, 10])
def test_a_largest_contribution_smaller_than_those_that_must_follow_is_refused(first):
    """Three hold 60 together, so the largest 20 or more; nothing is taken for 0."""
    cells = pd.DataFrame(
        [("A", 60, 3, first), ("B", 40, 9, 8), ("Total", 100, 12, 30)],
        columns=["area", "sales", "firms", "first"],
    )
    with pytest.raises(TableError, match=r"row 1 of .* has no contribution in 'first' as large"):
        tc.magnitude.read_margins(cells, "area", "sales", contributors="firms", largest=["first"])


GROUPS = pd.DataFrame({"area": ["A", "B", "C", "D", "E"], "region": [*"GGHHI"], "land": [*"KKLLL"]})
OF_GROUPS = [("A", 5, 3), ("B", 3, 3), ("G", 8, 6), ("K", 8, 6), ("Total", 8, 6)]


@pytest.mark.parametrize(
    ("group", "empty"), [("H", ["C", "D"]), ("I", ["E"]), ("L", ["C", "D", "E"])]
)
def test_categories_of_a_group_without_their_rows_are_empty(group, empty):
    levels = {"area": GROUPS}
    frame = pd.DataFrame([*OF_GROUPS, (group, 0, 0)], columns=["area", "x", "n"])
    found = read_margins(frame, "area", "x", contributors="n", hierarchies=levels)
    # As if they had a row each.
    rows = pd.DataFrame([(each, 0, 0) for each in empty], columns=frame.columns)
    same = pd.concat([frame, rows])
    expected = read_margins(same, "area", "x", contributors="n", hierarchies=levels)
    assert list(found) == list(expected)
    for names, table in found.items():
        xr.testing.assert_identical(table, expected[names])
    assert found["area",]["area"].values.tolist() == ["A", "B", *empty]
    for x, n in ((5, 3), (0, 3)):
        frame.iloc[-1, 1:] = x, n
        with pytest.raises(TableError, match=rf"={group} must|to .*={group} must contribute"):
            read_margins(frame, "area", "x", contributors="n", hierarchies=levels)


@pytest.mark.parametrize("signed", [False, True])
def test_large_totals_are_the_sums_of_their_cells_to_the_step(signed):
    """Of records with up to nine decimals, and a table of up to 1e15 steps."""
    generator = np.random.default_rng(2)
    for decimals in range(10):
        for most in (10**6, 10**13, 4 * 10**14):
            steps = generator.integers(1, most, 4) * ([1, -1, 1, 1] if signed else 1) // 2
            values = [f"{Decimal(int(each)).scaleb(-decimals):f}" for each in steps]
            frame = pd.DataFrame({"area": [*"AABB"], "size": [*"xyxy"], "x": values})
            given = tabulate_margins(frame, ["area", "size"], "x", decimals=decimals)
            refuse_other_margins(given)
            for off in (1, -1):
                wrong = given | {(): given[()].copy()}
                total = Decimal(int(steps.sum()) + off).scaleb(-decimals)
                wrong[()]["total"] = ((), float(total))
                if total > wrong[()]["absolute_total"]:
                    wrong[()]["absolute_total"] = wrong[()]["total"]
                with pytest.raises(TableError, match="the total of the whole table in the table"):
                    refuse_other_margins(wrong)


def test_a_total_between_two_steps_is_none():
    given = tabulate_margins(pd.DataFrame({"area": [*"AB"], "x": [3, 4]}), "area", "x")
    wrong = given | {(): given[()].assign(total=7.25)}
    with pytest.raises(
        TableError, match=r"must be the sum of the cells of \('area',\), 7: it is 7.25"
    ):
        refuse_other_margins(wrong)


@pytest.mark.parametrize("up", [False, True])
def test_largest_contributions_go_with_numbers_of_weights_that_were_rounded_up(up):
    """As the documentation says what must hold: rounded down they may not."""
    generator = np.random.default_rng(7)
    accepted = 0
    for _ in range(40):
        number = 12
        frame = pd.DataFrame(
            {
                "area": generator.choice([*"ABCD"], number),
                "x": generator.integers(1, 90, number),
                "weight": generator.integers(10, 25, number) / 10,
            }
        )
        tables = tabulate_margins(frame, "area", "x", sampling_weights="weight", largest=2)
        rows = []
        for names, table in tables.items():
            for label in table["area"].values if names else ["Total"]:
                cell = table.sel(area=label) if names else table
                weights = cell["contributors"].item()
                count = int(np.ceil(weights) if up else np.floor(weights))
                rows.append((label, cell["total"].item(), count, *cell["largest"].values))
        cells = pd.DataFrame(rows, columns=["area", "x", "n", "first", "second"])
        roles = {"contributors": "n", "largest": ["first", "second"]}
        with suppress(TableError):
            read_margins(cells, "area", "x", **roles, decimals=tables[()].attrs["decimals"])
            accepted += 1
    assert (accepted == 40) is up
