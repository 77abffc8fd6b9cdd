"""``taciturn assess-many``, and records in databases."""

import io
import json
import sqlite3

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError

QUICK = ["--model", "chinese-restaurant", "--draws", "60", "--seed", "3", "--workers", "1"]


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """A sample of six areas, its records, and the sizes of the areas."""
    folder = tmp_path_factory.mktemp("census")
    counts = np.random.default_rng(1).poisson(30, (6, 2, 4))
    coords = {"area": range(1, 7), "sex": ["f", "m"], "age": range(1, 5)}
    population = xr.DataArray(counts, dims=("area", "sex", "age"), coords=coords)
    sample = tc.draw_sample(population, fraction=0.1, random_seed=1)
    sample[2] = 0
    rows = sample.to_series().rename("count").reset_index()
    rows.to_csv(folder / "sample.csv", index=False)
    people = rows.loc[rows.index.repeat(rows["count"])].drop(columns="count")
    people.to_csv(folder / "people.csv", index=False)
    sizes = population.sum(["sex", "age"]).to_series().rename("population_size").reset_index()
    sizes.to_csv(folder / "sizes.csv", index=False)
    return folder


def test_rows_are_those_of_the_function(census, run):
    files = [census / "sample.csv", "--over", "area", "--population-sizes", census / "sizes.csv"]
    status, printed, _ = run("assess-many", *files, *QUICK, "--by", "age", "--format", "csv")
    assert status == 0
    rows = pd.read_csv(io.StringIO(printed), keep_default_na=False, na_values=[""])
    risk = tc.assess_many(
        tc.read_table(census / "sample.csv"),
        over="area",
        population_size=tc.read_table(census / "sizes.csv", count="population_size"),
        estimator=tc.ChineseRestaurant(),
        draws=60,
        by="age",
        random_seed=3,
        workers=1,
        progressbar=False,
    )
    whole = rows[rows["variable"].isna()]
    assert whole["area"].tolist() == list(range(1, 7))
    assert whole["population_size"].tolist() == risk["population_size"].values.tolist()
    for end, quantile in (("lower", 0.025), ("median", 0.5), ("upper", 0.975)):
        expected = risk["R2"].sel(quantile=quantile).values
        assert whole[f"R2_{end}"].values == pytest.approx(expected, nan_ok=True)
    assert whole["tau1_mean"].values == pytest.approx(risk["tau1_mean"].values, nan_ok=True)
    assert whole["reason"].notna().tolist() == [area == 3 for area in whole["area"]]
    one = rows[(rows["area"] == 4) & (rows["category"] == 2)]
    assert one["variable"].tolist() == ["age"]
    expected = float(risk["R1_by_age_mean"].sel(area="4", age="2"))
    assert one["R1_mean"].tolist() == pytest.approx([expected])
    assert len(rows) == 6 + 6 * 4
    empty = float(risk["empty_by_age"].sel(area="4", age="2"))
    assert one["empty"].tolist() == pytest.approx([empty])
    whole = rows[(rows["area"] == 4) & rows["variable"].isna()]
    assert whole["R2_ess"].isna().all()  # of fits to single tables
    assert whole["empty"].isna().all()
    status, text, _ = run("assess-many", *files, *QUICK)
    assert text.startswith("5 of 6 tables assessed\n  area=3: TableError: the sample is empty")
    assert len(text.splitlines()) == 5 + 5 + 2
    assert text.splitlines()[-1].startswith(
        "Take care: there are too few draws for an interval (60"
    )
    *_, enough = run("assess-many", *files, *QUICK, "--draws", "400", "--format", "json")[:2]
    assert json.loads(enough)["problems"] == []


@pytest.mark.parametrize("by", [[], ["--by", "sex"]])
def test_nothing_is_drawn_of_a_census(census, run, tmp_path, by):
    sample = tc.read_table(census / "sample.csv")
    full = sample.sum(["sex", "age"]).to_series().rename("population_size")
    full[full > 0].reset_index().to_csv(tmp_path / "sizes.csv", index=False)
    people = pd.read_csv(census / "sample.csv").query("area != 3")
    people.to_csv(tmp_path / "full.csv", index=False)
    files = [tmp_path / "full.csv", "--over", "area", "--population-sizes", tmp_path / "sizes.csv"]
    status, printed, _ = run("assess-many", *files, *QUICK, *by, "--format", "json")
    found = json.loads(printed)
    assert (status, found["draws"], found["problems"]) == (0, 60, [])


