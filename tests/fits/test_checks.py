"""Predictive checks: by hand, against loops and enumeration, and the page that shows
them."""

from itertools import product
from math import factorial, log, prod, sqrt

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.fits.checks import check_lines


def made_by_hand(sample, replicates, zeros=None) -> xr.DataTree:
    """A fit of two chains, with replicates in a list."""
    sample = xr.DataArray(sample, dims=("a", "b"), coords={"a": ["x", "y"], "b": ["u", "v", "w"]})
    drawn = np.array(replicates).reshape(2, -1, 2, 3)
    constants = {"population_size": int(sample.sum())}
    if zeros is not None:
        constants["structural_zeros"] = sample.copy(data=zeros)
    return xr.DataTree.from_dict(
        {
            "posterior_predictive": xr.Dataset(
                {
                    "population": (
                        ("chain", "draw", "a", "b"),
                        np.broadcast_to(sample.values, drawn.shape),
                    ),
                    "count": (("chain", "draw", "a", "b"), drawn),
                },
                coords=sample.coords,
            ),
            "observed_data": xr.Dataset({"count": sample}),
            "constant_data": xr.Dataset(constants),
        }
    )


REPLICATES = [
    [[4, 0, 0], [0, 0, 0]],  # 5 empty, no unique, no pair
    [[1, 1, 2], [0, 0, 0]],  # 3 empty, 2 uniques, 1 pair
    [[2, 2, 0], [0, 0, 0]],  # 4 empty, no unique, 2 pairs
    [[2, 0, 1], [1, 0, 0]],  # 3 empty, 2 uniques, 1 pair; the second in another order
]


def test_by_hand() -> None:
    checks = tc.fits.predictive_checks(made_by_hand([[2, 0, 0], [1, 1, 0]], REPLICATES))
    assert checks["statistic"].values.tolist() == ["empty_cells", "uniques", "pairs", "entropy"]
    half = -(2 * (1 / 4) * log(1 / 4) + (1 / 2) * log(1 / 2))
    np.testing.assert_allclose(checks["observed"], [3, 2, 1, half])
    np.testing.assert_allclose(checks["mean"], [15 / 4, 1, 1, (0 + half + log(2) + half) / 4])
    np.testing.assert_allclose(checks["lower"], [3, 0, 0, 0])
    np.testing.assert_allclose(checks["upper"], [5, 2, 2, half])
    np.testing.assert_array_equal(checks["lower_tail"], [2 / 4, 4 / 4, 3 / 4, 4 / 4])
    np.testing.assert_array_equal(checks["upper_tail"], [4 / 4, 2 / 4, 3 / 4, 2 / 4])


def test_structural_zeros_are_no_cells() -> None:
    zeros = [[False, True, False], [False, False, True]]
    replicates = [[[3, 0, 1], [0, 0, 0]], [[1, 0, 1], [1, 1, 0]]]
    checks = tc.fits.predictive_checks(made_by_hand([[2, 0, 0], [1, 1, 0]], replicates, zeros))
    empty = checks.sel(statistic="empty_cells")
    assert float(empty["observed"]) == 1
    assert float(empty["mean"]) == (2 + 0) / 2


def test_the_interval_holds_the_stated_share() -> None:
    """One replicate in twenty has two uniques, the others none."""
    replicates = [REPLICATES[1]] * 5 + [REPLICATES[2]] * 95
    for probability, upper in ((0.95, 2), (0.9, 0), (0.5, 0)):
        checks = tc.fits.predictive_checks(
            made_by_hand([[4, 0, 0], [0, 0, 0]], replicates), probability=probability
        )
        assert float(checks["upper"].sel(statistic="uniques")) == upper
        assert checks.attrs["probability"] == probability


@pytest.fixture(scope="module")
def pooled(religion_sample) -> xr.DataTree:
    pool = tc.LinearPool(shares={"dirichlet": 0.75, "restaurant": 0.25})
    return pool.fit(
        religion_sample, population_size=2449, draws=200, random_seed=2, progressbar=False
    )


def test_a_pool_is_shown_with_its_members(pooled, religion_sample) -> None:
    """Against a loop over the replicates."""
    checks = tc.fits.predictive_checks(pooled)
    assert checks["member"].values.tolist() == ["all", "dirichlet", "restaurant"]
    member = pooled["posterior"]["member"].values.ravel()
    tables = pooled["posterior_predictive"]["count"].values.reshape(800, -1)
    seen = (religion_sample.values == 1).sum()
    for name, chosen in (
        ("all", member >= 0),
        ("dirichlet", member == 0),
        ("restaurant", member == 1),
    ):
        uniques = sorted((table == 1).sum() for table in tables[chosen])
        own = checks.sel(member=name, statistic="uniques")
        assert float(own["mean"]) == pytest.approx(np.mean(uniques))
        assert float(own["lower_tail"]) == np.mean([value <= seen for value in uniques])
        assert float(own["upper_tail"]) == np.mean([value >= seen for value in uniques])
        assert float(own["lower"]) == uniques[int(np.ceil(0.025 * len(uniques))) - 1]
        assert float(own["upper"]) == uniques[int(np.ceil(0.975 * len(uniques))) - 1]


