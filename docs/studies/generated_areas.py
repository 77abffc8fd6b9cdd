"""Populations of many areas, made by formula and seed: what areas share, and how they
depart from it, is of a different kind in each."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = ["AREA_KINDS", "CHANCES", "SHAPE", "SIZES", "area_populations", "profiles"]

Floats = npt.NDArray[np.float64]
type Share = Callable[[np.random.Generator], Floats]

SIZES: Final = {"age": 10, "status": 3, "origin": 3}
SHAPE: Final = tuple(SIZES.values())
CHANCES: Final = (0.5, 0.2, 0.15, 0.1, 0.05)
"""Of the types of areas."""
_SMALLEST, _LARGEST = 100, 3_000


def area_populations(kind: str, areas: int, random_seed: int) -> xr.DataArray:
    """Tables of `areas` areas of 90 cells, each with 100 to 3,000 people, log-uniform.

    Parameters
    ----------
    kind : str
        One of `AREA_KINDS`: ``same`` (one profile for all), ``dirichlet`` (shares
        Dirichlet around it, concentration 100), ``lognormal`` (each cell times a
        log-normal factor, 0.6), ``margins`` (categories times log-normal factors of
        0.6, cells of 0.2), ``types`` (five profiles, and cells times factors of 0.3),
        ``institutions`` (as margins, 0.3; in one area of ten a single cell has half of
        all), ``minorities`` (as margins, 0.3; each age of two origins lives in a fifth
        of the areas and is fifty times rarer elsewhere), ``nothing`` (each area a
        profile of its own), ``campuses`` (as margins, 0.3; in one area of eight one age
        is ten times as common), ``heavy`` (effects of categories and factors of cells
        are 0.3 times Student t with three degrees of freedom, as logarithms).
    areas, random_seed : int
        Number of areas; of everything.
    """
    rng = _rng(kind, areas, random_seed)
    share = AREA_KINDS[kind](rng)
    sizes = np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), areas)).astype(int)
    counts = [rng.multinomial(size, _normal(share(rng))) for size in sizes]
    coords = {name: [str(k + 1) for k in range(n)] for name, n in SIZES.items()}
    return xr.DataArray(
        np.reshape(counts, (areas, *SHAPE)),
        dims=("area", *SIZES),
        coords={"area": [f"E{k:05d}" for k in range(areas)], **coords},
        name="count",
    )


def profiles(kind: str, areas: int, random_seed: int) -> Floats:
    """The profiles that areas of a kind have, as logarithms: one, or that of each type.
    With ``nothing`` it is not theirs.
    """
    rng = _rng(kind, areas, random_seed)
    return np.array([_profile(rng) for _ in range(len(CHANCES) if kind == "types" else 1)])


def _rng(kind: str, areas: int, random_seed: int) -> np.random.Generator:
    return np.random.default_rng([random_seed, list(AREA_KINDS).index(kind), areas])


def _normal(share: Floats) -> Floats:
    return np.asarray(share.ravel() / share.sum())


def _profile(rng: np.random.Generator) -> Floats:
    """Main effects of standard deviation 1 and interactions of 0.5, as logarithms."""
    return _tilt(rng, 1.0) + 0.5 * rng.standard_normal(SHAPE)


def _tilt(rng: np.random.Generator, spread: float) -> Floats:
    """Effects of all categories, as logarithms."""
    total = np.zeros(SHAPE)
    for axis, size in enumerate(SHAPE):
        own = [size if other == axis else 1 for other in range(len(SHAPE))]
        total = total + spread * rng.standard_normal(size).reshape(own)
    return total


def _same(rng: np.random.Generator) -> Share:
    profile = np.exp(_profile(rng))
    return lambda _: profile


def _dirichlet(rng: np.random.Generator) -> Share:
    weights = 100 * _normal(np.exp(_profile(rng)))
    return lambda own: own.dirichlet(weights)


def _lognormal(rng: np.random.Generator) -> Share:
    profile = _profile(rng)
    return lambda own: np.exp(profile + 0.6 * own.standard_normal(SHAPE))


def _margins(rng: np.random.Generator) -> Share:
    profile = _profile(rng)
    return lambda own: np.exp(profile + _tilt(own, 0.6) + 0.2 * own.standard_normal(SHAPE))


def _types(rng: np.random.Generator) -> Share:
    every = [_profile(rng) for _ in CHANCES]

    def share(own: np.random.Generator) -> Floats:
        return np.exp(every[own.choice(len(CHANCES), p=CHANCES)] + 0.3 * own.standard_normal(SHAPE))

    return share


def _institutions(rng: np.random.Generator) -> Share:
    profile = _profile(rng)

    def share(own: np.random.Generator) -> Floats:
        found = np.exp(profile + _tilt(own, 0.3))
        if own.random() < 0.1:
            found[tuple(own.integers(SHAPE))] += found.sum()
        return found

    return share


def _minorities(rng: np.random.Generator) -> Share:
    profile = _profile(rng)

    def share(own: np.random.Generator) -> Floats:
        absent = own.random(SHAPE) > 0.2
        absent[..., 0] = False
        return np.exp(profile + _tilt(own, 0.3)) * np.where(absent, 0.02, 1.0)

    return share


def _nothing(_: np.random.Generator) -> Share:
    return lambda own: np.exp(_profile(own))


def _campuses(rng: np.random.Generator) -> Share:
    profile = _profile(rng)

    def share(own: np.random.Generator) -> Floats:
        found = np.exp(profile + _tilt(own, 0.3))
        if own.random() < 1 / 8:
            found[own.integers(SIZES["age"])] *= 10
        return found

    return share


def _heavy(rng: np.random.Generator) -> Share:
    profile = _profile(rng)

    def share(own: np.random.Generator) -> Floats:
        age, status, origin = (own.standard_t(3, size) for size in SHAPE)
        tilt = age[:, None, None] + status[:, None] + origin
        return np.exp(profile + 0.3 * tilt + 0.3 * own.standard_t(3, SHAPE))

    return share


AREA_KINDS: Final[dict[str, Callable[[np.random.Generator], Share]]] = {
    "same": _same,
    "dirichlet": _dirichlet,
    "lognormal": _lognormal,
    "margins": _margins,
    "types": _types,
    "institutions": _institutions,
    "minorities": _minorities,
    "nothing": _nothing,
    "campuses": _campuses,
    "heavy": _heavy,
}
