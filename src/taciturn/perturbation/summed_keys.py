"""Keys of cells: sums of record keys modulo 1, and further keys from these."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError
from taciturn.perturbation.keys import KEY_STEPS, checked_keys
from taciturn.perturbation.replicates import Counts
from taciturn.tables.records import Records

__all__ = ["further_keys", "given_keys", "summed_keys"]

Floats = npt.NDArray[np.float64]

_UNUSED_BITS: Final = np.uint64(11)
_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIXING: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
    (np.uint64(31), np.uint64(1)),
)  # shifts and factors of SplitMix64, by Steele, Lea & Flood (2014)


def given_keys(
    keys: Any, read: Records, *, replicates: int, random_seed: Any
) -> npt.NDArray[np.float64] | None:
    """Checked record keys, from a column or as they are given; None where none are
    given.
    """
    if keys is None:
        return None
    if replicates != 1:
        raise ParameterError(f"replicates must be 1 if record keys are given, got {replicates}")
    if random_seed is not None:
        raise ParameterError("random_seed must be None if record keys are given")
    return checked_keys(read.others[keys] if isinstance(keys, str) else keys, read.rows)


def summed_keys(index: Counts, keys: Floats, cells: int) -> Floats:
    """Sum of the record keys in each cell, modulo 1.

    Whole multiples of 2**-53 add up exactly modulo 2**64, in any order of the records.
    """
    sums = np.zeros(cells, dtype=np.uint64)
    np.add.at(sums, index, (keys * KEY_STEPS).astype(np.uint64))
    return (sums % np.uint64(KEY_STEPS)).astype(float) / KEY_STEPS


def further_keys(keys: Floats, number: int) -> Floats:
    """Uniform numbers that follow from keys of cells and show no relation to them or to
    those of another number.
    """
    mixed = (keys * KEY_STEPS).astype(np.uint64) << _UNUSED_BITS
    mixed += np.uint64(number * _GOLDEN % 2**64)
    for shift, factor in _MIXING:
        mixed = (mixed ^ (mixed >> shift)) * factor
    return (mixed >> _UNUSED_BITS).astype(float) / KEY_STEPS