def test_a_stack_is_shown_with_its_members(religion_sample, pooled, fit_loglinear) -> None:
    other = tc.DirichletLogLinear().fit(
        religion_sample, population_size=2449, draws=200, random_seed=3, progressbar=False
    )
    stacked = tc.fits.stack({"mine": other, "pool": pooled}, random_seed=1)
    names = tc.fits.predictive_checks(stacked)["member"].values.tolist()
    assert names[0] == "all"
    assert set(names[1:]) <= {"mine", "pool dirichlet", "pool restaurant"}


def test_against_all_samples_that_the_model_can_give() -> None:
    """The plug-in model's replicates are multinomial: 56 tables of 5 individuals in 4
    cells, with known chances.

    20,000 replicates; five standard errors.
    """
    sample = xr.DataArray([[3, 1], [1, 0]], dims=("a", "b"))
    p = np.outer([4, 1], [4, 1]).ravel() / 25
    fit = tc.LogLinear().fit(sample, population_size=9, draws=5000, random_seed=4)
    checks = tc.fits.predictive_checks(fit)

    def statistics(table):
        shares = [count / 5 for count in table if count]
        return [
            table.count(0),
            table.count(1),
            table.count(2),
            -sum(share * log(share) for share in shares),
        ]

    observed = statistics([3, 1, 1, 0])
    tables = [table for table in product(range(6), repeat=4) if sum(table) == 5]
    chances = np.array(
        [
            factorial(5) * prod(q**c / factorial(c) for q, c in zip(p, t, strict=True))
            for t in tables
        ]
    )
    assert chances.sum() == pytest.approx(1)
    values = np.array([statistics(list(table)) for table in tables])
    for column, name in enumerate(checks["statistic"].values):
        own = checks.sel(statistic=name)
        for tail, beyond in (
            ("lower_tail", values[:, column] <= observed[column] + 1e-9),
            ("upper_tail", values[:, column] >= observed[column] - 1e-9),
        ):
            exact = min(chances[beyond].sum(), 1.0)
            assert abs(float(own[tail]) - exact) <= 5 * sqrt(exact * (1 - exact) / 20_000) + 1e-12


def test_lines_have_one_a_statistic_and_one_for_what_is_missed() -> None:
    replicates = [REPLICATES[2]] * 4
    lines = check_lines(tc.fits.predictive_checks(made_by_hand([[2, 0, 0], [1, 1, 0]], replicates)))
    assert lines[0].split() == ["sample", "mean", "95", "%", "interval", "P(<=)", "P(>=)"]
    assert lines[1].split() == ["empty", "cells", "3", "4.0", "4", "to", "4", "0.000", "1.000"]
    assert lines[4].split() == [
        "entropy",
        "(nats)",
        "1.040",
        "0.693",
        "0.693",
        "to",
        "0.693",
        "1.000",
        "0.000",
    ]
    assert lines[5] == "MISSED: empty cells, 3 in the sample, 4 to 4 in samples of the fitted model"
    assert len(lines) == 1 + 4 + 4
    quiet = check_lines(tc.fits.predictive_checks(made_by_hand([[2, 0, 0], [1, 1, 0]], REPLICATES)))
    assert len(quiet) == 1 + 4


def test_lines_name_the_member_that_misses(pooled) -> None:
    checks = tc.fits.predictive_checks(pooled)
    checks["upper"].loc[{"member": "restaurant", "statistic": "uniques"}] = 3
    checks["lower"].loc[{"member": "all", "statistic": "pairs"}] = 9
    missed = [line for line in check_lines(checks) if line.startswith("MISSED")]
    assert len(missed) == 2
    assert "pairs, 3 in the sample, 9 to" in missed[0]
    assert missed[0].endswith("in samples of the mixture")
    assert missed[1].endswith("to 3 in samples of its member restaurant")


def test_summary_shows_them(pooled, religion_sample) -> None:
    result = tc.summary(pooled)
    xr.testing.assert_equal(result.checks, tc.fits.predictive_checks(pooled))
    assert "\n".join(check_lines(result.checks)) in result.text
    without = pooled.copy()
    without["posterior_predictive"] = xr.DataTree(
        pooled["posterior_predictive"].to_dataset().drop_vars("count")
    )
    assert tc.summary(without).checks is None
    assert "the fit holds no samples of the fitted model" in tc.summary(without).text


def test_an_urn_that_opens_too_few_cells_is_caught(fit_urn) -> None:
    """The papers' urn fits its parameter to the population's cells, and gives samples
    with far fewer."""
    empty = tc.fits.predictive_checks(fit_urn).sel(statistic="empty_cells")
    assert float(empty["observed"]) < float(empty["lower"])


def test_refusals(pooled) -> None:
    with pytest.raises(
        ParameterError, match=r"probability must be a number from 0\.01 to 0\.9999, got 1"
    ):
        tc.fits.predictive_checks(pooled, probability=1)
    predictive = pooled["posterior_predictive"].to_dataset()
    without, wrong = pooled.copy(), pooled.copy()
    without["posterior_predictive"] = xr.DataTree(predictive.drop_vars("count"))
    with pytest.raises(TableError, match="no 'count' in the group 'posterior_predictive'"):
        tc.fits.predictive_checks(without)
    wrong["posterior_predictive"] = xr.DataTree(
        predictive.assign(count=predictive["count"].sum("area"))
    )
    with pytest.raises(
        TableError,
        match=r"replicates must have the dimensions .*'area'.* got \('chain', 'draw', 'rel",
    ):
        tc.fits.predictive_checks(wrong)
