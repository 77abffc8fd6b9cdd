"""How often R2 is at most the upper end that a fit gives, by the default estimator and
by the pool of two other families: repeated samples of census tables, as they are and
with small counts suppressed.

Run as ``python docs/studies/upper_ends.py``, some minutes on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/upper_ends.csv`` and
``docs/explanation/_upper_ends.md``. Seeds are fixed, and each sample has its own,
whatever the number of workers."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from choices import (
    ENDS,
    PROBABILITIES,
    TABLES,
    candidates,
    cells_of,
    ends_held,
    mean_and_error,
    populations_of,
    records_of,
)
from default_estimator import joined, publish, study_parser

import taciturn as tc

RELEASED = ("as it is", "suppressed below 3")
ESTIMATORS = ("default_estimator", "LinearPool")
CELL = ["table", "fraction", "released", "estimator"]


class Task(NamedTuple):
    """One sample, and how many draws there are of its population."""

    table: str
    fraction: float
    number: int
    seed: int
    draws: int


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=200, draws=500, seed=2034).parse_args()
    tasks = [
        Task(*cell, number, given.seed, given.draws)
        for number in range(given.samples)
        for cell in cells_of(given)
    ]
    header = {"seed": given.seed, "draws": given.draws}
    records = records_of(given, "upper_ends.jsonl", header, one, tasks)
    rows = summary(records)
    publish(given, "upper_ends", rows.to_csv(index=False, float_format="%.6g"), page(rows))


def one(task: Task) -> dict[str, Any]:
    """Draw a sample, fit both estimators, and hold their R2 against the true one."""
    population = tc.load_dataset(f"area_by_{task.table}")
    place = [TABLES.index(task.table), round(1000 * task.fraction), task.number]
    streams = np.random.SeedSequence(task.seed, spawn_key=place).spawn(2)
    sampling, fitting = (np.random.default_rng(stream) for stream in streams)
    sample = tc.draw_sample(population, fraction=task.fraction, random_seed=sampling)
    released = candidates(sample, 1, 1)
    seed = int(fitting.integers(2**31))
    size, found = int(population.sum()), []
    for name, estimator in zip(
        ESTIMATORS, (tc.default_estimator(sample), tc.LinearPool()), strict=True
    ):
        drawn, unconverged = populations_of(estimator, sample, size, task.draws, seed)
        for release in RELEASED:
            truth = float(tc.disclosure_risk(population, released[release])["R2"].mean())
            risk = tc.disclosure_risk(drawn, released[release])["R2"].values
            low, high = np.quantile(risk, (0.025, 0.975), method="inverted_cdf")
            found.append(
                {
                    "released": release,
                    "estimator": name,
                    "bias": float(risk.mean()) - truth,
                    "width": float(high - low),
                    **ends_held(truth, risk),
                    "unconverged": unconverged,
                }
            )
    about = {"table": task.table, "fraction": task.fraction, "sample": task.number}
    return {**about, "found": found}


def summary(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Means over the samples of each cell of the design, with Monte Carlo errors."""
    every = pd.DataFrame(
        {"table": r["table"], "fraction": r["fraction"], **each}
        for r in records
        for each in r["found"]
    )
    rows = []
    for cell, values in every.groupby(CELL, sort=False):
        row = dict(zip(CELL, cell, strict=True)) | {"samples": len(values)}
        for measure in ("bias", "width", *ENDS, "unconverged"):
            share = measure not in ("bias", "width")
            mean, error = mean_and_error(values[measure].astype(float).tolist(), share=share)
            row |= {measure: mean, f"{measure}_mcse": error}
        rows.append(row)
    found = pd.DataFrame(rows)
    order = {
        name: place for names in (TABLES, RELEASED, ESTIMATORS) for place, name in enumerate(names)
    }
    return found.sort_values(
        CELL, key=lambda column: -column if column.name == "fraction" else column.map(order)
    ).reset_index(drop=True)


def page(rows: pd.DataFrame) -> str:
    """Both estimators side by side, in each cell of the design."""
    head = ["table", "n/N", "released", "bias: default", "`LinearPool`"]
    for level in PROBABILITIES:
        head += [f"at most the {100 * level:g} % upper end: default", "`LinearPool`"]
    head += ["in the 95 % interval: default", "`LinearPool`", "width: default", "`LinearPool`"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * (len(head) - 3)])]
    for (table, fraction, released), cell in rows.groupby(CELL[:3], sort=False):
        line = [str(table).replace("_", " "), f"{fraction:g}", str(released)]
        for measure, form in (("bias", "+.3f"), *((s, ".2f") for s in ENDS), ("width", ".3f")):
            line += [f"{value:{form}}" for value in cell[measure]]
        lines.append(joined(line))
    number = round((rows["unconverged"] * rows["samples"]).sum() / len(RELEASED))
    worst = rows[[f"{share}_mcse" for share in ENDS]].to_numpy().max()
    note = f"{int(rows['samples'].max())} samples per cell. Monte Carlo errors are at most"
    note += f" {rows['bias_mcse'].max():.4f} of a bias and {worst:.3f} of a share; of all fits,"
    return "\n".join([f"{note} {number} did not converge.\n", *lines]) + "\n"


if __name__ == "__main__":
    main()
