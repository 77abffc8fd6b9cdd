"""The study behind `LinearPool()`, its members and the plug-in estimators: census and
generated tables at three sampling fractions.

Run as ``python docs/studies/default_estimator.py --part census`` and ``--part
generated``. It can be interrupted: what is done is kept in ``--store`` (a folder) and
the same command continues. The results are ``docs/explanation/_study_table_<part>.md``,
``_study_overview_<part>.md`` beside it and
``docs/studies/default_estimator_<part>.csv``. Seeds are fixed."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from generated import KINDS, generated_population

import taciturn as tc

HERE = Path(__file__).resolve().parent
FRACTIONS = (0.1, 0.05, 0.01)
CENSUS = ("area_by_religion", "area_by_country_of_birth", "area_by_mode_of_travel")
SIZES = (2_000, 50_000, 1_000_000)
ESTIMATORS: dict[str, tc.estimators.Estimator] = {
    "LinearPool": tc.LinearPool(),
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
    "LogLinear": tc.LogLinear(),
    "PolyaUrn": tc.PolyaUrn(),
}


def main() -> None:
    """Run or continue every study, and write the tables."""
    parser = study_parser(__doc__, samples=200, draws=1000, seed=2027)
    parser.add_argument("--part", choices=["census", "generated"], required=True)
    parser.add_argument(
        "--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS)
    )
    given = parser.parse_args()
    pages = HERE.parent / "explanation"
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, population in populations(given.part, given.seed):
        if given.tables and not any(part in name for part in given.tables):
            continue
        print(
            f"{name}: K = {population.size}, N = {int(population.sum())}",
            file=sys.stderr,
            flush=True,
        )
        result = tc.study(
            population,
            {estimator: ESTIMATORS[estimator] for estimator in given.estimators},
            fractions=FRACTIONS,
            samples=given.samples,
            draws=given.draws,
            random_seed=given.seed,
            workers=given.workers,
            store=given.store / f"{name}.jsonl",
        )
        frames.append(
            tc.studies.study_table(result).assign(table=name, population_size=int(population.sum()))
        )
    if not frames:
        sys.exit(f"no table name contains any of {given.tables}")
    rows = pd.concat(frames)
    first = ["table", "population_size"]
    write(
        HERE / f"default_estimator_{given.part}.csv",
        rows[first + [name for name in rows.columns if name not in first]].to_csv(index=False),
    )
    caption = (
        f"{given.samples} samples per cell, {given.draws} draws each; Monte Carlo errors are in the"
        " CSV file.\n\n"
    )
    write(pages / f"_study_table_{given.part}.md", caption + markdown(rows))
    write(pages / f"_study_overview_{given.part}.md", overview(rows))
    print(markdown(rows))


def study_parser(
    description: str | None, *, samples: int, draws: int, seed: int
) -> argparse.ArgumentParser:
    """What every study of several tables is told on its command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--samples", type=int, default=samples)
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--tables", nargs="+", help="only tables whose name contains one of these")
    parser.add_argument("--store", type=Path, default=HERE / "_store")
    return parser


def populations(part: str, seed: int) -> Iterable[tuple[str, xr.DataArray]]:
    """Names and tables of a part of the design."""
    if part == "census":
        yield from ((name.removeprefix("area_by_"), tc.load_dataset(name)) for name in CENSUS)
    else:
        yield from (
            (f"{kind}_{size}", generated_population(kind, size, seed))
            for kind in KINDS
            for size in SIZES
        )


def markdown(rows: pd.DataFrame) -> str:
    """R2 (bias, RMSE, coverage), R1 and τ1 (coverage): one line for each table,
    fraction and estimator."""
    columns = [
        "table",
        "n/N",
        "estimator",
        "R2",
        "bias",
        "RMSE",
        "covers R2",
        "width",
        "covers R1",
        "covers τ1",
    ]
    lines = [columns, ["---", "---:", "---", *["---:"] * 7]]
    for (table, fraction, estimator), cell in rows.groupby(
        ["table", "fraction", "estimator"], sort=False
    ):
        of = cell.set_index("measure")
        r2 = of.loc["R2"]
        numbers = [
            f"{r2['truth']:.3f}",
            f"{r2['bias']:+.4f}",
            f"{r2['rmse']:.4f}",
            f"{r2['coverage']:.3f}",
        ]
        numbers += [
            f"{r2['width']:.4f}",
            f"{of.loc['R1', 'coverage']:.3f}",
            f"{of.loc['tau1', 'coverage']:.3f}",
        ]
        notes = f" ({r2['failures']:.0f} failed)" if r2["failures"] else ""
        notes += f" ({r2['unconverged']:.0f} unconverged)" if r2["unconverged"] else ""
        lines.append([str(table), f"{fraction:g}", f"{estimator}{notes}", *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


def overview(rows: pd.DataFrame) -> str:
    """Coverage and error of R2 and R1, summed up over the cells of the census tables
    and of the generated ones."""
    head = [
        "tables",
        "measure",
        "estimator",
        "cells",
        "cells covering 0.90 to 0.99",
        "lowest",
        "highest",
    ]
    lines = [[*head, "mean absolute bias", "mean RMSE"], ["---"] * 3 + ["---:"] * 6]
    census = rows["table"].isin([name.removeprefix("area_by_") for name in CENSUS])
    for tables, part in (("census", rows[census]), ("generated", rows[~census])):
        for measure in ("R2", "R1"):
            for estimator in ESTIMATORS:
                cell = part[(part["estimator"] == estimator) & (part["measure"] == measure)]
                if cell.empty:
                    continue
                held = cell["coverage"]
                numbers = [
                    f"{len(cell)}",
                    f"{int(held.between(0.9, 0.99).sum())}",
                    f"{held.min():.3f}",
                    f"{held.max():.3f}",
                ]
                numbers += [f"{cell['bias'].abs().mean():.4f}", f"{cell['rmse'].mean():.4f}"]
                lines.append([tables, measure, estimator, *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


def joined(cells: Sequence[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def publish(given: argparse.Namespace, name: str, table: str, page: str) -> None:
    """Write the table and the page of a study, unless only some tables were asked for,
    and print the page.
    """
    if given.tables:
        sys.exit(f"not written, as not all tables were asked for:\n{page}")
    write(HERE / f"{name}.csv", table)
    write(HERE.parent / "explanation" / f"_{name}.md", page)
    print(page)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    main()
