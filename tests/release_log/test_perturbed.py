"""Perturbed tables in a log: what repeated answers give away, what is stored of a
mechanism, and what is refused.
"""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    Perturbed,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.release_log.mechanisms import mechanism_data, mechanism_of
from taciturn.tables.transitions import check_perturbation_table, perturbed_counts

NOISE = GeometricNoise(epsilon=0.5)
KEYS = CellKeys(tc.perturbation.perturbation_table(3, 1.5))
AGES = {"age": ["16-64", "66+"]}


def by_sex(f: float, m: float) -> pd.Series:
    return pd.Series({"f": f, "m": m}).rename_axis("sex")


def check(log: tc.ReleaseLog, table: object, **given: Any) -> tc.release_log.Verdict:
    return log.check(table, **{"progressbar": False, "advise": False, **given})


def product_of(answers: list[int], mechanism: Mechanism, most: int) -> np.ndarray:
    """The posterior of a count from 0 to `most`, answer by answer."""
    p = np.ones(most + 1)
    for answer in answers:
        p *= [np.exp(mechanism.log_probability(answer, np.array([x]))[0]) for x in range(most + 1)]
        p /= p.sum()
    return p


def test_answers_average_out_and_the_one_too_many_is_stopped(log: tc.ReleaseLog) -> None:
    generator = np.random.default_rng(5)
    answers = []
    while len(answers) < 60:
        value = int(max(0, 4 + generator.geometric(0.4) - generator.geometric(0.4)))
        verdict = check(log, by_sex(value, np.nan), mechanism=NOISE)
        answers.append(value)
        p = product_of(answers, NOISE, 400)
        assert verdict.passed == (p.max() < 0.95)
        if not verdict.passed:
            break
        log.add(by_sex(value, np.nan), mechanism=NOISE, after=verdict)
    (found,) = verdict.likely
    assert 6 < len(answers) < 59
    assert (found.who, found.likely, found.lower, found.upper) == ("sex=f", (4,), 0, None)
    assert found.probability == pytest.approx(p.max(), abs=1e-12)
    assert found.before == pytest.approx(product_of(answers[:-1], NOISE, 400)[4], abs=1e-12)
    assert found.entropy == pytest.approx(-(p[p > 0] * np.log2(p[p > 0])).sum(), abs=1e-9)
    assert found.releases == tuple(range(1, len(answers)))
    assert not verdict.findings
    assert "1 small count could be worked out, nearly with certainty" in repr(verdict)


def test_k_answers_that_agree_are_one_with_k_times_epsilon(log: tc.ReleaseLog) -> None:
    """The entropy of two-sided geometric noise in closed form, far from 0."""
    for _ in range(11):
        log.add(by_sex(90, np.nan), mechanism=NOISE)
    limits = {"threshold": 1000, "certainty": 0.995}
    verdict = check(log, by_sex(90, np.nan), mechanism=NOISE, **limits)
    a = np.exp(-12 * 0.5)
    assert verdict.likely[0].probability == pytest.approx((1 - a) / (1 + a), rel=1e-9)
    expected = -np.log2((1 - a) / (1 + a)) - 2 * a / (1 - a**2) * np.log2(a)
    assert verdict.likely[0].entropy == pytest.approx(expected, rel=1e-9)
    assert verdict.probable["risk"].item() == pytest.approx(1 / expected, rel=1e-9)


def test_answers_of_one_release_are_those_of_several(log: tc.ReleaseLog) -> None:
    values = [3, 5, 4, 4, 4, 3, 4]
    repeated = xr.DataArray([[x] for x in values], dims=("replicate", "sex"), coords={"sex": ["f"]})
    where = {"sex": "f"}
    certainty = np.mean([product_of(some, NOISE, 400).max() for some in (values[:-1], values)])
    at_once = check(log, Perturbed(repeated, NOISE), where=where, certainty=certainty)
    for value in values[:-1]:
        log.add(pd.Series({"f": value}).rename_axis("sex"), mechanism=NOISE, where=where)
    one = pd.Series({"f": values[-1]}).rename_axis("sex")
    later = check(log, one, mechanism=NOISE, where=where, certainty=certainty)
    assert at_once.likely[0].likely == later.likely[0].likely == (4,)
    assert at_once.likely[0].probability == pytest.approx(later.likely[0].probability)


def test_rounding_at_random_eliminates_and_weighs(log: tc.ReleaseLog) -> None:
    """3 is of 1 to 5, 6 of 4 to 8; three times 3 and once 6 of 4 with 8 to 2."""
    rounding = RandomRounding(3)
    for value in (3, 3, 3):
        log.add(by_sex(value, 60), mechanism=rounding)
    verdict = check(log, by_sex(6, 60), mechanism=rounding, certainty=0.75)
    (found,) = verdict.likely
    assert (found.likely, found.lower, found.upper) == ((4,), 4, 5)
    assert found.probability == pytest.approx(8 / 10)
    # From 1 to 5 before: 1, 8, 27, 8, 1 of 45.
    assert found.before == pytest.approx(8 / 45)
    both = check(log, by_sex(6, 60), mechanism=rounding, values=3)
    assert [(each.lower, each.upper) for each in both.findings] == [(4, 5)]
    assert not both.likely


def test_noise_from_the_same_keys_does_not_average_out(log: tc.ReleaseLog) -> None:
    for _ in range(20):
        log.add(by_sex(5, 40), mechanism=KEYS, keys="2026")
    same = {"mechanism": KEYS, "keys": "2026", "certainty": 0.4}
    assert check(log, by_sex(5, 40), **same).passed
    # Nobody is 65, so that the others are the same records.
    log.add(pd.Series({"65": 0}).rename_axis("age"), where={"age": "65"})
    assert check(log, by_sex(5, 40), where=AGES, **same).passed
    with pytest.raises(TableError, match=r"sex=f of release 1 is published as 5, and sex=f of"):
        check(log, by_sex(4, 40), where=AGES, **same)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("answers", [(5, 4), (4, 4), (2, 1)])
def test_keys_that_are_used_with_two_perturbation_tables(
    log: tc.ReleaseLog, answers: tuple[int, int], order: int
) -> None:
    """A vague answer takes nothing from a precise one: the posterior is that of the
    cell keys, of which a fine grid is tried, that give both.
    """
    tables = tc.perturbation.perturbation_table(3, 1.5), tc.perturbation.perturbation_table(3, 0.02)
    grid = (np.arange(100_000) + 0.5) / 100_000
    weights = np.zeros(12)
    for true in range(12):
        both = np.ones(len(grid), dtype=np.bool_)
        for table, answer in zip(tables, answers, strict=True):
            cumulated, perturbed = check_perturbation_table(table)
            both &= perturbed_counts(np.full(len(grid), true), grid, cumulated, perturbed) == answer
        weights[true] = both.mean()
    expected = weights / weights.sum()
    (old, first), (new, second) = [*zip(tables, answers, strict=True)][::order]
    log.add(by_sex(first, np.nan), mechanism=CellKeys(old), keys="2026", name="old")
    verdict = check(log, by_sex(second, np.nan), mechanism=CellKeys(new), keys="2026")
    if answers != (5, 4):
        (found,) = verdict.findings
        assert (found.lower, found.upper) == (expected.argmax(), expected.argmax())
        assert found.releases == (1,)
        return
    assert not verdict.complete  # counts that no grid is fine enough to see leave a gap
    if order == 1:
        (likely,) = verdict.likely
        assert likely.likely == (int(expected.argmax()),)
        assert likely.probability == pytest.approx(expected.max(), abs=1e-3)
        assert likely.releases == (1,)
    else:
        assert verdict.found == 0  # the precise one was there before


def test_keys_that_are_used_with_two_perturbation_tables_contradict_themselves(
    log: tc.ReleaseLog,
) -> None:
    """A key that adds three does not take one away."""
    log.add(by_sex(8, np.nan), mechanism=KEYS, keys="2026", name="old")
    narrow = CellKeys(tc.perturbation.perturbation_table(1, 0.1))
    with pytest.raises(TableError, match=r"of one: sex=f of release 1 as 8, sex=f of"):
        check(log, by_sex(5, np.nan), mechanism=narrow, keys="2026")
    assert check(log, by_sex(5, np.nan), mechanism=narrow, keys="2027").complete


