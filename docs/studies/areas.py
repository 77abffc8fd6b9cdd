"""Areas that share a profile beside each area by itself: repeated samples from areas
that are known.

Run as ``python docs/studies/areas.py``, some hours on two cores. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The results are ``docs/studies/areas.csv`` and
``docs/explanation/_areas.md``. Seeds are fixed."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import HERE, write
from generated_areas import AREA_KINDS, area_populations

import taciturn as tc

FRACTIONS = (0.05, 0.01)
NUMBERS = {10: 4, 100: 1, 1000: 1}  # of areas, and of samples of each
FEW = (10, 100)
MOST_ALONE = 40  # areas that are fitted by themselves, too, as each takes half a second
CENSUS = ("religion", "mode_of_travel", "country_of_birth")
SHARED, ALONE = "shared", "alone"


def main() -> None:
    """Run or continue the study, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=2033)
    parser.add_argument(
        "--tables", nargs="+", help="only these, by name or kind; others keep their rows"
    )
    parser.add_argument("--store", type=Path, default=HERE / "_store")
    parser.add_argument("--output", type=Path, default=HERE / "areas.csv")
    parser.add_argument("--fragment", type=Path, default=HERE.parent / "explanation" / "_areas.md")
    given = parser.parse_args()
    rows = []
    for name, population, samples in populations(given.seed):
        if given.tables and not {name, name.split()[0]} & set(given.tables):
            continue
        for fraction in FRACTIONS:
            print(name, fraction, file=sys.stderr, flush=True)
            rows += studied(given, name, population, fraction, samples)
    frame = with_others(given, pd.DataFrame(rows))
    write(given.output, frame.to_csv(index=False, float_format="%.6g"))
    write(given.fragment, markdown(frame))
    print(markdown(frame))


def with_others(given: argparse.Namespace, found: pd.DataFrame) -> pd.DataFrame:
    """The rows found, and those that the results have of other populations."""
    if not given.tables or not given.output.exists():
        return found
    known = pd.read_csv(given.output)
    every = pd.concat([known[~known["table"].isin(found["table"])], found])
    order = {name: k for k, (name, *_) in enumerate(populations(given.seed))}
    return every.sort_values("table", key=lambda names: names.map(order), kind="stable")


def populations(seed: int) -> Iterator[tuple[str, xr.DataArray, int]]:
    """Names, populations and how many samples are drawn of each."""
    for number, samples in NUMBERS.items():
        for kind in AREA_KINDS:
            yield f"{kind} {number}", area_populations(kind, number, seed), samples
    for name in CENSUS:
        yield f"{name} 10", tc.load_dataset(f"area_by_{name}"), 8


def studied(
    given: argparse.Namespace, name: str, population: xr.DataArray, fraction: float, samples: int
) -> list[dict[str, object]]:
    """Rows of one population and fraction."""
    sizes = population.sum([dim for dim in population.dims if dim != "area"])
    found: dict[str, list[pd.DataFrame]] = {SHARED: [], ALONE: []}
    for number in range(samples):
        seed = given.seed + number
        sample = sampled(population, fraction, seed)
        every = {
            SHARED: (shared_profile(len(sample)), slice(None)),
            ALONE: (None, slice(MOST_ALONE)),
        }
        for how, (estimator, some) in every.items():
            own = sample.isel(area=some)
            estimator = estimator or tc.default_estimator(own[0])
            path = given.store / f"areas_{name}_{fraction}_{number}_{how}".replace(" ", "_")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tc.ConvergenceWarning)  # counted below
                risk = tc.assess_many(
                    own, over="area", population_size=sizes.isel(area=some), estimator=estimator,
                    draws=given.draws, random_seed=seed, workers=given.workers, store=path,
                )  # fmt: skip
            found[how].append(errors(population.isel(area=some), own, risk))
    return [
        {"table": name, "fraction": fraction, "estimator": how, "measure": measure, **row}
        for how, parts in found.items()
        for measure, row in scored(pd.concat(parts)).items()
    ]


def shared_profile(areas: int) -> tc.SharedProfile:
    """That of the defaults for a thousand areas; shorter chains for fewer, of which
    there are many samples.
    """
    return tc.SharedProfile() if areas > max(FEW) else tc.SharedProfile(areas=500, draws=500)


def sampled(population: xr.DataArray, fraction: float, seed: int) -> xr.DataArray:
    """A simple random sample of each area."""
    rng = np.random.default_rng([seed, 1])
    counts = population.values.reshape(len(population), -1)
    sizes = np.maximum(np.round(fraction * counts.sum(axis=1)), 2).astype(int)
    drawn = [
        rng.multivariate_hypergeometric(own, size) for own, size in zip(counts, sizes, strict=True)
    ]
    return population.copy(data=np.reshape(drawn, population.shape))


def errors(population: xr.DataArray, sample: xr.DataArray, risk: xr.Dataset) -> pd.DataFrame:
    """Truth, mean and interval of each area and measure."""
    cells = [dim for dim in population.dims if dim != "area"]
    truth = tc.disclosure_risk(population, sample, dim=cells)
    unique = ((population == 1) & (sample == 1)).sum(cells)
    columns = {}
    for measure, values in {"R1": truth["R1"], "R2": truth["R2"], "tau1": unique}.items():
        columns[measure] = pd.DataFrame(
            {
                "truth": values.values,
                "mean": risk[f"{measure}_mean"].values,
                "low": risk[measure].sel(quantile=0.025).values,
                "high": risk[measure].sel(quantile=0.975).values,
                "converged": risk["converged"].values,
                "beside": np.arange(len(sample)) < MOST_ALONE,
            }
        )
    return pd.concat(columns, names=["measure"])


def scored(areas: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Statistics over areas and samples, by measure."""
    found = {}
    for measure, own in areas.groupby("measure"):
        known = own.dropna()
        off = known["mean"] - known["truth"]
        covered = (known["low"] <= known["truth"]) & (known["truth"] <= known["high"])
        found[str(measure)] = {
            "areas": len(own),
            "failures": len(own) - len(known),
            "truth": known["truth"].mean(),
            "bias": off.mean(),
            "rmse": float(np.sqrt((off**2).mean())),
            "rmse_beside": float(np.sqrt((off[known["beside"]] ** 2).mean())),
            "coverage": covered.sum() / len(own),
            "width": (known["high"] - known["low"]).mean(),
            "converged": own["converged"].mean(),
        }
    return found


def markdown(rows: pd.DataFrame) -> str:
    """R2 of both ways, and how often R1 and τ1 were covered: a line for each table."""
    lines = [
        (
            "| areas | n/N | R2 | alone: RMSE | width | covers R2 | shared: RMSE | of alone |"
            " width | covers R2 | covers R1 | covers τ1 |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (table, fraction), group in rows.groupby(["table", "fraction"], sort=False):
        by = group.set_index(["estimator", "measure"])
        alone, own = by.loc[(ALONE, "R2")], by.loc[(SHARED, "R2")]
        lines.append(
            f"| {table} | {fraction} | {own.truth:.3f} | {alone.rmse:.3f} | {alone.width:.3f} |"
            f" {alone.coverage:.0%} | {own.rmse:.3f} | {own.rmse_beside / alone.rmse:.2f} |"
            f" {own.width:.3f} | {own.coverage:.0%} | {by.loc[(SHARED, 'R1')].coverage:.0%} |"
            f" {by.loc[(SHARED, 'tau1')].coverage:.0%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
