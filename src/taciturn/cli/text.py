"""Text for a terminal."""

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Escape whatever a terminal would interpret rather than display, such as
    ``\x1b``.
    """
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )
