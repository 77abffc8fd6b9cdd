"""The calls of a release log over HTTP, for those who build a table builder."""

from taciturn.service.running import serve

__all__ = ["serve"]
