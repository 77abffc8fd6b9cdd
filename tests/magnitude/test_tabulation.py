"""Magnitude tables: what is counted as one contribution, and what is refused."""

from datetime import date, datetime
from decimal import Decimal
from itertools import permutations
from math import log2

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from pyarrow import parquet as pq

import taciturn as tc
from taciturn.errors import FileFormatError, MissingDependencyError, ParameterError, TableError
from taciturn.magnitude import database

FIRMS = pd.DataFrame(
    {
        "area": ["A", "A", "A", "B", "B"],
        "size": ["small", "large", "large", "small", "small"],
        "firm": ["f", "f", "g", "h", "f"],
        "group": ["G", "G", "", "G", "G"],
        "asked": [0, 1, 0, 0, 0],
        "turnover": [60, 30, 10, 5, 20],
    }
)


def of(rows: list[int], **more: list) -> pd.DataFrame:
    """Contributions to one cell."""
    return pd.DataFrame({"area": ["A"] * len(rows), "x": rows, **more})


def one(rows: list[int], **options) -> xr.Dataset:
    """The table of one cell, and that cell."""
    more = {name: column for name, column in options.items() if isinstance(column, list)}
    named = {name: name for name in more}
    others = {name: value for name, value in options.items() if name not in more}
    return tc.tabulate_magnitude(of(rows, **more), "area", "x", **named, **others).sel(area="A")


def entropy(*sizes: float) -> float:
    total = sum(sizes)
    return -sum(x / total * log2(x / total) for x in sizes if x)


def test_every_row_is_a_contributor_where_none_is_named():
    sizes = {"size": ["small", "large"]}
    table = tc.tabulate_magnitude(FIRMS, ["area", "size"], "turnover", largest=2, categories=sizes)
    assert table["total"].values.tolist() == [[60, 30 + 10], [5 + 20, 0]]
    assert table["contributors"].values.tolist() == [[1, 2], [2, 0]]
    assert table["largest"].values.tolist() == [[[60, 0], [30, 10]], [[20, 5], [0, 0]]]
    np.testing.assert_array_equal(
        table["share"].values, [[[1, 0], [30 / 40, 10 / 40]], [[20 / 25, 5 / 25], [np.nan, np.nan]]]
    )
    np.testing.assert_allclose(
        table["entropy"].values,
        [[0, entropy(30, 10)], [entropy(20, 5), np.nan]],
        rtol=1e-12,
        atol=0,
    )
    assert table["contributors"].dtype == np.int64
    assert table["rank"].values.tolist() == [1, 2]


def test_rows_of_one_contributor_in_one_cell_are_one_contribution():
    area = tc.tabulate_magnitude(FIRMS, "area", "turnover", contributor="firm", largest=2)
    assert area["largest"].values.tolist() == [[60 + 30, 10], [20, 5]]
    assert area["contributors"].values.tolist() == [2, 2]
    cells = tc.tabulate_magnitude(
        FIRMS, ["area", "size"], "turnover", contributor="firm", largest=2
    )
    assert cells["largest"].sel(area="A", size="small").values.tolist() == [
        60,
        0,
    ]  # f is in several cells


def test_a_holding_is_one_contributor_and_who_has_none_is_its_own():
    table = tc.tabulate_magnitude(
        FIRMS, "area", "turnover", contributor="firm", holding="group", largest=2
    )
    assert table["largest"].values.tolist() == [[60 + 30, 10], [5 + 20, 0]]
    assert table["contributors"].values.tolist() == [2, 1]
    rows = tc.tabulate_magnitude(
        of([4, 3, 2, 1], group=["G", None, "G", None]), "area", "x", holding="group", largest=3
    )
    assert rows["largest"].values.tolist() == [[4 + 2, 3, 1]]


def test_a_holding_and_a_contributor_of_the_same_name_are_two():
    for names, groups in (
        (["1", "2"], ["2", None]),
        (["2", "1"], [None, "2"]),
        ([2, 1], [None, 2]),
    ):
        assert one([5, 3], contributor=names, holding=groups)["contributors"].item() == 2


