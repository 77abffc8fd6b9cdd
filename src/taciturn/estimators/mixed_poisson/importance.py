"""The posterior of the mixed Poisson log-linear model, without a Markov chain.

Importance sampling. Around each node of a grid powers of rates and intensities are
proposed as nearly normal, with exponents that make the third derivatives vanish: cube
roots for gamma variates (Wilson & Hilferty 1931, PNAS 17); coordinates of interactions
nearly as they are, as symmetric effects have the least exponent.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import SMALLEST_ESS, ImportanceDiagnostics
from taciturn.estimators.formula import Terms
from taciturn.estimators.mixed_poisson.grid import FINER, Fitted, Nodes
from taciturn.estimators.mixed_poisson.kernels import solve_back_at
from taciturn.estimators.mixed_poisson.modes import log_scale
from taciturn.estimators.mixed_poisson.points import Points
from taciturn.estimators.mixed_poisson.spread import Spread
from taciturn.estimators.mixed_poisson.target import OPTIONAL, Target
from taciturn.estimators.mixed_poisson.thin_strata import ThinStrata
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.importance import resample
from taciturn.parallel import linear_algebra_alone

__all__ = ["sample_parameters"]

_PROPOSALS: Final = (4_000, 8_000, 40_000, 120_000)  # the next where few of them count
_TENTHS_TELL: Final = 4  # a hundred effective proposals of a tenth of ν are 400 of all

Floats = npt.NDArray[np.float64]


def sample_parameters(
    problem: Problem,
    terms: Terms,
    priors: Mapping[str, Prior],
    pure: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Floats], ImportanceDiagnostics]:
    """Draws of ``nu`` and ``power``, shape (draws,), of ``intensity``, (draws, strata
    with a sample), of ``share`` and ``inflation`` if they have priors, of
    concentrations and scales, and of the effects of all terms, (draws, categories,
    ...).
    """
    target = Target(problem, terms, priors, pure)
    for closely in (False, True):
        with linear_algebra_alone():
            fitted = Fitted.to(target, closely=closely)
        kept, diagnostics = _sample(target, fitted, draws, rng)
        if diagnostics.converged:
            break
    found = {
        "nu": np.exp(kept.log_nu),
        "power": kept.power,
        "intensity": np.exp(kept.logs[:, : len(target.strata.kept)]),
    }
    found |= {name: getattr(kept, name) for name in OPTIONAL if name in priors}
    for group, log_a in zip(target.effects.groups, kept.log_a.T, strict=True):
        if group.prior is not None:
            found[group.name] = group.parameter(log_a)
    return found | target.named(kept), diagnostics


def _sample(
    target: Target, fitted: Fitted, draws: int, rng: np.random.Generator
) -> tuple[Points, ImportanceDiagnostics]:
    """Draws from as many proposals as are needed, and how far to trust them."""
    spread = Spread()
    for number in _PROPOSALS:
        log_weights, points, variates = _weigh(target, fitted, spread, max(draws, number), rng)
        chosen, diagnostics = resample(log_weights, draws, rng)
        if len(target.strata.kept) > 1:
            known = _TENTHS_TELL * _known_of_each_tenth(log_weights, points.log_nu)
            if known < SMALLEST_ESS:
                diagnostics = replace(diagnostics, ess=min(diagnostics.ess, known))
        hopeless = diagnostics.ess * _PROPOSALS[-1] < SMALLEST_ESS * number
        if diagnostics.converged or (hopeless and number > _PROPOSALS[0]):
            break
        spread = Spread.learned(log_weights, variates)
    # What is left out, weights cannot show.
    if not fitted.whole or ThinStrata.miss(target):
        diagnostics = replace(diagnostics, k_hat=float("inf"))
    return points.at(chosen), diagnostics


def _known_of_each_tenth(log_weights: Floats, log_nu: Floats) -> float:
    """The least number of effective proposals of ν between two tenths of its posterior.

    With many strata few proposals count where departures are strong, so that small ν
    seems less probable than it is, whatever all weights together look like; these are
    tenths of what was found.
    """
    order = np.argsort(log_nu)
    weights = np.exp(log_weights[order] - max(log_weights.max(), -1e300))
    tenths = np.minimum(10 * np.cumsum(weights) / max(weights.sum(), 1e-300), 9).astype(np.int64)
    sums, squares = (np.bincount(tenths, weights**power, minlength=10) for power in (1, 2))
    return float((sums**2 / np.maximum(squares, 1e-300)).min())


def _weigh(
    target: Target, fitted: Fitted, spread: Spread, number: int, rng: np.random.Generator
) -> tuple[Floats, Points, Floats]:
    """Proposals with the logarithms of their weights, and the variates that placed
    them.
    """
    nodes = fitted.nodes
    node, off, density = _near_nodes(nodes, number, rng)
    near = _moved(target, nodes, node, off)
    near, log_wider, own_density = fitted.others.propose(near, rng)
    variates = spread.draw(near.logs.shape, rng)
    if nodes.thin is None:
        density += spread.log_density(variates)
    else:
        density += _of_thin_strata(nodes, nodes.thin, node, spread, variates, rng)
    wider = np.exp(log_wider)
    exponents = nodes.exponents[node]
    exponents /= np.maximum(wider, 1.0)
    placed = _placed(nodes, node, variates, wider)
    powers = 1.0 + exponents * placed
    inside = (powers > 0).all(axis=1)
    log_powers = np.log(np.where(inside[:, None], powers, 1.0))
    moves = np.divide(log_powers, exponents, out=placed, where=exponents != 0)
    proposed = replace(near, logs=near.logs + moves)
    density += own_density - np.sum(log_wider, axis=-1)
    density += log_scale(nodes.bends, nodes.roots)[node] + log_powers.sum(axis=1)
    log_weights = target.log_density(proposed) - density
    possible = inside & ~np.isnan(log_weights)  # as far as numbers hold intensities
    return np.where(possible, log_weights, -np.inf), proposed, variates


def _of_thin_strata(
    nodes: Nodes,
    thin: ThinStrata,
    node: npt.NDArray[np.int64],
    spread: Spread,
    variates: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Put those of thin strata in the place of their variates, in units of standard
    deviations, too; return the logarithm of the density of all.
    """
    kept = np.ones(variates.shape[1], dtype=np.bool_)
    kept[thin.strata] = False
    known = nodes.bends.intensities[:, thin.strata]
    off, density = thin.draw(node, rng)
    variates[:, thin.strata] = off * np.sqrt(known[node])
    density -= 0.5 * np.log(known).sum(axis=1)[node]
    return np.asarray(density + spread.log_density(variates, kept))


