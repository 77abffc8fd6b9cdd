"""How good an estimator is: repeated samples from a known population, and calibration
against its own prior.

All names are imported on first use; the stub beside this file lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
