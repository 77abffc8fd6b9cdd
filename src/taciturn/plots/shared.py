"""What all plots share: matplotlib, imported when it is needed, and labels."""

from collections.abc import Iterable
from typing import Any, Final

from taciturn.errors import MissingDependencyError
from taciturn.tables.spelling import legible, numbered

__all__ = ["plain", "plain_labels", "pyplot"]

_LONGEST: Final = 30  # letters of a label; more would leave no room for what is plotted
_KEPT: Final = (18, 11)  # of a longer one, at its beginning and its end


def pyplot() -> Any:
    """Import pyplot.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib: install the extra 'plots'") from error
    return plt


def plain(label: Any) -> str:
    """A label as it is drawn: no formula, nothing that is not seen, and no longer than
    a plot has room for.
    """
    text = legible(str(label))
    if len(text) > _LONGEST:
        first, last = _KEPT
        text = f"{text[:first]}\N{HORIZONTAL ELLIPSIS}{text[-last:]}"
    return text.replace("$", r"\$")


def plain_labels(labels: Iterable[Any]) -> list[str]:
    """Labels as they are drawn, numbered where long ones are shortened alike."""
    return numbered(map(plain, labels))