def test_the_manuals_example_of_a_holding():
    # Reporting units 700, 200, 60, 40, 10; the first two belong to one group: 900, 60,
    # 40, 10.
    units, groups = [700, 200, 60, 40, 10], ["6", "6", "7", "8", "9"]
    assert one(units, largest=2)["largest"].values.tolist() == [700, 200]
    assert one(units, holding=groups, largest=2)["largest"].values.tolist() == [900, 60]


def test_margins_are_of_contributors_not_of_cells():
    tables = tc.magnitude.tabulate_margins(
        FIRMS, ["area", "size"], "turnover", contributor="firm", largest=2
    )
    assert list(tables) == [("area", "size"), ("area",), ("size",), ()]
    assert tables[()]["largest"].values.tolist() == [60 + 30 + 20, 10]
    assert tables[()]["contributors"].item() == 3
    assert tables["size",]["largest"].values.tolist() == [[30, 10], [60 + 20, 5]]
    assert tables[()]["total"].item() == 125
    assert tables["area",].identical(
        tc.tabulate_magnitude(FIRMS, "area", "turnover", contributor="firm", largest=2)
    )


def test_margins_are_named_in_any_order_and_come_in_that_of_dims():
    tables = tc.magnitude.tabulate_margins(
        FIRMS, ["area", "size"], "turnover", margins=[("size", "area"), "size", ()]
    )
    assert list(tables) == [("area", "size"), ("size",), ()]
    assert tables["area", "size"]["total"].dims == ("area", "size")


def test_weights_stand_for_so_many_contributions_of_the_size():
    # 100 of weight 4 and 10 of weight 7: 100, 100, 100, 100, 10, ..., 10; total 4 * 100
    # + 7 * 10.
    table = one([100, 10], sampling_weights=[4, 7])
    assert table["total"].item() == 4 * 100 + 7 * 10
    assert table["contributors"].item() == 4 + 7
    assert table["largest"].values.tolist() == [100, 100, 100, 100, 10]
    assert table["entropy"].item() == pytest.approx(entropy(*[100] * 4, *[10] * 7), rel=1e-12)
    plain = one([100] * 4 + [10] * 7)
    for name in ("total", "absolute_total", "largest", "share"):
        assert table[name].values.tolist() == plain[name].values.tolist()


def test_a_fraction_of_a_weight_shares_its_rank_with_what_follows():
    table = one([60, 30, 10], sampling_weights=[1.5, 2, 1.25], largest=5)
    assert table["largest"].values.tolist() == [
        60,
        0.5 * 60 + 0.5 * 30,
        30,
        0.5 * 30 + 0.5 * 10,
        0.75 * 10,
    ]
    assert table["total"].item() == 1.5 * 60 + 2 * 30 + 1.25 * 10
    assert table["contributors"].item() == 1.5 + 2 + 1.25
    assert table.attrs["decimals"] == 2  # the weights are written with two
    T = table["total"].item()
    expected = -sum(w * x / T * log2(x / T) for w, x in [(1.5, 60), (2, 30), (1.25, 10)])
    assert table["entropy"].item() == pytest.approx(expected, rel=1e-12)


def test_weights_are_read_to_six_decimals():
    table = one([3], sampling_weights=[4 / 3])
    assert table["total"].item() == 3 * 1333333 / 10**6
    assert table.attrs["decimals"] == 6


def test_a_weighted_contributor_in_several_rows():
    table = one([5, 5, 4], contributor=["f", "f", "g"], sampling_weights=[2, 2, 1], largest=3)
    assert table["largest"].values.tolist() == [10, 10, 4]


def test_negative_contributions_count_with_their_size():
    table = one([50, -30, 20], largest=2)
    assert table["total"].item() == 50 - 30 + 20
    assert table["absolute_total"].item() == 50 + 30 + 20
    assert table["largest"].values.tolist() == [50, 30]
    assert table["share"].values.tolist() == [0.5, 0.3]
    assert table["entropy"].item() == pytest.approx(entropy(50, 30, 20), rel=1e-12)
    netted = one([50, -30, 20], contributor=["f", "f", "g"], largest=2)
    assert netted["largest"].values.tolist() == [50 - 30, 20]
    assert netted["absolute_total"].item() == 20 + 20


