"""What can be done so that a table can go out; each advice is checked, too."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from taciturn.attack.system import UNLIMITED
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.findings import Checked, Finding
from taciturn.release_log.likely import Likely
from taciturn.release_log.published import Axis, PublishedTable
from taciturn.release_log.swapped import true_counts

__all__ = ["Advice", "advice"]

_ROUNDS: Final = 12  # of suppressing more cells
_BESIDE: Final = 3  # of these in which no cell is left that overlaps with a finding
_BASES: Final = (3, 5, 10)
_SHOWN: Final = 12  # cells that are named

type Tables = Sequence[PublishedTable]
type Check = Callable[[Tables], Checked]


@dataclass(frozen=True)
class Advice:
    """A change after which the check finds nothing.

    Attributes
    ----------
    kind : {"suppress", "merge", "round"}
        What is done.
    what : str
        To which cells or categories, or to which base.
    """

    kind: Literal["suppress", "merge", "round"]
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what}"


def advice(tables: Tables, found: Checked, codebook: Codebook, check: Check) -> list[Advice]:
    """The changes that were found to be enough: suppressed cells, merged categories,
    conventional rounding. Of perturbed counts there is no sum and no rounded one.
    """
    tried = [_suppressed(tables, found, codebook, check)]
    counts, sizes = true_counts(tables, codebook)

    def with_sizes(changed: Tables) -> Checked:
        return check([*changed, *sizes])

    if all(table.noise is None for table in counts):
        tried += [_merged(counts, found, codebook, with_sizes), _rounded(counts, with_sizes)]
    return [each for each in tried if each is not None]


def _all(found: Checked) -> list[Finding | Likely]:
    return [*found.findings, *found.likely]


def _suppressed(tables: Tables, found: Checked, codebook: Codebook, check: Check) -> Advice | None:
    """Suppress for each finding the smallest cell that overlaps with it, until nothing
    is found; where totals of other releases give these cells back, a few others as
    well. Then publish those again that need not be suppressed.
    """
    hidden: list[tuple[int, int]] = []
    beside = 0
    for _ in range(_ROUNDS):
        more = []
        for finding in _all(found):
            overlapping = [c for c in _overlapping(tables, finding, codebook) if c not in hidden]
            if overlapping:
                more.append(overlapping[0])
        if not more and beside < _BESIDE:
            others = [cell for cell in _smallest(tables) if cell not in hidden]
            more, beside = others[:1], beside + 1
        if not more:
            return None
        hidden = list(dict.fromkeys([*hidden, *more]))
        found = check(_without(tables, hidden))
        if found.nothing:
            break
    else:
        return None
    for cell in list(hidden) if len(hidden) <= _ROUNDS else []:
        rest = [each for each in hidden if each != cell]
        if rest and check(_without(tables, rest)).nothing:
            hidden = rest
    named = [tables[number].label(cell) or "the total" for number, cell in hidden[:_SHOWN]]
    more_text = f" and {len(hidden) - _SHOWN} more" if len(hidden) > _SHOWN else ""
    return Advice("suppress", "; ".join(named) + more_text)


def _overlapping(
    tables: Tables, finding: Finding | Likely, codebook: Codebook
) -> Iterator[tuple[int, int]]:
    """The published cells that count somebody who is in a finding, or might: the
    smallest first, as number of table and flat position.
    """
    found = []
    for number, table in enumerate(tables):
        inside = np.ones(table.least.shape, dtype=np.bool_)
        for place, axis in enumerate(table.axes):
            taken = finding.taken.get(axis.variable)
            if taken is None:
                continue
            categories = codebook.variables[axis.variable]
            classes = {
                int(each)
                for each, label in zip(axis.classes, categories, strict=True)
                if label in taken
            }
            along = np.isin(np.arange(len(axis.labels)), list(classes))
            inside &= along.reshape([-1 if i == place else 1 for i in range(inside.ndim)])
        found += [(value, number, cell) for value, cell in _counted(table) if inside.ravel()[cell]]
    return ((number, cell) for _, number, cell in sorted(found))


def _smallest(tables: Tables) -> list[tuple[int, int]]:
    """All published cells that count somebody, the smallest first."""
    found = [
        (value, number, cell)
        for number, table in enumerate(tables)
        for value, cell in _counted(table)
    ]
    return [(number, cell) for _, number, cell in sorted(found)]


def _counted(table: PublishedTable) -> list[tuple[int, int]]:
    """What is published of each cell that counts somebody, or may, and the cell."""
    if table.noise is not None:
        released = table.noise.released.max(axis=0).ravel()
        return [(int(released[cell]), int(cell)) for cell in np.flatnonzero(released >= 0)]
    shown = (table.least > 0) & (table.most < UNLIMITED)
    return [(int(table.least.ravel()[cell]), int(cell)) for cell in np.flatnonzero(shown)]


def _without(tables: Tables, hidden: Iterable[tuple[int, int]]) -> list[PublishedTable]:
    """The tables with some cells suppressed."""
    hidden = list(hidden)
    return [
        table.without([cell for which, cell in hidden if which == number])
        for number, table in enumerate(tables)
    ]


def _merged(tables: Tables, found: Checked, codebook: Codebook, check: Check) -> Advice | None:
    """Merge the categories of one axis that findings take with the next one. Not where
    intervals are published: that of a rounded sum is not the sum of those of its parts.
    """
    if any(((t.least < t.most) & (t.most < UNLIMITED)).any() for t in tables):
        return None
    for axis in tables[0].axes:
        if axis.given < 3 or any(
            all(each.name != axis.name for each in table.axes) for table in tables
        ):
            continue
        groups = _groups(axis, _all(found), codebook)
        if groups is None:
            continue
        if check([_with_groups(table, axis.name, groups) for table in tables]).nothing:
            joined = [
                [label for label, group in zip(axis.labels, groups, strict=True) if group == each]
                for each in dict.fromkeys(groups)
            ]
            named = (" and ".join(labels) for labels in joined if len(labels) > 1)
            return Advice("merge", f"{axis.name}: {'; '.join(named)}")
    return None


def _groups(
    axis: Axis, findings: Iterable[Finding | Likely], codebook: Codebook
) -> list[int] | None:
    """The new category of each: those that a finding takes go with the next one, the
    last with the one before; None where no finding takes some and not others. Where
    there is no row, there is nothing to merge.
    """
    categories = codebook.variables[axis.variable]
    group = list(range(len(axis.labels)))
    changed = False
    for finding in findings:
        labels = finding.taken.get(axis.variable)
        if labels is None:
            continue
        inside = {
            int(each)
            for each, label in zip(axis.classes, categories, strict=True)
            if label in labels and 0 <= each < axis.given
        }
        for place in inside if len(inside) < axis.given else ():
            other = place + 1 if place + 1 < axis.given else place - 1
            old, new = group[place], group[other]
            group = [new if each == old else each for each in group]
            changed = True
    return group if changed and len(set(group[: axis.given])) > 1 else None


def _with_groups(table: PublishedTable, name: str, groups: Sequence[int]) -> PublishedTable:
    """The table with categories of one axis merged."""
    place = next(i for i, axis in enumerate(table.axes) if axis.name == name)
    axis = table.axes[place]
    new = {old: number for number, old in enumerate(dict.fromkeys(groups))}
    codes = np.array([new[each] for each in groups])
    labels = tuple(
        " + ".join(label for label, code in zip(axis.labels, codes, strict=True) if code == each)
        for each in range(len(new))
    )
    ends = []
    for end in (table.least, table.most):
        parts = np.moveaxis(end, place, 0)
        summed = np.stack([parts[codes == each].sum(axis=0) for each in range(len(new))])
        ends.append(np.moveaxis(np.minimum(summed, UNLIMITED), 0, place))
    classes = np.where(axis.classes < 0, -1, codes[axis.classes])
    axes = (
        *table.axes[:place],
        replace(axis, labels=labels, classes=classes),
        *table.axes[place + 1 :],
    )
    return PublishedTable(axes, table.where, ends[0], ends[1])


def _rounded(tables: Tables, check: Check) -> Advice | None:
    """Round all cells to the first base that is enough."""
    for base in _BASES:
        if check([_rounded_to(table, base) for table in tables]).nothing:
            return Advice("round", f"to base {base}")
    return None


def _rounded_to(table: PublishedTable, base: int) -> PublishedTable:
    """The table with its counts rounded. Categories without a row have none in the
    rounded table either, and still hold nobody.
    """
    rows = tuple(slice(axis.given) for axis in table.axes)
    changed = np.zeros(table.least.shape, dtype=np.bool_)
    changed[rows] = (table.least == table.most)[rows]
    rounded = (table.least + base // 2) // base * base
    least = np.where(changed, np.maximum(rounded - base // 2, 0), table.least)
    most = np.where(changed, rounded + (base - 1) // 2, table.most)
    return replace(table, least=least, most=most)
