"""The log as its users see it: tables in, verdicts out, on disk in between."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError, ParameterError, TableError

AGES = {"age": ["16-64", "66+"]}


def by_sex(f: float, m: float) -> pd.Series:
    return pd.Series({"f": f, "m": m}).rename_axis("sex")


def check(log: tc.ReleaseLog, table: object, **given: object) -> tc.release_log.Verdict:
    return log.check(table, progressbar=False, **given)


def test_a_difference_of_one_person_is_found_and_the_advice_is_enough(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48), name="all")
    verdict = check(log, by_sex(50, 48), where=AGES)
    assert not verdict.passed
    row = verdict.cells.iloc[0]
    assert (row["cell"], row["lower"], row["upper"], row["disclosed"]) == ("age=65", 1, 1, True)
    assert row["releases"] == "all"
    assert row["smallest"]
    kinds = [each.kind for each in verdict.advice]
    assert kinds == ["suppress", "round"]
    rounded = tc.Rounding(by_sex(51, 48).to_xarray(), 3)
    assert check(log, rounded, where=AGES).passed
    assert check(log, by_sex(np.nan, 48), where=AGES).passed


LETTERS = {"v": list("ABCDE"), "s": ["f", "m"], "w": ["x", "y", "z"]}


def by_letter(**counts: int) -> pd.Series:
    return pd.Series(counts).rename_axis("v")


def rounded(table: pd.Series | pd.DataFrame, base: int) -> tc.Rounding:
    array = table.to_xarray() if table.ndim == 1 else table.stack().to_xarray()
    return tc.Rounding(tc.perturbation.conventional_round(array, rounding_base=base)[0], base)


def followed(
    table: pd.Series | pd.DataFrame, advice: tc.release_log.Advice
) -> tuple[object, dict[str, dict[str, list[str]]]]:
    """The table after what the advice says, and its merged categories: only what has a
    row can be suppressed or merged.
    """
    if advice.kind == "round":
        return rounded(table, int(advice.what.removeprefix("to base "))), {}
    if advice.kind == "suppress":
        hidden = table.astype(float)
        for cell in advice.what.split("; "):
            labels = [part.split("=")[1] for part in cell.split(", ")]
            assert all(label in own for label, own in zip(labels, table.axes, strict=True))
            hidden.loc[tuple(labels) if len(labels) > 1 else labels[0]] = np.nan
        return hidden, {}
    name, groups = advice.what.split(": ")
    merged = {each: each.split(" and ") for each in groups.split("; ")}
    new = {label: each for each, labels in merged.items() for label in labels}
    turned = table.T if table.axes[0].name != name else table
    assert set(new) <= set(turned.index)
    added = turned.groupby(lambda label: new.get(label, label)).sum().rename_axis(name)
    return (added.T if turned is not table else added), {name: merged}


def kinds_that_are_enough(log: tc.ReleaseLog, table: pd.Series, **given: object) -> list[str]:
    """The kinds of advice, each of which is followed and found to be enough."""
    verdict = check(log, table, **given)
    for each in verdict.advice:
        changed, merge = followed(table, each)
        again = check(log, changed, merge=merge, advise=False, **given)
        assert not again.found, f"{each}: {again}"
    return [each.kind for each in verdict.advice]


def test_categories_without_a_row_are_not_rounded(tmp_path: Path) -> None:
    """They have none in the rounded table, either, and are known to hold nobody."""
    log = tc.ReleaseLog(tmp_path / "letters.duckdb", variables=LETTERS)
    log.add(by_letter(ABC=4, D=60, E=70), merge={"v": {"ABC": ["A", "B", "C"]}})
    some = by_letter(A=4, D=60, E=70)
    assert not check(log, rounded(some, 3), advise=False).passed
    assert kinds_that_are_enough(log, some) == []
    # A row of 0 is rounded, and can be merged.
    assert kinds_that_are_enough(log, by_letter(A=4, B=0, C=0, D=60, E=70)) == ["merge", "round"]


def test_categories_without_a_row_are_not_merged(tmp_path: Path) -> None:
    log = tc.ReleaseLog(tmp_path / "letters.duckdb", variables=LETTERS)
    log.add(by_letter(A=33, B=35, C=47, D=57, E=11))
    women = by_letter(A=21, C=46, D=45, E=10)
    verdict = check(log, women, where={"s": "f"})
    assert "no row" not in repr(verdict)
    assert "merge v: C and D and E" in [str(each) for each in verdict.advice]
    enough = kinds_that_are_enough(log, women, where={"s": "f"})
    assert enough == ["suppress", "merge", "round"]
    # Of two categories that have a row nothing is left to merge.
    assert "merge" not in kinds_that_are_enough(log, by_letter(C=46, D=45), where={"s": "f"})


def test_a_category_called_no_row_is_merged(tmp_path: Path) -> None:
    log = tc.ReleaseLog(
        tmp_path / "odd.duckdb", variables={"v": ["A", "B", "(no row)"], "s": ["f", "m"]}
    )
    log.add(pd.Series({"A": 33, "B": 47, "(no row)": 11}).rename_axis("v"))
    women = pd.Series({"A": 21, "B": 35, "(no row)": 10}).rename_axis("v")
    assert "merge" in kinds_that_are_enough(log, women, where={"s": "f"})


def test_rounded_counts_are_not_added_up(tmp_path: Path) -> None:
    """The sum of their intervals is not that of the rounded sum."""
    log = tc.ReleaseLog(tmp_path / "letters.duckdb", variables=LETTERS)
    log.add(by_letter(A=33, B=35, C=47, D=57, E=11))
    women = rounded(by_letter(A=21, B=35, C=46, D=45, E=10), 3)
    kinds = [each.kind for each in check(log, women, where={"s": "f"}, values=4).advice]
    assert kinds == ["suppress"]


@pytest.mark.parametrize("seed", range(12))
def test_each_advice_is_enough(tmp_path: Path, seed: int) -> None:
    """Of tables of some people, mostly without rows for categories that hold nobody."""
    generator = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            name: generator.choice(labels, 90, p=generator.dirichlet(np.ones(len(labels))))
            for name, labels in LETTERS.items()
        }
    )
    kept = sorted(generator.choice(LETTERS["v"], 4, replace=False))
    where = {"s": "f"} if seed % 2 else {"s": "f", "v": kept}
    some = people[(people["s"] == "f") & people["v"].isin(where.get("v", LETTERS["v"]))]
    log = tc.ReleaseLog(tmp_path / "letters.duckdb", variables=LETTERS)

    def table(of: pd.DataFrame) -> pd.Series | pd.DataFrame:
        return pd.crosstab(of["v"], of["w"]) if seed % 3 == 0 else of.groupby("v").size()

    log.add(table(people), name="all")
    asked = table(some).reindex(LETTERS["v"], fill_value=0) if seed % 4 == 0 else table(some)
    kinds_that_are_enough(log, asked, where=where, threshold=5)


def test_a_table_that_was_checked_can_be_added_and_is_then_known(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48), name="all")
    verdict = check(log, by_sex(50, 48), where=AGES, advise=False)
    assert log.add(by_sex(50, 48), where=AGES, name="again", after=verdict) == 2
    assert check(log, by_sex(50, 48), where=AGES).passed  # nothing new
    assert list(log.releases["name"]) == ["all", "again"]
    assert "2 releases, 4 published counts" in repr(log)


def test_a_verdict_is_for_one_table_and_one_state_of_the_log(log: tc.ReleaseLog) -> None:
    verdict = check(log, by_sex(51, 48))
    with pytest.raises(ParameterError, match="that on another"):
        log.add(by_sex(51, 47), after=verdict)
    log.add(by_sex(20, 20), where={"area": "N1"})
    with pytest.raises(ParameterError, match="a release was added since"):
        log.add(by_sex(51, 48), after=verdict)
    assert len(log.releases) == 1


def test_a_table_that_contradicts_the_log_is_not_logged(log: tc.ReleaseLog) -> None:
    """Every later check would fail. Counts that no table has at once are found, too."""
    log.add(by_sex(51, 48), name="all")
    with pytest.raises(TableError, match="is published as 52"):
        log.add(by_sex(52, 48), name="revised")
    log.add(by_sex(np.nan, 40), where=AGES, name="not 65")
    with pytest.raises(TableError, match="contradict"):
        log.add(by_sex(3, 9), where={"age": "65"}, name="65")
    assert list(log.releases["name"]) == ["all", "not 65"]
    assert check(log, by_sex(3, 8), where={"age": "65"}).found


def test_what_others_add_meanwhile_is_not_contradicted(log: tc.ReleaseLog, monkeypatch) -> None:
    """Of two processes that look at once one looks again."""
    other, every, looked = tc.ReleaseLog(log.path), type(log._database).all, []

    def meanwhile(self):
        found = every(self)
        if self is log._database and not looked:
            looked.append("")
            other.add(by_sex(51, 48), name="other")
        return found

    monkeypatch.setattr(type(log._database), "all", meanwhile)
    with pytest.raises(TableError, match="is published as 52"):
        log.add(by_sex(52, 48))
    looked.clear()
    with pytest.raises(ParameterError, match="'other' already"):
        log.add(by_sex(51, 48), name="other")


def test_a_release_over_a_variable_and_its_level_is_refused(tmp_path: Path) -> None:
    areas, regions = list("ABCD"), list("NNSS")
    levels = {"region": ("area", regions)}
    log = tc.ReleaseLog(tmp_path / "p.duckdb", variables={"area": areas}, levels=levels)
    counts = np.array([[5, 0], [6, 0], [0, 9], [0, 8]])
    table = xr.DataArray(
        counts, dims=("area", "region"), coords={"area": areas, "region": ["N", "S"]}
    )
    for given in (table, tc.Suppression(table, suppressed=table > 8)):
        with pytest.raises(TableError, match="'area' and a level above it"):
            log.add(given, name="both")
    assert len(log.releases) == 0


def test_a_pattern_that_is_not_for_release_is_refused(log: tc.ReleaseLog) -> None:
    from dataclasses import replace

    table = by_sex(51, 48).to_xarray()
    pattern = tc.suppress(table, table == 48, linked=["sex"], random_seed=1, progressbar=False)
    log.add(pattern, name="sex")
    doubtful = replace(pattern, unproved_in_all=1)
    for ask in (log.check, log.add):
        with pytest.raises(ParameterError, match="must not be released: 1 primary cells of"):
            ask(doubtful)


def test_what_was_logged_by_mistake_is_taken_out(log: tc.ReleaseLog) -> None:
    """It hides what gives away what it gives away; who checked before checks again."""
    log.add(by_sex(51, 48), name="all")
    log.add(by_sex(50, 48), where=AGES, name="never released")
    before = check(log, by_sex(50, 48), where=AGES, advise=False)
    assert before.passed
    assert log.remove("never released") == 2
    assert list(log.releases["name"]) == ["all"]
    assert "1 release, 2 published counts" in repr(tc.ReleaseLog(log.path))
    with pytest.raises(ParameterError, match="a release was removed since"):
        log.add(by_sex(50, 48), where=AGES, after=before)
    after = check(log, by_sex(50, 48), where=AGES, advise=False)
    assert after.findings[0].lower == after.findings[0].upper == 1
    with pytest.raises(ParameterError, match="there is no release 'never released', but 'all'"):
        log.remove("never released")
    assert log.add(by_sex(20, 18), where={"age": "66+"}, name="never released") == 3


def test_what_a_table_publishes_itself_is_found(log: tc.ReleaseLog) -> None:
    verdict = check(log, by_sex(51, 4))
    assert verdict.cells["releases"].tolist() == [""]
    assert "by itself" in repr(verdict)


def test_ways_to_hold_a_table_say_the_same(log: tc.ReleaseLog) -> None:
    generator = np.random.default_rng(1)
    people = pd.DataFrame({"sex": generator.choice(["f", "m"], 200)})
    people["area"] = generator.choice(["N1", "N2", "S1", "S2"], 200)
    people.loc[:3, ["sex", "area"]] = ["f", "S2"]
    crossed = pd.crosstab(people["area"], people["sex"])
    groups = people.groupby(["area", "sex"]).size()
    long = groups.rename("count").reset_index()
    array = crossed.stack().to_xarray()
    with_totals = pd.crosstab(people["area"], people["sex"], margins=True)
    found = [
        check(log, table, threshold=50, advise=False).cells
        for table in (crossed, groups, long, array)
    ]
    found.append(check(log, with_totals, threshold=50, advise=False, total="All").cells)
    found.append(check(log, tc.tabulate(people, ["area", "sex"]), threshold=50, advise=False).cells)
    assert len(found[0]) > 0
    for other in found[1:]:
        order = ["cell", "lower", "upper"]
        one = found[0][order].sort_values("cell").reset_index(drop=True)
        assert one.equals(other[order].sort_values("cell").reset_index(drop=True))


def test_a_suppressed_table_is_logged_as_it_is_published(log: tc.ReleaseLog) -> None:
    table = xr.DataArray(
        [[30, 4], [25, 31], [40, 22], [28, 35]],
        coords={"area": ["N1", "N2", "S1", "S2"], "sex": ["f", "m"]},
        dims=("area", "sex"),
    )
    pattern = tc.suppress(table, table < 10, progressbar=False)
    assert check(log, pattern).passed
    log.add(pattern, protection="suppression below 10")
    stored = log._database.tables()
    cells = next(each for _, each in stored if len(each.axes) == 2)
    hidden = pattern.release.unpublished_cells()[("area", "sex")].values
    assert (cells.least[hidden] == 0).all()
    assert (cells.most[hidden] > 1000).all()
    # The cell that was suppressed, in another table: now all is out.
    verdict = check(
        log, pd.Series({"f": 30.0}).rename_axis("sex"), where={"area": "N1", "sex": "f"}
    )
    assert not verdict.passed
    assert "sex=m, area=N1: 4" in repr(verdict)


def test_totals_of_several_levels_are_totals(log: tc.ReleaseLog) -> None:
    """pandas labels them "All" on one level and "" on the others."""
    generator = np.random.default_rng(3)
    columns = {"age": ["16-64", "66+"], "sex": ["f", "m"], "area": ["N1", "S2"]}
    people = pd.DataFrame({name: generator.choice(x, 300) for name, x in columns.items()})
    rows = [people["age"], people["sex"]]
    given = {"total": "All", "threshold": 100, "advise": False}
    without = check(log, pd.crosstab(rows, people["area"]), **given).cells
    assert len(without) > 0
    for table in (
        pd.crosstab(rows, people["area"], margins=True),
        pd.crosstab(people["area"], rows, margins=True),
    ):
        cells = check(log, table, **given).cells
        assert set(cells["cell"]) == set(without["cell"])


def test_columns_and_indexes_of_pandas_are_sequences(tmp_path: Path) -> None:
    sex = pd.Series(["f", "m", "f"])
    given = [sex.unique(), pd.Index(["f", "m"]), sex.astype("category").cat.categories]
    for number, labels in enumerate([*given, sex.drop_duplicates()]):
        log = tc.ReleaseLog(tmp_path / f"{number}.duckdb", variables={"sex": labels})
        assert log.codebook.variables == {"sex": ("f", "m")}
        assert check(log, pd.Series({"f": 20}).rename_axis("sex"), where={"sex": sex[:1]}).passed


def test_a_missing_label_is_no_category(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="has a missing label: give the records"):
        tc.ReleaseLog(tmp_path / "x.duckdb", variables={"sex": ["f", "m", np.nan]})


def test_a_table_of_all_records_is_not_one_of_some(log: tc.ReleaseLog) -> None:
    ages = pd.Series({"16-64": 80, "65": 20, "66+": 30}).rename_axis("age")
    with pytest.raises(TableError, match=r"counts people of age=65, whom where leaves out"):
        check(log, ages, where=AGES)
    ages["65"] = 0
    assert check(log, ages, where=AGES).passed


def test_a_suppressed_table_of_one_variable_has_a_grand_total(log: tc.ReleaseLog) -> None:
    table = pd.Series({"N1": 30, "N2": 4, "S1": 12, "S2": 25}).rename_axis("area").to_xarray()
    pattern = tc.suppress(table, table < 10, progressbar=False)
    assert log.add(pattern, after=check(log, pattern)) == 1
    # The cell and another are suppressed, so that their sum is known.
    verdict = check(log, pd.Series({"S1": 12}).rename_axis("area"), where={"area": "S1"})
    assert verdict.cells["cell"].tolist() == ["area=N2"]


def test_a_perturbed_table_is_logged_as_the_intervals_of_its_mechanism(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48), name="all")
    rounded = tc.attack.Perturbed(by_sex(51, 48).to_xarray(), tc.attack.RandomRounding(3))
    # 49 to 53 of at most 51: nobody, one or two are 65.
    assert check(log, rounded, where=AGES, values=3).passed
    verdict = check(log, rounded, where=AGES, values=4, advise=False)
    row = verdict.cells.set_index("cell").loc["age=65, sex=f"]
    assert (row["lower"], row["upper"], row["n_values"]) == (0, 2, 3)
    assert row["risk"] == pytest.approx(1 / np.log2(3))
    noise = tc.attack.GeometricNoise(epsilon=1.0)
    assert check(log, tc.attack.Perturbed(by_sex(51, 48).to_xarray(), noise), where=AGES).passed


def test_levels_and_merged_categories(log: tc.ReleaseLog) -> None:
    log.add(pd.Series({"N1": 20, "N2": 31, "S1": 14, "S2": 2}).rename_axis("area"), name="areas")
    regions = pd.Series({"North": 51, "South": 16}).rename_axis("region")
    assert check(log, regions).passed
    merged = pd.Series({"N": 51, "S": 16}).rename_axis("area")
    parts = {"area": {"N": ["N1", "N2"], "S": ["S1", "S2"]}}
    assert check(log, merged, merge=parts).passed


def test_geographies_that_are_not_nested_are_differenced(tmp_path: Path) -> None:
    """Wards and school districts that differ by one street with one person."""
    streets = ["a", "b", "c", "d"]
    levels = {"ward": ("street", ["1", "1", "2", "2"]), "school": ("street", ["1", "1", "1", "2"])}
    log = tc.ReleaseLog(tmp_path / "g.duckdb", variables={"street": streets}, levels=levels)
    log.add(pd.Series({"1": 40, "2": 31}).rename_axis("ward"))
    verdict = check(log, pd.Series({"1": 41, "2": 30}).rename_axis("school"))
    assert verdict.cells["cell"].tolist() == ["street=c"]
    assert verdict.cells["upper"].tolist() == [1]


def test_a_contradiction_is_an_error_and_names_the_releases(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48), name="all")
    with pytest.raises(TableError, match="contradicts"):
        check(log, by_sex(52, 48), where=AGES)


@pytest.mark.parametrize(
    ("table", "given", "error", "message"),
    [
        (by_sex(51, 48), {"where": {"height": "1"}}, ParameterError, "where must name variables"),
        (by_sex(51, 48), {"where": {"age": "64"}}, ParameterError, "has no category '64'"),
        (by_sex(51, 48), {"where": {"age": []}}, ParameterError, "selects no category"),
        (by_sex(51, 48), {"merge": {"age": {"x": ["65"]}}}, ParameterError, "merge"),
        (by_sex(51, 48), {"threshold": 1}, ParameterError, "threshold"),
        (by_sex(51.5, 48), {}, TableError, "whole numbers"),
        (by_sex(-1, 48), {}, TableError, "whole numbers"),
        (pd.Series({"f": 3, "x": 4}).rename_axis("sex"), {}, ParameterError, "no category 'x'"),
        (pd.Series([1, 2]), {}, TableError, "named after a variable"),
        ([[1, 2]], {}, TableError, "a table must be"),
        (tc.random_round(by_sex(51, 48).to_xarray()), {}, TableError, "perturbed"),
    ],
)
def test_wrong_input(
    log: tc.ReleaseLog, table: object, given: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(log, table, **given)
    if "threshold" not in given:
        with pytest.raises(error, match=message):
            log.add(table, **given)
    assert len(log.releases) == 0


def test_a_table_of_everybody_adds_up(tmp_path: Path) -> None:
    log = tc.ReleaseLog(tmp_path / "n.duckdb", variables={"sex": ["f", "m"]}, total=100)
    with pytest.raises(TableError, match="adds up to 99, and there are 100 records"):
        log.add(by_sex(51, 48))


def test_names_are_unique_and_files_are_not_overwritten(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48), name="all")
    with pytest.raises(ParameterError, match="is called 'all' already"):
        log.add(by_sex(51, 48), name="all")
    before = log.path.read_bytes()
    with pytest.raises(FileFormatError, match="exists"):
        tc.ReleaseLog(log.path, variables={"sex": ["f", "m"]})
    assert log.path.read_bytes() == before


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="no such file"):
        tc.ReleaseLog(tmp_path / "none.duckdb")
    text = tmp_path / "text.duckdb"
    text.write_text("area,count\n1,2\n")
    with pytest.raises(FileFormatError):
        tc.ReleaseLog(text)
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE project (key VARCHAR, value VARCHAR)")
    with pytest.raises(FileFormatError, match="no release log"):
        tc.ReleaseLog(other)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


ADDING = """
    import sys, pandas as pd, taciturn as tc
    log = tc.ReleaseLog(sys.argv[1])
    table = pd.Series({"f": 50, "m": 48}).rename_axis("sex")
    for number in range(10_000):
        done = log.add(table, name=f"{sys.argv[2]}-{number}")
        print(done, flush=True)
