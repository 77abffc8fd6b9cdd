"""The page of a panel from the shell: the same as from Python, of releases in files."""

import pytest

import taciturn as tc


@pytest.mark.parametrize("public", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_page_is_that_of_python(run, fit_loglinear, religion_sample, tmp_path, public):
    tc.save_fit(fit_loglinear, tmp_path / "fit.nc")
    rounded = tc.random_round(religion_sample, rounding_base=3).isel(replicate=0)
    small = (religion_sample > 0) & (religion_sample < 3)
    pattern = tc.suppress(religion_sample, small, progressbar=False)
    tc.write_release(rounded, tmp_path / "rounded.csv")
    tc.write_release(pattern, tmp_path / "suppressed.parquet", total="All")
    files = [tmp_path / "rounded.csv", tmp_path / "suppressed.parquet"]
    words = [word for file in files for word in ("--release", file)]
    flags = ["--public"] if public else []
    page = tmp_path / "panel.html"
    status, said, _ = run(
        "report", tmp_path / "fit.nc", *words, "--total", "All", "--threshold", 0.2,
        "--output", page, *flags,
    )  # fmt: skip
    assert (status, "it is not for release" in said) == (0, not public)
    releases = {"rounded": rounded, "suppressed": pattern.release}
    tc.report(
        fit_loglinear, tmp_path / "same.html", releases=releases, threshold=0.2, public=public,
        progressbar=False,
    )  # fmt: skip
    assert page.read_text() == (tmp_path / "same.html").read_text()


def test_a_fit_that_did_not_converge_has_its_status(run, fit_as_chain, tmp_path):
    stuck = fit_as_chain.isel(draw=slice(0, 300)).copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e4
    tc.save_fit(stuck, tmp_path / "fit.nc")
    status, _, said = run("report", tmp_path / "fit.nc", "--output", tmp_path / "panel.html")
    assert (status, "did not converge" in said) == (3, True)
    assert "Do not rely on these numbers" in (tmp_path / "panel.html").read_text()


def test_earlier_releases_are_those_of_the_log(run, fit_loglinear, religion_sample, tmp_path):
    pytest.importorskip("duckdb")
    tc.save_fit(fit_loglinear, tmp_path / "fit.nc")
    labels = {dim: religion_sample[dim].values.tolist() for dim in religion_sample.dims}
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables=labels)
    log.add(religion_sample.sum("religion"), name="people by area", protection="none")
    words = ["--log", log.path, "--output", tmp_path / "panel.html"]
    status, _, _ = run("report", tmp_path / "fit.nc", *words)
    assert status == 0
    tc.report(fit_loglinear, tmp_path / "same.html", log=log, progressbar=False)
    assert "people by area" in (tmp_path / "panel.html").read_text()
    assert (tmp_path / "panel.html").read_text() == (tmp_path / "same.html").read_text()