def test_whether_keys_of_two_perturbation_tables_are_the_same_must_be_said(
    log: tc.ReleaseLog,
) -> None:
    """As two keys these leave several counts, as one key only 1."""
    old = CellKeys(tc.perturbation.perturbation_table(3, 2.0))
    new = {"mechanism": CellKeys(tc.perturbation.perturbation_table(5, 3.0))}
    log.add(by_sex(4, np.nan), mechanism=old, keys="2026", name="old")
    assert check(log, by_sex(6, np.nan), keys="other", **new).passed
    (found,) = check(log, by_sex(6, np.nan), keys="2026", **new).findings
    assert (found.lower, found.upper) == (1, 1)
    assert check(log, by_sex(4, np.nan), mechanism=old).passed  # of one table: two answers
    said = r"cell keys of release 1 and of this table.*give both releases a name"
    for ask in (log.check, log.add):
        with pytest.raises(ParameterError, match=said):
            ask(by_sex(6, np.nan), **new)
    log.remove("old")
    log.add(by_sex(4, np.nan), mechanism=old, name="old")
    with pytest.raises(ParameterError, match=r"cell keys of release 2 and"):
        log.add(by_sex(6, np.nan), keys="2026", **new)


def test_keys_that_are_used_with_two_mechanisms_are_two_answers(log: tc.ReleaseLog) -> None:
    """How rounding follows from keys is not known."""
    log.add(by_sex(3, np.nan), mechanism=RandomRounding(3), keys="2026", name="old")
    narrow = CellKeys(tc.perturbation.perturbation_table(1, 0.02))
    verdict = check(log, by_sex(4, np.nan), mechanism=narrow, keys="2026")
    (found,) = verdict.likely
    p = product_of([3], RandomRounding(3), 20) * product_of([4], narrow, 20)
    assert found.probability == pytest.approx((p / p.sum()).max(), rel=1e-9)


def test_without_a_name_of_the_keys_each_release_has_keys_of_its_own(log: tc.ReleaseLog) -> None:
    for _ in range(11):
        log.add(by_sex(5, 40), mechanism=KEYS)
    verdict = check(log, by_sex(5, 40), mechanism=KEYS)
    assert verdict.likely[0].likely == (5,)
    p = product_of([5] * 12, KEYS, 20)
    assert verdict.likely[0].probability == pytest.approx(p.max(), abs=1e-12)
    # The same table twice in one release has the same keys.
    twice = Perturbed(
        xr.DataArray([[5, 40]] * 12, dims=("replicate", "sex"), coords={"sex": ["f", "m"]}), KEYS
    )
    assert check(tc.ReleaseLog(log.path), twice, where={"area": "N1"}).passed


def test_what_is_known_of_the_men_says_something_of_the_women(log: tc.ReleaseLog) -> None:
    """Both together are known: answers about either are averaged."""
    log.add(xr.DataArray(50), name="all")
    men = {"where": {"sex": "m"}, "mechanism": NOISE}
    for value in (46, 46, 45, 46, 47, 46):
        log.add(xr.DataArray(value), **men)
    women = pd.Series({"f": 4}).rename_axis("sex")
    verdict = check(log, women, where={"sex": "f"}, mechanism=NOISE, certainty=0.8)
    p = product_of([4], NOISE, 50) * product_of([46, 46, 45, 46, 47, 46], NOISE, 50)[::-1]
    p /= p.sum()
    (found,) = verdict.likely
    assert (found.who, found.likely, found.lower, found.upper) == ("sex=f", (4,), 0, 50)
    assert found.probability == pytest.approx(p[4], abs=1e-12)


def test_an_exact_table_can_make_an_old_answer_nearly_certain(log: tc.ReleaseLog) -> None:
    """Noise leaves the women open until it is known that they are from 5 to 7."""
    answers = [6, 7, 6, 6]
    for value in answers:
        log.add(by_sex(value, 90), mechanism=NOISE)
    first = product_of(answers, NOISE, 400)
    last = first[5:8] / first[5:8].sum()
    rounded = xr.DataArray([6], dims="sex", coords={"sex": ["f"]})
    between = {"where": {"sex": "f"}, "certainty": (first[6] + last[1]) / 2}
    verdict = check(log, tc.Rounding(rounded, 2, method="random"), **between)
    (found,) = verdict.likely
    assert (found.likely, found.lower, found.upper) == ((6,), 5, 7)
    assert found.probability == pytest.approx(last[1], abs=1e-12)
    assert found.before == pytest.approx(first[6], abs=1e-12)


