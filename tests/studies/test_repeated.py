"""Repeated-sampling studies: arithmetic on draws known in advance, pairing, stores,
workers, interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn import cli
from taciturn.errors import FileFormatError, ParameterError
from taciturn.estimators.problem import make_problem
from taciturn.fits.unlabelled import fit_draws, interval, measure
from taciturn.studies.jobs import Job, draw_job_sample
from toys import Refuses, Scripted, Slow, Truth, running_children

QUIET = {"progressbar": False, "random_seed": 1, "workers": 1}
POPULATION = xr.DataArray([5, 3, 1, 1], dims="cell", coords={"cell": list("abcd")})
PLUG_INS = {"log-linear": tc.LogLinear(), "urn": tc.PolyaUrn(theta=1.0)}


def samples_of(size, samples):
    """The samples a study of `POPULATION` with seed 1 sees."""
    job = Job(POPULATION, None, None, size, 0, {}, 1, (0.1, 0.8, 0.1), "fast", 1)
    return [draw_job_sample(replace(job, sample=number)) for number in range(samples)]


def test_draws_are_those_of_fit(religion_sample):
    """A study leaves out labels and replicates, nothing else."""
    problem = make_problem(religion_sample, 2449)
    for estimator in (tc.LogLinear(), tc.PolyaUrn(), tc.DirichletLogLinear()):
        fit = estimator.fit(
            religion_sample, population_size=2449, draws=40, chains=1, random_seed=7
        )
        drawn = fit_draws(estimator, problem, 40, 7, "fast").population
        np.testing.assert_array_equal(
            drawn, fit["posterior_predictive"]["population"].values.reshape(40, -1)
        )
        risk = tc.assess(fit)["risk"].to_dataset().squeeze("chain")
        ours = measure(drawn, problem, (0.1, 0.8, 0.1))
        for row, name in zip(ours, ("R1", "R2", "tau1"), strict=True):
            np.testing.assert_allclose(row, risk[name].values, rtol=1e-12)


def test_measures_at_their_edges():
    """One filled cell, no common zeros, structural zeros: as the labelled functions
    have it."""
    tables = {(3, 0): (1, 0), (2, 1): (1, 1), (9, 1): (0, 1)}
    for F, f in tables.items():
        population, sample = xr.DataArray(list(F), dims="x"), xr.DataArray(list(f), dims="x")
        expected = tc.disclosure_risk(population, sample)
        ours = measure(np.array([F]), make_problem(sample, sum(F)), (0.1, 0.8, 0.1))[:, 0]
        assert ours[:2] == pytest.approx([float(expected.R1), float(expected.R2)])
    zeros = xr.DataArray([False, True, False, False], dims="x")
    population, sample = xr.DataArray([4, 0, 3, 0], dims="x"), xr.DataArray([2, 0, 0, 0], dims="x")
    expected = tc.disclosure_risk(population, sample, where=~zeros)
    ours = measure(population.values[None], make_problem(sample, 7, zeros), (0.1, 0.8, 0.1))[:, 0]
    assert ours[:2] == pytest.approx([float(expected.R1), float(expected.R2)])


def test_arithmetic_of_an_estimator_that_knows_the_truth():
    knows = Truth(population=dict(zip("abcd", POPULATION.values.tolist(), strict=True)))
    result = tc.study(POPULATION, {"truth": knows}, fractions=[0.5], samples=9, draws=10, **QUIET)
    for name in ("bias", "rmse", "width", "score", "bias_mcse", "rmse_mcse", "width_mcse"):
        np.testing.assert_allclose(result[name].values, 0.0, atol=1e-15)
    np.testing.assert_array_equal(result.coverage.values, 1.0)
    # Beta(9 + 1/2, 1/2): variance a b / ((a + b)^2 (a + b + 1))
    np.testing.assert_allclose(result.coverage_mcse.values, (9.5 * 0.5 / (10**2 * 11)) ** 0.5)
    np.testing.assert_allclose(
        result.truth.sel(measure="R1"), float(tc.disclosure_risk(POPULATION).R1)
    )
    np.testing.assert_allclose(result.truth.values, result.estimate.values)


def test_arithmetic_of_scripted_draws():
    """Half of the draws put the rest into cell a, half into cell b; every statistic
    again, sample by sample."""
    S, n, N = 8, 5, 10
    result = tc.study(
        POPULATION, {"x": Scripted(cells=(0, 1))}, fractions=[n / N], samples=S, draws=40, **QUIET
    )
    cell = result.sel(estimator="x", fraction=n / N)
    seen = samples_of(n, S)
    assert len({tuple(f.values.tolist()) for f in seen}) > 2
    assert {int(f.sum()) for f in seen} == {n}
    for name in ("R1", "R2", "tau1"):
        truth, mean, low, high = np.array([scripted_by_hand(f, name, N - n) for f in seen]).T
        score = [
            b - a + (40 * (a - t) if t < a else 40 * (t - b) if t > b else 0)
            for t, a, b in zip(truth, low, high, strict=True)
        ]
        expected = {
            "truth": truth.mean(),
            "estimate": mean.mean(),
            "bias": (mean - truth).mean(),
            "rmse": ((mean - truth) ** 2).mean() ** 0.5,
            "coverage": ((low <= truth) & (truth <= high)).mean(),
            "width": (high - low).mean(),
            "score": np.mean(score),
            "score_mcse": np.std(score, ddof=1) / S**0.5,
            "truth_mcse": np.std(truth, ddof=1) / S**0.5,
            "bias_mcse": np.std(mean - truth, ddof=1) / S**0.5,
            "width_mcse": np.std(high - low, ddof=1) / S**0.5,
        }
        expected["rmse_mcse"] = (
            np.std((mean - truth) ** 2, ddof=1) / S**0.5 / (2 * expected["rmse"])
        )
        for statistic, value in expected.items():
            assert cell[statistic].sel(measure=name).item() == pytest.approx(value, abs=1e-14), (
                name,
                statistic,
            )


def scripted_by_hand(sample, name, rest):
    """Truth, mean and interval of one sample: two tables with probability 1/2 each, the
    interval's two ends."""
    values = []
    for F in (POPULATION, sample + np.array([rest, 0, 0, 0]), sample + np.array([0, rest, 0, 0])):
        risk = tc.disclosure_risk(F, sample).merge(
            tc.risk.unique_risk(F, sample), combine_attrs="override"
        )
        values.append(float(risk[name]))
    truth, first, second = values
    return truth, (first + second) / 2, min(first, second), max(first, second)


