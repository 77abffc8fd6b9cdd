"""The parameters of the Dirichlet-multinomial log-linear model as coordinates without
ends, for proposals that are learned from others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

__all__ = ["Ratios"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratios:
    """log κ, and the logarithms of the ratios of the categories of each margin to one
    of them.

    Attributes
    ----------
    to : list of int
        That one, of each margin.
    sizes : list of int
        Numbers of categories.
    """

    to: list[int]
    sizes: list[int]

    @classmethod
    def to_likeliest(cls, log_margins: list[Floats]) -> "Ratios":
        """To the category with the largest share on average."""
        likeliest = [int(np.exp(margin).mean(axis=0).argmax()) for margin in log_margins]
        return cls(likeliest, [margin.shape[1] for margin in log_margins])

    def points(self, kappa: Floats, log_margins: list[Floats]) -> Floats:
        """The coordinates, shape (draws, coordinates)."""
        ratios = [
            np.delete(margin - margin[:, [own]], own, axis=1)
            for margin, own in zip(log_margins, self.to, strict=True)
        ]
        return np.concatenate([np.log(kappa)[:, None], *ratios], axis=1)

    def parameters(self, points: Floats) -> tuple[Floats, list[Floats]]:
        """Logarithms of κ and of the margins."""
        log_margins, start = [], 1
        for size, own in zip(self.sizes, self.to, strict=True):
            ratios = points[:, start : start + size - 1]
            logs = np.insert(ratios, own, 0.0, axis=1)
            log_margins.append(logs - logsumexp(logs, axis=1, keepdims=True))
            start += size - 1
        return points[:, 0], log_margins

    def log_density(
        self, log_posterior: Callable[[Floats, list[Floats]], Floats], points: Floats
    ) -> Floats:
        """That of a posterior of log κ and the margins, up to a constant."""
        log_kappa, log_margins = self.parameters(points)
        density = log_posterior(np.exp(log_kappa), log_margins)
        # The logarithm of what ratios stretch is the sum of those of all shares.
        return np.asarray(density + sum(margin.sum(axis=1) for margin in log_margins))
