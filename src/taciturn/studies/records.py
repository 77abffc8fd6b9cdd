"""Records of a study that were read from a file: whether they can be what this study
has written.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from taciturn.errors import FileFormatError
from taciturn.fits.unlabelled import MEASURES
from taciturn.studies.jobs import Job, problem_and_truth
from taciturn.validate import is_real

__all__ = ["check_records"]

_FIELDS: Final = {"estimator", "size", "sample", "truth"}
_OF_A_FIT: Final = {"mean", "interval", "converged"}
_ROUNDING: Final = 1e-9  # another machine may compute other last digits


def check_records(
    name: str, records: Sequence[dict[str, Any]], job: Job, sizes: Collection[int]
) -> None:
    """Raise `FileFormatError` unless these are records of this study; `name` is the
    file they are from.

    Each sample is drawn again, and its risk compared.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line, record in enumerate(records, start=2):
        flaw = _flaw(record, job, sizes)
        if flaw is None:
            key = (record["estimator"], record["size"], record["sample"])
            if found.setdefault(key, record) != record:
                flaw = "has other numbers than an earlier line of the same sample and estimator"
        if flaw:
            raise FileFormatError(f"{name}: line {line} {flaw}; give another name")
    truths: dict[tuple[int, int], Any] = {}
    for record in records:
        size, sample = drawn = record["size"], record["sample"]
        if drawn not in truths:
            _, truths[drawn] = problem_and_truth(replace(job, size=size, sample=sample))
        if not np.allclose(record["truth"], truths[drawn], rtol=_ROUNDING, atol=_ROUNDING):
            raise FileFormatError(
                f"{name}: sample {sample} of {size} has another risk than a record of it; give"
                " another name"
            )


def _flaw(record: dict[str, Any], job: Job, sizes: Collection[int]) -> str | None:
    """What this study would not have written."""
    result = {"failure"} if "failure" in record else _OF_A_FIT
    if missing := sorted((_FIELDS | result) - set(record)):
        return f"has no {missing[0]!r}"
    if unknown := sorted(set(record) - _FIELDS - result):
        return f"has {unknown[0]!r}, which no record has"
    if not isinstance(record["estimator"], str) or record["estimator"] not in job.estimators:
        return "is of an estimator that is not in the study"
    if type(record["size"]) is not int or record["size"] not in sizes:
        return "is of a sample size that is not in the study"
    if type(record["sample"]) is not int or record["sample"] < 0:
        return "must have a whole number of at least 0 as 'sample'"
    rows: dict[str, Any] = {"truth": record["truth"]}
    if "failure" not in record:
        ends = record["interval"]
        if not _is_list(ends) or not all(isinstance(end, list) and len(end) == 2 for end in ends):
            return f"must have {len(MEASURES)} pairs of numbers as 'interval'"
        rows |= {"mean": record["mean"], "interval": [low for low, _ in ends]}
        rows |= {"interval, upper end": [high for _, high in ends]}
    for field, row in rows.items():
        if not _is_list(row) or not all(is_real(value) and value >= -_ROUNDING for value in row):
            return f"must have {len(MEASURES)} finite numbers of at least 0 as {field!r}"
    if "failure" in record:
        return None if isinstance(record["failure"], str) else "must have text as 'failure'"
    if any(low > high for low, high in record["interval"]):
        return "has an interval that ends before it begins"
    return (
        None if isinstance(record["converged"], bool) else "must have true or false as 'converged'"
    )


def _is_list(row: Any) -> bool:
    return isinstance(row, list) and len(row) == len(MEASURES)
