"""Tables of Ibis are counted by their engine, as any records are."""

import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import TableError

ibis = pytest.importorskip("ibis")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

PEOPLE = pd.DataFrame(
    {
        "area": ["B", "A", "B", "A", "C", "B"],
        "age": [3, 10, 3, 3, 10, 10],
        "weight": [1.5, 2.0, 1.5, 3.25, 1.0, 4.0],
    }
)


@pytest.fixture(params=["duckdb", "polars"])
def table(request, tmp_path):
    connection = getattr(ibis, request.param).connect()
    if request.param == "duckdb":
        PEOPLE.to_parquet(tmp_path / "people.parquet")
        yield connection.read_parquet(tmp_path / "people.parquet")
    else:
        yield connection.create_table("people", PEOPLE)
    connection.disconnect()


def test_counts_and_weights_are_those_of_the_data_frame(table):
    for given in ({}, {"sampling_weights": "weight"}, {"categories": {"area": list("CBA")}}):
        found = tc.tabulate(table, ["area", "age"], **given)
        assert found.identical(tc.tabulate(PEOPLE, ["area", "age"], **given))


def test_expressions_are_counted(table):
    found = tc.tabulate(table.filter(table.age < 10), ["area"])
    assert found.to_series().to_dict() == {"A": 1, "B": 2}


def test_only_groups_leave_the_engine(table, monkeypatch):
    rows = []
    original = type(table).to_pyarrow

    def watched(self, *given, **named):
        found = original(self, *given, **named)
        rows.append(found.num_rows)
        return found

    monkeypatch.setattr(type(table), "to_pyarrow", watched)
    tc.tabulate(table, ["area"])
    assert rows == [3]


def test_missing_labels_and_columns(table):
    gone = table.mutate(area=ibis.cases((table.age == 10, None), else_=table.area))
    with pytest.raises(TableError, match="a label is missing: 'area'"):
        tc.tabulate(gone, ["area"])
    found = tc.tabulate(gone, ["area"], missing="drop")
    assert (found.attrs["dropped"], int(found.sum())) == (3, 3)
    with pytest.raises(TableError, match=r"no variable \['town'\] in the Ibis table"):
        tc.tabulate(table, ["town"])
    with pytest.raises(TableError, match="weights, numbers from 1"):
        tc.tabulate(table.mutate(weight=table.weight / 2), ["area"], sampling_weights="weight")


def test_an_engine_that_fails_is_an_error_of_ours(table):
    broken = table.mutate(area=table.area.cast("int64"))
    if "polars" not in type(table.get_backend()).__module__:  # which makes it missing
        with pytest.raises(TableError, match="the Ibis table cannot be read"):
            tc.tabulate(broken, ["area"])


def test_times_in_a_time_zone_are_refused():
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE times (t TIMETZ, u TIME)")
    connection.raw_sql(
        "INSERT INTO times VALUES ('01:00:00+02', '01:00:00'), ('01:00:00+05', '02:00:00')"
    )
    times = connection.table("times")
    assert tc.tabulate(times, ["u"]).sizes["u"] == 2
    with pytest.raises(TableError, match="'t' in the Ibis table holds times in a time zone"):
        tc.tabulate(times, ["t"])
    connection.disconnect()
