"""τ1, R1 and R2 in repeated samples of eight-variable populations: latent classes, the
pool of two kinds of departures, and the plug-in log-linear model.

Run as ``python docs/studies/large_tables.py``, hours on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The result is ``docs/explanation/_large_tables.md`` and
``docs/studies/large_tables.csv``, in which populations that are not among ``--kinds``
stay as they are. Seeds are fixed."""

import argparse
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import write
from generated_large import LARGE_KINDS, POPULATION_SIZE, large_population

import taciturn as tc

HERE = Path(__file__).resolve().parent
SAMPLES = (1_000, 5_000, 10_000)
ESTIMATORS: dict[str, tc.estimators.Estimator] = {
    "LatentClass": tc.LatentClass(),
    "LinearPool": tc.LinearPool(
        {
            "gamma": tc.MixedPoisson(mixing="gamma"),
            "wald": tc.MixedPoisson(mixing="inverse Gaussian"),
        }
    ),
    "LogLinear": tc.LogLinear(),
}


def main() -> None:
    """Run or continue the study of every population, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--kinds", nargs="+", choices=list(LARGE_KINDS), default=list(LARGE_KINDS))
    parser.add_argument("--store", type=Path, default=HERE / "_store")
    parser.add_argument("--output", type=Path, default=HERE / "large_tables.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_large_tables.md"
    )
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    for kind in given.kinds:
        population = large_population(kind, given.seed)
        print(kind, file=sys.stderr, flush=True)
        result = tc.study(
            population,
            ESTIMATORS,
            fractions=[size / POPULATION_SIZE for size in SAMPLES],
            samples=given.samples,
            draws=given.draws,
            random_seed=given.seed,
            workers=given.workers,
            store=given.store / f"large_{kind}.jsonl",
        )
        table = tc.studies.study_table(result)
        frames.append(table.assign(population=kind, samples=given.samples))
    if given.output.exists():
        others = pd.read_csv(given.output)
        frames.append(others[~others["population"].isin(given.kinds)])
    rows = pd.concat(frames)
    rows["sample_size"] = (rows["fraction"] * POPULATION_SIZE).round().astype(int)
    write(given.output, rows.to_csv(index=False, float_format="%.6g"))
    samples = rows.groupby("population", sort=False)["samples"].first()
    shown = ", ".join(f"{number} of `{kind}`" for kind, number in samples.items())
    caption = f"Samples per row: {shown}; {given.draws} draws each.\n\n"
    write(given.fragment, caption + markdown(rows))


def markdown(rows: pd.DataFrame) -> str:
    """A row for each population, measure and sample size: truth and all estimators."""
    lines = [
        (
            "| population | measure | n | truth | latent classes: mean | coverage | width |"
            " pool: mean | coverage | width | log-linear: mean | coverage |"
        ),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    by: list[str] = ["population", "measure", "sample_size"]
    order = {name: number for number, name in enumerate([*LARGE_KINDS, "tau1", "R2", "R1"])}
    for (population, measure, size), group in sorted(
        rows.groupby(by), key=lambda item: (order[item[0][1]], order[item[0][0]], item[0][2])
    ):
        own = group.set_index("estimator")
        digits = 1 if measure == "tau1" else 3
        shown = [
            f"{row.estimate:.{digits}f} ± {row.estimate_mcse:.{digits}f} | {row.coverage:.0%}"
            + ("" if name == "LogLinear" else f" | {row.width:.{digits}f}")
            for name, row in ((name, own.loc[name]) for name in ESTIMATORS)
        ]
        lines.append(
            f"| {population} | {'τ1' if measure == 'tau1' else measure} | {size:,} |"
            f" {own.truth.iloc[0]:.{digits}f} | {' | '.join(shown)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