def test_one_sample_by_hand():
    """The sample of everybody: truth, draws and interval coincide, and no spread can be
    told from one sample."""
    result = tc.study(POPULATION, {"x": Scripted()}, fractions=[1.0], samples=1, draws=3, **QUIET)
    cell = result.sel(estimator="x", fraction=1.0)
    assert cell.truth.sel(measure="tau1") == 2
    assert cell.truth.sel(measure="R1") == pytest.approx(cell.truth.sel(measure="R2"))
    assert cell.coverage.values.tolist() == [1, 1, 1]
    assert np.isnan(cell.bias_mcse).all()


def test_interval_of_a_count_is_whole_numbers():
    draws = np.repeat([0.0, 1.0, 2.0, 3.0], [2, 48, 48, 2])
    assert interval(draws, "tau1") == (
        1,
        2,
    )  # P(<= 0) = 0.02 < 0.025 <= P(<= 1); P(<= 2) = 0.98 >= 0.975
    draws = np.repeat([0.0, 1.0, 2.0, 3.0], [3, 47, 47, 3])
    assert interval(draws, "tau1") == (0, 3)
    assert interval(np.arange(1.0, 42.0), "R2") == pytest.approx((2, 40))


@pytest.fixture(scope="module")
def serial(religion):
    return tc.study(religion, PLUG_INS, fractions=(0.1, 0.01), samples=5, draws=20, **QUIET)


@pytest.mark.slow
def test_same_numbers_whatever_the_workers(religion, serial):
    settings = QUIET | {"workers": 2}
    parallel = tc.study(religion, PLUG_INS, fractions=(0.1, 0.01), samples=5, draws=20, **settings)
    assert parallel.identical(serial)


def test_samples_are_shared_and_seeds_are_each_ones_own(religion, serial):
    assert (serial.truth.isel(estimator=0) == serial.truth.isel(estimator=1)).all()
    alone = tc.study(
        religion, {"urn": PLUG_INS["urn"]}, fractions=[0.01], samples=5, draws=20, **QUIET
    )
    xr.testing.assert_equal(alone, serial.sel(estimator=["urn"], fraction=[0.01]))


def test_shape_and_settings(serial):
    assert dict(serial.sizes) == {"estimator": 2, "fraction": 2, "measure": 3}
    settings = json.loads(serial.attrs["settings"])
    assert (settings["random_seed"], settings["samples"], settings["draws"]) == (1, 5, 20)
    assert settings["estimators"]["urn"]["theta"] == 1.0
    table = tc.studies.study_table(serial)
    assert len(table) == 2 * 2 * 3
    assert {"bias", "bias_mcse", "failures"} <= set(table.columns)


