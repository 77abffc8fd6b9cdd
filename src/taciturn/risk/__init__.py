"""Risk of whole tables, of rows and columns, and of uniques."""

from taciturn.risk.table_risk import disclosure_risk
from taciturn.risk.uniques import cell_uniques, unique_risk

__all__ = ["cell_uniques", "disclosure_risk", "unique_risk"]
