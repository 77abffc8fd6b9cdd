"""Compiled: `numpy.random.Generator.shuffle`, with the same numbers. Numba's own copies
slices of the array at each step and takes six times as long.
"""

import numpy as np
from numba import njit
from numba.np.random.generator_core import next_uint32

__all__ = ["shuffle"]


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
