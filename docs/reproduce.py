"""Compute the published results again and put them beside the printed values.

Run as ``python docs/reproduce.py`` from anywhere. It prints the tables and writes them to
``docs/explanation/_reproduction_*.md``, which the page on reproduction includes. Seeds are fixed, so the same versions
give the same numbers.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import taciturn as tc
from taciturn.estimators.draws import draw_urn

HERE = Path(__file__).resolve().parent
PRINTED = HERE.parent / "tests" / "data"
FRAGMENTS = HERE / "explanation"

ROUNDINGS = 1000  # as in the paper
SAMPLES, DRAWS = 200, 100  # the papers: 1000 and 1000
GENERATED, GENERATED_SAMPLES, GENERATED_DRAWS = 40, 25, 25

NUMBER = re.compile(r"[\d.]+( \([\d.]+\))?|exact")
DATASETS = {
    "country_of_birth": "area_by_country_of_birth",
    "mode_of_travel": "area_by_mode_of_travel",
    "sex": "area_by_sex",
    "religion": "area_by_religion",
}
PAPER_TABLE = {"country_of_birth": 1, "mode_of_travel": 2, "sex": 3, "religion": 4}
MEASURES = {"R1": "R1", "R2_2014": "R2, 2014", "hellinger": "Hellinger"}


def main() -> None:
    """Write and print every fragment."""
    rows = population_rows()
    whole = [population_line(row) for row in rows if row["margin"] == "table"]
    write("tables", table(without_part(POPULATION_HEADER), map(without_part, whole)))
    write("agreement", agreement([row for row in rows if row["margin"] != "table"]))
    write("rows", table(POPULATION_HEADER, (population_line(row) for row in rows if row["margin"] != "table")))
    write("samples", census_samples())
    write("generated", generated_samples())


# ---------------------------------------------------------------- population tables, ASE14


def population_rows() -> list[dict[str, Any]]:
    """Printed and computed value of every R1, R2 and Hellinger distance of ASE14, Tables 1-4."""
    computed = {name: population_measures(dataset) for name, dataset in DATASETS.items()}
    rows = []
    for printed in read_printed("published_population_tables.csv"):
        values = computed[printed["table"]][printed["margin"]][printed["measure"]]
        if printed["margin"] != "table":
            values = values.sel({printed["margin"]: printed["level"]})
        draws = values.values.ravel()
        error = float(draws.std(ddof=1) / np.sqrt(draws.size)) if draws.size > 1 else 0.0
        rows.append(printed | {"value": float(printed["value"]), "ours": float(draws.mean()), "error": error})
    order = list(PAPER_TABLE)
    margins = {"area": 0, "table": 2}
    rows.sort(key=lambda row: (order.index(row["table"]), margins.get(row["margin"], 1)))
    return rows


def population_measures(dataset: str) -> dict[str, dict[str, xr.DataArray]]:
    """R1, R2 (2014) and Hellinger distance of the rows, the columns and the whole of a table."""
    population = tc.load_dataset(dataset)
    rounded = tc.random_round(population, base=3, replicates=ROUNDINGS, random_seed=2014)
    area, other = (str(dim) for dim in population.dims)
    found = {}
    for margin, over in {area: other, other: area, "table": None}.items():
        risk = tc.disclosure_risk(population, rounded, dims=over, variant="2014")
        distance = tc.hellinger_distance(population, rounded, dims=over)
        before = tc.disclosure_risk(population, dims=over)
        found[margin] = {"R1": before["R1"], "R2_2014": risk["R2"], "hellinger": distance}
    return found


POPULATION_HEADER = ("table of the paper", "part", "measure", "printed", "taciturn", "Monte Carlo error")


def population_line(row: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table of population results."""
    part = "whole table" if row["margin"] == "table" else f"{row['margin']} {row['level']}".replace("_", " ")
    name = f"{PAPER_TABLE[row['table']]}, {row['table'].replace('_', ' ')}"
    error = "exact" if row["measure"] == "R1" else f"{row['error']:.5f}"
    return (name, part, MEASURES[row["measure"]], f"{row['value']:.4f}", f"{row['ours']:.4f}", error)


