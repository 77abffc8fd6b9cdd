"""A model card from a TOML file and back; every field is checked and none is run."""

import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Final

from taciturn.cards.card import COLUMNS, Calibration, Card, CardTable, Run
from taciturn.cards.toml import Fields, read_toml
from taciturn.errors import FileFormatError, ParameterError
from taciturn.estimators import ESTIMATORS, Estimator, estimator_from_spec
from taciturn.schema import MAX_COUNT, RISK_MEASURES
from taciturn.tables.datasets import DATASETS
from taciturn.validate import check_weights

__all__ = ["card_content", "load_card"]

FORMAT_VERSION: Final = 1

_CHECKS: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9]*_)?(k_hat|ess|r_hat|ess_bulk|ess_tail|divergences)"
)
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TESTS: Final = ("chi_square", "kolmogorov_smirnov")
_METHODS: Final = ("fast", "nuts")
_MOST_DRAWS: Final = 10**6
_LARGEST_SEED: Final = 2**63 - 1
_LARGEST: Final = sys.float_info.max
_NOT_GIVEN: Final = "not_given"
"""Lists the arguments that are None, for which TOML has no word."""


def load_card(path: str | PathLike[str]) -> Card:
    """Read a model card.

    The file is data: it can name the estimators and priors of this package and nothing
    else. Its table is read on request.

    Parameters
    ----------
    path : path
        A TOML file of at most 64 KiB.

    Returns
    -------
    Card
        ``card.estimator.fit(sample, population_size=N)`` fits its estimator to another
        table.

    Raises
    ------
    FileFormatError
        The file is missing, not UTF-8 or not TOML, or has another format version; a
        field is missing, unknown, of the wrong type or out of its range; an unknown
        estimator or prior. The message names the file and the field.

    Examples
    --------
    >>> import taciturn as tc
    >>> card = tc.cards.load_card("models/area_by_religion-DirichletLogLinear.toml")
    >>> card.estimator, card.table.population_size
    (DirichletLogLinear(), 2449)
    """
    path = Path(path)
    found = read_toml(path)
    found.whole("format_version", least=FORMAT_VERSION, most=FORMAT_VERSION)
    command = found.text("command")
    weights = _weights(found)
    estimator = _estimator(found)
    table = _table(found.table("table"), found.table("sample"))
    fit, reference = _run(found.table("fit")), _run(found.table("reference"))
    if set(fit.summary) != set(reference.summary):
        odd = ", ".join(sorted(set(fit.summary) ^ set(reference.summary)))
        raise found.error(
            "fit.summary",
            f"and reference.summary must have the same quantities, only one has {odd}",
        )
    calibration = _calibration(found.table("calibration"))
    named = found.table("versions")
    versions = {name: named.text(name) for name in named.remaining()}
    found.end()
    return Card(estimator, table, weights, fit, reference, calibration, versions, command, path)


def card_content(card: Card) -> dict[str, Any]:
    """A card as the tables of its file."""
    of = card.table
    source = {"dataset": of.dataset} if of.dataset is not None else {"file": of.file}
    drawn = {} if of.fraction is None else {"fraction": of.fraction, "random_seed": of.random_seed}
    counts = {"known_counts": list(of.known_counts)} if of.known_counts else {}
    calibration = card.calibration
    return {
        "format_version": FORMAT_VERSION,
        "command": card.command,
        "weights": list(card.weights),
        "estimator": _given(card.spec),
        "table": {
            **source,
            "citation": of.citation,
            **({} if of.hash is None else {"hash": of.hash}),
            "population_size": of.population_size,
            "structural_zeros": [list(cell) for cell in of.structural_zeros],
            "known_margins": list(of.known_margins),
            **counts,
        },
        "sample": {
            **drawn,
            "size": of.sample_size,
            **({} if of.sample_hash is None else {"hash": of.sample_hash}),
        },
        **{
            name: {
                **run.settings,
                "sampler": run.sampler,
                "checks": run.checks,
                "summary": run.summary,
            }
            for name, run in (("reference", card.reference), ("fit", card.fit))
        },
        "calibration": (
            {"reason": calibration.reason}
            if calibration.reason is not None
            else {**calibration.settings, "p_values": calibration.p_values}
        ),
        "versions": card.versions,
    }


