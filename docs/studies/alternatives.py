"""What else the default could have been: priors, two further models, and pools, on the
same samples.

Run as ``python docs/studies/alternatives.py``. It can be interrupted: what is done is
kept in ``--store`` (a folder) and the same command continues. The result is
``docs/explanation/_alternatives_table.md`` and ``docs/studies/alternatives.csv``. Seeds
are fixed; the samples are the first of those of ``default_estimator.py``."""

import sys
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import log
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from scipy.special import betaln, digamma, gammaln, polygamma

sys.path.insert(0, str(Path(__file__).resolve().parent))

from default_estimator import CENSUS, FRACTIONS, joined, populations, study_parser, write

import taciturn as tc
from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.errors import ConvergenceWarning
from taciturn.estimators import Estimator
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.draws import draw_dirichlet_multinomial
from taciturn.estimators.sampling.importance import resample
from taciturn.estimators.settings import Counts, Parameters, SamplerSettings

HERE = Path(__file__).resolve().parent
GENERATED = ("smooth_2000", "blocks_2000", "lognormal_50000", "origin_destination_50000")
CONCENTRATIONS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
KAPPA_NODES = 80
PROPOSALS = (4000, 40_000)  # the second where few of the first count
WIDE = 0.05  # share of proposals from the prior of the margins, which bounds the weights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PerSample(Estimator):
    """An estimator whose specification depends on the sample: that of the package,
    built anew for each."""

    title: ClassVar[str] = "built for each sample"

    @abstractmethod
    def built(self, problem: Problem) -> Estimator:
        """The estimator for a sample."""

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        return self.built(problem).learn(problem, settings, seed)

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        return self.built(problem).draw_population(problem, settings, parameters, rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        return self.built(problem).draw_replicates(problem, settings, parameters, rng)


@dataclass(frozen=True)
class DirichletWith(PerSample):
    """`DirichletLogLinear`: log κ normal around 1 + log n, or around log K, and margins
    Dirichlet(`margin`)."""

    centre: Literal["sample", "cells"] = "sample"
    sigma: float = 1.5
    margin: float = 1.0

    def built(self, problem: Problem) -> Estimator:
        mu = 1 + log(problem.sample_size) if self.centre == "sample" else log(problem.cells)
        margins = {
            f"margin_{dim}": tc.Prior("Dirichlet", a=self.margin) for dim in problem.variables
        }
        return tc.DirichletLogLinear(
            priors={"kappa": tc.Prior("LogNormal", mu=mu, sigma=self.sigma), **margins}
        )


@dataclass(frozen=True)
class RestaurantWith(PerSample):
    """`ChineseRestaurant` with θ from Gamma(`shape`) of mean K."""

    shape: float = 1.0

    def built(self, problem: Problem) -> Estimator:
        theta = tc.Prior("Gamma", alpha=self.shape, beta=self.shape / problem.cells)
        return tc.ChineseRestaurant(priors={"theta": theta})


@dataclass(frozen=True)
class FittedConcentration(tc.DirichletLogLinear):
    """`DirichletLogLinear` whose margins are Dirichlet(c), c unknown: each of
    `CONCENTRATIONS` alike to begin with."""

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        centre = 1 + log(problem.sample_size)
        return learn(
            problem,
            problem.variables,
            [problem.sample_size],
            centre,
            CONCENTRATIONS,
            settings,
            seed,
        )


@dataclass(frozen=True)
class PooledRows(Estimator):
    """Rows of a two-way table that share a profile q: each is Dirichlet(κq), their
    totals are uniform.

    q is uniform on the simplex and log κ normal around 1 + the logarithm of the mean
    size of a row in the sample."""

    title: ClassVar[str] = "rows around a common profile"

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        _, column = problem.variables
        totals = problem.sample.sum(column).values
        centre = 1 + log(problem.sample_size / len(totals))
        return learn(problem, (column,), totals[totals > 0], centre, (1.0,), settings, seed)

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        rest = problem.population_size - problem.sample_size
        return problem.counts + self._draw(problem, problem.sample.values, rest, parameters, rng)

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        return self._draw(
            problem, np.zeros_like(problem.sample.values), problem.sample_size, parameters, rng
        )

    def _draw(
        self,
        problem: Problem,
        seen: Counts,
        size: int,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Individuals beyond those seen: first into rows, then within each."""
        assert parameters.posterior is not None
        profile = parameters.posterior[f"margin_{problem.variables[1]}"].values.reshape(
            -1, seen.shape[1]
        )
        weights = parameters.posterior["kappa"].values.reshape(-1, 1) * profile
        rows = np.broadcast_to(seen.sum(axis=1) + 1.0, (len(weights), len(seen)))
        totals = draw_dirichlet_multinomial(size, rows, rng)
        drawn = [
            draw_dirichlet_multinomial(totals[:, i], weights + row, rng)
            for i, row in enumerate(seen)
        ]
        return np.stack(drawn, axis=1).reshape(len(weights), -1)


def learn(
    problem: Problem,
    dims: Sequence[str],
    totals: Any,
    centre: float,
    concentrations: Sequence[float],
    settings: SamplerSettings,
    seed: int,
) -> Parameters:
    """Draws of κ and of the margins of `dims`, on tables without structural zeros.

    The cells of each group with one of the `totals` follow a Dirichlet-multinomial with
    weights κ times the product of margins. Importance sampling as in
    `taciturn.estimators.log_linear.main_effects`, with the margins' concentration on
    the grid as well as κ."""
    rng = np.random.default_rng(seed)
    target = Target(problem, dims, totals, tc.Prior("LogNormal", mu=centre, sigma=1.5))
    reach = 1.5 * 5.2
    grid, width = np.linspace(centre - reach, centre + reach, KAPPA_NODES, retstep=True)
    log_kappa, prior = (x.ravel() for x in np.meshgrid(grid, concentrations, indexing="ij"))
    weights, shapes = target.proposals(np.exp(log_kappa), prior)
    heights = np.exp(weights - weights.max())
    heights = 0.98 * heights / heights.sum() + 0.02 / len(heights)
    for number in PROPOSALS:
        number = max(number, settings.total)
        node = rng.choice(len(heights), size=number, p=heights)
        kappa = np.exp(log_kappa[node] + width * (rng.random(number) - 0.5))
        wide = rng.random(number) < WIDE
        main, defence = np.zeros(number), np.zeros(number)
        margins = []
        for shape in shapes:
            flat = np.broadcast_to(prior[node, None], (number, shape.shape[1]))
            margins.append(draw_log_dirichlet(np.where(wide[:, None], flat, shape[node]), rng))
            main += log_dirichlet(shape[node], margins[-1])
            defence += log_dirichlet(flat, margins[-1])
        proposed = np.log(heights[node]) + np.logaddexp(log(1 - WIDE) + main, log(WIDE) + defence)
        chosen, diagnostics = resample(
            target(kappa, prior[node], margins) - proposed, settings.total, rng
        )
        if diagnostics.converged:
            break
    else:
        warnings.warn("; ".join(diagnostics.problems), ConvergenceWarning, stacklevel=2)
    return parameters(
        problem, dims, kappa[chosen], [np.exp(m[chosen]) for m in margins], diagnostics, settings
    )


def parameters(
    problem: Problem,
    dims: Sequence[str],
    kappa: Floats,
    margins: Sequence[Floats],
    diagnostics: ImportanceDiagnostics,
    settings: SamplerSettings,
) -> Parameters:
    """Draws under the names that `DirichletLogLinear` gives them."""
    shape = (settings.chains, settings.draws)
    posterior = xr.Dataset({"kappa": (("chain", "draw"), kappa.reshape(shape))})
    for dim, margin in zip(dims, margins, strict=True):
        posterior[f"margin_{dim}"] = (("chain", "draw", dim), margin.reshape(*shape, -1))
    coords = {dim: problem.sample[dim].values for dim in dims}
    return Parameters(
        posterior.assign_coords(coords), sampler="importance sampling", importance=diagnostics
    )


class Target:
    """The unnormalised posterior of log κ and the margins, from occupied cells only."""

    def __init__(self, problem: Problem, dims: Sequence[str], totals: Any, kappa: tc.Prior) -> None:
        occupied = np.nonzero(problem.sample.values)
        self.counts = problem.sample.values[occupied].astype(float)
        self.totals = np.asarray(totals, dtype=float)
        self.levels = [occupied[problem.variables.index(dim)] for dim in dims]
        self.onehot = [
            np.eye(problem.sample.sizes[d])[level]
            for d, level in zip(dims, self.levels, strict=True)
        ]
        self.kappa = kappa

    def weights(self, kappa: Floats, log_margins: Sequence[Floats]) -> Floats:
        """κ times the product of the margins, shape (draws, occupied cells)."""
        log_pi = sum(
            margin[:, level] for margin, level in zip(log_margins, self.levels, strict=True)
        )
        return np.maximum(kappa[:, None] * np.exp(log_pi), 1e-300)

    def __call__(self, kappa: Floats, prior: Floats, log_margins: Sequence[Floats]) -> Floats:
        """Log density of log κ and of margins that are Dirichlet(`prior`)."""
        rising = log_rising(self.weights(kappa, log_margins), self.counts).sum(axis=1)
        out = (
            rising
            - log_rising(kappa[:, None], self.totals).sum(axis=1)
            + self.kappa.logpdf(kappa)
            + np.log(kappa)
        )
        for margin in log_margins:
            out += log_dirichlet(np.broadcast_to(prior[:, None], margin.shape), margin)
        return out

    def proposals(self, kappa: Floats, prior: Floats) -> tuple[Floats, list[Floats]]:
        """Log height of each node and the Dirichlet shapes of its margins, from the
        expected numbers of tables."""
        expected = np.broadcast_to(self.counts, (len(kappa), len(self.counts)))
        for _ in range(8):
            sums = [expected @ hot + prior[:, None] for hot in self.onehot]
            logs = [np.log(total / total.sum(axis=1, keepdims=True)) for total in sums]
            a = self.weights(kappa, logs)
            few = a < 1e6
            some = np.where(few, a, 1.0)
            exact = some * (digamma(some + self.counts) - digamma(some))
            expected = np.where(few, exact, self.counts * a / (a + (self.counts - 1) / 2))
        a = np.clip(a, 1e-100, 1e6)
        spread = (a**2 * (polygamma(1, a) - polygamma(1, a + self.counts))).sum(axis=1)
        height, shapes = self(kappa, prior, logs), []
        for hot, margin in zip(self.onehot, logs, strict=True):
            own = prior * hot.shape[1]
            temper = np.minimum((spread + own) / (expected.sum(axis=1) + own), 1.0)
            shapes.append((expected @ hot + prior[:, None]) * temper[:, None])
            height -= log_dirichlet(shapes[-1], margin)
        return height, shapes


def log_rising(a: Floats, n: Floats) -> Floats:
    """Logarithm of the rising factorial, without cancellation where `a` is large."""
    return np.asarray(gammaln(n) - betaln(a, n))


def draw_log_dirichlet(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of Dirichlet draws, which small shapes do not underflow."""
    logs = np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(shape.shape) / shape
    return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


def log_dirichlet(shape: Floats, logs: Floats) -> Floats:
    """Log density of each row."""
    return (
        gammaln(shape.sum(axis=1)) - gammaln(shape).sum(axis=1) + ((shape - 1) * logs).sum(axis=1)
    )


def pool(
    share: float | None = None, base: Literal["uniform", "log-linear"] = "uniform"
) -> tc.LinearPool:
    """The two families, the Dirichlet one with this share; equal without it."""
    members = {"dirichlet": tc.DirichletLogLinear(), "restaurant": tc.ChineseRestaurant(base=base)}
    shares = None if share is None else {"dirichlet": share, "restaurant": 1 - share}
    return tc.LinearPool(members, shares)


VARIANTS: dict[str, tc.estimators.Estimator] = {
    "DirichletLogLinear": tc.DirichletLogLinear(),
    "– κ narrower, σ = 1": DirichletWith(sigma=1.0),
    "– κ wider, σ = 3": DirichletWith(sigma=3.0),
    "– κ around K": DirichletWith(centre="cells"),
    "– margins Dirichlet(½)": DirichletWith(margin=0.5),
    "– concentration of margins fitted": FittedConcentration(),
    "– rows around a common profile": PooledRows(),
    "ChineseRestaurant": tc.ChineseRestaurant(),
    "– σ = 0 (Ewens)": tc.ChineseRestaurant(discount=0.0),
    "– log-linear base": tc.ChineseRestaurant(base="log-linear"),
    "– θ exponential with mean K": RestaurantWith(),
    "LinearPool": pool(),
    "– ¼ Dirichlet, ¾ restaurant": pool(0.25),
    "– ¾ Dirichlet, ¼ restaurant": pool(0.75),
    "– restaurant with log-linear base": pool(base="log-linear"),
}


def main() -> None:
    """Run or continue every study, and write the tables."""
    parser = study_parser(__doc__, samples=60, draws=1000, seed=2026)
    parser.add_argument("--output", type=Path, default=HERE / "alternatives.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_alternatives_table.md"
    )
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    frames = []
    parts = (populations(part, given.seed) for part in ("census", "generated"))
    for name, population in chain.from_iterable(parts):
        known = name in GENERATED or f"area_by_{name}" in CENSUS
        if not known or (given.tables and not any(part in name for part in given.tables)):
            continue
        print(
            f"{name}: K = {population.size}, N = {int(population.sum())}",
            file=sys.stderr,
            flush=True,
        )
        result = tc.study(
            population,
            VARIANTS,
            fractions=FRACTIONS,
            samples=given.samples,
            draws=given.draws,
            random_seed=given.seed,
            workers=given.workers,
            store=given.store / f"alternatives_{name}.jsonl",
        )
        frames.append(
            tc.studies.study_table(result).assign(table=name, population_size=int(population.sum()))
        )
    if not frames:
        sys.exit(f"no table name contains any of {given.tables}")
    rows = pd.concat(frames)
    if given.tables:
        sys.exit(f"not written, as not all tables were asked for:\n{markdown(rows)}")
    first = ["table", "population_size"]
    write(
        given.output,
        rows[first + [name for name in rows.columns if name not in first]].to_csv(index=False),
    )
    caption = (
        f"{given.samples} samples per cell, {given.draws} draws each; bias, RMSE and width are"
        " those of R2.\n\n"
    )
    write(given.fragment, caption + markdown(rows))
    print(markdown(rows))


def markdown(rows: pd.DataFrame) -> str:
    """One line for each variant, over the cells of the census tables and then of the
    generated ones."""
    head = [
        "tables",
        "variant",
        "cells",
        "cells covering R2 in 0.90 to 0.99",
        "covers R2",
        "covers R1",
    ]
    lines = [
        [*head, "mean absolute bias", "mean RMSE", "mean width", "unconverged"],
        ["---"] * 2 + ["---:"] * 8,
    ]
    generated = rows["table"].isin(GENERATED)
    for tables, part in (("census", rows[~generated]), ("generated", rows[generated])):
        for variant in VARIANTS:
            cell = part[part["estimator"] == variant]
            if cell.empty:
                continue
            r1, r2 = (cell[cell["measure"] == name] for name in ("R1", "R2"))
            numbers = [f"{len(r2)}", f"{int(r2['coverage'].between(0.9, 0.99).sum())}"]
            numbers += [f"{x['coverage'].min():.2f} to {x['coverage'].max():.2f}" for x in (r2, r1)]
            numbers += [
                f"{r2['bias'].abs().mean():.4f}",
                f"{r2['rmse'].mean():.4f}",
                f"{r2['width'].mean():.4f}",
            ]
            lines.append(
                [tables, variant, *numbers, f"{int((r2['unconverged'] + r2['failures']).sum())}"]
            )
    return "\n".join(joined(line) for line in lines) + "\n"


if __name__ == "__main__":
    main()
