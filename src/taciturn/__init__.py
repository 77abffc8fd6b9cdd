"""Bayesian modelling of statistical disclosure risk in tables.

The names that most users need are here, all others in the public folders, such as
``taciturn.information`` and ``taciturn.perturbation``. Everything is imported on first
use: ``import taciturn`` itself loads nothing heavy. The stub beside this file lists
the names and where they are defined.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = version("taciturn")
