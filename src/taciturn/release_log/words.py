"""Whom a total counts, by categories and in words."""

from collections.abc import Mapping

from taciturn.release_log.codebook import Booleans, Codebook

__all__ = ["Taken", "in_words", "taken_of"]

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
