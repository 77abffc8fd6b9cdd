"""Iterative proportional fitting against closed forms and an independent
maximum-likelihood fit."""

from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog, minimize
from scipy.special import softmax

import taciturn as tc
from taciturn.errors import EstimationError
from taciturn.estimators.formula import generating_class, parse_formula
from taciturn.estimators.ipf import fit_margins
from taciturn.estimators.support import find_support

ABC = ("a", "b", "c")


def fit(counts, formula=None, fillable=None):
    counts = np.asarray(counts)
    names = ABC[: counts.ndim]
    fillable = np.ones(counts.shape, dtype=bool) if fillable is None else np.asarray(fillable)
    return fit_margins(counts, names, parse_formula(formula, names), fillable)


def test_independence_of_two_variables() -> None:
    fitted = fit([[3, 1], [2, 4]])
    expected = [[4 / 10 * 5 / 10, 4 / 10 * 5 / 10], [6 / 10 * 5 / 10, 6 / 10 * 5 / 10]]
    np.testing.assert_allclose(fitted, expected, rtol=1e-12)


def test_saturated_is_the_sample() -> None:
    counts = np.array([[3, 0, 1], [2, 4, 0]])
    np.testing.assert_allclose(fit(counts, "~ a*b"), counts / 10, rtol=1e-12)


def test_a_variable_in_no_term_is_uniform() -> None:
    np.testing.assert_allclose(
        fit([[3, 1], [2, 4]], "~ a"), [[4 / 10 / 2] * 2, [6 / 10 / 2] * 2], rtol=1e-12
    )


def test_conditional_independence_in_three_dimensions() -> None:
    counts = np.array([[[5, 1], [2, 3]], [[1, 4], [6, 2]]])
    ac, bc, c = counts.sum(1), counts.sum(0), counts.sum((0, 1))
    expected = ac[:, None, :] * bc[None, :, :] / c / 24  # n_{i.k} n_{.jk} / (n_{..k} n)
    np.testing.assert_allclose(fit(counts, "~ a*c + b*c"), expected, rtol=1e-9)


def test_one_factor_independent_of_two() -> None:
    counts = np.array([[[5, 1], [2, 3]], [[1, 4], [6, 2]]])
    expected = counts.sum(2)[:, :, None] * counts.sum((0, 1)) / 24**2  # n_{ij.} n_{..k} / n²
    np.testing.assert_allclose(fit(counts, "~ a*b + c"), expected, rtol=1e-9)


def test_quasi_independence_with_a_structural_diagonal() -> None:
    # Symmetric 3 x 3 without its diagonal: p_ij = a_i a_j off it, so the odds p_12 p_23
    # / (p_13 p_22) are not free.
    counts = np.array([[0, 6, 4], [6, 0, 2], [4, 2, 0]])
    # a_1 a_2 = 6/24, a_1 a_3 = 4/24, a_2 a_3 = 2/24 fits all six cells, so the fit is
    # the sample.
    np.testing.assert_allclose(fit(counts, fillable=counts > 0), counts / 24, rtol=1e-8)


def test_structural_zero_moves_its_share_within_the_margins() -> None:
    fillable = np.array([[False, True], [True, True]])
    fitted = fit([[0, 4], [3, 5]], fillable=fillable)
    np.testing.assert_allclose(
        fitted, [[0, 4 / 12], [3 / 12, 5 / 12]], rtol=1e-8
    )  # saturated: 3 cells, 3 parameters


def test_no_three_way_interaction_agrees_with_an_optimiser() -> None:
    """Poisson log-linear likelihood with all pairs of ±1 contrasts, maximised by SciPy:
    nothing shared with IPF."""
    counts = np.array([[[9, 3], [4, 7]], [[2, 8], [6, 11]]])
    signs = np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
    pairs = [signs[:, i] * signs[:, j] for i, j in combinations(range(3), 2)]
    design = np.column_stack([signs, *pairs])

    def loss(beta):
        eta = design @ beta
        return np.log(np.exp(eta).sum()) * counts.sum() - counts.ravel() @ eta

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    expected = softmax(design @ best.x).reshape(2, 2, 2)
    np.testing.assert_allclose(fit(counts, "~ (a + b + c)^2"), expected, rtol=1e-6)


counts_tables = hnp.arrays(
    np.int64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=4), elements=st.integers(0, 50)
)


