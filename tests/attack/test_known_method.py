"""`H(X|Y)` for those who know a mechanism: every release of tiny tables listed with its
probability, in fractions up to the logarithm; replicates of large ones."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
    mechanism_conditional_entropy,
)
from taciturn.attack.mechanisms.expected_joint import Alike, expected_joint
from taciturn.attack.mechanisms.known_method import _released
from taciturn.errors import ParameterError, TableError

KEYS = CellKeys(tc.perturbation.perturbation_table(2, 1))


class OneMore(Mechanism):
    """A count is released as it is, or with equal probability as one more."""

    gives = "counts"
    chance = 0.5

    def support(self, released):
        return max(released - 1, 0), released

    def log_probability(self, released, true):
        with np.errstate(divide="ignore"):
            return np.log(np.isin(released - true, [0, 1]) * self.chance)


def rounded(count: int, base: int) -> dict[int, Fraction]:
    down, rest = count - count % base, Fraction(count % base, base)
    return {down: 1 - rest, down + base: rest} if rest else {count: Fraction(1)}


def adjusted(count: int, least: int) -> dict[int, Fraction]:
    return rounded(count, least) if count < least else {count: Fraction(1)}


def of_keys(count: int) -> dict[int, Fraction]:
    table = KEYS.perturbation
    row = min(count, table.sizes["original"] - 1)
    shift = count - row
    return {
        j + shift: Fraction(p) for j, p in enumerate(table.values[row].tolist()) if Fraction(p) > 0
    }


def noisy(count: int, a: Fraction, furthest: int = 60) -> dict[int, Fraction]:
    """Two-sided geometric noise, without what is less than a ** 60."""
    found = {y: (1 - a) / (1 + a) * a ** abs(y - count) for y in range(1, count + furthest)}
    return {0: a**count / (1 + a), **found}


def listed(
    population: Sequence[int], cells: Sequence[dict[int, Fraction]]
) -> tuple[float, dict[tuple[int, int], Fraction]]:
    """`H(X|Y)` and the joint of Theorem 6, over all releases."""
    size = sum(population)
    p = [Fraction(count, size) for count in population]
    joint: dict[tuple[int, int], Fraction] = {}
    nothing = Fraction(0)
    for release in product(*(cell.items() for cell in cells)):
        chance = prod((c for _, c in release), start=Fraction(1))
        total = sum(count for count, _ in release)
        if total == 0:
            nothing += chance
            continue
        q = [Fraction(count, total) for count, _ in release]
        m = [min(pair) for pair in zip(p, q, strict=True)]
        r, s = ([x - y for x, y in zip(each, m, strict=True)] for each in (p, q))
        for i, j in product(range(len(p)), repeat=2):
            here = m[i] if i == j else (r[i] * s[j] / sum(r) if any(r) else Fraction(0))
            joint[i, j] = joint.get((i, j), Fraction(0)) + chance * here
    after = [sum(joint[i, j] for i in range(len(p))) for j in range(len(p))]
    left = -sum(float(v) * log(v / after[j]) for (_, j), v in joint.items() if v)
    left -= float(nothing) * sum(float(v) * log(v) for v in p if v)
    return left, joint


@pytest.mark.parametrize(
    ("counts", "mechanism", "cell"),
    [
        ([1, 2, 4], RandomRounding(3), lambda x: rounded(x, 3)),
        ([1, 2, 4, 7], RandomRounding(3), lambda x: rounded(x, 3)),
        ([1, 1, 3, 7, 1], RandomRounding(2), lambda x: rounded(x, 2)),
        ([0, 1, 1, 2], RandomRounding(3), lambda x: rounded(x, 3)),
        ([3, 6, 1], RandomRounding(5), lambda x: rounded(x, 5)),
        ([1, 1, 1], SmallCellAdjustment(3), lambda x: adjusted(x, 3)),
        ([1, 2, 4, 9], SmallCellAdjustment(3), lambda x: adjusted(x, 3)),
        ([1, 2, 5, 0], KEYS, of_keys),
        ([1, 1, 2, 1], KEYS, of_keys),
        ([3, 0, 1], OneMore(), lambda x: {x: Fraction(1, 2), x + 1: Fraction(1, 2)}),
    ],
)
def test_all_releases_of_a_tiny_table_are_weighed(counts, mechanism, cell):
    found = mechanism_conditional_entropy(xr.DataArray(counts, dims="x"), mechanism)
    assert float(found) == pytest.approx(listed(counts, [cell(x) for x in counts])[0], abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any),
    population=st.lists(st.integers(0, 9), min_size=5, max_size=5),
    base=st.integers(2, 6),
)
def test_any_small_table_and_population(counts, population, base):
    population = [max(pair) for pair in zip(population, counts, strict=False)]
    found = mechanism_conditional_entropy(
        xr.DataArray(counts, dims="x"),
        RandomRounding(base),
        population=xr.DataArray(population, dims="x"),
    )
    wanted = listed(population, [rounded(x, base) for x in counts])[0]
    assert float(found) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("scale", [1, 10**4, 10**8])
def test_the_error_is_in_proportion(scale):
    """Of large counts few are moved by rounding, and little is left to doubt: from 0.4
    nats to 3e-8."""
    counts = [scale + 1, 2 * scale + 1, 4 * scale + 2, 3 * scale + 1]
    found = mechanism_conditional_entropy(xr.DataArray(counts, dims="x"), RandomRounding(3))
    wanted = listed(counts, [rounded(x, 3) for x in counts])[0]
    assert float(found) == pytest.approx(wanted, rel=3e-9, abs=0)


def test_noise_without_end():
    a = Fraction(1, 2)
    found = mechanism_conditional_entropy(
        xr.DataArray([2, 5], dims="x"), GeometricNoise(epsilon=log(2))
    )
    assert float(found) == pytest.approx(listed([2, 5], [noisy(2, a), noisy(5, a)])[0], abs=1e-9)


def test_nothing_released_says_nothing():
    """Both cells go to 0 with probability 4/9; then the whole entropy of log 2 is left.
    With one of the two at 3 a person is in either cell or known to be, 3 / 3 and 0."""
    left, joint = listed([1, 1], [rounded(1, 3)] * 2)
    assert sum(joint.values()) == 1 - Fraction(4, 9)
    found = mechanism_conditional_entropy(xr.DataArray([1, 1], dims="x"), RandomRounding(3))
    assert float(found) == pytest.approx(left, abs=1e-9)


@pytest.mark.parametrize("mechanism", [RandomRounding(3), ConventionalRounding(3)])
def test_what_is_released_as_it_is_leaves_nothing(mechanism):
    assert mechanism_conditional_entropy(xr.DataArray([3, 6, 6], dims="x"), mechanism) == 0


def test_conventional_rounding_is_one_release():
    table = tc.load_dataset("area_by_sex")
    released = tc.perturbation.conventional_round(table, rounding_base=5)
    exact = mechanism_conditional_entropy(table, ConventionalRounding(5), base=2)
    known = tc.information.conditional_entropy(table, released, base=2).item()
    assert float(exact) == pytest.approx(known, abs=1e-9)


def test_a_sample_is_perturbed_and_its_population_judged():
    sample = xr.DataArray([1, 2, 4], dims="x")
    populations = xr.DataArray([[[3, 9, 11], [1, 2, 4], [20, 2, 4]]], dims=("chain", "draw", "x"))
    found = mechanism_conditional_entropy(sample, RandomRounding(3), population=populations)
    assert found.dims == ("chain", "draw")
    cells = [rounded(x, 3) for x in (1, 2, 4)]
    wanted = [listed(row, cells)[0] for row in populations.values[0].tolist()]
    assert found.values[0] == pytest.approx(wanted, abs=1e-9)


def test_the_joint_is_that_of_replicates():
    """20,000 roundings of 90 cells. The z of the share of movers, and of a weighted sum
    of the moves between all pairs, is beyond 5.3 with a probability of 1e-7."""
    table = tc.load_dataset("area_by_religion")
    counts, which, number = np.unique(table.values, return_inverse=True, return_counts=True)
    share = counts / table.values.sum()
    up = counts % 3 / 3
    cells = Alike(number, share, counts - counts % 3, np.stack([1 - up, up], axis=1), 3)
    joint = expected_joint(cells)
    assert joint.number @ joint.released == pytest.approx(1, abs=1e-9)
    pairs = np.outer(number, number) - np.diag(number)
    rows = joint.stay + ((pairs * joint.moved).sum(axis=1)) / number
    assert rows == pytest.approx(share, abs=1e-10)  # p_i, whatever is released
    released = tc.random_round(table, rounding_base=3, replicates=20_000, random_seed=1)
    g = released.values.reshape(20_000, -1)
    p, q = share[which.ravel()], g / g.sum(axis=1, keepdims=True)
    r, s = np.maximum(p - q, 0), np.maximum(q - p, 0)
    t = r.sum(axis=1)
    weights = np.random.default_rng(2).normal(size=(len(counts), len(counts)))
    kinds = np.eye(len(counts))[which.ravel()]
    for drawn, wanted in [
        (t, 1 - number @ joint.stay),
        (((r @ kinds) @ weights * (s @ kinds)).sum(axis=1) / t, (weights * pairs * joint.moved)),
    ]:
        error = drawn.std() / np.sqrt(len(drawn))
        assert abs(drawn.mean() - np.sum(wanted)) / error < 5.3


def test_few_replicates_are_too_low_and_many_come_near():
    table = tc.load_dataset("area_by_sex")
    exact = float(mechanism_conditional_entropy(table, RandomRounding(3)))
    given = {"rounding_base": 3, "random_seed": 1}
    averages = [
        float(tc.information.averaged_conditional_entropy(table, tc.random_round(table, **given)))
        for given["replicates"] in (10, 100, 10_000)
    ]
    assert averages[0] < averages[1] < exact
    assert averages[-1] == pytest.approx(exact, rel=2e-3)


def test_it_gives_the_risk_for_those_who_know_the_method():
    table = tc.load_dataset("area_by_sex")
    released = tc.random_round(table, rounding_base=3, replicates=5, random_seed=1)
    exact = mechanism_conditional_entropy(table, RandomRounding(3))
    known = tc.disclosure_risk(table, released, conditional_entropy=exact)
    told = tc.disclosure_risk(table, released)
    assert (known["R2"] < told["R2"]).all()


def test_draws_of_a_population_keep_their_labels():
    sample = xr.DataArray([1, 2, 4], dims="x")
    draws = xr.DataArray([[[3, 9, 11], [1, 2, 4]]], dims=("chain", "draw", "x"))
    draws = draws.assign_coords(chain=[2], draw=[10, 30])
    left = mechanism_conditional_entropy(sample, RandomRounding(3), population=draws)
    released = tc.random_round(sample, rounding_base=3, replicates=4, random_seed=1)
    risk = tc.disclosure_risk(draws, released, conditional_entropy=left)
    assert risk["R2"].sizes == {"chain": 1, "draw": 2, "replicate": 4}
    assert left["draw"].values.tolist() == [10, 30]


def test_exact_zero_factors():
    """With base 2 and base 4 the wave of a half vanishes at some frequencies."""
    for counts, base in (([1, 3], 2), ([2, 2, 2, 2, 2, 6], 4), ([1], 2)):
        found = mechanism_conditional_entropy(xr.DataArray(counts, dims="x"), RandomRounding(base))
        wanted = listed(counts, [rounded(x, base) for x in counts])[0]
        assert float(found) == pytest.approx(wanted, abs=1e-9)


def test_what_is_refused():
    table = xr.DataArray([1, 2], dims="x")
    with pytest.raises(ParameterError, match="must be a Mechanism, got str"):
        mechanism_conditional_entropy(table, "round")
    with pytest.raises(TableError, match="nobody in it"):
        mechanism_conditional_entropy(table * 0, RandomRounding(3))
    named, other = table.assign_coords(x=["a", "b"]), table.assign_coords(x=["a", "c"])
    with pytest.raises(TableError, match="categories"):
        mechanism_conditional_entropy(named, RandomRounding(3), population=other)
    halved, doubled = OneMore(), OneMore()
    halved.chance, doubled.chance = 0.25, 1.0
    with pytest.raises(ParameterError, match=r"1 sum to 0\.5 and not to 1"):
        mechanism_conditional_entropy(table, halved)
    with pytest.raises(ParameterError, match="sum to 2 and not to 1"):
        mechanism_conditional_entropy(table, doubled)


def test_too_much_work_is_refused_before_it_is_done():
    with pytest.raises(ParameterError, match="3,000 different counts, at most 1,000"):
        mechanism_conditional_entropy(xr.DataArray(np.arange(3000), dims="x"), RandomRounding(3))
    with pytest.raises(ParameterError, match="operations for this table and mechanism"):
        mechanism_conditional_entropy(
            xr.DataArray(np.arange(200), dims="x"), GeometricNoise(epsilon=0.3)
        )
    with pytest.raises(ParameterError, match="4,194,304 are worked out exactly"):
        mechanism_conditional_entropy(
            xr.DataArray(np.full(200_000, 7), dims="x"), GeometricNoise(epsilon=1)
        )
    with pytest.raises(ParameterError, match="more than 1,024 away from 7"):
        mechanism_conditional_entropy(xr.DataArray([7, 7], dims="x"), GeometricNoise(epsilon=0.01))


def test_what_may_be_released_of_a_count():
    values, chances = _released(RandomRounding(10), 14)
    assert values.tolist() == [10, 20]
    assert chances == pytest.approx([0.6, 0.4])
