"""Many tables in one call: the numbers of single fits, whatever the order, the workers
and interruptions; and what cannot be assessed beside what can."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import dask
import dask.array
import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import taciturn as tc
from taciturn.diagnostics import check_convergence
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.estimators.problem import make_problem
from taciturn.fits.unlabelled import draw_populations, fit_draws, measure
from taciturn.many import lazily
from taciturn.many.assessing import _chosen
from taciturn.many.collection import collected
from taciturn.many.seeds import seed_of_table
from taciturn.many.shared_profile import estimator as shared_profile

QUICK = {"draws": 60, "random_seed": 3, "progressbar": False, "workers": 1}
URN = tc.ChineseRestaurant()
SHARED = tc.SharedProfile(draws=40, tune=30, chains=2)


def sample() -> xr.DataArray:
    rng = np.random.default_rng(1)
    counts = rng.poisson(1.5, (7, 2, 4))
    coords = {"area": list("gfedcba"), "sex": ["f", "m"]}
    return xr.DataArray(counts, dims=("area", "sex", "age"), coords=coords)


SIZES = xr.DataArray(np.arange(100, 800, 100), dims="area", coords={"area": list("gfedcba")})


def assess(tables=None, **changed):
    given = {"population_size": SIZES, "over": "area", "estimator": URN, **QUICK, **changed}
    return tc.assess_many(sample() if tables is None else tables, **given)


@pytest.fixture(scope="module")
def alone():
    return assess(by="age", keep_draws=True)


@pytest.fixture(scope="module")
def together():
    with pytest.warns(tc.ConvergenceWarning):  # so few draws
        return assess(estimator=SHARED)


def test_each_table_is_a_fit_of_its_own(alone):
    area = "c"
    problem = make_problem(sample().sel(area=area, drop=True), int(SIZES.sel(area=area)))
    fit = fit_draws(URN, problem, 60, seed_of_table(3, area), "fast")
    risk = measure(fit.population, problem, (0.1, 0.8, 0.1))
    one = alone.sel(area=area)
    for values, name in zip(risk, ("R1", "R2", "tau1"), strict=True):
        assert one[f"{name}_draws"].values.tolist() == values.tolist()
        assert float(one[f"{name}_mean"]) == pytest.approx(values.mean())
    assert one["R2"].values == pytest.approx(np.quantile(risk[1], [0.025, 0.5, 0.975]))
    assert set(one["tau1"].values) <= set(risk[2])
    assert int(one["sample_size"]) == int(sample().sel(area=area).sum())
    assert int(one["population_size"]) == 500
    assert one["reason"].item() == ""
    assert bool(one["converged"])


def test_categories_are_those_of_assess(alone):
    area = "c"
    table = sample().sel(area=area, drop=True)
    problem = make_problem(table, 500)
    fit = fit_draws(URN, problem, 60, seed_of_table(3, area), "fast")
    tables = problem.draws(fit.population, 1, "population")
    risk = tc.disclosure_risk(tables, table, dim="sex")
    found = alone["R2_by_age_mean"].sel(area=area)
    assert found.values == pytest.approx(risk["R2"].mean(("chain", "draw")).values)
    assert alone["R2_by_age"].sizes == {"area": 7, "age": 4, "quantile": 3}


def test_draws_with_nobody_in_a_category_are_counted():
    """As `assess` counts them: a mean of R2 with zeros in it says nothing of them."""
    table = sample().copy()
    table[{"area": 0, "age": 3}] = 0
    found = assess(table, by="age", draws=400)
    assert found["empty_by_age"].dims == ("area", "age")
    seed, area = seed_of_table(3, "g"), table[0].drop_vars("area")
    fit = fit_draws(URN, make_problem(area, 100), 400, seed, "fast")
    nobody = (fit.population.reshape(-1, 2, 4).sum(axis=1) == 0).mean(axis=0)
    assert found["empty_by_age"].values[0].tolist() == nobody.tolist()
    assert 0 < nobody[3] < 1
    assert (nobody[:3] == 0).all()


@pytest.mark.parametrize("estimator", [URN, SHARED], ids=["alone", "shared"])
@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_neither_order_nor_workers_matter(estimator, alone, together):
    first = alone[["R2", "R1", "tau1"]] if estimator is URN else together
    turned = assess(sample()[::-1], estimator=estimator, workers=2)
    for name in ("R1", "R2", "tau1"):
        assert turned[name].sel(area=first["area"]).equals(first[name])


def test_each_area_has_draws_of_its_own(together):
    assert len(set(together["R2_mean"].values)) == 7
    one = assess(estimator=URN, random_seed=4)
    assert not one["R2"].equals(assess(estimator=URN)["R2"])


def test_tables_of_any_shape(alone):
    tables = {"x": sample()[0].drop_vars("area"), "y": sample()[0].sum("sex").drop_vars("area")}
    found = assess(tables, population_size={"y": 50, "x": 70}, over=None)
    assert found["table"].values.tolist() == ["x", "y"]
    assert found["population_size"].values.tolist() == [70, 50]
    numbered = assess(iter(tables.values()), population_size=[70, 50], over=None)
    assert numbered["table"].values.tolist() == [0, 1]
    assert numbered["R2"].shape == (2, 3)


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [URN, SHARED], ids=["alone", "shared"])
def test_chunks_give_chunks(estimator, monkeypatch):
    monkeypatch.setattr(lazily, "_OF_TASK", {"in blocks": 2, "alone": 2})
    monkeypatch.setattr(lazily, "_OF_RESULT", 4)
    how = {"estimator": estimator, "by": "age", "keep_draws": True}
    eager = assess(**how)
    of_areas = [({"area": 2}, (4, 3)), ({"area": 1}, (4, 3)), ({"area": 5}, (5, 2))]
    of_areas += [({"area": (0, 3, 0, 3, 1)}, (3, 3, 1)), ({"area": 3, "age": 1}, (3, 3, 1))]
    of_areas += [({"area": -1}, (7,)), ({"area": (7, 0)}, (7,))]
    for chunks, expected in of_areas:
        lazy = assess(sample().chunk(chunks), **how)
        assert all(array.chunks[0] == expected for array in lazy.data_vars.values())
        assert lazy.attrs == eager.attrs
        for scheduler in ("synchronous", "threads"):
            computed = lazy.compute(scheduler=scheduler)
            assert computed.equals(eager)
    one = assess(sample().chunk(area=2), **how)["R2_mean"].sel(area="c")
    assert float(one) == float(eager["R2_mean"].sel(area="c"))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.integers(1, 300))
def test_small_chunks_are_joined(chunks, most):
    """In order, to as many tables as a task may have, never split."""
    joined = lazily._joined(chunks, most, 1)
    assert [k for own in joined for k in range(own.start, own.stop)] == list(range(len(chunks)))
    assert all(own.stop - own.start == 1 or sum(chunks[own]) <= most for own in joined)


@given(st.integers(1, 400), st.integers(0, 30), st.integers(1, 300))
def test_equal_chunks_are_joined_to_equal_ones(size, number, most):
    """But for the last, which has at most as many, as Zarr wants it."""
    chunks = [size] * number + [max(size // 2, 1)]
    joined = lazily._joined(chunks, most, 1)
    tables = [sum(chunks[own]) for own in joined]
    assert len({*tables[:-1]}) <= 1
    assert tables[-1] <= tables[0]
    assert len(joined) == 1 or tables[0] + size > most
    assert lazily._joined(chunks, most, 2**20) == [slice(k, k + 1) for k in range(len(chunks))]


class Inclined(tc.ChineseRestaurant):
    """An estimator with more to it than its fields."""

    power = 1

    def complete(self, problem, draws, parameters, rng):
        return super().complete(problem, draws, parameters, rng) + (self.power - 1)


def inclined(power):
    estimator = Inclined()
    object.__setattr__(estimator, "power", power)
    return estimator


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_lazy_results_computed_together_stay_apart():
    """Dask computes what has one name once, whatever it was made of."""
    other = tc.ChineseRestaurant(priors={"theta": tc.Prior("LogNormal", mu=1, sigma=1)})
    ways = [
        {},
        {"random_seed": 4},
        {"draws": 30},
        {"estimator": other},
        {"weights": (0.2, 0.3, 0.5)},
        {"population_size": SIZES + 1},
        {"quantiles": (0.1, 0.5, 0.9)},
        {"estimator": inclined(1)},
        {"estimator": inclined(2)},
        {"estimator": SHARED},
        {"estimator": SHARED, "random_seed": 4},
        {"structural_zeros": sample()[0].drop_vars("area") < 0},
    ]
    calls = [(sample(), way) for way in [*ways, {"population_size": 100}]]
    calls.append((sample().assign_coords(area=list("tuvwxyz")), {"population_size": 100}))
    lazy = [assess(table.chunk(area=2), **way) for table, way in calls]
    computed = dask.compute(*lazy, scheduler="synchronous")
    for (table, way), found in zip(calls, computed, strict=True):
        assert found.equals(assess(table, **way))


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_small_chunk_costs_no_task_of_its_own(in_memory):
    """A scheduler needs as long for a task as for a small table."""
    table = sample().chunk(area=1)
    if not in_memory:  # each piece has to be read, by a task
        table = table.copy(data=dask.array.full(table.shape, 2, chunks=table.chunks))
    risk = assess(table)
    (culled,) = dask.optimize(risk)
    tasks = len(dict(culled.__dask_graph__()))
    assert tasks == len(risk.data_vars) + (2 if in_memory else 3 + len(table))


def noted(lazy, read):
    """The same tables, which note in a list that a chunk is read."""
    data = lazy.data.map_blocks(lambda piece: read.append(1) or piece, dtype=int, meta=np.ones(0))
    return lazy.copy(data=data)


def test_what_areas_share_is_learned_from_the_areas_it_takes_alone():
    """Others are not read, as lazy tables may be all that there is."""
    read = []
    few = tc.SharedProfile(areas=3, draws=20, tune=20, chains=2)
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        found = assess(noted(sample().chunk(area=1), read), estimator=few)
        assert len(read) == 3
        assert found.compute().equals(assess(estimator=few))
        read.clear()
        empty = sample().where(sample()["area"].isin(["a", "b", "c"]), 0)
        found = assess(noted(empty.chunk(area=1), read), estimator=few)
        assert len(read) <= 3 + 7 + 3  # the first, which of all have a sample, and these
        assert found.compute().equals(assess(empty, estimator=few))


def test_a_wrong_table_is_not_learned_from_lazily_either():
    """One that is to make up for an area without a sample; the next is taken."""
    tables = sample().astype(float)
    labels = tables["area"].values
    order = np.argsort([seed_of_table(QUICK["random_seed"], label) for label in labels])
    tables[order[0]] = 0
    tables[order[3], 0, 0] = np.nan
    few = tc.SharedProfile(areas=3, draws=20, tune=20, chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        lazy = assess(tables.chunk(area=2), estimator=few).compute()
        assert lazy.equals(assess(tables, estimator=few))


def test_a_lazy_result_is_written_without_being_computed_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(lazily, "_OF_TASK", {"in blocks": 3, "alone": 3})
    read = []
    lazy = assess(noted(sample().chunk(area=2), read))
    with dask.config.set(scheduler="synchronous"):
        lazy.to_zarr(tmp_path / "risk.zarr", consolidated=False)
    assert len(read) == 4
    assert xr.open_zarr(tmp_path / "risk.zarr", consolidated=False).load().equals(assess())


def test_array_expressions_of_dask_are_refused():
    """They have no tasks before they are computed; a setting that Dask reads once.
    Before what areas share is learned, which may take minutes.
    """
    code = """
