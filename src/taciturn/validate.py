"""Checks of arguments that many functions share; each returns the normalised value or
quotes the bad one and says what would be accepted.

A number is one of Python or NumPy; True, text and arrays are none. Nothing heavy is
imported here, so that the command line can refuse an argument at once.
"""

import codecs
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from math import isfinite
from numbers import Integral, Real
from string import punctuation
from typing import TYPE_CHECKING, Any, Final

from taciturn.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "MOST",
    "MOST_SEED",
    "UTF_8",
    "check_encoding",
    "check_separator",
    "check_weights",
    "first_of",
    "generator",
    "interval_probability",
    "is_real",
    "is_whole",
    "mapping_of",
    "name_of",
    "names_of",
    "one_of",
    "quoted",
    "real_number",
    "seed_number",
    "true_or_false",
    "whole_number",
]


MOST: Final = 1_000_000
"""Largest whole number of an argument that has no bound of its own, such as a number of
draws."""

MOST_SEED: Final = 2**128 - 1
"""Largest seed: as many bits as NumPy recommends."""


UTF_8: Final = "utf-8"

_SEPARATORS: Final = frozenset(punctuation) - {'"'} | {"\t"}


def is_real(value: Any) -> bool:
    """Whether something is a finite number; True is not, nor is a length of time."""
    duration = getattr(getattr(value, "dtype", None), "kind", "") == "m"
    if isinstance(value, bool) or not isinstance(value, Real) or duration:
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond double precision
        return False


def is_of_class(value: Any, name: str) -> bool:
    """Whether a value is of a class, by its full name, so that nothing is imported."""
    return any(f"{own.__module__}.{own.__qualname__}" == name for own in type(value).__mro__)


def is_whole(value: Any) -> bool:
    """Whether something is a whole number; ``3.0`` is, True is not."""
    return is_real(value) and int(value) == value