def test_a_torn_store_continues_to_the_same_result(religion, serial, tmp_path):
    store = tmp_path / "study.jsonl"
    arguments = {"fractions": (0.1, 0.01), "draws": 20, "store": store, **QUIET}
    tc.study(religion, PLUG_INS, samples=3, **arguments)
    whole = store.read_bytes()
    assert whole.count(b"\n") == 1 + 2 * 2 * 3
    for cut in (7, whole.index(b"\n") - 20, whole.index(b"\n") + 30):
        store.write_bytes(whole[: cut if cut > 7 else len(whole) - cut])
        result = tc.study(religion, PLUG_INS, samples=5, **arguments)
        assert result.identical(serial)
        assert store.read_bytes().count(b"\n") == 1 + 2 * 2 * 5
    before = store.read_bytes()
    assert tc.study(religion, PLUG_INS, samples=5, **arguments | {"random_seed": None}).identical(
        serial
    )
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 21}, "its draws is 20, here it is 21"),
        ({"random_seed": 2}, "its random seed is 1, here it is 2"),
        ({"fractions": (0.1, 0.02)}, "its sample sizes is"),
        ({"weights": (0, 1, 0)}, "its weights is"),
        (
            {"estimators": {"log-linear": tc.LogLinear(), "urn": tc.PolyaUrn(theta=2.0)}},
            "its estimators is",
        ),
    ],
)
def test_another_studys_store_is_refused(religion, tmp_path, change, message):
    store = tmp_path / "study.jsonl"
    arguments = {
        "estimators": PLUG_INS,
        "fractions": (0.1, 0.01),
        "samples": 1,
        "draws": 20,
        "store": store,
    } | QUIET
    tc.study(religion, **arguments)
    before = store.read_bytes()
    with pytest.raises(FileFormatError, match=message):
        tc.study(religion, **arguments | change)
    assert store.read_bytes() == before


def test_structural_zeros_of_a_store_are_known_by_their_labels(tmp_path):
    counts = np.random.default_rng(0).poisson(8, (3, 2, 2))
    counts[0, 0, 0] = counts[2, 0, 0] = 0
    labels = {"a": list("xyz"), "b": [1, 2], "c": [1, 2]}
    population = xr.DataArray(counts, coords=labels, dims=("a", "b", "c"))
    zeros = xr.zeros_like(population, dtype=bool)
    zeros[0, 0, 0] = True
    store = tmp_path / "study.jsonl"
    given = {"fractions": [0.2], "draws": 10, "store": store, **QUIET}

    def study(zeros, samples):
        return tc.study(population, PLUG_INS, structural_zeros=zeros, samples=samples, **given)

    study(zeros, 2)
    again = study(zeros[::-1].transpose("c", "a", "b"), 3)
    assert again.identical(study(zeros, 3))
    with pytest.raises(FileFormatError, match=r"its structural zeros is \[0\], here it is \[8\]"):
        study(zeros.assign_coords(a=list("zyx")), 3)


def test_failures_are_counted_and_do_not_cover():
    S = 12
    result = tc.study(
        POPULATION, {"refuses": Refuses()}, fractions=[0.2], samples=S, draws=4, **QUIET
    )
    failures = int(result.failures.item())
    assert 0 < failures < S
    covered = result.coverage.sel(measure="R1").item() * S
    assert covered == pytest.approx(round(covered))
    assert (result.coverage <= (S - failures) / S).all()
    assert "EstimationError: nobody in the first cell" in result.attrs["failure_messages"]
    assert np.isfinite(result.bias).all()
    nobody = xr.DataArray([0, 5, 5], dims="cell")
    never = tc.study(nobody, {"x": Refuses()}, fractions=[0.2], samples=3, draws=4, **QUIET)
    assert never.failures.item() == 3
    assert never.coverage.values.ravel().tolist() == [0, 0, 0]
    assert np.isnan(never.bias).all()
    assert np.isfinite(never.truth).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fractions": []}, "at least one sampling fraction"),
        ({"fractions": [0]}, "fractions must be"),
        ({"fractions": [1.5]}, "fractions must be"),
        ({"fractions": [0.1, 0.1001]}, "as another fraction does"),
        ({"samples": 0}, "samples must be"),
        ({"draws": True}, "draws must be"),
        ({"workers": 0}, "workers must be"),
        ({"estimators": {}}, "at least one estimator"),
        ({"estimators": {"x": tc.LogLinear}}, "must be an Estimator"),
        ({"random_seed": -1}, "random_seed must be"),
        ({"weights": (1, 1, 1)}, "sum to 1"),
        ({"method": "magic"}, "method must be"),
        ({"estimators": [tc.LogLinear()]}, "estimators must be a mapping of names"),
        ({"estimators": {1: tc.LogLinear()}}, "name of an estimator must be text, got 1"),
        ({"fractions": 0.1}, "fractions must be numbers, such as"),
        ({"fractions": ["0.1"]}, "fractions must be up to 1"),
        ({"known_margins": 3}, "known_margins must be names of variables, got 3"),
        ({"store": 3}, "store must be the name of a file, got 3"),
    ],
)
def test_wrong_arguments(religion, change, message):
    with pytest.raises(ParameterError, match=message):
        tc.study(religion, **{"estimators": PLUG_INS, "samples": 1, "draws": 2} | QUIET | change)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


