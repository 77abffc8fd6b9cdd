"""The command line as a person meets it: exit statuses, messages, files, and nothing
like a traceback."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli
from taciturn.estimators import ESTIMATORS

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "area_by_religion_sample.csv"
QUICK = ["--model", "log-linear", "--draws", "50", "--seed", "1"]


def run(capsys, monkeypatch, *arguments):
    """Run the command in this process; exit status, standard output and error."""
    monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, arguments)])
    status = 0
    try:
        cli.main()
    except SystemExit as done:
        status = done.code or 0
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


@pytest.fixture
def taciturn(capsys, monkeypatch):
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


def test_assess_prints_what_python_gives(taciturn, tmp_path):
    status, out, _ = taciturn(
        "assess", SAMPLE, "-N", 2449, *QUICK, "--threshold", 0.2, "--save", tmp_path / "fit.nc"
    )
    assert status == 0
    fit = tc.LogLinear().fit(tc.read_table(SAMPLE), population_size=2449, draws=50, random_seed=1)
    assert out == f"{tc.summary(fit, threshold=0.2)}\n"
    saved = tc.read_fit(tmp_path / "fit.nc")
    np.testing.assert_array_equal(saved["risk"]["R2"].values, tc.assess(fit)["risk"]["R2"].values)


def test_every_model_can_be_named():
    from taciturn.cli.assess import assess

    (option,) = [each for each in assess.params if each.name == "model"]
    for name, cls in ESTIMATORS.items():
        assert option.type.convert(cls.command_name, None, None) == cls.command_name
        assert cls.command_name in option.help, name


def test_a_fit_that_does_not_converge_has_its_own_exit_status(taciturn, monkeypatch):
    from taciturn.diagnostics import Diagnostics

    module = importlib.import_module("taciturn.fits.summary")
    monkeypatch.setattr(module, "diagnose", lambda *_: Diagnostics(1.2, 30.0, 20.0, 5))
    status, out, err = taciturn("assess", SAMPLE, "-N", 2449, *QUICK)
    assert status == 3
    assert "NOT CONVERGED" in out
    assert "did not converge" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,count\n1,1,-3\n1,2,4\n", "a=1, b=1 holds '-3'"),
        ("a,b,count\n1,1,1.5\n1,2,4\n", "a=1, b=1 holds '1.5'"),
        ("a,b,count\n1,1,\n1,2,4\n", "a=1, b=1"),
        ("a,b,count\n1,1,inf\n1,2,4\n", "a=1, b=1"),
        ("a,b,count\n1,1,99999999999999999999\n1,2,4\n", "a=1, b=1"),
        ("a,b,count\n1,1,3\n1,1,4\n", "a=1, b=1 stands in more than one row"),
        ("a,b,count\n1,1,3\n", "at least two"),
        ("a,b,count\n1,1,0\n1,2,0\n", "the sample is empty"),
        ("a,b,count\n", "no rows"),
        ("", "the file is empty"),
        ("a,b\n1,1\n", "no column 'count'"),
        ("a,b,count\n1,1,60\n1,2,4\n", "population_size must be from the sample's 64"),
    ],
)
def test_bad_tables_are_one_clear_line(taciturn, tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_text(content)
    status, out, err = taciturn("assess", path, "-N", 50, *QUICK)
    assert status == 1
    assert out == ""
    assert err.startswith("taciturn: error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "0.5,0.5,0.5"], "sum to 1"),
        (["--weights", "-0.1,1,0.1"], "non-negative"),
        (["--weights", "a,b,c"], "could not convert"),
        (["--weights", "0.5,0.5"], "three numbers"),
        (["--threshold", "2"], "0<=x<=1"),
        (["--model", "magic"], "magic"),
        (["--draws", "0"], "1<=x<=1000000"),
    ],
)
def test_wrong_usage_has_status_two(taciturn, arguments, message):
    status, out, err = taciturn("assess", SAMPLE, "-N", 2449, *arguments)
    assert status == 2
    assert out == ""
    assert message in err


def test_a_missing_population_size_is_wrong_usage(taciturn):
    status, _, err = taciturn("assess", SAMPLE)
    assert status == 2
    assert "--population-size" in err


def test_a_formula_is_never_evaluated(taciturn, tmp_path):
    mark = tmp_path / "mark"
    status, _, err = taciturn(
        "assess", SAMPLE, "-N", 2449, "--formula", f"~ __import__('pathlib').Path('{mark}').touch()"
    )
    assert status == 1
    assert "the table's variables are 'area', 'religion'" in err
    assert not mark.exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(taciturn, tmp_path, monkeypatch):
    monkeypatch.setattr(tc.LogLinear, "fit", lambda *_, **__: pytest.fail("sampled first"))
    status, _, err = taciturn(
        "assess", SAMPLE, "-N", 2449, *QUICK, "--save", tmp_path / "no" / "fit.nc"
    )
    assert status == 1
    assert "does not exist" in err


def test_what_nobody_foresaw_is_a_message_too(taciturn, monkeypatch):
    def breaks(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(tc.LogLinear, "fit", breaks)
    status, _, err = taciturn("assess", SAMPLE, "-N", 2449, *QUICK)
    assert status == 1
    assert "internal error" in err


def test_interrupting_writes_nothing(tmp_path):
    save = tmp_path / "fit.nc"
    arguments = [
        "assess",
        str(SAMPLE),
        "-N",
        "2449",
        "--model",
        "polya-urn",
        "--draws",
        "1000000",
        "--save",
        str(save),
    ]
    code = "import sys; from taciturn.cli import main; print('ready', flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in out + err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two saved fits of the sample, as assess --save writes them."""
    folder = tmp_path_factory.mktemp("fits")
    for name, model in {"log-linear": tc.LogLinear(), "urn": tc.PolyaUrn()}.items():
        tc.save_fit(
            model.fit(tc.read_table(SAMPLE), population_size=2449, draws=50, random_seed=1),
            folder / f"{name}.nc",
        )
    return folder


