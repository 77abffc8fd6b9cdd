"""What is to be published as tables with their definitions: who is counted where."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from math import prod
from typing import Any, Final, TypedDict

import numpy as np
import xarray as xr

from taciturn.attack import Mechanism, Perturbed, Release, Total
from taciturn.attack.mechanisms.likelihood import supports
from taciturn.attack.system import UNLIMITED
from taciturn.errors import ParameterError, TableError
from taciturn.release_log.codebook import Booleans, Codebook, Integers, label_text, plain
from taciturn.release_log.mechanisms import Stored, mechanism_data
from taciturn.release_log.noise import NOT_RELEASED, Noise
from taciturn.release_log.published import Axis, PublishedTable
from taciturn.release_log.rows import Rows, rows_of
from taciturn.release_log.swapped import swapped_tables
from taciturn.release_log.swapping import RecordSwapping
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.protected import ProtectedTable
from taciturn.tables.labels import labels_of
from taciturn.tables.spelling import check_spelling
from taciturn.validate import quoted

__all__ = ["Defined", "Merged", "Where", "published_tables"]

type Where = Mapping[str, Any]
"""For each variable or level by which records are selected, one category or several."""
type Merged = Mapping[str, Mapping[Any, Sequence[Any]]]
"""For each variable the new categories, and the ones that each combines."""


class Defined(TypedDict):
    """How a table was made and perturbed."""

    where: Where | None
    merge: Merged | None
    mechanism: Stored | None
    keys: str | None


_ABSENT: Final = "(no row)"


def published_tables(
    given: Any,
    codebook: Codebook,
    *,
    where: Where | None = None,
    merge: Merged | None = None,
    total: str = "Total",
    mechanism: Stored | None = None,
    keys: str | None = None,
) -> list[PublishedTable]:
    """The tables that are published, each with who is counted in its cells."""
    _check_keys(given, mechanism, keys)
    book = _Definitions(
        codebook,
        _mapping(where, "where"),
        {n: _mapping(x, f"merge[{n!r}]") for n, x in _mapping(merge, "merge").items()},
    )
    if isinstance(given, ProtectedTable):
        given = given.pattern
    if isinstance(given, SuppressionPattern):
        if given.not_for_release:
            raise ParameterError(
                f"table must not be released: {given.not_for_release}; what was released all the"
                " same is the attribute `release` of the pattern"
            )
        given = given.release
    if isinstance(given, Release):
        if mechanism is not None:
            raise ParameterError(
                "mechanism is given with the counts of a table: a release has its own"
            )
        found = _of_release(given, book, keys)
    else:
        rows = rows_of(given, codebook, total, perturbed=mechanism is not None)
        each_for_itself = None if isinstance(mechanism, RecordSwapping) else mechanism
        found = _of_rows(rows, book, each_for_itself, keys)
    unknown = [name for name in book.merge if name not in book.merged]
    if unknown:
        raise ParameterError(f"merge must name variables of the table, got {unknown}")
    _check_filter(found)
    _check_total(found, codebook)
    if isinstance(mechanism, RecordSwapping):
        return swapped_tables(found, mechanism, keys, codebook)
    return found


def _check_keys(given: Any, mechanism: Any, keys: Any) -> None:
    """Raise unless the mechanism can be stored, and keys are those of one."""
    if mechanism is not None:
        mechanism_data(mechanism)
    if keys is None:
        return
    if not (isinstance(keys, str) and keys):
        raise ParameterError(f"keys must be text, got {quoted(keys)}")
    check_spelling([keys], lambda _: "keys")
    if mechanism is None and not isinstance(given, Perturbed):
        raise ParameterError("keys are those of a mechanism: give mechanism as well")
    if isinstance(given, Perturbed) and not given.keyed:
        raise ParameterError("keys are given for noise that follows from them: same_key is False")


def _mapping(given: Any, name: str) -> dict[Any, Any]:
    """A copy of what must be a mapping."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    raise ParameterError(f"{name} must be a mapping, got {quoted(given)}")


