"""What a study finds of each sample, kept in a file, so that it can be interrupted."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import joblib
import pandas as pd

from taciturn import __version__
from taciturn.store import Store

type Rows = list[dict[str, Any]]


class Job(Protocol):
    """One sample of a table, as a named tuple."""

    @property
    def table(self) -> str:
        """Name of the population."""

    def _asdict(self) -> dict[str, Any]: ...


class Sample(NamedTuple):
    """One sample of a population, or of one of a kind."""

    table: str
    fraction: float
    number: int


def samples_of(given: Namespace, tables: Iterable[str], fractions: Sequence[float]) -> list[Sample]:
    """Those of the tables that were asked for, as many as were asked for."""
    found = [
        Sample(name, fraction, number)
        for name in tables
        if not given.tables or any(part in name for part in given.tables)
        for fraction in fractions
        for number in range(given.samples)
    ]
    if not found:
        sys.exit(f"no table name contains any of {given.tables}")
    return found


def rows_of[Table, OneJob: Job](
    given: Namespace,
    name: str,
    one: Callable[[Table, OneJob, int, int], Rows],
    jobs: Sequence[OneJob],
    tables: Mapping[str, Table],
) -> pd.DataFrame:
    """The rows that `one` makes of each job, given its table, the seed and the number
    of draws; what is in the file already is not done again.
    """
    given.store.mkdir(parents=True, exist_ok=True)
    header = {"seed": given.seed, "draws": given.draws, "version": __version__}
    with Store(given.store / name, header) as kept:
        done = {tuple(record["job"].values()): record["rows"] for record in kept.records}
        left = [job for job in jobs if tuple(job._asdict().values()) not in done]
        work = (
            joblib.delayed(one)(tables[job.table], job, given.seed, given.draws) for job in left
        )
        found = joblib.Parallel(n_jobs=given.workers or -1, verbose=1, return_as="generator")(work)
        for job, rows in zip(left, found, strict=True):
            kept.add({"job": job._asdict(), "rows": rows})
            done[tuple(job._asdict().values())] = rows
    return pd.DataFrame(
        [{**job._asdict(), **row} for job in jobs for row in done[tuple(job._asdict().values())]]
    )