import dask

dask.config.set({"array.query-planning": True})
import dask.array
import numpy as np
import xarray as xr

import taciturn as tc

chunks = dask.array.from_array(np.ones((4, 3), dtype=int), chunks=(2, 3))
tables = xr.DataArray(chunks, {"area": list("abcd"), "a": range(3)}, ("area", "a"))
tc.SharedProfile.learn = None
for estimator in (tc.ChineseRestaurant(), tc.SharedProfile()):
    try:
        tc.assess_many(tables, over="area", population_size=9, estimator=estimator)
    except tc.errors.TableError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("array.query-planning") == 2


def test_a_lazy_result_has_the_labels_of_an_eager_one():
    """And no other coordinates, which could have the name of a result."""
    table = sample().assign_coords(R2_mean=("area", np.arange(7.0)), year=2020)
    assert assess(table.chunk(area=2)).compute().identical(assess(table))
    table = sample().assign_coords(area=range(7))
    zeros = table < 0
    zeros[:, 0, 0] = True
    table = table.where(~zeros, 0)
    lazy = assess(table.chunk(area=2), structural_zeros=zeros[::-1], population_size=100)
    assert lazy.compute().identical(assess(table, structural_zeros=zeros, population_size=100))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**63 + 5, 2**63 + 7, 1], dtype=np.uint64),
        np.array([2**63, 1, 2], dtype=np.uint64),
        np.array([1.5, 2**60 + 1, 2**60 + 3], dtype=object),
        np.array([True, 5, 7], dtype=object),
        np.array(["a", 1, 2], dtype=object),
    ],
    ids=str,
)
def test_labels_stay_as_they_are(labels):
    """NumPy makes one float of large whole numbers beside others, and 1 of True."""
    found = assess(sample()[:3].assign_coords(area=labels), population_size=100)
    assert [str(label) for label in found["area"].values.tolist()] == list(map(str, labels))


