"""Where records come from: files and data frames, read a part at a time."""

from taciturn.tables.sources.base import Source
from taciturn.tables.sources.opening import open_source, refuse_dialect

__all__ = ["Source", "open_source", "refuse_dialect"]
