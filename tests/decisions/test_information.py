"""The value of a larger sample: tiny cases in which all samples and populations are
listed."""

from itertools import product
from math import factorial, prod

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from toys import Polya

DIMS = ["x", "y"]
SAMPLE = xr.DataArray([[1, 0], [0, 1]], dims=DIMS)
N = 5
CANDIDATES = {
    "as it is": SAMPLE,
    "one moved": SAMPLE + xr.DataArray([[-1, 1], [0, 0]], dims=DIMS),
    "nothing": xr.zeros_like(SAMPLE),
}
WEIGHTS = (0.3, 0.5, 0.2)


def urn(start: np.ndarray, people: int) -> dict[tuple[int, ...], float]:
    """Probability of each table of so many more people, by the closed form of the
    Dirichlet-multinomial with one ball in each cell."""
    alpha = start + 1
    found = {}
    for added in product(range(people + 1), repeat=start.size):
        if sum(added) == people:
            ways = factorial(people) / prod(map(factorial, added))
            rising = prod(prod(range(a, a + g)) for a, g in zip(alpha.tolist(), added, strict=True))
            total = int(alpha.sum())
            found[tuple(start + added)] = ways * rising / prod(range(total, total + people))
    return found


def loss(F, name: str, price: float) -> float:
    table = SAMPLE.copy(data=np.reshape(F, (2, 2)))
    risk = tc.disclosure_risk(table, CANDIDATES[name], weights=WEIGHTS)["R2"]
    return price * float(risk) + float(tc.information_loss(SAMPLE, CANDIDATES[name]).hellinger)


def expected(start: np.ndarray, price: float) -> dict[str, float]:
    draws = urn(start, N - int(start.sum()))
    return {name: sum(p * loss(F, name, price) for F, p in draws.items()) for name in CANDIDATES}


def exact(size: int, price: float) -> float:
    """min E L - E min E[L | f'], over all larger samples."""
    now = min(expected(SAMPLE.values.ravel(), price).values())
    later = urn(SAMPLE.values.ravel(), size - 2)
    return now - sum(p * min(expected(np.array(f), price).values()) for f, p in later.items())


@pytest.fixture(scope="module")
def fit() -> xr.DataTree:
    return Polya().fit(SAMPLE, population_size=N, draws=336, chains=1, progressbar=False)


def worth(fit, **changed):
    arguments = {
        "sample_sizes": [3, 4, 5],
        "loss": {"R2": 3.0, "hellinger": 1},
        "weights": WEIGHTS,
        "estimator": Polya(),
        "samples": 336,
        "draws": 56,  # 7 x 8 ways to add two people, of which one and none are fractions
        "random_seed": 1,
        "progressbar": False,
        "workers": 1,
        **changed,
    }
    return tc.decisions.value_of_sample(fit, arguments.pop("released", CANDIDATES), **arguments)


@pytest.mark.parametrize(("price", "chosen"), [(8.0, "as it is"), (10.0, "nothing")])
def test_all_samples_and_populations_are_listed(fit, price, chosen) -> None:
    """The populations are those of the fit, each once, so that all that is random is
    which of their people are sampled: nothing where all are. Values lie within four
    Monte Carlo errors, which all four do with probability 0.9997."""
    found = worth(fit, loss={"R2": price, "hellinger": 1})
    now = expected(SAMPLE.values.ravel(), price)
    assert found.attrs["chosen"] == chosen == min(now, key=now.get)
    assert found.attrs["perfect_information"] == pytest.approx(exact(N, price), abs=1e-9)
    everybody = found.sel(sample_size=N)
    assert float(everybody["value"]) == pytest.approx(exact(N, price), abs=1e-9)
    for size in (3, 4):
        value, error = (float(found[name].sel(sample_size=size)) for name in ("value", "mcse"))
        assert abs(value - exact(size, price)) <= 4 * error + 1e-9
    assert (found["value"].values[1:] >= found["value"].values[:-1]).all()
    assert (found["unconverged"] == 0).all()
    assert (found["changed"].values > 0).tolist() == (found["value"].values > 0).tolist()