def whole_number(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`, by default to `MOST`, as int."""
    whole = is_whole(value) or (isinstance(value, int) and not isinstance(value, bool))
    if whole and least <= value <= (MOST if most is None else most):
        return int(value)
    if most is not None:
        rule = f"from {least} to {_shown(most)}"
    else:
        rule = f"of at most {MOST:,}" if whole and value > MOST else f"of at least {least}"
    raise ParameterError(f"{name} must be a whole number {rule}, got {quoted(value)}")


def real_number(
    value: Any,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number of at least `least`, or above `above`, and at most `most`, as
    float.
    """
    if (
        is_real(value)
        and (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
    ):
        return float(value)
    low = f"of at least {least:g}" if above is None else f"above {above:g}"
    if most is None:
        rule = f"a finite number {low}"
    elif above is None:
        rule = f"a number from {least:g} to {most:g}"
    else:
        rule = f"a number {low} and at most {most:g}"
    raise ParameterError(f"{name} must be {rule}, got {quoted(value)}")


def interval_probability(value: Any) -> float:
    """The probability of an interval, from 0.01 to 0.9999."""
    return real_number(value, "probability", least=0.01, most=0.9999)


def check_weights(weights: Sequence[float]) -> tuple[float, float, float]:
    """The three weights of R1 and R2 as floats: at least 0, their sum 1."""
    each: tuple[Any, ...] | None = None
    if not isinstance(weights, Set | Mapping | str | bytes | bytearray):
        with suppress(TypeError):
            each = tuple(weights)
    # NaN and infinity are numbers that do not sum to 1.
    if each is None or not all(is_real(weight) or isinstance(weight, float) for weight in each):
        raise ParameterError(f"weights must be a list of three numbers, got {quoted(weights)}")
    if len(each) != 3:
        raise ParameterError(f"weights must be three numbers, got {len(each)}: {quoted(weights)}")
    first, second, third = map(float, each)
    if not min(first, second, third) >= 0 or not abs(first + second + third - 1) <= 1e-9:
        raise ParameterError(f"weights must be non-negative and sum to 1, got {quoted(weights)}")
    return first, second, third


def names_of(value: Any, name: str) -> list[str]:
    """One name of a variable, or a list or tuple of them, as a list."""
    names = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(each, str) for each in names):
        raise ParameterError(f"{name} must be names of variables, got {quoted(value)}")
    return names


def name_of(value: Any, name: str) -> str:
    """The name of one variable or column."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be a name, got {quoted(value)}")
    return value


def mapping_of(value: Any, name: str, what: str) -> Mapping[Any, Any]:
    """A mapping, `what` of which to what is for the message."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name} must be a mapping of {what}, got {quoted(value)}")
    return value


def true_or_false(value: Any, name: str) -> bool:
    """True or False, NumPy's included."""
    if not (isinstance(value, bool) or is_of_class(value, "numpy.bool")):
        raise ParameterError(f"{name} must be True or False, got {quoted(value)}")
    return bool(value)


def one_of(value: Any, name: str, choices: Sequence[str]) -> str:
    """One of some texts."""
    if isinstance(value, str) and value in choices:
        return value
    raise ParameterError(
        f"{name} must be one of {', '.join(map(repr, choices))}, got {quoted(value)}"
    )


def generator(random_seed: Any) -> "np.random.Generator":
    """A generator of random numbers from a seed, a generator or None."""
    import numpy as np

    if random_seed is None or isinstance(random_seed, np.random.Generator):
        return np.random.default_rng(random_seed)
    return np.random.default_rng(seed_number(random_seed))


def seed_number(random_seed: Any) -> int:
    """A whole number as a seed that can be recorded: the given one, one from a
    generator, or a new one.
    """
    import numpy as np

    if random_seed is None:
        # More bits than can be tried, and as many as any file holds as a number.
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_seed, np.random.Generator):
        return int(random_seed.integers(2**32))
    whole = isinstance(random_seed, Integral) and is_whole(random_seed)
    if whole and 0 <= int(random_seed) <= MOST_SEED:
        return int(random_seed)
    raise ParameterError(
        "random_seed must be a non-negative whole number of at most 128 bits or a Generator, got"
        f" {quoted(random_seed)}"
    )


def quoted(value: Any) -> str:
    """A value for a message, cut where it is long; of tables and of what holds them
    their size, as a message shows no counts.
    """
    if held := _array_in(value):
        return held
    try:
        scalar = is_of_class(value, "numpy.generic") and value.dtype.kind in "biuf"
        return f"{value.item() if scalar else value!r:.80}"
    except ValueError:  # a whole number that Python does not write out
        return "a number of thousands of digits"


def _array_in(value: Any) -> str:
    """The size of an array, a table or a data frame, or of one in a collection; empty
    for anything else.
    """
    kind = type(value).__name__
    if isinstance(value, type) or is_of_class(value, "numpy.generic"):
        return ""
    if hasattr(value, "dims"):
        return f"{kind} over {tuple(map(str, value.dims))}"
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        each = value.values() if isinstance(value, Mapping) else value
        found = next(filter(None, map(_array_in, each)), "")
        return found and f"{kind} with {found}"
    return ""


def first_of(names: Sequence[Any], number: int = 20) -> str:
    """The first of some names for a message, and how many there are more."""
    listed = ", ".join(f"{name!r:.80}" for name in names[:number])
    return listed + (f", ... and {len(names) - number:,} more" if len(names) > number else "")


def _shown(number: int) -> str:
    """A bound for a message, a large power of two as that."""
    power = number.bit_length() - 1
    return f"2**{power}" if power > 40 and number == 2**power else str(number)


def check_separator(sep: object) -> str:
    """What separates the fields of a CSV file."""
    if isinstance(sep, str) and sep in _SEPARATORS:
        return sep
    raise ParameterError(
        f"sep must be one character such as ',', ';', '|' or a tab, got {quoted(sep)}"
    )


def check_encoding(encoding: object) -> str:
    """Python's name of an encoding of text."""
    try:
        name = codecs.lookup(str(encoding)).name
        bytes(4).decode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, ValueError) as error:
        raise ParameterError(
            "encoding must be one that Python knows, such as 'utf-8', 'latin-1' or 'cp1252', got"
            f" {quoted(encoding)}"
        ) from error
    return UTF_8 if name == "utf-8-sig" else name