def test_areas_that_have_a_size_and_no_counts(census, run, tmp_path):
    """They have a row, with the reason; of categories the size is not known."""
    sizes = (census / "sizes.csv").read_text() + "7,300\n"
    (tmp_path / "sizes.csv").write_text(sizes)
    given = [census / "sample.csv", "--over", "area", *QUICK, "--by", "sex", "--format", "csv"]
    status, printed, _ = run("assess-many", *given, "--population-sizes", tmp_path / "sizes.csv")
    assert status == 0
    rows = pd.read_csv(io.StringIO(printed), dtype=str, keep_default_na=False)
    whole = rows[rows["variable"] == ""].set_index("area")
    assert whole.index.tolist() == list("1234567")
    assert whole.loc["7", ["sample_size", "population_size"]].tolist() == ["0", "300"]
    assert "the sample is empty" in whole.loc["7", "reason"]
    own = rows[rows["variable"] == "sex"]
    assert len(own) == 14
    assert set(own["population_size"]) == set(own["sample_size"]) == {""}
    *_, alone = run("assess-many", *given, "--population-sizes", census / "sizes.csv")[:2]
    pd.testing.assert_frame_equal(
        pd.read_csv(io.StringIO(alone), dtype=str, keep_default_na=False),
        rows[rows["area"] != "7"].reset_index(drop=True),
    )


def test_a_store_and_records(census, run, tmp_path):
    given = ["--over", "area", "--variables", "sex,age", "-N", "400", *QUICK]
    given += ["--store", tmp_path / "store", "--output", tmp_path / "out.csv", "--force"]
    outputs = []
    for _ in range(2):
        assert run("assess-many", census / "people.csv", *given)[0] == 0
        outputs.append((tmp_path / "out.csv").read_text())
    assert outputs[0] == outputs[1]
    status, _, said = run("assess-many", census / "people.csv", *given, "--draws", "61")
    assert status == 1
    assert "another" in said
    assert (tmp_path / "out.csv").read_text() == outputs[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "area,year,population_size\n1,2020,300\n1,2021,301\n",
            "must have the columns 'area' and 'population_size' and no others",
        ),
        (
            "area,population_size\n1,300\n2,301\n",
            "has no size of area='3', one of 4 that lack one; it has sizes of",
        ),
        ("area,size\n1,300\n", "must have the columns 'area' and 'population_size'"),
        (
            "area,population_size\n1,300\n2,-5\n",
            "population sizes must be whole numbers from 0 to 2**53: area=2 holds '-5'",
        ),
        ("area,population_size\n1,300\n2,\n", "population sizes must be whole numbers from 0 to"),
        ("area,population_size\n1,3\n1,4\n", "area=1 stands in more than one row"),
    ],
    ids=["third column", "few areas", "other name", "negative", "missing", "area twice"],
)
def test_sizes_that_are_wrong(census, run, tmp_path, content, message):
    sizes = tmp_path / "sizes.csv"
    sizes.write_text(content)
    given = [census / "sample.csv", "--over", "area", "--population-sizes", sizes, *QUICK]
    status, printed, said = run("assess-many", *given)
    assert (status, printed) == (1, "")
    assert f"sizes.csv: {message}" in said
    assert "count" not in said
    assert "cell" not in said


def test_labels_are_numbers_here_and_text_there(census, run, tmp_path):
    sizes = pd.read_csv(census / "sizes.csv").astype({"area": float})
    sizes.to_parquet(tmp_path / "sizes.parquet")
    given = [census / "sample.csv", "--over", "area", *QUICK, "--format", "csv"]
    outputs = [
        run("assess-many", *given, "--population-sizes", path)
        for path in (census / "sizes.csv", tmp_path / "sizes.parquet")
    ]
    assert outputs[0] == outputs[1]


def test_areas_that_are_written_alike_have_no_size(census, run, tmp_path):
    sample = pd.read_csv(census / "sample.csv", dtype={"area": str})
    first = sample["area"].iloc[0]
    again = sample[sample["area"] == first].assign(area=f"{first}.0")
    pd.concat([sample, again]).to_csv(tmp_path / "sample.csv", index=False)
    given = [tmp_path / "sample.csv", "--over", "area", *QUICK]
    status, _, said = run("assess-many", *given, "--population-sizes", census / "sizes.csv")
    assert status == 1
    assert "labels of 'area' differ in nothing but decimals of 0" in said


def test_an_area_that_has_not_converged_is_a_status(census, run, monkeypatch):
    def unsure(*given, **named):
        risk = exact(*given, **named)
        risk["converged"][4] = False
        return risk

    exact = tc.assess_many
    monkeypatch.setattr(tc, "assess_many", unsure)
    given = ["--over", "area", "-N", "400", *QUICK, "--format", "csv"]
    status, printed, said = run("assess-many", census / "sample.csv", *given)
    assert status == 3
    assert "did not converge" in said
    assert len(printed.splitlines()) == 7
    status, printed, _ = run("assess-many", census / "sample.csv", *given[:-2])
    assert "Take care: of 1 of 6 rows, where 'converged' is False" in printed