def test_suppressing_the_count_is_advised(log: tc.ReleaseLog) -> None:
    for _ in range(7):
        log.add(by_sex(3, 48), mechanism=NOISE)
    verdict = check(log, by_sex(3, 48), mechanism=NOISE, advise=True)
    assert [str(each) for each in verdict.advice] == ["suppress sex=f"]
    assert check(log, by_sex(np.nan, 48), mechanism=NOISE).passed


@pytest.mark.parametrize(
    "mechanism",
    [
        *(RandomRounding(3), ConventionalRounding(5), SmallCellAdjustment(3), NOISE, KEYS),
        CellKeys(tc.perturbation.perturbation_table(2, 1).transpose("perturbed", "original")),
    ],
    ids=repr,
)
def test_a_mechanism_is_stored_as_data(log: tc.ReleaseLog, mechanism: Mechanism) -> None:
    assert mechanism_data(mechanism_of(json.loads(json.dumps(mechanism_data(mechanism))))) == (
        mechanism_data(mechanism)
    )
    true = np.arange(12)
    again = mechanism_of(json.loads(json.dumps(mechanism_data(mechanism))))
    for released in range(12):
        assert again.support(released) == mechanism.support(released)
        one, other = (each.log_probability(released, true) for each in (again, mechanism))
        np.testing.assert_array_equal(one, other)
    log.add(by_sex(15, 0), mechanism=mechanism, name="first")
    stored = tc.ReleaseLog(log.path)
    assert stored.number_of(by_sex(15, 0), mechanism=mechanism, name="first") == 1
    with pytest.raises(ParameterError, match="with another table"):
        stored.number_of(by_sex(15, 0), mechanism=GeometricNoise(epsilon=0.25), name="first")
    assert "1 release, 2 published counts" in repr(stored)


class OneMore(RandomRounding):
    """A mechanism of one's own."""


@pytest.mark.parametrize("mechanism", [OneMore(3), "random-rounding", 3, RandomRounding])
def test_a_mechanism_of_ones_own_is_refused(log: tc.ReleaseLog, mechanism: Any) -> None:
    with pytest.raises(ParameterError, match="a log stores mechanisms as data"):
        check(log, by_sex(3, 3), mechanism=mechanism)
    if isinstance(mechanism, Mechanism):
        with pytest.raises(ParameterError, match="a log stores mechanisms as data"):
            log.add(Perturbed(by_sex(3, 3).to_xarray(), mechanism))
    assert len(log.releases) == 0


