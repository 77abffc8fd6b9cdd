"""What known totals of the areas buy: R2 and R1 of the census tables with and without
them, on the same samples.

Run as ``python docs/studies/known_margins.py``, some minutes on one core. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The result is ``docs/explanation/_known_margins.md`` and
``docs/studies/known_margins.csv``. Seeds are fixed."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, joined, populations, study_parser, write

import taciturn as tc

HERE = Path(__file__).resolve().parent
ESTIMATORS: dict[str, tc.estimators.Estimator] = {
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "LogLinear": tc.LogLinear(),
}
TOLD = {"without": (), "with": ("area",)}
MEASURES = ("R2", "R1")
BY = ["table", "fraction", "measure", "estimator"]


def main() -> None:
    """Run or continue both studies of every table, and write the tables."""
    parser = study_parser(__doc__, samples=100, draws=1000, seed=2028)
    parser.add_argument("--output", type=Path, default=HERE / "known_margins.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_known_margins.md"
    )
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, population in populations("census", given.seed):
        if given.tables and not any(part in name for part in given.tables):
            continue
        results, squares = {}, {}
        for told, variables in TOLD.items():
            print(f"{name}, {told} the totals by area", file=sys.stderr, flush=True)
            store = given.store / f"{name}_{told}_margins.jsonl"
            results[told] = tc.study(
                population,
                ESTIMATORS,
                fractions=FRACTIONS,
                samples=given.samples,
                draws=given.draws,
                known_margins=variables,
                random_seed=given.seed,
                workers=given.workers,
                store=store,
            )
            squares[told] = squared_errors(
                store, results[told].measure.values.tolist(), given.samples
            )
        sizes = json.loads(results["with"].attrs["settings"])["sample_sizes"]
        of_fraction = dict(zip(sorted(FRACTIONS), sizes, strict=True))
        for told, result in results.items():
            rows = tc.studies.study_table(result.sel(measure=list(MEASURES))).assign(
                table=name, totals=told
            )
            if told == "with":
                ratios = [
                    ratio(
                        *(
                            squares[x][estimator, of_fraction[fraction], measure]
                            for x in ("with", "without")
                        )
                    )
                    for fraction, measure, estimator in rows[BY[1:]].itertuples(index=False)
                ]
                rows[["rmse_ratio", "rmse_ratio_mcse"]] = ratios
            frames.append(rows)
    if not frames:
        sys.exit(f"no table name contains any of {given.tables}")
    rows = pd.concat(frames)
    if given.tables:
        sys.exit(
            "not written, as not all tables were asked for:\n"
            + markdown(rows, given.samples, given.draws)
        )
    first = ["table", "totals"]
    columns = first + [name for name in rows.columns if name not in first]
    write(given.output, rows[columns].to_csv(index=False, float_format="%.6g"))
    write(given.fragment, markdown(rows, given.samples, given.draws))
    print(markdown(rows, given.samples, given.draws))


def squared_errors(
    store: Path, measures: list[str], samples: int
) -> dict[tuple[str, int, str], dict[int, float]]:
    """Squared error of the mean in each sample that was estimated, by estimator, sample
    size and measure."""
    found: dict[tuple[str, int, str], dict[int, float]] = {}
    _, *lines = store.read_text(encoding="utf-8").splitlines()
    for record in map(json.loads, lines):
        if record["sample"] < samples and "mean" in record:
            for measure, mean, truth in zip(measures, record["mean"], record["truth"], strict=True):
                cell = found.setdefault((record["estimator"], record["size"], measure), {})
                cell[record["sample"]] = (mean - truth) ** 2
    return found


def ratio(told: dict[int, float], untold: dict[int, float]) -> tuple[float, float]:
    """RMSE with the totals over RMSE without, and its Monte Carlo error by the delta
    method; the samples are paired."""
    both = sorted(set(told) & set(untold))
    a, b = (np.array([squares[sample] for sample in both]) for squares in (told, untold))
    value = float(np.sqrt(a.mean() / b.mean()))
    spread = a / a.mean() - b / b.mean()
    return value, value * float(spread.std(ddof=1)) / len(both) ** 0.5 / 2


def markdown(rows: pd.DataFrame, samples: int, draws: int) -> str:
    """For each measure one line a table, fraction and estimator; errors in
    parentheses."""
    failed, unconverged = rows.loc[rows["measure"] == "R2", ["failures", "unconverged"]].sum()
    text = f"{samples} samples per cell, {draws} draws each; Monte Carlo errors in parentheses; "
    text += f"of all fits, {failed:.0f} failed and {unconverged:.0f} did not converge.\n"
    columns = [
        "table",
        "n/N",
        "estimator",
        "RMSE without",
        "RMSE with",
        "ratio",
        "bias without",
        "bias with",
    ]
    columns += ["covers without", "covers with", "width without", "width with"]
    for measure in MEASURES:
        lines = [columns, ["---", "---:", "---", *["---:"] * 9]]
        of_measure = rows[rows["measure"] == measure]
        for (table, fraction, _, estimator), cell in of_measure.groupby(BY, sort=False):
            pair = cell.set_index("totals").loc[list(TOLD)]
            numbers = [in_text(x, error, 4) for x, error in pair[["rmse", "rmse_mcse"]].values]
            numbers += [in_text(*pair.loc["with", ["rmse_ratio", "rmse_ratio_mcse"]], 2)]
            numbers += [f"{x:+.4f}" for x in pair["bias"]]
            numbers += [f"{x:.2f}" for x in pair["coverage"]] + [f"{x:.3f}" for x in pair["width"]]
            lines.append([str(table), f"{fraction:g}", str(estimator), *numbers])
        text += f"\n{measure}:\n\n" + "\n".join(joined(line) for line in lines) + "\n"
    return text


def in_text(value: float, error: float, digits: int) -> str:
    """A number with its Monte Carlo error."""
    return f"{value:.{digits}f} ({error:.{digits}f})"


if __name__ == "__main__":
    main()
