"""What follows of totals from what is published as it is: which are known, and which
differ by a constant in all compatible tables.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from taciturn.attack.posterior.lattice import kernel_basis
from taciturn.attack.system import UNLIMITED
from taciturn.release_log.codebook import Integers
from taciturn.release_log.search import compatible_tables, limited, propagated
from taciturn.release_log.window import Window

__all__ = ["Hashes", "Known", "random_hashes"]

Hashes = npt.NDArray[np.uint64]

_TIED: Final = 1  # a seed


class Known:
    """What follows of totals of a window.

    Parameters
    ----------
    window : Window
        What is published as it is, or as intervals.

    Attributes
    ----------
    lower, upper : array of int64
        Bounds of the cells that follow from one total after the other.
    numbers : array of uint64
        Numbers of the cells whose sums are equal where totals differ by a constant, and
        0 where a total is known.

    Raises
    ------
    TableError
        What is published contradicts itself.
    """

    def __init__(self, window: Window) -> None:
        system, unlimited = limited(window.system)
        lower, upper = propagated(system)
        self.lower, self.upper = lower, np.where(unlimited, UNLIMITED, upper)
        self._table = next(compatible_tables(window.system)[0])
        open_ = self.lower < self.upper
        exact = np.flatnonzero(system.least == system.most)
        basis = kernel_basis(csr_array(system.matrix[exact][:, open_])).astype(np.uint64)
        self.numbers = np.zeros(len(lower), dtype=np.uint64)
        self.numbers[open_] = basis.T @ random_hashes(_TIED, basis.shape[0])

    def hash_of(self, cells: Integers) -> int:
        """A number for a total, equal for those that differ by a constant; 0 for what
        is known.
        """
        return int(self.numbers[cells].sum())

    def value(self, cells: Integers) -> int:
        """A total in one compatible table, and so in all if it is known."""
        return int(self._table[cells].sum())


def random_hashes(seed: int, size: int) -> Hashes:
    """Random numbers by whose sums, modulo ``2**64``, sets are told apart."""
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)
