"""What the service answers, from the log; worked out in a process of its own."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, Literal, NamedTuple

import pandas as pd

from taciturn.errors import FileFormatError, ParameterError, TaciturnError
from taciturn.release_log import ReleaseLog, Verdict
from taciturn.release_log.mechanisms import mechanism_of

__all__ = ["NO_LOG", "Answer", "Kind", "answer"]

type Kind = Literal["check", "release", "releases"]

_TRIES: Final = 5  # while others release, too


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    content: dict[str, Any]


NO_LOG: Final = Answer(503, {"error": "the release log cannot be read or written at present"})


def answer(log: ReleaseLog, kind: Kind, asked: Mapping[str, Any]) -> Answer:
    """Do what is asked. An error is what `check` says of it, and nothing else: neither
    paths nor anything of the program.
    """
    try:
        return _KINDS[kind](log, asked)
    except FileFormatError:
        return NO_LOG
    except TaciturnError as error:
        return Answer(422, {"error": str(error)})


def _check(log: ReleaseLog, asked: Mapping[str, Any]) -> Answer:
    return Answer(200, _as_json(_checked(log, asked, _table(asked))))


def _release(log: ReleaseLog, asked: Mapping[str, Any]) -> Answer:
    """Add the table if it can be released, unless that was done."""
    table, defined = _table(asked), _defined(asked)
    named = {"name": asked["name"], "protection": asked["protection"]}
    for _ in range(_TRIES):
        try:
            number = log.number_of(table, **named, **defined)
        except ParameterError as error:
            if asked["name"] not in set(log.releases["name"]):
                raise
            return Answer(409, {"error": str(error)})
        if number is not None:
            return Answer(200, _number(log, asked, number, added=False))
        verdict = _checked(log, asked, table)
        if not verdict.passed:
            refused = {"error": "not released: see the verdict", "verdict": _as_json(verdict)}
            return Answer(409, refused)
        try:
            number = log.add(table, **named, **defined, after=verdict)
        except ParameterError:  # somebody else released meanwhile
            continue
        found = _number(log, asked, number, added=True)
        return Answer(201, found | {"verdict": _as_json(verdict)})
    return Answer(503, {"error": f"others released {_TRIES} times meanwhile: ask again"})


def _number(
    log: ReleaseLog, asked: Mapping[str, Any], number: int, *, added: bool
) -> dict[str, Any]:
    return {"log": log.id, "number": number, "name": asked["name"], "added": added}


def _releases(log: ReleaseLog, asked: Mapping[str, Any]) -> Answer:
    rows = log.releases
    return Answer(
        200,
        {
            "log": log.id,
            "releases": [
                {
                    "number": int(number),
                    "name": row["name"],
                    "added": f"{row['added']:%Y-%m-%dT%H:%M:%SZ}",
                    "protection": row["protection"],
                }
                for number, row in zip(rows.index, rows.to_dict("records"), strict=True)
            ],
        },
    )


_KINDS: Final[Mapping[str, Callable[[ReleaseLog, Mapping[str, Any]], Answer]]] = {
    "check": _check,
    "release": _release,
    "releases": _releases,
}


def _table(asked: Mapping[str, Any]) -> "pd.Series[Any] | pd.DataFrame":
    """The table as `check` takes it: a row a cell, so that some can be totals."""
    dims, categories, counts = (asked["table"][part] for part in ("dims", "categories", "counts"))
    if not dims:
        return pd.DataFrame({"count": pd.Series(counts, dtype=object)})
    cells = list(product(*(categories[name] for name in dims)))
    index = pd.MultiIndex.from_tuples(cells, names=dims)
    return pd.Series(counts, index=index, dtype=object)


def _checked(log: ReleaseLog, asked: Mapping[str, Any], table: Any) -> Verdict:
    limits = {name: asked[name] for name in ("threshold", "values", "certainty", "advise")}
    return log.check(table, **_defined(asked), **limits, progressbar=False)


def _defined(asked: Mapping[str, Any]) -> dict[str, Any]:
    """How the table was made and perturbed."""
    given = asked["mechanism"]
    mechanism = None if given is None else mechanism_of(given)
    return {name: asked[name] for name in ("where", "merge", "total", "keys")} | {
        "mechanism": mechanism
    }


def _as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict in plain types."""
    return {
        "log": verdict.log,
        "passed": verdict.passed,
        "complete": verdict.complete,
        "threshold": verdict.threshold,
        "values": verdict.values,
        "findings": [
            {
                "cell": each.who,
                "taken": {name: list(map(str, labels)) for name, labels in each.taken.items()},
                "lower": each.lower,
                "upper": each.upper,
                "lower_before": each.before[0],
                "upper_before": each.before[1],
                "releases": [verdict.names[release] for release in each.releases],
                "smallest": each.smallest,
            }
            for each in verdict.findings
        ],
        "certainty": verdict.certainty,
        "likely": [
            {
                "cell": each.who,
                "taken": {name: list(map(str, labels)) for name, labels in each.taken.items()},
                "values": list(each.likely),
                "probability": each.probability,
                "probability_before": each.before,
                "entropy": each.entropy,
                "lower": each.lower,
                "upper": each.upper,
                "releases": [verdict.names[release] for release in each.releases],
            }
            for each in verdict.likely
        ],
        "further": verdict.further,
        "advice": [{"kind": each.kind, "what": each.what} for each in verdict.advice],
        "not_combined": list(verdict.not_combined),
        "text": verdict.lines(),
    }
