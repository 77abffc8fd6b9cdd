"""Numbers in words are on the side of a limit on which they are, and a share is 0 or 1
only where it is."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.diagnostics import Diagnostics, ImportanceDiagnostics, mixture_diagnostics
from taciturn.fits.checks import Replicated, check_frame, check_lines, compared_with_sample
from taciturn.fits.comparison import comparison_text
from taciturn.fits.mixtures import estimator_in_words
from taciturn.fits.parts import fraction_in_words
from taciturn.fits.sensitivity import sensitivity_lines


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (Diagnostics(1.0103, 500, 500, 0), "r-hat is 1.0103, at most 1.01 is accepted"),
        (Diagnostics(1.2, 500, 500, 0), "r-hat is 1.200, at most 1.01 is accepted"),
        (
            Diagnostics(1.0, 500, 399.6, 0),
            "the effective sample size is 399.6, at least 400 is needed",
        ),
        (ImportanceDiagnostics(0.7004, 500), "k-hat is 0.7004, at most 0.7 is accepted"),
        (
            ImportanceDiagnostics(0.1, 399.6),
            "the effective sample size is 399.6, at least 400 is needed",
        ),
        (
            ImportanceDiagnostics(0.1, float("nan")),
            "the effective sample size is nan, at least 400 is needed",
        ),
    ],
)
def test_what_is_wrong_with_draws(found, problem) -> None:
    assert found.problems == (problem,)
    number = problem.split(" is ")[1].split(",")[0]
    assert f" {number}" in str(found)


def test_what_is_right_with_draws() -> None:
    assert str(Diagnostics(1.0099, 400.4, 1234.5, 0)) == (
        "r-hat 1.0099, effective draws 400.4 (bulk) and 1234 (tail), 0 divergences"
    )
    assert str(ImportanceDiagnostics(0.6996, 400)) == (
        "no Markov chain; k-hat 0.6996, effective draws 400"
    )


def test_a_member_that_made_one_draw_made_some() -> None:
    whose = np.zeros(10_000, dtype=np.int64)
    whose[0] = 1
    found = mixture_diagnostics({"a": None, "b": None}, {"a": 0.9, "b": 0.1}, whose)
    assert found.turns == (
        "a made 99.99% of the draws, its share is 90.0%",
        "b made 0.01% of the draws, its share is 10.0%",
    )


def test_what_predicts_alike_is_less_than_4_behind() -> None:
    table = pd.DataFrame(
        {
            "elpd": [-100.0, -103.97, -104.0],
            "elpd_diff": [0.0, -3.97, -4.0],
            "dse": [0.0, 1.0, 1.0],
            "weight": [1.0, 0.0, 0.0],
            "high_k": [0.0004, 0.9996, 1.0],
        },
        index=["a", "b", "c"],
    )
    said = comparison_text(table)
    assert "'b' predicts alike: 3.97 behind, where less than 4 counts as nothing." in said
    assert "'c' is clearly behind: by 4.0, with" in said
    assert "0.04% of individuals for 'a', 99.96% of individuals for 'b', 100.0% of" in said


def test_what_moves_with_the_priors_is_above_the_limit() -> None:
    def lines(r2: float) -> list[str]:
        names = pd.Index(["theta", "R2"], name="quantity")
        return sensitivity_lines(pd.DataFrame({"prior": [0.0502, r2], "driver": "theta"}, names))

    moved = "R2 moves with the priors (sensitivity 0.0502, above 0.05), most with that of theta"
    parameters = "parameters that move with the priors: theta 0.0502"
    assert lines(0.0502) == [moved, parameters]
    still = "R2 hardly moves with the priors (sensitivity at most 0.0498)"
    assert lines(0.0498) == [still, parameters]


def checked(observed: float, replicates: list[float]) -> xr.Dataset:
    """Checks whose counts are all 3, with an entropy."""
    made = np.array([[3.0, 3.0, 3.0, each] for each in replicates])
    found = Replicated(np.array([3.0, 3.0, 3.0, observed]), [("all", made)])
    return compared_with_sample(found, probability=0.95)


@pytest.mark.parametrize(
    ("observed", "replicates"),
    [
        (1.2342, [1.2344, 1.3]),
        (1.23441, [1.23443, 1.23444]),
        (1.3002, [1.2, 1.3001]),
        (1.0, [1.2, 1.3]),
    ],
)
def test_what_is_missed_is_outside(observed, replicates) -> None:
    *_, line = check_lines(checked(observed, replicates))
    assert line.startswith("MISSED: entropy (nats), ")
    seen, low, high = (
        float(text) for text in line.replace(",", "").split() if text[0] in "0123456789"
    )
    assert not low <= seen <= high
    np.testing.assert_allclose([seen, low, high], [observed, *replicates], atol=5e-4)
    row = check_frame(checked(observed, replicates)).loc["entropy (nats)"]
    assert f"{row['sample']} in the sample, {row['95 % interval']} in samples" in line


def test_what_is_not_missed_has_three_decimals() -> None:
    """Also where it is an end of the interval."""
    *_, line = check_lines(checked(1.23441, [1.23441, 1.23441]))
    assert line.split()[2:7] == ["1.234", "1.234", "1.234", "to", "1.234"]


def test_one_replicate_of_many_is_some() -> None:
    """Of 100,000, in a column of its own."""
    replicates = [1.5] * 100_000
    replicates[0] = 1.0
    *_, line = check_lines(checked(1.2, replicates))[:5]
    assert line.split()[-2:] == ["0.00001", "0.99999"]


def test_nearly_all_are_not_all() -> None:
    assert fraction_in_words(9_999_999 / 10_000_000) == "0.9999999"
    shown = [fraction_in_words(share) for share in (1.0, 0.5, 1 / 3, 1e-6)]
    assert shown == ["1", "0.5", "0.3333", "1e-06"]


def test_a_member_with_a_small_share_has_one() -> None:
    pool = tc.default_estimator(xr.DataArray(np.ones((2, 2, 2), dtype=int), dims=["a", "b", "c"]))
    assert isinstance(pool, tc.LinearPool)
    shares = dict(zip(pool.members, (0.998, 0.002), strict=True))
    attrs = {"estimator": json.dumps(pool.spec()), "shares": json.dumps(shares)}
    said = estimator_in_words(xr.DataTree(xr.Dataset(attrs=attrs)))
    assert said.endswith("\nin shares of 0.998 mixture, 0.002 wald")
