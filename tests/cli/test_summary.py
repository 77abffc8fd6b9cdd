"""A saved fit at the shell: text, JSON and CSV, and exit statuses."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest

import taciturn as tc

SAMPLE = Path(__file__).parents[2] / "examples" / "area_by_religion_sample.csv"


@pytest.fixture(scope="module")
def saved(religion_sample, tmp_path_factory):
    """A fit and its file."""
    fit = tc.LogLinear().fit(religion_sample, population_size=2449, draws=100, random_seed=1)
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    tc.save_fit(tc.assess(fit), path)
    return tc.assess(fit), path


def test_text_is_that_of_the_summary(run, saved):
    fit, path = saved
    status, text, _ = run("summary", path, "--threshold", "0.1", "--probability", "0.9")
    assert (status, text) == (0, f"{tc.summary(fit, threshold=0.1, probability=0.9)}\n")


def test_json_holds_every_number(run, saved, religion_sample):
    fit, path = saved
    status, text, _ = run("summary", path, "--threshold", "0.1", "--format", "json")
    found = json.loads(text, parse_constant=pytest.fail)
    expected = tc.summary(fit, threshold=0.1)
    assert (status, found) == (0, expected.to_dict())
    assert found["measures"]["R2"]["97.5%"] == expected.table.loc["R2", "97.5%"]
    assert found["exceedance"] == expected.exceedance
    assert found["checks"][1]["statistic"] == "uniques"
    assert found["checks"][1]["observed"] == int((religion_sample == 1).sum())
    assert (found["converged"], found["problems"], found["diagnostics"]) == (True, [], None)
    assert found["facts"]["Sample"] == "n = 245 of N = 2449, fraction 0.1"


def test_csv_is_the_table_of_measures(run, saved):
    fit, path = saved
    status, text, _ = run("summary", path, "--format", "csv")
    read = pd.read_csv(io.StringIO(text), index_col="measure")
    assert status == 0
    pd.testing.assert_frame_equal(read, tc.summary(fit).table, check_names=False)


def test_each_category_has_its_lines(run, religion_sample, tmp_path):
    religion_sample.to_series().to_csv(tmp_path / "sample.csv")
    options = "--model log-linear --draws 100 --seed 1 --by religion,area --population-size 2449"
    files = tmp_path / "sample.csv", "--save", tmp_path / "fit.nc"
    status, text, _ = run("assess", *files, *options.split())
    expected = tc.summary(tc.read_fit(tmp_path / "fit.nc"))
    assert (status, text) == (0, f"{expected}\n")
    assert text.count(" as a table of its own: means") == 2
    status, text, _ = run("summary", tmp_path / "fit.nc", "--format", "csv")
    read = pd.read_csv(io.StringIO(text))
    whole = read[read["variable"].isna()].set_index("measure")
    pd.testing.assert_frame_equal(whole[expected.table.columns], expected.table, check_names=False)
    assert (status, len(read)) == (0, 7 + (9 + 10) * 7)
    own = read[read["variable"].notna()].drop(columns=["variable", "category", "measure"])
    assert own.to_numpy() == pytest.approx(expected.categories.to_numpy())


@pytest.mark.parametrize("by", ["sex", "area,area", "area,sex"])
def test_a_variable_that_is_not_there_is_refused_before_the_fit(run, by, monkeypatch):
    monkeypatch.setattr(tc.LinearPool, "fit", lambda *_, **__: pytest.fail("sampled first"))
    status, text, said = run("assess", SAMPLE, "-N", "2449", "--by", by)
    assert (status, text) == (1, "")
    assert "by must name variables of the table, ('area', 'religion'), each once" in said


def test_a_fit_that_did_not_converge_has_its_status(run, religion_sample, tmp_path):
    fit = tc.ChineseRestaurant().fit(
        religion_sample, population_size=2449, draws=100, random_seed=1
    )
    fit.attrs["importance"] = json.dumps({"k_hat": 0.9, "ess": 1000.0})
    tc.save_fit(fit, tmp_path / "fit.nc")
    status, text, said = run("summary", tmp_path / "fit.nc", "--format", "json")
    assert status == 3
    (problem,) = json.loads(text)["problems"]
    assert "did not converge (k-hat is 0.90, at most 0.7 is accepted)" in problem
    assert "did not converge" in said


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["no.nc"], 1, "no.nc: no such file"),
        (["no.nc", "--format", "yaml"], 2, "'yaml' is not one of 'text', 'json', 'csv'"),
        (["no.nc", "--threshold", "2"], 2, "2.0 is not in the range 0<=x<=1"),
        ([], 2, "Missing argument 'FIT.nc'"),
    ],
)
def test_what_is_refused(words, status, message, run):
    found, text, said = run("summary", *words)
    assert (found, text, message in said) == (status, "", True), said


def test_assess_prints_the_same(run, saved, religion_sample, tmp_path):
    expected, _ = saved
    religion_sample.to_series().reset_index().to_csv(tmp_path / "sample.csv", index=False)
    options = "--population-size 2449 --model log-linear --draws 100 --seed 1 --format json"
    status, text, _ = run("assess", tmp_path / "sample.csv", *options.split())
    assert (status, json.loads(text)["measures"]) == (0, tc.summary(expected).to_dict()["measures"])