class _Definitions:
    """Who is counted where, in the words of the codebook."""

    def __init__(self, codebook: Codebook, where: dict[str, Any], merge: dict[str, Any]) -> None:
        self.codebook, self.merge = codebook, merge
        self.merged: set[str] = set()
        self.where = self._selected(where)

    def _selected(self, where: Mapping[str, Any]) -> dict[str, Booleans]:
        found: dict[str, Booleans] = {}
        for name, given in where.items():
            variable = self.codebook.variable_of(name, "where")
            given = plain(given)
            several = isinstance(given, Sequence | np.ndarray | set) and not isinstance(given, str)
            labels = list(given) if several else [given]
            if not labels:
                raise ParameterError(f"where: {name!r} selects no category, so that nobody is left")
            masks = [self.codebook.members(name, label, "where") for label in labels]
            mask = np.logical_or.reduce(masks)
            found[variable] = found[variable] & mask if variable in found else mask
            if not found[variable].any():
                raise ParameterError(f"where: no category of {variable!r} is selected")
        return found

    def axis(self, name: str, labels: Iterable[Any]) -> Axis:
        """A dimension of these categories. One that is left out although it is selected
        holds nobody, and has a place of its own.
        """
        variable = self.codebook.variable_of(name, "the table")
        merged = self.merge.get(name, {})
        self.merged.add(name)
        texts = list(map(label_text, labels))
        new = {label_text(label): parts for label, parts in merged.items()}
        unknown = [label for label in new if label not in texts]
        if unknown:
            raise ParameterError(f"merge: the table has no category {unknown[0]!r} of {name!r}")
        classes = np.full(len(self.codebook.variables[variable]), -1, dtype=np.int64)
        for place, text in enumerate(texts):
            parts = new.get(text, [text])
            if isinstance(parts, str) or not isinstance(parts, Sequence) or not len(parts):
                raise ParameterError(
                    f"merge[{name!r}][{text!r}] must be a sequence of categories, got {parts!r}"
                )
            for part in parts:
                inside = self.codebook.members(name, part, f"the table, {name}={text}")
                if (classes[inside] >= 0).any():
                    raise TableError(
                        f"two categories of {name!r} in the table hold {label_text(part)!r}"
                    )
                classes[inside] = place
        selected = self.where.get(variable, np.ones(len(classes), dtype=np.bool_))
        absent = selected & (classes < 0)
        return _with_absent(name, variable, tuple(texts), classes, absent)


def _with_absent(
    name: str, variable: str, labels: tuple[str, ...], classes: Integers, absent: Booleans
) -> Axis:
    """A dimension with a place for categories of the variable that have no row."""
    if not absent.any():
        return Axis(name, variable, labels, classes)
    placed = np.where(absent, len(labels), classes)
    return Axis(name, variable, (*labels, _ABSENT), placed, absent=True)


type _Row = tuple[int | None, tuple[int, int]]  # the count, and between what it is


def _of_rows(
    rows: Rows, book: _Definitions, mechanism: Mechanism | None, keys: str | None
) -> list[PublishedTable]:
    """A table for each set of variables that is not summed over."""
    _refuse_twice([book.codebook.variable_of(name, "the table") for name in rows.names])
    labels = [
        list(dict.fromkeys(cell[place] for cell in rows.cells if cell[place] is not None))
        for place in range(len(rows.names))
    ]
    axes = [book.axis(name, each) for name, each in zip(rows.names, labels, strict=True)]
    margins: dict[tuple[bool, ...], dict[tuple[Any, ...], _Row]] = {}
    for cell, value, interval in zip(rows.cells, rows.values, rows.intervals, strict=True):
        own = margins.setdefault(tuple(label is not None for label in cell), {})
        if cell in own:
            named = (f"{n}={x}" for n, x in zip(rows.names, cell, strict=True) if x is not None)
            raise TableError(f"the cell {', '.join(named) or 'the grand total'} is given twice")
        own[cell] = (value, interval)
    places = [{label: place for place, label in enumerate(each)} for each in labels]
    keyed = keys is not None or (mechanism is not None and mechanism.keyed)
    found = []
    for kept, own in margins.items():
        finest = not any(
            kept != other and all(b or not a for a, b in zip(kept, other, strict=True))
            for other in margins
        )
        shown = tuple(axis for axis, k in zip(axes, kept, strict=True) if k)
        shape = tuple(len(axis.labels) for axis in shown)
        # A cell without a row holds nobody; of a total without one nothing is said.
        least = np.zeros(shape, dtype=np.int64)
        most = np.full(shape, 0 if finest else UNLIMITED, dtype=np.int64)
        released = np.full(shape, NOT_RELEASED, dtype=np.int64)
        for cell, (value, interval) in own.items():
            at = tuple(p[x] for p, x in zip(places, cell, strict=True) if x is not None)
            least[at], most[at] = interval
            released[at] = NOT_RELEASED if value is None else value
        table = PublishedTable(shown, book.where, least, most)
        if mechanism is not None:
            if finest and len(own) < prod(len(each) for each in compress(labels, kept)):
                raise TableError(
                    "a perturbed table must have a row for each cell, with 0 where 0 is released"
                    " and without a count where none is"
                )
            table = _perturbed(table, mechanism, Noise(mechanism, keyed, keys, released[None]))
        found.append(table)
    return [each for each in found if each.shown.any()]


def _refuse_twice(variables: Sequence[str]) -> None:
    """Raise where two dimensions are of one variable."""
    twice = [name for name in variables if variables.count(name) > 1]
    if twice:
        raise TableError(
            f"the table has {twice[0]!r} and a level above it, or two levels: give a table for each"
        )


def _perturbed(table: PublishedTable, mechanism: Mechanism, noise: Noise) -> PublishedTable:
    """A table of which a mechanism released its counts."""
    released = noise.released[0]
    for cell in np.flatnonzero(released >= 0).tolist():
        if mechanism.support(int(released.flat[cell])) is None:
            raise TableError(
                f"the table must hold {mechanism.gives}: {table.label(cell) or 'the total'}"
                f" holds {released.flat[cell]}"
            )
    least, most = supports(mechanism, np.maximum(noise.released, 0))
    seen = released >= 0
    return replace(
        table,
        least=np.where(seen, least, table.least),
        most=np.where(seen, most, table.most),
        noise=noise,
    )