def test_chunks_are_checked_when_they_are_computed(tmp_path):
    table = sample().chunk(area=1)
    wrong = assess(table - 9).compute(scheduler="synchronous")
    assert wrong["reason"].str.contains("negative").all()
    with pytest.raises(ParameterError, match="write a lazy result with to_zarr"):
        assess(table, store=tmp_path / "x")


def test_records_are_counted_by_area():
    people = sample().rename("count").to_series().reset_index()
    records = people.loc[people.index.repeat(people["count"]), ["area", "sex", "age"]]
    found = assess(records, variables=["sex", "age"])
    table = tc.tabulate(records, ["area", "sex", "age"])
    assert found["R2"].equals(assess(table)["R2"])
    with pytest.raises(ParameterError, match="over must name"):
        assess(records, variables=["sex", "age"], over=None)


def test_what_cannot_be_assessed_says_why():
    table = sample()
    table[2] = 0
    sizes = SIZES.copy(data=[1, 200, 300, 400, 500, 600, 700])
    found = assess(table, population_size=sizes)
    assert found["R2"].isnull().all("quantile").values.tolist() == [True, False, True] + 4 * [False]
    assert "population_size must be from the sample's" in found["reason"].values[0]
    assert found["reason"].values[2].startswith("TableError: the sample is empty")
    assert found["converged"].values.tolist() == [False, True, False] + 4 * [True]
    with pytest.warns(tc.ConvergenceWarning):
        shared = assess(table, population_size=sizes, estimator=SHARED)
    assert shared["R2"].isnull().all("quantile").values.tolist() == [True, False, True] + 4 * [
        False
    ]
    odd = assess({"a": "no table", "b": table[1].drop_vars("area")}, population_size=99, over=None)
    assert "must be an xarray.DataArray, got str" in odd["reason"].values[0]
    people = table[1].drop_vars("area")
    few = assess({"a": "no table", "b": people}, population_size=[99, 1], over=None)
    assert few["sample_size"].values.tolist() == [0, int(people.sum())]


