"""Interactions of a log-linear model as coordinates that are free, and their sum in
every cell of a table.
"""

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.estimators.formula import Terms
from taciturn.estimators.halves import halves

__all__ = ["Interactions"]

Floats = npt.NDArray[np.float64]


class Interactions:
    """Zero-sum effects of terms of two and more variables.

    An effect over `d1 x d2 x ...` categories that sums to 0 along each variable has
    `(d1 - 1)(d2 - 1)...` coordinates on an orthonormal basis. Standard normal ones give
    the effect the normal distribution that is symmetric in the categories. The
    coordinates of all terms are one vector: a model with a variable for each of dozens
    of terms takes minutes to compile. They stand in a matrix between the first half of
    the variables and the second, so that the sum over all terms is two products of
    matrices.

    Attributes
    ----------
    size : int
        Number of coordinates.
    term : array of int, shape (size,)
        Which term each belongs to.
    row, column : array of int, shape (size,)
        Where each stands in the matrix, of shape `shape`.
    left, right : array
        (combinations of categories of the first half, rows) and (of the second half,
        columns).
    """

    def __init__(self, terms: Terms, sizes: Mapping[str, int]) -> None:
        self.terms, self.sizes = terms, dict(sizes)
        first, second = halves(sizes)
        parts = [
            tuple(tuple(dim for dim in term if dim in half) for half in (first, second))
            for term in terms
        ]
        (self.left, rows), (self.right, columns) = (
            self._basis(half, sorted({part[side] for part in parts}))
            for side, half in enumerate((first, second))
        )
        self.shape = self.left.shape[1], self.right.shape[1]
        each = []
        for number, (row, column) in enumerate(parts):
            at = np.indices((self._coordinates(row), self._coordinates(column))).reshape(2, -1)
            each.append([at[0] + rows[row], at[1] + columns[column], np.full(at.shape[1], number)])
        self.row, self.column, self.term = np.concatenate(each, axis=1)
        self.size = len(self.term)

    def effect(self, number: int, coordinates: Floats) -> Floats:
        """Effect of one term, (..., *categories), from the coordinates of all, (...,
        size).
        """
        own = coordinates[..., self.term == number] @ self.basis(number).T
        return own.reshape(*own.shape[:-1], *(self.sizes[dim] for dim in self.terms[number]))

    def basis(self, number: int) -> Floats:
        """Basis of one term's effect: (combinations of its categories, its
        coordinates).
        """
        basis: Floats = np.ones((1, 1))
        for dim in self.terms[number]:
            basis = np.asarray(np.kron(basis, _contrasts(self.sizes[dim])))
        return basis

    def _coordinates(self, part: tuple[str, ...]) -> int:
        return prod(self.sizes[dim] - 1 for dim in part)

    def _basis(
        self, half: list[str], parts: list[tuple[str, ...]]
    ) -> tuple[Floats, dict[tuple[str, ...], int]]:
        """Basis vectors of each part of a term at each combination of categories, and
        where each part's begin.
        """
        shape = [self.sizes[dim] for dim in half]
        blocks, starts, start = [], {}, 0
        for part in parts:
            block: npt.NDArray[Any] = np.ones((1, 1))
            for dim in half:
                own = _contrasts(self.sizes[dim]) if dim in part else np.ones((self.sizes[dim], 1))
                block = np.kron(block, own)
            blocks.append(block)
            starts[part] = start
            start += block.shape[1]
        return np.concatenate(blocks, axis=1).reshape(prod(shape), start), starts


@cache
def _contrasts(size: int) -> Floats:
    """Orthonormal basis of the vectors that sum to 0, (size, size - 1): of Helmert,
    each against those before it.
    """
    basis = np.zeros((size, size - 1))
    for k in range(1, size):
        basis[:k, k - 1], basis[k, k - 1] = 1.0, -k
        basis[:, k - 1] /= np.sqrt(k * (k + 1))
    return basis
