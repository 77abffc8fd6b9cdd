"""Reading, checking and sampling frequency tables, and what is refused."""

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given
from scipy import stats

import taciturn as tc
from strategies import tables
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.tables.checks import same_categories

LONG = {"area": ["B", "B", "A"], "sex": ["m", "f", "m"], "count": [3, 1, 4]}
CSV = "area,sex,count\nB,m,3\nB,f,1\nA,m,4\n"
EXPECTED = [[3, 1], [4, 0]]  # rows B, A and columns m, f by first appearance; nobody is (A, f)
LARGEST = 2**53


@pytest.fixture
def csv(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def parquet(frame: pd.DataFrame | pl.DataFrame, path: Path) -> Path:
    if isinstance(frame, pl.DataFrame):
        frame.write_parquet(path)
    else:
        frame.to_parquet(path)
    return path


def labels(table: xr.DataArray) -> dict[str, list]:
    return {dim: table[dim].values.tolist() for dim in table.dims}


class TestRead:
    @pytest.mark.parametrize(
        "form", ["csv", "pandas", "polars", "parquet", "crlf", "byte order mark", "no last newline"]
    )
    def test_every_source_gives_the_same_table(self, form, csv, tmp_path):
        sources = {
            "csv": lambda: csv(CSV),
            "pandas": lambda: pd.DataFrame(LONG),
            "polars": lambda: pl.DataFrame(LONG),
            "parquet": lambda: parquet(pl.DataFrame(LONG), tmp_path / "table.parquet"),
            "crlf": lambda: csv(CSV.replace("\n", "\r\n")),
            "byte order mark": lambda: csv("\ufeff" + CSV),
            "no last newline": lambda: csv(CSV.rstrip()),
        }
        table = tc.read_table(sources[form]())
        assert table.values.tolist() == EXPECTED
        assert labels(table) == {"area": ["B", "A"], "sex": ["m", "f"]}
        assert (table.dtype, table.name, table.dims) == (np.int64, "count", ("area", "sex"))

    def test_a_path_may_be_text(self, csv):
        assert tc.read_table(str(csv(CSV))).values.tolist() == EXPECTED

    def test_variables_follow_the_columns_wherever_the_count_stands(self, csv):
        assert tc.read_table(csv("sex,n,area\nm,3,B\nf,1,B\n"), count="n").dims == ("sex", "area")

    def test_labels_of_a_csv_are_text(self, csv):
        table = tc.read_table(csv("code,count\n01,1\n1,2\nNA,3\nnan,4\n"))
        assert labels(table) == {"code": ["01", "1", "NA", "nan"]}

    def test_quoted_labels_may_hold_commas_and_quotes(self, csv):
        assert labels(tc.read_table(csv('area,count\n"A, north",1\n"B ""south""",2\n'))) == {
            "area": ["A, north", 'B "south"']
        }

    def test_whole_numbers_in_a_data_frame_stay_numbers(self):
        table = tc.read_table(pd.DataFrame({"age": [30, -1], "count": [1, 2]}))
        assert np.issubdtype(table.age.dtype, np.integer)
        assert labels(table) == {"age": [30, -1]}

    @pytest.mark.parametrize(
        ("text", "count"),
        [("2.0", 2), ("1e3", 1000), (" 7 ", 7), ("-0", 0), (str(LARGEST), LARGEST)],
    )
    def test_counts_written_in_other_ways(self, csv, text, count):
        assert tc.read_table(csv(f"area,count\nA,{text}\nB,1\n")).sel(area="A") == count

    @pytest.mark.parametrize(
        "column", [["1", "2"], [1.0, 2.0], [Decimal(1), Decimal(2)], pd.Categorical([1, 2])]
    )
    def test_counts_of_other_types(self, column):
        assert tc.read_table(
            pd.DataFrame({"area": ["A", "B"], "count": column})
        ).values.tolist() == [1, 2]

    def test_the_index_levels_of_a_grouped_frame_are_variables(self):
        people = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "f", "m"]})
        grouped = people.groupby(["area", "sex"]).size().to_frame("count")
        assert tc.read_table(grouped).values.tolist() == [[2, 0], [0, 1]]

    def test_a_data_array_is_checked_and_becomes_int64(self):
        table = tc.read_table(xr.DataArray([[1.0, 2.0]], dims=("area", "sex")))
        assert table.dtype == np.int64
        assert labels(table) == {"area": [0], "sex": [0, 1]}

    def test_a_lazy_data_array_is_computed_and_checked(self):
        lazy = xr.DataArray([1, -2], dims="area").chunk()
        with pytest.raises(TableError, match="area=1 holds -2"):
            tc.read_table(lazy)

    @given(tables())
    def test_long_form_and_back(self, table):
        frame = table.to_dataframe().reset_index()
        xr.testing.assert_identical(tc.read_table(frame), table)