def test_structural_zeros_of_all_or_of_each():
    zeros = (sample()[0].drop_vars("area") * 0).astype(bool)
    zeros[0, 0] = True
    table = sample() * ~zeros
    for zero in (zeros, zeros.expand_dims(area=sample()["area"])):
        assert (assess(table, structural_zeros=zero)["reason"] == "").all()
    with pytest.warns(tc.ConvergenceWarning):
        assert (assess(table, structural_zeros=zeros, estimator=SHARED)["reason"] == "").all()
    each = zeros.expand_dims(area=sample()["area"])
    with pytest.raises(TableError, match="without 'area'"):
        assess(table, structural_zeros=each, estimator=SHARED)
    filled = assess(sample() + 1, structural_zeros=zeros)
    assert all("structural zero has a positive count" in x for x in filled["reason"].values)


def test_structural_zeros_of_each_area_leave_out_nothing_else():
    zeros = (sample() * 0).astype(bool)
    zeros[0, 0, 0] = True
    table = sample() * ~zeros
    found = assess(table, structural_zeros=zeros, by="sex")
    assert (found["reason"] == "").all()
    assert found["R2_by_sex"].sizes == {"area": 7, "sex": 2, "quantile": 3}
    stack = collected(table, 300, "area", zeros)
    assert _chosen(stack, None) is None  # what areas share takes the same for all


def test_a_category_of_one_cell_is_a_reason():
    zeros = (sample()[0].drop_vars("area") * 0).astype(bool)
    zeros[0, 1:] = True
    found = assess(sample() * ~zeros, structural_zeros=zeros, by="sex")
    assert all("a table needs at least 2 cells: sex=f has 1" in x for x in found["reason"].values)


def test_variables_whose_names_begin_alike():
    table = sample().rename(sex="x", age="xy")
    found = assess(table, by=["x", "xy"])
    assert found["R2_by_x_mean"].dims == ("area", "x")
    assert found["R2_by_xy_mean"].dims == ("area", "xy")
    assert found["R2_by_xy"].dims == ("area", "xy", "quantile")


def test_a_size_that_no_array_holds_is_a_reason():
    found = assess(population_size=[2**70, *range(200, 800, 100)])
    assert found["population_size"].values[0] == 0
    assert "up to 2**53" in found["reason"].values[0] or "to 2**53" in found["reason"].values[0]


def test_settings_do_not_tell_the_tables(alone):
    assert "tables" not in json.loads(alone.attrs["settings"])


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
@pytest.mark.parametrize("chunks", [None, 3])
def test_nothing_is_learned_from_an_area_that_cannot_be_assessed(chunks):
    """One with more people than its population, or with some in a structural zero."""
    zeros = (sample()[0] * 0).astype(bool).drop_vars("area")
    zeros[1, 3] = True
    fine = sample() * ~zeros
    one, other = fine.copy(), fine.copy()
    one[{"area": 2, "sex": 0, "age": 0}] = 900  # of 300
    other[{"area": 2, "sex": 1, "age": 3}] = 5
    missing = fine.astype(float)
    missing[2] = np.nan
    how = {"estimator": SHARED, "structural_zeros": zeros}
    found = [
        assess(table if chunks is None else table.chunk(area=chunks), **how).compute()
        for table in (one, other, missing)
    ]
    for each in found:
        assert (
            each["R2"].isnull().all("quantile").values.tolist()
            == [False, False, True] + [False] * 4
        )
        assert each.drop_isel(area=2)["R2"].equals(found[-1].drop_isel(area=2)["R2"])