def test_compare_prints_what_python_gives(taciturn, saved, tmp_path):
    paths = [saved / "log-linear.nc", saved / "urn.nc"]
    status, out, _ = taciturn("compare", *paths, "--seed", 1, "--save", tmp_path / "stack.nc")
    assert status == 0
    fits = {path.stem: tc.read_fit(path) for path in paths}
    table = tc.compare(fits)
    assert out.splitlines()[1].split()[:2] == [table.index[0], "0.00"]
    assert f"{table['elpd'].iloc[1]:.2f}" in out
    assert "It does not say which fit is nearer in R2" in out
    stacked = tc.fits.stack(fits, random_seed=1)["posterior_predictive"]["population"]
    written = tc.read_fit(tmp_path / "stack.nc")["posterior_predictive"]["population"]
    np.testing.assert_array_equal(written, stacked)


def test_compare_refuses(taciturn, saved, tmp_path):
    path = saved / "urn.nc"
    status, out, err = taciturn("compare", path)
    assert (status, out) == (2, "")
    assert "at least two fits, got 'urn' alone" in err
    status, _, err = taciturn("compare", path, path)
    assert status == 2
    assert "two fits would be called 'urn'" in err
    assert taciturn("compare")[0] == 2
    status, _, err = taciturn("compare", path, saved / "none.nc")
    assert status == 1
    assert "no such file" in err
    status, _, err = taciturn(
        "compare", path, saved / "log-linear.nc", "--save", tmp_path / "no" / "stack.nc"
    )
    assert status == 1
    assert "does not exist" in err


def test_strata_and_weights(taciturn, tmp_path):
    sizes = tc.load_dataset("area_by_religion").sum("religion").to_series()
    strata = tmp_path / "sizes.csv"
    sizes.rename("count").to_csv(strata)
    quick = ["--draws", "50", "--seed", "1"]
    known = ["--population-size", "2449", "--strata", strata]
    status, out, _ = taciturn("assess", SAMPLE, *known, *quick)
    assert status == 0
    assert "; by area, fractions from" in out

    people = tmp_path / "people.csv"
    rows = [f"{'ab'[k % 2]},{'xyz'[k % 3]},{1 + k % 4}" for k in range(60)]
    people.write_text("\n".join(["area,age,weight", *rows]), encoding="utf-8")
    weighted = ["--variables", "area,age", "--sampling-weights", "weight"]
    status, out, _ = taciturn("assess", people, "--population-size", "150", *weighted, *quick)
    assert status == 0
    assert "; weighted\n" in out
    assert "LinearPool(members={'mixture': MixedPoisson(), 'wald'" in out
    status, out, _ = taciturn(
        "assess", people, "--population-size", "150", *weighted, "--effective-size", "20", *quick
    )
    assert "; weighted, says as much as 20 people" in out
    assert "MixedPoisson(mixing='gamma')" in out


@pytest.mark.parametrize(
    ("dims", "options", "call"),
    [
        (
            "ab",
            [],
            "LinearPool(members={'mixture': MixedPoisson(), 'wald': MixedPoisson(mixing=",
        ),
        ("abcdef", [], "LatentClass()"),
        (
            "abcdef",
            ["--formula", "~ a + b"],
            "'wald': MixedPoisson(formula='~ a + b', mixing='inverse",
        ),
    ],
    ids=["two", "six", "formula"],
)
def test_the_default_goes_by_the_variables(taciturn, tmp_path, dims, options, call):
    counts = np.arange(2 ** len(dims)).reshape((2,) * len(dims))
    path = tmp_path / "table.csv"
    xr.DataArray(counts, dims=tuple(dims), name="count").to_series().to_csv(path)
    quick = ["--draws", "30", "--tune", "10", "--seed", "1"]
    status, out, _ = taciturn("assess", path, "--population-size", "5000", *options, *quick)
    assert status in (0, 3)  # too few draws to converge
    assert call in out


def test_latent_classes_are_not_sampled_by_nuts(taciturn, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,c,d,e,f,count\nx,1,u,k,1,1,3\ny,2,v,l,2,2,4\n", encoding="utf-8")
    status, _, err = taciturn("assess", path, "--population-size", "90", "--method", "nuts")
    assert status == 2
    assert "--method nuts does not apply to latent-class" in err


def test_weights_of_no_individuals(taciturn):
    status, _, err = taciturn(
        "assess", SAMPLE, "--population-size", "2449", "--sampling-weights", "w", *QUICK
    )
    assert status == 2
    assert "needs --variables" in err
