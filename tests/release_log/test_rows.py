"""Tables in every form in which they are held: nothing that is published is passed
over."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError


def log_of(tmp_path: Path, **variables: Any) -> tc.ReleaseLog:
    return tc.ReleaseLog(tmp_path / "log.duckdb", variables=variables)


def found(log: tc.ReleaseLog, table: Any, **given: Any) -> list[str]:
    verdict = log.check(table, advise=False, progressbar=False, **given)
    return [each.who for each in verdict.findings]


def by_sex(f: Any, m: Any, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f", "m"], "count": [f, m], **columns})


def test_a_status_hides_a_count_only_if_it_says_so(log: tc.ReleaseLog) -> None:
    assert found(log, by_sex(51, 3, status=["published", "published"])) == ["sex=m"]
    assert found(log, by_sex(51, 3, status=["safe", "suppressed"])) == []
    for status in ("Published", "PUBLISHED", "ok", "", None, np.nan, 1, True):
        with pytest.raises(TableError, match="status must be one of published, safe"):
            found(log, by_sex(51, 3, status=["published", status]))


def test_a_count_that_is_published_by_its_status_is_there(log: tc.ReleaseLog) -> None:
    """Readers would see one that the log does not know."""
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(TableError, match="sex=m is published, as its status says, and has no"):
            found(log, by_sex(51, missing, status=["safe", "published"]))
        assert found(log, by_sex(51, missing, status=["safe", "suppressed"])) == []


def test_a_variable_may_be_called_status(tmp_path: Path) -> None:
    """It is then no column that hides counts."""
    log = log_of(tmp_path, status=["married", "single"], sex=["f", "m"])
    table = by_sex(51, 3, status=["married", "married"])
    given = {"where": {"status": "married"}}
    assert found(log, table, **given) == ["status=married, sex=m"]


@pytest.mark.parametrize("name", ["count", "replicate", "chain", "draw"])
def test_names_that_tables_need_are_no_variables(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' cannot name a variable"):
        log_of(tmp_path, **{name: ["1", "2"]})
    with pytest.raises(ParameterError, match=f"'{name}' cannot name a variable"):
        tc.ReleaseLog(tmp_path / "x.duckdb", variables={"a": ["1"]}, levels={name: ("a", ["all"])})


def test_a_category_is_not_taken_for_a_total(tmp_path: Path) -> None:
    log = log_of(tmp_path, tax=["Partial", "Total"])
    table = pd.Series({"Partial": np.nan, "Total": 3}).rename_axis("tax")
    with pytest.raises(TableError, match=r"'Total' is a category of 'tax' and the label of totals"):
        found(log, table)
    assert found(log, table, total="All") == ["tax=Total"]
    with pytest.raises(ParameterError, match="total must be the label"):
        found(log, table, total=["All"])


def test_variables_may_be_in_the_index_of_a_long_table(log: tc.ReleaseLog) -> None:
    sizes = by_sex(51, 3).set_index("sex")["count"]
    assert found(log, sizes.to_frame()) == found(log, sizes) == ["sex=m"]
    alone = sizes.iloc[1:]
    assert found(log, alone.to_frame()) == found(log, alone) == ["everybody"]
    tables = [log.check(x, progressbar=False).tables for x in (alone, alone.to_frame())]
    assert [[axis.labels for axis in table.axes] for (table,) in tables] == [
        [("m", "(no row)")],
        [("m", "(no row)")],
    ]


def test_a_category_may_be_called_count(tmp_path: Path) -> None:
    log = log_of(tmp_path, sex=["f", "m"], how=["count", "guess"])
    table = pd.DataFrame({"count": [50, 3], "guess": [40, 30]}, index=pd.Index(["f", "m"]))
    table = table.rename_axis(index="sex", columns="how")
    assert found(log, table) == ["sex=m, how=count"]
    assert found(log, table[["count"]].iloc[:1] - 47) == ["everybody"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.Series([], dtype=float).rename_axis("sex"), "the table has no cell"),
        (pd.DataFrame({"sex": [], "count": []}), "the table has no cell"),
        (pd.DataFrame([["f", "m", 5]], columns=["sex", "sex", "count"]), "two columns are called"),
        (by_sex(51, 48).set_index("sex").assign(sex="f"), "two columns are called 'sex'"),
        (xr.DataArray([51, 3], dims="sex"), "no categories along 'sex'"),
    ],
)
def test_tables_without_cells_or_with_two_columns_of_a_name(
    log: tc.ReleaseLog, table: Any, message: str
) -> None:
    with pytest.raises(TableError, match=message):
        found(log, table)


@pytest.mark.parametrize(
    "given", [{"where": ["sex"]}, {"where": "sex"}, {"merge": ["x"]}, {"merge": {"sex": "x"}}]
)
def test_definitions_are_mappings(log: tc.ReleaseLog, given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must be a mapping"):
        found(log, by_sex(51, 48), **given)


@pytest.mark.parametrize("label", ["a\nb", "\x00", "\ud800", "a\u200bb", "x" * 1001])
def test_categories_are_seen(tmp_path: Path, label: str) -> None:
    with pytest.raises(TableError, match="category 2 of 'v'"):
        log_of(tmp_path, v=["a", label])
    with pytest.raises(TableError, match="label 1 of 'r'"):
        tc.ReleaseLog(tmp_path / "x.duckdb", variables={"a": ["1"]}, levels={"r": ("a", [label])})
    with pytest.raises(TableError, match="the name"):
        log_of(tmp_path, **{label: ["a"]})


def test_categories_that_look_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="look alike"):
        log_of(tmp_path, v=["N 1", "N  1"])


@pytest.mark.parametrize("labels", [["N", np.nan], ["N", None], ["N", " "], "NS", 5])
def test_labels_of_a_level_are_given_for_each_category(tmp_path: Path, labels: Any) -> None:
    with pytest.raises(ParameterError, match=r"levels\['r'\] must have a label for each"):
        tc.ReleaseLog(
            tmp_path / "x.duckdb", variables={"a": ["1", "2"]}, levels={"r": ("a", labels)}
        )


def test_odd_categories_are_what_they_are(tmp_path: Path) -> None:
    odd = ["'", '"', "a, b", "None", "nan", "é", "(no row)", "=1", "%", "0", " lead"]
    log = log_of(tmp_path, **{"the v": odd})
    for label in odd:
        table = pd.Series(dict.fromkeys(odd, 50) | {label: 3}).rename_axis("the v")
        assert found(log, table) == [f"the v={label}"]
    log.add(table, name="'all\"")
    again = tc.ReleaseLog(log.path)
    assert again.codebook == log.codebook
    assert found(again, table) == []


def test_small_cells_that_are_suppressed_are_not_zeros(tmp_path):
    """Below what they are the table does not say, and everybody knows; with a minimum
    of 2 each is 1.
    """
    table = xr.DataArray(
        [[1, 40], [17, 19]], dims=("d", "e"), coords={"d": ["x", "y"], "e": [1, 2]}
    )
    log = log_of(tmp_path, d=["x", "y"], e=[1, 2])
    released = tc.perturbation.suppress_small_cells(table, minimum=2)
    for given in (released.isel(replicate=0), released.isel(replicate=0, drop=True)):
        with pytest.raises(TableError, match="from 1 to below the minimum; give its rows"):
            log.check(given, progressbar=False)
    rows = table.where(table > 1).to_dataframe(name="count").reset_index()
    assert found(log, rows) == []
    assert found(log, rows.assign(lower=rows["count"].fillna(1), upper=rows["count"])) == []
    ends = rows["count"].fillna(1)
    assert found(log, rows.assign(lower=ends, upper=ends)) == ["d=x, e=1"]
    alone = rows.drop(columns="count").assign(lower=ends, upper=ends)
    assert found(log, alone) == ["d=x, e=1"]
    for odd in (["u", "v"], [True, False]):  # another coordinate of this name
        marked = table.assign_coords(suppressed=("e", odd))
        assert found(log, marked) == found(log, table)


def test_published_intervals_are_read(tmp_path):
    """A file that `write_release` gives with intervals says what the release says."""
    table = xr.DataArray([[2, 40], [7, 9]], dims=("d", "e"), coords={"d": ["x", "y"], "e": [1, 2]})
    pattern = tc.suppress(table, table == 2, random_seed=1, progressbar=False)
    path = tmp_path / "release.csv"
    tc.write_release(pattern, path, intervals=True)
    log = log_of(tmp_path, d=["x", "y"], e=["1", "2"])
    given = pd.read_csv(path)
    assert {"lower", "upper"} <= set(given.columns)
    assert (
        found(log, given)
        == found(log, pattern)
        == found(log, given.drop(columns=["lower", "upper"]))
    )


def test_an_interval_limits_what_else_is_published(tmp_path):
    log = log_of(tmp_path, s=["f", "m"])
    frame = pd.DataFrame({"s": ["f", "m", "Total"], "count": [None, None, 45]})
    assert found(log, frame) == []
    known = frame.assign(lower=[0, 42, None], upper=[None, 42, None])
    assert found(log, known) == ["s=f"]
    for end in (np.inf, "inf"):  # as `intervals` of a pattern has where nothing limits it
        ends = pd.Series([end, 42, None], dtype=object)
        assert found(log, frame.assign(lower=[0, 42, None], upper=ends)) == ["s=f"]
    rounded = "is rounded"  # or another count than the true one
    for lower, upper, text in ((5, 4, "5 to 4"), (46, None, rounded), (43, 47, rounded)):
        wrong = known.assign(lower=[0, 42, lower], upper=[None, 42, upper])
        with pytest.raises(TableError, match=f"s=Total has an interval of .*{text}"):
            log.check(wrong, progressbar=False)
    with pytest.raises(TableError, match=r"counts must be whole numbers.*: s=f holds 0\.5"):
        log.check(known.assign(lower=[0.5, 42, None]), progressbar=False)
