"""How often `choose_protection` chooses what it would if the population were known:
repeated samples of census tables, by draws of the population and by the sample scaled
up; and how far what a fit says of the R2 of protected tables can be relied on.

Run as ``python docs/studies/choices.py``, about twenty minutes on one core. It can be
interrupted: what is done is kept in ``--store`` (a folder) and the same command
continues; a larger number after ``--samples`` adds to the samples already there. The
results are ``docs/studies/choices.csv`` and, in ``docs/explanation``, ``_choices.md``,
``_choices_stated.md``, ``_choices_bounds.md`` and ``_choices_r2.md``. Seeds are
fixed, and each sample has its own, whatever the number of workers."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import FRACTIONS, HERE, joined, study_parser, write

import taciturn as tc
from taciturn.parallel import run_all
from taciturn.store import Store

TABLES = ("religion", "country_of_birth", "sex")
REPLICATES = {"decision": 30, "truth": 200}
# The Hellinger distance that R2 = 1 is worth: so that candidates cost about the same,
# and that times a factor, drawn for each sample, between 1 / FACTOR and FACTOR.
EVEN, DRAWN = "even", "drawn"
UNIT = {0.1: 150, 0.05: 110, 0.01: 32}
FACTOR = 3
# The bounds on R2 are what other samples have on average, protected in these ways.
BOUNDS = ("as it is", "rounded to 3")
PROBABILITIES = (0.95, 0.99)  # of constraints, and that R2 is at most the upper end
ENDS = (*(f"below {level:g}" for level in PROBABILITIES), "inside")
BINS = (0.0, 0.5, 0.7, 0.9, 0.99, 1.01)
POSTERIOR, SCALED = "posterior", "scaled up"
NO_SHARES = ("regret", "stated", "bias", "truth")
TIE = 1e-9


class Task(NamedTuple):
    """One sample, the bounds on R2 to be kept, and how many draws decide."""

    table: str
    fraction: float
    number: int
    seed: int
    draws: int
    bounds: dict[str, float]


def main() -> None:
    """Run or continue the study and write the results."""
    given = study_parser(__doc__, samples=200, draws=300, seed=2033).parse_args()
    header = {"seed": given.seed, "draws": given.draws, "replicates": REPLICATES}
    header |= {"unit": list(UNIT.items()), "factor": FACTOR, "bounds": list(BOUNDS)}
    header |= {"candidates": list(NAMES), "probabilities": list(PROBABILITIES)}
    bounds = {cell: bounds_of(*cell, given.seed) for cell in cells_of(given)}
    tasks = [
        Task(*cell, number, given.seed, given.draws, bounds[cell])
        for number in range(given.samples)
        for cell in bounds
    ]
    records = records_of(given, "choices.jsonl", header, one, tasks)
    if given.tables:
        sys.exit(f"not written, as not all tables were asked for:\n{decisions(summary(records))}")
    rows = summary(records)
    write(HERE / "choices.csv", rows.to_csv(index=False, float_format="%.6g"))
    pages = HERE.parent / "explanation"
    write(pages / "_choices.md", decisions(rows))
    write(pages / "_choices_stated.md", stated(records))
    write(pages / "_choices_bounds.md", constraints(rows))
    write(pages / "_choices_r2.md", protected_risk(rows))
    print(decisions(rows), stated(records), constraints(rows), protected_risk(rows), sep="\n")


def cells_of(given: argparse.Namespace) -> list[tuple[str, float]]:
    """The tables that are asked for, each at all fractions."""
    names = [n for n in TABLES if not given.tables or any(some in n for some in given.tables)]
    return list(product(names, FRACTIONS))


def records_of(
    given: argparse.Namespace,
    name: str,
    header: dict[str, Any],
    one: Callable[[Any], dict[str, Any]],
    tasks: Iterable[Any],
) -> list[dict[str, Any]]:
    """What `one` makes of each task, kept in a file of the store; what is there already
    is not done again.
    """
    given.store.mkdir(parents=True, exist_ok=True)
    with Store(given.store / name, header) as kept:
        found = {(r["table"], r["fraction"], r["sample"]): r for r in kept.records}
        asked = {(task.table, task.fraction, task.number): task for task in tasks}
        left = [task for place, task in asked.items() if place not in found]
        for record in run_all(
            one, left, workers=given.workers, progressbar=True, title=f"{len(left)} samples"
        ):
            kept.add(record)
        records = list(kept.records)
    return [r for r in records if (r["table"], r["fraction"], r["sample"]) in asked]


def candidates(sample: xr.DataArray, replicates: int, seed: int) -> dict[str, xr.DataArray]:
    """Five protections of the sample's table."""
    often = {"replicates": replicates, "random_seed": seed}
    keys = tc.perturbation.perturbation_table(3, 1.0)
    return {
        "as it is": sample,
        "rounded to 3": tc.random_round(sample, rounding_base=3, **often),
        "rounded to 5": tc.random_round(sample, rounding_base=5, **often),
        "cell key": tc.cell_key(sample, perturbation=keys, **often),
        "suppressed below 3": tc.perturbation.suppress_small_cells(sample, minimum=3),
    }


