"""Model cards: an estimator, the table it was fitted to, and numbers with which a new
fit can be compared. Data, never code.
"""

from taciturn.cards.card import Calibration, Card, CardTable, Run, table_hash
from taciturn.cards.check import CardCheck, validate_card
from taciturn.cards.reading import load_card
from taciturn.cards.writing import write_card

__all__ = [
    "Calibration",
    "Card",
    "CardCheck",
    "CardTable",
    "Run",
    "load_card",
    "table_hash",
    "validate_card",
    "write_card",
]
