"""Whatever is sent, the answer is a status and a sentence, and the service goes
on."""

import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from service.asking import by_sex
from taciturn.service.bounds import MOST_CELLS, MOST_DIMS

JSON = {"content-type": "application/json"}
INSIDE = (
    "Traceback",
    "site-packages",
    ".py",
    ".duckdb",
    "/tmp",
    "taciturn.",
    "function-",
    "constrained",
    "C long",
)


def refused(answered: Any, status: int, message: str) -> None:
    assert answered.status_code == status, answered.text
    assert answered.headers["content-type"] == "application/json"
    (error,) = answered.json().values()
    assert message in error
    assert not any(each in error for each in INSIDE)
    assert answered.headers["cache-control"] == "no-store"


def changed(path: str, value: Any) -> dict[str, Any]:
    """A body with another value in one place."""
    body = by_sex(51, 48)
    *outer, last = path.split(".")
    place = body
    for part in outer:
        place = place[part]
    place[last] = value
    return body


WIDE = {f"v{i}": ["x"] for i in range(MOST_DIMS + 1)}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "table: Field required"),
        ([], "the body: Input should be"),
        (None, "the body: "),
        (changed("more", 1), "more: Extra inputs are not permitted, got 1"),
        (changed("table.more", 1), "table.more: Extra inputs"),
        (changed("table", []), "table: Input should be"),
        (changed("table.dims", ["age"]), "dims are ['age'], categories are of ['sex']"),
        (changed("table.dims", ["sex", "sex"]), "for each of dims once"),
        (changed("table.dims", ["sex"] * 99), f"at most {MOST_DIMS} items"),
        (changed("table.dims", "sex"), "table.dims: Input should be a valid list, got 'sex'"),
        (changed("table.categories", {"sex": []}), "table.categories.sex: List should have"),
        (changed("table.categories", {"sex": ["f", True]}), "categories.sex.1: Input should"),
        (changed("table.categories", {"sex": ["f", 1.5]}), "a valid string, got 1.5"),
        (changed("table.categories", {"sex": ["f", "x" * 201]}), "at most 200 characters"),
        (changed("table.categories", {"sex": ["f", "f"]}), "is given twice"),
        (changed("table.categories", {"sex": ["f", "x"]}), "'sex' has no category 'x'"),
        (changed("table.categories", {"sex": ["f", "\ud800"]}), "valid string"),
        (changed("table.counts", [51]), "counts must be a list of 2, got a list of 1"),
        (changed("mechanism", "random-rounding:base=3"), "mechanism: Input should be"),
        (changed("mechanism", {}), "mechanism must have one of the names"),
        (changed("mechanism", {"name": ["cell-keys"]}), "mechanism must have one of the names"),
        (changed("mechanism", {"name": "random-rounding"}), "has the parameters base"),
        (changed("mechanism", {"name": "random-rounding", "base": True}), "base must be"),
        (changed("mechanism", {"name": "random-rounding", "base": "3"}), "base must be"),
        (changed("mechanism", {"name": "random-rounding", "base": 7}), "must hold multiples of 7"),
        (
            changed(
                "mechanism", {"name": "cell-keys", "perturbed": [0, 2**70], "probabilities": []}
            ),
            "perturbation",
        ),
        (
            changed("mechanism", {"name": "cell-keys", "perturbed": 1, "probabilities": [[]]}),
            "perturbed must be a list",
        ),
        (changed("keys", "2026"), "keys are those of a mechanism"),
        (changed("keys", ""), "keys: String should have at least 1 character"),
        (changed("certainty", 0), "certainty must be"),
        (changed("certainty", "0.9"), "certainty: Input should be"),
        (changed("table.counts", [[51, 48], [1, 2]]), "counts[0] must be a whole number"),
        (changed("table.counts", 51), "counts must be a list of 2, got int"),
        (changed("table.counts", {"f": 51}), "counts must be a list of 2, got dict"),
        (changed("table.counts", [51, "48"]), "counts[1] must be a whole number, or null"),
        (changed("table.counts", [51, True]), "counts[1] must be a whole number, or null"),
        (changed("table.counts", [51, -48]), "sex=m holds -48"),
        (changed("table.counts", [51, 1.5]), "sex=m holds 1.5"),
        (changed("table.counts", [51, 10**30]), "sex=m holds 1000"),
        (changed("table.counts", [51, 10**400]), "sex=m holds 1000"),
        (changed("where", {"height": "x"}), "where must name variables of the log"),
        (changed("where", {"age": []}), "where.age"),
        (changed("where", {"age": "x"}), "'age' has no category 'x'"),
        (changed("where", {"age": {"x": 1}}), "where.age: Input should be a valid"),
        (changed("where", {"age": ["65", None]}), "where.age.1: Input should be a valid string"),
        (
            changed(
                "mechanism",
                {
                    "name": "record-swapping",
                    "geography": "sex",
                    "categories": {"sex": ["f", "m"]},
                    "sizes": [2**70, 1],
                    "moves": 1,
                },
            ),
            "must be numbers of 64 bits",
        ),
        (changed("merge", {"sex": {"x": ["f"]}}), "merge: the table has no category 'x'"),
        (changed("merge", {"age": {"x": ["65"]}}), "merge must name variables of the table"),
        (changed("threshold", 1), "threshold must be"),
        (changed("threshold", 2.5), "threshold: Input should be a valid integer, got 2.5"),
        (changed("threshold", 10**25), "threshold"),
        (changed("values", True), "values: Input should be a valid integer, got True"),
        (changed("advise", "no"), "advise: Input should be a valid boolean, got 'no'"),
        (changed("total", ""), "total: String should have"),
    ],
    ids=lambda value: None if isinstance(value, str) else json.dumps(value)[-50:],
)
def test_a_body_that_is_wrong(ask: Any, body: Any, message: str) -> None:
    content = json.dumps(body)
    for path in ("/check", "/release"):
        if path == "/release" and isinstance(body, dict):
            content = json.dumps(body | {"name": "x"})
        refused(ask.post(path, content=content, headers=JSON), 422, message)
    assert ask.get("/releases").json()["releases"] == []


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x1b[2J", "\ud800", 1, None, ["x"]])
def test_a_name_is_text_that_can_be_printed(ask: Any, name: Any) -> None:
    body = json.dumps(by_sex(51, 48, name=name))
    refused(ask.post("/release", content=body, headers=JSON), 422, "name: ")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("", 422, ""),
        ("{", 400, "the body is no JSON"),
        (b"\xff\xfe{}", 400, ""),
        (b'{"table": "\xff"}', 400, ""),
        ("[" * 400_000, 400, ""),
        ('{"table":' * 100_000, 400, ""),
        ('{"table": {"dims": [], "counts": [' + "9" * 10_000 + "]}}", 400, ""),
        ('{"table": {"dims": [], "counts": ' + "[" * 900 + "]" * 900 + "}}", 422, "counts"),
        ('{"table": {"dims": [], "counts": [NaN]}}', 422, "got nan"),
        ('{"table": {"dims": [], "counts": [Infinity]}}', 422, "got inf"),
        ('{"table": {"dims": [], "counts": [1e999]}}', 422, "got inf"),
        ('{"table": {"dims": [], "counts": [1]}, "threshold": NaN}', 422, "threshold"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_body_that_is_no_json_or_deep(ask: Any, body: Any, status: int, message: str) -> None:
    refused(ask.post("/check", content=body, headers=JSON), status, message)


@pytest.mark.parametrize(
    "twice",
    [
        '"where": {"sex": "f"}, "where": {}',
        '"where": {"sex": "f", "sex": "m"}',
        '"merge": {"age": {"x": ["65"], "x": ["66+"]}}',
    ],
)
def test_of_a_name_that_is_given_twice_the_first_is_not_passed_over(ask: Any, twice: str) -> None:
    body = '{"table": {"dims": [], "counts": [50]}, "name": "x", ' + twice + "}"
    for path in ("/check", "/release"):
        refused(ask.post(path, content=body, headers=JSON), 400, "is given twice")
    assert ask.get("/releases").json()["releases"] == []


def test_a_table_is_bounded(ask: Any) -> None:
    labels = list(map(str, range(101)))
    table = {"dims": ["age", "sex"], "categories": {"age": labels, "sex": labels}, "counts": []}
    answered = ask.post("/check", json={"table": table})
    refused(answered, 422, f"a table may have {MOST_CELLS:,} cells, got 10,201")
    long = {"dims": ["age"], "categories": {"age": list(map(str, range(2001)))}, "counts": []}
    refused(ask.post("/check", json={"table": long}), 422, "at most 2000 items")
    wide = {"dims": list(WIDE), "categories": WIDE, "counts": [1]}
    refused(ask.post("/check", json={"table": wide}), 422, "at most 8 items")


def test_a_body_is_bounded(ask: Any) -> None:
    body = json.dumps(by_sex(51, 48)).encode()
    fits = body + b" " * (1_000_000 - len(body))
    assert ask.post("/check", content=fits, headers=JSON).status_code == 200
    refused(ask.post("/check", content=fits + b" ", headers=JSON), 413, "1,000,000 bytes")
    parts = (b" " * 1000 for _ in range(2000))  # of a length that nobody says before
    refused(ask.post("/check", content=parts, headers=JSON), 413, "1,000,000 bytes")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},  # what a page of another site can send unasked
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/jsonx"},
        {"content-type": ""},
        JSON | {"content-encoding": "gzip"},
    ],
)
def test_a_body_is_said_to_be_json(ask: Any, headers: dict) -> None:
    content = json.dumps(by_sex(51, 48))
    refused(ask.post("/check", content=content, headers=headers), 415, "application/json")
    assert ask.post("/check", content=content, headers=JSON | {"accept": "x/y"}).status_code == 200