@given(counts=counts_tables, data=st.data())
@settings(max_examples=30, deadline=None)
def test_fitted_margins_are_the_samples(counts, data) -> None:
    assume(counts.sum() > 0)
    names = ABC[: counts.ndim]
    formula = data.draw(
        st.sampled_from(
            ["~ a", "~ a + b", "~ a*b", "~ b", *(["~ a*c + b", "~ a*b*c"] * (counts.ndim > 2))]
        )
    )
    terms = parse_formula(formula, names)
    fitted = fit(counts, formula)
    assert (fitted >= 0).all()
    assert fitted.sum() == pytest.approx(1, abs=1e-12)
    for term in generating_class(terms):
        others = tuple(axis for axis, name in enumerate(names) if name not in term)
        np.testing.assert_allclose(fitted.sum(others), counts.sum(others) / counts.sum(), atol=1e-9)


CORNERS = np.array([[[0, 4], [5, 3]], [[6, 2], [4, 0]]])  # alone has its two-way margins
SMALL = np.array([[3, 0, 1], [0, 1, 0]])
SMALL_FILLABLE = np.array([[True, False, True], [True, True, True]])  # b=1 takes all of a=1
NO_THREE_WAY = "~ a*b + b*c + a*c"


def margins_of(table, keep):
    others = [tuple(axis for axis in range(table.ndim) if axis not in axes) for axes in keep]
    return [table.sum(axes, keepdims=True) for axes in others]


def largest_values(margins, fillable):
    """The most that each cell holds in a table with these margins, one program each."""
    cells = np.flatnonzero(fillable)
    places = [np.broadcast_to(np.arange(m.size).reshape(m.shape), fillable.shape) for m in margins]
    sums = [place.ravel()[cells] == np.arange(place.max() + 1)[:, None] for place in places]
    rows, values = np.vstack(sums).astype(float), np.concatenate([m.ravel() for m in margins])
    largest = np.zeros(fillable.size)
    for number, cell in enumerate(cells):
        wanted = -(np.arange(len(cells)) == number).astype(float)
        largest[cell] = -linprog(wanted, A_eq=rows, b_eq=values).fun
    return largest.reshape(fillable.shape)


@pytest.mark.parametrize(
    ("counts", "formula", "fillable"),
    [(CORNERS, NO_THREE_WAY, None), (SMALL, None, SMALL_FILLABLE)],
    ids=["interactions", "structural zero"],
)
def test_the_maximum_on_the_boundary_has_exact_zeros(counts, formula, fillable) -> None:
    fitted = fit(counts, formula, fillable)  # only the sample has its margins
    np.testing.assert_allclose(fitted, counts / counts.sum(), rtol=0, atol=1e-9)
    assert (fitted[counts == 0] == 0).all()


def table(values) -> xr.DataArray:
    dims = ABC[: np.ndim(values)]
    names = {
        dim: [str(i) for i in range(size)] for dim, size in zip(dims, values.shape, strict=True)
    }
    return xr.DataArray(values, dims=dims, coords=names)


@pytest.mark.parametrize(
    ("counts", "formula", "fillable", "size", "expected"),
    [
        (CORNERS, NO_THREE_WAY, np.ones((2, 2, 2), dtype=bool), 100_000, 0.1572),
        (SMALL, None, SMALL_FILLABLE, 10_000, 0.3636),
        (SMALL, None, SMALL_FILLABLE, 1_000_000, 0.3671),
    ],
)
def test_the_risk_does_not_grow_with_the_population(
    counts, formula, fillable, size, expected
) -> None:
    fit = tc.LogLinear(formula).fit(
        table(counts),
        population_size=size,
        structural_zeros=table(~fillable),
        draws=1000,
        random_seed=1,
    )
    risk = tc.assess(fit)["risk"]["R2"].values
    assert risk.mean() == pytest.approx(expected, abs=5e-4)


def test_an_urn_opens_no_cell_that_no_table_fills() -> None:
    fit = tc.PolyaUrn().fit(
        table(SMALL),
        population_size=10_000,
        structural_zeros=table(~SMALL_FILLABLE),
        draws=5,
        random_seed=1,
    )
    assert fit["constant_data"]["theta"] == 0
    assert fit["constant_data"]["expected_empty_cells"] == pytest.approx(2, abs=1e-9)


@given(data=st.data(), shape=st.sampled_from([(2, 2, 2), (2, 3, 2), (3, 4)]))
@settings(max_examples=60, deadline=None)
def test_the_support_is_that_of_one_program_for_each_cell(data, shape) -> None:
    few = st.sampled_from([0, 0, 1, 2, 7])
    counts = data.draw(hnp.arrays(np.int64, shape, elements=few))
    assume(counts.any())
    interactions = len(shape) == 3
    keep = list(combinations(range(3), 2)) if interactions else [(0,), (1,)]
    fillable = np.ones(shape, dtype=bool)
    if not interactions:
        fillable = data.draw(hnp.arrays(np.bool_, shape)) | (counts > 0)
    fitted = fit(counts, NO_THREE_WAY if interactions else None, fillable)
    margins = margins_of(counts, keep)
    np.testing.assert_array_equal(fitted > 1e-7, largest_values(margins, fillable) > 1e-6)
    for fits, margin in zip(margins_of(fitted, keep), margins, strict=True):
        np.testing.assert_allclose(fits, margin / counts.sum(), rtol=0, atol=1e-8)
    support = find_support([margin.astype(float) for margin in margins], fillable, counts)
    np.testing.assert_array_equal(support, fitted > 1e-7)


