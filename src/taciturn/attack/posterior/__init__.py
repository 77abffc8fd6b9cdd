"""The posterior of every cell over all tables that are compatible with a release."""

from taciturn.attack.posterior.of_release import attacker_posterior

__all__ = ["attacker_posterior"]
