"""The samplers of multinomial and Dirichlet-multinomial tables against every table they
can give."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom, kstest, multinomial

from exact import assert_same_distribution, dirichlet_multinomial_pmf, tables
from taciturn.estimators.sampling import draws
from taciturn.estimators.sampling.draws import (
    draw_dirichlet_multinomial,
    draw_multinomial,
    draw_urn,
)

DRAWS = 200_000


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Limits from which on tables are drawn in another way."""
    monkeypatch.setattr(draws, "LIMITS", draws.LIMITS._replace(**limits))


@pytest.mark.parametrize(
    ("total", "weights"),
    [
        (5, (1.0, 2.0, 0.5)),
        (8, (0.3, 0.7)),
        (4, (3.0, 1.0, 2.0, 0.25)),
        (3, (0.02, 0.01, 0.03)),  # most gamma variates underflow: drawn by their logarithms
        (3, (1e-3, 1e-3)),  # a plain gamma underflows in both cells in 24 % of draws
        (3, (1e-300, 3e-300)),
        (6, (1e12, 2e12, 1e12)),  # a multinomial
        (4, (0.0, 1.0, 2.0, 0.0)),
        (4, (0.0, 0.01, 0.02)),
        (1, (1.0, 1.0)),
    ],
)
def test_dirichlet_multinomial_against_every_table(total: int, weights: tuple[float, ...]) -> None:
    if min(weights) >= 1e12:
        shares = np.array(weights) / sum(weights)
        expected = {
            x: float(multinomial.pmf(x, total, shares)) for x in tables(total, len(weights))
        }
    elif max(weights) < 1e-200:  # the whole table falls into one cell
        one = np.eye(len(weights), dtype=int) * total
        expected = {tuple(map(int, x)): w / sum(weights) for x, w in zip(one, weights, strict=True)}
    else:
        expected = {x: dirichlet_multinomial_pmf(x, weights) for x in tables(total, len(weights))}
    drawn = draw_dirichlet_multinomial(
        total, np.tile(weights, (DRAWS, 1)), np.random.default_rng(1)
    )
    assert_same_distribution(drawn, expected)


@pytest.mark.parametrize("shares", [(0.2, 0.5, 0.3), (0.0, 1.0, 0.0), (4.0, 0.0, 6.0)])
@pytest.mark.parametrize("large", [1024, 1])
def test_multinomial_against_every_table(
    shares: tuple[float, ...], large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, large=large)
    probability = np.array(shares) / sum(shares)
    expected = {x: float(multinomial.pmf(x, 5, probability)) for x in tables(5, 3)}
    drawn = draw_multinomial(np.full(DRAWS, 5), np.array([shares]), np.random.default_rng(2))
    assert_same_distribution(drawn, expected)


def test_large_tables_with_cells_that_expect_many_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells are drawn by themselves, two as one at first; and each row by its own
    shares and total."""
    limit(monkeypatch, large=1)
    shares, total = np.array([0.5, 0.1, 0.0, 0.4, 0.05]) / 1.05, 10
    expected = {x: float(multinomial.pmf(x, total, shares)) for x in tables(total, 5)}
    for rows in (1, DRAWS):
        drawn = draw_multinomial(
            np.full(DRAWS, total), np.tile(shares, (rows, 1)), np.random.default_rng(9)
        )
        assert_same_distribution(drawn, expected)
    rng = np.random.default_rng(4)
    mixed = rng.dirichlet(np.full(60, 0.1), size=200) * (rng.random((200, 60)) < 0.5)
    mixed[:, 0] += 0.01
    totals = rng.integers(0, 400, 200)
    drawn = draw_multinomial(totals, mixed, rng)
    assert (drawn.sum(axis=1) == totals).all()
    assert (drawn[mixed == 0] == 0).all()


@pytest.mark.parametrize(
    ("total", "share"),
    [(19, 0.5), (25, 0.45), (40, 0.7), (1000, 0.0099), (1000, 0.0101), (2000, 0.03)],
)
def test_binomials_against_their_distribution(total: int, share: float) -> None:
    """Of both kinds, with a mean below and above ten."""
    drawn = draw_multinomial(
        np.full(DRAWS, total), np.array([[share, 1 - share]]), np.random.default_rng(5)
    )
    expected = {(k, total - k): float(binom.pmf(k, total, share)) for k in range(total + 1)}
    assert_same_distribution(drawn, expected)


@pytest.mark.parametrize(
    ("total", "share"), [(2**33, 0.5), (67_000_000, 1e-3), (2**53, 0.3), (2**53, 1e-12)]
)
def test_binomials_of_large_populations(total: int, share: float) -> None:
    """Kolmogorov's distance from the normal distribution, whose own from a binomial
    with this mean is below 0.002."""
    drawn = draw_multinomial(
        np.full(DRAWS, total), np.array([[share, 1 - share]]), np.random.default_rng(6)
    )[:, 0]
    mean, sd = total * share, (total * share * (1 - share)) ** 0.5
    assert (
        kstest((drawn + 0.5 - mean) / sd, "norm").statistic < 0.002 + 2.6 / DRAWS**0.5
    )  # 2.6: a level of 1e-6


@pytest.mark.parametrize("large", [1024, 1])
def test_rounding_puts_nobody_into_a_cell_without_weight(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1 + 0.2 + 0.7 is not 1 in floating point; of 2**52 individuals the remainder
    would be hundreds."""
    limit(monkeypatch, large=large)
    shares = np.array([[0.1, 0.2, 0.7, 0.0]])
    drawn = draw_multinomial(np.full(1000, 2**52), shares, np.random.default_rng(3))
    assert (drawn[:, 3] == 0).all()
    assert (drawn.sum(axis=1) == 2**52).all()
    # Four standard deviations of the mean of 1,000 draws of a share of 0.7.
    sd = (0.7 * 0.3 / 2**52 / 1000) ** 0.5
    assert abs(drawn[:, 2].mean() / 2**52 - 0.7) < 4 * sd + 1e-15
    mixed = draw_dirichlet_multinomial(
        2**52, np.tile([1.0, 2.0, 0.0], (1000, 1)), np.random.default_rng(3)
    )
    assert (mixed[:, 2] == 0).all()


