"""Check a certificate of bounds with Python alone: no solver, nothing of the package.

    python checker.py certificate.json

prints what is proved, and ends with 0 if all bounds are, with 2 if some are not, and
with 1 if the file is no certificate or anything in it is wrong.

A certificate states a linear system over cells `x` of whole numbers, ``least <= A x <=
most`` and ``lower <= x <= upper``, and bounds on sums of cells. A table shows that a
bound is attained. That nothing exceeds it is shown by multipliers `y` of the rows: with
`c` 1 for the cells of an upper bound, -1 for those of a lower one, and `r = c - y A`,

    c x = y (A x) + r x <= sum max(y least, y most) + sum max(r lower, r upper),

rounded down; where one sum is not enough, by those of each leaf of a tree. That there
is no bound is shown by a ray, which can be added to any table again and again.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

__all__ = ["FORMAT", "VERSION", "CertificateError", "CheckedBound", "CheckedCertificate", "check"]

FORMAT: Final = "taciturn certificate"
VERSION: Final = 1
_BYTES: Final = 2**27  # of a file
_DIGITS: Final = 40  # of a number, and of the common denominator of the multipliers
_DEPTH: Final = 1000  # of a tree
_STEPS: Final = 10**9  # of arithmetic, which are some minutes
_FRACTION: Final = re.compile(r"-?[0-9]{1,40}(/[1-9][0-9]{0,39})?")


class CertificateError(Exception):
    """The file is no certificate, or what it says is wrong."""


@dataclass(frozen=True)
class CheckedBound:
    """One bound.

    Attributes
    ----------
    cell : str
        The cell or total, in words.
    side : str
        ``lower`` or ``upper``.
    value : int or None
        In steps; None if nothing limits the cell.
    proved : bool
        Whether the certificate proves it.
    """

    cell: str
    side: str
    value: int | None
    proved: bool


@dataclass(frozen=True, repr=False)
class CheckedCertificate:
    """What a certificate proves; one that proves something wrong is an error instead.

    Attributes
    ----------
    decimals : int
        A step is ``10**-decimals``.
    bounds : tuple of CheckedBound
        All bounds.
    """

    decimals: int
    bounds: tuple[CheckedBound, ...]

    @property
    def not_proved(self) -> tuple[CheckedBound, ...]:
        """The bounds that the certificate states and does not prove."""
        return tuple(side for side in self.bounds if not side.proved)

    def __repr__(self) -> str:
        missing = len(self.not_proved)
        return f"{len(self.bounds) - missing} bounds proved, {missing} not"


type _Costs = Mapping[int, int]
type _Narrowed = tuple[dict[int, int], dict[int, int]]


class _Row(NamedTuple):
    least: int | None
    most: int | None
    cells: list[int]


def check(path: str | Path) -> CheckedCertificate:
    """Check a certificate; raise `CertificateError` if it is none or is wrong."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_BYTES + 1)
        if len(content) > _BYTES:
            _fail("the file", f"has more than {_BYTES:,} bytes")
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_key_twice,
            parse_int=_parsed,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except (OSError, ValueError, RecursionError) as error:
        _fail("the file", f"cannot be read as JSON in UTF-8: {error}")
    return _Certificate(document).checked()


