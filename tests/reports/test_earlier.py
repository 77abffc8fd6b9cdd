"""What the page says of earlier releases and of what the next one adds."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from reports.test_report import HOSTILE, Page

pytest.importorskip("duckdb")

SILENT = {"progressbar": False}


@pytest.fixture
def log(tmp_path: Path, religion_sample) -> tc.ReleaseLog:
    """The table's variables and one more."""
    variables = {
        **{dim: religion_sample[dim].values.tolist() for dim in religion_sample.dims},
        "sex": ["f", "m"],
    }
    return tc.ReleaseLog(tmp_path / "log.duckdb", variables=variables)


@pytest.fixture(scope="module")
def table(religion_sample) -> xr.DataArray:
    """The table of the fit: large enough that nothing is small."""
    counts = np.random.default_rng(1).poisson(20, religion_sample.shape)
    return religion_sample.copy(data=counts)


@pytest.fixture(scope="module")
def of_table(table) -> xr.DataTree:
    return tc.LogLinear().fit(table, population_size=20_000, draws=200, random_seed=1)


@pytest.fixture
def by_religion(table) -> pd.Series:
    """All people."""
    return table.sum("area").to_series()


@pytest.fixture
def read(tmp_path: Path, of_table):
    def read(**given) -> Page:
        path = tmp_path / "panel.html"
        tc.report(of_table, path, overwrite=True, **given, **SILENT)
        return Page(path.read_text(encoding="utf-8"))

    return read


@pytest.fixture
def failed(log, by_religion) -> tc.release_log.Verdict:
    """One woman of one religion, by a difference."""
    log.add(by_religion, name="everybody", protection="none was needed")
    men = by_religion - 20
    men.iloc[0] = by_religion.iloc[0] - 1
    return log.check(men, where={"sex": "m"}, **SILENT)


def test_earlier_releases_are_listed_in_both_versions(read, log, by_religion):
    log.add(by_religion, name="everybody", protection="rounded")
    date = f"{log.releases['added'].iloc[0]:%Y-%m-%d}"
    for public in (False, True):
        page = read(log=log, public=public)
        assert ["1", "everybody", date, "rounded"] in page.rows
        assert "Other releases from the same data" in page.said
    assert "What was released before" not in read().said


def test_an_empty_log_says_so(read, log):
    assert "Nothing: the log of these records is empty." in read(log=log).said


def test_the_findings_are_those_of_the_verdict(read, log, failed):
    page = read(log=log, verdict=failed)
    (found,) = [row for row in page.rows if row and "sex=f" in row[0]]
    cell = failed.cells.iloc[0]
    assert found == [
        cell["cell"],
        f"{cell['lower_before']} to {cell['upper_before']}",
        "1",
        "with everybody",
    ]
    verdicts = re.findall(r'<p class="verdict[^>]*>(.*?)</p>', page.html)
    assert "it must not be released as it is" in verdicts[0]
    assert verdicts[1].startswith("A small count could be worked out")
    assert "Not for release: what follows tells small counts" in page.said
    assert "from 1 to 9; they must be able to have at least 2 values." in page.said
    for each in failed.advice:
        assert str(each) in page.said
    assert "R2 does not know what else was released" in page.said


@pytest.fixture
def nearly(log) -> tc.release_log.Verdict:
    """The women, by noise that was asked for once too often."""
    women = xr.DataArray(4)
    given = {"mechanism": tc.attack.GeometricNoise(epsilon=0.5), "where": {"sex": "f"}}
    for number in range(7):
        log.add(women, name=f"answer {number}", **given)
    return log.check(women, **given, **SILENT)


def test_what_is_nearly_certain_is_shown_with_its_probability(read, log, nearly):
    page = read(log=log, verdict=nearly)
    (found,) = [row for row in page.rows if row and row[0] == "sex=f"]
    (own,) = nearly.likely
    assert found[1:4] == ["4", f"{own.before:.3f}", f"{own.probability:.3f}"]
    assert found[4].startswith("with answer 0; answer 1;")
    assert "A small count could be worked out nearly with certainty" in page.said
    assert "have a probability of 0.95 or more together" in page.said
    with pytest.raises(tc.TaciturnError, match="which a public page must not say"):
        read(log=log, verdict=nearly, public=True)


