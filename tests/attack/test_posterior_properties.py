"""The attacker's posterior on random small releases: that of enumeration, and a walk
that can reach everything."""

from itertools import product
from math import log2

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings, strategies as st
from scipy.sparse import csr_array

import taciturn as tc
from taciturn.attack.posterior import parts as _parts
from taciturn.attack.posterior.lattice import kernel_basis, reduced_basis, wide_moves
from taciturn.attack.posterior.of_release import _parts as parts_of

DIMS = ("a", "b", "c")


@st.composite
def releases(draw):
    """A release of a small table; of three variables with any margins too."""
    shape = draw(st.sampled_from([(2, 3), (2, 2, 2)]))
    size = int(np.prod(shape))
    values = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))).reshape(
        shape
    )
    table = xr.DataArray(values, dims=DIMS[: len(shape)])
    kind = draw(st.sampled_from(["suppression", "rounding", "redesign", "linked", "whole"]))
    if kind == "suppression":
        hidden = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(
            shape
        )
        return tc.Suppression(table, table.copy(data=hidden))
    if kind == "rounding":
        rounded = tc.random_round(table, rounding_base=3, random_seed=draw(st.integers(0, 99)))[0]
        exact = draw(st.booleans())
        totals = [table.sum(dim) for dim in table.dims]
        if not exact:
            totals = [tc.random_round(total, rounding_base=3, random_seed=1)[0] for total in totals]
        return tc.Rounding(rounded, 3, method="random", totals=totals, exact_totals=exact)
    if kind == "redesign":
        return tc.GlobalRecoding(table, {"a": {"both": [0, 1]}})
    if kind == "whole":  # the table itself is one of those that are released
        return tc.LinkedTables(table, [table.dims, "a"], suppressed={table.dims: table == 1})
    margins = draw(
        st.sampled_from(
            [["a", "b"], [("a", "b")], [("a", "b"), ("b", "c"), ("a", "c")], [("a", "b"), "c"]]
        )
    )
    assume(len(shape) == 3 or max(map(len, margins)) == 1)
    return tc.LinkedTables(table, margins)


def compatible(system):
    """Every solution of a system, in steps, by trying all values; None where they are
    many or nothing is unknown."""
    most = system.upper.copy()
    coo = system.matrix.tocoo()
    np.minimum.at(most, coo.coords[1], system.most[coo.coords[0]])
    ranges = [range(int(low), int(high) + 1) for low, high in zip(system.lower, most, strict=True)]
    if not ranges or np.prod([float(len(each)) for each in ranges]) > 30_000:
        return None
    tried = np.array(list(product(*ranges)), dtype=np.int64).reshape(-1, len(ranges))
    sums = tried @ system.matrix.toarray().T
    return tried[((sums >= system.least) & (sums <= system.most)).all(axis=1)]


def weights_of(tables, means):
    factorials = np.cumprod([1.0, *range(1, 60)])
    return (
        np.prod(means**tables / factorials[tables], axis=1)
        if means is not None
        else np.ones(len(tables))
    )


@settings(max_examples=30, deadline=None)
@given(release=releases(), informed=st.booleans(), seed=st.integers(0, 9))
def test_exact_numbers_are_those_of_enumeration(release, informed, seed):
    system = release.system
    tables = compatible(system)
    assume(tables is not None)
    shape = system.published.shape
    means = np.random.default_rng(seed).uniform(0.2, 3, shape) if informed else None
    prior = xr.DataArray(means, dims=system.published.dims) if informed else "uniform"
    found = tc.attacker_posterior(
        release, prior=prior, draws=10, random_seed=seed, progressbar=False
    )
    weights = weights_of(tables, means.ravel()[system.unknown] if informed else None)
    weights /= weights.sum()
    entropy, mean = found["entropy"].values.ravel(), found["mean"].values.ravel()
    for column, cell in enumerate(system.unknown):
        shares = np.bincount(tables[:, column], weights=weights)
        assert entropy[cell] == pytest.approx(-sum(p * log2(p) for p in shares if p > 0), abs=1e-10)
        assert mean[cell] == pytest.approx(weights @ tables[:, column], rel=1e-10, abs=1e-10)
    assert found["exact"].all()
    possible = {tuple(table) for table in tables.tolist()}
    drawn = found["table"].values.reshape(40, -1)[:, system.unknown]
    assert {tuple(table) for table in drawn.tolist()} <= possible
    assert (found["entropy"] <= np.log2(found["n_values"]) + 1e-12).all()
    bounds = tc.attacker_bounds(release, progressbar=False)
    for name in ("lower", "upper", "disclosed", "published"):
        assert np.array_equal(found[name].values, bounds[name].values)


