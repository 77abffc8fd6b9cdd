"""How small errors could be: R2 of areas for who knows exactly what they have in common
and how they depart from it, beside the shared profile, which learns both.

Run as ``python docs/studies/areas_known.py``, a quarter of an hour on one core, after
``docs/studies/areas.py``. Populations and samples are those with a hundred areas there.
All that the populations were made with is known, but what is an area's own: its effects
and factors, drawn by elliptical slice sampling (Murray, Adams & MacKay 2010), and what
it has besides, such as its type, drawn from the distribution given these. The results
are ``docs/studies/areas_known.csv`` and ``docs/explanation/_areas_known.md``."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logsumexp, softmax
from scipy.stats import norm, t

sys.path.insert(0, str(Path(__file__).resolve().parent))

from areas import ALONE, FRACTIONS, MOST_ALONE, SHARED, sampled
from default_estimator import HERE, write
from generated_areas import AREA_KINDS, CHANCES, SHAPE, area_populations, profiles

import taciturn as tc

AREAS, SEED = 100, 2033  # as in areas.py
DRAWS, BETWEEN, DISCARDED = 400, 40, 4_000  # kept, steps from one to the next, and before
BATCHES = 20  # of the draws, for the Monte Carlo error of their mean
CELLS: Final = int(np.prod(SHAPE))
LEVELS: Final = np.indices(SHAPE).reshape(len(SHAPE), -1) + np.cumsum([0, *SHAPE[:-1]])[:, None]
NORMAL: Final = np.linspace(-9, 9, 20_001)
STUDENT: Final = np.where(NORMAL < 0, 1, -1) * t.ppf(norm.cdf(-np.abs(NORMAL)), 3)
RARER: Final = 0.02  # of a minority where it does not live

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def main() -> None:
    """Run the study and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(AREA_KINDS), choices=list(AREA_KINDS))
    parser.add_argument("--areas", type=Path, default=HERE / "areas.csv", help="of areas.py")
    parser.add_argument("--output", type=Path, default=HERE / "areas_known.csv")
    parser.add_argument(
        "--fragment", type=Path, default=HERE.parent / "explanation" / "_areas_known.md"
    )
    given = parser.parse_args()
    rows = []
    for kind in given.kinds:
        for fraction in FRACTIONS:
            rows.append({"kind": kind, "fraction": fraction, **studied(kind, fraction)})
            print(rows[-1], file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    write(given.output, frame.to_csv(index=False, float_format="%.6g"))
    write(given.fragment, markdown(frame, pd.read_csv(given.areas)))


def studied(kind: str, fraction: float) -> dict[str, float]:
    """Error, coverage and width of R2, and the Monte Carlo error of its means."""
    population = area_populations(kind, AREAS, SEED)
    sample = sampled(population, fraction, SEED)
    counts = sample.values.reshape(AREAS, -1)
    rest = population.values.reshape(AREAS, -1).sum(axis=1) - counts.sum(axis=1)
    rng = np.random.default_rng([SEED, list(AREA_KINDS).index(kind)])
    tables = counts + rng.multinomial(rest, drawn_shares(kind, counts, rng))
    drawn = sample.expand_dims(draw=DRAWS).copy(data=tables.reshape(DRAWS, *sample.shape))
    cells = [dim for dim in population.dims if dim != "area"]
    risk = tc.disclosure_risk(drawn, sample, dim=cells)["R2"].transpose("draw", "area").values
    truth = tc.disclosure_risk(population, sample, dim=cells)["R2"].values
    off = risk.mean(axis=0) - truth
    low, high = np.quantile(risk, [0.025, 0.975], axis=0)
    batches = risk.reshape(BATCHES, -1, AREAS).mean(axis=1)
    return {
        "truth": truth.mean(),
        "bias": off.mean(),
        "rmse": np.sqrt((off**2).mean()),
        "rmse_beside": np.sqrt((off[:MOST_ALONE] ** 2).mean()),
        "coverage": ((low <= truth) & (truth <= high)).mean(),
        "width": (high - low).mean(),
        "mcse": np.sqrt((batches.var(axis=0, ddof=1) / BATCHES).mean()),
    }


def drawn_shares(kind: str, counts: Counts, rng: np.random.Generator) -> Floats:
    """Draws of the shares of the cells of every area, (draws, areas, cells)."""
    own = profiles(kind, AREAS, SEED).reshape(-1, CELLS)
    if kind == "same":
        return np.broadcast_to(softmax(own[0]), (DRAWS, *counts.shape))
    if kind == "dirichlet":
        gammas = rng.standard_gamma(100 * softmax(own[0]) + counts, (DRAWS, *counts.shape))
        return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))
    return np.array(list(chain(model_of(kind, own), counts, rng)))


