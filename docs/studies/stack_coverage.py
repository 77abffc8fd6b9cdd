"""Whether the stack's intervals of R2 hold as often as its members', over the design of
``default_estimator.py``.

Run as ``python docs/studies/stack_coverage.py``, about half an hour on one core. It can
be interrupted: what is done is kept in ``--store`` (a file) and the same command
continues; more samples add to what is there. The result is
``docs/explanation/_stack_coverage.md`` and ``docs/studies/stack_coverage.csv``. Seeds
are fixed; the samples, and each member's fit, are the first of those of
``default_estimator.py``."""

import argparse
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import softmax

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import CENSUS, ESTIMATORS, FRACTIONS, joined, populations, write

import taciturn as tc
from taciturn.errors import ComparisonWarning, ConvergenceWarning
from taciturn.estimators.mixture import turns
from taciturn.fits.mixtures import members_of
from taciturn.fits.unlabelled import interval
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.store import Store
from taciturn.studies.jobs import Job, _sequence, draw_job_sample

HERE = Path(__file__).resolve().parent
MEMBERS = {name: ESTIMATORS[name] for name in ("DirichletLogLinear", "ChineseRestaurant")}
MIXTURES = ("Stack", "– by bb-pseudo-bma", "– by pseudo-bma", "equal weights")
RESAMPLES = 1000  # of the Bayesian bootstrap
APART = (  # whose members miss on both sides, so that every mixture gains
    "origin_destination_1000000"
)

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Fit every sample, or continue, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60, help="a cell of the generated tables")
    parser.add_argument(
        "--census-samples", type=int, default=100, help="a cell of the census tables"
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--tables", nargs="+", help="only tables whose name contains one of these")
    parser.add_argument("--store", type=Path, default=HERE / "_store" / "stack_coverage.jsonl")
    parser.add_argument("--output", type=Path, default=HERE / "stack_coverage.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_stack_coverage.md"
    )
    given = parser.parse_args()
    given.store.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "study": "stack coverage",
        "draws": given.draws,
        "seed": given.seed,
        "version": tc.__version__,
    }
    wanted = {"census": given.census_samples, "generated": given.samples}
    found = []
    with Store(given.store, header) as kept:
        done = {
            (record["table"], record["fraction"], record["sample"]): record
            for record in kept.records
        }
        for part, samples in wanted.items():
            for name, population in populations(part, given.seed):
                if given.tables and not any(own in name for own in given.tables):
                    continue
                print(
                    f"{name}: K = {population.size}, N = {int(population.sum())}",
                    file=sys.stderr,
                    flush=True,
                )
                for fraction in FRACTIONS:
                    for sample in range(samples):
                        if (name, fraction, sample) not in done:
                            scores = one_sample(
                                population, fraction, sample, given.draws, given.seed
                            )
                            done[name, fraction, sample] = {
                                "table": name,
                                "fraction": fraction,
                                "sample": sample,
                                **scores,
                            }
                            kept.add(done[name, fraction, sample])
                        found.append(done[name, fraction, sample])
    if not found:
        sys.exit(f"no table name contains any of {given.tables}")
    rows = pd.DataFrame(by_cell(found))
    write(given.output, rows.to_csv(index=False, float_format="%.6g"))
    caption = (
        f"{given.census_samples} samples per cell of the census tables, {given.samples} per"
        " cell of the generated ones, "
    )
    caption += f"{given.draws} draws each.\n\n"
    write(given.fragment, f"{caption}{overview(rows)}\n{cells(rows)}")
    print(overview(rows), cells(rows), sep="\n")