@pytest.mark.parametrize(
    ("table", "given", "error", "message"),
    [
        (by_sex(3, 4), {"mechanism": RandomRounding(3)}, TableError, "multiples of 3: sex=m holds"),
        (by_sex(3, 4), {"keys": "2026"}, ParameterError, "keys are those of a mechanism"),
        (by_sex(3, 4), {"mechanism": KEYS, "keys": ""}, ParameterError, "keys must be text"),
        (by_sex(3, 4), {"mechanism": KEYS, "keys": "a\nb"}, TableError, "keys"),
        (
            Perturbed(by_sex(3, 3).to_xarray(), RandomRounding(3)),
            {"keys": "2026"},
            ParameterError,
            "same_key is False",
        ),
        (
            Perturbed(by_sex(3, 3).to_xarray(), RandomRounding(3)),
            {"mechanism": RandomRounding(3)},
            ParameterError,
            "a release has its own",
        ),
        (
            pd.DataFrame({"sex": ["f", "m", "f"], "age": ["65", "65", "66+"], "count": [1, 2, 3]}),
            {"mechanism": NOISE},
            TableError,
            "a row for each cell",
        ),
        (by_sex(3, 4), {"certainty": 0}, ParameterError, "certainty must be"),
        (by_sex(3, 4), {"certainty": 1.5}, ParameterError, "certainty must be"),
    ],
)
def test_wrong_input(
    log: tc.ReleaseLog, table: Any, given: dict[str, Any], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        check(log, table, **given)


def test_releases_that_no_count_gives_are_an_error(log: tc.ReleaseLog) -> None:
    """Neither 3 nor 9 is of the same count, and 1 and 2 never come from the same."""
    log.add(by_sex(3, 30), mechanism=RandomRounding(3))
    with pytest.raises(TableError, match="contradict"):
        check(log, by_sex(9, 30), mechanism=RandomRounding(3))
    holes = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    table = xr.DataArray(
        holes,
        dims=("original", "perturbed"),
        coords={"original": range(5), "perturbed": range(4)},
    )
    log.add(by_sex(2, np.nan), where={"area": "N1"}, mechanism=CellKeys(table), keys="a")
    other = table.copy(data=holes[[0, 2, 1, 2, 4]])
    given = {"where": {"area": "N1"}, "mechanism": CellKeys(other), "keys": "b"}
    with pytest.raises(TableError, match="is published as 2, and can only be 2, from which"):
        check(log, by_sex(2, np.nan), **given)
    # 1 or 3 by the first, 2 or 4 by the third.
    third = table.copy(data=holes[[0, 2, 1, 2, 4]])
    third[:] = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    given = {"where": {"area": "N1"}, "mechanism": CellKeys(third), "keys": "c"}
    with pytest.raises(TableError, match="no count gives all that is published of one: sex=f"):
        check(log, by_sex(2, np.nan), **given)


DAMAGE = {
    "noise = '{'": "is damaged",
    "noise = '[]'": "is damaged",
    "noise = 'null'": "is damaged",
    """noise = '{"mechanism": 5, "keyed": false, "keys": null}'""": "is damaged",
    """noise = replace(noise, 'random-rounding', 'os.system')""": "is damaged",
    """noise = replace(noise, '"base": 3', '"base": "__import__(1)"')""": "is damaged",
    """noise = replace(noise, '"base": 3', '"base": 3, "more": 1')""": "is damaged",
    """noise = replace(noise, '"base": 3', '"base": 1e400')""": "is damaged",
    """noise = replace(noise, '"base": 3', '"base": NaN')""": "is damaged",
    """noise = replace(noise, '"base": 3', '"base": 7')""": "is damaged",
    """noise = replace(noise, '"keys": null', '"keys": "x"')""": "is damaged",
    """noise = replace(noise, '"keyed": false', '"keyed": 1')""": "is damaged",
    "noise = repeat('[', 100000)": "is damaged",
    "released = [[3]]": "is damaged",
    "released = [[3, 3], [3, NULL]]": "is damaged",
    "released = [[3, -2]]": "is damaged",
    "released = [[3, 4]]": "is damaged",
    "released = NULL": "is damaged",
    "released = []": "is damaged",
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_mechanism_in_a_log_of_others_is_data(log: tc.ReleaseLog, change: str) -> None:
    log.add(by_sex(3, 30), mechanism=RandomRounding(3))
    with duckdb.connect(str(log.path)) as connection:
        connection.execute(f"UPDATE tables SET {change}")
    with pytest.raises(FileFormatError, match=DAMAGE[change]):
        check(tc.ReleaseLog(log.path), by_sex(3, 30), mechanism=RandomRounding(3))


def test_the_order_of_answers_does_not_matter(tmp_path: Path) -> None:
    answers = [(NOISE, 4), (RandomRounding(3), 3), (KEYS, 5), (SmallCellAdjustment(6), 6)]
    last = (GeometricNoise(epsilon=1.0), 4)
    before, after = np.ones(401), np.ones(401)
    for mechanism, value in [*answers, last]:
        before = after
        after = after * product_of([value], mechanism, 400)
        after /= after.sum()
    assert after.max() > before.max()
    for name, order in {"one": answers, "other": answers[::-1]}.items():
        log = tc.ReleaseLog(tmp_path / f"{name}.duckdb", variables={"sex": ["f", "m"]})
        for mechanism, value in order:
            log.add(by_sex(value, np.nan), mechanism=mechanism)
        given = {"mechanism": last[0], "certainty": (before.max() + after.max()) / 2}
        (found,) = check(log, by_sex(last[1], np.nan), **given).likely
        assert found.likely == (int(after.argmax()),)
        assert found.probability == pytest.approx(after.max(), abs=1e-12)
        assert found.before == pytest.approx(before[after.argmax()], abs=1e-12)


def test_noise_that_says_little_is_looked_at_and_what_cannot_be_is_said(
    log: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = GeometricNoise(epsilon=1e-4)
    log.add(by_sex(4, 30), mechanism=little)
    assert check(log, by_sex(4, 30), mechanism=little).passed
    monkeypatch.setattr("taciturn.release_log.likely._MOST_VALUES", 1_000)
    verdict = check(log, by_sex(4, 30), mechanism=little)
    assert (verdict.found, verdict.complete) == (0, False)
    # Some totals at a time give what all together do.
    for _ in range(7):
        log.add(by_sex(3, 3), mechanism=NOISE, where={"area": "N1"})
    given = {"mechanism": NOISE, "where": {"area": "N1"}}
    monkeypatch.setattr("taciturn.release_log.likely._MOST_ROUNDS", 10**6)
    at_once = check(log, by_sex(3, 3), **given)
    monkeypatch.setattr("taciturn.release_log.likely._MOST_VALUES", 400)
    assert [each.who for each in check(log, by_sex(3, 3), **given).likely] == [
        each.who for each in at_once.likely
    ]


def test_in_parts_what_is_not_told_apart_is_not_looked_at(
    log: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        log.add(by_sex(3, 48), mechanism=NOISE)
    assert check(log, by_sex(3, 48), mechanism=NOISE).likely
    monkeypatch.setattr("taciturn.release_log.checking._MOST_CELLS", 1)
    in_parts = check(log, by_sex(3, 48), mechanism=NOISE)
    assert (in_parts.complete, len(in_parts.likely)) == (False, 1)
    monkeypatch.setattr("taciturn.release_log.checking._MOST_OF_PART", 1)
    nothing = check(log, by_sex(3, 48), mechanism=NOISE)
    assert (nothing.complete, nothing.found) == (False, 0)


def way(answers: list[int], mechanism: Mechanism, most: int) -> np.ndarray:
    """How likely these answers are for each total from 0 to `most`, if all whole
    numbers that add up to it are.
    """
    sums, number = np.ones(1), np.ones(1)
    for answer in answers:
        own = [np.exp(mechanism.log_probability(answer, np.array([x]))[0]) for x in range(most + 1)]
        sums = np.convolve(sums, own)[: most + 1]
        number = np.convolve(number, np.ones(most + 1))[: most + 1]
    return sums / number


def test_a_total_that_is_published_in_three_ways_is_averaged(log: tc.ReleaseLog) -> None:
    """Women by themselves, by age and by area, with noise of their own each."""
    strong = GeometricNoise(epsilon=1.2)
    given = {"mechanism": strong, "where": {"sex": "f"}}
    log.add(xr.DataArray(4), **given)
    log.add(pd.Series({"16-64": 1, "65": 1, "66+": 2}).rename_axis("age"), **given)
    areas = pd.Series({"N1": 1, "N2": 0, "S1": 1, "S2": 2}).rename_axis("area")
    p = product_of([4], strong, 200) * way([1, 1, 2], strong, 200)
    p /= p.sum()
    q = p * way([1, 0, 1, 2], strong, 200)
    q /= q.sum()
    verdict = check(log, areas, **given, certainty=(p.max() + q.max()) / 2)
    found = next(each for each in verdict.likely if each.who == "sex=f")
    assert found.likely == (int(q.argmax()),)
    assert found.probability == pytest.approx(q.max(), abs=1e-9)
    assert found.before == pytest.approx(p[q.argmax()], abs=1e-9)
    assert found.releases == (1, 2)


def test_a_sum_of_counts_with_the_same_keys_as_their_total_adds_nothing(
    log: tc.ReleaseLog,
) -> None:
    """Its key is the sum of theirs."""
    given = {"mechanism": KEYS, "keys": "2026", "where": {"sex": "f"}}
    log.add(xr.DataArray(4), **given)
    ages = pd.Series({"16-64": 1, "65": 1, "66+": 2}).rename_axis("age")
    p = product_of([4], KEYS, 200)
    q = p * way([1, 1, 2], KEYS, 200)
    limits = {"certainty": (p.max() + (q / q.sum()).max()) / 2}
    whos = [each.who for each in check(log, ages, **given, **limits).likely]
    assert "sex=f" not in whos
    other = {**given, "keys": "2027"}
    assert "sex=f" in [each.who for each in check(log, ages, **other, **limits).likely]