def _given(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without the arguments that are None, whose names are listed."""
    given = {name: value for name, value in spec.items() if value is not None}
    if "members" in given:
        given["members"] = {name: _given(member) for name, member in given["members"].items()}
    absent = [name for name, value in spec.items() if value is None]
    return {**given, _NOT_GIVEN: absent} if absent else given


def _estimator(found: Fields) -> Estimator:
    spec = found.plain("estimator")
    try:
        return estimator_from_spec(_all_given(spec))
    except FileFormatError as error:
        raise found.error("estimator", f"cannot be used: {error}") from error


def _all_given(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of `_given`; each argument must be given or listed as not given."""
    given = dict(spec)
    absent = given.pop(_NOT_GIVEN, [])
    name = given.get("estimator")
    cls = ESTIMATORS.get(name) if isinstance(name, str) else None
    if cls is None:
        return given
    arguments = [argument.name for argument in fields(cls)]  # type: ignore[arg-type]
    wrong = not isinstance(absent, list) or any(
        argument not in arguments or argument in given for argument in absent
    )
    if wrong:
        raise FileFormatError(
            f"{_NOT_GIVEN} must list arguments of {name} that are given nowhere else, got"
            f" {absent!r}"
        )
    missing = [
        argument for argument in arguments if argument not in given and argument not in absent
    ]
    if missing:
        raise FileFormatError(
            f"the argument {missing[0]!r} of {name} is missing; list it in {_NOT_GIVEN} if it is"
            " None"
        )
    members = given.get("members")
    if isinstance(members, Mapping):
        given["members"] = {
            key: _all_given(member) if isinstance(member, Mapping) else member
            for key, member in members.items()
        }
    return {**given, **dict.fromkeys(absent)}


def _weights(found: Fields) -> tuple[float, float, float]:
    values = found.values("weights")
    try:
        return check_weights(values)
    except ParameterError as error:
        raise found.error("weights", f"cannot be used: {error}") from error


def _table(table: Fields, sample: Fields) -> CardTable:
    dataset = table.text("dataset", DATASETS) if "dataset" in table else None
    file = None if dataset is not None else _file(table)
    drawn = "fraction" in sample or "random_seed" in sample
    known = tuple(_names(table, "known_margins"))
    hashed = dataset is not None or "hash" in table
    described = CardTable(
        dataset=dataset,
        file=file,
        citation=table.text("citation"),
        hash=_hash(table) if hashed else None,
        fraction=sample.number("fraction", least=0, most=1) if drawn else None,
        random_seed=sample.whole("random_seed", most=_LARGEST_SEED) if drawn else None,
        sample_size=sample.whole("size", least=1),
        sample_hash=_hash(sample) if hashed else None,
        population_size=table.whole("population_size", least=1),
        structural_zeros=tuple(_cell(table, cell) for cell in table.values("structural_zeros")),
        known_margins=known,
        known_counts=_counts(table) if known and not drawn else (),
    )
    if described.sample_size > described.population_size:
        raise sample.error(
            "size",
            f"is {described.sample_size}, more than the population's {described.population_size}",
        )
    if described.known_counts and sum(described.known_counts) != described.population_size:
        raise table.error(
            "known_counts",
            f"sum to {sum(described.known_counts)}, not to {described.population_size}, the"
            " population",
        )
    table.end()
    sample.end()
    return described


def _file(table: Fields) -> str:
    file = table.text("file")
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file or ":" in file:
        raise table.error(
            "file",
            f"must lie in the folder of the card or below, as in 'tables/a.csv'; got {file!r}",
        )
    return file


def _hash(found: Fields) -> str:
    text = found.text("hash")
    if not _HASH.fullmatch(text):
        raise found.error("hash", f"must be 'sha256:' and 64 hexadecimal digits, got {text[:80]!r}")
    return text


def _cell(table: Fields, cell: Any) -> tuple[Any, ...]:
    if not isinstance(cell, list) or not all(
        isinstance(label, str | int | float) for label in cell
    ):
        raise table.error(
            "structural_zeros", f"must list cells, each a list of labels; got {cell!r}"
        )
    return tuple(cell)


def _names(table: Fields, field: str) -> list[str]:
    names = table.values(field)
    if not all(isinstance(name, str) for name in names):
        raise table.error(field, f"must list names of variables, got {names!r}")
    return names


def _counts(table: Fields) -> tuple[int, ...]:
    """The known margins of a sample that is the table itself."""
    counts = table.values("known_counts")
    wrong = [count for count in counts if type(count) is not int or not 0 <= count <= MAX_COUNT]
    if wrong or not counts:
        got = repr(wrong[0])[:80] if wrong else "none"
        raise table.error(
            "known_counts", f"must list whole numbers from 0 to {MAX_COUNT}, got {got}"
        )
    return tuple(counts)


def _run(found: Fields) -> Run:
    checks = found.table("checks")
    summary = found.table("summary")
    rows = {
        name: _row(summary.table(name))
        for name in dict.fromkeys((*RISK_MEASURES, *summary.remaining()))
    }
    run = Run(
        draws=found.whole("draws", least=1, most=_MOST_DRAWS),
        tune=found.whole("tune", least=1, most=_MOST_DRAWS),
        chains=found.whole("chains", least=1, most=_MOST_DRAWS),
        random_seed=found.whole("random_seed", most=_LARGEST_SEED),
        method=found.text("method", _METHODS),
        sampler=found.text("sampler"),
        checks={name: _check(checks, name) for name in checks.remaining()},
        summary=rows,
    )
    unknown = [name for name in run.checks if not _CHECKS.fullmatch(name)]
    if unknown:
        raise checks.error(
            unknown[0],
            "is not a diagnostic: there are k_hat, ess, r_hat, ess_bulk, ess_tail, divergences",
        )
    if run.draws * run.chains > _MOST_DRAWS:
        raise found.error(
            "draws",
            f"times chains must be at most {_MOST_DRAWS}, got {run.draws} times {run.chains}",
        )
    found.end()
    return run


def _check(found: Fields, name: str) -> float:
    if name.endswith("divergences"):
        return found.whole(name)
    return found.number(name, least=-_LARGEST, most=_LARGEST)


def _row(found: Fields) -> dict[str, float]:
    least = {"sd": 0.0, "mcse": 0.0}
    row = {
        name: found.number(name, least=least.get(name, -_LARGEST), most=_LARGEST)
        for name in COLUMNS
    }
    found.end()
    if not row["2.5%"] <= row["50%"] <= row["97.5%"]:
        raise found.error("50%", f"must lie between the other quantiles, got {row}")
    return row


def _calibration(found: Fields) -> Calibration:
    if "reason" in found:
        reason = found.text("reason")
        found.end()
        return Calibration(reason)
    numbers = ("sample_size", "population_size", "simulations", "draws", "thin", "bins")
    settings: dict[str, Any] = {name: found.whole(name, least=1) for name in numbers}
    if "known_margins" in found:
        settings["known_margins"] = _names(found, "known_margins")
    settings["method"] = found.text("method", _METHODS)
    settings["random_seed"] = found.whole("random_seed", most=_LARGEST_SEED)
    settings["version"] = found.text("version")
    settings["failures"] = found.whole("failures", most=settings["simulations"])
    quantities = found.table("p_values")
    p_values = {}
    for name in quantities.remaining():
        tests = quantities.table(name)
        p_values[name] = {test: tests.number(test, least=0, most=1) for test in _TESTS}
        tests.end()
    if not p_values:
        raise found.error("p_values", "must have at least one quantity")
    found.end()
    return Calibration(None, settings, p_values)