@given(
    weights=hnp.arrays(
        float,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.one_of(st.just(0.0), st.floats(1e-300, 1e15)),
    ),
    total=st.integers(0, 2**53),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None)
def test_every_row_sums_and_no_weight_means_nobody(
    weights: np.ndarray, total: int, seed: int
) -> None:
    weights[:, 0] += weights.sum(axis=1) == 0
    drawn = draw_dirichlet_multinomial(total, weights, np.random.default_rng(seed))
    assert (drawn.sum(axis=1) == total).all()
    assert (drawn >= 0).all()
    assert (drawn[weights == 0] == 0).all()


@pytest.mark.parametrize("most", [64, 0])
def test_cells_with_many_and_few_individuals(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that expect few are one at first; theirs are placed one by one, or like the
    others where they are many."""
    limit(monkeypatch, crowded=most)
    weights, total = (4.0, 0.3, 0.0, 0.2), 9
    expected = {x: dirichlet_multinomial_pmf(x, weights) for x in tables(total, len(weights))}
    drawn = draw_dirichlet_multinomial(
        total, np.tile(weights, (DRAWS, 1)), np.random.default_rng(7)
    )
    assert_same_distribution(drawn, expected)


def test_each_row_has_its_own_weights_and_total() -> None:
    weights, totals = (
        np.repeat([[0.3, 1.0, 2.0], [5.0, 0.01, 0.01]], DRAWS, axis=0),
        np.repeat([4, 6], DRAWS),
    )
    drawn = draw_dirichlet_multinomial(totals, weights, np.random.default_rng(8))
    for rows, total, own in ((slice(DRAWS), 4, weights[0]), (slice(DRAWS, None), 6, weights[-1])):
        expected = {x: dirichlet_multinomial_pmf(x, own) for x in tables(total, 3)}
        assert_same_distribution(drawn[rows], expected)


def test_blocks_do_not_change_the_shape_or_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, block=6)
    totals = np.arange(10)
    drawn = draw_dirichlet_multinomial(totals, np.ones((10, 3)), np.random.default_rng(4))
    assert (drawn.sum(axis=1) == totals).all()


def test_cells_that_can_open_in_each_draw() -> None:
    """Open as with equal weights, also if there is one draw."""
    counts = np.array([[1, 0, 0, 0, 0, 2], [0, 3, 0, 0, 0, 0]])
    for number in (1, 2):
        given = (counts[:number], counts[:number] == 0, 9, np.full(number, 3.0))
        equal = draw_urn(*given, np.random.default_rng(1), base=np.ones(6))
        assert np.array_equal(draw_urn(*given, np.random.default_rng(1)), equal)


def test_rows_with_nobody_need_no_weight() -> None:
    weights = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]])
    drawn = draw_dirichlet_multinomial(np.array([5, 0]), weights, np.random.default_rng(1))
    assert drawn.sum(axis=1).tolist() == [5, 0]
