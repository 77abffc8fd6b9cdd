"""Posterior of the open cells of one connected part of a system: by listing all its
tables, or by a walk among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, vstack
from scipy.special import gammaln

from taciturn.attack.posterior.lattice import kernel_basis, reduced_basis, wide_moves
from taciturn.attack.posterior.walk import list_tables, walk
from taciturn.attack.solver import ANY_SOLUTION, Floats
from taciturn.attack.system import Integers
from taciturn.errors import AttackError, ParameterError, TableError

__all__ = ["MOST_VALUES", "Part", "PartPosterior"]

MOST_VALUES: Final = 200_000_000
"""Values that are held in memory at once, of draws or of distributions of cells."""

_MOST_TABLES: Final = 50_000  # that are listed, or, of so few
_FEW_CELLS: Final = 4  # cells, as many as have
_MOST_LISTED_VALUES: Final = 20_000_000
_MOST_VISITS: Final = 5_000_000
_PLACES: Final = 2**14
"""Of a distribution; under the uniform prior wider ones have several values a place."""
_BATCHES: Final = 5  # a chain
_PASSES: Final = 10  # a draw
_IMPOSSIBLE: Final = -1e6  # log weight, in a walk, of what is impossible
_PROGRAMS_A_CELL: Final = 3
_MOST_PROGRAM_CELLS: Final = 500_000  # programs times cells: some seconds


@dataclass(frozen=True, eq=False, repr=False)
class PartPosterior:
    """What is found for the cells of a part.

    Attributes
    ----------
    draws : array of int64, shape (chain, draw, cells)
        Tables.
    entropy, error : array of float64, shape (cells,)
        In bits, and its Monte Carlo standard error; 0 where all tables were listed.
    mean : array of float64, shape (cells,)
        Mean of the cell, in steps.
    exact : bool
        Whether all tables were listed.
    """

    draws: Integers
    entropy: Floats
    error: Floats
    mean: Floats
    exact: bool


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Tables of some cells: whole `x` with ``least <= A x <= most`` and attained
    bounds.

    Attributes
    ----------
    matrix : csr_array of int64, shape (rows, n)
        `A`, of zeros and ones.
    least, most : array of int64, shape (rows,)
        Bounds of totals.
    lower, upper : array of int64, shape (n,)
        Bounds of cells.
    log_mean : array of float64, shape (n,) or (0,)
        Logarithms of Poisson means; empty where all tables are equally likely, or
    log_weights : sequence of array of float64
        says how likely each value is, from the least to the most, of each cell and then
        of each total that is an interval; minus infinity where it is impossible.
    """

    matrix: csr_array
    least: Integers
    most: Integers
    lower: Integers
    upper: Integers
    log_mean: Floats
    log_weights: Sequence[Floats]

    def posterior(
        self,
        chains: int,
        draws: int,
        tune: int,
        rng: np.random.Generator,
        on_chain: Callable[[], object],
    ) -> PartPosterior:
        """List the tables, or walk among them where there are many."""
        tables = self.listed()
        if tables is not None:
            found = self._of_list(tables, chains, draws, rng)
            for _ in range(chains):
                on_chain()
            return found
        return self._of_walk(chains, draws, tune, rng, on_chain)

    def listed(self) -> Integers | None:
        """All tables, shape (tables, n); None where there are many, or a search for
        them takes long.
        """
        n = len(self.lower)
        csc = self.matrix.tocsc()
        starts, rows = csc.indptr.astype(np.int64), csc.indices.astype(np.int64)
        arguments = (
            starts,
            rows,
            self.least,
            self.most,
            self.lower,
            self.upper,
            _most_listed(n),
            _MOST_VISITS,
        )
        number = list_tables(*arguments, np.empty((0, n), dtype=np.int64))
        if number < 0:
            return None
        tables = np.empty((number, n), dtype=np.int64)
        list_tables(*arguments, tables)
        return tables

    def _of_list(
        self, tables: Integers, chains: int, draws: int, rng: np.random.Generator
    ) -> PartPosterior:
        weight = np.ones(len(tables))
        if self.log_mean.size or self.log_weights:
            log_weight = self._log_weight(tables)
            possible = log_weight > -np.inf
            if not possible.any():
                raise TableError(
                    "the release contradicts itself: from no compatible table the mechanism gives"
                    " what is released"
                )
            tables, log_weight = tables[possible], log_weight[possible]
            weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        values = [np.unique(column, return_inverse=True)[1] for column in tables.T]
        return PartPosterior(
            draws=tables[rng.choice(len(tables), size=(chains, draws), p=weight)],
            entropy=np.array([_bits(np.bincount(value, weights=weight)) for value in values]),
            error=np.zeros(len(self.lower)),
            mean=weight @ tables,
            exact=True,
        )

    def _log_weight(self, tables: Integers) -> Floats:
        """Log weight of each table, up to a constant."""
        if self.log_mean.size:
            return np.asarray(tables @ self.log_mean - gammaln(tables + 1.0).sum(axis=1))
        _, lower, _ = self._extended()
        places = (self._with_ranges(tables) - lower).T
        return np.sum(
            [own[place] for own, place in zip(self.log_weights, places, strict=True)], axis=0
        )

    def _with_ranges(self, tables: Integers) -> Integers:
        """Tables, followed by their totals that are intervals."""
        sums = (self.matrix @ tables.T)[self.least < self.most].T
        return np.concatenate([tables, sums], axis=1)

    def _of_walk(
        self,
        chains: int,
        draws: int,
        tune: int,
        rng: np.random.Generator,
        on_chain: Callable[[], object],
    ) -> PartPosterior:
        n = len(self.lower)
        batches = min(_BATCHES, draws)
        values = self.upper - self.lower + 1
        weighting = self._weighting()
        width = -(-values // _PLACES)
        if self.log_mean.size or self.log_weights:
            width[:] = 1
        places = -(-values // width)
        hist_at = np.concatenate([[0], np.cumsum(places + 1)])
        _check_memory(places, chains, batches)
        equations, lower, upper = self._extended()
        basis = reduced_basis(kernel_basis(equations))
        programs = min(_PROGRAMS_A_CELL * n, _MOST_PROGRAM_CELLS // n)
        moves = csr_array(vstack([basis, wide_moves(equations, upper - lower, programs, rng)]))
        held = csr_array(moves.T)
        tables = np.empty((chains, draws, n), dtype=np.int64)
        hist = np.zeros((chains, batches, int(hist_at[-1])))
        for chain in range(chains):
            state = self._with_ranges(self._start(rng)[None])[0]
            directions = (*_plain(moves), basis.shape[0], *_plain(held)[:2])
            common = (state, lower, upper, *directions, weighting, _PASSES, hist_at, width)
            dropped = np.empty((min(tune, draws), n), dtype=np.int64)
            for begin in range(0, tune, draws):
                walk(*common, np.zeros(0), dropped[: tune - begin], rng)
            self._check_possible(state[:n])
            for batch, out in enumerate(np.array_split(tables[chain], batches)):
                walk(*common, hist[chain, batch], out, rng)
            on_chain()
        flat = hist.reshape(chains * batches, -1)
        found = [
            self._cell(cell, flat[:, hist_at[cell] : hist_at[cell + 1] - 1], width[cell])
            for cell in range(n)
        ]
        entropy, error, mean = (np.array(column) for column in zip(*found, strict=True))
        return PartPosterior(tables, entropy, error, mean, exact=False)

    def _weighting(self) -> tuple[Floats, Integers, Floats]:
        """The weights as `walk` takes them; what is impossible is so unlikely that a
        walk never returns to it.
        """
        if not self.log_weights:
            return self.log_mean, np.empty(0, dtype=np.int64), np.empty(0)
        begins = np.cumsum([0, *map(len, self.log_weights[:-1])])
        flat = np.maximum(np.concatenate(self.log_weights), _IMPOSSIBLE)
        return self.log_mean, begins, flat

    def _check_possible(self, table: Integers) -> None:
        """Raise `AttackError` where a walk has not come to a table that may be true."""
        if self.log_weights and np.isneginf(self._log_weight(table[None])[0]):
            raise AttackError(
                "the walk came to no table from which the mechanism gives what is released; more"
                " tune may help, unless there is none"
            )

    def _cell(self, cell: int, differences: Floats, width: int) -> tuple[float, float, float]:
        """Entropy, its error and mean of a cell from its distribution in each batch, so
        many values a place.
        """
        shares = np.maximum(np.cumsum(differences, axis=1), 0)
        shares /= shares.sum(axis=1, keepdims=True)
        values = self.upper[cell] - self.lower[cell] + 1
        first = width * np.arange(shares.shape[1])
        held = np.minimum(width, values - first)
        entropy, error = _jackknifed(shares, held)
        mean = shares.mean(axis=0) @ (self.lower[cell] + first + (held - 1) / 2)
        return min(max(entropy, 0.0), float(np.log2(values))), error, float(mean)

    def _extended(self) -> tuple[csr_array, Integers, Integers]:
        """Equations over the cells and the totals that are intervals, and the bounds of
        these.
        """
        is_range = self.least < self.most
        number = int(is_range.sum())
        own = csr_array(
            (np.full(number, -1), (np.flatnonzero(is_range), np.arange(number))),
            shape=(len(is_range), number),
        )
        lower = np.concatenate([self.lower, self.least[is_range]])
        upper = np.concatenate([self.upper, self.most[is_range]])
        return csr_array(hstack([self.matrix, own])), lower, upper

    def _start(self, rng: np.random.Generator) -> Integers:
        """A table far out in a random direction."""
        costs = rng.normal(size=len(self.lower))
        constraint = LinearConstraint(
            self.matrix.astype(np.float64).tocsc(),
            self.least.astype(float),
            self.most.astype(float),
        )
        for whole in (False, True):
            solved = milp(
                costs,
                integrality=np.full(len(costs), int(whole)),
                bounds=Bounds(self.lower.astype(float), self.upper.astype(float)),
                constraints=constraint,
                options={"mip_rel_gap": ANY_SOLUTION},
            )
            if solved.x is None:
                continue
            table = np.rint(solved.x).astype(np.int64)
            sums = self.matrix @ table
            inside = (table >= self.lower).all() and (table <= self.upper).all()
            if inside and (sums >= self.least).all() and (sums <= self.most).all():
                return table
        raise AttackError(
            "the solver gives no table of whole numbers of steps to begin with; fewer decimals give"
            " smaller numbers"
        )


def _check_memory(places: Integers, chains: int, batches: int) -> None:
    """Raise `ParameterError` where distributions of so many places would not fit in
    memory.
    """
    needed = int((places + 1).sum()) * chains * batches
    if needed > MOST_VALUES:
        raise ParameterError(
            f"the distributions of {len(places)} connected cells have {int(places.sum()):,} values,"
            f" and {chains * batches} of each are needed for {chains} chains: {needed:,}, at most"
            f" {MOST_VALUES:,} are accepted; take fewer chains"
        )


def _plain(matrix: csr_array) -> tuple[Integers, Integers, Integers]:
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data.astype(np.int64),
    )


def _most_listed(cells: int) -> int:
    """Tables that are listed: more of a few cells, among which a walk takes longer."""
    most = _MOST_LISTED_VALUES // cells
    return most if cells <= _FEW_CELLS else min(_MOST_TABLES, most)


def _bits(shares: Floats) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log2(positive)).sum())


def _jackknifed(shares: Floats, values: Integers) -> tuple[float, float]:
    """Entropy of the mean of distributions, corrected for its bias by leaving one out
    at a time, and its error.

    Values that share a place count as equally likely.
    """
    number = len(shares)
    inside = np.log2(values)
    total = shares.sum(axis=0)

    def entropy(p: Floats) -> float:
        return _bits(p) + float(p @ inside)

    left_out = np.array([entropy((total - each) / (number - 1)) for each in shares])
    corrected = number * entropy(total / number) - (number - 1) * left_out.mean()
    return corrected, float(
        np.sqrt((number - 1) / number * ((left_out - left_out.mean()) ** 2).sum())
    )
