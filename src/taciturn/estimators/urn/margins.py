"""Weights of cells by the margins of a sample."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["margin_product"]


def margin_product(table: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Product of the margins for every cell, with 1 added to each category's count."""
    product: Any = np.ones(())
    for axis in range(table.ndim):
        margin = table.sum(axis=tuple(i for i in range(table.ndim) if i != axis)) + 1.0
        product = product[..., None] * (margin / margin.sum())
    return np.asarray(product).ravel()
