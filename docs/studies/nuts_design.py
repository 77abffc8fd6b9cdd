"""Whether NUTS converges at its defaults on the design of ``default_estimator.py``: 15
tables at three fractions.

Run as ``python docs/studies/nuts_design.py``. It can be interrupted: what is done is
kept in ``--store`` (a file) and the same command continues; a table's model is then
compiled again. The result is ``docs/explanation/_nuts_design.md`` and
``docs/studies/nuts_design.csv``. Seeds are fixed."""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, joined, populations, write

import taciturn as tc
from taciturn.diagnostics import HIGHEST_R_HAT
from taciturn.errors import ConvergenceWarning
from taciturn.estimators.problem import make_problem
from taciturn.estimators.sampling import nuts
from taciturn.estimators.settings import SamplerSettings
from taciturn.store import Store

HERE = Path(__file__).resolve().parent
ESTIMATORS: dict[str, tc.estimators.Estimator] = {
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
}


def main() -> None:
    """Fit every sample, or continue, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--tables", nargs="+", help="only tables whose name contains one of these")
    parser.add_argument("--store", type=Path, default=HERE / "_store" / "nuts_design.jsonl")
    parser.add_argument("--output", type=Path, default=HERE / "nuts_design.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_nuts_design.md"
    )
    given = parser.parse_args()
    given.store.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "study": "nuts design",
        **{x: getattr(given, x) for x in ("draws", "tune", "chains", "seed")},
    }
    with Store(given.store, {**header, "version": tc.__version__}) as kept:
        done = {
            tuple(record[x] for x in ("table", "fraction", "sample", "estimator"))
            for record in kept.records
        }
        tables = []
        for number, (name, population) in enumerate(populations(given.seed)):
            if given.tables and not any(part in name for part in given.tables):
                continue
            tables.append(name)
            print(
                f"{name}: K = {population.size}, N = {int(population.sum())}",
                file=sys.stderr,
                flush=True,
            )
            for fraction in FRACTIONS:
                for sample in range(given.samples):
                    for estimator in ESTIMATORS:
                        if (name, fraction, sample, estimator) not in done:
                            sequence = np.random.SeedSequence(
                                [given.seed, number, round(1000 * fraction), sample]
                            )
                            found = fit(population, fraction, estimator, sequence, given)
                            first = {
                                "table": name,
                                "fraction": fraction,
                                "sample": sample,
                                "estimator": estimator,
                            }
                            kept.add({**first, **found})
        rows = pd.DataFrame(kept.records)
    rows = rows[rows["table"].isin(tables) & (rows["sample"] < given.samples)]
    if rows.empty:
        sys.exit(f"no table name contains any of {given.tables}")
    write(given.output, rows.to_csv(index=False))
    caption = (
        f"{given.chains} chains of {given.draws} draws after {given.tune} of warm-up; seconds on"
        " one core.\n\n"
    )
    write(given.fragment, caption + markdown(rows))
    print(markdown(rows))


def fit(
    population: xr.DataArray,
    fraction: float,
    estimator: str,
    sequence: np.random.SeedSequence,
    given: Any,
) -> dict[str, Any]:
    """Diagnostics of one sample's fit, and whether its model was compiled for it."""
    of_sample, of_fit = sequence.spawn(2)
    sample = tc.draw_sample(
        population, fraction=fraction, random_seed=np.random.default_rng(of_sample)
    )
    problem = make_problem(sample, int(population.sum()))
    seed = int(of_fit.generate_state(1)[0])
    settings = SamplerSettings(
        given.draws, given.tune, given.chains, seed, progressbar=False, method="nuts"
    )
    before = set(nuts._compiled)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned = ESTIMATORS[estimator].learn(problem, settings, seed)
    seconds = time.perf_counter() - start
    found = nuts.check_convergence(learned.posterior, learned.sample_stats)
    return {
        "sample_size": problem.sample_size,
        "occupied": int((problem.counts > 0).sum()),
        "divergences": found.divergences,
        "r_hat": found.r_hat,
        "ess": min(found.ess_bulk, found.ess_tail),
        "seconds": round(seconds, 2),
        "compiled": not set(nuts._compiled) <= before,
        "sampler": learned.sampler,
    }


def markdown(rows: pd.DataFrame) -> str:
    """One line for each table and estimator."""
    head = [
        "table",
        "estimator",
        "fits",
        "divergences",
        "r-hat 1.01 or more",
        "worst r-hat",
        "smallest ESS",
    ]
    lines = [[*head, "compilations", "seconds per fit"], ["---"] * 2 + ["---:"] * 7]
    for (table, estimator), cell in rows.groupby(["table", "estimator"], sort=False):
        numbers = [
            f"{len(cell)}",
            f"{cell['divergences'].sum()}",
            f"{(~(cell['r_hat'] < HIGHEST_R_HAT)).sum()}",
        ]
        numbers += [
            f"{cell['r_hat'].max():.3f}",
            f"{cell['ess'].min():.0f}",
            f"{cell['compiled'].sum()}",
        ]
        lines.append([str(table), str(estimator), *numbers, f"{cell['seconds'].median():.1f}"])
    return "\n".join(joined(line) for line in lines) + "\n"


if __name__ == "__main__":
    main()