def test_why_what_areas_share_was_not_learned_is_said(census, run, monkeypatch):
    from taciturn.diagnostics import Diagnostics

    monkeypatch.setattr(Diagnostics, "problems", property(lambda _: ["r-hat is 2"]))
    few, exact = tc.SharedProfile(draws=20, tune=20, chains=2), tc.assess_many
    monkeypatch.setattr(tc, "assess_many", lambda x, **how: exact(x, **how | {"estimator": few}))
    given = ["--over", "area", "-N", "400", "--draws", "40", "--workers", "1"]
    status, printed, said = run("assess-many", census / "sample.csv", *given)
    assert status == 3
    assert "r-hat is 2. More draws and tune of SharedProfile, the estimator, may help" in said
    assert "Take care: of 5 of 6 rows" in printed


def test_nothing_assessed_is_an_error(census, run):
    given = ["--over", "area", "-N", "5", *QUICK]
    status, printed, said = run("assess-many", census / "sample.csv", *given)
    assert status == 1
    assert "no table could be assessed" in said
    assert printed.startswith("0 of 6 tables assessed\n  area=1: ParameterError: population_size")


def test_options_that_contradict_each_other(census, run, tmp_path):
    table = [census / "sample.csv", "-N", "400", *QUICK]
    people = [census / "people.csv", "-N", "400", *QUICK]
    out = tmp_path / "out.csv"
    for words, status, message in (
        ([*people, "--over", "area", "--variables", "area,sex"], 2, "leave it out of --variables"),
        ([*table, "--over", "category", "--by", "age"], 2, "has a column 'category'"),
        ([*table, "--over", "R2_lower"], 2, "has a column 'R2_lower'"),
        ([*table, "--over", "area", "--by", "tau1_mean"], 2, "has a column 'tau1_mean'"),
        ([*table, "--over", "nope"], 1, "over must be one of the variables"),
        ([*table, "--over", "area", "--store", ""], 2, "is no name of a folder"),
        ([*table, "--over", "area", "--store", "-"], 2, "is no name of a folder"),
        ([*table, "--over", "area", "--store", out, "--output", out], 1, "is another output"),
        (["x.duckdb", "--over", "a", "-N", "9"], 2, "needs --table"),
    ):
        found = run("assess-many", *words)
        assert found[0] == status, found
        assert message in found[2]
    assert not out.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Ibis