def without_part(line: Sequence[str]) -> list[str]:
    """Drop the column that is the same for all whole tables."""
    return [*line[:1], *line[2:]]


def agreement(rows: Sequence[dict[str, Any]]) -> str:
    """Count how many of the values of single rows and columns agree."""
    lines = []
    for name in PAPER_TABLE:
        for measure, title in MEASURES.items():
            chosen = [row for row in rows if (row["table"], row["measure"]) == (name, measure)]
            agreeing = sum(agrees(row) for row in chosen)
            largest = max(abs(row["ours"] - row["value"]) for row in chosen)
            label = f"{PAPER_TABLE[name]}, {name.replace('_', ' ')}"
            lines.append((label, title, str(len(chosen)), str(agreeing), f"{largest:.4f}"))
    return table(("table of the paper", "measure", "rows and columns", "agree", "largest difference"), lines)


def agrees(row: dict[str, Any]) -> bool:
    """To the printed digits for R1; within four standard errors of two simulations for the others."""
    return abs(row["ours"] - row["value"]) <= 0.5e-4 + 1e-9 + 4 * np.sqrt(2) * row["error"]


# ---------------------------------------------------------------- sample tables, ASE15 and ASE-NTTS


def census_samples() -> str:
    """Mean and standard deviation of R1 and R2, true and estimated, over samples of the religion table."""
    population = tc.load_dataset("area_by_religion")
    printed = read_printed("published_sample_tables.csv")
    lines = []
    for fraction in (0.1, 0.05, 0.01):
        samples = tc.draw_sample(population, fraction=fraction, replicates=SAMPLES, random_seed=2015)
        found = {"true": tc.disclosure_risk(population, samples)}
        for name, estimator in {"loglinear": tc.LogLinear(), "polya_urn": tc.PolyaUrn()}.items():
            found[name] = tc.disclosure_risk(fitted_populations(estimator, samples, population), samples)
        for row in printed:
            if row["population"] == "census" and float(row["fraction"]) == fraction:
                lines.append(sample_line(row, found[row["quantity"]][row["measure"]]))
    header = ("source", "n/N", "measure", "population", "printed mean (sd)", "taciturn mean (sd)", "Monte Carlo error")
    return table(header, lines)


def fitted_populations(estimator: tc.Estimator, samples: xr.DataArray, population: xr.DataArray) -> xr.DataArray:
    """Population draws for each sample, dims (replicate, chain, draw, ...)."""
    drawn = []
    for seed in range(samples.sizes["replicate"]):
        sample = samples.isel(replicate=seed, drop=True)
        fit = estimator.fit(
            sample, population_size=int(population.sum()), draws=DRAWS, chains=1, random_seed=seed, progressbar=False
        )
        drawn.append(fit["posterior_predictive"]["population"])
    return xr.concat(drawn, dim=samples["replicate"])


def sample_line(row: dict[str, str], values: xr.DataArray) -> tuple[str, ...]:
    """One line of the table of sample results."""
    source = {"000": "ASE-NTTS", "004": "ASE15"}[row["source"]]
    what = {"true": "known", "loglinear": "log-linear", "polya_urn": "Pólya urn"}[row["quantity"]]
    deviation = f" ({float(row['sd']):.4f})" if row["sd"] else ""
    of_samples = values.mean([dim for dim in values.dims if dim != "replicate"])
    spread_of_samples = float(of_samples.std(ddof=1))
    if spread_of_samples < 1e-12:  # R1 of the known population is the same for every sample
        ours, error = f"{float(of_samples[0]):.4f}", "exact"
    else:
        ours = f"{float(of_samples.mean()):.4f} ({spread_of_samples:.4f})"
        error = f"{spread_of_samples / np.sqrt(of_samples.size):.4f}"
    return (source, row["fraction"], row["measure"], what, f"{float(row['mean']):.4f}{deviation}", ours, error)


