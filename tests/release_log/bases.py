"""Small bases of records with random releases, and what can be worked out of these by
listing all tables.
"""

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import xarray as xr

from taciturn.attack import CellKeys
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.reading import published_tables
from taciturn.release_log.window import Source

__all__ = [
    "all_tables",
    "compatible",
    "masks",
    "random_base",
    "random_release",
    "with_one_answer",
]


def random_base(
    generator: np.random.Generator, shape: tuple[int, ...], people: int
) -> xr.DataArray:
    """A table of so many people over variables a, b, ..."""
    names = "abcd"[: len(shape)]
    coords = {name: [f"{name}{i}" for i in range(n)] for name, n in zip(names, shape, strict=True)}
    counts = generator.multinomial(people, np.full(int(np.prod(shape)), 1 / np.prod(shape)))
    return xr.DataArray(counts.reshape(shape), dims=list(names), coords=coords)


def random_release(
    generator: np.random.Generator, base: xr.DataArray, codebook: Codebook
) -> list[PublishedTable]:
    """A table over some variables, with merged categories, a filter or suppressed
    cells.
    """
    table, where, merge = base, {}, {}
    for name in map(str, base.dims):
        choice = generator.random()
        labels = base[name].values.tolist()
        if choice < 0.3:  # selected by this variable, which may be summed over
            kept = sorted(generator.choice(labels, generator.integers(1, len(labels) + 1), False))
            where[name] = kept
            table = table.sel({name: kept})
            if generator.random() < 0.6:
                table = table.sum(name)
            elif generator.random() < 0.5:  # with those that are left out, who are nobody
                table = table.reindex({name: labels}, fill_value=0)
        elif choice < 0.6:
            table = table.sum(name)
        elif choice < 0.75 and len(labels) > 2:
            first, second, *rest = generator.permutation(labels).tolist()
            merge[name] = {"both": [first, second]}
            both = table.sel({name: [first, second]}).sum(name).expand_dims({name: ["both"]})
            table = xr.concat([both, table.sel({name: rest})], dim=name)
    counts = table.astype(float)
    hidden = generator.random(counts.shape) < generator.choice([0.0, 0.3])
    return published_tables(counts.where(~hidden), codebook, where=where, merge=merge)


def all_tables(cells: int, people: int) -> np.ndarray:
    """All tables of so many people, a row each."""
    chosen = combinations_with_replacement(range(cells), people)
    return np.array([np.bincount(each, minlength=cells) for each in chosen], dtype=np.int64)


def masks(table: PublishedTable, base: xr.DataArray) -> dict[tuple[int, ...], np.ndarray]:
    """The cells of the base that each cell of a table counts."""
    dims = list(map(str, base.dims))
    classes = {dim: table.classes(dim, base.sizes[dim]) for dim in dims}
    found = {}
    for at in product(*(range(len(axis.labels)) for axis in table.axes)):
        place = {axis.variable: i for axis, i in zip(table.axes, at, strict=True)}
        inside = np.ones(base.shape, dtype=bool)
        for i, dim in enumerate(dims):
            own = classes[dim] == place.get(dim, 0)
            inside &= own.reshape([-1 if j == i else 1 for j in range(base.ndim)])
        found[at] = inside.ravel()
    return found


def compatible(
    tables: np.ndarray, released: list[PublishedTable], base: xr.DataArray
) -> np.ndarray:
    """Which tables agree with all that is published, cell by cell."""
    ok = np.ones(len(tables), dtype=bool)
    for table in released:
        for at, inside in masks(table, base).items():
            sums = tables[:, inside].sum(axis=1)
            ok &= (sums >= table.least[at]) & (sums <= table.most[at])
    return ok


def with_one_answer(tables: np.ndarray, released: list[Source], base: xr.DataArray) -> np.ndarray:
    """The tables in which, with the same keys, the same records have one answer, and
    by two perturbation tables two that one key gives.
    """
    said = [
        (table.noise.keys or release, table.noise.mechanism, table.noise.released[0][at], own)
        for release, table in released
        if table.noise is not None and table.noise.keyed
        for at, own in masks(table, base).items()
        if table.noise.released[0][at] >= 0
    ]
    for (keys, first, value, one), (others, second, answer, two) in combinations(said, 2):
        if keys != others:
            continue
        same = tables[:, one ^ two].sum(axis=1) == 0
        if first is second:
            gives = np.full(len(tables), value == answer)
        elif isinstance(first, CellKeys) and isinstance(second, CellKeys):
            true = tables @ one
            ends = [m.keys_of(y, true) for m, y in ((first, value), (second, answer))]
            low, high = np.maximum(*(x[0] for x in ends)), np.minimum(*(x[1] for x in ends))
            gives = high > low + 1e-12
        else:
            continue
        tables = tables[~same | gives]
    return tables