class TestCategories:
    def test_declared_order_and_unobserved_categories_are_kept(self, csv):
        table = tc.read_table(csv(CSV), categories={"area": ["A", "B", "C"]})
        assert labels(table) == {"area": ["A", "B", "C"], "sex": ["m", "f"]}
        assert table.values.tolist() == [[4, 0], [3, 1], [0, 0]]

    @pytest.mark.parametrize("ordered", [False, True])
    @pytest.mark.parametrize("form", ["pandas", "parquet"])
    def test_a_pandas_categorical_declares_its_own(self, form, ordered, tmp_path):
        area = pd.Categorical(LONG["area"], categories=["C", "A", "B"], ordered=ordered)
        frame = pd.DataFrame({**LONG, "area": area})
        table = tc.read_table(frame if form == "pandas" else parquet(frame, tmp_path / "t.parquet"))
        assert labels(table)["area"] == ["C", "A", "B"]
        assert table.values.tolist() == [[0, 0], [4, 0], [3, 1]]

    def test_a_polars_enum_declares_its_own(self):
        frame = pl.DataFrame(LONG).with_columns(pl.col("area").cast(pl.Enum(["C", "A", "B"])))
        assert labels(tc.read_table(frame))["area"] == ["C", "A", "B"]

    def test_a_polars_categorical_does_not(self):
        frame = pl.DataFrame(LONG).with_columns(pl.col("area").cast(pl.Categorical))
        assert labels(tc.read_table(frame))["area"] == ["B", "A"]

    def test_numbers_may_be_declared_for_the_text_of_a_csv(self, csv):
        assert tc.read_table(
            csv("age,count\n1,5\n"), categories={"age": [0, 1]}
        ).values.tolist() == [0, 5]

    @pytest.mark.parametrize(
        ("declared", "error", "message"),
        [
            (
                {"area": ["A", "C"]},
                TableError,
                r"area=B in row 1 of .*table\.csv is none of the categories \['A', 'C'\]",
            ),
            (
                {"area": ["A", "B", "A"]},
                TableError,
                r"declared categories of 'area' hold one twice",
            ),
            ({"area": ["A", "B", None]}, TableError, r"label is missing: the categories of 'area'"),
            (
                {"region": ["A"]},
                ParameterError,
                r"declared for \['region'\], the variables are \['area', 'sex'\]",
            ),
            (
                {"area": "AB"},
                ParameterError,
                r"the categories of 'area' must be a sequence of labels, got 'AB'",
            ),
        ],
    )
    def test_bad_declarations(self, csv, declared, error, message):
        with pytest.raises(error, match=message):
            tc.read_table(csv(CSV), categories=declared)

    def test_a_data_array_brings_its_own(self):
        with pytest.raises(ParameterError, match="brings its own"):
            tc.read_table(xr.DataArray([1, 2], dims="area"), categories={"area": [0, 1, 2]})


