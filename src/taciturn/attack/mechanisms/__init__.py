"""Mechanisms that attackers know: how likely each value is released, given the true
one, and what this leaves to those who know it.
"""

from taciturn.attack.mechanisms.base import Mechanism
from taciturn.attack.mechanisms.cell_keys import CellKeys
from taciturn.attack.mechanisms.conventional_rounding import ConventionalRounding
from taciturn.attack.mechanisms.geometric_noise import GeometricNoise
from taciturn.attack.mechanisms.known_method import mechanism_conditional_entropy
from taciturn.attack.mechanisms.random_rounding import RandomRounding
from taciturn.attack.mechanisms.small_cell_adjustment import SmallCellAdjustment

__all__ = [
    "CellKeys",
    "ConventionalRounding",
    "GeometricNoise",
    "Mechanism",
    "RandomRounding",
    "SmallCellAdjustment",
    "mechanism_conditional_entropy",
]