def test_zeros_are_contributors():
    table = one([8, 0, 0], largest=2)
    assert table["contributors"].item() == 3
    assert table["entropy"].item() == 0
    nothing = one([0, 0], largest=1)
    assert nothing["contributors"].item() == 2
    assert nothing["entropy"].item() == 0
    assert np.isnan(nothing["share"].values).all()


def test_ties_in_any_order():
    for rows in ([7, 7, 3], [3, 7, 7], [7, 3, 7]):
        assert one(rows, largest=3)["largest"].values.tolist() == [7, 7, 3]


def test_a_request_is_for_the_cells_of_its_rows():
    frame = pd.DataFrame(
        {"area": ["A", "A", "B", "B"], "firm": [1, 2, 1, 2], "x": [9, 1, 9, 1], "ask": [1, 0, 0, 0]}
    )
    found = tc.magnitude.tabulate_margins(frame, "area", "x", contributor="firm", request="ask")
    assert found["area",]["requests"].values.tolist() == [1, 0]
    assert found[()]["requests"].item() == 1
    assert found[()]["requested"].item() == 18


def test_years_are_no_amounts():
    years = pd.DataFrame({"area": ["A", "B"], "x": pd.PeriodIndex(["2020", "2021"], freq="Y")})
    with pytest.raises(TableError, match=r"'x' must be plain numbers .* row 1 .* holds .*Period"):
        tc.tabulate_magnitude(years, "area", "x")


def test_requests_and_the_largest_of_them():
    table = tc.tabulate_magnitude(FIRMS, "area", "turnover", contributor="firm", request="asked")
    assert table["requests"].values.tolist() == [1, 0]
    assert table["requested"].values.tolist() == [60 + 30, 0]  # f asked in one of its rows
    weighted = one([9, 4, 3], sampling_weights=[2, 1.5, 1], request=[False, True, True])
    assert weighted["requests"].item() == 1.5 + 1
    assert weighted["requested"].item() == 4


def test_sums_are_exact_in_steps():
    assert one([0.1] * 10, decimals=1)["total"].item() == 1.0
    assert one([Decimal("0.10"), Decimal("0.20")], decimals=2)["total"].item() == 0.3
    assert one([999_999_999_999_999, -1])["total"].item() == 999_999_999_999_998
    assert one(["0.07", " 1 ", "+2.50", "-.5"], decimals=2)["total"].item() == 3.07


@pytest.mark.parametrize("decimals", [0, 1, 2, 9])
def test_text_is_a_number_of_so_many_decimals_or_refused(decimals):
    wholes, fractions = (
        ["", "0", "7", "-", "+3", "-12"],
        ["", ".", ".0", ".5", ".25", ".20", ".70" + "0" * 50, ".1234567891"],
    )
    for text in (whole + fraction for whole in wholes for fraction in fractions):
        frame = pd.DataFrame({"area": ["A", "B"], "x": [text, "1"]})
        number = text if any(digit in text for digit in "0123456789") else "none"
        if number != "none" and Decimal(number) == round(Decimal(number), decimals):
            table = tc.tabulate_magnitude(frame, "area", "x", decimals=decimals)
            assert table["total"].values.tolist() == [float(text), 1]
        else:
            with pytest.raises(TableError, match="row 1 of the data frame"):
                tc.tabulate_magnitude(frame, "area", "x", decimals=decimals)


