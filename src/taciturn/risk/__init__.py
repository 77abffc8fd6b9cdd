"""Risk of whole tables, of rows and columns, and of uniques; what a release loses."""

from taciturn.risk.information_loss import information_loss
from taciturn.risk.risk_utility import risk_utility
from taciturn.risk.table_risk import disclosure_risk
from taciturn.risk.uniques import cell_uniques, unique_risk

__all__ = ["cell_uniques", "disclosure_risk", "information_loss", "risk_utility", "unique_risk"]
