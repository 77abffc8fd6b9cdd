"""Microdata: the order of categories, missing labels, sampling weights."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import taciturn as tc
from taciturn.errors import ParameterError, TableError

PEOPLE = pd.DataFrame(
    {
        "area": ["B", None, "A", "B", "C"],
        "sex": ["m", "f", "f", "m", " "],
        "w": [1.5, 2, 3, 4.25, 5],
    }
)


def cells(table) -> dict:
    return {cell: value for cell, value in table.to_series().to_dict().items() if value}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "B"], ["B", "a", "b"]),
        ([10, 9, -1], [-1, 9, 10]),
        (["10", "9", "-1", "9.5"], ["-1", "9", "9.5", "10"]),
        (["01", "1", "001", "2"], ["001", "01", "1", "2"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        ([2.5, 10.0], ["2.5", "10.0"]),
        ([True, False], ["False", "True"]),
    ],
)
def test_categories_are_sorted(labels, expected):
    for records in (pd.DataFrame({"area": labels}), pl.DataFrame({"area": labels})):
        assert tc.tabulate(records, "area")["area"].values.tolist() == expected
        totals = tc.tabulate_magnitude(pd.DataFrame({"area": labels, "x": 1}), "area", "x")
        assert totals["area"].values.tolist() == expected


@given(st.permutations(range(12)))
def test_the_order_of_the_records_does_not_show(order):
    records = pd.DataFrame({"area": list("ZABCZAZBBCCC"), "sex": list("mfmfmfmfffff")})
    table = tc.tabulate(records, ["area", "sex"])
    assert tc.tabulate(records.iloc[order], ["area", "sex"]).identical(table)


def test_rows_of_a_table_stay_in_order():
    rows = pd.DataFrame({"area": ["B", "A"], "count": [1, 2]})
    assert tc.read_table(rows)["area"].values.tolist() == ["B", "A"]


def test_declared_categories_are_not_sorted():
    records = pd.DataFrame({"area": pd.Categorical(["A", "B"], ["C", "B", "A"])})
    assert tc.tabulate(records, "area")["area"].values.tolist() == ["C", "B", "A"]


def test_periods_are_the_same_from_wherever(tmp_path):
    records = pd.DataFrame({"month": pd.PeriodIndex(["2020-01", "2021-05", None], freq="M")})
    records.to_parquet(tmp_path / "months.parquet")
    for source in (records, tmp_path / "months.parquet", pa.Table.from_pandas(records)):
        found = tc.tabulate(source, "month", missing="drop")
        assert found["month"].values.tolist() == ["2020-01", "2021-05"]


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]])
@pytest.mark.parametrize("kind", [float, Decimal, np.float32, "category"])
def test_zero_has_no_sign(zeros, kind):
    values = pd.Series([*zeros, 0.5])
    records = values.astype(kind) if kind == "category" else [kind(str(each)) for each in values]
    frame = pd.DataFrame({"a": pd.Series(records, dtype=None if kind == "category" else object)})
    for declared in (None, {"a": [-0.0, 0.5]}):
        found = tc.tabulate(frame, "a", categories=declared)
        assert found.to_series().to_dict() == {"0.0": 2, "0.5": 1}


def test_whole_numbers_of_other_types_of_arrow_are_exact():
    column = pa.array([2**60, 2**60 + 1, None], pa.int64())
    typed = pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "number", "x"), column)
    found = tc.tabulate(pa.table({"a": typed}), "a", missing="drop")
    assert found["a"].values.tolist() == [2**60, 2**60 + 1]


class TestMissing:
    def test_refused_by_default(self):
        with pytest.raises(TableError, match="a label is missing: 'area' in row 2"):
            tc.tabulate(PEOPLE, ["area", "sex"])

    def test_dropped(self):
        table = tc.tabulate(PEOPLE, ["area", "sex"], missing="drop")
        assert cells(table) == {("A", "f"): 1, ("B", "m"): 2}
        assert table["area"].values.tolist() == ["A", "B", "C"]  # which there is
        assert table.attrs == {"dropped": 2}

    def test_a_label(self):
        table = tc.tabulate(PEOPLE, ["area", "sex"], missing="?")
        one = {("A", "f"): 1, ("B", "m"): 2, ("?", "f"): 1, ("C", "?"): 1}
        assert cells(table) == one
        assert table["area"].values.tolist() == ["A", "B", "C", "?"]  # the last
        assert table["sex"].values.tolist() == ["f", "m", "?"]

    def test_a_code_among_codes(self):
        ages = pd.DataFrame({"age": pd.array([30, None, 4, None], dtype="Int64")})
        table = tc.tabulate(ages, "age", missing=-9)
        assert table.to_series().to_dict() == {4: 1, 30: 1, -9: 2}
        assert table["age"].values.tolist() == [4, 30, -9]

    def test_one_that_is_a_label_of_the_data_already(self):
        records = pd.DataFrame({"area": ["not stated", None, "Z"]})
        table = tc.tabulate(records, "area", missing="not stated")
        assert table.to_series().to_dict() == {"Z": 1, "not stated": 2}

    @pytest.mark.parametrize("declared", [["B", "A", "C"], ["?", "B", "A", "C"]])
    def test_beside_declared_categories(self, declared):
        table = tc.tabulate(PEOPLE, "area", categories={"area": declared}, missing="?")
        assert table["area"].values.tolist() == list(dict.fromkeys([*declared, "?"]))
        assert int(table.sel(area="?")) == 1

    @pytest.mark.parametrize("word", ["refuse", "drop"])
    def test_labels_that_are_called_like_what_is_done(self, word):
        records = pd.DataFrame({"area": [word, "A"]})
        assert tc.tabulate(records, "area", missing=word).sizes["area"] == 2
        with pytest.raises(TableError, match="is none of the categories"):
            tc.tabulate(records, "area", missing=word, categories={"area": ["A"]})

    @given(
        st.lists(st.tuples(*[st.sampled_from(["a", "b", None, " "])] * 2), min_size=1),
        st.sampled_from(["pandas", "polars", "csv"]),
    )
    def test_agrees_with_filling_them_in_first(self, tmp_path_factory, rows, kind):
        filled = pd.DataFrame(
            [["?" if x is None or x == " " else x for x in row] for row in rows], columns=["v", "w"]
        )
        frame = pd.DataFrame(rows, columns=["v", "w"], dtype=object)
        records = (
            frame
            if kind == "pandas"
            else pl.DataFrame(
                {name: frame[name].tolist() for name in frame},
                schema={"v": pl.String, "w": pl.String},
            )
        )
        if kind == "csv":
            records = tmp_path_factory.mktemp("d") / "r.csv"
            frame.to_csv(records, index=False)
        expected = tc.tabulate(filled, ["v", "w"])
        found = tc.tabulate(records, ["v", "w"], missing="?")
        assert cells(found) == cells(expected)
        whole = filled[(filled != "?").all(axis=1)]
        if len(whole):
            dropped = tc.tabulate(records, ["v", "w"], missing="drop")
            assert cells(dropped) == cells(tc.tabulate(whole, ["v", "w"]))
            assert dropped.attrs["dropped"] == len(filled) - len(whole)
        else:
            with pytest.raises(TableError, match=f"each of the {len(filled)} records lacks"):
                tc.tabulate(records, ["v", "w"], missing="drop")

    @pytest.mark.parametrize("missing", ["", " ", None, 1.5, True, ["x"]])
    def test_what_is_no_label(self, missing):
        with pytest.raises(ParameterError, match="missing must be 'refuse', 'drop', or the label"):
            tc.tabulate(PEOPLE, "area", missing=missing)


class TestWeights:
    def test_sums_of_weights(self):
        table = tc.tabulate(PEOPLE, ["area"], sampling_weights="w", missing="drop")
        assert table.name == "weighted_count"
        assert table.dtype == np.float64
        assert table.to_series().to_dict() == {"A": 3, "B": 1.5 + 4.25, "C": 5}
        assert table.attrs == {"dropped": 1}

    @given(st.lists(st.integers(10**6, 10**12), min_size=1, max_size=30))
    def test_sums_are_exact(self, steps):
        weights = [str(Decimal(step).scaleb(-6)) for step in steps]
        records = pd.DataFrame({"area": "A", "w": weights})
        found = tc.tabulate(records, "area", sampling_weights="w").item()
        assert found == float(Fraction(sum(steps), 10**6))

    def test_weights_that_no_sum_holds(self):
        """Of many records that are alike; the sum would wrap around below 0."""
        weights = pl.DataFrame({"area": ["A"] * 3_000_000, "w": [1e6] * 3_000_000})
        assert tc.tabulate(weights, "area", sampling_weights="w").item() == 3e12
        with pytest.raises(TableError, match="weights add up to more than 9,000,000,000,000"):
            tc.tabulate(pl.concat([weights] * 4), "area", sampling_weights="w")

    @pytest.mark.parametrize("weight", [0, 0.5, -1, np.nan, np.inf, 10**6 + 1, "1,5", "", None])
    def test_weights_that_are_none(self, weight):
        records = PEOPLE.assign(area="A", w=pd.Series([1, 2, 3, weight, 5], dtype=object))
        with pytest.raises(TableError, match=r"'w' must be sampling weights, .*: row 4"):
            tc.tabulate(records, "area", sampling_weights="w")

    def test_columns(self):
        with pytest.raises(ParameterError, match="'area' is given in two roles"):
            tc.tabulate(PEOPLE, "area", sampling_weights="area")
        with pytest.raises(TableError, match="no column 'v' of sampling weights"):
            tc.tabulate(PEOPLE, "area", sampling_weights="v")

    def test_a_weighted_table_is_no_sample(self):
        table = tc.tabulate(PEOPLE.assign(area="A"), "area", sampling_weights="w")
        with pytest.raises(TableError, match="give the sample as it was counted"):
            tc.LinearPool().fit(table, population_size=100)


def test_nanoseconds_are_kept_or_refused(tmp_path):
    moments = pl.Series([1, 2, 1001, 1001])
    times = pl.DataFrame({"a": moments.cast(pl.Datetime("ns"))})
    assert tc.tabulate(times, "a").values.tolist() == [1, 1, 2]
    whole = pl.DataFrame({"a": (moments * 1000).cast(pl.Time)})
    assert tc.tabulate(whole, "a").values.tolist() == [1, 1, 2]
    parts = pl.DataFrame({"a": moments.cast(pl.Time)})
    parts.write_parquet(tmp_path / "times.parquet")
    for records in (parts, parts.to_arrow(), tmp_path / "times.parquet"):
        with pytest.raises(TableError, match=r"'a' of .* cannot be read: .* would lose data"):
            tc.tabulate(records, "a")


def test_categoricals_of_polars_declare_nothing(tmp_path):
    for kind, expected in (
        (pl.Categorical, ["x", "z"]),
        (pl.Enum(["z", "y", "x"]), ["z", "y", "x"]),
    ):
        for letters in ("zxxz", "xzzx"):
            frame = pl.DataFrame({"a": pl.Series(list(letters), dtype=kind)})
            frame.write_parquet(tmp_path / "letters.parquet")
            for records in (frame, tmp_path / "letters.parquet"):
                assert tc.tabulate(records, "a")["a"].values.tolist() == expected


@pytest.mark.parametrize("labels", [["1", "10", "2", None], pd.array([1, 10, 2, None], "Int64")])
def test_numbers_are_sorted_by_size_before_the_category_of_missing_labels(labels):
    found = tc.tabulate(pd.DataFrame({"a": labels}), "a", missing="not stated")
    assert found["a"].values.tolist() == ["1", "2", "10", "not stated"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("number", [float, "float32", "Int64"])
def test_a_number_for_missing_labels_is_that_of_the_records(first, number):
    """pandas has floats where a whole number is missing."""
    codes = [None, 1, 9, 2, 9, None] if first else [1, 9, 2, 9, None, None]
    column = pd.array(codes, "Int64").astype("Int64" if number == "Int64" else "float64")
    found = tc.tabulate(pd.DataFrame({"a": pd.Series(column, dtype=number)}), "a", missing=9)
    assert found["a"].values.tolist() == ([1, 2, 9] if number == "Int64" else ["1.0", "2.0", "9.0"])
    assert found.values.tolist() == [1, 1, 4]


@pytest.mark.parametrize(
    ("codes", "missing", "categories", "expected"),
    [
        ([1.0, 2.0, None], 9, ["1.0", "2.0", "9"], {"1.0": 1, "2.0": 1, "9": 1}),
        ([1.0, 2.0, None], 9, [1.0, 2.0, 9], {"1.0": 1, "2.0": 1, "9": 1}),
        ([1.0, 2.0, None], 9, [1.0, 2.0], {"1.0": 1, "2.0": 1, "9.0": 1}),
        ([1.0, 9.0, None], 9, [9.0, 1.0], {"9.0": 2, "1.0": 1}),
        ([1, 2.5, None, 9], 9, None, {"1": 1, "2.5": 1, "9": 2}),
        (["a", 5, -9.0, None], -9, ["a", 5, "-9.0"], {"a": 1, "5": 1, "-9.0": 2}),
        ([1.5, None], 2**60 + 1, None, {"1.5": 1, str(2**60 + 1): 1}),
        ([True, False, True], 1, None, {"False": 1, "True": 2}),
        ([True, None, True], 1, None, {"True": 2, "1": 1}),
        (["1.0", None], 1, None, {"1.0": 1, "1": 1}),
    ],
)
def test_a_number_for_missing_labels_beside_others(codes, missing, categories, expected):
    dtype = float if all(x is None or type(x) is float for x in codes) else object
    frame = pd.DataFrame({"a": pd.Series(codes, dtype=dtype)})
    given = {} if categories is None else {"categories": {"a": categories}}
    found = tc.tabulate(frame, "a", missing=missing, **given)
    assert dict(zip(found["a"].values.tolist(), found.values.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "pair",
    [
        (1, 1.0),
        (True, 1),
        (2, Decimal("2.0")),
        (pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01")),
    ],
)
@pytest.mark.parametrize("declared", [False, True])
def test_one_label_of_several_types_is_refused(pair, declared):
    for first, second in (pair, pair[::-1]):
        frame = pd.DataFrame({"a": pd.Series(["x", first, "x", second], dtype=object)})
        given = {"categories": {"a": ["x", *map(str, pair)]}} if declared else {}
        with pytest.raises(TableError, match=r"in row 2 .* in row 4 of the data frame are equal"):
            tc.tabulate(frame, "a", **given)
        with pytest.raises(TableError, match="are equal"):
            tc.read_table(frame.assign(b=range(4), count=1))


def test_labels_of_several_types_that_differ_are_several():
    found = tc.tabulate(pd.DataFrame({"a": pd.Series([1, 2.0, "1.0", "2"], dtype=object)}), "a")
    assert found["a"].values.tolist() == ["1", "1.0", "2", "2.0"]
    for plain in ([1.0, 2.0], [True, False], ["1", "1.0"]):
        assert tc.tabulate(pd.DataFrame({"a": plain}), "a").values.tolist() == [1, 1]


@pytest.mark.parametrize("column", ["count", "weighted_count"])
def test_rows_of_a_table_are_no_people(column, tmp_path):
    rows = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "m", "f"], column: [30, 10, 40]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    message = f"has a column '{column}', so that it is no microdata but a table"
    for records in (rows, tmp_path / "t.csv"):
        with pytest.raises(TableError, match=message):
            tc.tabulate(records, ["area", "sex"])
        with pytest.raises(TableError, match=message):
            tc.assess_many(records, over="area", variables=["sex"], population_size=100)
        with pytest.raises(TableError, match=message):
            tc.swap_records(records, geography="area", rate=0.5)