def test_categories_as_in_frequency_tables():
    frame = pd.DataFrame(
        {
            "a": pd.Categorical(["l", "h"], categories=["h", "m", "l"]),
            "b": [3, 2],
            "c": ["z", "007"],
            "x": [1, 2],
        }
    )
    for dim in "abc":
        assert tc.tabulate_magnitude(frame, dim, "x")[dim].identical(tc.tabulate(frame, dim)[dim])
    table = tc.tabulate_magnitude(frame, "c", "x", categories={"c": ["007", "y", "z"]})
    assert table["total"].values.tolist() == [2, 0, 1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_as_data_frames(tmp_path, ending):
    path = tmp_path / f"firms [1]*'s.{ending}"
    frame = FIRMS.assign(area=pd.Categorical(FIRMS["area"], categories=["C", "B", "A"]))
    getattr(frame, f"to_{ending}")(path, index=False)
    options = {"contributor": "firm", "holding": "group", "request": "asked"}
    table = tc.tabulate_magnitude(path, ["area", "size"], "turnover", **options)
    order = ["C", "B", "A"] if ending == "parquet" else ["A", "B"]
    assert table["area"].values.tolist() == order
    expected = tc.tabulate_magnitude(
        FIRMS, ["area", "size"], "turnover", categories={"area": order}, **options
    )
    assert table.identical(expected)


def test_polars_as_pandas():
    options = {"contributor": "firm", "holding": "group", "request": "asked"}
    first = tc.tabulate_magnitude(pl.from_pandas(FIRMS), ["area", "size"], "turnover", **options)
    assert first.identical(tc.tabulate_magnitude(FIRMS, ["area", "size"], "turnover", **options))
    enum = pl.DataFrame(
        {"a": pl.Series(["l", "h"], dtype=pl.Enum(["h", "m", "l"])), "x": [1.5, 2.0]}
    )
    assert tc.tabulate_magnitude(enum, "a", "x", decimals=1)["total"].values.tolist() == [2, 0, 1.5]


def test_arrow_as_pandas():
    options = {"contributor": "firm", "holding": "group", "request": "asked"}
    table = tc.tabulate_magnitude(
        pa.Table.from_pandas(FIRMS), ["area", "size"], "turnover", **options
    )
    assert table.identical(tc.tabulate_magnitude(FIRMS, ["area", "size"], "turnover", **options))
    parts = pa.table(
        {"a": ["A", "A"], "x": pa.array([Decimal("1.10"), Decimal("2.05")]), "w": [1.5, 2]}
    )
    assert (
        tc.tabulate_magnitude(parts, "a", "x", sampling_weights="w", decimals=2)["total"].item()
        == 1.5 * 1.1 + 2 * 2.05
    )


@pytest.mark.parametrize(
    "kind", [">i4", ">f8", "float16", "longdouble", "uint8", "int64[pyarrow]", "Float32"]
)
def test_numbers_of_every_type(kind):
    assert one(pd.array([3, 1, 2], dtype=kind))["largest"].values.tolist() == [3, 2, 1, 0, 0]


def test_nested_columns(tmp_path):
    nested = {"a": [[1], [2], [1]], "c": [{"p": 1}, {"p": 2}, {"p": 1}], "b": list("sts"), "x": 1}
    pq.write_table(pa.Table.from_pandas(pd.DataFrame(nested)), tmp_path / "nested.parquet")
    for source in (pd.DataFrame(nested), pl.DataFrame(nested), tmp_path / "nested.parquet"):
        assert tc.tabulate_magnitude(source, "b", "x")["total"].values.tolist() == [2, 1]
        for variable, options in (("a", {}), ("b", {"contributor": "c"})):
            with pytest.raises(TableError, match=r"in row 1 of .* is of the type (list|dict)"):
                tc.tabulate_magnitude(source, variable, "x", **options)


def test_labels_that_are_dates(tmp_path):
    frame = pd.DataFrame(
        {"a": pd.to_datetime(["2020-01-01 00:00", "2020-01-02 03:00"]), "x": [1, 2]}
    )
    frame.to_parquet(tmp_path / "dates.parquet")
    expected = tc.tabulate(frame, "a")["a"].values.tolist()
    for source in (frame, pl.from_pandas(frame), tmp_path / "dates.parquet"):
        assert tc.tabulate_magnitude(source, "a", "x")["a"].values.tolist() == expected
    frame["a"] = frame["a"].dt.tz_localize("UTC")
    frame.to_parquet(tmp_path / "zone.parquet")
    with pytest.raises(TableError, match=r"'a' in .*zone\.parquet holds times in a time zone"):
        tc.tabulate_magnitude(tmp_path / "zone.parquet", "a", "x")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_ends_of_lines_and_files(tmp_path, end):
    path = tmp_path / "areas.csv"
    for last in ("", end):
        path.write_text(
            f'"area","x"{end}"A, b","1"{end}B,2{last}', encoding="utf-8-sig", newline=""
        )
        table = tc.tabulate_magnitude(path, "area", "x")
        assert dict(
            zip(table["area"].values.tolist(), table["total"].values.tolist(), strict=True)
        ) == {
            "A, b": 1,
            "B": 2,
        }
        path.write_text(f"area,x{end}A,5{last}", newline="")
        assert tc.tabulate_magnitude(path, "area", "x")["total"].values.tolist() == [5]


@pytest.mark.parametrize(
    "interruption",
    [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")],
)
def test_an_interrupted_query_is_an_interruption(monkeypatch, interruption):
    def stop(*_):
        raise interruption

    monkeypatch.setattr(database, "_parsed", stop)
    with pytest.raises(KeyboardInterrupt):
        tc.tabulate_magnitude(FIRMS, "area", "turnover")


def test_labels_of_a_csv_stay_text(tmp_path):
    path = tmp_path / "areas.csv"
    path.write_text(
        'area,"a ""b""",x\n007,p,1\n\n07,"q,r",2\n7,"s ""t""",3\n', encoding="utf-8-sig"
    )
    table = tc.tabulate_magnitude(path, ["area", 'a "b"'], "x")
    assert table["area"].values.tolist() == ["007", "07", "7"]
    assert table['a "b"'].values.tolist() == ["p", "q,r", 's "t"']
    assert table["total"].values.diagonal().tolist() == [1, 2, 3]


def test_names_are_never_part_of_a_query(tmp_path):
    name = 'a"; DROP TABLE records; --'
    frame = pd.DataFrame({name: ["x'", "y", "x'"], "select": ["p", "p", "q"], "SELECT": [1, 2, 4]})
    for source in (frame, tmp_path / "n.csv", tmp_path / "n.parquet"):
        if source is not frame:
            getattr(frame, f"to_{source.suffix[1:]}")(source, index=False)
        table = tc.tabulate_magnitude(source, [name, "select"], "SELECT", contributor="select")
        assert table["total"].values.tolist() == [[1, 4], [2, 0]]


def test_a_classifier_may_name_the_contributor():
    table = tc.tabulate_magnitude(FIRMS, "firm", "turnover", contributor="firm")
    assert table["contributors"].values.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "is missing"),
        ("", "is missing"),
        ("nan", "holds 'nan'"),
        ("inf", "holds 'inf'"),
        ("1e17", "holds '1e17'"),
        ("1e999999999", "holds '1e999999999'"),
        ("1e-3", "holds '0.001'"),
        ("\uff11\uff12", "holds '\uff11\uff12'"),
        ("0x10", "holds '0x10'"),
        ("1_000", "holds '1_000'"),
        ("1,5", "holds '1,5'"),
        ("1.25", "holds '1.25'"),
        ("9" * 400, "holds '999"),
        ("10000000000000001", "holds '10000000000000001'"),
    ],
)
def test_what_is_no_number_is_refused_with_its_row(tmp_path, value, shown):
    frame = of([1, 2, value])
    with pytest.raises(
        TableError,
        match=f"'x' must be plain numbers of at most 1 decimals.*row 3 of the data frame {shown}",
    ):
        tc.tabulate_magnitude(frame, "area", "x", decimals=1)
    path = tmp_path / "bad.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(TableError, match=f"row 3 of .*bad.csv {shown}"):
        tc.tabulate_magnitude(path, "area", "x", decimals=1)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), pd.NA, pd.NaT, np.nan])
