"""Which protection to take, what another would cost, and what it is worth to know more.

All names are imported on first use; the stub beside this file lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
