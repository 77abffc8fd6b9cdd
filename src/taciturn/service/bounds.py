"""How much may be asked of the service, and how long it may take."""

from dataclasses import dataclass
from typing import Final

__all__ = [
    "MOST_CATEGORIES",
    "MOST_CELLS",
    "MOST_DIMS",
    "MOST_TEXT",
    "Bounds",
]

MOST_DIMS: Final = 8
MOST_CELLS: Final = 10_000  # of a table
MOST_CATEGORIES: Final = 2_000  # in one list
MOST_TEXT: Final = 200  # characters of a name or a category


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How much may be asked at once.

    Attributes
    ----------
    workers : int
        Requests that are worked on at once, each in a process of its own.
    seconds : float
        How long one may take, before its process is ended.
    waiting : int
        Further requests that wait for their turn; any more are refused.
    patience : float
        How many seconds one waits for its turn, and for the rest of its body.
    most_bytes : int
        Length of the body of a request.
    """

    workers: int = 2
    seconds: float = 30.0
    waiting: int = 32
    patience: float = 10.0
    most_bytes: int = 1_000_000