"""


def close(process: subprocess.Popen) -> None:
    process.stdout.close()
    process.wait()


def adding(log: tc.ReleaseLog, name: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ADDING), str(log.path), name],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_log_whose_process_is_killed_is_as_it_was(log: tc.ReleaseLog, seed: int) -> None:
    """What was reported as added is there, once, and whole; one more may be."""
    process = adding(log, "killed")
    process.stdout.readline()
    time.sleep(0.3 + float(np.random.default_rng(seed).random()))
    os.kill(process.pid, signal.SIGKILL)
    reported = 1 + len(process.stdout.read().split())
    close(process)
    again = tc.ReleaseLog(log.path)
    names = again.releases["name"].tolist()
    assert reported <= len(names) <= reported + 1
    assert names == [f"killed-{number}" for number in range(len(names))]
    tables = again._database.tables()
    assert [release for release, _ in tables] == list(range(1, len(names) + 1))
    again.add(by_sex(50, 48), name="after")


@pytest.mark.slow
def test_two_processes_add_in_turns(log: tc.ReleaseLog) -> None:
    processes = [adding(log, name) for name in ("one", "two")]
    reported = [int(process.stdout.readline()) for process in processes]
    time.sleep(1)
    for process in processes:
        process.terminate()
        reported += [int(number) for number in process.stdout.read().split()]
        close(process)
    names = tc.ReleaseLog(log.path).releases["name"].tolist()
    assert len(reported) == len(set(reported)) > 4
    assert len(reported) <= len(names) <= len(reported) + 2
    assert {name.split("-")[0] for name in names} == {"one", "two"}


def test_a_release_of_another_process_during_a_check_is_in_it_or_after_it(
    log: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is added between two looks at the file, names and tables belong
    together, and the verdict is not one on the later state."""
    log.add(by_sex(51, 48), name="all")
    other, opened, added = tc.ReleaseLog(log.path), type(log._database)._open, []

    @contextmanager
    def adding_before_the_second(self, *, writing):
        if self is log._database and not writing:
            added.append("")
            if len(added) == 2:
                other.add(by_sex(50, 48), where=AGES, name="meanwhile")
        with opened(self, writing=writing) as connection:
            yield connection

    monkeypatch.setattr(type(log._database), "_open", adding_before_the_second)
    verdict = check(log, by_sex(30, 20), where={"age": "16-64"}, advise=False)
    assert set(verdict.names) >= {r for each in verdict.findings for r in each.releases}
    assert len(added) == 1
    assert len(verdict.names) == 1