NAMES = tuple(candidates(xr.DataArray([[1]], dims=["a", "b"]), 1, 1))


def bounds_of(table: str, fraction: float, seed: int) -> dict[str, float]:
    """R2 of 40 other samples, on average."""
    population = tc.load_dataset(f"area_by_{table}")
    found = []
    for number, stream in enumerate(np.random.SeedSequence(seed).spawn(40)):
        sample = tc.draw_sample(
            population, fraction=fraction, random_seed=np.random.default_rng(stream)
        )
        released = candidates(sample, 20, number)
        risks = [tc.disclosure_risk(population, released[name])["R2"] for name in BOUNDS]
        found.append([float(risk.mean()) for risk in risks])
    return dict(zip(BOUNDS, np.mean(found, axis=0).round(4).tolist(), strict=True))


def one(task: Task) -> dict[str, Any]:
    """Draw a sample, choose in both ways, and see what the population says."""
    population = tc.load_dataset(f"area_by_{task.table}")
    place = [TABLES.index(task.table), round(1000 * task.fraction), task.number]
    streams = np.random.SeedSequence(task.seed, spawn_key=place).spawn(5)
    sampling, pricing, *seeds = (np.random.default_rng(stream) for stream in streams)
    fitting, deciding, true = (int(seed.integers(2**31)) for seed in seeds)
    sample = tc.draw_sample(population, fraction=task.fraction, random_seed=sampling)
    drawn, unconverged = populations_of(
        tc.default_estimator(sample), sample, int(population.sum()), task.draws, fitting
    )
    whose = {
        POSTERIOR: drawn,
        SCALED: sample * round(1 / task.fraction),
    }
    offered = candidates(sample, REPLICATES["decision"], deciding)
    truth = Truth(sample, population, candidates(sample, REPLICATES["truth"], true))
    factors = {EVEN: 1.0, DRAWN: float(FACTOR ** pricing.uniform(-1, 1))}
    record: dict[str, Any] = {
        "table": task.table,
        "fraction": task.fraction,
        "sample": task.number,
        "unconverged": unconverged,
        "bounds": task.bounds,
    }
    for by, drawn in whose.items():
        given = {"table": sample, "population": drawn, "progressbar": False}
        record[by] = {}
        for name, factor in factors.items():
            prices = {"R2": 1, "hellinger": 1 / (factor * UNIT[task.fraction])}
            decision = tc.choose_protection(offered, loss=prices, **given)
            record[by][name] = truth.of_choice(decision)
        for (name, bound), probability in product(task.bounds.items(), PROBABILITIES):
            limit = tc.Constraint("R2", at_most=bound, probability=probability)
            limited = tc.choose_protection(offered, loss="hellinger", constraint=limit, **given)
            record[by][limit_name(name, probability)] = truth.keeps(limited.chosen, bound)
    record["R2"] = {
        name: truth.beside(name, tc.disclosure_risk(whose[POSTERIOR], release)["R2"])
        for name, release in offered.items()
    }
    return record


