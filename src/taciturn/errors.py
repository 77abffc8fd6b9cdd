"""Errors and warnings of taciturn; all errors have one root.

Each error also derives from the built-in exception a caller would expect, so ``except
ValueError`` keeps working. A message names the value, its place and what would be
accepted.
"""

from typing import Any

__all__ = [
    "AttackError",
    "ComparisonWarning",
    "ConvergenceWarning",
    "EstimationError",
    "FileFormatError",
    "FormulaError",
    "MissingDependencyError",
    "ParameterError",
    "PerturbationError",
    "PriorError",
    "TableError",
    "TaciturnError",
    "UnprovedWarning",
]


class TaciturnError(Exception):
    """Root of all errors of this package."""

    @property
    def at_shell(self) -> str:
        """The message on the command line."""
        return str(self)


class TableError(TaciturnError, ValueError):
    """The input is not a valid frequency table, or two tables do not match.

    Parameters
    ----------
    message : str
        What is wrong.
    in_python, at_shell : str
        What helps, added to the message in Python and on the command line.
    """

    def __init__(self, message: str = "", *, in_python: str = "", at_shell: str = "") -> None:
        super().__init__(message + in_python)
        self._at_shell = message + at_shell

    @property
    def at_shell(self) -> str:
        """The message on the command line, with the advice for it."""
        return self._at_shell


class ParameterError(TaciturnError, ValueError):
    """An argument is outside what is accepted."""


class FormulaError(TaciturnError, ValueError):
    """A formula names an unknown variable or has more than names and ``+ : * ^``."""


class PriorError(TaciturnError, ValueError):
    """A prior matches no parameter of the model, or is not a distribution."""


class EstimationError(TaciturnError, RuntimeError):
    """An estimator has no solution for this sample."""


class PerturbationError(TaciturnError, RuntimeError):
    """A protection method has no result for this table, or found none in time."""


class AttackError(TaciturnError, RuntimeError):
    """The bounds of a cell cannot be computed exactly, or no pattern is proved to
    protect.

    Attributes
    ----------
    pattern : SuppressionPattern or None
        What `suppress` had found, which must not be released.
    """

    pattern: Any = None


class FileFormatError(TaciturnError, OSError):
    """A file cannot be read as what it should be, or cannot be written."""


class MissingDependencyError(TaciturnError, ImportError):
    """An optional library is needed; the message says how to install it."""


class ComparisonWarning(UserWarning):
    """Fits are compared by leave-one-out terms, some of which are not reliable."""


class UnprovedWarning(UserWarning):
    """A pattern of suppressed cells is not proved to protect all primary cells: it must
    not be released.
    """


class ConvergenceWarning(UserWarning):
    """The sampler did not converge: no decision must rest on the draws."""
