"""Microdata to a file that may be released: what the file holds is attacked by
means of its own."""

import csv
import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from hypothesis import HealthCheck, given, reject, settings, strategies as st
from scipy.optimize import linprog

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import AttackError, FileFormatError, ParameterError, TableError
from taciturn.publication.release_file import WRITERS


def firms(seed, sizes, records=120, *, decimals=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {name: generator.integers(0, size, records) for name, size in sizes.items()}
    ).astype(str)
    frame["firm"] = generator.integers(0, records // 2, records).astype(str)
    frame["sales"] = np.round(generator.lognormal(4, 1.5, records), decimals)
    return frame


def protect(frame, dims, rules, **options):
    fixed = {"contributor": "firm", "random_seed": 0, "progressbar": False, "time_limit": 10}
    return tc.protect_table(frame, dims, "sales", rules, **{**fixed, **options})


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ranges_from_file(rows, dims):
    """Least and most of each suppressed cell by what the file alone says, cells being
    at least 0: linear programs."""
    cells = [tuple(row[name] for name in dims) for row in rows]
    place = {cell: number for number, cell in enumerate(cells)}
    categories = [
        list(dict.fromkeys(label for label in column if label != "Total"))
        for column in zip(*cells, strict=True)
    ]
    left, right = [], []
    for cell in cells:  # each total of one variable is the sum over it
        for axis, label in enumerate(cell):
            if label == "Total":
                parts = [(*cell[:axis], other, *cell[axis + 1 :]) for other in categories[axis]]
                row = np.zeros(len(cells))
                row[place[cell]] = -1
                for part in parts:
                    row[place[part]] += 1
                left.append(row)
                right.append(0.0)
    known = [(float(row["sales"]),) * 2 if row["sales"] else (0, None) for row in rows]
    found = {}
    for number, row in enumerate(rows):
        if not row["sales"]:
            costs = np.zeros(len(cells))
            costs[number] = 1
            ends = [
                linprog(sign * costs, A_eq=np.array(left), b_eq=right, bounds=known)
                for sign in (1, -1)
            ]
            assert ends[0].status == 0
            most = np.inf if ends[1].status == 3 else -ends[1].fun  # 3: no limit
            found[cells[number]] = (ends[0].fun, most)
    return found


def check_file(path, protected, dims):
    """No suppressed value is in the file, and what is there leaves each as open as
    asked."""
    rows = rows_of(path)
    ranges = ranges_from_file(rows, dims)
    assert len(rows) == sum(table["status"].size for table in protected.tables.values())
    assert {row["status"] for row in rows} <= {"published", "suppressed"}
    true = protected.pattern.release.true_table
    for names, bounds in protected.pattern.audit.items():
        status = protected.pattern.status[names]
        totals = true.sum([dim for dim in true.dims if dim not in names]).transpose(*names)
        for at in np.ndindex(status.shape):
            labels = dict(
                zip(
                    names,
                    (str(status[name].values[i]) for name, i in zip(names, at, strict=True)),
                    strict=True,
                )
            )
            cell = tuple(labels.get(name, "Total") for name in dims)
            row = next(row for row in rows if tuple(row[name] for name in dims) == cell)
            assert (row["status"] == "suppressed") == (str(status.values[at]) != "safe")
            assert (row["sales"] == "") == (row["status"] == "suppressed")
            if status.values[at] == "primary":
                low, high = ranges[cell]
                value = float(totals.values[at])
                assert (
                    low - 1e-6
                    <= bounds["lower"].values[at]
                    <= value
                    <= bounds["upper"].values[at]
                    <= high + 1e-6
                )
                assert high - low >= 1 - 1e-6
            elif status.values[at] == "secondary":
                assert ranges[cell][1] - ranges[cell][0] > 1e-6


RULES = [tc.PPercent(10), tc.magnitude.MinimumFrequency(3)]


def test_a_file_gives_no_sensitive_cell_back(tmp_path):
    frame = firms(1, {"area": 4, "size": 3}, 45)
    protected = protect(frame, ["area", "size"], RULES)
    assert int((protected.pattern.status["area", "size"] == "primary").sum()) > 0
    tc.write_release(protected, tmp_path / "out.csv")
    check_file(tmp_path / "out.csv", protected, ["area", "size"])


def test_sensitive_cells_keep_their_protection_level():
    frame = firms(1, {"area": 4, "size": 3}, 45)
    protected = protect(frame, ["area", "size"], tc.PPercent(20))
    margins = tc.magnitude.tabulate_margins(frame, ["area", "size"], "sales", contributor="firm")
    checked = 0
    for names, table in margins.items():
        levels = tc.magnitude.protection_levels(table, tc.PPercent(20))
        sensitive = tc.sensitive_cells(table, tc.PPercent(20))["sensitive"]
        if sensitive.any():
            bounds = protected.pattern.audit[names]
            assert (bounds["upper"] >= table["total"] + levels).where(sensitive, other=True).all()
            assert (
                (bounds["lower"] <= np.maximum(table["total"] - levels, 0))
                .where(sensitive, other=True)
                .all()
            )
            checked += int(sensitive.sum())
    assert checked > 0


@pytest.mark.slow
def test_five_ways(tmp_path):
    dims = list("abcde")
    frame = firms(3, dict.fromkeys(dims, 2) | {"a": 3}, 250)
    rule = tc.magnitude.MinimumFrequency(3)
    protected = protect(frame, dims, rule, gap=0.5, time_limit=120)
    assert int((protected.pattern.status[tuple(dims)] == "primary").sum()) >= 3
    tc.write_release(protected, tmp_path / "out.csv")
    check_file(tmp_path / "out.csv", protected, dims)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10**6),
    areas=st.integers(2, 4),
    sizes=st.integers(2, 3),
    records=st.integers(15, 60),
)
def test_no_file_gives_a_sensitive_cell_back(tmp_path, seed, areas, sizes, records):
    frame = firms(seed, {"area": areas, "size": sizes}, records)
    try:
        protected = protect(frame, ["area", "size"], RULES)
    except AttackError:  # where single contributors know too much, there is no file
        reject()
    tc.write_release(protected, tmp_path / "out.csv", overwrite=True)
    check_file(tmp_path / "out.csv", protected, ["area", "size"])
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    for ending, reread in {"parquet": pd.read_parquet, "json": read_json_stat}.items():
        tc.write_release(protected, tmp_path / f"out.{ending}", overwrite=True)
        other = reread(tmp_path / f"out.{ending}")
        assert other["status"].tolist() == written["status"].tolist()
        assert other["sales"].isna().tolist() == (written["sales"] == "").tolist()
        kept = other["sales"].notna()
        assert other["sales"][kept].tolist() == written["sales"][kept].astype(float).tolist()


