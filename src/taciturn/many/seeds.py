"""A source of randomness for each table, from its label and the seed alone."""

from collections.abc import Hashable
from hashlib import blake2b

import numpy as np

__all__ = ["key_of", "rng_of", "seed_of_table"]


def key_of(label: Hashable) -> str:
    """A label as text that tells whole numbers from words, whatever holds them."""
    value = label.item() if isinstance(label, np.generic) else label
    return f"{'number' if isinstance(value, int) else 'text'} {value}"


def seed_of_table(seed: int, label: Hashable) -> int:
    """The seed of a table."""
    text = f"{seed} {key_of(label)}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % 2**63


def rng_of(seed: int, label: Hashable) -> np.random.Generator:
    """A generator for a table."""
    return np.random.default_rng(seed_of_table(seed, label))
