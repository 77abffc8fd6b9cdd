"""Bounds on the cells of a released table, and on totals that it does not publish."""

from taciturn.attack.bounds.of_release import attacker_bounds

__all__ = ["attacker_bounds"]