def read_json_stat(path):
    """A row a cell, in the order of the CSV file: cells first, totals after."""
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["version"], data["class"], data["label"]) == ("2.0", "dataset", "sales")
    labels = [data["dimension"][name]["category"]["index"] for name in data["id"]]
    assert data["size"] == [len(each) for each in labels]
    frame = pd.DataFrame(list(itertools.product(*labels)), columns=data["id"])
    frame["sales"], frame["status"] = (
        pd.array(data["value"], dtype="Float64").to_numpy(float, na_value=np.nan),
        data["status"],
    )
    totals = (frame[data["id"]] == "Total").to_numpy()
    order = sorted(range(len(frame)), key=lambda i: (totals[i].sum(), *(totals[i].tolist())))
    return frame.iloc[order].reset_index(drop=True)


def test_no_firm_that_is_alone_in_a_cell_works_out_another_one():
    frame = firms(1, {"area": 4, "size": 3}, 45)
    protected = protect(frame, ["area", "size"], RULES)
    margins = tc.magnitude.tabulate_margins(frame, ["area", "size"], "sales", contributor="firm")
    release, checked = protected.pattern.release, 0
    for names, table in margins.items():
        alone = (table["contributors"] == 1) & (protected.pattern.status[names] != "safe")
        for at in np.argwhere(np.atleast_1d(alone.values)):
            # Totals of which the firm is the only contributor, too, are its own.
            masks = {key: mask.copy() for key, mask in release.suppressed.items()}
            masks[names][tuple(at) if names else ()] = False
            known = tc.LinkedTables(release.true_table, release.released, suppressed=masks)
            for other, status in protected.pattern.status.items():
                asked = (status == "primary") & masks[other]
                if asked.any():
                    assert not tc.attacker_bounds(
                        known, margin=other, cells=asked, progressbar=False
                    )["disclosed"].any()
                    checked += 1
    assert checked > 0


