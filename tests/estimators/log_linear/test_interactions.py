"""Interactions as free coordinates: effects that sum to zero, alike in all categories,
and their sum in every cell."""

import numpy as np
import pytest

import taciturn as tc
from interpreted import INTERPRETED
from taciturn.estimators.halves import halves
from taciturn.estimators.log_linear.interactions import Interactions
from taciturn.estimators.log_linear.model import main_effects

CASES = [
    ({"a": 2, "b": 3}, (("a", "b"),)),
    ({"a": 2, "b": 3, "c": 4}, (("b", "c"), ("a", "c"))),
    ({"a": 1, "b": 3, "c": 2}, (("b", "c"),)),
    (
        {"a": 2, "b": 3, "c": 2, "d": 3},
        (("a", "b"), ("c", "d"), ("b", "d"), ("a", "c", "d"), ("a", "b", "c", "d")),
    ),
]


@pytest.mark.parametrize(("sizes", "terms"), CASES)
def test_the_sum_in_every_cell(sizes, terms) -> None:
    own = Interactions(terms, sizes)
    coordinates = np.random.default_rng(1).normal(size=(3, own.size))
    for draw in coordinates:
        between = np.zeros(own.shape)
        between[own.row, own.column] = draw
        expected = np.zeros(tuple(sizes.values()))
        for number, term in enumerate(terms):
            effect = own.effect(number, draw)
            assert effect.shape == tuple(sizes[dim] for dim in term)
            for axis in range(effect.ndim):
                np.testing.assert_allclose(effect.sum(axis=axis), 0, atol=1e-12)
            expected = expected + effect.reshape(
                [size if dim in term else 1 for dim, size in sizes.items()]
            )
        np.testing.assert_allclose(
            (own.left @ between @ own.right.T).ravel(), expected.ravel(), atol=1e-12
        )
    np.testing.assert_allclose(own.effect(0, coordinates)[1], own.effect(0, coordinates[1]))


def test_every_category_is_treated_alike() -> None:
    """Covariance of an effect with standard normal coordinates: that of centred normal
    variables, exactly."""
    own = Interactions((("a", "b"),), {"a": 3, "b": 4})
    basis = own.effect(0, np.eye(own.size)).reshape(own.size, -1)
    centring = [np.eye(size) - 1 / size for size in (3, 4)]
    np.testing.assert_allclose(basis.T @ basis, np.kron(*centring), atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"a": 7}, (["a"], [])),
        ({"a": 2, "b": 2}, (["a"], ["b"])),
        ({"a": 2, "b": 2, "c": 90}, (["a", "b"], ["c"])),
        ({"a": 10, "b": 2, "c": 5}, (["a"], ["b", "c"])),
    ],
)
def test_halves_are_about_equal(sizes, expected) -> None:
    assert halves(sizes) == expected


def test_main_effects_are_added_up() -> None:
    rng = np.random.default_rng(2)
    sizes = {"a": 2, "b": 3, "c": 4}
    margins = {dim: rng.normal(size=size) for dim, size in sizes.items()}
    total = margins["a"][:, None, None] + margins["b"][:, None] + margins["c"]
    np.testing.assert_allclose(main_effects(margins, sizes).eval().ravel(), total.ravel())
    only = main_effects({"b": margins["b"]}, sizes).eval()
    np.testing.assert_allclose(
        only.ravel(), np.broadcast_to(margins["b"][:, None], (2, 3, 4)).ravel()
    )


@pytest.mark.slow  # PyTensor takes seconds to make the model
def test_the_model_is_the_density_written_out() -> None:
    """log p(sample) of the PyMC model at a point, against the formula with the effects
    of that point."""
    import xarray as xr
    from scipy.special import gammaln

    counts = np.random.default_rng(3).integers(0, 4, (2, 3, 2))
    sample = xr.DataArray(
        counts, dims=("a", "b", "c"), coords={"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
    )
    model = tc.DirichletLogLinear("~ a*b*c").build(sample, 100)
    point = model.initial_point()
    rng = np.random.default_rng(4)
    point = {name: value + 0.3 * rng.normal(size=np.shape(value)) for name, value in point.items()}
    names = ["kappa", "margin_a", "margin_b", "margin_c"]
    terms = (("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c"))
    scales = [f"scale_{'_'.join(term)}" for term in terms]
    outputs = [model[name] for name in (*names, *scales, "interaction_coordinates")]
    quick = {"on_unused_input": "ignore", "mode": INTERPRETED}
    values = model.compile_fn(model.replace_rvs_by_values(outputs), **quick)(point)
    kappa, *margins = values[:4]
    own = Interactions(terms, {"a": 2, "b": 3, "c": 2})
    log_pi = np.log(margins[0])[:, None, None] + np.log(margins[1])[:, None] + np.log(margins[2])
    for number, term in enumerate(terms):
        effect = values[4 + number] * own.effect(number, values[-1])
        log_pi = log_pi + effect.reshape(
            [size if dim in term else 1 for dim, size in own.sizes.items()]
        )
    weights = kappa * np.exp(log_pi) / np.exp(log_pi).sum()
    n = counts.sum()
    expected = gammaln(n + 1) + gammaln(kappa) - gammaln(kappa + n)
    expected += (gammaln(weights + counts) - gammaln(weights) - gammaln(counts + 1)).sum()
    logp = model.compile_fn(model.logp(vars=[model["sample_counts"]]), **quick)(point)
    assert float(logp) == pytest.approx(expected, rel=1e-9)