class TestBadCounts:
    @pytest.mark.parametrize(
        ("count", "found"),
        [
            ("-2", "holds '-2'"),
            ("2.5", r"holds '2\.5'"),
            ("1.0000000000000000001", r"holds '1\.0000000000000000001'"),
            ("", "is missing"),
            ("NA", "is missing"),
            ("nan", "is missing"),
            ("inf", "holds 'inf'"),
            ("-Infinity", "holds '-Infinity'"),
            (str(LARGEST + 1), "holds '9007199254740993'"),
            ("1e999999999", "holds '1e999999999'"),
            ("9" * 400, "holds '99999"),
            ('"1,000"', "holds '1,000'"),
            ("1_000", "holds '1_000'"),
            ("0x10", "holds '0x10'"),
            ("many", "holds 'many'"),
            ("True", "holds 'True'"),
        ],
    )
    def test_in_a_file(self, csv, count, found):
        with pytest.raises(
            TableError, match=rf"whole numbers from 0 to 2\*\*53: area=B, sex=f {found}"
        ):
            tc.read_table(csv(f"area,sex,count\nA,f,1\nB,f,{count}\n"))

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    @pytest.mark.parametrize(
        ("counts", "found"),
        [
            ([1, -1], "holds -1"),
            ([1.0, 0.5], r"holds 0\.5"),
            ([1.0, float("nan")], "is missing"),
            ([1, None], "is missing"),
            ([1.0, float("inf")], "holds inf"),
            ([1, LARGEST + 1], "holds 9007199254740993"),
            ([1, 2**63 - 1], "holds 9223372036854775807"),
        ],
    )
    def test_in_a_frame(self, frame, counts, found):
        with pytest.raises(TableError, match=f"area=B {found}"):
            tc.read_table(frame({"area": ["A", "B"], "count": counts}))

    @pytest.mark.parametrize(
        "counts",
        [
            [True, False],
            [1 + 0j, 2],
            pd.to_datetime(["2020-01-01", "2020-01-02"]),
            pd.to_timedelta([1, 2]),
            [[1], [2]],
        ],
    )
    def test_of_another_kind(self, counts):
        with pytest.raises(TableError, match="area=A holds"):
            tc.read_table(pd.DataFrame({"area": ["A", "B"], "count": counts}))

    def test_a_nullable_column(self):
        frame = pd.DataFrame({"area": ["A", "B"], "count": pd.array([1, None], dtype="Int64")})
        with pytest.raises(TableError, match="area=B is missing"):
            tc.read_table(frame)

    @pytest.mark.parametrize(
        ("counts", "message"),
        [
            ([[1, 2], [3, -4]], "not be negative: area=B, sex=m holds -4"),
            ([[1, 2.5], [3, 4]], r"be whole numbers: area=A, sex=m holds 2\.5"),
            ([[1, 2], [np.nan, 4]], "not be missing: area=B, sex=f holds nan"),
            ([[np.inf, 2], [3, 4]], "be finite: area=A, sex=f holds inf"),
            (
                [[1, 2], [3, LARGEST + 1]],
                r"be at most 2\*\*53: area=B, sex=m holds 9007199254740993",
            ),
            ([[1, 2], [3, 2.0**60]], r"be at most 2\*\*53: area=B, sex=m"),
        ],
    )
    def test_in_a_data_array(self, counts, message):
        table = xr.DataArray(
            counts, dims=("area", "sex"), coords={"area": ["A", "B"], "sex": ["f", "m"]}
        )
        with pytest.raises(TableError, match=f"^census: counts must {message}"):
            tc.tables.check_table(table, name="census")


