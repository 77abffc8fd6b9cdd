"""Areas that share a profile in more populations, of the kinds whose intervals held
least often or whose errors were above 0.6 of those of single fits: the areas of one
population have the error of their profile in common.

Run as ``python docs/studies/areas_again.py``, an hour on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/areas_again.csv`` and
``docs/explanation/_areas_again.md``. Seeds are fixed."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from areas import ALONE, SHARED, errors, sampled, scored, shared_profile
from default_estimator import joined, publish, study_parser
from generated_areas import area_populations

import taciturn as tc

ROWS = [("dirichlet", 0.01), ("minorities", 0.01), ("margins", 0.05), ("margins", 0.01)]
ROWS += [("campuses", 0.05), ("campuses", 0.01), ("heavy", 0.05), ("heavy", 0.01)]
SEED, POPULATIONS = 2052, 3
AREAS = 100


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=POPULATIONS, draws=200, seed=SEED).parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    rows = []
    for (kind, fraction), seed in product(ROWS, range(given.seed, given.seed + given.samples)):
        print(kind, fraction, seed, file=sys.stderr, flush=True)
        population = area_populations(kind, AREAS, seed)
        sample = sampled(population, fraction, seed)
        sizes = population.sum([dim for dim in population.dims if dim != "area"])
        for how, estimator in (
            (SHARED, shared_profile(AREAS)),
            (ALONE, tc.default_estimator(sample[0])),
        ):
            risk = tc.assess_many(
                sample,
                over="area",
                population_size=sizes,
                estimator=estimator,
                draws=given.draws,
                random_seed=seed,
                workers=given.workers,
                store=given.store / f"again_{kind}_{fraction}_{seed}_{how}",
            )
            own = scored(errors(population, sample, risk))["R2"]
            known = {"kind": kind, "fraction": fraction, "seed": seed, "estimator": how}
            rows.append(known | own)
    frame = pd.DataFrame(rows).drop(columns="rmse_beside")
    publish(given, "areas_again", frame.to_csv(index=False, float_format="%.6g"), markdown(frame))


def markdown(rows: pd.DataFrame) -> str:
    """A line for each kind and fraction: each population, and all of them."""
    head = ["areas", "n/N", "covers R2, each", "mean", "bias, each", "of alone: RMSE, each", "all"]
    lines = [joined(head), joined(["---", *["---:"] * (len(head) - 1)])]
    for (kind, fraction), group in rows.groupby(["kind", "fraction"], sort=False):
        by = {how: own.set_index("seed") for how, own in group.groupby("estimator")}
        shared, alone = by[SHARED], by[ALONE]
        each = shared["rmse"] / alone["rmse"]
        together = np.sqrt((shared["rmse"] ** 2).mean() / (alone["rmse"] ** 2).mean())
        lines.append(
            joined(
                [
                    str(kind),
                    f"{fraction:g}",
                    ", ".join(f"{value:.0%}" for value in shared["coverage"]),
                    f"{shared['coverage'].mean():.0%}",
                    ", ".join(f"{value:+.3f}" for value in shared["bias"]),
                    ", ".join(f"{value:.2f}" for value in each),
                    f"{together:.2f}",
                ]
            )
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