def test_who_does_not_know_whether_a_table_was_added_can_ask(log: tc.ReleaseLog) -> None:
    hidden = by_sex(np.nan, 48)
    given = {"where": AGES, "name": "no 65", "protection": "by hand"}
    assert log.number_of(hidden, **given) is None
    log.add(by_sex(51, 48), name="all")
    assert log.add(hidden, **given) == 2
    assert log.number_of(hidden, **given) == 2
    assert log.number_of(hidden, **(given | {"name": "other"})) is None
    with pytest.raises(ParameterError, match="release 2 is called 'no 65', with another table"):
        log.number_of(by_sex(50, 48), **given)
    with pytest.raises(ParameterError, match="with another table"):
        log.number_of(hidden, **(given | {"where": {"age": "66+"}}))
    with pytest.raises(ParameterError, match="protection 'by hand', got ''"):
        log.number_of(hidden, where=AGES, name="no 65")


def test_dates_are_those_of_utc_wherever_the_machine_is(
    log: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        log.add(by_sex(51, 48))
    finally:
        monkeypatch.undo()
        time.tzset()
    (added,) = log.releases["added"]
    assert abs(pd.Timestamp.now("UTC") - added) < pd.Timedelta(minutes=1)


def test_a_log_that_takes_the_place_of_another_is_not_taken_for_it(
    log: tc.ReleaseLog, tmp_path: Path
) -> None:
    """Its variables are the same, but what was released is not."""
    other = tc.ReleaseLog(tmp_path / "other.duckdb", variables=log.codebook.variables)
    verdict = check(other, by_sex(51, 48))
    with pytest.raises(ParameterError, match="verdict of this log, it is that of another"):
        log.add(by_sex(51, 48), after=verdict)
    assert (verdict.log, tc.ReleaseLog(other.path).id) == (other.id, other.id)
    log.path.write_bytes(other.path.read_bytes())
    for asked in (
        lambda: check(log, by_sex(51, 48)),
        lambda: log.add(by_sex(51, 48)),
        lambda: log.releases,
    ):
        with pytest.raises(FileFormatError, match="not the log that was opened, but another"):
            asked()
    tc.ReleaseLog(other.path, variables=AGES, overwrite=True)
    with pytest.raises(FileFormatError, match="not the log that was opened"):
        check(other, by_sex(51, 48))


def test_a_folder_whose_name_has_lock_in_it_is_no_reason_to_wait(tmp_path: Path) -> None:
    text = tmp_path / "clocks.duckdb"
    text.write_text("area,count\n1,2\n")
    begun = time.monotonic()
    with pytest.raises(FileFormatError, match="not a valid DuckDB"):
        tc.ReleaseLog(text)
    assert time.monotonic() - begun < 10


def test_a_log_of_another_version_and_a_damaged_one_are_refused(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48))
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:8192])
    with pytest.raises(FileFormatError, match=r"project\.duckdb"):
        tc.ReleaseLog(log.path)
    for change, message in {
        "UPDATE project SET value = '99' WHERE key = 'version'": "but taciturn release log 99",
        "DELETE FROM project WHERE key = 'id'": "is damaged",
        "UPDATE tables SET definition = replace(definition, '[0, 1]', '[0]')": "is damaged",
        "UPDATE tables SET least = [1]": "is damaged",
    }.items():
        log.path.write_bytes(whole)
        with duckdb.connect(str(log.path)) as connection:
            connection.execute(change)
        with pytest.raises(FileFormatError, match=message):
            check(tc.ReleaseLog(log.path), by_sex(51, 48))


