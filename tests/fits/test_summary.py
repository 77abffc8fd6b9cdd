"""From a fit to its summary and file: numbers, text, round trips and refusals."""

import json
import shutil
from xml.etree import ElementTree

import arviz as az
import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError
from taciturn.fits.summary import _exceedance_text


@pytest.fixture(scope="module")
def plug_in(religion_sample):
    """An assessed fit that costs nothing."""
    return tc.assess(
        tc.LogLinear().fit(
            religion_sample, population_size=2449, draws=200, chains=2, random_seed=3
        )
    )


def test_assess_adds_the_risk_of_every_draw_and_leaves_its_input_alone(religion_sample):
    fit = tc.LogLinear().fit(
        religion_sample, population_size=2449, draws=20, chains=2, random_seed=3
    )
    assessed = tc.assess(fit, weights=(0.2, 0.5, 0.3))
    assert "risk" not in fit.children
    risk = assessed["risk"].to_dataset()
    assert set(risk.data_vars) == {
        "R1",
        "R2",
        "zero_term",
        "entropy_term",
        "tau1",
        "tau2",
    }
    population = fit["posterior_predictive"]["population"]
    one = tc.disclosure_risk(population[1, 7], religion_sample, weights=(0.2, 0.5, 0.3))
    assert float(risk["R2"][1, 7]) == float(one["R2"])
    assert risk.attrs["size_term"] == float(one["size_term"])
    assert float(risk["tau1"][1, 7]) == int(
        ((population[1, 7] == 1) & (religion_sample == 1)).sum()
    )


def test_assess_refuses_draws_that_break_the_population_contract(plug_in):
    broken = plug_in.copy(deep=True)
    broken["posterior_predictive"]["population"][0, 0] += 1
    with pytest.raises(
        tc.TaciturnError, match="does not sum to the population size 2449 at chain=0, draw=0"
    ):
        tc.assess(broken)


@pytest.mark.parametrize("group", ["posterior_predictive", "observed_data", "constant_data"])
def test_assess_names_the_missing_group(plug_in, group):
    partial = plug_in.copy()
    del partial[group]
    with pytest.raises(tc.TaciturnError, match=group):
        tc.assess(partial)


def test_summary_table_is_computed_from_the_draws(plug_in):
    result = tc.summary(plug_in, threshold=0.2)
    draws = plug_in["risk"]["R2"].values.ravel()
    row = result.table.loc["R2"]
    assert row["mean"] == pytest.approx(draws.mean())
    assert row["sd"] == pytest.approx(draws.std(ddof=1))
    assert row["2.5%"] == pytest.approx(np.quantile(draws, 0.025))
    assert row["97.5%"] == pytest.approx(np.quantile(draws, 0.975))
    assert result.exceedance == (draws > 0.2).mean()
    assert result.converged
    assert result.diagnostics is None


def test_summary_reads_like_a_call_with_its_table(plug_in):
    text = str(tc.summary(plug_in, threshold=0.2, probability=0.9))
    for part in (
        "LogLinear()",
        "area + religion",
        "K = 90",
        "n = 245 of N = 2449",
        "P(R2 > 0.2)",
        "95%",
    ):
        assert part in text
    assert "random_seed=3" in text


def test_a_threshold_no_draw_reaches_is_not_given_a_false_error(plug_in):
    assert "none of 400 draws" in str(tc.summary(plug_in, threshold=0.9))


def test_a_threshold_that_one_draw_reaches_is_not_given_as_certain():
    for first, rest, said in ((0.5, 0.1, "3 of 10000 draws"), (0.1, 0.5, "9997 of 10000 draws")):
        values = np.full((4, 2500), rest)
        values[0, :3] = first
        above = xr.DataArray(values, dims=("chain", "draw")) > 0.2
        assert _exceedance_text(above, 0.2, None) == f"P(R2 > 0.2): {said}"


def test_summary_of_a_bayesian_fit_reports_its_sampler(fit_as_chain):
    result = tc.summary(fit_as_chain)
    assert result.diagnostics is not None
    assert result.diagnostics.divergences == 0
    assert result.converged
    assert ": converged" in str(result)


