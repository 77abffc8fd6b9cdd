"""The hierarchical model in PyMC, the slow twin of the chain."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from taciturn.estimators.priors import Prior
from taciturn.many.shared_profile.layout import Layout

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["build_model"]


def build_model(
    counts: npt.NDArray[np.float64], layout: Layout, priors: Mapping[str, Prior]
) -> "pm.Model":
    """The model of the counts of several areas, (areas, cells that can be filled)."""
    import pymc as pm
    import pytensor.tensor as pt

    areas, cells = counts.shape
    with pm.Model() as model:
        parameters = {name: prior.variable(name) for name, prior in priors.items()}
        profile: Any = pt.zeros(cells)
        log_shape: Any = pm.math.log(parameters["nu"])
        tilts: Any = pt.zeros((areas, cells))
        for (variable, size), level in zip(layout.sizes.items(), layout.levels, strict=True):
            own = level - layout.of_variable[variable].start
            main = pm.Normal(f"effect_{variable}", 0, 1, shape=size)
            profile = profile + parameters[f"main_{variable}"] * main[own]
            if variable in layout.tilted:
                tilt = pm.Normal(f"area_effect_{variable}", 0, 1, shape=(areas, size))
                tilts = tilts + parameters[f"tilt_{variable}"] * tilt[:, own]
                spread = pm.Normal(f"spread_effect_{variable}", 0, 1, shape=size)
                log_shape = log_shape + parameters[f"spread_{variable}"] * spread[own]
        if "interactions" in parameters:
            effects = pm.Normal("interaction", 0, 1, shape=cells)
            profile = profile + parameters["interactions"] * effects
        pm.Deterministic("profile", profile)
        log_shape = log_shape + parameters["power"] * profile
        # Flat in their logarithms, relative to what gives the samples.
        expected = pm.math.exp(profile + tilts)
        start = np.log(counts.sum(axis=1)) - pm.math.log(expected.sum(axis=1))
        intensity = pm.math.exp(start + pm.Flat("log_relative_intensity", shape=areas))
        usual = pm.NegativeBinomial.dist(
            mu=intensity[:, None] * expected, alpha=pm.math.exp(log_shape)[None, :]
        )
        size = parameters["outlier_size"] * cells * intensity[:, None] * pt.ones((1, cells))
        outlier = pm.NegativeBinomial.dist(mu=size, alpha=1.0)
        chance = parameters["outliers"]
        pm.Mixture("count", pt.stack([1 - chance, chance]), [usual, outlier], observed=counts)
    return model
