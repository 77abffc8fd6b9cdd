"""The page that a release panel reads."""

from taciturn.reports.page import report

__all__ = ["report"]