def test_decimals_are_written_as_they_are(tmp_path):
    frame = firms(5, {"area": 3, "size": 3}, decimals=2)
    protected = protect(frame, ["area", "size"], RULES, decimals=2)
    tc.write_release(protected, tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    total = next(row["sales"] for row in rows if row["area"] == row["size"] == "Total")
    assert total == f"{frame['sales'].sum():.2f}"
    assert all(len(row["sales"].partition(".")[2]) == 2 for row in rows if row["sales"])


def test_nothing_sensitive_is_released_whole(tmp_path):
    frame = pd.DataFrame(
        {"area": list("AAAABBBB"), "firm": list("abcdabcd"), "sales": [5, 5, 4, 4, 6, 6, 5, 5]}
    )
    protected = protect(frame, "area", RULES)
    tc.write_release(protected, tmp_path / "out.csv")
    assert [row["sales"] for row in rows_of(tmp_path / "out.csv")] == ["18", "22", "40"]


def test_empty_cells_stay_published():
    frame = pd.DataFrame(
        {
            "a": list("xxxyyyzzz"),
            "b": list("pqrqrqpqr"),
            "firm": list("abcdefghi"),
            "sales": [9, 5, 6, 7, 8, 3, 4, 5, 6],
        }
    )
    protected = protect(frame, ["a", "b"], tc.Dominance(1, 0.9), contributor=None)
    table = protected.tables["a", "b"]
    assert table["status"].sel(a="y", b="p") == "published"
    assert table["value"].sel(a="y", b="p") == 0


def test_a_single_record_leaves_nothing_to_release():
    frame = pd.DataFrame({"a": ["x"], "firm": ["f"], "sales": [5]})
    rows = tc.publication.release_rows(protect(frame, "a", tc.magnitude.MinimumFrequency(2)))
    assert rows["status"].tolist() == ["suppressed", "suppressed"]
    assert rows["sales"].isna().all()


def test_negative_totals():
    frame = pd.DataFrame({"a": ["x", "y"], "firm": ["f", "g"], "sales": [-5, 9]})
    done = protect(frame, "a", tc.magnitude.MinimumFrequency(2))
    # The total gives either firm the other's profit, so that it is suppressed as well.
    assert all((table["status"] == "suppressed").all() for table in done.tables.values())
    assert np.isneginf(done.pattern.audit["a",]["lower"]).all()


@pytest.fixture(scope="module")
def small():
    return protect(firms(1, {"area": 4, "size": 3}, 45), ["area", "size"], RULES)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_only_a_file_that_says_so_tells_primary_cells_from_secondary_ones(small, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    tc.write_release(small, path)
    for word in (b"primary", b"secondary", b"safe"):
        assert word not in path.read_bytes()
    tc.write_release(small, tmp_path / f"internal.{ending}", internal=True)
    rows = tc.publication.release_rows(small, internal=True)
    assert rows.columns.tolist() == ["area", "size", "sales", "status_not_for_release"]
    status = [str(x) for each in small.pattern.status.values() for x in each.values.ravel()]
    assert rows["status_not_for_release"].tolist() == status
    content = (tmp_path / f"internal.{ending}").read_bytes()
    assert (b"Not for release" if ending == "json" else b"status_not_for_release") in content
    assert b"secondary" in content
    if ending != "json":
        read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending]
        found = read(tmp_path / f"internal.{ending}")
        assert found["status_not_for_release"].tolist() == status
        assert "status" not in found


def test_all_that_is_for_release_is_the_same_whatever_is_primary():
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    first = tc.suppress(table, table == 8, random_seed=0, progressbar=False)
    hidden = first.status["a", "b"] != "safe"
    second = tc.suppress(table, hidden, random_seed=0, progressbar=False)
    assert (second.status["a", "b"] == "primary").sum() == 4
    tables = [pattern.tables["a", "b"] for pattern in (first, second)]
    assert tables[0].identical(tables[1])
    assert pickle.dumps(tables[0].to_dict()) == pickle.dumps(tables[1].to_dict())
    assert (tables[0]["status"] == "suppressed").equals(hidden)
    assert tables[0]["value"].isnull().equals(hidden)
    assert repr(first.release) == repr(second.release)
    assert first.release._repr_html_() == second.release._repr_html_()
    bounds = [tc.attacker_bounds(p.release, progressbar=False) for p in (first, second)]
    assert bounds[0].identical(bounds[1])
    for shown in (repr(first), first._repr_html_()):
        assert "not for release" in shown


def test_counts_are_protected_from_who_knows_the_rule():
    counts = [("A", "x", 1), ("A", "y", 2), ("B", "x", 2), ("B", "y", 1), ("A", "z", 9)]
    counts += [("B", "z", 8), ("C", "x", 7), ("C", "y", 5), ("C", "z", 6)]
    persons = pd.DataFrame(
        [(a, b, 1) for a, b, number in counts for _ in range(number)],
        columns=["area", "age", "persons"],
    )
    rule = tc.magnitude.MinimumFrequency(3)
    options = {"random_seed": 0, "progressbar": False}
    done = tc.protect_table(persons, ["area", "age"], "persons", rule, knowledge=(1, 2), **options)
    audit = done.pattern.audit["area", "age"]
    primary = done.pattern.status["area", "age"] == "primary"
    assert int(primary.sum()) == 4
    assert (audit["n_values"].where(primary, 2) == 2).all()
    assert (done.pattern.knowledge["area", "age"]["lower"] == 1).all()
    with pytest.raises(ParameterError, match="knowledge must hold for the true value"):
        tc.protect_table(persons, ["area", "age"], "persons", rule, knowledge=(2, 2), **options)


def test_files_that_cannot_be_written(small, tmp_path):
    with pytest.raises(FileFormatError, match=r"ends in \.csv, \.parquet, \.json, \.xlsx$"):
        tc.write_release(small, tmp_path / "out.xls")
    with pytest.raises(FileFormatError, match="does not exist"):
        tc.write_release(small, tmp_path / "no" / "out.csv")
    with pytest.raises(ParameterError, match=r"no category, nor look like one: 'area' has '1'"):
        tc.write_release(small, tmp_path / "out.csv", total="1")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_nothing(small, tmp_path, monkeypatch):
    def fail(rows, protected, file):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setitem(WRITERS, ".csv", fail)
    with pytest.raises(FileFormatError, match="the disk is full"):
        tc.write_release(small, tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_column_called_status():
    frame = firms(1, {"area": 4})
    with pytest.raises(ParameterError, match="'status_not_for_release'"):
        protect(
            frame.rename(columns={"area": "status_not_for_release"}),
            "status_not_for_release",
            RULES,
        )
    with pytest.raises(ParameterError, match="must not hold 'status'"):
        protect(frame.rename(columns={"area": "status"}), "status", RULES)
    with pytest.raises(ParameterError, match="nor 'value' as a variable"):
        protect(frame.rename(columns={"area": "value"}), ["value"], RULES)


def run(*words):
    return CliRunner().invoke(cli, ["rules", *map(str, words)], catch_exceptions=True)


@pytest.fixture
def microdata(tmp_path):
    path = tmp_path / "firms.csv"
    firms(1, {"area": 4, "size": 3}, 45).assign(sales=lambda f: f["sales"].astype(int)).to_csv(
        path, index=False
    )
    return path


COMMON = ["--variables", "area,size", "--value", "sales", "--contributor", "firm"]


def test_the_command_protects(microdata, small, tmp_path):
    result = run(
        microdata, *COMMON, "--rule", "p%:10", "--rule", "freq:3", "--output", tmp_path / "out.csv"
    )
    assert result.exit_code == 0, result.output
    tc.write_release(small, tmp_path / "python.csv")
    by_cell = [
        {
            (row["area"], row["size"]): (row["sales"], row["status"])
            for row in rows_of(tmp_path / name)
        }
        for name in ("out.csv", "python.csv")
    ]
    assert by_cell[0] == by_cell[1]
    assert "primary" in result.output
    assert "PPercent(10)" in result.output


def test_the_command_without_output_judges_only(microdata):
    result = run(microdata, *COMMON, "--rule", "freq:3", "--top", 1)
    assert result.exit_code == 0, result.output
    assert "area x size: " in result.output
    assert "secondary" not in result.output
    assert result.output.count("MinimumFrequency(3)") <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*COMMON, "--rule", "nonsense:1"], "no rule 'nonsense:1'"),
        ([*COMMON, "--rule", "p%:0"], "the rule 'p%:0'"),
        (["--variables", "region", "--value", "sales", "--rule", "freq:3"], "region"),
        ([*COMMON, "--rule", "freq:3", "--output", "out.txt"], "ends in .csv"),
    ],
)
def test_bad_commands(microdata, words, message):
    result = run(microdata, *words)
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output