def test_weighted_counts_from_a_file_are_no_sample(tmp_path):
    path = tmp_path / "weighted.csv"
    path.write_text("area,sex,weighted_count\nA,f,10\nA,m,5\nB,f,5\nB,m,10\n")
    table = tc.read_table(path, count="weighted_count")
    assert table.name == "weighted_count"
    with pytest.raises(TableError, match="sums of weights"):
        assess(table, population_size=100)


def test_a_store_of_ragged_tables_knows_their_labels(tmp_path):
    one = sample()[0].drop_vars("area")
    how = {"over": None, "population_size": 90, "store": tmp_path / "store"}
    assess({"A": one, "B": one}, **how)
    for changed in (one.rename("weighted_count"), one.assign_coords(sex=["f", "f"])):
        with pytest.raises(FileFormatError, match="its tables"):
            assess({"A": one, "B": changed}, **how)


def test_a_store_without_its_log_begins_again(tmp_path):
    store = tmp_path / "store"
    assess(store=store)
    (store / "log.jsonl").unlink()
    fewer = assess(sample()[:4], population_size=SIZES[:4], store=store, quantiles=[0.5])
    again = assess(sample()[:4], population_size=SIZES[:4], quantiles=[0.5])
    assert fewer.equals(again)


def test_a_store_keeps_each_chain(tmp_path, together, monkeypatch):
    """Over what areas share: of two, one is drawn again if its arrays are lost."""
    store, drawn = tmp_path / "store", []
    with pytest.warns(tc.ConvergenceWarning):
        assess(estimator=SHARED, store=store)
    log = store / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    assert [b'"chain": ' in line for line in lines] == [False, True, True, False]
    log.write_bytes(b"".join(lines[:2]))  # as if killed while the second was drawn
    run = shared_profile._run

    def noted(task):
        drawn.append(task.chain)
        return run(task)

    monkeypatch.setattr(shared_profile, "_run", noted)
    with pytest.warns(tc.ConvergenceWarning):
        assert assess(estimator=SHARED, store=store).equals(together)
    assert drawn == [1]


def test_effective_draws_are_those_of_arviz(together):
    import arviz as az

    with pytest.warns(tc.ConvergenceWarning):
        found = assess(estimator=SHARED, keep_draws=True)
    for area in "gfa":
        draws = found["R2_draws"].sel(area=area).values
        expected = min(float(az.ess(draws[None], method="mean")), 60)
        assert float(found["R2_ess"].sel(area=area)) == pytest.approx(expected)
    assert found["R2_ess"].equals(together["R2_ess"])
    assert assess()["R2_ess"].isnull().all()  # draws of single fits have no order


def test_a_store_goes_on(tmp_path, together):
    store = tmp_path / "store"
    with pytest.warns(tc.ConvergenceWarning):
        first = assess(estimator=SHARED, store=store)
    assert first.equals(together)
    log = store / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))  # as if killed before the last part was there
    with pytest.warns(tc.ConvergenceWarning):
        assert assess(estimator=SHARED, store=store, random_seed=None).equals(first)
    for changed in ({"draws": 61}, {"random_seed": 4}, {"weights": (1, 0, 0)}):
        with pytest.raises(FileFormatError, match="holds another run of assess_many"):
            assess(estimator=SHARED, store=store, **changed)
    with pytest.raises(FileFormatError, match="holds another run of assess_many, its tables"):
        assess(sample() + 1, estimator=SHARED, store=store)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    with pytest.raises(FileFormatError, match=r"precious\.txt"):
        assess(store=other)
    assert [entry.name for entry in other.iterdir()] == ["precious.txt"]
    with pytest.raises(FileFormatError, match="cannot be a folder"):
        assess(store=other / "precious.txt")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path, number):
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, signal, numpy as np, xarray as xr, taciturn as tc\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    counts = np.random.default_rng(1).poisson(1.5, (400, 3, 4))\n"
        "    table = xr.DataArray(counts, dims=('area', 'a', 'b'))\n"
        "    risk = tc.assess_many(table, over='area', population_size=300, draws=300,\n"
        "        estimator=tc.ChineseRestaurant(), random_seed=1, workers=2,\n"
        "        progressbar=False, store=sys.argv[1])\n"
        "    print(risk['R2'].values.tobytes().hex())\n"
    )

    def run(store: Path) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(store)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole, _ = run(tmp_path / "whole").communicate(timeout=300)
    with run(tmp_path / "cut") as process:
        log = tmp_path / "cut" / "log.jsonl"
        while not (log.exists() and b"start" in log.read_bytes()):
            time.sleep(0.05)
            assert process.poll() is None
        os.kill(process.pid, number)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert 1 <= log.read_bytes().count(b"start") < 8
    resumed, _ = run(tmp_path / "cut").communicate(timeout=300)
    assert resumed == whole


