"""Population uniques among sample uniques, and expected correct matches."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import taciturn as tc
from exact import dirichlet_multinomial_pmf, tables
from strategies import populations_with_samples
from taciturn.errors import TableError


def test_by_hand():
    F = xr.DataArray([[1, 4], [2, 7]], dims=("area", "sex"))
    f = xr.DataArray([[1, 1], [1, 3]], dims=("area", "sex"))
    risk = tc.risk.unique_risk(F, f)
    assert int(risk.tau1) == 1
    assert float(risk.tau2) == 1 + 1 / 4 + 1 / 2


def test_nobody_is_alone_in_the_sample():
    risk = tc.risk.unique_risk(xr.DataArray([1, 4], dims="x"), xr.DataArray([0, 2], dims="x"))
    assert (int(risk.tau1), float(risk.tau2)) == (0, 0.0)


def test_draws_and_replicates_give_all_pairs():
    F = xr.DataArray([[1, 3], [2, 2]], dims=("draw", "x"))
    f = xr.DataArray([[1, 0], [1, 1], [0, 2]], dims=("replicate", "x"))
    risk = tc.risk.unique_risk(F, f).transpose("draw", "replicate")
    assert risk.tau1.values.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert risk.tau2.values.tolist() == pytest.approx(
        np.array([[1, 1 + 1 / 3, 0], [1 / 2, 1 / 2 + 1 / 2, 0]])
    )


@given(populations_with_samples())
def test_twin_and_bounds(pair):
    population, sample = pair
    cells = list(
        zip(population.values.ravel().tolist(), sample.values.ravel().tolist(), strict=True)
    )
    risk = tc.risk.unique_risk(population, sample)
    assert int(risk.tau1) == sum(F == f == 1 for F, f in cells)
    assert float(risk.tau2) == pytest.approx(sum(1 / F for F, f in cells if f == 1))
    assert int(risk.tau1) <= float(risk.tau2) <= sum(f == 1 for _, f in cells)
    assert risk.tau1.dtype == np.int64


@given(populations_with_samples(draw_dims=("draw",)))
def test_lazy_draws_stay_lazy_and_agree(pair):
    population, sample = pair
    eager, lazy = (
        tc.risk.unique_risk(population, sample),
        tc.risk.unique_risk(population.chunk(draw=1), sample),
    )
    assert lazy.tau2.chunks is not None
    xr.testing.assert_allclose(lazy.compute(scheduler="synchronous"), eager)


def test_a_population_below_the_sample():
    F = xr.DataArray([[1, 3], [2, 2]], dims=("draw", "x"), coords={"x": ["a", "b"]})
    f = xr.DataArray([1, 3], coords={"x": ["a", "b"]})
    with pytest.raises(TableError, match="below the sample at draw=1, x=b"):
        tc.risk.unique_risk(F, f)
    with pytest.raises(TableError, match="below the sample"):
        tc.risk.unique_risk(F.chunk(draw=1), f).compute(scheduler="synchronous")


def test_cells_by_hand():
    F = xr.DataArray([[[1, 4, 1], [3, 2, 0]]], dims=("chain", "draw", "x"))
    risk = tc.risk.cell_uniques(F, xr.DataArray([1, 2, 0], dims="x"))
    assert risk.p_unique.values.tolist() == [1 / 2, 0, 1 / 2]
    assert risk.p_match.values.tolist() == pytest.approx([(1 + 1 / 3) / 2, (1 / 4 + 1 / 2) / 2, 0])


def test_cells_by_enumeration():
    """Draws that stand for every F given f = (1, 0, 2) under uniform p, each as often
    as it is likely."""
    f, N, K = (1, 0, 2), 6, 3
    posterior = {
        tuple(a + b for a, b in zip(f, new, strict=True)): dirichlet_multinomial_pmf(
            new, [1 + x for x in f]
        )
        for new in tables(N - sum(f), K)
    }
    # new ~ DirichletMultinomial(3, (2, 1, 3)), whose probabilities are multiples of
    # 1 / C(8, 3).
    multiple = 56
    times = [round(multiple * p) for p in posterior.values()]
    assert times == pytest.approx([multiple * p for p in posterior.values()])
    draws = np.repeat(np.array(list(posterior)), times, axis=0)
    risk = tc.risk.cell_uniques(
        xr.DataArray(draws, dims=("draw", "x")), xr.DataArray(list(f), dims="x")
    )
    for i in range(K):
        assert float(risk.p_unique[i]) == pytest.approx(
            sum(p for F, p in posterior.items() if F[i] == 1)
        )
        match = sum(p / F[i] for F, p in posterior.items()) if f[i] else 0.0
        assert float(risk.p_match[i]) == pytest.approx(match)


@given(populations_with_samples())
def test_cells_sum_to_the_table(pair):
    population, sample = pair
    population = xr.concat([population, population + 1, 2 * population], dim="draw")
    cells, whole = tc.risk.cell_uniques(population, sample), tc.risk.unique_risk(population, sample)
    alone = sample == 1
    assert float(cells.p_unique.where(alone, 0).sum()) == pytest.approx(
        float(whole.tau1.mean("draw"))
    )
    assert float(cells.p_match.where(alone, 0).sum()) == pytest.approx(
        float(whole.tau2.mean("draw"))
    )
    assert cells.p_match.dims == sample.dims
    for array in cells.data_vars.values():
        assert ((array >= 0) & (array <= 1)).all()
    lazy = tc.risk.cell_uniques(population.chunk(draw=1), sample)
    assert lazy.p_match.chunks is not None
    xr.testing.assert_allclose(lazy.compute(scheduler="synchronous"), cells)


def test_cells_of_one_table_and_of_replicates():
    F = xr.DataArray([1, 3], dims="x")
    f = xr.DataArray([[1, 0], [0, 2]], dims=("replicate", "x"))
    risk = tc.risk.cell_uniques(F, f)
    assert risk.p_match.transpose("replicate", "x").values.tolist() == [[1, 0], [0, 1 / 3]]
    assert tc.risk.cell_uniques(F, f[0]).p_unique.values.tolist() == [1, 0]
    with pytest.raises(TableError, match="below the sample at x=1"):
        tc.risk.cell_uniques(F, xr.DataArray([0, 4], dims="x"))


def test_tables_that_do_not_match():
    with pytest.raises(TableError, match="categories of 'x' differ"):
        tc.risk.unique_risk(xr.DataArray([1, 2], dims="x"), xr.DataArray([1, 1, 0], dims="x"))
    with pytest.raises(TableError, match="x=1 holds -1"):
        tc.risk.unique_risk(xr.DataArray([1, 2], dims="x"), xr.DataArray([1, -1], dims="x"))
