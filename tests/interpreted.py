"""How tests evaluate PyMC models."""

import pytensor
from pytensor.compile.mode import Mode

INTERPRETED = Mode(linker="py", optimizer="fast_compile")
"""In Python: a few evaluations are not worth a compiler's ten seconds."""
interpreted = pytensor.config.change_flags(cxx="")
"""Decorator of what compiles loops: they, too, stay in Python."""
