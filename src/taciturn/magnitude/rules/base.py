"""What a sensitivity rule is, and how rules combine."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError
from taciturn.magnitude.cells import Cells
from taciturn.validate import quoted

__all__ = [
    "AllOf",
    "AnyOf",
    "Levels",
    "Mask",
    "Rule",
    "SingleRule",
    "as_rule",
    "counted",
    "exact",
    "not_below_zero",
    "one_step",
    "percent",
    "written",
]

Mask = npt.NDArray[np.bool_]
Levels = npt.NDArray[Any]
"""Amounts in steps, exact: whole numbers or fractions of Python's in arrays of
objects."""


class Rule(ABC):
    """A sensitivity rule; ``a | b`` holds where either does, ``a & b`` where both do.

    A rule of your own derives from `SingleRule` and overrides `holds`, `level`,
    `reasons` and `__str__`, which names it in tables. All are given the `Cells` that
    have a contributor.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> class LargeCell(tc.magnitude.SingleRule):
    ...     def holds(self, cells):
    ...         return cells.total > 90
    ...     def level(self, cells):
    ...         return self.holds(cells).astype(object)
    ...     def reasons(self, cells):
    ...         return [f"total {cells.amount(total)}" for total in cells.total]
    ...     def __str__(self):
    ...         return "LargeCell"
    >>> firms = pd.DataFrame({"area": ["A", "B"], "turnover": [100, 50]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover")
    >>> tc.sensitive_cells(table, LargeCell())["reason"].values.tolist()
    ['total 100', '']
    """

    @abstractmethod
    def holds(self, cells: Cells) -> Mask:
        """Which cells are sensitive by this rule: bool, shape ``(cells,)``."""

    @abstractmethod
    def level(self, cells: Cells) -> Levels:
        """Upper protection levels in steps, shape ``(cells,)``: integers or fractions
        of Python, 0 where the rule does not hold.
        """

    @abstractmethod
    def parts(self) -> tuple["SingleRule", ...]:
        """The single rules, each once."""

    def __or__(self, other: object) -> "AnyOf":
        return AnyOf((self, other)) if isinstance(other, Rule) else NotImplemented

    def __and__(self, other: object) -> "AllOf":
        return AllOf((self, other)) if isinstance(other, Rule) else NotImplemented


class SingleRule(Rule):
    """A rule that is not a combination of others; see `Rule` for one of your own."""

    @abstractmethod
    def reasons(self, cells: Cells) -> list[str]:
        """Why each of these cells is sensitive; the rule holds in all of them."""

    def parts(self) -> tuple["SingleRule", ...]:
        """The rule itself."""
        return (self,)


@dataclass(frozen=True)
class _Combined(Rule):
    rules: tuple[Rule, ...]

    def parts(self) -> tuple[SingleRule, ...]:
        """The single rules, each once."""
        return tuple(dict.fromkeys(part for rule in self.rules for part in rule.parts()))


@dataclass(frozen=True)
class AnyOf(_Combined):
    """Sensitive where one of the rules holds; protected once all are satisfied."""

    def __str__(self) -> str:
        return " | ".join(
            f"({rule})" if isinstance(rule, AllOf) else str(rule) for rule in self.rules
        )

    def holds(self, cells: Cells) -> Mask:
        """Whether one holds."""
        return np.any([rule.holds(cells) for rule in self.rules], axis=0)

    def level(self, cells: Cells) -> Levels:
        """The largest of all levels."""
        return reduce(np.maximum, [rule.level(cells) for rule in self.rules])


@dataclass(frozen=True)
class AllOf(_Combined):
    """Sensitive where all of the rules hold; protected once one is satisfied."""

    def __str__(self) -> str:
        return " & ".join(
            f"({rule})" if isinstance(rule, AnyOf) else str(rule) for rule in self.rules
        )

    def holds(self, cells: Cells) -> Mask:
        """Whether all hold."""
        return np.all([rule.holds(cells) for rule in self.rules], axis=0)

    def level(self, cells: Cells) -> Levels:
        """The smallest of all levels."""
        return reduce(np.minimum, [rule.level(cells) for rule in self.rules])


def as_rule(rules: Any) -> Rule:
    """One rule as it is, several as rules any of which makes a cell sensitive."""
    if isinstance(rules, Rule):
        return rules
    several = list(rules) if isinstance(rules, list | tuple) else []
    if not several or not all(isinstance(rule, Rule) for rule in several):
        raise ParameterError(
            "rules must be one rule or several, such as Dominance(1, 0.75) | MinimumFrequency(3),"
            f" got {quoted(rules)}"
        )
    return several[0] if len(several) == 1 else AnyOf(tuple(several))


def exact(number: float) -> Fraction:
    """The decimal number that was written, not the double nearest to it."""
    return Fraction(str(number))


def written(number: Any) -> Any:
    """A number of NumPy as one of Python that is written alike, so that what is printed
    is what is applied: in double precision the float32 of 0.7 is another.
    """
    return type(number.item())(str(number)) if isinstance(number, np.generic) else number


def not_below_zero(values: Levels) -> Levels:
    """Levels, 0 where they are negative."""
    return np.where(values > 0, values, 0)


def one_step(mask: Mask) -> Levels:
    """One step where a rule without an amount holds."""
    return mask.astype(int).astype(object)


def counted(number: Any) -> str:
    """So many contributors, in words."""
    return f"{number:,.15g} contributor{'' if number == 1 else 's'}"


def percent(value: Fraction, bound: Fraction) -> str:
    """A percentage to one decimal, or to as many as tell it from a bound."""
    for places in (1, 3, 6):
        text = f"{float(value):.{places}f}"
        if (Fraction(text) > bound, Fraction(text) < bound) == (value > bound, value < bound):
            return text
    return f"{float(value):.12g}"
