"""What leave-one-out says, held against the truth: the cells of those not sampled, and
R2.

Samples are drawn from known populations and every estimator is fitted to each. Its elpd
by leave-one-out is set beside its true log score, the mean of ``log p(cell | sample)``
over the individuals of the population that were not sampled, and beside its error in
R2. Run as ``python docs/studies/compare_by_loo.py``, some minutes on one core. The
result is ``docs/explanation/_compare_by_loo.md`` and
``docs/studies/compare_by_loo.csv``. Seeds are fixed."""

import argparse
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from math import inf, log
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import joined, write
from generated import generated_population

import taciturn as tc
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.settings import Parameters

HERE = Path(__file__).resolve().parent
FRACTIONS = (0.1, 0.05)
MEMBERS = ("DirichletLogLinear", "ChineseRestaurant")
ESTIMATORS: dict[str, tc.estimators.Estimator] = {
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
    "LinearPool": tc.LinearPool(),
    "LogLinear": tc.LogLinear(),
    "PolyaUrn": tc.PolyaUrn(),
}

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Run the study and write its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--draws", type=int, default=500, help="in each of four chains")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--tables", nargs="+", help="only tables whose name holds one of these")
    parser.add_argument("--output", type=Path, default=HERE / "compare_by_loo.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_compare_by_loo.md"
    )
    given = parser.parse_args()
    found = []
    for number, (name, population) in enumerate(populations(given.seed)):
        if given.tables and not any(part in name for part in given.tables):
            continue
        for fraction in FRACTIONS:
            print(f"{name}, n/N = {fraction:g}", file=sys.stderr, flush=True)
            for sample in range(given.samples):
                rng = np.random.default_rng([given.seed, number, FRACTIONS.index(fraction), sample])
                rows = one_sample(population, fraction, given.draws, rng)
                found += [
                    {"table": name, "fraction": fraction, "sample": sample, **row} for row in rows
                ]
    if not found:
        sys.exit(f"no table has a name with {given.tables}")
    rows = pd.DataFrame(found)
    write(given.output, rows.to_csv(index=False, float_format="%.6g"))
    caption = f"{given.samples} samples a cell, {4 * given.draws} draws each.\n\n"
    write(given.fragment, f"{caption}{markdown(rows)}\n{agreement(rows)}")
    print(markdown(rows), agreement(rows), sep="\n")


def populations(seed: int) -> Iterable[tuple[str, xr.DataArray]]:
    """Names and tables of the design."""
    for name in ("religion", "country_of_birth"):
        yield name, tc.load_dataset(f"area_by_{name}")
    yield "blocks_2000", generated_population("blocks", 2_000, seed)


