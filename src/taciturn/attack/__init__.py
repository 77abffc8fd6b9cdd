"""What an attacker can work out from a release: bounds on cells, their posterior, and the rank of what is released."""

from taciturn.attack.bounds import attacker_bounds
from taciturn.attack.pattern import SuppressionPattern
from taciturn.attack.posterior import attacker_posterior
from taciturn.attack.rank import ConstraintRank, constraint_rank, rank_decrease
from taciturn.attack.releases import LinkedTables, Redesign, Release, Suppression
from taciturn.attack.rounding import Rounding
from taciturn.attack.secondary import suppress_secondary

__all__ = [
    "ConstraintRank",
    "LinkedTables",
    "Redesign",
    "Release",
    "Rounding",
    "Suppression",
    "SuppressionPattern",
    "attacker_bounds",
    "attacker_posterior",
    "constraint_rank",
    "rank_decrease",
    "suppress_secondary",
]