class _Certificate:
    """A certificate, of which `checked` trusts nothing."""

    def __init__(self, document: Any) -> None:
        names = ("format", "version", "decimals", "cells", "rows", "tables", "bounds")
        whole = _object(document, names, "the certificate")
        if whole["format"] != FORMAT or _whole(whole["version"], "version") != VERSION:
            _fail("format and version", f"must be {FORMAT!r} and {VERSION}")
        self._left = _STEPS
        self._decimals = _whole(whole["decimals"], "decimals", 0, 12)
        self._labels: list[str] = []
        self._lower: list[int | None] = []
        self._upper: list[int | None] = []
        for where, given in _each(whole["cells"], "cells"):
            cell = _object(given, ("label", "lower", "upper"), where)
            self._labels.append(_of(str, cell["label"], f"{where}.label"))
            lower, upper = _limits(cell["lower"], cell["upper"], where)
            self._lower.append(lower)
            self._upper.append(upper)
        ends = enumerate(zip(self._lower, self._upper, strict=True))
        self._open = [j for j, (low, high) in ends if low is None or low != high]
        self._place = {j: at for at, j in enumerate(self._open)}
        self._rows_of: list[list[int]] = [[] for _ in self._labels]
        self._rows: list[_Row] = []
        for where, given in _each(whole["rows"], "rows"):
            row = _object(given, ("label", "least", "most", "cells"), where)
            _of(str, row["label"], f"{where}.label")
            cells = _indexes(row["cells"], len(self._labels), f"{where}.cells")
            for j in cells:
                self._rows_of[j].append(len(self._rows))
            self._rows.append(_Row(*_limits(row["least"], row["most"], where), cells))
        self._tables = [self._table(*each) for each in _each(whole["tables"], "tables")]
        self._bounds = whole["bounds"] or _fail("bounds", "must not be empty")

    def checked(self) -> CheckedCertificate:
        """Check every bound."""
        sides = []
        names = frozenset(self._labels)
        for where, given in _each(self._bounds, "bounds"):
            bound = _object(given, ("label", "cells", "lower", "upper"), where)
            label = _of(str, bound["label"], f"{where}.label")
            cells = _indexes(bound["cells"], len(self._labels), f"{where}.cells")
            if len(cells) == 1:
                label = self._labels[cells[0]]
            elif not cells or label in names:
                _fail(where, f"must be of the cell {label!r} or a sum" if cells else "has no cell")
            for side, sign in (("lower", -1), ("upper", 1)):
                value, proved = self._side(bound[side], cells, sign, f"{where}.{side}")
                sides.append(CheckedBound(label, side, value, proved))
        return CheckedCertificate(self._decimals, tuple(sides))

    def _table(self, where: str, given: Any) -> list[int]:
        """A table that holds: the values of the open cells, one after the other."""
        table = _of(list, given, where)
        if len(table) != len(self._open):
            _fail(where, f"must have {len(self._open)} values, those of all open cells")
        for j, value in zip(self._open, table, strict=True):
            if not _within(_whole(value, where), self._lower[j], self._upper[j]):
                _fail(where, f"has {value} in {self._labels[j]!r}, which is out of bounds")
        for i, row in enumerate(self._rows):
            total = self._sum(table, row.cells)
            if not _within(total, row.least, row.most):
                _fail(where, f"has {total} in rows[{i}], which is out of bounds")
        return table

    def _sum(self, table: list[int], cells: list[int]) -> int:
        self._spend(len(cells))
        place, fixed = self._place, self._lower
        return sum(table[place[j]] if j in place else fixed[j] or 0 for j in cells)

    def _side(self, given: Any, cells: list[int], sign: int, where: str) -> tuple[int | None, bool]:
        costs = dict.fromkeys(cells, sign)
        kind = "ray" if isinstance(given, dict) and given.get("value") is None else "proof"
        side = _object(given, ("value", "table", kind), where)
        table = None
        if (at := side["table"]) is not None:
            table = self._tables[_whole(at, f"{where}.table", 0, len(self._tables) - 1)]
        if kind == "proof":
            value = _whole(side["value"], f"{where}.value")
            if table is not None and self._sum(table, cells) != value:
                _fail(f"{where}.table", f"does not attain {value}")
            if side["proof"] is not None:
                self._check_proof(side["proof"], costs, sign * value, f"{where}.proof")
        elif side["ray"] is not None:
            self._check_ray(side["ray"], costs, f"{where}.ray")
        return side["value"], None not in (table, side[kind])

    def _check_ray(self, given: Any, costs: _Costs, where: str) -> None:
        """Raise unless a ray can be added to any table, without end."""
        moves: dict[int, int] = {}
        sums: dict[int, int] = {}
        for j, move in _pairs(given, len(self._labels), where):
            moves[j] = _whole(move, where)
            if self._upper[j] is not None and moves[j] > 0:
                _fail(where, f"moves {self._labels[j]!r} beyond its upper bound")
            if self._lower[j] is not None and moves[j] < 0:
                _fail(where, f"moves {self._labels[j]!r} beyond its lower bound")
            self._spend(len(self._rows_of[j]))
            for i in self._rows_of[j]:
                sums[i] = sums.get(i, 0) + moves[j]
        for i, total in sums.items():
            row = self._rows[i]
            if (total > 0 and row.most is not None) or (total < 0 and row.least is not None):
                _fail(where, f"moves rows[{i}] beyond its limit")
        if sum(sign * moves.get(j, 0) for j, sign in costs.items()) <= 0:
            _fail(where, "does not move what is bounded")

    def _check_proof(self, given: Any, costs: _Costs, most: int, where: str) -> None:
        """Raise unless every leaf of a tree proves its part."""
        waiting: list[_Narrowed] = [({}, {})]
        for place, node in _each(given, where):
            if not 0 < len(waiting) <= _DEPTH:
                _fail(place, f"stands after its tree, or deeper in it than {_DEPTH}")
            lower, upper = waiting.pop()
            self._spend(1 + len(lower) + len(upper))
            if isinstance(node, dict) and "multipliers" in node:
                self._check_leaf(node, costs, most, (lower, upper), place)
                continue
            split = _object(node, ("cell", "at_most"), place)
            j = _whole(split["cell"], f"{place}.cell", 0, len(self._labels) - 1)
            end = _whole(split["at_most"], f"{place}.at_most")
            waiting += [({**lower, j: end + 1}, upper), (lower, {**upper, j: end})]
        if waiting:
            _fail(where, f"lacks {len(waiting)} parts of its tree")

    def _check_leaf(
        self, given: Any, costs: _Costs, most: int, narrowed: _Narrowed, where: str
    ) -> None:
        leaf = _object(given, ("shows", "multipliers"), where)
        if leaf["shows"] not in ("bound", "no table"):
            _fail(f"{where}.shows", "must be 'bound' or 'no table'")
        if leaf["shows"] == "no table":
            costs, most = {}, -1
        pairs = _pairs(leaf["multipliers"], len(self._rows), where)
        weights, denominator = _common(pairs, where)
        rest = {j: denominator * sign for j, sign in costs.items()}
        self._spend(len(rest))
        total = 0
        for i, weight in weights.items():
            row = self._rows[i]
            limit = row.most if weight > 0 else row.least
            if limit is None and weight:
                _fail(where, f"uses a limit that rows[{i}] does not have")
            total += weight * (limit or 0)
            self._spend(len(row.cells))
            for j in row.cells:
                rest[j] = rest.get(j, 0) - weight
        for j, weight in rest.items():
            # A split of the tree need not be within the limits of its cell.
            ends = (self._upper[j], narrowed[1].get(j))
            if weight < 0:
                ends = (self._lower[j], narrowed[0].get(j))
            products = [weight * end for end in ends if end is not None]
            if weight and not products:
                _fail(where, f"uses a limit that {self._labels[j]!r} does not have")
            total += min(products, default=0)
        if total // denominator > most:
            _fail(where, f"proves {total // denominator} as the most, and not {most}")

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            _fail("the certificate", f"takes more than {_STEPS:,} steps to check")