def test_the_default_by_what_is_given():
    def chosen(tables: xr.DataArray) -> object:
        found = _chosen(collected(tables, 300, "area", None), None)
        return None if found is None else type(found)

    assert chosen(sample()) is tc.SharedProfile
    assert chosen(sample()[:4]) is None
    assert chosen(sample() * (sample()["area"] < "d")) is None


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"over": None}, ParameterError, "over must name the variable"),
        ({"over": "town"}, ParameterError, "over must be one of the variables"),
        ({"population_size": [3, 4]}, ParameterError, "2 values for 7 tables"),
        ({"population_size": {"a": 3}}, ParameterError, "has no area 'g'"),
        ({"population_size": SIZES.rename(area="x")}, ParameterError, "the dimension 'area' alone"),
        ({"population_size": "many"}, ParameterError, "population_size must be a whole number"),
        ({"population_size": 0}, ParameterError, "population_size must be at least 1, got 0"),
        ({"tables": "people.csv"}, ParameterError, "or records with variables, got str"),
        ({"tables": sample()[:0]}, TableError, "tables is empty"),
        ({"quantiles": [0.5, 1]}, ParameterError, r"in \(0, 1\)"),
        ({"draws": 0}, ParameterError, "draws must be"),
        ({"by": "area"}, ParameterError, "by must name variables"),
        ({"estimator": "urn"}, ParameterError, "estimator must be an Estimator"),
        ({"tables": 7, "over": None}, ParameterError, "tables must be a DataArray"),
        ({"tables": {}, "over": None}, ParameterError, "at least one table"),
        ({"tables": {1.5: sample()}, "over": None}, ParameterError, "labels of tables"),
        ({"tables": [sample()]}, ParameterError, "over is for tables in one DataArray"),
        ({"tables": sample() * 0, "estimator": SHARED}, TableError, "0 of 7 areas can be assessed"),
        ({"tables": sample() - 5}, TableError, "tables"),
        ({"tables": sample().rename(sex="theta")}, TableError, "is a name that fits use"),
    ],
)
def test_arguments_are_checked(changed, error, message):
    with pytest.raises(error, match=message):
        assess(**changed)


def test_lists_take_neither_by_nor_a_shared_profile():
    tables = [sample()[0].drop_vars("area")]
    for changed in ({"by": "sex"}, {"estimator": SHARED}):
        with pytest.raises(ParameterError, match="one DataArray"):
            assess(tables, over=None, population_size=99, **changed)


POOL = tc.LinearPool()
DEPARTURES = tc.default_estimator(sample()[0])
FITTED_ALONE = [URN, POOL, tc.ChineseRestaurant(discount=-0.5), tc.DirichletLogLinear(), DEPARTURES]


@pytest.mark.parametrize("estimator", FITTED_ALONE, ids=repr)
def test_draws_without_labels_are_those_of_fits(estimator):
    problem = make_problem(sample()[1].drop_vars("area"), 150)
    drawn, converged = draw_populations(estimator, problem, 60, 5)
    fit = fit_draws(estimator, problem, 60, 5, "fast")
    assert converged == fit.converged
    assert (drawn == fit.population).all()
    whole = estimator.fit(problem.sample, population_size=150, draws=60, chains=1, random_seed=5)
    tables = whole["posterior_predictive"]["population"].values
    assert (drawn == tables.reshape(60, -1)).all()
    assert estimator.draw_unlabelled(problem, 60, 5, np.random.default_rng(1)) is not None


def test_without_a_fast_path_a_fit_is_made():
    model = tc.DirichletLogLinear("~ sex * age")
    problem = make_problem(sample()[1].drop_vars("area"), 150)
    pool = tc.LinearPool({"a": model, "b": URN})
    for estimator in (model, pool):
        assert estimator.draw_unlabelled(problem, 60, 5, np.random.default_rng(1)) is None
    latent = tc.LinearPool({"a": tc.LatentClass(), "b": URN})
    assert latent.draw_unlabelled(problem, 60, 5, np.random.default_rng(1)) is None


@pytest.mark.parametrize("name", ["R2", "quantile", "reason", "R1_mean", "R2_draws"])
def test_labels_with_names_of_results_are_refused(name):
    with pytest.raises(TableError, match=f"variable '{name}' has the name of a result"):
        assess(sample().rename(age=name), by=name, keep_draws=True)
    with pytest.raises(TableError, match=f"variable '{name}' has the name of a result"):
        assess(sample().rename(area=name), over=name, population_size=300, keep_draws=True)
    assert (assess(sample().rename(age=name))["reason"] == "").all()  # gives no labels


