"""Certificates of the bounds of suppressed and linked tables: how long it takes to find
the bounds, to write them with their proofs and to check these, and how large the files
are.

Run as ``python benchmarks/certificates.py`` from the root of the repository, a minute;
the result is ``docs/how-to/_certificates.md``."""

import json
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "studies"))

from default_estimator import joined, write

import taciturn as tc
from suppression import machine
from taciturn.attack.releases.base import Release

FRAGMENT = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "_certificates.md"


def counts(*sizes: int) -> xr.DataArray:
    """Counts, of which many are small."""
    rng = np.random.default_rng(1)
    return xr.DataArray(rng.poisson(rng.gamma(0.5, 20, sizes)), dims=[*"abc"[: len(sizes)]])


def suppressed(*sizes: int) -> Release:
    """A table without its counts below 3, and others that protect these."""
    table = counts(*sizes)
    return tc.suppress(table, table < 3, time_limit=20, progressbar=False).release


def linked(*sizes: int) -> Release:
    """All pairs of variables."""
    table = counts(*sizes)
    return tc.LinkedTables(table, list(combinations(table.dims, 2)))


TABLES: dict[str, Callable[[], Release]] = {
    "20 x 20, suppressed": lambda: suppressed(20, 20),
    "60 x 40, suppressed": lambda: suppressed(60, 40),
    "6 x 6 x 6, pairs of variables": lambda: linked(6, 6, 6),
    "10 x 10 x 8, pairs of variables": lambda: linked(10, 10, 8),
}


def main() -> None:
    """Time each table, and write the results."""
    head = ["table", "bounds", "`attacker_bounds`, s", "to write, s", "to check, s", "kB"]
    head += ["tables", "not proved"]
    lines = [f"{machine()}.", "", joined(head), joined(["---", *["---:"] * 7])]
    for name, make in TABLES.items():
        lines.append(joined([name, *measured(make())]))
        print(lines[-1], flush=True)
    write(FRAGMENT, "\n".join(lines) + "\n")


def measured(release: Release) -> list[str]:
    """The numbers of one release."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "bounds.json")
        times = [time.process_time()]
        tc.attacker_bounds(release, progressbar=False)
        times.append(time.process_time())
        tc.attack.write_certificate(release, path, progressbar=False)
        times.append(time.process_time())
        checked = tc.attack.check_certificate(path)
        times.append(time.process_time())
        tables = len(json.loads(path.read_text(encoding="utf-8"))["tables"])
        size = path.stat().st_size / 1000
    seconds = [f"{spent:.2f}" for spent in np.diff(times)]
    return [
        f"{len(checked.bounds):,}",
        *seconds,
        f"{size:,.0f}",
        f"{tables:,}",
        f"{len(checked.not_proved):,}",
    ]


if __name__ == "__main__":
    main()
