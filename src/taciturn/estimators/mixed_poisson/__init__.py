"""Cells that depart from a log-linear model by a factor each, whose spread follows a
power of the cell's size.
"""

from taciturn.estimators.mixed_poisson.estimator import MixedPoisson

__all__ = ["MixedPoisson"]