def one_sample(
    population: xr.DataArray, fraction: float, number: int, draws: int, seed: int
) -> dict[str, Any]:
    """Weights, and mean and interval of R2, of the members and their mixtures on one
    sample."""
    size = round(fraction * int(population.sum()))
    job = Job(population, None, None, size, number, MEMBERS, draws, DEFAULT_WEIGHTS, "fast", seed)
    sample = draw_job_sample(job)
    fits, unconverged = {}, []
    for name, estimator in MEMBERS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fits[name] = estimator.fit(
                sample,
                population_size=int(population.sum()),
                draws=draws,
                chains=1,
                random_seed=int(_sequence(job, f"estimator {name}").generate_state(1)[0]),
                progressbar=False,
            )
        if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
            unconverged.append(name)
    rng = np.random.default_rng(_sequence(job, "stack"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComparisonWarning)  # counted below
        stacked = tc.fits.stack(fits, random_seed=rng)
        loo = {name: tc.loo(fit) for name, fit in fits.items()}
    risk = {
        name: tc.assess(fit)["risk"]["R2"].values.ravel()
        for name, fit in {**fits, "Stack": stacked}.items()
    }
    occupied = sample.values[sample.values > 0]
    # All individuals of a cell have the same term; they stand in the order of the
    # cells.
    terms = np.stack([own.elpd_i.values[np.cumsum(occupied) - 1] for own in loo.values()])
    weights = {
        "Stack": np.array([member.share for member in members_of(stacked).values()]),
        "– by bb-pseudo-bma": bootstrapped_weights(terms, occupied, rng),
        "– by pseudo-bma": softmax(terms @ occupied),
        "equal weights": np.full(len(MEMBERS), 1 / len(MEMBERS)),
    }
    of_members = np.stack([risk[name] for name in MEMBERS])
    for name in MIXTURES[1:]:
        risk[name] = of_members[rng.permutation(turns(weights[name], draws)), np.arange(draws)]
    return {
        "truth": float(tc.disclosure_risk(population, sample)["R2"]),
        "unconverged": unconverged,
        "high_k": [name for name, own in loo.items() if own.warning],
        "weights": {name: float(own[0]) for name, own in weights.items()},
        "risk": {name: [float(own.mean()), *interval(own, "R2")] for name, own in risk.items()},
    }


def bootstrapped_weights(
    terms: Floats, counts: npt.NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Weights by bb-pseudo-bma from the terms (member, occupied cell) of the
    individuals of each cell.

    The shares of a cell's individuals in a Bayesian bootstrap add up to one Gamma
    variable, so there is no need for one each, which takes seconds for a hundred
    thousand individuals."""
    shares = rng.standard_gamma(counts, (RESAMPLES, len(counts)))
    elpd = counts.sum() * shares @ terms.T / shares.sum(axis=1, keepdims=True)
    return np.asarray(softmax(elpd, axis=1).mean(axis=0))


def by_cell(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, object]]:
    """Statistics of R2 for each cell and estimator, with Monte Carlo errors."""
    for (table, fraction), cell in pd.DataFrame(records).groupby(["table", "fraction"], sort=False):
        truth = cell["truth"].to_numpy()
        means, lows, highs = {}, {}, {}
        for name in (*MEMBERS, *MIXTURES):
            means[name], lows[name], highs[name] = np.array([risk[name] for risk in cell["risk"]]).T
        held = {
            name: ((lows[name] <= truth) & (truth <= highs[name])).astype(float) for name in means
        }
        best = better(held, slice(None))
        for name in means:
            error = means[name] - truth
            weight = [own.get(name, np.nan) for own in cell["weights"]]
            yield {
                "table": table,
                "fraction": fraction,
                "estimator": name,
                "samples": len(cell),
                "truth": truth.mean(),
                "bias": error.mean(),
                "bias_mcse": standard_error(error),
                "rmse": np.sqrt((error**2).mean()),
                "rmse_mcse": standard_error(error**2) / (2 * np.sqrt((error**2).mean())),
                "coverage": held[name].mean(),
                "coverage_mcse": coverage_error(held[name]),
                "width": (highs[name] - lows[name]).mean(),
                "width_mcse": standard_error(highs[name] - lows[name]),
                "weight": np.mean(weight),
                "weight_mcse": standard_error(np.array(weight)),
                "unconverged": with_any(cell["unconverged"], name),
                "high_k": with_any(cell["high_k"], name),
                "better": best,
                "ahead": (held[name] - held[best]).mean(),
                "ahead_mcse": standard_error(held[name] - held[best]),
                "ahead_halves": ahead_by_halves(held, name),
            }


def better(held: Mapping[str, Floats], samples: slice) -> str:
    """The member whose intervals hold in more of these samples."""
    return max(MEMBERS, key=lambda name: float(held[name][samples].mean()))


def ahead_by_halves(held: Mapping[str, Floats], name: str) -> float:
    """How much more often an interval holds than the better member's, which is found in
    the other half of samples.

    Of two members the one that was better in the same samples was also the luckier one,
    by which `ahead` is too low."""
    halves = slice(0, None, 2), slice(1, None, 2)
    differences = [
        held[name][own] - held[better(held, other)][own] for own, other in (halves, halves[::-1])
    ]
    return float(np.concatenate(differences).mean())


def with_any(samples: Iterable[Sequence[str]], name: str) -> int:
    """In how many samples something is said of the member, or of any member of the
    mixture."""
    return sum(name in said if name in MEMBERS else bool(said) for said in samples)


def coverage_error(held: Floats) -> float:
    """Of a coverage, as in `taciturn.study`: above zero when all or none hold."""
    a, b = held.sum() + 0.5, (1 - held).sum() + 0.5
    return float(np.sqrt(a * b / (a + b + 1)) / (a + b))


def standard_error(values: Floats) -> float:
    """Of the mean over samples."""
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else np.nan


def overview(rows: pd.DataFrame) -> str:
    """Every estimator over the cells of the census tables, of the generated ones, and
    all together."""
    head = [
        "tables",
        "estimator",
        "cells",
        "covers R2",
        "lowest",
        "cells covering 0.90 to 0.99",
        "at least the better member",
    ]
    head += [
        "clearly more",
        "clearly less",
        "ahead of the better member",
        "the same by halves",
        "mean RMSE",
    ]
    lines = [[*head, "mean width"], ["---"] * 2 + ["---:"] * 11]
    census = rows["table"].isin([name.removeprefix("area_by_") for name in CENSUS])
    parts = {"census": rows[census], "generated": rows[~census], "all": rows}
    parts[f"all but {APART}"] = rows[rows["table"] != APART]
    for tables, part in parts.items():
        for estimator, cell in part.groupby("estimator", sort=False):
            ahead, clear = cell["ahead"], 2 * cell["ahead_mcse"]
            numbers = [
                f"{len(cell)}",
                with_error(cell, "coverage", ".3f"),
                f"{cell['coverage'].min():.2f}",
            ]
            numbers += [f"{cell['coverage'].between(0.9, 0.99).sum()}"]
            numbers += [f"{found.sum()}" for found in (ahead >= 0, ahead > clear, ahead < -clear)]
            numbers += [with_error(cell, "ahead", "+.3f"), f"{cell['ahead_halves'].mean():+.3f}"]
            numbers += [f"{cell['rmse'].mean():.4f}", f"{cell['width'].mean():.4f}"]
            lines.append([tables, str(estimator), *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


def with_error(cell: pd.DataFrame, name: str, form: str) -> str:
    """Mean over cells and its Monte Carlo error."""
    return (
        f"{cell[name].mean():{form}} ± {np.sqrt((cell[f'{name}_mcse'] ** 2).sum()) / len(cell):.3f}"
    )


def cells(rows: pd.DataFrame) -> str:
    """One line for each cell: coverage of R2 by members and mixtures, and the stack
    compared with the better member."""
    shown = [*MEMBERS, "Stack", "equal weights"]
    head = [
        "table",
        "n/N",
        *shown,
        "Stack ahead of the better member",
        "its weight of DirichletLogLinear",
    ]
    lines = [[*head, "k-hat too high", "bias of Stack", "RMSE", "width"], ["---", *["---:"] * 11]]
    for (table, fraction), cell in rows.groupby(["table", "fraction"], sort=False):
        of = cell.set_index("estimator")
        stack = of.loc["Stack"]
        numbers = [f"{of.loc[name, 'coverage']:.2f}" for name in shown]
        numbers += [f"{stack['ahead']:+.2f} ± {stack['ahead_mcse']:.2f}", f"{stack['weight']:.2f}"]
        numbers += [f"{stack['high_k'] / stack['samples']:.2f}", f"{stack['bias']:+.4f}"]
        numbers += [f"{stack['rmse']:.4f}", f"{stack['width']:.4f}"]
        lines.append([str(table), f"{fraction:g}", *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


if __name__ == "__main__":
    main()
