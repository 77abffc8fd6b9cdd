"""R1 and R2 of tables that everybody can picture, as a scale for other values.

Run as ``python docs/studies/yardstick.py``, a few seconds. The results are
``docs/explanation/_yardstick_terms.md``, tables made up and the packaged census tables
as they are, and ``_yardstick_releases.md``, the census tables as samples and rounded:
R2 is the mean of 1,000 samples or random roundings, by fixed seeds.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import taciturn as tc

HERE = Path(__file__).resolve().parent
FRACTIONS = (0.1, 0.05, 0.01)
BASES = (3, 5, 10)
REPLICATES = 1000
WEIGHTS = (0.1, 0.8, 0.1)  # the default


def line(*cells: object) -> str:
    return "| " + " | ".join(f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells) + " |"


def made_up() -> dict[str, xr.DataArray]:
    """Tables of 90 cells and their people, from nearly even to a single cell."""
    one = np.zeros(90, dtype=int)
    one[0] = 2449
    half = np.zeros(90, dtype=int)
    half[:45] = 54
    tables = {
        "90 cells with 100 people each": np.full(90, 100),
        "90 cells with 27 people each": np.full(90, 27),
        "90 cells with 1 person each": np.ones(90, dtype=int),
        "45 of 90 cells, 54 people each": half,
        "1 of 90 cells, 2,449 people": one,
        "1 of 90 cells, 1 person": np.minimum(one, 1),
    }
    return {name: xr.DataArray(cells, dims="cell") for name, cells in tables.items()}


def terms() -> str:
    """R1 of each table and what its three terms contribute, weights included."""
    lines = [
        line("table", "N", "R1", "empty cells", "concentration", "size"),
        line("---", *["---:"] * 5),
    ]
    census = {f"`{name}`": tc.load_dataset(name) for name in tc.tables.DATASETS}
    for name, table in (made_up() | census).items():
        risk = tc.disclosure_risk(table)
        parts = zip(("zero_term", "entropy_term", "size_term"), WEIGHTS, strict=True)
        shares = [weight * float(risk[part]) for part, weight in parts]
        lines.append(line(name, f"{int(table.sum()):,}", float(risk["R1"]), *shares))
    return "\n".join(lines) + "\n"


def releases(table: xr.DataArray) -> dict[str, xr.DataArray]:
    """What could be released in place of a table."""
    found = {"as it is": table}
    for fraction in FRACTIONS:
        found[f"a sample of {100 * fraction:.0f} %"] = tc.draw_sample(
            table, fraction=fraction, replicates=REPLICATES, random_seed=1
        )
    for base in BASES:
        found[f"rounded to {base}"] = tc.random_round(
            table, rounding_base=base, replicates=REPLICATES, random_seed=1
        )
    return found


def after_release() -> str:
    """R2 of the census tables after each kind of release."""
    columns = {}
    for name in tc.tables.DATASETS:
        table = tc.load_dataset(name)
        columns[name.removeprefix("area_by_").replace("_", " ")] = {
            kind: float(tc.disclosure_risk(table, released)["R2"].mean())
            for kind, released in releases(table).items()
        }
    lines = [line("released, area by", *columns), line("---", *["---:"] * len(columns))]
    lines += [line(kind, *(risks[kind] for risks in columns.values())) for kind in columns["sex"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compute both tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE.parent / "explanation")
    folder = parser.parse_args().folder
    for name, text in {"terms": terms(), "releases": after_release()}.items():
        (folder / f"_yardstick_{name}.md").write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