@settings(max_examples=30, deadline=None)
@given(release=releases())
def test_the_basis_spans_the_difference_of_any_two_compatible_tables(release):
    # This is why a walk can go from any table to any other in one step, whatever bounds
    # are in between.
    system = release.system
    tables = compatible(system)
    assume(tables is not None)
    lower, upper = tables.min(axis=0), tables.max(axis=0)
    for columns, part in parts_of(system, lower, upper, np.empty(0)):
        equations, _, _ = part._extended()
        ranges = part.least < part.most
        inside = np.unique(tables[:, columns], axis=0)
        states = np.hstack([inside, (inside @ part.matrix.toarray().T)[:, ranges]])
        basis = reduced_basis(kernel_basis(equations)).toarray()
        assert not (equations @ basis.T).any()
        weights = np.rint(np.linalg.lstsq(basis.T, (states - states[0]).T, rcond=None)[0]).astype(
            np.int64
        )
        assert np.array_equal(weights.T @ basis, states - states[0])
        listed = part.listed()
        assert {tuple(each) for each in listed.tolist()} == {
            tuple(each) for each in inside.tolist()
        }


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_basis_is_one_of_all_whole_vectors(data):
    # The volume of a basis of all whole vectors in a kernel is that of the rows' own
    # lattice, over the gcd of minors; with a vector that is a multiple left out, some
    # whole vector would have fractions as weights.
    rows, columns = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 5))
    entries = data.draw(
        st.lists(st.integers(-3, 3), min_size=rows * columns, max_size=rows * columns)
    )
    matrix = np.array(entries).reshape(rows, columns)
    for basis in (kernel_basis(csr_array(matrix)), reduced_basis(kernel_basis(csr_array(matrix)))):
        dense = basis.toarray()
        assert len(dense) == columns - np.linalg.matrix_rank(matrix)
        assert not (matrix @ dense.T).any()
        if not len(dense):
            continue
        for whole in product(range(-2, 3), repeat=columns):
            if not (matrix @ np.array(whole)).any():
                weights = np.rint(np.linalg.lstsq(dense.T, np.array(whole), rcond=None)[0]).astype(
                    np.int64
                )
                assert np.array_equal(weights @ dense, whole)


@settings(max_examples=20, deadline=None)
@given(release=releases(), seed=st.integers(0, 99))
def test_wide_moves_keep_all_totals(release, seed):
    system = release.system
    assume(system.matrix.shape[0] > 0)
    moves = wide_moves(
        system.matrix, np.full(len(system.unknown), 4), 6, np.random.default_rng(seed)
    )
    assert not (system.matrix @ moves.toarray().T).any()
    assert moves.toarray().any(axis=1).all()


@settings(max_examples=15, deadline=None)
@given(release=releases(), informed=st.booleans(), seed=st.integers(0, 99))
def test_a_walk_stays_among_compatible_tables_and_gives_the_same_distribution(
    release, informed, seed
):
    system = release.system
    tables = compatible(system)
    assume(tables is not None)
    prior = system.published * 0 + 1.5 if informed else "uniform"
    arguments = {"prior": prior, "random_seed": seed, "progressbar": False}
    exact = tc.attacker_posterior(release, draws=4, **arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parts, "_most_listed", lambda cells: 0)
        patch.setattr("taciturn.attack.posterior.cells.SMALLEST_ESS", 0)
        patch.setattr("taciturn.attack.posterior.cells.HIGHEST_R_HAT", np.inf)
        walked = tc.attacker_posterior(release, draws=500, **arguments)
    possible = {tuple(table) for table in tables.tolist()}
    drawn = {
        tuple(table)
        for table in walked["table"].values.reshape(2000, -1)[:, system.unknown].tolist()
    }
    assert drawn <= possible
    # Eight standard errors of 2,000 nearly independent draws: an error in a thousand
    # million million.
    assert (
        abs(walked["entropy"] - exact["entropy"])
        <= 1e-9 + 8 * np.maximum(walked["entropy_mcse"], 0.01)
    ).all()
