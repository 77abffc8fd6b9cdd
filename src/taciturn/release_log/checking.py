"""What a new table gives away together with all that was released before it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from taciturn.attack.system import UNLIMITED, Booleans
from taciturn.release_log.codebook import Codebook, Integers
from taciturn.release_log.findings import Checked, Finding
from taciturn.release_log.from_keys import told_apart
from taciturn.release_log.joint import Joint
from taciturn.release_log.likely import Likely, likely_totals, with_perturbed
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.same_keys import refuse_unnamed_keys
from taciturn.release_log.search import (
    Limits,
    bounds_of_totals,
    candidates,
    compatible_tables,
)
from taciturn.release_log.smallest import Effort, SmallestSets
from taciturn.release_log.swapped import of_whole_classes, spelled_out
from taciturn.release_log.ties import Ties
from taciturn.release_log.totals import Totals, coarsest, with_sums
from taciturn.release_log.window import NEW, PUBLIC, Source, Window, classes_of, told_of, window_of
from taciturn.release_log.words import Taken, in_words, taken_of

__all__ = ["check_tables", "refuse_contradictions"]

_MOST_CELLS: Final = 2_000  # of a window
_MOST_OF_PART: Final = 1_000  # of each window, where one is not enough
_MOST_WINDOWS: Final = 4
_MOST_TRIED: Final = 16  # sets of variables that a window is made for
_AT_ONCE: Final = 400  # totals that get exact bounds
_MOST_PROVED: Final = 10  # findings whose smallest set is looked for

type Classes = dict[str, Integers]
"""For each variable the class of each of its categories."""

type Ends = tuple[Integers, Integers]
"""The least and the most of some totals."""


class _Small(NamedTuple):
    """A small count that can be worked out: its categories, its cells, its bounds with
    the table and before it.
    """

    taken: Taken
    cells: Integers
    bounds: tuple[int, int, int, int]


def check_tables(
    new: Sequence[PublishedTable],
    earlier: Sequence[Source],
    codebook: Codebook,
    limits: Limits,
) -> Checked:
    """Find the small counts that can be worked out with new tables and could not, or
    less closely, before.

    Raises
    ------
    TableError
        What is published contradicts itself.
    ParameterError
        It is not said whether cell keys of several perturbation tables are the same.
    AttackError
        The solver finds no solution.
    """
    new, earlier = _whole(new, earlier, codebook)
    windows, complete = _windows(new, earlier, codebook)
    found: list[Finding] = []
    likely: list[Likely] = []
    settled: set[frozenset[Any]] = set()
    apart: dict[frozenset[Any], int] = {}
    effort = Effort()
    further = 0
    combined, alone = set[int](), set[int]()  # these with swapped tables count by count
    noisy = _noisy([*earlier, *((NEW, table) for table in new)])
    for classes in windows:
        told = told_of(classes, earlier)
        fresh = told_of(classes, [(NEW, table) for table in new])
        whole = of_whole_classes(noisy, classes, codebook)
        window = told_apart(window_of(classes, [*told, *fresh], codebook), whole)
        combined |= {release for release, _ in window.told} - {NEW, PUBLIC}
        before = replace(window_of(classes, told, codebook), classes=window.classes)
        joint = Joint(window, whole)
        old = Joint(before, [source for source in whole if source[0] != NEW])
        small, more, left_out = _of_window(joint, old, limits, settled, apart)
        further += more
        alone |= joint.left_out
        complete = complete and joint.complete and not left_out
        if small:
            sets = SmallestSets(joint, effort)
        for each in small:
            prove = len(found) < _MOST_PROVED
            found.append(_finding(joint, each, sets, prove=prove))
        if whole:
            combined |= {release for release, _ in whole} - {NEW}
            nearly, more, left_out = likely_totals(window, before, whole, limits, settled)
            likely += nearly
            further += more
            complete = complete and not left_out
    return Checked(found, likely, further, frozenset(combined - alone), complete)


def refuse_contradictions(
    new: Sequence[PublishedTable], earlier: Sequence[Source], codebook: Codebook
) -> None:
    """Raise unless there are counts that have all that is published as it is or as
    intervals, and that give what was perturbed, with the same keys in the same way.

    Raises
    ------
    TableError
        There are none, as far as that is looked at.
    ParameterError
        As for `check_tables`.
    AttackError
        The solver finds none.
    """
    new, earlier = _whole(new, earlier, codebook)
    every = [*earlier, *((NEW, table) for table in new)]
    for classes in _windows(new, earlier, codebook)[0]:
        whole = of_whole_classes(_noisy(every), classes, codebook)
        window = told_apart(window_of(classes, told_of(classes, every), codebook), whole)
        next(compatible_tables(Joint(window, whole).system)[0])
        if whole:
            Ties(with_perturbed(window, whole), whole)


def _whole(
    new: Sequence[PublishedTable], earlier: Sequence[Source], codebook: Codebook
) -> tuple[Sequence[PublishedTable], Sequence[Source]]:
    """All that is told, with the number of records if it is public, and with what is
    known of swapped tables.
    """
    refuse_unnamed_keys(new, earlier)
    if codebook.total is not None:
        everybody = np.array(codebook.total)
        earlier = [(PUBLIC, PublishedTable((), {}, everybody, everybody)), *earlier]
    fresh = spelled_out([(NEW, table) for table in new], codebook)
    return [table for _, table in fresh], spelled_out(earlier, codebook)


def _noisy(sources: Sequence[Source]) -> list[Source]:
    """The perturbed tables."""
    return [source for source in sources if source[1].noise is not None]


def _windows(
    new: Sequence[PublishedTable], earlier: Sequence[Source], codebook: Codebook
) -> tuple[list[Classes], bool]:
    """Classes of the categories of variables, over which all is taken together, and
    whether the first of them tell apart all that tables do.
    """
    tables = [*new, *(table for _, table in earlier)]
    # Tables without a common variable say something of each other, too: all have the
    # same number of records.
    named = frozenset[str]().union(*(table.variables for table in tables))
    every = classes_of(named, tables, codebook)
    if _size(every) <= _MOST_CELLS:
        return [every], True
    # What is most like the table first; then what has certain variables.
    least = _refined(new, [], codebook)

    def unlike(table: PublishedTable) -> tuple[float, int]:
        same = len(table.variables & own) / max(1, len(table.variables | own))
        return -same, _size_with(least, table, codebook)

    own = frozenset[str]().union(*(table.variables for table in new))
    ranked = sorted((table for _, table in earlier), key=unlike)
    near = list(dict.fromkeys(table.variables for table in ranked))
    found = [_refined(new, ranked, codebook)]
    for names in near[:_MOST_TRIED]:
        first = [table for table in ranked if table.variables == names]
        others = [table for table in ranked if table.variables != names]
        found.append(_refined(new, [*first, *others], codebook))
    several = {repr([(name, each[name].tolist()) for name in sorted(each)]): each for each in found}
    return list(several.values())[:_MOST_WINDOWS], False


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
            if _size(finer) <= _MOST_OF_PART:
                found = finer
            seen.add(told)  # classes only become finer: no second try
    return found


def _finer(classes: Integers | None, own: Integers) -> Integers:
    """Classes that also tell apart what others do."""
    both = own if classes is None else classes * (int(own.max()) + 2) + own
    _, first, inverse = np.unique(both, return_index=True, return_inverse=True)
    # Classes in the order of their first category, whatever told them apart.
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)


def _size_with(classes: Classes, table: PublishedTable, codebook: Codebook) -> int:
    """How many there are if they also tell apart what a table does."""
    own = {
        name: _finer(classes.get(name), table.classes(name, len(codebook.variables[name])))
        for name in table.variables
    }
    return _size({**classes, **own})


def _size(classes: Classes) -> int:
    """How many combinations of classes there are."""
    return prod(int(each.max()) + 1 for each in classes.values())


def _of_window(
    joint: Joint,
    before: Joint,
    limits: Limits,
    settled: set[frozenset[Any]],
    apart: dict[frozenset[Any], int],
) -> tuple[list[_Small], int, bool]:
    """The small counts in a window that the new release makes the difference for, how
    many more there are, and whether some totals were left out. Those that are settled,
    as they were known before or were found in another window, are not looked at; more
    are added, and how far `apart` the ends of totals were before.
    """
    if not joint.says_something_new:
        return [], 0, False
    totals = Totals(joint.window)
    asked, left_out = _asked(joint, before.window, totals, limits, settled)
    which = np.array(list(asked), dtype=np.int64)

    def bounds_in(one: Joint, asked: Iterable[int], apart: int = UNLIMITED) -> Ends:
        columns = [one.columns(totals.cells(total)) for total in asked]
        return bounds_of_totals(one.system, columns, apart=apart)

    first, last = bounds_in(before, which, limits.apart)
    # What had few values may lose more, but only of those that every window left it.
    keys = {total: frozenset(taken) for total, taken in asked.items()}
    for key, span in zip(keys.values(), (last - first).tolist(), strict=True):
        apart[key] = min(span, apart.get(key, span))
    exact = limits.hit(first, last) & (first == last)
    values = np.array([apart[key] for key in keys.values()], dtype=np.int64)
    new, values = which[~exact], values[~exact]
    lower, upper = bounds_in(joint, new, limits.apart)
    hit = limits.hit(lower, upper) & (upper - lower < values)
    ends = zip(lower[hit].tolist(), upper[hit].tolist(), strict=True)
    bounds = dict(zip(new[hit].tolist(), ends, strict=True))
    settled |= {keys[int(total)] for total in (*which[exact], *bounds)}
    shown = coarsest([(total, totals.sets(total)) for total in bounds], bounds)
    first, last = bounds_in(before, shown)
    small = [
        _Small(asked[total], totals.cells(total), (*bounds[total], int(least), int(most)))
        for total, least, most in zip(shown, first, last, strict=True)
    ]
    return small, len(bounds) - len(small), left_out or not totals.complete


def _asked(
    joint: Joint, before: Window, totals: Totals, limits: Limits, settled: set[frozenset[Any]]
) -> tuple[dict[int, Taken], bool]:
    """The totals of a window that get exact bounds, and whether there are more."""
    window = joint.window
    open_ = candidates(joint.system, totals, limits)
    open_ = open_[~_published(totals, open_, before.sources)]
    fresh = [source for source in window.sources if source[0] == NEW]
    is_own = _published(totals, open_, fresh)
    others = sorted(open_[~is_own].tolist(), key=lambda total: len(totals.sets(total)))
    own = open_[is_own].tolist()
    asked: dict[int, Taken] = {}
    for number, total in enumerate([*own, *others]):
        if len(asked) >= len(own) + _AT_ONCE:
            return asked, number < len(own) + len(others)
        if any(each.all() for each in totals.sets(total).values()):
            continue  # all of a variable: the total over it is the same
        taken = _taken(window, totals, total)
        if frozenset(taken) not in settled:
            asked[total] = taken
    return asked, False


def _taken(window: Window, totals: Totals, total: int) -> Taken:
    """The categories that a total takes of the variables it is not summed over."""
    sets = {name: own[window.classes[name]] for name, own in totals.sets(total).items()}
    return taken_of(sets, window.codebook)


def _finding(joint: Joint, small: _Small, sets: SmallestSets, *, prove: bool) -> Finding:
    lower, upper, first, last = small.bounds
    found = sets.of(joint.columns(small.cells), lower, upper, prove=prove)
    every = tuple(sorted({*joint.releases_of_row.ravel().tolist()} - {NEW, PUBLIC}))
    releases, smallest = (every, False) if found is None else found
    taken = dict(small.taken)
    return Finding(
        in_words(taken, joint.window.codebook),
        taken,
        lower,
        upper,
        (first, None if last >= UNLIMITED else last),
        releases,
        smallest and not joint.from_keys.several,
    )


def _published(totals: Totals, which: Any, sources: Sequence[Source]) -> Booleans:
    """Which totals are published as they are, as a cell or a margin of one of these
    tables: their cells are the same, which sums of random numbers tell.
    """
    window = totals.window
    numbers = np.random.default_rng(0).integers(0, 2**62, size=prod(window.shape))
    numbers = numbers.astype(np.uint64)
    exact = [np.empty(0, dtype=np.uint64)]
    for _, table in sources:
        sums = np.zeros(table.least.size + 1, dtype=np.uint64)
        np.add.at(sums, window.group(table), numbers)
        cells = sums[:-1].reshape(table.least.shape)
        exact.append(cells[table.least == table.most])
        if table.exact:
            exact.append(with_sums(cells).ravel())
    return np.isin(totals.of(numbers)[which], np.concatenate(exact))
