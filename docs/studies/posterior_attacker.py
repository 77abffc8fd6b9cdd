"""The attacker's posterior compared with equally likely values: the published example
and the packaged census tables.

Run as ``python docs/studies/posterior_attacker.py``, two minutes on one core. The
result is ``docs/explanation/_posterior_attacker.md``. Seeds are fixed."""

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
CHANGE = np.array(
    [
        [[-1, 1, 0], [-1, 0, 1], [2, -1, -1]],
        [[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
        [[1, 0, -1], [0, 0, 0], [-1, 0, 1]],
    ]
)
"""A change of a 3 x 3 x 3 table that keeps all margins of two variables, and takes one
cell from 0 to 2."""


def published() -> tuple[xr.DataArray, xr.DataArray]:
    """Rows 5 and 6 of Table 1 of Oganian & Domingo-Ferrer (2003), and its suppressed
    cells."""
    table = xr.DataArray(
        [[592, 150, 329, 1387, 1440], [57, 256, 946, 995, 2027]],
        dims=("activity", "size"),
        coords={"activity": ["5", "6"], "size": [4, 5, 6, 7, 8]},
    )
    return table, table.isin([150, 1387, 256, 995])


def independent(table: xr.DataArray) -> xr.DataArray:
    """Expected counts when variables are independent; half an individual more in each
    category, so that none is 0."""
    shares = [
        (table.sum([other for other in table.dims if other != dim]) + 0.5) for dim in table.dims
    ]
    expected = table.sum() * shares[0] / shares[0].sum() * shares[1] / shares[1].sum()
    return expected.transpose(*table.dims)


def cases() -> Iterator[tuple[str, xr.DataArray, Any, xr.DataArray | None]]:
    """A release in words, the true table, the release, and expected counts of an
    informed attacker."""
    table, suppressed = published()
    yield (
        "OD03 Table 1, four cells suppressed",
        table,
        tc.Suppression(table, suppressed),
        independent(table),
    )
    yield (
        "OD03 Table 2, activities 5 and 6 merged",
        table,
        tc.GlobalRecoding(table, {"activity": {"5,6": ["5", "6"]}}),
        None,
    )
    ring = xr.DataArray(np.maximum(CHANGE, 0), dims=("a", "b", "c"))
    yield (
        "3 x 3 x 3 cells, 17 suppressed",
        ring,
        tc.Suppression(ring, ring.copy(data=CHANGE != 0)),
        None,
    )
    for name in ("religion", "country_of_birth", "mode_of_travel"):
        table = tc.load_dataset(f"area_by_{name}")
        words = name.replace("_", " ")
        below = tc.Suppression(table, table < 5)
        yield f"{words}, cells below 5 suppressed", table, below, independent(table)
        rounded = tc.perturbation.conventional_round(table, rounding_base=5)[0]
        totals = [
            tc.perturbation.conventional_round(table.sum(dim), rounding_base=5)[0]
            for dim in table.dims
        ]
        yield (
            f"{words}, rounded to 5 with totals",
            table,
            tc.Rounding(rounded, 5, totals=totals),
            independent(table),
        )
        yield (
            f"{words}, margins only",
            table,
            tc.LinkedTables(table, [*table.dims]),
            independent(table),
        )


def main() -> None:
    """Compute all and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_posterior_attacker.md"
    )
    given = parser.parse_args()
    columns = [
        "release",
        "prior",
        "open cells",
        "log2 m",
        "H",
        "1/log2 m",
        "1/H",
        "ratio",
        "largest ratio",
    ]
    columns += ["true value above 0.9", "exact"]
    lines = [columns, ["---", "---", *["---:"] * 9]]
    worst = []
    for name, truth, release, expected in cases():
        for prior, word in (("uniform", "uniform"), (expected, "independence")):
            if prior is not None:
                print(name, word, file=sys.stderr, flush=True)
                found = tc.attacker_posterior(
                    release, prior=prior, draws=given.draws, random_seed=SEED, progressbar=False
                )
                lines.append([name, word, *row(found, truth)])
                worst.append(
                    (found["entropy_mcse"].max(), found["r_hat"].max(), found["ess_bulk"].min())
                )
    errors, r_hats, sizes = zip(*worst, strict=True)
    error, r_hat, ess = np.nanmax(errors), np.nanmax(r_hats), np.nanmin(sizes)
    text = (
        f"4 chains of {given.draws:,} draws. Over all cells, the largest Monte Carlo error of an"
        f" entropy is {error:.3f} bits, the largest R-hat {r_hat:.3f} and the smallest effective"
        f" sample size {ess:,.0f}.\n\n"
    )
    write(given.fragment, text + "\n".join(joined(line) for line in lines) + "\n")


def row(found: xr.Dataset, truth: xr.DataArray) -> list[str]:
    """Medians over the open cells, and in how many the true value has a probability
    above 0.9."""
    hidden = ~found["disclosed"]
    ratio = (found["risk"] / found["risk_uniform"]).where(hidden)
    medians = [
        np.log2(found["n_values"]),
        found["entropy"],
        found["risk_uniform"],
        found["risk"],
        ratio,
    ]
    numbers = [f"{float(each.where(hidden).median()):.3f}" for each in medians]
    likely = (found["table"] == truth).mean(["chain", "draw"]) > 0.9
    return [
        f"{int(hidden.sum())}",
        *numbers,
        f"{float(ratio.max()):.2f}",
        f"{int((likely & hidden).sum())}",
        f"{int((found['exact'] & hidden).sum())}",
    ]


if __name__ == "__main__":
    main()
