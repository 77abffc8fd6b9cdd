"""Areas that share a profile are assessed in blocks: with the numbers of one area at a
time, in any block and any thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import TaciturnError
from taciturn.estimators.blocks import TABLES_AT_ONCE
from taciturn.estimators.problem import make_problem
from taciturn.fits.risk import MEASURES, measures
from taciturn.many.collection import Stack, collected
from taciturn.many.seeds import rng_of
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.shared_profile.layout import Layout
from taciturn.schema import MAX_COUNT

AREAS, DRAWS = 2 * TABLES_AT_ONCE, 30
RNG = np.random.default_rng(2)
SAMPLES = RNG.poisson(np.exp(RNG.normal(1, 1.5, (AREAS, 1))), (AREAS, 6)) + np.eye(6, dtype=int)[0]
SIZES = SAMPLES.sum(axis=1) * RNG.integers(1, 300, AREAS)


@pytest.fixture(scope="module")
def shared() -> Populations:
    layout = Layout({"a": 2, "b": 3}, np.ones(6, dtype=bool))
    profiles = RNG.normal(size=(DRAWS, 6))
    outliers = layout.outliers({"outliers": np.full(DRAWS, 0.05), "outlier_size": np.ones(DRAWS)})
    return Populations(profiles, 0.5 * profiles, np.full((DRAWS, 5), 0.4), outliers, layout)


def drawn(shared: Populations, areas: list[int]) -> np.ndarray:
    rngs = [rng_of(1, area) for area in areas]
    return shared.draw(SAMPLES[areas], SIZES[areas], rngs)


def test_a_block_is_its_areas_one_by_one(shared):
    together = drawn(shared, list(range(TABLES_AT_ONCE)))
    for area in range(TABLES_AT_ONCE):
        assert np.array_equal(drawn(shared, [area])[0], together[area])
    assert np.array_equal(drawn(shared, [7, 3, 5]), together[[7, 3, 5]])
    assert (together.sum(axis=2) == SIZES[:TABLES_AT_ONCE, None]).all()
    assert (together >= SAMPLES[:TABLES_AT_ONCE, None]).all()


def test_threads_draw_the_same(shared):
    blocks = [list(range(start, start + 4)) for start in range(0, AREAS, 4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: drawn(shared, block), blocks))
    assert all(map(np.array_equal, found, (drawn(shared, block) for block in blocks)))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_measures_of_a_block_are_those_of_its_areas(shared, axis):
    """To the last digit, whether or not looking up the logarithms of counts pays off:
    a count of one area is beyond all lookups."""
    areas = list(range(TABLES_AT_ONCE))
    population = drawn(shared, areas).reshape(-1, DRAWS, 2, 3)
    population[3, :, 0, 0] += 2**22
    samples, mask = SAMPLES[areas].reshape(-1, 2, 3), np.ones((2, 3), dtype=bool)
    together = measures(population, samples[:, None], mask, axis, (0.1, 0.8, 0.1))
    for area in areas:
        alone = measures(population[area], samples[area], mask, axis, (0.1, 0.8, 0.1))
        for name in MEASURES:
            assert np.array_equal(together[name][area], alone[name]), (name, area)


def test_memory_bounds_a_block(shared):
    assert shared.at_once == TABLES_AT_ONCE
    many = Populations(*(np.tile(x, (4000, 1)) for x in shared.shared), shared.layout)
    assert many.at_once == 1


def table(counts: np.ndarray) -> xr.DataArray:
    return xr.DataArray(counts, dims=("area", "a", "b"), coords={"area": np.arange(len(counts))})


def test_what_a_block_leaves_out_is_what_one_table_would_refuse():
    counts = np.ones((8, 2, 3), dtype=int)
    counts[1], counts[2, 1, 2] = 0, 0
    zeros = table(counts)[0].drop_vars("area").copy(data=np.zeros((2, 3), dtype=bool))
    sizes = [6, 6, 6, 5, MAX_COUNT + 1, True, 6.0, 2**70]
    for zero in (False, True):
        zeros[1, 2] = zero
        found = collected(table(counts), sizes, "area", zeros)
        assert isinstance(found.tables, Stack)
        accepted = []
        for k, size in enumerate(sizes):
            try:
                make_problem(table(counts)[k].drop_vars("area"), size, zeros)
            except TaciturnError:
                accepted.append(False)
            else:
                accepted.append(True)
        assert found.fine.tolist() == accepted
        assert sum(accepted) == (1 if zero else 3)


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
def test_reasons_are_those_of_single_tables():
    counts = np.random.default_rng(4).poisson(2.0, (6, 2, 3))
    counts[2] = 0
    zeros = table(counts)[0].drop_vars("area").copy(data=np.zeros((2, 3), dtype=bool))
    zeros[0, 1:] = True  # one cell is left of a category
    counts[:, 0, 1:] = 0
    counts[3, 0, 1] = 1
    given = {"population_size": [500] * 5 + [1], "over": "area", "structural_zeros": zeros}
    settings = {"draws": 20, "random_seed": 1, "progressbar": False, "workers": 1}
    profile = tc.SharedProfile(draws=20, tune=10, chains=2)
    for by in ((), "a"):
        alone, shared = (
            tc.assess_many(table(counts), estimator=own, by=by, **given, **settings)
            for own in (tc.ChineseRestaurant(), profile)
        )
        assert alone["reason"].equals(shared["reason"])
        assert alone["sample_size"].equals(shared["sample_size"])
    assert "structural zero has a positive count" in shared["reason"].values[3]
    assert "a table needs at least 2 cells: a=0 has 1" in shared["reason"].values[0]
