"""What the cells of the mixed Poisson model are made of: rates of categories and
coordinates of interactions, as one vector, and how strong their priors are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.interactions import Interactions
from taciturn.estimators.log_linear.model import concentration_name, effect_name, scale_name
from taciturn.estimators.mixed_poisson.kernels import log_sums
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

__all__ = ["Effects", "Group", "log_shares", "log_totals"]

_MOST: Final = 1e9  # concentration, with which a margin is even
_SMALLEST: Final = 1e-6  # scale, with which there is no interaction

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Effects whose prior is as strong as one parameter says: the rates of a margin by
    its concentration, the coordinates of an interaction by their scale.

    The parameter is represented by its level, the probability with which its prior
    exceeds it. A priori levels are uniform between 0 and 1.

    Attributes
    ----------
    name : str
        Of the parameter.
    own : slice
        Where its effects are among all.
    prior : Prior or None
        Of the parameter; None for a concentration that is fixed.
    normal : bool
        Whether these are coordinates of an interaction.
    """

    name: str
    own: slice
    prior: Prior | None
    normal: bool

    @property
    def size(self) -> int:
        """Number of effects."""
        return int(self.own.stop - self.own.start)

    def parameter(self, log_a: Floats) -> Floats:
        """The concentration or the scale."""
        return np.asarray(np.exp(-0.5 * log_a if self.normal else log_a))

    def log_a(self, level: Floats) -> Floats:
        """Logarithm of the concentration or the precision of a level."""
        assert self.prior is not None, "fixed"
        value = self.prior.exceeded(level)
        if self.normal:
            return np.asarray(-2.0 * np.log(np.maximum(value, _SMALLEST)))
        return np.asarray(np.log(np.minimum(value, _MOST)))


def log_totals(logs: Floats) -> Floats:
    """Logarithms of the sums of rates, from their logarithms, (points, categories)."""
    out = np.empty(len(logs))
    log_sums(logs, out)
    return out


def log_shares(logs: Floats) -> Floats:
    """Logarithms of rates in proportion to their sum."""
    return logs - log_totals(logs)[:, None]


class Effects:
    """Rates of the categories of each variable, then coordinates of each interaction.

    The logarithm of a cell's share is, up to a constant, a sum of *levels*: one of each
    variable, which is its rate, and one of each interaction.

    Parameters
    ----------
    problem : Problem
        The sample and what is known of its population.
    terms : Terms
        Those with something to estimate; other variables are uniform.
    priors : mapping of str to Prior
        Of all parameters.
    seen : array of int64, shape (cells,)
        Positions in the table of the cells that are made of them.

    Attributes
    ----------
    groups : list of Group
        The rates of each margin, then the coordinates of each interaction.
    margins : list of slice
        Where the rates of each variable are among all effects.
    categories, number, levels : int
        Number of rates, of all effects, and of levels.
    columns : array of int64, shape (cells, terms)
        The levels of each cell.
    basis : array, shape (levels, number), or None
        What levels are made of; None without interactions, where they are the effects.
    log_a : array, shape (groups,)
        Of the fixed concentrations, and of the medians of the others and of scales.
    """

    def __init__(
        self,
        problem: Problem,
        terms: Terms,
        priors: Mapping[str, Prior],
        seen: npt.NDArray[np.int64],
    ) -> None:
        sizes, own = problem.sizes, problem.sample.shape
        index = np.indices(own).reshape(len(own), -1)[:, seen]
        at = dict(zip(problem.variables, index, strict=True))
        self._main = [term[0] for term in terms if len(term) == 1]
        interactions = tuple(term for term in terms if len(term) > 1)
        self._interactions = Interactions(interactions, sizes) if interactions else None
        self.groups: list[Group] = []
        columns, log_a, start = [], [], 0
        for dim in self._main:
            name, place = concentration_name(dim), slice(start, start + sizes[dim])
            prior = priors.get(name)
            self.groups.append(Group(name, place, prior, normal=False))
            fixed = prior.quantile(0.5) if prior else priors[f"margin_{dim}"].parameters["a"]
            log_a.append(log(fixed))
            columns.append(start + at[dim])
            start += sizes[dim]
        self.margins = [group.own for group in self.groups]
        self.categories = self.number = self.levels = start
        blocks = [np.eye(start)]
        for number, term in enumerate(interactions):
            assert self._interactions is not None
            basis = self._interactions.basis(number)
            blocks.append(basis)
            place = slice(self.number, self.number + basis.shape[1])
            name = scale_name(term)
            self.groups.append(Group(name, place, priors[name], normal=True))
            log_a.append(float(self.groups[-1].log_a(np.array(0.5))))
            shape = [sizes[dim] for dim in term]
            columns.append(self.levels + np.ravel_multi_index([at[dim] for dim in term], shape))
            self.levels += basis.shape[0]
            self.number += basis.shape[1]
        self.basis = block_diag(*blocks) if interactions else None
        self.columns = np.array(columns, dtype=np.int64).reshape(len(terms), len(seen))
        self.columns = np.ascontiguousarray(self.columns.T)
        self.log_a = np.array(log_a, dtype=float)

    def log_margins(self, effects: Floats) -> list[Floats]:
        """Logarithms of the margins, from shape (points, number)."""
        return [log_shares(effects[:, own]) for own in self.margins]

    def named(self, effects: Floats) -> dict[str, Floats]:
        """Margins and effects of interactions, by name."""
        margins = zip(self._main, self.log_margins(effects), strict=True)
        found = {effect_name((dim,)): np.exp(own) for dim, own in margins}
        if self._interactions is not None:
            coordinates = effects[:, self.categories :]
            for number, term in enumerate(self._interactions.terms):
                found[effect_name(term)] = self._interactions.effect(number, coordinates)
        return found