class TestBadRows:
    def test_a_cell_given_twice(self, csv):
        with pytest.raises(TableError, match="area=B, sex=m stands in more than one row"):
            tc.read_table(csv(CSV + "B,m,3\n"))

    def test_a_number_and_its_text_are_written_alike(self):
        people = pd.DataFrame({"area": [1, "1"], "count": [1, 2]})
        for read in (tc.read_table, lambda frame: tc.tabulate(frame[["area"]], "area")):
            with pytest.raises(
                TableError, match="two labels of 'area' are both written '1', in row 2"
            ):
                read(people)

    @pytest.mark.parametrize("blank", ["", "  "])
    def test_a_missing_label_in_a_file(self, csv, blank):
        with pytest.raises(TableError, match="label is missing: 'sex' in row 2"):
            tc.read_table(csv(f"area,sex,count\nA,f,1\nB,{blank},2\n"))

    @pytest.mark.parametrize(
        "column",
        [
            ["A", None],
            [1.0, np.nan],
            pd.array(["A", None], dtype="string"),
            pd.array([1, None], dtype="Int64"),
            pd.Categorical(["A", None]),
            pd.to_datetime(["2020-01-01", None]),
        ],
    )
    def test_a_missing_label_in_a_frame(self, column):
        with pytest.raises(TableError, match="label is missing: 'area' in row 2"):
            tc.read_table(pd.DataFrame({"area": column, "count": [1, 2]}))

    @pytest.mark.parametrize("name", ["chain", "draw", "replicate"])
    def test_reserved_names(self, csv, name):
        with pytest.raises(TableError, match=rf"\['{name}'\] cannot name a variable"):
            tc.read_table(csv(f"{name},count\nA,1\n"))

    def test_count_is_reserved_when_another_column_holds_the_counts(self, csv):
        with pytest.raises(TableError, match=r"\['count'\] cannot name a variable"):
            tc.read_table(csv("area,count,n\nA,1,2\n"), count="n")

    def test_no_column_of_counts(self, csv):
        with pytest.raises(
            TableError, match=r"no column 'count' of counts in .*: the columns are 'area', 'n'"
        ):
            tc.read_table(csv("area,n\nA,1\n"))

    def test_nothing_but_counts(self, csv):
        with pytest.raises(TableError, match="no classifying variable"):
            tc.read_table(csv("count\n1\n"))

    def test_no_rows(self, csv):
        with pytest.raises(TableError, match="is empty: it has no rows"):
            tc.read_table(csv("area,count\n"))

    def test_more_cells_than_memory_holds(self, csv):
        rows = "".join(f"{i},{i},{i},{i},{i},{i},1\n" for i in range(60))
        with pytest.raises(TableError, match=f"would have {60**6} cells"):
            tc.read_table(csv("a,b,c,d,e,f,count\n" + rows))

    @pytest.mark.parametrize(
        "source", [None, {"area": ["A"]}, [[1]], np.ones((2, 2)), b"t.csv", pl.LazyFrame(LONG)]
    )
    def test_what_is_no_table(self, source):
        with pytest.raises(TableError, match=f"cannot read a table from {type(source).__name__}"):
            tc.read_table(source)

    def test_bad_columns_of_a_frame(self):
        with pytest.raises(TableError, match="named by text, got 0"):
            tc.read_table(pd.DataFrame({0: ["A"], "count": [1]}))
        with pytest.raises(TableError, match="stands twice"):
            tc.read_table(pd.DataFrame([["A", "B", 1]], columns=["area", "area", "count"]))
        with pytest.raises(TableError, match="'area' names both a column and an index level"):
            tc.read_table(pd.DataFrame({"area": ["A"], "count": [1]}).set_index("area", drop=False))


class TestBadFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "the file is empty"),
            (b"\n \n", "the first line must be the header, and is empty"),
            (bytes(range(256)), "not a text file in UTF-8: a NUL in line 1, at position 0"),
            (b"area,count\nA\0,1\n", "not a text file in UTF-8: a NUL in line 2, at position 12"),
            (
                "area,count\nZürich,1\n".encode("latin-1"),
                "not a text file in UTF-8: .* position 12",
            ),
            ("area,count\nA,1\n".encode("utf-16"), "not a text file in UTF-8: it is in UTF-16"),
            ("area,count\nA,1\n".encode("utf-16-le"), "in UTF-8: a NUL in line 1, at position 1"),
            (b"area,count\nA,1\nB,2,3\n", "line 3 has 3 fields, the header has 2"),
            (b"area,count\nA,1,\nB,2,\n", "line 2 has 3 fields, the header has 2"),
            (b"area,sex,count\nA,f,1\nB,f", "line 3 has 2 fields, the header has 3"),
            (b'area,count\nA,1\n"B,2\n', "the record in line 3 has a quote that is never closed"),
            (b"area;sex,count\nA;1,2\n", "',' and ';' stand in the header, .*; say which: sep=','"),
            (b"area\tsex|count\nA\t1|2\n", r"'\\t' and '\|' stand in the header"),
            (
                b",area,count\n0,A,1\n1,B,2\n",
                "the header has no name for column 1; .* without its index",
            ),
            (b"area,area,count\nA,B,1\n", "the header names 'area' twice"),
        ],
    )
    def test_csv(self, csv, content, message):
        path = csv(content)
        with pytest.raises(FileFormatError, match=f"^{path}: .*{message}"):
            tc.read_table(path)

    @pytest.mark.parametrize("part", [slice(0, 0), slice(0, 100), slice(100, None)])
    def test_a_part_of_a_parquet_file(self, tmp_path, part):
        path = parquet(pl.DataFrame(LONG), tmp_path / "t.parquet")
        path.write_bytes(path.read_bytes()[part])
        with pytest.raises(FileFormatError, match=f"^{path}: not a readable Parquet file"):
            tc.read_table(path)

    def test_a_csv_that_says_it_is_parquet(self, tmp_path):
        path = tmp_path / "t.parquet"
        path.write_text(CSV)
        with pytest.raises(FileFormatError, match="not a readable Parquet file"):
            tc.read_table(path)

    @pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "folder.csv"])
    def test_no_such_file(self, tmp_path, name):
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(FileFormatError, match=f"{name}: no such file"):
            tc.read_table(tmp_path / name)

    @pytest.mark.parametrize("name", ["table.xlsx", "table"])
    def test_another_format(self, tmp_path, name):
        with pytest.raises(FileFormatError, match=r"accepted are '\.csv' and '\.parquet'"):
            tc.read_table(tmp_path / name)

    def test_a_file_that_may_not_be_read(self, csv, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        path = csv(CSV)
        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(FileFormatError, match="cannot be read: Permission denied"):
            tc.read_table(path)


class TestTabulate:
    PEOPLE = pd.DataFrame({"area": ["B", "A", "B"], "sex": ["m", "m", "m"], "age": [30, 40, None]})

    def test_counts_records_in_the_order_asked(self):
        table = tc.tabulate(self.PEOPLE, ["sex", "area"], categories={"sex": ["f", "m"]})
        assert labels(table) == {"sex": ["f", "m"], "area": ["A", "B"]}
        assert table.values.tolist() == [[0, 0], [1, 2]]

    def test_one_variable_as_text(self):
        assert tc.tabulate(self.PEOPLE, "area").values.tolist() == [1, 2]

    def test_from_a_file(self, csv):
        assert tc.tabulate(csv("area,sex\nB,m\nB,m\n"), ["area"]).values.tolist() == [2]

    @given(tables(max_count=4))
    def test_agrees_with_reading_the_counts(self, table):
        cells = table.to_dataframe().reset_index()
        people = cells.loc[cells.index.repeat(cells["count"]), list(table.dims)]
        declared = {dim: table[dim].values for dim in table.dims}
        xr.testing.assert_identical(
            tc.tabulate(people, list(table.dims), categories=declared), table
        )

    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            (
                ["area", "job"],
                r"no variable \['job'\] in the data frame: the columns are 'area', 'sex', 'age'",
            ),
            ([], "no variable"),
            (["area", "area"], r"stands twice in \['area', 'area'\]"),
            (["age"], "label is missing: 'age' in row 3"),
        ],
    )
    def test_bad_variables(self, dims, message):
        with pytest.raises(TableError, match=message):
            tc.tabulate(self.PEOPLE, dims)

    def test_no_records(self):
        with pytest.raises(TableError, match="is empty: it has no rows"):
            tc.tabulate(self.PEOPLE.iloc[:0], ["area"])


class TestCheckTable:
    def test_datasets_pass_unchanged(self):
        for name in tc.tables.DATASETS:
            xr.testing.assert_identical(
                tc.tables.check_table(tc.load_dataset(name)), tc.load_dataset(name)
            )

    def test_draws_only_where_they_are_allowed(self):
        table = xr.DataArray(np.ones((2, 3), dtype=int), dims=("draw", "area"))
        assert tc.tables.check_table(table, draws=True).dims == ("draw", "area")
        with pytest.raises(
            TableError, match=r"sample must be one table, but has the dimensions \('draw',\)"
        ):
            tc.tables.check_table(table, name="sample")

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ([1, 2], "must be an xarray.DataArray, got list"),
            (xr.DataArray(3), "no classifying variable"),
            (xr.DataArray([1, 2], dims="draw"), "no classifying variable"),
            (
                xr.DataArray(np.ones((0, 2)), dims=("area", "sex")),
                "is empty: its sizes are {'area': 0, 'sex': 2}",
            ),
            (
                xr.DataArray(np.ones((1, 2)), dims=("count", "sex")),
                r"\['count'\] cannot name a variable",
            ),
            (xr.DataArray([1, 2], dims=[0]), "a variable must be named by text, got 0"),
            (
                xr.DataArray([1, 2], coords={"area": ["A", "A"]}),
                "category 'A' of 'area' stands twice",
            ),
            (
                xr.DataArray([1, 2], coords={"area": [1.0, np.nan]}),
                "label of 'area' is missing, at position 1",
            ),
            (
                xr.DataArray([1, 2], coords={"area": np.array(["A", None])}),
                "label of 'area' is missing, at position 1",
            ),
            (xr.DataArray([True, False], dims="area"), "whole numbers, got the type bool"),
            (xr.DataArray(["1", "2"], dims="area"), "whole numbers, got the type <U1"),
            (
                xr.DataArray(
                    [[1, 2]], coords={"area": [0], "sex": [0, 1]}, dims=("area", "sex")
                ).stack(c=("area", "sex")),
                "'c' has a MultiIndex",
            ),
        ],
    )
    def test_what_is_no_table(self, table, message):
        with pytest.raises(TableError, match=message):
            tc.tables.check_table(table)

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (["A", "C"], "only one has 'B', 'C'"),
            (["B", "A"], "the order is another"),
        ],
    )
    def test_categories_that_differ(self, other, message):
        first, second = (xr.DataArray([1, 2], coords={"area": x}) for x in (["A", "B"], other))
        with pytest.raises(
            TableError,
            match=f"categories of 'area' differ between sample and population: {message}",
        ):
            same_categories(first, second, names=("sample", "population"))

    def test_text_and_numbers_differ_visibly(self):
        first, second = (xr.DataArray([1, 2], coords={"area": x}) for x in (["1", "2"], [1, 2]))
        with pytest.raises(TableError, match="only one has '1', '2', 1, 2"):
            same_categories(first, second, names=("sample", "population"))

    def test_variables_that_differ(self):
        first, second = xr.DataArray([1, 2], dims="area"), xr.DataArray([1, 2], dims="sex")
        with pytest.raises(
            TableError, match=r"sample has the variables \('area',\), population has \('sex',\)"
        ):
            same_categories(first, second, names=("sample", "population"))