def generated_samples() -> str:
    """Compute the rows of ASE15 on one population generated by a model, for many such populations."""
    lines = []
    for row in read_printed("published_sample_tables.csv"):
        if row["population"] == "census" or row["quantity"] != "true":
            continue
        known, estimated = zip(*generated(row["population"], float(row["fraction"])), strict=True)
        model = "log-linear" if row["population"] == "generated_loglinear" else "Pólya urn"
        partner = {"generated_loglinear": "loglinear", "generated_polya": "polya_urn"}[row["population"]]
        printed = {
            other["quantity"]: f"{float(other['mean']):.4f}"
            for other in read_printed("published_sample_tables.csv")
            if (other["population"], other["fraction"]) == (row["population"], row["fraction"])
        }
        lines.append((model, row["fraction"], "known", printed["true"], *spread(known)))
        lines.append((model, row["fraction"], "estimated", printed[partner], *spread(estimated)))
    header = ("model", "n/N", "population", "printed", "taciturn, mean", "from", "to")
    return table(header, lines)


def generated(model: str, fraction: float) -> Iterable[tuple[float, float]]:
    """Known and estimated mean R2 over samples of one generated population after the other."""
    census = tc.load_dataset("area_by_religion")
    size = int(census.sum())
    rng = np.random.default_rng(1984)
    shares = (tc.margin(census, "area") * tc.margin(census, "religion") / size**2).values.ravel()
    for _ in range(GENERATED):
        first = tc.draw_sample(census, fraction=fraction, random_seed=rng)
        if model == "generated_loglinear":
            cells = rng.multinomial(size, shares)
        else:
            empty_cells = int((census == 0).sum())
            fit = tc.PolyaUrn(empty_cells=empty_cells).fit(
                first, population_size=size, draws=1, chains=1, random_seed=rng
            )
            theta = float(fit["constant_data"]["theta"])
            cells = fit["posterior_predictive"]["population"].values.ravel()
        population = census.copy(data=cells.reshape(census.shape))
        samples = tc.draw_sample(population, fraction=fraction, replicates=GENERATED_SAMPLES, random_seed=rng)
        drawn = []
        for sample in samples.values.reshape(GENERATED_SAMPLES, -1):
            if model == "generated_loglinear":
                drawn.append(sample + rng.multinomial(size - sample.sum(), shares, size=GENERATED_DRAWS))
            else:
                drawn.append(draw_urn(sample, sample == 0, size, np.full(GENERATED_DRAWS, theta), rng))
        shape = (GENERATED_SAMPLES, GENERATED_DRAWS, *census.shape)
        coords = {"replicate": samples["replicate"], **{dim: census[dim] for dim in census.dims}}
        draws = xr.DataArray(np.reshape(drawn, shape), dims=("replicate", "draw", *census.dims), coords=coords)
        yield (
            float(tc.disclosure_risk(population, samples)["R2"].mean()),
            float(tc.disclosure_risk(draws, samples)["R2"].mean()),
        )


def spread(values: Sequence[float]) -> tuple[str, str, str]:
    """Mean over generated populations, the smallest and the largest value."""
    return (f"{np.mean(values):.4f}", f"{min(values):.4f}", f"{max(values):.4f}")


# ---------------------------------------------------------------- reading and writing


def read_printed(name: str) -> list[dict[str, str]]:
    """Rows of a file of printed values."""
    with (PRINTED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lay lines out as a Markdown table, numbers to the right."""
    body = [list(line) for line in lines]
    numeric = [all(NUMBER.fullmatch(line[i]) for line in body) for i in range(len(header))]
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [list(header), rule, *body]) + "\n"


def write(name: str, text: str) -> None:
    """Print a fragment and write it where the documentation includes it."""
    print(f"{name}\n\n{text}", flush=True)
    (FRAGMENTS / f"_reproduction_{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
