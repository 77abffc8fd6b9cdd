"""``--fail-on``: which conditions there are, and when they hold."""

import json

import click
import pytest
import xarray as xr

import taciturn as tc
from taciturn.cli.conditions import CHECKS, DISCLOSED, Conditions, found_in_fit
from taciturn.cli.diagnose import _SHOWN, _figures, _row
from taciturn.fits.mixtures import fit_makers

RISK = Conditions(("risk", CHECKS))


@pytest.mark.parametrize(
    ("text", "measure", "value", "probability"),
    [
        ("R2>0.2:0.05", "R2", 0.2, 0.05),
        ("R1 > .5 : 0", "R1", 0.5, 0.0),
        ("R2>1:0.999", "R2", 1.0, 0.999),
        ("R2>0:0.5", "R2", 0.0, 0.5),
        ("checks", "", 0.0, 0.0),
    ],
)
def test_conditions_are_read(text, measure, value, probability):
    found = RISK.convert(text, None, None)
    assert (found.measure, found.value, found.probability) == (measure, value, probability)


@pytest.mark.parametrize(
    "text",
    ["", "R2", "R2>0.2", "R2>0.2:1", "R2>2:0.1", "R2<0.2:0.1", "tau1>1:0.1", "R2>0.2:0.05:1",
     "R2>nan:0.1", "R2>-0.1:0.1", "R2>0.1.2:0.1", "r2>0.2:0.1", "risk", DISCLOSED, "R2>٠:0"],
)  # fmt: skip
def test_others_are_refused(text):
    with pytest.raises(click.BadParameter, match=r"is none of: R2>0\.2:0\.05, which is P"):
        RISK.convert(text, None, None)


@pytest.fixture(scope="module")
def fit(fit_restaurant, tmp_path_factory):
    """An assessed fit, and its file."""
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    assessed = tc.assess(fit_restaurant.isel(draw=slice(0, 200)))
    tc.save_fit(assessed, path)
    return assessed, path


def test_a_probability_is_the_share_of_draws(fit):
    assessed, _ = fit
    found = tc.summary(assessed)
    median = float(assessed["risk"]["R2"].median())
    for text, holds in ((f"R2>{median:.6f}:0.4", True), (f"R2>{median:.6f}:0.6", False),
                        ("R1>0:0.999", True), ("R1>1:0", False), ("checks", False)):  # fmt: skip
        words = found_in_fit([RISK.convert(text, None, None)], assessed, found)
        assert bool(words) is holds, text


def test_status_4_after_everything_is_printed(fit, run):
    _, path = fit
    status, plain, said = run("summary", path)
    assert (status, said) == (0, "")
    words = ["--fail-on", "R2>0:0.5", "--fail-on", "R1>1.0:.5", "--fail-on", "checks"]
    status, text, said = run("summary", path, *words)
    assert (status, text, said) == (4, plain, "taciturn: --fail-on: P(R2 > 0) = 1\n")
    assert run("summary", path, "--fail-on", "R2>1:0.5") == (0, plain, "")


def test_a_fit_that_is_not_to_be_relied_on(fit, run, tmp_path):
    bad = fit[0].copy()
    bad.attrs["importance"] = json.dumps({"k_hat": 0.9, "ess": 1000.0})
    tc.save_fit(bad, tmp_path / "bad.nc")
    status, _, said = run("summary", tmp_path / "bad.nc", "--fail-on", "R2>0:0")
    assert (status, said) == (3, "taciturn: the sampler did not converge\n")


def test_checks_of_the_model(run, tmp_path, religion_sample):
    fit = tc.LogLinear().fit(religion_sample, population_size=2449, draws=100, random_seed=1)
    alone = xr.zeros_like(religion_sample)
    alone[0, 0] = religion_sample.sum()
    replicates = fit["posterior_predictive"]["count"]
    fit["posterior_predictive"]["count"] = xr.zeros_like(replicates) + alone
    tc.save_fit(tc.assess(fit), tmp_path / "fit.nc")
    status, text, said = run("summary", tmp_path / "fit.nc", "--fail-on", "checks")
    assert status == 4
    assert "--fail-on: the fitted model does not give samples like this one (empty cells" in said
    assert run("summary", tmp_path / "fit.nc") == (0, text, "")
    status, text, said = run("diagnose", tmp_path / "fit.nc", "--format", "json")
    assert (status, said) == (3, "taciturn: the fit is not to be relied on\n")
    found = json.loads(text)
    assert found["reliable"] is False
    assert [row["quantity"] for row in found["checks"] if not row["passed"]] != []


def test_draws_of_which_nothing_is_known(fit, run, tmp_path):
    """Their own population draws: neither checked nor said to be reliable."""
    assessed, _ = fit
    groups = ("posterior_predictive", "observed_data", "constant_data")
    own = {name: assessed[name].to_dataset() for name in groups}
    own["posterior_predictive"] = own["posterior_predictive"][["population"]]
    tree = xr.DataTree.from_dict(own)
    tc.save_fit(tree, tmp_path / "own.nc")
    status, text, _ = run("diagnose", tmp_path / "own.nc")
    assert status == 0
    assert text.startswith("Nothing could be checked.\n\nno diagnostics or checks\n")
    assert "whether its draws can be relied on is not known here" in text
    _, text, _ = run("diagnose", tmp_path / "own.nc", "--format", "json")
    assert json.loads(text)["reliable"] is None


