"""Bayesian modelling of statistical disclosure risk in tables.

Everything users need is imported from here, on first use: ``import taciturn`` itself loads nothing heavy. The stub
beside this file says what there is and where it lives.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = version("taciturn")
