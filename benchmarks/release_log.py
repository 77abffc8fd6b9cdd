"""Checks against a log of many releases: seconds, memory, and whether planted
differencing attacks are found.

Run as ``python benchmarks/release_log.py``; ``--releases``, ``--records`` for others.
Records are generated: nine variables, correlated by one latent number. Half of the
releases select records by one category of a further variable or a run of them; cells
below 10 are suppressed. Then, one after the other:

- tables of the same kind are checked;
- attacks of 2, 5, 10 and 20 releases: the total over some areas of people of one age
  and one income, which no other release has, then the areas one by one. Each count is
  large but for that of one area, which is not released. All tables but the last are
  logged; the last is checked.

Times are those of this machine; the verdict alone, without advice. The walk among
tables is compiled before, which takes some seconds once after installing."""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import taciturn as tc

SIZES = {
    "area": 50,
    "sex": 2,
    "age": 17,
    "work": 8,
    "tenure": 4,
    "health": 5,
    "birth": 12,
    "school": 6,
    "income": 10,
}
ATTACKED = "income"  # which no other release has, so that nothing of it is known before
THRESHOLD = 10
ATTACKS = 5


def people(number: int, generator: np.random.Generator) -> pd.DataFrame:
    """Records whose variables depend on one latent number."""
    latent = generator.normal(size=number)
    columns = {}
    for name, size in SIZES.items():
        own = 0.4 * latent + np.sqrt(1 - 0.4**2) * generator.normal(size=number)
        cuts = np.quantile(own, np.cumsum(generator.dirichlet(np.full(size, 3.0)))[:-1])
        labels = [f"{name}{i}" for i in range(size)]
        columns[name] = pd.Categorical.from_codes(np.searchsorted(cuts, own), labels)
    return pd.DataFrame(columns)


def query(
    records: pd.DataFrame, generator: np.random.Generator
) -> tuple[pd.Series, dict[str, list[str]]]:
    """A table over one to three variables, with its filter."""
    names = [name for name in SIZES if name != ATTACKED]
    size = int(generator.choice([1, 2, 3], p=[0.2, 0.5, 0.3]))
    kept = list(generator.choice(names, size, replace=False))
    where: dict[str, list[str]] = {}
    if generator.random() < 0.5:
        name = str(generator.choice([each for each in names if each not in kept]))
        labels = list(records[name].cat.categories)
        first = int(generator.integers(len(labels)))
        run = 1 if generator.random() < 0.5 else int(generator.integers(1, len(labels)))
        where[name] = labels[first : first + run]
        records = records[records[name].isin(where[name])]
    counts = records.groupby(kept, observed=False).size().astype(float)
    return counts.mask(counts.between(1, THRESHOLD - 1)), where


def planted(
    records: pd.DataFrame, parts: int, generator: np.random.Generator, used: set[Any]
) -> tuple[list[tuple[int, dict[str, list[str]]]], int]:
    """The total over some areas, and the areas one by one but for one with a small
    count that no attack was after before: each count is large.
    """
    found = []
    counts = records.groupby([ATTACKED, "age", "area"], observed=False).size().unstack("area")
    for key, row in counts.iterrows():
        large = row[row >= THRESHOLD].nlargest(parts - 1)
        if len(large) == parts - 1:
            small = row.index[row.between(1, THRESHOLD - 1)]
            found += [(key, area, row, large) for area in small]
    found = [each for each in found if (*each[0], each[1]) not in used]
    key, alone, row, large = found[int(generator.integers(len(found)))]
    used.add((*key, alone))
    where = {ATTACKED: [str(key[0])], "age": [str(key[1])]}
    areas = [str(alone), *map(str, large.index)]
    tables = [(int(row[areas].sum()), {**where, "area": areas})]
    tables += [(int(row[area]), {**where, "area": [area]}) for area in areas[1:]]
    return tables, int(row[alone])


def attacked(
    log: tc.ReleaseLog,
    records: pd.DataFrame,
    parts: int,
    generator: np.random.Generator,
    used: set[Any],
) -> dict[str, Any]:
    """Release all tables of an attack but the last, and check that."""
    tables, small = planted(records, parts, generator, used)
    for count, where in tables[:-1]:
        log.add(xr.DataArray(count), where=where)
    count, where = tables[-1]
    begin = time.perf_counter()
    verdict = log.check(xr.DataArray(count), where=where, advise=False, progressbar=False)
    found = [each for each in verdict.findings if each.lower == each.upper == small]
    return {
        "kind": f"attack of {parts}",
        "seconds": time.perf_counter() - begin,
        "found": bool(found),
        "releases": min((len(each.releases) for each in found), default=0) + 1,
        "complete": verdict.complete,
    }


def compiled(folder: Path) -> float:
    """Seconds of a small check, the first that walks among tables."""
    log = tc.ReleaseLog(folder / "small.duckdb", variables={"a": ["0", "1"], "b": ["0", "1"]})
    log.add(xr.DataArray([1, 1], dims="a", coords={"a": ["0", "1"]}))
    begin = time.perf_counter()
    log.check(xr.DataArray([1, 1], dims="b", coords={"b": ["0", "1"]}), progressbar=False)
    return time.perf_counter() - begin


def measured(number: int, size: int, checks: int) -> list[dict[str, Any]]:
    """All checks, in this process."""
    generator = np.random.default_rng(1)
    records = people(size, generator)
    variables = {name: list(records[name].cat.categories) for name in SIZES}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first = compiled(Path(folder))
        log = tc.ReleaseLog(Path(folder) / "log.duckdb", variables=variables, total=size)
        begin = time.perf_counter()
        for _ in range(number):
            table, where = query(records, generator)
            log.add(table, where=where)
        adding = (time.perf_counter() - begin) / number
        for _ in range(checks):
            table, where = query(records, generator)
            begin = time.perf_counter()
            verdict = log.check(table, where=where, advise=False, progressbar=False)
            seconds = time.perf_counter() - begin
            rows.append(
                {
                    "kind": "table of the same kind",
                    "seconds": seconds,
                    "found": bool(verdict.findings),
                    "complete": verdict.complete,
                }
            )
            print(rows[-1], file=sys.stderr, flush=True)
        used: set[Any] = set()
        for parts in (2, 5, 10, 20):
            for _ in range(ATTACKS):
                rows.append(attacked(log, records, parts, generator, used))
                print(rows[-1], file=sys.stderr, flush=True)
        megabytes = (Path(folder) / "log.duckdb").stat().st_size / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{number:,} releases of {size:,} records: {adding * 1000:.0f} ms to add one,"
        f" {megabytes:.1f} MB on disk, peak {peak:.2f} GB; the first check, of a small log:"
        f" {first:.1f} s\n"
    )
    return rows


def main() -> None:
    """Print the table of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--checks", type=int, default=20)
    given = parser.parse_args()
    rows = pd.DataFrame(measured(given.releases, given.records, given.checks))
    print("| checked | number | median s | most s | found | all at once |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind, each in rows.groupby("kind", sort=False):
        print(
            f"| {kind} | {len(each)} | {each['seconds'].median():.1f} |"
            f" {each['seconds'].max():.1f} | {int(each['found'].sum())} |"
            f" {int(each['complete'].sum())} |"
        )


if __name__ == "__main__":
    main()