class TestMargin:
    TABLE = xr.DataArray([[3, 1], [4, 0]], dims=("area", "sex"))

    @pytest.mark.parametrize(
        ("dims", "sums"), [("area", [3 + 1, 4 + 0]), (["sex"], [3 + 4, 1 + 0]), ([], 3 + 1 + 4)]
    )
    def test_sums(self, dims, sums):
        assert tc.margin(self.TABLE, dims).values.tolist() == sums

    def test_draws_are_kept(self):
        draws = xr.concat([self.TABLE, 2 * self.TABLE], dim="draw")
        assert tc.margin(draws, "sex").transpose("draw", "sex").values.tolist() == [[7, 1], [14, 2]]

    @pytest.mark.parametrize(("dtype", "count"), [("float32", 2**24), ("float16", 60_000)])
    def test_sums_of_short_floats_are_exact(self, dtype, count):
        short = xr.DataArray(np.array([[count, 1], [1, 2048]], dtype=dtype), dims=("a", "b"))
        assert tc.margin(short, "a").values.tolist() == [int(short[0, 0]) + 1, 2049]
        assert tc.margin(short, []).item() == int(short[0, 0]) + 2050

    @pytest.mark.parametrize("dims", ["age", ["area", "age"]])
    def test_unknown(self, dims):
        with pytest.raises(
            ParameterError, match=r"no variable \['age'\] in the table: it has \('area', 'sex'\)"
        ):
            tc.margin(self.TABLE, dims)


