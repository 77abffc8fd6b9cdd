"""Relations of DuckDB: the tables are those of the same rows in a data frame."""

from decimal import Decimal

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.tables.sources import relations

ROWS = pd.DataFrame(
    {
        "area": ["B", "A", None, "B", "C"],
        "age": pd.array([30, 4, 30, None, 7], dtype="Int64"),
        "x": [1.5, 2.25, 0.0, 4.0, 8.75],
        'odd "name"; drop': ["p", "q", "p", "q", "p"],
    }
)


@pytest.fixture
def people():
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_pandas(ROWS))
        connection.execute("CREATE TABLE people AS SELECT * FROM rows")
        yield connection.table("people")


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("variables", [["area"], ["age", "area"], ['odd "name"; drop', "age"]])
def test_the_table_is_that_of_the_data_frame(people, variables, rows, monkeypatch):
    monkeypatch.setattr(relations, "_ROWS", rows)
    for missing in ("drop", "?"):
        found = tc.tabulate(people, variables, missing=missing)
        assert found.identical(tc.tabulate(ROWS, variables, missing=missing))
    with pytest.raises(TableError, match=r"label is missing: 'a.*' in row . of the relation"):
        tc.tabulate(people, ["area", "age"])


def test_totals_of_magnitudes(people):
    named = people.filter("area IS NOT NULL")
    found = tc.tabulate_magnitude(named, "area", "x", decimals=2)
    expected = tc.tabulate_magnitude(ROWS.dropna(subset="area"), "area", "x", decimals=2)
    assert found.identical(expected)


def test_what_a_query_returns(people):
    counted = people.aggregate('area, count(*) AS "count"').filter("area IS NOT NULL").order("area")
    assert tc.read_table(counted).to_series().to_dict() == {"A": 1, "B": 2, "C": 1}
    exact = people.project("'z' AS area, sum(x::DECIMAL(9, 3)) AS x")
    total = tc.tabulate_magnitude(exact, "area", "x", decimals=2)["total"].item()
    assert total == float(Decimal("16.5"))


def test_categories_of_an_enum_are_declared(people):
    kind = "ENUM('C', 'B', 'A', 'D')"
    declared = people.filter("area IS NOT NULL").project(f"area::{kind} AS area")
    assert tc.tabulate(declared, "area").to_series().to_dict() == {"C": 1, "B": 2, "A": 1, "D": 0}


def test_relations_that_cannot_be_read(people):
    with pytest.raises(TableError, match=r"the relation cannot be read: .*Could not convert"):
        tc.tabulate(people.project("area::INTEGER AS area"), "area")
    with pytest.raises(TableError, match=r"no variable \['job'\] in the relation"):
        tc.tabulate(people, "job")
    with pytest.raises(TableError, match="the relation is empty"):
        tc.tabulate(people.filter("false"), "area")
    with pytest.raises(ParameterError, match="sep is that of a CSV file"):
        tc.tabulate(people, "area", sep=";")


def test_variables_called_like_a_count(people):
    """Names in a database do not tell capitals apart."""
    renamed = people.filter("area IS NOT NULL").project('area AS "Count", area AS count_')
    expected = ROWS.dropna(subset="area").assign(Count=ROWS["area"], count_=ROWS["area"])
    found = tc.tabulate(renamed, ["Count", "count_"])
    assert found.identical(tc.tabulate(expected, ["Count", "count_"]))


def test_times_in_a_time_zone_are_refused():
    """Arrow leaves the zones out: two different times were one label."""
    with duckdb.connect() as connection:
        connection.sql(
            "CREATE TABLE times AS SELECT 1.0 AS w, t::TIMETZ AS t"
            " FROM (VALUES ('01:00:00+02'), ('01:00:00+05')) v(t)"
        )
        for given in ({}, {"sampling_weights": "w"}):
            with pytest.raises(TableError, match="'t' in the relation holds times in a time zone"):
                tc.tabulate(connection.table("times"), ["t"], **given)


def rows_without_an_age(relation):
    tc.tabulate(relation, ["area", "age"])


def weights_that_are_missing(relation):
    tc.tabulate(relation.project("'z' AS area, age AS w"), "area", sampling_weights="w")


def magnitudes_that_are_missing(relation):
    tc.tabulate_magnitude(relation.project("'z' AS area, age AS x"), "area", "x")


def magnitudes_with_too_many_decimals(relation):
    tc.tabulate_magnitude(relation.project("'z' AS area, x"), "area", "x", decimals=0)


def counts_that_are_missing(relation):
    tc.read_table(relation.project('area, age AS "count"'))


def infinite_dates(relation):
    tc.tabulate(relation.project("'infinity'::DATE AS day"), "day")


@pytest.mark.parametrize(
    "refused",
    [
        *(rows_without_an_age, weights_that_are_missing, magnitudes_that_are_missing),
        *(magnitudes_with_too_many_decimals, counts_that_are_missing, infinite_dates),
    ],
)
@pytest.mark.parametrize("rows", [1, 100])
def test_an_error_that_is_kept_leaves_the_connection_free(refused, rows, monkeypatch):
    """Notebooks keep the last error, whose frames kept the query open."""
    monkeypatch.setattr(relations, "_ROWS", rows)
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_pandas(ROWS))
        connection.execute("CREATE TABLE people AS SELECT * FROM rows")
        with pytest.raises(tc.TaciturnError) as kept:
            refused(connection.table("people"))
        assert connection.execute("SELECT count(*) FROM people").fetchall() == [(5,)], kept
