"""The urn samplers against the exact distribution of the sequential urn, and the
equation for θ."""

from math import fsum, log

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from exact import assert_same_distribution, tables, urn_distribution, urn_from_nothing
from taciturn.errors import EstimationError, ParameterError
from taciturn.estimators.sampling import draws
from taciturn.estimators.sampling.draws import draw_urn, draw_urn_from_nothing
from taciturn.estimators.urn.polya import expected_new_colours, solve_theta

DRAWS = 100_000

TINY = [
    # start, cells that can open, N, θ, σ
    ((2, 1, 0, 0), (False, False, True, True), 8, 1.5, 0.0),
    ((1, 0, 0, 0), (False, True, True, True), 7, 4.0, 0.0),  # the urn often closes on the way
    ((1, 0, 0), (False, True, True), 8, 50.0, 0.0),  # it closes almost at once
    ((1, 1, 0), (False, False, True), 6, 0.7, 0.0),  # one opening only
    ((2, 0, 0, 1), (False, True, False, False), 7, 2.0, 0.0),  # a structural zero
    ((3, 0), (False, True), 8, 1e-3, 0.0),
    ((3, 0, 0), (False, True, True), 8, 0.0, 0.0),  # no black balls: the seen cells only
    ((1, 2), (False, False), 7, 3.0, 0.0),  # nothing empty
    ((2, 1, 0, 0), (False, False, True, True), 8, 1.5, 0.4),
    ((1, 0, 0, 0), (False, True, True, True), 7, 0.5, 0.8),
    ((1, 0, 0), (False, True, True), 8, 0.0, 0.5),  # σ alone opens cells
    ((1, 1, 1), (False, False, False), 7, 2.0, 0.9),
    ((2, 0, 1, 0), (False, True, False, False), 6, 1.0, 0.25),
    ((2, 1, 0), (False, False, True), 3, 1.0, 0.3),  # N = n
]


@pytest.fixture(params=[256, 2, 0])
def one_by_one(request, monkeypatch) -> None:
    """How many individuals come one by one in new cells: all of a tiny case, the last
    two, none."""
    monkeypatch.setattr(draws, "LIMITS", draws.LIMITS._replace(in_new_cells=request.param))


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(("start", "empty", "size", "theta", "discount"), TINY)
def test_urn_against_every_sequence(start, empty, size, theta, discount) -> None:
    drawn = draw_urn(
        np.array(start),
        np.array(empty),
        size,
        np.full(DRAWS, theta),
        np.random.default_rng(1),
        discount=discount,
    )
    assert_same_distribution(drawn, urn_distribution(start, empty, size, theta, discount))


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    ("cells", "size", "theta", "discount"), [(3, 6, 1.3, 0.0), (4, 4, 2.0, 0.5), (2, 8, 9.0, 0.3)]
)
def test_urn_from_nothing_against_every_sequence(cells, size, theta, discount) -> None:
    drawn = draw_urn_from_nothing(
        np.ones(cells, dtype=bool),
        size,
        np.full(DRAWS, theta),
        np.random.default_rng(2),
        discount=discount,
    )
    assert_same_distribution(drawn, urn_from_nothing(cells, size, theta, discount))


def test_the_oracle_itself() -> None:
    """N = 3 from (1, 0): second ball old 1/(1+θ), then 2/(2+θ) or the last cell opens
    and the urn closes."""
    theta = 3.0
    exact = urn_distribution((1, 0), (False, True), 3, theta)
    assert exact[(3, 0)] == pytest.approx(1 / (1 + theta) * 2 / (2 + theta))
    assert exact[(2, 1)] == pytest.approx(
        1 / (1 + theta) * theta / (2 + theta) + theta / (1 + theta) / 2
    )
    assert exact[(1, 2)] == pytest.approx(theta / (1 + theta) / 2)
    assert len(urn_from_nothing(3, 4, 1.0)) == len(tables(4, 3))