class TestDrawSample:
    TINY = xr.DataArray([[3, 2], [0, 1]], dims=("area", "sex"))

    def test_size_labels_and_bounds(self):
        religion = tc.load_dataset("area_by_religion")
        samples = tc.draw_sample(religion, fraction=0.1, replicates=5, random_seed=1)
        assert samples.dims == ("replicate", *religion.dims)
        assert samples.sum(religion.dims).values.tolist() == [round(0.1 * 2449)] * 5
        assert samples.dtype == np.int64
        assert bool(((samples >= 0) & (samples <= religion)).all())

    def test_one_sample_has_no_replicates(self):
        assert tc.draw_sample(self.TINY, size=2, random_seed=1).dims == ("area", "sex")

    def test_everyone(self):
        assert tc.draw_sample(self.TINY, fraction=1.0).equals(tc.tables.check_table(self.TINY))

    def test_the_seed_decides(self):
        first, again, other = (
            tc.draw_sample(self.TINY, size=3, replicates=20, random_seed=s) for s in (1, 1, 2)
        )
        assert first.equals(again)
        assert not first.equals(other)

    def test_a_generator_moves_on(self):
        rng = np.random.default_rng(1)
        first, second = (
            tc.draw_sample(self.TINY, size=3, replicates=20, random_seed=rng) for _ in range(2)
        )
        assert not first.equals(second)

    def test_distribution_against_every_possible_sample(self):
        draws = 20_000
        samples = tc.draw_sample(self.TINY, size=3, replicates=draws, random_seed=20260101)
        possible = [f for f in product(range(4), range(3), range(1), range(2)) if sum(f) == 3]
        ways = [comb(3, f[0]) * comb(2, f[1]) * comb(0, f[2]) * comb(1, f[3]) for f in possible]
        assert sum(ways) == comb(6, 3)
        drawn = [tuple(row) for row in samples.values.reshape(draws, 4).tolist()]
        observed = [drawn.count(f) for f in possible]
        assert sum(observed) == draws
        expected = [draws * way / comb(6, 3) for way in ways]
        assert stats.chisquare(observed, expected).pvalue > 1e-6

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "either fraction or size"),
            ({"fraction": 0.5, "size": 3}, "either fraction or size"),
            ({"fraction": 0}, "above 0 and at most 1, got 0"),
            ({"fraction": 1.1}, r"above 0 and at most 1, got 1\.1"),
            ({"fraction": float("nan")}, "got nan"),
            ({"fraction": 0.01}, "from 1 to 6, got 0"),
            ({"size": 7}, "from 1 to 6, got 7"),
            ({"size": 2.5}, r"got 2\.5"),
            ({"size": True}, "got True"),
            ({"size": 2, "replicates": 0}, "at least 1, got 0"),
        ],
    )
    def test_bad_sizes(self, options, message):
        with pytest.raises(ParameterError, match=message):
            tc.draw_sample(self.TINY, **options)

    def test_populations_too_large_to_sample_from(self):
        with pytest.raises(TableError, match=r"fewer than 10\*\*9"):
            tc.draw_sample(xr.DataArray([10**9, 0], dims="area"), size=1)


class TestDatasets:
    @pytest.mark.parametrize(
        ("name", "shape", "total"),
        [
            ("area_by_country_of_birth", (10, 17), 2449),
            ("area_by_mode_of_travel", (10, 11), 1885),
            ("area_by_religion", (10, 9), 2449),
            ("area_by_sex", (10, 2), 2449),
        ],
    )
    def test_sizes(self, name, shape, total):
        table = tc.load_dataset(name)
        assert table.shape == shape
        assert table.dims == tuple(name.split("_by_"))
        assert int(table.sum()) == total

    def test_unknown(self):
        with pytest.raises(
            ParameterError, match="no dataset 'area_by_age': there are area_by_country_of_birth"
        ):
            tc.load_dataset("area_by_age")


class TestPopulationContract:
    SAMPLE = xr.DataArray([1, 0, 2], coords={"area": ["A", "B", "C"]})
    POPULATION = xr.DataArray(
        [[[2, 1, 2], [1, 0, 4]]], dims=("chain", "draw", "area"), coords=SAMPLE.coords
    )

    def test_holds(self):
        blocked = xr.DataArray([False, False, False], coords=self.SAMPLE.coords)
        tc.fits.check_population(
            self.POPULATION, self.SAMPLE, population_size=5, structural_zeros=blocked
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda p: p.rename(area="region"), "has the dimensions"),
            (lambda p: p.astype(float), "must be integers, got float64"),
            (lambda p: p.assign_coords(area=["A", "B", "D"]), "categories of 'area' differ"),
            (
                lambda p: p - xr.DataArray([0, 0, 1], dims="area"),
                "below the sample at chain=0, draw=0, area=C",
            ),
            (
                lambda p: p + xr.DataArray([0, 1], dims="draw"),
                "sum to the population size 5 at chain=0, draw=1",
            ),
        ],
    )
    def test_broken(self, change, message):
        with pytest.raises(TableError, match=message):
            tc.fits.check_population(change(self.POPULATION), self.SAMPLE, population_size=5)

    def test_a_filled_structural_zero(self):
        blocked = xr.DataArray([False, True, False], coords=self.SAMPLE.coords)
        with pytest.raises(TableError, match="fills a structural zero at chain=0, draw=0, area=B"):
            tc.fits.check_population(
                self.POPULATION, self.SAMPLE, population_size=5, structural_zeros=blocked
            )
        other = blocked.assign_coords(area=["A", "X", "C"])
        with pytest.raises(TableError, match="differ between structural_zeros and sample"):
            tc.fits.check_population(
                self.POPULATION, self.SAMPLE, population_size=5, structural_zeros=other
            )
