"""Text for a terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taciturn.suppression import SuppressionPattern

__all__ = ["pattern_text", "printable"]


def printable(text: str) -> str:
    r"""Escape whatever a terminal would interpret rather than display, such as
    ``\x1b``.
    """
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )


def pattern_text(pattern: "SuppressionPattern") -> str:
    """How many cells are primary and secondary, and whether there was time for all."""
    lines = [printable(line) for line in str(pattern).splitlines()]
    if not pattern.complete:
        lines.append("the time limit ended the search; a longer one may suppress less")
    return "\n".join(lines)
