"""The variables of a project's base records, with all their categories: what the
definitions of tables are made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from taciturn.errors import ParameterError
from taciturn.schema import RESERVED_NAMES
from taciturn.tables.spelling import check_spelling, seen
from taciturn.tables.values import is_missing
from taciturn.validate import quoted

__all__ = ["Codebook", "label_text", "plain"]

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def plain(given: Any) -> Any:
    """Columns, indexes and arrays of pandas as lists."""
    if isinstance(given, np.ndarray) and given.dtype.kind == "M" and given.ndim == 1:
        given = pd.Index(given)  # NumPy makes whole numbers of nanoseconds
    return given.tolist() if hasattr(given, "tolist") else given


def label_text(label: Any) -> str:
    """A category as text: files and data frames write one category in several ways, 1,
    "1" and 1.0.
    """
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


@dataclass(frozen=True)
class Codebook:
    """Variables with their categories, and levels above them.

    Attributes
    ----------
    variables : mapping of str to tuple of str
        All categories of each variable: each record has exactly one of them.
    levels : mapping of str to (str, tuple of str)
        For each level the variable that it is above, and the label of each category of
        that variable.
    total : int, optional
        The number of base records, if it is public.
    """

    variables: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    total: int | None = None

    @classmethod
    def of(
        cls,
        variables: Any,
        levels: Mapping[str, tuple[str, Sequence[Any]]] | None = None,
        total: int | None = None,
    ) -> "Codebook":
        """Check what is given, and take labels as text."""
        if not isinstance(variables, Mapping) or not variables:
            raise ParameterError(
                f"variables must give the categories of each variable, got {quoted(variables)}"
            )
        named = {
            _name(name): _categories(name, categories) for name, categories in variables.items()
        }
        if levels is not None and not isinstance(levels, Mapping):
            raise ParameterError(
                "levels must give the variable and the labels of each level above it, got"
                f" {quoted(levels)}"
            )
        above = {}
        for level, given in (levels or {}).items():
            variable, labels = _level(level, given, named)
            above[_name(level)] = (variable, labels)
        names = [*named, *above]
        check_spelling(names, lambda at: f"the name {names[at]!a:.40}")
        return cls(named, above, total)

    def __contains__(self, name: object) -> bool:
        return name in self.variables or name in self.levels

    def variable_of(self, name: Any, where: str) -> str:
        """The variable that a name means, directly or as a level above it."""
        if name in self.variables:
            return str(name)
        if name in self.levels:
            return self.levels[name][0]
        raise ParameterError(
            f"{where} must name variables of the log, {[*self.variables, *self.levels]}, got"
            f" {name!r}"
        )

    def labels_of(self, name: str) -> tuple[str, ...]:
        """The categories of a variable, or labels of a level as they first occur."""
        if name in self.variables:
            return self.variables[name]
        return tuple(dict.fromkeys(self.levels[name][1]))

    def members(self, name: str, label: Any, where: str) -> Booleans:
        """Which categories a category of a variable, or a level's label, means."""
        categories = self.variables[name] if name in self.variables else self.levels[name][1]
        found = np.array([each == label_text(label) for each in categories])
        if not found.any():
            raise ParameterError(
                f"{where}: {name!r} has no category {label!r}, its categories are"
                f" {_some(self.labels_of(name))}"
            )
        return found


def _some(labels: Sequence[str]) -> str:
    """A few of many labels."""
    shown = ", ".join(map(repr, labels[:12]))
    return f"{shown} and {len(labels) - 12} more" if len(labels) > 12 else shown


def _name(name: object) -> str:
    if not (isinstance(name, str) and name):
        raise ParameterError(f"a variable is named by text, got {name!r}")
    if seen(name) in RESERVED_NAMES:
        raise ParameterError(
            f"{name!r} cannot name a variable: {', '.join(sorted(RESERVED_NAMES))} are reserved"
        )
    return name


def _categories(name: Any, given: Any) -> tuple[str, ...]:
    given = plain(given)
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise ParameterError(
            f"variables[{name!r}] must be a sequence of categories, got {quoted(given)}"
        )
    if any(map(is_missing, given)):
        raise ParameterError(
            f"variables[{name!r}] has a missing label: give the records without one a category of"
            " their own, such as 'missing', in the tables, too"
        )
    labels = tuple(map(label_text, given))
    twice = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if twice:
        raise ParameterError(f"variables[{name!r}] has the category {twice[0]!r} twice")
    check_spelling(labels, lambda at: f"category {at + 1} of {name!r}")
    return labels


def _level(
    level: Any, given: Any, variables: Mapping[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...]]:
    """The variable that a level is above, and its label for each category."""
    if not isinstance(given, tuple | list) or len(given) != 2 or given[0] not in variables:
        raise ParameterError(
            f"levels[{level!r}] must be a variable and the label of each of its categories, got"
            f" {quoted(given)}"
        )
    if level in variables:
        raise ParameterError(f"levels: {level!r} is the name of a variable")
    above = plain(given[1])
    if isinstance(above, str) or not isinstance(above, Sequence) or any(map(is_missing, above)):
        raise ParameterError(
            f"levels[{level!r}] must have a label for each category of {given[0]!r}, got"
            f" {quoted(above)}"
        )
    labels = tuple(map(label_text, above))
    check_spelling(list(dict.fromkeys(labels)), lambda at: f"label {at + 1} of {level!r}")
    if len(labels) != len(variables[given[0]]):
        raise ParameterError(
            f"levels[{level!r}] must have a label for each of the {len(variables[given[0]])}"
            f" categories of {given[0]!r}, got {len(labels)}"
        )
    return str(given[0]), labels
