"""Write the model cards in models/: three estimators on one sample of each of three
census tables.

Run as ``python docs/studies/make_cards.py``. Each card takes two fits, of which the
reference by NUTS with long chains, and 1,000 simulations for its calibration: minutes.
Seeds are fixed. ``taciturn validate models`` checks the cards."""

import argparse
import sys
import time
from pathlib import Path
from typing import Final

import xarray as xr

import taciturn as tc

ROOT: Final = Path(__file__).resolve().parents[2]
CITATION: Final = (
    "Census of England and Wales 2001, ten output areas, as printed in Antal, Shlomo & Elliot"
    " (2014), Tables 1-4"
)
TABLES: Final = ("area_by_religion", "area_by_country_of_birth", "area_by_mode_of_travel")
ESTIMATORS: Final[dict[str, tc.estimators.Estimator]] = {
    "LinearPool": tc.LinearPool(),
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
}
FRACTION: Final = 0.1
SAMPLE_SEED, FIT_SEED, REFERENCE_SEED, CALIBRATION_SEED = 1, 1, 2, 3
NO_CALIBRATION: Final = (
    "Not applicable: a pool is no posterior of one model and prior, so it has no population of its"
    " own to draw; its members are calibrated each, on cards of their own."
)


def main() -> None:
    """Write the cards that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument(
        "--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS)
    )
    parser.add_argument("--draws", type=int, default=10_000, help="of the reference, per chain")
    parser.add_argument("--simulations", type=int, default=1000, help="of the calibration")
    parser.add_argument(
        "--workers", type=int, help="processes of the calibration; all cores by default"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "models")
    given = parser.parse_args()
    jobs = [(table, name) for table in given.tables for name in given.estimators]
    for number, (table, name) in enumerate(jobs, start=1):
        start = time.monotonic()
        path = given.output / f"{table}-{name}.toml"
        make_card(path, table, ESTIMATORS[name], given.draws, given.simulations, given.workers)
        print(
            f"{number}/{len(jobs)} {path.name}: {time.monotonic() - start:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def make_card(
    path: Path,
    table: str,
    estimator: tc.estimators.Estimator,
    draws: int,
    simulations: int,
    workers: int | None,
) -> None:
    """Fit, fit the reference, calibrate, write."""
    population = tc.load_dataset(table)
    size = int(population.sum())
    sample = tc.draw_sample(population, fraction=FRACTION, random_seed=SAMPLE_SEED)
    common = {"population_size": size, "progressbar": False}
    fit = estimator.fit(sample, random_seed=FIT_SEED, **common)
    reference = estimator.fit(
        sample, draws=draws, random_seed=REFERENCE_SEED, method="nuts", **common
    )
    calibration: xr.Dataset | str = NO_CALIBRATION
    if not isinstance(estimator, tc.LinearPool):
        calibration = tc.calibrate(
            estimator,
            population,
            sample_size=int(sample.sum()),
            population_size=size,
            simulations=simulations,
            random_seed=CALIBRATION_SEED,
            progressbar=False,
            workers=workers,
        )
    tc.cards.write_card(
        path,
        fit,
        reference=reference,
        table=table,
        citation=CITATION,
        fraction=FRACTION,
        random_seed=SAMPLE_SEED,
        calibration=calibration,
        command="python docs/studies/make_cards.py",
        overwrite=True,
    )


if __name__ == "__main__":
    main()
