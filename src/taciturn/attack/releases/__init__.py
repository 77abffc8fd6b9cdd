"""Releases of a table: what is published of it, and what that says about its cells."""

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.perturbed import Perturbed
from taciturn.attack.releases.recoding import GlobalRecoding
from taciturn.attack.releases.rounding import Rounding
from taciturn.attack.releases.showing import Shown
from taciturn.attack.releases.suppression import Suppression

__all__ = [
    "GlobalRecoding",
    "LinkedTables",
    "Perturbed",
    "Release",
    "Rounding",
    "Shown",
    "Suppression",
]
