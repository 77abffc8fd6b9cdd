"""The default: by the variables of a table, and by what latent classes cannot take."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.estimators.registry import estimator_from_spec


def sample_of(variables: int) -> xr.DataArray:
    dims = tuple("abcdefgh"[:variables])
    return xr.DataArray(np.arange(2**variables).reshape((2,) * variables), dims=dims)


def pool(formula: str | None = None, *, moved: bool = True) -> tc.LinearPool:
    return tc.LinearPool(
        {
            "mixture": tc.MixedPoisson(formula),
            "wald": tc.MixedPoisson(formula, mixing="inverse Gaussian"),
            "dirichlet": tc.DirichletLogLinear(formula),
        },
        shares={"mixture": 0.425, "wald": 0.425, "dirichlet": 0.15},
        nested={"wald": {"share": 1.0}, "dirichlet": {"share": 0.0, "power": 1.0}}
        if moved
        else None,
    )


def pool_of_two(formula: str | None = None) -> tc.LinearPool:
    """That of three and more variables."""
    members = {
        "mixture": tc.MixedPoisson(formula),
        "wald": tc.MixedPoisson(formula, mixing="inverse Gaussian"),
    }
    return tc.LinearPool(members, nested={"wald": {"share": 1.0}})


def of_one_variable(mixing: str = "mixture") -> tc.MixedPoisson:
    return tc.MixedPoisson(
        "~ 1", priors={"nu": tc.Prior("LogNormal", mu=0, sigma=2)}, mixing=mixing
    )


def pool_of_one_variable() -> tc.LinearPool:
    members = {"mixture": of_one_variable(), "wald": of_one_variable("inverse Gaussian")}
    return tc.LinearPool(members, nested={"wald": {"share": 1.0}})


@pytest.mark.parametrize(
    ("variables", "given", "expected"),
    [
        (1, {}, pool_of_one_variable()),
        (1, {"strata": sample_of(1)}, pool(moved=False)),
        (1, {"known_margins": sample_of(1)}, pool(moved=False)),
        (1, {"formula": "~ a"}, pool("~ a")),
        (2, {}, pool()),
        (3, {}, pool_of_two()),
        (5, {}, pool_of_two()),
        (6, {}, tc.LatentClass()),
        (8, {}, tc.LatentClass()),
        (2, {"formula": "~ a * b"}, pool("~ a * b")),
        (2, {"known_margins": sample_of(1)}, pool(moved=False)),
        (2, {"strata": sample_of(1)}, pool(moved=False)),
        (6, {"formula": "~ a * b + c"}, pool_of_two("~ a * b + c")),
        (6, {"known_margins": sample_of(1)}, pool_of_two()),
        (6, {"strata": sample_of(1)}, pool_of_two()),
        (2, {"sampling_weights": sample_of(2)}, pool_of_two()),
        (6, {"sampling_weights": sample_of(6)}, pool_of_two()),
        (1, {"effective_size": 0.5}, of_one_variable("gamma")),
        (
            2,
            {"sampling_weights": sample_of(2), "effective_size": 10},
            tc.MixedPoisson(mixing="gamma"),
        ),
    ],
)
def test_the_default_for_a_table(variables, given, expected) -> None:
    found = tc.default_estimator(sample_of(variables), **given)
    assert found == expected
    assert estimator_from_spec(found.saved_spec()) == found


def test_a_variable_of_one_category_is_none() -> None:
    for variables, others in ((1, pool_of_one_variable()), (2, pool())):
        sample = sample_of(variables).expand_dims({f"z{k}": ["z"] for k in range(6)})
        assert tc.default_estimator(sample) == others


@pytest.mark.parametrize("name", ["known_margins", "strata"])
def test_it_takes_what_it_was_asked_for(name, tmp_path) -> None:
    """Sizes of areas, which every draw of the population then has; of a stratified
    sample, whatever the sampling fractions."""
    population = tc.load_dataset("area_by_religion")
    told = population.sum("religion")
    sample = population // xr.DataArray([2, 9] * 5, dims="area")
    estimator = tc.default_estimator(sample, **{name: told})
    fit = estimator.fit(
        sample, population_size=2449, random_seed=1, draws=50, progressbar=False, **{name: told}
    )
    drawn = fit["posterior_predictive"]["population"].sum("religion")
    assert (drawn == told).all()
    tc.save_fit(fit, tmp_path / "fit.nc")
    again = tc.fits.repeat_fit(tc.read_fit(tmp_path / "fit.nc"), progressbar=False)
    for group in ("posterior", "posterior_predictive"):
        xr.testing.assert_equal(again[group].to_dataset(), fit[group].to_dataset())
    assert "mixture: no Markov chain" in str(tc.summary(tc.assess(again, by="area")))


def test_what_is_not_a_table() -> None:
    with pytest.raises(tc.errors.TableError, match="sample must be an xarray"):
        tc.default_estimator([[1, 2], [3, 4]])  # type: ignore[arg-type]


def test_one_variable_that_is_known() -> None:
    population = tc.load_dataset("area_by_religion").sum("area")
    sample = tc.draw_sample(population, size=24, random_seed=3)
    estimator = tc.default_estimator(sample, known_margins=population)
    fit = estimator.fit(
        sample, population_size=2449, known_margins=population, random_seed=1, progressbar=False
    )
    assert (fit["posterior_predictive"]["population"] == population).all()
    assert tc.summary(tc.assess(fit)).converged
