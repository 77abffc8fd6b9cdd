"""Secondary suppression: patterns that protect sensitive cells, and the tables that
remain to be published.
"""

from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.protected import ProtectedTable, protect_table
from taciturn.suppression.release_file import release_rows, write_release
from taciturn.suppression.secondary import suppress

__all__ = [
    "ProtectedTable",
    "SuppressionPattern",
    "protect_table",
    "release_rows",
    "suppress",
    "write_release",
]
