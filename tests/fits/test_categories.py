"""The summary has a line for each category that a fit was assessed by."""

import json
import re
from html import escape
from io import StringIO

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.cli.fitting import _measures
from taciturn.errors import TableError
from taciturn.fits.categories import category_lines
from taciturn.fits.risk import MEASURES


@pytest.fixture(scope="module")
def assessed() -> xr.DataTree:
    """A small sample of a census, by both variables; draws leave categories empty."""
    table = tc.load_dataset("area_by_religion")
    sample = tc.draw_sample(table, fraction=0.01, random_seed=1)
    fit = tc.LinearPool().fit(sample, population_size=2449, draws=200, chains=2, random_seed=1)
    return tc.assess(fit, by=["area", "religion"])


def test_every_number_is_that_of_the_draws(assessed):
    table = tc.summary(assessed, probability=0.9).categories
    assert list(table.columns) == ["mean", "sd", "5%", "50%", "95%", "mcse", "empty"]
    assert len(table) == (10 + 9) * len(MEASURES)
    assert np.isfinite(table.to_numpy()).all()
    for variable in ("area", "religion"):
        risk = assessed[f"risk_by_{variable}"].to_dataset()
        for label in risk[variable].values.tolist():
            own = risk.sel({variable: label})
            for measure in MEASURES:
                row, draws = table.loc[(variable, label, measure)], own[measure].values
                expected = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, [0.05, 0.5, 0.95])]
                np.testing.assert_allclose(row.iloc[:5], expected, rtol=1e-12)
                assert row["empty"] == float(own["empty"])
    assert 0 < table["empty"].max() < 0.2


def test_a_line_is_printed_for_each_category(assessed):
    found = tc.summary(assessed)
    lines = str(found).splitlines()
    title = "Each category of religion as a table of its own: means, and the interval of R2"
    at = lines.index(title)
    assert lines[at + 2].split() == ["R1", "R2", "2.5%", "97.5%", "tau1", "empty"]
    rows = [line.split() for line in lines[at + 3 : at + 12]]
    labels = assessed["risk_by_religion"]["religion"].values.tolist()
    assert [row[0] for row in rows] == [str(label) for label in labels]
    for label, row in zip(labels, rows, strict=True):
        r1, r2, tau1 = (
            found.categories.loc["religion", label, name] for name in ("R1", "R2", "tau1")
        )
        numbers = [r1["mean"], r2["mean"], r2["2.5%"], r2["97.5%"], tau1["mean"], r2["empty"]]
        assert row[1:] == [f"{value:.4f}" for value in numbers]
    assert "empty: share of draws with nobody in the category, in which its risk is 0" in lines


def test_without_an_empty_category_nothing_is_said_of_it(religion_sample):
    fit = tc.LogLinear().fit(religion_sample, population_size=2449, draws=50, random_seed=1)
    by_area = tc.summary(tc.assess(fit, by="area"))
    assert (by_area.categories["empty"] == 0).all()
    assert "share of draws with nobody" not in str(by_area) + by_area.to_html()
    alone = tc.summary(tc.assess(fit))
    assert (alone.categories, alone.to_dict()["categories"]) == (None, None)
    assert "Each category" not in str(alone) + alone.to_html()


def test_json_holds_every_category(assessed):
    found = tc.summary(assessed)
    read = json.loads(found.to_json(), parse_constant=pytest.fail)["categories"]
    assert len(read) == len(found.categories)
    place = {"variable": "religion", "category": "9", "measure": "R2"}
    (row,) = [each for each in read if place.items() <= each.items()]
    assert row == place | found.categories.loc[tuple(place.values())].to_dict()


def test_labels_are_escaped():
    sample = xr.DataArray(
        [[3, 1], [0, 2]],
        dims=("a&b", "c"),
        coords={"a&b": ["<script>", "plain"], "c": ["x", "y"]},
        name="count",
    )
    fit = tc.LogLinear().fit(sample, population_size=20, draws=50, random_seed=1)
    html = tc.summary(tc.assess(fit, by="a&b")).to_html()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "Each category of a&amp;b" in html


def numbered(**labels) -> xr.DataTree:
    """A fit of a table with these labels."""
    counts = np.random.default_rng(1).poisson(2.0, [len(own) for own in labels.values()])
    sample = xr.DataArray(counts, labels, tuple(labels), name="count")
    return tc.LogLinear().fit(sample, population_size=300, draws=30, chains=2, random_seed=1)