def test_a_fit_that_fails_says_so(fit_as_chain):
    stuck = fit_as_chain.copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e4
    result = tc.summary(stuck)
    assert not result.converged
    assert "NOT CONVERGED" in str(result)
    assert result.sentence.startswith("Do not rely on these numbers: the sampler did not converge")
    assert str(result).splitlines()[2] == result.sentence
    assert result.to_dict()["problems"] == list(result.problems)


def test_a_model_that_does_not_give_such_samples_says_so_first(plug_in):
    wrong = plug_in.copy()
    samples = wrong["posterior_predictive"]["count"]
    wrong["posterior_predictive"] = wrong["posterior_predictive"].copy()
    wrong["posterior_predictive"]["count"] = samples.where(samples != 1, 0)
    result = tc.summary(wrong)
    assert result.converged
    (problem,) = result.problems
    assert "uniques, 9 in the sample, 0 to 0 in samples of the fitted model" in problem
    assert result.sentence == f"Do not rely on these numbers: {problem}. {tc.LogLinear.caution}"
    assert str(result).splitlines()[2] == result.sentence
    first, second, *_ = ElementTree.fromstring(result.to_html()).iter("strong")
    assert (first.text, second.text) == ("Disclosure risk of a sample table", result.sentence)
    assert tc.summary(plug_in).problems == ()


def test_divergences_alone_are_a_failure(fit_as_chain):
    diverged = fit_as_chain.copy(deep=True)
    diverged["sample_stats"]["diverging"][0, 0] = True
    assert "1 transitions diverged" in str(tc.summary(diverged))


def test_a_census_as_sample_has_a_sure_risk(religion):
    fit = tc.LogLinear().fit(religion, population_size=2449, draws=10, random_seed=1)
    assert tc.summary(fit).table.loc["R2", "sd"] == 0
    fit = tc.ChineseRestaurant().fit(religion, population_size=2449, draws=100, random_seed=1)
    true = float(tc.disclosure_risk(religion, religion).R2)
    said = f"the sample is the whole population: the table gives away R2 = {true:.3f} on a scale"
    assert said in tc.summary(fit).sentence


def test_of_a_census_the_model_says_nothing():
    """Neither few draws, nor checks, nor cells that may be impossible matter."""
    table = xr.DataArray(
        [[50, 0, 3], [1, 90, 0], [0, 2, 70]],
        coords={"a": ["x", "y", "z"], "b": ["u", "v", "w"]},
        name="count",
    )

    def found(size):
        return tc.summary(tc.LogLinear().fit(table, population_size=size, draws=10, random_seed=1))

    with pytest.warns(tc.ConvergenceWarning):
        chain = tc.DirichletLogLinear().fit(
            table, population_size=216, draws=30, tune=3, chains=2, method="nuts", random_seed=1
        )
    assert not tc.summary(chain).diagnostics.converged
    assert tc.summary(chain).converged
    one_more, census = found(217), found(216)
    assert "too few draws" in one_more.sentence
    assert "structural zeros" in one_more.sentence
    assert len(one_more.problems) == 2  # of the draws, and of the checks
    assert census.problems == ()
    assert census.sentence.startswith("In words: the sample is the whole population")
    assert census.sentence.endswith("in their cell: 1.")


@pytest.mark.parametrize(
    ("argument", "value"), [("threshold", 1.5), ("threshold", -0.1), ("probability", 1.0)]
)
def test_summary_refuses(plug_in, argument, value):
    with pytest.raises(tc.TaciturnError, match=f"{argument} must be .* got {value}"):
        tc.summary(plug_in, **{argument: value})


