"""Directions in which a table can change while its totals stay: bases of integer
kernels, and wide moves.
"""

import heapq
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack

from taciturn.attack.system import Integers

__all__ = ["kernel_basis", "reduced_basis", "wide_moves"]

_SPREAD: Final = 0.5  # of the logarithm of costs

type Vector = dict[int, int]


def kernel_basis(matrix: csr_array) -> csr_array:
    """A basis of all whole-number vectors that a matrix of whole numbers maps to zero.

    Columns are added to and subtracted from each other until a row is zero in all of
    them but one, which is set aside. Each step can be undone in whole numbers, so what
    is left at the end spans every such vector, not only multiples of it. The row with
    the fewest entries goes next, by its shortest column, which keeps the others short.

    Parameters
    ----------
    matrix : csr_array of int64, shape (rows, n)
        The matrix.

    Returns
    -------
    csr_array of int64, shape (n - rank, n)
        One vector a row.
    """
    n = matrix.shape[1]
    csc = matrix.tocsc()
    rows, values = csc.indices.tolist(), csc.data.tolist()
    images: list[Vector] = [
        dict(zip(rows[a:b], values[a:b], strict=True)) for a, b in pairwise(csc.indptr.tolist())
    ]
    made_of: list[Vector] = [{column: 1} for column in range(n)]
    holders: list[set[int]] = [set() for _ in range(matrix.shape[0])]
    for column, image in enumerate(images):
        for row in image:
            holders[row].add(column)
    queue = [(len(held), row) for row, held in enumerate(holders)]
    heapq.heapify(queue)
    done = set()
    while queue:
        length, row = heapq.heappop(queue)
        if row in done:
            continue
        if length != len(holders[row]):
            heapq.heappush(queue, (len(holders[row]), row))
            continue
        done.add(row)
        while len(holders[row]) > 1:
            pivot = min(holders[row], key=lambda j: (abs(images[j][row]), len(made_of[j]), j))
            for column in sorted(holders[row] - {pivot}):
                times = images[column][row] // images[pivot][row]
                _subtract(made_of[column], made_of[pivot], times)
                for other in _subtract(images[column], images[pivot], times):
                    (holders[other].add if other in images[column] else holders[other].discard)(
                        column
                    )
        for column in list(holders[row]):
            for other in images[column]:
                holders[other].discard(column)
            made_of[column] = {}
    return _stacked([vector for vector in made_of if vector], n)


def _subtract(vector: Vector, other: Vector, times: int) -> list[int]:
    """Subtract a multiple of another vector in place; the places that began or ceased
    to be zero.
    """
    changed = []
    for place, value in other.items():
        before = vector.get(place, 0)
        after = before - times * value
        if after:
            vector[place] = after
        elif before:
            del vector[place]
        if (before == 0) != (after == 0):
            changed.append(place)
    return changed


def _stacked(vectors: list[Vector], n: int) -> csr_array:
    starts = np.cumsum([0, *(len(vector) for vector in vectors)])
    places = np.array([place for vector in vectors for place in sorted(vector)], dtype=np.int64)
    values = np.array(
        [vector[place] for vector in vectors for place in sorted(vector)], dtype=np.int64
    )
    return csr_array((values, places, starts), shape=(len(vectors), n))


def reduced_basis(basis: csr_array) -> csr_array:
    """A basis of the same lattice none of whose vectors becomes shorter when a multiple
    of another is subtracted.

    In each pass vectors that are changed and vectors that are subtracted are different
    ones, so that the pass can be undone. Squares of lengths fall with every change, so
    that passes come to an end.
    """
    size = basis.shape[0]
    while True:
        gram = csr_array(basis @ basis.T).tocoo()
        squares = gram.diagonal()
        i, j, products = gram.coords[0], gram.coords[1], gram.data
        times = np.rint(products / squares[j]).astype(np.int64)
        gain = times * (2 * products - times * squares[j])
        useful = np.flatnonzero((i != j) & (gain > 0))
        if not useful.size:
            return basis
        changed, kept = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        chosen = []
        for entry in useful[np.argsort(-gain[useful], kind="stable")]:
            if not changed[i[entry]] and not changed[j[entry]] and not kept[i[entry]]:
                changed[i[entry]] = kept[j[entry]] = True
                chosen.append(entry)
        basis = csr_array(
            basis - csr_array((times[chosen], (i[chosen], j[chosen])), shape=(size, size)) @ basis
        )
        basis.eliminate_zeros()


def wide_moves(
    matrix: csr_array, room: Integers, number: int, rng: np.random.Generator
) -> csr_array:
    """Vectors that a matrix maps to zero, each with few and roomy entries, which hold
    one entry after another.

    Each minimises the sum of ``|d_i| / room_i`` with one entry at 1, up to random
    factors. Cells that a basis moves by long vectors only, which bounds soon stop, get
    short ones. What linear programs do not give in whole numbers is left out.

    Parameters
    ----------
    matrix : csr_array of int64, shape (rows, n)
        The matrix.
    room : array of int64, shape (n,)
        Width of the interval of each entry, above 0.
    number : int
        Programs to solve.
    rng : Generator
        Random numbers.

    Returns
    -------
    csr_array of int64, shape (at most number, n)
    """
    n = matrix.shape[1]
    both = hstack([matrix, -matrix]).astype(np.float64).tocsc()
    constraint = LinearConstraint(both, 0, 0)
    order = rng.permutation(n)
    found: dict[bytes, Integers] = {}
    for entry in np.resize(order, number):
        costs = np.exp(_SPREAD * rng.normal(size=n)) / room
        least, most = np.zeros(2 * n), np.full(2 * n, np.inf)
        least[entry] = most[entry] = 1
        most[n + entry] = 0
        solved = milp(
            np.concatenate([costs, costs]), constraints=constraint, bounds=Bounds(least, most)
        )
        if solved.x is None:
            continue
        move = np.rint(solved.x[:n] - solved.x[n:]).astype(np.int64)
        if not (matrix @ move).any():
            found[(move * np.sign(move[np.flatnonzero(move)[0]])).tobytes()] = move
    return csr_array(np.array(list(found.values()), dtype=np.int64).reshape(-1, n))