def test_a_public_page_of_a_verdict_that_did_not_pass_is_refused(read, log, failed):
    with pytest.raises(tc.TaciturnError, match="which a public page must not say"):
        read(log=log, verdict=failed, public=True)


def test_a_public_page_of_a_verdict_that_passed(read, log, by_religion):
    log.add(by_religion, name="everybody")
    verdict = log.check(by_religion - 20, where={"sex": "m"}, **SILENT)
    assert verdict.passed
    page = read(log=log, verdict=verdict, public=True)
    assert "No small count can be worked out that could not be before." in page.said
    assert "Not for release" not in page.said
    assert "sex=" not in page.said
    # How many people there are would be one more total, unless the release has it.
    assert "their number is left out" in page.row("Sample")[0]
    page = read(log=log, verdict=log.check(by_religion, **SILENT), public=True)
    assert f"{by_religion.sum():,} of 20,000 people" in page.row("Sample")[0]


def test_what_was_taken_together_in_parts_is_no_proof(read, log, failed):
    from dataclasses import replace

    parts = replace(failed, findings=[], advice=[], complete=False, not_combined=(HOSTILE,))
    page = read(log=log, verdict=parts)
    assert "this is no proof" in page.said
    assert f"Not taken together with it: {HOSTILE}." in page.said
    assert "<img" not in page.html


def test_many_findings_and_releases_are_counted(read, log, failed):
    from dataclasses import replace

    for number in range(35):
        log.add(pd.Series({"f": 90}).rename_axis("sex"), where={"sex": "f"}, name=f"r{number}")
    page = read(log=log)
    assert "6 more are not shown" in page.said
    assert [row for row in page.rows if row and row[1:2] == ["everybody"]] == []
    names = {int(number): name for number, name in log.releases["name"].items()}
    many = replace(failed, findings=[failed.findings[0]] * 25, further=3, names=names)
    assert "8 more are part of these, or are not shown." in read(log=log, verdict=many).said


def test_labels_and_names_are_text(read, log, by_religion, tmp_path):
    log.add(by_religion, name=HOSTILE, protection="{{ 7 * 7 }}</style>")
    men = by_religion - 20
    men.iloc[0] = by_religion.iloc[0] - 1
    verdict = log.check(men, where={"sex": "m"}, **SILENT)
    page = read(log=log, verdict=verdict)
    assert "<img" not in page.html
    assert f"with {HOSTILE}" in page.said
    assert "{{ 7 * 7 }}</style>" in page.said


def test_a_suppressed_count_is_not_shown(read, log, religion_sample):
    """The log does not have it, and so neither has the page."""
    table = religion_sample * 1000 + 777
    hidden = table == int(table.max())
    log.add(tc.Suppression(table, hidden, totals=False), name="suppressed")
    page = read(log=log)
    assert str(int(table.max())) not in page.html.replace(",", "")


def test_what_is_refused(read, log, failed, by_religion, tmp_path):
    other = tc.ReleaseLog(tmp_path / "other.duckdb", variables={"sex": ["f", "m"]})
    with pytest.raises(tc.TaciturnError, match="log must be of the records of the fit"):
        read(log=other)
    with pytest.raises(tc.TaciturnError, match="log must be a ReleaseLog, got str"):
        read(log="log.duckdb")
    with pytest.raises(tc.TaciturnError, match=r"what ReleaseLog\.check returned, got list"):
        read(verdict=[])
    by_sex = other.check(pd.Series({"f": 20, "m": 30}).rename_axis("sex"), **SILENT)
    with pytest.raises(tc.TaciturnError, match="verdict needs log"):
        read(verdict=failed)
    with pytest.raises(tc.TaciturnError, match="from this log, it is from another"):
        read(log=log, verdict=by_sex)
    log = tc.ReleaseLog(tmp_path / "third.duckdb", variables=log.codebook.variables)
    by_sex = log.check(pd.Series({"f": 20, "m": 30}).rename_axis("sex"), **SILENT)
    with pytest.raises(tc.TaciturnError, match=r"on a release of the fit's table.*'sex'"):
        read(log=log, verdict=by_sex)
    verdict = log.check(by_religion - 20, where={"sex": "m"}, **SILENT)
    log.add(pd.Series({"f": 900}).rename_axis("sex"), where={"sex": "f"}, name="later")
    with pytest.raises(tc.TaciturnError, match="the log has changed since"):
        read(log=log, verdict=verdict)


