"""Entropy, conditional entropy and divergences of frequency tables."""

from taciturn.information.divergences import (
    DIVERGENCES,
    Divergence,
    f_divergence,
    hellinger_distance,
    relative_entropy,
)
from taciturn.information.entropies import (
    averaged_conditional_entropy,
    conditional_entropy,
    conditional_entropy_from_joint,
    conditional_entropy_from_transition,
    entropy,
)

__all__ = [
    "DIVERGENCES",
    "Divergence",
    "averaged_conditional_entropy",
    "conditional_entropy",
    "conditional_entropy_from_joint",
    "conditional_entropy_from_transition",
    "entropy",
    "f_divergence",
    "hellinger_distance",
    "relative_entropy",
]
