"""Special functions that keep their precision for large arguments."""

from typing import Any

from scipy.special import betaln, gammaln

__all__ = ["log_rising"]


def log_rising(a: Any, n: Any) -> Any:
    """Logarithm of the rising factorial ``Γ(a + n) / Γ(a)``, n > 0, without
    cancellation where `a` is large.
    """
    return gammaln(n) - betaln(a, n)
