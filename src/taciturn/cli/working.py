"""What a command is doing, for somebody who watches."""

import sys
from contextlib import AbstractContextManager

from taciturn.progress import progress_steps

__all__ = ["working"]


def working(title: str) -> AbstractContextManager[object]:
    """Say what is being done, on a terminal only; importing libraries takes seconds,
    too.
    """
    return progress_steps(title, shown=sys.stderr.isatty())
