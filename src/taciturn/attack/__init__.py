"""What an attacker can work out from a release: bounds, posterior, and the rank of
it.
"""

from taciturn.attack.bounds import attacker_bounds
from taciturn.attack.posterior import attacker_posterior
from taciturn.attack.rank import ConstraintRank, constraint_rank, rank_decrease
from taciturn.attack.releases import GlobalRecoding, LinkedTables, Release, Rounding, Suppression

__all__ = [
    "ConstraintRank",
    "GlobalRecoding",
    "LinkedTables",
    "Release",
    "Rounding",
    "Suppression",
    "attacker_bounds",
    "attacker_posterior",
    "constraint_rank",
    "rank_decrease",
]