def test_known_margins_beside_structural_zeros() -> None:
    """The sample says how the people of a category are spread, not how many have each
    category of another variable, which here would leave room for 700 of the 800."""
    counts = np.array([[2, 1, 2], [0, 0, 5]])
    fillable = np.array([[True, True, True], [False, False, True]])
    known = xr.DataArray([200, 800], dims="a")
    fitted = fit_margins(counts, ("a", "b"), (("a",), ("b",)), fillable, known)
    np.testing.assert_allclose(fitted, [[0.08, 0.04, 0.08], [0, 0, 0.8]], atol=1e-9)


def test_known_margins_of_terms_that_share_other_variables() -> None:
    """Given c, a and b are independent: known shares of a times those of c given a and
    of b given c, in closed form. Scaled margins of a:c and b:c would say different
    things of c. Without a closed form the sample's margins hold within strata."""
    counts = np.random.default_rng(0).poisson(3, (3, 2, 4))
    names, everywhere = ("a", "b", "c"), np.ones(counts.shape, dtype=bool)
    known = xr.DataArray([500, 300, 200], dims="a")
    shares = (known.values / 1000)[:, None, None]
    given_a = counts.sum(1) / counts.sum((1, 2))[:, None]
    given_c = counts.sum(0) / counts.sum((0, 1))
    fitted = fit_margins(counts, names, parse_formula("~ a*c + b*c", names), everywhere, known)
    np.testing.assert_allclose(fitted, shares * given_a[:, None, :] * given_c, rtol=1e-9)
    terms = parse_formula("~ a*b + a*c + b*c", names)
    fitted = fit_margins(counts, names, terms, everywhere, known)
    np.testing.assert_allclose(fitted.sum((1, 2)), known / 1000, rtol=1e-12)
    of_sample = fitted / fitted.sum((1, 2), keepdims=True) * counts.sum((1, 2), keepdims=True)
    for axis in range(3):
        np.testing.assert_allclose(of_sample.sum(axis), counts.sum(axis), atol=1e-6)


@pytest.mark.parametrize("shift", [0.0, 0.001])
@pytest.mark.parametrize("formula", ["~ a*b + a*c + b*c", "~ a*c + b*c"])
def test_strata_of_two_variables(shift, formula) -> None:
    """Sampled in equal numbers from each of four strata of very different sizes: with
    a, b and each with c the model is exact, and a shift of the sample by a thousandth
    changes as little. Without the strata as a term it has their margins with c."""
    names, everywhere = ("a", "b", "c"), np.ones((2, 2, 2), dtype=bool)
    known = xr.DataArray([[400, 100], [100, 400]], dims=("a", "b"))
    logit = np.array([[-2.3, 0.0], [0.0, 2.3]])
    logit[1] += shift
    chance = 1 / (1 + np.exp(-logit))
    counts = np.rint(250_000 * np.stack([chance, 1 - chance], axis=-1)).astype(int)
    truth = (known.values / 1000)[..., None] * np.stack([chance, 1 - chance], axis=-1)
    fitted = fit_margins(counts, names, parse_formula(formula, names), everywhere, known)
    for axis in (0, 1):
        np.testing.assert_allclose(fitted.sum(axis), truth.sum(axis), atol=1e-5)
    if "a*b" in formula:
        np.testing.assert_allclose(fitted, truth, atol=1e-5)


def test_a_stratum_of_which_nobody_was_sampled() -> None:
    """What terms have of what is known, they have."""
    counts = np.random.default_rng(3).poisson(4, (3, 2, 2)) + 1
    counts[0, 1] = 0
    names, everywhere = ("a", "b", "c"), np.ones(counts.shape, dtype=bool)
    known = xr.DataArray([[30, 20], [10, 15], [15, 10]], dims=("a", "b"))
    terms = parse_formula("~ a*c + b", names)
    fitted = fit_margins(counts, names, terms, everywhere, known)
    for axis, of_known in ((0, [50, 25, 25]), (1, [55, 45])):
        others = tuple({0, 1, 2} - {axis})
        np.testing.assert_allclose(fitted.sum(others), np.divide(of_known, 100), atol=1e-9)
    given_a = counts.sum(1) / counts.sum((1, 2))[:, None]
    assert fitted.sum(1)[0] == pytest.approx(0.5 * given_a[0])


