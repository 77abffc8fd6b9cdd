"""One protection against another: every pair in three loops, and what must hold
whatever the tables are."""

import pickle
from functools import partial

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from strategies import tables
from taciturn.decisions.pairs import both_less, less_and_same, quantile_of_differences
from taciturn.errors import ParameterError

compare = partial(tc.compare_protections, progressbar=False)


def values(draws: int, replicates: int):
    """With many ties."""
    numbers = st.integers(-3, 3).map(float)
    row = st.lists(numbers, min_size=replicates, max_size=replicates)
    return st.lists(row, min_size=draws, max_size=draws).map(np.array)


@st.composite
def two(draw):
    """Risks of two methods, (draws, replicates), and their losses."""
    draws, ours, theirs = (draw(st.integers(1, 4)) for _ in range(3))
    return tuple(
        draw(values(*shape)) for shape in [(draws, ours), (draws, theirs), (1, ours), (1, theirs)]
    )


@given(two=two(), probability=st.sampled_from([0.025, 0.1, 0.25, 0.5, 0.9, 1.0]))
def test_three_loops(two, probability) -> None:
    first, second, ours, theirs = two
    less = same = both = 0
    differences = []
    for d in range(len(first)):
        for i in range(first.shape[1]):
            for j in range(second.shape[1]):
                less += first[d, i] < second[d, j]
                same += first[d, i] == second[d, j]
                both += first[d, i] < second[d, j] and ours[0, i] < theirs[0, j]
                differences.append(first[d, i] - second[d, j])
    pairs = len(differences)
    assert less_and_same(first, second) == pytest.approx((less / pairs, same / pairs))
    assert both_less((first, second), (ours[0], theirs[0])) == pytest.approx(both / pairs)
    found = quantile_of_differences(first, second, probability)
    assert found == np.quantile(differences, probability, method="inverted_cdf")


@st.composite
def cases(draw):
    """A table, draws of a population over its cells, and three releases of it."""
    shape = st.just(draw(st.sampled_from([(2, 2), (3, 2)])))
    table = draw(tables(shape=shape))
    population = draw(tables(shape=shape, draw_dims=("chain", "draw")))
    released = {name: draw(tables(shape=shape, draw_dims=("replicate",))) for name in "abc"}
    return table, population, released


@given(case=cases(), loss=st.sampled_from(["hellinger", "lost_zeros", "cramers_v_change"]))
def test_a_protection_and_its_reference_can_be_exchanged(case, loss) -> None:
    table, population, released = case
    found = compare(released, table=table, population=population, loss=loss)
    turned = found.rename(protection="reference", reference="protection")
    for name in ("risk_difference", "loss_difference"):
        for ours, theirs in [("mean", "mean"), ("lower", "upper"), ("upper", "lower")]:
            xr.testing.assert_allclose(
                found[name].sel(statistic=ours, drop=True),
                -turned[name].sel(statistic=theirs, drop=True).transpose(*found[name].dims[:-1]),
            )
    for name in ("risk", "loss"):
        total = found[f"less_{name}"] + turned[f"less_{name}"] + found[f"same_{name}"]
        np.testing.assert_allclose(total, 1)
    assert (found["less_both"] <= np.minimum(found["less_risk"], found["less_loss"]) + 1e-12).all()
    one = compare(released, table=table, population=population, loss=loss, reference="b")
    xr.testing.assert_allclose(one, found.sel(reference="b"))
    own = found.sel(protection="a", reference="a")
    assert (own["same_risk"] == 1).all()
    assert (own["risk_difference"] == 0).all()


def test_releases_and_methods_are_not_the_same_question(religion_sample, fit_restaurant) -> None:
    """The same two methods by plain arithmetic, each (draw, replicate, replicate)."""
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 30))
    given = {"replicates": 8, "random_seed": 1}
    released = {
        "three": tc.random_round(religion_sample, rounding_base=3, **given),
        "four": tc.random_round(religion_sample, rounding_base=4, **given),
    }
    found = compare(released, table=religion_sample, population=population, reference="three").sel(
        protection="four"
    )
    three, four = (
        tc.disclosure_risk(population, each)["R2"].stack(pair=("chain", "draw")).T.values
        for each in released.values()
    )
    gaps = four[:, :, np.newaxis] - three[:, np.newaxis]
    between = found.sel(between="releases")
    assert float(between["less_risk"]) == pytest.approx((gaps < 0).mean())
    assert float(between["risk_difference"].sel(statistic="mean")) == pytest.approx(gaps.mean())
    assert float(between["risk_difference"].sel(statistic="upper")) == pytest.approx(
        np.quantile(gaps, 0.975, method="higher"), abs=1e-4
    )
    between = found.sel(between="methods")
    means = four.mean(axis=1) - three.mean(axis=1)
    assert float(between["less_risk"]) == pytest.approx((means < 0).mean())
    ours, theirs = (
        tc.information_loss(religion_sample, each)["hellinger"].values for each in released.values()
    )
    assert float(found["less_loss"].sel(between="releases")) == pytest.approx(
        (theirs[:, None] < ours).mean()
    )
    # The same replicates of one seed go together, so that their difference varies less.
    assert float(found["loss_mcse"]) == pytest.approx((theirs - ours).std(ddof=1) / 8**0.5)


