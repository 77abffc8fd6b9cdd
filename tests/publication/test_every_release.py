"""A release of every kind as a file of every format: whoever reads it back finds the
published values and totals, the status of each cell, and nothing of what is suppressed.
"""

import itertools
import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonstat_validator import validate_jsonstat

import taciturn as tc
from attackers.outsider import read_file
from taciturn import files
from taciturn.errors import FileFormatError, MissingDependencyError, ParameterError, TableError
from taciturn.files import RELEASE_ENDINGS
from taciturn.publication import formats

FEW = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
each_ending = pytest.mark.parametrize("ending", RELEASE_ENDINGS)


@pytest.fixture
def table():
    values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    coords = {"activity": ["farms", "shops", "banks"], "region": ["North", "West", "South"]}
    return xr.DataArray(values, coords=coords, name="count")


def read_back(release, folder, ending=".csv", **options):
    """Value, None where suppressed, of each cell by its labels other than totals."""
    path = folder / f"release{ending}"
    tc.write_release(release, path, **options, overwrite=True)
    if ending == ".json":
        assert validate_jsonstat(json.loads(path.read_text(encoding="utf-8")))
    cells = read_file(path)
    assert len({cell.labels for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.status == ("suppressed" if cell.value is None else "published")
    return {cell.labels: cell.value for cell in cells}


def cells_of(table, hidden=None):
    """The cells of one table, without those that are hidden."""
    at = itertools.product(*(range(size) for size in table.shape))
    return {
        frozenset((d, str(table[d].values[i])) for d, i in zip(table.dims, place, strict=True)): (
            None if hidden is not None and hidden.values[place] else float(table.values[place])
        )
        for place in at
    }


def with_totals(table, hidden=None):
    """The cells of a table and of all its margins, totals published."""
    found = cells_of(table, hidden)
    for number in range(1, table.ndim + 1):
        for summed in itertools.combinations(table.dims, number):
            found |= cells_of(table.sum(summed))
    return found


@st.composite
def tables(draw):
    """A table with labels that formats might take for something else."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    odd = ["=1+1", "01", "é", "NA", "a,b", "True", "1e3", "@x", '"q"']
    coords = {
        f"v{axis}": draw(st.permutations(odd).map(lambda labels, n=size: labels[:n]))
        for axis, size in enumerate(sizes)
    }
    seed = draw(st.integers(0, 2**32 - 1))
    counts = np.random.default_rng(seed).integers(0, 12, sizes)
    return xr.DataArray(counts, coords=coords, name="count")


@each_ending
@FEW
@given(table=tables(), minimum=st.integers(2, 8))
def test_a_suppressed_table_with_and_without_totals(tmp_path, ending, table, minimum):
    hidden = tc.perturbation.small_cells(table, minimum=minimum)
    release = tc.Suppression(table, hidden)
    assert read_back(release, tmp_path, ending) == with_totals(table, hidden)
    bare = tc.Suppression(table, hidden, totals=False)
    assert read_back(bare, tmp_path, ending) == cells_of(table, hidden)
    small = tc.perturbation.suppress_small_cells(table, minimum=minimum)
    assert read_back(small, tmp_path, ending) == cells_of(table, hidden)


@each_ending
@FEW
@given(table=tables())
def test_a_perturbed_table(tmp_path, ending, table):
    for released in (
        tc.random_round(table),
        tc.controlled_round(table),
        tc.add_noise(table, epsilon=1),
    ):
        one = released.isel(replicate=0)
        assert read_back(released, tmp_path, ending) == cells_of(one)
        assert read_back(one, tmp_path, ending) == cells_of(one)


@each_ending
def test_a_pattern(tmp_path, ending, table):
    """Its first pattern, with all totals published, is that of the guide."""
    pattern = tc.suppress(table, table == 8, random_seed=1, progressbar=False)
    hidden = pattern.status["activity", "region"] != "safe"
    assert int(hidden.sum()) == 4
    assert read_back(pattern, tmp_path, ending) == with_totals(table, hidden)
    linked = [("activity", "region"), "activity", "region", ()]
    pattern = tc.suppress(
        table, {linked[0]: table == 8}, linked=linked, random_seed=1, progressbar=False
    )
    expected = {}
    for names, status in pattern.status.items():
        margin = table.sum([dim for dim in table.dims if dim not in names])
        expected |= cells_of(margin, status != "safe")
    assert read_back(pattern, tmp_path, ending) == expected


@each_ending
def test_linked_tables_without_the_table(tmp_path, ending, table):
    year = xr.DataArray([1, 2], coords={"year": ["2020", "2021"]})
    cube = table * year
    margins = [("activity", "year"), "region"]
    hidden = table.sum("activity") < 50  # North with 45 and South with 44
    release = tc.LinkedTables(cube, margins, suppressed={"region": hidden})
    expected = cells_of(cube.sum("region"))
    expected |= cells_of(cube.sum(["activity", "year"]), hidden)
    assert read_back(release, tmp_path, ending) == expected
    assert list(expected.values()).count(None) == 2


@each_ending
def test_levels_are_in_the_column_of_their_variable(tmp_path, ending, table):
    """As are totals; there is no cell of all regions of a country twice."""
    above = table.assign_coords(country=("region", ["A", "A", "B"]))
    release = tc.Suppression(above, above == 8)
    expected = with_totals(table, table == 8)
    by_country = above.groupby("country").sum().transpose("activity", "country")
    for country in (by_country, by_country.sum("activity")):
        expected |= cells_of(country.rename(country="region"))
    assert read_back(release, tmp_path, ending) == expected
    alone = tc.LinkedTables(above, [("activity", "country"), ()])
    expected = cells_of(by_country.rename(country="region")) | cells_of(table.sum())
    assert read_back(alone, tmp_path, ending) == expected
    same = table.assign_coords(country=("region", ["West", "West", "B"]))
    with pytest.raises(ParameterError, match="'West' is of 'region' and 'country'"):
        tc.write_release(tc.Suppression(same, same == 8), tmp_path / "no.csv")


@each_ending
def test_rounding_and_recoding_with_their_totals(tmp_path, ending, table):
    rounded = tc.controlled_round(table).isel(replicate=0, drop=True)
    release = tc.Rounding(rounded, 3, method="random", totals=True)
    assert read_back(release, tmp_path, ending) == with_totals(rounded)
    exact = tc.Rounding(
        rounded, 3, method="random", totals=[table.sum("region")], exact_totals=True
    )
    expected = cells_of(rounded) | cells_of(table.sum("region"))
    assert read_back(exact, tmp_path, ending) == expected
    recoding = tc.GlobalRecoding(table, {"region": {"Rest": ["West", "South"]}})
    merged = table.assign_coords(region=["North", "Rest", "Rest"]).groupby("region").sum()
    assert read_back(recoding, tmp_path, ending) == with_totals(merged)


@each_ending
def test_magnitudes_keep_their_decimals(tmp_path, ending, table):
    hidden = table == 8
    release = tc.Suppression(table / 4, hidden, decimals=2)
    assert read_back(release, tmp_path, ending) == with_totals(table / 4, hidden)
    assert list(tc.publication.release_rows(release))[-2:] == ["value", "status"]
    assert list(tc.publication.release_rows(release, value="tons"))[-2:] == ["tons", "status"]


def test_whole_numbers_are_integers_and_labels_are_text(tmp_path, table):
    table = table.assign_coords(region=["=1+1", "-2", "03"])
    for ending in (".parquet", ".xlsx"):
        tc.write_release(tc.Suppression(table, table == 8), tmp_path / f"out{ending}")
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert str(frame["count"].dtype) == "Int64"
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    kinds = {tuple(cell.data_type for cell in row) for row in book.active.iter_rows(min_row=2)}
    assert kinds == {("s", "s", "n", "s")}  # a formula would be "f"; an empty number is "n"
    assert book.active["B2"].value == "=1+1"
    assert book.sheetnames == ["release"]


@each_ending
def test_dates_are_written_as_dates(tmp_path, ending):
    days = pd.to_datetime(["2020-01-01", "2021-01-01"])
    table = xr.DataArray([3, 1], coords={"day": days}, name="count")
    found = read_back(tc.Suppression(table, table < 2, totals=False), tmp_path, ending)
    assert {label.split()[0] for ((_, label),) in found} == {"2020-01-01", "2021-01-01"}


@each_ending
def test_a_grand_total_alone(tmp_path, ending, table):
    assert read_back(tc.LinkedTables(table, [()]), tmp_path, ending) == {frozenset(): 190}


def test_the_same_release_gives_the_same_bytes(tmp_path, table):
    release = tc.Suppression(table, table == 8)
    for ending in RELEASE_ENDINGS:
        for name in ("one", "two"):
            tc.write_release(release, tmp_path / f"{name}{ending}")
        one, two = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("one", "two"))
        assert one == two


@pytest.mark.parametrize("ending", files.TABLE_ENDINGS)
def test_a_release_is_read_as_a_table_if_all_of_it_is_published(tmp_path, ending, table):
    path = tmp_path / f"out{ending}"
    rounded = tc.random_round(table)
    tc.write_release(rounded, path)
    found = tc.read_table(path)
    assert found.dims == table.dims
    expected = rounded.isel(replicate=0).sel(
        activity=found["activity"].values, region=found["region"].values
    )
    assert np.array_equal(found, expected)
    tc.write_release(tc.Suppression(table, table == 8, totals=False), path, overwrite=True)
    with pytest.raises(TableError, match="is a release with suppressed cells"):
        tc.read_table(path)
    rows = pd.DataFrame({"status": ["married", "published"], "count": [1, 2]})
    assert tc.read_table(rows)["status"].values.tolist() == ["married", "published"]


# ---- what must not be released


@each_ending
def test_replicates_and_what_a_seed_has_drawn(tmp_path, ending, table):
    path = tmp_path / f"out{ending}"
    several, seeded = tc.random_round(table, replicates=3), tc.random_round(table, random_seed=1)
    with pytest.raises(ParameterError, match=r"3 replicates.* isel\(replicate=0\)"):
        tc.write_release(several, path)
    for drawn in (seeded, seeded.isel(replicate=0)):
        with pytest.raises(ParameterError, match="must not be released: drawn with random_seed"):
            tc.write_release(drawn, path)
    assert list(tmp_path.iterdir()) == []
    tc.write_release(seeded, path, internal=True)
    assert [cell.value for cell in read_file(path)] == seeded.values.ravel().tolist()
    if ending == ".json":
        data = json.loads(path.read_text())
        assert data["label"] == "count_not_for_release"
        assert data["note"][0].startswith("Not for release: drawn with random_seed")
    if ending == ".xlsx":
        assert openpyxl.load_workbook(path).sheetnames == ["not for release"]
    rows = tc.publication.release_rows(several, internal=True)
    assert list(rows) == ["replicate", "activity", "region", "count_not_for_release", "status"]
    assert rows["count_not_for_release"].tolist() == several.values.ravel().tolist()


def test_a_table_that_may_be_the_true_one(tmp_path, table):
    for true in (table, table.isel(region=0)):
        with pytest.raises(ParameterError, match="may be the true one"):
            tc.write_release(true, tmp_path / "out.csv")
    with pytest.raises(ParameterError, match="got DataFrame"):
        tc.write_release(table.to_dataframe(), tmp_path / "out.csv")


def test_the_status_of_the_office_names_totals_that_are_published(table):
    pattern = tc.suppress(table, table == 8, random_seed=1, progressbar=False)
    rows = tc.publication.release_rows(pattern, internal=True)
    assert list(rows)[-1] == "status_not_for_release"
    kinds = rows["status_not_for_release"].value_counts().to_dict()
    assert kinds == {"safe": 5 + 3 + 3 + 1, "secondary": 3, "primary": 1}


# ---- what cannot be written


class Nothing(tc.attack.Release):
    """A release that publishes no table, as it might be written by others."""

    system = None

    def publishes(self, names):
        raise NotImplementedError

    def shown(self):
        return tc.attack.Shown(["nothing"], [])


def test_a_release_of_nothing(tmp_path):
    with pytest.raises(ParameterError, match="must publish a table; Nothing has none"):
        tc.write_release(Nothing(), tmp_path / "out.csv")


@pytest.mark.parametrize("name", ["status", "value", "tons"])
def test_a_variable_with_the_name_of_a_column(tmp_path, name):
    table = xr.DataArray([3, 1], coords={name: ["x", "y"]}, name="count")
    for release in (tc.Suppression(table, table < 2), tc.random_round(table)):
        if name == "value":
            assert read_back(release, tmp_path)
            continue
        with pytest.raises(ParameterError, match=f"must not be called '{name}'.*columns are"):
            tc.write_release(release, tmp_path / "out.csv", value="tons")


def test_a_variable_that_is_called_suppressed():
    table = xr.DataArray([3, 1], coords={"suppressed": ["x", "y"]})
    with pytest.raises(TableError, match="must not be called 'suppressed'"):
        tc.perturbation.suppress_small_cells(table, minimum=2)


@pytest.mark.parametrize("ending", [".parquet", ".xlsx"])
def test_a_library_that_is_missing_is_named_before_any_work(tmp_path, ending, table, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=rf"out\{ending}.*install the extra '"):
        tc.write_release(tc.Suppression(table, table == 8), tmp_path / f"out{ending}")


def test_a_sheet_of_excel_has_an_end(tmp_path, table, monkeypatch):
    monkeypatch.setattr(formats, "_MOST_ROWS", 16)
    release = tc.Suppression(table, table == 8)
    with pytest.raises(FileFormatError, match="16 cells are too many for a sheet of Excel"):
        tc.write_release(release, tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(formats, "_MOST_ROWS", 17)
    tc.write_release(release, tmp_path / "out.xlsx")
