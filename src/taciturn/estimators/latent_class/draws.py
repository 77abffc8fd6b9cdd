"""The draws of a fit of latent classes: as a dataset, and the shares of cells that they
give.
"""

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.latent_class.chain import Draw, Layout
from taciturn.estimators.latent_class.departures import NAMES
from taciturn.estimators.latent_class.kernels import multiply_by_factors
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters
from taciturn.parallel import linear_algebra_alone

__all__ = ["all_shares", "depart", "departures_of", "labelled_draws"]

Floats = npt.NDArray[np.float64]


def labelled_draws(problem: Problem, chains: list[list[Draw]]) -> xr.Dataset:
    """Label the draws; classes that are absent from a draw have weight 0."""
    draws = len(chains[0])
    most = max(len(weight) for chain in chains for _, weight, _ in chain)
    first = Layout(problem).first
    weight = np.zeros((len(chains), draws, most), dtype=np.float32)
    share = np.zeros((len(chains), draws, most, first[-1]), dtype=np.float32)
    for c, chain in enumerate(chains):
        for d, (_, own, profiles) in enumerate(chain):
            weight[c, d, : len(own)] = own
            share[c, d, : len(own)] = profiles.T
    numbers = {
        name: (("chain", "draw"), np.array([[draw[0][name] for draw in chain] for chain in chains]))
        for name in chains[0][0][0]
    }
    shares = {
        f"share_{dim}": (("chain", "draw", "class", dim), share[..., a:b])
        for dim, a, b in zip(problem.variables, first, first[1:], strict=False)
    }
    coords = {"chain": np.arange(len(chains)), "draw": np.arange(draws)}
    labels = {dim: problem.sample[dim].values for dim in problem.variables}
    return xr.Dataset(
        {**numbers, "weight": (("chain", "draw", "class"), weight), **shares},
        coords={**coords, **labels},
    )


def all_shares(problem: Problem, parameters: Parameters) -> Floats:
    """Share of every cell at each draw, (chains * draws, cells); 0 at structural
    zeros.
    """
    posterior = parameters.posterior
    assert posterior is not None
    table = Layout(problem)
    classes = posterior.sizes["class"]
    weight = (
        posterior["weight"]
        .transpose("chain", "draw", "class")
        .values.reshape(-1, classes)
        .astype(float)
    )
    parts = [
        posterior[f"share_{dim}"].transpose("chain", "draw", "class", dim).values
        for dim in problem.variables
    ]
    shares = np.concatenate(parts, axis=-1).reshape(-1, classes, table.first[-1])
    out = np.empty((len(weight), problem.sample.size))
    with linear_algebra_alone():  # for so small matrices threads wait for each other
        for draw, (w, share) in enumerate(zip(weight, shares, strict=True)):
            used = w > 0
            out[draw] = table.shares(w[used], share[used].T.astype(float))
    return out


def departures_of(parameters: Parameters) -> Floats:
    """Log ν, the power and the logarithm of the intensity of each draw, (draws, 3)."""
    assert parameters.posterior is not None
    nu, power, intensity = (
        parameters.posterior[name].transpose("chain", "draw").values.ravel() for name in NAMES
    )
    return np.stack([np.log(nu), power, np.log(intensity)], axis=1)


def depart(
    problem: Problem,
    parameters: Parameters,
    shares: Floats,
    rng: np.random.Generator,
    *,
    informed: bool,
) -> None:
    """Multiply shares by factors, which the sample informs or not."""
    log_nu, power, log_intensity = departures_of(parameters).T
    intensity = np.exp(log_intensity) if informed else np.zeros_like(power)
    counts = problem.counts.astype(float) if informed else np.zeros(shares.shape[1])
    multiply_by_factors(
        shares, counts, problem.cells, np.exp(log_nu), np.array(power), intensity, rng
    )
