"""Compiled: choices of NumPy's generators, with the same numbers.

Loops are written out, as Numba takes seconds to compile what arrays do as a whole; its
own `shuffle` copies slices of the array and takes six times as long.
"""

import numpy as np
from numba import njit
from numba.np.random.generator_core import next_uint32

__all__ = ["choose_places", "in_turn", "shuffle"]


@njit(cache=True, nogil=True)
def choose_places(chance, number, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """So many places with these probabilities: `numpy.random.Generator.choice`."""
    upto, whole = np.empty(chance.size), 0.0
    for i in range(chance.size):
        whole += chance[i]
        upto[i] = whole
    places = np.empty(number, np.int64)
    for k in range(number):
        point, low, high = rng.random(), 0, chance.size - 1
        while low < high:  # the first place whose sum is beyond the point
            middle = (low + high) // 2
            if upto[middle] / whole > point:
                high = middle
            else:
                low = middle + 1
        places[k] = low
    return places


@njit(cache=True, nogil=True)
def shuffle(values, rng):  # type: ignore[no-untyped-def] # pragma: no cover
    """Put values in random order: fewer than 2**32."""
    source = rng.bit_generator
    for i in range(values.size - 1, 0, -1):
        mask = i
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> shift
        j = np.int64(next_uint32(source)) & mask
        while j > i:
            j = np.int64(next_uint32(source)) & mask
        values[i], values[j] = values[j], values[i]


@njit(cache=True, nogil=True)
def in_turn(turns, rows):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the places of those whose turn it is; return how many these are."""
    number = 0
    for k in range(turns.size):
        if turns[k]:
            rows[number] = k
            number += 1
    return number
