"""Tables as τ-ARGUS reads them, written here by hand: the same as from the records."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError, TableError
from taciturn.magnitude import read_argus, tabulate_margins
from taciturn.magnitude.sensitivity import sensitive_margins

HRC = "A\n@A1\n@@A11\n@@A12\n@A2\nB\n"
NESTED = ["101", "102", "12", "201", "202"]
METADATA = """\
   <SEPARATOR> "{sep}"
   <SAFE> s
// what follows is of the columns
region "99"
    <RECODEABLE>
    <TOTCODE> "All regions"
    <CODELIST> "REGION.CDL"
    <HIERARCHICAL>
    <HIERCODELIST> "C:\\office\\area.hrc"
    <HIERLEADSTRING> "@"
trade "X" "99"
    <Recodable>
    <TOTCODE> T
    <HIERARCHICAL>
    <HIERLEVELS> 2 1 0 0
sales
    <NUMERIC>
    <DECIMALS> 1
firms
    <FREQUENCY>
price
    <NUMERIC> <COSTVAR>
first
    <MAXSCORE>
second
    <MAXSCORE>
told
    <STATUS>
down
    <NUMERIC> <LOWERPL>
up
    <NUMERIC> <UPPERPL>
"""
TOTALS = {"region": "All regions", "trade": "T"}


def records(seed=0, number=120):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": generator.choice(["A11", "A12", "A2", "B"], number),
            "trade": generator.choice(NESTED, number),
            "sales": np.round(generator.lognormal(3, 1.2, number), 1),
        }
    )


@cache
def margins():
    trade = tc.tables.nested_codes(NESTED, (2, 1), "trade")
    region = [("A11", "A", "A1"), ("A12", "A", "A1"), ("A2", "A", "A2"), ("B", "B", "B")]
    levels = pd.DataFrame(region, columns=["region", "region_1", "region_2"])
    return tabulate_margins(
        records(),
        ["region", "trade"],
        "sales",
        decimals=1,
        largest=2,
        hierarchies={"region": levels, "trade": trade},
    )


@cache
def lines():
    """A row of fields for each cell, once; the cell of the largest total is said to be
    unsafe, B of 12 to be published at any cost, another to be cheap, and one empty.
    """
    found = {}
    for names, table in margins().items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = TOTALS | {name.partition("_")[0]: str(cell[name].item()) for name in names}
            first, second = cell["largest"].values[:2]
            numbers = [f"{x:.1f}".replace(".", ",") for x in (cell["total"], first, second)]
            count = cell["contributors"].item()
            told = {("B", "12"): "p", ("A11", "101"): "U"}.get(tuple(labels.values()), "s")
            price = "0" if labels == {"region": "A2", "trade": "12"} else ""
            levels = ["3,5", "4,5"] if told == "U" else ["0", "0"]
            if not count:
                numbers[0], count, told = "-", "", "E"
            row = [numbers[0], str(count), price, *numbers[1:], told, *levels]
            found[tuple(labels.values())] = [*labels.values(), *row]
    return list(found.values())


def write(folder, rows, metadata=METADATA, *, sep=";", encoding="utf-8"):
    (folder / "area.hrc").write_text(HRC)
    (folder / "cells.rda").write_text(metadata.replace("{sep}", sep), encoding=encoding)
    text = "\r\n".join(
        sep.join(f'"{row[0]}"' if i == 0 else x for i, x in enumerate(row)) for row in rows
    )
    (folder / "cells.tab").write_text(text + "\n\n", encoding=encoding)
    return folder / "cells.tab"


@pytest.fixture
def table(tmp_path):
    return write(tmp_path, lines())


def test_the_tables_are_those_of_the_records(table):
    tables, _ = read_argus(table)
    assert set(tables) == set(margins())
    assert ("region_2", "trade_1") in tables
    for names, found in tables.items():
        same = margins()[names].sel({name: found[name].values for name in names})
        for each in ("total", "absolute_total", "contributors", "largest", "share"):
            xr.testing.assert_allclose(
                found[each].reset_coords(drop=True), same[each].reset_coords(drop=True)
            )
        assert found.attrs == {"value": "sales", "decimals": 1}


def test_what_is_said_of_cells_are_instructions(table):
    _, told = read_argus(table)
    assert list(told) == ["region", "trade", "status", "cost", "lower", "upper"]
    assert set(told["status"]) == {"safe", "sensitive", "published"}
    of = {(row["region"], row["trade"]): row for row in told.to_dict("records")}
    assert of["B", "12"]["status"] == "published"
    assert (of["A11", "101"]["lower"], of["A11", "101"]["upper"]) == (3.5, 4.5)
    assert of["A2", "12"]["cost"] == 0.0001
    assert None in set(told["region"])


def test_protected_by_the_status_of_the_file(table):
    tables, told = read_argus(table)
    done = tc.suppression.protect_margins(
        tables, tc.PPercent(20), apriori=told, random_seed=0, progressbar=False
    )
    primary = done.pattern.status["region", "trade"] == "primary"
    assert primary.sel(region="A11", trade="101")
    assert done.pattern.n_primary == 1
    cell = done.pattern.audit["region", "trade"].sel(region="A11", trade="101")
    total = tables["region", "trade"]["total"].sel(region="A11", trade="101")
    assert cell["lower"] <= total - 3.5
    assert cell["upper"] >= total + 4.5
    published = done.tables["region", "trade"].sel(region="B", trade="12")
    assert published["status"] == "published"
    by_rule = tc.suppression.protect_margins(
        tables, tc.PPercent(20), random_seed=0, progressbar=False
    )
    assert by_rule.pattern.n_primary > 1


def test_points_other_separators_and_encodings(table):
    rows = [[text.replace("A1", "Ä1").replace(",", ".") for text in row] for row in lines()]
    other = table.parent / "other"
    other.mkdir()
    path = write(other, rows, sep=",", encoding="latin-1")
    (other / "area.hrc").write_text(HRC.replace("A1", "Ä1"), encoding="latin-1")
    tables, _ = read_argus(path, encoding="latin-1")
    same, _ = read_argus(table)
    assert "Ä11" in tables["region",]["region"].values
    for names, found in tables.items():
        assert np.array_equal(found["total"].values, same[names]["total"].values)


def test_files_are_looked_for_beside_the_metadata(table):
    (table.parent / "area.hrc").unlink()
    with pytest.raises(FileFormatError, match=r"area\.hrc: no such file"):
        read_argus(table)
    (table.parent / "cells.rda").rename(table.parent / "words.rda")
    with pytest.raises(FileFormatError, match=r"cells\.rda: no such file"):
        read_argus(table)
    (table.parent / "area.hrc").write_text(HRC)
    assert read_argus(table, table.parent / "words.rda")[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<MAXSCORE>", "<BEST>", "line 24: <BEST> is not supported; known are <SEPARATOR>"),
        ("<COSTVAR>", "<SHADOW>", "line 22: <SHADOW> is not supported; what is <NUMERIC>"),
        ("firms\n    <FREQUENCY>", "firms", "line \\d+ says of firms neither that it is"),
        ("firms\n    <FREQUENCY>", "firms\n    <MAXSCORE>", "one column must be the <FREQUENCY>"),
        ("    <NUMERIC> <LOWERPL>", "    <MAXSCORE>", "<LOWERPL> and <UPPERPL> go together"),
        ("region \"99\"\n", "", "line 4: <RECODEABLE> comes before any column"),
        ("trade \"X\"", "region", "line 11 names the column region again"),
        ("<DECIMALS> 1", "<DECIMALS> many", "line 18: <DECIMALS> takes a number from 0 to 9"),
        ("<TOTCODE> T", "<TOTCODE>", "line 13: <TOTCODE> takes one word"),
        ("<HIERLEVELS> 2 1 0 0", "<HIERLEVELS> 2 x", "line 15: <HIERLEVELS> takes whole numbers"),
        ("<FREQUENCY>", "<NUMERIC>", "one column must be <NUMERIC>, or value name one of them"),
        ('"{sep}"', '"ab"', "<SEPARATOR>: sep must be one character"),
        ('"{sep}"', '"|"', r"cells.tab: line 1 must have 10 fields, separated by '\|'"),
        ("<STATUS>", "<MAXSCORE>", "'told' must be numbers"),
        ("<TOTCODE> T", "<TOTCODE> Q", "no line has the code 'Q' of the totals of 'trade'"),
        ("<SEPARATOR>", '<PROTECT> "u"\n<SEPARATOR>', "the codes of the status must differ"),
    ],
)  # fmt: skip
def test_metadata_that_are_refused(table, old, new, message):
    assert old in METADATA
    path = table.parent / "cells.rda"
    path.write_text(METADATA.replace(old, new, 1).replace("{sep}", ";"))
    with pytest.raises((FileFormatError, TableError), match=message):
        read_argus(table)


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        (7, "M", "line 1 has the status 'M' of a cell that was suppressed to protect others"),
        (7, "x", "line 1 has the status x: accepted are 's', 'U', 'P', and 'E' for empty"),
        (7, "E", "line 1 has the status 'E' of an empty cell, and contributors"),
        (4, "-1", "line 1 holds -1 in place of a number from 0"),
        (4, "dear", "line 1 holds dear in place of a number from 0"),
        (4, "1.000", "line 1 holds 1.000 in place of a number from 0; if the point separates"),
        (3, "", "'firms' must be numbers from 0 .*: row 1 of .* is blank"),
        (2, "1.000", "'sales' must be numbers from 0 with at most 1 decimals: row 1"),
        (1, "Total", "line 1 has the code 'Total' of 'trade', whose totals are 'T'"),
        (1, "999", "nor|must|no row|sum of its parts"),
    ],
)
def test_cells_that_are_refused(table, field, given, message):
    rows = [list(row) for row in lines()]
    rows[0][field] = given
    write(table.parent, rows)
    with pytest.raises((FileFormatError, TableError), match=message):
        read_argus(table)


def test_comments_say_nothing(table):
    path = table.parent / "cells.rda"
    plain, said = read_argus(table)
    given = path.read_text().replace("<NUMERIC>\n", "<NUMERIC> // in thousands\n")
    given = given.replace("<TOTCODE> T", "<TOTCODE> T//for all")
    path.write_text(given.replace("sales\n", "sales // 900, X\n").replace('"99"', '"99" // "98"'))
    tables, told = read_argus(table)
    assert list(tables) == list(plain)
    for names, margin in tables.items():
        xr.testing.assert_identical(margin, plain[names])
    pd.testing.assert_frame_equal(told, said)


def test_costs_have_the_decimals_that_are_said_of_them(table):
    rows = [list(row) for row in lines()]
    price = float(rows[0][4].replace(",", ".") or 1)
    rows[0][4] = "1.250"
    write(table.parent, rows, METADATA.replace("<COSTVAR>", "<COSTVAR>\n    <DECIMALS> 3"))
    assert price != 1.25
    assert 1.25 in read_argus(table)[1]["cost"].tolist()


def test_a_cell_with_the_status_of_empty_ones_needs_no_number(tmp_path):
    words = "area\n<RECODEABLE>\nv\n<NUMERIC>\nn\n<FREQUENCY>\nst\n<STATUS>\n"
    for empty in ("N;0;;E", "N;;;E", "N;-;0;E", "N;;;"):
        tables, _ = read_words(tmp_path, [empty, "M;10;3;S", "Total;10;3;S"], words)
        assert tables["area",]["contributors"].values.tolist() == [0, 3]
    with pytest.raises(TableError, match=r"row 1 of .* is blank"):
        read_words(tmp_path, ["N;0;;S", "M;10;3;S", "Total;10;3;S"], words)


def test_one_of_several_quantities_is_named(table):
    path = table.parent / "cells.rda"
    path.write_text(path.read_text().replace("<NUMERIC> <COSTVAR>", "<NUMERIC>"))
    with pytest.raises(FileFormatError, match=r"value name one of them: \['sales', 'price'\]"):
        read_argus(table)
    assert read_argus(table, value="sales")[0]["region",].attrs["value"] == "sales"
    with pytest.raises(FileFormatError, match="value must name one of the columns"):
        read_argus(table, value="firms")


def test_codes_of_missing_labels_belong_to_no_group(table):
    """The region 99 and the trade X are in no hierarchy, and are safe on request."""
    rows = [list(row) for row in lines()]
    for row in rows:
        if row[:2] == list(TOTALS.values()):
            row[2], row[3] = f"{float(row[2].replace(',', '.')) + 900:.1f}", str(int(row[3]) + 1)
            row[5] = "900"
    extra = ["900", "1", "", "900", "0", "", "", ""]
    rows += [[*pair, *extra] for pair in (("99", "X"), ("99", "T"), ("All regions", "X"))]
    for row in rows:
        row[7] = "" if row[7] != "E" else "E"
    tables, told = read_argus(write(table.parent, rows))
    assert set(told["status"].dropna()) == set()
    held = tables["region", "trade"]["total"].sel(region="99", trade="X")
    assert held.item() == 900
    assert tables["region_1",]["total"].sel(region_1="99").item() == 900
    found = sensitive_margins(tables, tc.Dominance(1, 0.9), {"region": "99", "trade": "X"})
    for names, labels in {("region_1",): "99", ("trade_1",): "X"}.items():
        assert not found[names]["sensitive"].sel({names[0]: labels})
    bare = sensitive_margins(tables, tc.Dominance(1, 0.9))
    assert bare["region_1",]["sensitive"].sel(region_1="99")


NESTED_WORDS = """\
<SEPARATOR> ";"
trade "x"
<RECODEABLE>
<HIERLEVELS> 1 1 1
v
<NUMERIC>
n
<FREQUENCY>
first
<MAXSCORE>
told
<STATUS>
"""
PARTS = ["101;5;3;3;", "102;7;3;4;U"]


def read_words(folder, rows, words=NESTED_WORDS):
    (folder / "cells.rda").write_text(words)
    (folder / "cells.tab").write_text("\n".join(rows) + "\n")
    return read_argus(folder / "cells.tab")


@pytest.mark.parametrize("whole", [("Total",), ("10", "Total"), ("1", "Total", "10")])
def test_codes_above_all_others_are_further_names_of_the_total(tmp_path, whole):
    for rows, total in ((PARTS, "12;6;7;U"), (PARTS[1:], "7;3;4;U")):
        tables, told = read_words(tmp_path, [*rows, *(f"{name};{total}" for name in whole)])
        assert list(tables) == [("trade",), ()]
        assert tables["trade",]["trade"].values.tolist() == [row[:3] for row in rows]
        assert tables[()]["total"].item() == int(total.split(";")[0])
        assert told["trade"].tolist() == ["102", None]
    (tmp_path / "trade.hrc").write_text("1\n.10\n..101\n..102\n")
    words = NESTED_WORDS.replace("<HIERLEVELS> 1 1 1", "<HIERCODELIST> trade.hrc")
    lines = [*PARTS, *(f"{name};12;6;7;" for name in whole)]
    assert list(read_words(tmp_path, lines, words)[0]) == [("trade",), ()]


def test_totals_of_two_variables_by_several_names(tmp_path):
    words = NESTED_WORDS.replace("v\n<N", "area\n<RECODEABLE>\nv\n<N")
    areas = {"N": (5, 7), "S": (1, 2), "Total": (6, 9)}
    rows = []
    for area, (one, two) in areas.items():
        cells = {"101": one, "102": two, "10": one + two, "1": one + two, "Total": one + two}
        rows += [f"{trade};{area};{total};3;{total};" for trade, total in cells.items()]
    rows = [row for row in rows if not row.startswith("Total;S")]  # 10 and 1 name it
    tables, _ = read_words(tmp_path, rows, words)
    assert set(tables) == {("trade", "area"), ("trade",), ("area",), ()}
    assert tables["area",]["total"].values.tolist() == [12, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("10;13;6;7;", "line 4, trade=10, is the same total as line 3: 'v' must be '12', got '13'"),
        ("10;12;5;7;", "line 4, trade=10, is the same total as line 3: 'n' must be '6', got '5'"),
        ("10;12;6;6;", "line 4, .* 'first' must be '7', got '6'"),
        ("10;12;6;7;U", "line 4, .* 'told' must be '', got 'U'"),
        ("Total;12;6;7;", "a cell can be given once: row 4 of .*, trade=Total"),
        ("x;0;0;0;\n10;12;6;7;\n10;12;6;7;", "a cell can be given once: row 6 of"),
    ],
)
def test_two_lines_of_one_total_say_the_same(tmp_path, line, message):
    with pytest.raises(TableError, match=message):
        read_words(tmp_path, [*PARTS, "Total;12;6;7;", line])
    same = ["10;12.0;6;7;", "1;12;6;7,0;"]
    assert read_words(tmp_path, [*PARTS, "Total;12;6;7;", *same])[0][()]["total"].item() == 12


def test_with_missing_labels_a_code_above_all_others_is_no_total(tmp_path):
    rows = [*PARTS, "10;12;6;7;", "1;12;6;7;", "x;3;1;3;", "Total;15;7;7;"]
    tables, _ = read_words(tmp_path, rows)
    assert set(tables) == {("trade",), ("trade_1",), ("trade_2",), ()}
    assert tables["trade_2",]["total"].to_series().to_dict() == {"10": 12, "x": 3}


def test_the_last_field_of_the_last_line_can_be_empty(tmp_path):
    words = NESTED_WORDS.replace('";"', '"\t"').replace("<HIERLEVELS> 1 1 1\n", "")
    rows = [row.replace(";", "\t") for row in [*PARTS, "Total;12;6;7;"]]
    for ending in ([], ["", " \t", ""]):
        tables, told = read_words(tmp_path, [*rows, *ending], words)
        assert tables[()]["total"].item() == 12
        assert told["trade"].tolist() == ["102"]


def test_no_cells(table):
    table.write_text("")
    with pytest.raises(FileFormatError, match=r"cells\.tab: holds no cells"):
        read_argus(table)


def test_a_group_of_nothing_needs_no_lines_of_its_categories(tmp_path):
    words = NESTED_WORDS.replace(
        "<HIERLEVELS> 1 1 1", "<HIERCODELIST> trade.hrc\n<HIERLEADSTRING> @"
    )
    (tmp_path / "trade.hrc").write_text("G\n@101\n@102\nH\n@201\n@202\n")
    lines = [*PARTS, "G;12;6;7;", "Total;12;6;7;"]
    tables, _ = read_words(tmp_path, [*lines, "H;0;0;;E"], words)
    table = tables["trade",]["contributors"].to_series().to_dict()
    assert table == {"101": 3, "102": 3, "201": 0, "202": 0}
    assert tables["trade_1",]["total"].to_series().to_dict() == {"G": 12, "H": 0}
    with pytest.raises(TableError, match="the total of trade_1=H must be the sum of its parts, 0"):
        read_words(tmp_path, [*lines, "H;3;3;2;"], words)


def test_a_total_but_for_its_case_is_no_category(tmp_path):
    words = NESTED_WORDS.replace("<HIERLEVELS> 1 1 1\n", "")
    with pytest.raises(
        TableError, match=r"'trade' in row 4 of .* is 'TOTAL', and totals are 'Total'"
    ):
        read_words(tmp_path, [*PARTS, "Total;15;8;7;", "TOTAL;3;2;2;"], words)
