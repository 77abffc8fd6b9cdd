"""Estimators of which compiled code takes many tables of one shape at once."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from taciturn.estimators.blocks import TableBlock
from taciturn.estimators.unlabelled import Arrays, UnlabelledEstimator

__all__ = ["BlockEstimator", "LearnedBlock"]

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class LearnedBlock(NamedTuple):
    """Draws of the parameters by name, tables and draws on the first axes, and whether
    those of each table can be trusted; others are left to what takes one table.
    """

    draws: Arrays
    trusted: Mask


class BlockEstimator(UnlabelledEstimator):
    """An estimator of which compiled code takes a block of tables, with the numbers of
    one table after the other.
    """

    @abstractmethod
    def learn_block(
        self, block: TableBlock, draws: int, rngs: Sequence[np.random.Generator]
    ) -> LearnedBlock | None:
        """Draw the parameters of each table as `learn_unlabelled` does; None where this
        is left to what takes one table, as for subclasses, whose draws may be others.
        """

    @abstractmethod
    def complete_block(
        self,
        block: TableBlock,
        parameters: Arrays,
        turns: Mask,
        rngs: Sequence[np.random.Generator],
        out: Counts,
    ) -> None:
        """Fill those draws of the populations, (tables, draws, cells), whose turn it
        is, (tables, draws), as `complete` draws them.
        """

    def draw_block(
        self,
        block: TableBlock,
        draws: int,
        seeds: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> tuple[Counts, Mask] | None:
        """Draw populations of each table as `draw_unlabelled` does."""
        found = self.learn_block(block, draws, [np.random.default_rng(seed) for seed in seeds])
        if found is None:
            return None
        out = np.zeros((len(block.counts), draws, block.counts.shape[1]), dtype=np.int64)
        turns = np.repeat(found.trusted[:, None], draws, axis=1)
        self.complete_block(block, found.draws, turns, rngs, out)
        return out, found.trusted
