"""What the service answers is what the log says, and every status."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from service.asking import by_sex

AGES = {"age": ["16-64", "66+"]}


def sexes(f: float, m: float) -> pd.Series:
    return pd.Series({"f": f, "m": m}).rename_axis("sex")


def test_a_verdict_is_that_of_check(ask: Any) -> None:
    log = tc.ReleaseLog(ask.log)
    log.add(sexes(51, 48), name="all")
    answered = ask.post("/check", json=by_sex(50, 48, where=AGES))
    found = answered.json()
    expected = log.check(sexes(50, 48), where=AGES, progressbar=False)
    assert answered.status_code == 200
    assert answered.headers["cache-control"] == "no-store"
    assert (found["text"], found["log"]) == (expected.lines(), log.id)
    assert (found["passed"], found["complete"], found["further"]) == (False, True, 1)
    assert found["advice"] == [{"kind": e.kind, "what": e.what} for e in expected.advice]
    assert found["findings"] == [
        {
            "cell": "age=65",
            "taken": {"age": ["65"]},
            "lower": 1,
            "upper": 1,
            "lower_before": 0,
            "upper_before": 99,
            "releases": ["all"],
            "smallest": True,
        }
    ]
    assert len(log.releases) == 1


def test_settings_are_those_of_check(ask: Any) -> None:
    found = ask.post("/check", json=by_sex(20, 30, threshold=25, advise=False)).json()
    assert (found["threshold"], found["advice"]) == (25, [])
    assert [each["cell"] for each in found["findings"]] == ["sex=f"]


def test_a_release_is_added_once_however_often_it_is_asked_for(ask: Any) -> None:
    body = by_sex(51, 48, name="all", protection="none")
    first, second = (ask.post("/release", json=body) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["verdict"]["passed"]
    assert {"number": 1, "name": "all", "added": True}.items() <= first.json().items()
    assert second.json() == {
        "log": tc.ReleaseLog(ask.log).id,
        "number": 1,
        "name": "all",
        "added": False,
    }
    (listed,) = ask.get("/releases").json()["releases"]
    assert (listed["number"], listed["name"], listed["protection"]) == (1, "all", "none")
    assert listed["added"].endswith("Z")
    assert pd.Timestamp(listed["added"]).tzinfo is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": by_sex(51, 47)["table"]}, "release 1 is called 'all', with another table"),
        ({"where": AGES}, "release 1 is called 'all', with another table"),
        ({"protection": "rounded"}, "with the protection '', got 'rounded'"),
    ],
)
def test_a_name_is_for_one_table(ask: Any, change: dict, message: str) -> None:
    ask.post("/release", json=by_sex(51, 48, name="all"))
    answered = ask.post("/release", json=by_sex(51, 48, name="all") | change)
    assert (answered.status_code, set(answered.json())) == (409, {"error"})
    assert message in answered.json()["error"]
    assert len(ask.get("/releases").json()["releases"]) == 1


def test_what_does_not_pass_is_not_added(ask: Any) -> None:
    answered = ask.post("/release", json=by_sex(51, 4, name="small"))
    assert answered.status_code == 409
    assert answered.json()["error"] == "not released: see the verdict"
    assert answered.json()["verdict"]["findings"][0]["cell"] == "sex=m"
    assert ask.get("/releases").json()["releases"] == []


def test_one_of_many_at_once_is_added(ask: Any) -> None:
    body = by_sex(51, 48, name="all", advise=False)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ask.post("/release", json=body), range(8)))
    assert sorted(each.status_code for each in found) == [*[200] * 7, 201]
    assert {each.json()["number"] for each in found} == {1}
    assert len(tc.ReleaseLog(ask.log).releases) == 1


def test_of_two_tables_that_must_not_both_go_out_one_does(ask: Any) -> None:
    """Each passes by itself; their difference is one person."""
    bodies = [by_sex(51, 48, name="all"), by_sex(50, 48, name="not 65", where=AGES)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda body: ask.post("/release", json=body), bodies))
    assert sorted(each.status_code for each in found) == [201, 409]
    assert len(tc.ReleaseLog(ask.log).releases) == 1


def test_others_may_add_to_the_log_meanwhile(ask: Any) -> None:
    tc.ReleaseLog(ask.log).add(sexes(51, 48), name="by hand")
    assert ask.post("/release", json=by_sex(51, 48, name="again")).json()["number"] == 2


def nested(counts: Any) -> dict[str, Any]:
    categories = {"sex": ["f", "m"], "area": ["N1", "N2", "S1", "S2"]}
    return {"table": {"dims": ["sex", "area"], "categories": categories, "counts": counts}}


def test_counts_in_lists_or_in_one_list(ask: Any) -> None:
    rows = [[30, 40, 50, 60], [31, 41, 9, None]]
    one, other = (ask.post("/check", json=nested(x)).json() for x in (rows, [*rows[0], *rows[1]]))
    assert one == other
    assert [each["cell"] for each in one["findings"]] == ["sex=m, area=S1"]


def test_totals_levels_merged_and_numbered_categories(ask: Any) -> None:
    table = {
        "dims": ["sex", "region"],
        "categories": {"sex": ["f", "m", "All"], "region": ["North", "South"]},
        "counts": [[30, None], [40, None], [70, 60]],
    }
    found = ask.post("/check", json={"table": table, "total": "All"}).json()
    assert found["passed"]
    merged = {"dims": ["age"], "categories": {"age": ["-65", "66+"]}, "counts": [3, 30]}
    query = {"table": merged, "merge": {"age": {"-65": ["16-64", "65"]}}}
    found = ask.post("/check", json=query).json()
    assert found["findings"][0]["taken"] == {"age": ["16-64", "65"]}
    numbered = {"dims": ["age"], "categories": {"age": [65]}, "counts": [30.0]}
    query = {"table": numbered, "where": {"age": 65}}
    assert ask.post("/check", json=query).json()["passed"]


def test_the_grand_total(ask: Any) -> None:
    body = {"table": {"dims": [], "counts": [99]}, "name": "everybody"}
    assert ask.post("/release", json=body).status_code == 201
    log = tc.ReleaseLog(ask.log)
    assert log.number_of(pd.DataFrame({"count": [99]}), name="everybody") == 1


def test_what_is_not_published_is_null_and_is_never_asked_for(ask: Any) -> None:
    ask.post("/release", json=by_sex(None, 48, name="all"))
    log = tc.ReleaseLog(ask.log)
    assert log.number_of(sexes(np.nan, 48), name="all") == 1


def test_health_and_the_interface(ask: Any) -> None:
    assert ask.get("/health").json() == {"status": "ok"}
    described = ask.get("/openapi.json").json()
    assert set(described["paths"]) == {"/check", "/release", "/releases", "/health"}
    table = described["components"]["schemas"]["Table"]
    assert set(table["properties"]) == {"dims", "categories", "counts"}
    json.dumps(described)
    for page in ("/docs", "/redoc"):
        assert ask.get(page).status_code == 404


def test_repeated_answers_are_averaged_and_the_one_too_many_is_refused(ask: Any) -> None:
    noise = {"name": "geometric-noise", "epsilon": 0.5}
    body = by_sex(4, None, mechanism=noise, protection="noise", advise=False)
    statuses = []
    for number in range(12):
        answered = ask.post("/release", json=body | {"name": f"answer {number}"})
        statuses.append(answered.status_code)
        if statuses[-1] != 201:
            break
    assert statuses == [201] * 7 + [409]
    refused = answered.json()["verdict"]
    log = tc.ReleaseLog(ask.log)
    given = {"mechanism": tc.attack.GeometricNoise(epsilon=0.5), "progressbar": False}
    expected = log.check(sexes(4, np.nan), advise=False, **given)
    (own,) = expected.likely
    assert refused["text"] == expected.lines()
    assert refused["findings"] == []
    assert refused["certainty"] == 0.95
    assert refused["likely"] == [
        {
            "cell": "sex=f",
            "taken": {"sex": ["f"]},
            "values": [4],
            "probability": own.probability,
            "probability_before": own.before,
            "entropy": own.entropy,
            "lower": 0,
            "upper": None,
            "releases": [f"answer {number}" for number in range(7)],
        }
    ]
    # The same keys have one answer, which can be given as often as it is asked for.
    table = tc.perturbation.perturbation_table(3, 1.5)
    keys = {
        "name": "cell-keys",
        "perturbed": table["perturbed"].values.tolist(),
        "probabilities": table.values.tolist(),
    }
    body = by_sex(None, 30, mechanism=keys, keys="2026", where={"age": "65"}, advise=False)
    for number in range(14):
        assert ask.post("/release", json=body | {"name": f"keys {number}"}).status_code == 201
    again = ask.post("/release", json=body | {"name": "keys 3"})
    assert (again.status_code, again.json()["added"]) == (200, False)
    swapping = {
        "name": "record-swapping",
        "geography": "sex",
        "categories": {"sex": ["f", "m"]},
        "sizes": [60, 70],
        "moves": 5,
    }
    body = by_sex(60, 70, mechanism=swapping, keys="a file", advise=False)
    assert ask.post("/release", json=body | {"name": "swapped"}).status_code == 201
    bad = ask.post("/check", json=body | {"mechanism": swapping | {"moves": 61}})
    assert (bad.status_code, "moves must be" in bad.text) == (422, True)


@pytest.mark.parametrize(("count", "status"), [(0, 201), (1, 409)])
def test_a_refusal_tells_what_the_release_left_open(ask: Any, count: int, status: int) -> None:
    """As documented: rounded to 0 it is 0 or 1, and refused only if it is 1."""
    base = {"name": "conventional-rounding", "base": 3}
    rounded = by_sex(0, 48, name="rounded", mechanism=base)
    assert ask.post("/release", json=rounded).status_code == 201
    assert ask.post("/release", json=by_sex(count, 48, name="exact")).status_code == status
