"""R1, R2 and τ1 of latent classes in repeated samples of eight-variable populations,
with more samples and longer chains than ``large_tables.py``.

Run as ``python docs/studies/large_tables_again.py``, hours on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The result is ``docs/studies/large_tables_again.csv`` and
``docs/explanation/_large_tables_again.md``. Seeds are fixed."""

import argparse
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import write
from generated_large import POPULATION_SIZE, large_population

import taciturn as tc

HERE = Path(__file__).resolve().parent
SAMPLES = {
    ("census", 1_000): 60,
    ("census", 5_000): 60,
    ("census", 10_000): 60,
    ("latent", 1_000): 24,
    ("latent", 5_000): 60,
    ("latent", 10_000): 54,
    ("loglinear", 1_000): 24,
    ("loglinear", 5_000): 24,
    ("loglinear", 10_000): 60,
}
SEED = 2027


def main() -> None:
    """Run or continue the study of every row, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--store", type=Path, default=HERE / "_store")
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    for (kind, size), samples in SAMPLES.items():
        print(kind, size, file=sys.stderr, flush=True)
        result = tc.study(
            large_population(kind, SEED),
            {"LatentClass": tc.LatentClass()},
            fractions=[size / POPULATION_SIZE],
            samples=samples,
            draws=1000,
            random_seed=SEED,
            workers=given.workers,
            store=given.store / f"again_{kind}_{size}.jsonl",
        )
        row = {"population": kind, "sample_size": size, "samples": samples}
        frames.append(tc.studies.study_table(result).assign(**row))
    rows = pd.concat(frames)
    write(HERE / "large_tables_again.csv", rows.to_csv(index=False, float_format="%.6g"))
    write(HERE.parent / "explanation" / "_large_tables_again.md", markdown(rows))


def markdown(rows: pd.DataFrame) -> str:
    """A row for each population and sample size."""
    lines = [
        "| population | n | samples | covers R2 | bias | RMSE | width | covers R1 | covers τ1 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (population, size), group in rows.groupby(["population", "sample_size"], sort=False):
        by = group.set_index("measure")
        of = by.loc["R2"]
        lines.append(
            f"| `{population}` | {size:,} | {of.samples} | {of.coverage:.0%} | {of.bias:+.3f} |"
            f" {of.rmse:.3f} | {of.width:.3f} | {by.coverage['R1']:.0%} |"
            f" {by.coverage['tau1']:.0%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
