"""Sensitivity rules: what makes a cell of a magnitude table unsafe."""

from taciturn.magnitude.rules.base import Rule, SingleRule
from taciturn.magnitude.rules.concentration import PQ, Dominance, PPercent, Request
from taciturn.magnitude.rules.frequency import EntropyRule, MinimumFrequency, UnsafeZeros
from taciturn.magnitude.rules.text import rule_from_text

__all__ = [
    "PQ",
    "Dominance",
    "EntropyRule",
    "MinimumFrequency",
    "PPercent",
    "Request",
    "Rule",
    "SingleRule",
    "UnsafeZeros",
    "rule_from_text",
]