def test_labels_are_escaped_where_they_are_shown_as_html():
    sample = xr.DataArray(
        [[3, 1], [2, 4]], dims=("<script>", "b"), coords={"<script>": [1, 2], "b": [1, 2]}
    )
    fit = tc.LogLinear().fit(sample, population_size=20, draws=10, random_seed=1)
    shown = tc.summary(fit)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_notebook_shows_tables(plug_in):
    found = tc.summary(plug_in, threshold=0.2)
    shown = ElementTree.fromstring(found.to_html())
    facts, measures, checks, findings = (
        [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in shown.findall("table")
    )
    assert [row[0] for row in facts] == list(found.facts)
    assert measures[0] == ["", *found.table.columns]
    assert measures[2] == ["R2", *(f"{value:.4f}" for value in found.table.loc["R2"])]
    assert checks[2][:2] == ["uniques", str(int((plug_in["observed_data"]["count"] == 1).sum()))]
    assert [row[0] for row in findings] == ["Exceedance", "Prior", "Diagnostics"]
    assert found.sentence in [part.text for part in shown.findall("p")]


def test_a_saved_fit_is_read_back_by_us_and_by_arviz(plug_in, tmp_path):
    path = tmp_path / "fit.nc"
    tc.save_fit(plug_in, path)
    again = tc.read_fit(path)
    xr.testing.assert_identical(
        again["posterior_predictive"]["population"], plug_in["posterior_predictive"]["population"]
    )
    assert again.attrs == plug_in.attrs
    assert str(tc.summary(again)) == str(tc.summary(plug_in))
    assert float(az.from_netcdf(path)["risk"]["R2"].mean()) == float(plug_in["risk"]["R2"].mean())
    assert [p.name for p in tmp_path.iterdir()] == ["fit.nc"]


@pytest.mark.parametrize(
    "name", ["fit_dirichlet", pytest.param("restaurant_by_nuts", marks=pytest.mark.slow), "fit_urn"]
)
def test_a_saved_fit_repeats_to_the_digit(name, request, tmp_path):
    fit = request.getfixturevalue(name)
    path = tmp_path / "fit.nc"
    tc.save_fit(fit, path)
    again = tc.fits.repeat_fit(tc.read_fit(path), progressbar=False)
    np.testing.assert_array_equal(
        again["posterior_predictive"]["population"].values,
        fit["posterior_predictive"]["population"].values,
    )


def test_structural_zeros_survive_saving_and_repeating(tmp_path):
    sample = xr.DataArray(
        [[3, 0], [2, 4]], dims=("a", "b"), coords={"a": ["x", "y"], "b": ["u", "v"]}
    )
    zeros = sample.copy(data=[[False, True], [False, False]])
    fit = tc.PolyaUrn(theta=2.0).fit(
        sample, population_size=30, structural_zeros=zeros, draws=20, random_seed=5
    )
    tc.save_fit(tc.assess(fit), tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    assert "1 structural zeros" in str(tc.summary(read))
    again = tc.fits.repeat_fit(read)
    assert int(again["posterior_predictive"]["population"].sel(a="x", b="v").sum()) == 0
    np.testing.assert_array_equal(
        again["posterior_predictive"]["population"].values,
        fit["posterior_predictive"]["population"].values,
    )


def test_a_failed_write_leaves_the_old_file_whole(plug_in, tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    path.write_bytes(b"old")

    def fails(self, target, **_):
        target.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", fails)
    with pytest.raises(tc.TaciturnError, match="no space left"):
        tc.save_fit(plug_in, path, overwrite=True)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["fit.nc"]


def test_saving_to_no_place_is_refused(plug_in, tmp_path):
    with pytest.raises(tc.TaciturnError, match="does not exist"):
        tc.save_fit(plug_in, tmp_path / "nowhere" / "fit.nc")
    with pytest.raises(tc.TaciturnError, match="is a folder"):
        tc.save_fit(plug_in, tmp_path)


def test_files_that_hold_no_fit_are_refused(plug_in, tmp_path):
    path = tmp_path / "fit.nc"
    with pytest.raises(tc.TaciturnError, match="no such file"):
        tc.read_fit(path)
    path.write_bytes(b"not netCDF at all")
    with pytest.raises(tc.TaciturnError, match="not a fit, which save_fit"):
        tc.read_fit(path)
    tc.save_fit(plug_in, path, overwrite=True)
    whole = path.read_bytes()
    for part in (100, len(whole) // 2, len(whole) - 200):
        path.write_bytes(whole[:part])
        with pytest.raises(tc.TaciturnError, match=r"fit\.nc"):
            tc.read_fit(path)
    xr.Dataset({"x": 1}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(tc.TaciturnError, match="holds no fit"):
        tc.read_fit(path)


def test_a_fit_of_a_newer_layout_is_refused(plug_in, tmp_path):
    newer = plug_in.copy()
    newer.attrs["schema_version"] = 99
    tc.save_fit(newer, tmp_path / "fit.nc")
    with pytest.raises(tc.TaciturnError, match=r"newer version \(layout 99, this one"):
        tc.read_fit(tmp_path / "fit.nc")


def _of_no_member(fit):
    fit["posterior"]["member"] = fit["posterior"]["member"] + 7


def _without_numbers(fit):
    fit["posterior"]["restaurant_theta"] = fit["posterior"]["restaurant_theta"].where(False)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda fit: fit.attrs.update(schema_version="x"), "must be a whole number up to 2, got"),
        (lambda fit: fit.attrs.update(importance='{"other": {}}'), "sampling of 'other', but the"),
        (_of_no_member, "must be from 0 to 1, the numbers of the members, got 7 to 8"),
        (
            lambda fit: fit.__delitem__("posterior"),
            "the posterior of a mixture must have the numbers",
        ),
        (_without_numbers, "'restaurant_theta' of the group 'posterior' is NaN at chain=0, draw=0"),
    ],
)
def test_a_damaged_pool_is_refused(damage, message, tmp_path):
    sample = xr.DataArray([[5, 1], [0, 2]], dims=("a", "b"))
    fit = tc.LinearPool().fit(sample, population_size=20, draws=20, chains=1, random_seed=1)
    tc.save_fit(fit, tmp_path / "fit.nc")
    assert tc.read_fit(tmp_path / "fit.nc")["posterior"].identical(fit["posterior"])
    damage(fit)
    tc.save_fit(fit, tmp_path / "fit.nc", overwrite=True)
    with pytest.raises(FileFormatError, match=rf"fit\.nc: .*{message}"):
        tc.read_fit(tmp_path / "fit.nc")


def test_a_saved_specification_cannot_name_anything_but_an_estimator(plug_in):
    forged = plug_in.copy()
    forged.attrs["estimator"] = json.dumps({"estimator": "os.system", "formula": "x"})
    with pytest.raises(tc.TaciturnError, match=r"no estimator 'os\.system'"):
        tc.fits.repeat_fit(forged)


def test_disk_is_left_as_it_was_when_reading(plug_in, tmp_path):
    path = tmp_path / "fit.nc"
    tc.save_fit(plug_in, path)
    shutil.copy(path, tmp_path / "copy.nc")
    tc.read_fit(path)
    assert path.read_bytes() == (tmp_path / "copy.nc").read_bytes()


def test_a_variable_with_a_space_survives_a_file(religion_sample, tmp_path):
    """CF's list of coordinates cannot name it."""
    sample = religion_sample.rename(religion="age group")
    fit = tc.assess(
        tc.ChineseRestaurant().fit(
            sample, population_size=2449, draws=50, chains=2, random_seed=3, progressbar=False
        ),
        by="age group",
    )
    tc.save_fit(fit, tmp_path / "fit.nc")
    again = tc.read_fit(tmp_path / "fit.nc")
    for group in fit.children:
        xr.testing.assert_identical(again[group].to_dataset(), fit[group].to_dataset())
    assert str(tc.summary(again)) == str(tc.summary(fit))


def test_the_call_of_a_summary_says_what_was_known(religion, religion_sample):
    told = {"known_margins": religion.sum("religion")}
    fit = tc.LogLinear().fit(
        religion_sample, population_size=2449, draws=20, chains=2, random_seed=3, **told
    )
    assert ", known_margins=known_margins, draws=20" in tc.summary(fit).facts["Call"]


def test_sums_of_weights_are_no_sample(religion_sample):
    weights = (10 * religion_sample).rename("weighted_count")
    with pytest.raises(tc.errors.TableError, match="give the sample as it was counted"):
        tc.LogLinear().fit(weights, population_size=24_490)
