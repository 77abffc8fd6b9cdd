"""Cells that sensitivity rules pass compared with cells that they refuse, and which of
the two reveal more.

Run as ``python docs/studies/magnitude_rules.py``, a few seconds. The result is
``docs/explanation/_magnitude_rules.md``. Nothing in it is random.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import taciturn as tc

HERE = Path(__file__).resolve().parent
ONE = [1]
PAIRS = [
    # rule, a cell that it passes, a cell that it refuses
    (tc.Dominance(1, 0.75), [74, 26], [76] + 24 * ONE),
    (tc.Dominance(2, 0.85), [84] + 16 * ONE, [43, 43] + 14 * ONE),
    (tc.PPercent(10), [90] + 10 * ONE, [50, 46] + 4 * ONE),
    (tc.magnitude.PQ(10, 50), [82] + 18 * ONE, [46, 46] + 8 * ONE),
    (tc.magnitude.MinimumFrequency(3), [98, 1, 1], [50, 50]),
    (tc.magnitude.EntropyRule(0.5), [74, 26], [76] + 24 * ONE),
]
EVEN, DOMINATED = [25, 25, 25, 25], [97, 1, 1, 1]


def table_of(*cells: list[int]) -> xr.Dataset:
    """A magnitude table of cells of these contributions."""
    rows = [(i, x) for i, cell in enumerate(cells) for x in cell]
    return tc.tabulate_magnitude(pd.DataFrame(rows, columns=["cell", "value"]), "cell", "value")


def written(cell: list[int]) -> str:
    """Contributions, equal ones counted."""
    sizes, numbers = np.unique(cell, return_counts=True)
    parts = [
        f"{n} × {x}" if n > 2 else ", ".join([str(x)] * n)
        for x, n in zip(sizes, numbers, strict=True)
    ]
    return ", ".join(reversed(parts))


def pairs() -> str:
    """For each rule a line of the cell that it passes and one of the cell that it
    refuses."""
    header = [
        "rule",
        "contributions",
        "refused",
        "H, bits",
        "H / log2 N",
        "estimate of x₁ by x₂",
        "by a reader",
    ]
    lines = [header, ["---", "---", "---", *["---:"] * 4]]
    for rule, *cells in PAIRS:
        table = table_of(*cells)
        sensitive = tc.sensitive_cells(table, rule)["sensitive"].values
        if sensitive.tolist() != [False, True]:
            raise SystemExit(f"{rule} does not pass the first and refuse the second of {cells}")
        first, second = table["largest"].isel(rank=0), table["largest"].isel(rank=1)
        total, ratio = table["total"], table["entropy"] / np.log2(table["contributors"])
        numbers = [
            table["entropy"],
            ratio,
            100 * (total - first - second) / first,
            100 * (total - first) / first,
        ]
        for i, cell in enumerate(cells):
            told = [f"{float(x[i]):.2f}" for x in numbers[:2]] + [
                f"{float(x[i]):.0f} % off" for x in numbers[2:]
            ]
            lines.append(
                [
                    f"`{rule}`" if i == 0 else "",
                    written(cell),
                    "yes" if sensitive[i] else "no",
                    *told,
                ]
            )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def misprint() -> str:
    """The risk of an even and of a dominated table, by both formulas."""
    lines = [
        ["each of two cells", "mean share of the largest", "default", "handbook"],
        ["---", *["---:"] * 3],
    ]
    for cell in (EVEN, DOMINATED):
        table = table_of(cell, cell)
        risks = [
            tc.magnitude.magnitude_risk(table, variant=variant)
            for variant in ("consistent", "handbook")
        ]
        numbers = [risks[0]["mean_share"], *(risk["risk"] for risk in risks)]
        lines.append([written(cell), *(f"{float(x):.3f}" for x in numbers)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> None:
    """Compute both tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_magnitude_rules.md"
    )
    given = parser.parse_args()
    text = f"{pairs()}\nRisk of whole tables:\n\n{misprint()}"
    given.fragment.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
