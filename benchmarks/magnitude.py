"""A magnitude table of ten million records in four variables, with all rules applied.

Run as ``python benchmarks/magnitude.py`` from the root of the repository. Records are
generated and written to a temporary Parquet file, a part at a time; then they are
tabulated, first with every record as its own contributor, then by contributor and
holding, and finally with all margins. ``--csv`` also reads a tenth as many from CSV.
The peak of resident memory is that of the whole process so far."""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import taciturn as tc

SIZES = {"region": 20, "industry": 12, "size": 6, "form": 3}
FIRMS, HOLDINGS = 3_000_000, 1_000_000
PART = 1_000_000
RULES = [
    tc.Dominance(1, 0.75),
    tc.Dominance(2, 0.85),
    tc.PPercent(10),
    tc.magnitude.PQ(10, 50),
    tc.magnitude.MinimumFrequency(3),
    tc.magnitude.EntropyRule(0.5),
]


def part(rng: np.random.Generator, rows: int) -> pa.Table:
    """Some records: turnover is lognormal, so that a few contribute most of it."""
    columns = {
        name: pa.DictionaryArray.from_arrays(
            rng.integers(0, size, rows), [f"{name} {i}" for i in range(size)]
        )
        for name, size in SIZES.items()
    }
    firm = rng.integers(0, FIRMS, rows)
    return pa.table(
        {
            **columns,
            "firm": firm,
            "holding": pa.array(firm % HOLDINGS, mask=firm % 3 > 0),
            "turnover": np.floor(np.exp(rng.normal(5, 3, rows))).astype(np.int64),
        }
    )


def timed(what: str, work: Callable[[], Any]) -> Any:
    """Do something and say how long it took."""
    start = time.perf_counter()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**30 if sys.platform == "darwin" else 2**20
    )
    print(f"{what}: {time.perf_counter() - start:.1f} s, peak {peak:.1f} GB")
    return result


def evaluated(table: Any) -> Any:
    """Everything that is computed for one table."""
    tc.magnitude.protection_levels(table, RULES)
    tc.magnitude.magnitude_risk(table)
    return tc.sensitive_cells(table, RULES)


def main() -> None:
    """Time everything and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--csv", action="store_true")
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "records.parquet")
        writer = None
        for start in range(0, given.records, PART):
            rows = part(rng, min(PART, given.records - start))
            writer = writer or parquet.ParquetWriter(path, rows.schema)
            writer.write_table(rows)
        writer.close()
        print(f"{given.records:,} records, {path.stat().st_size / 1e6:.0f} MB")
        dims = list(SIZES)
        table = timed(
            "each record a contributor", lambda: tc.tabulate_magnitude(path, dims, "turnover")
        )
        found = timed("  all rules", lambda: evaluated(table))
        print(f"  {table['total'].size:,} cells, {float(found['unsafe_share']):.4f} of them unsafe")
        roles = {"contributor": "firm", "holding": "holding"}
        table = timed(
            "by contributor and holding",
            lambda: tc.tabulate_magnitude(path, dims, "turnover", **roles),
        )
        found = timed("  all rules", lambda: evaluated(table))
        print(f"  {table['total'].size:,} cells, {float(found['unsafe_share']):.4f} of them unsafe")
        timed(
            "the same with all 16 margins",
            lambda: tc.magnitude.tabulate_margins(path, dims, "turnover", **roles),
        )
        if given.csv:
            text = Path(folder, "records.csv")
            csv.write_csv(part(rng, given.records // 10), text)
            print(f"{given.records // 10:,} records, {text.stat().st_size / 1e6:.0f} MB")
            timed("CSV", lambda: tc.tabulate_magnitude(text, dims, "turnover", **roles))


if __name__ == "__main__":
    main()