def test_each_draw_has_its_own_theta_and_discount() -> None:
    theta, discount = np.repeat([0.2, 5.0], DRAWS), np.repeat([0.6, 0.0], DRAWS)
    start, empty = np.array([2, 0, 0]), np.array([False, True, True])
    drawn = draw_urn(start, empty, 6, theta, np.random.default_rng(3), discount=discount)
    assert_same_distribution(drawn[:DRAWS], urn_distribution((2, 0, 0), empty, 6, 0.2, 0.6))
    assert_same_distribution(drawn[DRAWS:], urn_distribution((2, 0, 0), empty, 6, 5.0, 0.0))


def test_estimator_draws_from_the_urn() -> None:
    sample = xr.DataArray([[2, 0], [1, 0]], dims=("a", "b"))
    zeros = xr.DataArray([[False, True], [False, False]], dims=("a", "b"))
    fit = tc.PolyaUrn(theta=2.5).fit(
        sample, population_size=7, structural_zeros=zeros, draws=DRAWS // 4, chains=4, random_seed=1
    )
    drawn = fit["posterior_predictive"]["population"].values.reshape(DRAWS, 4)
    assert_same_distribution(
        drawn, urn_distribution((2, 0, 1, 0), (False, False, False, True), 7, 2.5)
    )


@given(
    theta=st.one_of(st.just(0.0), st.floats(1e-300, 1e300)),
    discount=st.floats(0, 0.999),
    start=st.lists(st.integers(0, 5), min_size=2, max_size=6).filter(any),
    extra=st.one_of(st.integers(0, 50), st.integers(0, 2**52)),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None)
def test_urn_keeps_totals_and_cells_at_any_parameters(theta, discount, start, extra, seed) -> None:
    counts = np.array(start)
    empty = (counts == 0) & (np.arange(len(counts)) % 2 == 0)
    size = int(counts.sum()) + extra
    drawn = draw_urn(
        counts, empty, size, np.full(5, theta), np.random.default_rng(seed), discount=discount
    )
    assert (drawn.sum(axis=1) == size).all()
    assert (drawn >= counts).all()
    assert (drawn[:, (counts == 0) & ~empty] == 0).all()


def test_cost_does_not_grow_with_the_population(religion_sample: xr.DataArray) -> None:
    counts = religion_sample.values.ravel()
    used = {}
    for size in (2_449, 67_000_000):
        source = np.random.Philox(1)  # it counts: each step gives four numbers
        drawn = draw_urn(counts, counts == 0, size, np.full(200, 30.0), np.random.Generator(source))
        assert (drawn.sum(axis=1) == size).all()
        used[size] = 4 * int(source.state["state"]["counter"][0])
    # A gamma, a beta or a binomial takes up to eight on average: each of at most |E| =
    # 54 cells that open takes a beta and a binomial, each of 90 cells a gamma and a
    # binomial twice, and 256 individuals come one by one.
    free = int((counts == 0).sum())
    assert max(used.values()) <= 200 * (8 * (2 * free + 4 * len(counts)) + 256)


def test_a_national_population(religion_sample: xr.DataArray) -> None:
    fit = tc.PolyaUrn().fit(
        religion_sample, population_size=67_000_000, draws=100, chains=2, random_seed=1
    )
    tc.fits.check_population(
        fit["posterior_predictive"]["population"], religion_sample, population_size=67_000_000
    )


@given(n=st.integers(1, 300), extra=st.integers(2, 500), share=st.floats(1e-6, 0.99))
@settings(deadline=None)
def test_theta_solves_the_sum_of_the_paper(n: int, extra: int, share: float) -> None:
    """Equation (5) as printed: each of the N - n draws is black with probability θ / (n
    + j + θ)."""
    new = extra * share
    theta = solve_theta(new, n, n + extra)
    direct = fsum(theta / (n + j + theta) for j in range(extra))
    assert direct == pytest.approx(new, rel=1e-6)
    assert expected_new_colours(theta, n, n + extra) == pytest.approx(direct, rel=1e-7)