@contextmanager
def studying(store, code, *arguments):
    """A process of its own whose study has stored some records, and its workers."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, **pipes, text=True, start_new_session=True) as process:
        try:
            until = time.monotonic() + 300
            while not (store.exists() and store.read_bytes().count(b"\n") > 2):
                assert time.monotonic() < until, "no record was stored"
                assert process.poll() is None
                time.sleep(0.1)
            workers = workers_of(process)
            assert len(workers) == 2
            yield process, workers
        finally:
            process.kill()


def workers_of(process) -> list[int]:
    return [pid for pid in running_children(process.pid) if "popen_loky" in command_of(pid)]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""  # gone since


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent alone", "as a terminal does"])
def test_ctrl_c_leaves_no_workers_and_a_store_to_continue_from(tmp_path, whole_group):
    store = tmp_path / "study.jsonl"
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import taciturn as tc
from toys import Slow
population = tc.load_dataset("area_by_religion")
estimators = {{"slow": Slow(seconds=0.5)}}
try:
    options = {{"workers": 2, "progressbar": False, "store": {str(store)!r}}}
    tc.study(population, estimators, samples=500, draws=2, **options)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""
    with studying(store, code) as (process, _):
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert workers_of(process) == []
        _, err = process.communicate("", timeout=60)
    assert "Traceback" not in err
    assert store.read_bytes().endswith(b"\n")


@pytest.mark.slow
@needs_proc
def test_a_command_that_is_told_to_end_leaves_no_workers_and_a_store(tmp_path, capsys, monkeypatch):
    table, store = tmp_path / "population.csv", tmp_path / "study.jsonl"
    tc.load_dataset("area_by_sex").to_dataframe(name="count").to_csv(table)
    words = ["study", table, "--model", "polya-urn", "--draws", 5, "--store", store]
    code, many = "from taciturn.cli import main; main()", ["--samples", 9999, "--workers", 2]
    with studying(store, code, *words, *many) as (process, workers):
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + signal.SIGTERM, "")
    assert f"the same command continues from {store}" in err
    assert not any(map(command_of, workers))
    held = store.read_bytes()
    few = ["--samples", 3, "--workers", 1]
    monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, [*words, *few])])
    cli.main()
    assert "polya-urn" in capsys.readouterr().out
    assert store.read_bytes().startswith(held[: held.rfind(b"\n") + 1])


def test_command_line(tmp_path, capsys, monkeypatch):
    table, output = tmp_path / "population.csv", tmp_path / "study.csv"
    tc.load_dataset("area_by_sex").to_dataframe(name="count").reset_index().to_csv(
        table, index=False
    )
    arguments = [
        "study",
        table,
        "--model",
        "log-linear",
        "--model",
        "polya-urn",
        "--fractions",
        "0.1,0.02",
    ]
    arguments += ["--samples", 2, "--draws", 5, "--seed", 1, "--workers", 1, "--output", output]
    arguments += ["--store", tmp_path / "store.jsonl"]
    monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, arguments)])
    cli.main()
    out, _ = capsys.readouterr()
    assert out.count("polya-urn") == 2 * 3
    rows = output.read_text().splitlines()
    assert rows[0].startswith("fraction,measure,estimator,truth,truth_mcse")
    assert len(rows) == 1 + 2 * 2 * 3
    monkeypatch.setattr(
        sys, "argv", ["taciturn", "study", str(table), "--model", "log-linear", "--fractions", "a"]
    )
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 2


def test_slow_is_slow():
    """The estimator of the interruption test does work when it is left alone."""
    result = tc.study(
        POPULATION, {"slow": Slow(seconds=0.0)}, fractions=[0.5], samples=1, draws=2, **QUIET
    )
    assert result.failures.item() == 0
