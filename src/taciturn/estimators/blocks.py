"""Many small tables of one shape: compiled code takes a block of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.problem import Problem

__all__ = ["TABLES_AT_ONCE", "TableBlock", "generators"]

TABLES_AT_ONCE: Final = 16
"""In a block: as many generators as are quickly compiled."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableBlock:
    """Samples with the same variables and cells that can be filled.

    Attributes
    ----------
    first : Problem
        One of them.
    counts : array, shape (tables, cells)
        None empty, with 0 at structural zeros.
    population_sizes : array, shape (tables,)
        At least those of the samples.
    """

    first: Problem
    counts: Counts
    population_sizes: Counts

    @cached_property
    def fillable(self) -> npt.NDArray[np.bool_]:
        """False at structural zeros, shape (cells,)."""
        return self.first.fillable.ravel()

    @cached_property
    def sample_sizes(self) -> Counts:
        """Number of sampled individuals of each table."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def missing(self) -> Counts:
        """Number of individuals of each table who were not sampled."""
        return self.population_sizes - self.sample_sizes


def generators(own: Sequence[np.random.Generator]) -> tuple[np.random.Generator, ...]:
    """As many as compiled code takes, whatever the number of tables: the length of a
    tuple is part of its type.
    """
    return (*own, *[own[-1]] * (TABLES_AT_ONCE - len(own)))