def test_dates_are_shown_as_dates_also_after_they_were_saved(tmp_path):
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]")
    fit = tc.assess(numbered(day=days, sex=["f", "m"]), by="day")
    tc.save_fit(fit, tmp_path / "fit.nc")
    for own in (fit, tc.read_fit(tmp_path / "fit.nc")):
        assert "\n2020-01-01" in str(tc.summary(own))
        labels = [text.get_text() for text in tc.plot_risk(own, by="day").get_yticklabels()]
        assert sorted(label[:10] for label in labels) == ["2020-01-01", "2021-01-01"]


def test_a_day_is_the_same_text_in_all_formats():
    days = np.array(["2001-01-01", "2002-01-01"], dtype="M8[D]")
    fit = tc.assess(numbered(day=days, sex=["f", "m"]), by="day")
    found = tc.summary(fit)
    expected = ["2001-01-01 00:00:00", "2002-01-01 00:00:00"]
    in_json = [row["category"] for row in json.loads(found.to_json())["categories"]]
    assert list(dict.fromkeys(in_json)) == expected
    assert pd.read_csv(StringIO(_measures(found).to_csv()))["category"].dropna().tolist() == in_json
    in_plot = [text.get_text() for text in tc.plot_risk(fit, by="day").get_yticklabels()]
    assert sorted(in_plot) == expected
    for text in (str(found), found.to_html()):
        assert re.findall(r"2\d{3}-01-01(?: 00:00:00)?", text) == expected


def test_long_labels_that_differ_in_the_middle_are_told_apart():
    ages, jobs = ([f"{'a' * 100}{each}{'z' * 100}" for each in pair] for pair in ("12", "34"))
    fit = tc.assess(numbered(**{ages[0]: jobs, ages[1]: ["f", "m"]}), by=ages)
    found = tc.summary(fit)
    cut = f"'{'a' * 79}"
    lines = str(found).splitlines()
    titles = [line for line in lines if line.startswith("Each category")]
    assert [title.split()[3:5] for title in titles] == [[cut, "(1)"], [cut, "(2)"]]
    at = lines.index(titles[0])
    assert [line.split()[:2] for line in lines[at + 3 : at + 5]] == [[cut, "(1)"], [cut, "(2)"]]
    html = found.to_html()
    for number in (1, 2):
        assert f"<th>{cut} ({number})</th>" in html
        assert f"Each category of {escape(cut)} ({number}) as" in html
    names = [(row["variable"], row["category"]) for row in found.to_dict()["categories"]]
    assert list(dict.fromkeys(names)) == [
        *((ages[0], job) for job in jobs),
        *((ages[1], each) for each in "fm"),
    ]


def test_one_draw_of_many_in_which_a_category_is_empty_is_some():
    measured = {"mean": 0.1, "sd": 0.0, "2.5%": 0.1, "50%": 0.1, "97.5%": 0.1, "mcse": 0.0}
    names = [("sex", label, measure) for label in "fm" for measure in MEASURES]
    index = pd.MultiIndex.from_tuples(names, names=["variable", "category", "measure"])
    shares = [1 / 40_000] * len(MEASURES) + [0.0] * len(MEASURES)
    table = pd.DataFrame([measured] * len(names), index).assign(empty=shares)
    rows = [line.split() for line in category_lines(table)[2].splitlines()[1:]]
    assert [float(row[-1]) > 0 for row in rows] == [True, False]
    assert rows[1][-1] == "0.0000"


def test_a_variable_with_the_name_of_a_result_is_refused():
    with pytest.raises(TableError, match="the variable 'empty' has the name of a result"):
        tc.assess(numbered(empty=[1, 2, 3], sex=["f", "m"]), by="empty")


def test_numbers_of_categories_stay_whole_beside_the_whole_table():
    found = tc.summary(tc.assess(numbered(age=[10, 20, 30], sex=[1, 2]), by=["age", "sex"]))
    labels = {str(label) for label in _measures(found)["category"].dropna()}
    assert labels == {"10", "20", "30", "1", "2"}


@pytest.mark.parametrize(
    ("x", "y"), [([True, False], [1, 0]), ([1, 2], [0.5, 1.5]), ([2**53, 2**53 + 1], [0.5, 1.5])]
)
def test_labels_that_are_equal_for_python_stay_those_of_their_variable(x, y) -> None:
    sample = xr.DataArray([[3, 1], [1, 2]], dims=["x", "y"], coords={"x": x, "y": y})
    fit = tc.PolyaUrn(theta=1.0).fit(sample, population_size=40, draws=50, random_seed=1)
    rows = json.loads(tc.summary(tc.assess(fit, by=["x", "y"])).to_json())["categories"]
    found = [(row["variable"], row["category"]) for row in rows if row["measure"] == "R2"]
    assert found == [*(("x", str(label)) for label in x), *(("y", str(label)) for label in y)]