def _near_nodes(
    nodes: Nodes, number: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Nodes in order, how far off each is proposed, in widths, shape (axes, number),
    and the logarithm of the density: by the heights between nodes.
    """
    chances, grid = nodes.chances, tuple(map(len, nodes.axes))
    chosen = rng.choice(len(chances), size=number, p=chances)
    parts = np.array(np.unravel_index(chosen, [FINER * size for size in grid]))
    node = np.ravel_multi_index(tuple(parts // FINER), grid)
    off = (parts % FINER + rng.random(parts.shape)) / FINER - 0.5
    order = np.argsort(node, kind="stable")
    return node[order], off[:, order], np.log(chances[chosen[order]])


def _moved(target: Target, nodes: Nodes, node: npt.NDArray[np.int64], off: Floats) -> Points:
    """Points off nodes, by so many widths, with intensities, margins and coordinates
    that follow the best ones of neighbouring nodes.
    """
    strata, best = len(target.strata.kept), nodes.best
    parts = best.logs[:, :strata], *target.log_margins(best), target.coordinates(best)
    followed = np.concatenate(parts, axis=1)
    logs = best.logs[node]
    grid = tuple(map(len, nodes.axes))
    slopes = np.gradient(followed.reshape(*grid, -1), axis=tuple(range(len(grid))))
    for along, slope in zip(off, slopes, strict=True):
        logs += along[:, None] * slope.reshape(followed.shape)[node]
    own = best.at(node)
    moved = {
        name: getattr(own, name) + width * along
        for name, width, along in zip(target.axes, nodes.widths, off, strict=True)
    }
    return replace(own, **moved, logs=logs)


def _placed(nodes: Nodes, node: npt.NDArray[np.int64], variates: Floats, wider: Floats) -> Floats:
    """Variates with the information of their nodes from standard ones: of the rates,
    that much wider, and of the intensities given these.
    """
    information = nodes.bends.intensities[node]
    strata = information.shape[1]
    found = np.concatenate(
        [variates[:, :strata] / np.sqrt(information), variates[:, strata:]], axis=1
    )
    solve_back_at(nodes.roots, node, found[:, strata:])
    found[:, strata:] *= wider[:, strata:]
    first = np.searchsorted(node, np.arange(len(nodes.height) + 1))
    for k in np.unique(node):
        own = found[first[k] : first[k + 1]]
        own[:, :strata] -= own[:, strata:] @ nodes.bends.between[k].T / nodes.bends.intensities[k]
    return found