def test_missing_values_of_every_type(value):
    frame = pd.DataFrame({"area": ["A", "B"], "x": pd.Series([1, value], dtype=object)})
    with pytest.raises(
        TableError, match=r"'x' must be plain numbers .* row 2 of the data frame is missing"
    ):
        tc.tabulate_magnitude(frame, "area", "x")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, 2e15, -2e15, 0.1 + 0.2])
def test_floats_that_are_no_whole_number_of_steps_are_refused(value, tmp_path):
    frame = of([1.0, value])
    with pytest.raises(
        TableError,
        match=r"'x' must be plain numbers of at most 0 decimals.*row 2 of the data frame",
    ):
        tc.tabulate_magnitude(frame, "area", "x")
    frame.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(TableError, match=r"row 2 of .*bad\.parquet"):
        tc.tabulate_magnitude(tmp_path / "bad.parquet", "area", "x")


def test_a_row_is_named_in_a_file_that_is_read_in_parts(tmp_path):
    rows = 300_000
    frame = pd.DataFrame({"area": ["A"] * rows, "x": ["1"] * rows})
    frame.loc[222_221, "x"] = "oops"
    frame.to_csv(tmp_path / "large.csv", index=False)
    frame.to_parquet(tmp_path / "large.parquet", index=False, row_group_size=5000)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(TableError, match=rf"row 222222 of .*{path.name} holds 'oops'"):
            tc.tabulate_magnitude(path, "area", "x")


