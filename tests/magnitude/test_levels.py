"""Magnitude tables with levels above their variables: each margin is that of records
which have the level as a column."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import tabulate_margins

HRC = "A\n@A1\n@@A11\n@@A12\n@A2\nB\nC\n@C1\n@C2\n"
LEAVES = ["A11", "A12", "A2", "B", "C1", "C2"]


@pytest.fixture
def hrc(tmp_path):
    path = tmp_path / "trade.hrc"
    path.write_text(HRC)
    return path


def firms(seed, records=250):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "trade": generator.choice(LEAVES, records, p=[0.3, 0.1, 0.2, 0.2, 0.15, 0.05]),
            "area": generator.choice(["x", "y", "z"], records),
            "firm": generator.integers(0, 60, records),
            "sales": np.round(generator.lognormal(3, 1.5, records), 1),
        }
    ).assign(group=lambda frame: frame["firm"] % 25, asked=lambda frame: frame["firm"] % 7 == 0)


@pytest.mark.parametrize(
    "roles",
    [
        {},
        {"contributor": "firm", "holding": "group", "request": "asked"},
        {"contributor": "firm", "sampling_weights": "weight"},
    ],
)
def test_each_margin_is_that_of_records_with_a_column_for_the_level(hrc, roles):
    records = firms(1)
    records["weight"] = 1 + records["firm"] % 3 / 2
    levels = tc.tables.read_hrc(hrc, "trade")
    joined = records.merge(levels, on="trade")
    options = {"decimals": 1, "largest": 3, **roles}
    tables = tabulate_margins(
        records, ["area", "trade"], "sales", hierarchies={"trade": hrc}, **options
    )
    assert list(tables) == [
        ("area", "trade"),
        ("area", "trade_1"),
        ("area", "trade_2"),
        ("area",),
        ("trade",),
        ("trade_1",),
        ("trade_2",),
        (),
    ]
    for names, table in tables.items():
        columns = ["area", "trade", "trade_1", "trade_2"] if not names else list(names)
        expected = tabulate_margins(joined, columns, "sales", margins=[names], **options)[names]
        plain = table.drop_vars([name for name in table.coords if name not in (*names, "rank")])
        assert set(plain.data_vars) == set(expected.data_vars)
        for name in names:  # sorted there, in order of the categories here
            expected = expected.sel({name: plain[name].values})
        xr.testing.assert_allclose(plain, expected, rtol=1e-12)
    assert tables["area", "trade"]["trade_2"].values.tolist() == ["A1", "A1", "A2", "B", "C1", "C2"]


def test_the_largest_of_a_group_are_not_those_of_its_parts(hrc):
    """f is second in both cells, and first in both together."""
    records = pd.DataFrame(
        {
            "trade": ["A11", "A11", "A12", "A12"],
            "firm": ["f", "g", "f", "h"],
            "sales": [6, 7, 6, 7],
        }
    )
    levels = pd.DataFrame({"trade": ["A11", "A12"], "sector": ["A", "A"], "code": ["a", "b"]})
    named = tabulate_margins(
        records,
        "trade",
        "sales",
        margins=["sector"],
        contributor="firm",
        largest=2,
        hierarchies={"trade": levels},
    )
    assert named["sector",]["largest"].values.tolist() == [[12, 7]]
    # The sector is the total, and the code only renames: neither is a further margin.
    every = tabulate_margins(records, "trade", "sales", hierarchies={"trade": levels})
    assert list(every) == [("trade",), ()]


def test_margins_that_there_are_not(hrc):
    records = firms(1)
    given = {"hierarchies": {"trade": hrc}}
    for margins in ([("trade", "trade_1")], [("trade_9",)], [("area", "area")]):
        with pytest.raises(ParameterError, match="or levels above them"):
            tabulate_margins(records, ["area", "trade"], "sales", margins=margins, **given)
    with pytest.raises(ParameterError, match="no variable 'size'"):
        tabulate_margins(records, ["area"], "sales", hierarchies={"size": hrc})
    taken = pd.DataFrame({"trade": LEAVES, "total": LEAVES})
    with pytest.raises(TableError, match=r"\['total'\] cannot name a variable"):
        tabulate_margins(records, ["trade"], "sales", hierarchies={"trade": taken})
    taken = taken.rename(columns={"total": "value"})
    rule = tc.PPercent(10)
    with pytest.raises(ParameterError, match="'value' as a variable"):
        tc.protect_table(records, ["trade"], "sales", rule, hierarchies={"trade": taken})
    records.loc[0, "trade"] = "D"
    with pytest.raises(TableError, match="no row for trade=D"):
        tabulate_margins(records, ["trade"], "sales", decimals=1, **given)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_protected_table_leaves_every_sensitive_total_open(hrc, tmp_path, seed):
    """What the file publishes is attacked: on every level each sensitive cell is as
    open as its rule asks for."""
    records = firms(seed, records=150)
    rules = [tc.PPercent(30), tc.magnitude.MinimumFrequency(4)]
    given = {"hierarchies": {"trade": hrc}, "contributor": "firm", "decimals": 1}
    done = tc.protect_table(
        records, ["area", "trade"], "sales", rules, random_seed=0, progressbar=False, **given
    )
    tables = tabulate_margins(records, ["area", "trade"], "sales", **given)
    assert set(done.tables) == set(tables)
    path = tmp_path / "out.csv"
    tc.write_release(done, path)
    assert not pd.read_csv(path).duplicated(["area", "trade"]).any()
    true = tables["area", "trade"]["total"]
    back = tc.publication.read_release(path, true, decimals=1)
    checked = 0
    for names, table in tables.items():
        found = tc.sensitive_cells(table, rules)["sensitive"]
        assert found.equals(done.sensitive[names]["sensitive"])
        level = tc.magnitude.protection_levels(table, rules)
        bounds = tc.attacker_bounds(back, margin=names, progressbar=False)
        low = (table["total"] - level).clip(min=0)
        open_ = (bounds["lower"] <= low + 1e-6) & (bounds["upper"] >= table["total"] + level - 1e-6)
        assert bool((open_ | ~found).all())
        checked += int(found.sum())
    assert checked > 1


def test_the_command_reads_hierarchies(hrc, tmp_path):
    records = firms(0)
    records.to_csv(tmp_path / "firms.csv", index=False)
    common = [
        "--variables",
        "area,trade",
        "--value",
        "sales",
        "--decimals",
        "1",
        "--rule",
        "freq:3",
    ]
    out = tmp_path / "out.csv"
    words = ["rules", tmp_path / "firms.csv", *common, "--contributor", "firm", "--hierarchy", hrc]
    result = CliRunner().invoke(cli, [*map(str, words), "--output", str(out), "--format", "csv"])
    assert result.exit_code == 0, result.output
    done = tc.protect_table(
        tmp_path / "firms.csv",
        ["area", "trade"],
        "sales",
        tc.magnitude.MinimumFrequency(3),
        contributor="firm",
        decimals=1,
        hierarchies={"trade": hrc},
        random_seed=0,
        progressbar=False,
    )
    tc.write_release(done, tmp_path / "same.csv")
    assert out.read_text() == (tmp_path / "same.csv").read_text()
    lines = result.stdout.splitlines()
    assert lines[0] == "area,trade,reason_not_for_release"
    assert len(lines) == 1 + sum(int(cells["sensitive"].sum()) for cells in done.sensitive.values())
