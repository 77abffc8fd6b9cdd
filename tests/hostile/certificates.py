"""Certificates: changed texts, whose bounds must be those of the system in the file."""

import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr
from scipy.optimize import Bounds, LinearConstraint, milp

import taciturn as tc
from hostile.kinds import Kind, mutated

__all__ = ["KINDS"]

PIECES = (
    *(b"0", b"1", b"7", b"-1", b"9" * 41, b"9" * 5000, b"1e9", b"0.5", b"NaN", b"null", b"true"),
    *(b'"1/2"', b'"-1"', b'"1/0"', b"[", b"]", b"{}", b"[]", b",", b"[" * 3000, b'"cell": 0, '),
    *(b'"multipliers": [], ', b'"value": null', b'"no table"', b"\n", b"\xff", b"\0", b'"\\ud800"'),
)
_LARGEST = 1e6  # of numbers that an integer program in doubles is asked about


@cache
def certificates() -> list[bytes]:
    """Certificates with limits, without, and with a tree."""
    table = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
    ones = np.isin(np.arange(16), [0, 7, 11, 13, 14]).astype(int).reshape(4 * (2,))
    pairs = ["ab", "ac", "ad", "bc", "bd", "cd"]
    releases = [
        tc.Suppression(table, table < 5),
        tc.Suppression(table - 2, table < 5, totals=["b"]),
        tc.LinkedTables(xr.DataArray(ones, dims=[*"abcd"]), [tuple(pair) for pair in pairs]),
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bounds.json"
        found = []
        for release in releases:
            tc.attack.write_certificate(release, path, overwrite=True, progressbar=False)
            found.append(path.read_bytes())
    return found


def write(folder: Path, random: Random, number: int) -> Path:
    path = folder / "bounds.json"
    path.write_bytes(mutated(random.choice(certificates()), random, PIECES))
    return path


def wrong(path: Path, found: tc.attack.CheckedCertificate) -> str | None:
    """A bound that is called proved and is another one by an integer program."""
    document = json.loads(path.read_bytes())
    limits = [
        np.array([[np.nan if end is None else float(end) for end in ends] for ends in each])
        for each in (
            [(cell["lower"], cell["upper"]) for cell in document["cells"]],
            [(row["least"], row["most"]) for row in document["rows"]],
        )
    ]
    if any(np.nanmax(np.abs(each), initial=0) > _LARGEST for each in limits):
        return None
    cells, rows = (np.where(np.isnan(x), [-np.inf, np.inf], x).T for x in limits)
    matrix = np.zeros((len(document["rows"]), len(document["cells"])))
    for row, given in zip(matrix, document["rows"], strict=True):
        row[given["cells"]] = 1
    sides = [bound["cells"] for bound in document["bounds"] for _ in range(2)]
    for side, inside in zip(found.bounds, sides, strict=True):
        costs = np.zeros(matrix.shape[1])
        costs[inside] = 1 if side.side == "lower" else -1
        limit = milp(
            costs,
            integrality=np.ones(len(costs)),
            bounds=Bounds(*cells),
            constraints=LinearConstraint(matrix, *rows) if len(matrix) else None,
        )
        true = None if limit.fun is None else round(abs(limit.fun)) * int(np.sign(limit.fun))
        if true is not None and side.side == "upper":
            true = -true
        if side.proved and side.value != true:
            return f"{side} is {true}"
    return None


KINDS = (Kind("certificates", write, tc.attack.check_certificate, wrong),)
