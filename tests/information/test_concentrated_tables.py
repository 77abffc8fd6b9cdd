"""Tables with nearly everybody in one cell, whose entropies are as small as the shares
of the others, against fractions and logarithms of 60 digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
import twins

CLOSE = {"rel": 1e-11, "abs": 0}


def uncertainty(joint: twins.Joint) -> float:
    """H(X|Y) = -sum P(x, y) log P(x | y)."""
    with localcontext(prec=60):
        exact = [[_decimal(mass) for mass in row] for row in joint]
        after = [sum(column) for column in zip(*exact, strict=True)]
        each = [m * (m / after[j]).ln() for row in exact for j, m in enumerate(row) if m]
        return -float(sum(each))


def _decimal(fraction: Fraction | int) -> Decimal:
    return Decimal(fraction.numerator) / fraction.denominator


def entropy(counts: list[int]) -> float:
    return uncertainty([[share] for share in twins.shares(counts)])


def cells(counts: list[int]) -> xr.DataArray:
    return xr.DataArray(counts, dims="x")


@st.composite
def concentrated(draw, number: int) -> list[list[int]]:
    """Tables of the same two to four cells with few people outside one cell, which need
    not be the same cell; some differ from the first by one person."""
    size = draw(st.integers(2, 4))
    found: list[list[int]] = []
    for _ in range(number):
        counts = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
        counts[draw(st.integers(0, size - 1))] = draw(st.integers(1, 2**53 - 100))
        near = [count + (i == 1) for i, count in enumerate(found[0])] if found else counts
        found.append(draw(st.sampled_from([counts, near])))
    return found


def test_a_release_of_the_largest_cell_alone_tells_nothing():
    P, G = cells([270223252550908, 1]), cells([108250657140207, 0])
    risk = tc.disclosure_risk(P, G)
    assert float(risk.entropy_term) == pytest.approx(0, abs=1e-14)
    assert float(tc.information.entropy(P)) == pytest.approx(entropy([270223252550908, 1]), **CLOSE)


@given(concentrated(2))
def test_entropies_lose_no_digits(pair):
    F, G = pair
    before, left = entropy(F), uncertainty(twins.joint_of(F, G))
    assert float(tc.information.entropy(cells(F))) == pytest.approx(before, **CLOSE)
    found = float(tc.information.conditional_entropy(cells(F), cells(G)))
    assert found == pytest.approx(left, rel=1e-11, abs=1e-11 * before)


@pytest.mark.parametrize(
    ("F", "G"),
    [
        ([10**15, 1, 0], [6, 0, 4]),  # most people moved, and the single one with them
        ([10**15, 1], [4, 6]),  # a cell that is much larger in the release
        ([10**15, 3, 2], [10**14, 1, 0]),  # shares that differ in their last digits
        ([1, 10**15, 1], [1, 1, 8]),
        ([10**15, 2], [10**15, 3]),
        ([999, 1], [2**53 - 1, 1]),
    ],
)
def test_each_term_of_the_conditional_entropy(F, G):
    left = uncertainty(twins.joint_of(F, G))
    assert float(tc.information.conditional_entropy(cells(F), cells(G))) == pytest.approx(
        left, **CLOSE
    )


def test_many_draws_of_few_people():
    """Looked up in a table of terms."""
    rng = np.random.default_rng(1)
    rest = rng.integers(0, 2, (20_000, 2))
    counts = np.column_stack([1000 - rest.sum(axis=1), rest])
    draws = xr.DataArray(counts, dims=("draw", "x"))
    for G in ([1000, 0, 0], [3, 1, 0], [2**50, 1, 0], [4, 0, 6]):
        found = tc.information.conditional_entropy(
            xr.DataArray(draws, dims=("draw", "x")), cells(G)
        )
        for i in range(8):
            left = uncertainty(twins.joint_of(counts[i].tolist(), G))
            assert float(found[i]) == pytest.approx(left, **CLOSE)


@given(concentrated(3))
def test_averaging_the_joint(tables):
    F, *releases = tables
    joint = twins.mean_joint([twins.joint_of(F, G) for G in releases])
    found = tc.information.averaged_conditional_entropy(
        cells(F), xr.DataArray(releases, dims=("replicate", "x"))
    )
    assert float(found) == pytest.approx(uncertainty(joint), rel=1e-11, abs=1e-11 * entropy(F))


@given(concentrated(3))
def test_known_moves(columns):
    total = sum(map(sum, columns))
    exact = [[Fraction(count, total) for count in row] for row in zip(*columns, strict=True)]
    joint = xr.DataArray(columns, dims=("y", "x"))
    found = tc.information.conditional_entropy_from_joint(joint, given="y")
    assert float(found) == pytest.approx(uncertainty(exact), **CLOSE)
