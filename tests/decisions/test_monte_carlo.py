"""Monte Carlo errors: repetitions of tiny problems, and Wilson's interval."""

from math import sqrt

import numpy as np
import pytest

from taciturn.decisions.monte_carlo import Means, Share, least_by_draw
from taciturn.risk.outcomes import Dependence

REPETITIONS = 400


def spread_and_claim(repeat):
    """The standard deviation of an estimate over repetitions, and the root mean square
    of the errors that it claims. A chi-square of 400 degrees of freedom has a relative
    error of 7 %, its root of 3.5 %; tests allow five of these."""
    found = np.array([repeat() for _ in range(REPETITIONS)])
    return found[:, 0].std(), sqrt((found[:, 1] ** 2).mean())


def test_draws_are_worth_what_their_proposals_are() -> None:
    """100 values, of which each draw is one at random: 200 draws are worth fewer."""
    rng = np.random.default_rng(1)

    def repeat():
        values = rng.choice(rng.normal(size=(100, 1)), 200)
        found = Means.of(values, Dependence(worth=1 / (1 / 100 + 1 / 200)))
        return found.mean, found.error

    spread, claim = spread_and_claim(repeat)
    assert claim == pytest.approx(spread, rel=5 * 0.035)


def test_the_error_of_a_mean_is_that_of_repetitions() -> None:
    """Of two-way values."""
    rng = np.random.default_rng(1)

    def repeat():
        values = rng.normal(size=(200, 1)) + 2 * rng.normal(size=30) + rng.normal(size=(200, 30))
        found = Means.of(values, Dependence())
        return found.mean, found.error

    spread, claim = spread_and_claim(repeat)
    assert claim == pytest.approx(spread, rel=0.18)
    assert spread == pytest.approx(sqrt(1 / 200 + 4 / 30), rel=0.18)


@pytest.mark.parametrize(
    ("replicates", "same_numbers"),
    [((20, 20), True), ((20, 20), False), ((20, 30), False), ((1, 25), False)],
)
def test_the_error_of_the_least_by_draw_is_that_of_repetitions(replicates, same_numbers) -> None:
    """Three protections: the population decides which of the first two is best, which
    replicates blur; the third is never the best."""
    rng = np.random.default_rng(2)
    draws = 300

    def repeat():
        hidden = rng.normal(size=(draws, 1))
        common = rng.normal(size=max(replicates))
        noise = [common[:b] if same_numbers else rng.normal(size=b) for b in replicates]
        noise = [each if each.size > 1 else np.zeros(1) for each in noise]
        first = 1 - 0.5 * hidden + noise[0] * (1 + 0.5 * hidden)
        second = 1.2 + 0.5 * hidden + noise[1] * (2 - 0.5 * hidden)
        return least_by_draw(
            [Means.of(each, Dependence()) for each in (first, second, second + 10)]
        )

    spread, claim = spread_and_claim(repeat)
    assert claim == pytest.approx(spread, rel=0.18)


def test_the_least_by_draw_by_hand() -> None:
    """The second is less by 2 in the last of four draws only. Replicates: there, the
    first has 2 and 4 and the second 0 and 2, of which the same number is in both, so
    the differences of the replicates do not vary."""
    first = Means.of(np.array([[0.0, 2], [0, 2], [0, 2], [2, 4]]), Dependence())
    second = Means.of(np.array([[5.0, 7], [5, 7], [5, 7], [0, 2]]), Dependence())
    saved, error = least_by_draw([first, second])
    assert saved == 2 / 4
    of_draws = Means.of(np.array([[0.0], [0], [0], [2]]), Dependence()).error
    assert error == pytest.approx(of_draws)
    # Against one of three replicates they are independent: 1/4 of each counts.
    third = Means.of(np.array([[5.0, 6, 7], [5, 6, 7], [5, 6, 7], [0, 1, 2]]), Dependence())
    _, error = least_by_draw([first, third])
    ours, theirs = np.var([0.5, 1], ddof=1) / 2, np.var([0, 0.25, 0.5], ddof=1) / 3
    assert error == pytest.approx(sqrt(of_draws**2 + ours + theirs))
    assert least_by_draw([first]) == (0, 0)


@pytest.mark.parametrize(("shape", "number"), [((1, 10), 10), ((50, 1), 50), ((50, 10), 10)])
def test_a_share_of_all_is_not_certain(shape, number) -> None:
    """Wilson's interval of n out of n ends at n / (n + 4) and at 1."""
    rng = np.random.default_rng(1)
    holds = np.ones(shape, dtype=bool)
    found = Share.of(holds, Means.of(rng.normal(size=shape), Dependence()))
    assert found.mean == 1
    if shape == (50, 1):  # draws that depend on each other a little count for less
        assert 30 < 4 / (1 / (found.centre - 2 * found.error) - 1) <= 50
    else:
        assert found.centre - 2 * found.error == pytest.approx(number / (number + 4))
    assert found.centre + 2 * found.error == pytest.approx(1)
    none = Share.of(~holds, Means.of(rng.normal(size=shape), Dependence()))
    assert none.in_doubt(0.05)
    assert not none.in_doubt(0.5)


def test_the_interval_of_a_share_is_wilsons() -> None:
    """3 of 8 replicates: the roots of (p - 3/8)^2 = 4 p (1 - p) / 8, but for 7 in the
    place of 8 in the variance."""
    holds = np.array([[True] * 3 + [False] * 5])
    found = Share.of(holds, Means.of(np.arange(8.0)[None], Dependence()))
    p = 3 / 8
    half = 2 * sqrt(p * (1 - p) / 7 + 1 / 8**2) / (1 + 4 / 8)
    assert 2 * found.error == pytest.approx(half)
    assert found.centre == pytest.approx((p + 2 / 8) / (1 + 4 / 8))
    assert found.in_doubt(found.centre - half)
    assert not found.in_doubt(found.centre - half - 1e-6)


def test_nothing_that_is_drawn_leaves_no_doubt() -> None:
    found = Share.of(np.array([[True]]), Means.of(np.array([[0.3]]), Dependence()))
    assert (found.mean, found.error) == (1, 0)
    assert not found.in_doubt(1)


def test_replicates_that_differ_by_rounding_have_no_error_beside_each_other() -> None:
    values = np.random.default_rng(1).random((1, 20))
    rounded = values * (1 + 1e-16 * np.resize([3, -3], 20))
    assert not np.array_equal(values, rounded)
    assert Means.of(values, Dependence()).error_beside(Means.of(rounded, Dependence())) == 0