@pytest.mark.parametrize(
    ("firms", "groups"),
    [
        (["f", "g", "f", "e"], ["G", None, "G", "G"]),
        ([1, 2, 1, 3], [2, None, 2, 2]),
        ([1.5, 2.5, 1.5, 3.5], [1.0, None, 1.0, 1.0]),
        ([2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 3], ["G", None, "G", "G"]),
        ([-(2**63), 2**63 - 1, -(2**63), 0], [2**63 - 1, None, 2**63 - 1, 2**63 - 1]),
    ],
)
def test_names_of_contributors_of_every_kind(tmp_path, firms, groups):
    kind = "Int64" if isinstance(groups[0], int) else None
    frame = of([1, 2, 4, 8], c=pd.Series(firms), h=pd.array(groups, dtype=kind))
    frame.to_parquet(tmp_path / "f.parquet")
    frame.to_csv(tmp_path / "f.csv", index=False)
    for source in (frame, tmp_path / "f.parquet", tmp_path / "f.csv"):
        largest = {
            roles: tc.magnitude.tabulate_margins(source, "area", "x", **dict(roles), largest=3)
            for roles in (
                (("contributor", "c"),),
                (("holding", "h"),),
                (("contributor", "c"), ("holding", "h")),
            )
        }
        found = [
            [table["largest"].values.ravel().tolist() for table in tables.values()]
            for tables in largest.values()
        ]
        assert found == [[[8, 1 + 4, 2]] * 2, [[1 + 4 + 8, 2, 0]] * 2, [[1 + 4 + 8, 2, 0]] * 2]


def test_labels_of_several_types():
    frame = pd.DataFrame(
        {"a": np.array([True, "x", 2, np.int64(2)], dtype=object), "x": [1, 2, 4, 8]}
    )
    table = tc.tabulate_magnitude(frame, "a", "x")
    assert dict(zip(table["a"].values.tolist(), table["total"].values.tolist(), strict=True)) == {
        "True": 1,
        "x": 2,
        "2": 4 + 8,
    }
    both = pd.DataFrame({"a": np.array([1, True, "1"], dtype=object), "x": 1})
    with pytest.raises(TableError, match="two labels of 'a' are both written '1', in row 3"):
        tc.tabulate_magnitude(both, "a", "x")


@pytest.mark.parametrize("role", ["contributor", "holding"])
@pytest.mark.parametrize(
    "values",
    [
        [7, 7.0, np.float64(7), Decimal(7), Decimal("7.0"), np.float32(7)],
        [1, True, 1.0, np.bool_(True), Decimal("1.00")],
        [0.5, np.float32(0.5), Decimal("0.50")],
        [2**60, float(2**60), Decimal(2**60)],
        [
            pd.Timestamp("2020-01-01"),
            np.datetime64("2020-01-01"),
            np.datetime64("2020-01-01", "ns"),
            datetime(2020, 1, 1),
            date(2020, 1, 1),
        ],
        [pd.Interval(0, 1), pd.Interval(0.0, 1.0)],
    ],
)
def test_one_name_of_several_types_is_not_that_of_several_contributors(role, values):
    for pair in permutations(values, 2):
        frame = of([50, 50, 1], c=pd.Series([*pair, "other"], dtype=object))
        if type(pair[0]) is type(pair[1]):
            table = tc.tabulate_magnitude(frame, "area", "x", **{role: "c"})
            assert table["contributors"].values.tolist() == [2]
            continue
        with pytest.raises(TableError, match=r"'c' in row 2 .* (is written as another|are equal)"):
            tc.tabulate_magnitude(frame, "area", "x", **{role: "c"})


