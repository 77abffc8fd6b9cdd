"""A perturbed table: every published value is a likelihood of the true one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.mechanisms import Mechanism
from taciturn.attack.mechanisms.likelihood import Likelihood, supports
from taciturn.attack.releases.base import Release
from taciturn.attack.releases.showing import Grid, Shown, margin_label, sizes_label, whole_grid
from taciturn.attack.releases.totals import check_totals, total_in_steps
from taciturn.attack.system import Booleans, Integers, LinearSystem, Total, build_system
from taciturn.errors import ParameterError, TableError
from taciturn.schema import REPLICATE, cell_label
from taciturn.tables.checks import require_array
from taciturn.tables.margins import margin_of
from taciturn.tables.steps import in_steps
from taciturn.validate import quoted, true_or_false

__all__ = ["Perturbed"]


@dataclass(frozen=True, eq=False, repr=False)
class Perturbed(Release):
    r"""A perturbed table of counts, seen by an attacker who knows the mechanism.

    .. math:: p(x \mid y) \propto p(x) \prod_r \prod_j P(y_{rj} \mid x_j)

    over all published cells and perturbed totals `j` and all repetitions `r`. Only
    counts from which the mechanism gives what is published are possible;
    `attacker_bounds` takes those between the least and the most of them.

    Parameters
    ----------
    released : DataArray
        The perturbed table, as a protection method returns it. Along a dimension
        ``replicate`` there may be several: answers to the same query, of which the
        attacker has all.
    mechanism : Mechanism
        How a count was perturbed: `RandomRounding`, `ConventionalRounding`,
        `SmallCellAdjustment`, `GeometricNoise` or `CellKeys`.
    totals : sequence of DataArray
        The published totals, one table over the variables or levels of each margin;
        perturbed ones may be repeated as well.
    exact_totals : bool
        Whether these are the true totals, which the method leaves as they are;
        otherwise each was perturbed by the same mechanism, from its true value.
    same_key : bool, optional
        Whether the noise follows from keys of the records. By default it does for
        `CellKeys` and for no other mechanism. With the same keys a query has one
        answer, however often it is repeated; without them each published value has
        noise of its own, and every repetition says more.

    Raises
    ------
    TableError
        A value that the mechanism does not give, repetitions that no count gives
        together or, with the same keys, that differ; values that are negative,
        fractional, missing or infinite; totals with other categories.
    ParameterError
        A `mechanism` that is not a `Mechanism`; `exact_totals` without totals;
        `same_key` that is not True, False or None; perturbed totals with the same keys.

    Notes
    -----
    The key of a total is the sum of the keys of its cells. Given what is published of
    the cells, its noise is therefore not a draw of its own, and the likelihood is no
    product: such totals are refused. That of the cells alone is exact, and leaves the
    attacker with more uncertainty than cells and totals together.

    Record swapping is not among the mechanisms: what moves out of one cell arrives in
    another, so that no cell has a probability of its own. Between two areas, and with
    expected counts, its posterior is that of `LinkedTables` of the moves.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), A posteriori disclosure risk measure for tabular
    data based on conditional entropy, SORT 27, 175-190: :math:`p(x \mid y)` of equation
    (2).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> rounded = xr.DataArray([3, 0], dims="x")
    >>> release = tc.attack.Perturbed(rounded, tc.attack.RandomRounding(3))
    >>> tc.attacker_bounds(release, progressbar=False)["upper"].values.tolist()
    [5.0, 2.0]

    From 1, 2, 3, 4 and 5 a count is rounded to 3 with the probabilities 1/3, 2/3, 1,
    2/3 and 1/3:

    >>> found = tc.attacker_posterior(release, random_seed=1, progressbar=False)
    >>> round(float(found["entropy"][0]), 4)
    2.1972
    """

    released: xr.DataArray
    mechanism: Mechanism
    totals: Sequence[xr.DataArray] = field(default=(), kw_only=True)
    exact_totals: bool = field(default=False, kw_only=True)
    same_key: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError(
                "mechanism must be a Mechanism such as RandomRounding(3), got"
                f" {quoted(self.mechanism)}"
            )
        if self.same_key is not None:
            true_or_false(self.same_key, "same_key")
        check_totals(self.totals, self.exact_totals)
        if self.exact_totals and not self.totals:
            raise ParameterError("exact_totals needs the true totals themselves in totals")
        if self.keyed and self.totals and not self.exact_totals:
            raise ParameterError(
                "perturbed totals with the same keys as their cells have no noise of their own, so"
                " that their likelihood is no product; accepted: no totals, exact_totals=True, or"
                " same_key=False where all was perturbed with keys of its own"
            )
        super().__post_init__()

    @property
    def keyed(self) -> bool:
        """Whether the noise follows from keys of the records."""
        return self.mechanism.keyed if self.same_key is None else self.same_key

    @cached_property
    def _repetitions(self) -> list[xr.DataArray]:
        """What is released of the table, each time; once with the same keys."""
        found = [in_steps(each, 0, name="released") for each in _each(self.released, "released")]
        return [each.copy() for each in (_one_answer(found) if self.keyed else found)]

    @cached_property
    def _totals(self) -> list[list[xr.DataArray]]:
        """What is released of each margin, each time."""
        table = self._repetitions[0]
        margins = [
            [total_in_steps(each, table, 0).copy() for each in _each(total, "totals")]
            for total in self.totals
        ]
        if self.exact_totals and any(len(margin) > 1 for margin in margins):
            raise ParameterError("exact totals have no repetitions: drop their 'replicate'")
        return margins

    @cached_property
    def likelihood(self) -> Likelihood:
        """Of all that is released."""
        totals = [_stacked(margin)[: 0 if self.exact_totals else None] for margin in self._totals]
        return Likelihood(self.mechanism, _stacked(self._repetitions), totals)

    @cached_property
    def system(self) -> LinearSystem:
        """The support of every cell and every perturbed total, and exact totals."""
        table = self._repetitions[0]
        lower, upper = self._supports(self._repetitions, "released")
        totals = []
        for margin in self._totals:
            labels, group = margin_of(table, tuple(map(str, margin[0].dims)))
            values = margin[0].values.ravel()
            least, most = (
                (values, values) if self.exact_totals else self._supports(margin, "totals")
            )
            totals.append(Total(labels, group, least, most, np.ones(labels.size, dtype=np.bool_)))
        known = np.zeros(table.size, dtype=np.bool_)
        return build_system(table, known, totals, decimals=0, lower=lower, upper=upper)

    def _supports(self, repetitions: list[xr.DataArray], name: str) -> tuple[Integers, Integers]:
        """Bounds of each true value; raise `TableError` where nothing gives what is
        released.
        """
        released, labels = _stacked(repetitions), repetitions[0]
        for value in np.unique(released).tolist():
            if self.mechanism.support(value) is None:
                cell = int(np.argwhere(released == value)[0, 1])
                raise TableError(
                    f"{name} must hold {self.mechanism.gives}: {_label(labels, cell)} holds {value}"
                )
        least, most = supports(self.mechanism, released)
        bad = np.flatnonzero(least > most)
        if len(bad):
            held = ", ".join(map(str, np.unique(released[:, bad[0]])))
            raise TableError(
                f"{name}: no count gives all repetitions, {_label(labels, bad[0])} holds {held}"
            )
        return least, most

    def publishes(self, names: tuple[str, ...]) -> Booleans:
        """All totals of a margin that is published as it is; a perturbed value is
        not.
        """
        exact = self._totals if self.exact_totals else []
        published = any(set(margin[0].dims) == set(names) for margin in exact)
        return np.full(margin_of(self._repetitions[0], names)[0].size, published)

    def shown(self) -> Shown:
        """The perturbed table, each time, and which totals are published."""
        table = self._repetitions[0]
        margins = [margin_label(map(str, margin[0].dims)) for margin in self._totals]
        kind = "exact" if self.exact_totals else "perturbed"
        totals = f"{', '.join(margins)}, {kind}" if margins else "none"
        lines = (
            f"Perturbation of {sizes_label(table, 0)}",
            f"by {self.mechanism!r}; published totals: {totals}",
        )
        return Shown(lines, [whole_grid(each, 0) for each in self._repetitions])

    def released_margins(self) -> list[tuple[str, ...]]:
        """The variables of the table, and those of each of the published totals."""
        tables = [self._repetitions, *self._totals]
        return [tuple(map(str, repetitions[0].dims)) for repetitions in tables]

    def published_tables(self) -> Sequence[Grid]:
        """The perturbed table, and each of the published totals."""
        tables = [self._repetitions, *self._totals]
        if any(len(repetitions) > 1 for repetitions in tables):
            raise ParameterError(
                "release must have no repetitions to be written, as they come close to the true"
                " table together: take one replicate"
            )
        return [whole_grid(repetitions[0], 0) for repetitions in tables]


def _each(given: Any, name: str) -> list[xr.DataArray]:
    """The repetitions of a table or margin."""
    require_array(given, name=name)
    if REPLICATE not in given.dims:
        return [given]
    if not given.sizes[REPLICATE]:
        raise TableError(f"{name} has no repetition: its sizes are {dict(given.sizes)}")
    return [given.isel({REPLICATE: at}, drop=True) for at in range(given.sizes[REPLICATE])]


def _one_answer(repetitions: list[xr.DataArray]) -> list[xr.DataArray]:
    """The only answer that the same keys give; raise `TableError` where there are
    several.
    """
    first = repetitions[0]
    for other in repetitions[1:]:
        at = np.argwhere(other.values != first.values)
        if len(at):
            cell = tuple(int(i) for i in at[0])
            raise TableError(
                f"released: with the same keys a query has one answer, but"
                f" {cell_label(first, cell)} holds {first.values[cell]} and {other.values[cell]};"
                " accepted for repetitions with keys of their own: same_key=False"
            )
    return [first]


def _stacked(repetitions: list[xr.DataArray]) -> Integers:
    return np.stack([each.values.ravel() for each in repetitions]).astype(np.int64)


def _label(labels: xr.DataArray, cell: int) -> str:
    at = np.unravel_index(cell, labels.shape)
    return cell_label(labels, tuple(int(i) for i in at)) or "the grand total"
