"""What an attacker can work out from a release: bounds on cells, and the rank of what is released."""

from taciturn.attack.bounds import attacker_bounds
from taciturn.attack.rank import ConstraintRank, constraint_rank, rank_decrease
from taciturn.attack.releases import LinkedTables, Redesign, Release, Suppression
from taciturn.attack.rounding import Rounding

__all__ = [
    "ConstraintRank",
    "LinkedTables",
    "Redesign",
    "Release",
    "Rounding",
    "Suppression",
    "attacker_bounds",
    "constraint_rank",
    "rank_decrease",
]