def test_a_constraint_leaves_fewer_to_choose_from(fit) -> None:
    """Only what gives nothing away is allowed, and nothing is left to learn."""
    constraint = tc.Constraint("R2", at_most=0.3)
    price = {"R2": 8.0, "hellinger": 1}
    bounded = worth(fit, loss=price, constraint=constraint)
    free = worth(fit, loss=price)
    allowed = tc.choose_protection(
        CANDIDATES,
        table=SAMPLE,
        population=fit["posterior_predictive"]["population"],
        loss=price,
        constraint=constraint,
        weights=WEIGHTS,
        progressbar=False,
    ).candidates["feasible"]
    assert 0 < int(allowed.sum()) < 3
    assert float(bounded["value"].sel(sample_size=N)) < float(free["value"].sel(sample_size=N))


def test_the_same_numbers_whatever_the_workers_and_the_order(fit) -> None:
    arguments = {"samples": 6, "draws": 56, "loss": {"R2": 8.0, "hellinger": 1}}
    alone = worth(fit, **arguments)
    xr.testing.assert_identical(worth(fit, **arguments, workers=2), alone)
    turned = {
        name: release.transpose("y", "x").isel(x=[1, 0]).assign_coords(x=[1, 0])
        for name, release in CANDIDATES.items()
    }
    xr.testing.assert_allclose(worth(fit, released=turned, **arguments), alone)


def test_the_estimator_of_a_fit_is_fitted_again(religion_sample, fit_restaurant) -> None:
    released = {
        "as it is": religion_sample,
        "rounded": tc.random_round(religion_sample, replicates=5, random_seed=1),
    }
    arguments = {"sample_sizes": [400], "samples": 3, "draws": 40, "estimator": None}
    arguments |= {"weights": (0.1, 0.8, 0.1), "loss": {"R2": 200, "hellinger": 1}}
    found = worth(fit_restaurant, released=released, **arguments)
    same = worth(
        fit_restaurant, released=released, **arguments | {"estimator": tc.ChineseRestaurant()}
    )
    xr.testing.assert_identical(found, same)
    assert (found["value"] >= 0).all()


def test_the_bar_counts_samples(fit, capsys) -> None:
    worth(fit, samples=2, sample_sizes=[4], draws=8, progressbar=True)
    shown = capsys.readouterr()
    assert "larger samples" in shown.err
    assert "2/2" in shown.err


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sample_sizes": [2]}, ParameterError, "sample_sizes must be a whole number from 3 to 5"),
        ({"sample_sizes": [6]}, ParameterError, "sample_sizes must be a whole number from 3 to 5"),
        ({"sample_sizes": []}, ParameterError, "different sizes, at least one"),
        ({"sample_sizes": [3, 3]}, ParameterError, "different sizes"),
        ({"sample_sizes": SAMPLE}, ParameterError, r"got DataArray over \('x', 'y'\)"),
        ({"sample_sizes": SAMPLE.values}, ParameterError, r"got ndarray of shape \(2,\)"),
        ({"sample_sizes": "4"}, ParameterError, "got '4'"),
        ({"sample_sizes": np.array(9)}, ParameterError, "got 9$"),
        ({"samples": 0}, ParameterError, "samples"),
        ({"draws": 0}, ParameterError, "draws"),
        ({"estimator": None}, ParameterError, "does not record the estimator"),
        ({"estimator": "pool"}, ParameterError, "estimator must be an Estimator"),
        (
            {"loss": "hellinger", "constraint": tc.Constraint("R2", at_most=0.5)},
            ParameterError,
            "the loss does not depend on the population",
        ),
        (
            {"constraint": tc.Constraint("R2", at_most=0, probability=1)},
            ParameterError,
            "no candidate keeps",
        ),
    ],
)
def test_bad_input(change, error, message, fit) -> None:
    with pytest.raises(error, match=message):
        worth(fit, **change)


def test_samples_that_are_not_simple(religion, religion_sample) -> None:
    strata = tc.margin(religion, "area")
    given = {"draws": 10, "chains": 1, "random_seed": 1, "progressbar": False}
    fit = tc.MixedPoisson().fit(religion_sample, population_size=2449, strata=strata, **given)
    with pytest.raises(TableError, match="this fit is of a stratified sample"):
        worth(fit, released={"a": religion_sample}, sample_sizes=[300])
