"""How well `MixedPoisson` covers R2, R1 and tau1 on the tables of
``default_estimator.py``, beside the pool that is the default.

Run as ``python docs/studies/mixed_poisson.py``, with ``--tables`` for some of them. It
can be interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues. The pool's numbers are those of ``default_estimator_<part>.csv``, from more
samples of the same populations. The results are ``docs/studies/mixed_poisson.csv`` and
``docs/explanation/_mixed_poisson.md``. Seeds are fixed."""

import argparse
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, HERE, joined, populations, write

import taciturn as tc

NAME = "MixedPoisson"


def main() -> None:
    """Run or continue the study of every table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--tables", nargs="+", help="only tables whose name contains one of these")
    parser.add_argument("--store", type=Path, default=HERE / "_store")
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    frames, pool = [], []
    for part in ("census", "generated"):
        others = pd.read_csv(HERE / f"default_estimator_{part}.csv")
        pool.append(others[others["estimator"] == "LinearPool"])
        for name, population in populations(part, given.seed):
            if given.tables and not any(some in name for some in given.tables):
                continue
            print(name, file=sys.stderr, flush=True)
            result = tc.study(
                population,
                {NAME: tc.MixedPoisson()},
                fractions=FRACTIONS,
                samples=given.samples,
                draws=given.draws,
                random_seed=given.seed,
                workers=given.workers,
                store=given.store / f"mixed_poisson_{name}.jsonl",
                progressbar=False,
            )
            frames.append(tc.studies.study_table(result).assign(table=name))
    rows = pd.concat(frames)
    write(HERE / "mixed_poisson.csv", rows.to_csv(index=False))
    text = markdown(rows, pd.concat(pool), given.samples)
    write(HERE.parent / "explanation" / "_mixed_poisson.md", text)
    print(text)


def markdown(rows: pd.DataFrame, pool: pd.DataFrame, samples: int) -> str:
    """For each table and fraction what was found of R2, and the pool's numbers in
    brackets; before it, a summary.
    """
    head = ["table", "n/N", "R2", "covers R2", "bias", "RMSE", "width", "covers R1", "covers τ1"]
    lines = [joined(head), joined(["---", "---:", "---:", *["---:"] * 6])]
    keys = ["table", "fraction", "measure"]
    own, other = (each.set_index(keys).sort_index() for each in (rows, pool))
    shares = []
    for table, fraction in dict.fromkeys(zip(rows["table"], rows["fraction"], strict=True)):
        ours, theirs = own.loc[(table, fraction)], other.loc[(table, fraction)]
        shares.append(ours.loc["R2", "width"] / theirs.loc["R2", "width"])
        cells = [table, f"{fraction:g}", f"{ours.loc['R2', 'truth']:.3f}"]
        for measure, column, digits in (
            ("R2", "coverage", 2),
            ("R2", "bias", 3),
            ("R2", "rmse", 3),
            ("R2", "width", 3),
            ("R1", "coverage", 2),
            ("tau1", "coverage", 2),
        ):
            sign = "+" if column == "bias" else ""
            a, b = (f"{each.loc[measure, column]:{sign}.{digits}f}" for each in (ours, theirs))
            cells.append(f"{a} ({b})")
        lines.append(joined(cells))
    of_r2 = rows[rows["measure"] == "R2"]
    covered, flows = of_r2["coverage"], of_r2["table"].str.startswith("origin_destination")
    summary = (
        f"{samples} samples a cell. R2 is covered in {covered.mean():.3f} on average, in"
        f" {int((covered >= 0.9).sum())} of {len(covered)} cells in at least 0.9; in tables other"
        f" than flows in {covered[~flows].mean():.3f}, at least {covered[~flows].min():.2f}, and in"
        f" {int((covered[~flows] >= 0.9).sum())} of {int((~flows).sum())}. The intervals are"
        f" {pd.Series(shares).median():.2f} times as wide as the pool's (median;"
        f" {min(shares):.2f} to {max(shares):.2f}). In brackets the pool, from 200 samples.\n"
    )
    return "\n".join([summary, *lines]) + "\n"


if __name__ == "__main__":
    main()
