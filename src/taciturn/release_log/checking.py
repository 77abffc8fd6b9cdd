"""What a new table gives away together with all that was released before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from taciturn.attack.system import UNLIMITED, Booleans
from taciturn.release_log.codebook import Codebook, Integers
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.search import Limits, bounds_of_totals, candidates
from taciturn.release_log.smallest import NEW, SmallestSets
from taciturn.release_log.totals import Totals
from taciturn.release_log.window import Source, Window, classes_of, told_of, window_of

__all__ = ["Checked", "Finding", "check_tables"]

_MOST_CELLS: Final = 2_000  # of a window
_MOST_WINDOWS: Final = 8
_MOST_TRIED: Final = 16  # sets of variables that a window is made for
_AT_ONCE: Final = 400  # totals that get exact bounds
_MOST_PROVED: Final = 10  # findings of a window whose smallest set is looked for

type Classes = dict[str, Integers]
"""For each variable the class of each of its categories."""


@dataclass(frozen=True)
class Finding:
    """A small count that can be worked out once the table is published.

    Attributes
    ----------
    who : str
        Whom it counts, in words.
    taken : mapping of str to tuple of str
        The categories that it takes of each variable which it does not sum over.
    lower, upper : int
        Its bounds with the table.
    before : tuple of (int, int or None)
        Its bounds before; None above where there was none.
    releases : tuple of int
        The earlier releases that are needed; empty where the table gives it away by
        itself.
    smallest : bool
        Whether it is proved that no smaller set of releases is enough.
    """

    who: str
    taken: Mapping[str, tuple[str, ...]]
    lower: int
    upper: int
    before: tuple[int, int | None]
    releases: tuple[int, ...]
    smallest: bool


@dataclass(frozen=True)
class Checked:
    """What was found, and how far was looked.

    Attributes
    ----------
    findings : sequence of Finding
        Small counts that can be worked out, those of many people's first.
    further : int
        Those that are part of one of these with the same bounds.
    combined : frozenset of int
        The earlier releases that were taken together with the table.
    complete : bool
        Whether all earlier releases that could matter were taken together at once, and
        no total was left out.
    """

    findings: Sequence[Finding]
    further: int
    combined: frozenset[int]
    complete: bool


def check_tables(
    new: Sequence[PublishedTable],
    earlier: Sequence[Source],
    codebook: Codebook,
    limits: Limits,
) -> Checked:
    """Find the small counts that can be worked out with new tables and not before.

    Raises
    ------
    TableError
        What is published contradicts itself.
    AttackError
        The solver finds no solution.
    """
    windows, complete = _windows(new, earlier, codebook)
    found: dict[tuple[Any, ...], Finding] = {}
    further = 0
    combined: set[int] = set()
    for classes in windows:
        told = told_of(classes, earlier)
        fresh = told_of(classes, [(NEW, table) for table in new])
        window = window_of(classes, [*told, *fresh], codebook)
        combined |= {release for release, _ in window.sources} - {NEW}
        before = Window(codebook, window.classes, window_of(classes, told, codebook).sources)
        findings, more, left_out = _of_window(window, before, limits)
        further += more
        complete = complete and not left_out
        for each in findings:
            found.setdefault(tuple(sorted(each.taken.items())), each)
    return Checked(list(found.values()), further, frozenset(combined), complete)


def _windows(
    new: Sequence[PublishedTable], earlier: Sequence[Source], codebook: Codebook
) -> tuple[list[Classes], bool]:
    """Classes of the categories of variables, over which all is taken together, and
    whether the first of them tell apart all that is connected with the new tables.
    """
    tables = [*new, *(table for _, table in earlier)]
    own = frozenset[str]().union(*(table.variables for table in new))
    connected = own
    while True:
        more = connected.union(*(t.variables for t in tables if t.variables & connected))
        if more == connected:
            break
        connected = more
    every = classes_of(connected, tables, codebook)
    if _size(every) <= _MOST_CELLS:
        return [every], True
    # What is most like the table first; then what has certain variables.
    ranked = sorted(
        (table for _, table in earlier if table.variables & own),
        key=lambda table: -len(table.variables & own) / len(table.variables | own),
    )
    near = list(dict.fromkeys(table.variables for table in ranked))
    found = [_refined(new, ranked, codebook)]
    for names in near[:_MOST_TRIED]:
        first = [table for table in ranked if table.variables == names]
        others = [table for table in ranked if table.variables != names]
        found.append(_refined(new, [*first, *others], codebook))
    unlike = {repr([(name, own.tolist()) for name, own in each.items()]): each for each in found}
    return list(unlike.values())[:_MOST_WINDOWS], False


def _refined(
    new: Sequence[PublishedTable], ranked: Sequence[PublishedTable], codebook: Codebook
) -> Classes:
    """Classes that tell apart what tables do, as many of them as there is room for, the
    new ones first.
    """
    found: Classes = {}
    seen = set()
    for table in [*new, *ranked]:
        for name in sorted(table.variables, key=lambda name: (name not in found, name)):
            own = table.classes(name, len(codebook.variables[name]))
            told = (name, own.tobytes())
            if told in seen:
                continue
            finer = {**found, name: _finer(found.get(name), own)}
            if _size(finer) <= _MOST_CELLS:
                found = finer
            seen.add(told)  # classes only become finer: no second try
    return found


def _finer(classes: Integers | None, own: Integers) -> Integers:
    """Classes that also tell apart what others do."""
    both = own if classes is None else classes * (int(own.max()) + 2) + own
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)


def _size(classes: Classes) -> int:
    """How many combinations of classes there are."""
    return prod(int(each.max()) + 1 for each in classes.values())


def _of_window(window: Window, before: Window, limits: Limits) -> tuple[list[Finding], int, bool]:
    """The small counts in a window that the new release makes the difference for, how
    many more there are, and whether some totals were left out.
    """
    if not any(release == NEW for release, _ in window.sources):
        return [], 0, False
    totals = Totals(window)
    open_ = candidates(window.system, totals, limits)
    open_ = open_[~_published(totals, open_, before.sources)]
    fresh = [source for source in window.sources if source[0] == NEW]
    is_own = _published(totals, open_, fresh)
    own, asked = open_[is_own], open_[~is_own]
    order = np.argsort([len(totals.sets(int(total))) for total in asked], kind="stable")
    left_out = len(asked) > _AT_ONCE
    asked = np.sort(asked[order[:_AT_ONCE]])
    which = np.concatenate([own, asked])
    lower, upper = bounds_of_totals(window.system, totals, which)
    hit = limits.hit(lower, upper)
    which, lower, upper = which[hit], lower[hit], upper[hit]
    first, last = bounds_of_totals(before.system, totals, which)
    kept = np.flatnonzero(~limits.hit(first, last))
    ends = np.stack([lower, upper, first, last], axis=1)[kept].tolist()
    bounds = dict(zip(which[kept].tolist(), map(tuple, ends), strict=True))
    same = {total: each[:2] for total, each in bounds.items()}
    coarsest = totals.coarsest(list(bounds), same)
    if not coarsest:
        return [], 0, left_out
    sets = SmallestSets(window, limits)
    findings = [
        _finding(window, totals, total, bounds[total], sets, prove=number < _MOST_PROVED)
        for number, total in enumerate(coarsest)
    ]
    return findings, len(bounds) - len(coarsest), left_out


def _finding(
    window: Window,
    totals: Totals,
    total: int,
    bounds: tuple[int, int, int, int],
    sets: SmallestSets,
    *,
    prove: bool,
) -> Finding:
    lower, upper, first, last = bounds
    found = sets.of(totals.cells(total), prove=prove)
    every = tuple(sorted({release for release, _ in window.sources} - {NEW}))
    releases, smallest = (every, False) if found is None else found
    taken = {
        name: tuple(
            label
            for label, own in zip(
                window.codebook.variables[name], window.classes[name], strict=True
            )
            if classes[own]
        )
        for name, classes in totals.sets(total).items()
    }
    return Finding(
        _in_words(taken, window.codebook),
        taken,
        lower,
        upper,
        (first, None if last >= UNLIMITED else last),
        releases,
        smallest,
    )


def _published(totals: Totals, which: Any, sources: Sequence[Source]) -> Booleans:
    """Which totals are published as they are, as a cell or a margin of one of these
    tables: their cells are the same, which sums of random numbers tell.
    """
    window = Window(totals.window.codebook, totals.window.classes, sources)
    numbers = np.random.default_rng(0).integers(0, 2**62, size=int(np.prod(window.shape)))
    own = totals.of(numbers.astype(np.uint64))[which]
    exact = [np.empty(0, dtype=np.uint64)]
    for release, table in sources:
        part = Window(window.codebook, window.classes, [(release, table)])
        told = (table.least == table.most).ravel()
        sums = np.zeros(table.least.size, dtype=np.uint64)
        system = part.system
        sums[system.row_group] = system.matrix.astype(np.uint64) @ numbers.astype(np.uint64)
        exact.append(sums[told])
        if table.exact:
            whole = sums.reshape(table.least.shape)
            for axis in range(whole.ndim):
                whole = np.concatenate([whole, whole.sum(axis=axis, keepdims=True)], axis=axis)
            exact.append(whole.ravel())
    return np.isin(own, np.concatenate(exact))


def _in_words(taken: Mapping[str, tuple[str, ...]], codebook: Codebook) -> str:
    """``age=65 or 66, sex=f``; what most categories are in by those that are not."""
    parts = []
    for name, labels in taken.items():
        every = codebook.variables[name]
        left = [label for label in every if label not in labels]
        if len(labels) > len(every) / 2 and len(left) < len(labels):
            parts.append(f"{name} not {' or '.join(left)}")
        else:
            parts.append(f"{name}={' or '.join(labels)}")
    return ", ".join(parts) or "everybody"