def test_names_of_several_types_that_differ_are_several_contributors():
    names = [1, 1.5, 2**53 + 1, float(2**53), np.float32(0.1), True * 2, "3.0", 3, date(2020, 1, 2)]
    names += [pd.Timestamp("2020-01-02 12:00"), np.datetime64("2020-01-03"), pd.Period("2020", "Y")]
    frame = of([1] * len(names), c=pd.Series(names, dtype=object))
    table = tc.tabulate_magnitude(frame, "area", "x", contributor="c")
    assert table["contributors"].values.tolist() == [len(names)]


def test_sums_beyond_64_bits_are_refused():
    with pytest.raises(TableError, match=r"add up to more than 9\*10\*\*18 steps"):
        tc.tabulate_magnitude(of([10**15] * 9001), "area", "x")
    assert one([10**15, -(10**15), 3], contributor=["f", "f", "g"])["absolute_total"].item() == 3


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"area": ["A", None]}, {}, "a label is missing: 'area' in row 2"),
        ({"area": ["A", "  "]}, {}, "a label is missing: 'area' in row 2"),
        ({"area": ["A", "B\0"]}, {}, "in row 2 of the data frame holds U\\+0000"),
        (
            {},
            {"categories": {"area": ["B"]}},
            r"area=A in row 1 of the data frame is none of the categories \['B'\]",
        ),
        ({}, {"categories": {"area": ["A", "A"]}}, "hold one twice"),
        (
            {"c": ["f", None]},
            {"contributor": "c"},
            "'c' must name a contributor in every row: row 2 .* is missing",
        ),
        (
            {"c": ["f", "f"], "h": ["G", "H"]},
            {"contributor": "c", "holding": "h"},
            "one value of 'h': 'f' has 'G' in row 1 and 'H' in row 2",
        ),
        (
            {"c": ["f", "f"], "h": ["G", ""]},
            {"contributor": "c", "holding": "h"},
            "'f' has 'G' in row 1 and none in row 2",
        ),
        (
            {"c": ["f", "f"], "w": [2, 1.5]},
            {"contributor": "c", "sampling_weights": "w"},
            "one value of 'w': 'f' has 2 in row 1 and 1.5 in row 2",
        ),
        (
            {"w": [1, 0.5]},
            {"sampling_weights": "w"},
            "'w' must be numbers from 1 to 1000000: row 2 .* holds 0.5",
        ),
        ({"w": [1, None]}, {"sampling_weights": "w"}, "'w' must be numbers .* row 2 .* is missing"),
        ({"w": [1, -3]}, {"sampling_weights": "w"}, "row 2 of the data frame holds -3"),
        ({"r": [1, 2]}, {"request": "r"}, "'r' must be 0 or 1, or false or true: row 2 .* holds 2"),
        ({"r": [True, None]}, {"request": "r"}, "'r' must be 0 or 1, .* row 2 .* is missing"),
        (
            {},
            {"contributor": "none"},
            "no column 'none' in the data frame: the columns are 'area', 'x'",
        ),
        (
            {"x": [10**15, 1]},
            {},
            r"at most 10\*\*15 steps of 10\*\*-0: area=A holds 1000000000000001",
        ),
        ({"x": [10**15, -1]}, {}, r"area=A holds 1000000000000001"),
    ],
)
def test_data_that_are_refused(columns, options, message):
    with pytest.raises(TableError, match=message):
        tc.tabulate_magnitude(pd.DataFrame({**of([1, 2]), **columns}), "area", "x", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimals": -1}, "decimals must be a whole number from 0 to 9"),
        ({"decimals": 1.5}, "decimals must be a whole number"),
        ({"largest": 0}, "largest must be a whole number from 1 to 100"),
        ({"contributor": "x"}, "the column 'x' is given in two roles"),
        ({"contributor": "c", "holding": "c"}, "the column 'c' is given in two roles"),
        (
            {"sampling_weights": "w", "holding": "c"},
            "sampling_weights cannot be given with holding",
        ),
        ({"contributor": 3}, "a column must be named by text, got 3"),
        ({"categories": {"size": ["A"]}}, r"categories are declared for \['size'\]"),
        (
            {"categories": {"area": "AB"}},
            "the categories of 'area' must be a sequence of labels, got 'AB'",
        ),
        (
            {"categories": {"area": 5}},
            "the categories of 'area' must be a sequence of labels, got 5",
        ),
        ({"categories": {"area": ["A"], 3: []}}, r"categories are declared for \[3\]"),
        ({"categories": ["A"]}, r"categories must be sequences of labels by variable, got \['A'\]"),
    ],
)
def test_arguments_that_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        tc.tabulate_magnitude(of([1, 2], c=["f", "g"], w=[1, 2]), "area", "x", **options)


