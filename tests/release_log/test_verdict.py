"""What a verdict says, and whether what it advises can be done."""

import pandas as pd

import taciturn as tc

AGES = {"age": ["16-64", "66+"]}


def by_sex(f: float, m: float) -> pd.Series:
    return pd.Series({"f": f, "m": m}).rename_axis("sex")


def test_names_with_commas_can_be_told_apart(log: tc.ReleaseLog) -> None:
    """Each of the two is needed: all, and those who are 66 or older."""
    log.add(by_sex(81, 88), name="all, by sex")
    log.add(by_sex(30, 40), where={"age": "66+"}, name="66+, by sex")
    verdict = log.check(by_sex(50, 48), where={"age": "16-64"}, advise=False, progressbar=False)
    assert "with all, by sex; 66+, by sex" in repr(verdict)


def test_one_small_count_is_singular(log: tc.ReleaseLog) -> None:
    log.add(by_sex(51, 48))
    verdict = log.check(
        pd.Series({"f": 50}).rename_axis("sex"),
        where={**AGES, "sex": "f"},
        advise=False,
        progressbar=False,
    )
    assert "Do not release: 1 small count could be worked out." in repr(verdict)


def test_a_cell_that_a_total_gives_back_is_suppressed_with_another(log: tc.ReleaseLog) -> None:
    """f is the total by age less m."""
    log.add(by_sex(51, 78), name="all")
    log.add(pd.Series({"16-64": 80, "66+": 30}).rename_axis("age"), where=AGES, name="by age")
    given = {"where": AGES, "progressbar": False}
    assert log.check(by_sex(50, 60), **given).cells["cell"].tolist() == ["age=65, sex=f"]
    assert not log.check(by_sex(float("nan"), 60), **given).passed
    assert log.check(by_sex(float("nan"), float("nan")), **given).passed
    advice = log.check(by_sex(50, 60), **given).advice
    assert [each.what for each in advice if each.kind == "suppress"] == ["sex=f; sex=m"]


def test_no_advice_was_tried_where_none_was_asked_for(log: tc.ReleaseLog) -> None:
    verdict = log.check(by_sex(51, 4), advise=False, progressbar=False)
    assert "tried" not in repr(verdict)
