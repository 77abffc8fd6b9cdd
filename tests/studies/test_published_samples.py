"""The plug-in estimators reproduce the printed results on the religion table.

Error bound, for each printed mean: four standard errors of the difference, where our
mean over 200 samples has ``sd / sqrt(200)``, the papers' mean over 1,000 samples ``sd /
sqrt(1000)`` with the same sd, plus half a unit of the last printed digit (0.00005). The
variance over the 50 draws within a sample is part of sd. The bound comes to 0.0015 for
the true R2 at a fraction of 0.1, 0.006 for the estimators there and 0.015 at 0.01: 10 %
of R2 = 0.17 off fails."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import taciturn as tc
from taciturn.errors import EstimationError

SAMPLES, DRAWS, PAPER_SAMPLES = 200, 50, 1000
PRINTED = Path(__file__).parents[1] / "data" / "published_sample_tables.csv"
ESTIMATORS = {"loglinear": tc.LogLinear(), "polya_urn": tc.PolyaUrn()}

pytestmark = pytest.mark.statistical


def census_rows() -> list[dict[str, str]]:
    with PRINTED.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["population"] == "census"]


@cache
def simulated(fraction: float, quantity: str) -> dict[str, np.ndarray]:
    """Mean R1 and R2 of each of 200 samples."""
    population = tc.load_dataset("area_by_religion")
    samples = tc.draw_sample(
        population, fraction=fraction, replicates=SAMPLES, random_seed=20_150_101
    )
    if quantity == "true":
        risk = tc.disclosure_risk(population, samples)
        return {"R1": risk.R1.values, "R2": risk.R2.values}
    means: dict[str, list[float]] = {"R1": [], "R2": []}
    unsolved = 0
    for i in range(SAMPLES):
        sample = samples.isel(replicate=i, drop=True)
        try:
            fit = ESTIMATORS[quantity].fit(
                sample, population_size=int(population.sum()), draws=DRAWS, chains=1, random_seed=i
            )
        except EstimationError:
            unsolved += 1
            continue
        risk = tc.disclosure_risk(fit["posterior_predictive"]["population"], sample)
        for measure, values in means.items():
            values.append(float(risk[measure].mean()))
    assert unsolved == 0
    return {measure: np.array(values) for measure, values in means.items()}


@pytest.mark.parametrize("row", census_rows(), ids=lambda r: "-".join(list(r.values())[:5]))
def test_printed_mean(row: dict[str, str]) -> None:
    values = simulated(float(row["fraction"]), row["quantity"])[row["measure"]]
    error = values.std(ddof=1) * (1 / SAMPLES + 1 / PAPER_SAMPLES) ** 0.5
    assert abs(values.mean() - float(row["mean"])) < 4 * error + 0.00005


@pytest.mark.parametrize(
    "row", [r for r in census_rows() if r["sd"]], ids=lambda r: "-".join(list(r.values())[:5])
)
def test_printed_sd(row: dict[str, str]) -> None:
    """The printed sd is over samples; the standard error of a log sd of 200 and of
    1,000 near-normal values."""
    sd = simulated(float(row["fraction"]), row["quantity"])[row["measure"]].std(ddof=1)
    error = (1 / (2 * SAMPLES) + 1 / (2 * PAPER_SAMPLES)) ** 0.5
    assert abs(np.log(sd / float(row["sd"]))) < 4 * error
