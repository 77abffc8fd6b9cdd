"""What the counts of areas roughly say of effects, which makes moves of their scales
efficient.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.many.shared_profile.layout import Layout

__all__ = ["Hints", "all_hints"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hints:
    """What data roughly say of effects, as if they were normal; it makes moves
    efficient and has no part in what is drawn.

    Attributes
    ----------
    known : array
        Information about each effect.
    middle : array
        Where it is, by the data alone.
    """

    known: Floats
    middle: Floats

    @classmethod
    def of(cls, counts: Floats, expected: Floats) -> "Hints":
        """Of logarithms of counts beside those expected without effects."""
        return cls(counts, np.log((counts + 0.5) / (expected + 0.5)))

    def given(self, scale: float) -> tuple[Floats, Floats]:
        """Means and standard deviations of effects of this scale."""
        whole = 1 + scale**2 * self.known
        return scale**2 * self.known / whole * self.middle, scale / np.sqrt(whole)


def all_hints(counts: Floats, layout: Layout) -> dict[str, Hints]:
    """By the name of their scale."""
    total, members = counts.sum(), layout.members
    of_category = counts.sum(axis=0) @ members
    found, product = {}, np.ones(layout.cells)
    for variable, where in layout.of_variable.items():
        own, of_area = of_category[where], counts @ members[:, where]
        found[f"main_{variable}"] = Hints.of(own, np.full(len(own), own.mean()))
        found[f"tilt_{variable}"] = Hints.of(of_area, np.outer(counts.sum(axis=1), own) / total)
        found[f"spread_{variable}"] = Hints(np.zeros(len(own)), np.zeros(len(own)))
        product *= members[:, where] @ (own / total)
    product *= total / product.sum()
    found["interactions"] = Hints.of(counts.sum(axis=0), product)
    return found
