"""Hierarchical log-linear formulas: names of variables joined by ``+``, ``:``, ``*``
and ``^``.
"""

import re
from collections.abc import Sequence, Set
from itertools import combinations
from typing import Final

from taciturn.errors import FormulaError
from taciturn.loading import loaded

__all__ = ["Terms", "generating_class", "main_effects", "parse_formula"]

Terms = tuple[tuple[str, ...], ...]
"""Terms of a hierarchical model, each a tuple of variables, lower orders first."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*|`[^`]*`)|\^\s*(?P<power>[1-9]\d?)(?!\w)|(?P<mark>[+:*()]))"
)
_LONGEST: Final = 1000  # symbols, with powers written out
_ACCEPTED: Final = (
    "a formula joins names of variables with + : * ^ (and parentheses), such as"
    " '~ area * religion', or is '~ 1'"
)


def main_effects(variables: Sequence[str]) -> Terms:
    """One term per variable: independence."""
    return tuple((name,) for name in variables)


def parse_formula(formula: str | None, variables: Sequence[str]) -> Terms:
    """Terms of a formula, completed to a hierarchical model.

    Parameters
    ----------
    formula : str or None
        ``"~ a + b"``, ``"~ a * b"``, ``"~ (a + b + c)^2"``; a name that is not a word
        goes in backticks. An interaction implies its lower-order terms. ``"~ 1"`` has
        none: all cells are alike. None means main effects. The text is never evaluated.
    variables : sequence of str
        The variables of the table.

    Returns
    -------
    tuple of tuple of str
        Sorted by order, then by the order of the variables in the table.

    Raises
    ------
    FormulaError
        Anything but names of `variables` and ``+ : * ^``.

    Examples
    --------
    >>> from taciturn.estimators.formula import parse_formula
    >>> parse_formula("~ a:b + c", ["a", "b", "c"])
    (('a',), ('b',), ('c',), ('a', 'b'))
    """
    if formula is None:
        return main_effects(variables)
    if not isinstance(formula, str):
        raise FormulaError(f"a formula is text, got {type(formula).__name__}: {_ACCEPTED}")
    if _body(formula) == "1":
        return ()
    position = {name: i for i, name in enumerate(variables)}
    terms: set[tuple[str, ...]] = set()
    for written in _written_terms(formula, variables):
        full = sorted(written, key=position.__getitem__)
        for order in range(1, len(full) + 1):
            terms.update(combinations(full, order))
    return tuple(sorted(terms, key=lambda term: (len(term), [position[name] for name in term])))


def generating_class(terms: Terms) -> Terms:
    """The maximal terms: the margins that a maximum-likelihood fit reproduces."""
    return tuple(term for term in terms if not any(set(term) < set(other) for other in terms))


def _written_terms(formula: str, variables: Sequence[str]) -> set[frozenset[str]]:
    """Terms as written, read by formulaic's parser; it is given plain symbols in place
    of names, so that no name has a special meaning.
    """
    parser, errors = loaded("formulaic.parser"), loaded("formulaic.errors")
    symbols = {name: f"v{i}" for i, name in enumerate(variables)}
    names = {symbol: name for name, symbol in symbols.items()}
    coded: list[str] = []
    for kind, text in _tokens(formula, set(variables)):
        if kind == "power":
            _write_out_power(coded, min(int(text), len(variables)))
        else:
            coded.append(symbols[text] if kind == "name" else text)
        if len(coded) > _LONGEST:
            raise FormulaError(
                f"the formula {_shown(formula)} is too long: write its interactions out"
            )
    try:
        parsed = parser.DefaultFormulaParser(include_intercept=False).get_terms(" ".join(coded))
        factors = [[str(factor) for factor in term.factors] for term in parsed]
        terms = {frozenset(names[factor] for factor in term) for term in factors if term}
    except (
        errors.FormulaicError,
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
    ) as error:
        raise FormulaError(f"cannot read the formula {_shown(formula)}: {_ACCEPTED}") from error
    if not terms:
        raise FormulaError(f"the formula {_shown(formula)} is empty: {_ACCEPTED}")
    return terms


def _body(formula: str) -> str:
    """A formula without its tilde."""
    return formula.strip().removeprefix("~").strip()


def _write_out_power(coded: list[str], power: int) -> None:
    """Write ``(a + b)^2`` as ``((a + b) * (a + b))``, which is equivalent in a
    hierarchical model.

    The parser would enumerate every product of the power before dropping duplicates.
    Each factor adds a variable to the largest terms, so more factors than variables
    change nothing.
    """
    start = len(coded) - 1
    depth = 0
    while start >= 0:
        depth += (coded[start] == ")") - (coded[start] == "(")
        if depth <= 0:
            break
        start -= 1
    operand = coded[max(start, 0) :]
    coded[max(start, 0) :] = ["(", *operand, *(["*", *operand] * (power - 1)), ")"]


def _tokens(formula: str, variables: Set[str]) -> list[tuple[str, str]]:
    """Kind (name, power or mark) and text of each token; unknown names are refused."""
    body = _body(formula)
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None:
            rest = body[at:].strip()
            if rest.startswith("^"):
                raise FormulaError(
                    f"a power is a whole number from 1 to 99, {_shown(formula)} has"
                    f" {_shown(rest[:8])}"
                )
            raise FormulaError(f"the formula {_shown(formula)} holds {rest[0]!r}: {_ACCEPTED}")
        at = match.end()
        kind = match.lastgroup or ""
        text = match[kind]
        if kind == "name":
            text = text.strip("`")
            if text not in variables:
                known = ", ".join(map(repr, sorted(variables)))
                raise FormulaError(
                    f"the formula {_shown(formula)} names {_shown(text)}: the table's variables are"
                    f" {known}"
                )
        found.append((kind, text))
    return found


def _shown(text: str) -> str:
    """Quote a text, shortened to a bounded length."""
    return repr(text if len(text) <= 80 else f"{text[:60]}...{text[-15:]}")
