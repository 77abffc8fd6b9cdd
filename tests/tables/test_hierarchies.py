"""Levels above a variable: read, attached, and published once."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.tables import nested_codes, read_hrc, with_levels
from taciturn.tables.margins import finer_margins, hierarchies, margin_of

RAGGED = "A\n@A1\n@@A11\n@@A12\n@A2\nB\nC\n@C1\n@C2\n"
LEAVES = ["A11", "A12", "A2", "B", "C1", "C2"]
LEVEL_1 = ["A", "A", "A", "B", "C", "C"]
LEVEL_2 = ["A1", "A1", "A2", "B", "C1", "C2"]


@pytest.fixture
def hrc(tmp_path):
    path = tmp_path / "trade.hrc"
    path.write_text(RAGGED)
    return path


def table_of(leaves=LEAVES):
    values = [[5, 3, 2, 8, 1, 9][: len(leaves)], [4, 4, 7, 6, 2, 3][: len(leaves)]]
    return xr.DataArray(
        values, coords={"area": ["x", "y"], "trade": leaves}, dims=("area", "trade")
    )


def test_a_file_of_tau_argus_with_branches_of_different_depth(hrc):
    found = read_hrc(hrc, "trade")
    assert list(found.columns) == ["trade", "trade_1", "trade_2"]
    assert found.values.T.tolist() == [LEAVES, LEVEL_1, LEVEL_2]


def test_other_marks_and_ends_of_lines(tmp_path):
    path = tmp_path / "trade.hrc"
    path.write_bytes(RAGGED.replace("@", "->").replace("\n", "\r\n").encode() + b"\r\n\r\n")
    assert read_hrc(path, "trade", mark="->").values.T.tolist() == [LEAVES, LEVEL_1, LEVEL_2]


def test_a_level_that_is_the_total_is_left_out(tmp_path):
    path = tmp_path / "trade.hrc"
    path.write_text("all\n@A\n@@A1\n@@A2\n@B\n")
    assert read_hrc(path, "trade").to_dict("list") == {
        "trade": ["A1", "A2", "B"],
        "trade_2": ["A", "A", "B"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no codes"),
        ("\n\n", "holds no codes"),
        ("A\n@@A1\n", r"line 2, @@A1, has 2 marks '@': at most 1 can follow"),
        ("@A\n", r"line 1, @A, has 1 marks '@': at most 0"),
        ("A\n @A1\n", r"line 2, .*@A1, has something before its '@'"),
        ("A\n@\n", "line 2 has no code"),
        ("A\n\nB\n", "line 2 has no code"),
        ("A\n@A1\nB\n@A1\n", "line 4 gives A1 a second time, after line 2"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "trade.hrc"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=rf"trade\.hrc: {message}"):
        read_hrc(path, "trade")


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        read_hrc(tmp_path / "no.hrc", "trade")
    with pytest.raises(FileFormatError, match=r"cannot read the ending '\.txt'"):
        read_hrc(tmp_path / "no.txt", "trade")
    (tmp_path / "latin.hrc").write_bytes("Ä\n@Ä1\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="not a text file in UTF-8"):
        read_hrc(tmp_path / "latin.hrc", "trade")
    assert len(read_hrc(tmp_path / "latin.hrc", "trade", encoding="latin-1")) == 1
    with pytest.raises(ParameterError, match="mark must be text"):
        read_hrc(tmp_path / "latin.hrc", "trade", mark=" ")


def test_nested_codes():
    codes = ["1111", "1112", "1120", "12", "21"]
    found = nested_codes(codes, (1, 1, 2), "trade")
    assert found.values.T.tolist() == [
        codes,
        ["1", "1", "1", "1", "2"],
        ["11", "11", "11", "12", "21"],
    ]
    with pytest.raises(
        TableError, match="trade=111 has 3 characters: codes of the levels have 1, 2, 4"
    ):
        nested_codes([*codes, "111"], (1, 1, 2), "trade")
    with pytest.raises(ParameterError, match="widths must be whole numbers of at least 1"):
        nested_codes(codes, (1, 0), "trade")


def test_levels_of_a_table_are_the_same_from_all_forms(hrc, tmp_path):
    frame = read_hrc(hrc, "trade")
    path = tmp_path / "levels.csv"
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)  # rows in any order
    for given in (hrc, str(hrc), path, frame):
        found = with_levels(table_of(), {"trade": given})
        assert found["trade_1"].values.tolist() == LEVEL_1
        assert found["trade_2"].values.tolist() == LEVEL_2
        assert found["trade_2"].dims == ("trade",)


def test_categories_of_a_code_list_that_the_table_has_not_are_left_out(hrc):
    found = with_levels(table_of(LEAVES[1:4]), {"trade": hrc})
    assert found["trade_1"].values.tolist() == ["A", "A", "B"]


def test_two_hierarchies_of_a_variable_do_not_use_one_label_for_two_groups():
    table = table_of(LEAVES[:4])
    one, two = (
        pd.DataFrame({"trade": LEAVES[:4], name: own})
        for name, own in (("s", ["N", "N", "S", "S"]), ("t", ["N", "U", "N", "U"]))
    )
    with pytest.raises(TableError, match="N of 's' and of 't' stand for different categories"):
        with_levels(table, {"trade": [one, two]})
    with pytest.raises(TableError, match="N of 's' and of 't' stand for different categories"):
        with_levels(with_levels(table, {"trade": one}), {"trade": two})
    same = two.assign(t=["N", "N", "U", "V"])
    assert {"s", "t"} < set(with_levels(table, {"trade": [one, same]}).coords)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"trade": LEAVES[1:], "s": LEVEL_1[1:]}, "no row for trade=A11; each category of 'trade'"),
        ({"trade": [*LEAVES, "B"], "s": [*LEVEL_1, "B"]}, "row 7 gives trade=B a second time"),
        ({"trade": LEAVES, "s": [*LEVEL_1[:5], None]}, "row 6 has no 's' for trade=C2"),
        (
            {"trade": LEAVES, "s": ["A", "A", "B", "B", "C", "C"]},
            "B of 'trade' and of 's' stand for",
        ),
        ({"trade": LEAVES, "area": LEVEL_1}, "'area' cannot name a level: it is taken"),
        ({"trade": LEAVES, "count": LEVEL_1}, "'count' cannot name a level: it is taken"),
        ({"branch": LEAVES, "s": LEVEL_1}, "a hierarchy has the column 'trade' and one for each"),
        ({"trade": LEAVES}, "a hierarchy has the column 'trade' and one for each"),
    ],
)
def test_columns_that_are_no_levels(columns, message):
    with pytest.raises(TableError, match=message):
        with_levels(table_of(), {"trade": pd.DataFrame(columns)})


def test_a_category_that_has_others_below_it(hrc):
    with pytest.raises(TableError, match="no row for trade=A1; which is a group of others there"):
        with_levels(table_of(["A1", "A2"]), {"trade": hrc})
    with pytest.raises(ParameterError, match=r"no variable 'size': there are \['area', 'trade'\]"):
        with_levels(table_of(), {"size": hrc})
    with pytest.raises(
        ParameterError, match="hierarchies must be files or data frames by variable"
    ):
        with_levels(table_of(), hrc)


def test_a_branch_that_ends_early_is_published_once_and_read_back(hrc, tmp_path):
    """B and A2 are cells on every level, and stand in one row."""
    table = with_levels(table_of(), {"trade": hrc})
    pattern = tc.suppress(
        table,
        {("area", "trade"): table == 1},
        linked=[("area", "trade"), ("area", "trade_2"), ("area", "trade_1"), "trade_1", "area", ()],
        random_seed=1,
        progressbar=False,
    )
    path = tmp_path / "released.csv"
    tc.write_release(pattern, path)
    rows = pd.read_csv(path)
    assert not rows.duplicated(["area", "trade"]).any()
    of_x = rows[rows["area"] == "x"].set_index("trade")
    assert sorted(of_x.index) == sorted([*LEAVES, "A", "A1", "C", "Total"])
    suppressed = of_x["status"] == "suppressed"
    assert suppressed["C1"]
    true = dict(zip(LEAVES, table.sel(area="x").values.tolist(), strict=True))
    true |= {"A": 10, "A1": 8, "C": 10, "Total": 28}
    assert of_x["count"][~suppressed].to_dict().items() <= true.items()
    back = tc.publication.read_release(path, table)
    for margin in [("area", "trade"), ("area", "trade_1"), "trade_1"]:
        pd.testing.assert_frame_equal(
            *(
                tc.attacker_bounds(release, margin=margin, progressbar=False).to_dataframe()
                for release in (pattern.release, back)
            )
        )


@pytest.mark.parametrize("variable", ["area", "sex"])
def test_a_level_does_not_take_the_place_of_another(variable):
    coords = {"area": list("pqrs"), "sex": ["m", "f"]}
    table = xr.DataArray(np.ones((4, 2), dtype=int), dims=("area", "sex"), coords=coords)
    groups = pd.DataFrame({"area": list("pqrs"), "g": list("GGHH")})
    first = tc.tables.with_levels(table, {"area": groups})
    other = pd.DataFrame({variable: coords[variable], "g": list("uvvv")[: len(coords[variable])]})
    with pytest.raises(TableError, match="'g' cannot name a level: the table has it already"):
        tc.tables.with_levels(first, {variable: other})


def test_samples_keep_levels():
    table = xr.DataArray([5, 1, 2], coords={"area": ["A1", "A2", "B"]}, dims="area")
    regions = pd.DataFrame({"area": ["A1", "A2", "B"], "region": ["A", "A", "B"]})
    levels = tc.tables.with_levels(table, {"area": regions}).assign_coords(replicate=7)
    for more in ({}, {"replicates": 2}):
        drawn = tc.draw_sample(levels, size=4, random_seed=1, **more)
        assert drawn["region"].values.tolist() == ["A", "A", "B"]


def test_margins_that_follow_from_others():
    """Levels by chance, that nest, cross or rename: against the groups of the cells."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        shape = tuple(rng.integers(1, 4, 2))
        table = xr.DataArray(np.zeros(shape, dtype=int), dims=("a", "b"))
        table = table.assign_coords({dim: range(table.sizes[dim]) for dim in "ab"})
        for dim, number in product("ab", range(2)):
            table[f"{dim}{number}"] = dim, rng.integers(0, 2, table.sizes[dim])
        choices = [(None, dim, *above) for dim, above in hierarchies(table).items()]
        margins = [tuple(filter(None, names)) for names in product(*choices)]
        groups = [margin_of(table, names)[1].tolist() for names in margins]
        pairs = [[set(zip(one, two, strict=True)) for two in groups] for one in groups]
        finer = [
            {
                j
                for j in range(len(margins))
                if len(pairs[j][i]) == len(set(groups[j]))
                and (j < i or len(pairs[i][j]) > len(set(groups[i])))
            }
            for i in range(len(margins))
        ]
        assert finer_margins(margins, table) == finer
