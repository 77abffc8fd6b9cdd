"""Plots of risk and of checks; each returns the matplotlib axes, to be refined
further.
"""

from taciturn.plots.attack import plot_attack
from taciturn.plots.checks import plot_checks
from taciturn.plots.risk import plot_risk
from taciturn.plots.risk_utility import plot_risk_utility
from taciturn.plots.weights import plot_weights

__all__ = ["plot_attack", "plot_checks", "plot_risk", "plot_risk_utility", "plot_weights"]