class Model:
    """Areas with weights in proportion to a profile, effects and factors.

    Parameters
    ----------
    profile : array, shape (cells,)
        Logarithms.
    tilt, factor : float
        Scales of an area's effects and factors, as logarithms.
    """

    def __init__(self, profile: Floats, *, tilt: float = 0.0, factor: float = 0.0) -> None:
        self.profile, self.tilt, self.factor = profile, tilt, factor

    def log_weights(self, own: Floats) -> Floats:
        """Of the cells of areas whose variates are `own`, (areas, effects + cells)."""
        effects, factors = own[:, :-CELLS], own[:, -CELLS:]
        tilts = sum(effects[:, level] for level in LEVELS)
        return np.asarray(self.profile + self.tilt * tilts + self.factor * factors)

    def more(self, logs: Floats, counts: Counts, last: Any, rng: np.random.Generator) -> Any:
        """Draw what areas have besides, given the logarithms of weights."""

    def shares(self, logs: Floats, more: Any) -> Floats:
        """Of cells, (areas, cells)."""
        return np.asarray(softmax(logs, axis=1))


class Heavy(Model):
    """Effects and factors of Student t with three degrees of freedom."""

    def log_weights(self, own: Floats) -> Floats:
        return super().log_weights(np.interp(own, NORMAL, STUDENT))


class Typed(Model):
    """Each area has one of several profiles, with these probabilities."""

    def __init__(self, profiles: Floats, chances: Floats, **scales: float) -> None:
        super().__init__(np.zeros(CELLS), **scales)
        self.profiles, self.chances = profiles, chances

    def more(self, logs: Floats, counts: Counts, last: Any, rng: np.random.Generator) -> Counts:
        every = logs[:, None] + self.profiles
        every -= logsumexp(every, axis=2, keepdims=True)
        return chosen(np.log(self.chances) + (every * counts[:, None]).sum(axis=2), rng)

    def shares(self, logs: Floats, more: Any) -> Floats:
        return super().shares(logs + self.profiles[more], None)


class Institutions(Model):
    """In one area of ten, half of all are in one of the cells."""

    def more(self, logs: Floats, counts: Counts, last: Any, rng: np.random.Generator) -> Counts:
        there = counts * np.log1p(np.exp(-np.log(softmax(logs, axis=1))))
        there -= counts.sum(axis=1, keepdims=True) * np.log(2)
        none = np.full((len(counts), 1), np.log(0.9))
        return chosen(np.hstack([np.log(0.1 / CELLS) + there, none]), rng)

    def shares(self, logs: Floats, more: Any) -> Floats:
        within = np.eye(CELLS + 1)[more][:, :-1]
        return (super().shares(logs, None) + within) / (1 + within.sum(axis=1, keepdims=True))


class Minorities(Model):
    """Cells of all origins but the first are rarer in four of five areas."""

    def more(self, logs: Floats, counts: Counts, last: Any, rng: np.random.Generator) -> Floats:
        number, weights = counts.sum(axis=1), np.exp(logs)
        rarer = np.ones_like(weights) if last is None else last.copy()
        whole = (weights * rarer).sum(axis=1)
        for cell in np.flatnonzero(np.arange(CELLS) % SHAPE[-1]):
            own = weights[:, cell]
            others = whole - own * rarer[:, cell]
            here = np.log(0.2) - number * np.log(others + own)
            rare = np.log(0.8) - number * np.log(others + own * RARER)
            rare += counts[:, cell] * np.log(RARER)
            rarer[:, cell] = np.where(rng.random(len(own)) < expit(rare - here), RARER, 1.0)
            whole = others + own * rarer[:, cell]
        return rarer

    def shares(self, logs: Floats, more: Any) -> Floats:
        return super().shares(logs + np.log(more), None)