def test_dims_and_margins_that_are_refused():
    with pytest.raises(TableError, match="at least one classifying variable"):
        tc.tabulate_magnitude(FIRMS, [], "turnover")
    with pytest.raises(TableError, match="a variable stands twice"):
        tc.tabulate_magnitude(FIRMS, ["area", "area"], "turnover")
    with pytest.raises(TableError, match=r"\['rank'\] cannot name a variable"):
        tc.tabulate_magnitude(FIRMS.rename(columns={"area": "rank"}), "rank", "turnover")
    with pytest.raises(ParameterError, match=r"a margin must name variables of \['area'\]"):
        tc.magnitude.tabulate_margins(FIRMS, "area", "turnover", margins=["size"])
    for margins in ("area", 5):
        with pytest.raises(ParameterError, match="margins must be several, such as"):
            tc.magnitude.tabulate_margins(FIRMS, "area", "turnover", margins=margins)
    many = pd.DataFrame({"a": range(6000), "b": range(6000), "x": 1})
    with pytest.raises(TableError, match="would have 36000000 cells and take 2 GiB"):
        tc.tabulate_magnitude(many, ["a", "b"], "x")
    few = {name: list("st") for name in "abcdefghijk"}
    with pytest.raises(ParameterError, match="11 variables have 2,048 margins"):
        tc.magnitude.tabulate_margins(pd.DataFrame({**few, "x": [1, 2]}), list(few), "x")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "cannot read the ending '.txt'"),
        ("a.csv", None, "no such file"),
        ("a.csv", b"", "the file is empty; expected a header"),
        ("a.csv", b"area;x,y\nA;1,2\n", "',' and ';' stand in the header"),
        ("a.csv", b"area,\nA,1\n", "the header has no name for column 2"),
        ("a.csv", b"area,area\nA,1\n", "the header names 'area' twice"),
        ("a.csv", b"area,x\nA,1\nB,2,3\n", "line 3 has 3 fields, the header has 2"),
        ("a.csv", b"area,x\nA,1\nB\n", "line 3 has 1 fields, the header has 2"),
        ("a.csv", b"\narea,x\nA,1\n", "the first line must be the header, and is empty"),
        ("a.csv", b"\x1f\x8b\x08", "not a text file in UTF-8"),
        ("a.csv", b'area,x\nA,"1\n', "the record in line 2 has a quote that is never closed"),
        ("a.csv", b"area,x\nA,1\n\xff,2\n", "not a text file in UTF-8: .* position 11"),
        ("a.parquet", b"PAR1 and more", "not a readable Parquet file"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content or b"")
    with pytest.raises(FileFormatError, match=message):
        tc.tabulate_magnitude(path, "area", "x")


@pytest.mark.parametrize("source", [of([]), 7, [1, 2], FIRMS["area"]])
def test_sources_that_are_none(source):
    with pytest.raises(TableError, match=r"has no rows|cannot read a table"):
        tc.tabulate_magnitude(source, "area", "x")


def test_without_duckdb_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"install the extra 'magnitude'"):
        tc.tabulate_magnitude(FIRMS, "area", "turnover")


def test_a_large_file_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tc.tabulate_magnitude(FIRMS, "area", "turnover")
    assert list(tmp_path.iterdir()) == []
