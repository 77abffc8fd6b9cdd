"""From records in a Parquet file to the tables of all areas: seconds and peak memory,
beside pandas and DuckDB by themselves.

Run as ``python benchmarks/tabulation.py``; ``--records`` and ``--areas`` for others.
Each way runs in a process of its own, one after the other; times include imports and
are those of this machine."""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ["area", "age", "status", "origin"]


def parquet(path: str) -> Any:
    import taciturn as tc

    return tc.tabulate(path, NAMES)


def relation(path: str) -> Any:
    import duckdb

    import taciturn as tc

    return tc.tabulate(duckdb.read_parquet(path), NAMES)


def ibis_table(path: str) -> Any:
    import ibis

    import taciturn as tc

    return tc.tabulate(ibis.read_parquet(path), NAMES)


def pandas_groups(path: str) -> Any:
    import pandas as pd

    people = pd.read_parquet(path, columns=NAMES)
    return people.groupby(NAMES).size().to_xarray().fillna(0).astype(int)


def duckdb_groups(path: str) -> Any:
    import duckdb

    groups = duckdb.read_parquet(path).aggregate("area, age, status, origin, count(*) AS n").df()
    return groups.set_index(NAMES)["n"].to_xarray().fillna(0).astype(int)


WAYS: dict[str, Callable[[str], Any]] = {
    "`tabulate` of the file": parquet,
    "`tabulate` of a relation of DuckDB": relation,
    "`tabulate` of a table of Ibis (DuckDB)": ibis_table,
    "pandas: `read_parquet`, `groupby`": pandas_groups,
    "DuckDB by itself": duckdb_groups,
}


def main() -> None:
    """Write the records, measure each way, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--areas", type=int, default=10_000)
    parser.add_argument("--only", nargs=2, metavar=("WAY", "FILE"))
    given = parser.parse_args()
    if given.only:
        start = time.perf_counter()
        table = WAYS[given.only[0]](given.only[1])
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([seconds, peak, int(table.sum()), int((table**2).sum())]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "people.parquet")
        write(path, given.records, given.areas)
        print("| way | seconds | peak, GB |\n|---|---:|---:|")
        sums = set()
        for way in WAYS:
            command = [sys.executable, __file__, "--only", way, path]
            out = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, peak, *found = json.loads(out.stdout.splitlines()[-1])
            sums.add(tuple(found))
            print(f"| {way} | {seconds:.1f} | {peak:.2f} |", flush=True)
        assert len(sums) == 1, sums


def write(path: str, records: int, areas: int) -> None:
    """Uniform records, a million at a time."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet as files

    rng, writer = np.random.default_rng(1), None
    for start in range(0, records, 1_000_000):
        size = min(1_000_000, records - start)
        number = np.char.zfill(rng.integers(0, areas, size).astype(str), 5)
        part = pa.table(
            {
                "area": pa.array(np.char.add("E", number)),
                "age": pa.array(rng.integers(0, 10, size)),
                "status": pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, size)]),
                "origin": pa.array(np.array(["x", "y", "z"])[rng.integers(0, 3, size)]),
                "weight": pa.array(rng.random(size)),
            }
        )
        writer = writer or files.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


if __name__ == "__main__":
    main()
