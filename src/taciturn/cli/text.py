"""Text for a terminal."""

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Text with whatever a terminal would obey instead of show, such as ``\x1b``,
    written out.
    """
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )
