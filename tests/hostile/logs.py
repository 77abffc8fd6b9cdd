"""Release logs of others with changed mechanisms: they are read as data, or refused."""

import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import xarray as xr

import taciturn as tc
from hostile.kinds import Kind, mutated

__all__ = ["KINDS"]

PIECES = (
    *(b'"', b"null", b"true", b"[", b"]", b"{", b"}", b":", b",", b"3", b"-1", b"0.5", b"1e999"),
    *(b"NaN", b'"name"', b'"base"', b"__import__('os')", b"!!python/object", b"cos\nsystem\n"),
    *(b'"geometric-noise"', b'"cell-keys"', b'"epsilon"', b"99999999999999999999"),
)


@cache
def whole() -> bytes:
    """A log of three perturbed tables."""
    with TemporaryDirectory() as folder:
        log = tc.ReleaseLog(Path(folder) / "log.duckdb", variables={"sex": ["f", "m"]})
        for mechanism in (
            tc.attack.RandomRounding(3),
            tc.attack.CellKeys(tc.perturbation.perturbation_table(1, 0.5)),
            tc.attack.GeometricNoise(epsilon=1.0),
        ):
            counts = xr.DataArray([12, 30], dims="sex", coords={"sex": ["f", "m"]})
            log.add(counts, mechanism=mechanism)
        return log.path.read_bytes()


def write_log(folder: Path, random: Random, number: int) -> Path:
    """One of its mechanisms, or what it released, with changes."""
    path = folder / "log.duckdb"
    path.write_bytes(whole())
    release = random.randint(1, 3)
    with duckdb.connect(str(path)) as connection:
        found = connection.execute("SELECT noise FROM tables WHERE release = ?", [release])
        text = mutated(found.fetchone()[0].encode(), random, PIECES).decode(errors="replace")
        values = [random.choice((12, 30, 0, -1, -5, 3, 2**62, None)) for _ in range(2)]
        change = ("noise", text.replace("\0", "")) if number % 4 else ("released", [values])
        connection.execute(
            f"UPDATE tables SET {change[0]} = ? WHERE release = ?", [change[1], release]
        )
    return path


def read(path: Path) -> Any:
    """The tables, with what was read of them by another parser."""
    log = tc.ReleaseLog(path)
    tables = log._database.tables()
    log.check(xr.DataArray(42), progressbar=False, advise=False)
    return tables


def wrong(path: Path, found: Any) -> str | None:
    """The first mechanism that is not as the file has it."""
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute("SELECT noise, released FROM tables ORDER BY release").fetchall()
    for (text, released), (_, table) in zip(rows, found, strict=True):
        if json.loads(text) != json.loads(json.dumps(table.noise.as_json())):
            return f"{table.noise.as_json()} is not {text}"
        if not np.array_equal(np.array(released), table.noise.released):
            return f"{table.noise.released} is not {released}"
    return None


KINDS = (Kind("mechanisms in logs", write_log, read, wrong),)
