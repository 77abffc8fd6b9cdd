"""Whom a total counts, by categories and in words, and what a log holds."""

from collections.abc import Mapping, Sequence

from taciturn.release_log.codebook import Booleans, Codebook
from taciturn.release_log.published import PublishedTable

__all__ = ["Taken", "in_words", "log_in_words", "taken_of"]

type Taken = tuple[tuple[str, tuple[str, ...]], ...]
"""Variables and the categories of each."""


def taken_of(sets: Mapping[str, Booleans], codebook: Codebook) -> Taken:
    """The categories that a total takes of the variables it is not summed over."""
    return tuple(
        (
            name,
            tuple(
                label for label, inside in zip(codebook.variables[name], own, strict=True) if inside
            ),
        )
        for name, own in sets.items()
    )


def in_words(taken: Mapping[str, tuple[str, ...]], codebook: Codebook) -> str:
    """``age=65 or 66, sex=f``; what most categories are in by those that are not."""
    parts = []
    for name, labels in taken.items():
        every = codebook.variables[name]
        left = [label for label in every if label not in labels]
        if len(labels) > len(every) / 2 and len(left) < len(labels):
            parts.append(f"{name} not {' or '.join(left)}")
        else:
            parts.append(f"{name}={' or '.join(labels)}")
    return ", ".join(parts) or "everybody"


def log_in_words(codebook: Codebook, releases: int, tables: Sequence[PublishedTable]) -> list[str]:
    """What a log with so many releases holds."""
    sizes = ", ".join(f"{name} ({len(labels)})" for name, labels in codebook.variables.items())
    levels = ", ".join(f"{name} above {v}" for name, (v, _) in codebook.levels.items())
    cells = sum(int(table.shown.sum()) for table in tables)
    number = "1 release" if releases == 1 else f"{releases:,} releases"
    return [
        f"Release log of {sizes}{f'; {levels}' if levels else ''}",
        f"{number}, {cells:,} published counts or intervals"
        " with their definitions; no records, and no counts that are not published",
        *([] if codebook.total is None else [f"number of records: {codebook.total:,}"]),
    ]
