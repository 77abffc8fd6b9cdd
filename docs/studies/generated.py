"""Population tables whose variables depend on each other strongly, made by formula and
seed.

None is a copy of a real table. What they share with real ones: a few large and many
small cells, cells that are nearly impossible without being structural zeros, and
margins that are far from uniform."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = ["KINDS", "generated_population"]

Floats = npt.NDArray[np.float64]


def generated_population(kind: str, size: int, random_seed: int) -> xr.DataArray:
    """Draw a population of `size` individuals, Multinomial(size, shares of the kind),
    as a frequency table.

    Parameters
    ----------
    kind : str
        One of `KINDS`: ``smooth`` (age by economic status: each status has its ages,
        and others are nearly impossible there), ``blocks`` (occupation by industry:
        most of an industry, nine tenths on average, in its own occupations),
        ``lognormal`` (main effects times log-normal interactions of standard deviation
        1.5), ``origin_destination`` (flows between places of different size that fall
        with distance, most people staying).
    size : int
        Individuals.
    random_seed : int
        Of shares and counts.
    """
    rng = np.random.default_rng([random_seed, list(KINDS).index(kind)])
    dims, shares = KINDS[kind](rng)
    counts = rng.multinomial(size, (shares / shares.sum()).ravel()).reshape(shares.shape)
    coords = {
        dim: [str(i + 1) for i in range(n)] for dim, n in zip(dims, shares.shape, strict=True)
    }
    return xr.DataArray(counts, dims=dims, coords=coords, name="count")


def _smooth(rng: np.random.Generator) -> tuple[tuple[str, str], Floats]:
    """18 five-year groups of age, 8 statuses: log share a Gaussian in age around each
    status's own centre and width."""
    age = np.arange(18)[:, None]
    pyramid = np.exp(-((age / 16.0) ** 3))
    centre, width = rng.uniform(0, 17, 8), rng.uniform(1.0, 4.0, 8)
    frequency = np.sort(rng.pareto(1.2, 8) + 0.1)
    return ("age", "status"), pyramid * frequency * np.exp(
        -(((age - centre) / width) ** 2) / 2
    ) + 1e-12


def _blocks(rng: np.random.Generator) -> tuple[tuple[str, str], Floats]:
    """12 industries by 16 occupations in 4 blocks; the block of an industry is 24 times
    as likely as the rest."""
    row, column = rng.dirichlet(np.full(12, 1.5)), rng.dirichlet(np.full(16, 1.0))
    same = np.arange(12)[:, None] // 3 == np.arange(16) // 4
    return ("industry", "occupation"), np.outer(row, column) * np.where(same, 24.0, 1.0)


def _lognormal(rng: np.random.Generator) -> tuple[tuple[str, str], Floats]:
    """15 by 10 cells; every cell has an interaction of its own."""
    main = np.outer(rng.dirichlet(np.full(15, 2.0)), rng.dirichlet(np.full(10, 0.7)))
    return ("row", "column"), main * np.exp(rng.normal(0, 1.5, main.shape))


def _origin_destination(rng: np.random.Generator) -> tuple[tuple[str, str], Floats]:
    """20 places: a gravity model with exponential decay, and a diagonal of those who
    stay."""
    place = rng.uniform(0, 10, (20, 2))
    population = rng.lognormal(0, 1.0, 20)
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    flow = np.outer(population, population) * np.exp(-distance)
    return ("origin", "destination"), flow + np.diag(population * flow.sum() / population.sum() * 2)


KINDS: Final[dict[str, Callable[[np.random.Generator], tuple[tuple[str, str], Floats]]]] = {
    "smooth": _smooth,
    "blocks": _blocks,
    "lognormal": _lognormal,
    "origin_destination": _origin_destination,
}
