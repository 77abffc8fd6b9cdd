"""What an attacker who knows the rule works out of suppressed tables, with and without
protection against it: the packaged census tables and a generated one.

Run as ``python docs/studies/knowledge_of_the_rule.py``, a few minutes on one core. The
result is ``docs/explanation/_knowledge_of_the_rule.md``. Seeds are fixed."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import joined, write

import taciturn as tc

HERE = Path(__file__).resolve().parent
SEED = 2029
RULE = (1, 2)  # counts below 3 are primary, but for 0


def cases() -> Iterator[tuple[str, xr.DataArray, bool]]:
    """A table in words, the table, and whether its totals may be suppressed, too."""
    for name in ("religion", "country_of_birth", "mode_of_travel"):
        yield f"area by {name.replace('_', ' ')}", tc.load_dataset(f"area_by_{name}"), True
    generator = np.random.default_rng(1)
    counts = generator.poisson(generator.gamma(0.5, 20, (220, 10)))
    yield "generated, 220 × 10 cells", xr.DataArray(counts, dims=("area", "answer")), False


def suppressed(
    table: xr.DataArray, primary: xr.DataArray, totals: bool, knowledge: Any
) -> tc.suppression.SuppressionPattern:
    """The pattern for a table that is released with all its totals."""
    options: dict[str, Any] = {"knowledge": knowledge, "time_limit": 3600, "random_seed": SEED}
    if not totals:
        return tc.suppress(table, primary, **options, progressbar=False)
    linked = [tuple(map(str, table.dims)), *table.dims, ()]
    return tc.suppress(
        table,
        {linked[0]: primary},
        linked=linked,
        costs={(): xr.DataArray(np.inf)},
        **options,
        progressbar=False,
    )


def row(table: xr.DataArray, totals: bool, knowledge: Any) -> list[str]:
    """How many primary cells are known exactly to those who can tell them and know the
    rule, secondary cells, and their cost."""
    primary = (table >= RULE[0]) & (table <= RULE[1])
    pattern = suppressed(table, primary, totals, knowledge)
    ranges = xr.Dataset(
        {
            "lower": xr.where(primary, RULE[0], 0),
            "upper": xr.where(primary, float(RULE[1]), np.inf),
        }
    )
    found = tc.attacker_bounds(
        pattern.release, margin=table.dims, cells=primary, knowledge=ranges, progressbar=False
    )
    secondary = sum(int((status == "secondary").sum()) for status in pattern.status.values())
    return [f"{int(found['disclosed'].sum())}", f"{secondary}", f"{pattern.cost:,.0f}"]


def main() -> None:
    """Compute all and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_knowledge_of_the_rule.md"
    )
    given = parser.parse_args()
    columns = ["table", "cells of 1 or 2"]
    columns += ["known exactly", "secondary cells", "cost"]
    columns += ["known exactly, `knowledge=(1, 2)`", "secondary cells", "cost"]
    lines = [columns, ["---", *["---:"] * 7]]
    for name, table, totals in cases():
        print(name, file=sys.stderr, flush=True)
        primary = int(((table >= RULE[0]) & (table <= RULE[1])).sum())
        lines.append([name, f"{primary}", *row(table, totals, None), *row(table, totals, RULE)])
    write(given.fragment, "\n".join(joined(line) for line in lines) + "\n")


if __name__ == "__main__":
    main()
