"""What holds for every table: the fast measures against slow twins, bounds and
symmetries."""

from math import log

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st
from scipy.stats import entropy as scipy_entropy

import taciturn as tc
import twins
from strategies import pairs, replicated, tables
from taciturn.information import DIVERGENCES

CLOSE = {"rel": 1e-9, "abs": 1e-12}


def flat(table: xr.DataArray) -> list[int]:
    return table.values.ravel().tolist()


@st.composite
def few_individuals(draw) -> tuple[list[int], list[int]]:
    """Two tables of the same one to six individuals in two to four cells."""
    number, cells = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    where = st.lists(st.integers(0, cells - 1), min_size=number, max_size=number)
    before, after = (np.bincount(draw(where), minlength=cells).tolist() for _ in range(2))
    return before, after


@given(few_individuals())
def test_conditional_entropy_is_that_of_all_ways_to_move_as_few_as_possible(pair):
    before, after = pair
    joint = twins.joint_by_enumeration(before, after)
    assert joint == twins.joint_of(before, after)  # Theorem 2, in fractions
    ours = tc.information.conditional_entropy(
        xr.DataArray(before, dims="x"), xr.DataArray(after, dims="x")
    )
    assert float(ours) == pytest.approx(twins.conditional_entropy_of(joint), **CLOSE)


@given(pairs())
def test_conditional_entropy_of_any_two_tables(pair):
    F, G = pair
    assert float(tc.information.conditional_entropy(F, G)) == pytest.approx(
        twins.conditional_entropy(flat(F), flat(G)), **CLOSE
    )


@given(tables())
def test_entropy(table):
    ours = float(tc.information.entropy(table))
    assert ours == pytest.approx(twins.entropy(twins.shares(flat(table))), **CLOSE)
    assert ours == pytest.approx(float(scipy_entropy(flat(table))), **CLOSE)
    assert 0 <= ours <= log(table.size) * (1 + 1e-12)


@given(pairs(empty_release=True))
def test_a_release_never_adds_uncertainty(pair):
    F, G = pair
    assert 0 <= float(tc.information.conditional_entropy(F, G)) <= float(tc.information.entropy(F))


@given(tables(max_count=1000), st.integers(1, 1000))
def test_a_proportional_release_leaves_nothing(table, factor):
    assert float(tc.information.conditional_entropy(table, factor * table)) == 0
    assert float(tc.information.conditional_entropy(factor * table, table)) == 0


@given(replicated())
def test_averaging_the_joint(pair):
    table, releases = pair
    joints = [twins.joint_of(flat(table), flat(release)) for release in releases]
    averaged = float(tc.information.averaged_conditional_entropy(table, releases))
    assert averaged == pytest.approx(
        twins.conditional_entropy_of(twins.mean_joint(joints)), **CLOSE
    )
    mean_of_entropies = float(tc.information.conditional_entropy(table, releases).mean())
    assert averaged >= mean_of_entropies - 1e-12


@given(pairs(table_dims=("chain", "draw"), release_dims=("replicate",)), st.data())
def test_order_of_dimensions_and_of_cells(pair, data):
    F, G = pair
    expected = (
        tc.information.conditional_entropy(F, G).transpose("chain", "draw", "replicate").values
    )
    turned_F = F.transpose(*data.draw(st.permutations(F.dims)))
    turned_G = G.transpose(*data.draw(st.permutations(G.dims)))
    variable = data.draw(st.sampled_from([dim for dim in G.dims if dim != "replicate"]))
    order = data.draw(st.permutations(range(G.sizes[variable])))
    shuffled = tc.information.conditional_entropy(
        turned_F.isel({variable: order}), turned_G.isel({variable: order})
    )
    np.testing.assert_allclose(
        shuffled.transpose("chain", "draw", "replicate").values, expected, rtol=1e-9, atol=1e-12
    )


@given(pairs(table_dims=("draw",), max_dims=3), st.data())
def test_rows_are_tables_of_their_own(pair, data):
    F, G = pair
    dims = data.draw(st.lists(st.sampled_from(G.dims), min_size=1, unique=True))
    rest = [dim for dim in G.dims if dim not in dims]
    F = F + xr.ones_like(F).where(F.sum(dims) == 0, 0).astype(int)  # nobody in a row is an error
    values = tc.information.conditional_entropy(F, G, dim=dims)
    assert set(values.dims) == {"draw", *rest}
    rows = zip(
        _rows(F, ["draw", *rest], dims),
        _rows(G.expand_dims(draw=F.draw), ["draw", *rest], dims),
        strict=True,
    )
    for value, (before, after) in zip(
        values.transpose("draw", *rest).values.ravel(), rows, strict=True
    ):
        nothing = twins.entropy(twins.shares(before))
        assert value == pytest.approx(
            twins.conditional_entropy(before, after) if sum(after) else nothing, **CLOSE
        )


def _rows(table: xr.DataArray, along: list[str], dims: list[str]) -> list[list[int]]:
    ordered = table.transpose(*along, *sorted(dims))
    return ordered.values.reshape(-1, np.prod([table.sizes[dim] for dim in dims])).tolist()


@given(pairs())
def test_divergences_are_never_negative_and_zero_for_a_multiple(pair):
    F, G = pair
    for name in DIVERGENCES:
        assert float(tc.information.f_divergence(F, G, divergence=name)) >= 0
        assert float(tc.information.f_divergence(F, 3 * F, divergence=name)) == pytest.approx(
            0, abs=1e-12
        )
    assert float(tc.information.relative_entropy(F, G)) >= 0


@given(pairs())
def test_divergences_agree_with_each_other(pair):
    F, G = pair
    on_shares = float(tc.information.hellinger_distance(F, G, scale="probabilities"))
    assert float(
        tc.information.f_divergence(F, G, divergence="squared-hellinger")
    ) == pytest.approx(on_shares**2, **CLOSE)
    assert on_shares == pytest.approx(
        float(tc.information.hellinger_distance(G, F, scale="probabilities")), **CLOSE
    )
    assert 0 <= on_shares <= 1 + 1e-12
    kl = float(tc.information.relative_entropy(F, G))
    assert float(tc.information.f_divergence(F, G, divergence="relative-entropy")) == pytest.approx(
        kl, **CLOSE
    )
    assert kl == pytest.approx(float(scipy_entropy(flat(F), flat(G))), **CLOSE)


@given(tables())
def test_relative_entropy_from_the_uniform_table(table):
    uniform = xr.ones_like(table)
    expected = log(table.size) - float(tc.information.entropy(table))
    assert float(tc.information.relative_entropy(table, uniform)) == pytest.approx(
        expected, **CLOSE
    )
