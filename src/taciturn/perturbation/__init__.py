"""Protection methods, one file each; all return replicates of the protected table."""

from taciturn.perturbation.random_rounding import random_round

__all__ = ["random_round"]
