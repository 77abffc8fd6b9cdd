"""Files of releases: what is read is what they publish, and nothing else."""

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import xarray as xr

import taciturn as tc
from attackers.outsider import read_file
from hostile.kinds import Kind, mutated
from hostile.tables import rows_of
from taciturn.publication.release_file import release_bytes

__all__ = ["KINDS"]

TABLE = xr.DataArray(
    [[12, 1, 10], [8, 19, 2]],
    dims=("area", "sort"),
    coords={"area": ["A", "B"], "sort": ["x", "y", "z"]},
    name="count",
)
OTHERS = (*TABLE.dims, "status", "lower", "upper")
PIECES = (
    *(b",", b'"', b"\n", b"", b"null", b"[", b"]", b"{", b"}", b":", b"1", b"12", b"-1", b"1.0"),
    *(b"published", b"suppressed", b"primary", b"Total", b"A,x,", b'"0":', b"NaN", b"1e999"),
)


def written(ending: str) -> Any:
    """How a case of a format is written."""

    def write(folder: Path, random: Random, number: int) -> Path:
        path = folder / f"release{ending}"
        hidden = TABLE < 9
        release = tc.Suppression(TABLE, hidden, totals=random.choice((True, False, ["area"])))
        tc.write_release(release, path)
        path.write_bytes(mutated(path.read_bytes(), random, PIECES))
        return path

    return write


@cache
def with_intervals() -> bytes:
    """A file in which suppressed cells have intervals."""
    pattern = tc.suppress(TABLE, TABLE < 3, random_seed=0, progressbar=False)
    return release_bytes(pattern, ".csv", intervals=True)


def write_intervals(folder: Path, random: Random, number: int) -> Path:
    """The same with changes."""
    path = folder / "release.csv"
    path.write_bytes(mutated(with_intervals(), random, PIECES))
    return path


def read(path: Path) -> Any:
    """The release in a file."""
    return tc.publication.read_release(path, TABLE)


def wrong(path: Path, found: Any) -> str | None:
    """The first cell that is not as the file has it."""
    if path.suffix == ".csv":
        header, rows = rows_of(path)
        value = next(at for at, name in enumerate(header) if name not in OTHERS)
        expected = {
            frozenset(
                (name, row[header.index(name)])
                for name in TABLE.dims
                if name in header and row[header.index(name)] != "Total"
            ): (float(row[value]) if row[value].strip() else None)
            for row in rows
        }
    else:
        expected = {cell.labels: cell.value for cell in read_file(path)}
    if isinstance(found, xr.DataArray):
        cells = {
            frozenset(
                (dim, str(found[dim].values[at])) for dim, at in zip(found.dims, i, strict=True)
            ): float(found.values[i])
            for i in [(a, b) for a in range(2) for b in range(3)]
        }
    else:
        with tempfile.TemporaryDirectory() as folder:
            tc.write_release(found, Path(folder) / "again.csv")
            cells = {cell.labels: cell.value for cell in read_file(Path(folder) / "again.csv")}
    return None if cells == expected else f"{cells} is not {expected}"


KINDS = (
    Kind("releases, CSV", written(".csv"), read, wrong),
    Kind("releases with intervals, CSV", write_intervals, read, wrong),
    Kind("releases, JSON-stat", written(".json"), read, wrong),
)
