"""Stores of studies with changed records: a study that goes on from one gives the
numbers that it gives without, or says that the store is broken.
"""

import json
import os
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import xarray as xr

import taciturn as tc
from hostile.kinds import Kind, mutated
from toys import Refuses, Scripted

__all__ = ["KINDS"]

POPULATION = xr.DataArray([5, 3, 1, 1], dims="cell", coords={"cell": list("abcd")})
ESTIMATORS = {"a": Scripted(cells=(0, 1)), "b": Refuses()}
VALUES = (float("nan"), float("inf"), -1, 0, 1.5, 10**30, None, True, "x", [], {})


def study(store: Path) -> xr.Dataset:
    """A study that continues from a store."""
    settings = {"fractions": [0.2], "samples": 6, "draws": 4, "random_seed": 1, "workers": 1}
    return tc.study(POPULATION, ESTIMATORS, **settings, progressbar=False, store=store)


@cache
def whole() -> tuple[bytes, xr.Dataset]:
    """The store of a study that has ended, and what it gives."""
    with TemporaryDirectory() as folder:
        result = study(Path(folder) / "store")
        return (Path(folder) / "store").read_bytes(), result


def write_store(folder: Path, random: Random, number: int) -> Path:
    """Bytes changed, lines moved or doubled, or a record with another value."""
    content, _ = whole()
    lines = content.splitlines(keepends=True)
    at = random.randrange(1, len(lines))
    if number % 3 == 0:
        content = mutated(content, random, (b"NaN", b"-", b"\n", b"}", b"{}", b"1e400", b"\0"))
    elif number % 3 == 1:
        lines.insert(random.randrange(len(lines) + 1), lines[at])
        content = b"".join(lines if random.random() < 0.5 else lines[:at] + lines[at + 1 :])
    else:
        lines[at] = json.dumps(changed(json.loads(lines[at]), random)).encode() + b"\n"
        content = b"".join(lines)
    path = folder / "store"
    path.write_bytes(content)
    return path


def changed(value: object, random: Random) -> object:
    """The same with one value replaced, or one name missing."""
    if isinstance(value, dict) and value:
        name = random.choice(list(value))
        if random.random() < 0.2:
            return {key: inner for key, inner in value.items() if key != name}
        return {**value, name: changed(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        return [*value[:at], changed(value[at], random), *value[at + 1 :]]
    return random.choice(VALUES)


def read(path: Path) -> xr.Dataset:
    """Go on with the study, without waiting for the disk at every record."""
    fsync, os.fsync = os.fsync, lambda number: None
    try:
        return study(path)
    finally:
        os.fsync = fsync


def wrong_study(path: Path, found: xr.Dataset) -> str | None:
    """What the store made of the study."""
    expected = whole()[1].drop_attrs()
    return None if found.drop_attrs().identical(expected) else "other numbers"


KINDS = (Kind("stores", write_store, read, wrong_study),)