def populations_of(
    estimator: tc.estimators.Estimator, sample: xr.DataArray, size: int, draws: int, seed: int
) -> tuple[xr.DataArray, bool]:
    """Draws of the population from one chain, and whether that did not converge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tc.ConvergenceWarning)
        fit = estimator.fit(
            sample,
            population_size=size,
            draws=draws,
            chains=1,
            random_seed=seed,
            progressbar=False,
        )
    unconverged = any(issubclass(w.category, tc.ConvergenceWarning) for w in caught)
    return fit["posterior_predictive"]["population"], unconverged


def ends_held(true: Any, drawn: Any) -> dict[str, float]:
    """The shares of true values that are at most the upper ends of draws, and between
    the ends of their interval of 95 %.
    """
    levels = (*PROBABILITIES, 0.025, 0.975)
    *upper, low, high = np.quantile(drawn, levels, method="inverted_cdf")
    held = [*(true <= end for end in upper), (low <= true) & (true <= high)]
    return {end: float(np.mean(each)) for end, each in zip(ENDS, held, strict=True)}


def limit_name(bound: str, probability: float) -> str:
    """What a constraint is called."""
    return f"{bound}, {probability:g}"


class Truth:
    """What the population says of each candidate, over many releases of each."""

    def __init__(
        self, sample: xr.DataArray, population: xr.DataArray, released: Mapping[str, xr.DataArray]
    ) -> None:
        self.risk = {
            name: np.atleast_1d(tc.disclosure_risk(population, release)["R2"].values)
            for name, release in released.items()
        }
        self.lost = {
            name: float(tc.information_loss(sample, release)["hellinger"].mean())
            for name, release in released.items()
        }

    def of_choice(self, decision: tc.decisions.Decision) -> dict[str, Any]:
        """What was chosen, how probably that is the best, what is, and what the choice
        costs more.
        """
        price = decision.prices
        loss = {
            name: price["R2"] * float(self.risk[name].mean()) + price["hellinger"] * self.lost[name]
            for name in self.risk
        }
        best = min(loss, key=lambda name: loss[name])
        return {
            "chosen": decision.chosen,
            "best": best,
            "regret": loss[str(decision.chosen)] - loss[best],
            "stated": float(decision.candidates["best"].sel(protection=decision.chosen)),
        }

    def keeps(self, chosen: str | None, bound: float) -> dict[str, Any]:
        """In which share of its releases what was chosen keeps a bound."""
        kept = None if chosen is None else float((self.risk[chosen] <= bound).mean())
        return {"chosen": chosen, "kept": kept}

    def beside(self, name: str, drawn: xr.DataArray) -> dict[str, float]:
        """Bias of the mean of draws of R2, and how often their ends hold."""
        risk = self.risk[name]
        return {
            "truth": float(risk.mean()),
            "bias": float(drawn.mean() - risk.mean()),
            **ends_held(risk, drawn.values),
        }


def summary(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Means over the samples of each cell of the design, with Monte Carlo errors."""
    rows = []
    for table, fraction in dict.fromkeys((r["table"], r["fraction"]) for r in records):
        cell = [r for r in records if (r["table"], r["fraction"]) == (table, fraction)]
        for by, candidate, measure, values in measured(cell):
            value, error = mean_and_error(values, share=not measure.startswith(NO_SHARES))
            rows.append((table, fraction, by, candidate, measure, len(values), value, error))
    columns = ["table", "fraction", "by", "candidate", "measure", "samples", "value", "mcse"]
    order = pd.DataFrame(rows, columns=columns)
    place = order["table"].map(TABLES.index), -order["fraction"]
    return order.iloc[np.lexsort((*place[::-1],))].reset_index(drop=True)


def measured(cell: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, list[float]]]:
    """By what, of which candidate, which measure, and its value in each sample."""
    for by in (POSTERIOR, SCALED):
        found = [r[by] for r in cell]
        for name in (EVEN, DRAWN):
            chosen = [f[name] for f in found]
            yield by, "", f"right, {name}", [float(c["regret"] < TIE) for c in chosen]
            yield by, "", f"regret, {name}", [c["regret"] for c in chosen]
            yield by, "", f"stated, {name}", [c["stated"] for c in chosen]
        for name in (limit_name(*each) for each in product(BOUNDS, PROBABILITIES)):
            limited = [f[name] for f in found]
            yield by, "", f"chosen, {name}", [float(c["chosen"] is not None) for c in limited]
            kept = [c["kept"] for c in limited if c["chosen"] is not None]
            yield by, "", f"kept, {name}", kept
    for candidate in NAMES:
        best = [float(r[POSTERIOR][EVEN]["best"] == candidate) for r in cell]
        yield "", candidate, "best", best
        for measure in ("truth", "bias", *ENDS):
            values = [r["R2"][candidate][measure] for r in cell]
            yield POSTERIOR, candidate, measure, values
    yield "", "", "unconverged", [float(r["unconverged"]) for r in cell]


def mean_and_error(values: list[float], *, share: bool) -> tuple[float, float]:
    """The mean and its standard error; that of a share is above 0 even if all are the
    same (as in `study`).
    """
    n, total = len(values), sum(values)
    if not n:
        return np.nan, np.nan
    if share:
        return total / n, (((total + 0.5) * (n - total + 0.5)) / (n + 2)) ** 0.5 / (n + 1)
    return total / n, float(np.std(values, ddof=1)) / n**0.5


def shown(cell: pd.DataFrame, form: str = ".2f", *, by: str = "", candidate: str = "") -> Any:
    """A function of a measure that gives its value and error in words."""

    def of(measure: str) -> str:
        chosen = (cell["by"] == by) & (cell["candidate"] == candidate)
        row = cell[chosen & (cell["measure"] == measure)].iloc[0]
        if np.isnan(row["value"]):
            return "–"
        return f"{row['value']:{form}} ({row['mcse']:{form.lstrip('+')}})"

    return of