def _of_release(release: Release, book: _Definitions, keys: str | None) -> list[PublishedTable]:
    """The cells of a release that are published or in an interval, and its totals."""
    system = release.system
    if system.decimals or system.signed:
        raise TableError("a log is of frequency tables: a table of magnitudes has no place in it")
    table = system.published
    axes = tuple(book.axis(str(dim), labels_of(table[dim])) for dim in table.dims)
    _refuse_twice([axis.variable for axis in axes])
    least = table.values.copy().ravel()
    most = least.copy()
    least[system.unknown], most[system.unknown] = system.lower, system.upper
    found = [_padded(axes, book.where, least.reshape(table.shape), most.reshape(table.shape))]
    found += [_of_total(total, table, axes, book) for total in system.totals]
    if isinstance(release, Perturbed):
        mechanism_data(release.mechanism)
        likelihood = release.likelihood
        shapes = [table.shape, *(total.labels.shape for total in system.totals)]
        seen = [likelihood.cells, *likelihood.totals]
        found = [
            _with_noise(each, own.reshape(-1, *shape), release, keys) if len(own) else each
            for each, own, shape in zip(found, seen, shapes, strict=True)
        ]
    return [each for each in found if each.shown.any()]


def _with_noise(
    table: PublishedTable, released: Integers, release: Perturbed, keys: str | None
) -> PublishedTable:
    """A table with what was released of its cells; of those that it leaves out, which
    hold nobody, nothing was.
    """
    sizes = zip(table.least.shape, released.shape[1:], strict=True)
    more = [(0, 0), *((0, own - size) for own, size in sizes)]
    padded = np.pad(released, more, constant_values=NOT_RELEASED)
    return replace(table, noise=Noise(release.mechanism, release.keyed, keys, padded))


def _of_total(
    total: Total, table: xr.DataArray, axes: tuple[Axis, ...], book: _Definitions
) -> PublishedTable:
    """Totals of a release, whose groups follow from the categories of one axis each."""
    groups = total.group.reshape(table.shape)
    places = np.unravel_index(groups, total.labels.shape) if total.labels.ndim else ()
    kept = []
    for name, place in zip(total.labels.dims, places, strict=True):
        varies = [bool((place != place.take([0], axis=i)).any()) for i in range(table.ndim)]
        along = varies.index(True) if any(varies) else _axis_of(str(name), axes, book)
        own = np.moveaxis(place, along, 0).reshape(table.shape[along], -1)[:, 0]
        labels = tuple(map(label_text, labels_of(total.labels[name])))
        absent = axes[along].classes == table.shape[along]
        grouped = np.where(axes[along].classes < 0, -1, np.append(own, 0)[axes[along].classes])
        kept.append(_with_absent(str(name), axes[along].variable, labels, grouped, absent))
    released = total.released
    least = np.where(released, total.least, 0).reshape(total.labels.shape)
    most = np.where(released, total.most, UNLIMITED).reshape(total.labels.shape)
    return _padded(tuple(kept), book.where, least, most)


def _axis_of(name: str, axes: tuple[Axis, ...], book: _Definitions) -> int:
    """The axis along which a level with one label is."""
    variable = book.codebook.variable_of(name, "the release")
    return next(place for place, axis in enumerate(axes) if axis.variable == variable)


def _padded(
    axes: tuple[Axis, ...], where: Mapping[str, Booleans], least: Integers, most: Integers
) -> PublishedTable:
    """A table in which categories that it leaves out hold nobody."""
    if not axes:  # a grand total
        return PublishedTable(axes, where, least, most)
    more = [(0, len(axis.labels) - size) for axis, size in zip(axes, least.shape, strict=True)]
    return PublishedTable(axes, where, np.pad(least, more), np.pad(most, more))


def _check_filter(tables: Sequence[PublishedTable]) -> None:
    """Raise where somebody is counted whom the filter leaves out."""
    for table in tables:
        for place, axis in enumerate(table.axes):
            selected = table.where.get(axis.variable)
            if selected is None:
                continue
            out = ~np.isin(np.arange(len(axis.labels)), axis.classes[selected])
            counted = (np.moveaxis(table.least, place, 0) > 0).reshape(len(out), -1).any(axis=1)
            if (out & counted).any():
                label = axis.labels[int(np.argmax(out & counted))]
                raise TableError(
                    f"the table counts people of {axis.name}={label}, whom where leaves out: is it"
                    " the table of the selected records?"
                )


def _check_total(tables: Sequence[PublishedTable], codebook: Codebook) -> None:
    """Raise where a table of everybody does not add up to the number of records."""
    for table in tables:
        if codebook.total is None or table.where:
            continue
        least = int(table.least.sum())
        if least > codebook.total or (table.exact and least != codebook.total):
            raise TableError(
                f"the table adds up to {least:,}, and there are {codebook.total:,} records: if only"
                " some are counted, say which by where; records without a label need a category"
            )
