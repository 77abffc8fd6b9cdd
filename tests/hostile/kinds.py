"""What is thrown at the readers: each kind writes a file, reads it with the package,
and holds what was read against a parser that shares no code with it.

A case is made from its kind and its number alone, so that any can be repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["SECRET", "Kind", "mutated"]

SECRET = b"the content of another file, which no result may hold; " * 80


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes
    ----------
    name : str
        For the table.
    write : callable
        Writes a case into a folder from a generator and the number of the case, and
        returns its file.
    read : callable
        Reads the file with the package.
    wrong : callable
        What is wrong with what was read, None if nothing is.
    cases : int or None
        How many there are; None for any number.
    """

    name: str
    write: Callable[[Path, Random, int], Path]
    read: Callable[[Path], Any]
    wrong: Callable[[Path, Any], str | None]
    cases: int | None = None


def mutated(content: bytes, random: Random, pieces: tuple[bytes, ...]) -> bytes:
    """A file with one to three changes: a piece put in or over, a part taken out,
    doubled or moved, a byte changed, or the end cut off.
    """
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(content) + 1)
        end = min(len(content), at + random.choice((1, 1, 2, 5, 20)))
        part = content[at:end]
        there = random.randrange(len(content) + 1)
        content = random.choice(
            (
                content[:at] + random.choice(pieces) + content[at:],
                content[:at] + random.choice(pieces) + content[end:],
                content[:at] + random.choice(pieces) + content[end:],
                content[:at] + content[end:],
                content[:end] + part + content[end:],
                content[:there] + part + content[there:],
                content[:at] + bytes([random.randrange(256)]) + content[at + 1 :],
                content[:at] if random.random() < 0.2 else content + part,
            )
        )
    return content