def test_the_output_is_not_the_input(microdata):
    before = microdata.read_bytes()
    result = run(microdata, *COMMON, "--rule", "freq:3", "--output", microdata)
    assert "is the file that is read" in str(result.exception)
    assert microdata.read_bytes() == before


DIMS = ["area", "size"]
BOTH = tuple(DIMS)


def margins_of(seed, **options):
    return tc.magnitude.tabulate_margins(
        firms(seed, {"area": 4, "size": 3}, 90), DIMS, "sales", **options
    )


def of_margins(tables):
    return tc.suppression.protect_margins(tables, RULES, random_seed=0, progressbar=False)


TRUE, OTHER = margins_of(1), margins_of(2)
AREA = ("area",)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (TRUE | {AREA: OTHER[AREA]}, r"the total of area=0 in the table of \('area',\) must be"),
        (TRUE | {(): OTHER[()]}, r"the total of the whole table in the table of \(\) must be"),
        (dict(reversed(TRUE.items())), r"over all variables must come first: .* margin of \(\)"),
        (
            {AREA: TRUE[AREA], BOTH: TRUE[BOTH]},
            r"must come first: \('area', 'size'\) is no margin of \('area',\)",
        ),
        (
            TRUE | {AREA: TRUE[AREA].assign_attrs(value="staff")},
            r"must be of one quantity: .* 'sales' with 0 decimals, \('area',\) of 'staff' with 0",
        ),
        (TRUE | {AREA: TRUE[AREA].assign_attrs(decimals=1)}, "must be of one quantity: .* with 1"),
        (TRUE | {AREA: TRUE["size",]}, r"of \('area',\) has the dimensions \('size',\)"),
        (TRUE | {AREA: TRUE[AREA].isel(area=[0, 1])}, "the categories of 'area' differ"),
    ],
)
def test_tables_that_are_no_margins_of_the_first(tables, message):
    with pytest.raises(TableError, match=message):
        of_margins(tables)


@pytest.mark.parametrize("tables", [{}, None, [TRUE[AREA]]])
def test_margins_that_are_no_mapping(tables):
    with pytest.raises(ParameterError, match="tables must be a mapping of margins"):
        of_margins(tables)


@pytest.mark.parametrize("sign", [1, -1])
def test_margins_of_records_are_margins_of_the_first(sign):
    """With levels, decimals, weights, negative values, and categories in any order."""
    frame = firms(3, {"area": 4, "size": 3}, 60, decimals=2).assign(w=1.5)
    frame.loc[::7, "sales"] *= sign
    levels = {"area": pd.DataFrame({"area": list("0123"), "region": list("nnss")})}
    tables = tc.magnitude.tabulate_margins(
        frame, DIMS, "sales", decimals=2, sampling_weights="w", hierarchies=levels
    )
    assert ("region", "size") in tables
    expected = of_margins(tables)
    backwards = {
        names: table
        if names == BOTH
        else table.isel({name: slice(None, None, -1) for name in names})
        for names, table in tables.items()
    }
    assert of_margins(backwards).pattern.cost == expected.pattern.cost
