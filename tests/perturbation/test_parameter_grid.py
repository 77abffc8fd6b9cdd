"""Grids: each release is that of a call of its own."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError


def test_each_is_that_of_a_call_of_its_own(religion) -> None:
    given = {"replicates": 5, "random_seed": 1}
    found = tc.perturbation.grid(
        tc.random_round, religion, over={"rounding_base": [3, 5]}, progressbar=False, **given
    )
    assert list(found) == ["random_round rounding_base=3", "random_round rounding_base=5"]
    for base, release in zip([3, 5], found.values(), strict=True):
        xr.testing.assert_identical(release, tc.random_round(religion, rounding_base=base, **given))


def test_all_combinations_in_order() -> None:
    seen = []

    def method(table, *, a, b, c):
        seen.append((a, b, c))
        return table

    found = tc.perturbation.grid(
        method, 0, over={"a": (1, 2), "b": {"low": None, "high": [9]}}, c="c", progressbar=False
    )
    assert seen == [(1, None, "c"), (1, [9], "c"), (2, None, "c"), (2, [9], "c")]
    assert list(found) == [
        "method a=1, b=low",
        "method a=1, b=high",
        "method a=2, b=low",
        "method a=2, b=high",
    ]


def test_a_generator_gives_all_the_same_numbers(religion) -> None:
    arguments = {"over": {"minimum": [3, 4]}, "progressbar": False, "replicates": 2}
    method = tc.perturbation.adjust_small_cells
    first, _ = tc.perturbation.grid(
        method, religion, random_seed=np.random.default_rng(1), **arguments
    ).values()
    alone = np.random.default_rng(1).integers(2**32)
    xr.testing.assert_identical(
        first, method(religion, minimum=3, replicates=2, random_seed=int(alone))
    )


def test_numpy_values_and_methods_without_randomness(religion) -> None:
    found = tc.perturbation.grid(
        tc.perturbation.conventional_round,
        religion,
        over={"rounding_base": np.arange(3, 5)},
        progressbar=False,
    )
    assert list(found) == [f"conventional_round rounding_base={base}" for base in (3, 4)]


def test_records_that_are_swapped() -> None:
    people = pd.DataFrame({"area": list("AABBCC"), "religion": list("xyzzxy")})

    def swapped(records, *, rate, **options):
        swaps = tc.swap_records(records, geography="area", rate=rate, **options)
        return tc.perturbation.swapped_table(records, swaps, ["area", "religion"])

    found = tc.perturbation.grid(
        swapped, people, over={"rate": [0, 0.5]}, replicates=3, random_seed=1, progressbar=False
    )
    table = tc.tabulate(people, ["area", "religion"])
    assert (found["swapped rate=0"] == table).all()
    assert found["swapped rate=0.5"].sizes["replicate"] == 3
    named = tc.perturbation.grid(
        partial(tc.random_round, table), over={"rounding_base": [3]}, progressbar=False
    )
    assert list(named) == ["partial rounding_base=3"]


def test_the_bar_counts_combinations(religion, capsys) -> None:
    tc.perturbation.grid(tc.random_round, religion, over={"rounding_base": [3, 5]})
    shown = capsys.readouterr()
    assert "random_round" in shown.err
    assert "2/2" in shown.err
    assert shown.out == ""


def test_an_error_says_of_which_combination_it_is(religion) -> None:
    with pytest.raises(ParameterError) as caught:
        tc.perturbation.grid(
            tc.random_round, religion, over={"rounding_base": [3, 1]}, progressbar=False
        )
    assert caught.value.__notes__ == ["This is of random_round with rounding_base=1."]


@pytest.mark.parametrize("shown", [True, False])
def test_a_method_with_a_bar_is_told_whether_to_show_it(shown, capsys) -> None:
    told = []

    def method(*, a, progressbar):
        told.append(progressbar)
        return a

    tc.perturbation.grid(method, over={"a": [1, 2]}, progressbar=shown)
    assert told == [shown, shown]
    assert bool(capsys.readouterr().err) == shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": {}}, "over must map parameters to their values"),
        ({"over": [3]}, "over must map parameters"),
        ({"over": {"rounding_base": 3}}, "over\\['rounding_base'\\] must be a sequence"),
        ({"over": {"rounding_base": "35"}}, "over\\['rounding_base'\\] must be a sequence"),
        ({"over": {"rounding_base": []}}, "written differently, at least one"),
        ({"over": {"rounding_base": [3, 3]}}, "written differently"),
        ({"rounding_base": 3}, "rounding_base is given twice"),
        ({"over": {"rounding_base": [1]}}, "rounding_base must be a whole number"),
    ],
)
def test_bad_input(change, message, religion) -> None:
    arguments = {"over": {"rounding_base": [3, 5]}, "progressbar": False, **change}
    with pytest.raises(ParameterError, match=message):
        tc.perturbation.grid(tc.random_round, religion, **arguments)
