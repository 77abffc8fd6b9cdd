"""Magnitude tables: totals of a quantity, which of them are sensitive, and the risk of a whole table."""

from taciturn.magnitude._rule import Rule
from taciturn.magnitude.concentration import PQ, Dominance, PPercent, Request
from taciturn.magnitude.risk import magnitude_risk
from taciturn.magnitude.rules import EntropyRule, MinimumFrequency, rule_from_text
from taciturn.magnitude.sensitivity import protection_levels, sensitive_cells
from taciturn.magnitude.tabulation import magnitude_margins, magnitude_table

__all__ = [
    "PQ",
    "Dominance",
    "EntropyRule",
    "MinimumFrequency",
    "PPercent",
    "Request",
    "Rule",
    "magnitude_margins",
    "magnitude_risk",
    "magnitude_table",
    "protection_levels",
    "rule_from_text",
    "sensitive_cells",
]
