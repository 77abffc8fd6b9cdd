"""Hypothesis strategies for the data of this package: frequency tables, draws of them,
pairs, samples.

Counts are small by default, because small tables break a formula in more ways than
large ones do: most have zeros, ties and single individuals. A failing example therefore
shrinks to a table that can be worked out by hand."""

import numpy as np
import xarray as xr
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

__all__ = [
    "pairs",
    "populations_with_samples",
    "probability_weights",
    "replicated",
    "shapes",
    "tables",
]

VARIABLES = ("area", "religion", "sex", "age")
DRAW_DIMS = ("chain", "draw", "replicate")


def shapes(*, max_dims: int = 4, max_side: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes of the variables of a table with at least two cells."""
    return hnp.array_shapes(min_dims=1, max_dims=max_dims, max_side=max_side).filter(
        lambda shape: np.prod(shape) > 1
    )


@st.composite
def tables(draw, *, shape=None, draw_dims=(), max_count=12, populated=True) -> xr.DataArray:
    """Frequency tables with 1 to 4 labelled variables and at least two cells, many of
    them zero.

    Parameters
    ----------
    shape : strategy of tuple of int, optional
        Sizes of the variables; `shapes()` by default.
    draw_dims : sequence of str
        Those of `chain`, `draw` and `replicate` to add in front, with one to three
        entries each.
    max_count : int
        Largest count of a cell.
    populated : bool
        Whether each table holds at least one individual.
    """
    sides = draw(shapes() if shape is None else shape)
    lead = tuple(draw(st.integers(1, 3)) for _ in draw_dims)
    counts = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, max_count))
    values = draw(hnp.arrays(np.int64, lead + sides, elements=counts))
    if populated:
        flat = values.reshape(*lead, -1)
        cell = draw(st.integers(0, flat.shape[-1] - 1))
        flat[..., cell] += flat.sum(axis=-1) == 0
    labels = [
        [f"{name}{i}" for i in range(side)] for name, side in zip(VARIABLES, sides, strict=False)
    ]
    coords = {
        **{d: range(n) for d, n in zip(draw_dims, lead, strict=True)},
        **dict(zip(VARIABLES, labels, strict=False)),
    }
    return xr.DataArray(
        values, dims=(*draw_dims, *VARIABLES[: len(sides)]), coords=coords, name="count"
    )


@st.composite
def pairs(
    draw, *, table_dims=(), release_dims=(), max_dims=4, max_count=12, empty_release=False
) -> tuple[xr.DataArray, xr.DataArray]:
    """Two tables over the same variables and categories: one before, one after an
    arbitrary perturbation.

    `table_dims` and `release_dims` add draws to the one and the other; `empty_release`
    allows a release of nobody."""
    shape = draw(shapes(max_dims=max_dims))
    before = draw(tables(shape=st.just(shape), draw_dims=table_dims, max_count=max_count))
    after = draw(
        tables(
            shape=st.just(shape),
            draw_dims=release_dims,
            max_count=max_count,
            populated=not empty_release,
        )
    )
    return before, after


@st.composite
def populations_with_samples(draw, **options) -> tuple[xr.DataArray, xr.DataArray]:
    """A population table and a sample of at least one of its individuals; the options
    are those of `tables`."""
    population = draw(tables(**options))
    values = np.array([draw(st.integers(0, int(count))) for count in population.values.ravel()])
    if values.sum() == 0:
        values[int(population.values.ravel().argmax())] = 1
    return population, population.copy(data=values.reshape(population.shape))


@st.composite
def replicated(draw, *, replicates=(1, 5), **options) -> tuple[xr.DataArray, xr.DataArray]:
    """A table and several releases of it along ``replicate``, none of them empty."""
    table = draw(tables(**options))
    number = draw(st.integers(*replicates))
    releases = [draw(tables(shape=st.just(table.shape))) for _ in range(number)]
    return table, xr.concat(releases, dim="replicate").assign_coords(replicate=range(number))


def probability_weights() -> st.SearchStrategy[tuple[float, float, float]]:
    """Weights of R1 and R2: non-negative, summing to 1, corners included."""
    hundredths = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)
    return hundredths.map(lambda cut: (cut[0] / 100, (cut[1] - cut[0]) / 100, (100 - cut[1]) / 100))