def test_a_category_of_which_nobody_was_sampled() -> None:
    """Its share is known where no other term has its variable."""
    counts = np.array([[3, 1], [0, 0], [2, 4]])
    known = xr.DataArray([50, 30, 20], dims="a")
    everywhere = np.ones(counts.shape, dtype=bool)
    fitted = fit_margins(counts, ("a", "b"), (("a",), ("b",)), everywhere, known)
    # Within the sampled categories of a, which b does not depend on
    expected = np.outer([0.5, 0.3, 0.2], [0.5, 0.5])
    np.testing.assert_allclose(fitted, expected, atol=1e-12)


@pytest.mark.parametrize("known", ["strata", "known_margins"])
def test_known_margins_that_nearly_agree_with_those_of_the_sample(known) -> None:
    """As sizes of strata do that were sampled in proportion: the terms without the
    stratum have the margins of the sample."""
    rng = np.random.default_rng(1)
    counts = np.stack(
        [rng.multinomial(500, rng.dirichlet(np.full(12, 5.0))).reshape(3, 4) for _ in range(2)]
    )
    sizes = xr.DataArray([500_003, 499_997], dims="a", coords={"a": ["0", "1"]})
    given = {known: sizes, "population_size": 1_000_000, "draws": 50, "random_seed": 1}
    fit = tc.LogLinear("~ (a+b+c)^2").fit(table(counts), **given)
    alone = tc.LogLinear("~ (a+b+c)^2").fit(table(counts), population_size=10**6, draws=50)
    r2 = [float(tc.assess(each)["risk"]["R2"].mean()) for each in (fit, alone)]
    assert r2[0] == pytest.approx(r2[1], abs=1e-3)


def test_where_cycles_are_enough_nothing_else_happens() -> None:
    """Bit by bit the fit of nothing but cycles from the same value in every cell."""
    counts = np.random.default_rng(1).poisson(3, (4, 3, 5))
    margins = margins_of(counts / counts.sum(), [(0, 1), (0, 2), (1, 2)])
    expected = np.ones(counts.shape) / counts.size
    for _ in range(1_000):
        off = 0.0
        for axis, margin in zip((2, 1, 0), margins, strict=True):
            current = expected.sum(axis, keepdims=True)
            off = max(off, np.abs(current - margin).max())
            expected = expected * (margin / current)
        if off < 1e-10:
            break
    assert off < 1e-10
    np.testing.assert_array_equal(fit(counts, "~ a*b + a*c + b*c"), expected / expected.sum())


def test_a_maximum_next_to_the_boundary_is_no_error() -> None:
    """Every cell can be filled, the corners by some two of 24,008 individuals: 10,000
    cycles are not enough; the margins fit to 0.01 individuals."""
    counts = CORNERS * 1_000 + 1
    fitted = fit(counts, NO_THREE_WAY) * counts.sum()
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis), counts.sum(axis), atol=0.011)


def test_tables_too_large_for_the_program_fit_to_a_hundredth_of_an_individual() -> None:
    counts = np.kron(CORNERS, np.ones((10, 15, 12), dtype=np.int64))  # no margin of 0
    assert find_support([np.ones((1, 1, 1))], counts >= 0, counts) is None
    fitted = fit(counts, NO_THREE_WAY) * counts.sum()
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis), counts.sum(axis), atol=0.011)


@given(counts=hnp.arrays(np.int64, (3, 3, 3), elements=st.integers(0, 3)))
@settings(max_examples=30, deadline=None)
def test_sparse_tables_have_a_fit_without_the_three_way_term(counts) -> None:
    """Zeros put the maximum on the boundary, which plain cycles near slowly."""
    assume(counts.sum() > 0)
    fitted = fit(counts, "~ (a + b + c)^2")
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis) * counts.sum(), counts.sum(axis), atol=1e-7)


def test_margins_that_contradict_the_structural_zeros_are_an_error() -> None:
    # Row 1 can only go to column 1, which therefore needs at least 5; the sample has
    # it, but not the other way round.
    counts = np.array([[5, 0], [0, 5]])
    fillable = np.array([[True, False], [False, True]])
    np.testing.assert_allclose(fit(counts, fillable=fillable), counts / 10)
    with pytest.raises(EstimationError, match=r"did not converge in 10000 cycles .* contradict"):
        fit_margins(counts, ("a", "b"), (("a",), ("b",)), np.array([[False, True], [False, True]]))