def cells(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Table, fraction and rows of each cell of the design."""
    for (table, fraction), cell in rows.groupby(["table", "fraction"], sort=False):
        yield str(table).replace("_", " "), f"{fraction:g}" if fraction else "all", cell


def over_fractions(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the fractions of each table, with a fraction of 0."""
    keys = ["table", "by", "candidate", "measure"]
    grouped = rows.groupby(keys, sort=False)
    means = grouped["value"].mean().to_frame()
    means["mcse"] = grouped["mcse"].agg(lambda errors: (errors**2).sum() ** 0.5 / len(errors))
    return means.reset_index().assign(fraction=0.0)


def decisions(rows: pd.DataFrame) -> str:
    """For each cell and price, how often the choice is right, and what it costs."""
    head = ["table", "n/N", "price", "right: posterior", "scaled up"]
    head += ["regret: posterior", "scaled up", "P(best) stated: posterior"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * 5])]
    for table, fraction, cell in [*cells(rows), *cells(over_fractions(rows))]:
        for name in (EVEN, DRAWN):
            line = [table, fraction, name]
            line += [shown(cell, by=by)(f"right, {name}") for by in (POSTERIOR, SCALED)]
            line += [shown(cell, ".4f", by=by)(f"regret, {name}") for by in (POSTERIOR, SCALED)]
            lines.append(joined([*line, shown(cell, by=POSTERIOR)(f"stated, {name}")]))
    fits = rows[rows["measure"] == "unconverged"]
    number = round((fits["value"] * fits["samples"]).sum())
    note = f"{int(fits['samples'].max())} samples per cell; Monte Carlo errors in parentheses;"
    return "\n".join([f"{note} of all fits, {number} did not converge.\n", *lines]) + "\n"


def stated(records: list[dict[str, Any]]) -> str:
    """How often a choice is right, by the probability that was stated for it; prices
    that were drawn.
    """
    head = ["table", "P(best) stated", "choices", "stated on average", "right"]
    lines = [joined(head), joined(["---", "---", *["---:"] * 3])]
    for table in ("all", *TABLES):
        chosen = [r[POSTERIOR][DRAWN] for r in records if table in ("all", r["table"])]
        for low, high in pairwise(BINS):
            some = [c for c in chosen if low <= c["stated"] < high]
            if not some:
                continue
            right, error = mean_and_error([float(c["regret"] < TIE) for c in some], share=True)
            mean = sum(c["stated"] for c in some) / len(some)
            words = f"{low:g} to {min(high, 1):g}"
            numbers = [f"{len(some)}", f"{mean:.2f}", f"{right:.2f} ({error:.2f})"]
            lines.append(joined([table.replace("_", " "), words, *numbers]))
    return "\n".join(lines) + "\n"


def constraints(rows: pd.DataFrame) -> str:
    """For each cell and bound, how often something is chosen, and keeps it."""
    head = ["table", "n/N", "bound: average R2", "probability"]
    head += ["something chosen: posterior", "scaled up", "truly kept: posterior", "scaled up"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * 5])]
    for table, fraction, cell in cells(rows):
        for bound, probability in product(BOUNDS, PROBABILITIES):
            line, name = (
                [table, fraction, bound, f"{probability:g}"],
                limit_name(bound, probability),
            )
            for measure in ("chosen", "kept"):
                line += [shown(cell, by=by)(f"{measure}, {name}") for by in (POSTERIOR, SCALED)]
            lines.append(joined(line))
    return "\n".join(lines) + "\n"


def protected_risk(rows: pd.DataFrame) -> str:
    """For each cell and candidate R2, its bias, and how often the truth is at most the
    upper ends, and inside the interval.
    """
    head = ["table", "n/N", "released", "R2", "bias"]
    head += [f"at most the {100 * level:g} % upper end" for level in PROBABILITIES]
    head += ["in the 95 % interval"]
    lines = [joined(head), joined(["---", "---:", "---", *["---:"] * 5])]
    for table, fraction, cell in cells(rows):
        for name in NAMES:
            of = cell[(cell["candidate"] == name) & (cell["by"] == POSTERIOR)]
            of = of.set_index("measure")["value"]
            line = [table, fraction, name, f"{of['truth']:.3f}", f"{of['bias']:+.3f}"]
            lines.append(joined([*line, *(f"{of[end]:.2f}" for end in ENDS)]))
    errors = rows[rows["candidate"] != ""].groupby("measure")["mcse"].max()
    note = f"Monte Carlo errors are at most {errors['bias']:.4f} of a bias and"
    note += f" {errors[list(ENDS)].max():.3f} of a share.\n"
    return "\n".join([note, *lines]) + "\n"


if __name__ == "__main__":
    main()
