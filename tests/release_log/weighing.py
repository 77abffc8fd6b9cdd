"""What perturbed counts say of a total of a small base, by listing tables: which of
them are about it or tied to it, and the sums of such counts that it is or is a part of.
"""

from dataclasses import dataclass

import numpy as np

from release_log.bases import all_tables, compatible, masks, with_one_answer
from taciturn.attack import Mechanism
from taciturn.release_log.published import PublishedTable

__all__ = ["Answer", "TiedByChanceError", "Weighing"]

_MOST = 120  # that a total practically is


class TiedByChanceError(Exception):
    """Two totals are tied, or one is known, only as there are few people."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A count that was released."""

    mask: np.ndarray
    keys: object
    mechanism: Mechanism
    value: int
    table: PublishedTable


class Weighing:
    """All that is released of a base, and the tables that agree with all of it."""

    def __init__(self, released, base, every: np.ndarray) -> None:
        left = every[compatible(every, [table for _, table in released], base)]
        self.left = with_one_answer(left, released, base)
        exact, self.nobody = [], np.zeros(base.size, dtype=bool)
        self.cells = [(table, masks(table, base)) for _, table in released]
        for table, inside in self.cells:
            for at, own in inside.items():
                if table.least[at] == table.most[at]:
                    exact.append(own)
                    self.nobody |= own & (table.most[at] == 0)
        self.rows = np.array(exact, dtype=float).reshape(len(exact), base.size)[:, ~self.nobody]
        self.rank = self._rank(self.rows)
        self.answers = self._answers(released)

    @staticmethod
    def _rank(rows: np.ndarray) -> int:
        return int(np.linalg.matrix_rank(rows)) if rows.size else 0

    def _answers(self, released) -> list[Answer]:
        """Each count that has noise of its own; of the same keys other records."""
        found: dict = {}
        for (release, table), (_, inside) in zip(released, self.cells, strict=True):
            if table.noise is None:
                continue
            for time, counts in enumerate(table.noise.released):
                for at, own in inside.items():
                    keys: object = (release, id(table), at, time)
                    if table.noise.keyed:
                        keys = release if table.noise.keys is None else table.noise.keys
                    if counts[at] >= 0 and own.any():
                        answer = Answer(own, keys, table.noise.mechanism, int(counts[at]), table)
                        found.setdefault((keys, (own & ~self.nobody).tobytes()), answer)
        return list(found.values())

    def is_constant(self, sums: np.ndarray) -> bool:
        """Whether a sum of cells is the same in all tables, by exact counts."""
        by_rows = self._rank(np.vstack([self.rows, sums[~self.nobody]])) == self.rank
        if not by_rows and np.ptp(self.left @ sums) == 0:
            raise TiedByChanceError
        return by_rows

    def known(self, total: np.ndarray) -> int | None:
        """The total if it is known."""
        return int(self.left[0] @ total) if self.is_constant(total * 1) else None

    def tied(self, total: np.ndarray) -> list[tuple[int, int, Answer]]:
        """The answers about a total or what is tied to it, with sign and constant."""
        return [
            (sign, int(self.left[0] @ (answer.mask - sign * total)), answer)
            for sign in (1, -1)
            for answer in self.answers
            if self.known(answer.mask) is None and self.is_constant(answer.mask - sign * total)
        ]

    def take(self, tied: list, chosen: list[Answer]) -> list:
        """Those of answers whose noise does not follow from that of chosen ones, which
        they are added to.
        """
        kept = []
        for each in tied:
            same = [answer.mask for answer in (*chosen, each[2]) if answer.keys == each[2].keys]
            if self._rank(np.array(same)[:, ~self.nobody]) == len(same):
                kept.append(each)
                chosen.append(each[2])
        return kept

    def likelihood(self, total: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, bool, bool]:
        """How likely all answers are for each value of a total that is open; whether
        there are some about it or what is tied to it, and whether there are sums.
        """
        chosen: list[Answer] = []
        direct = self.take(self.tied(total * 1), chosen)
        weights = probability(direct, values)
        sums = False
        for kind in (self._ways, self._lines):
            done: set[str] = set()
            for split, parts, whole in sorted(kind(total), key=lambda each: len(each[1])):
                if split & done:
                    continue
                trial = [*chosen]
                found = self._sum(total, parts, whole, trial, values)
                if found is not None:
                    chosen, done, sums = trial, done | split, True
                    weights = weights * found
        return weights, bool(direct), sums

    def _tables(self):
        used = {id(answer.table) for answer in self.answers}
        return [(table, inside) for table, inside in self.cells if id(table) in used]

    def _usable(self, total: np.ndarray) -> bool:
        return self.known(total) is not None or bool(self.tied(total * 1))

    def _ways(self, total: np.ndarray):
        for table, inside in self._tables():
            own = {at: each for at, each in inside.items() if (each & total).any()}
            adds_up = (sum(map(np.int64, own.values())) == total).all()
            if len(own) > 1 and adds_up and all(map(self._usable, own.values())):
                split = {
                    axis.variable
                    for i, axis in enumerate(table.axes)
                    if len({at[i] for at in own}) > 1
                }
                yield split, list(own.values()), None

    def _lines(self, total: np.ndarray):
        for table, inside in self._tables():
            for at in [at for at, each in inside.items() if (each == total).all()]:
                for i, axis in enumerate(table.axes):
                    others = [
                        each
                        for other, each in inside.items()
                        if other[:i] + other[i + 1 :] == at[:i] + at[i + 1 :] and other != at
                    ]
                    whole = np.any([total, *others], axis=0)
                    if all(map(self._usable, [*others, whole])):
                        yield {axis.variable}, others, whole

    def _sum(self, total, parts, whole, chosen: list[Answer], values: np.ndarray):
        """How likely answers about a sum's parts are, and about the whole of which the
        total is the rest, if there is one.
        """
        known, answers = 0, []
        for part in parts:
            if (value := self.known(part)) is not None:
                known += value
                continue
            answers.append(self.take(self.tied(part * 1), chosen))
            if not answers[-1]:
                return None
        if not answers:
            return None
        if whole is None:
            return np.array([mean_of(answers, int(t) - known) for t in values])
        if (value := self.known(whole)) is not None:
            return np.array([mean_of(answers, value - int(t) - known) for t in values])
        of_whole = self.take(self.tied(whole * 1), chosen)
        if not of_whole:
            return None
        counts = np.arange(_MOST + 1)
        sums = sums_of([probability(each, counts) for each in answers])
        return np.array([sums @ probability(of_whole, int(t) + known + counts) for t in values])


def probability(tied, values: np.ndarray) -> np.ndarray:
    """Of answers, given each of these values of what they are tied to."""
    p = np.ones(len(values))
    for sign, shift, answer in tied:
        true = shift + sign * values
        own = np.exp(answer.mechanism.log_probability(answer.value, np.maximum(true, 0)))
        p = p * np.where(true >= 0, own, 0)
    return p


def mean_of(answers: list, total: int) -> float:
    """How likely answers about counts are, over all that add up to this."""
    if total < 0:
        return 0.0
    every = all_tables(len(answers), total)
    return float(
        np.prod([probability(*each) for each in zip(answers, every.T, strict=True)], axis=0).mean()
    )


def sums_of(parts: list[np.ndarray]) -> np.ndarray:
    """For each total the sum of the products over all counts that add up to it."""
    if len(parts) == 1:
        return parts[0]
    rest = sums_of(parts[1:])
    return np.array(
        [sum(parts[0][i] * rest[n - i] for i in range(n + 1)) for n in range(len(rest))]
    )