def test_a_disclosed_cell(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,count\nx,1,1\nx,2,2\ny,1,3\ny,2,4\n")
    (tmp_path / "one.csv").write_text("a,b\nx,1\n")
    (tmp_path / "all.csv").write_text("a,b\nx,1\nx,2\ny,1\ny,2\n")
    words = ["attack", "t.csv", "--fail-on", "disclosed", "--output", "out.csv", "--suppressed"]
    status, text, said = run(*words, "one.csv")
    assert (status, "1 of 1 cells" in text) == (4, True)
    assert said == "taciturn: --fail-on: 1 cells that are not published are disclosed\n"
    assert (tmp_path / "out.csv").exists()
    assert run(*words, "all.csv", "--force")[0] == 0


def test_check_says_what_the_summary_says(fit, run):
    assessed, path = fit
    expected = tc.summary(assessed)
    status, text, said = run("diagnose", path, "--format", "json")
    found = json.loads(text, parse_constant=pytest.fail)
    assert (status, said, found["reliable"], found["problems"]) == (0, "", True, [])
    rows = {(row["check"], row["quantity"]): row for row in found["checks"]}
    assert rows["diagnostics", "k-hat"]["value"] == expected.diagnostics.k_hat
    assert rows["model", "uniques"]["value"] == float(
        expected.checks["observed"].sel(statistic="uniques")
    )
    assert rows["prior", "R2"]["value"] == expected.sensitivity.loc["R2", "prior"]
    assert rows["leave-one-out", "highest k-hat"]["value"] == float(tc.loo(assessed).pareto_k.max())
    assert not rows["prior", "theta"]["passed"]
    assert not rows["prior", "theta"]["decides"]
    status, text, _ = run("diagnose", path)
    assert text.startswith("No check failed. That is no proof")


def test_what_does_not_pass_is_shown_outside_its_range():
    """Whatever the number of digits, by which ends are rounded, too."""
    rows = [
        _row("diagnostics", "", "k-hat", 0.70004, None, 0.7),
        _row("diagnostics", "", "effective draws", 399.96, 400.0, None),
        _row("diagnostics", "", "r-hat", float("nan"), None, 1.01),
        _row("leave-one-out", "", "highest k-hat", 0.61568, None, 0.615671),
        _row("leave-one-out", "", "individuals above it", float("inf"), None, 0),
        _row("model", "", "empty_cells", 123_456.0, 123_400.0, 123_455.0),
        _row("model", "", "entropy", 1.23441, 1.23443, 1.23444),
        _row("prior", "", "theta", 0.050001, None, 0.05),
    ]
    shown = [_figures(row) for row in rows]
    assert not any(row["passed"] for row in rows)
    for row, figures in zip(rows, shown, strict=True):
        value, least, most = (float(figures.get(name, "nan")) for name in _SHOWN)
        assert value != value or value < least or value > most
        for name, text in figures.items():
            assert float(text) == pytest.approx(row[name], rel=5e-4)
    assert [figures.get("value") for figures in shown[:3]] == ["0.70004", "399.96", None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5432, "0.5432"),
        (0.7, "0.7"),
        (1.01, "1.01"),
        (12_345.6, "12346"),
        (0, "0"),
        (2e-5, "2e-05"),
    ],
)
def test_what_passes_is_shown_with_four_digits(value, text):
    assert _figures(_row("prior", "", "theta", value, value, value)) == dict.fromkeys(_SHOWN, text)


def test_check_of_a_pool(fit_pool, run, tmp_path):
    tc.save_fit(fit_pool.isel(draw=slice(0, 200)), tmp_path / "pool.nc")
    status, text, _ = run("diagnose", tmp_path / "pool.nc", "--format", "csv")
    assert status == 0
    assert "diagnostics,dirichlet,k-hat," in text


def test_what_members_miss_is_noted(fit_pool, run, tmp_path, religion_sample):
    """They miss on either side of the whole fit, which decides."""
    fit = fit_pool.isel(draw=slice(0, 500)).copy()
    replicates = fit["posterior_predictive"]["count"].copy()
    alone = xr.zeros_like(religion_sample)
    alone[0, 0] = religion_sample.sum()
    made = fit_makers(fit, chains=replicates.sizes["chain"], draws=500)["restaurant"].made
    own = xr.DataArray(made, dims=("chain", "draw"))
    fit["posterior_predictive"]["count"] = replicates.where(~own, alone)
    tc.save_fit(tc.assess(fit), tmp_path / "fit.nc")
    status, text, said = run("diagnose", tmp_path / "fit.nc")
    assert (status, said) == (0, "")
    assert "Its member restaurant misses the sample's empty_cells, uniques, pairs, entropy" in text
    assert "Its member dirichlet" not in text
    found = json.loads(run("diagnose", tmp_path / "fit.nc", "--format", "json")[1])
    expected = tc.fits.predictive_checks(tc.read_fit(tmp_path / "fit.nc"))
    rows = {(row["of"], row["quantity"]): row for row in found["checks"] if row["check"] == "model"}
    assert len(rows) == expected["mean"].size
    for (of, quantity), row in rows.items():
        one = expected.sel(member=of or "all", statistic=quantity)
        assert (row["value"], row["least"]) == (one["observed"], one["lower"])
        assert (row["passed"], row["decides"]) == (of != "restaurant", of == "")


def test_too_few_draws_are_no_answer(run, tmp_path, religion_sample):
    """However well they were made: a short run must not pass what a long one fails."""
    few = tc.ChineseRestaurant().fit(
        religion_sample, population_size=2449, draws=5, chains=1, random_seed=1
    )
    found = tc.summary(few)
    assert found.converged
    assert "too few draws for an interval (5, at least 400 are needed)" in found.sentence
    tc.save_fit(tc.assess(few), tmp_path / "fit.nc")
    status, _, said = run("summary", tmp_path / "fit.nc", "--fail-on", "checks")
    assert (status, "too few draws" in said) == (4, True)
