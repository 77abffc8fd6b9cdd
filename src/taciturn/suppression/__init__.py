"""Secondary suppression: patterns that protect sensitive cells, and the tables that
remain to be published.
"""

from taciturn.suppression.apriori import read_apriori
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.protected import ProtectedTable, protect_margins, protect_table
from taciturn.suppression.secondary import suppress

__all__ = [
    "ProtectedTable",
    "SuppressionPattern",
    "protect_margins",
    "protect_table",
    "read_apriori",
    "suppress",
]
