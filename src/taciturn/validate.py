"""Checks of arguments that many functions share; each returns the normalised value or
quotes the bad one.
"""

from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from taciturn.errors import ParameterError

__all__ = [
    "checked_number",
    "generator",
    "is_whole",
    "names_of",
    "number_between",
    "seed_number",
    "whole_number",
]


def is_whole(value: Any) -> bool:
    """Whether something is a whole number; ``3.0`` is one, True is none."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        return False
    return isinstance(value, int | np.integer) or (isfinite(value) and int(value) == value)


def whole_number(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """A whole number in a range, as int."""
    if is_whole(value) and least <= value <= (value if most is None else most):
        return int(value)
    rule = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ParameterError(f"{name} must be a whole number {rule}, got {value!r}")


def number_between(value: Any, name: str, low: float, high: float) -> float:
    """A number from `low` to `high`, both included."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool
    )
    if not number or not low <= value <= high:
        raise ParameterError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def names_of(value: Any, name: str) -> list[str]:
    """One name of a variable, or a list or tuple of them, as a list."""
    names = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(each, str) for each in names):
        raise ParameterError(f"{name} must be names of variables, got {value!r:.80}")
    return names


def generator(random_seed: Any) -> np.random.Generator:
    """A generator of random numbers from a seed, a generator or None."""
    if random_seed is None or isinstance(random_seed, np.random.Generator):
        return np.random.default_rng(random_seed)
    return np.random.default_rng(seed_number(random_seed))


def seed_number(random_seed: Any) -> int:
    """A whole number as a seed that can be recorded: the given one, one from a
    generator, or a new one.
    """
    if random_seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_seed, np.random.Generator):
        return int(random_seed.integers(2**32))
    if (
        isinstance(random_seed, int | np.integer)
        and not isinstance(random_seed, bool)
        and random_seed >= 0
    ):
        return int(random_seed)
    raise ParameterError(
        f"random_seed must be a non-negative whole number or a Generator, got {random_seed!r}"
    )


def checked_number(value: Any, name: str) -> float:
    """Return a finite number of at least 0 as a float, so that a specification holds
    plain values only.
    """
    number = isinstance(value, Real | np.floating | np.integer) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < float("inf"):
        raise ParameterError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)