@pytest.mark.parametrize("host", ["example.org", "example.org:8000", "127.0.0.1.example.org", ""])
def test_it_is_asked_by_the_name_of_this_machine(ask: Any, host: str) -> None:
    """A page whose name is made to mean this machine has its own name as the host."""
    refused(ask.get("/releases", headers={"host": host}), 421, "the host must be one of")
    for good in ("localhost", "LOCALHOST:80", "[::1]", "[::1]:8000", "127.0.0.1"):
        assert ask.get("/health", headers={"host": good}).status_code == 200


def test_other_sites_are_not_let_in(ask: Any) -> None:
    asked = {"origin": "http://example.org", "access-control-request-method": "POST"}
    answered = ask.options("/check", headers=asked)
    refused(answered, 405, "Method Not Allowed")
    assert not [name for name in answered.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/check/x", "/../etc/passwd", "/%00", "/releases?x=1/../"])
def test_other_addresses(ask: Any, path: str) -> None:
    assert ask.get(path).status_code in (404, 405, 200)
    refused(ask.post("/nothing", json={}), 404, "Not Found")
    refused(ask.post("/check/", json={}), 404, "Not Found")
    assert ask.get("/openapi.json").headers["cache-control"] == "no-store"
    refused(ask.delete("/release"), 405, "Method Not Allowed")


def test_nothing_that_is_sent_is_written_down(ask: Any, capfd: Any, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    ask.post("/check", json=by_sex(51, 7654321, threshold=3))
    ask.post("/check", json=by_sex(51, -7654321))
    ask.post("/release", json=by_sex(3, 7654321, name="no"))
    said = "".join(capfd.readouterr()) + caplog.text
    assert "7654321" not in said
    assert b"7654321" not in ask.log.read_bytes()


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["age", "sex", "area", "region", "count", "status", "height"])
LABELS = st.sampled_from(
    ["16-64", "65", "66+", "f", "m", "N1", "N2", "North", "South", "Total", 65]
)


@st.composite
def nearly_right(draw: st.DrawFn) -> dict[str, Any]:
    """A body of the right form about tables of all kinds, right and wrong."""
    dims = draw(st.lists(NAMES, max_size=3, unique=True))
    categories = {name: draw(st.lists(LABELS, min_size=1, max_size=4)) for name in dims}
    size = 1
    for each in categories.values():
        size *= len(each)
    counts = st.none() | st.integers(0, 60) | st.integers()
    body: dict[str, Any] = {
        "table": {
            "dims": dims,
            "categories": categories,
            "counts": draw(st.lists(counts, min_size=size, max_size=size)),
        },
        "where": draw(st.dictionaries(NAMES, LABELS | st.lists(LABELS, max_size=2), max_size=2)),
        "advise": draw(st.booleans()),
    }
    if draw(st.booleans()):
        parts = st.dictionaries(LABELS.map(str), st.lists(LABELS, max_size=3), max_size=2)
        body["merge"] = draw(st.dictionaries(NAMES, parts, max_size=2))
    for key in draw(st.lists(st.sampled_from(["threshold", "values", "total", "x"]), max_size=1)):
        body[key] = draw(ANYTHING)
    return body


def held(answered: Any) -> None:
    assert answered.status_code in (200, 201, 400, 409, 422), answered.text
    found = answered.json()
    if answered.status_code in (400, 422):
        assert set(found) == {"error"}
        assert found["error"]
        assert not any(each in found["error"] for each in INSIDE)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=ANYTHING | nearly_right(), name=SCALARS)
def test_whatever_is_sent_is_answered(ask: Any, body: Any, name: Any) -> None:
    held(ask.post("/check", content=json.dumps(body), headers=JSON))
    if isinstance(body, dict):
        body = json.dumps(body | {"name": name})
        held(ask.post("/release", content=body, headers=JSON))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    bytes_=st.binary(max_size=200),
    place=st.integers(0, 200),
    length=st.integers(0, 20),
)
def test_changed_bytes_are_answered(ask: Any, bytes_: bytes, place: int, length: int) -> None:
    body = json.dumps(by_sex(51, 48, where={"age": "65"}, threshold=10)).encode()
    body = body[:place] + bytes_ + body[place + length :]
    held(ask.post("/check", content=body, headers=JSON))