def test_a_variable_of_any_other_name_gives_the_result_labels():
    """Beside a table that cannot be assessed, whose reason is kept as bytes."""
    tables = sample().rename(age="byte")
    tables[1] = 0
    risk = assess(tables, by="byte")
    assert (risk["reason"] != "").values.tolist() == (np.arange(len(tables)) == 1).tolist()
    assert risk["R2_by_byte"].notnull().sum("byte").values[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("left", [b"", b"{"])
def test_a_damaged_region_is_done_again(tmp_path, left, alone):
    store = tmp_path / "store"
    whole = assess(by="age", keep_draws=True, store=store)
    for path in (store / "arrays.zarr").glob("R2/c/*/*"):
        path.write_bytes(left)
    assert assess(by="age", keep_draws=True, store=store).equals(whole)


@pytest.mark.parametrize("lost", ["arrays.zarr", "arrays.zarr/R2", "arrays.zarr/*/c", "one"])
def test_what_a_disk_has_lost_is_done_again(tmp_path, lost, alone):
    store = tmp_path / "store"
    whole = assess(by="age", keep_draws=True, store=store)
    assert whole.equals(alone)
    if lost == "one":
        import zarr

        zarr.open_group(store / "arrays.zarr")["R2_mean"][3] = 0.0
    else:
        found = list(store.glob(lost))
        assert found
        for path in found:
            shutil.rmtree(path)
    assert assess(by="age", keep_draws=True, store=store).equals(whole)


def test_what_areas_share_is_learned_again_where_it_is_lost(tmp_path, together):
    store = tmp_path / "store"
    for _ in range(2):
        with pytest.warns(tc.ConvergenceWarning):
            assert assess(estimator=SHARED, store=store).equals(together)
        shutil.rmtree(store / "arrays.zarr")


@pytest.mark.parametrize("damage", ["zarr.json", "R2/zarr.json"])
def test_arrays_that_cannot_be_read_are_an_error(tmp_path, damage):
    store = tmp_path / "store"
    assess(store=store)
    for path in (store / "arrays.zarr").glob(damage):
        path.write_bytes(b"{")
    with pytest.raises(FileFormatError, match=r"its arrays are damaged .*remove the folder"):
        assess(store=store)


def test_a_subclass_with_a_way_of_its_own_is_asked():
    class Own(tc.ChineseRestaurant):
        def draw_population(self, problem, settings, parameters, rng):
            return np.tile(problem.counts, (settings.total, 1))

    problem = make_problem(sample()[1].drop_vars("area"), int(sample()[1].sum()))
    for estimator in (Own(), tc.LinearPool({"a": Own(), "b": URN})):
        assert estimator.draw_unlabelled(problem, 20, 1, np.random.default_rng(1)) is None
    drawn, _ = draw_populations(Own(), problem, 20, 1)
    assert (drawn == problem.counts).all()


def test_a_pool_refuses_the_name_of_a_member_on_either_path():
    table = sample().rename(age="restaurant")
    found = assess(table, estimator=POOL)
    assert all("name of a member of the pool" in reason for reason in found["reason"].values)


@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("value", [np.nan, -1.0, 0.5, np.inf, 2.0**60])
def test_a_wrong_count_concerns_its_own_table_alone(alone, value, chunk):
    tables = sample().astype(float)
    tables[2, 0, 1] = value
    found = assess(tables if chunk is None else tables.chunk(area=chunk)).compute()
    own = {"area": "e"}
    assert "counts must" in str(found["reason"].sel(own).item())
    assert found["R2"].sel(own).isnull().all()
    others = [label for label in found["area"].values if label != "e"]
    assert found["R2"].sel(area=others).equals(alone["R2"].sel(area=others))
    assert (found["reason"].sel(area=others) == "").all()


def test_a_stack_of_nothing_but_wrong_counts_is_an_error():
    with pytest.raises(TableError, match="must not be missing"):
        assess(sample() * np.nan)


def test_tables_that_failed_can_be_dropped():
    sizes = SIZES.copy()
    sizes[3] = 1
    found = assess(population_size=sizes)
    assert found.where(found["reason"] == "", drop=True).sizes["area"] == 6


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_stay_dates_and_give_the_same_numbers(unit):
    days = np.array([f"2020-0{k}-01" for k in range(1, 8)], dtype=f"M8[{unit}]")
    tables, sizes = sample().assign_coords(area=days), SIZES.assign_coords(area=days)
    found = assess(tables, population_size=sizes)
    assert found["area"].dtype.kind == "M"
    assert (found["R2"] * sizes).sizes["area"] == 7  # they are joined
    assert (
        found["R2"].values.tolist()
        == assess(sample().assign_coords(area=days.astype("M8[us]")), population_size=SIZES.values)[
            "R2"
        ].values.tolist()
    )
    assert assess(tables.chunk(area=2), population_size=sizes).compute().R2.equals(found["R2"])


def test_quantiles_and_results_have_names_of_their_own():
    with pytest.raises(ParameterError, match="quantiles must differ"):
        assess(quantiles=[0.5, 0.5])
    with pytest.raises(TableError, match="variable 'sex_mean' has the name of a result"):
        assess(sample().rename(age="sex_mean"), by=["sex", "sex_mean"])


def test_a_full_disk_is_an_error_from_which_the_call_goes_on(tmp_path, monkeypatch, alone):
    import zarr

    def full(self, rows, values):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zarr.Array, "__setitem__", full)
    with pytest.raises(FileFormatError, match="cannot be written: No space left"):
        assess(by="age", keep_draws=True, store=tmp_path / "store")
    monkeypatch.undo()
    assert assess(by="age", keep_draws=True, store=tmp_path / "store").equals(alone)


