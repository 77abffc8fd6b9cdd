"""Iterative proportional fitting against closed forms and an independent
maximum-likelihood fit."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import softmax

from taciturn.errors import EstimationError
from taciturn.estimators.formula import generating_class, parse_formula
from taciturn.estimators.ipf import fit_margins

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


@given(counts=hnp.arrays(np.int64, (3, 3, 3), elements=st.integers(0, 3)))
@settings(max_examples=30, deadline=None)
def test_sparse_tables_have_a_fit_without_the_three_way_term(counts) -> None:
    """Zeros put the maximum on the boundary, which IPF nears slowly; the margins fit to
    0.01 individuals."""
    assume(counts.sum() > 0)
    fitted = fit(counts, "~ (a + b + c)^2")
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis) * counts.sum(), counts.sum(axis), atol=0.011)


def test_margins_that_contradict_the_structural_zeros_are_an_error() -> None:
    # Row 1 can only go to column 1, which therefore needs at least 5; the sample has
    # it, but not the other way round.
    counts = np.array([[5, 0], [0, 5]])
    fillable = np.array([[True, False], [False, True]])
    np.testing.assert_allclose(fit(counts, fillable=fillable), counts / 10)
    with pytest.raises(EstimationError, match="did not converge in 10000 cycles"):
        fit_margins(counts, ("a", "b"), (("a",), ("b",)), np.array([[False, True], [False, True]]))