def test_intervals_overlap_where_the_difference_is_certain(religion_sample, fit_restaurant) -> None:
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 200))
    released = {
        "as it is": religion_sample,
        "nearest 3": tc.perturbation.conventional_round(religion_sample, rounding_base=3),
    }
    arguments = {"table": religion_sample, "population": population}
    alone = tc.risk_utility(released, **arguments)["R2"]
    lower, upper = (alone.sel(statistic=s).values for s in ("lower", "upper"))
    assert lower.max() < upper.min()
    found = compare(released, reference="as it is", **arguments)
    rounded = found.sel(protection="nearest 3")
    assert (rounded["less_risk"] > 0.99).all()
    assert (rounded["less_loss"] == 0).all()
    assert (rounded["risk_difference"].sel(statistic="upper") < 0).all()


def test_the_frontier_by_hand() -> None:
    """Of three methods in two populations: ``c`` loses as much as ``b`` and has more
    risk in the first, ``a`` has the least loss."""
    table = xr.DataArray([[4, 4], [4, 4]], dims=["x", "y"])
    population = xr.DataArray(
        [[[[8, 4], [4, 4]], [[4, 4], [4, 8]]]], dims=["chain", "draw", "x", "y"]
    )
    released = {
        "a": table,
        "b": table + xr.DataArray([[1, 0], [0, 0]], dims=["x", "y"]),
        "c": table + xr.DataArray([[0, 0], [0, 1]], dims=["x", "y"]),
    }
    found = compare(released, table=table, population=population)
    risk = {
        name: tc.disclosure_risk(population, each)["R2"].values[0]
        for name, each in released.items()
    }
    loss = {
        name: float(tc.information_loss(table, each)["hellinger"])
        for name, each in released.items()
    }
    assert loss["a"] == 0
    assert loss["b"] == pytest.approx(loss["c"])
    for name in released:
        on = [
            not any(
                risk[other][d] <= risk[name][d] + 1e-12
                and loss[other] <= loss[name] + 1e-12
                and (risk[other][d] < risk[name][d] - 1e-12 or loss[other] < loss[name] - 1e-12)
                for other in released
            )
            for d in range(2)
        ]
        assert float(found["frontier"].sel(protection=name)) == np.mean(on)
    assert found["frontier"].values.tolist() != [1, 1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "c"}, "reference must be one of 'a', got 'c'"),
        ({"reference": ["a"]}, "reference must be one of 'a'"),
        ({"loss": "kept_zeros"}, "loss must be one of 'hellinger', .*got 'kept_zeros'"),
        ({"loss": "R2"}, "loss must be one of"),
        ({"loss": ["hellinger"]}, "loss must be one of"),
        ({"probability": 1}, "probability"),
        ({"weights": (1, 1, 1)}, "sum to 1"),
        ({"released": {}}, "released must be a mapping"),
    ],
)
def test_bad_input(change, message, religion) -> None:
    arguments = {"released": {"a": religion}, "table": religion, **change}
    with pytest.raises(ParameterError, match=message):
        compare(**arguments)


def test_a_loss_that_is_not_measured() -> None:
    table = xr.DataArray([1, 2], dims="x")
    with pytest.raises(ParameterError, match="cramers_v_change is not measured here"):
        compare({"a": table}, table=table, loss="cramers_v_change")


def _thirds(*replicates: list[int]) -> xr.DataArray:
    """Releases of a table of three counts of 3."""
    return xr.DataArray(list(replicates), dims=("replicate", "x"), coords={"x": list("abc")})


def test_means_that_are_the_same_are_not_told_apart_by_rounding() -> None:
    table = xr.DataArray([3, 3, 3], dims="x", coords={"x": list("abc")})
    pairs = [
        ([[4, 4, 3]], [[4, 3, 3], [4, 4, 4]], 2 / 3),
        ([[4, 3, 3]], [[3, 3, 3], [4, 4, 3]], 1 / 3),
    ]
    for one, two, error in pairs:
        released = {"one": _thirds(*one), "two": _thirds(*two)}
        found = compare(released, table=table, reference="one", loss="mean_absolute_error")
        methods = found.sel(protection="two", between="methods")
        assert (methods["less_loss"].item(), methods["same_loss"].item()) == (0, 1)
        bound = tc.Constraint("R2", at_most=1)
        how = {"loss": "mean_absolute_error", "constraint": bound, "progressbar": False}
        decision = tc.choose_protection(released, table=table, **how)
        assert decision.chosen == "one"
        assert decision.regret == pytest.approx(0, abs=1e-15)
        assert decision.candidates["best"].values.tolist() == [1, 1]
        assert decision.candidates["expected_loss"].values == pytest.approx([error, error])


def test_what_is_found_can_be_pickled(religion) -> None:
    released = {"as it is": religion, "rounded": tc.random_round(religion, random_seed=1)}
    for function in (compare, tc.weight_sensitivity, tc.compare_over_weights):
        found = function(released, table=religion)
        xr.testing.assert_identical(pickle.loads(pickle.dumps(found)), found)
