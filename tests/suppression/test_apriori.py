"""Instructions for single cells: the same as what is given for whole tables."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import AttackError, FileFormatError, ParameterError, TableError
from taciturn.suppression import read_apriori

TABLE = xr.DataArray(
    [[20, 50, 10], [8, 19, 22], [17, 32, 12]],
    coords={"activity": ["i", "ii", "iii"], "region": ["A", "B", "C"]},
    dims=("activity", "region"),
)
SMALL = TABLE == 8
MARGINS = [("activity", "region"), "activity", "region", ()]


def suppress(primary=SMALL, **options):
    return tc.suppress(TABLE, primary, random_seed=1, progressbar=False, **options)


def statuses(pattern, names=("activity", "region")):
    return pattern.status[names].values.tolist()


def rows(*given):
    return pd.DataFrame(given, columns=["activity", "region", "status", "cost", "lower", "upper"])


def test_by_hand_is_as_with_masks():
    by_hand = rows(("ii", "A", "sensitive", None, None, None))
    assert statuses(suppress(TABLE < 0, apriori=by_hand)) == statuses(suppress())
    safe = rows(("ii", "A", "safe", None, None, None), ("i", "A", "sensitive", None, None, None))
    assert statuses(suppress(apriori=safe)) == statuses(suppress(TABLE == 20))


def test_published_before():
    """The cheapest pattern has (iii, C); with it published another is taken."""
    assert statuses(suppress())[2][2] == "secondary"
    frozen = rows(("iii", "C", "published", None, None, None))
    pattern = suppress(apriori=frozen)
    costs = (1 + TABLE).astype(float).where(TABLE != 12, np.inf)
    assert statuses(pattern) == statuses(suppress(costs=costs))
    assert statuses(pattern)[2][2] == "safe"
    assert pattern.cost > suppress().cost
    with pytest.raises(
        ParameterError, match="activity=ii, region=A is to be published, and is primary"
    ):
        suppress(apriori=rows(("ii", "A", "published", None, None, None)))
    everything = rows(
        *((a, r, "published", None, None, None) for a in ("i", "iii") for r in ("A", "B", "C"))
    )
    with pytest.raises(AttackError, match="no pattern protects activity=ii, region=A"):
        suppress(apriori=everything)


def test_suppressed_before():
    """It stays suppressed, and cannot be worked out."""
    pattern = suppress(apriori=rows(("i", "B", "suppressed", None, None, None)))
    assert (
        pattern.tables["activity", "region"]["status"].sel(activity="i", region="B") == "suppressed"
    )
    bounds = tc.attacker_bounds(pattern.release, progressbar=False)
    assert not bounds["disclosed"].sel(activity="i", region="B")


def test_costs_and_levels():
    cheap = rows(("iii", "C", None, 100, None, None), ("i", "C", None, 1, None, None))
    costs = (1 + TABLE).astype(float).where(TABLE != 12, 100).where(TABLE != 10, 1)
    assert statuses(suppress(apriori=cheap)) == statuses(suppress(costs=costs))
    level = suppress(apriori=rows(("ii", "A", None, None, 8, 15)))
    low = TABLE.where(~SMALL, 0)
    interval = xr.Dataset({"lower": low, "upper": TABLE.where(~SMALL, 23)})
    assert statuses(level) == statuses(suppress(protection=interval))
    found = level.audit["activity", "region"].where(SMALL, drop=True)
    assert float(found["lower"].item()) == 0
    assert float(found["upper"].item()) >= 23


def test_totals_and_levels_of_hierarchies():
    """A row without a label is a total; a branch that ends early is one cell on all
    levels."""
    levels = pd.DataFrame({"region": ["A", "B", "C"], "part": ["north", "north", "C"]})
    table = tc.tables.with_levels(TABLE, {"region": levels})
    margins = [("activity", "region"), ("activity", "part"), "activity", "region", "part", ()]
    given = rows(
        ("ii", "north", "sensitive", None, None, None),
        ("Total", "C", "published", None, None, None),
        ("i", "C", "sensitive", None, None, None),
    )
    options = {"linked": margins, "apriori": given, "random_seed": 1, "progressbar": False}
    pattern = tc.suppress(table, {("activity", "region"): TABLE < 0}, **options)
    assert pattern.status["activity", "part"].sel(activity="ii", part="north") == "primary"
    for name in ("part", "region"):
        assert pattern.status["activity", name].sel({"activity": "i", name: "C"}) == "primary"
        assert pattern.status[name,].sel({name: "C"}) == "safe"


def plainly(frame):
    return frame.astype(object).where(frame.notna(), None).values.tolist()


def test_a_file_of_tau_argus(tmp_path):
    path = tmp_path / "cells.hst"
    path.write_text("ii,A,u\niii,C,P\nii,A,pl,3,5.5\ni,C,c,2\nT,B,s\n")
    found = read_apriori(path, ["activity", "region"], total="T")
    expected = rows(
        ("ii", "A", "sensitive", None, None, None),
        ("iii", "C", "published", None, None, None),
        ("ii", "A", None, None, 3, 5.5),
        ("i", "C", None, 2, None, None),
        (None, "B", "safe", None, None, None),
    )
    assert plainly(found) == plainly(expected)
    path.write_text(path.read_text().replace(",", ";").replace("T;", "Total;"))
    plain = read_apriori(path, ["activity", "region"])
    assert plainly(plain) == plainly(expected)
    as_file = suppress(dict.fromkeys(MARGINS[:1], TABLE < 0), linked=MARGINS, apriori=path)
    as_frame = suppress(dict.fromkeys(MARGINS[:1], TABLE < 0), linked=MARGINS, apriori=plain)
    assert statuses(as_file) == statuses(as_frame)
    columns = tmp_path / "cells.csv"
    plain.to_csv(columns, index=False)
    same = suppress(dict.fromkeys(MARGINS[:1], TABLE < 0), linked=MARGINS, apriori=columns)
    assert statuses(as_file) == statuses(same)


def test_a_category_called_as_totals_are(tmp_path):
    table = xr.DataArray(
        [[20, 9, 12], [7, 30, 6], [9, 8, 14]],
        dims=["a", "b"],
        coords={"a": ["x", "Total", "z"], "b": ["p", "q", "r"]},
    )
    nothing, margins = {("a", "b"): table < 0}, [("a", "b"), ("a",), ("b",), ()]
    path = tmp_path / "cells.hst"
    path.write_text("Total,p,u\n")
    for given in (
        pd.DataFrame({"a": ["Total"], "b": ["p"], "status": ["sensitive"]}),
        read_apriori(path, ["a", "b"], total="All"),
    ):
        found = tc.suppress(
            table, nothing, linked=margins, apriori=given, random_seed=1, progressbar=False
        )
        assert found.status["a", "b"].sel(a="Total", b="p") == "primary"
        assert found.n_primary == 1
    with pytest.raises(TableError, match="'Total' may be a total or a category of 'a'; give what"):
        tc.suppress(table, nothing, linked=margins, apriori=path)
    path.write_text("x,Total,u\n")
    found = tc.suppress(
        table, nothing, linked=margins, apriori=path, random_seed=1, progressbar=False
    )
    assert found.status["a",].sel(a="x") == "primary"


def test_a_level_with_one_group_called_as_totals_are():
    table = xr.DataArray([[20, 9], [7, 30]], dims=["a", "b"], coords={"a": ["x", "y"]})
    table = table.assign_coords(b=["p", "q"], every=("a", ["Total", "Total"]))
    told = pd.DataFrame({"a": ["Total"], "b": ["p"], "status": ["sensitive"]})
    for margin in (("b",), ("every", "b")):
        found = tc.suppress(
            table,
            {("a", "b"): table < 0},
            linked=[("a", "b"), margin],
            apriori=told,
            random_seed=1,
            progressbar=False,
        )
        assert (found.status[margin].sel(b="p") == "primary").all()


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"cost": 2}, {"cost": 99}, r"row 2: .* is to cost 99, and was to cost 2"),
        (
            {"lower": 1, "upper": 12},
            {"lower": 0, "upper": 0},
            r"row 2: .* has the protection levels 0 and 0, and had 1 and 12",
        ),
    ],
)
def test_instructions_that_contradict_each_other(one, other, message):
    cell = {"activity": "ii", "region": "A"}
    told = [pd.DataFrame([cell | one, cell | each]) for each in (one, other)]
    nothing = dict.fromkeys(MARGINS[:1], TABLE < 0)
    suppress(nothing, linked=MARGINS, apriori=told[0])
    with pytest.raises(TableError, match=message):
        suppress(nothing, linked=MARGINS, apriori=told[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ii,A,u\nii,A,x\n", r"line 2 must have 2 codes, of \['activity', 'region'\]"),
        ("ii,u\n", "line 1 must have 2 codes"),
        ("ii,A,u,3\n", r"line 1: 'u' takes 0 numbers, got \['3'\]"),
        ("ii,A,pl,3\n", r"line 1: 'pl' takes 2 numbers after it, got \['3'\]"),
        ("ii,A,c,much\n", r"line 1: 'c' takes numbers, got \['much'\]"),
        ("ii,A,c,nan\n", r"line 1: 'c' takes numbers, got \['nan'\]"),
        ("ii,A,u\nii,A,c,1_000\n", r"line 2: 'c' takes numbers, got \['1_000'\]"),
        ("ii,A,pl,1.000,2\n", "line 1: 1.000 may be thousands: leave the point out, or add"),
        ("ii;A;c;1,5\n", r"line 1: 'c' takes numbers, got \['1,5'\]; write a point"),
        ("ii,A\rB,u\n", "line 1 must have 2 codes"),
        ("\n", "^$"),
    ],
)
def test_malformed_files_of_tau_argus(tmp_path, text, message):
    path = tmp_path / "cells.hst"
    path.write_text(text)
    if message == "^$":
        assert read_apriori(path, ["activity", "region"]).empty
        return
    with pytest.raises(FileFormatError, match=rf"cells\.hst: {message}"):
        read_apriori(path, ["activity", "region"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows(("iv", "A", "safe", None, None, None)), "row 1: activity=iv is no category"),
        (
            rows(("ii", "A", "unsafe", None, None, None)),
            "row 1: a status is one of sensitive",
        ),
        (
            rows(("ii", None, "safe", None, None, None)),
            "row 1 is for a cell of none of",
        ),
        (rows(("ii", "A", None, 0, None, None)), "row 1: a cost is a number above 0, got 0"),
        (rows(("ii", "A", None, "1_0", None, None)), "a cost is a number above 0, got '1_0'"),
        (
            rows(("ii", "A", None, None, "1.000", "5")),
            "row 1: a protection level .*, got '1.000'; if the point separates thousands",
        ),
        (rows(("ii", "A", None, None, 3, None)), "row 1: has one of 'lower' and 'upper'"),
        (rows(("ii", "A", None, None, -3, 1)), "row 1: a protection level is a number"),
        (
            rows(("ii", "A", None, None, "x", 1)),
            "row 1: a protection level is a number",
        ),
        (
            rows(("ii", "A", "safe", None, None, None), ("ii", "A", "sensitive", None, None, None)),
            "row 2: activity=ii, region=A is to be sensitive, and was safe",
        ),
        (pd.DataFrame({"activity": ["i"], "weight": [1]}), "must be a data frame or a file with"),
        ([("ii", "A", "u")], "must be a data frame or a file with columns"),
    ],
)
def test_instructions_that_cannot_be_followed(given, message):
    with pytest.raises(TableError, match=message):
        suppress(apriori=given)


FIRMS = pd.DataFrame(
    {
        "area": np.repeat(["n", "e", "s"], 15),
        "trade": np.tile(np.repeat(["f", "w", "m"], 5), 3),
        "sales": [*range(10, 55)],
    }
)


NOTHING = tc.PPercent(1)


def protect(rules=NOTHING, records=FIRMS, **options):
    return tc.protect_table(
        records, ["area", "trade"], "sales", rules, random_seed=0, progressbar=False, **options
    )


def test_a_protected_table_by_hand_with_a_safety_range():
    """The rule finds nothing; the cell by hand is as open as asked, in percent."""
    given = pd.DataFrame({"area": ["e"], "trade": ["w"], "status": ["sensitive"]})
    assert protect().pattern.n_primary == 0
    for percent in (0, 30):
        done = protect(apriori=given, safety_range=percent)
        assert done.pattern.n_primary == 1
        assert done.tables["area", "trade"]["status"].sel(area="e", trade="w") == "suppressed"
        total = float(FIRMS[(FIRMS.area == "e") & (FIRMS.trade == "w")]["sales"].sum())
        at = tc.attacker_bounds(done.pattern.release, progressbar=False).sel(area="e", trade="w")
        assert at["lower"] <= total * (1 - percent / 100)
        assert at["upper"] >= total * (1 + percent / 100)
    with pytest.raises(ParameterError, match="safety_range must be a finite number of at least 0"):
        protect(apriori=given, safety_range=-1)


@pytest.mark.parametrize("percent", [0, 0.1])
@pytest.mark.parametrize("decimals", [0, 1])
def test_a_safety_range_is_at_least_one_step_to_both_sides(percent, decimals):
    """With the cheapest cells hidden, two zeros and a 3, it could only be lower."""
    given = pd.DataFrame({"area": ["e"], "trade": ["w"], "status": ["sensitive"]})
    step = 10.0**-decimals
    sales = np.round(np.array([90, 91, 92, 0, 5, 93, 3, 0, 94]) * step, decimals)
    records = FIRMS.assign(sales=0.0)
    records.loc[::5, "sales"] = sales
    rule = tc.magnitude.MinimumFrequency(2)
    done = protect(rule, records, decimals=decimals, apriori=given, safety_range=percent)
    assert done.pattern.n_primary == 1
    at = tc.attacker_bounds(done.pattern.release, progressbar=False).sel(area="e", trade="w")
    assert at["lower"] <= 4 * step + 1e-9
    assert at["upper"] >= 6 * step - 1e-9


def test_frequencies_with_a_safety_range():
    records = FIRMS.drop(index=range(20, 23))
    rule = tc.magnitude.MinimumFrequency(3, safety_range=25)
    assert str(rule) == "MinimumFrequency(3, safety_range=25)"
    assert tc.magnitude.rule_from_text("freq:3,25") == rule
    table = tc.tabulate_magnitude(records, ["area", "trade"], "sales")
    level = tc.magnitude.protection_levels(table, rule).sel(area="e", trade="w")
    assert float(level) == np.ceil((33 + 34) / 4)
    at = tc.attacker_bounds(protect(rule, records).pattern.release, progressbar=False)
    assert at["upper"].sel(area="e", trade="w") >= 67 + 17


def test_zeros_and_empty_cells():
    records = FIRMS.copy()
    records.loc[20:24, "sales"] = 0  # e, w: five that have nothing
    records = records.drop(index=range(10, 15))  # n, m: empty
    assert protect(records=records).pattern.n_primary == 0
    rule = tc.magnitude.UnsafeZeros(12)
    assert tc.magnitude.rule_from_text("zero:12") == rule
    done = protect(rule, records)
    assert done.pattern.n_primary == 1
    at = tc.attacker_bounds(done.pattern.release, progressbar=False).sel(area="e", trade="w")
    assert at["upper"] >= 12
    assert done.tables["area", "trade"]["status"].sel(area="n", trade="m") == "published"
    wanted = pd.DataFrame({"area": ["n"], "trade": ["m"], "cost": [0.001]})
    known = {"apriori": wanted, "empty_cells_known": False}
    done = protect(rule, records, **known)
    assert done.tables["area", "trade"]["status"].sel(area="n", trade="m") == "suppressed"


def test_commands_read_instructions(tmp_path):
    TABLE.to_series().rename("count").to_csv(tmp_path / "table.csv")
    FIRMS.to_csv(tmp_path / "firms.csv", index=False)
    (tmp_path / "counts.hst").write_text("iii,C,p\n")
    (tmp_path / "firms.hst").write_text("e,w,u\nALL,w,p\n")
    out = tmp_path / "out.csv"
    words = ["suppress", "table.csv", "--threshold", "9", "--apriori", "counts.hst"]
    common = ["--output", str(out), "--force", "--total", "ALL"]
    runner = CliRunner()
    names = [str(tmp_path / word) if "." in word else word for word in words]
    result = runner.invoke(cli, [*names, *common])
    assert result.exit_code == 0, result.output
    found = pd.read_csv(out).set_index(["activity", "region"])["status"]
    assert found["iii", "C"] == "published"
    assert found["ii", "A"] == "suppressed"
    words = ["rules", "firms.csv", "--apriori", "firms.hst", "--safety-range", "20"]
    names = [str(tmp_path / word) if "." in word else word for word in words]
    options = ["--variables", "area,trade", "--value", "sales", "--rule", "freq:2"]
    result = runner.invoke(cli, [*names, *options, *common])
    assert result.exit_code == 0, result.output
    found = pd.read_csv(out).set_index(["area", "trade"])["status"]
    assert found["e", "w"] == "suppressed"
    assert found["ALL", "w"] == "published"