def _common(pairs: Sequence[tuple[int, Any]], where: str) -> tuple[dict[int, int], int]:
    """Multipliers as whole numbers over one denominator."""
    fractions, denominator = {}, 1
    for i, given in pairs:
        if not isinstance(given, str) or not _FRACTION.fullmatch(given):
            _fail(where, f"must be texts such as '-2/3' of numbers up to {_DIGITS} digits")
        fractions[i] = Fraction(given)
        denominator = lcm(denominator, fractions[i].denominator)
        if denominator >= 10**_DIGITS:
            _fail(where, f"have a common denominator of more than {_DIGITS} digits")
    return {i: int(f * denominator) for i, f in fractions.items()}, denominator


def _each(given: Any, where: str) -> Iterator[tuple[str, Any]]:
    return ((f"{where}[{i}]", item) for i, item in enumerate(_of(list, given, where)))


def _within(value: int, least: int | None, most: int | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _limits(least: Any, most: Any, where: str) -> tuple[int | None, int | None]:
    """Two limits, of which each may be missing."""
    low = None if least is None else _whole(least, where)
    high = None if most is None else _whole(most, where)
    if low is not None and high is not None and low > high:
        _fail(where, f"has limits from {low} to {high}")
    return low, high


def _object(given: Any, names: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict) or set(given) != set(names):
        _fail(where, f"must be an object of {', '.join(names)}, and nothing else")
    return given


def _of[T](kind: type[T], given: Any, where: str) -> T:
    if not isinstance(given, kind):
        _fail(where, f"must be a {'list' if kind is list else 'text'}")
    return given


def _whole(given: Any, where: str, least: int | None = None, most: int | None = None) -> int:
    if type(given) is not int or not _within(given, least, most):  # not bool
        limits = "" if least is None else f" from {least}" + ("" if most is None else f" to {most}")
        shown = given if type(given) is int else f"a {type(given).__name__}"
        _fail(where, f"must be a whole number{limits}, not {shown}")
    return given


def _indexes(given: Any, size: int, where: str) -> Any:
    """Different numbers in rising order, from 0 and below a size."""
    last = -1
    for value in _of(list, given, where):
        last = _whole(value, where, last + 1, size - 1)
    return given


def _pairs(given: Any, size: int, where: str) -> list[tuple[int, Any]]:
    """Pairs of a number and something, the numbers as those of `_indexes`."""
    pairs = _of(list, given, where)
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        _fail(where, "must be pairs")
    _indexes([number for number, _ in pairs], size, where)
    return [(number, value) for number, value in pairs]


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _fail("an object", "has a name twice: " + ", ".join(name for name, _ in pairs)[:200])
    return found


def _parsed(digits: str) -> int:
    if len(digits.lstrip("-")) > _DIGITS:
        _fail("a number", f"has more than {_DIGITS} digits")
    return int(digits)


def _no_float(written: str) -> NoReturn:
    _fail("a number", f"must be a whole one, not {written:.60}")


def _fail(where: str, what: str) -> NoReturn:
    raise CertificateError(f"{where} {what}")


def _printed(side: CheckedBound, decimals: int) -> str:
    """A bound in words and units; what a label could do to a terminal is escaped."""
    label = "".join(c if c.isprintable() else repr(c)[1:-1] for c in side.cell)
    value = "none"
    if side.value is not None:
        value = f"{side.value:0{decimals + 1 + (side.value < 0)}d}"
        value = f"{value[:-decimals]}.{value[-decimals:]}" if decimals else value
    return f"{'proved' if side.proved else 'NOT PROVED'}: {label}: {side.side} bound {value}"


def main(arguments: Sequence[str]) -> int:
    """Check the file that is named, print what is proved, and return the status."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python checker.py certificate.json\n")
        return 1
    try:
        checked = check(arguments[0])
    except CertificateError as error:
        sys.stderr.write(f"{error}".encode("ascii", "backslashreplace").decode() + "\n")
        return 1
    lines = [*(_printed(side, checked.decimals) for side in checked.bounds), f"{checked}\n"]
    encoding = sys.stdout.encoding
    sys.stdout.write("\n".join(lines).encode(encoding, "backslashreplace").decode(encoding))
    return 2 if checked.not_proved else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