def one_sample(
    population: xr.DataArray, fraction: float, draws: int, rng: np.random.Generator
) -> Iterable[dict[str, object]]:
    """Scores of every estimator, and of the stack of both families, on one sample."""
    sample = tc.draw_sample(population, fraction=fraction, random_seed=rng)
    problem = make_problem(sample, int(population.sum()))
    rest = (population - sample).values.ravel()
    truth = float(tc.disclosure_risk(population, sample)["R2"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fits = {
            name: estimator.fit(
                sample,
                population_size=problem.population_size,
                draws=draws,
                random_seed=rng,
                progressbar=False,
            )
            for name, estimator in ESTIMATORS.items()
        }
        elpd = {name: tc.loo(fit).elpd for name, fit in fits.items()}
        members = {name: fits[name] for name in MEMBERS}
        weights = tc.compare(members)["weight"]
        fits["Stack"] = tc.fits.stack(members, random_seed=rng)
    problems = {str(warning.category.__name__) for warning in caught}
    log_chances = {
        name: log_predictive(ESTIMATORS[name], fits[name], problem, rest)
        for name in fits
        if name in SINGLE
    }
    both = np.stack([log_chances[name] for name in MEMBERS])
    log_chances["LinearPool"] = logsumexp(both + log(1 / 2), axis=0)
    with np.errstate(divide="ignore"):
        log_chances["Stack"] = logsumexp(
            both + np.log([[weights[name]] for name in MEMBERS]), axis=0
        )
    for name, fit in fits.items():
        r2 = tc.assess(fit)["risk"]["R2"].values.ravel()
        low, high = np.quantile(r2, [0.025, 0.975])
        yield {
            "estimator": name,
            "size": problem.sample_size,
            "elpd": elpd.get(name, np.nan) / problem.sample_size,
            "log_score": float(rest[rest > 0] @ log_chances[name] / rest.sum()),
            "weight": weights.get(name, np.nan),
            "truth": truth,
            "estimate": r2.mean(),
            "low": low,
            "high": high,
            "warnings": " ".join(sorted(problems)),
        }


SINGLE = tuple(name for name in ESTIMATORS if name != "LinearPool")


def log_predictive(
    estimator: tc.estimators.Estimator,
    fit: xr.DataTree,
    problem: Problem,
    rest: npt.NDArray[np.int64],
) -> Floats:
    """Logarithm of the chance that one more individual is in a cell, for each cell that
    anybody is left in.

    That is the leave-one-out term of this individual in the sample that it joins.
    """
    constants = {
        name: float(x) if x.ndim == 0 else x for name, x in fit["constant_data"].data_vars.items()
    }
    posterior = fit["posterior"].to_dataset() if "posterior" in fit.children else None
    parameters = Parameters(posterior, constants=constants)
    terms = []
    for cell in np.flatnonzero(rest):
        counts = problem.counts + (np.arange(rest.size) == cell)
        joined_by = replace(
            problem, sample=problem.sample.copy(data=counts.reshape(problem.sample.shape))
        )
        own = estimator.log_conditionals(joined_by, parameters)
        assert own is not None
        term = own[..., np.flatnonzero(joined_by.occupied == cell)[0]]
        terms.append(logsumexp(term) - log(np.size(term)))
    return np.array(terms)


def markdown(rows: pd.DataFrame) -> str:
    """One line for each table, fraction and estimator."""
    columns = [
        "table",
        "n/N",
        "estimator",
        "elpd by LOO / n",
        "true log score",
        "bias of R2",
        "RMSE",
        "covers R2",
    ]
    lines = [columns, ["---", "---:", "---", *["---:"] * 5]]
    for (table, fraction, estimator), cell in rows.groupby(
        ["table", "fraction", "estimator"], sort=False
    ):
        error = cell["estimate"] - cell["truth"]
        covers = ((cell["low"] <= cell["truth"]) & (cell["truth"] <= cell["high"])).mean()
        numbers = [mean_text(cell["elpd"]), mean_text(cell["log_score"])]
        numbers += [f"{error.mean():+.4f}", f"{np.sqrt((error**2).mean()):.4f}", f"{covers:.2f}"]
        lines.append([str(table), f"{fraction:g}", str(estimator), *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


def mean_text(values: pd.Series) -> str:
    """Mean of the finite values, and how many are not."""
    if values.isna().all():
        return "—"
    none = int((values == -inf).sum())
    shown = f"{values[values > -inf].mean():.3f}" if none < len(values) else "−∞"
    return shown if none in (0, len(values)) else f"{shown} (−∞ in {none})"


def agreement(rows: pd.DataFrame) -> str:
    """How often the order by leave-one-out is the true one, by log score and by R2.

    Over all pairs of the five estimators in each sample, and for the two families
    alone. Pairs of which both have minus infinity have no order."""
    columns = [
        "table",
        "n/N",
        "pairs in the order of log scores",
        "pairs in the order of errors in R2",
    ]
    columns += ["LOO prefers DirichletLogLinear", "preferred family has the better log score"]
    columns += ["preferred family is nearer in R2", "mean weight of DirichletLogLinear"]
    lines = [columns, ["---", "---:", *["---:"] * 6]]
    for (table, fraction), cell in rows.groupby(["table", "fraction"], sort=False):
        wide = {name: cell[cell["estimator"] == name].set_index("sample") for name in ESTIMATORS}
        pairs = pd.concat([ordered(wide[a], wide[b]) for a, b in combinations(ESTIMATORS, 2)])
        families = ordered(*(wide[name] for name in MEMBERS))
        shares = [
            pairs["score"],
            pairs["error"],
            families["loo"],
            families["score"],
            families["error"],
        ]
        numbers = [f"{x.mean():.2f}" for x in (*shares, wide[MEMBERS[0]]["weight"])]
        lines.append([str(table), f"{fraction:g}", *numbers])
    return "\n".join(joined(line) for line in lines) + "\n"


def ordered(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """For each sample whether leave-one-out prefers the first, and whether its order is
    that of the truth."""
    possible = (first["elpd"] > -inf) | (second["elpd"] > -inf)
    first, second = first[possible], second[possible]
    loo = first["elpd"] > second["elpd"]
    score = first["log_score"] > second["log_score"]
    nearer = (first["estimate"] - first["truth"]).abs() < (
        second["estimate"] - second["truth"]
    ).abs()
    return pd.DataFrame({"loo": loo, "score": loo == score, "error": loo == nearer})


if __name__ == "__main__":
    main()
