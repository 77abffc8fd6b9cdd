"""What an attacker can work out from a release: bounds and their proofs, posterior and
rank.
"""

from taciturn.attack.bounds import attacker_bounds
from taciturn.attack.certificates import (
    CheckedBound,
    CheckedCertificate,
    check_certificate,
    write_certificate,
)
from taciturn.attack.mechanisms import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
    mechanism_conditional_entropy,
)
from taciturn.attack.posterior import attacker_posterior
from taciturn.attack.rank import ConstraintRank, constraint_rank, rank_decrease
from taciturn.attack.releases import (
    GlobalRecoding,
    LinkedTables,
    Perturbed,
    Release,
    Rounding,
    Shown,
    Suppression,
)
from taciturn.attack.system import LinearSystem, Total, build_system

__all__ = [
    "CellKeys",
    "CheckedBound",
    "CheckedCertificate",
    "ConstraintRank",
    "ConventionalRounding",
    "GeometricNoise",
    "GlobalRecoding",
    "LinearSystem",
    "LinkedTables",
    "Mechanism",
    "Perturbed",
    "RandomRounding",
    "Release",
    "Rounding",
    "Shown",
    "SmallCellAdjustment",
    "Suppression",
    "Total",
    "attacker_bounds",
    "attacker_posterior",
    "build_system",
    "check_certificate",
    "constraint_rank",
    "mechanism_conditional_entropy",
    "rank_decrease",
    "write_certificate",
]
