"""Tables of one shape are fitted in blocks, in compiled code: with the numbers of one
table after the other, as a list of tables is, in any block and any thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.estimators.blocks import TABLES_AT_ONCE
from taciturn.estimators.log_linear.blocks import _fill_weights
from taciturn.fits import unlabelled
from taciturn.many import tasks
from taciturn.many.collection import collected
from taciturn.many.seeds import seed_of_table

AREAS, DRAWS = 2 * TABLES_AT_ONCE + 5, 60
QUIET = {"draws": DRAWS, "random_seed": 5, "workers": 1, "progressbar": False}
ESTIMATORS = {
    "pool": tc.LinearPool(),
    "dirichlet": tc.DirichletLogLinear(),
    "some margins": tc.DirichletLogLinear("~ a"),
    "priors": tc.DirichletLogLinear(
        priors={
            "kappa": tc.Prior("Gamma", alpha=2, beta=0.05),
            "margin_a": tc.Prior("Dirichlet", a=0.5),
        }
    ),
    "restaurant": tc.ChineseRestaurant(),
    "no discount": tc.ChineseRestaurant(discount=0.0),
    "symmetric Dirichlet": tc.ChineseRestaurant(discount=-0.2),
    "another prior": tc.ChineseRestaurant(priors={"theta": tc.Prior("HalfCauchy", beta=10)}),
    "three": tc.LinearPool(
        {
            "one": tc.ChineseRestaurant(),
            "two": tc.DirichletLogLinear(),
            "none": tc.ChineseRestaurant(discount=-1.0),
        },
        shares={"one": 0.5, "two": 0.3, "none": 0.2},
    ),
}


def areas(shape: tuple[int, int], *, zeros: bool = False):
    """Samples of areas, some empty or of nearly all, and the sizes of populations."""
    rng, cells = np.random.default_rng(shape), shape[0] * shape[1]
    impossible = np.zeros(cells, dtype=bool)
    impossible[rng.permutation(cells)[: zeros * cells // 4]] = True
    sizes, shares = rng.integers(30, 2000, AREAS), rng.dirichlet(np.full(cells, 0.5))
    samples = np.zeros((AREAS, cells), dtype=np.int64)
    for k, size in enumerate(sizes):
        own = rng.standard_gamma(40 * shares) * ~impossible
        population = rng.multinomial(size, own / own.sum())
        fraction = rng.choice([0.0, 0.03, 0.05, 0.2, 0.9])
        samples[k] = rng.multivariate_hypergeometric(population, int(fraction * size))
    coords = {
        dim: [f"{dim}{i}" for i in range(size)] for dim, size in zip("ab", shape, strict=True)
    }
    tables = xr.DataArray(
        samples.reshape(AREAS, *shape),
        dims=("area", "a", "b"),
        coords={"area": [f"area {k}" for k in range(AREAS)], **coords},
    )
    holes = xr.DataArray(impossible.reshape(shape), dims=("a", "b"), coords=coords)
    return tables, sizes.tolist(), holes if zeros else None


def one_by_one(tables, sizes, zeros, estimator):
    """R2 of each draw of each table alone; NaN of tables that cannot be assessed."""
    found = np.full((AREAS, DRAWS), np.nan)
    given = collected(tables, sizes, "area", zeros)
    for k, label in enumerate(given.labels):
        if tables[k].sum() > 0:
            problem, seed = given.problem(k), seed_of_table(5, label)
            drawn, _ = unlabelled.draw_populations(estimator, problem, DRAWS, seed)
            found[k] = unlabelled.measure(drawn, problem, (0.1, 0.8, 0.1))[1]
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("shape", "zeros"), [((7, 6), False), ((2, 2), False), ((4, 5), True)])
def test_blocks_are_tables_one_by_one(name, shape, zeros):
    """With empty samples, samples that fill all cells, and some that proposals miss."""
    tables, sizes, holes = areas(shape, zeros=zeros)
    risk = tc.assess_many(
        tables,
        over="area",
        population_size=sizes,
        structural_zeros=holes,
        estimator=ESTIMATORS[name],
        keep_draws=True,
        **QUIET,
    )
    expected = one_by_one(tables, sizes, holes, ESTIMATORS[name])
    np.testing.assert_allclose(risk["R2_draws"].values, expected, rtol=1e-9)
    empty = tables.sum(["a", "b"]).values == 0
    assert empty.any()
    assert ((risk["reason"].values != "") == empty).all()
    assert (risk["converged"].values == ~empty).all()


@pytest.mark.parametrize("name", ["pool", "dirichlet", "restaurant"])
def test_most_tables_are_done_in_blocks(name, monkeypatch):
    """Those that nothing is wrong with, and whose proposals count."""
    alone = []

    def noted(estimator, problem, draws, seed):
        alone.append(problem)
        return unlabelled.draw_populations(estimator, problem, draws, seed)

    monkeypatch.setattr(tasks, "draw_populations", noted)
    tables, sizes, _ = areas((7, 6))
    given = {"over": "area", "population_size": sizes, "estimator": ESTIMATORS[name]}
    tc.assess_many(tables, **given, **QUIET)
    assert len(alone) < AREAS // 4


@pytest.mark.parametrize(
    "estimator",
    [
        tc.ChineseRestaurant(base="log-linear"),
        tc.LinearPool(
            {"one": tc.ChineseRestaurant(base="log-linear"), "two": tc.ChineseRestaurant()}
        ),
        tc.LogLinear(),
    ],
)
def test_other_estimators_take_one_table_at_a_time(estimator):
    tables, sizes, _ = areas((3, 4))
    given = {"over": "area", "population_size": sizes, "estimator": estimator}
    risk = tc.assess_many(tables, keep_draws=True, **given, **QUIET)
    expected = one_by_one(tables, sizes, None, estimator)
    np.testing.assert_allclose(risk["R2_draws"].values, expected, rtol=1e-9)


def test_subclasses_with_draws_of_their_own_are_asked_for_them():
    class Doubled(tc.ChineseRestaurant):
        command_name = "doubled"

        def complete(self, problem, draws, parameters, rng):
            own = super().complete(problem, draws, parameters, rng)
            own[:, int(np.argmax(problem.counts))] += own.min(axis=1)
            return own

    tables, sizes, _ = areas((3, 4))
    given = {"over": "area", "population_size": sizes, "estimator": Doubled()}
    risk = tc.assess_many(tables, keep_draws=True, **given, **QUIET)
    expected = one_by_one(tables, sizes, None, Doubled())
    np.testing.assert_allclose(risk["R2_draws"].values, expected, rtol=1e-9)


def test_a_variable_with_the_name_of_a_member_is_the_reason_of_each_table():
    tables, sizes, _ = areas((3, 4))
    given = {"over": "area", "population_size": sizes, "estimator": tc.LinearPool()}
    risk = tc.assess_many(tables.rename(a="dirichlet"), **given, **QUIET)
    filled = tables.sum(["a", "b"]).values > 0
    assert all("name of a member" in reason for reason in risk["reason"].values[filled])
    assert np.isnan(risk["R2"].values).all()


def test_threads_draw_the_same():
    tables, sizes, _ = areas((7, 6))
    given = collected(tables, sizes, "area", None)
    kept = tasks.Kept(DRAWS, (0.5,), (0.1, 0.8, 0.1), {}, True)
    parts = [
        tasks.Task(start, given.part(start, start + 6), ESTIMATORS["pool"], kept, 5)
        for start in range(0, AREAS, 6)
    ]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(tasks.run_task, parts))
    for (_, together), (_, alone) in zip(found, map(tasks.run_task, parts), strict=True):
        np.testing.assert_array_equal(together["R2_draws"], alone["R2_draws"])


def test_weights_of_cells_whose_shares_are_too_small_for_a_number():
    """Of two cells with 1e-200 each, where both others are structural zeros."""
    margins, levels = np.array([1.0, 1e-200, 1.0, 1e-200]), np.array([[0, 0, 1, 1], [2, 3, 2, 3]])
    fillable, weights = np.array([False, True, True, False]), np.empty(4)
    _fill_weights((2.0, margins), levels, fillable, np.zeros(4), weights)
    assert weights == pytest.approx([0, 1, 1, 0])
