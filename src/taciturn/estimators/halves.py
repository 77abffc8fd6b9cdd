"""Splitting the variables of a table into two halves, so that the values of all cells
are a single product of two matrices.
"""

from collections.abc import Mapping

import numpy as np

__all__ = ["halves"]


def halves(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Split the variables, keeping their order, so that both halves have about the same
    number of combinations of categories.
    """
    dims = list(sizes)
    logs = np.cumsum(np.log(list(sizes.values())))
    at = int(np.abs(2 * logs - logs[-1]).argmin()) + 1
    return dims[:at], dims[at:]