@pytest.mark.parametrize("new", [0.0, -1.0, -1e-300])
def test_nothing_to_open_needs_no_black_ball(new: float) -> None:
    assert solve_theta(new, 10, 100) == 0.0


@pytest.mark.parametrize(("new", "size"), [(90, 100), (90.5, 100), (1000, 100), (90 - 1e-9, 100)])
def test_more_than_the_draws_can_open_is_an_error(new: float, size: int) -> None:
    with pytest.raises(
        EstimationError,
        match=f"{size - 10} individuals outside the sample can open at most {size - 10}",
    ):
        solve_theta(new, 10, size)


def test_nobody_left_opens_no_cell() -> None:
    with pytest.raises(EstimationError, match="at most 0"):
        solve_theta(5.0, 10, 10)


def test_theta_of_a_national_population() -> None:
    # For θ far below n the difference of the digammas is log(N / n).
    assert solve_theta(1e-3, 10**6, 67_000_000) == pytest.approx(1e-3 / log(67), rel=1e-5)


def test_theta_from_known_empty_cells(
    religion: xr.DataArray, religion_sample: xr.DataArray
) -> None:
    empty = int((religion == 0).sum())
    fit = tc.PolyaUrn(empty_cells=empty).fit(
        religion_sample, population_size=2449, draws=500, random_seed=1
    )
    theta = float(fit["constant_data"]["theta"])
    to_open = int((religion_sample == 0).sum()) - empty
    assert fsum(theta / (245 + j + theta) for j in range(2449 - 245)) == pytest.approx(
        to_open, rel=1e-9
    )
    # The closing of the urn apart, that is the mean number of cells opened: within four
    # standard errors below it.
    left = (fit["posterior_predictive"]["population"] == 0).sum(["area", "religion"])
    assert float(left.mean()) - empty < 4 * float(left.std()) / left.size**0.5 + 1


def test_theta_by_the_log_linear_fit(fit_urn: xr.DataTree, religion_sample: xr.DataArray) -> None:
    f = religion_sample.values
    p = f.sum(1)[:, None] * f.sum(0) / 245**2
    expected_empty = ((1 - p) ** 2449).sum()
    assert float(fit_urn["constant_data"]["expected_empty_cells"]) == pytest.approx(
        expected_empty, rel=1e-9
    )
    theta = float(fit_urn["constant_data"]["theta"])
    opened = fsum(theta / (245 + j + theta) for j in range(2449 - 245))
    assert opened == pytest.approx((f == 0).sum() - expected_empty, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theta": -1}, "theta must be a finite number of at least 0, got -1"),
        ({"theta": float("nan")}, "theta must be a finite number"),
        ({"theta": float("inf")}, "theta must be a finite number"),
        ({"theta": "2"}, "theta must be a finite number of at least 0, got '2'"),
        ({"theta": True}, "theta must be a finite number"),
        ({"empty_cells": -1}, "empty_cells must be a finite number of at least 0"),
        ({"empty_cells": 1.5}, "empty_cells must be a whole number of at least 0, got 1.5"),
        ({"empty_cells": float("nan")}, "empty_cells must be"),
        ({"theta": 1, "empty_cells": 1}, "not both"),
    ],
)
def test_arguments_refused(arguments, message) -> None:
    with pytest.raises(ParameterError, match=message):
        tc.PolyaUrn(**arguments)


def test_more_empty_cells_than_the_sample_has(religion_sample: xr.DataArray) -> None:
    empty = int((religion_sample == 0).sum())
    with pytest.raises(ParameterError, match=f"only {empty} of the sample's cells are empty"):
        tc.PolyaUrn(empty_cells=empty + 1).fit(religion_sample, population_size=2449)


def test_an_enormous_theta_opens_every_cell_first() -> None:
    start, empty = np.array([1, 0, 0, 0]), np.array([False, True, True, True])
    assert (draw_urn(start, empty, 4, np.full(100, 1e18), np.random.default_rng(1)) == 1).all()
