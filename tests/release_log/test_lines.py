"""What a perturbed or known total says of its perturbed parts."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from release_log.test_perturbed import KEYS, check
from taciturn.attack import CellKeys, GeometricNoise, Mechanism, RandomRounding

MILD = GeometricNoise(epsilon=2.5)
F = {"where": {"sex": "f"}}


def by_age(young: float, at_65: float, old: float) -> pd.Series:
    return pd.Series({"16-64": young, "65": at_65, "66+": old}).rename_axis("age")


def at_65(verdict: tc.release_log.Verdict) -> tc.release_log.Likely:
    """What is said of the women of 65."""
    taken = {"age": ("65",), "sex": ("f",)}
    return next(each for each in verdict.likely if each.taken == taken)


def p_of(mechanism: Mechanism, answer: int, most: int) -> np.ndarray:
    """How likely an answer is for each count from 0 to `most`."""
    return np.exp(mechanism.log_probability(answer, np.arange(most + 1)))


def left_of(total: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """How likely answers about a total and its other parts are for each count, table
    by table: the probability of each answer by true count, the total's further on.
    """
    most = [range(len(part)) for part in parts]
    found = np.zeros(len(total) - sum(len(part) - 1 for part in parts))
    for counts in product(*most):
        p = np.prod([part[count] for part, count in zip(parts, counts, strict=True)])
        found += p * total[sum(counts) :][: len(found)]
    return found


def test_a_noisy_margin_makes_a_noisy_cell_nearly_certain(log: tc.ReleaseLog) -> None:
    """Neither the cells nor the margin alone do."""
    log.add(by_age(11, 3, 8), mechanism=MILD, **F)
    other, total = [p_of(MILD, 11, 60), p_of(MILD, 8, 60)], p_of(MILD, 22, 220)
    p = p_of(MILD, 3, 100)
    q = p * left_of(total, other)
    p, q = p / p.sum(), q / q.sum()
    limits = {"certainty": 0.87}
    assert p.max() < 0.86
    assert q.max() > 0.88
    whole = xr.DataArray(22)
    assert check(log, whole, where={"sex": "m"}, mechanism=MILD, **limits).passed
    found = at_65(check(log, whole, mechanism=MILD, **F, **limits))
    assert (found.likely, found.releases) == ((3,), (1,))
    assert found.probability == pytest.approx(q[3], abs=1e-10)
    assert found.before == pytest.approx(p[3], abs=1e-10)


def test_a_known_margin_does_so_too(log: tc.ReleaseLog) -> None:
    """Given what it leaves, its other parts are equally likely."""
    log.add(by_age(11, 3, 8), mechanism=MILD, **F)
    young, old, p = p_of(MILD, 11, 22), p_of(MILD, 8, 22), p_of(MILD, 3, 22)
    q = np.array(
        [p[t] * np.mean([young[i] * old[22 - t - i] for i in range(23 - t)]) for t in range(23)]
    )
    q /= q.sum()
    found = at_65(check(log, xr.DataArray(22), certainty=0.87, **F))
    assert (found.likely, found.upper) == ((3,), 22)
    assert found.probability == pytest.approx(q[3], abs=1e-10)


def test_a_cell_that_is_not_released_is_what_others_leave(log: tc.ReleaseLog) -> None:
    strong = GeometricNoise(epsilon=5)
    log.add(by_age(11, np.nan, 8), mechanism=strong, **F)
    q = left_of(p_of(strong, 22, 100), [p_of(strong, 11, 30), p_of(strong, 8, 30)])
    q /= q.sum()
    found = at_65(check(log, xr.DataArray(22), mechanism=strong, **F))
    assert (found.likely, found.lower, found.upper) == ((3,), 0, None)
    assert found.probability == pytest.approx(q[3], abs=1e-10)


def test_probabilities_are_those_of_fractions(log: tc.ReleaseLog) -> None:
    """Rounding to 3 at random: two thirds to the next multiple, one to the other."""

    def chance(answer: int, true: int) -> Fraction:
        return max(Fraction(0), 1 - Fraction(abs(answer - true), 3))

    log.add(by_age(0, 3, 0), mechanism=RandomRounding(3), **F)
    verdict = check(log, xr.DataArray(0), mechanism=RandomRounding(3), certainty=0.6, **F)
    few = range(6)
    q = [
        sum(
            chance(0, i) * chance(3, t) * chance(0, j) * chance(0, i + t + j)
            for i, j in product(few, few)
        )
        for t in few
    ]
    assert [each / sum(q) for each in q[1:3]] == [Fraction(5, 8), Fraction(3, 8)]
    found = at_65(verdict)
    assert (found.likely, found.lower, found.upper) == ((1,), 1, 2)
    assert found.probability == pytest.approx(5 / 8, abs=1e-12)
    assert found.before == pytest.approx(1 / 9, abs=1e-12)


def gaussian(deviation: float, last: int = 24) -> CellKeys:
    """Cell keys whose noise is normal but for whole and small numbers."""
    counts, results = np.arange(last + 1), np.arange(2 * last + 1)
    p = np.exp(-((results - counts[:, None]) ** 2) / (2 * deviation**2))
    p[abs(results - counts[:, None]) > last] = 0
    p[0] = results == 0  # nobody has no key
    table = xr.DataArray(
        p / p.sum(axis=1, keepdims=True),
        dims=("original", "perturbed"),
        coords={"original": counts, "perturbed": results},
    )
    return CellKeys(table)


@pytest.mark.parametrize("total", ["perturbed", "known"])
def test_with_normal_noise_it_is_generalised_least_squares(log: tc.ReleaseLog, total: str) -> None:
    """Of a count with variance 4, and of what is left of a total with variance 9 or 0
    by two others with 4 each: 500 and 506, in inverse proportion to their variances.
    """
    log.add(by_age(400, 500, 600), mechanism=gaussian(2), keys="some", **F)
    given: dict[str, Any] = {"threshold": 10_000, "certainty": 0.2}
    variance = 4 + 4
    if total == "perturbed":
        given |= {"mechanism": gaussian(3), "keys": "others"}
        variance += 9
    verdict = check(log, xr.DataArray(1506), **F, **given)
    found = at_65(verdict)
    posterior = 1 / (1 / 4 + 1 / variance)
    mean = posterior * (500 / 4 + 506 / variance)
    # 500 of those before, with variance 4: their most probable value had 0.199.
    assert found.likely == (round(mean),)
    expected = np.exp(-((round(mean) - mean) ** 2) / (2 * posterior))
    assert found.probability == pytest.approx(expected / np.sqrt(2 * np.pi * posterior), rel=0.01)
    assert found.entropy == pytest.approx(np.log2(2 * np.pi * np.e * posterior) / 2, rel=0.01)


def test_a_total_with_the_keys_of_its_parts_says_nothing(log: tc.ReleaseLog) -> None:
    """Its key is the sum of theirs."""
    log.add(by_age(11, 3, 8), mechanism=KEYS, keys="2026", **F)
    p = p_of(KEYS, 3, 20)
    q = p * left_of(p_of(KEYS, 22, 70), [p_of(KEYS, 11, 20), p_of(KEYS, 8, 20)])[:21]
    given = {"mechanism": KEYS, **F, "certainty": (p.max() / p.sum() + q.max() / q.sum()) / 2}
    assert check(log, xr.DataArray(22), keys="2026", **given).passed
    found = at_65(check(log, xr.DataArray(22), keys="2027", **given))
    assert found.probability == pytest.approx(q.max() / q.sum(), abs=1e-10)


def test_an_answer_about_a_total_is_used_for_the_line_of_fewer_counts(log: tc.ReleaseLog) -> None:
    log.add(by_age(11, 3, 8), mechanism=MILD, **F)
    # The same line in two parts, with another answer about their total.
    merged = pd.Series({"65": 3, "others": 19}).rename_axis("age")
    log.add(merged, merge={"age": {"others": ["16-64", "66+"]}}, mechanism=MILD, **F)
    p = p_of(MILD, 3, 100) ** 2
    q = p * left_of(p_of(MILD, 22, 160), [p_of(MILD, 19, 60)])
    q /= q.sum()
    given = {"certainty": (p.max() / p.sum() + q.max()) / 2}
    found = at_65(check(log, xr.DataArray(22), mechanism=MILD, **F, **given))
    assert found.probability == pytest.approx(q[3], abs=1e-10)


def test_of_two_lines_along_a_variable_one_is_taken(log: tc.ReleaseLog) -> None:
    """Of four areas, and of three of these: what both leave out is the same people."""
    areas = {"N1": 3, "N2": 9, "S1": 5, "S2": 14}
    log.add(pd.Series(areas).rename_axis("area"), mechanism=MILD, **F)
    log.add(xr.DataArray(31), mechanism=MILD, **F)
    three = {"sex": "f", "area": ["N1", "N2", "S1"]}
    merged = pd.Series({"N1": 3, "others": 14}).rename_axis("area")
    both = {"area": {"others": ["N2", "S1"]}}
    log.add(merged, where=three, merge=both, mechanism=MILD)
    p = p_of(MILD, 3, 100) ** 2
    long = p * left_of(p_of(MILD, 31, 220), [p_of(MILD, areas[x], 40) for x in ("N2", "S1", "S2")])
    short = p * left_of(p_of(MILD, 17, 160), [p_of(MILD, 14, 60)])
    long, short = long / long.sum(), short / short.sum()
    given = {"certainty": (long.max() + short.max()) / 2, "mechanism": MILD}
    verdict = check(log, xr.DataArray(17), where=three, **given)
    found = next(each for each in verdict.likely if each.who == "sex=f, area=N1")
    assert found.probability == pytest.approx(short[3], abs=1e-10)
    assert found.before == pytest.approx(long[3], abs=1e-10)


def test_a_part_that_is_known_counts_as_such(log: tc.ReleaseLog) -> None:
    """Nobody is older, whatever is released of them."""
    log.add(pd.Series({"66+": 0}).rename_axis("age"), where={"sex": "f", "age": "66+"})
    log.add(by_age(11, 3, 2), mechanism=MILD, **F)
    p = p_of(MILD, 3, 100)
    q = p * left_of(p_of(MILD, 14, 160), [p_of(MILD, 11, 60)])
    p, q = p / p.sum(), q / q.sum()
    found = at_65(check(log, xr.DataArray(14), mechanism=MILD, certainty=0.87, **F))
    assert found.likely == (3,)
    assert found.probability == pytest.approx(q[3], abs=1e-10)


def test_rows_and_columns_are_independent_lines(log: tc.ReleaseLog) -> None:
    counts = pd.DataFrame(
        {"f": [9, 3, 8], "m": [7, 12, 30]}, index=pd.Index(["16-64", "65", "66+"], name="age")
    ).rename_axis(columns="sex")
    log.add(counts, mechanism=MILD)
    log.add(pd.Series({"f": 20, "m": 49}).rename_axis("sex"), mechanism=MILD)
    p = p_of(MILD, 3, 100)
    column = left_of(p_of(MILD, 20, 220), [p_of(MILD, 9, 60), p_of(MILD, 8, 60)])
    row = left_of(p_of(MILD, 15, 160), [p_of(MILD, 12, 60)])
    before, after = p * column, p * column * row
    before, after = before / before.sum(), after / after.sum()
    given = {"mechanism": MILD, "certainty": (before.max() + after.max()) / 2}
    verdict = check(log, by_age(16, 15, 38), **given)
    found = at_65(verdict)
    assert found.probability == pytest.approx(after[3], abs=1e-10)
    assert found.before == pytest.approx(before[3], abs=1e-10)
    assert found.releases == (1, 2)
