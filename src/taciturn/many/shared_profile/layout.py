"""Which effects the cells of a table have, and the scale of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Layout"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Variables, categories and cells of the tables.

    Attributes
    ----------
    sizes : dict
        Number of categories of each variable.
    fillable : array of bool, shape (cells of the table,)
        False at structural zeros, which have no part in anything.
    """

    sizes: dict[str, int]
    fillable: npt.NDArray[np.bool_]

    @cached_property
    def levels(self) -> npt.NDArray[np.int64]:
        """Number of the effect of each variable that a cell has, (variables, cells)."""
        shape = tuple(self.sizes.values())
        first = np.concatenate([[0], np.cumsum(shape)[:-1]]).astype(np.int64)
        index = np.indices(shape).reshape(len(shape), -1)[:, self.fillable]
        return np.ascontiguousarray(index + first[:, None], dtype=np.int64)

    @cached_property
    def variable_of(self) -> npt.NDArray[np.int64]:
        """Number of the variable of each effect."""
        return np.repeat(np.arange(len(self.sizes)), list(self.sizes.values()))

    @property
    def cells(self) -> int:
        """Number of cells that can be filled, `K`."""
        return int(self.fillable.sum())

    @cached_property
    def of_variable(self) -> dict[str, slice]:
        """Where the effects of each variable stand."""
        ends = np.cumsum(list(self.sizes.values())).tolist()
        return {
            name: slice(end - size, end)
            for (name, size), end in zip(self.sizes.items(), ends, strict=True)
        }

    @cached_property
    def effects(self) -> dict[str, slice]:
        """Where the profile's effects with each scale stand. With one variable an
        interaction would be another main effect, and there are none.
        """
        found = {f"main_{name}": where for name, where in self.of_variable.items()}
        if len(self.sizes) > 1:
            main = len(self.variable_of)
            found["interactions"] = slice(main, main + self.cells)
        return found

    @cached_property
    def cells_of(self) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """For each of `effects` the cells that have them, in the order of the effects,
        and where those of each effect start and the last end.
        """
        found = {}
        for (name, where), level in zip(self.effects.items(), self.levels, strict=False):
            number = np.bincount(level - where.start, minlength=where.stop - where.start)
            starts = np.concatenate([[0], np.cumsum(number)])
            found[name] = (np.argsort(level, kind="stable"), starts)
        if "interactions" in self.effects:
            found["interactions"] = (np.arange(self.cells), np.arange(self.cells + 1))
        return found

    @property
    def tilted(self) -> tuple[str, ...]:
        """Variables of which each area has effects of its own. With one variable they
        would be what the departures are.
        """
        return tuple(self.sizes) if len(self.sizes) > 1 else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters but the effects."""
        own = (f"{what}_{name}" for what in ("tilt", "spread") for name in self.tilted)
        return ("nu", "power", "outliers", "outlier_size", *self.effects, *own)

    def profile(self, shared: Floats, parameters: Mapping[str, float]) -> Floats:
        """Logarithms of the shares of cells from standardised effects."""
        main = len(self.variable_of)
        profile = self.members @ (self.mains(parameters) * shared[:main])
        return profile + parameters.get("interactions", 0.0) * (
            shared[main:] if len(self.sizes) > 1 else 0.0
        )

    def tilts(self, parameters: Mapping[str, float]) -> Floats:
        """Scale of each effect of an area."""
        scales = [parameters.get(f"tilt_{name}", 0.0) for name in self.sizes]
        return np.array(scales)[self.variable_of]

    def spreads(self, parameters: Mapping[str, float]) -> Floats:
        """Scale of each category's effect on the size of departures."""
        scales = [parameters.get(f"spread_{name}", 0.0) for name in self.sizes]
        return np.array(scales)[self.variable_of]

    def mains(self, parameters: Mapping[str, float]) -> Floats:
        """Scale of each main effect of the profile."""
        return np.array([parameters[f"main_{name}"] for name in self.sizes])[self.variable_of]

    def outliers(self, parameters: Mapping[str, Any]) -> Floats:
        """Logarithms of the probabilities of an outlier and of none, and of its mean
        relative to the intensity of its area.
        """
        chance, size = parameters["outliers"], parameters["outlier_size"]
        logs = np.array([np.log(chance), np.log1p(-chance), np.log(size * self.cells)])
        return np.ascontiguousarray(logs.T)  # of single numbers quicker than a stack

    @cached_property
    def members(self) -> Floats:
        """1 where a cell has a category, (cells, effects)."""
        found = np.zeros((self.cells, len(self.variable_of)))
        for level in self.levels:
            found[np.arange(self.cells), level] = 1.0
        return found