@pytest.mark.parametrize("store", [5, "s3://bucket/census"])
def test_a_store_is_a_folder(store):
    with pytest.raises(ParameterError, match="store must be the name of a folder on this machine"):
        assess(store=store)


def test_a_store_may_be_in_the_home_folder(tmp_path, monkeypatch, alone):
    monkeypatch.setenv("HOME", str(tmp_path))
    assess(store="~/census")
    assert (tmp_path / "census" / "log.jsonl").exists()


def test_a_store_knows_which_table_is_none(tmp_path):
    """Its place, and what is there instead."""
    one = sample()[0].drop_vars("area")
    known = {"over": None, "population_size": 300}
    assess([None, one], store=tmp_path / "store", **known)
    for others in ([one, None], ["none", one]):
        with pytest.raises(FileFormatError, match="its tables differ from what is given here"):
            assess(others, store=tmp_path / "store", **known)


def test_areas_without_a_sample_leave_no_store(tmp_path):
    with pytest.raises(TableError, match="0 of 7 areas can be assessed"):
        assess(sample() * 0, estimator=SHARED, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_sizes_may_be_a_series(alone):
    for sizes in (SIZES.to_series(), SIZES.to_series().rename_axis(None)):
        assert assess(by="age", keep_draws=True, population_size=sizes).equals(alone)


def test_sums_of_weights_are_no_samples():
    weights = (2 * sample()).rename("weighted_count")
    with pytest.raises(TableError, match="give the sample as it was counted"):
        assess(weights)
    one = weights[0].drop_vars("area")
    found = assess([one], over=None, population_size=900)
    assert "as it was counted" in found["reason"].item()


def test_sizes_with_a_label_twice_are_refused():
    twice = xr.concat([SIZES, SIZES[:1]], "area")
    with pytest.raises(ParameterError, match="population_size has area 'g' twice"):
        assess(population_size=twice)


def test_sizes_of_which_none_is_a_number_are_refused():
    with pytest.raises(ParameterError, match="whole numbers, got '100' for area 'g', and none for"):
        assess(population_size=SIZES.astype(int).astype(str))


def test_another_order_has_a_store_of_its_own(tmp_path):
    assess(store=tmp_path / "store")
    with pytest.raises(FileFormatError, match="its labels differ from what is given here"):
        assess(sample()[::-1], store=tmp_path / "store")


def test_variables_are_those_of_records():
    with pytest.raises(ParameterError, match="variables are those of records"):
        assess(variables=["age"])


def test_one_size_may_be_an_array_without_dimensions(alone):
    assert assess(population_size=np.array(300)).equals(assess(population_size=300))


@pytest.mark.parametrize("tables", ["people.csv", b"people", np.ones((3, 2, 2), dtype=int)])
def test_what_is_no_collection_of_tables_is_refused(tables):
    with pytest.raises(ParameterError, match=f"got {type(tables).__name__}"):
        tc.assess_many(tables, population_size=300)


def test_what_did_not_converge_is_said_in_threads_too(monkeypatch):
    """Where warnings, which belong to all threads, would be mixed up."""
    monkeypatch.setattr(lazily, "_OF_TASK", {"in blocks": 2, "alone": 2})
    rng = np.random.default_rng(3)
    tables = xr.DataArray(
        rng.poisson(4.0, (24, 3, 4)), dims=("area", "a", "b"), coords={"area": range(24)}
    )
    given = {"over": "area", "population_size": 900, "estimator": Slow(), **QUICK}
    expected = tc.assess_many(tables, **given)["converged"]
    assert 0 < expected.sum() < 24
    with dask.config.set(scheduler="threads", num_workers=4):
        found = tc.assess_many(tables.chunk(area=2), **given)
        assert found["converged"].compute().equals(expected)


class Slow(tc.ChineseRestaurant):
    """Half of its samples do not converge."""

    def learn(self, problem, settings, seed):
        time.sleep(0.002)
        draws = np.random.default_rng(seed).random((2, 3000))
        trend = draws + np.arange(3000) * (problem.counts.sum() % 2)
        check_convergence(xr.Dataset({"x": (("chain", "draw"), trend)}), None, warn=True)
        time.sleep(0.002)
        return super().learn(problem, settings, seed)
