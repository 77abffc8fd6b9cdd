"""Populations of 700,000 in eight variables and 38,400 cells, made by formula and seed.

None is a copy of a real table, and only ``latent`` is of the family that `LatentClass`
fits."""

from collections.abc import Callable
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = ["LARGE_KINDS", "POPULATION_SIZE", "large_population"]

Floats = npt.NDArray[np.float64]

POPULATION_SIZE: Final = 700_000
VARIABLES: Final = {
    "sex": 2,
    "age": 8,
    "marital": 5,
    "occupation": 6,
    "education": 4,
    "region": 5,
    "health": 2,
    "tenure": 2,
}
_SHAPE: Final = tuple(VARIABLES.values())


def large_population(kind: str, random_seed: int) -> xr.DataArray:
    """Draw a population, Multinomial(700,000, shares of the kind), as a frequency
    table.

    Parameters
    ----------
    kind : str
        One of `LARGE_KINDS`: ``latent`` (25 classes, each with a few categories of
        every variable), ``loglinear`` (all interactions of two variables and a third of
        those of three, of different strength), ``census`` (variables that follow from
        others, such as marital status from age and sex, with cells that cannot be
        filled and are not declared, and an own deviation of every cell).
    random_seed : int
        Of shares and counts.
    """
    rng = np.random.default_rng([random_seed, list(LARGE_KINDS).index(kind)])
    shares = LARGE_KINDS[kind](rng).ravel()
    counts = rng.multinomial(POPULATION_SIZE, shares / shares.sum()).reshape(_SHAPE)
    coords = {dim: [f"{dim}{i + 1}" for i in range(size)] for dim, size in VARIABLES.items()}
    return xr.DataArray(counts, dims=list(VARIABLES), coords=coords, name="count")


def _latent(rng: np.random.Generator) -> Floats:
    shares = np.zeros(_SHAPE)
    for weight in rng.dirichlet(np.full(25, 0.7)):
        one = np.array(weight)
        for size in _SHAPE:
            one = np.multiply.outer(one, rng.dirichlet(np.full(size, 0.22)))
        shares += one
    return shares


def _loglinear(rng: np.random.Generator) -> Floats:
    log_shares = np.zeros(_SHAPE)
    for order, scale in ((1, 1.1), (2, 0.45), (3, 0.3)):
        for term in combinations(range(len(_SHAPE)), order):
            if order == 3 and rng.random() > 1 / 3:
                continue
            size = scale if order == 1 else scale * 1.25 * abs(rng.normal())
            log_shares += size * rng.normal(
                size=[d if j in term else 1 for j, d in enumerate(_SHAPE)]
            )
    return np.exp(log_shares - log_shares.max())


def _census(rng: np.random.Generator) -> Floats:
    """Shares of each variable given some of the others, multiplied."""

    def effects(parents: tuple[int, ...], categories: int, scale: float, noise: float) -> Floats:
        out = np.broadcast_to(rng.normal(0, scale, categories), (*parents, categories)).copy()
        for axis, size in enumerate(parents):
            shape = [1] * len(parents) + [categories]
            shape[axis] = size
            out += rng.normal(0, scale * 0.8, shape)
        return out + rng.normal(0, noise, out.shape)

    def shares_of(logits: Floats) -> Floats:
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=-1, keepdims=True))

    region, age, sex = (
        rng.dirichlet(np.full(5, 4.0)),
        shares_of(effects((5,), 8, 0.3, 0.1)),
        np.array([0.49, 0.51]),
    )
    marital = effects((2, 8), 5, 1.0, 0.4)
    marital[:, :2, 1:] = -np.inf  # children are single
    education = effects((2, 8), 4, 0.8, 0.3)
    education[:, :1, 1:] = -np.inf
    education[:, 1:2, 3] = -np.inf
    occupation = effects((2, 8, 5, 4), 6, 0.9, 0.5)
    occupation[:, :2, :, :, 1:] = -np.inf  # no occupation for children
    occupation[:, 7, :, :, 0] += 4.0  # the oldest are retired
    health, tenure = (
        shares_of(effects((8, 6), 2, 0.9, 0.3)),
        shares_of(effects((8, 5, 6, 5), 2, 0.8, 0.5)),
    )
    by_sex_and_age = (shares_of(marital), shares_of(education), shares_of(occupation))
    shares = np.einsum(
        "r,ra,s,sam,sae,sameo,aoh,amort->samoerht",
        region,
        age,
        sex,
        *by_sex_and_age,
        health,
        tenure,
    )
    return np.asarray(shares * rng.gamma(2.0, 0.5, shares.shape))


LARGE_KINDS: Final[dict[str, Callable[[np.random.Generator], Floats]]] = {
    "latent": _latent,
    "loglinear": _loglinear,
    "census": _census,
}
