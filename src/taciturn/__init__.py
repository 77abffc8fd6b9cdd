"""Bayesian modelling of statistical disclosure risk in tables.

The names of the main way are here, everything else in the public folders, such as
``taciturn.information`` and ``taciturn.perturbation``. All of them are imported on
first use: ``import taciturn`` itself loads nothing heavy. The stub beside this file
says what there is and where it lives.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = version("taciturn")
