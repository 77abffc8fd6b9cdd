"""Work on a Dask cluster gives the numbers of one process, whatever its workers do."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError
from taciturn.parallel import run_all

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

QUICK = {"random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def tables(number: int) -> xr.DataArray:
    counts = np.random.default_rng(1).poisson(1.5, (number, 3, 4))
    return xr.DataArray(counts, dims=("area", "a", "b"))


def assess(number: int, draws: int, **workers) -> xr.Dataset:
    return tc.assess_many(
        tables(number),
        over="area",
        population_size=300,
        estimator=tc.ChineseRestaurant(),
        draws=draws,
        **QUICK,
        **workers,
    )


def test_many_tables(client):
    assert assess(120, 50, workers=client).equals(assess(120, 50, workers=1))


def test_studies_and_calibration(client):
    religion = tc.load_dataset("area_by_religion")
    given = {"fractions": [0.1], "samples": 12, "draws": 30, **QUICK}
    study = [tc.study(religion, {"a": tc.LogLinear()}, workers=w, **given) for w in (client, 1)]
    assert study[0].equals(study[1])
    small = religion[:2, :3]
    given = {"sample_size": 20, "population_size": 60, "simulations": 9, "draws": 20, **QUICK}
    own = [tc.calibrate(tc.ChineseRestaurant(), small, workers=w, **given) for w in (client, 1)]
    assert own[0].equals(own[1])


def test_all_work_is_done_once(client):
    done = list(run_all(abs, list(range(-1000, 0)), workers=client, progressbar=False, title=""))
    assert sorted(done) == list(range(1, 1001))
    assert list(run_all(abs, [], workers=client, progressbar=False, title="")) == []


def test_errors_reach_the_caller_and_nothing_goes_on(client):
    with pytest.raises(TypeError, match="bad operand"):
        list(run_all(abs, [1, "x", *range(50)], workers=client, progressbar=False, title=""))
    results = run_all(time.sleep, [0.01, *[60.0] * 9], workers=client, progressbar=False, title="")
    next(results)
    results.close()
    until = time.monotonic() + 20
    while any(client.who_has().values()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_client_that_is_closed_is_refused(client):
    closed = distributed.Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ParameterError, match="workers must be a running client"):
        assess(2, 5, workers=closed)


@pytest.mark.slow
def test_a_lost_worker_costs_time_only(client):
    """One is killed a moment after the work began; its nanny starts another."""
    pids = list(client.run(os.getpid).values())
    whole = assess(400, 300, workers=1)
    killer = threading.Timer(1.5, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    found = assess(400, 300, workers=client)
    killer.join()
    assert found.equals(whole)
    client.wait_for_workers(2)
    assert pids[0] not in client.run(os.getpid).values()
