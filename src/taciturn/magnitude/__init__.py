"""Magnitude tables: totals of a quantity, which of them are sensitive, and the risk of
a whole table.
"""

from taciturn.magnitude.aggregated import read_margins
from taciturn.magnitude.argus import read_argus
from taciturn.magnitude.cells import Cells
from taciturn.magnitude.risk import magnitude_risk
from taciturn.magnitude.rules import (
    PQ,
    Dominance,
    EntropyRule,
    MinimumFrequency,
    PPercent,
    Request,
    Rule,
    SingleRule,
    UnsafeZeros,
    rule_from_text,
)
from taciturn.magnitude.sensitivity import protection_levels, sensitive_cells
from taciturn.magnitude.tabulation import tabulate_magnitude, tabulate_margins

__all__ = [
    "PQ",
    "Cells",
    "Dominance",
    "EntropyRule",
    "MinimumFrequency",
    "PPercent",
    "Request",
    "Rule",
    "SingleRule",
    "UnsafeZeros",
    "magnitude_risk",
    "protection_levels",
    "read_argus",
    "read_margins",
    "rule_from_text",
    "sensitive_cells",
    "tabulate_magnitude",
    "tabulate_margins",
]
