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


def test_no_advice_was_tried_where_none_was_asked_for(log: tc.ReleaseLog) -> None:
    verdict = log.check(by_sex(51, 4), advise=False, progressbar=False)
    assert "tried" not in repr(verdict)