def model_of(kind: str, own: Floats) -> Model:
    """What the generator has of areas of one kind, with these profiles."""
    if kind == "types":
        return Typed(own, np.array(CHANCES), factor=0.3)
    if kind == "campuses":
        common = np.log(10) * (np.arange(-1, SHAPE[0])[:, None] == LEVELS[0])
        chances = np.array([7 / 8, *np.full(SHAPE[0], 1 / 8 / SHAPE[0])])
        return Typed(own + common, chances, tilt=0.3)
    if kind == "nothing":
        return Model(np.zeros(CELLS), tilt=1.0, factor=0.5)
    (profile,) = own
    plain: dict[str, Model] = {
        "lognormal": Model(profile, factor=0.6),
        "margins": Model(profile, tilt=0.6, factor=0.2),
        "institutions": Institutions(profile, tilt=0.3),
        "minorities": Minorities(profile, tilt=0.3),
        "heavy": Heavy(profile, tilt=0.3, factor=0.3),
    }
    return plain[kind]


def chain(model: Model, counts: Counts, rng: np.random.Generator) -> Iterator[Floats]:
    """Shares at every draw that is kept of a Markov chain for all areas at once."""
    own, more = rng.standard_normal((len(counts), LEVELS.max() + 1 + CELLS)), None
    for step in range(DISCARDED + DRAWS * BETWEEN):
        more = model.more(model.log_weights(own), counts, more, rng)
        own = moved(model, own, counts, more, rng)
        if step >= DISCARDED and (step - DISCARDED) % BETWEEN == 0:
            yield model.shares(model.log_weights(own), more)


def moved(model: Model, own: Floats, counts: Counts, more: Any, rng: np.random.Generator) -> Floats:
    """Variates of every area after a step of elliptical slice sampling."""

    def log_likelihood(own: Floats) -> Floats:
        shares = model.shares(model.log_weights(own), more)
        return np.asarray((counts * np.log(np.maximum(shares, 1e-300))).sum(axis=1))

    least = log_likelihood(own) + np.log(1 - rng.random(len(own)))
    other = rng.standard_normal(own.shape)
    angle = rng.uniform(0, 2 * np.pi, len(own))
    low, high = angle - 2 * np.pi, angle
    while True:
        tried = own * np.cos(angle)[:, None] + other * np.sin(angle)[:, None]
        out = log_likelihood(tried) < least
        if not out.any():
            return np.asarray(tried)
        low, high = (
            np.where(out & (angle < 0), angle, low),
            np.where(out & (angle > 0), angle, high),
        )
        angle = np.where(out, rng.uniform(low, high), angle)


def chosen(log_chances: Floats, rng: np.random.Generator) -> Counts:
    """One of the columns for each row."""
    return np.argmax(log_chances + rng.gumbel(size=log_chances.shape), axis=1)


def markdown(known: pd.DataFrame, areas: pd.DataFrame) -> str:
    """A line for each kind and fraction, beside the shared profile and single fits."""
    own = areas[areas["measure"] == "R2"].set_index(["table", "fraction", "estimator"])
    lines = [
        (
            "| areas | n/N | all known: RMSE | covers R2 | width | shared: RMSE | ratio | width |"
            " all known, of alone | shared, of alone |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in known.itertuples():
        table = (f"{row.kind} {AREAS}", row.fraction)
        shared, alone = own.loc[(*table, SHARED)], own.loc[(*table, ALONE)]
        lines.append(
            f"| {row.kind} | {row.fraction} | {row.rmse:.4f} | {row.coverage:.0%} |"
            f" {row.width:.3f} | {shared.rmse:.4f} | {shared.rmse / row.rmse:.2f} |"
            f" {shared.width:.3f} | {row.rmse_beside / alone.rmse:.2f} |"
            f" {shared.rmse_beside / alone.rmse:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
