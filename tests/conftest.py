"""Shared tables and fits: a PyMC model takes seconds to compile, so each is fitted once
for all tests, whichever process they run in."""

import gc
from collections.abc import Callable, Iterator
from math import log

import pytest
import xarray as xr
from filelock import FileLock
from hypothesis import HealthCheck, settings

import taciturn as tc
from taciturn.magnitude.engine import engine

# No deadline: the first example of a kernel waits for its compilation, and machines
# differ.
settings.register_profile(
    "taciturn",
    deadline=None,
    max_examples=20,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("repeatable", settings.get_profile("taciturn"), derandomize=True)
settings.load_profile("taciturn")


def pytest_collection_finish() -> None:
    """Leave what was imported out of later collections of garbage, and have fewer of
    these: a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)


SHORT = {"population_size": 2449, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="session", autouse=True)
def shared_engine() -> Iterator[None]:
    """One database engine for all magnitude tables: opening one takes long."""
    with engine():
        yield


@pytest.fixture(scope="session")
def religion() -> xr.DataArray:
    """Population table, 10 x 9 cells, N = 2,449."""
    return tc.load_dataset("area_by_religion")


@pytest.fixture(scope="session")
def religion_sample(religion: xr.DataArray) -> xr.DataArray:
    """One simple random sample of the religion table, n = 245."""
    return tc.draw_sample(religion, fraction=0.1, random_seed=1)


@pytest.fixture(scope="session")
def fitted_once(
    religion_sample: xr.DataArray,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Callable[..., xr.DataTree]:
    """Fit an estimator to the religion sample in one process and read the fit in the
    others."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent  # shared by all workers of pytest-xdist

    def fit(estimator: tc.estimators.Estimator, **arguments: object) -> xr.DataTree:
        path = folder / f"{type(estimator).__name__}-{arguments['method']}.nc"
        with FileLock(f"{path}.lock"):
            if path.exists():
                return tc.read_fit(path)
            made = estimator.fit(religion_sample, **arguments, **SHORT)
            tc.save_fit(made, path)
            return made

    return fit


@pytest.fixture(scope="session")
def fit_as_chain(fit_restaurant: xr.DataTree) -> xr.DataTree:
    """A fit as NUTS returns it, without the half minute of its compiler: independent
    draws are a chain of the best kind."""
    fit = fit_restaurant.copy()
    del fit.attrs["importance"]
    draws = fit["posterior"]["theta"]
    fit["sample_stats"] = xr.DataTree(xr.Dataset({"diverging": xr.zeros_like(draws, dtype=bool)}))
    return fit


@pytest.fixture(scope="session")
def restaurant_by_nuts(fitted_once: Callable[..., xr.DataTree]) -> xr.DataTree:
    """For slow tests."""
    return fitted_once(tc.ChineseRestaurant(), draws=1000, tune=500, method="nuts")


@pytest.fixture(scope="session")
def dirichlet_by_nuts(fitted_once: Callable[..., xr.DataTree]) -> xr.DataTree:
    """For slow tests."""
    return fitted_once(tc.DirichletLogLinear(), draws=1500, tune=500, method="nuts")


@pytest.fixture(scope="session")
def pool_by_nuts(fitted_once: Callable[..., xr.DataTree]) -> xr.DataTree:
    """For slow tests."""
    return fitted_once(tc.LinearPool(), draws=1000, tune=500, method="nuts")


@pytest.fixture(scope="session")
def fit_dirichlet(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.DirichletLogLinear().fit(religion_sample, draws=1000, **SHORT)


@pytest.fixture(scope="session")
def fit_mixed_poisson(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.MixedPoisson().fit(religion_sample, draws=1000, **SHORT)


@pytest.fixture(scope="session")
def fit_restaurant(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.ChineseRestaurant().fit(religion_sample, draws=1000, **SHORT)


@pytest.fixture(scope="session")
def fit_pool(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.LinearPool().fit(religion_sample, draws=1000, **SHORT)


@pytest.fixture(scope="session")
def fit_loglinear(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.LogLinear().fit(religion_sample, draws=500, **SHORT)


@pytest.fixture(scope="session")
def fit_urn(religion_sample: xr.DataArray) -> xr.DataTree:
    return tc.PolyaUrn().fit(religion_sample, draws=500, **SHORT)


@pytest.fixture(scope="session")
def fast_fits(religion_sample: xr.DataArray) -> dict[str, xr.DataTree]:
    """Both families without a Markov chain, 4 x 1,000 draws; κ's prior is written out,
    so that n does not move it."""
    kappa = tc.Prior("LogNormal", mu=1 + log(245), sigma=1.5)
    models = {
        "dirichlet": tc.DirichletLogLinear(priors={"kappa": kappa}),
        "restaurant": tc.ChineseRestaurant(),
    }
    arguments = {"population_size": 2449, "random_seed": 1, "progressbar": False}
    return {name: model.fit(religion_sample, **arguments) for name, model in models.items()}