def test_databases(census, run, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    expected = run("tabulate", census / "people.csv", "--variables", "area,sex,age")[1]
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql(f"CREATE TABLE people AS SELECT * FROM '{census / 'people.csv'}'")
    counted = ["--table", "people", "--variables"]
    assert run("tabulate", path, *counted, "area,sex,age") == (0, expected, "")
    pytest.importorskip("ibis")
    assert run("tabulate", f"duckdb://{path}", *counted, "area,sex,age") == (0, expected, "")
    sizes = ["--population-sizes", census / "sizes.csv"]
    given = ["--over", "area", *sizes, *QUICK, "--format", "csv"]
    status, printed, _ = run("assess-many", path, *counted, "sex,age", *given)
    assert status == 0
    sample = tc.tabulate(census / "people.csv", ["area", "sex", "age"])
    rows = pd.read_csv(io.StringIO(printed))
    sampled = [*sample.sum(["sex", "age"]).values.tolist(), 0]  # nobody is of the third area
    assert rows["sample_size"].tolist() == sampled
    known = pd.read_csv(census / "sizes.csv").set_index("area")["population_size"]
    assert rows["area"].tolist() == [1, 2, 4, 5, 6, 3]
    assert rows["population_size"].tolist() == known.loc[rows["area"]].tolist()


def test_databases_that_cannot_be_read(census, run, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql("CREATE TABLE others AS SELECT 1 AS a, 2 AS b")
        connection.sql("CREATE TABLE counts AS SELECT 1 AS a, 2 AS count")
        connection.sql("CREATE TABLE nobody AS SELECT 1 AS a LIMIT 0")
    other = tmp_path / "other.db"
    sqlite3.connect(other).close()
    other.write_text("no database")
    connection = duckdb.connect(str(path))
    connection.sql(f"CREATE VIEW elsewhere AS SELECT * FROM '{census / 'people.csv'}'")
    connection.close()
    here = set(tmp_path.iterdir())
    postgres = "postgres://me:hid/den@h:1/x?user=u&password=hidden"
    for words, message in (
        ([path, "--table", "people"], "has no table 'people'; it has 'counts'"),
        ([path, "--table", str(census / "people.csv")], "has no table"),
        ([path, "--table", "elsewhere"], "'elsewhere' cannot be read: "),
        ([f"duckdb://{tmp_path}/none.duckdb", "--table", "x"], "no such file"),
        ([f"sqlite://{tmp_path}/none.db", "--table", "x"], "no such file"),
        (
            [path, "--table", "counts"],
            f"the table 'counts' of {path}: has a column 'count', so that it is no microdata",
        ),
        ([path, "--table", "nobody"], f"the table 'nobody' of {path} is empty"),
        ([path, "--table", "nobody", "--sep", ";"], "does not apply to the table 'nobody' of"),
        ([other, "--table", "others"], "cannot be opened as a file of DuckDB"),
        ([postgres, "--table", "others"], "postgres://..."),
        (["nosuch://x", "--table", "others"], "nosuch://...: cannot be connected to"),
    ):
        status, printed, said = run("tabulate", *words, "--variables", "a")
        assert (status, printed) == (1, ""), said
        assert message in said
        assert "hidden" not in said
        assert "den@" not in said
    assert set(tmp_path.iterdir()) == here


def test_python_opens_no_address():
    with pytest.raises(FileFormatError, match="is an address"):
        tc.tabulate("postgres://host/census", ["a"])


def test_a_store_is_a_folder(census, run, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nothing")
    given = [census / "sample.csv", "--over", "area", "-N", "400", *QUICK, "--store"]
    for store, message in (
        ("file", "exists and is no folder"),
        ("link", "exists and is no folder"),
        ("no/store", "does not exist"),
    ):
        status, _, said = run("assess-many", *given, tmp_path / store)
        assert status == 1
        assert message in said
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("parquet", [False, True])
def test_areas_of_which_there_is_no_record(run, tmp_path, parquet):
    """They have a size, and so a row with the reason why there is no number."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "area": rng.integers(1, 4, 120),
            "sex": rng.choice(["f", "m"], 120),
            "age": rng.integers(0, 3, 120),
        }
    )
    path = tmp_path / ("people.parquet" if parquet else "people.csv")
    (people.to_parquet if parquet else people.to_csv)(path, index=False)
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("area,population_size\n" + "".join(f"{k},900\n" for k in range(1, 6)))
    given = ["--over", "area", "--variables", "sex,age", "--population-sizes", sizes, *QUICK]
    status, printed, said = run("assess-many", path, *given, "--format", "json")
    assert (status, said) == (0, "")
    rows = {str(row["area"]): row for row in json.loads(printed)["tables"]}
    assert list(rows) == ["1", "2", "3", "4", "5"]
    assert [row["sample_size"] for row in rows.values()][3:] == [0, 0]
    assert all("empty" in rows[label]["reason"] for label in "45"), rows["4"]["reason"]
    assert rows["1"]["R2_mean"] > 0
    assert "3 of 5 tables assessed" in run("assess-many", path, *given)[1]


def test_areas_whose_labels_are_no_numbers_beside_numbers(run, tmp_path):
    """A size of "unknown" beside areas 1 to 3 empties none of these."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"area": rng.integers(1, 4, 120), "sex": rng.integers(0, 2, 120)})
    people.to_parquet(tmp_path / "people.parquet", index=False)
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("area,population_size\nunknown,9\n01,900\n1,900\n2,900\n3,900\n")
    given = ["--over", "area", "--variables", "sex", "--population-sizes", sizes, *QUICK]
    status, printed, _ = run("assess-many", tmp_path / "people.parquet", *given, "--format", "json")
    rows = {str(row["area"]): row["sample_size"] for row in json.loads(printed)["tables"]}
    assert status == 0
    expected = people["area"].value_counts()
    assert rows == {"1": expected[1], "2": expected[2], "3": expected[3], "unknown": 0, "01": 0}


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_areas_that_are_weeks(run, tmp_path, unit):
    """Dates of every unit are those of the file of sizes, also in nanoseconds, of which
    NumPy makes whole numbers."""
    rng = np.random.default_rng(1)
    weeks = pd.date_range("2026-01-05", periods=3, freq="7D").astype(f"datetime64[{unit}]")
    people = pd.DataFrame({"week": weeks[rng.integers(0, 3, 120)], "sex": rng.integers(0, 2, 120)})
    people.to_parquet(tmp_path / "people.parquet", index=False)
    sizes = pd.DataFrame({"week": weeks, "population_size": 900})
    sizes.to_parquet(tmp_path / "sizes.parquet", index=False)
    given = ["--over", "week", "--variables", "sex", "--population-sizes"]
    given += [tmp_path / "sizes.parquet", *QUICK, "--format", "json"]
    status, printed, said = run("assess-many", tmp_path / "people.parquet", *given)
    assert (status, said) == (0, "")
    rows = json.loads(printed)["tables"]
    assert [row["population_size"] for row in rows] == [900] * 3
    assert sum(row["sample_size"] for row in rows) == 120
    assert all(row["week"].startswith("2026-01-") for row in rows)