@pytest.mark.parametrize("name", ["", 5, ["x"], "a\nb", "\ud800", "\x00", "x\u200b"])
def test_a_name_is_text_that_is_seen(log: tc.ReleaseLog, name: object) -> None:
    with pytest.raises((ParameterError, TableError), match="name"):
        log.add(by_sex(51, 48), name=name)
    with pytest.raises((ParameterError, TableError), match="protection"):
        log.add(by_sex(51, 48), protection=name or None)
    assert len(log.releases) == 0


def test_more_than_a_million_records_can_be_public(tmp_path: Path) -> None:
    log = tc.ReleaseLog(tmp_path / "n.duckdb", variables={"sex": ["f", "m"]}, total=67_000_000)
    verdict = check(log, by_sex(66_999_999, np.nan))
    assert verdict.cells[["cell", "lower", "upper"]].values.tolist() == [["sex=m", 1, 1]]
    assert not check(log, by_sex(66_999_999, np.nan), threshold=2_000_000).passed


@pytest.mark.parametrize(
    "error",
    [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")],
)
def test_an_interruption_in_a_query_is_one(log: tc.ReleaseLog, error: Exception) -> None:
    """And neither an error of the program nor of the file; nothing is added."""

    def add() -> None:
        with log._database._open(writing=True) as connection:
            connection.execute("BEGIN; INSERT INTO releases VALUES (1, 'x', now(), '', NULL)")
            raise error

    with pytest.raises(KeyboardInterrupt):
        add()
    assert len(log.releases) == 0
    with pytest.raises(RuntimeError, match="other"), log._database._open(writing=False):
        raise RuntimeError("other")


def test_a_table_in_the_wrong_place_is_not_quoted(log: tc.ReleaseLog, tmp_path: Path) -> None:
    table = xr.DataArray([4711, 815], {"sex": ["f", "m"]}, "sex")
    for given in ({"where": table}, {"merge": table}, {"total": table}):
        with pytest.raises(ParameterError, match=r"DataArray over \('sex',\)") as caught:
            check(log, by_sex(51, 48), **given)
        assert "4711" not in str(caught.value)
    with pytest.raises(ParameterError, match=r"DataArray over \('sex',\)"):
        tc.ReleaseLog(tmp_path / "new.duckdb", variables=table)
