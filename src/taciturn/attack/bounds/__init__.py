"""Bounds on every cell of a released table, and on totals that it does not show."""

from taciturn.attack.bounds.attacker import attacker_bounds

__all__ = ["attacker_bounds"]
