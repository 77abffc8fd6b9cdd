"""The simulations of Antal, Shlomo & Elliot on the religion table, in full, compared
with the printed values.

Run as ``python docs/studies/paper_simulation.py``: 1,000 samples and 1,000 draws for
each, at the fractions the papers have. It prints a table; differences are in Monte
Carlo standard errors of two simulations of 1,000 samples, without the rounding to four
digits. Nothing is tuned and no seed is chosen for its result."""

import argparse
import csv
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import taciturn as tc

PRINTED = Path(__file__).resolve().parents[2] / "tests" / "data" / "published_sample_tables.csv"
SOURCE = {"000": "ASE-NTTS", "004": "ASE15"}
NAMES = {"true": "known", "loglinear": "log-linear", "polya_urn": "Pólya urn"}
ESTIMATORS = {"loglinear": tc.LogLinear(), "polya_urn": tc.PolyaUrn()}
RUNS = (((0.1, 0.05), ("loglinear", "polya_urn")), ((0.01,), ("loglinear",)))
PAPER_SAMPLES = 1000


def main() -> None:
    """Run, print and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=2015)
    given = parser.parse_args()
    start = time.perf_counter()
    values: dict[tuple[str, float, str], np.ndarray] = {}
    for fractions, names in RUNS:
        values |= simulate(fractions, names, given)
    head = ("source", "n/N", "", "population", "printed", "taciturn", "difference", "in s.e.")
    print("{:9} {:>5} {:3} {:11} {:>17} {:>17} {:>11} {:>8}".format(*head))
    for row in printed_rows():
        line = values[row["quantity"], float(row["fraction"]), row["measure"]]
        print(compare(row, line))
    print(f"\n{given.samples} samples x {given.draws} draws in {time.perf_counter() - start:.0f} s")


def simulate(
    fractions: tuple[float, ...], names: tuple[str, ...], given: argparse.Namespace
) -> dict[tuple[str, float, str], np.ndarray]:
    """R1 and R2 of each sample, known and estimated, read from the store of a study."""
    population = tc.load_dataset("area_by_religion")
    total = int(population.sum())
    found: dict[tuple[str, float, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "study.jsonl"
        tc.study(
            population,
            {name: ESTIMATORS[name] for name in names},
            fractions=fractions,
            samples=given.samples,
            draws=given.draws,
            random_seed=given.seed,
            workers=given.workers,
            progressbar=sys.stderr.isatty(),
            store=store,
        )
        records = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()[1:]]
    fraction_of = {round(fraction * total): fraction for fraction in fractions}
    for record in records:
        for k, measure in enumerate(("R1", "R2")):
            fraction = fraction_of[record["size"]]
            if record["estimator"] == names[0]:
                found.setdefault(("true", fraction, measure), []).append(record["truth"][k])
            if "mean" in record:
                found.setdefault((record["estimator"], fraction, measure), []).append(
                    record["mean"][k]
                )
    return {key: np.array(numbers) for key, numbers in found.items()}


def printed_rows() -> list[dict[str, str]]:
    """Printed values of the real table."""
    with PRINTED.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["population"] == "census"]


def compare(row: dict[str, str], values: np.ndarray) -> str:
    """One line: printed mean (sd), ours, their difference in itself and in standard
    errors."""
    mean, sd = values.mean(), values.std(ddof=1)
    error = sd * (1 / len(values) + 1 / PAPER_SAMPLES) ** 0.5
    difference = mean - float(row["mean"])
    exact = sd < 1e-12
    printed = f"{float(row['mean']):.4f}" + (f" ({float(row['sd']):.4f})" if row["sd"] else " " * 9)
    ours = f"{mean:.4f} ({0.0 if exact else sd:.4f})"
    in_errors = "exact" if exact else f"{difference / error:+.1f}"
    return (
        f"{SOURCE[row['source']]:9} {row['fraction']:>5} {row['measure']:3}"
        f" {NAMES[row['quantity']]:11} {printed:>17} {ours:>17} {difference:+11.4f} {in_errors:>8}"
    )


if __name__ == "__main__":
    main()
