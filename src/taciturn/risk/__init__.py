"""Risk of whole tables, of rows and columns, of uniques and of single cells; what a
release loses.
"""

from taciturn.risk.cell_key_feasibility import cell_key_feasibility
from taciturn.risk.cell_shares import disclosive_cell_share, small_cell_share
from taciturn.risk.information_loss import information_loss
from taciturn.risk.risk_utility import risk_utility
from taciturn.risk.table_risk import disclosure_risk
from taciturn.risk.uniques import cell_uniques, unique_risk

__all__ = [
    "cell_key_feasibility",
    "cell_uniques",
    "disclosive_cell_share",
    "disclosure_risk",
    "information_loss",
    "risk_utility",
    "small_cell_share",
    "unique_risk",
]
