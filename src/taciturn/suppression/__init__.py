"""Secondary suppression: patterns that protect sensitive cells, and the tables that
remain to be published.
"""

from taciturn.suppression.apriori import read_apriori
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.protected import ProtectedTable, protect_margins, protect_table
from taciturn.suppression.protected_tables import protect_tables
from taciturn.suppression.secondary import suppress
from taciturn.suppression.several_tables import suppress_tables

__all__ = [
    "ProtectedTable",
    "SuppressionPattern",
    "protect_margins",
    "protect_table",
    "protect_tables",
    "read_apriori",
    "suppress",
    "suppress_tables",
]
