"""The tables of a fit: drawn at once, or block by block as they are read."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import xarray as xr

from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import (
    SEEDS,
    Counts,
    Parameters,
    SamplerSettings,
    is_streamed,
    seed_of,
)
from taciturn.parallel import in_threads
from taciturn.schema import draws_at_a_time
from taciturn.tables.on_demand import DrawnTables

__all__ = ["DrawTables", "labelled_tables"]

_ARRAYS: Final = 8  # like it that a table is made from, at least

DrawTables = Callable[[Problem, SamplerSettings, Parameters, np.random.Generator], Counts]
"""Draws tables given the parameters; returns shape (chains * draws, cells)."""


def labelled_tables(
    ways: Mapping[str, DrawTables],
    problem: Problem,
    settings: SamplerSettings,
    parameters: Parameters,
) -> xr.Dataset:
    """Tables drawn in each of these ways, labelled by chain, draw and the variables.

    Arrays of more than fifty million values are not stored: their tables are drawn as
    they are read, a block of draws at a time.

    Parameters
    ----------
    ways : mapping of str to callable
        How ``population`` and ``count`` are drawn. Each has its own seed.
    """

    def one(what: str) -> xr.DataArray:
        if is_streamed(problem, settings):
            shape = (settings.chains, settings.draws, *problem.sample.shape)
            block = partial(_draw_block, what, ways[what], problem, settings, parameters)
            return problem.label(DrawnTables(shape, block).lazily(), what)
        rng = np.random.default_rng(seed_of(what, settings))
        drawn = ways[what](problem, settings, parameters, rng)
        return problem.draws(drawn, settings.chains, what)

    numbers = len(ways) * settings.total * problem.sample.size * _ARRAYS
    return xr.Dataset(dict(zip(ways, in_threads(one, list(ways), numbers=numbers), strict=True)))


def _draw_block(
    what: str,
    draw: DrawTables,
    problem: Problem,
    settings: SamplerSettings,
    parameters: Parameters,
    chain: int,
    block: int,
) -> Counts:
    """Tables at consecutive draws of one chain, (draws, cells); each block has its own
    seed.
    """
    step = draws_at_a_time(problem.sample.size)
    rows = slice(block * step, min((block + 1) * step, settings.draws))
    own = replace(settings, chains=1, draws=rows.stop - rows.start)
    seed = np.random.SeedSequence(
        seed_of(what, settings).entropy, spawn_key=(SEEDS.index(what), chain, block)
    )
    return draw(problem, own, parameters.at(chain, rows), np.random.default_rng(seed))