def test_a_verdict_is_from_the_log_that_is_listed(read, log, by_religion, tmp_path):
    """Although both hold a release of the same name."""
    other = tc.ReleaseLog(tmp_path / "other.duckdb", variables=log.codebook.variables)
    for each in (log, other):
        each.add(by_religion, name="everybody")
    verdict = other.check(by_religion - 20, where={"sex": "m"}, **SILENT)
    assert read(log=other, verdict=verdict)
    with pytest.raises(tc.TaciturnError, match="from this log, it is from another"):
        read(log=log, verdict=verdict)


@pytest.mark.parametrize("filtered", [False, True])
def test_a_verdict_is_on_the_counts_of_the_fit(read, log, table, filtered):
    """Of all, and of a filter; a count that is not published says nothing."""
    where = None
    if filtered:
        label = table["religion"].values[0]
        table, where = table.sel(religion=label, drop=True), {"religion": label}
    options = {"where": where, **SILENT}
    assert read(log=log, verdict=log.check(table, **options))
    wrong = table.copy(data=table.values + 0)
    wrong[(2,) * wrong.ndim] += 1
    place = f"area={table['area'].values[2]}"
    with pytest.raises(tc.TaciturnError, match=f"on one with .* people in {place}"):
        read(log=log, verdict=log.check(wrong, **options))
    hidden = xr.zeros_like(wrong, dtype=bool)
    hidden[(2,) * hidden.ndim] = True
    release = tc.Suppression(wrong, hidden, totals=False)
    assert read(log=log, verdict=log.check(release, **options))


def test_a_verdict_on_merged_categories_and_levels(read, log, table, tmp_path):
    areas = table["area"].values.tolist()
    halves = ["first" if place < 4 else "second" for place in range(len(areas))]
    with_levels = tc.ReleaseLog(
        tmp_path / "levels.duckdb",
        variables={"area": areas, "religion": table["religion"].values.tolist()},
        levels={"half": ("area", halves)},
    )
    by_area = table.sum("religion").assign_coords(half=("area", halves))
    by_half = by_area.groupby("half").sum()
    assert read(log=with_levels, verdict=with_levels.check(by_half, **SILENT))
    with pytest.raises(tc.TaciturnError, match=r"people in half=first, and the sample has"):
        read(log=with_levels, verdict=with_levels.check(by_half + 1, **SILENT))


def test_a_filter_that_the_fit_does_not_have_leaves_a_part_of_the_people(read, log, table):
    women = (table * 0.4).round().astype(int)
    assert read(log=log, verdict=log.check(women, where={"sex": "f"}, **SILENT))
    more = log.check(table + 1, where={"sex": "f"}, **SILENT)
    with pytest.raises(tc.TaciturnError, match="people in area=1, religion=1, and the sample has"):
        read(log=log, verdict=more)


def test_a_verdict_whose_categories_are_written_otherwise_is_not_compared(tmp_path):
    """Merged ones are found by their labels, others cannot be told."""
    sample = xr.DataArray([[3, 9], [20, 30]], dims=("age", "sex"))
    path = tmp_path / "page.html"

    def fit(ages):
        labelled = sample.assign_coords(age=ages, sex=["f", "m"])
        return labelled, tc.LogLinear().fit(labelled, population_size=200, draws=60, random_seed=1)

    book = {"age": ["16", "17", "66", "67"], "sex": ["f", "m"]}
    log = tc.ReleaseLog(tmp_path / "ages.duckdb", variables=book)
    merge = {"age": {"young": ["16", "17"], "old": ["66", "67"]}}
    merged, of_merged = fit(["young", "old"])
    verdict = log.check(merged, merge=merge, **SILENT)
    tc.report(of_merged, path, log=log, verdict=verdict, **SILENT)
    wrong = log.check(merged + 1, merge=merge, **SILENT)
    with pytest.raises(tc.TaciturnError, match="on one with 4 people in age=young, sex=f"):
        tc.report(of_merged, path, log=log, verdict=wrong, overwrite=True, **SILENT)
    _, other = fit(["young people", "old people"])
    tc.report(other, path, log=log, verdict=verdict, overwrite=True, **SILENT)
